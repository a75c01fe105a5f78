//! Vocabulary that every other crate needs: units, ids, the clock, limits, words for numbers and times, and the error that
//! people read.
//!
//! No I/O, no threads, no formats. A type belongs here when two crates that do not know each other must
//! agree on it.
#![forbid(unsafe_code)]

mod clock;
mod copy;
pub mod failure;
mod file_kind;
mod ids;
mod interrupts;
mod limits;
pub mod times;
mod units;
mod words;

pub use clock::{Clock, ManualClock, SystemClock};
pub use copy::{append, copy};
pub use file_kind::FileKind;
pub use ids::{Age, Epoch, HoldId, LaneNo, OrderId, Ordinal, RingId, Sequence, SlotNo, StreamId};
pub use interrupts::{Interrupt, Interrupts, REPEATED_WITHIN, ignores_hang_ups};
pub use limits::*;
pub use units::{ByteSize, Rate, Timestamp, UnitError};
pub use words::{clean, counted, grouped, many, plural, typed};
