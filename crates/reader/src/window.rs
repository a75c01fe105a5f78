//! Window of a slot's bytes: pieces enter at one end in order, are verified and used, and leave at the other.

use super::read_queue::ReadQueue;
use holdfast_base::append;
use holdfast_media::Buffer;
use std::collections::VecDeque;
use std::ops::Range;

/// Who owns the bytes of a piece.
#[derive(Debug)]
pub(crate) enum PieceBytes {
    /// A buffer, given back when it has been used.
    Buffer(Buffer),
    /// A copy.
    Copy(Vec<u8>),
}

impl PieceBytes {
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Self::Buffer(buffer) => buffer,
            Self::Copy(bytes) => bytes,
        }
    }

    /// Gives a buffer back.
    pub(crate) fn release(self, queue: &mut ReadQueue) {
        if let Self::Buffer(buffer) = self {
            queue.give(buffer);
        }
    }
}

/// Some bytes and where they belong.
#[derive(Debug)]
struct WindowPiece {
    start: usize,
    end: usize,
    /// Up to where it may be looked at.
    checked: usize,
    /// Where in the held bytes the piece begins.
    skip: usize,
    held: PieceBytes,
}

impl WindowPiece {
    fn bytes(&self, start: usize, end: usize) -> &[u8] {
        let at = self.skip + (start - self.start);
        self.held.bytes().get(at..at + (end - start)).unwrap_or_default()
    }
}

/// Pieces in the order in which they are used.
#[derive(Debug, Default)]
pub(crate) struct Window {
    pieces: VecDeque<WindowPiece>,
    scratch: Vec<u8>,
    /// What the scratch holds.
    gathered: Range<usize>,
}

impl Window {
    /// Takes the next piece: `len` bytes that belong at `start`, behind the first `skip` of what is held. [`Window::check`]
    /// comes before they are looked at.
    pub(crate) fn push(&mut self, start: usize, len: usize, skip: usize, held: PieceBytes) {
        let len = len.min(held.bytes().len().saturating_sub(skip));
        self.pieces.push_back(WindowPiece { start, end: start + len, checked: start, skip, held });
    }

    /// Begins a piece of bytes that have checksums of their own: copies, which [`Window::extend`] adds.
    pub(crate) fn push_copies(&mut self, start: usize) {
        self.push(start, 0, 0, PieceBytes::Copy(Vec::new()));
    }

    /// Adds to the piece that [`Window::push_copies`] began.
    pub(crate) fn extend(&mut self, bytes: &[u8]) {
        if let Some(WindowPiece { end, checked, held: PieceBytes::Copy(copy), .. }) = self.pieces.back_mut() {
            copy.extend_from_slice(bytes);
            *end += bytes.len();
            *checked = *end;
        }
    }

    /// Shows `check`, in whole blocks, what is there up to `end` and was not shown yet. Only then can it be looked at. It is
    /// best done just before, while what the check has fetched from memory is still in the cache.
    pub(crate) fn check(&mut self, end: usize, block: usize, mut check: impl FnMut(usize, &[u8])) {
        for piece in &mut self.pieces {
            let to = end.next_multiple_of(block).min(piece.end);
            if to > piece.checked {
                check(piece.checked, piece.bytes(piece.checked, to));
                piece.checked = to;
            }
        }
    }

    /// How many buffers are kept.
    pub(crate) fn buffers(&self) -> usize {
        self.pieces.iter().filter(|piece| matches!(piece.held, PieceBytes::Buffer(_))).count()
    }

    /// How many pieces are kept.
    pub(crate) fn pieces(&self) -> usize {
        self.pieces.len()
    }

    /// Lets everything go.
    pub(crate) fn clear(&mut self, queue: &mut ReadQueue) {
        while let Some(piece) = self.pieces.pop_front() {
            piece.held.release(queue);
        }
        self.gathered = 0..0;
    }

    /// Lets go what ends before `at`: nothing before it is asked for again.
    pub(crate) fn pass(&mut self, at: usize, queue: &mut ReadQueue) {
        while self.pieces.front().is_some_and(|piece| piece.end <= at) {
            if let Some(piece) = self.pieces.pop_front() {
                piece.held.release(queue);
            }
        }
    }

    /// Lets go the pieces in front that do not have `at`: what is asked for comes in the order of the pieces, wherever
    /// in the slot they belong.
    pub(crate) fn seek(&mut self, at: usize, queue: &mut ReadQueue) {
        while self.pieces.front().is_some_and(|piece| at < piece.start || piece.end <= at) {
            if let Some(piece) = self.pieces.pop_front() {
                piece.held.release(queue);
            }
        }
    }

    /// Whether the first piece has all of the range, checked, so that it can be looked at where it lies.
    #[inline]
    pub(crate) fn has(&self, start: usize, end: usize) -> bool {
        self.pieces.front().is_some_and(|piece| piece.start <= start && end <= piece.checked)
    }

    /// The range, where [`Window::has`] or [`Window::gather`] has said that it is there; empty otherwise.
    #[inline]
    pub(crate) fn view(&self, start: usize, end: usize) -> &[u8] {
        if let Some(piece) = self.pieces.front()
            && piece.start <= start
            && end <= piece.checked
        {
            return piece.bytes(start, end);
        }
        if self.gathered.start <= start && end <= self.gathered.end {
            let at = start - self.gathered.start;
            return self.scratch.get(at..at + (end - start)).unwrap_or_default();
        }
        &[]
    }

    /// Begins to gather a range that no single piece has.
    pub(crate) fn begin(&mut self, start: usize) {
        // A scratch that one huge element left is not kept for small ones.
        if self.scratch.capacity() > 64 << 20 {
            self.scratch = Vec::new();
        }
        self.scratch.clear();
        self.gathered = start..start;
    }

    /// Copies on what the first piece has of the range up to `end`, and lets it go when it is used up. Says whether the
    /// range is complete; if not, another piece is wanted.
    pub(crate) fn gather(&mut self, end: usize, queue: &mut ReadQueue) -> bool {
        let mut scratch = std::mem::take(&mut self.scratch);
        let at = self.take_into(self.gathered.end, end, &mut scratch, queue);
        self.scratch = scratch;
        self.gathered.end = at;
        at >= end
    }

    /// Appends to `into` what the pieces have, checked, from `at` up to `end` without a hole; says how far that came.
    pub(crate) fn take_into(
        &mut self,
        mut at: usize,
        end: usize,
        into: &mut Vec<u8>,
        queue: &mut ReadQueue,
    ) -> usize {
        while at < end {
            self.pass(at, queue);
            let here = |piece: &&WindowPiece| piece.start <= at && at < piece.checked;
            let Some(piece) = self.pieces.front().filter(here) else { break };
            let stop = piece.checked.min(end);
            append(into, piece.bytes(at, stop));
            at = stop;
        }
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Promise 5: what did not pass its check is never shown, and each byte goes to the check once.
    #[test]
    fn nothing_is_shown_before_its_block_was_checked() {
        let mut window = Window::default();
        window.push(8, 10, 1, PieceBytes::Copy((7..30).collect()));
        let shown = |window: &Window, start, end| (window.has(start, end), window.view(start, end).to_vec());
        assert_eq!(shown(&window, 8, 9), (false, vec![]));
        let mut checked = Vec::new();
        for end in [9, 12, 13, 99] {
            window.check(end, 4, |start, bytes| checked.push((start, bytes.to_vec())));
            assert_eq!(shown(&window, 9, end.min(18)), (true, (9..end.min(18) as u8).collect()));
            assert!(!window.has(8, end.next_multiple_of(4) + 1));
        }
        assert_eq!(checked, [(8, vec![8, 9, 10, 11]), (12, vec![12, 13, 14, 15]), (16, vec![16, 17])]);
    }
}
