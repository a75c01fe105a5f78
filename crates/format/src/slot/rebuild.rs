//! Rebuild of an open slot from the journal, after a crash. It allocates; nothing is hot here.

use super::{Builder, CellsAt, Chunk, Entry, Row, RunRoom, SlotId};
use crate::journal::Record;
use crate::{Classes, FormatError};
use holdfast_base::{BLOCK, Sequence, Timestamp};
use std::collections::BTreeMap;

const WHAT: &str = "journaled open slot";

/// Collects what the journal has of an open slot and ends in a [`Builder`] that holds it, to be sealed.
/// Pieces may come in any order and more than once.
#[derive(Debug)]
pub struct Rebuild {
    builder: Builder,
    /// Stretches of payload that are there, as start and end; they do not touch.
    payload: BTreeMap<usize, usize>,
    /// Chunks by their first row.
    chunks: BTreeMap<u32, Chunk>,
}

impl Rebuild {
    /// Begins with what the record of the open slot says: its id, when it was opened, and its dictionary, with
    /// names and kinds from the records of the streams and counters from the record of the slot. It gets no columns: cells
    /// are not journaled.
    pub fn open(
        mut builder: Builder,
        buffer: &mut [u8],
        id: SlotId,
        opened: Timestamp,
        entries: &[Entry],
    ) -> Result<Self, FormatError> {
        let without = |entry: &Entry| Entry { classes: Classes::default(), ..*entry };
        builder.open(buffer, id, opened, &entries.iter().map(without).collect::<Vec<_>>())?;
        Ok(Self { builder, payload: BTreeMap::new(), chunks: BTreeMap::new() })
    }

    /// The slot's sequence.
    pub fn sequence(&self) -> Sequence {
        self.builder.sequence()
    }

    /// Takes a record of payload or rows; `false` when it is another record, or of another slot.
    pub fn apply(&mut self, buffer: &mut [u8], record: &Record<'_>) -> Result<bool, FormatError> {
        match record {
            Record::OpenPayload { sequence, offset, bytes } if *sequence == self.sequence() => {
                self.payload(buffer, *offset, bytes)?;
            }
            Record::OpenRows { sequence, chunk, .. } if *sequence == self.sequence() => self.rows(chunk)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Takes payload.
    pub fn payload(&mut self, buffer: &mut [u8], offset: u32, bytes: &[u8]) -> Result<(), FormatError> {
        let (mut start, mut end) = (offset as usize, offset as usize + bytes.len());
        let room = self.builder.slot_bytes - BLOCK - self.builder.payload_at;
        if end > room {
            return Err(FormatError::OutOfBounds { structure: WHAT, at: u64::from(offset), what: "payload" });
        }
        let at = self.builder.payload_at;
        buffer[at + start..at + end].copy_from_slice(bytes);
        // Grow over every stretch that this one touches.
        while let Some((near_start, near_end)) = self.payload.range(..=end).next_back().map(|(a, b)| (*a, *b))
        {
            if near_end < start {
                break;
            }
            (start, end) = (start.min(near_start), end.max(near_end));
            self.payload.remove(&near_start);
        }
        self.payload.insert(start, end);
        Ok(())
    }

    /// Takes rows.
    pub fn rows(&mut self, chunk: &[u8]) -> Result<(), FormatError> {
        let chunk = Chunk::decode(chunk)?;
        let known = |(entry, _): (u16, u32)| usize::from(entry) < self.builder.entries.len();
        if !chunk.belongs_to(self.sequence()) || !chunk.streams().all(known) {
            let what = "rows that do not belong to it";
            return Err(FormatError::Malformed { structure: WHAT, at: u64::from(chunk.first_row()), what });
        }
        let end = chunk.first_row() + chunk.len();
        let inside =
            self.chunks.range(chunk.first_row()..end).filter(|(first, old)| *first + old.len() <= end);
        let inside: Vec<u32> = inside.map(|(first, _)| *first).collect();
        for first in inside {
            self.chunks.remove(&first);
        }
        let longer = self.chunks.get(&chunk.first_row()).is_some_and(|old| old.len() > chunk.len());
        if !longer {
            self.chunks.insert(chunk.first_row(), chunk);
        }
        Ok(())
    }

    /// Puts together what there is: rows from the first on, as far as they and their payload follow each other
    /// without a hole.
    pub fn finish(mut self, buffer: &mut [u8]) -> Builder {
        self.put_together(buffer);
        self.builder
    }

    fn put_together(&mut self, buffer: &mut [u8]) {
        let there = self.payload.get(&0).copied().unwrap_or(0);
        while let Some(first) = self.chunks.first_entry() {
            let builder = &mut self.builder;
            let chunk = first.get();
            if chunk.first_row() > builder.rows() {
                break;
            }
            let skip = (builder.rows() - chunk.first_row()) as usize;
            let rows: Vec<(Row, u32)> = chunk.rows().skip(skip).collect();
            let mut rows = &rows[..];
            while let Some((_, at)) = rows.first() {
                if *at as usize != builder.payload_bytes() {
                    return;
                }
                let run = run(builder, rows, there);
                if run.is_empty() {
                    return;
                }
                builder.advance(buffer, run.iter().map(|(row, _)| row.payload()).sum());
                builder.elements(buffer, run, |(row, _)| *row, CellsAt::NONE);
                rows = &rows[run.len()..];
            }
            first.remove();
        }
    }
}

/// The rows of a chunk, of those that are left, that can be added at once: as many as close no chunk of the slot, or one. None:
/// the payload of the first is not there, or has no room.
fn run<'a>(builder: &Builder, rows: &'a [(Row, u32)], there: usize) -> &'a [(Row, u32)] {
    let room = builder.run_room();
    let mut bytes = 0;
    let fits = |(row, at): &&(Row, u32)| {
        bytes += row.payload() + RunRoom::ROW;
        bytes <= room.bytes && *at as usize + row.payload() <= there
    };
    let count = rows.iter().take(room.rows).take_while(fits).count();
    let Some((row, at)) = rows.first().filter(|_| count == 0) else { return &rows[..count] };
    // Without room even for an empty row the slot would have been sealed.
    let left = builder.room();
    let one = *at as usize + row.payload() <= there && row.payload() <= left && left > 0;
    &rows[..usize::from(one)]
}
