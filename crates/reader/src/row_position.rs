//! Position of a row in a read: slot, chunk, row and payload.

use super::item::PlannedSlot;
use holdfast_base::StreamId;

/// The position of a row.
pub(crate) struct RowPosition<'a> {
    /// Place of its slot in the plan.
    pub(crate) at: usize,
    pub(crate) planned: &'a PlannedSlot,
    /// Place of its chunk in the directory.
    pub(crate) number: usize,
    /// Its number in the slot.
    pub(crate) row_number: u32,
    pub(crate) stream: StreamId,
    /// First byte of its payload.
    pub(crate) start: usize,
    /// End of its payload.
    pub(crate) end: usize,
}
