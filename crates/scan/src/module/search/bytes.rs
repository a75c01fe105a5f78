//! Search for bytes in hexadecimal digits, whose matches may have line ends: in blocks that overlap.

use crate::module::search::lines::{Detail, MOST_MATCHES};
use crate::module::search::pattern::Walk;
use crate::module::search::telling::SHOWN;
use crate::module::search::{Hit, Line, Search};
use crate::module::{Block, Flow, ModuleError, Outputs};

/// Lines of one partial result at most; the rest is looked for when it is folded, piece by piece.
const MOST_FOUND: usize = 4096;

/// Line of a block, before it is known what was in front of the block.
#[derive(Debug)]
struct RawLine {
    /// Offset in the item; `None`: it begins before the block.
    offset: Option<u64>,
    /// Line ends in the block in front of it.
    number: u64,
    text_offset: u64,
    text: Vec<u8>,
    end: u64,
    matches: Vec<(u64, u64)>,
}

/// Lines of a block.
#[derive(Debug, Default)]
pub(super) struct ByteLines {
    lines: Vec<RawLine>,
    /// Line ends in the block, if lines are counted.
    line_ends: u64,
    /// Offset behind the last line end of the block.
    last_line: Option<u64>,
    /// End of the last match, also of one that no line keeps.
    matched: Option<u64>,
    /// True if further lines of the block are to be looked for.
    is_full: bool,
}

/// State of an item.
#[derive(Debug, Default)]
pub(super) struct ByteState {
    count: u64,
    /// Line ends so far.
    line_ends: u64,
    /// Offset of the line at which the next block begins.
    line: u64,
    /// End of the last match.
    matched: Option<u64>,
    /// Line that further matches may belong to.
    pending: Option<Line>,
    /// Offset of the line that was counted last.
    counted: Option<u64>,
}

/// Finds the lines of a block from a place in its own range on.
pub(super) fn find(
    search: &Search,
    block: &Block<'_>,
    from: usize,
    matched: Option<u64>,
) -> Result<ByteLines, ModuleError> {
    let numbers = search.options.wanted.has_numbers();
    let detail = search.options.wanted.detail();
    let (bytes, own) = (block.bytes, &block.own);
    let mut found = ByteLines { matched, ..ByteLines::default() };
    if numbers {
        found.line_ends = memchr::memchr_iter(b'\n', block.own_bytes()).count() as u64;
    }
    let last = memchr::memrchr(b'\n', block.own_bytes());
    found.last_line = last.map(|at| block.offset + (own.start + at) as u64 + 1);
    // End of the line found last, and the place up to which line ends were counted.
    let (mut line_end, mut counted, mut line_ends) = (from, own.start, 0);
    let mut walk = Walk { at: from, matched: None };
    while let Some((at, end)) = walk.next(|from| search.pattern.find(bytes, from))? {
        if at >= own.end {
            break;
        }
        if found.lines.len() >= MOST_FOUND {
            found.is_full = true;
            break;
        }
        let span = (block.offset + at as u64, block.offset + end as u64);
        found.matched = Some(span.1);
        let is_same = at <= line_end && memchr::memchr(b'\n', &bytes[at.min(line_end)..at]).is_none();
        if let Some(line) = found.lines.last_mut().filter(|_| is_same && detail != Detail::Matches) {
            if line.matches.len() < MOST_MATCHES {
                line.matches.push(span);
            }
            continue;
        }
        if numbers && at > counted {
            line_ends += memchr::memchr_iter(b'\n', &bytes[counted..at]).count() as u64;
            counted = at;
        }
        let start = memchr::memrchr(b'\n', &bytes[..at]).map(|end| end + 1);
        let start = start.or_else(|| (block.offset == 0).then_some(0));
        line_end = memchr::memchr(b'\n', &bytes[end..]).map_or(bytes.len(), |found| end + found);
        let text = match detail {
            Detail::Count => at..at,
            Detail::Matches => at..end,
            Detail::Lines => start.unwrap_or(0).max(at.saturating_sub(SHOWN))..line_end.min(end + SHOWN),
        };
        found.lines.push(RawLine {
            offset: start.map(|start| block.offset + start as u64),
            number: line_ends,
            text_offset: block.offset + text.start as u64,
            text: bytes[text].to_vec(),
            end: block.offset + line_end as u64,
            matches: vec![span],
        });
        if search.options.most.is_some_and(|most| found.lines.len() as u64 > most)
            && detail != Detail::Matches
        {
            break;
        }
    }
    Ok(found)
}

/// Adds a block to its item.
pub(super) fn fold(
    search: &Search,
    state: &mut ByteState,
    block: &Block<'_>,
    mut found: ByteLines,
    out: &mut Outputs<'_, Hit>,
) -> Result<Flow, ModuleError> {
    let first = found.lines.first().and_then(|line| line.matches.first()).copied();
    if let (Some(matched), Some((from, _))) = (state.matched, first)
        && from < matched
    {
        // The last match of the block before reaches into this one.
        let from = (matched - block.offset) as usize;
        found = find(search, block, from.min(block.own.end), Some(matched))?;
    }
    let line_ends = found.line_ends;
    let last_line = found.last_line;
    let is_match = search.options.wanted.detail() == Detail::Matches;
    loop {
        state.matched = found.matched.or(state.matched);
        for raw in found.lines {
            let offset = raw.offset.unwrap_or(state.line);
            if let Some(line) = state.pending.as_mut().filter(|line| line.offset == offset && !is_match) {
                let room = MOST_MATCHES.saturating_sub(line.matches.len());
                line.matches.extend(raw.matches.into_iter().take(room));
                continue;
            }
            if push(search, state, out) == Flow::Enough && state.counted != Some(offset) {
                return Ok(Flow::Enough);
            }
            let number = state.line_ends + raw.number + 1;
            state.pending = Some(Line {
                item: block.item.id(),
                offset,
                end: raw.end,
                number: search.options.wanted.has_numbers().then_some(number),
                text_offset: raw.text_offset,
                text: raw.text,
                matches: raw.matches,
                is_context: false,
                follows: false,
            });
        }
        if !found.is_full {
            break;
        }
        let from = found.matched.unwrap_or_default().saturating_sub(block.offset) as usize;
        found = find(search, block, from, found.matched)?;
    }
    state.line_ends += line_ends;
    state.line = last_line.unwrap_or(state.line);
    Ok(Flow::Continue)
}

/// Ends an item, and tells the number of its lines.
pub(super) fn end(search: &Search, mut state: ByteState, out: &mut Outputs<'_, Hit>) -> u64 {
    push(search, &mut state, out);
    state.count
}

fn push(search: &Search, state: &mut ByteState, out: &mut Outputs<'_, Hit>) -> Flow {
    if let Some(line) = state.pending.take() {
        if state.counted.replace(line.offset) != Some(line.offset) {
            state.count += 1;
        }
        if search.options.wanted.detail() != Detail::Count {
            let bytes = line.text.len() + 16 * line.matches.len();
            out.push_sized(Hit::Line(line), bytes);
        }
    }
    if search.options.most.is_some_and(|most| state.count >= most) { Flow::Enough } else { Flow::Continue }
}
