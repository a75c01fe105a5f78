//! Index of an open slot on the reader's side: the parts that `open_slot_wire` writes, assembled and laid out
//! as if the slot had been sealed just now. The payload stays where it is: it has its place in the slot
//! already.

use super::header::PartHeader;
use super::open_slot_wire::{CHUNK_HEAD, CLOSED, COMPLETE, PENDING, ROWS, STATE, STATE_HEAD};
use super::summary::{SECTIONS, bytes_with, put_summary};
use super::{
    DirectoryEntry, EntrySummary, MAX_CHUNK_ROWS, OpenCursor, Section, SectionKind, SlotFlags, SlotId,
};
use crate::bytes::{FieldReader, SliceWriter, blocks};
use crate::column::place_of;
use crate::{Block, FormatError, Key, crc32c};
use holdfast_base::{Age, BLOCK, CHECK_BLOCK, Epoch, MAX_STREAMS, Sequence, Timestamp};
use std::ops::Range;

const WHAT: &str = "index of an open slot";

/// A column as far as it has come.
#[derive(Clone, Debug)]
struct OpenColumn {
    entry: u16,
    number: u16,
    bytes: Vec<u8>,
    count: u32,
}

/// How far everything had come when the last chunk was closed.
#[derive(Clone, Debug, Default)]
struct Closed {
    chunks: usize,
    bytes: usize,
    columns: Vec<(usize, u32)>,
}

/// How far a slot had come when all of it had been told.
#[derive(Clone, Debug)]
struct State {
    complete: bool,
    rows: u32,
    payload: usize,
    payload_at: usize,
    chunk_rows: usize,
    sequence: Sequence,
    epoch: Epoch,
    age: Age,
    opened: Timestamp,
    checks: Vec<u8>,
    entries: Vec<EntrySummary>,
}

/// What is known of the index of an open slot.
#[derive(Clone, Debug)]
pub struct OpenIndex {
    slot_bytes: usize,
    directory: Vec<DirectoryEntry>,
    chunks: Vec<u8>,
    columns: Vec<OpenColumn>,
    closed: Closed,
    /// What has come of a closed chunk of which more is to come.
    piece: Vec<u8>,
    state: Option<State>,
}

impl OpenIndex {
    /// Of a slot of so many bytes, with these columns of a stream.
    pub fn new(slot_bytes: u64, columns: &[u16]) -> Self {
        let mut columns: Vec<OpenColumn> = columns
            .iter()
            .map(|number| OpenColumn { entry: 0, number: *number, bytes: Vec::new(), count: 0 })
            .collect();
        columns.sort_by_key(|column| column.number);
        columns.dedup_by_key(|column| column.number);
        let closed = Closed { columns: vec![(0, 0); columns.len()], ..Closed::default() };
        let (directory, chunks, piece) = (Vec::new(), Vec::new(), Vec::new());
        Self { slot_bytes: slot_bytes as usize, directory, chunks, columns, closed, piece, state: None }
    }

    /// Begins to take what has come since, from this cursor on: what was pending when it was told is told again.
    pub fn begin(&mut self) -> OpenCursor {
        self.forget_pending();
        self.piece.clear();
        self.state = None;
        let last = self.closed.chunks.checked_sub(1).map(|last| self.directory[last]);
        OpenCursor { row: last.map_or(0, |last| last.first_row + last.rows), byte: 0 }
    }

    /// Takes the parts of a reply.
    pub fn take(&mut self, parts: &[u8]) -> Result<(), FormatError> {
        let mut rest = parts;
        while !rest.is_empty() {
            let mut get = FieldReader::new(WHAT, rest);
            let (kind, flags, len) = (get.u16()?, get.u16()?, get.u32()? as usize);
            let part = get.seek(0).take(len)?;
            let wrong = get.malformed("a length that no part can have");
            if len < 8 || !len.is_multiple_of(8) {
                return Err(wrong);
            }
            match kind {
                CLOSED | PENDING => self.chunk(kind == CLOSED, flags & ROWS != 0, part)?,
                STATE => self.state = Some(state(flags & COMPLETE != 0, part)?),
                _ => return Err(get.seek(0).malformed("a kind of part that does not exist")),
            }
            rest = &rest[len..];
        }
        Ok(())
    }

    fn chunk(&mut self, is_closed: bool, has_rows: bool, part: &[u8]) -> Result<(), FormatError> {
        let mut get = FieldReader::new(WHAT, part);
        let (all, from, here) = (get.seek(8).u32()? as usize, get.u32()? as usize, get.u32()? as usize);
        let entry = DirectoryEntry::read(get.seek(CHUNK_HEAD - DirectoryEntry::BYTES))?;
        let content = get.take(here)?;
        if all > self.slot_bytes || from.checked_add(here).is_none_or(|end| end > all) {
            return Err(get.seek(8).malformed("more of a chunk than there can be"));
        }
        if is_closed {
            // Those that were pending may be in it.
            self.forget_pending();
        }
        let (row, payload) = self
            .directory
            .last()
            .map_or((0, 0), |last| (last.first_row + last.rows, last.payload_offset + last.payload_bytes));
        let ends = (row.checked_add(entry.rows), payload.checked_add(entry.payload_bytes));
        if (entry.first_row, entry.payload_offset) != (row, payload) || ends.0.is_none() || ends.1.is_none() {
            return Err(get
                .seek(CHUNK_HEAD - DirectoryEntry::BYTES)
                .malformed("a chunk that does not follow"));
        }
        if (from, here) == (0, all) {
            self.piece.clear();
            self.add(entry, has_rows, content)?;
        } else {
            if from == 0 {
                self.piece.clear();
            }
            if from != self.piece.len() || !is_closed {
                return Err(get.seek(12).malformed("a piece of a chunk that does not follow"));
            }
            self.piece.extend_from_slice(content);
            if self.piece.len() < all {
                return Ok(());
            }
            let piece = std::mem::take(&mut self.piece);
            self.add(entry, has_rows, &piece)?;
        }
        if is_closed {
            let columns = self.columns.iter().map(|column| (column.bytes.len(), column.count)).collect();
            self.closed = Closed { chunks: self.directory.len(), bytes: self.chunks.len(), columns };
        }
        Ok(())
    }

    fn forget_pending(&mut self) {
        self.directory.truncate(self.closed.chunks);
        self.chunks.truncate(self.closed.bytes);
        for (column, (bytes, count)) in self.columns.iter_mut().zip(&self.closed.columns) {
            column.bytes.truncate(*bytes);
            column.count = *count;
        }
    }

    /// Takes the rows of a chunk, if it has them, and its blocks. That they are sound is found when they are looked at.
    fn add(&mut self, entry: DirectoryEntry, has_rows: bool, content: &[u8]) -> Result<(), FormatError> {
        let mut get = FieldReader::new(WHAT, content);
        let rows = get.take(if has_rows { entry.bytes as usize } else { 0 })?;
        let mut rest = get.take(content.len() - rows.len())?;
        let known = self.columns.iter().map(|column| column.bytes.len()).sum::<usize>();
        if self.chunks.len() + known + content.len() > self.slot_bytes {
            return Err(get.malformed("more than a slot has room for"));
        }
        let (offset, bytes) = (self.chunks.len() as u32, rows.len() as u32);
        self.directory.push(DirectoryEntry { offset, bytes, ..entry });
        self.chunks.extend_from_slice(rows);
        while !rest.is_empty() {
            let len = Block::length(rest)?.unwrap_or(usize::MAX);
            let (block, behind) = rest
                .split_at_checked(len)
                .ok_or_else(|| FieldReader::new(WHAT, rest).malformed("a block that is not all there"))?;
            let (owner, number, _) = place_of(block);
            let column = self.columns.iter_mut().find(|column| column.number == number);
            let column = column.filter(|column| column.count == 0 || column.entry == owner);
            let Some(column) = column else {
                return Err(
                    FieldReader::new(WHAT, block).malformed("a block of a column that was not asked for")
                );
            };
            column.entry = owner;
            column.count += 1;
            column.bytes.extend_from_slice(block);
            rest = behind;
        }
        Ok(())
    }

    /// As a slot that was sealed when the last part was told. `id` tells of ring, group and lane.
    pub fn image(mut self, id: SlotId, key: &Key) -> Result<OpenImage, FormatError> {
        let wrong = |what| FormatError::Malformed { structure: WHAT, at: 0, what };
        let mut state = self.state.take().ok_or_else(|| wrong("its state is not told"))?;
        let end = self.directory.last().map_or((0, 0), |last| {
            (last.first_row + last.rows, last.payload_offset as usize + last.payload_bytes as usize)
        });
        if end != (state.rows, state.payload) {
            return Err(wrong("its chunks do not add up to its rows and payload"));
        }
        if !state.complete {
            state.entries.iter_mut().for_each(|entry| entry.schema = 0);
        }
        let index_at = blocks(state.payload_at + state.payload);
        let mut at = index_at;
        let mut next = |kind, (entry, column): (u16, u16), bytes: usize, count: usize, crc| {
            let section = Section {
                kind,
                column,
                entry,
                encoding: 0,
                offset: at as u32,
                bytes: bytes as u32,
                count: count as u32,
                crc,
            };
            at += bytes;
            section
        };
        let whole = (u16::MAX, 0);
        let with_cells = self.columns.iter().filter(|column| state.complete && column.count > 0);
        let columns: Vec<Section> = with_cells
            .map(|column| {
                let (bytes, count) = (column.bytes.len(), column.count as usize);
                next(SectionKind::Attribute, (column.entry, column.number), bytes, count, 0)
            })
            .collect();
        let mut tables = state.checks;
        let (checks, chunks) = (tables.len(), self.directory.len());
        tables.resize(checks + chunks * DirectoryEntry::BYTES, 0);
        let mut put = SliceWriter::new(&mut tables);
        put.seek(checks);
        self.directory.iter().for_each(|entry| entry.put(&mut put));
        let crcs = (crc32c(&tables[..checks]), crc32c(&tables[checks..]));
        let mut sections = vec![
            next(SectionKind::PayloadChecks, whole, checks, checks / 4, crcs.0),
            next(SectionKind::ChunkDirectory, whole, tables.len() - checks, chunks, crcs.1),
            next(SectionKind::Chunks, whole, self.chunks.len(), chunks, 0),
        ];
        debug_assert_eq!(sections.len(), SECTIONS);
        sections.extend(columns);
        let summary_end = BLOCK + bytes_with(state.entries.len(), sections.len());
        let footer_at = blocks(at);
        if summary_end > state.payload_at || footer_at + BLOCK > self.slot_bytes {
            return Err(wrong("it has no room in the slot"));
        }
        let mut head = vec![0; state.payload_at];
        let (entries, sections) = (state.entries.iter().copied(), sections.iter().copied());
        put_summary(&mut head[BLOCK..summary_end], state.chunk_rows, sections, entries);
        let header = PartHeader {
            flags: SlotFlags::SHORT,
            ring: id.ring,
            group: id.group,
            sequence: state.sequence,
            epoch: state.epoch,
            age: state.age,
            row: state.sequence.0,
            lane: id.lane,
            n: 1,
            opened: state.opened,
            summary_bytes: (summary_end - BLOCK) as u32,
            summary_crc: crc32c(&head[BLOCK..summary_end]),
            payload_offset: state.payload_at as u32,
            payload_bytes: state.payload as u32,
            index_offset: index_at as u32,
            index_bytes: (at - index_at) as u32,
            footer_offset: footer_at as u32,
            rows: state.rows,
            ..PartHeader::default()
        };
        header.encode(&mut head[..BLOCK], key);
        let (sequence, payload, columns) = (state.sequence, state.payload_at..index_at, state.complete);
        Ok(OpenImage { sequence, payload, head, tables, columns, index: self })
    }
}

fn state(complete: bool, part: &[u8]) -> Result<State, FormatError> {
    let mut get = FieldReader::new(WHAT, part);
    get.seek(8);
    let (rows, payload, payload_at) = (get.u32()?, get.u32()? as usize, get.u32()? as usize);
    let (chunk_rows, checks, count) = (get.u32()? as usize, get.u32()? as usize, get.u32()? as usize);
    let (sequence, epoch, age) = (Sequence(get.u64()?), Epoch(get.u64()?), Age(get.u64()?));
    let opened = get.time()?;
    if count > MAX_STREAMS
        || chunk_rows > MAX_CHUNK_ROWS
        || checks != payload.div_ceil(CHECK_BLOCK)
        || !payload_at.is_multiple_of(BLOCK)
    {
        return Err(get.seek(8).malformed("a state that no slot can be in"));
    }
    let checks = get.seek(STATE_HEAD).take(checks * 4)?.to_vec();
    get.take(checks.len().next_multiple_of(8) - checks.len())?;
    let mut entries = Vec::with_capacity(count);
    for _ in 0..count {
        entries.push(EntrySummary::read(&mut get)?);
    }
    Ok(State {
        complete,
        rows,
        payload,
        payload_at,
        chunk_rows,
        sequence,
        epoch,
        age,
        opened,
        checks,
        entries,
    })
}

/// An open slot as if it had been sealed, all but its payload.
#[derive(Clone, Debug)]
pub struct OpenImage {
    sequence: Sequence,
    /// Where the payload lies, in whole blocks; it is to be read from the slot itself.
    payload: Range<usize>,
    /// Header and summary.
    head: Vec<u8>,
    /// Payload checks and chunk directory.
    tables: Vec<u8>,
    /// Whether its columns are shown: they are all there.
    columns: bool,
    index: OpenIndex,
}

impl OpenImage {
    /// The slot's sequence.
    pub fn sequence(&self) -> Sequence {
        self.sequence
    }

    /// Where the payload lies, in whole blocks: what is not here.
    pub fn payload(&self) -> Range<usize> {
        self.payload.clone()
    }

    /// Copies what it has from byte `at` of the slot on; zeros elsewhere.
    pub fn copy(&self, at: usize, into: &mut [u8]) {
        let mut filled = 0;
        for (start, bytes) in self.pieces(at..at + into.len()) {
            into[filled..start - at].fill(0);
            filled = start - at + bytes.len();
            into[start - at..filled].copy_from_slice(bytes);
        }
        into[filled..].fill(0);
    }

    /// Appends a range of the slot to `into`, as [`OpenImage::copy`] has it.
    pub fn append(&self, range: Range<usize>, into: &mut Vec<u8>) {
        let (before, at) = (into.len(), range.start);
        for (start, bytes) in self.pieces(range.clone()) {
            into.resize(before + (start - at), 0);
            into.extend_from_slice(bytes);
        }
        into.resize(before + range.len(), 0);
    }

    /// What it has of a range, each piece with its place.
    fn pieces(&self, range: Range<usize>) -> impl Iterator<Item = (usize, &[u8])> {
        let columns = self.index.columns.iter().filter(|_| self.columns).map(|column| &column.bytes[..]);
        let mut end = self.payload.end;
        let behind = columns.chain([&self.tables[..], &self.index.chunks]).map(move |bytes| {
            end += bytes.len();
            (end - bytes.len(), bytes)
        });
        std::iter::once((0, &self.head[..])).chain(behind).filter_map(move |(start, bytes)| {
            let (from, end) = (start.max(range.start), (start + bytes.len()).min(range.end));
            (from < end).then(|| (from, &bytes[from - start..end - start]))
        })
    }

    /// Gives back what is known, so that more can be asked for.
    pub fn into_index(self) -> OpenIndex {
        self.index
    }
}
