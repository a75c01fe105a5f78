//! A part of a slot that passes by: pieces come in at one end in order, are looked at, and leave at the other.

use super::pump::Pump;
use holdfast_base::append;
use holdfast_media::Buffer;
use std::collections::VecDeque;
use std::ops::Range;

/// Who owns the bytes of a piece.
#[derive(Debug)]
pub(crate) enum Held {
    /// A buffer, given back when it has been used.
    Buffer(Buffer),
    /// A copy.
    Copy(Vec<u8>),
}

impl Held {
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Self::Buffer(buffer) => buffer,
            Self::Copy(bytes) => bytes,
        }
    }

    /// Gives a buffer back.
    pub(crate) fn release(self, pump: &mut Pump) {
        if let Self::Buffer(buffer) = self {
            pump.give(buffer);
        }
    }
}

/// Some bytes and where they belong.
#[derive(Debug)]
struct Piece {
    start: usize,
    end: usize,
    /// Where in the held bytes the piece begins.
    skip: usize,
    held: Held,
}

/// Pieces in the order in which they are used.
#[derive(Debug, Default)]
pub(crate) struct Window {
    pieces: VecDeque<Piece>,
    scratch: Vec<u8>,
    /// What the scratch holds.
    gathered: Range<usize>,
}

impl Window {
    /// Takes the next piece: `len` bytes that belong at `start`, behind the first `skip` of what is held.
    pub(crate) fn push(&mut self, start: usize, len: usize, skip: usize, held: Held) {
        let len = len.min(held.bytes().len().saturating_sub(skip));
        self.pieces.push_back(Piece { start, end: start + len, skip, held });
    }

    /// The bytes of the piece that came last.
    pub(crate) fn newest(&self) -> &[u8] {
        self.pieces.back().map_or(&[], |piece| &piece.held.bytes()[piece.skip..][..piece.end - piece.start])
    }

    /// Adds to the last piece, which is a copy.
    pub(crate) fn extend(&mut self, bytes: &[u8]) {
        if let Some(Piece { end, held: Held::Copy(copy), .. }) = self.pieces.back_mut() {
            copy.extend_from_slice(bytes);
            *end += bytes.len();
        }
    }

    /// How many buffers are kept.
    pub(crate) fn buffers(&self) -> usize {
        self.pieces.iter().filter(|piece| matches!(piece.held, Held::Buffer(_))).count()
    }

    /// How many pieces are kept.
    pub(crate) fn pieces(&self) -> usize {
        self.pieces.len()
    }

    /// Lets everything go.
    pub(crate) fn clear(&mut self, pump: &mut Pump) {
        while let Some(piece) = self.pieces.pop_front() {
            piece.held.release(pump);
        }
        self.gathered = 0..0;
    }

    /// Lets go what ends before `at`: nothing before it is asked for again.
    pub(crate) fn pass(&mut self, at: usize, pump: &mut Pump) {
        while self.pieces.front().is_some_and(|piece| piece.end <= at) {
            if let Some(piece) = self.pieces.pop_front() {
                piece.held.release(pump);
            }
        }
    }

    /// Lets go the pieces in front that do not have `at`: what is asked for comes in the order of the pieces, wherever
    /// in the slot they belong.
    pub(crate) fn seek(&mut self, at: usize, pump: &mut Pump) {
        while self.pieces.front().is_some_and(|piece| at < piece.start || piece.end <= at) {
            if let Some(piece) = self.pieces.pop_front() {
                piece.held.release(pump);
            }
        }
    }

    /// Whether the first piece has all of the range, so that it can be looked at where it lies.
    #[inline]
    pub(crate) fn has(&self, start: usize, end: usize) -> bool {
        self.pieces.front().is_some_and(|piece| piece.start <= start && end <= piece.end)
    }

    /// The range, where [`Window::has`] or [`Window::gather`] has said that it is there; empty otherwise.
    #[inline]
    pub(crate) fn view(&self, start: usize, end: usize) -> &[u8] {
        if let Some(piece) = self.pieces.front()
            && piece.start <= start
            && end <= piece.end
        {
            let at = piece.skip + (start - piece.start);
            return piece.held.bytes().get(at..at + (end - start)).unwrap_or_default();
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
    pub(crate) fn gather(&mut self, end: usize, pump: &mut Pump) -> bool {
        let mut scratch = std::mem::take(&mut self.scratch);
        let at = self.take_into(self.gathered.end, end, &mut scratch, pump);
        self.scratch = scratch;
        self.gathered.end = at;
        at >= end
    }

    /// Appends to `into` what the pieces have from `at` up to `end` without a hole; says how far that came.
    pub(crate) fn take_into(
        &mut self,
        mut at: usize,
        end: usize,
        into: &mut Vec<u8>,
        pump: &mut Pump,
    ) -> usize {
        while at < end {
            self.pass(at, pump);
            let Some(piece) = self.pieces.front().filter(|piece| piece.start <= at) else { break };
            let stop = piece.end.min(end);
            let from = piece.skip + (at - piece.start);
            append(into, piece.held.bytes().get(from..from + (stop - at)).unwrap_or_default());
            at = stop;
        }
        at
    }
}
