//! Incremental slot verification: the next range to read, and the verdict on what was read. Pure: the driver
//! reads behind capture, `holdfast check` reads in a row.

use crate::blocking::Blocking;
use crate::table::Bounds;
use holdfast_base::{BLOCK, CHECK_BLOCK, RingId, Sequence, SlotNo};
use holdfast_format::{
    Block, BlockBounds, Chunk, DirectoryEntry, FormatError, Geometry, Key, Outline, PartHeader, Section,
    SectionKind, Summary, Superblock, check_payload_block, crc32c, decode_directory, footer_binds,
};
use holdfast_media::DiskError;
use std::ops::Range;

/// Most bytes that a check reads at once.
pub const CHECK_QUANTUM: usize = 1 << 20;

/// Bytes of the longest read that a recorder starts for itself: a quantum, and what it needs around it.
pub const OWN_QUANTUM: usize = CHECK_QUANTUM + 2 * BLOCK;

/// What is read of a slot at first when only its head matters: room for the summary of a dozen streams.
const HEAD_READ: usize = 8 << 10;

/// Most bytes that looking at a slot's head reads at once.
pub(crate) fn most_of_a_head(geometry: &Geometry) -> usize {
    (geometry.summary_bytes().next_multiple_of(BLOCK)).max(HEAD_READ)
}

/// How much of a slot is verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// Header and summary, in one small read unless there are very many streams.
    Head,
    /// Header, footer and summary.
    Brief,
    /// Every byte.
    Full,
}

/// Why a slot is not sound.
#[derive(Debug, thiserror::Error)]
pub enum Damage {
    /// It could not be read.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// It says something else than it should.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// It holds another slot's image.
    #[error("the header is that of slot {found}")]
    Elsewhere {
        /// What the header says.
        found: SlotNo,
    },
}

#[derive(Debug)]
enum Stage {
    Head,
    Header,
    Footer(PartHeader),
    Summary(PartHeader),
    Checks,
    /// It may be larger than what is read at once: how much of it is there.
    Directory {
        next: usize,
    },
    Chunks {
        next: usize,
    },
    /// Filters and columns of attributes, section by section: which one of the summary's, and how much of it has passed.
    Columns {
        section: usize,
        next: usize,
    },
    Payload {
        next: usize,
    },
    Done,
}

/// The check of one slot under way.
#[derive(Debug)]
pub struct SlotCheck {
    slot: SlotNo,
    offset: u64,
    depth: Depth,
    stage: Stage,
    sound: Option<(PartHeader, Summary)>,
    checks: Vec<u8>,
    /// Bytes of the directory or of a column that are read at once, and what has been read of a part that is checked whole.
    piece: usize,
    partial: Vec<u8>,
    directory: Vec<DirectoryEntry>,
    /// What is told of the blocks of columns that are still to be checked.
    bounds: Vec<(Section, BlockBounds)>,
}

/// The blocks that cover a range, and where the range begins in them.
fn blocks(range: &Range<usize>) -> (usize, usize, usize) {
    let start = range.start / BLOCK * BLOCK;
    (start, range.end.next_multiple_of(BLOCK) - start, range.start - start)
}

/// Where a chunk lies in its section.
fn place(entry: &DirectoryEntry) -> Range<usize> {
    entry.offset as usize..entry.offset as usize + entry.bytes as usize
}

impl SlotCheck {
    /// Begins with the slot at `offset` on the lane.
    pub fn new(slot: SlotNo, offset: u64, depth: Depth) -> Self {
        Self {
            slot,
            offset,
            depth,
            stage: if depth == Depth::Head { Stage::Head } else { Stage::Header },
            sound: None,
            checks: Vec::new(),
            piece: CHECK_QUANTUM,
            partial: Vec::new(),
            directory: Vec::new(),
            bounds: Vec::new(),
        }
    }

    /// How much is verified.
    pub fn depth(&self) -> Depth {
        self.depth
    }

    /// The slot.
    pub fn slot(&self) -> SlotNo {
        self.slot
    }

    /// What to read next: offset on the lane and length; `None` when the slot has passed.
    pub fn next_read(&self) -> Option<(u64, usize)> {
        let range = self.range()?;
        let (start, len, _) = blocks(&range);
        Some((self.offset + start as u64, len))
    }

    /// Header, summary and bounds of a slot that has passed that far.
    pub fn sound(&self) -> Option<(&PartHeader, &Summary, Bounds)> {
        self.sound
            .as_ref()
            .map(|(header, summary)| (header, summary, Bounds::of(summary.entries.iter().copied())))
    }

    fn section(&self, kind: SectionKind) -> Range<usize> {
        let section = self.sound.as_ref().and_then(|(_, summary)| summary.section(kind));
        section.map_or(0..0, holdfast_format::Section::range)
    }

    fn range(&self) -> Option<Range<usize>> {
        let range = match &self.stage {
            Stage::Head => 0..HEAD_READ,
            Stage::Header => 0..BLOCK,
            Stage::Footer(header) => header.footer_offset as usize..header.footer_offset as usize + BLOCK,
            Stage::Summary(header) => BLOCK..BLOCK + header.summary_bytes as usize,
            Stage::Checks => self.section(SectionKind::PayloadChecks),
            Stage::Directory { next } => {
                let directory = self.section(SectionKind::ChunkDirectory);
                let start = directory.start + next;
                start..(start + self.piece).min(directory.end)
            }
            Stage::Chunks { next } => {
                let base = self.section(SectionKind::Chunks).start;
                let (_, run) = self.run(*next);
                base + run.start..base + run.end
            }
            Stage::Columns { section, next } => {
                let section = self.sound.as_ref()?.1.sections.get(*section)?.range();
                let start = section.start + next;
                start..(start + self.piece).min(section.end)
            }
            Stage::Payload { next } => {
                let (header, _) = self.sound.as_ref()?;
                let start = header.payload_offset as usize + next;
                start..(start + CHECK_QUANTUM).min((header.payload_offset + header.payload_bytes) as usize)
            }
            Stage::Done => return None,
        };
        Some(range)
    }

    /// The chunks from `next` on that are read at once: up to which one, and where they lie in their section. They lie in
    /// any order: the builder leaves the youngest first.
    fn run(&self, next: usize) -> (usize, Range<usize>) {
        let Some((first, rest)) = self.directory[next..].split_first() else {
            return (next, 0..0);
        };
        let (mut end, mut span) = (next + 1, place(first));
        for here in rest.iter().map(place) {
            let wider = span.start.min(here.start)..span.end.max(here.end);
            if wider.len() > CHECK_QUANTUM - 2 * BLOCK {
                break;
            }
            (end, span) = (end + 1, wider);
        }
        (end, span)
    }

    /// Takes what was asked for.
    pub fn feed(&mut self, bytes: &[u8], key: &Key, ring: RingId) -> Result<(), Damage> {
        let Some(range) = self.range() else {
            return Ok(());
        };
        let (_, _, skip) = blocks(&range);
        let short = FormatError::OutOfBounds { structure: "slot", at: range.start as u64, what: "a read" };
        let bytes = bytes.get(skip..skip + range.len()).ok_or(short)?;
        self.take(bytes, key, ring)?;
        // Elements may all be empty: then there is no payload to check, and nothing to read.
        while self.range().is_some_and(|range| range.is_empty()) {
            self.take(&[], key, ring)?;
        }
        Ok(())
    }

    fn take(&mut self, bytes: &[u8], key: &Key, ring: RingId) -> Result<(), Damage> {
        self.stage = match std::mem::replace(&mut self.stage, Stage::Done) {
            Stage::Head => {
                let header = self.header(bytes, key, ring)?;
                let summary = BLOCK..BLOCK + header.summary_bytes as usize;
                match bytes.get(summary) {
                    Some(summary) => self.summarised(header, summary)?,
                    None => Stage::Summary(header),
                }
            }
            Stage::Header => Stage::Footer(self.header(bytes, key, ring)?),
            Stage::Footer(header) => {
                footer_binds(&header, bytes, key)?;
                Stage::Summary(header)
            }
            Stage::Summary(header) => self.summarised(header, bytes)?,
            Stage::Checks => {
                self.same_crc(SectionKind::PayloadChecks, bytes)?;
                self.checks.clear();
                self.checks.extend_from_slice(bytes);
                Stage::Directory { next: 0 }
            }
            Stage::Directory { next } => {
                self.partial.extend_from_slice(bytes);
                let next = next + bytes.len();
                if next < self.section(SectionKind::ChunkDirectory).len() {
                    self.stage = Stage::Directory { next };
                    return Ok(());
                }
                let crc = self.crc(SectionKind::ChunkDirectory);
                self.directory = decode_directory(&std::mem::take(&mut self.partial), crc)?;
                let chunks = self.section(SectionKind::Chunks).len();
                if self.directory.iter().any(|entry| place(entry).end > chunks) {
                    let what = "a chunk";
                    return Err(FormatError::OutOfBounds { structure: "chunk directory", at: 0, what }.into());
                }
                self.after_chunks(0)
            }
            Stage::Chunks { next } => {
                let (end, span) = self.run(next);
                let sequence = self.sound.as_ref().map(|(h, _)| h.sequence).unwrap_or_default();
                for entry in &self.directory[next..end] {
                    let at = entry.offset as usize - span.start;
                    let chunk = bytes.get(at..at + entry.bytes as usize).unwrap_or(&[]);
                    Chunk::decode_at(entry, sequence, chunk)?;
                }
                self.after_chunks(end)
            }
            Stage::Columns { section, next } => self.column(section, next, bytes)?,
            Stage::Payload { next } => {
                for (at, block) in bytes.chunks(CHECK_BLOCK).enumerate() {
                    check_payload_block(&self.checks, next / CHECK_BLOCK + at, block)?;
                }
                self.after_payload(next + bytes.len())
            }
            Stage::Done => Stage::Done,
        };
        Ok(())
    }

    fn header(&self, bytes: &[u8], key: &Key, ring: RingId) -> Result<PartHeader, Damage> {
        let header = PartHeader::decode(bytes, key, ring)?;
        if header.slot == self.slot { Ok(header) } else { Err(Damage::Elsewhere { found: header.slot }) }
    }

    fn summarised(&mut self, header: PartHeader, bytes: &[u8]) -> Result<Stage, Damage> {
        let summary = Summary::decode(&header, bytes)?;
        self.sound = Some((header, summary));
        Ok(if self.depth == Depth::Full { Stage::Checks } else { Stage::Done })
    }

    fn after_chunks(&self, next: usize) -> Stage {
        if next < self.directory.len() { Stage::Chunks { next } } else { self.columns_from(0) }
    }

    /// Goes on with the first section from that one on that is of an attribute.
    fn columns_from(&self, section: usize) -> Stage {
        let sections = self.sound.iter().flat_map(|(_, summary)| summary.sections.iter().enumerate());
        let of_columns = |kind: SectionKind| {
            matches!(kind, SectionKind::Filter | SectionKind::Bounds | SectionKind::Attribute)
        };
        let found = sections.skip(section).find(|(_, section)| of_columns(section.kind));
        found.map_or_else(|| self.after_payload(0), |(section, _)| Stage::Columns { section, next: 0 })
    }

    /// Takes a piece of such a section.
    fn column(&mut self, number: usize, next: usize, bytes: &[u8]) -> Result<Stage, FormatError> {
        let Some((header, summary)) = &self.sound else { return Ok(Stage::Done) };
        let section = summary.sections[number];
        let left = section.range().len() - next;
        let passed = if section.kind == SectionKind::Attribute {
            let told = self.bounds.iter().find(|(column, _)| *column == section).map(|(_, told)| told);
            blocks_of(&section, header.sequence, (next, bytes), bytes.len() == left, told)?
        } else {
            self.partial.extend_from_slice(bytes);
            bytes.len()
        };
        if passed < left {
            return Ok(Stage::Columns { section: number, next: next + passed });
        }
        let partial = std::mem::take(&mut self.partial);
        match section.kind {
            SectionKind::Filter => drop(Outline::decode(&partial, &section)?),
            SectionKind::Bounds => {
                let column = summary.column(section.entry, section.column);
                let column = column.ok_or(FormatError::Malformed {
                    structure: "bounds of blocks",
                    at: 0,
                    what: "the column that they are of is not there",
                })?;
                let told = BlockBounds::decode(&partial, &section, column)?;
                self.bounds.push((*column, told));
            }
            _ => {}
        }
        Ok(self.columns_from(number + 1))
    }

    fn after_payload(&self, next: usize) -> Stage {
        let whole = self.sound.as_ref().map_or(0, |(h, _)| h.payload_bytes as usize);
        if next < whole { Stage::Payload { next } } else { Stage::Done }
    }

    fn crc(&self, kind: SectionKind) -> u32 {
        self.sound.as_ref().and_then(|(_, summary)| summary.section(kind)).map_or(0, |s| s.crc)
    }

    fn same_crc(&self, kind: SectionKind, bytes: &[u8]) -> Result<(), FormatError> {
        if crc32c(bytes) == self.crc(kind) {
            Ok(())
        } else {
            Err(FormatError::BadChecksum { structure: "payload checks", at: 0 })
        }
    }
}

/// Checks the blocks of a column that `bytes` begin with, up to the last one that is whole there; how many bytes they have.
fn blocks_of(
    section: &Section,
    sequence: Sequence,
    (start, bytes): (usize, &[u8]),
    is_end: bool,
    told: Option<&BlockBounds>,
) -> Result<usize, FormatError> {
    let mut at = 0;
    while at < bytes.len() {
        match Block::read(&bytes[at..]).and_then(|block| block.decode().map(|_| block)) {
            Ok(block)
                if (block.entry(), block.column()) != (section.entry, section.column)
                    || !block.belongs_to(sequence) =>
            {
                let what = "a block that is not of this column";
                return Err(FormatError::Malformed { structure: "attribute column", at: at as u64, what });
            }
            Ok(block) if told.is_some_and(|told| !told.is_true_of(start + at, &block)) => {
                let what = "what is told of a block is not so";
                return Err(FormatError::Malformed { structure: "bounds of blocks", at: at as u64, what });
            }
            Ok(block) => at += block.bytes(),
            // It may go on in the next piece, where it is the first.
            Err(_) if at > 0 && !is_end => break,
            Err(error) => return Err(error),
        }
    }
    Ok(at)
}

/// Verifies one slot from end to end; `window` must hold a quantum.
pub fn check_slot(
    window: &mut Blocking<'_>,
    superblock: &Superblock,
    slot: SlotNo,
    depth: Depth,
) -> Result<SlotCheck, Damage> {
    let mut check = SlotCheck::new(slot, superblock.geometry.slot_offset(slot), depth);
    while let Some((offset, len)) = check.next_read() {
        let bytes = window.read(offset, len)?;
        check.feed(bytes, &superblock.key, superblock.ring)?;
    }
    Ok(check)
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_base::{Ordinal, Timestamp};
    use holdfast_format::{
        Builder, CellBuffer, CellsAt, Class, Entry, Kind, Row, SlotFlags, SlotId, check_image, restamp,
    };

    /// Rings of earlier versions may have directories that are larger than what is read at once.
    #[test]
    fn a_directory_is_checked_in_as_many_pieces_as_it_takes() {
        let (key, id) = (Key([3; 32]), SlotId { ring: RingId([7; 16]), ..SlotId::default() });
        let mut image = vec![0; 64 << 10];
        let mut builder = Builder::new(64 << 10, 1);
        builder.open(&mut image, id, Timestamp(1), &[Entry::default()]).unwrap();
        for number in 0..10_000 {
            if builder.room() == 0 {
                break;
            }
            let at = Timestamp(number);
            builder.row(
                &mut image,
                &Row { kind: Kind::Element, ordinal: Ordinal(number as u64), arrival: at, ..Row::default() },
            );
        }
        builder.seal(&mut image, &key, SlotNo(0), Timestamp(20_000), SlotFlags::default());
        let run = |image: &[u8], piece: usize| {
            let mut check = SlotCheck::new(SlotNo(0), 0, Depth::Full);
            check.piece = piece;
            let mut reads = 0;
            while let Some((offset, len)) = check.next_read() {
                check.feed(&image[offset as usize..offset as usize + len], &key, id.ring)?;
                reads += 1;
            }
            Ok::<_, Damage>((reads, check.section(SectionKind::ChunkDirectory)))
        };
        let (at_once, directory) = run(&image, CHECK_QUANTUM).unwrap();
        assert!(directory.len() > 1000, "{directory:?}");
        assert_eq!(run(&image, 100).unwrap().0, at_once + directory.len().div_ceil(100) - 1);
        image[directory.end - 1] ^= 1;
        assert!(run(&image, 100).is_err());
    }

    /// Columns may be larger than what is read at once, and so may filters.
    #[test]
    fn columns_are_checked_to_the_last_byte_in_as_many_pieces_as_it_takes() {
        let (key, id) = (Key([3; 32]), SlotId { ring: RingId([7; 16]), ..SlotId::default() });
        let classes = [Class::Word, Class::Bytes, Class::Word].into_iter().collect();
        let entries = [Entry { classes, ..Entry::default() }];
        let mut cells: Vec<_> = classes.iter().map(|class| CellBuffer::new(class, 300, 4000)).collect();
        let rows: Vec<Row> = (0..300).map(|n| Row { ordinal: Ordinal(n), ..Row::default() }).collect();
        for n in 0..300u64 {
            cells[0].word((n * n) << (n % 30));
            cells[1].bytes(&[n as u8; 9][..(n % 9) as usize]);
            cells[2].word(n);
        }
        let mut image = vec![0; 64 << 10];
        let mut builder = Builder::new(64 << 10, 1);
        builder.prepare(&entries).unwrap();
        builder.open(&mut image, id, Timestamp(1), &entries).unwrap();
        for (number, run) in rows.chunks(50).enumerate() {
            let cells = CellsAt { columns: &cells, first: 50 * number };
            builder.elements(&mut image, run, |row| *row, cells);
        }
        builder.seal(&mut image, &key, SlotNo(0), Timestamp(2), SlotFlags::default());
        let run = |image: &[u8], piece: usize| {
            let mut check = SlotCheck::new(SlotNo(0), 0, Depth::Full);
            check.piece = piece;
            let mut reads = 0;
            while let Some((offset, len)) = check.next_read() {
                check.feed(&image[offset as usize..offset as usize + len], &key, id.ring)?;
                reads += 1;
            }
            let (_, summary, _) = check.sound().unwrap();
            let columns = [
                summary.filter(0, 0),
                summary.filter(0, 1),
                summary.column(0, 0),
                summary.column(0, 1),
                summary.bounds(0, 2),
            ];
            Ok::<_, Damage>((reads, columns.map(|section| section.unwrap().range())))
        };
        let (at_once, columns) = run(&image, CHECK_QUANTUM).unwrap();
        // A piece has at least one block: 64 rows at most.
        let (in_pieces, _) = run(&image, 700).unwrap();
        assert!(in_pieces > at_once, "{in_pieces} {at_once}");
        for at in columns.into_iter().flatten() {
            image[at] ^= 1;
            assert!(run(&image, CHECK_QUANTUM).is_err() && run(&image, 700).is_err(), "byte {at}");
            image[at] ^= 1;
        }
        // Bounds that are not those of their blocks, though all checks hold.
        let (_, summary) = check_image(&image, &key, id.ring).unwrap();
        let at = summary.sections.iter().position(|section| section.kind == SectionKind::Bounds).unwrap();
        let range = summary.sections[at].range();
        image[range.end - 1] ^= 1;
        let crc = crc32c(&image[range]).to_le_bytes();
        image[BLOCK + 64 + 32 * at + 20..][..4].copy_from_slice(&crc);
        let len = u32::from_le_bytes(image[112..116].try_into().unwrap()) as usize;
        let crc = crc32c(&image[BLOCK..BLOCK + len]).to_le_bytes();
        image[116..120].copy_from_slice(&crc);
        restamp(&mut image, &key, SlotNo(0)).unwrap();
        for piece in [CHECK_QUANTUM, 700] {
            let found = run(&image, piece).unwrap_err().to_string();
            assert!(found.contains("bounds of blocks"), "{found}");
        }
    }
}
