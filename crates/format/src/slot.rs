//! A slot: header, summary, payload, index, footer. [`Builder`] makes one, [`Rebuild`] makes one from the
//! journal, the other modules read. `ingest` and `ring` decide what goes into which slot.

mod attribute_columns;
mod audit;
mod build;
mod chunk;
mod column_builder;
mod columns;
mod directory;
mod gap;
mod header;
mod journal_delta;
mod open_index;
mod open_slot_wire;
mod pending;
mod rebuild;
mod row;
mod run;
mod seal;
mod share;
mod stats;
mod summary;
mod view;

pub use attribute_columns::CellsAt;
pub use build::{Builder, Entry, SlotId};
pub use chunk::{Chunk, Rows};
pub use directory::{DirectoryEntry, decode_directory};
pub use gap::{Cause, Gap};
pub use header::{PartHeader, SlotFlags, footer_binds};
pub use journal_delta::Cursor;
pub use open_index::{OpenImage, OpenIndex};
pub use open_slot_wire::{OPEN_REPLY, OpenCursor, OpenSlotPart, OpenSlotQuery};
pub use rebuild::Rebuild;
pub use row::{Direction, Flags, Kind, Row};
pub use run::RunRoom;
pub use seal::{Sealed, restamp};
pub use share::{Coming, ElementLoad, on_medium, splinter};
pub use stats::{Counters, StreamKind};
pub use summary::{EntrySummary, Section, SectionKind, Summary};
pub use view::{check_image, check_payload_block};

pub(crate) use header::{HEADER_FIELDS, HEADER_SEQUENCE, HEADER_TAG};
pub(crate) use summary::{filter_sections, summary_bytes};

use holdfast_base::MAX_STREAMS;

/// Most rows of a chunk on any ring: a reader gets at one row by reading some ten kilobytes.
pub(crate) const MAX_CHUNK_ROWS: usize = 4096;

/// Most rows of a chunk in slots of `slot_bytes`.
pub(crate) fn chunk_rows(slot_bytes: u64) -> usize {
    MAX_CHUNK_ROWS.min((slot_bytes / 1024) as usize)
}

/// Most dictionary entries in slots of `slot_bytes`: they take at most an eighth of the slot.
pub(crate) fn max_entries(slot_bytes: u64) -> usize {
    MAX_STREAMS.min((slot_bytes / 2048) as usize)
}

/// Most columns of all dictionary entries together: their sections take at most a twentieth of the slot.
pub(crate) fn max_columns(slot_bytes: u64) -> usize {
    MAX_STREAMS.min((slot_bytes / 2048) as usize)
}

/// Most chunks of any slot: so that its directory, 64 bytes a chunk, is read at once by whoever reads a MiB at once.
const MAX_CHUNKS: usize = 16 << 10;

const _: () = assert!(MAX_CHUNKS * DirectoryEntry::BYTES <= 1 << 20);

/// Most bytes of a summary in slots of `slot_bytes`.
pub(crate) fn most_summary(slot_bytes: u64) -> usize {
    summary::summary_bytes(max_entries(slot_bytes), max_columns(slot_bytes))
}

/// Most chunks of a slot. A chunk of many rows has more than 4 KiB unless they are nearly all alike; the directory
/// is allocated for as many, and a slot that has them is sealed.
pub(crate) fn max_chunks(slot_bytes: usize) -> usize {
    (slot_bytes / 4096).clamp(256, MAX_CHUNKS)
}
