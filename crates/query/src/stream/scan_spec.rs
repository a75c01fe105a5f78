//! Specification of a stream scan: predicate, residual filter, projection and limit.

use super::residual_filter::ResidualFilter;
use crate::columns::{Column, Columns, CommonColumn};
use crate::predicate::Predicate;
use holdfast_attributes::Schema;
use holdfast_base::{Ordinal, StreamId};

/// Wanted elements and columns of one stream. Columns are named by their place in the table.
#[derive(Clone, Debug)]
pub struct ScanSpec {
    /// Stream to scan.
    pub stream: StreamId,
    /// Schema of the stream.
    pub schema: Schema,
    /// Columns of the table.
    pub columns: Columns,
    /// Condition on the wanted elements.
    pub predicate: Predicate,
    /// Further condition, evaluated before payloads are read, if payloads are wanted.
    pub(super) residual: Option<ResidualFilter>,
    /// Places of the columns in the result.
    pub projection: Vec<usize>,
    /// Number of elements that suffice.
    pub limit: Option<usize>,
}

impl ScanSpec {
    /// Returns the places of all columns that the predicate or the result needs.
    pub fn places(&self) -> Vec<usize> {
        let mut places = self.predicate.columns();
        places.extend(&self.projection);
        places.sort_unstable();
        places.dedup();
        places
    }

    /// Returns the attributes at some places, each with its number.
    pub fn attributes(&self, places: &[usize]) -> Vec<(usize, usize)> {
        let attribute = |place: &usize| match self.columns.at(*place) {
            Some((Column::Attribute(number), _)) => Some((*place, number)),
            _ => None,
        };
        places.iter().filter_map(attribute).collect()
    }

    /// Returns the common columns at some places.
    pub fn common(&self, places: &[usize]) -> Vec<(usize, CommonColumn)> {
        let common = |place: &usize| match self.columns.at(*place) {
            Some((Column::Common(common), _)) => Some((*place, common)),
            _ => None,
        };
        places.iter().filter_map(common).collect()
    }

    /// Returns true if payloads are wanted.
    pub fn payload(&self) -> bool {
        self.common(&self.projection).iter().any(|(_, common)| *common == CommonColumn::Payload)
    }
}

/// Cutoff of one scan.
#[derive(Clone, Debug)]
pub struct StreamCutoff {
    /// Ordinal from which on elements are excluded.
    pub next: Ordinal,
    /// Specification for segments that may have elements from `next` on: its predicate excludes them.
    pub spec: ScanSpec,
}
