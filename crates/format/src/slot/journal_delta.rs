//! Journal delta of an open slot: the record of the slot itself, and its rows and bytes since the last
//! commit.

use super::Builder;
use super::columns::{ChunkHead, ChunkStream, Plan};
use crate::journal::{CommitWriter, OpenEntries, OpenSlot, Record};
use holdfast_base::MAX_STREAMS;
use std::ops::Range;

/// Bytes of a record in front of payload or a chunk: its head, sequence, place and count.
const RECORD_HEAD: usize = 24;

/// Least piece of payload worth a record of its own when a commit is nearly full.
const LEAST_PIECE: usize = 512;

/// How much of an open slot the journal has.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Cursor {
    /// Bytes of payload.
    pub payload: u32,
    /// Rows.
    pub rows: u32,
    /// Bytes of payload that these rows describe: so much a crash would leave.
    pub whole: u32,
}

impl Builder {
    /// The journal's record of the open slot: to be written before anything that the slot gained.
    pub fn open_record(&self) -> Record<'_> {
        Record::OpenSlot(OpenSlot {
            sequence: self.id.sequence,
            epoch: self.id.epoch,
            age: self.id.age,
            opened: self.opened,
            payload_offset: self.payload_at as u32,
            entries: OpenEntries::new(&self.opening),
        })
    }

    /// Where the cursor stands when the journal has everything.
    pub fn cursor(&self) -> Cursor {
        Cursor { payload: self.covered as u32, rows: self.rows, whole: self.covered as u32 }
    }

    /// Adds to `commit` what the slot gained since `from`, as far as there is room: payload first, then the rows
    /// that describe it, chunk by chunk. Returns where to go on, and whether that was all. Bytes that no row
    /// describes yet are left for later. An empty commit of [`Geometry::commit_bytes`](crate::Geometry::commit_bytes)
    /// always takes something.
    pub fn journal_delta(
        &self,
        buffer: &[u8],
        from: Cursor,
        commit: &mut CommitWriter<'_>,
    ) -> (Cursor, bool) {
        let mut at = from;
        let first = self.directory.partition_point(|chunk| chunk.first_row + chunk.rows <= at.rows);
        for chunk in self.directory.get(first..).unwrap_or_default() {
            if !self.payload_gain(buffer, chunk.payload_offset + chunk.payload_bytes, &mut at, commit) {
                return (at, false);
            }
            let start = self.slot_bytes - chunk.offset as usize;
            let bytes = &buffer[start..start + chunk.bytes as usize];
            let (sequence, first_row) = (self.id.sequence, chunk.first_row);
            if !commit.push(&Record::OpenRows { sequence, first_row, chunk: bytes }) {
                return (at, false);
            }
            at.rows = chunk.first_row + chunk.rows;
            at.whole = chunk.payload_offset + chunk.payload_bytes;
        }
        let done = self.payload_gain(buffer, self.covered as u32, &mut at, commit)
            && self.pending_gain(&mut at, commit);
        (at, done)
    }

    /// Payload up to `end`.
    fn payload_gain(&self, buffer: &[u8], end: u32, at: &mut Cursor, commit: &mut CommitWriter<'_>) -> bool {
        while at.payload < end {
            let left = (end - at.payload) as usize;
            let piece = left.min(commit.room().saturating_sub(RECORD_HEAD) / 8 * 8);
            if piece < left.min(LEAST_PIECE) {
                return false;
            }
            let start = self.payload_at + at.payload as usize;
            let bytes = &buffer[start..start + piece];
            let (sequence, offset) = (self.id.sequence, at.payload);
            if !commit.push(&Record::OpenPayload { sequence, offset, bytes }) {
                return false;
            }
            at.payload += piece as u32;
        }
        true
    }

    /// The pending rows that the journal does not have, as a chunk of their own; half of them, a quarter … where all
    /// do not fit.
    fn pending_gain(&self, at: &mut Cursor, commit: &mut CommitWriter<'_>) -> bool {
        let closed = self.rows - self.pending.len as u32;
        let first = at.rows.saturating_sub(closed) as usize;
        let mut end = self.pending.len;
        while first < end {
            let part = self.part(first..end);
            let plan = Plan::new(&self.pending, first..end, part.streams().count());
            let first_row = closed + first as u32;
            let head = ChunkHead {
                first_row,
                payload_offset: part.payload_offset,
                payload_bytes: part.payload_bytes,
                sequence: self.id.sequence.0 as u32,
            };
            let fits = commit.push_with(Record::OPEN_ROWS, |put| {
                put.u64(self.id.sequence.0).u32(first_row).u32(plan.bytes() as u32);
                let Some(space) = put.space(plan.bytes()) else { return false };
                plan.write(space, &self.pending, &head, part.streams());
                true
            });
            if fits {
                at.rows = closed + end as u32;
                at.whole = part.payload_offset + part.payload_bytes;
                return end == self.pending.len;
            }
            end = first + (end - first) / 2;
        }
        first == self.pending.len
    }

    /// What the header of a chunk of some of the pending rows says.
    pub(super) fn part(&self, rows: Range<usize>) -> Part {
        let mut part = Part {
            payload_offset: self.chunk_payload as u32,
            payload_bytes: 0,
            expected: [0; MAX_STREAMS],
            rows: [0; MAX_STREAMS],
            first: [0; MAX_STREAMS],
        };
        for entry in &self.streams {
            let entry = usize::from(*entry) % MAX_STREAMS;
            part.expected[entry] = self.entries[entry].chunk_first;
        }
        for at in 0..rows.end {
            let entry = usize::from(self.pending.stream.at(at)) % MAX_STREAMS;
            if at < rows.start {
                part.payload_offset += self.pending.payload(at);
            } else {
                part.payload_bytes += self.pending.payload(at);
                if part.rows[entry] == 0 {
                    part.first[entry] = part.expected[entry];
                }
                part.rows[entry] += 1;
            }
            let ordinal = part.expected[entry].wrapping_add(self.pending.excess.at(at));
            part.expected[entry] = ordinal.wrapping_add(u64::from(self.pending.ends_element(at)));
        }
        part
    }
}

/// Some of the pending rows, by dictionary entry.
pub(super) struct Part {
    pub(super) payload_offset: u32,
    pub(super) payload_bytes: u32,
    expected: [u64; MAX_STREAMS],
    rows: [u32; MAX_STREAMS],
    first: [u64; MAX_STREAMS],
}

impl Part {
    pub(super) fn streams(&self) -> impl Iterator<Item = ChunkStream> {
        let all = self.rows.iter().zip(&self.first).enumerate().filter(|(_, (rows, _))| **rows > 0);
        all.map(|(entry, (rows, first))| ChunkStream { entry: entry as u16, rows: *rows, first: *first })
    }
}
