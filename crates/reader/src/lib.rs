//! Reader of rings: the same results through a recorder and, where none runs, straight from the device.
//!
//! Here belong the plan of slots to read, read-ahead, verification, the assembly of elements out of fragments, and copies of
//! indexes on a faster drive. Not here: the socket (crate `protocol`), conditions (crate `query`), and whatever a command
//! does with an element. `ring_reader` is the entry; it reads over `session`, `feeder` and `access`.
#![forbid(unsafe_code)]

mod access;
mod assemble;
mod backfill;
mod beside;
mod birds_eye_cache;
mod direct;
mod feeder;
mod fetch;
mod header_scan;
mod index_drive;
mod item;
mod live;
mod losses;
mod open;
mod output;
mod partial_elements;
mod plan;
mod pump;
mod ring_reader;
mod search;
mod session;
mod since;
mod slot;
mod takeover;
mod window;
mod work;

pub use beside::Beside;
pub use index_drive::{IndexDrive, Owner};
pub use item::{Element, Item, Missing, Plan, PlannedSlot, ReadReport, Selection};
pub use losses::{Loss, Losses};
pub use open::OpenSlots;
pub use partial_elements::Torn;
pub use ring_reader::RingReader;
pub use search::{NotThere, SlotView};
pub use since::Since;
