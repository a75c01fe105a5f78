//! Pruning statistics of the open slot, asked of its recorder: mostly enough to exclude the slot without
//! copying its contents.

use super::pruning_stats::between;
use crate::columns::{Column, CommonColumn};
use crate::predicate::{ColumnStatistics, PruningStatistics, SearchedValues};
use crate::stream::ScanSpec;
use holdfast_format::{Cell, OpenOutline};
use holdfast_protocol::wire::MAX_VALUES;
use holdfast_reader::{PlannedSlot, ReaderError, RingReader};
use std::cell::RefCell;

/// Returns false if the recorder's statistics exclude an open slot.
pub(super) fn may_hold(
    reader: &mut RingReader,
    spec: &ScanSpec,
    slot: &PlannedSlot,
) -> Result<bool, ReaderError> {
    if slot.slot.is_some() || !reader.is_live() {
        return Ok(true);
    }
    let statistics =
        OpenSlotStatistics { spec, slot, reader: RefCell::new(reader), failed: RefCell::new(None) };
    // Each attribute has a cell per element.
    let is_empty = statistics.ask(0, Vec::new()).is_some_and(|outline| outline.cells == 0);
    let may_hold = !is_empty && spec.predicate.may_hold(&statistics);
    statistics.failed.into_inner().map_or(Ok(may_hold), Err)
}

/// Statistics of an open slot, requested as they are needed.
struct OpenSlotStatistics<'a> {
    spec: &'a ScanSpec,
    slot: &'a PlannedSlot,
    reader: RefCell<&'a mut RingReader>,
    /// First error, after which nothing is requested.
    failed: RefCell<Option<ReaderError>>,
}

impl OpenSlotStatistics<'_> {
    /// Requests the outline of an attribute; it tells whether the attribute may have any of these hashed values.
    fn ask(&self, attribute: usize, values: Vec<u64>) -> Option<OpenOutline> {
        let mut failed = self.failed.borrow_mut();
        if failed.is_some() || values.len() > MAX_VALUES {
            return None;
        }
        let mut reader = self.reader.borrow_mut();
        let outline = reader.open_outline(self.slot, self.spec.stream, attribute as u16, values);
        outline.unwrap_or_else(|error| {
            *failed = Some(error);
            None
        })
    }
}

impl PruningStatistics for OpenSlotStatistics<'_> {
    fn statistics(&self, column: usize) -> Option<ColumnStatistics> {
        match self.spec.columns.at(column)?.0 {
            Column::Attribute(number) => {
                let OpenOutline { cells, nulls, bounds, .. } = self.ask(number, Vec::new())?;
                Some(ColumnStatistics { bounds, nulls: Some(nulls.into()), cells: cells.into() })
            }
            Column::Common(CommonColumn::Slot) => Some(between(self.slot.sequence.0, self.slot.sequence.0)),
            Column::Common(_) => None,
        }
    }

    fn may_have(&self, column: usize, values: &SearchedValues<'_>) -> bool {
        let Some((Column::Attribute(number), _)) = self.spec.columns.at(column) else { return true };
        let hashes = match values {
            SearchedValues::Words(values) => values.iter().map(|value| Cell::Word(**value).hash()).collect(),
            SearchedValues::Wide(values) => values.iter().map(|value| Cell::Wide(**value).hash()).collect(),
            SearchedValues::Bytes(values) => values.iter().map(|value| Cell::Bytes(value).hash()).collect(),
        };
        self.ask(number, hashes).is_none_or(|outline| outline.may_have)
    }
}
