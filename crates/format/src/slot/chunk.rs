//! Chunk decoder: bytes back into rows. Everything is checked before the first row is given out.

use super::columns::{COLUMN_BYTES, COLUMNS, ChunkStream, HEAD_BYTES, TABLE_BYTES};
use super::{DirectoryEntry, Flags, Kind, MAX_CHUNK_ROWS, Row};
use crate::bytes::FieldReader;
use crate::{FormatError, crc32c};
use holdfast_base::{MAX_STREAMS, Ordinal, Sequence, Timestamp};

const WHAT: &str = "chunk";
const IMPOSSIBLE: &str = "a value that its column cannot have";

/// Columns that others depend on, by number.
const FLAGS: usize = 2;
const EVENT: usize = 7;
/// Those that tell whose a row is, and how much payload it has.
const STREAM: usize = 0;
const LEN: usize = 3;
const META: usize = 8;

/// A bit for each column.
const ALL: u16 = (1 << COLUMNS) - 1;
/// Those in which every cell is a value, and which say nothing of payload or stream: excess, arrival, span, event, offset.
const ANYTHING: u16 = 1 << 4 | 1 << 5 | 1 << 6 | 1 << EVENT | 1 << 12;

/// The greatest value of each column that is not [`ANYTHING`]; of the kind, of which few numbers are one, each is looked at.
const GREATEST: [u64; COLUMNS] = [
    u16::MAX as u64,
    0,
    u8::MAX as u64,
    u32::MAX as u64,
    u64::MAX,
    u64::MAX,
    u64::MAX,
    u64::MAX,
    u16::MAX as u64,
    u16::MAX as u64,
    u32::MAX as u64,
    u32::MAX as u64,
    u64::MAX,
];

/// A column: where its cells are, how wide, and what to add to each.
#[derive(Clone, Copy, Default, Debug)]
struct ChunkColumn {
    at: usize,
    width: usize,
    mask: u64,
    base: u64,
}

/// Some rows of a slot.
#[derive(Clone, Debug)]
pub struct Chunk {
    /// The chunk, and eight zeros behind it so that every cell can be read as eight bytes.
    bytes: Vec<u8>,
    first_row: u32,
    rows: u32,
    payload_offset: u32,
    payload_bytes: u32,
    sequence: u32,
    columns: [ChunkColumn; COLUMNS],
    /// The first row, and a bit for each column in which others may differ from it.
    first: Row,
    differing: u16,
    streams: Vec<ChunkStream>,
    /// Place in `streams` of each dictionary entry; `MAX_STREAMS`: none.
    places: Vec<u16>,
}

impl Chunk {
    /// Reads the chunk at the start of `bytes`, which may go on behind it.
    pub fn decode(bytes: &[u8]) -> Result<Self, FormatError> {
        let mut get = FieldReader::new(WHAT, bytes);
        let (crc, len) = (get.u32()?, get.u32()? as usize);
        if len < HEAD_BYTES || !len.is_multiple_of(8) {
            return Err(get.malformed("a length that no chunk can have"));
        }
        let bytes = get.seek(0).take(len)?;
        if crc32c(&bytes[4..]) != crc {
            return Err(FormatError::BadChecksum { structure: WHAT, at: 4 });
        }
        let mut get = FieldReader::new(WHAT, bytes);
        get.seek(8);
        let (first_row, rows) = (get.u32()?, get.u32()?);
        let (payload_offset, payload_bytes) = (get.u32()?, get.u32()?);
        let (stream_count, column_count) = (usize::from(get.u16()?), usize::from(get.u16()?));
        let sequence = get.u32()?;
        if rows == 0 || rows as usize > MAX_CHUNK_ROWS {
            return Err(get.seek(12).malformed("a number of rows that no chunk can have"));
        }
        if first_row.checked_add(rows).is_none() || payload_offset.checked_add(payload_bytes).is_none() {
            return Err(get.seek(8).outside("its rows or payload"));
        }
        if stream_count > MAX_STREAMS || column_count < COLUMNS {
            return Err(get.seek(24).malformed("too many streams or too few columns"));
        }
        let mut places = vec![MAX_STREAMS as u16; MAX_STREAMS];
        let mut streams = Vec::with_capacity(stream_count);
        for number in 0..stream_count {
            let entry = get.u16()?;
            get.take(2)?;
            let place =
                places.get_mut(usize::from(entry)).filter(|place| usize::from(**place) == MAX_STREAMS);
            *place.ok_or_else(|| get.malformed("a stream that is not there, or there twice"))? =
                number as u16;
            streams.push(ChunkStream { entry, rows: get.u32()?, first: get.u64()? });
        }
        let columns = columns(&mut get, column_count, rows as usize)?;
        debug_assert_eq!(HEAD_BYTES % 8 + TABLE_BYTES % 8 + COLUMN_BYTES % 8, 0);
        let mut owned = Vec::with_capacity(len + 8);
        owned.extend_from_slice(bytes);
        owned.extend_from_slice(&[0; 8]);
        let mut chunk = Self {
            bytes: owned,
            first_row,
            rows,
            payload_offset,
            payload_bytes,
            sequence,
            columns,
            first: Row::default(),
            differing: ALL,
            streams,
            places,
        };
        chunk.first = chunk.row(0).ok_or(FormatError::Malformed {
            structure: WHAT,
            at: HEAD_BYTES as u64,
            what: IMPOSSIBLE,
        })?;
        chunk.differing = differing(&columns);
        chunk.check_rows()?;
        Ok(chunk)
    }

    /// Reads the chunk that the directory of the slot with `sequence` tells of; a chunk that is sound but not that
    /// one, for example of an older lap, is refused.
    pub fn decode_at(entry: &DirectoryEntry, sequence: Sequence, bytes: &[u8]) -> Result<Self, FormatError> {
        let chunk = Self::decode(bytes)?;
        let right = chunk.first_row == entry.first_row
            && chunk.rows == entry.rows
            && chunk.payload_offset == entry.payload_offset
            && chunk.payload_bytes == entry.payload_bytes
            && chunk.bytes.len() == entry.bytes as usize + 8
            && chunk.belongs_to(sequence);
        if right {
            Ok(chunk)
        } else {
            Err(FormatError::Malformed {
                structure: WHAT,
                at: 8,
                what: "it is not the one the directory tells of",
            })
        }
    }

    /// Number of its first row in the slot.
    pub fn first_row(&self) -> u32 {
        self.first_row
    }

    /// How many rows it has; never none.
    pub fn len(&self) -> u32 {
        self.rows
    }

    /// Never: a chunk has rows.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Where its payload begins in the slot's payload.
    pub fn payload_offset(&self) -> u32 {
        self.payload_offset
    }

    /// Bytes of payload that its rows describe.
    pub fn payload_bytes(&self) -> u32 {
        self.payload_bytes
    }

    /// Whether it was made for the slot with this sequence, as far as the lower half tells.
    pub fn belongs_to(&self, sequence: Sequence) -> bool {
        self.sequence == sequence.0 as u32
    }

    /// Dictionary entries it has rows of, and how many.
    pub fn streams(&self) -> impl Iterator<Item = (u16, u32)> {
        self.streams.iter().map(|stream| (stream.entry, stream.rows))
    }

    /// The rows, each with where its metadata begins in the slot's payload.
    pub fn rows(&self) -> Rows<'_> {
        Rows {
            chunk: self,
            next: 0,
            payload: self.payload_offset,
            expected: self.streams.iter().map(|stream| stream.first).collect(),
        }
    }

    /// The rows of one dictionary entry, as [`Chunk::rows`] gives them. Of all others only the payload is counted.
    pub fn rows_of(&self, entry: u16) -> impl Iterator<Item = (Row, u32)> {
        let stream = self.streams.iter().find(|stream| stream.entry == entry);
        let rows = if stream.is_some() { self.rows as usize } else { 0 };
        let (mut expected, mut payload) = (stream.map_or(0, |stream| stream.first), self.payload_offset);
        (0..rows).filter_map(move |at| {
            let place = payload;
            payload += self.payload_of(at) as u32;
            let mut row = (self.stream_of(at) == entry).then(|| self.row(at))??;
            row.ordinal = Ordinal(expected.wrapping_add(row.ordinal.0));
            expected = row.ordinal.0.wrapping_add(u64::from(row.ends_element()));
            Some((row, place))
        })
    }

    /// The dictionary entry of a row that is known to be sound.
    #[inline]
    fn stream_of(&self, at: usize) -> u16 {
        if self.differs(STREAM) { self.cell(STREAM, at) as u16 } else { self.first.stream }
    }

    /// Bytes of payload of such a row.
    #[inline]
    fn payload_of(&self, at: usize) -> usize {
        let len = if self.differs(LEN) { self.cell(LEN, at) as usize } else { self.first.len as usize };
        let meta = if self.differs(META) { self.cell(META, at) as usize } else { self.first.meta.into() };
        len + meta
    }

    #[inline]
    fn differs(&self, column: usize) -> bool {
        self.differing & 1 << column != 0
    }

    #[inline]
    fn cell(&self, column: usize, row: usize) -> u64 {
        let ChunkColumn { at, width, mask, base } = self.columns[column];
        let at = at + row * width;
        let cell = self.bytes.get(at..at + 8).and_then(|cell| cell.first_chunk());
        base.wrapping_add(u64::from_le_bytes(*cell.unwrap_or(&[0; 8])) & mask)
    }

    /// A row without its ordinal, which depends on the rows before it; the excess is in its place.
    #[inline]
    fn row(&self, at: usize) -> Option<Row> {
        let (mut row, mut left) = (self.first, self.differing);
        while left != 0 {
            let column = left.trailing_zeros() as usize;
            left &= left - 1;
            let cell = self.cell(column, at);
            match column {
                STREAM => row.stream = u16::try_from(cell).ok()?,
                1 => row.kind = Kind::from_byte(u8::try_from(cell).ok()?)?,
                FLAGS => row.flags = Flags(u8::try_from(cell).ok()?),
                LEN => row.len = u32::try_from(cell).ok()?,
                4 => row.ordinal = Ordinal(cell),
                5 => row.arrival = Timestamp(cell as i64),
                6 => row.span = cell,
                EVENT => row.event = Timestamp(if row.flags.has(Flags::EVENT) { cell as i64 } else { 0 }),
                META => row.meta = u16::try_from(cell).ok()?,
                9 => row.tag = u16::try_from(cell).ok()?,
                10 => row.extra = u32::try_from(cell).ok()?,
                11 => row.number = u32::try_from(cell).ok()?,
                _ => row.offset = cell,
            }
        }
        Some(row)
    }

    fn place(&self, stream: u16) -> Option<usize> {
        self.places.get(usize::from(stream)).map(|place| usize::from(*place))
    }

    /// Whether a column may have a value that it cannot have: it has to be looked at row by row.
    fn doubtful(&self) -> bool {
        let greatest = |column: &ChunkColumn| column.base.checked_add(column.mask);
        let fits =
            |(column, most): (&ChunkColumn, &u64)| greatest(column).is_some_and(|greatest| greatest <= *most);
        let asked = self.differing & !ANYTHING;
        let mut columns = self.columns.iter().zip(&GREATEST).enumerate();
        columns.any(|(number, column)| asked & 1 << number != 0 && !fits(column))
    }

    /// Every row has values of its columns' types and a stream of the table, and together they cover the payload.
    fn check_rows(&self) -> Result<(), FormatError> {
        let wrong = |what| FormatError::Malformed { structure: WHAT, at: HEAD_BYTES as u64, what };
        let mut payload = 0u64;
        let mut rows = vec![0u32; self.streams.len()];
        // Where they differ in nothing of which anything is asked here, one is like the other.
        let (looked_at, alike) =
            if self.differing & !ANYTHING == 0 { (1, self.rows) } else { (self.rows, 1) };
        let doubtful = self.doubtful();
        for at in 0..looked_at as usize {
            if doubtful && self.row(at).is_none() {
                return Err(wrong(IMPOSSIBLE));
            }
            payload += self.payload_of(at) as u64 * u64::from(alike);
            let count = self.place(self.stream_of(at)).and_then(|place| rows.get_mut(place));
            *count.ok_or_else(|| wrong("a row of a stream that is not in the table"))? += alike;
        }
        if payload != u64::from(self.payload_bytes) {
            return Err(wrong("its rows do not add up to its payload"));
        }
        if !self.streams.iter().map(|stream| stream.rows).eq(rows) {
            return Err(wrong("its table counts other rows than it has"));
        }
        Ok(())
    }
}

/// A bit for each column that has more than its base.
fn differing(columns: &[ChunkColumn; COLUMNS]) -> u16 {
    let wide = columns.iter().zip(0..).filter(|(column, _)| column.width > 0);
    let differing = wide.fold(0, |bits, (_, number)| bits | 1 << number);
    // Whether a row has an event time is a flag.
    if differing & 1 << FLAGS == 0 { differing } else { differing | 1 << EVENT }
}

fn columns(
    get: &mut FieldReader<'_>,
    count: usize,
    rows: usize,
) -> Result<[ChunkColumn; COLUMNS], FormatError> {
    let mut widths = get.clone();
    let mut data = get.clone();
    data.take(count * COLUMN_BYTES)?;
    let mut columns = [ChunkColumn::default(); COLUMNS];
    for column in &mut columns {
        let width = usize::from(widths.u8()?);
        let mask = match width {
            0 => 0,
            1 | 2 | 4 | 8 => u64::MAX >> (64 - 8 * width),
            _ => return Err(widths.malformed("a width that no column can have")),
        };
        widths.take(7)?;
        *column = ChunkColumn { at: data.at(), width, mask, base: widths.u64()? };
        data.take((width * rows).next_multiple_of(8))?;
    }
    Ok(columns)
}

/// The rows of a chunk in order.
#[derive(Clone, Debug)]
pub struct Rows<'a> {
    chunk: &'a Chunk,
    next: usize,
    payload: u32,
    expected: Vec<u64>,
}

impl Iterator for Rows<'_> {
    type Item = (Row, u32);

    #[inline]
    fn next(&mut self) -> Option<(Row, u32)> {
        if self.next >= self.chunk.rows as usize {
            return None;
        }
        let mut row = self.chunk.row(self.next)?;
        let expected = self.chunk.place(row.stream).and_then(|place| self.expected.get_mut(place))?;
        row.ordinal = Ordinal(expected.wrapping_add(row.ordinal.0));
        *expected = row.ordinal.0.wrapping_add(u64::from(row.ends_element()));
        let at = self.payload;
        self.payload += row.payload() as u32;
        self.next += 1;
        Some((row, at))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.chunk.rows as usize - self.next;
        (left, Some(left))
    }
}

impl ExactSizeIterator for Rows<'_> {}
