//! Selection of the column blocks that a scan reads, if their bounds exclude most blocks of a slot.

use super::column_blocks::{near, stretches};
use super::pruning_stats::BlockStatistics;
use super::read_plan::ReadPlan;
use super::scan_spec::ScanSpec;
use super::slot_scan::ScanStop;
use holdfast_format::BlockBounds;
use holdfast_reader::SlotView;
use std::collections::HashMap;
use std::ops::Range;

/// More reads of a column than that take longer than all of it.
const MOST_PLACES: usize = 16;

/// Blocks that are left, where these are less than half.
pub(super) struct BlockSelection {
    /// Their numbers, the same in all columns of a stream: each has one for every chunk in which elements end.
    pub(super) blocks: Vec<usize>,
    /// By number of the attribute.
    bounds: HashMap<usize, BlockBounds>,
}

impl BlockSelection {
    /// Those that may hold what is wanted; `None`: most of them may, they lie in too many places, or nothing is told.
    pub(super) fn of(spec: &ScanSpec, bounds: HashMap<usize, BlockBounds>, near: usize) -> Option<Self> {
        let count = bounds.values().map(BlockBounds::count).next()?;
        let may_hold = |number: &usize| {
            spec.predicate.may_hold(&BlockStatistics { spec, bounds: &bounds, number: *number })
        };
        let blocks: Vec<usize> = (0..count).filter(may_hold).collect();
        let few = Self { blocks, bounds };
        let places = |attribute: &usize| {
            few.ranges(*attribute).is_some_and(|blocks| stretches(&blocks, near).count() <= MOST_PLACES)
        };
        // All columns of a stream have the same blocks.
        let alike = few.bounds.values().all(|other| other.count() == count);
        (alike && 2 * few.blocks.len() < count && few.bounds.keys().all(places)).then_some(few)
    }

    /// Where they are in a column; `None`: that is not told, and all of it is to be read.
    pub(super) fn ranges(&self, attribute: usize) -> Option<Vec<Range<usize>>> {
        let bounds = self.bounds.get(&attribute)?;
        self.blocks.iter().map(|block| bounds.range(*block)).collect()
    }

    /// Asks for all that will be read.
    pub(super) fn ahead(&self, view: &mut SlotView<'_>, needed: &ReadPlan) -> Result<(), ScanStop> {
        for (attribute, section) in &needed.columns {
            let Some(blocks) = self.ranges(*attribute) else {
                view.ahead(section)?;
                continue;
            };
            stretches(&blocks, near(view)).try_for_each(|stretch| view.part_ahead(section, stretch))?;
        }
        if needed.rows {
            view.directory_ahead()?;
        }
        Ok(())
    }
}
