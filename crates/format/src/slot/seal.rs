//! Sealing of an open slot: index, summary, header and footer around the payload that is there.

use super::header::{TAG_AT, put_footer};
use super::summary::{SECTIONS, bytes_with, put_summary};
use super::{Builder, DirectoryEntry, EntrySummary, PartHeader, Section, SectionKind, SlotFlags};
use crate::bytes::{FieldReader, SliceWriter, blocks, u32_at};
use crate::{FormatError, Key, crc32c};
use holdfast_base::{BLOCK, CHECK_BLOCK, Epoch, Sequence, SlotNo, Timestamp};

/// A slot that is ready to be written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sealed {
    /// Bytes to write from the start of the buffer: a multiple of 4096.
    pub bytes: usize,
    /// What it is.
    pub sequence: Sequence,
    /// Its rows.
    pub rows: u32,
    /// Its payload.
    pub payload_bytes: usize,
}

impl Builder {
    /// Finishes the slot for the place `slot`. Bytes that no row describes are left out. Afterwards only
    /// [`Builder::summaries`] and the plain getters make sense until the builder is opened again.
    pub fn seal(
        &mut self,
        buffer: &mut [u8],
        key: &Key,
        slot: SlotNo,
        sealed: Timestamp,
        flags: SlotFlags,
    ) -> Sealed {
        self.close_chunk(buffer);
        self.finish_checks(buffer);
        let payload_end = self.payload_at + self.payload;
        let index_at = blocks(payload_end);
        let checks_at = self.attributes.lay_out(index_at);
        let directory_at = checks_at + self.checks.len() * 4;
        let chunks_at = directory_at + self.directory.len() * DirectoryEntry::BYTES;
        let chunks_end = chunks_at + self.chunk_bytes;
        let footer_at = blocks(chunks_end);

        // The chunks move first: the room that was kept makes sure that nothing before them reaches them.
        buffer.copy_within(self.slot_bytes - self.chunk_bytes..self.slot_bytes, chunks_at);
        buffer[payload_end..index_at].fill(0);
        buffer[chunks_end..footer_at].fill(0);
        self.attributes.put(buffer);
        let mut put = SliceWriter::new(&mut buffer[checks_at..chunks_at]);
        for check in &self.checks {
            put.u32(*check);
        }
        for entry in &self.directory {
            let offset = self.chunk_bytes as u32 - entry.offset;
            DirectoryEntry { offset, ..*entry }.put(&mut put);
        }

        let section = |kind, at: usize, end: usize, count: usize, crc| Section {
            kind,
            column: 0,
            entry: u16::MAX,
            encoding: 0,
            offset: at as u32,
            bytes: (end - at) as u32,
            count: count as u32,
            crc,
        };
        let chunks = self.directory.len();
        let sections: [Section; SECTIONS] = [
            section(
                SectionKind::PayloadChecks,
                checks_at,
                directory_at,
                self.checks.len(),
                crc32c(&buffer[checks_at..directory_at]),
            ),
            section(
                SectionKind::ChunkDirectory,
                directory_at,
                chunks_at,
                chunks,
                crc32c(&buffer[directory_at..chunks_at]),
            ),
            section(SectionKind::Chunks, chunks_at, chunks_end, chunks, 0),
        ];
        let sections = sections.into_iter().chain(self.attributes.sections());
        let summary_end = BLOCK + bytes_with(self.entries.len(), sections.clone().count());
        put_summary(&mut buffer[BLOCK..summary_end], self.chunk_rows, sections, self.summaries());
        buffer[summary_end..self.payload_at].fill(0);

        let header = PartHeader {
            flags,
            slot,
            ring: self.id.ring,
            group: self.id.group,
            sequence: self.id.sequence,
            epoch: self.id.epoch,
            age: self.id.age,
            row: self.id.sequence.0,
            lane: self.id.lane,
            n: 1,
            opened: self.opened,
            sealed,
            summary_bytes: (summary_end - BLOCK) as u32,
            summary_crc: crc32c(&buffer[BLOCK..summary_end]),
            payload_offset: self.payload_at as u32,
            payload_bytes: self.payload as u32,
            index_offset: index_at as u32,
            index_bytes: (chunks_end - index_at) as u32,
            footer_offset: footer_at as u32,
            rows: self.rows,
            ..PartHeader::default()
        };
        let tag = header.encode(&mut buffer[..BLOCK], key);
        put_footer(&mut buffer[footer_at..footer_at + BLOCK], key, header.sequence, header.epoch, &tag);
        Sealed {
            bytes: footer_at + BLOCK,
            sequence: header.sequence,
            rows: self.rows,
            payload_bytes: self.payload,
        }
    }

    /// What the slot holds of each stream so far, in the order of the dictionary.
    pub fn summaries(&self) -> impl ExactSizeIterator<Item = EntrySummary> {
        self.entries.iter().map(|state| EntrySummary::new(&state.entry, &state.stats))
    }

    /// Cuts off what no row describes, and checks the last piece of the payload.
    fn finish_checks(&mut self, buffer: &[u8]) {
        self.payload = self.covered;
        self.checks.truncate(self.payload / CHECK_BLOCK);
        let rest = self.checks.len() * CHECK_BLOCK;
        if rest < self.payload {
            self.checks.push(crc32c(&buffer[self.payload_at + rest..self.payload_at + self.payload]));
        }
    }
}

/// Makes a sealed slot ready for another place, because the first went bad: only the slot number and the tags
/// change.
pub fn restamp(buffer: &mut [u8], key: &Key, slot: SlotNo) -> Result<(), FormatError> {
    const WHAT: &str = "sealed slot";
    let footer_at = u32_at(buffer, 136) as usize;
    let mut get = FieldReader::new(WHAT, buffer);
    get.magic(*b"HFSLOT01")?;
    let (sequence, epoch) = (Sequence(get.seek(48).u64()?), Epoch(get.u64()?));
    get.seek(footer_at).take(BLOCK)?;
    SliceWriter::new(buffer).seek(12).u32(slot.0);
    let tag = key.tag(&buffer[..TAG_AT]);
    SliceWriter::new(buffer).seek(TAG_AT).bytes(&tag);
    put_footer(&mut buffer[footer_at..footer_at + BLOCK], key, sequence, epoch, &tag);
    Ok(())
}
