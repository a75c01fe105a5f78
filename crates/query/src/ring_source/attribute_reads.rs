//! Attributes that a scan of a ring reads: from index columns, or from payloads in slots that were recorded before an
//! attribute was declared.

use crate::columns::{Column, CommonColumn};
use crate::predicate::Predicate;
use crate::stream::ScanSpec;
use holdfast_attributes::Extractor;
use holdfast_format::Classes;
use std::collections::HashMap;

/// Link types of a packet stream: those of its interfaces, by tag; for each version of its preamble.
pub type LinkTypes = HashMap<u32, Vec<u16>>;

/// Returns the place and the attribute of the event time, if it is among some places and younger than a slot with
/// `attributes` attributes. It is then extracted from payloads.
pub(super) fn extracted_event(spec: &ScanSpec, places: &[usize], attributes: u32) -> Option<(usize, usize)> {
    let number = spec.schema.event_time().filter(|number| *number >= attributes as usize)?;
    let common = spec.common(places).into_iter();
    common.filter(|(_, common)| *common == CommonColumn::EventTime).map(|(place, _)| (place, number)).next()
}

/// Returns the part of the predicate that attributes alone decide.
pub(super) fn attribute_predicate(spec: &ScanSpec) -> Predicate {
    spec.predicate.told_by(&|place| matches!(spec.columns.at(place), Some((Column::Attribute(_), _))))
}

/// Returns true if attributes may leave few elements: the predicate searches for single values of one.
pub(super) fn leaves_few(spec: &ScanSpec) -> bool {
    let predicate = attribute_predicate(spec);
    predicate.columns().iter().any(|place| predicate.looks_for_values_of(*place))
}

/// Extractor of the attributes that a scan needs.
pub(super) struct AttributeExtractor {
    pub(super) extractor: Extractor,
    /// Cell classes of the attributes.
    pub(super) classes: Classes,
    /// Numbers of the attributes.
    pub(super) numbers: Vec<usize>,
}

impl AttributeExtractor {
    /// Creates the extractor for a slot that has `attributes` attributes.
    pub(super) fn new(spec: &ScanSpec, attributes: u32) -> Self {
        let places = spec.places();
        let event = extracted_event(spec, &places, attributes);
        let mut wanted: Vec<usize> =
            spec.attributes(&places).into_iter().chain(event).map(|(_, number)| number).collect();
        wanted.sort_unstable();
        let (schema, numbers) = spec.schema.part(&wanted);
        Self { extractor: Extractor::new(&schema), classes: schema.classes(), numbers }
    }
}
