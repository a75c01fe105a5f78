//! Survey of a medium the way a reader does it: every byte checked, or an error.

use crate::attributes;
use holdfast_base::{Sequence, SlotNo, StreamId, Timestamp};
use holdfast_format::{
    Chunk, Flags, FormatError, Kind, PartHeader, SectionKind, Summary, Superblock, check_image,
    decode_directory,
};
use holdfast_media::{Disk, Image, MemoryDisk};
use holdfast_ring::{RecoverError, Recovered, recover};

/// A row with its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenRow {
    /// Whose.
    pub stream: StreamId,
    /// What.
    pub kind: Kind,
    /// Whether it ends a fragmented element.
    pub last: bool,
    /// Of which element.
    pub ordinal: u64,
    /// Which fragment.
    pub number: u32,
    /// Where it begins in its element.
    pub offset: u64,
    /// When.
    pub arrival: Timestamp,
    /// Event time, if it has one.
    pub event: Option<Timestamp>,
    /// The bytes.
    pub bytes: Vec<u8>,
}

/// A slot whose every check held.
#[derive(Clone, Debug)]
pub struct SeenSlot {
    /// Its header.
    pub header: PartHeader,
    /// Its summary.
    pub summary: Summary,
    /// Its rows.
    pub rows: Vec<SeenRow>,
}

/// Decodes a slot and checks all of it.
pub fn read_slot(bytes: &[u8], superblock: &Superblock) -> Result<SeenSlot, FormatError> {
    let (header, summary) = check_image(bytes, &superblock.key, superblock.ring)?;
    let mut rows = Vec::new();
    let missing = FormatError::Malformed { structure: "summary", at: 0, what: "a section is missing" };
    let section = |kind| summary.section(kind).ok_or(missing.clone());
    let directory = section(SectionKind::ChunkDirectory)?;
    let base = section(SectionKind::Chunks)?.range().start;
    let mut chunks = Vec::new();
    for entry in decode_directory(&bytes[directory.range()], directory.crc)? {
        let at = base + entry.offset as usize;
        let chunk = Chunk::decode_at(&entry, header.sequence, &bytes[at..at + entry.bytes as usize])?;
        for (row, at) in chunk.rows() {
            let start = header.payload_offset as usize + at as usize + usize::from(row.meta);
            rows.push(SeenRow {
                stream: summary.entries[usize::from(row.stream)].stream,
                kind: row.kind,
                last: row.flags.has(Flags::LAST),
                ordinal: row.ordinal.0,
                number: row.number,
                offset: row.offset,
                arrival: row.arrival,
                event: row.flags.has(Flags::EVENT).then_some(row.event),
                bytes: bytes[start..start + row.len as usize].to_vec(),
            });
        }
        chunks.push(chunk);
    }
    attributes::check(bytes, &header, &summary, &chunks)?;
    Ok(SeenSlot { header, summary, rows })
}

/// A slot as a restart would find it.
#[derive(Debug)]
pub struct SurveyedSlot {
    /// Its sequence, by the table.
    pub sequence: Sequence,
    /// Its age, by the table.
    pub age: u64,
    /// Where it is; `None` for one that only the journal has.
    pub place: Option<SlotNo>,
    /// What is in it, or why it cannot be read.
    pub slot: Result<SeenSlot, FormatError>,
}

/// All that a restart would find on a medium, every byte checked.
#[derive(Debug)]
pub struct Survey {
    /// What recovery says.
    pub recovered: Recovered,
    /// The slots.
    pub found: Vec<SurveyedSlot>,
}

/// Recovers from a copy of the medium and reads everything.
pub fn survey(image: &Image) -> Result<Survey, RecoverError> {
    let mut disk = MemoryDisk::from_image(image.clone());
    survey_disk(&mut disk, image)
}

/// Recovers from a disk, and reads everything from `image`, which is what stands on it.
pub fn survey_disk(disk: &mut dyn Disk, image: &Image) -> Result<Survey, RecoverError> {
    let recovered = recover(disk)?;
    let superblock = &recovered.superblock;
    let slot_bytes = superblock.geometry.slot_bytes as usize;
    let mut found = Vec::new();
    for (no, sequence, age) in recovered.data() {
        let bytes = image.range(superblock.geometry.slot_offset(no), slot_bytes);
        let slot = read_slot(&bytes, superblock).and_then(|slot| {
            let right = slot.header.sequence == sequence && slot.header.slot == no;
            let what = "it holds another slot";
            right.then_some(slot).ok_or(FormatError::Malformed { structure: "slot", at: 0, what })
        });
        found.push(SurveyedSlot { sequence, age: age.0, place: Some(no), slot });
    }
    for rebuilt in &recovered.rebuilt {
        let sealed = &rebuilt.sealed;
        let slot = read_slot(&rebuilt.image, superblock);
        found.push(SurveyedSlot { sequence: sealed.sequence, age: sealed.age.0, place: None, slot });
    }
    Ok(Survey { recovered, found })
}
