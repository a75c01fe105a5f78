//! The protocol of a recorder's socket: frames, requests, replies. docs/protocol.md draws every byte.
//!
//! Only bytes and values: no sockets. Every decoder takes any bytes whatever and answers with a value or a
//! [`WireError`]; none panics, none allocates more than a small multiple of the input.

mod bytes;
mod frame;
mod message;
mod order;
mod reply;
mod request;
mod ring;
mod status;
mod status_bytes;

pub use bytes::WireError;
pub use frame::{Head, kind};
pub use message::{
    HEAD_BYTES, LaneFile, MAX_FRAME, MAX_PENDING, MAX_PINS, MAX_RANGES, MAX_REQUEST, MAX_VALUES,
    OpenSequence, OpenWanted, PIECE, Purpose, Reply, Request, VERSION, Welcome,
};
pub use status::{
    AwayStatus, BufferStatus, DeviceState, DeviceStatus, Dropped, LATENCY_BUCKETS, LaneStatus, LatelySource,
    LatelyStatus, Latency, MarginStatus, RecorderStatus, SourceState, SourceStatus, Status, ViewStatus,
};
