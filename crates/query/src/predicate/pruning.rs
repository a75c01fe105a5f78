//! Pruning by statistics: decides from bounds, null counts and filters whether any element of a slot, chunk
//! or block may fulfil a predicate.

use super::{Predicate, ValueSet};
use std::ops::Bound::{self, Excluded, Included, Unbounded};

/// Statistics of one column: bounds and counts, known before its cells are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnStatistics {
    /// Least and greatest of the cells that are not null; of texts, their first 16 bytes, and zeros where they are shorter,
    /// the first byte highest. `None`: unknown.
    pub bounds: Option<(u128, u128)>,
    /// How many are null, if that is known.
    pub nulls: Option<u64>,
    /// How many there are, nulls included.
    pub cells: u64,
}

impl ColumnStatistics {
    fn all_null(&self) -> bool {
        self.nulls == Some(self.cells)
    }
}

/// The first 16 bytes of a text, in its order as far as they go.
pub fn prefix(text: &[u8]) -> u128 {
    let mut first = [0; 16];
    let len = text.len().min(16);
    first[..len].copy_from_slice(&text[..len]);
    u128::from_be_bytes(first)
}

/// Statistics of all columns of a slot, chunk or block, by which a predicate excludes it.
pub trait PruningStatistics {
    /// Returns the statistics of a column; `None` if they are unknown.
    fn statistics(&self, column: usize) -> Option<ColumnStatistics>;

    /// Returns false if a filter proves that a column has none of these values.
    fn may_have(&self, column: usize, values: &SearchedValues<'_>) -> bool;
}

/// Single values that a predicate searches for in a column.
pub enum SearchedValues<'a> {
    /// Words.
    Words(Vec<&'a u64>),
    /// Wide words.
    Wide(Vec<&'a u128>),
    /// Texts.
    Bytes(Vec<&'a Vec<u8>>),
}

impl ValueSet {
    fn points(&self) -> Option<SearchedValues<'_>> {
        match self {
            Self::Words(spans) => spans.points().map(SearchedValues::Words),
            Self::Wide(spans) => spans.points().map(SearchedValues::Wide),
            Self::Bytes(spans) => spans.points().map(SearchedValues::Bytes),
        }
    }

    /// Whether a value between these bounds may be wanted.
    fn meets(&self, (least, greatest): (u128, u128)) -> bool {
        match self {
            Self::Words(spans) => spans.meets(&(least as u64), &(greatest as u64)),
            Self::Wide(spans) => spans.meets(&least, &greatest),
            // A text is wanted whose beginning is between the bounds, wherever it goes on from there.
            Self::Bytes(spans) => {
                let edge = |bound: &Bound<Vec<u8>>, open: u128| match bound {
                    Included(text) | Excluded(text) => prefix(text),
                    Unbounded => open,
                };
                let first = spans.position(|high| edge(high, u128::MAX) < least);
                spans.nth(first).is_some_and(|(low, _)| edge(low, 0) <= greatest)
            }
        }
    }
}

impl Predicate {
    /// Whether any element may fulfil it, by what is known. True in doubt.
    pub fn may_hold(&self, known: &impl PruningStatistics) -> bool {
        match self {
            Self::Constant(is) => *is,
            Self::Null(column, true) => {
                known.statistics(*column).is_none_or(|statistics| statistics.nulls != Some(0))
            }
            Self::Null(column, false) => {
                known.statistics(*column).is_none_or(|statistics| !statistics.all_null())
            }
            Self::Among(column, wanted) => {
                let Some(statistics) = known.statistics(*column) else { return true };
                if statistics.all_null() || statistics.bounds.is_some_and(|bounds| !wanted.meets(bounds)) {
                    return false;
                }
                wanted.points().is_none_or(|points| known.may_have(*column, &points))
            }
            Self::All(parts) => parts.iter().all(|part| part.may_hold(known)),
            Self::Any(parts) => parts.iter().any(|part| part.may_hold(known)),
        }
    }

    /// Whether filters of a column may exclude something: single values of it are looked for.
    pub fn looks_for_values_of(&self, place: usize) -> bool {
        match self {
            Self::Constant(_) | Self::Null(..) => false,
            Self::Among(column, wanted) => *column == place && wanted.points().is_some(),
            Self::All(parts) | Self::Any(parts) => parts.iter().any(|part| part.looks_for_values_of(place)),
        }
    }
}
