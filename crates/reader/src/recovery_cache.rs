//! Cache of the recovered state of a ring without a recorder: readers that are opened together read the journal once.

use holdfast_ring::Recovered;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What one has read is another's for so long.
const YOUNG: Duration = Duration::from_millis(100);

/// What readers of a ring share that are opened beside each other, by one search.
#[derive(Clone, Debug, Default)]
pub struct RecoveryCache(Arc<Mutex<Option<(Instant, Recovered)>>>);

impl RecoveryCache {
    fn lock(&self) -> MutexGuard<'_, Option<(Instant, Recovered)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What another has just read.
    pub(crate) fn known(&self) -> Option<Recovered> {
        self.lock().as_ref().filter(|(read, _)| read.elapsed() < YOUNG).and_then(|(_, known)| known.twin())
    }

    /// This was read just now, from `since` on.
    pub(crate) fn learn(&self, since: Instant, read: &Recovered) {
        *self.lock() = read.twin().map(|twin| (since, twin));
    }
}
