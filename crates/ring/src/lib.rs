//! The heart: which slot is overwritten next, what is held, what the journal says, what a restart concludes.
//!
//! [`Ring`] is a pure state machine: events in, actions out, no I/O and no clock. [`Driver`] carries its actions out on
//! a disk. What arrives and how it is packed is not known here: the `ingest` crate's.
#![forbid(unsafe_code)]

mod order;
mod status;

pub use order::{HoldRequest, Order, OrderId, Outcome, PurgeRequest, Range, Refusal};
pub use status::{HoldStatus, RingStatus, SlotCounts, SlotLook, SlotStatus, StreamStatus};
