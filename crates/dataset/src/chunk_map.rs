//! Places of a file's chunks, from the chunk index of its summary: a second source for records whose heads are damaged.

use crate::damage::Damage;
use crate::reader::summary;
use crate::records::{HEAD, MAGIC};
use crate::storage::RangeRead;
use mcap::records::op;
use std::collections::BTreeMap;
use std::io;

/// Chunks by offset, each with the bytes of its record.
#[derive(Debug, Default)]
pub(crate) struct ChunkMap(BTreeMap<u64, u64>);

impl ChunkMap {
    /// Reads the chunk index of a file. Without a whole summary there are no entries, nor if entries overlap.
    pub(crate) fn of(file: &dyn RangeRead) -> Self {
        let chunks = summary(file).map(|summary| summary.chunks).unwrap_or_default();
        let entries: BTreeMap<u64, u64> =
            chunks.iter().map(|chunk| (chunk.chunk_start_offset, chunk.chunk_length)).collect();
        let mut end = MAGIC.len() as u64;
        for (at, length) in &entries {
            let is_sound = *at >= end && *length > HEAD as u64;
            end = at.saturating_add(*length);
            if !is_sound || end > file.size() {
                return Self::default();
            }
        }
        Self(entries)
    }

    /// Bytes of the record of the chunk at this offset.
    pub(crate) fn length_at(&self, at: u64) -> Option<u64> {
        self.0.get(&at).copied()
    }

    /// Offset of the first chunk behind this one.
    pub(crate) fn next_behind(&self, at: u64) -> Option<u64> {
        self.0.range(at.saturating_add(1)..).next().map(|(at, _)| *at)
    }

    /// First place of a chunk at which the file has another record.
    fn first_missing(&self, file: &dyn RangeRead) -> io::Result<Option<Damage>> {
        for (at, length) in &self.0 {
            let head = file.read(*at, HEAD)?;
            let stated = head[1..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
            if head[0] != op::CHUNK || stated != length - HEAD as u64 {
                let cause = format!("its head is damaged: the index has a chunk of {length} bytes there");
                return Ok(Some(Damage { at: *at, cause, lost_chunks: 0 }));
            }
        }
        Ok(None)
    }
}

/// Damage that a scan from record to record does not see: chunks of the index that it passed over, or messages that the
/// statistics count and the scan did not meet.
pub(crate) fn unseen_damage(file: &dyn RangeRead, messages: u64) -> io::Result<Option<Damage>> {
    if let Some(damage) = ChunkMap::of(file).first_missing(file)? {
        return Ok(Some(damage));
    }
    let statistics = summary(file).ok().and_then(|summary| summary.statistics);
    let counted = statistics.map(|statistics| statistics.message_count);
    Ok(counted.filter(|counted| *counted > messages).map(|counted| Damage {
        at: MAGIC.len() as u64,
        cause: format!("{messages} messages were found, and the statistics of the file count {counted}"),
        lost_chunks: 0,
    }))
}
