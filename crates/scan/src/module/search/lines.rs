//! Lines of a block that a search selects, with their matches: found on any core, told in the order of the item.

use crate::module::search::pattern::{Pattern, Walk};
use crate::module::{Block, ModuleError};
use std::ops::Range;

/// Lines and matches of one partial result at most; the rest is looked for when it is folded, piece by piece.
const MOST_FOUND: usize = 16_384;

/// Matches of one line that are told with it.
pub(super) const MOST_MATCHES: usize = 1024;

/// Detail in which selected lines are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Detail {
    /// Number of lines alone.
    Count,
    /// Lines with their first matches.
    Lines,
    /// All matches of each line.
    Matches,
}

/// Search of the lines of one block.
#[derive(Clone, Copy, Debug)]
pub(super) struct LineFinder<'a> {
    pub(super) pattern: &'a Pattern,
    pub(super) invert: bool,
    pub(super) detail: Detail,
    /// True if line ends are counted.
    pub(super) numbers: bool,
    /// Lines of an item at most.
    pub(super) most: Option<u64>,
}

/// Line that was selected.
#[derive(Clone, Debug)]
pub(super) struct Found {
    /// Bytes of the line in the block, without its end.
    pub(super) line: Range<u32>,
    /// Line ends in front of it, from the block's own begin on.
    pub(super) line_ends: u64,
    /// Its matches among those of the partial result.
    pub(super) matches: Range<u32>,
}

/// Selected lines of a block.
#[derive(Debug, Default)]
pub(super) struct FoundLines {
    pub(super) lines: Vec<Found>,
    /// Matches of all lines, as places in the block.
    pub(super) matches: Vec<(u32, u32)>,
    /// Number of selected lines, if nothing else is wanted.
    pub(super) count: u64,
    /// Place from which the search goes on.
    pub(super) rest: Option<Cursor>,
}

impl FoundLines {
    fn is_full(&self) -> bool {
        self.lines.len() + self.matches.len() >= MOST_FOUND
    }
}

/// Place of a search in a block.
#[derive(Clone, Debug, Default)]
pub(super) struct Cursor {
    walk: Walk,
    /// Line of the last match.
    line: Option<Range<usize>>,
    /// Place up to which line ends were counted, and their number.
    counted: usize,
    line_ends: u64,
}

impl Cursor {
    /// Place at the begin of a block.
    pub(super) fn begin(block: &Block<'_>) -> Self {
        let at = block.own.start;
        Self { walk: Walk { at, matched: None }, counted: at, ..Self::default() }
    }

    fn count_to(&mut self, bytes: &[u8], at: usize) -> u64 {
        if at > self.counted {
            self.line_ends += memchr::memchr_iter(b'\n', &bytes[self.counted..at]).count() as u64;
            self.counted = at;
        }
        self.line_ends
    }
}

impl LineFinder<'_> {
    /// Finds the selected lines from a place on, as many as one partial result may have.
    pub(super) fn find(&self, block: &Block<'_>, mut cursor: Cursor) -> Result<FoundLines, ModuleError> {
        let bytes = &block.bytes[..block.own.end];
        let mut found = FoundLines::default();
        // Behind the last line end there is no line.
        let end = if bytes.last().is_none_or(|byte| *byte == b'\n') { bytes.len() } else { bytes.len() + 1 };
        loop {
            if found.is_full() && self.detail == Detail::Matches {
                found.rest = Some(cursor);
                return Ok(found);
            }
            if self.most.is_some_and(|most| found.lines.len() as u64 > most) {
                return Ok(found);
            }
            let from = cursor.walk.at;
            let next = cursor.walk.next(|from| self.pattern.find_in_lines(bytes, from))?;
            let next = next.filter(|(at, _)| *at < end);
            if self.invert {
                let upto = next.map_or(end, |(at, _)| line_start(bytes, at, block.own.start));
                if self.unmatched(bytes, from..upto, &mut cursor, &mut found) {
                    found.rest = Some(cursor);
                    return Ok(found);
                }
                let Some((_, behind)) = next else { return Ok(found) };
                cursor.skip(line_end(bytes, behind) + 1);
                continue;
            }
            let Some((at, behind)) = next else { return Ok(found) };
            if self.matched(bytes, (at, behind), block.own.start, &mut cursor, &mut found) {
                found.rest = Some(cursor);
                return Ok(found);
            }
        }
    }

    /// Adds a match to its line. True: there is no room for its line.
    fn matched(
        &self,
        bytes: &[u8],
        (at, behind): (usize, usize),
        own: usize,
        cursor: &mut Cursor,
        found: &mut FoundLines,
    ) -> bool {
        if self.detail == Detail::Count {
            found.count += 1;
            cursor.skip(line_end(bytes, behind) + 1);
            return false;
        }
        let present = cursor.line.clone().filter(|line| at <= line.end);
        let line = present.clone().unwrap_or_else(|| line_start(bytes, at, own)..line_end(bytes, behind));
        if present.is_none() && found.is_full() && self.detail == Detail::Lines {
            cursor.skip(line.start);
            return true;
        }
        if present.is_none() || found.lines.is_empty() {
            let line_ends = if self.numbers { cursor.count_to(bytes, line.start) } else { 0 };
            let first = found.matches.len() as u32;
            let bytes = line.start as u32..line.end as u32;
            found.lines.push(Found { line: bytes, line_ends, matches: first..first });
        }
        found.matches.push((at as u32, behind as u32));
        if let Some(last) = found.lines.last_mut() {
            last.matches.end += 1;
            if self.detail == Detail::Lines && last.matches.len() == MOST_MATCHES {
                cursor.skip(line.end + 1);
                return false;
            }
        }
        cursor.line = Some(line);
        false
    }

    /// Adds the lines of a range, none of which has a match. True: there is no room for all of them.
    fn unmatched(
        &self,
        bytes: &[u8],
        lines: Range<usize>,
        cursor: &mut Cursor,
        found: &mut FoundLines,
    ) -> bool {
        if self.detail == Detail::Count {
            if lines.start < lines.end {
                let inside = &bytes[lines.start..lines.end.min(bytes.len())];
                found.count += memchr::memchr_iter(b'\n', inside).count() as u64;
                found.count += u64::from(lines.end > bytes.len());
            }
            return false;
        }
        let mut start = lines.start;
        while start < lines.end {
            if found.lines.len() >= MOST_FOUND {
                cursor.skip(start);
                return true;
            }
            let end = line_end(bytes, start);
            let line_ends = if self.numbers { cursor.count_to(bytes, start) } else { 0 };
            found.lines.push(Found { line: start as u32..end as u32, line_ends, matches: 0..0 });
            start = end + 1;
        }
        false
    }
}

impl Cursor {
    /// Goes on at the begin of a line.
    fn skip(&mut self, to: usize) {
        self.walk = Walk { at: to, matched: None };
        self.line = None;
    }
}

/// Begin of the line that has a place.
pub(super) fn line_start(bytes: &[u8], at: usize, least: usize) -> usize {
    memchr::memrchr(b'\n', &bytes[least..at]).map_or(least, |found| least + found + 1)
}

/// End of the line that has a place, in front of its line end.
pub(super) fn line_end(bytes: &[u8], at: usize) -> usize {
    memchr::memchr(b'\n', &bytes[at..]).map_or(bytes.len(), |found| at + found)
}
