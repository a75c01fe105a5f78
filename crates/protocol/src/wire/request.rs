//! Codec of requests.

use crate::wire::error::WireError;
use crate::wire::frame::{FrameHead, frame, kind};
use crate::wire::message::{OpenSlotProjection, Purpose, Request};
use crate::wire::order::{get_order, put_order};
use holdfast_base::{HoldId, Sequence, StreamId};
use holdfast_format::FieldReader;
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
        let get = &mut FieldReader::new("request", body);
        Ok(match head.kind {
            kind::HELLO => Self::Hello { version: get.named("version").u16()? },
            kind::STATUS => Self::Status,
            kind::SLOTS => {
                Self::Slots { from: get.named("first slot").u32()?, count: get.named("count").u32()? }
            }
            kind::STREAMS => Self::Streams,
            kind::PREAMBLE => Self::Preamble {
                stream: StreamId(get.named("stream").u32()?),
                version: get.named("version").u32()?,
                offset: get.named("offset").u32()?,
            },
            kind::HOLDS => Self::Holds { after: HoldId(get.named("hold").u64()?) },
            kind::ACTS => {
                let (purges, others) = (get.named("purge").u64()?, get.named("act").u64()?);
                Self::Acts { after: ActNumbers { purges, others } }
            }
            kind::ORDER => Self::Order(get_order(get)?),
            kind::READ => Self::Read {
                sequence: Sequence(get.named("sequence").u64()?),
                offset: get.named("offset").u32()?,
                len: get.named("length").u32()?,
                // Clients that are older do not say.
                purpose: Purpose::from_byte(get.rest().first().copied().unwrap_or_default()),
            },
            kind::DONE => Self::Done { offset: get.named("offset").u64()? },
            kind::OPEN_SLOTS => Self::OpenSlots,
            kind::OPEN_INDEX => {
                let (sequence, cursor) = (Sequence(get.named("sequence").u64()?), get.named("cursor").u64()?);
                let rows = get.named("rows").bool()?;
                let stream =
                    get.named("of one stream").option(|get| Ok(StreamId(get.named("stream").u32()?)))?;
                let columns = get.named("attributes").list(2, |get| get.named("attribute").u16())?;
                let wanted = OpenSlotProjection { stream, rows, columns };
                Self::OpenIndex { sequence, cursor, wanted }
            }
            kind::OPEN_OUTLINE => Self::OpenOutline {
                sequence: Sequence(get.named("sequence").u64()?),
                stream: StreamId(get.named("stream").u32()?),
                attribute: get.named("attribute").u16()?,
                values: get.named("values").list(8, |get| get.named("value").u64())?,
            },
            kind::SCHEMA => Self::Schema { stream: StreamId(get.named("stream").u32()?) },
            kind::PIN => Self::Pin {
                sequences: get
                    .named("sequences")
                    .list(8, |get| Ok(Sequence(get.named("sequence").u64()?)))?,
            },
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
