//! Checks over a slot's payload, and over a slot as a whole. Each part's own module reads that part.

use super::audit::{Ended, check_columns};
use super::{
    Chunk, DirectoryEntry, PartHeader, Section, SectionKind, Summary, decode_directory, footer_binds,
};
use crate::bytes::{FieldReader, u32_at};
use crate::{FormatError, Key, crc32c};
use holdfast_base::{BLOCK, CHECK_BLOCK, RingId};

/// Checks one 64 KiB block of a slot's payload (or what remains, for the last) against the slot's payload checks.
pub fn check_payload_block(checks: &[u8], block: usize, bytes: &[u8]) -> Result<(), FormatError> {
    const WHAT: &str = "payload";
    let at = (block as u64).saturating_mul(CHECK_BLOCK as u64);
    let check = block.checked_mul(4).filter(|check| check + 4 <= checks.len());
    let check = check.ok_or(FormatError::OutOfBounds { structure: WHAT, at, what: "a block" })?;
    if u32_at(checks, check) == crc32c(bytes) {
        Ok(())
    } else {
        Err(FormatError::BadChecksum { structure: WHAT, at })
    }
}

/// Checks a whole slot: every check in it, and that its parts agree.
pub fn check_image(image: &[u8], key: &Key, ring: RingId) -> Result<(PartHeader, Summary), FormatError> {
    let header = PartHeader::decode(image, key, ring)?;
    let mut get = FieldReader::new("slot", image);
    footer_binds(&header, get.seek(header.footer_offset as usize).take(BLOCK)?, key)?;
    let summary = Summary::decode(
        &header,
        get.seek(PartHeader::SUMMARY_AT as usize).take(header.summary_bytes as usize)?,
    )?;
    check_payload(&header, &summary, image)?;
    let ended = check_rows(&header, &summary, image)?;
    check_columns(&header, &summary, image, &ended)?;
    Ok((header, summary))
}

fn section<'a>(
    summary: &Summary,
    kind: SectionKind,
    image: &'a [u8],
) -> Result<(Section, &'a [u8]), FormatError> {
    let missing = FormatError::Malformed { structure: "summary", at: 64, what: "a section is missing" };
    let section = summary.section(kind).ok_or(missing)?;
    let bytes = FieldReader::new("slot", image).seek(section.offset as usize).take(section.bytes as usize)?;
    Ok((*section, bytes))
}

fn check_payload(header: &PartHeader, summary: &Summary, image: &[u8]) -> Result<(), FormatError> {
    let (checks, bytes) = section(summary, SectionKind::PayloadChecks, image)?;
    if crc32c(bytes) != checks.crc {
        return Err(FormatError::BadChecksum { structure: "payload checks", at: 0 });
    }
    let payload = FieldReader::new("slot", image)
        .seek(header.payload_offset as usize)
        .take(header.payload_bytes as usize)?;
    if bytes.len() != payload.len().div_ceil(CHECK_BLOCK) * 4 {
        return Err(FormatError::OutOfBounds { structure: "payload checks", at: 0, what: "the payload" });
    }
    payload
        .chunks(CHECK_BLOCK)
        .enumerate()
        .try_for_each(|(block, piece)| check_payload_block(bytes, block, piece))
}

fn check_rows(header: &PartHeader, summary: &Summary, image: &[u8]) -> Result<Ended, FormatError> {
    let wrong = |what| FormatError::Malformed { structure: "slot", at: 140, what };
    let (section_of_directory, bytes) = section(summary, SectionKind::ChunkDirectory, image)?;
    let directory = decode_directory(bytes, section_of_directory.crc)?;
    let (_, chunks) = section(summary, SectionKind::Chunks, image)?;
    let mut found = vec![(0u64, 0u64); summary.entries.len()];
    let mut ended = Ended::default();
    for entry in &directory {
        let bytes =
            FieldReader::new("chunks", chunks).seek(entry.offset as usize).take(entry.bytes as usize)?;
        let chunk = Chunk::decode_at(entry, header.sequence, bytes)?;
        check_bounds(entry, &chunk)?;
        ended.next_chunk();
        for (row, _) in chunk.rows() {
            let count = found.get_mut(usize::from(row.stream));
            let (rows, payload) = count.ok_or_else(|| wrong("a row of a stream that the summary lacks"))?;
            *rows += 1;
            *payload += row.payload() as u64;
            if row.completes_element() {
                ended.count(row.stream);
            }
        }
    }
    let end = directory
        .last()
        .map_or((0, 0), |last| (last.first_row + last.rows, last.payload_offset + last.payload_bytes));
    if end != (header.rows, header.payload_bytes) {
        return Err(wrong("its chunks do not add up to its rows and payload"));
    }
    if !summary.entries.iter().map(|entry| (entry.rows, entry.payload_bytes)).eq(found) {
        return Err(wrong("its summary counts other rows than it has"));
    }
    Ok(ended)
}

/// What the directory says of times and streams is what the chunk has.
fn check_bounds(entry: &DirectoryEntry, chunk: &Chunk) -> Result<(), FormatError> {
    let mut bounds = super::directory::Bounds::EMPTY;
    chunk.rows().for_each(|(row, _)| bounds.count(&row));
    let same = bounds.first_arrival == entry.first_arrival.0
        && bounds.last_arrival == entry.last_arrival.0
        && bounds.first_event == entry.first_event.0
        && bounds.last_event == entry.last_event.0
        && bounds.streams == entry.streams;
    if same {
        Ok(())
    } else {
        let what = "the bounds of a chunk are not those of its rows";
        Err(FormatError::Malformed { structure: "chunk directory", at: 0, what })
    }
}
