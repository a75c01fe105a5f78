//! Kinds of journal record, and their bodies as bytes.

use super::orders::read_order;
use super::{ActRecord, CopyRecord, HoldRecord, OpenSlot, PurgeRecord, StreamRecord, TableEntry, lent};
use crate::FormatError;
use crate::bytes::{FieldReader, SliceWriter};
use holdfast_base::{Epoch, HoldId, OrderId, Sequence, SlotNo, StreamId, Timestamp};

/// One entry of the journal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Record<'a> {
    /// A run of the recorder begins.
    Epoch {
        /// Its number.
        epoch: Epoch,
        /// Arrival time then.
        arrival: Timestamp,
        /// What the wall clock said then.
        wall: Timestamp,
        /// The run before it ended cleanly.
        clean: bool,
    },
    /// A stretch of the slot table.
    Table {
        /// The first slot of the stretch.
        first: SlotNo,
        /// The slots from there on.
        entries: Vec<TableEntry>,
    },
    /// A stream, as it is from now on.
    Stream(StreamRecord),
    /// A preamble, or a piece of one.
    Preamble {
        /// The stream.
        stream: StreamId,
        /// Its version, from 1.
        version: u32,
        /// Bytes of the whole preamble.
        total: u32,
        /// Where in it this piece belongs.
        offset: u32,
        /// The last sequence that uses it.
        last: Sequence,
        /// The piece.
        bytes: &'a [u8],
    },
    /// A hold, as it is from now on.
    Hold(HoldRecord),
    /// The end of a hold.
    Release {
        /// Which.
        hold: HoldId,
        /// When.
        at: Timestamp,
        /// UUID of the order that ended it; `None` where it ended by itself, and in format version 1.
        order: Option<OrderId>,
    },
    /// The next slots to be overwritten.
    Runway {
        /// The first sequence that these slots may get.
        naming: Sequence,
        /// The slots in the order they will be written.
        slots: Vec<SlotNo>,
    },
    /// A slot that is not used any more.
    BadSlot {
        /// Which.
        slot: SlotNo,
    },
    /// The wall clock was set.
    ClockStep {
        /// In which run.
        epoch: Epoch,
        /// Arrival time then.
        arrival: Timestamp,
        /// What the wall clock had said.
        before: Timestamp,
        /// What it says now.
        after: Timestamp,
    },
    /// The lane has grown.
    Geometry {
        /// Bytes of the lane in use.
        lane_bytes: u64,
        /// Slots.
        slots: u32,
    },
    /// An open slot.
    OpenSlot(OpenSlot<'a>),
    /// Payload that an open slot gained.
    OpenPayload {
        /// Which slot.
        sequence: Sequence,
        /// Where in its payload.
        offset: u32,
        /// What.
        bytes: &'a [u8],
    },
    /// Rows that an open slot gained.
    OpenRows {
        /// Which slot.
        sequence: Sequence,
        /// Number of the chunk's first row.
        first_row: u32,
        /// The rows as a chunk.
        chunk: &'a [u8],
    },
    /// Copies take the place of originals.
    Replaced {
        /// Free from here on.
        originals: Vec<Sequence>,
        /// Counting from here on.
        copies: Vec<CopyRecord>,
    },
    /// Slots that expired on purpose.
    Freed {
        /// Which.
        sequences: Vec<Sequence>,
    },
    /// The next numbers to give.
    Next {
        /// To a slot.
        sequence: Sequence,
        /// To a hold.
        hold: HoldId,
        /// To a stream.
        stream: StreamId,
        /// Acts there have been.
        acts: u32,
    },
    /// Everything is sealed, nothing is open.
    CleanEnd {
        /// Arrival time then.
        arrival: Timestamp,
    },
    /// The audit of a purge.
    Purged(PurgeRecord),
    /// The recovery string: what a lost superblock said.
    Recovery(&'a str),
    /// What somebody did with data.
    Act(ActRecord),
    /// Of a type that this version does not know: to be skipped.
    Unknown(u16),
}

impl<'a> Record<'a> {
    pub(super) const TABLE: u16 = 2;
    pub(super) const STREAM: u16 = 3;
    pub(super) const HOLD: u16 = 5;
    pub(super) const RUNWAY: u16 = 7;
    pub(crate) const OPEN_PAYLOAD: u16 = 12;
    pub(crate) const OPEN_ROWS: u16 = 13;
    pub(super) const REPLACED: u16 = 14;
    pub(super) const FREED: u16 = 15;
    pub(super) const PURGED: u16 = 18;
    pub(super) const ACT: u16 = 20;

    pub(super) fn kind(&self) -> u16 {
        match self {
            Self::Epoch { .. } => 1,
            Self::Table { .. } => Self::TABLE,
            Self::Stream(_) => Self::STREAM,
            Self::Preamble { .. } => 4,
            Self::Hold(_) => Self::HOLD,
            Self::Release { .. } => 6,
            Self::Runway { .. } => Self::RUNWAY,
            Self::BadSlot { .. } => 8,
            Self::ClockStep { .. } => 9,
            Self::Geometry { .. } => 10,
            Self::OpenSlot(_) => 11,
            Self::OpenPayload { .. } => Self::OPEN_PAYLOAD,
            Self::OpenRows { .. } => Self::OPEN_ROWS,
            Self::Replaced { .. } => Self::REPLACED,
            Self::Freed { .. } => Self::FREED,
            Self::Next { .. } => 16,
            Self::CleanEnd { .. } => 17,
            Self::Purged(_) => Self::PURGED,
            Self::Recovery(_) => 19,
            Self::Act(_) => Self::ACT,
            Self::Unknown(kind) => *kind,
        }
    }

    /// Bytes that the record takes in a commit: what [`CommitWriter::room`](crate::CommitWriter::room) must have.
    pub fn bytes(&self) -> usize {
        let strings = |a: &str, b: &str| 4 + a.len() + b.len();
        let body = match self {
            Self::Epoch { .. } | Self::ClockStep { .. } => 32,
            Self::Table { entries, .. } => 8 + TableEntry::BYTES * entries.len(),
            Self::Stream(stream) => 80 + strings(&stream.name, &stream.framing) + stream.schema_bytes(),
            Self::Preamble { bytes, .. } => 28 + bytes.len(),
            Self::Hold(hold) => {
                let lists = 4 * hold.streams.len() + 16 * hold.sequences.len();
                68 + lists + strings(&hold.reason, &hold.owner) + hold.optional_bytes()
            }
            Self::Release { order, .. } => 16 + order.map_or(0, |order| order.0.len()),
            Self::Geometry { .. } => 16,
            Self::Runway { slots, .. } => 16 + 4 * slots.len(),
            Self::BadSlot { .. } | Self::CleanEnd { .. } => 8,
            Self::OpenSlot(open) => 40 + super::OpenEntries::BYTES * open.entries.len(),
            Self::OpenPayload { bytes, .. } => 16 + bytes.len(),
            Self::OpenRows { chunk, .. } => 16 + chunk.len(),
            Self::Replaced { originals, copies } => {
                8 + 8 * originals.len() + CopyRecord::BYTES * copies.len()
            }
            Self::Freed { sequences } => 8 + 8 * sequences.len(),
            Self::Next { .. } => 24,
            Self::Purged(purge) => 64 + strings(&purge.reason, &purge.owner),
            Self::Recovery(text) => 2 + text.len(),
            Self::Act(act) => ActRecord::BYTES + strings(&act.reason, &act.owner),
            Self::Unknown(_) => 0,
        };
        (8 + body).next_multiple_of(8)
    }

    pub(super) fn put(&self, put: &mut SliceWriter<'_>) -> bool {
        match self {
            Self::Epoch { epoch, arrival, wall, clean } => {
                put.u64(epoch.0).time(*arrival).time(*wall).u8(u8::from(*clean)).zeros(7);
            }
            Self::Table { first, entries } => return lent::table(put, *first, entries.iter().copied()),
            Self::Stream(stream) => stream.put(put),
            Self::Preamble { stream, version, total, offset, last, bytes } => {
                put.u32(stream.0).u32(*version).u32(*total).u32(*offset).u64(last.0);
                put.u32(bytes.len() as u32).bytes(bytes);
            }
            Self::Hold(hold) => return hold.put(put),
            Self::Release { hold, at, order } => {
                put.u64(hold.0).time(*at).bytes(order.as_ref().map_or(&[], |order| &order.0[..]));
            }
            Self::Runway { naming, slots } => return lent::runway(put, *naming, slots),
            Self::BadSlot { slot } => {
                put.u32(slot.0).u32(0);
            }
            Self::ClockStep { epoch, arrival, before, after } => {
                put.u64(epoch.0).time(*arrival).time(*before).time(*after);
            }
            Self::Geometry { lane_bytes, slots } => {
                put.u64(*lane_bytes).u32(*slots).u32(0);
            }
            Self::OpenSlot(open) => open.put(put),
            Self::OpenPayload { sequence, offset, bytes } => {
                put.u64(sequence.0).u32(*offset).u32(bytes.len() as u32).bytes(bytes);
            }
            Self::OpenRows { sequence, first_row, chunk } => {
                put.u64(sequence.0).u32(*first_row).u32(chunk.len() as u32).bytes(chunk);
            }
            Self::Replaced { originals, copies } => {
                return lent::replaced(put, originals, copies.iter().copied());
            }
            Self::Freed { sequences } => return lent::freed(put, sequences),
            Self::Next { sequence, hold, stream, acts } => {
                put.u64(sequence.0).u64(hold.0).u32(stream.0).u32(*acts);
            }
            Self::CleanEnd { arrival } => {
                put.time(*arrival);
            }
            Self::Purged(purge) => purge.put(put),
            Self::Recovery(text) => {
                put.string(text);
            }
            Self::Act(act) => act.put(put),
            Self::Unknown(_) => return false,
        }
        true
    }

    /// Reads the body of a record of type `kind`. What lies behind the known fields belongs to a later version.
    pub fn read(kind: u16, body: &'a [u8]) -> Result<Self, FormatError> {
        let get = &mut FieldReader::new(name(kind), body);
        Ok(match kind {
            1 => Self::Epoch {
                epoch: Epoch(get.u64()?),
                arrival: get.time()?,
                wall: get.time()?,
                clean: get.u8()? == 1,
            },
            Self::TABLE => {
                let first = SlotNo(get.u32()?);
                let entries = list(get, TableEntry::BYTES, TableEntry::read)?;
                Self::Table { first, entries }
            }
            Self::STREAM => Self::Stream(StreamRecord::read(get)?),
            4 => {
                let (stream, version, total) = (StreamId(get.u32()?), get.u32()?, get.u32()?);
                let (offset, last) = (get.u32()?, Sequence(get.u64()?));
                let count = get.count(1)?;
                let bytes = get.take(count)?;
                if u64::from(offset) + count as u64 > u64::from(total) {
                    return Err(get.outside("the piece of a preamble"));
                }
                Self::Preamble { stream, version, total, offset, last, bytes }
            }
            Self::HOLD => Self::Hold(HoldRecord::read(get)?),
            6 => Self::Release { hold: HoldId(get.u64()?), at: get.time()?, order: read_order(get)? },
            Self::RUNWAY => {
                let naming = Sequence(get.u64()?);
                let count = get.u32()? as usize;
                get.take(4)?;
                let slots = some(get, count, 4, |get| Ok(SlotNo(get.u32()?)))?;
                Self::Runway { naming, slots }
            }
            8 => Self::BadSlot { slot: SlotNo(get.u32()?) },
            9 => Self::ClockStep {
                epoch: Epoch(get.u64()?),
                arrival: get.time()?,
                before: get.time()?,
                after: get.time()?,
            },
            10 => Self::Geometry { lane_bytes: get.u64()?, slots: get.u32()? },
            11 => Self::OpenSlot(OpenSlot::read(get)?),
            Self::OPEN_PAYLOAD => {
                let (sequence, offset) = (Sequence(get.u64()?), get.u32()?);
                let count = get.count(1)?;
                Self::OpenPayload { sequence, offset, bytes: get.take(count)? }
            }
            Self::OPEN_ROWS => {
                let (sequence, first_row) = (Sequence(get.u64()?), get.u32()?);
                let count = get.count(1)?;
                Self::OpenRows { sequence, first_row, chunk: get.take(count)? }
            }
            Self::REPLACED => {
                let (originals, copies) = (get.u32()? as usize, get.u32()? as usize);
                let originals = some(get, originals, 8, |get| Ok(Sequence(get.u64()?)))?;
                let copies = some(get, copies, CopyRecord::BYTES, CopyRecord::read)?;
                Self::Replaced { originals, copies }
            }
            Self::FREED => {
                let count = get.u32()? as usize;
                get.take(4)?;
                Self::Freed { sequences: some(get, count, 8, |get| Ok(Sequence(get.u64()?)))? }
            }
            16 => Self::Next {
                sequence: Sequence(get.u64()?),
                hold: HoldId(get.u64()?),
                stream: StreamId(get.u32()?),
                acts: get.u32()?,
            },
            17 => Self::CleanEnd { arrival: get.time()? },
            Self::PURGED => Self::Purged(PurgeRecord::read(get)?),
            19 => Self::Recovery(get.str()?),
            Self::ACT => Self::Act(ActRecord::read(get)?),
            _ => Self::Unknown(kind),
        })
    }
}

fn name(kind: u16) -> &'static str {
    const NAMES: [&str; 21] = [
        "record",
        "epoch record",
        "table record",
        "stream record",
        "preamble record",
        "hold record",
        "release record",
        "runway record",
        "bad slot record",
        "clock step record",
        "geometry record",
        "open slot record",
        "open payload record",
        "open rows record",
        "replaced record",
        "freed record",
        "next record",
        "clean end record",
        "purged record",
        "recovery record",
        "act record",
    ];
    NAMES.get(usize::from(kind)).copied().unwrap_or(NAMES[0])
}

/// A u32 count and so many things of `size` bytes.
fn list<'a, T>(
    get: &mut FieldReader<'a>,
    size: usize,
    read: impl Fn(&mut FieldReader<'a>) -> Result<T, FormatError>,
) -> Result<Vec<T>, FormatError> {
    let count = get.count(size)?;
    some(get, count, size, read)
}

/// `count` things of `size` bytes; no memory is asked for before it is known that they are there.
fn some<'a, T>(
    get: &mut FieldReader<'a>,
    count: usize,
    size: usize,
    read: impl Fn(&mut FieldReader<'a>) -> Result<T, FormatError>,
) -> Result<Vec<T>, FormatError> {
    get.clone().take(count.saturating_mul(size))?;
    (0..count).map(|_| read(get)).collect()
}
