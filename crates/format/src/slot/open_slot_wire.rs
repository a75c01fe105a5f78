//! Wire form of an open slot's index, part by part, as far as it has come. `open_index` assembles it at the
//! reader. Nothing is allocated here.

use super::columns::{ChunkHead, Plan};
use super::summary::ENTRY_BYTES;
use super::{Builder, DirectoryEntry};
use crate::bytes::SliceWriter;
use crate::column::BlockAddress;
use crate::crc32c;
use holdfast_base::{CHECK_BLOCK, MAX_SLOT, MAX_STREAMS};
use std::ops::Range;

/// Kinds of parts.
pub(super) const CLOSED: u16 = 1;
pub(super) const PENDING: u16 = 2;
pub(super) const STATE: u16 = 3;

/// A flag of a chunk: its rows are among what is told of it. Of the state: no column lacks cells.
pub(super) const ROWS: u16 = 1;
pub(super) const COMPLETE: u16 = 1;

/// Bytes of a part in front of what is told, of a chunk and of the state.
pub(super) const CHUNK_HEAD: usize = 24 + DirectoryEntry::BYTES;
pub(super) const STATE_HEAD: usize = 64;

/// Least piece of a chunk that is worth a part when there is room for little.
const LEAST_PIECE: usize = 4096;

/// Bytes of a reply that tells of an open slot: enough for the state of the largest dictionary, or for the rows of some chunk.
pub const OPEN_REPLY: usize = 96 << 10;

const _: () = {
    let checks = MAX_SLOT as usize / CHECK_BLOCK * 4;
    assert!(STATE_HEAD + checks + MAX_STREAMS * ENTRY_BYTES <= OPEN_REPLY);
};

/// What of an open slot is asked for.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenSlotQuery<'a> {
    /// The dictionary entry that it is about; none: all.
    pub entry: Option<u16>,
    /// Whether rows are wanted: of chunks that may have some of that entry.
    pub rows: bool,
    /// The columns of that entry that are wanted, by number.
    pub columns: &'a [u16],
}

/// How much of it has been told: the row that comes next, and bytes of what is told of its chunk.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct OpenCursor {
    /// The row.
    pub row: u32,
    /// The bytes.
    pub byte: u32,
}

impl From<u64> for OpenCursor {
    fn from(word: u64) -> Self {
        Self { row: (word >> 32) as u32, byte: word as u32 }
    }
}

impl From<OpenCursor> for u64 {
    fn from(OpenCursor { row, byte }: OpenCursor) -> Self {
        Self::from(row) << 32 | Self::from(byte)
    }
}

/// How much came of one reply.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OpenSlotPart {
    /// Bytes of parts.
    pub bytes: usize,
    /// Where to go on.
    pub cursor: OpenCursor,
    /// Whether that was all by now: the last part is the state.
    pub end: bool,
}

impl Builder {
    /// Tells what the open slot has behind `from`: writes parts to `out`, as far as there is room. What has no row is not told
    /// of. [`OPEN_REPLY`] bytes are enough to get on each time.
    pub fn write_open_slot(
        &mut self,
        buffer: &[u8],
        from: OpenCursor,
        ask: &OpenSlotQuery<'_>,
        out: &mut [u8],
    ) -> OpenSlotPart {
        let mut put = SliceWriter::new(out);
        let mut at = from;
        let first = self.directory.partition_point(|chunk| chunk.first_row + chunk.rows <= at.row);
        for number in first..self.directory.len() {
            if !self.tell_closed(buffer, number, ask, &mut at, &mut put) {
                return OpenSlotPart { bytes: put.at(), cursor: at, end: false };
            }
        }
        let closed = self.rows - self.pending.len as u32;
        at = OpenCursor { row: at.row.clamp(closed, self.rows), byte: 0 };
        let (first, all) = ((at.row - closed) as usize, self.pending.len);
        let end = OpenCursor { row: self.rows, byte: 0 };
        // Cells are told from the first pending row on, or not at all: then columns are of no use.
        let with_cells = first == 0 && !ask.columns.is_empty();
        let before = put.at();
        for complete in [with_cells || ask.columns.is_empty(), false] {
            let columns = if complete { ask.columns } else { &[] };
            if self.tell_pending(ask.rows, ask.entry, columns, first..all, &mut put)
                && self.tell_state(buffer, complete, &mut put)
            {
                return OpenSlotPart { bytes: put.at(), cursor: end, end: true };
            }
            put.rewind(before);
            if before > 0 {
                // A reply of their own may have room for them.
                return OpenSlotPart { bytes: before, cursor: at, end: false };
            }
        }
        let mut count = all - first;
        while !self.tell_pending(ask.rows, ask.entry, &[], first..first + count, &mut put) && count > 1 {
            put.rewind(before);
            count /= 2;
        }
        OpenSlotPart {
            bytes: put.at(),
            cursor: OpenCursor { row: at.row + count as u32, byte: 0 },
            end: false,
        }
    }

    /// Tells of a closed chunk, from where it was left off; whether that was all of it.
    fn tell_closed(
        &self,
        buffer: &[u8],
        number: usize,
        ask: &OpenSlotQuery<'_>,
        at: &mut OpenCursor,
        put: &mut SliceWriter<'_>,
    ) -> bool {
        let entry = &self.directory[number];
        if entry.first_row != at.row {
            *at = OpenCursor { row: entry.first_row, byte: 0 };
        }
        let rows = ask.rows && ask.entry.is_none_or(|wanted| entry.may_have(wanted));
        let start = self.slot_bytes - entry.offset as usize;
        let rows = if rows { &buffer[start..start + entry.bytes as usize] } else { &[] };
        let blocks = || self.attributes.blocks_of(number, ask.entry.unwrap_or(u16::MAX), ask.columns);
        let all = rows.len() + blocks().map(<[u8]>::len).sum::<usize>();
        let from = (at.byte as usize).min(all);
        let room = put.room().saturating_sub(CHUNK_HEAD) / 8 * 8;
        let here = (all - from).min(room);
        if put.room() < CHUNK_HEAD || here < (all - from).min(LEAST_PIECE) {
            return false;
        }
        put_chunk(put, CLOSED, !rows.is_empty(), entry, (all, from, here));
        // Pieces are all of it, one behind the other.
        let (mut skip, mut left) = (from, here);
        for bytes in std::iter::once(rows).chain(blocks()) {
            let passed = skip.min(bytes.len());
            let taken = left.min(bytes.len() - passed);
            put.bytes(&bytes[passed..passed + taken]);
            (skip, left) = (skip - passed, left - taken);
        }
        put.align(8);
        if from + here < all {
            at.byte = (from + here) as u32;
            return false;
        }
        *at = OpenCursor { row: entry.first_row + entry.rows, byte: 0 };
        true
    }

    /// Tells of some pending rows, as if they were a chunk; whether there was room. Of none nothing is told.
    fn tell_pending(
        &mut self,
        rows: bool,
        entry: Option<u16>,
        columns: &[u16],
        range: Range<usize>,
        put: &mut SliceWriter<'_>,
    ) -> bool {
        if range.is_empty() {
            return true;
        }
        let part = self.part(range.clone());
        let plan = Plan::new(&self.pending, range.clone(), part.streams().count());
        let closed = self.rows - self.pending.len as u32;
        let head = ChunkHead {
            first_row: closed + range.start as u32,
            payload_offset: part.payload_offset,
            payload_bytes: part.payload_bytes,
            sequence: self.id.sequence.0 as u32,
        };
        // Times are those of all pending rows: those of some lie within.
        let told = self.bounds.entry(&head, range.len(), 0, plan.bytes());
        let rows = rows && entry.is_none_or(|wanted| told.may_have(wanted));
        let before = put.at();
        if put.space(CHUNK_HEAD).is_none() {
            return false;
        }
        if rows {
            let Some(space) = put.space(plan.bytes()) else { return false };
            plan.write(space, &self.pending, &head, part.streams());
        }
        let place = BlockAddress {
            sequence: head.sequence,
            chunk: self.directory.len() as u32,
            entry: entry.unwrap_or(u16::MAX),
            column: 0,
        };
        if !self.attributes.pending_blocks(place, columns, put) {
            return false;
        }
        let (end, content) = (put.at(), put.at() - before - CHUNK_HEAD);
        put.seek(before);
        put_chunk(put, PENDING, rows, &told, (content, 0, content));
        put.seek(end);
        put.fits()
    }

    /// Tells how far all that came; whether there was room.
    fn tell_state(&self, buffer: &[u8], complete: bool, put: &mut SliceWriter<'_>) -> bool {
        let whole = (self.covered / CHECK_BLOCK).min(self.checks.len());
        let rest = whole * CHECK_BLOCK..self.covered;
        let checks = whole + usize::from(!rest.is_empty());
        let entries = self.entries.len();
        let bytes = STATE_HEAD + (checks * 4).next_multiple_of(8) + entries * ENTRY_BYTES;
        put.u16(STATE).u16(if complete { COMPLETE } else { 0 }).u32(bytes as u32);
        put.u32(self.rows).u32(self.covered as u32).u32(self.payload_at as u32).u32(self.chunk_rows as u32);
        put.u32(checks as u32).u32(entries as u32).u64(self.id.sequence.0).u64(self.id.epoch.0);
        put.u64(self.id.age.0).time(self.opened);
        self.checks[..whole].iter().for_each(|check| {
            put.u32(*check);
        });
        if !rest.is_empty() {
            put.u32(crc32c(&buffer[self.payload_at + rest.start..self.payload_at + rest.end]));
        }
        put.align(8);
        self.summaries().for_each(|entry| entry.put(put));
        put.fits()
    }
}

/// The head of a part that tells of a chunk: how many bytes are told of it in all, from where on this part has them, and how many.
fn put_chunk(
    put: &mut SliceWriter<'_>,
    kind: u16,
    rows: bool,
    entry: &DirectoryEntry,
    told: (usize, usize, usize),
) {
    let (all, from, here) = told;
    let bytes = CHUNK_HEAD + here.next_multiple_of(8);
    put.u16(kind).u16(if rows { ROWS } else { 0 }).u32(bytes as u32);
    put.u32(all as u32).u32(from as u32).u32(here as u32).u32(0);
    entry.put(put);
}
