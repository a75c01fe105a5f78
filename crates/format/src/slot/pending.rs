//! Pending rows: rows that are not a chunk yet, as columns of fixed size, allocated once.

use super::MAX_CHUNK_ROWS;
use super::row::{Flags, Kind, Row};
use super::stats::RunStats;
use std::ops::Range;

/// Makes an index that needs no bounds check.
const MASK: usize = MAX_CHUNK_ROWS - 1;

/// A column of the pending rows. Most are of one value from the first row to the last, and cost nothing while they are:
/// a cell a row is written from the first one on that differs.
#[derive(Clone, Debug)]
pub(super) struct PendingColumn<T> {
    cells: Box<[T; MAX_CHUNK_ROWS]>,
    /// Of all rows, until the cells are in use.
    value: T,
    in_cells: bool,
}

/// What some rows have in a column.
pub(super) enum PendingCells<'a, T> {
    Same(T),
    Each(&'a [T]),
}

impl<T: Copy + Default + PartialEq> PendingColumn<T> {
    fn new() -> Self {
        let cells = match vec![T::default(); MAX_CHUNK_ROWS].into_boxed_slice().try_into() {
            Ok(cells) => cells,
            // Cannot happen: the length is right. Cells by way of the stack are the same cells.
            Err(_) => Box::new([T::default(); MAX_CHUNK_ROWS]),
        };
        Self { cells, value: T::default(), in_cells: false }
    }

    /// What row `at` has.
    pub(super) fn at(&self, at: usize) -> T {
        if self.in_cells { self.cells[at & MASK] } else { self.value }
    }

    /// What `rows` have.
    pub(super) fn of(&self, rows: &Range<usize>) -> PendingCells<'_, T> {
        match self.cells.get(rows.clone()) {
            Some(cells) if self.in_cells => PendingCells::Each(cells),
            _ => PendingCells::Same(self.value),
        }
    }

    /// Whether the rows from `at` on may have `value` without a cell.
    #[inline]
    fn stays(&mut self, at: usize, value: T) -> bool {
        if at == 0 {
            self.value = value;
            self.in_cells = false;
        }
        !self.in_cells && self.value == value
    }

    /// Gives the `rows` so far their cells.
    #[inline]
    fn spread(&mut self, rows: usize) {
        if !self.in_cells {
            self.cells[..rows].fill(self.value);
            self.in_cells = true;
        }
    }

    /// Adds the cell of row `at`.
    #[inline]
    fn push(&mut self, at: usize, cell: T) {
        if !self.stays(at, cell) {
            self.spread(at);
            self.cells[at & MASK] = cell;
        }
    }

    /// Adds the same for all rows of `places`.
    #[inline]
    fn fill(&mut self, places: &Range<usize>, value: T) {
        if !self.stays(places.start, value) {
            self.spread(places.start);
            self.cells[places.clone()].fill(value);
        }
    }

    /// Adds what `cell` says of each of a run.
    #[inline]
    fn each<R>(&mut self, places: &Range<usize>, run: &[R], mut cell: impl FnMut(&R) -> T) {
        if places.start == 0 {
            self.in_cells = false;
        }
        self.spread(places.start);
        self.cells[places.clone()].iter_mut().zip(run).for_each(|(place, one)| *place = cell(one));
    }
}

/// Columns in the order of the format; `excess` is what ordinals exceed the expected one by.
#[derive(Clone, Debug)]
pub(super) struct Pending {
    pub(super) len: usize,
    pub(super) stream: PendingColumn<u16>,
    pub(super) kind: PendingColumn<u8>,
    pub(super) flags: PendingColumn<u8>,
    pub(super) bytes: PendingColumn<u32>,
    pub(super) excess: PendingColumn<u64>,
    pub(super) arrival: PendingColumn<u64>,
    pub(super) span: PendingColumn<u64>,
    pub(super) event: PendingColumn<u64>,
    pub(super) meta: PendingColumn<u16>,
    pub(super) tag: PendingColumn<u16>,
    pub(super) extra: PendingColumn<u32>,
    pub(super) number: PendingColumn<u32>,
    pub(super) offset: PendingColumn<u64>,
}

impl Pending {
    pub(super) fn new() -> Self {
        Self {
            len: 0,
            stream: PendingColumn::new(),
            kind: PendingColumn::new(),
            flags: PendingColumn::new(),
            bytes: PendingColumn::new(),
            excess: PendingColumn::new(),
            arrival: PendingColumn::new(),
            span: PendingColumn::new(),
            event: PendingColumn::new(),
            meta: PendingColumn::new(),
            tag: PendingColumn::new(),
            extra: PendingColumn::new(),
            number: PendingColumn::new(),
            offset: PendingColumn::new(),
        }
    }

    /// Adds a row. The caller closes the chunk before it has more than [`MAX_CHUNK_ROWS`].
    #[inline]
    pub(super) fn push(&mut self, row: &Row, excess: u64, event: i64) {
        let at = self.len;
        self.stream.push(at, row.stream);
        self.kind.push(at, row.kind as u8);
        self.flags.push(at, row.flags.0);
        self.bytes.push(at, row.len);
        self.excess.push(at, excess);
        self.arrival.push(at, row.arrival.0 as u64);
        self.span.push(at, row.span);
        self.event.push(at, event as u64);
        self.meta.push(at, row.meta);
        self.tag.push(at, row.tag);
        self.extra.push(at, row.extra);
        self.number.push(at, row.number);
        self.offset.push(at, row.offset);
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
        let Some(first) = run.first().map(row) else { return (expected, event) };
        let places = self.len..self.len + run.len();
        self.stream.fill(&places, first.stream);
        self.kind.fill(&places, first.kind as u8);
        if stats.jumps || stats.ordinal != expected {
            self.excess.each(&places, run, |one| {
                let ordinal = row(one).ordinal.0;
                let excess = ordinal.wrapping_sub(expected);
                expected = ordinal.wrapping_add(1);
                excess
            });
        } else {
            self.excess.fill(&places, 0);
            expected = stats.next_ordinal;
        }
        if stats.same.length {
            self.bytes.fill(&places, first.len);
        } else {
            self.bytes.each(&places, run, |one| row(one).len);
        }
        if stats.same.arrival {
            self.arrival.fill(&places, first.arrival.0 as u64);
        } else {
            self.arrival.each(&places, run, |one| row(one).arrival.0 as u64);
        }
        if stats.events {
            self.event.each(&places, run, |one| {
                let row = row(one);
                event = if row.flags.has(Flags::EVENT) { row.event.0 } else { event };
                event as u64
            });
        } else {
            self.event.fill(&places, event as u64);
        }
        if stats.same.rest {
            self.flags.fill(&places, first.flags.0);
            self.span.fill(&places, first.span);
            self.meta.fill(&places, first.meta);
            self.tag.fill(&places, first.tag);
            self.extra.fill(&places, first.extra);
            self.number.fill(&places, first.number);
            self.offset.fill(&places, first.offset);
        } else {
            self.flags.each(&places, run, |one| row(one).flags.0);
            self.span.each(&places, run, |one| row(one).span);
            self.meta.each(&places, run, |one| row(one).meta);
            self.tag.each(&places, run, |one| row(one).tag);
            self.extra.each(&places, run, |one| row(one).extra);
            self.number.each(&places, run, |one| row(one).number);
            self.offset.each(&places, run, |one| row(one).offset);
        }
        self.len = places.end;
        (expected, event)
    }

    /// Bytes of payload that row `at` describes.
    pub(super) fn payload(&self, at: usize) -> u32 {
        self.bytes.at(at) + u32::from(self.meta.at(at))
    }

    /// Whether row `at` ends an element.
    pub(super) fn ends_element(&self, at: usize) -> bool {
        let kind = Kind::from_byte(self.kind.at(at)).unwrap_or_default();
        super::row::ends_element(kind, Flags(self.flags.at(at)))
    }
}
