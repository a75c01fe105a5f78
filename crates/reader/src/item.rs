//! Selections, plans and items of a read as plain data.

use holdfast_base::{Age, Ordinal, Sequence, SlotNo, StreamId, Timestamp};
use holdfast_format::{Flags, Gap};
use holdfast_protocol::wire::OpenSlotProjection;
use holdfast_ring::{Range, SlotLook, SlotStatus};

/// What to read.
///
/// An element is in a range of time when its arrival does: the arrival of its last byte, `from` and `to` included (its
/// event time, when the range is by event time; an element that has none is then in no range). A gap is in a range
/// when its span of time and its ordinals overlap it. A note is in a range of time by its arrival, and in no range of
/// ordinals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    /// The streams; none means all.
    pub streams: Vec<StreamId>,
    /// What of them.
    pub range: Range,
}

impl Selection {
    /// Everything.
    pub const ALL: Self = Self { streams: Vec::new(), range: Range::ALL };

    /// Returns true if it selects everything.
    pub fn is_all(&self) -> bool {
        *self == Self::ALL
    }

    /// What it takes of an open slot.
    pub(crate) fn of_open(&self) -> OpenSlotProjection {
        let stream = if let [one] = self.streams[..] { Some(one) } else { None };
        OpenSlotProjection { stream, ..OpenSlotProjection::ROWS }
    }

    /// Whether `stream` is among those asked for.
    pub fn wants(&self, stream: StreamId) -> bool {
        self.streams.is_empty() || self.streams.contains(&stream)
    }
}

/// One thing that was recorded, or that is missing. Everything borrowed is the reader's until the sink returns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Item<'a> {
    /// Comes before a stream's first element, and again when it changes.
    Preamble {
        /// Whose.
        stream: StreamId,
        /// Which.
        version: u32,
        /// All of it.
        bytes: &'a [u8],
    },
    /// An element, whole and checked.
    Element(Element<'a>),
    /// A loss that was recorded.
    Gap {
        /// Of which stream.
        stream: StreamId,
        /// The first lost ordinal.
        ordinal: Ordinal,
        /// What was lost.
        gap: Gap,
    },
    /// Metadata of a stream that belongs to no element.
    Note {
        /// Whose.
        stream: StreamId,
        /// When it came.
        arrival: Timestamp,
        /// Chosen by the source.
        tag: u16,
        /// Kind of metadata, as for an element.
        flags: Flags,
        /// It.
        meta: &'a [u8],
    },
    /// An element of which not all is left: its bytes are not given.
    Partial {
        /// Of which stream.
        stream: StreamId,
        /// Which.
        ordinal: Ordinal,
        /// What became of the rest.
        why: Missing,
    },
    /// A place that did not pass its check: nothing of it is given.
    Damaged {
        /// The slot's place.
        slot: SlotNo,
        /// Its sequence.
        sequence: Sequence,
        /// Where in the slot and what.
        place: &'a str,
    },
    /// Slots that expired before they could be read. Neighbours are reported together.
    Expired {
        /// First sequence.
        from: Sequence,
        /// Last sequence.
        to: Sequence,
        /// Arrival of the first byte in them, where known.
        first: Option<Timestamp>,
        /// Arrival of the last byte in them, where known.
        last: Option<Timestamp>,
    },
    /// How far it got, now and then.
    Progress {
        /// Bytes of slots dealt with since the start, up to [`Plan::bytes`].
        bytes: u64,
    },
}

/// One element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Element<'a> {
    /// Its stream.
    pub stream: StreamId,
    /// Its number in the stream.
    pub ordinal: Ordinal,
    /// Arrival of its first byte.
    pub first: Timestamp,
    /// Arrival of its last byte.
    pub arrival: Timestamp,
    /// Its event time, if it has one.
    pub event: Option<Timestamp>,
    /// Direction and kind of metadata.
    pub flags: Flags,
    /// Chosen by the source: the interface of a packet.
    pub tag: u16,
    /// Bytes it had on arrival beyond those of `data` (snap length).
    pub extra: u32,
    /// Its metadata.
    pub meta: &'a [u8],
    /// Its payload, up to 1 GiB.
    pub data: &'a [u8],
}

/// Why not all of an element is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, thiserror::Error)]
pub enum Missing {
    /// Some of its fragments have expired.
    #[error("a part of it has expired")]
    Expired,
    /// A fragment lies in a damaged place.
    #[error("a part of it is damaged")]
    Damaged,
    /// Its source broke off in the middle.
    #[error("its source broke off in the middle")]
    Aborted,
    /// The recording ends in the middle of it.
    #[error("the recording ends in the middle of it")]
    Unfinished,
    /// A fragment in the middle is not there.
    #[error("a part of it was lost")]
    Lost,
    /// More large elements are open at once than fit in memory.
    #[error("too many large elements are interleaved with it: read its stream alone")]
    Memory,
}

/// A slot that may have something of a selection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedSlot {
    /// Its sequence.
    pub sequence: Sequence,
    /// Its place; `None` while it is not on the medium.
    pub slot: Option<SlotNo>,
    /// Its age.
    pub age: Age,
    /// Earliest arrival in it, where known.
    pub first: Option<Timestamp>,
    /// Latest arrival in it, where known.
    pub last: Option<Timestamp>,
    /// Whether a hold kept it when this was planned.
    pub held: bool,
    /// Bytes to read at most.
    pub bytes: u64,
}

impl PlannedSlot {
    /// One that is on the medium.
    pub(crate) fn at(status: &SlotStatus, bytes: u64) -> Self {
        let SlotStatus { slot, sequence, age, first, last, look } = *status;
        Self { sequence, slot: Some(slot), age, first, last, held: look == SlotLook::Held, bytes }
    }

    /// Whether it is a copy of others, and not as it was recorded: it has their age.
    pub(crate) fn is_copy(&self) -> bool {
        self.sequence.0 != self.age.0
    }
}

/// Which slots a read goes through, in the order of their ages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// What was asked for.
    pub selection: Selection,
    /// The slots.
    pub slots: Vec<PlannedSlot>,
    /// How many there are with data, these included.
    pub of: usize,
    /// Bytes of them at most: the end of the progress.
    pub bytes: u64,
    /// If some of what arrived in the range has expired: the arrival of the oldest data that is left.
    pub expired_before: Option<Timestamp>,
    /// If the range begins before anything was recorded: the arrival of the first that was.
    pub begins: Option<Timestamp>,
    /// Ordinals of the range that have expired, by stream: the first of them and the one behind the last. Those before the
    /// oldest data, and those between held slots.
    pub expired_ordinals: Vec<(StreamId, Ordinal, Ordinal)>,
    /// Whether the last slot is the newest there is.
    pub to_end: bool,
}

impl Plan {
    /// Plan of a selection without slots.
    pub fn of_nothing(selection: Selection) -> Self {
        Self {
            selection,
            slots: Vec::new(),
            of: 0,
            bytes: 0,
            expired_before: None,
            begins: None,
            expired_ordinals: Vec::new(),
            to_end: true,
        }
    }
}

/// What a read gave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadReport {
    /// Whole elements given.
    pub elements: u64,
    /// Bytes of their payloads.
    pub bytes: u64,
    /// Gaps given.
    pub gaps: u64,
    /// Partial elements reported.
    pub partial: u64,
    /// Damaged places reported.
    pub damaged: u64,
    /// Slots that expired meanwhile.
    pub expired: u64,
    /// Whether the sink broke off.
    pub stopped: bool,
}
