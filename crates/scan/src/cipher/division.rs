//! Division of a file into ranges that threads transform independently.

use super::Result;
use super::error::CipherError;

/// Rule by which the bytes after the header may be divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Division {
    /// Ranges that begin at multiples of `chunk` are independent; only the last one may end elsewhere.
    Independent {
        /// Unit of offsets and lengths in bytes of input.
        chunk: usize,
        /// Number of input bytes directly before a range that its transformation also needs.
        before: usize,
    },
    /// Every block depends on all blocks before it: one thread transforms the file in order.
    Serial,
}

/// Range of the input of one transformation.
#[derive(Clone, Copy, Debug)]
pub struct Piece<'a> {
    /// Offset of `bytes` in the input, without the header.
    pub offset: u64,
    /// Input directly before `bytes`, of the length that [`Division::Independent`] names; empty at offset 0.
    pub before: &'a [u8],
    /// Input bytes of the range.
    pub bytes: &'a [u8],
    /// True for the range that ends the input.
    pub last: bool,
}

impl<'a> Piece<'a> {
    /// Range that needs no input before it.
    pub fn new(offset: u64, bytes: &'a [u8], last: bool) -> Self {
        Self { offset, before: &[], bytes, last }
    }

    /// The same range with the input directly before it.
    #[must_use]
    pub fn after(self, before: &'a [u8]) -> Self {
        Self { before, ..self }
    }

    /// Error about this range, with reason and remedy.
    pub(super) fn error(&self, reason: &'static str) -> CipherError {
        CipherError::Range { offset: self.offset, len: self.bytes.len() as u64, reason }
    }

    /// Refuses a range off the boundaries of `unit` bytes.
    pub(super) fn check(&self, unit: usize) -> Result<()> {
        if !self.offset.is_multiple_of(unit as u64) {
            return Err(self.error("the offset is no multiple of the chunk; align it to the division"));
        }
        if !self.last && !self.bytes.len().is_multiple_of(unit) {
            return Err(
                self.error("only the last range may end inside of a chunk; extend it to the division")
            );
        }
        Ok(())
    }
}
