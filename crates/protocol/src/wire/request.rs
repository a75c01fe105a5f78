//! Codec of requests.

use crate::wire::bytes::{Get, WireError};
use crate::wire::frame::{FrameHead, frame, kind};
use crate::wire::message::{OpenSlotProjection, Purpose, Request};
use crate::wire::order::{get_order, put_order};
use holdfast_base::{HoldId, Sequence, StreamId};
use holdfast_ring::ActNumbers;

impl Request {
    /// The whole frame. The id comes back with the reply.
    pub fn encode(&self, id: u64) -> Vec<u8> {
        frame(self.kind(), id, |put| match self {
            Self::Hello { version } => {
                put.u16(*version);
            }
            Self::Status | Self::Streams | Self::OpenSlots => {}
            Self::Slots { from, count } => {
                put.u32(*from).u32(*count);
            }
            Self::Preamble { stream, version, offset } => {
                put.u32(stream.0).u32(*version).u32(*offset);
            }
            Self::Schema { stream } => {
                put.u32(stream.0);
            }
            Self::Holds { after } => {
                put.u64(after.0);
            }
            Self::Acts { after } => {
                put.u64(after.purges).u64(after.others);
            }
            Self::Order(order) => put_order(put, order),
            Self::Read { sequence, offset, len, purpose } => {
                put.u64(sequence.0).u32(*offset).u32(*len).u8(*purpose as u8);
            }
            Self::Done { offset } => {
                put.u64(*offset);
            }
            Self::OpenIndex { sequence, cursor, wanted: OpenSlotProjection { stream, rows, columns } } => {
                put.u64(sequence.0).u64(*cursor).u8(u8::from(*rows));
                put.option(*stream, |put, stream| {
                    put.u32(stream.0);
                });
                put.list(columns, |put, column| {
                    put.u16(*column);
                });
            }
            Self::OpenOutline { sequence, stream, attribute, values } => {
                put.u64(sequence.0).u32(stream.0).u16(*attribute);
                put.list(values, |put, value| {
                    put.u64(*value);
                });
            }
            Self::Pin { sequences } => {
                put.list(sequences, |put, sequence| {
                    put.u64(sequence.0);
                });
            }
        })
    }

    /// Reads the body of a frame whose head is known. Bytes behind the known fields are skipped.
    pub fn decode(head: FrameHead, body: &[u8]) -> Result<Self, WireError> {
        let get = &mut Get::new("request", body);
        Ok(match head.kind {
            kind::HELLO => Self::Hello { version: get.u16("version")? },
            kind::STATUS => Self::Status,
            kind::SLOTS => Self::Slots { from: get.u32("first slot")?, count: get.u32("count")? },
            kind::STREAMS => Self::Streams,
            kind::PREAMBLE => Self::Preamble {
                stream: StreamId(get.u32("stream")?),
                version: get.u32("version")?,
                offset: get.u32("offset")?,
            },
            kind::HOLDS => Self::Holds { after: HoldId(get.u64("hold")?) },
            kind::ACTS => {
                let (purges, others) = (get.u64("purge")?, get.u64("act")?);
                Self::Acts { after: ActNumbers { purges, others } }
            }
            kind::ORDER => Self::Order(get_order(get)?),
            kind::READ => Self::Read {
                sequence: Sequence(get.u64("sequence")?),
                offset: get.u32("offset")?,
                len: get.u32("length")?,
                // Clients that are older do not say.
                purpose: Purpose::from_byte(get.rest().first().copied().unwrap_or_default()),
            },
            kind::DONE => Self::Done { offset: get.u64("offset")? },
            kind::OPEN_SLOTS => Self::OpenSlots,
            kind::OPEN_INDEX => {
                let (sequence, cursor) = (Sequence(get.u64("sequence")?), get.u64("cursor")?);
                let rows = get.bool("rows")?;
                let stream = get.option("of one stream", |get| Ok(StreamId(get.u32("stream")?)))?;
                let columns = get.list("attributes", 2, |get| get.u16("attribute"))?;
                let wanted = OpenSlotProjection { stream, rows, columns };
                Self::OpenIndex { sequence, cursor, wanted }
            }
            kind::OPEN_OUTLINE => Self::OpenOutline {
                sequence: Sequence(get.u64("sequence")?),
                stream: StreamId(get.u32("stream")?),
                attribute: get.u16("attribute")?,
                values: get.list("values", 8, |get| get.u64("value"))?,
            },
            kind::SCHEMA => Self::Schema { stream: StreamId(get.u32("stream")?) },
            kind::PIN => {
                Self::Pin { sequences: get.list("sequences", 8, |get| Ok(Sequence(get.u64("sequence")?)))? }
            }
            other => return Err(WireError::Kind(other)),
        })
    }

    fn kind(&self) -> u16 {
        match self {
            Self::Hello { .. } => kind::HELLO,
            Self::Status => kind::STATUS,
            Self::Slots { .. } => kind::SLOTS,
            Self::Streams => kind::STREAMS,
            Self::Preamble { .. } => kind::PREAMBLE,
            Self::Holds { .. } => kind::HOLDS,
            Self::Acts { .. } => kind::ACTS,
            Self::Order(_) => kind::ORDER,
            Self::Read { .. } => kind::READ,
            Self::Done { .. } => kind::DONE,
            Self::OpenSlots => kind::OPEN_SLOTS,
            Self::OpenIndex { .. } => kind::OPEN_INDEX,
            Self::OpenOutline { .. } => kind::OPEN_OUTLINE,
            Self::Schema { .. } => kind::SCHEMA,
            Self::Pin { .. } => kind::PIN,
        }
    }
}
