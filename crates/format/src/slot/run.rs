//! Many rows at once: whole elements of one stream, described by loops over one column at a time. What comes of it is
//! exactly what [`Builder::row`], in `build`, makes of the same rows.

use super::Row;
use super::build::{Builder, worth_closing};
use super::columns::ROW_BYTES;
use super::stats::RunStats;
use holdfast_base::BLOCK;

/// How much a run may take so that nothing in it depends on the room that is left.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RunRoom {
    /// Rows.
    pub rows: usize,
    /// Bytes of payload, and [`RunRoom::ROW`] for each row.
    pub bytes: usize,
}

impl RunRoom {
    /// What a row counts beside its payload: its bytes in the chunk at their widest, and as much again, which is what a
    /// chunk is closed early for.
    pub const ROW: usize = 2 * ROW_BYTES;
}

impl Builder {
    /// How long a run for [`Builder::rows`] may be so that it comes to the same whether its bytes are written before all
    /// rows, or each element's before its row: none of its rows closes the chunk, except perhaps the last.
    pub fn run_room(&self) -> RunRoom {
        // The first row of a stream takes a place in the chunk's table, and all of it is rounded to blocks.
        let reserved = ROW_BYTES * self.pending.len + 2 * BLOCK;
        RunRoom { rows: self.chunk_rows - self.pending.len, bytes: self.room().saturating_sub(reserved) }
    }

    /// Describes what was written as [`Builder::row`] would, called for each of `run`; fast where all are whole elements
    /// of one stream.
    ///
    /// # Panics
    ///
    /// As [`Builder::row`].
    #[inline]
    pub fn elements<R>(&mut self, buffer: &mut [u8], run: &[R], row: impl Fn(&R) -> Row + Copy) {
        if !self.describe(run, row, 0) {
            for one in run {
                self.row(buffer, &row(one));
            }
        }
        self.close_full(buffer);
    }

    /// Writes the payload of a run, `bytes`, and then does as [`Builder::elements`]; faster, because the rows are looked
    /// at while they are in the cache.
    ///
    /// # Panics
    ///
    /// As [`Builder::row`].
    #[inline]
    pub fn write_elements<R>(
        &mut self,
        buffer: &mut [u8],
        bytes: &[u8],
        run: &[R],
        row: impl Fn(&R) -> Row + Copy,
    ) {
        let described = self.describe(run, row, bytes.len());
        self.write(buffer, bytes);
        if !described {
            for one in run {
                self.row(buffer, &row(one));
            }
        }
        self.close_full(buffer);
    }

    #[inline]
    fn close_full(&mut self, buffer: &mut [u8]) {
        if self.pending.len == self.chunk_rows {
            self.close_chunk(buffer);
        }
    }

    /// Makes pending rows of a run, of whose payload `coming` bytes are yet to be written. False, and nothing done, when
    /// they must be made one by one.
    #[inline]
    fn describe<R>(&mut self, run: &[R], row: impl Fn(&R) -> Row + Copy, coming: usize) -> bool {
        let Some((stream, stats)) =
            RunStats::of(run, row).filter(|(stream, stats)| self.takes(*stream, stats, coming))
        else {
            return false;
        };
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

    /// Whether the rows of a run fit the pending chunk, and none closes it before it is full.
    fn takes(&self, stream: u16, run: &RunStats, coming: usize) -> bool {
        let rows = self.pending.len + run.rows as usize;
        let new = !self.entries[usize::from(stream)].is_in(self.directory.len());
        let room = self.room_with(rows, self.streams.len() + usize::from(new)).saturating_sub(coming);
        rows <= self.chunk_rows
            && !worth_closing(rows, room)
            && (self.payload + coming - self.covered) as u64 >= run.payload_bytes
    }
}
