//! Selection of the column blocks that a scan reads, if their bounds exclude most blocks of a slot.

use super::column_blocks::{near, stretches};
use super::pruning_stats::BlockStatistics;
use super::read_plan::ReadPlan;
use crate::stream::{ScanSpec, ScanStop};
use holdfast_format::BlockBounds;
use holdfast_reader::SlotView;
use std::collections::HashMap;
use std::ops::Range;

/// Maximum number of reads of a column: more take longer than to read all of it.
const MAX_STRETCHES: usize = 16;

/// Selected blocks of a slot, fewer than half.
pub(super) struct BlockSelection {
    /// Numbers of the blocks, the same in all columns of a stream: a column has a block for each chunk in which elements end.
    pub(super) blocks: Vec<usize>,
    /// Block bounds by attribute.
    bounds: HashMap<usize, BlockBounds>,
}

impl BlockSelection {
    /// Selects the blocks that may hold wanted elements; `None` if these are most of them or lie in too many stretches, or if
    /// there are no bounds.
    pub(super) fn of(spec: &ScanSpec, bounds: HashMap<usize, BlockBounds>, near: usize) -> Option<Self> {
        let count = bounds.values().map(BlockBounds::count).next()?;
        let may_hold = |number: &usize| {
            spec.predicate.may_hold(&BlockStatistics { spec, bounds: &bounds, number: *number })
        };
        let blocks: Vec<usize> = (0..count).filter(may_hold).collect();
        let selection = Self { blocks, bounds };
        let places = |attribute: &usize| {
            selection
                .ranges(*attribute)
                .is_some_and(|blocks| stretches(&blocks, near).count() <= MAX_STRETCHES)
        };
        // All columns of a stream have the same blocks.
        let alike = selection.bounds.values().all(|other| other.count() == count);
        (alike && 2 * selection.blocks.len() < count && selection.bounds.keys().all(places))
            .then_some(selection)
    }

    /// Returns the ranges of the blocks in a column; `None` if they are unknown, and all of it is to be read.
    pub(super) fn ranges(&self, attribute: usize) -> Option<Vec<Range<usize>>> {
        let bounds = self.bounds.get(&attribute)?;
        self.blocks.iter().map(|block| bounds.range(*block)).collect()
    }

    /// Requests all reads of the selection.
    pub(super) fn ahead(&self, view: &mut SlotView<'_>, plan: &ReadPlan) -> Result<(), ScanStop> {
        for (attribute, section) in &plan.columns {
            let Some(blocks) = self.ranges(*attribute) else {
                view.ahead(section)?;
                continue;
            };
            stretches(&blocks, near(view)).try_for_each(|stretch| view.part_ahead(section, stretch))?;
        }
        if plan.rows {
            view.directory_ahead()?;
        }
        Ok(())
    }
}
