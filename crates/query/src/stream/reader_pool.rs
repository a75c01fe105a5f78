//! Pool of ring readers. Opening a ring without a recorder replays its journal, so that a reader passes
//! from one step of a query to the next.

use holdfast_reader::ReaderError;
use holdfast_reader::RingReader;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Opens a way to the ring.
pub type OpenRing = Arc<dyn Fn() -> Result<RingReader, ReaderError> + Send + Sync>;

/// What a way knows of a ring without a recorder is from when it was opened: one that is older is not handed on.
const YOUNG: Duration = Duration::from_millis(500);

/// Pool of readers of one ring.
#[derive(Clone)]
pub struct ReaderPool {
    open: OpenRing,
    /// Those that are handed on, only as long as they are so old.
    spare: Arc<Mutex<Vec<Way>>>,
    young: Duration,
}

impl fmt::Debug for ReaderPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReaderPool").finish_non_exhaustive()
    }
}

/// Maximum number of idle readers: one of a planner and one of a scan thread.
const SPARE: usize = 2;

/// A way that is in use.
pub(crate) struct Way {
    pub(crate) reader: RingReader,
    opened: Instant,
}

impl ReaderPool {
    /// Creates a pool whose readers `open` opens.
    pub fn new(open: &OpenRing) -> Self {
        Self { open: Arc::clone(open), spare: Arc::default(), young: YOUNG }
    }

    /// The same, each opened anew: it sees the ring as it is by then.
    pub fn anew(open: &OpenRing) -> Self {
        Self { young: Duration::ZERO, ..Self::new(open) }
    }

    /// How one is opened.
    pub(crate) fn ring(&self) -> &OpenRing {
        &self.open
    }

    /// One that was given back a moment ago, or a new one.
    pub(crate) fn take(&self) -> Result<Way, ReaderError> {
        if let Some(pooled) = self.spare().pop() {
            return Ok(pooled);
        }
        let opened = Instant::now();
        Ok(Way { reader: (self.open)()?, opened })
    }

    /// Keeps one that has done its part for whoever is next.
    pub(crate) fn give(&self, pooled: Way) {
        let mut spare = self.spare();
        spare.truncate(SPARE - 1);
        spare.push(pooled);
    }

    /// Opens one beside that which there is, for who is going to need a second one.
    pub fn prepare(&self) {
        let opened = Instant::now();
        // Who needs it is told what is wrong.
        if let Ok(reader) = (self.open)() {
            self.give(Way { reader, opened });
        }
    }

    fn spare(&self) -> MutexGuard<'_, Vec<Way>> {
        let mut spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        spare.retain(|pooled| pooled.opened.elapsed() < self.young);
        spare
    }
}
