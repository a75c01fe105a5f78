//! Line cuts: division of a large file, read by ranges, at the ends of its lines. No I/O of its own, and no buffers.

use crate::module::Piece;
use std::io;
use std::ops::Range;

/// Bytes in front of a piece of a long line that it shows, for word boundaries.
pub(crate) const BEFORE: usize = 8;

/// Bytes of one look for a line end.
const WINDOW: u64 = 64 << 10;

/// Range of a file that one block answers for, and the range that it shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    pub(crate) own: Range<u64>,
    pub(crate) shown: Range<u64>,
    pub(crate) piece: Option<Piece>,
}

/// Place in a file up to which blocks are cut.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LineCutter {
    next: u64,
    /// True inside of a line that is divided into pieces.
    in_line: bool,
}

/// Bytes of a piece's own, of those that it shows: the rest overlaps with the next piece.
pub(crate) fn own_of_piece(longest: usize) -> usize {
    longest - longest / 4
}

impl LineCutter {
    /// Cuts the next block: at the last line end within `block` bytes, else behind the line that begins it.
    pub(crate) fn cut(
        &mut self,
        size: u64,
        block: u64,
        longest: usize,
        read: &dyn Fn(u64, &mut [u8]) -> io::Result<usize>,
    ) -> io::Result<Cut> {
        let start = self.next;
        let whole = |own: Range<u64>| Cut { shown: own.clone(), own, piece: None };
        let end = size.min(start + block);
        if !self.in_line {
            if end == size {
                self.next = end;
                return Ok(whole(start..end));
            }
            if let Some(cut) = last_line_end(start..end, read)? {
                self.next = cut;
                return Ok(whole(start..cut));
            }
        }
        let limit = size.min(start + longest as u64);
        let from = if self.in_line { start } else { end };
        let found = first_line_end(from..limit, read)?.or((limit == size).then_some(size));
        let (begins, ends) = (!self.in_line, found.is_some());
        if let (Some(end), false) = (found, self.in_line) {
            self.next = end;
            return Ok(whole(start..end));
        }
        let end = found.unwrap_or(start + own_of_piece(longest) as u64);
        self.next = end;
        self.in_line = !ends;
        let shown = if begins { start } else { start.saturating_sub(BEFORE as u64) };
        let piece = Some(Piece { begins, ends, overlap: longest / 4 });
        Ok(Cut { own: start..end, shown: shown..found.unwrap_or(limit), piece })
    }

    /// True if nothing is left to cut of a file that has been begun.
    pub(crate) fn is_done(&self, size: u64) -> bool {
        self.next >= size
    }

    /// Leaves the rest of the file out.
    pub(crate) fn give_up(&mut self, size: u64) -> Range<u64> {
        let start = self.next;
        self.next = size;
        start..start
    }
}

type Read<'a> = &'a dyn Fn(u64, &mut [u8]) -> io::Result<usize>;

fn exactly<'w>(at: u64, window: &'w mut [u8], read: Read<'_>) -> io::Result<&'w [u8]> {
    let count = read(at, window)?;
    if count < window.len() {
        return Err(io::Error::other("it became shorter while it was read"));
    }
    Ok(window)
}

/// Place behind the last line end of a range.
fn last_line_end(range: Range<u64>, read: Read<'_>) -> io::Result<Option<u64>> {
    let mut window = vec![0; WINDOW.min(range.end - range.start) as usize];
    let mut end = range.end;
    while end > range.start {
        let from = end.saturating_sub(WINDOW).max(range.start);
        let bytes = exactly(from, &mut window[..(end - from) as usize], read)?;
        if let Some(at) = memchr::memrchr(b'\n', bytes) {
            return Ok(Some(from + at as u64 + 1));
        }
        end = from;
    }
    Ok(None)
}

/// Place behind the first line end of a range.
fn first_line_end(range: Range<u64>, read: Read<'_>) -> io::Result<Option<u64>> {
    let mut window = vec![0; WINDOW.min(range.end - range.start) as usize];
    let mut from = range.start;
    while from < range.end {
        let end = range.end.min(from + WINDOW);
        let bytes = exactly(from, &mut window[..(end - from) as usize], read)?;
        if let Some(at) = memchr::memchr(b'\n', bytes) {
            return Ok(Some(from + at as u64 + 1));
        }
        from = end;
    }
    Ok(None)
}
