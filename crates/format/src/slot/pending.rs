//! The rows that are not a chunk yet, as columns of fixed size, allocated once.

use super::MAX_CHUNK_ROWS;
use super::row::{Flags, Kind, Row};
use super::stats::RunStats;
use std::ops::Range;

/// Makes an index that needs no bounds check.
const MASK: usize = MAX_CHUNK_ROWS - 1;

type Column<T> = Box<[T; MAX_CHUNK_ROWS]>;

#[allow(clippy::unnecessary_box_returns, reason = "a column does not fit the stack of a small thread")]
fn column<T: Copy + Default>() -> Column<T> {
    match vec![T::default(); MAX_CHUNK_ROWS].into_boxed_slice().try_into() {
        Ok(column) => column,
        // Cannot happen: the length is right. A column by way of the stack is the same column.
        Err(_) => Box::new([T::default(); MAX_CHUNK_ROWS]),
    }
}

/// Columns in the order of the format; `excess` is what ordinals exceed the expected one by.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) len: usize,
    pub(super) stream: Column<u16>,
    pub(super) kind: Column<u8>,
    pub(super) flags: Column<u8>,
    pub(super) bytes: Column<u32>,
    pub(super) excess: Column<u64>,
    pub(super) arrival: Column<u64>,
    pub(super) span: Column<u64>,
    pub(super) event: Column<u64>,
    pub(super) meta: Column<u16>,
    pub(super) tag: Column<u16>,
    pub(super) extra: Column<u32>,
    pub(super) number: Column<u32>,
    pub(super) offset: Column<u64>,
}

impl Pending {
    pub(super) fn new() -> Self {
        Self {
            len: 0,
            stream: column(),
            kind: column(),
            flags: column(),
            bytes: column(),
            excess: column(),
            arrival: column(),
            span: column(),
            event: column(),
            meta: column(),
            tag: column(),
            extra: column(),
            number: column(),
            offset: column(),
        }
    }

    /// Adds a row. The caller closes the chunk before it has more than [`MAX_CHUNK_ROWS`].
    #[inline]
    pub(super) fn push(&mut self, row: &Row, excess: u64, event: i64) {
        let at = self.len & MASK;
        self.stream[at] = row.stream;
        self.kind[at] = row.kind as u8;
        self.flags[at] = row.flags.0;
        self.bytes[at] = row.len;
        self.excess[at] = excess;
        self.arrival[at] = row.arrival.0 as u64;
        self.span[at] = row.span;
        self.event[at] = event as u64;
        self.meta[at] = row.meta;
        self.tag[at] = row.tag;
        self.extra[at] = row.extra;
        self.number[at] = row.number;
        self.offset[at] = row.offset;
        self.len += 1;
    }

    /// Adds rows as [`Pending::push`] does, a column at a time. `next` is the ordinal that the first one is expected to
    /// have, and the event time that is repeated; then what they are for the row after. Every row ends its element.
    #[inline]
    pub(super) fn extend<R>(
        &mut self,
        run: &[R],
        row: impl Fn(&R) -> Row + Copy,
        stats: &RunStats,
        (mut expected, mut event): (u64, i64),
    ) -> (u64, i64) {
        let places = self.len..self.len + run.len();
        put(&mut self.stream, &places, run, |one| row(one).stream);
        put(&mut self.kind, &places, run, |one| row(one).kind as u8);
        put(&mut self.flags, &places, run, |one| row(one).flags.0);
        put(&mut self.bytes, &places, run, |one| row(one).len);
        if stats.jumps || stats.ordinal != expected {
            put(&mut self.excess, &places, run, |one| {
                let ordinal = row(one).ordinal.0;
                let excess = ordinal.wrapping_sub(expected);
                expected = ordinal.wrapping_add(1);
                excess
            });
        } else {
            self.excess[places.clone()].fill(0);
            expected = stats.next_ordinal;
        }
        put(&mut self.arrival, &places, run, |one| row(one).arrival.0 as u64);
        put(&mut self.span, &places, run, |one| row(one).span);
        if stats.events {
            put(&mut self.event, &places, run, |one| {
                let row = row(one);
                event = if row.flags.has(Flags::EVENT) { row.event.0 } else { event };
                event as u64
            });
        } else {
            self.event[places.clone()].fill(event as u64);
        }
        put(&mut self.meta, &places, run, |one| row(one).meta);
        put(&mut self.tag, &places, run, |one| row(one).tag);
        put(&mut self.extra, &places, run, |one| row(one).extra);
        put(&mut self.number, &places, run, |one| row(one).number);
        put(&mut self.offset, &places, run, |one| row(one).offset);
        self.len = places.end;
        (expected, event)
    }

    /// Bytes of payload that row `at` describes.
    pub(super) fn payload(&self, at: usize) -> u32 {
        self.bytes[at & MASK] + u32::from(self.meta[at & MASK])
    }

    /// Whether row `at` ends an element.
    pub(super) fn ends_element(&self, at: usize) -> bool {
        let kind = Kind::from_byte(self.kind[at & MASK]).unwrap_or_default();
        super::row::ends_element(kind, Flags(self.flags[at & MASK]))
    }
}

/// Fills places of a column from what `cell` says of each of a run.
#[inline]
fn put<T, R>(column: &mut Column<T>, places: &Range<usize>, run: &[R], mut cell: impl FnMut(&R) -> T) {
    column[places.clone()].iter_mut().zip(run).for_each(|(place, one)| *place = cell(one));
}
