//! Slots of a ring.

use super::time_if;
use crate::words;
use holdfast_base::Timestamp;
use holdfast_ring::SlotStatus;
use serde::Serialize;

/// Slot of a ring.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct Slot {
    pub slot: u32,
    pub state: &'static str,
    pub sequence: Option<u64>,
    pub age: Option<u64>,
    #[serde(serialize_with = "time_if")]
    pub first: Option<Timestamp>,
    #[serde(serialize_with = "time_if")]
    pub last: Option<Timestamp>,
}

impl From<&SlotStatus> for Slot {
    fn from(slot: &SlotStatus) -> Self {
        let written = slot.sequence.0 > 0;
        Self {
            slot: slot.slot.0,
            state: words::look(slot.look),
            sequence: written.then_some(slot.sequence.0),
            age: written.then_some(slot.age.0),
            first: slot.first,
            last: slot.last,
        }
    }
}
