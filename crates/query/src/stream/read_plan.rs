//! Read plan of a slot: the sections that a scan reads, decided from the slot's summary and filters before
//! any I/O.

use super::column_blocks::near;
use super::pruning_stats::{BoundsPart, SlotStatistics};
use super::scan_spec::ScanSpec;
use super::slot_scan::ScanStop;
use holdfast_format::{BlockBounds, EntrySummary, Outline, Section, SectionKind};
use holdfast_protocol::wire::OpenSlotProjection;
use holdfast_reader::SlotView;
use std::collections::HashMap;

/// What a slot has of the stream, and the number of that.
pub(super) fn entry(view: &SlotView<'_>, spec: &ScanSpec) -> Option<(EntrySummary, u16)> {
    let entries = view.summary().entries.iter();
    let found = entries.zip(0..).find(|(entry, _)| entry.stream == spec.stream);
    found.map(|(entry, number)| (*entry, number))
}

/// What is to be read of a slot that may hold something.
pub(super) struct ReadPlan {
    /// Whether attributes are made of the payload.
    pub(super) made: bool,
    /// Whether rows are needed.
    pub(super) rows: bool,
    /// By number of the attribute.
    pub(super) columns: Vec<(usize, Section)>,
    /// What is told of the blocks of these columns, where few of them may be left.
    pub(super) bounds: Vec<(usize, Section)>,
}

impl ReadPlan {
    pub(super) fn of(
        view: &SlotView<'_>,
        spec: &ScanSpec,
        entry: &EntrySummary,
        number: u16,
        told: &SlotFilters,
    ) -> Result<Self, ScanStop> {
        let places = spec.places();
        let attributes = spec.attributes(&places);
        // Columns that are younger than the slot, or that nobody wrote, are made of its payload.
        let made = attributes.iter().any(|(_, attribute)| *attribute >= entry.schema as usize)
            || spec.made_event(&places, entry.schema).is_some();
        let summary = view.summary();
        let column = |attribute: usize| Some((attribute, *summary.column(number, attribute as u16)?));
        let numbers = || attributes.iter().map(|(_, attribute)| *attribute);
        let columns = if made { Vec::new() } else { numbers().filter_map(column).collect() };
        let rows = made || !spec.fixed(&places).is_empty() || attributes.is_empty();
        let bounds = |attribute: usize| Some((attribute, *summary.bounds(number, attribute as u16)?));
        let bytes: usize = columns.iter().map(|(_, column): &(usize, Section)| column.range().len()).sum();
        let is_told = |attribute: usize, what: fn(&Section) -> bool| {
            bounds(attribute).is_some_and(|(_, section)| what(&section))
        };
        let narrow = bytes >= near(view)
            && (told.looks_for_values(|attribute| is_told(attribute, BlockBounds::has_values))
                || told.leaves_little(spec, |attribute| is_told(attribute, BlockBounds::has_bounds))?);
        let bounds = if narrow { numbers().filter_map(bounds).collect() } else { Vec::new() };
        Ok(Self { made, rows, columns, bounds })
    }

    /// Asks for all of it, as far as it is known before anything is read: a turn at reading goes to the next one as soon as nothing
    /// waits, and is a long time coming back.
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

    /// The same where no blocks are left out.
    pub(super) fn all_ahead(&self, view: &mut SlotView<'_>, spec: &ScanSpec) -> Result<(), ScanStop> {
        for (_, section) in &self.columns {
            view.ahead(section)?;
        }
        if self.rows {
            // Of a few chunks it is read once it is known of which.
            if (self.made || !spec.leaves_few())
                && let Some(section) = view.summary().section(SectionKind::Chunks).copied()
            {
                view.ahead(&section)?;
            }
            view.directory_ahead()?;
        }
        Ok(())
    }
}

/// What is taken of the slot that a recorder fills: columns, and rows where attributes do not tell enough.
pub(super) fn of_open(spec: &ScanSpec) -> OpenSlotProjection {
    let places = spec.places();
    let attributes = spec.attributes(&places);
    let rows = !spec.fixed(&places).is_empty() || attributes.is_empty();
    let columns = attributes.into_iter().map(|(_, attribute)| attribute as u16).collect();
    OpenSlotProjection { stream: Some(spec.stream), rows, columns }
}

/// The filters of the attributes that are looked at.
pub(super) struct SlotFilters {
    filters: Vec<AttributeFilter>,
}

/// The filter of an attribute.
struct AttributeFilter {
    attribute: usize,
    /// The place of its column in the table.
    place: usize,
    section: Section,
    /// What is known of it: all, or a section in its place that has only bounds.
    told: Option<(Section, Vec<u8>)>,
    /// Whether bounds are all that can be of use.
    bounds: bool,
}

impl AttributeFilter {
    fn is_enough(&self) -> bool {
        self.told.as_ref().is_some_and(|(section, _)| self.bounds || *section == self.section)
    }
}

impl SlotFilters {
    /// What is known without reading.
    pub(super) fn of(view: &SlotView<'_>, spec: &ScanSpec, number: u16) -> Self {
        let looked_at = spec.attributes(&spec.predicate.columns());
        let filter = |(place, attribute): (usize, usize)| {
            let section = *view.summary().filter(number, attribute as u16)?;
            let bounds = !spec.predicate.looks_for_values_of(place);
            Some(AttributeFilter { attribute, place, section, told: view.seen(&section), bounds })
        };
        Self { filters: looked_at.into_iter().filter_map(filter).collect() }
    }

    /// Whether bounds and filters leave something, as far as they are known.
    pub(super) fn may_hold(
        &self,
        view: &SlotView<'_>,
        spec: &ScanSpec,
        entry: &EntrySummary,
    ) -> Result<bool, ScanStop> {
        let mut outlines = HashMap::new();
        for AttributeFilter { attribute, told, .. } in &self.filters {
            if let Some((section, bytes)) = told {
                outlines.insert(*attribute, Outline::decode(bytes, section)?);
            }
        }
        let known = SlotStatistics { spec, entry, sequence: view.header().sequence.0, outlines: &outlines };
        Ok(spec.predicate.may_hold(&known))
    }

    /// Whether single values are looked for in some column of which `is_of` says so.
    fn looks_for_values(&self, is_of: impl Fn(usize) -> bool) -> bool {
        self.filters.iter().any(|filter| !filter.bounds && is_of(filter.attribute))
    }

    /// Whether less than about half of what is between the bounds of some column is wanted, of those for which `is_of` says so.
    fn leaves_little(&self, spec: &ScanSpec, is_of: impl Fn(usize) -> bool) -> Result<bool, ScanStop> {
        for AttributeFilter { attribute, place, told, .. } in &self.filters {
            let Some((section, bytes)) = told.as_ref().filter(|_| is_of(*attribute)) else { continue };
            let Some(bounds) = Outline::decode(bytes, section)?.bounds() else { continue };
            let parts = BoundsPart::parts(*place, bounds);
            if parts.filter(|part| spec.predicate.may_hold(part)).count() <= BoundsPart::PARTS / 2 {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Filters of which more has to be known.
    pub(super) fn missing(&self) -> impl Iterator<Item = Section> {
        self.filters.iter().filter(|filter| !filter.is_enough()).map(|filter| filter.section)
    }

    /// From here on a filter is known.
    pub(super) fn tell(&mut self, section: Section, bytes: Vec<u8>) {
        if let Some(filter) = self.filters.iter_mut().find(|filter| filter.section == section) {
            filter.told = Some((section, bytes));
        }
    }
}

/// What a slot has of the stream, and what is told of that without reading; nothing where that excludes it.
fn known(view: &SlotView<'_>, spec: &ScanSpec) -> Result<Option<(EntrySummary, u16, SlotFilters)>, ScanStop> {
    let Some((entry, number)) = entry(view, spec).filter(|(entry, _)| entry.rows > 0) else {
        return Ok(None);
    };
    let told = SlotFilters::of(view, spec, number);
    Ok(told.may_hold(view, spec, &entry)?.then_some((entry, number, told)))
}

/// Whether what is known of a slot without reading excludes it.
pub(super) fn is_excluded(view: &SlotView<'_>, spec: &ScanSpec) -> bool {
    matches!(known(view, spec), Ok(None))
}

/// Asks for what is going to be read of a slot, as far as that can be told without reading, and keeps it; `false`: nothing is,
/// for what is known of it excludes it.
pub(super) fn foresee(
    view: &mut SlotView<'_>,
    spec: &ScanSpec,
    keep: &mut dyn FnMut(),
) -> Result<bool, ScanStop> {
    let Some((entry, number, told)) = known(view, spec)? else { return Ok(false) };
    let missing: Vec<Section> = told.missing().collect();
    if missing.is_empty() {
        ReadPlan::of(view, spec, &entry, number, &told)?.ahead(view, spec)?;
    } else {
        // What these say may exclude it.
        missing.iter().try_for_each(|section| view.ahead(section))?;
    }
    // While it is read.
    keep();
    Ok(true)
}
