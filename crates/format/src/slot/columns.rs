//! Chunk encoder: rows into bytes, each column as a base and offsets, in as few bytes as these take. The
//! loops are over one column at a time so that the compiler can use vector instructions.

use super::pending::{Pending, PendingCells};
use crate::bytes::SliceWriter;
use crate::crc32c;
use std::ops::Range;

pub(super) const COLUMNS: usize = 13;
pub(super) const HEAD_BYTES: usize = 32;
pub(super) const TABLE_BYTES: usize = 16;
pub(super) const COLUMN_BYTES: usize = 16;
/// Most bytes of a row in its columns.
pub(super) const ROW_BYTES: usize = 60;

/// Most bytes of a chunk with so many rows of so many streams.
#[inline]
pub(super) const fn worst(rows: usize, streams: usize) -> usize {
    HEAD_BYTES + TABLE_BYTES * streams + COLUMN_BYTES * COLUMNS + ROW_BYTES * rows + 7 * COLUMNS
}

/// A stream's part of a chunk.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct ChunkStream {
    /// Dictionary entry.
    pub(super) entry: u16,
    pub(super) rows: u32,
    /// The ordinal expected before its first row.
    pub(super) first: u64,
}

/// What a chunk says of itself beside its rows.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct ChunkHead {
    pub(super) first_row: u32,
    pub(super) payload_offset: u32,
    pub(super) payload_bytes: u32,
    /// Low half of the slot's sequence.
    pub(super) sequence: u32,
}

/// How some rows will be laid out.
pub(super) struct Plan {
    rows: Range<usize>,
    columns: [(u8, u64); COLUMNS],
    streams: usize,
    bytes: usize,
}

trait PackedCell: Copy + Ord + Default {
    fn wide(self) -> u64;
}

macro_rules! cells {
    ($($cell:ty),*) => {$(
        impl PackedCell for $cell {
            #[inline]
            fn wide(self) -> u64 {
                u64::from(self)
            }
        }
    )*};
}
cells!(u8, u16, u32, u64);

/// Width and base of a column.
fn measure<T: PackedCell + std::ops::BitXor<Output = T> + std::ops::BitOr<Output = T>>(
    cells: &PendingCells<'_, T>,
) -> (u8, u64) {
    let cells = match cells {
        PendingCells::Same(value) => return (0, value.wide()),
        PendingCells::Each(cells) => *cells,
    };
    let Some(&one) = cells.first() else { return (0, 0) };
    // Many columns are of one value again in the end, and that is quickly seen.
    let differing = cells.iter().fold(T::default(), |bits, cell| bits | (*cell ^ one));
    if differing.wide() == 0 {
        return (0, one.wide());
    }
    let (least, most) = cells.iter().fold((one, one), |(low, high), cell| (low.min(*cell), high.max(*cell)));
    let width = match most.wide() - least.wide() {
        0..=0xff => 1,
        0x100..=0xffff => 2,
        0x1_0000..=0xffff_ffff => 4,
        _ => 8,
    };
    (width, least.wide())
}

fn narrow<T: PackedCell>(put: &mut SliceWriter<'_>, cells: &PendingCells<'_, T>, (width, base): (u8, u64)) {
    let PendingCells::Each(cells) = *cells else { return };
    let width = usize::from(width);
    let Some(space) = put.space(width * cells.len()) else { return };
    match width {
        1 => space.iter_mut().zip(cells).for_each(|(to, cell)| *to = cell.wide().wrapping_sub(base) as u8),
        2 => fill(space, cells, |cell| (cell.wide().wrapping_sub(base) as u16).to_le_bytes()),
        4 => fill(space, cells, |cell| (cell.wide().wrapping_sub(base) as u32).to_le_bytes()),
        8 => fill(space, cells, |cell| cell.wide().wrapping_sub(base).to_le_bytes()),
        _ => {}
    }
    put.align(8);
}

fn fill<T: Copy, const N: usize>(space: &mut [u8], cells: &[T], bytes: impl Fn(T) -> [u8; N]) {
    let (places, _) = space.as_chunks_mut::<N>();
    places.iter_mut().zip(cells).for_each(|(place, cell)| *place = bytes(*cell));
}

/// Does the same to every column, in the order of the format.
macro_rules! each_column {
    ($rows:expr, $range:expr, |$number:ident, $cells:ident| $body:expr) => {{
        let (rows, range) = ($rows, $range);
        each_column!(@ rows, range, $number, $cells, $body,
            0 stream, 1 kind, 2 flags, 3 bytes, 4 excess, 5 arrival, 6 span, 7 event, 8 meta, 9 tag, 10 extra,
            11 number, 12 offset);
    }};
    (@ $rows:ident, $range:ident, $number:ident, $cells:ident, $body:expr, $($index:literal $column:ident),*) => {$(
        {
            let $number: usize = $index;
            let $cells = &$rows.$column.of($range);
            $body;
        }
    )*};
}

impl Plan {
    /// Looks at `rows` of the pending ones and decides how wide each column must be.
    pub(super) fn new(pending: &Pending, rows: Range<usize>, streams: usize) -> Self {
        let mut columns = [(0, 0); COLUMNS];
        each_column!(pending, &rows, |number, cells| columns[number] = measure(cells));
        let cells: usize =
            columns.iter().map(|(width, _)| (usize::from(*width) * rows.len()).next_multiple_of(8)).sum();
        let bytes = HEAD_BYTES + TABLE_BYTES * streams + COLUMN_BYTES * COLUMNS + cells;
        Self { rows, columns, streams, bytes }
    }

    /// Bytes of the chunk.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Writes the chunk to the start of `space`, which has at least [`Plan::bytes`].
    pub(super) fn write(
        &self,
        space: &mut [u8],
        pending: &Pending,
        head: &ChunkHead,
        streams: impl Iterator<Item = ChunkStream>,
    ) {
        let Some(space) = space.get_mut(..self.bytes) else { return };
        let mut put = SliceWriter::new(space);
        put.u32(0).u32(self.bytes as u32).u32(head.first_row).u32(self.rows.len() as u32);
        put.u32(head.payload_offset).u32(head.payload_bytes).u16(self.streams as u16).u16(COLUMNS as u16);
        put.u32(head.sequence);
        for stream in streams {
            put.u16(stream.entry).u16(0).u32(stream.rows).u64(stream.first);
        }
        for (width, base) in self.columns {
            put.u8(width).zeros(7).u64(base);
        }
        each_column!(pending, &self.rows, |number, cells| narrow(&mut put, cells, self.columns[number]));
        let crc = crc32c(&space[4..]);
        SliceWriter::new(space).u32(crc);
    }
}
