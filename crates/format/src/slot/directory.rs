//! Chunk directory: the place of each chunk and its statistics, so that a reader fetches only those it needs.

use super::columns::ChunkHead;
use crate::bytes::{FieldReader, SliceWriter};
use crate::{FormatError, crc32c};
use holdfast_base::Timestamp;

const WHAT: &str = "chunk directory";

/// What the directory says of a chunk.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DirectoryEntry {
    /// Where it is in the chunks section.
    pub offset: u32,
    /// Its bytes.
    pub bytes: u32,
    /// Number of its first row in the slot.
    pub first_row: u32,
    /// Its rows.
    pub rows: u32,
    /// Where its payload begins in the slot's payload.
    pub payload_offset: u32,
    /// Bytes of its payload.
    pub payload_bytes: u32,
    /// Earliest arrival of a first byte.
    pub first_arrival: Timestamp,
    /// Latest arrival.
    pub last_arrival: Timestamp,
    /// Least event time; [`Timestamp::MAX`]: none.
    pub first_event: Timestamp,
    /// Greatest event time; [`Timestamp::MIN`]: none.
    pub last_event: Timestamp,
    /// The dictionary entries it has rows of, each as bit number mod 64.
    pub streams: u64,
}

impl DirectoryEntry {
    /// Bytes of an entry.
    pub const BYTES: usize = 64;

    /// Whether the chunk may have rows of this dictionary entry.
    pub fn may_have(&self, entry: u16) -> bool {
        self.streams >> (entry % 64) & 1 != 0
    }

    pub(super) fn put(&self, put: &mut SliceWriter<'_>) {
        put.u32(self.offset).u32(self.bytes).u32(self.first_row).u32(self.rows);
        put.u32(self.payload_offset).u32(self.payload_bytes).time(self.first_arrival).time(self.last_arrival);
        put.time(self.first_event).time(self.last_event).u64(self.streams);
    }

    pub(super) fn read(get: &mut FieldReader<'_>) -> Result<Self, FormatError> {
        Ok(Self {
            offset: get.u32()?,
            bytes: get.u32()?,
            first_row: get.u32()?,
            rows: get.u32()?,
            payload_offset: get.u32()?,
            payload_bytes: get.u32()?,
            first_arrival: get.time()?,
            last_arrival: get.time()?,
            first_event: get.time()?,
            last_event: get.time()?,
            streams: get.u64()?,
        })
    }
}

/// Reads a chunk directory whose section says the checksum `crc`. Rows and payload of its chunks follow each other
/// without holes.
pub fn decode_directory(bytes: &[u8], crc: u32) -> Result<Vec<DirectoryEntry>, FormatError> {
    if crc32c(bytes) != crc {
        return Err(FormatError::BadChecksum { structure: WHAT, at: 0 });
    }
    let mut get = FieldReader::new(WHAT, bytes);
    if !bytes.len().is_multiple_of(DirectoryEntry::BYTES) {
        return Err(get.malformed("it does not consist of whole entries"));
    }
    let mut entries = Vec::with_capacity(bytes.len() / DirectoryEntry::BYTES);
    let (mut row, mut payload) = (0u32, 0u32);
    for _ in 0..bytes.len() / DirectoryEntry::BYTES {
        let entry = DirectoryEntry::read(&mut get)?;
        let follows = entry.first_row == row && entry.payload_offset == payload;
        let next = (row.checked_add(entry.rows), payload.checked_add(entry.payload_bytes));
        let (true, (Some(next_row), Some(next_payload))) = (follows, next) else {
            return Err(get.malformed("its chunks do not follow each other"));
        };
        (row, payload) = (next_row, next_payload);
        entries.push(entry);
    }
    Ok(entries)
}

/// What is collected for a directory entry while its chunk is open.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) first_arrival: i64,
    pub(super) last_arrival: i64,
    pub(super) first_event: i64,
    pub(super) last_event: i64,
    pub(super) streams: u64,
}

impl Bounds {
    pub(super) const EMPTY: Self = Self {
        first_arrival: i64::MAX,
        last_arrival: i64::MIN,
        first_event: i64::MAX,
        last_event: i64::MIN,
        streams: 0,
    };

    /// What the directory says of the chunk with this head, so many rows, and so many bytes from `offset` on.
    pub(super) fn entry(&self, head: &ChunkHead, rows: usize, offset: usize, bytes: usize) -> DirectoryEntry {
        DirectoryEntry {
            offset: offset as u32,
            bytes: bytes as u32,
            first_row: head.first_row,
            rows: rows as u32,
            payload_offset: head.payload_offset,
            payload_bytes: head.payload_bytes,
            first_arrival: Timestamp(self.first_arrival),
            last_arrival: Timestamp(self.last_arrival),
            first_event: Timestamp(self.first_event),
            last_event: Timestamp(self.last_event),
            streams: self.streams,
        }
    }

    #[inline]
    pub(super) fn count(&mut self, row: &super::Row) {
        self.first_arrival = self.first_arrival.min(row.first_arrival().0);
        self.last_arrival = self.last_arrival.max(row.arrival.0);
        if row.flags.has(super::Flags::EVENT) {
            self.first_event = self.first_event.min(row.event.0);
            self.last_event = self.last_event.max(row.event.0);
        }
        self.streams |= 1 << (row.stream % 64);
    }

    #[inline]
    pub(super) fn count_run(&mut self, run: &super::stats::RunStats, stream: u16) {
        self.first_arrival = self.first_arrival.min(run.first_arrival);
        self.last_arrival = self.last_arrival.max(run.last_arrival);
        self.first_event = self.first_event.min(run.first_event);
        self.last_event = self.last_event.max(run.last_event);
        self.streams |= 1 << (stream % 64);
    }
}
