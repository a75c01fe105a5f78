//! Read plan of a slot: the sections that a scan reads, decided from the slot's summary and filters before
//! any I/O.

use super::attribute_reads::{extracted_event, leaves_few};
use super::column_blocks::near;
use super::pruning_stats::{BoundsPart, SlotStatistics};
use crate::stream::{ScanSpec, ScanStop};
use holdfast_format::{BlockBounds, EntrySummary, Outline, Section, SectionKind};
use holdfast_protocol::wire::OpenSlotProjection;
use holdfast_reader::SlotView;
use std::collections::HashMap;

/// Finds the summary of the stream in a slot, and its number.
pub(super) fn entry(view: &SlotView<'_>, spec: &ScanSpec) -> Option<(EntrySummary, u16)> {
    let entries = view.summary().entries.iter();
    let found = entries.zip(0..).find(|(entry, _)| entry.stream == spec.stream);
    found.map(|(entry, number)| (*entry, number))
}

/// Sections to read of a slot that may hold wanted elements.
pub(super) struct ReadPlan {
    /// True if attributes are extracted from payloads.
    pub(super) extracts: bool,
    /// True if rows are needed.
    pub(super) rows: bool,
    /// Columns to read, by attribute.
    pub(super) columns: Vec<(usize, Section)>,
    /// Block bounds of these columns, if they may leave few blocks.
    pub(super) bounds: Vec<(usize, Section)>,
}

impl ReadPlan {
    /// Plans the reads of a slot from its summary and filters.
    pub(super) fn of(
        view: &SlotView<'_>,
        spec: &ScanSpec,
        entry: &EntrySummary,
        number: u16,
        filters: &SlotFilters,
    ) -> Result<Self, ScanStop> {
        let places = spec.places();
        let attributes = spec.attributes(&places);
        // Attributes that are younger than the slot have no columns in it.
        let extracts = attributes.iter().any(|(_, attribute)| *attribute >= entry.schema as usize)
            || extracted_event(spec, &places, entry.schema).is_some();
        let summary = view.summary();
        let column = |attribute: usize| Some((attribute, *summary.column(number, attribute as u16)?));
        let numbers = || attributes.iter().map(|(_, attribute)| *attribute);
        let columns = if extracts { Vec::new() } else { numbers().filter_map(column).collect() };
        let rows = extracts || !spec.common(&places).is_empty() || attributes.is_empty();
        let bounds = |attribute: usize| Some((attribute, *summary.bounds(number, attribute as u16)?));
        let bytes: usize = columns.iter().map(|(_, column): &(usize, Section)| column.range().len()).sum();
        let has = |attribute: usize, what: fn(&Section) -> bool| {
            bounds(attribute).is_some_and(|(_, section)| what(&section))
        };
        let narrow = bytes >= near(view)
            && (filters.looks_for_values(|attribute| has(attribute, BlockBounds::has_values))
                || filters.leaves_little(spec, |attribute| has(attribute, BlockBounds::has_bounds))?);
        let bounds = if narrow { numbers().filter_map(bounds).collect() } else { Vec::new() };
        Ok(Self { extracts, rows, columns, bounds })
    }

    /// Requests the reads that are known before any of them is complete. A reading turn ends as soon as nothing waits, and
    /// the next one is far.
    pub(super) fn ahead(&self, view: &mut SlotView<'_>, spec: &ScanSpec) -> Result<(), ScanStop> {
        if self.bounds.is_empty() {
            return self.all_ahead(view, spec);
        }
        for (_, section) in &self.bounds {
            view.ahead(section)?;
        }
        if self.rows {
            view.directory_ahead()?;
        }
        Ok(())
    }

    /// Requests the reads of whole columns, without block selection.
    pub(super) fn all_ahead(&self, view: &mut SlotView<'_>, spec: &ScanSpec) -> Result<(), ScanStop> {
        for (_, section) in &self.columns {
            view.ahead(section)?;
        }
        if self.rows {
            // Few chunks are read once it is known which.
            if (self.extracts || !leaves_few(spec))
                && let Some(section) = view.summary().section(SectionKind::Chunks).copied()
            {
                view.ahead(&section)?;
            }
            view.directory_ahead()?;
        }
        Ok(())
    }
}

/// Returns what to copy of the open slot: columns, and rows if columns do not suffice.
pub(super) fn of_open(spec: &ScanSpec) -> OpenSlotProjection {
    let places = spec.places();
    let attributes = spec.attributes(&places);
    let rows = !spec.common(&places).is_empty() || attributes.is_empty();
    let columns = attributes.into_iter().map(|(_, attribute)| attribute as u16).collect();
    OpenSlotProjection { stream: Some(spec.stream), rows, columns }
}

/// Filters of the attributes in the predicate.
pub(super) struct SlotFilters {
    filters: Vec<AttributeFilter>,
}

/// Filter of one attribute.
struct AttributeFilter {
    attribute: usize,
    /// Place of the column in the table.
    place: usize,
    section: Section,
    /// Contents, if they are known: the whole filter, or a section in its place that has only bounds.
    contents: Option<(Section, Vec<u8>)>,
    /// True if only bounds can exclude the slot.
    bounds: bool,
}

impl AttributeFilter {
    /// Returns true if nothing more of the filter is needed.
    fn is_enough(&self) -> bool {
        self.contents.as_ref().is_some_and(|(section, _)| self.bounds || *section == self.section)
    }
}

impl SlotFilters {
    /// Collects the filters, with the contents that are in memory.
    pub(super) fn of(view: &SlotView<'_>, spec: &ScanSpec, number: u16) -> Self {
        let looked_at = spec.attributes(&spec.predicate.columns());
        let filter = |(place, attribute): (usize, usize)| {
            let section = *view.summary().filter(number, attribute as u16)?;
            let bounds = !spec.predicate.looks_for_values_of(place);
            Some(AttributeFilter { attribute, place, section, contents: view.seen(&section), bounds })
        };
        Self { filters: looked_at.into_iter().filter_map(filter).collect() }
    }

    /// Returns true unless known bounds and filters exclude the slot.
    pub(super) fn may_hold(
        &self,
        view: &SlotView<'_>,
        spec: &ScanSpec,
        entry: &EntrySummary,
    ) -> Result<bool, ScanStop> {
        let mut outlines = HashMap::new();
        for AttributeFilter { attribute, contents, .. } in &self.filters {
            if let Some((section, bytes)) = contents {
                outlines.insert(*attribute, Outline::decode(bytes, section)?);
            }
        }
        let statistics =
            SlotStatistics { spec, entry, sequence: view.header().sequence.0, outlines: &outlines };
        Ok(spec.predicate.may_hold(&statistics))
    }

    /// Returns true if the predicate searches for single values of an attribute that `is_of` accepts.
    fn looks_for_values(&self, is_of: impl Fn(usize) -> bool) -> bool {
        self.filters.iter().any(|filter| !filter.bounds && is_of(filter.attribute))
    }

    /// Returns true if the predicate accepts at most half of the range of an attribute that `is_of` accepts.
    fn leaves_little(&self, spec: &ScanSpec, is_of: impl Fn(usize) -> bool) -> Result<bool, ScanStop> {
        for AttributeFilter { attribute, place, contents, .. } in &self.filters {
            let Some((section, bytes)) = contents.as_ref().filter(|_| is_of(*attribute)) else { continue };
            let Some(bounds) = Outline::decode(bytes, section)?.bounds() else { continue };
            let parts = BoundsPart::parts(*place, bounds);
            if parts.filter(|part| spec.predicate.may_hold(part)).count() <= BoundsPart::PARTS / 2 {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the filters that are still to be read.
    pub(super) fn missing(&self) -> impl Iterator<Item = Section> {
        self.filters.iter().filter(|filter| !filter.is_enough()).map(|filter| filter.section)
    }

    /// Adds the contents of a filter.
    pub(super) fn add(&mut self, section: Section, bytes: Vec<u8>) {
        if let Some(filter) = self.filters.iter_mut().find(|filter| filter.section == section) {
            filter.contents = Some((section, bytes));
        }
    }
}

/// Finds the summary and the filters of the stream in a slot; `None` if what is in memory excludes the slot.
fn summarized(
    view: &SlotView<'_>,
    spec: &ScanSpec,
) -> Result<Option<(EntrySummary, u16, SlotFilters)>, ScanStop> {
    let Some((entry, number)) = entry(view, spec).filter(|(entry, _)| entry.rows > 0) else {
        return Ok(None);
    };
    let filters = SlotFilters::of(view, spec, number);
    Ok(filters.may_hold(view, spec, &entry)?.then_some((entry, number, filters)))
}

/// Returns true if what is in memory excludes a slot.
pub(super) fn is_excluded(view: &SlotView<'_>, spec: &ScanSpec) -> bool {
    matches!(summarized(view, spec), Ok(None))
}

/// Requests the reads of a slot that are known without I/O, and pins it with `keep`. Returns false if what is in memory
/// excludes the slot.
pub(super) fn foresee(
    view: &mut SlotView<'_>,
    spec: &ScanSpec,
    keep: &mut dyn FnMut(),
) -> Result<bool, ScanStop> {
    let Some((entry, number, filters)) = summarized(view, spec)? else { return Ok(false) };
    let missing: Vec<Section> = filters.missing().collect();
    if missing.is_empty() {
        ReadPlan::of(view, spec, &entry, number, &filters)?.ahead(view, spec)?;
    } else {
        // The filters may exclude the slot.
        missing.iter().try_for_each(|section| view.ahead(section))?;
    }
    // Pinned while the reads run.
    keep();
    Ok(true)
}
