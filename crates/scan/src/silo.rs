//! Silos: bounded queues of filled buffers between the readers and the workers of a scan, and what each waited for.

use crate::batch::{Batch, Held};
use crate::report::SiloReport;
use holdfast_base::failure::{Failure, Result};
use holdfast_media::{BufferPool, Lock};
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Silos of a scan.
#[derive(Debug)]
pub(crate) struct Silos {
    state: Mutex<State>,
    /// A batch was filled, or the last reader has ended.
    filled: Condvar,
    /// A buffer was emptied, or the scan stops.
    emptied: Condvar,
}

#[derive(Debug, Default)]
struct State {
    silos: Vec<Silo>,
    /// Silo that the next batch is taken from, if it has one.
    turn: usize,
    /// Readers that have not ended.
    readers: usize,
    stopped: bool,
    /// Bytes that buffers of long lines may take together.
    reserve: usize,
    /// Bytes that such buffers take.
    long: usize,
}

#[derive(Debug)]
struct Silo {
    pool: BufferPool,
    filled: VecDeque<Batch>,
    report: SiloReport,
}

impl Silos {
    /// Silos beside which long lines may take `reserve` bytes.
    pub(crate) fn new(reserve: usize) -> Self {
        let state = Mutex::new(State { reserve, ..State::default() });
        Self { state, filled: Condvar::new(), emptied: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a silo of `count` buffers, and tells its number.
    pub(crate) fn add(&self, name: String, count: usize, bytes: usize) -> Result<usize> {
        let pool = BufferPool::new(count, bytes, Lock::No)
            .map_err(|error| Failure::failed(error).advice("give a smaller --memory"))?;
        let mut state = self.state();
        let report = SiloReport { name, buffers: count, buffer_bytes: bytes as u64, ..SiloReport::default() };
        state.silos.push(Silo { pool, filled: VecDeque::new(), report });
        Ok(state.silos.len() - 1)
    }

    /// Announces a reader: workers wait for batches as long as there is one.
    pub(crate) fn begin_reader(&self) {
        self.state().readers += 1;
    }

    /// Ends a reader, with the seconds that it was there.
    pub(crate) fn end_reader(&self, silo: Option<usize>, seconds: f64) {
        let mut state = self.state();
        state.readers -= 1;
        if let Some(silo) = silo {
            state.silos[silo].report.reading_seconds += seconds;
        }
        self.filled.notify_all();
    }

    /// Takes an empty buffer. `None`: the scan stops.
    pub(crate) fn buffer(&self, silo: usize) -> Option<Held> {
        let mut state = self.state();
        let mut since = None;
        loop {
            if state.stopped {
                return None;
            }
            if let Some(buffer) = state.silos[silo].pool.take() {
                if let Some(since) = since {
                    let waited = Instant::now().duration_since(since).as_secs_f64();
                    let report = &mut state.silos[silo].report;
                    report.full_seconds += waited;
                    report.reading_seconds -= waited;
                }
                return Some(Held::Pooled(buffer));
            }
            since.get_or_insert_with(Instant::now);
            state = self.emptied.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Takes a buffer for a long line. `None`: the scan stops.
    ///
    /// Readers ask for it in the order of their lane. So all buffers that others wait for belong to batches that can be folded,
    /// or to a reader that needs no second one.
    pub(crate) fn long_buffer(&self, bytes: usize) -> Option<Held> {
        let mut state = self.state();
        while !state.stopped && state.long > 0 && state.long + bytes > state.reserve {
            state = self.emptied.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.stopped {
            return None;
        }
        state.long += bytes;
        drop(state);
        Some(Held::Long(vec![0; bytes]))
    }

    /// Hands a filled buffer to the workers.
    pub(crate) fn put(&self, batch: Batch, items: u64, bytes: u64) {
        let mut state = self.state();
        let silo = &mut state.silos[batch.silo];
        silo.report.items += items;
        silo.report.bytes += bytes;
        silo.filled.push_back(batch);
        drop(state);
        self.filled.notify_one();
    }

    /// Takes the next batch of any silo, in turn. `None`: there will be none.
    pub(crate) fn take(&self) -> Option<Batch> {
        let mut state = self.state();
        loop {
            if state.stopped {
                return None;
            }
            let count = state.silos.len();
            for at in (state.turn..count).chain(0..state.turn) {
                if let Some(batch) = state.silos[at].filled.pop_front() {
                    state.turn = at + 1;
                    return Some(batch);
                }
            }
            if state.readers == 0 {
                return None;
            }
            state = self.filled.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Takes a buffer back.
    pub(crate) fn give(&self, silo: usize, buffer: Held) {
        match buffer {
            Held::Pooled(buffer) => {
                let given = self.state().silos[silo].pool.give(buffer);
                debug_assert!(given.is_ok(), "a buffer came back to another silo");
            }
            Held::Long(bytes) => {
                let length = bytes.len();
                drop(bytes);
                self.state().long -= length;
            }
        }
        self.emptied.notify_all();
    }

    /// Ends the scan early.
    pub(crate) fn stop(&self) {
        self.state().stopped = true;
        self.filled.notify_all();
        self.emptied.notify_all();
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.state().stopped
    }

    pub(crate) fn reports(&self) -> Vec<SiloReport> {
        self.state().silos.iter().map(|silo| silo.report.clone()).collect()
    }
}
