//! Reader of rings: the same results through a recorder and, where none runs, straight from the device.
//!
//! Here belong the plan of slots to read, read-ahead, verification, the assembly of elements out of fragments, and copies of
//! indexes on a faster drive. Not here: the socket (crate `protocol`), conditions (crate `query`), and whatever a command
//! does with an element. `ring_reader` is the entry; it reads over `session`, `read_ahead` and `access`.
#![forbid(unsafe_code)]

mod access;
mod assembler;
mod backfill;
mod birds_eye_cache;
mod direct;
mod error;
mod expiry;
mod header_scan;
mod index_drive;
mod interrupt;
mod item;
mod live;
mod losses;
mod open_slots;
mod output;
mod partial_elements;
mod plan;
mod read_ahead;
mod read_queue;
mod read_request;
mod recovery_cache;
mod ring_reader;
mod row_filter;
mod row_position;
mod session;
mod slot_ages;
mod slot_head;
mod slot_lookup;
mod slot_read;
mod slot_view;
mod takeover;
mod window;

pub use error::ReaderError;
pub use expiry::Expiry;
pub use index_drive::{IndexDrive, WriterLock};
pub use item::{Element, Item, Missing, Plan, PlannedSlot, ReadReport, Selection};
pub use losses::{Loss, LossMerger};
pub use open_slots::OpenSlots;
pub use partial_elements::PartialElements;
pub use recovery_cache::RecoveryCache;
pub use ring_reader::RingReader;
pub use slot_view::{SlotError, SlotView};
