//! The slot builder: elements in, a sealed slot out. This file has the work of every element; many rows at
//! once are in `run`, sealing in `seal`, journaling in `journal_delta`, attribute cells in
//! `attribute_columns`. All memory is allocated by [`Builder::new`] and [`Builder::prepare`].

use super::attribute_columns::{AttributeColumns, Cost};
use super::columns::{ChunkHead, ChunkStream, Plan, ROW_BYTES, worst};
use super::directory::Bounds;
use super::pending::Pending;
use super::stats::EntryStats;
use super::{
    CellsAt, Counters, DirectoryEntry, Gap, Kind, Row, StreamKind, chunk_rows, max_chunks, max_entries,
};
use crate::bytes::{SliceWriter, blocks};
use crate::geometry::check_slot_size;
use crate::journal::{OpenEntries, OpenEntry};
use crate::slot::summary::summary_bytes;
use crate::{Classes, FormatError, Name, OpenOutline, crc32c};
use holdfast_base::{
    Age, BLOCK, CHECK_BLOCK, Epoch, LaneNo, MAX_SLOT, MIN_SLOT, Ordinal, RingId, Sequence, StreamId,
    Timestamp, copy,
};

/// Rows below which closing a chunk early is not worth its header.
pub(super) const FEW_ROWS: usize = 64;

/// What a slot is, known when it is opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SlotId {
    /// The ring.
    pub ring: RingId,
    /// Its group.
    pub group: RingId,
    /// The lane.
    pub lane: LaneNo,
    /// The slot's sequence.
    pub sequence: Sequence,
    /// The run that writes it.
    pub epoch: Epoch,
    /// When it will expire.
    pub age: Age,
}

/// A stream as the slot's dictionary has it when the slot is opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Entry {
    /// The stream.
    pub stream: StreamId,
    /// What its elements are.
    pub kind: StreamKind,
    /// Its name.
    pub name: Name,
    /// Version of the preamble in force; 0: none.
    pub preamble: u32,
    /// What the cells of its elements are, in the order of its schema; none: the slot gets no columns of it.
    pub classes: Classes,
    /// What it has received and lost so far.
    pub counters: Counters,
    /// The age of the slot that an element began in of which only fragments have come.
    pub began: Option<Age>,
}

/// A dictionary entry while the slot is open; its counters are counted on.
#[derive(Clone, Copy, Debug)]
pub(super) struct EntryState {
    pub(super) entry: Entry,
    pub(super) stats: EntryStats,
    /// The ordinal that the next row is expected to have.
    pub(super) expected: u64,
    /// The chunk in which it had a row last.
    chunk: u32,
    /// The element that began in this slot of which only fragments have come.
    under_way: Option<Ordinal>,
    /// What was expected before its first row in that chunk.
    pub(super) chunk_first: u64,
    /// Its rows in that chunk.
    pub(super) chunk_rows: u32,
}

impl EntryState {
    /// Begins its part of a chunk with the row of that ordinal, unless it has rows there already; whether it did.
    #[inline]
    pub(super) fn enter(&mut self, chunk: usize, ordinal: u64) -> bool {
        let chunk = chunk as u32;
        if self.chunk == chunk {
            return false;
        }
        self.chunk = chunk;
        self.chunk_rows = 0;
        self.chunk_first = ordinal;
        self.expected = ordinal;
        true
    }

    /// Follows elements from their first fragment to their last.
    fn follow(&mut self, row: &Row, age: Age) {
        match row.kind {
            Kind::Fragment if row.flags.has(super::Flags::LAST) => {
                let under_way = self.under_way.take();
                let began = self.entry.began.take().filter(|_| under_way.is_none_or(|it| it == row.ordinal));
                // In a copy there may be the end of one whose beginning is not copied with it: it is before, if it is anywhere.
                let before = Age(age.0.saturating_sub(1));
                let began = if row.number == 0 { age } else { began.unwrap_or(before) };
                self.stats.back = self.stats.back.max(age.0.saturating_sub(began.0));
            }
            Kind::Fragment if row.number == 0 => {
                (self.entry.began, self.under_way) = (Some(age), Some(row.ordinal));
            }
            Kind::Abort => (self.entry.began, self.under_way) = (None, None),
            Kind::Element | Kind::Fragment | Kind::Gap | Kind::Note => {}
        }
    }

    /// Whether it has rows in that chunk.
    #[inline]
    pub(super) fn is_in(&self, chunk: usize) -> bool {
        self.chunk == chunk as u32
    }
}

/// Fills one slot after the other. It never owns the slot's buffer, which moves to the medium and back; the buffer
/// that `open` got must be passed to every call until `seal`.
///
/// ```text
/// header, summary (left free) | payload → … ← chunks, youngest first |
/// ```
///
/// A row that does not describe exactly what was written, or bytes beyond [`Builder::room`], are errors in the
/// program and panic.
#[derive(Debug)]
pub struct Builder {
    pub(super) slot_bytes: usize,
    pub(super) chunk_rows: usize,
    max_entries: usize,
    pub(super) max_chunks: usize,
    pub(super) id: SlotId,
    pub(super) opened: Timestamp,
    /// Where the payload begins.
    pub(super) payload_at: usize,
    /// Bytes of payload written.
    pub(super) payload: usize,
    /// Bytes of payload that rows describe.
    pub(super) covered: usize,
    /// Where the pending chunk's payload begins.
    pub(super) chunk_payload: usize,
    /// Rows, the pending ones included.
    pub(super) rows: u32,
    /// Bytes of closed chunks at the end of the buffer.
    pub(super) chunk_bytes: usize,
    pub(super) entries: Vec<EntryState>,
    /// The dictionary as the journal's record of the open slot has it.
    pub(super) opening: Vec<u8>,
    /// A CRC32C for every whole 64 KiB of payload.
    pub(super) checks: Vec<u32>,
    /// Closed chunks; `offset` is how far before the end of the buffer one begins.
    pub(super) directory: Vec<DirectoryEntry>,
    pub(super) pending: Pending,
    /// Dictionary entries that have rows in the pending chunk.
    pub(super) streams: Vec<u16>,
    pub(super) bounds: Bounds,
    /// Repeated for rows without an event time, so that they do not widen the column.
    pub(super) last_event: i64,
    pub(super) attributes: AttributeColumns,
}

impl Builder {
    /// A builder for slots of `slot_bytes` with at most `max_entries` streams. A size that is not a slot's is
    /// rounded to one, and the number of streams is limited to [`Geometry::max_streams`](crate::Geometry::max_streams).
    pub fn new(slot_bytes: u64, max_entries_wanted: usize) -> Self {
        let slot_bytes = slot_bytes.clamp(MIN_SLOT, MAX_SLOT);
        let slot_bytes =
            if check_slot_size(slot_bytes).is_ok() { slot_bytes } else { 1 << slot_bytes.ilog2() };
        let max_entries = max_entries(slot_bytes).min(max_entries_wanted.max(1));
        let chunk_rows = chunk_rows(slot_bytes);
        let slot_bytes = slot_bytes as usize;
        let max_chunks = max_chunks(slot_bytes);
        Self {
            slot_bytes,
            chunk_rows,
            max_entries,
            max_chunks,
            id: SlotId::default(),
            opened: Timestamp(0),
            payload_at: 0,
            payload: 0,
            covered: 0,
            chunk_payload: 0,
            rows: 0,
            chunk_bytes: 0,
            entries: Vec::with_capacity(max_entries),
            opening: Vec::with_capacity(max_entries * OpenEntries::BYTES),
            checks: Vec::with_capacity(slot_bytes / CHECK_BLOCK + 1),
            directory: Vec::with_capacity(max_chunks),
            pending: Pending::new(),
            streams: Vec::with_capacity(max_entries),
            bounds: Bounds::EMPTY,
            last_event: 0,
            attributes: AttributeColumns::none(),
        }
    }

    /// Allocates what the columns of these dictionary entries take, in place of what was allocated for others: to be called
    /// before capture, and where a schema has changed, while no slot is open. Refused where they are more than
    /// [`Geometry::max_columns`](crate::Geometry::max_columns), or the cells of an element might take more than an eighth of
    /// the slot.
    pub fn prepare(&mut self, entries: &[Entry]) -> Result<(), FormatError> {
        self.attributes =
            AttributeColumns::prepare(self.slot_bytes as u64, entries.iter().map(|entry| entry.classes))?;
        self.entries.clear();
        Ok(())
    }

    /// The same where it is no matter when memory is allocated: no more than `most` bytes of it, and that as cells come. Where
    /// they would take more, slots are full sooner; [`Builder::column_room`] tells.
    pub fn prepare_within(&mut self, entries: &[Entry], most: usize) -> Result<(), FormatError> {
        let classes = entries.iter().map(|entry| entry.classes);
        self.attributes = AttributeColumns::prepare_within(self.slot_bytes as u64, classes, most)?;
        self.entries.clear();
        Ok(())
    }

    /// Bytes of columns that a slot may have, as far as it has room for them.
    pub fn column_room(&self) -> usize {
        self.attributes.most()
    }

    /// Bytes of memory that [`Builder::prepare`] takes for columns of these classes, a dictionary entry each, in slots of
    /// `slot_bytes`.
    pub fn column_memory(slot_bytes: u64, entries: &[Classes]) -> Result<usize, FormatError> {
        AttributeColumns::memory(slot_bytes, entries.iter().copied())
    }

    /// What the open slot has so far of a column of a dictionary entry, and whether one of the cells that have these
    /// [hashes](crate::Cell::hash) may be among it: what an [`Outline`](crate::Outline) tells of it once it is sealed. `None`: it has
    /// no such column.
    pub fn outline(&self, entry: u16, column: u16, hashes: &[u64]) -> Option<OpenOutline> {
        self.attributes.outline(entry, column, hashes)
    }

    /// Begins a slot in `buffer`, whose old contents do not matter. What the builder held before is forgotten.
    pub fn open(
        &mut self,
        buffer: &mut [u8],
        id: SlotId,
        opened: Timestamp,
        entries: &[Entry],
    ) -> Result<(), FormatError> {
        if buffer.len() < self.slot_bytes {
            return Err(FormatError::OutOfBounds {
                structure: "slot",
                at: buffer.len() as u64,
                what: "the buffer",
            });
        }
        if entries.len() > self.max_entries {
            let (count, limit) = (entries.len() as u64, self.max_entries as u64);
            return Err(FormatError::TooMany { what: "streams in slots of this size", count, limit });
        }
        self.attributes.open(entries)?;
        self.id = id;
        self.opened = opened;
        let columns = entries.iter().map(|entry| entry.classes.len()).sum();
        self.payload_at = blocks(BLOCK + summary_bytes(entries.len(), columns));
        (self.payload, self.covered, self.chunk_payload) = (0, 0, 0);
        (self.rows, self.chunk_bytes) = (0, 0);
        self.entries.clear();
        self.checks.clear();
        self.directory.clear();
        self.pending.len = 0;
        self.streams.clear();
        self.bounds = Bounds::EMPTY;
        self.last_event = 0;
        self.opening.resize(entries.len() * OpenEntries::BYTES, 0);
        let mut put = SliceWriter::new(&mut self.opening);
        for entry in entries {
            let back = entry.began.map_or(0, |began| id.age.0.saturating_sub(began.0));
            let Entry { stream, preamble, counters, .. } = *entry;
            OpenEntry { stream, preamble, counters, back }.put(&mut put);
            self.entries.push(EntryState {
                entry: *entry,
                stats: EntryStats::EMPTY,
                expected: entry.counters.next_ordinal.0,
                chunk: u32::MAX,
                under_way: None,
                chunk_first: 0,
                chunk_rows: 0,
            });
        }
        Ok(())
    }

    /// Makes the open slot as young as that: it is to hold something younger than what it was opened for.
    pub fn grow_younger(&mut self, age: Age) {
        let more = age.0.saturating_sub(self.id.age.0);
        self.id.age = Age(self.id.age.0 + more);
        for state in self.entries.iter_mut().filter(|state| state.stats.back > 0) {
            state.stats.back += more;
        }
    }

    /// Bytes of payload that can still be written so that one more row for them fits. 0: seal.
    #[inline]
    pub fn room(&self) -> usize {
        self.room_with(self.pending.len, self.streams.len(), Cost::default())
    }

    /// The room if there were so many pending rows of so many streams, and cells that take so much more.
    #[inline]
    pub(super) fn room_with(&self, rows: usize, streams: usize, cells: Cost) -> usize {
        if self.directory.len() >= self.max_chunks || self.attributes.left(cells).is_none() {
            return 0;
        }
        // Payload checks as if the whole slot were payload; the pending rows, and one more, at their widest.
        let index = self.slot_bytes / CHECK_BLOCK * 4
            + DirectoryEntry::BYTES * (self.directory.len() + 1)
            + self.chunk_bytes
            + self.attributes.reserved(cells)
            + worst(rows + 1, streams + 1).next_multiple_of(8);
        (self.slot_bytes - BLOCK).saturating_sub(blocks(index) + self.payload_at + self.payload)
    }

    /// Appends `bytes` to the payload.
    #[inline]
    pub fn write(&mut self, buffer: &mut [u8], bytes: &[u8]) {
        let at = self.payload_at + self.payload;
        let until_check = CHECK_BLOCK - self.payload % CHECK_BLOCK;
        if bytes.len() < until_check {
            copy(&mut buffer[at..at + bytes.len()], bytes);
            self.payload += bytes.len();
        } else {
            self.write_across(buffer, bytes);
        }
    }

    /// Copies and checks 64 KiB at a time, so that what is checked is still in the cache.
    #[inline(never)]
    fn write_across(&mut self, buffer: &mut [u8], mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let piece = bytes.len().min(CHECK_BLOCK - self.payload % CHECK_BLOCK);
            let at = self.payload_at + self.payload;
            copy(&mut buffer[at..at + piece], &bytes[..piece]);
            self.advance(buffer, piece);
            bytes = &bytes[piece..];
        }
    }

    /// The part of the buffer that the next payload bytes belong in, [`Builder::room`] long: for a source that reads
    /// straight into the slot. [`Builder::advance`] then says how much it was.
    pub fn spare<'a>(&self, buffer: &'a mut [u8]) -> &'a mut [u8] {
        let at = self.payload_at + self.payload;
        &mut buffer[at..at + self.room()]
    }

    /// Takes `len` bytes that are in [`Builder::spare`] into the payload.
    pub fn advance(&mut self, buffer: &[u8], len: usize) {
        self.payload += len;
        while self.payload / CHECK_BLOCK > self.checks.len() {
            let at = self.payload_at + self.checks.len() * CHECK_BLOCK;
            self.checks.push(crc32c(&buffer[at..at + CHECK_BLOCK]));
        }
    }

    /// Describes the `meta + len` bytes that follow the last row's. More may have been written already, for rows to come.
    ///
    /// # Panics
    ///
    /// When so many bytes were not written, the dictionary has no such entry, or the row has cells: errors in the program.
    #[inline]
    pub fn row(&mut self, buffer: &mut [u8], row: &Row) {
        self.row_with(buffer, row, CellsAt::NONE);
    }

    /// The same of a stream with columns: where the row [completes an element](Row::completes_element), with the first of
    /// `cells`.
    ///
    /// # Panics
    ///
    /// As [`Builder::row`]; where the cells are not there, or not those of the stream's columns.
    #[inline]
    pub fn row_with(&mut self, buffer: &mut [u8], row: &Row, cells: CellsAt<'_>) {
        assert!(
            self.payload - self.covered >= row.payload(),
            "a row must describe what was written since the last"
        );
        let gap = if row.kind == Kind::Gap { self.gap(buffer, row) } else { None };
        let entry = &mut self.entries[usize::from(row.stream)];
        entry.stats.count(row, gap.as_ref());
        entry.entry.counters.count(row, gap.as_ref());
        if row.kind != Kind::Element {
            entry.follow(row, self.id.age);
        }
        let ordinal = if row.kind == Kind::Note { entry.expected } else { row.ordinal.0 };
        if entry.enter(self.directory.len(), ordinal) {
            self.streams.push(row.stream);
        }
        entry.chunk_rows += 1;
        let excess = ordinal.wrapping_sub(entry.expected);
        entry.expected = ordinal.wrapping_add(u64::from(row.ends_element()));
        if row.flags.has(super::Flags::EVENT) {
            self.last_event = row.event.0;
        }
        if !entry.entry.classes.is_empty() && row.completes_element() {
            let cost = self.attributes.cost(row.stream, cells, 1);
            self.attributes.add(row.stream, cells, 1, cost);
        }
        self.bounds.count(row);
        self.pending.push(row, excess, self.last_event);
        self.covered += row.payload();
        self.rows += 1;
        if self.is_chunk() || self.worth_closing() {
            self.close_chunk(buffer);
        }
    }

    /// The data of a gap whose row is next.
    #[cold]
    fn gap(&self, buffer: &[u8], row: &Row) -> Option<Gap> {
        let end = self.payload_at + self.covered + row.payload();
        Gap::decode(&buffer[end - row.len as usize..end]).ok()
    }

    /// Whether the pending rows are as many as a chunk has, or have as many texts as there is a place for.
    #[inline]
    pub(super) fn is_chunk(&self) -> bool {
        self.pending.len == self.chunk_rows || self.attributes.is_full()
    }

    /// Near the end of the slot the pending rows, reserved at their widest, take more than what is left: their true
    /// size makes room.
    #[inline]
    fn worth_closing(&self) -> bool {
        self.worth_closing_with(self.pending.len, Cost::default(), self.room())
    }

    /// The same of so many pending rows, with cells that take so much more, and the room that there is then.
    #[inline]
    pub(super) fn worth_closing_with(&self, rows: usize, cells: Cost, room: usize) -> bool {
        let room = room.min(self.attributes.left(cells).unwrap_or(0));
        rows >= FEW_ROWS && ROW_BYTES * rows + self.attributes.pending() + cells.cells > room
    }

    /// Makes a chunk of the pending rows, in front of the chunks at the end of the buffer.
    #[inline(never)]
    pub(super) fn close_chunk(&mut self, buffer: &mut [u8]) {
        let rows = self.pending.len;
        if rows == 0 {
            return;
        }
        let plan = Plan::new(&self.pending, 0..rows, self.streams.len());
        let entries = &self.entries;
        let streams = self.streams.iter().map(|number| {
            let state = &entries[usize::from(*number)];
            ChunkStream { entry: *number, rows: state.chunk_rows, first: state.chunk_first }
        });
        let head = ChunkHead {
            first_row: self.rows - rows as u32,
            payload_offset: self.chunk_payload as u32,
            payload_bytes: (self.covered - self.chunk_payload) as u32,
            sequence: self.id.sequence.0 as u32,
        };
        let end = self.slot_bytes - self.chunk_bytes;
        plan.write(&mut buffer[end - plan.bytes()..end], &self.pending, &head, streams);
        self.attributes.close(head.sequence, self.directory.len() as u32);
        self.chunk_bytes += plan.bytes();
        self.directory.push(self.bounds.entry(&head, rows, self.chunk_bytes, plan.bytes()));
        self.chunk_payload = self.covered;
        self.pending.len = 0;
        self.streams.clear();
        self.bounds = Bounds::EMPTY;
    }

    /// Whether the slot has no row yet.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Rows so far.
    pub fn rows(&self) -> u32 {
        self.rows
    }

    /// Bytes of payload so far.
    pub fn payload_bytes(&self) -> usize {
        self.payload
    }

    /// Copies of the payload that rows describe what lies from byte `at` of the slot on; zeros elsewhere. `false`: none does.
    pub fn copy_payload(&self, buffer: &[u8], at: usize, into: &mut [u8]) -> bool {
        let from = self.payload_at.max(at);
        let end = (self.payload_at + self.covered).min(at + into.len());
        if from >= end {
            return false;
        }
        into[..from - at].fill(0);
        into[from - at..end - at].copy_from_slice(&buffer[from..end]);
        into[end - at..].fill(0);
        true
    }

    /// Bytes written since the last row.
    pub fn uncommitted(&self) -> usize {
        self.payload - self.covered
    }

    /// The open slot's sequence.
    pub fn sequence(&self) -> Sequence {
        self.id.sequence
    }

    /// What the open slot is.
    pub fn id(&self) -> SlotId {
        self.id
    }

    /// When the slot was opened.
    pub fn opened(&self) -> Timestamp {
        self.opened
    }

    /// The slot size.
    pub fn slot_bytes(&self) -> usize {
        self.slot_bytes
    }

    /// Dictionary entries of the open slot.
    pub fn entries(&self) -> usize {
        self.entries.len()
    }

    /// What the stream of a dictionary entry has received and lost by now; zeros for an entry that is not there.
    pub fn counters(&self, entry: u16) -> Counters {
        self.entries.get(usize::from(entry)).map(|state| state.entry.counters).unwrap_or_default()
    }

    /// The age of the slot that an element of a dictionary entry began in of which only fragments have come.
    pub fn began(&self, entry: u16) -> Option<Age> {
        self.entries.get(usize::from(entry)).and_then(|state| state.entry.began)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Key;
    use crate::slot::SlotFlags;
    use holdfast_base::{Ordinal, SlotNo};

    /// What the builder has allocated.
    fn capacities(builder: &Builder) -> [usize; 6] {
        [
            builder.entries.capacity(),
            builder.opening.capacity(),
            builder.checks.capacity(),
            builder.directory.capacity(),
            builder.streams.capacity(),
            builder.max_chunks,
        ]
    }

    #[test]
    fn nothing_is_allocated_after_the_builder_was_made() {
        for (size, slot_bytes) in [(0, 64 << 10), (0, 1 << 20), (1, 64 << 10), (20, 1 << 20), (3000, 1 << 20)]
        {
            let mut builder = Builder::new(slot_bytes, 8);
            let mut buffer = vec![0; slot_bytes as usize];
            let before = capacities(&builder);
            for sequence in 1..3 {
                let id = SlotId { sequence: Sequence(sequence), ..SlotId::default() };
                builder.open(&mut buffer, id, Timestamp(0), &[Entry::default(); 8]).unwrap();
                while builder.room() > 0 {
                    let len = builder.room().min(size);
                    builder.write(&mut buffer, &vec![0; len]);
                    let ordinal = Ordinal(builder.rows().into());
                    let stream = (builder.rows() % 8) as u16;
                    builder.row(&mut buffer, &Row { stream, ordinal, len: len as u32, ..Row::default() });
                }
                builder.seal(&mut buffer, &Key([0; 32]), SlotNo(0), Timestamp(0), SlotFlags::default());
                assert_eq!(capacities(&builder), before, "elements of {size} bytes");
            }
        }
    }

    #[test]
    fn sizes_that_no_slot_has_become_ones_that_slots_have() {
        for (wanted, made) in [(0, 64 << 10), (100_000, 64 << 10), (3 << 20, 2 << 20), (1 << 40, 256 << 20)] {
            assert_eq!(Builder::new(wanted, 1).slot_bytes(), made, "{wanted}");
        }
    }
}
