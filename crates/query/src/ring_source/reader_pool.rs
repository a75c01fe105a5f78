//! Pool of ring readers. Opening a ring without a recorder replays its journal, so that a reader passes
//! from one step of a query to the next.

use holdfast_reader::{ReaderError, RingReader};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Opens a reader of the ring.
pub type OpenRing = Arc<dyn Fn() -> Result<RingReader, ReaderError> + Send + Sync>;

/// Maximum age of an idle reader. Of a ring without a recorder it knows the state at which it was opened.
const MAX_AGE: Duration = Duration::from_millis(500);

/// Pool of readers of one ring.
#[derive(Clone)]
pub struct ReaderPool {
    open: OpenRing,
    /// Idle readers.
    idle: Arc<Mutex<Vec<PooledReader>>>,
    max_age: Duration,
}

impl fmt::Debug for ReaderPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReaderPool").finish_non_exhaustive()
    }
}

/// Maximum number of idle readers: one of a planner and one of a scan thread.
const MAX_IDLE: usize = 2;

/// Reader that was taken from the pool.
pub(crate) struct PooledReader {
    pub(crate) reader: RingReader,
    opened: Instant,
}

impl ReaderPool {
    /// Creates a pool whose readers `open` opens.
    pub fn new(open: &OpenRing) -> Self {
        Self { open: Arc::clone(open), idle: Arc::default(), max_age: MAX_AGE }
    }

    /// Creates a pool that opens each reader anew, so that it sees the present state of the ring.
    pub fn anew(open: &OpenRing) -> Self {
        Self { max_age: Duration::ZERO, ..Self::new(open) }
    }

    /// Returns the function that opens a reader.
    pub(crate) fn ring(&self) -> &OpenRing {
        &self.open
    }

    /// Takes an idle reader, or opens a new one.
    pub(crate) fn take(&self) -> Result<PooledReader, ReaderError> {
        if let Some(pooled) = self.idle().pop() {
            return Ok(pooled);
        }
        let opened = Instant::now();
        Ok(PooledReader { reader: (self.open)()?, opened })
    }

    /// Gives a reader back.
    pub(crate) fn give(&self, pooled: PooledReader) {
        let mut idle = self.idle();
        idle.truncate(MAX_IDLE - 1);
        idle.push(pooled);
    }

    /// Opens a further idle reader, which a scan is about to need.
    pub fn prepare(&self) {
        let opened = Instant::now();
        // The scan reports the error.
        if let Ok(reader) = (self.open)() {
            self.give(PooledReader { reader, opened });
        }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<PooledReader>> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain(|pooled| pooled.opened.elapsed() < self.max_age);
        idle
    }
}
