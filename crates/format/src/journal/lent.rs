//! Records encoded from borrowed contents, without copy or allocation. Byte for byte what the same [`Record`]
//! would be.

use super::{ActRecord, CommitWriter, CopyRecord, HoldRecord, PurgeRecord, Record, StreamRecord, TableEntry};
use crate::bytes::SliceWriter;
use holdfast_base::{Sequence, SlotNo};

impl CommitWriter<'_> {
    /// Adds a stretch of the slot table: the slots from `first` on. `false`: it does not fit, and nothing was added.
    pub fn push_table(&mut self, first: SlotNo, entries: impl ExactSizeIterator<Item = TableEntry>) -> bool {
        self.push_with(Record::TABLE, |put| table(put, first, entries))
    }

    /// Adds a stream.
    pub fn push_stream(&mut self, stream: &StreamRecord) -> bool {
        self.push_with(Record::STREAM, |put| {
            stream.put(put);
            true
        })
    }

    /// Adds a hold.
    pub fn push_hold(&mut self, hold: &HoldRecord) -> bool {
        self.push_with(Record::HOLD, |put| hold.put(put))
    }

    /// Adds the next slots to be overwritten.
    pub fn push_runway(&mut self, naming: Sequence, slots: &[SlotNo]) -> bool {
        self.push_with(Record::RUNWAY, |put| runway(put, naming, slots))
    }

    /// Adds copies that take the place of originals.
    pub fn push_replaced(
        &mut self,
        originals: &[Sequence],
        copies: impl ExactSizeIterator<Item = CopyRecord>,
    ) -> bool {
        self.push_with(Record::REPLACED, |put| replaced(put, originals, copies))
    }

    /// Adds slots that expired on purpose.
    pub fn push_freed(&mut self, sequences: &[Sequence]) -> bool {
        self.push_with(Record::FREED, |put| freed(put, sequences))
    }

    /// Adds the audit of a purge.
    pub fn push_purged(&mut self, purge: &PurgeRecord) -> bool {
        self.push_with(Record::PURGED, |put| {
            purge.put(put);
            true
        })
    }

    /// Adds what somebody did.
    pub fn push_act(&mut self, act: &ActRecord) -> bool {
        self.push_with(Record::ACT, |put| {
            act.put(put);
            true
        })
    }
}

pub(super) fn table(
    put: &mut SliceWriter<'_>,
    first: SlotNo,
    entries: impl ExactSizeIterator<Item = TableEntry>,
) -> bool {
    put.u32(first.0).u32(entries.len() as u32);
    for entry in entries {
        entry.put(put);
    }
    true
}

pub(super) fn runway(put: &mut SliceWriter<'_>, naming: Sequence, slots: &[SlotNo]) -> bool {
    put.u64(naming.0).u32(slots.len() as u32).u32(0);
    for slot in slots {
        put.u32(slot.0);
    }
    true
}

pub(super) fn replaced(
    put: &mut SliceWriter<'_>,
    originals: &[Sequence],
    copies: impl ExactSizeIterator<Item = CopyRecord>,
) -> bool {
    put.u32(originals.len() as u32).u32(copies.len() as u32);
    for sequence in originals {
        put.u64(sequence.0);
    }
    for copy in copies {
        copy.put(put);
    }
    true
}

pub(super) fn freed(put: &mut SliceWriter<'_>, sequences: &[Sequence]) -> bool {
    put.u32(sequences.len() as u32).u32(0);
    for sequence in sequences {
        put.u64(sequence.0);
    }
    true
}
