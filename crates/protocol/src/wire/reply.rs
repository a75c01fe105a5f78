//! Codec of replies.

use crate::wire::error::WireError;
use crate::wire::frame::{FrameHead, Writer, frame, kind};
use crate::wire::message::{LaneFile, MAX_FRAME, OpenSlot, Reply, Welcome};
use crate::wire::order::{get_outcome, put_outcome};
use crate::wire::ring::{
    ACT_LEAST, HOLD_LEAST, SLOT_LEAST, get_act, get_hold, get_slot, put_act, put_hold, put_slot,
};
use crate::wire::status_bytes::{STREAM_LEAST, get_status, get_stream, put_status, put_stream};
use holdfast_base::{BLOCK, RingId, Sequence};
use holdfast_format::FieldReader;
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

    fn put(&self, put: &mut Writer) {
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
                put.cut_string(text);
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
            Self::Expired | Self::Pending | Self::Ending => {}
        }
    }

    /// Reads the body of a frame whose head is known. Bytes behind the known fields are skipped, except where a body
    /// ends with plain bytes.
    pub fn decode(head: FrameHead, body: &[u8]) -> Result<Self, WireError> {
        let get = &mut FieldReader::new("reply", body);
        let Some(request) = head.kind.checked_sub(kind::REPLY) else {
            return Err(WireError::Kind(head.kind));
        };
        Ok(match request {
            kind::HELLO => Self::Hello(Box::new(get_welcome(get)?)),
            kind::STATUS => Self::Status(Box::new(get_status(get)?)),
            kind::SLOTS => {
                let total = get.named("slots").u32()?;
                Self::Slots { total, slots: get.named("slots").list(SLOT_LEAST, get_slot)? }
            }
            kind::STREAMS => Self::Streams(get.named("streams").list(STREAM_LEAST, get_stream)?),
            kind::PREAMBLE => {
                Self::Preamble { total: get.named("bytes in all").u32()?, bytes: get.rest().to_vec() }
            }
            kind::HOLDS => {
                let more = get.named("more").bool()?;
                Self::Holds { more, holds: get.named("holds").list(HOLD_LEAST, get_hold)? }
            }
            kind::ACTS => {
                let more = get.named("more").bool()?;
                let dropped =
                    ActNumbers { purges: get.named("purges").u64()?, others: get.named("acts").u64()? };
                Self::Acts { more, dropped, acts: get.named("acts").list(ACT_LEAST, get_act)? }
            }
            kind::ORDER => Self::Outcome(get_outcome(get)?),
            kind::READ => Self::Ready { offset: get.named("offset").u64()?, len: get.named("length").u32()? },
            kind::DONE => Self::Done { kept: get.named("kept").bool()? },
            kind::OPEN_SLOTS => Self::OpenSlots(get.named("open slots").list(9, |get| {
                let sequence = Sequence(get.named("sequence").u64()?);
                Ok(OpenSlot { sequence, sealed: get.named("sealed").bool()? })
            })?),
            kind::OPEN_INDEX => {
                let (cursor, end) = (get.named("cursor").u64()?, get.named("end").bool()?);
                Self::OpenIndex { cursor, end, parts: get.rest().to_vec() }
            }
            kind::OPEN_OUTLINE => {
                let (cells, nulls) = (get.named("cells").u32()?, get.named("nulls").u32()?);
                let (may_have, some) = (get.named("may have").bool()?, get.named("bounds").bool()?);
                let (least, greatest) = (get.named("least").array()?, get.named("greatest").array()?);
                let bounds = some.then(|| (u128::from_le_bytes(least), u128::from_le_bytes(greatest)));
                Self::OpenOutline(OpenOutline { cells, nulls, bounds, may_have })
            }
            kind::SCHEMA => Self::Schema { text: get.named("schema").string()? },
            kind::PIN => Self::Pinned { granted: get.named("granted").u32()? },
            _ => match head.kind {
                kind::EXPIRED => Self::Expired,
                kind::PENDING => Self::Pending,
                kind::ENDING => Self::Ending,
                kind::ERROR => Self::Error { text: get.named("text").string()? },
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
            Self::Ending => return kind::ENDING,
            Self::Error { .. } => return kind::ERROR,
        };
        request + kind::REPLY
    }
}

fn put_welcome(put: &mut Writer, welcome: &Welcome) {
    put.u16(welcome.version)
        .u16(0)
        .u32(welcome.pid)
        .bytes(&welcome.ring.0)
        .u32(welcome.quantum)
        .u32(welcome.place);
    put.u64(welcome.area);
    let mut block = welcome.superblock.clone();
    block.resize(BLOCK, 0);
    put.bytes(&block).u64(welcome.file.device).u64(welcome.file.inode).cut_string(&welcome.lane);
}

fn get_welcome(get: &mut FieldReader<'_>) -> Result<Welcome, WireError> {
    let version = get.named("version").u16()?;
    get.named("reserved").u16()?;
    let (pid, ring, quantum) =
        (get.named("pid").u32()?, RingId(get.named("ring").array()?), get.named("quantum").u32()?);
    let place = get.named("bytes of a place in the bird's-eye view").u32()?;
    let area = get.named("bytes of the area").u64()?;
    let superblock = get.named("superblock").take(BLOCK)?.to_vec();
    let file = LaneFile {
        device: get.named("device of the lane").u64()?,
        inode: get.named("inode of the lane").u64()?,
    };
    Ok(Welcome {
        version,
        pid,
        ring,
        quantum,
        place,
        area,
        superblock,
        file,
        lane: get.named("lane").string()?,
    })
}
