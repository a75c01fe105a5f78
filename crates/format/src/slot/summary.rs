//! The summary: the sections of the index, and each stream's share of the slot.

use super::stats::EntryStats;
use super::{Counters, MAX_CHUNK_ROWS, PartHeader, StreamKind};
use crate::bytes::{FieldReader, SliceWriter};
use crate::{FormatError, Name, crc32c};
use holdfast_base::{MAX_NAME, MAX_STREAMS, Ordinal, StreamId, Timestamp};

const WHAT: &str = "summary";
const HEAD_BYTES: usize = 64;
const SECTION_BYTES: usize = 32;
pub(super) const ENTRY_BYTES: usize = 256;
/// Sections that every slot has: payload checks, chunk directory, chunks.
pub(super) const SECTIONS: usize = 3;

/// Most bytes of a summary with so many dictionary entries, and so many columns of all of them together: each has up to three
/// sections.
pub(crate) fn summary_bytes(entries: usize, columns: usize) -> usize {
    bytes_with(entries, SECTIONS + 3 * columns)
}

/// Bytes of a summary with so many dictionary entries and sections.
pub(super) fn bytes_with(entries: usize, sections: usize) -> usize {
    HEAD_BYTES + sections * SECTION_BYTES + entries * ENTRY_BYTES
}

/// What a section is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SectionKind {
    /// A CRC32C for every 64 KiB of payload.
    PayloadChecks,
    /// Where each chunk is.
    ChunkDirectory,
    /// The chunks.
    Chunks,
    /// What there is of an attribute in short, with a filter.
    Filter,
    /// A column of an attribute.
    Attribute,
    /// What is told of the blocks of a column.
    Bounds,
    /// Of a later version: to be left alone.
    Other(u16),
}

impl SectionKind {
    fn to_number(self) -> u16 {
        match self {
            Self::PayloadChecks => 1,
            Self::ChunkDirectory => 2,
            Self::Chunks => 3,
            Self::Filter => 4,
            Self::Attribute => 5,
            Self::Bounds => 6,
            Self::Other(number) => number,
        }
    }

    fn from_number(number: u16) -> Self {
        match number {
            1 => Self::PayloadChecks,
            2 => Self::ChunkDirectory,
            3 => Self::Chunks,
            4 => Self::Filter,
            5 => Self::Attribute,
            6 => Self::Bounds,
            number => Self::Other(number),
        }
    }
}

/// A part of the index.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Section {
    /// What it is.
    pub kind: SectionKind,
    /// Which column, for what belongs to an attribute.
    pub column: u16,
    /// Whose, for the same; `u16::MAX`: of the whole slot.
    pub entry: u16,
    /// Of bounds of blocks: bytes of each; 0 for all else.
    pub encoding: u16,
    /// Where it is in the slot.
    pub offset: u32,
    /// Its bytes.
    pub bytes: u32,
    /// How many things are in it.
    pub count: u32,
    /// CRC32C of it; 0 for chunks, of which each has its own.
    pub crc: u32,
}

impl Section {
    pub(super) fn put(&self, put: &mut SliceWriter<'_>) {
        put.u16(self.kind.to_number()).u16(self.column).u16(self.entry).u16(self.encoding);
        put.u32(self.offset).u32(self.bytes).u32(self.count).u32(self.crc).u64(0);
    }

    fn read(get: &mut FieldReader<'_>) -> Result<Self, FormatError> {
        let section = Self {
            kind: SectionKind::from_number(get.u16()?),
            column: get.u16()?,
            entry: get.u16()?,
            encoding: get.u16()?,
            offset: get.u32()?,
            bytes: get.u32()?,
            count: get.u32()?,
            crc: get.u32()?,
        };
        get.take(8)?;
        Ok(section)
    }

    /// Where it is in a slot.
    pub fn range(&self) -> std::ops::Range<usize> {
        self.offset as usize..self.offset as usize + self.bytes as usize
    }
}

/// What a slot holds of one stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct EntrySummary {
    /// The stream.
    pub stream: StreamId,
    /// Version of the preamble in force; 0: none.
    pub preamble: u32,
    /// How many attributes its elements have in this slot, the first ones of its schema; 0: none, whatever the schema says,
    /// as in a slot that was made again from the journal.
    pub schema: u32,
    /// What its elements are.
    pub kind: StreamKind,
    /// Its name.
    pub name: Name,
    /// Least and greatest ordinal that a row tells of, lost ones included.
    pub ordinals: Option<(Ordinal, Ordinal)>,
    /// Rows.
    pub rows: u64,
    /// Bytes of payload, metadata included.
    pub payload_bytes: u64,
    /// Earliest arrival of a first byte, and latest arrival.
    pub arrivals: Option<(Timestamp, Timestamp)>,
    /// Least and greatest event time.
    pub events: Option<(Timestamp, Timestamp)>,
    /// Rows that are gaps.
    pub gaps: u64,
    /// What it had received and lost when the slot was sealed.
    pub counters: Counters,
    /// How many ages before this slot's the earliest element began that ends here; 0: all of them began here. At least 1 where a copy
    /// has the end of one without its beginning.
    pub back: u64,
}

/// Bounds as they are kept: nothing has the first behind the last.
fn bounds<T: Copy + PartialOrd>(first: T, last: T) -> Option<(T, T)> {
    (first <= last).then_some((first, last))
}

impl EntrySummary {
    pub(super) fn new(entry: &super::Entry, stats: &EntryStats) -> Self {
        Self {
            stream: entry.stream,
            preamble: entry.preamble,
            schema: entry.classes.len() as u32,
            kind: entry.kind,
            name: entry.name,
            ordinals: bounds(Ordinal(stats.first_ordinal), Ordinal(stats.last_ordinal)),
            rows: stats.rows,
            payload_bytes: stats.payload_bytes,
            arrivals: bounds(Timestamp(stats.first_arrival), Timestamp(stats.last_arrival)),
            events: bounds(Timestamp(stats.first_event), Timestamp(stats.last_event)),
            gaps: stats.gaps,
            counters: entry.counters,
            back: stats.back,
        }
    }

    pub(super) fn put(&self, put: &mut SliceWriter<'_>) {
        const NEVER: (Timestamp, Timestamp) = (Timestamp::MAX, Timestamp::MIN);
        let (first_ordinal, last_ordinal) = self.ordinals.unwrap_or((Ordinal(u64::MAX), Ordinal(0)));
        let (first_arrival, last_arrival) = self.arrivals.unwrap_or(NEVER);
        let (first_event, last_event) = self.events.unwrap_or(NEVER);
        put.u32(self.stream.0).u32(self.preamble).u32(self.schema).u8(self.kind as u8).u8(self.name.len());
        put.u16(0).bytes(self.name.padded()).u64(first_ordinal.0).u64(last_ordinal.0);
        put.u64(self.rows).u64(self.payload_bytes).time(first_arrival).time(last_arrival);
        put.time(first_event).time(last_event).u64(self.gaps);
        self.counters.put(put);
        put.u64(self.back).zeros(40);
    }

    pub(super) fn read(get: &mut FieldReader<'_>) -> Result<Self, FormatError> {
        let (stream, preamble, schema) = (StreamId(get.u32()?), get.u32()?, get.u32()?);
        let kind = StreamKind::read(get)?;
        let len = usize::from(get.u8()?);
        get.take(2)?;
        let name: [u8; MAX_NAME] = get.array()?;
        let name = name.get(..len).ok_or_else(|| get.malformed("a name that is too long"))?;
        let name = std::str::from_utf8(name).map_err(|_| get.malformed("a name that is not UTF-8"))?;
        let name = Name::new(name)?;
        let ordinals = bounds(Ordinal(get.u64()?), Ordinal(get.u64()?));
        let (rows, payload_bytes) = (get.u64()?, get.u64()?);
        let arrivals = bounds(get.time()?, get.time()?);
        let events = bounds(get.time()?, get.time()?);
        let gaps = get.u64()?;
        let counters = Counters::read(get)?;
        let back = get.u64()?;
        get.take(40)?;
        Ok(Self {
            stream,
            preamble,
            schema,
            kind,
            name,
            ordinals,
            rows,
            payload_bytes,
            arrivals,
            events,
            gaps,
            counters,
            back,
        })
    }
}

/// A slot's summary.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Summary {
    /// The parts of the index.
    pub sections: Vec<Section>,
    /// The dictionary: a row names its stream by its place here.
    pub entries: Vec<EntrySummary>,
    /// Most rows a chunk may have.
    pub chunk_rows: u32,
}

/// Writes a summary to `bytes`, which is [`bytes_with`] long.
pub(super) fn put_summary(
    bytes: &mut [u8],
    chunk_rows: usize,
    sections: impl Iterator<Item = Section> + Clone,
    entries: impl ExactSizeIterator<Item = EntrySummary>,
) {
    let mut put = SliceWriter::new(bytes);
    put.u16(entries.len() as u16).u16(sections.clone().count() as u16).u32(chunk_rows as u32).zeros(56);
    sections.for_each(|section| section.put(&mut put));
    entries.for_each(|entry| entry.put(&mut put));
}

/// The sections of kind filter that a summary has, in their order. Nothing is checked.
pub(crate) fn filter_sections(bytes: &[u8]) -> impl Iterator<Item = Section> + Clone {
    let count = bytes.get(2..4).map_or(0, |two| usize::from(u16::from_le_bytes([two[0], two[1]])));
    let table = bytes.get(HEAD_BYTES..).unwrap_or_default().chunks_exact(SECTION_BYTES).take(count);
    let sections = table.filter_map(|bytes| Section::read(&mut FieldReader::new(WHAT, bytes)).ok());
    sections.filter(|section| section.kind == SectionKind::Filter)
}

impl Summary {
    /// Reads the summary of the slot with this header. `bytes` begins where the summary does and may go on behind
    /// it.
    pub fn decode(header: &PartHeader, bytes: &[u8]) -> Result<Self, FormatError> {
        let bytes = FieldReader::new(WHAT, bytes).take(header.summary_bytes as usize)?;
        if crc32c(bytes) != header.summary_crc {
            return Err(FormatError::BadChecksum { structure: WHAT, at: 0 });
        }
        let mut get = FieldReader::new(WHAT, bytes);
        let (entry_count, section_count, chunk_rows) = (usize::from(get.u16()?), get.u16()?, get.u32()?);
        if entry_count > MAX_STREAMS || chunk_rows as usize > MAX_CHUNK_ROWS {
            return Err(get.malformed("more streams or rows a chunk than there may be"));
        }
        get.take(56)?;
        let mut sections = Vec::new();
        for _ in 0..section_count {
            let section = Section::read(&mut get)?;
            let end = u64::from(section.offset) + u64::from(section.bytes);
            if section.offset < header.index_offset || end > u64::from(header.footer_offset) {
                return Err(get.outside("a section"));
            }
            sections.push(section);
        }
        let mut entries = Vec::with_capacity(entry_count);
        for _ in 0..entry_count {
            entries.push(EntrySummary::read(&mut get)?);
        }
        Ok(Self { sections, entries, chunk_rows })
    }

    /// The slot's section of a kind; the first, if there are several.
    pub fn section(&self, kind: SectionKind) -> Option<&Section> {
        self.sections.iter().find(|section| section.kind == kind)
    }

    /// Where a column of a dictionary entry is told of in short: to be read by [`Outline::decode`](crate::Outline::decode).
    ///
    /// Without one the slot has no cells of that column. Where the entry has a [schema](EntrySummary::schema) with it, no
    /// element of the stream ended here; otherwise the column must be made from the payload.
    pub fn filter(&self, entry: u16, column: u16) -> Option<&Section> {
        self.of(SectionKind::Filter, entry, column)
    }

    /// Where a column of a dictionary entry is: to be read by [`Blocks`](crate::Blocks). It is there where there is a
    /// [filter](Summary::filter).
    pub fn column(&self, entry: u16, column: u16) -> Option<&Section> {
        self.of(SectionKind::Attribute, entry, column)
    }

    /// Where the blocks of a column are told of: to be read by [`BlockBounds`](crate::BlockBounds). It is there where some of them
    /// may often be left out.
    pub fn bounds(&self, entry: u16, column: u16) -> Option<&Section> {
        self.of(SectionKind::Bounds, entry, column)
    }

    fn of(&self, kind: SectionKind, entry: u16, column: u16) -> Option<&Section> {
        self.sections
            .iter()
            .find(|section| (section.kind, section.entry, section.column) == (kind, entry, column))
    }
}
