//! The packer: rows of batches into the open slot. Pure: no I/O, no clock, no threads.

/// Where in a batch packing goes on: a row, and how many of its bytes are packed already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    pub(crate) row: u32,
    pub(crate) byte: u32,
}

/// How far a push came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Progress {
    /// All of the batch is in the slot: give it back.
    Done,
    /// The slot is full: seal it, open another, and push the same batch from there.
    Full(Place),
}
