//! Slot table records: 16 bytes a slot, and one entry a distilled copy.

use crate::FormatError;
use crate::bytes::{FieldReader, SliceWriter};
use holdfast_base::{Age, Sequence, SlotNo};

/// What a slot is good for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum SlotState {
    /// Nothing on it counts.
    #[default]
    Free = 0,
    /// It holds data.
    Data = 1,
    /// It failed twice and is not used.
    Bad = 2,
}

/// A slot in the slot table.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TableEntry {
    /// What was written there last; 0: nothing ever.
    pub sequence: Sequence,
    /// When it expires.
    pub age: Age,
    /// What it is good for.
    pub state: SlotState,
    /// A check did not hold.
    pub damaged: bool,
    /// A purge freed it.
    pub purged: bool,
}

impl TableEntry {
    pub(super) const BYTES: usize = 16;

    pub(super) fn put(&self, put: &mut SliceWriter<'_>) {
        let younger = self.sequence.0.saturating_sub(self.age.0).min((1 << 48) - 1);
        let flags = u64::from(self.damaged) | u64::from(self.purged) << 1;
        put.u64(self.sequence.0).u64(younger | (self.state as u64) << 48 | flags << 56);
    }

    pub(super) fn read(get: &mut FieldReader<'_>) -> Result<Self, FormatError> {
        let (sequence, rest) = (get.u64()?, get.u64()?);
        let state = match rest >> 48 & 0xff {
            0 => SlotState::Free,
            1 => SlotState::Data,
            2 => SlotState::Bad,
            _ => return Err(get.malformed("a slot state that does not exist")),
        };
        let age = sequence.checked_sub(rest & ((1 << 48) - 1));
        let age = Age(age.ok_or_else(|| get.malformed("an age below zero"))?);
        let (damaged, purged) = (rest >> 56 & 1 != 0, rest >> 57 & 1 != 0);
        Ok(Self { sequence: Sequence(sequence), age, state, damaged, purged })
    }
}

/// A copy that distilling made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CopyRecord {
    /// Where it is.
    pub slot: SlotNo,
    /// What it is.
    pub sequence: Sequence,
    /// When it expires: with its youngest original.
    pub age: Age,
}

impl CopyRecord {
    pub(super) const BYTES: usize = 24;

    pub(super) fn put(&self, put: &mut SliceWriter<'_>) {
        put.u32(self.slot.0).u32(0).u64(self.sequence.0).u64(self.age.0);
    }

    pub(super) fn read(get: &mut FieldReader<'_>) -> Result<Self, FormatError> {
        let slot = SlotNo(get.u32()?);
        get.take(4)?;
        Ok(Self { slot, sequence: Sequence(get.u64()?), age: Age(get.u64()?) })
    }
}
