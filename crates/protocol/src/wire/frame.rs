//! Frame head, and the numbers of the frame types. The modules `request` and `reply` define the bodies.
//!
//! ```text
//! 0   u32   bytes of the body that follows
//! 4   u16   type
//! 6   u16   reserved, 0
//! 8   u64   request id: chosen by the client, repeated in the reply
//! 16  …     body
//! ```

use crate::wire::error::WireError;
use crate::wire::message::HEAD_BYTES;
use holdfast_format::{FieldReader, FieldWriter};

/// Numbers of the types. A reply is its request plus 128, or one of the last three.
pub mod kind {
    /// Hello.
    pub const HELLO: u16 = 1;
    /// Status.
    pub const STATUS: u16 = 2;
    /// Slots.
    pub const SLOTS: u16 = 3;
    /// Streams.
    pub const STREAMS: u16 = 4;
    /// Preamble.
    pub const PREAMBLE: u16 = 5;
    /// Holds.
    pub const HOLDS: u16 = 6;
    /// Order.
    pub const ORDER: u16 = 7;
    /// Read.
    pub const READ: u16 = 8;
    /// Done.
    pub const DONE: u16 = 9;
    /// Open slots.
    pub const OPEN_SLOTS: u16 = 10;
    /// Open index.
    pub const OPEN_INDEX: u16 = 11;
    /// Schema.
    pub const SCHEMA: u16 = 12;
    /// Acts.
    pub const ACTS: u16 = 13;
    /// Pin.
    pub const PIN: u16 = 14;
    /// What an open slot has of an attribute.
    pub const OPEN_OUTLINE: u16 = 15;
    /// What is added for a reply.
    pub const REPLY: u16 = 128;
    /// Expired.
    pub const EXPIRED: u16 = 192;
    /// Pending.
    pub const PENDING: u16 = 193;
    /// Error.
    pub const ERROR: u16 = 194;
    /// The recorder is ending.
    pub const ENDING: u16 = 195;
}

/// The head of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHead {
    /// Bytes of the body.
    pub body: u32,
    /// Type.
    pub kind: u16,
    /// Request id.
    pub id: u64,
}

impl FrameHead {
    /// Reads the head of a frame of which at least [`HEAD_BYTES`] are there; refuses one of more than `limit` bytes.
    pub fn decode(bytes: &[u8], limit: usize) -> Result<Self, WireError> {
        let mut get = FieldReader::new("frame", bytes);
        let body = get.named("length").u32()?;
        let kind = get.named("type").u16()?;
        get.named("reserved").u16()?;
        let id = get.named("request id").u64()?;
        let whole = u64::from(body) + HEAD_BYTES as u64;
        if whole > limit as u64 {
            return Err(WireError::Large { bytes: whole, limit });
        }
        Ok(Self { body, kind, id })
    }
}

/// A writer of the fields of a frame.
pub(crate) type Writer = FieldWriter<Vec<u8>>;

/// A whole frame: its head, and the body that `body` writes.
pub(crate) fn frame(kind: u16, id: u64, body: impl FnOnce(&mut Writer)) -> Vec<u8> {
    let mut put = Writer::new(Vec::with_capacity(64));
    put.u32(0).u16(kind).u16(0).u64(id);
    body(&mut put);
    let len = (put.at() - HEAD_BYTES) as u32;
    put.seek(0).u32(len);
    put.into_buffer()
}
