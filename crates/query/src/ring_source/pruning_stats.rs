//! Pruning statistics of slots, chunks and blocks: min/max bounds and filters.

use super::attribute_reads::extracted_event;
use crate::columns::{Column, CommonColumn};
use crate::predicate::{ColumnStatistics, PruningStatistics, SearchedValues};
use crate::stream::ScanSpec;
use holdfast_base::Timestamp;
use holdfast_format::{Block, BlockBounds, Cell, DirectoryEntry, EntrySummary, Outline};
use std::collections::HashMap;

/// Converts a time to a cell.
pub(super) fn time(time: Timestamp) -> u64 {
    time.0 as u64 ^ 1 << 63
}

/// Statistics of a column without nulls, with these bounds.
pub(super) fn between(first: u64, last: u64) -> ColumnStatistics {
    ColumnStatistics { bounds: Some((first.into(), last.into())), nulls: Some(0), cells: u64::MAX }
}

/// Statistics of a slot.
pub(super) struct SlotStatistics<'a> {
    pub(super) spec: &'a ScanSpec,
    pub(super) entry: &'a EntrySummary,
    pub(super) sequence: u64,
    /// Outlines by attribute.
    pub(super) outlines: &'a HashMap<usize, Outline<'a>>,
}

impl PruningStatistics for SlotStatistics<'_> {
    fn statistics(&self, column: usize) -> Option<ColumnStatistics> {
        match self.spec.columns.at(column)?.0 {
            Column::Common(CommonColumn::Ordinal) => {
                self.entry.ordinals.map(|(least, greatest)| between(least.0, greatest.0))
            }
            Column::Common(CommonColumn::Time) => {
                self.entry.arrivals.map(|(first, last)| between(time(first), time(last)))
            }
            // A slot without event times has them all the same, extracted from payloads.
            Column::Common(CommonColumn::EventTime)
                if extracted_event(self.spec, &[column], self.entry.schema).is_some() =>
            {
                None
            }
            Column::Common(CommonColumn::EventTime) => {
                let bounds = self.entry.events.map(|(first, last)| (time(first).into(), time(last).into()));
                let nulls = bounds.is_none().then_some(u64::MAX);
                Some(ColumnStatistics { bounds, nulls, cells: u64::MAX })
            }
            Column::Common(CommonColumn::Slot) => Some(between(self.sequence, self.sequence)),
            Column::Common(_) => None,
            Column::Attribute(number) => {
                let outline = self.outlines.get(&number)?;
                let (nulls, cells) = (Some(outline.nulls.into()), outline.cells.into());
                Some(ColumnStatistics { bounds: outline.bounds(), nulls, cells })
            }
        }
    }

    fn may_have(&self, column: usize, values: &SearchedValues<'_>) -> bool {
        let Some((Column::Attribute(number), _)) = self.spec.columns.at(column) else { return true };
        let Some(outline) = self.outlines.get(&number) else { return true };
        any(values, |cell| outline.may_have(cell))
    }
}

/// Statistics of a slot of which only the sequence is known.
pub(super) struct SequenceStatistics {
    /// Place of the column `slot`.
    pub(super) place: usize,
    pub(super) sequence: u64,
}

impl PruningStatistics for SequenceStatistics {
    fn statistics(&self, column: usize) -> Option<ColumnStatistics> {
        (column == self.place).then(|| between(self.sequence, self.sequence))
    }

    fn may_have(&self, _column: usize, _values: &SearchedValues<'_>) -> bool {
        true
    }
}

/// True if `f` holds for any searched value.
fn any(values: &SearchedValues<'_>, f: impl Fn(Cell<'_>) -> bool) -> bool {
    match values {
        SearchedValues::Words(values) => values.iter().any(|value| f(Cell::Word(**value))),
        SearchedValues::Wide(values) => values.iter().any(|value| f(Cell::Wide(**value))),
        SearchedValues::Bytes(values) => values.iter().any(|value| f(Cell::Bytes(value))),
    }
}

/// One of several equal parts of the range of a column.
pub(super) struct BoundsPart {
    place: usize,
    bounds: (u128, u128),
}

impl BoundsPart {
    pub(super) const PARTS: usize = 8;

    pub(super) fn parts(place: usize, (least, greatest): (u128, u128)) -> impl Iterator<Item = Self> {
        let parts = Self::PARTS as u128;
        let each = (greatest - least) / parts;
        (0..parts).map(move |part| {
            let end = if part + 1 == parts { greatest } else { least + (part + 1) * each };
            Self { place, bounds: (least + part * each, end) }
        })
    }
}

impl PruningStatistics for BoundsPart {
    fn statistics(&self, column: usize) -> Option<ColumnStatistics> {
        let statistics = ColumnStatistics { bounds: Some(self.bounds), nulls: None, cells: u64::MAX };
        (column == self.place).then_some(statistics)
    }

    fn may_have(&self, _column: usize, _values: &SearchedValues<'_>) -> bool {
        true
    }
}

/// Statistics of the blocks of one chunk: their bounds, and the places of rare values.
pub(super) struct BlockStatistics<'a> {
    pub(super) spec: &'a ScanSpec,
    /// Block bounds by attribute.
    pub(super) bounds: &'a HashMap<usize, BlockBounds>,
    /// Number of the block in its column.
    pub(super) number: usize,
}

impl PruningStatistics for BlockStatistics<'_> {
    fn statistics(&self, column: usize) -> Option<ColumnStatistics> {
        let (Column::Attribute(attribute), _) = self.spec.columns.at(column)? else { return None };
        let bounds = self.bounds.get(&attribute)?.bounds(self.number);
        // The number of nulls is unknown unless all are null.
        let nulls = (bounds == Some(None)).then_some(u64::MAX);
        Some(ColumnStatistics { bounds: bounds.flatten(), nulls, cells: u64::MAX })
    }

    fn may_have(&self, column: usize, values: &SearchedValues<'_>) -> bool {
        let Some((Column::Attribute(number), _)) = self.spec.columns.at(column) else { return true };
        self.bounds.get(&number).is_none_or(|bounds| any(values, |cell| bounds.may_have(self.number, cell)))
    }
}

/// Statistics of a chunk.
pub(super) struct ChunkStatistics<'a> {
    pub(super) spec: &'a ScanSpec,
    /// Entry of the chunk directory, if it is needed.
    pub(super) entry: Option<&'a DirectoryEntry>,
    pub(super) sequence: u64,
    /// Number of attributes of the slot.
    pub(super) attributes: u32,
    /// Column blocks by attribute.
    pub(super) blocks: &'a HashMap<usize, Block<'a>>,
}

impl PruningStatistics for ChunkStatistics<'_> {
    fn statistics(&self, column: usize) -> Option<ColumnStatistics> {
        match self.spec.columns.at(column)?.0 {
            Column::Common(CommonColumn::Time) => {
                let DirectoryEntry { first_arrival, last_arrival, .. } = *self.entry?;
                Some(between(time(first_arrival), time(last_arrival)))
            }
            Column::Common(CommonColumn::EventTime)
                if extracted_event(self.spec, &[column], self.attributes).is_some() =>
            {
                None
            }
            // The entry covers all streams: this one may have no event times.
            Column::Common(CommonColumn::EventTime) => {
                let DirectoryEntry { first_event, last_event, .. } = *self.entry?;
                let some = first_event <= last_event;
                let bounds = some.then(|| (time(first_event).into(), time(last_event).into()));
                Some(ColumnStatistics { bounds, nulls: (!some).then_some(u64::MAX), cells: u64::MAX })
            }
            Column::Common(CommonColumn::Slot) => Some(between(self.sequence, self.sequence)),
            Column::Common(_) => None,
            Column::Attribute(number) => {
                let block = self.blocks.get(&number)?;
                let (nulls, cells) = (Some(block.nulls() as u64), block.cells() as u64);
                Some(ColumnStatistics { bounds: block.bounds(), nulls, cells })
            }
        }
    }

    fn may_have(&self, _column: usize, _values: &SearchedValues<'_>) -> bool {
        true
    }
}
