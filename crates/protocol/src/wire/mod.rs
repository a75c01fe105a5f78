//! Wire types of the socket: frames, requests, replies, status. docs/protocol.md draws every byte.
//!
//! Only bytes and values: no sockets. Every decoder takes arbitrary bytes and returns a value or a [`WireError`]. No decoder panics
//! or allocates more than a small multiple of its input.

mod error;
mod figures;
mod frame;
mod message;
mod order;
mod reply;
mod request;
mod ring;
mod status;
mod status_bytes;

pub use error::WireError;
pub use figures::{Figure, FigureValue, Figures, Metric};
pub use frame::{FrameHead, kind};
pub use message::{
    HEAD_BYTES, LaneFile, MAX_FRAME, MAX_PENDING, MAX_PINS, MAX_RANGES, MAX_REQUEST, MAX_VALUES, OpenSlot,
    OpenSlotProjection, PIECE, Purpose, Reply, Request, VERSION, Welcome,
};
pub use status::{
    AwayStatus, BufferStatus, DeviceState, DeviceStatus, Dropped, LATENCY_BUCKETS, LaneStatus, Latency,
    MarginStatus, RecentSource, RecentStatus, RecorderStatus, SourceState, SourceStatus, Status, ViewStatus,
};
