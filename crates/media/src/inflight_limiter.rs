//! Limiter of requests in flight: of the requests whose tags it covers, so many are with the kernel at once.
//! One more may wait beside the disk, where it begins when another ends, without asking the owner's thread.
//! Other requests are not limited. The disk has the queue.

/// Who takes turns, and how many at once; nobody unless told.
#[derive(Clone, Copy, Debug)]
pub struct InflightLimiter {
    takes: fn(u64) -> bool,
    most: usize,
    busy: usize,
}

impl InflightLimiter {
    /// Of the requests whose tag `takes` turns, `most` at once.
    pub fn new(takes: fn(u64) -> bool, most: usize) -> Self {
        Self { takes, most: most.max(1), busy: 0 }
    }

    /// Whether a request may go to the kernel now; it has its turn then.
    pub(crate) fn begin(&mut self, tag: u64) -> bool {
        let takes = (self.takes)(tag);
        if takes && self.busy >= self.most {
            return false;
        }
        self.busy += usize::from(takes);
        true
    }

    /// A request that had begun has ended.
    pub(crate) fn end(&mut self, tag: u64) {
        self.busy -= usize::from((self.takes)(tag));
    }
}

impl Default for InflightLimiter {
    fn default() -> Self {
        Self::new(|_| false, 1)
    }
}
