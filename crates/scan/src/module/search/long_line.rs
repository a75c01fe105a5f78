//! Lines that exceed the longest one: their pieces overlap, and are searched in order, from the end of the last match on.
//!
//! A match as long as the overlap at most is found wherever it lies. The answer does not depend on borders of blocks: pieces
//! are counted from the begin of the line.

use crate::module::search::lines::{Detail, MOST_MATCHES};
use crate::module::search::pattern::Walk;
use crate::module::search::telling::{LineState, SHOWN, Teller, tell};
use crate::module::search::{Hit, Line};
use crate::module::{Block, Flow, ModuleError, Outputs, Piece};
use holdfast_base::ByteSize;

/// Bytes at the end of a piece whose look-ahead is unknown: an encoded character.
const MARGIN: usize = 4;

/// Line of which some pieces were searched.
#[derive(Debug)]
pub(super) struct LongLine {
    /// The line as it will be told; its text is the begin of the line until a match is found.
    line: Line,
    /// True once a match was found.
    is_matched: bool,
    /// End of the last match in the item.
    matched: Option<u64>,
}

impl Teller<'_> {
    /// Searches a piece of a long line; at the end of the line, tells it.
    pub(super) fn piece(
        &self,
        state: &mut LineState,
        block: &Block<'_>,
        piece: Piece,
        line_ends: u64,
        out: &mut Outputs<'_, Hit>,
    ) -> Result<Flow, ModuleError> {
        if piece.begins && state.after == 0 && self.is_enough(state) {
            return Ok(Flow::Enough);
        }
        let mut long = match state.long.take().filter(|_| !piece.begins) {
            Some(long) => long,
            None => self.begin_long(state, block),
        };
        if !self.is_enough(state) || long.is_matched {
            self.search_piece(state, &mut long, block, piece, out)?;
        }
        if !piece.ends {
            state.long = Some(long);
            return Ok(Flow::Continue);
        }
        self.end_long(state, long, block, (piece, line_ends), out);
        state.line_ends += line_ends;
        Ok(if self.is_enough(state) && state.after == 0 { Flow::Enough } else { Flow::Continue })
    }

    fn begin_long(&self, state: &LineState, block: &Block<'_>) -> LongLine {
        let offset = block.offset + block.own.start as u64;
        let own = block.own_bytes();
        let line = Line {
            item: block.item.id(),
            offset,
            number: self.finder.numbers.then_some(state.line_ends + 1),
            text_offset: offset,
            text: own[..own.len().min(2 * SHOWN)].to_vec(),
            matches: Vec::new(),
            end: offset,
            is_context: false,
            follows: false,
        };
        LongLine { line, is_matched: false, matched: None }
    }

    fn search_piece(
        &self,
        state: &mut LineState,
        long: &mut LongLine,
        block: &Block<'_>,
        piece: Piece,
        out: &mut Outputs<'_, Hit>,
    ) -> Result<(), ModuleError> {
        let mut end = if piece.ends { block.own.end } else { block.bytes.len() };
        if piece.ends && block.own_bytes().last() == Some(&b'\n') {
            end -= 1;
        }
        let bytes = &block.bytes[..end];
        let matched = long.matched.map(|matched| matched.saturating_sub(block.offset) as usize);
        let at = matched.unwrap_or(0).max(block.own.start);
        let mut walk = Walk { at, matched };
        while let Some((from, behind)) = walk.next(|from| self.finder.pattern.find(bytes, from))? {
            if from >= block.own.end && !piece.ends {
                break;
            }
            let is_cut = !piece.ends && behind + MARGIN > end;
            if is_cut && self.finder.pattern.looks_behind {
                break;
            }
            long.matched = Some(block.offset + behind as u64);
            if !self.long_match(state, long, block, (from, behind), out) {
                break;
            }
        }
        Ok(())
    }

    /// Adds a match to a long line. False: no more of them are wanted.
    fn long_match(
        &self,
        state: &mut LineState,
        long: &mut LongLine,
        block: &Block<'_>,
        (from, end): (usize, usize),
        out: &mut Outputs<'_, Hit>,
    ) -> bool {
        let places = (block.offset + from as u64, block.offset + end as u64);
        let is_first = !std::mem::replace(&mut long.is_matched, true);
        match self.finder.detail {
            Detail::Count => false,
            _ if self.finder.invert => false,
            Detail::Matches => {
                if is_first {
                    self.select_long(state, long, out);
                }
                let text = block.bytes[from..end].to_vec();
                let line = Line { text, text_offset: places.0, matches: vec![places], ..long.line.clone() };
                tell(state, line, out);
                true
            }
            Detail::Lines => {
                if is_first {
                    let text =
                        block.own.start.max(from.saturating_sub(SHOWN))..block.bytes.len().min(end + SHOWN);
                    let length = memchr::memchr(b'\n', &block.bytes[end..text.end]);
                    let text = text.start..length.map_or(text.end, |length| end + length);
                    long.line.text_offset = block.offset + text.start as u64;
                    long.line.text = block.bytes[text].to_vec();
                }
                if long.line.matches.len() < MOST_MATCHES {
                    long.line.matches.push(places);
                }
                long.line.matches.len() < MOST_MATCHES
            }
        }
    }

    /// Counts a long line, and tells the context in front of it.
    fn select_long(&self, state: &mut LineState, long: &LongLine, out: &mut Outputs<'_, Hit>) {
        for line in std::mem::take(&mut state.before) {
            tell(state, line, out);
        }
        self.begin_selected(state, long.line.offset);
    }

    fn end_long(
        &self,
        state: &mut LineState,
        mut long: LongLine,
        block: &Block<'_>,
        (piece, line_ends): (Piece, u64),
        out: &mut Outputs<'_, Hit>,
    ) {
        long.line.end = block.offset + block.own.end as u64 - line_ends;
        let overlap = piece.overlap;
        let is_sure = self.finder.pattern.longest.is_some_and(|longest| longest + MARGIN <= overlap);
        if !is_sure && (!long.is_matched || self.finder.invert || self.finder.detail == Detail::Matches) {
            out.warn(format!(
                "the line at offset {} has more than {}: a match longer than {} may be missed",
                long.line.offset,
                ByteSize(4 * overlap as u64),
                ByteSize(overlap as u64),
            ));
        }
        let is_told = long.is_matched && !self.finder.invert && self.finder.detail == Detail::Matches;
        if is_told {
            return;
        }
        if long.is_matched == self.finder.invert || self.is_enough(state) {
            if state.after > 0 {
                state.after -= 1;
                tell(state, Line { is_context: true, matches: Vec::new(), ..long.line }, out);
            } else {
                self.remember_line(state, Line { is_context: true, matches: Vec::new(), ..long.line });
            }
            return;
        }
        if self.finder.detail == Detail::Count {
            state.count += 1;
            return;
        }
        self.select_long(state, &long, out);
        tell(state, long.line, out);
    }
}
