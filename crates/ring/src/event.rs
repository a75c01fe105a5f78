//! Events and actions of the ring's state machine: its input and output as plain data.

use crate::table::Bounds;
use crate::{Order, OrderTag, Outcome};
use holdfast_base::{Age, Sequence, SlotNo, Timestamp};
use holdfast_format::{Cursor, Geometry};
use holdfast_media::Fault;
use std::time::Duration;

/// What a run decides for itself.
#[derive(Clone, Debug)]
pub struct Config {
    /// Slot buffers.
    pub buffers: u32,
    /// Longest time between commits of what the open slot gained.
    pub flush: Duration,
    /// Slot writes that the disk may have at once.
    pub writes: usize,
}

/// A sealed slot on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SealedSlot {
    /// Its sequence.
    pub sequence: Sequence,
    /// Its age.
    pub age: Age,
    /// Bytes to write.
    pub bytes: usize,
    /// What it covers.
    pub bounds: Bounds,
}

/// What the ring must know of the open slot to decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenBrief {
    /// Its sequence.
    pub sequence: Sequence,
    /// What it covers by now.
    pub bounds: Bounds,
    /// How far it is.
    pub end: Cursor,
    /// Bytes of payload it could still take.
    pub room: u64,
}

/// What happened.
#[derive(Debug)]
pub enum Event {
    /// The open slot was sealed and waits for its place.
    Sealed(SealedSlot),
    /// The write of a slot ended.
    Wrote {
        /// Which.
        sequence: Sequence,
        /// How.
        result: Result<(), Fault>,
    },
    /// The commit in flight ended.
    Committed(Result<(), Fault>),
    /// The superblocks that [`Action::Superblock`] asked for were written.
    SuperblockWritten(Result<(), Fault>),
    /// Somebody wants something.
    Order(OrderTag, Box<Order>, Option<OpenBrief>),
    /// What the header and summary of a slot say, read behind capture: `None` if they are damaged.
    Scanned {
        /// The slot.
        slot: SlotNo,
        /// What the table said was in it.
        sequence: Sequence,
        /// What it covers.
        bounds: Option<Bounds>,
    },
    /// Every slot has been looked at.
    AllScanned,
    /// Time has passed.
    Tick(Option<OpenBrief>),
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Write the sealed slot to this place, durably.
    Write {
        /// Which.
        sequence: Sequence,
        /// The place: its number goes into the header.
        slot: SlotNo,
        /// Where that is.
        offset: u64,
    },
    /// Write the superblocks anew with this geometry.
    Superblock(Geometry),
    /// An order has been carried out, durably, or was refused.
    Reply(OrderTag, Outcome),
}

/// Whether the device answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceState {
    /// It does.
    Well,
    /// It does not.
    Absent {
        /// Since when.
        since: Timestamp,
        /// What it last said.
        fault: Fault,
    },
}
