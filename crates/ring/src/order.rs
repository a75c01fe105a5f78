//! Orders to a ring and their outcomes. Plain data; the `protocol` crate has their wire form.

use holdfast_base::{ByteSize, HoldId, OrderId, Ordinal, Sequence, StreamId, Timestamp};
use holdfast_format::ConditionHold;

/// Tag of an order in a driver's queue, returned with its outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OrderTag(pub u64);

/// Which elements: all conditions must hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Range {
    /// Not before this time.
    pub from: Timestamp,
    /// Not after this time.
    pub to: Timestamp,
    /// Whether `from` and `to` mean event time (arrival time otherwise).
    pub by_event: bool,
    /// Ordinals from the first, without the second.
    pub ordinals: Option<(Ordinal, Ordinal)>,
}

impl Range {
    /// Everything.
    pub const ALL: Self = Self { from: Timestamp::MIN, to: Timestamp::MAX, by_event: false, ordinals: None };

    /// Whether the range restricts time at all.
    pub fn is_timed(&self) -> bool {
        self.from != Timestamp::MIN || self.to != Timestamp::MAX
    }
}

/// An order to preserve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HoldRequest {
    /// The streams; none means all.
    pub streams: Vec<StreamId>,
    /// What of them.
    pub range: Range,
    /// Where the caller has found out which slots have it (a range of ordinals): just these, first and last.
    pub sequences: Option<Vec<(Sequence, Sequence)>>,
    /// Why.
    pub reason: String,
    /// Who.
    pub owner: String,
    /// Until when; `Timestamp::MAX` for ever.
    pub until: Timestamp,
    /// What it looks for, if it is one by condition: it begins with the sequences that were found, be it none, and grows by
    /// [`Order::Extend`].
    pub condition_hold: Option<ConditionHold>,
    /// UUID of the order. While a hold with this UUID stands, the order is answered with that hold. `None`: the order is not
    /// recognised when it is repeated.
    pub order: Option<OrderId>,
}

/// What else was found for a hold by condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtendRequest {
    /// Which.
    pub hold: HoldId,
    /// The slots that have it, first and last sequences.
    pub sequences: Vec<(Sequence, Sequence)>,
    /// How far streams have been evaluated by now: the next ordinal to look at. Others stay where they were.
    pub watermarks: Vec<(StreamId, Ordinal)>,
    /// Whether it is answered when all that the hold keeps would survive a crash; otherwise it is as soon as that is kept from
    /// expiring. Where no recorder runs it always is durable.
    pub durable: bool,
}

/// An order to destroy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PurgeRequest {
    /// The streams; none means all.
    pub streams: Vec<StreamId>,
    /// What of them.
    pub range: Range,
    /// Whether held data may go too.
    pub held: bool,
    /// Why.
    pub reason: String,
    /// Who.
    pub owner: String,
}

/// An order to end a hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReleaseRequest {
    /// Which.
    pub hold: HoldId,
    /// Why; may be empty.
    pub reason: String,
    /// Who.
    pub owner: String,
    /// UUID of the order. A ring that has carried it out answers it as done. `None`: the order is not recognised when it is
    /// repeated.
    pub order: Option<OrderId>,
}

impl From<HoldId> for ReleaseRequest {
    /// A release without reason, owner and UUID.
    fn from(hold: HoldId) -> Self {
        Self { hold, reason: String::new(), owner: String::new(), order: None }
    }
}

/// Somebody is about to take data out of the ring: to be put on record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportRequest {
    /// The streams; none means all.
    pub streams: Vec<StreamId>,
    /// What of them.
    pub range: Range,
    /// Why, and where to.
    pub reason: String,
    /// Who.
    pub owner: String,
}

/// An order to keep less of what a hold keeps: what is wanted is copied together, and the slots are given back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DistilRequest {
    /// The hold for whose sake it is done.
    pub hold: HoldId,
    /// The slots that may be taken, in any order. A copy may be among them, to be filled up. Only those are that would have
    /// expired by now but for the holds that are named with them, and that no other keeps.
    pub originals: Vec<Original>,
}

/// A slot that holds keep, and what is wanted of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Original {
    /// Its sequence.
    pub sequence: Sequence,
    /// All holds that keep it: they keep the copies that have something of it.
    pub holds: Vec<HoldId>,
    /// Elements by their ordinals, from the first, without the second; one in fragments that are in several slots is copied if
    /// it is named for any of them in the same order. Gaps and notes of the streams named here are copied whatever their
    /// ordinals are. Nothing else is.
    pub keep: Vec<(StreamId, Ordinal, Ordinal)>,
}

/// An order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// Preserve.
    Hold(HoldRequest),
    /// Preserve more under the same hold.
    Extend(ExtendRequest),
    /// End a hold.
    Release(ReleaseRequest),
    /// Destroy.
    Purge(PurgeRequest),
    /// Use a lane of this many bytes from now on: it must be that long already.
    Grow(ByteSize),
    /// Keep less of what a hold keeps.
    Distil(DistilRequest),
    /// Put an export on record.
    Export(ExportRequest),
}

/// What came of an order; durable by the time it is told, but for an extension that is not to wait for that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The hold stands.
    Held {
        /// Its number.
        id: HoldId,
        /// Slots it keeps from expiring, the open one included.
        slots: u32,
        /// Their bytes on the medium.
        bytes: ByteSize,
        /// If the range began before the oldest data that is left: the arrival time of that oldest data. `None` in the answer
        /// to a repeated order.
        expired_before: Option<Timestamp>,
    },
    /// The hold keeps what was found.
    Extended {
        /// Slots that it keeps now and did not before.
        added: u32,
        /// Slots that it keeps now.
        slots: u32,
        /// Slots that it may still take.
        left: u32,
        /// Sequences that were named and have expired.
        missed: u32,
    },
    /// The hold is no more.
    Released {
        /// Slots that nothing holds any longer; 0 in the answer to a repeated order.
        slots: u32,
    },
    /// The range is destroyed.
    Purged {
        /// Elements destroyed.
        elements: u64,
        /// Bytes of data destroyed, also those of elements that were given up or are not complete.
        bytes: u64,
        /// Slots that were overwritten.
        slots: u32,
    },
    /// The ring has this many slots now.
    Grown {
        /// Slots.
        slots: u32,
    },
    /// Slots were distilled; those that were named and are not among them are as they were, and their turn may come.
    Distilled {
        /// Slots that were given back.
        originals: u32,
        /// Slots that hold what was wanted of these.
        copies: u32,
        /// Elements in them that end there.
        elements: u64,
        /// Bytes of data in them, also those of elements that end elsewhere.
        bytes: u64,
        /// Slots of those that were named that would have expired by now but for the hold.
        due: u32,
    },
    /// The export is on record.
    Noted,
    /// It was not done, and nothing has changed.
    Refused(Refusal),
}

/// Why an order was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// No data in that range.
    #[error("nothing in that range is on the ring{}", .oldest.map_or(String::new(), |_| ": what was there has expired".to_owned()))]
    Nothing {
        /// Arrival time of the oldest data, if there is any.
        oldest: Option<Timestamp>,
    },
    /// Too few slots would be left for capture.
    #[error(
        "it takes {wanted} more slots and only {free} may still be held: release a hold, grow the ring, or hold less"
    )]
    NoRoom {
        /// Slots the hold would add.
        wanted: u32,
        /// Slots that may still be held.
        free: u32,
    },
    /// A hold by condition would keep more than it may.
    #[error(
        "the hold would keep {wanted} slots, and its quota is {quota}: hold with a larger one, or less of what is there by now"
    )]
    Quota {
        /// Slots it may keep.
        quota: u32,
        /// Slots it would keep.
        wanted: u32,
    },
    /// The control records would not fit in a snapshot.
    #[error(
        "the journal has no room for another record of this size ({bytes} of {budget} bytes are in use): release a hold"
    )]
    JournalFull {
        /// In use.
        bytes: u64,
        /// At most.
        budget: u64,
    },
    /// The hold's record would not fit into a commit.
    #[error(
        "it would keep {runs} separate runs of slots, and one hold can have {most}: hold it in several parts, each a \
         shorter range of time"
    )]
    Scattered {
        /// Runs of slots that follow each other.
        runs: u64,
        /// At most.
        most: u64,
    },
    /// No such hold.
    #[error("there is no hold {0}: `holdfast holds` lists those there are")]
    NoSuchHold(HoldId),
    /// The purge touches held data.
    #[error("hold {0} keeps some of it: say --held to destroy held data too")]
    Held(HoldId),
    /// The lane is not that long, or the ring cannot have so many slots.
    #[error("{0}")]
    Geometry(String),
    /// The reason or owner is too long, or a time makes no sense.
    #[error("{0}")]
    Wrong(String),
    /// The device is not answering.
    #[error("the device does not answer: the order could not be made durable")]
    NoDevice,
    /// Another order of the kind is at work.
    #[error("another {0} is at work: try again when it is done")]
    Busy(&'static str),
}
