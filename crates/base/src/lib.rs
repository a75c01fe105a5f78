//! Foundation of every other crate: units, ids, the clock, and the limits.
//!
//! No I/O, no threads, no formats. A type belongs here when two crates that do not know each other must
//! agree on it.
#![forbid(unsafe_code)]

mod clock;
mod copy;
mod ids;
mod limits;
mod units;
mod words;

pub use clock::{Clock, ManualClock, SystemClock};
pub use copy::{append, copy};
pub use ids::{Age, Epoch, HoldId, LaneNo, Ordinal, RingId, Sequence, SlotNo, StreamId};
pub use limits::*;
pub use units::{ByteSize, Rate, Timestamp, UnitError};
pub use words::{grouped, many, plural, typed};
