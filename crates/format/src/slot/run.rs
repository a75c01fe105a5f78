//! Runs of rows: whole elements of one stream, added by loops over one column at a time. The result equals
//! that of [`Builder::row`], in `build`, for the same rows.

use super::attribute_columns::Cost;
use super::build::Builder;
use super::columns::ROW_BYTES;
use super::stats::RunStats;
use super::{CellsAt, Row};
use holdfast_base::BLOCK;

/// How much a run may take so that nothing in it depends on the room that is left.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RunRoom {
    /// Rows.
    pub rows: usize,
    /// Bytes of payload, and [`Builder::row_room`] for each row.
    pub bytes: usize,
}

impl RunRoom {
    /// What a row without cells counts beside its payload: its bytes in the chunk at their widest, and as much again, which
    /// is what a chunk is closed early for.
    pub const ROW: usize = 2 * ROW_BYTES;
}

impl Builder {
    /// How long a run for [`Builder::rows`] may be so that it comes to the same whether its bytes are written before all
    /// rows, or each element's before its row: none of its rows closes the chunk, except perhaps the last.
    pub fn run_room(&self) -> RunRoom {
        // The first row of a stream takes a place in the chunk's table, its cells the heads of their blocks, and all of it is
        // rounded to blocks.
        let rows = self.chunk_rows - self.pending.len;
        let cells = self.attributes.pending() + 2 * self.attributes.widest() + self.attributes.growth(rows);
        let reserved = ROW_BYTES * self.pending.len + cells + 2 * BLOCK;
        let room = self.room().min(self.attributes.left(Cost::default()).unwrap_or(0));
        RunRoom { rows, bytes: room.saturating_sub(reserved) }
    }

    /// What a row of a dictionary entry counts beside its payload: [`RunRoom::ROW`], and the same of its cells.
    pub fn row_room(&self, entry: u16) -> usize {
        RunRoom::ROW + 2 * self.attributes.row(entry)
    }

    /// Describes what was written as [`Builder::row_with`] would, called for each of `run`, with the cells of each that
    /// completes an element; fast where all are whole elements of one stream.
    ///
    /// # Panics
    ///
    /// As [`Builder::row_with`].
    #[inline]
    pub fn elements<R>(
        &mut self,
        buffer: &mut [u8],
        run: &[R],
        row: impl Fn(&R) -> Row + Copy,
        cells: CellsAt<'_>,
    ) {
        if !self.describe(run, row, 0, cells) {
            self.one_by_one(buffer, run, row, cells);
        }
        self.close_full(buffer);
    }

    /// Writes the payload of a run, `bytes`, and then does as [`Builder::elements`]; faster, because the rows are looked
    /// at while they are in the cache.
    ///
    /// # Panics
    ///
    /// As [`Builder::row_with`].
    #[inline]
    pub fn write_elements<R>(
        &mut self,
        buffer: &mut [u8],
        bytes: &[u8],
        run: &[R],
        row: impl Fn(&R) -> Row + Copy,
        cells: CellsAt<'_>,
    ) {
        let described = self.describe(run, row, bytes.len(), cells);
        self.write(buffer, bytes);
        if !described {
            self.one_by_one(buffer, run, row, cells);
        }
        self.close_full(buffer);
    }

    fn one_by_one<R>(
        &mut self,
        buffer: &mut [u8],
        run: &[R],
        row: impl Fn(&R) -> Row,
        mut cells: CellsAt<'_>,
    ) {
        for row in run.iter().map(row) {
            self.row_with(buffer, &row, cells);
            cells = cells.after(usize::from(row.completes_element()));
        }
    }

    #[inline]
    fn close_full(&mut self, buffer: &mut [u8]) {
        if self.is_chunk() {
            self.close_chunk(buffer);
        }
    }

    /// Makes pending rows of a run, of whose payload `coming` bytes are yet to be written. False, and nothing done, when
    /// they must be made one by one.
    #[inline]
    fn describe<R>(
        &mut self,
        run: &[R],
        row: impl Fn(&R) -> Row + Copy,
        coming: usize,
        cells: CellsAt<'_>,
    ) -> bool {
        let Some((stream, stats)) = RunStats::of(run, row) else { return false };
        let Some(cost) = self.takes(stream, &stats, coming, cells) else { return false };
        if cost.cells > 0 {
            self.attributes.add(stream, cells, run.len(), cost);
        }
        let entry = &mut self.entries[usize::from(stream)];
        entry.stats.count_run(&stats);
        entry.entry.counters.count_run(&stats);
        if entry.enter(self.directory.len(), stats.ordinal) {
            self.streams.push(stream);
        }
        entry.chunk_rows += run.len() as u32;
        let next = (entry.expected, self.last_event);
        (entry.expected, self.last_event) = self.pending.extend(run, row, &stats, next);
        self.bounds.count_run(&stats, stream);
        self.covered += stats.payload_bytes as usize;
        self.rows += run.len() as u32;
        true
    }

    /// Whether the rows of a run fit the pending chunk, and none closes it before it is full; what their cells take then.
    fn takes(&self, stream: u16, run: &RunStats, coming: usize, cells: CellsAt<'_>) -> Option<Cost> {
        let rows = self.pending.len + run.rows as usize;
        let entry = &self.entries[usize::from(stream)];
        let mut cost = Cost::default();
        if !entry.entry.classes.is_empty() {
            cost = self.attributes.cost(stream, cells, run.rows as usize);
            if rows > self.chunk_rows || !self.attributes.takes(stream, cells, run.rows as usize) {
                return None;
            }
        }
        let new = !entry.is_in(self.directory.len());
        let streams = self.streams.len() + usize::from(new);
        let room = self.room_with(rows, streams, cost).saturating_sub(coming);
        let takes = rows <= self.chunk_rows
            && !self.worth_closing_with(rows, cost, room)
            && (self.payload + coming - self.covered) as u64 >= run.payload_bytes;
        takes.then_some(cost)
    }
}
