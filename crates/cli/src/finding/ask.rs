//! Asks for what a hold looks for, also where its condition fails of some elements (a number is divided by zero, a text is no
//! number): what lies around them is found all the same.

use crate::complaint;
use crate::failure::{Failure, Result};
use crate::out::counted;
use crate::sql::Sql;
use datafusion::error::DataFusionError;
use holdfast_base::Ordinal;
use holdfast_query::find::{Among, Found, Search};
use std::collections::VecDeque;
use std::fmt;

/// Questions at most by which it is found out of which elements a condition fails; what is still in doubt then is passed over.
const MOST: usize = 64;

/// From the first, without the second.
type Ordinals = (Ordinal, Ordinal);

/// Elements of which a condition fails: they count as not found.
#[derive(Debug)]
pub(super) struct Failing {
    pub(super) stream: String,
    /// So many, between these.
    elements: u64,
    ordinals: Ordinals,
    why: Failure,
}

impl Failing {
    /// Together with others of the same stream.
    pub(super) fn with(&mut self, other: &Self) {
        self.elements += other.elements;
        self.ordinals = (self.ordinals.0.min(other.ordinals.0), self.ordinals.1.max(other.ordinals.1));
    }
}

impl fmt::Display for Failing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { stream, elements, ordinals: (from, end), why } = self;
        let elements = counted(*elements, "element");
        write!(f, "{elements} of {stream} ({from} up to {end}) cannot be asked and count as not found: {why}")
    }
}

/// Whether not the condition is the matter: the ring is out of reach, or a slot has expired.
pub(super) fn is_of_the_ring(error: &DataFusionError) -> bool {
    matches!(error.find_root(), DataFusionError::External(_))
}

/// What there is of it; where `passes` is set, what the condition fails of is passed over.
pub(super) fn ask(
    sql: &Sql,
    search: &Search,
    stream: &str,
    among: &Among,
    passes: bool,
) -> Result<(Vec<Found>, Option<Failing>)> {
    let (mut found, mut failing, mut asked) = (Vec::new(), None::<Failing>, 0);
    let mut left = VecDeque::from([among.ordinals]);
    while let Some(ordinals) = left.pop_front() {
        let part = Among { ordinals, ..*among };
        asked += 1;
        let error = match sql.runtime.block_on(search.found(&sql.engine.context, stream, &part)) {
            Ok(some) => {
                found.extend(some);
                continue;
            }
            Err(error) => error,
        };
        let why = complaint::failure(&error, &search.condition, &[]);
        if !passes || is_of_the_ring(&error) {
            return Err(why);
        }
        let (first, end) = ordinals;
        let middle = Ordinal(first.0.midpoint(end.0));
        if middle > first && asked + left.len() + 2 <= MOST {
            left.extend([(first, middle), (middle, end)]);
            continue;
        }
        let one = Failing { stream: stream.to_owned(), elements: end.0 - first.0, ordinals, why };
        match &mut failing {
            Some(all) => all.with(&one),
            None => failing = Some(one),
        }
    }
    Ok((found, failing))
}
