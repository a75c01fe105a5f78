//! Specification of a stream scan: predicate, residual filter, projection and limit.

use super::residual_filter::ResidualFilter;
use crate::columns::{Column, Columns, CommonColumn};
use crate::predicate::Predicate;
use holdfast_attributes::{Extractor, Schema};
use holdfast_base::StreamId;
use holdfast_format::Classes;
use std::collections::HashMap;
use std::sync::Arc;

/// What the packets of each interface begin with, by tag; by version of the preamble that tells it.
pub type LinkTypes = HashMap<u32, Vec<u16>>;

/// A search over one stream.
#[derive(Clone, Debug)]
pub(super) struct ScanSpec {
    /// Whose elements.
    pub(super) stream: StreamId,
    /// Its schema.
    pub(super) schema: Schema,
    /// Of a packet stream.
    pub(super) link_types: Arc<LinkTypes>,
    /// The table's columns.
    pub(super) columns: Columns,
    /// Which elements; its columns are places of the table.
    pub(super) predicate: Predicate,
    /// What else of the condition is asked before payloads are read, where these are wanted.
    pub(super) residual: Option<ResidualFilter>,
    /// Places of the columns in the result.
    pub(super) projection: Vec<usize>,
    /// How many elements are enough.
    pub(super) limit: Option<usize>,
}

impl ScanSpec {
    /// Returns the places of all columns that the predicate or the result needs.
    pub(super) fn places(&self) -> Vec<usize> {
        let mut places = self.predicate.columns();
        places.extend(&self.projection);
        places.sort_unstable();
        places.dedup();
        places
    }

    /// The attributes among some places, by number.
    pub(super) fn attributes(&self, places: &[usize]) -> Vec<(usize, usize)> {
        let attribute = |place: &usize| match self.columns.at(*place) {
            Some((Column::Attribute(number), _)) => Some((*place, number)),
            _ => None,
        };
        places.iter().filter_map(attribute).collect()
    }

    /// The columns among some places that rows tell of.
    pub(super) fn fixed(&self, places: &[usize]) -> Vec<(usize, CommonColumn)> {
        let fixed = |place: &usize| match self.columns.at(*place) {
            Some((Column::Common(fixed), _)) => Some((*place, fixed)),
            _ => None,
        };
        places.iter().filter_map(fixed).collect()
    }

    /// The event time among some places, and its attribute, where a slot that has the first `attributes` of them was recorded without
    /// it: it is made, as attributes are.
    pub(super) fn made_event(&self, places: &[usize], attributes: u32) -> Option<(usize, usize)> {
        let number = self.schema.event_time().filter(|number| *number >= attributes as usize)?;
        let fixed = self.fixed(places).into_iter();
        fixed.filter(|(_, fixed)| *fixed == CommonColumn::EventTime).map(|(place, _)| (place, number)).next()
    }

    /// As much of the condition as attributes tell.
    pub(super) fn told_by_attributes(&self) -> Predicate {
        self.predicate.told_by(&|place| matches!(self.columns.at(place), Some((Column::Attribute(_), _))))
    }

    /// Whether few elements may be left once attributes have told: single values are looked for.
    pub(super) fn leaves_few(&self) -> bool {
        let told = self.told_by_attributes();
        told.columns().iter().any(|place| told.looks_for_values_of(*place))
    }

    /// Whether payloads are wanted.
    pub(super) fn payload(&self) -> bool {
        self.fixed(&self.projection).iter().any(|(_, fixed)| *fixed == CommonColumn::Payload)
    }

    /// Who reads the attributes that are looked at, where a slot that has so many lacks columns of them.
    pub(super) fn maker(&self, attributes: u32) -> AttributeMaker {
        let places = self.places();
        let all = self.attributes(&places).into_iter().chain(self.made_event(&places, attributes));
        let mut wanted: Vec<usize> = all.map(|(_, number)| number).collect();
        wanted.sort_unstable();
        let (schema, numbers) = self.schema.part(&wanted);
        AttributeMaker { extractor: Extractor::new(&schema), classes: schema.classes(), numbers }
    }
}

/// Who reads attributes from payloads.
pub(super) struct AttributeMaker {
    pub(super) extractor: Extractor,
    /// How the cells of each are kept.
    pub(super) classes: Classes,
    /// Which attribute each is.
    pub(super) numbers: Vec<usize>,
}
