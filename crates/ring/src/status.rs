//! Status of a ring: plain data for `status`, `slots`, `streams` and metrics.

use holdfast_base::{Age, ByteSize, Epoch, HoldId, OrderId, RingId, Sequence, SlotNo, StreamId, Timestamp};
use holdfast_format::{ConditionHold, Counters, StreamKind};

/// The state of a slot, as it is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotLook {
    /// Never written, or given back.
    Free,
    /// Named to be overwritten next.
    Runway,
    /// Being written.
    Writing,
    /// Data that will expire.
    Live,
    /// Data that a hold keeps.
    Held,
    /// Kept as it is while something in the background works on it, or from expiring while a query needs it.
    Pinned,
    /// Data that did not pass its check.
    Damaged,
    /// Unusable.
    Bad,
}

/// One slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotStatus {
    /// Its place.
    pub slot: SlotNo,
    /// Its state.
    pub look: SlotLook,
    /// Sequence of what is in it (0: nothing).
    pub sequence: Sequence,
    /// When it expires, relative to others.
    pub age: Age,
    /// Earliest arrival in it, where known.
    pub first: Option<Timestamp>,
    /// Latest arrival in it, where known.
    pub last: Option<Timestamp>,
}

impl SlotStatus {
    /// Whether there is data in it that can be read, sound or not.
    pub fn has_data(&self) -> bool {
        let data =
            matches!(self.look, SlotLook::Live | SlotLook::Held | SlotLook::Pinned | SlotLook::Damaged);
        // A slot without data can be pinned, too.
        data && self.sequence > Sequence(0)
    }
}

/// Slots by state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlotCounts {
    /// All.
    pub total: u32,
    /// Never written or given back.
    pub free: u32,
    /// Data that will expire.
    pub live: u32,
    /// Data that a hold keeps.
    pub held: u32,
    /// Kept as they are while something in the background works on them, or from expiring while queries need them.
    pub pinned: u32,
    /// Named to be overwritten next.
    pub runway: u32,
    /// Being written.
    pub writing: u32,
    /// Data that did not pass its check (counted in live, held or pinned as well).
    pub damaged: u32,
    /// Unusable.
    pub bad: u32,
    /// More slots that may be held.
    pub holdable: u32,
    /// Set aside for what holds by condition are still to find (counted in the others as well: until then they are used as
    /// any slot is).
    pub promised: u32,
    /// Never written, not even when the ring was made (counted in free, runway or being written as well): what a file has
    /// no place on its device for yet.
    pub unwritten: u32,
}

/// One stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamStatus {
    /// Its number.
    pub id: StreamId,
    /// Its name.
    pub name: String,
    /// What its elements are.
    pub kind: StreamKind,
    /// How its elements were cut, as given on the command line.
    pub framing: String,
    /// When it was first seen.
    pub created: Timestamp,
    /// Cumulative over the ring's life.
    pub counters: Counters,
    /// Version of its preamble, 0 for none.
    pub preamble: u32,
    /// Bytes of its preamble.
    pub preamble_bytes: u32,
    /// Version of its schema: how many attributes it has, 0 for none.
    pub schema: u32,
}

/// The ring as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RingStatus {
    /// UUID.
    pub ring: RingId,
    /// Name.
    pub name: String,
    /// The lane's path.
    pub lane: String,
    /// Bytes of the lane.
    pub lane_bytes: ByteSize,
    /// Slot size.
    pub slot_bytes: ByteSize,
    /// Run of the recorder.
    pub epoch: Epoch,
    /// Sequence of the open slot, or of the next one.
    pub sequence: Sequence,
    /// Slots by state.
    pub slots: SlotCounts,
    /// Arrival of the oldest data that has not expired.
    pub oldest: Option<Timestamp>,
    /// Arrival of the newest data on the medium.
    pub newest: Option<Timestamp>,
    /// Holds that stand.
    pub holds: u32,
    /// Whether the table's times are all known (after a restart they are read behind capture).
    pub scanned: bool,
    /// Bound on the age of what a crash can cost.
    pub durable_after: std::time::Duration,
}

/// One hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HoldStatus {
    /// Its number.
    pub id: HoldId,
    /// When it was given.
    pub created: Timestamp,
    /// When it ends by itself; `Timestamp::MAX` for never.
    pub until: Timestamp,
    /// Why.
    pub reason: String,
    /// Who.
    pub owner: String,
    /// Its streams; none means all.
    pub streams: Vec<StreamId>,
    /// What was asked for.
    pub range: crate::Range,
    /// Slots it keeps.
    pub slots: u32,
    /// First and last sequences.
    pub sequences: Vec<(Sequence, Sequence)>,
    /// What it looks for, if it is one by condition.
    pub condition_hold: Option<ConditionHold>,
    /// UUID of the order that gave it, if it had one.
    pub order: Option<OrderId>,
}

/// What was done with data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActKind {
    /// Something that this version does not know.
    Unknown,
    /// A hold was given.
    Hold,
    /// A hold was released.
    Release,
    /// A hold ended by itself.
    End,
    /// Data was exported.
    Export,
    /// Data was destroyed.
    Purge,
}

/// An entry of the audit log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActStatus {
    /// Purges are numbered from 1 on, and so are all other acts.
    pub number: u64,
    /// What.
    pub kind: ActKind,
    /// When.
    pub at: Timestamp,
    /// Which hold, if it was about one.
    pub hold: Option<HoldId>,
    /// Of which stream; `None`: all, or several.
    pub stream: Option<StreamId>,
    /// What of it.
    pub range: crate::Range,
    /// Slots that were held, where that is known.
    pub slots: u32,
    /// Elements that were destroyed.
    pub elements: u64,
    /// Bytes that were destroyed.
    pub bytes: u64,
    /// Why.
    pub reason: String,
    /// Who.
    pub owner: String,
}

/// Numbers in the audit log: of purges, and of all other acts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ActNumbers {
    /// Of a purge.
    pub purges: u64,
    /// Of another act.
    pub others: u64,
}
