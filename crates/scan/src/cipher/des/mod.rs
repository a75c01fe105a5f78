//! Triple DES: bit-sliced for many blocks at once, with tables for single blocks.
//!
//! Here belong the cipher of blocks and its modes of operation. Not here: headers and the division of files.
//!
//! A block is the `u64` of its eight bytes in little-endian order. A tile of blocks is thus a plain copy of the file's
//! bytes.

pub(super) mod lanes;
pub(super) mod modes;
pub(super) mod padding;
mod sboxes;
mod schedule;
mod slices;
mod tables;
mod triple;
mod words;

pub(super) use schedule::Direction;
pub(super) use triple::TripleDes;
