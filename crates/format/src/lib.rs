//! The on-disk format, byte by byte: superblock, journal, slot. `docs/format.md` draws it.
//!
//! Bytes in, values out, and back. No I/O, no clock, no threads, and no decisions about what to write when: those
//! belong to `ring` and `ingest`. Every decoder takes any bytes whatever and answers with a value or a
//! [`FormatError`]; none panics, none allocates more than the input is long times a small constant.
#![forbid(unsafe_code)]

mod birds_eye;
mod bytes;
mod check;
mod column;
mod error;
mod geometry;
mod index_copy;
mod index_directory;
mod journal;
mod name;
mod recovery_string;
mod slot;
mod superblock;
mod terms;

pub use birds_eye::{Glance, LEAST_PLACE, PlaceState, ViewPlace};
pub use bytes::{FieldBuffer, FieldReader, FieldWriter};
pub use check::{Key, crc32c};
pub use column::{
    Bits, Block, BlockBounds, Blocks, BlocksComing, Cell, CellBuffer, Cells, Class, Classes, Column,
    MAX_COLUMNS, MAX_TEXT, OpenOutline, Outline, OwnCells, Packed,
};
pub use error::FormatError;
pub use geometry::{Geometry, Region};
pub use index_copy::IndexCopy;
pub use index_directory::{DriveBlock, DriveEntry, DriveHead};
pub use journal::{
    Act, ActRecord, CommitHead, CommitWriter, ConditionHold, CopyRecord, HoldRecord, MAX_COMMIT, OpenEntries,
    OpenEntry, OpenSlot, PurgeRecord, Record, Records, SlotState, StreamRecord, TableEntry, commit_len,
    find_recovery, read_commit,
};
pub use name::Name;
pub use slot::*;
pub use superblock::{Codec, Superblock};
pub use terms::{Measured, Terms};
