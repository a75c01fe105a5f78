//! Codec of replies.

use crate::wire::bytes::{Get, Put, WireError};
use crate::wire::frame::{FrameHead, frame, kind};
use crate::wire::message::{LaneFile, MAX_FRAME, OpenSlot, Reply, Welcome};
use crate::wire::order::{get_outcome, put_outcome};
use crate::wire::ring::{
    ACT_LEAST, HOLD_LEAST, SLOT_LEAST, get_act, get_hold, get_slot, put_act, put_hold, put_slot,
};
use crate::wire::status_bytes::{STREAM_LEAST, get_status, get_stream, put_status, put_stream};
use holdfast_base::{BLOCK, RingId, Sequence};
use holdfast_format::OpenOutline;
use holdfast_ring::ActNumbers;

impl Reply {
    /// The whole frame, with the id of the request. A reply too large for a frame becomes an error that says so.
    pub fn encode(&self, id: u64) -> Vec<u8> {
        let bytes = frame(self.kind(), id, |put| self.put(put));
        if bytes.len() <= MAX_FRAME {
            return bytes;
        }
        let text =
            format!("the answer takes {} bytes and a frame at most {MAX_FRAME}: ask for less", bytes.len());
        Self::Error { text }.encode(id)
    }

    fn put(&self, put: &mut Put) {
        match self {
            Self::Hello(welcome) => put_welcome(put, welcome),
            Self::Status(status) => put_status(put, status),
            Self::Slots { total, slots } => {
                put.u32(*total).list(slots, put_slot);
            }
            Self::Streams(streams) => {
                put.list(streams, put_stream);
            }
            Self::Preamble { total, bytes } => {
                put.u32(*total).bytes(bytes);
            }
            Self::Schema { text } | Self::Error { text } => {
                put.text(text);
            }
            Self::Holds { more, holds } => {
                put.u8(u8::from(*more)).list(holds, put_hold);
            }
            Self::Acts { more, dropped, acts } => {
                put.u8(u8::from(*more)).u64(dropped.purges).u64(dropped.others).list(acts, put_act);
            }
            Self::Outcome(outcome) => put_outcome(put, outcome),
            Self::Ready { offset, len } => {
                put.u64(*offset).u32(*len);
            }
            Self::Done { kept } => {
                put.u8(u8::from(*kept));
            }
            Self::OpenSlots(slots) => {
                put.list(slots, |put, slot| {
                    put.u64(slot.sequence.0).u8(u8::from(slot.sealed));
                });
            }
            Self::OpenIndex { cursor, end, parts } => {
                put.u64(*cursor).u8(u8::from(*end)).bytes(parts);
            }
            Self::OpenOutline(OpenOutline { cells, nulls, bounds, may_have }) => {
                put.u32(*cells).u32(*nulls).u8(u8::from(*may_have)).u8(u8::from(bounds.is_some()));
                let (least, greatest) = bounds.unwrap_or_default();
                put.bytes(&least.to_le_bytes()).bytes(&greatest.to_le_bytes());
            }
            Self::Pinned { granted } => {
                put.u32(*granted);
            }
            Self::Expired | Self::Pending => {}
        }
    }

    /// Reads the body of a frame whose head is known. Bytes behind the known fields are skipped, except where a body
    /// ends with plain bytes.
    pub fn decode(head: FrameHead, body: &[u8]) -> Result<Self, WireError> {
        let get = &mut Get::new("reply", body);
        let Some(request) = head.kind.checked_sub(kind::REPLY) else {
            return Err(WireError::Kind(head.kind));
        };
        Ok(match request {
            kind::HELLO => Self::Hello(Box::new(get_welcome(get)?)),
            kind::STATUS => Self::Status(Box::new(get_status(get)?)),
            kind::SLOTS => {
                let total = get.u32("slots")?;
                Self::Slots { total, slots: get.list("slots", SLOT_LEAST, get_slot)? }
            }
            kind::STREAMS => Self::Streams(get.list("streams", STREAM_LEAST, get_stream)?),
            kind::PREAMBLE => Self::Preamble { total: get.u32("bytes in all")?, bytes: get.rest().to_vec() },
            kind::HOLDS => {
                let more = get.bool("more")?;
                Self::Holds { more, holds: get.list("holds", HOLD_LEAST, get_hold)? }
            }
            kind::ACTS => {
                let more = get.bool("more")?;
                let dropped = ActNumbers { purges: get.u64("purges")?, others: get.u64("acts")? };
                Self::Acts { more, dropped, acts: get.list("acts", ACT_LEAST, get_act)? }
            }
            kind::ORDER => Self::Outcome(get_outcome(get)?),
            kind::READ => Self::Ready { offset: get.u64("offset")?, len: get.u32("length")? },
            kind::DONE => Self::Done { kept: get.bool("kept")? },
            kind::OPEN_SLOTS => Self::OpenSlots(get.list("open slots", 9, |get| {
                let sequence = Sequence(get.u64("sequence")?);
                Ok(OpenSlot { sequence, sealed: get.bool("sealed")? })
            })?),
            kind::OPEN_INDEX => {
                let (cursor, end) = (get.u64("cursor")?, get.bool("end")?);
                Self::OpenIndex { cursor, end, parts: get.rest().to_vec() }
            }
            kind::OPEN_OUTLINE => {
                let (cells, nulls) = (get.u32("cells")?, get.u32("nulls")?);
                let (may_have, some) = (get.bool("may have")?, get.bool("bounds")?);
                let (least, greatest) = (get.id("least")?, get.id("greatest")?);
                let bounds = some.then(|| (u128::from_le_bytes(least), u128::from_le_bytes(greatest)));
                Self::OpenOutline(OpenOutline { cells, nulls, bounds, may_have })
            }
            kind::SCHEMA => Self::Schema { text: get.text("schema")? },
            kind::PIN => Self::Pinned { granted: get.u32("granted")? },
            _ => match head.kind {
                kind::EXPIRED => Self::Expired,
                kind::PENDING => Self::Pending,
                kind::ERROR => Self::Error { text: get.text("text")? },
                other => return Err(WireError::Kind(other)),
            },
        })
    }

    fn kind(&self) -> u16 {
        let request = match self {
            Self::Hello(_) => kind::HELLO,
            Self::Status(_) => kind::STATUS,
            Self::Slots { .. } => kind::SLOTS,
            Self::Streams(_) => kind::STREAMS,
            Self::Preamble { .. } => kind::PREAMBLE,
            Self::Holds { .. } => kind::HOLDS,
            Self::Acts { .. } => kind::ACTS,
            Self::Outcome(_) => kind::ORDER,
            Self::Ready { .. } => kind::READ,
            Self::Done { .. } => kind::DONE,
            Self::OpenSlots(_) => kind::OPEN_SLOTS,
            Self::OpenIndex { .. } => kind::OPEN_INDEX,
            Self::OpenOutline(_) => kind::OPEN_OUTLINE,
            Self::Schema { .. } => kind::SCHEMA,
            Self::Pinned { .. } => kind::PIN,
            Self::Expired => return kind::EXPIRED,
            Self::Pending => return kind::PENDING,
            Self::Error { .. } => return kind::ERROR,
        };
        request + kind::REPLY
    }
}

fn put_welcome(put: &mut Put, welcome: &Welcome) {
    put.u16(welcome.version)
        .u16(0)
        .u32(welcome.pid)
        .bytes(&welcome.ring.0)
        .u32(welcome.quantum)
        .u32(welcome.place);
    put.u64(welcome.area);
    let mut block = welcome.superblock.clone();
    block.resize(BLOCK, 0);
    put.bytes(&block).u64(welcome.file.device).u64(welcome.file.inode).text(&welcome.lane);
}

fn get_welcome(get: &mut Get<'_>) -> Result<Welcome, WireError> {
    let version = get.u16("version")?;
    get.u16("reserved")?;
    let (pid, ring, quantum) = (get.u32("pid")?, RingId(get.id("ring")?), get.u32("quantum")?);
    let place = get.u32("bytes of a place in the bird's-eye view")?;
    let area = get.u64("bytes of the area")?;
    let superblock = get.take(BLOCK, "superblock")?.to_vec();
    let file = LaneFile { device: get.u64("device of the lane")?, inode: get.u64("inode of the lane")? };
    Ok(Welcome { version, pid, ring, quantum, place, area, superblock, file, lane: get.text("lane")? })
}
