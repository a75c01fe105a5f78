//! Pruning figures of a scan for `EXPLAIN`: segments in total, and segments that are excluded before the scan runs. A
//! scan itself prunes segment by segment while it runs.

use std::fmt;

/// Marker of a query that is explained, not executed.
#[derive(Debug)]
pub(crate) struct ExplainOnly;

/// Number of segments, and of those that are excluded before the scan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PruningReport {
    /// Segments with data, of any stream.
    pub all: usize,
    /// Segments outside of the wanted times, or not among the wanted slots.
    pub by_time: usize,
    /// Further segments that statistics in memory exclude; `None` if there are no such statistics.
    pub by_view: Option<usize>,
}

impl fmt::Display for PruningReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "slots={}, pruned_by_time={}", self.all, self.by_time)?;
        self.by_view.map_or(Ok(()), |slots| write!(f, ", pruned_by_birds_eye={slots}"))
    }
}
