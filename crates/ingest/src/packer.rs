//! Packer: rows of batches in, a sealed slot out. Pure: no I/O, no clock, no threads, no allocation after `new`.
//!
//! It decides what becomes one row, what a fragment, and what waits for the next slot. When a slot is opened,
//! sealed or journaled is the capture thread's decision; how a row is laid out is the format's.
//!
//! The rules: rows of a batch are packed in order. An element of up to C/8 is one row, if no slot ends in it and, where
//! it arrives in pieces, nothing comes between them and no [`Packer::cut`] asks for what is there; otherwise, and always
//! above C/8, it becomes fragments of at most C/8. Up to C/1024 of it, metadata included, fit into the slot that it begins
//! in: what is smaller is whole there or waits for the next slot, as gaps, notes and aborts always do. So C/1024 at most
//! stays empty at a slot's end. A fragment repeats its element's flags, event time and `extra`; metadata is in front of all
//! data, and the tag and the event time that count are the last fragment's.

use crate::batch::{Batch, BatchRow, Content};
use holdfast_base::{SlotNo, Timestamp};
use holdfast_format::{
    Builder, CellsAt, CommitWriter, Cursor, Entry, Flags, FormatError, Key, Kind, OpenCursor, OpenSlotPart,
    OpenSlotQuery, Row, RunRoom, Sealed, SlotFlags, SlotId, splinter,
};
use std::ops::{DerefMut, Range};

/// Rows that are packed at once at most: they stay in the cache from one look at them to the next.
const RUN_ROWS: usize = 256;

/// Where in a batch packing goes on: a row, how many of its bytes are packed already, and the cell of the next element that
/// is completed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BatchPosition {
    row: u32,
    byte: u32,
    cell: u32,
}

/// How far a push came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Progress {
    /// All of the batch is in the slot: give it back.
    Done,
    /// The slot is full: seal it, open another, and push the same batch from there.
    Full(BatchPosition),
}

/// An element of which a part is packed and more may come.
#[derive(Clone, Copy, Debug, Default)]
struct OpenElement {
    /// Its fragments so far, in this slot and earlier ones.
    number: u32,
    /// The bytes of data in them.
    offset: u64,
    /// When the last of them arrived.
    until: Timestamp,
}

/// Bytes that are in the payload and have no row yet: what came last.
#[derive(Clone, Copy, Debug)]
struct Pending {
    entry: u16,
    /// What the row would be if it were made now. `len` and `meta` are what is there.
    row: Row,
}

/// Fills slots from batches. It owns the open slot's buffer until the slot is sealed.
#[derive(Debug)]
pub struct Packer<B> {
    builder: Builder,
    buffer: Option<B>,
    /// C/8: the most bytes of data of a row.
    limit: usize,
    /// The most bytes that stay empty at a slot's end because an element did not fit.
    splinter: usize,
    /// By dictionary entry: entries keep their numbers while a recorder runs.
    unfinished: Vec<OpenElement>,
    pending: Option<Pending>,
    meta_left_out: u64,
}

/// A row of a batch.
#[derive(Clone, Copy)]
struct Piece<'a> {
    /// Of which dictionary entry.
    entry: u16,
    row: &'a BatchRow,
    /// Its bytes: metadata and data.
    bytes: &'a [u8],
    /// The cells of the next element that is completed, by this row or a later one.
    cells: CellsAt<'a>,
}

/// What one row of a batch came to.
enum Packed {
    All,
    /// As many of its bytes.
    Part(usize),
}

impl<B: DerefMut<Target = [u8]>> Packer<B> {
    /// A packer for slots of `slot_bytes` and at most `max_entries` streams.
    pub fn new(slot_bytes: u64, max_entries: usize) -> Self {
        let builder = Builder::new(slot_bytes, max_entries);
        let (limit, splinter) = (builder.slot_bytes() / 8, splinter(slot_bytes) as usize);
        let unfinished = vec![OpenElement::default(); max_entries.max(1)];
        Self { builder, buffer: None, limit, splinter, unfinished, pending: None, meta_left_out: 0 }
    }

    /// Allocates what the columns of these entries take: before capture, while no slot is open.
    pub fn prepare(&mut self, entries: &[Entry]) -> Result<(), FormatError> {
        self.builder.prepare(entries)
    }

    /// Begins a slot in `buffer`. An entry must stand for the same stream in every slot of a run.
    ///
    /// When that is not possible, the buffer comes back with the reason. A slot that was open is forgotten.
    pub fn open(
        &mut self,
        mut buffer: B,
        id: SlotId,
        opened: Timestamp,
        entries: &[Entry],
    ) -> Result<(), (B, FormatError)> {
        self.pending = None;
        if let Err(error) = self.builder.open(&mut buffer, id, opened, entries) {
            return Err((buffer, error));
        }
        self.buffer = Some(buffer);
        Ok(())
    }

    /// Whether a slot is open.
    pub fn is_open(&self) -> bool {
        self.buffer.is_some()
    }

    /// What the open slot has: rows, bytes, counters, room.
    pub fn slot(&self) -> &Builder {
        &self.builder
    }

    /// Whether there is nothing in the open slot, not even bytes without a row.
    pub fn is_empty(&self) -> bool {
        self.builder.is_empty() && self.builder.uncommitted() == 0
    }

    /// Elements whose metadata was left out because it alone is over C/8: possible in slots under 512 KiB only.
    pub fn meta_left_out(&self) -> u64 {
        self.meta_left_out
    }

    /// Packs the rows of `batch`, which are of the stream of dictionary entry `entry`, from `from` on. Without an
    /// open slot, or an entry of that number in it, nothing fits.
    pub fn push(&mut self, entry: u16, batch: &Batch, from: BatchPosition) -> Progress {
        let Some(mut buffer) = self.buffer.take() else { return Progress::Full(from) };
        let progress = if usize::from(entry) < self.builder.entries() {
            self.pack(&mut buffer, entry, batch, from)
        } else {
            Progress::Full(from)
        };
        self.buffer = Some(buffer);
        progress
    }

    fn pack(&mut self, buffer: &mut [u8], entry: u16, batch: &Batch, from: BatchPosition) -> Progress {
        let (mut at, mut byte, mut cell) = (from.row as usize, from.byte as usize, from.cell as usize);
        while let Some(row) = batch.rows().get(at) {
            let cells = CellsAt { columns: batch.cells(), first: cell };
            if self.pending.is_none() && byte == 0 {
                let (run, adjoin) = self.run(entry, batch, at);
                if run > 1 {
                    self.many(buffer, entry, batch, at..at + run, adjoin, cells);
                    (at, cell) = (at + run, cell + run);
                    continue;
                }
            }
            let plain = byte == 0 && self.pending.is_none() && self.is_small(row);
            let packed = if plain && self.builder.room() >= row.bytes().max(1) {
                self.small(buffer, entry, row, batch.bytes_of(row), cells)
            } else {
                self.any(buffer, &Piece { entry, row, bytes: batch.bytes_of(row), cells }, byte)
            };
            if let Packed::Part(byte) = packed {
                return Progress::Full(BatchPosition {
                    row: at as u32,
                    byte: byte as u32,
                    cell: cell as u32,
                });
            }
            cell += usize::from(row.completes_element());
            (at, byte) = (at + 1, 0);
        }
        Progress::Done
    }

    #[inline]
    fn is_small(&self, row: &BatchRow) -> bool {
        row.content == Content::Whole && row.bytes() <= self.limit
    }

    /// How many small rows from `at` on can be packed at once, with the same outcome as one by one; and whether their
    /// bytes lie one behind the other.
    #[inline]
    fn run(&self, entry: u16, batch: &Batch, at: usize) -> (usize, bool) {
        let (room, a_row) = (self.builder.run_room(), self.builder.row_room(entry));
        let rows = &batch.rows()[at..];
        let rows = &rows[..rows.len().min(room.rows).min(RUN_ROWS)];
        if self.all_small(rows, room, a_row) {
            return (rows.len(), true);
        }
        let (mut taken, mut count, mut adjoin) = (0, 0, true);
        let mut end = rows.first().map_or(0, |row| row.at);
        for row in rows {
            taken += row.bytes() + a_row;
            if !self.is_small(row) || taken > room.bytes {
                break;
            }
            adjoin &= row.at == end;
            end = row.at + row.bytes() as u32;
            count += 1;
        }
        (count, adjoin)
    }

    /// The usual case, in as few steps as it can be: all rows are small, adjoin, and fit.
    #[inline]
    fn all_small(&self, rows: &[BatchRow], room: RunRoom, a_row: usize) -> bool {
        let start = rows.first().map_or(0, |row| row.at);
        let mut end = start;
        for row in rows {
            if row.content != Content::Whole || row.meta != 0 || row.at != end {
                return false;
            }
            end = row.at + row.len;
        }
        let bytes = (end - start) as usize;
        // All together are no more than one may be.
        bytes <= self.limit && bytes + a_row * rows.len() <= room.bytes
    }

    /// Packs a run.
    fn many(
        &mut self,
        buffer: &mut [u8],
        entry: u16,
        batch: &Batch,
        run: Range<usize>,
        adjoin: bool,
        cells: CellsAt<'_>,
    ) {
        let rows = &batch.rows()[run];
        let described = |row: &BatchRow| slot_row(entry, row, Kind::Element);
        match (rows.first(), rows.last()) {
            // Much faster than one by one.
            (Some(first), Some(last)) if adjoin => {
                let bytes = &batch.filled()[first.at as usize..last.at as usize + last.bytes()];
                self.builder.write_elements(buffer, bytes, rows, described, cells);
            }
            _ => {
                for row in rows {
                    self.builder.write(buffer, batch.bytes_of(row));
                }
                self.builder.elements(buffer, rows, described, cells);
            }
        }
    }

    /// The usual case, in as few steps as it can be. There is room.
    #[inline]
    fn small(
        &mut self,
        buffer: &mut [u8],
        entry: u16,
        row: &BatchRow,
        bytes: &[u8],
        cells: CellsAt<'_>,
    ) -> Packed {
        self.builder.write(buffer, bytes);
        self.builder.row_with(buffer, &slot_row(entry, row, Kind::Element), cells);
        Packed::All
    }

    fn any(&mut self, buffer: &mut [u8], piece: &Piece<'_>, from: usize) -> Packed {
        // Metadata that no row could take is left out before anything is decided.
        let meta = usize::from(piece.row.meta);
        if meta <= self.limit {
            return self.sorted(buffer, piece, from);
        }
        let flags = Flags(piece.row.flags.0 & !Flags::PCAPNG_OPTIONS.0);
        let row = BatchRow { meta: 0, flags, ..*piece.row };
        let without = Piece { row: &row, bytes: &piece.bytes[meta..], ..*piece };
        match self.sorted(buffer, &without, from.saturating_sub(meta)) {
            Packed::All => {
                self.meta_left_out += 1;
                Packed::All
            }
            Packed::Part(byte) if byte > 0 => Packed::Part(byte + meta),
            Packed::Part(byte) => Packed::Part(byte),
        }
    }

    fn sorted(&mut self, buffer: &mut [u8], piece: &Piece<'_>, from: usize) -> Packed {
        match piece.row.content {
            Content::Whole if from == 0 && piece.row.len as usize <= self.limit => {
                match self.whole(buffer, piece, Kind::Element) {
                    Packed::All => Packed::All,
                    Packed::Part(_) => self.pieces(buffer, piece, from),
                }
            }
            Content::Whole | Content::First { .. } | Content::Middle | Content::Last => {
                self.pieces(buffer, piece, from)
            }
            Content::Gap => self.whole(buffer, piece, Kind::Gap),
            Content::Note => self.whole(buffer, piece, Kind::Note),
            Content::Abort => self.whole(buffer, piece, Kind::Abort),
        }
    }

    /// A row of a batch that becomes a row of the slot.
    fn whole(&mut self, buffer: &mut [u8], piece: &Piece<'_>, kind: Kind) -> Packed {
        let Piece { entry, row, bytes, cells } = *piece;
        self.commit(buffer, false, CellsAt::NONE);
        if self.builder.room() < bytes.len().max(1) {
            return Packed::Part(0);
        }
        if kind == Kind::Abort {
            self.unfinished[usize::from(entry)] = OpenElement::default();
        }
        self.builder.write(buffer, bytes);
        self.builder.row_with(buffer, &slot_row(entry, row, kind), cells);
        Packed::All
    }

    /// A row of a batch that is a piece of an element, or an element that becomes several fragments; `from` of its
    /// bytes are packed already.
    fn pieces(&mut self, buffer: &mut [u8], piece: &Piece<'_>, from: usize) -> Packed {
        let Piece { entry, row, bytes, cells } = *piece;
        if self.pending.is_some_and(|pending| pending.entry != entry) {
            self.commit(buffer, false, CellsAt::NONE);
        }
        let begins = matches!(row.content, Content::Whole | Content::First { .. }) && from == 0;
        let meta = usize::from(row.meta);
        if begins {
            self.commit(buffer, false, CellsAt::NONE);
            self.unfinished[usize::from(entry)] =
                OpenElement { until: row.arrival, ..OpenElement::default() };
            // A splinter is not worth a fragment.
            let known = match row.content {
                Content::First { total: Some(total) } => (meta as u64).saturating_add(total),
                _ => bytes.len() as u64,
            };
            if self.builder.room() < (self.splinter as u64).min(known).max(1) as usize {
                return Packed::Part(0);
            }
        }
        let mut at = from;
        while at < bytes.len() {
            let data_there = self.pending.map_or(0, |pending| pending.row.len as usize);
            let meta_left = meta.saturating_sub(at);
            let n = (meta_left + self.limit - data_there).min(bytes.len() - at).min(self.builder.room());
            if n == 0 {
                let full = data_there < self.limit;
                self.commit(buffer, false, CellsAt::NONE);
                if full && self.builder.room() == 0 {
                    return Packed::Part(at);
                }
                continue;
            }
            self.builder.write(buffer, &bytes[at..at + n]);
            self.extend(entry, row, meta_left.min(n), n - meta_left.min(n));
            at += n;
        }
        if matches!(row.content, Content::Whole | Content::Last) {
            if self.pending.is_none() {
                // The last piece is empty: its row still needs room.
                if self.builder.room() == 0 {
                    return Packed::Part(at);
                }
            }
            self.extend(entry, row, 0, 0);
            self.commit(buffer, true, cells);
            self.unfinished[usize::from(entry)] = OpenElement::default();
        }
        Packed::All
    }

    /// More bytes of an element are in the payload.
    fn extend(&mut self, entry: u16, row: &BatchRow, meta: usize, data: usize) {
        let unfinished = &self.unfinished[usize::from(entry)];
        let pending = self.pending.get_or_insert_with(|| {
            let mut first = slot_row(entry, row, Kind::Fragment);
            first.number = unfinished.number;
            first.offset = unfinished.offset;
            (first.meta, first.len, first.span) = (0, 0, 0);
            // A later fragment begins where the one before ended.
            first.arrival = Timestamp(row.arrival.0.saturating_sub_unsigned(row.span));
            if unfinished.number > 0 {
                first.arrival = first.arrival.max(unfinished.until);
            }
            Pending { entry, row: first }
        });
        let begin = pending.row.first_arrival();
        pending.row.meta += meta as u16;
        pending.row.len += data as u32;
        pending.row.arrival = row.arrival;
        pending.row.span = row.arrival.since(begin).as_nanos() as u64;
        pending.row.tag = row.tag;
        // What is read of an element is known when all of it is there.
        if row.flags.has(Flags::EVENT) {
            pending.row.flags = pending.row.flags.with(Flags::EVENT);
            pending.row.event = row.event;
        }
        if meta == 0 && pending.row.meta == 0 {
            pending.row.flags = Flags(pending.row.flags.0 & !Flags::PCAPNG_OPTIONS.0);
        }
    }

    /// Makes a row of the bytes that have none: of the element if all of it is there, else a fragment.
    fn commit(&mut self, buffer: &mut [u8], ends: bool, cells: CellsAt<'_>) {
        let Some(Pending { entry, mut row }) = self.pending.take() else { return };
        let unfinished = &mut self.unfinished[usize::from(entry)];
        if ends && unfinished.number == 0 {
            row.kind = Kind::Element;
        } else {
            if ends {
                row.flags = row.flags.with(Flags::LAST);
            }
            unfinished.number += 1;
            unfinished.offset += u64::from(row.len);
            unfinished.until = row.arrival;
        }
        self.builder.row_with(buffer, &row, cells);
    }

    /// Makes a fragment of what is there of an element, so that it can be made durable before the rest arrives.
    pub fn cut(&mut self) {
        if let Some(mut buffer) = self.buffer.take() {
            self.commit(&mut buffer, false, CellsAt::NONE);
            self.buffer = Some(buffer);
        }
    }

    /// Finishes the slot for the place `slot` and lets go of its buffer. `None` when no slot is open.
    pub fn seal(
        &mut self,
        key: &Key,
        slot: SlotNo,
        sealed: Timestamp,
        flags: SlotFlags,
    ) -> Option<(B, Sealed)> {
        let mut buffer = self.buffer.take()?;
        self.commit(&mut buffer, false, CellsAt::NONE);
        let sealed = self.builder.seal(&mut buffer, key, slot, sealed, flags);
        Some((buffer, sealed))
    }

    /// Gives the buffer of a slot that is not wanted any more back, unsealed.
    pub fn abandon(&mut self) -> Option<B> {
        self.pending = None;
        self.buffer.take()
    }

    /// Adds to `commit` what the open slot gained since `from`; see [`Builder::journal_delta`]. Bytes without a row wait:
    /// [`Packer::cut`] gives them one.
    pub fn journal_delta(&self, from: Cursor, commit: &mut CommitWriter<'_>) -> (Cursor, bool) {
        match &self.buffer {
            Some(buffer) => self.builder.journal_delta(buffer, from, commit),
            None => (from, true),
        }
    }

    /// Tells of the open slot what is asked for, as far as `out` has room; see [`Builder::write_open_slot`].
    pub fn write_open_slot(
        &mut self,
        from: OpenCursor,
        ask: &OpenSlotQuery<'_>,
        out: &mut [u8],
    ) -> OpenSlotPart {
        match &self.buffer {
            Some(buffer) => self.builder.write_open_slot(buffer, from, ask, out),
            None => OpenSlotPart { bytes: 0, cursor: from, end: true },
        }
    }

    /// Copies some of the open slot's payload; see [`Builder::copy_payload`].
    pub fn copy_payload(&self, at: usize, into: &mut [u8]) -> bool {
        self.buffer.as_ref().is_some_and(|buffer| self.builder.copy_payload(buffer, at, into))
    }
}

#[inline]
fn slot_row(entry: u16, row: &BatchRow, kind: Kind) -> Row {
    Row {
        stream: entry,
        kind,
        flags: row.flags,
        tag: row.tag,
        meta: row.meta,
        len: row.len,
        extra: row.extra,
        number: 0,
        ordinal: row.ordinal,
        arrival: row.arrival,
        span: row.span,
        event: row.event,
        offset: 0,
    }
}
