//! Ways to the ring: opened when one is needed, and handed on where one has just done its part. To open a ring that nobody records
//! to is to read its journal.

use holdfast_link::{LinkError, RingReader};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Opens a way to the ring.
pub type OpenRing = Arc<dyn Fn() -> Result<RingReader, LinkError> + Send + Sync>;

/// What a way knows of a ring without a recorder is from when it was opened: one that is older is not handed on.
const YOUNG: Duration = Duration::from_millis(500);

/// Ways to one ring.
#[derive(Clone)]
pub struct Ways {
    open: OpenRing,
    /// One that is handed on only as long as it is so old.
    spare: Arc<Mutex<Option<(Instant, RingReader)>>>,
    young: Duration,
}

impl fmt::Debug for Ways {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ways").finish_non_exhaustive()
    }
}

/// A way that is in use.
pub(crate) struct Way {
    pub(crate) reader: RingReader,
    opened: Instant,
}

impl Ways {
    /// Ways that `open` opens.
    pub fn new(open: &OpenRing) -> Self {
        Self { open: Arc::clone(open), spare: Arc::default(), young: YOUNG }
    }

    /// The same, each opened anew: it sees the ring as it is by then.
    pub fn anew(open: &OpenRing) -> Self {
        Self { young: Duration::ZERO, ..Self::new(open) }
    }

    /// One that was given back a moment ago, or a new one.
    pub(crate) fn take(&self) -> Result<Way, LinkError> {
        let spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((opened, reader)) = spare.filter(|(opened, _)| opened.elapsed() < self.young) {
            return Ok(Way { reader, opened });
        }
        let opened = Instant::now();
        Ok(Way { reader: (self.open)()?, opened })
    }

    /// Keeps one that has done its part for whoever is next.
    pub(crate) fn give(&self, way: Way) {
        let spare = (way.opened, way.reader);
        *self.spare.lock().unwrap_or_else(PoisonError::into_inner) = Some(spare);
    }
}
