//! Pruning figures of a scan for `EXPLAIN`: slots in total, and slots excluded by time and by the
//! bird's-eye view. A scan itself prunes slot by slot while it runs.

use super::read_plan;
use super::scan_spec::ScanSpec;
use holdfast_reader::{PlannedSlot, RingReader};
use std::fmt;

/// Of a question that is explained, and not carried out.
#[derive(Debug)]
pub(crate) struct ExplainOnly;

/// How many slots there are, and how many of them are passed over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PruningReport {
    /// Slots with data, of any stream.
    pub(super) all: usize,
    /// Those that are not in the times, or among the slots, that are asked for.
    pub(super) by_time: usize,
    /// Those of the others that a recorder's bird's-eye view excludes, where it tells of any.
    pub(super) by_view: Option<usize>,
}

impl fmt::Display for PruningReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "slots={}, pruned_by_time={}", self.all, self.by_time)?;
        self.by_view.map_or(Ok(()), |slots| write!(f, ", pruned_by_birds_eye={slots}"))
    }
}

/// How many of these slots hold nothing that is wanted, by the bird's-eye view alone; nothing where it tells of none of them.
pub(super) fn excluded(reader: &mut RingReader, spec: &ScanSpec, slots: &[PlannedSlot]) -> Option<usize> {
    let (mut told, mut excluded) = (0, 0);
    for view in slots.iter().filter_map(|slot| Some(read_plan::is_excluded(&reader.foresee(slot)?, spec))) {
        told += 1;
        excluded += usize::from(view);
    }
    (told > 0).then_some(excluded)
}
