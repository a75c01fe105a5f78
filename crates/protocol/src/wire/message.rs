//! Requests and replies as plain data. docs/protocol.md draws their bytes.

use crate::wire::status::Status;
use holdfast_base::{HoldId, RingId, Sequence, StreamId};
use holdfast_format::OpenOutline;
use holdfast_ring::{ActNumbers, ActStatus, HoldStatus, Order, Outcome, SlotStatus, StreamStatus};

/// Version of the protocol: a recorder answers a client of another version with an error and closes.
pub const VERSION: u16 = 2;

/// Bytes of a frame's head.
pub const HEAD_BYTES: usize = 16;

/// Largest frame, head included: what a client must be ready to take.
pub const MAX_FRAME: usize = 1 << 20;

/// Largest request, head included: the recorder keeps a buffer of this size for every client. The largest order
/// (all streams, [`MAX_RANGES`], longest texts) fits.
pub const MAX_REQUEST: usize = 64 << 10;

/// Bytes of body that a reply which comes in pieces aims at, so that no client makes the recorder keep much.
pub const PIECE: usize = 192 << 10;

/// Ranges of sequences in one order. An order that needs more is cut, or takes the range between.
pub const MAX_RANGES: usize = 2048;

/// Slots that a client may pin: a search renews its pins long before it has gone through so many.
pub const MAX_PINS: usize = 1024;

/// Values that a client may ask an open slot for at once.
pub const MAX_VALUES: usize = 64;

/// Requests that a client may have unanswered; more wait in its socket.
pub const MAX_PENDING: usize = 32;

/// What a client asks.
#[expect(clippy::large_enum_variant, reason = "a client has few of them, and they are not kept")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// First of all: which version the client speaks.
    Hello {
        /// Its version.
        version: u16,
    },
    /// How the ring and its recorder do.
    Status,
    /// Slots by place.
    Slots {
        /// First slot.
        from: u32,
        /// How many; the reply may have fewer.
        count: u32,
    },
    /// All streams.
    Streams,
    /// A piece of a preamble.
    Preamble {
        /// Whose.
        stream: StreamId,
        /// Which.
        version: u32,
        /// First byte wanted.
        offset: u32,
    },
    /// The schema of a stream.
    Schema {
        /// Whose.
        stream: StreamId,
    },
    /// Holds in rising order of their numbers.
    Holds {
        /// Those after this one.
        after: HoldId,
    },
    /// The audit log: purges first, then other acts, each in the order of their numbers.
    Acts {
        /// Those behind these numbers.
        after: ActNumbers,
    },
    /// An order; answered by its outcome once that is durable.
    Order(Order),
    /// A piece of a slot, by the sequence it must have. Offset and length are multiples of 4 KiB.
    Read {
        /// Which.
        sequence: Sequence,
        /// First byte, from the slot's start.
        offset: u32,
        /// How many, at most a quantum.
        len: u32,
        /// What for.
        purpose: Purpose,
    },
    /// The piece of the ticket area that a read was answered with has been copied out.
    Done {
        /// Its place, as it was told.
        offset: u64,
    },
    /// The sequences that are not on the medium yet.
    OpenSlots,
    /// The index of an open slot, as far as it has come, beyond a cursor.
    OpenIndex {
        /// Which.
        sequence: Sequence,
        /// 0, or what the last reply gave.
        cursor: u64,
        /// What of it.
        wanted: OpenSlotProjection,
    },
    /// What an open slot has of an attribute so far, in short.
    OpenOutline {
        /// Which.
        sequence: Sequence,
        /// The stream.
        stream: StreamId,
        /// The attribute's number in the stream's schema.
        attribute: u16,
        /// [Hashes](holdfast_format::Cell::hash) of the values that are looked for: [`MAX_VALUES`] at most.
        values: Vec<u64>,
    },
    /// What of these slots may be kept from expiring is, until the next such request or the end of the connection; those that
    /// were before, and are not among them, are not any more.
    Pin {
        /// Which, those that are needed first in front: [`MAX_PINS`] at most.
        sequences: Vec<Sequence>,
    },
}

/// What of the index of an open slot is wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpenSlotProjection {
    /// Of which stream; none: of all.
    pub stream: Option<StreamId>,
    /// Whether rows are.
    pub rows: bool,
    /// Which attributes of that stream, by their numbers in its schema.
    pub columns: Vec<u16>,
}

impl OpenSlotProjection {
    /// What the slot holds of each stream, and no more.
    pub const SUMMARY: Self = Self { stream: None, rows: false, columns: Vec::new() };
    /// All rows.
    pub const ROWS: Self = Self { stream: None, rows: true, columns: Vec::new() };
}

/// What a read is for: readers of different purposes share what is left for reading by their weights.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Purpose {
    /// To give somebody data.
    #[default]
    Export = 0,
    /// To find something.
    Search = 1,
    /// To bring a hold to an archive.
    Evacuation = 2,
    /// To see that everything is still there.
    Scrub = 3,
}

impl Purpose {
    /// The purpose of this number; one that is not known is an export.
    pub(crate) fn from_byte(byte: u8) -> Self {
        match byte {
            1 => Self::Search,
            2 => Self::Evacuation,
            3 => Self::Scrub,
            _ => Self::Export,
        }
    }
}

/// What the recorder answers. Every reply carries the id of its request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// To [`Request::Hello`]; the memory files of the ticket area and of the bird's-eye view come along.
    Hello(Box<Welcome>),
    /// To [`Request::Status`].
    Status(Box<Status>),
    /// To [`Request::Slots`]: from the one asked for on, without holes; none behind the last.
    Slots {
        /// How many there are in all.
        total: u32,
        /// Those.
        slots: Vec<SlotStatus>,
    },
    /// To [`Request::Streams`].
    Streams(Vec<StreamStatus>),
    /// To [`Request::Preamble`].
    Preamble {
        /// Bytes of the whole preamble.
        total: u32,
        /// Those from the offset on, as many as fit.
        bytes: Vec<u8>,
    },
    /// To [`Request::Schema`].
    Schema {
        /// It; empty for none. 16 KiB at most.
        text: String,
    },
    /// To [`Request::Holds`].
    Holds {
        /// Whether there are more behind these.
        more: bool,
        /// Those.
        holds: Vec<HoldStatus>,
    },
    /// To [`Request::Acts`].
    Acts {
        /// Whether there are more behind these.
        more: bool,
        /// How many have been dropped.
        dropped: ActNumbers,
        /// Those.
        acts: Vec<ActStatus>,
    },
    /// To [`Request::Order`].
    Outcome(Outcome),
    /// To [`Request::Read`]: the bytes are in the ticket area, until the client says done or its time is up.
    Ready {
        /// Where.
        offset: u64,
        /// How many.
        len: u32,
    },
    /// To [`Request::Done`].
    Done {
        /// Whether the piece was the client's until now: if not, what it copied is worth nothing.
        kept: bool,
    },
    /// To [`Request::OpenSlots`], in rising order.
    OpenSlots(Vec<OpenSlot>),
    /// To [`Request::OpenIndex`].
    OpenIndex {
        /// For the next request.
        cursor: u64,
        /// Whether this was all that the slot has by now.
        end: bool,
        /// For [`OpenIndex::take`](holdfast_format::OpenIndex::take).
        parts: Vec<u8>,
    },
    /// To [`Request::OpenOutline`].
    OpenOutline(OpenOutline),
    /// To [`Request::Pin`].
    Pinned {
        /// How many of them are kept, for as long as there is anything else to overwrite.
        granted: u32,
    },
    /// To [`Request::Read`] and [`Request::OpenIndex`]: the sequence has expired (or never was).
    Expired,
    /// To [`Request::Read`]: the sequence cannot be read yet: ask again later. To [`Request::OpenIndex`]: the slot
    /// is sealed: read it. To [`Request::OpenOutline`]: nothing is told of it.
    Pending,
    /// The recorder is ending: it takes no more reads and orders.
    Ending,
    /// To anything.
    Error {
        /// What, where, what to do.
        text: String,
    },
}

/// What a client is told first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Welcome {
    /// The recorder's version.
    pub version: u16,
    /// The recorder's process.
    pub pid: u32,
    /// The ring.
    pub ring: RingId,
    /// Most bytes of one read.
    pub quantum: u32,
    /// Bytes of a slot's place in the bird's-eye view; 0: there is none.
    pub place: u32,
    /// Bytes of the ticket area.
    pub area: u64,
    /// The newest superblock, 4 KiB: geometry and key.
    pub superblock: Vec<u8>,
    /// Which file or device the lane is: a copy of a ring has its UUID, too.
    pub file: LaneFile,
    /// Path of the lane, as the recorder was given it.
    pub lane: String,
}

/// Which file or device a path leads to, as the kernel numbers them: two paths to the same are equal, a copy is not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaneFile {
    /// Of a file, the device of its file system; of a device, the device itself.
    pub device: u64,
    /// Of a file, its inode; of a device 0.
    pub inode: u64,
}

/// A slot that is not on the medium yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenSlot {
    /// Its sequence.
    pub sequence: Sequence,
    /// Whether it is sealed: it will be on the medium soon, and may be read like one that is.
    pub sealed: bool,
}

impl Request {
    /// Its name in errors.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Hello { .. } => "hello",
            Self::Status => "status",
            Self::Slots { .. } => "slots",
            Self::Streams => "streams",
            Self::Preamble { .. } => "preamble",
            Self::Schema { .. } => "schema",
            Self::Holds { .. } => "holds",
            Self::Acts { .. } => "acts",
            Self::Order(_) => "order",
            Self::Read { .. } => "read",
            Self::Done { .. } => "done",
            Self::OpenSlots => "open slots",
            Self::OpenIndex { .. } => "open index",
            Self::OpenOutline { .. } => "open outline",
            Self::Pin { .. } => "pin",
        }
    }
}

impl Reply {
    /// Its name in errors.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Hello(_) => "hello",
            Self::Status(_) => "status",
            Self::Slots { .. } => "slots",
            Self::Streams(_) => "streams",
            Self::Preamble { .. } => "preamble",
            Self::Schema { .. } => "schema",
            Self::Holds { .. } => "holds",
            Self::Acts { .. } => "acts",
            Self::Outcome(_) => "outcome",
            Self::Ready { .. } => "ready",
            Self::Done { .. } => "done",
            Self::OpenSlots(_) => "open slots",
            Self::OpenIndex { .. } => "open index",
            Self::OpenOutline(_) => "open outline",
            Self::Pinned { .. } => "pinned",
            Self::Expired => "expired",
            Self::Pending => "pending",
            Self::Ending => "ending",
            Self::Error { .. } => "error",
        }
    }
}
