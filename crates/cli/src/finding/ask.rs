//! Asks for what a hold looks for, also where its condition fails of some elements (a number is divided by zero, a text is no
//! number): all others are found.

use crate::complaint;
use crate::failure::{Failure, Result};
use crate::out::counted;
use crate::sql::Sql;
use datafusion::error::DataFusionError;
use holdfast_base::Ordinal;
use holdfast_query::find::{Among, Found, Search};
use holdfast_query::{Failed, is_of_a_value};
use std::collections::VecDeque;
use std::fmt;

/// Questions at most into which one is taken apart.
const MOST: usize = 64;

/// Elements of which a condition fails: they count as not found.
#[derive(Debug)]
pub(super) struct Failing {
    pub(super) stream: String,
    /// So many, from the first up to the one behind the last.
    elements: u64,
    ordinals: (Ordinal, Ordinal),
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

/// Whether not the condition is the matter: the ring is out of reach, a slot has expired, or there is no room to put things aside.
pub(super) fn is_of_the_ring(error: &DataFusionError) -> bool {
    matches!(error.find_root(), DataFusionError::External(_) | DataFusionError::IoError(_))
}

/// What there is of it; where `passes` is set, what the condition fails of is passed over. Where the engine fails of more than single
/// elements (of what is counted over several, or for want of memory) fewer are asked for at once.
pub(super) fn ask(
    sql: &Sql,
    search: &Search,
    stream: &str,
    among: &Among,
    passes: bool,
) -> Result<(Vec<Found>, Option<Failing>)> {
    let (mut found, mut failing, mut asked) = (Vec::new(), None::<Failing>, 0);
    let mut tell = |elements, ordinals, why: &DataFusionError| {
        let why = complaint::failure(why, &search.condition, &[]);
        let one = Failing { stream: stream.to_owned(), elements, ordinals, why };
        match &mut failing {
            Some(all) => all.with(&one),
            None => failing = Some(one),
        }
    };
    let mut left = VecDeque::from([among.ordinals]);
    while let Some(ordinals) = left.pop_front() {
        asked += 1;
        let passing = sql.engine.failing();
        passing.pass(passes.then_some(ordinals));
        let part = Among { ordinals, ..*among };
        let some = sql.runtime.block_on(search.found(&sql.engine.context, stream, &part));
        passing.pass(None);
        let (first, end) = ordinals;
        let all = end.0 - first.0;
        match (some, passing.take()) {
            (Ok(some), failed) => {
                found.extend(some);
                if let Some(Failed { ordinals: of, why }) = failed {
                    let last = of.last().map(|last| Ordinal(last.0 + 1));
                    let told = of.first().copied().zip(last).map(|told| (of.len() as u64, told));
                    let (elements, ordinals) = told.unwrap_or((all, ordinals));
                    tell(elements, ordinals, &why);
                }
            }
            (Err(why), _) if !passes || is_of_the_ring(&why) => {
                return Err(complaint::failure(&why, &search.condition, &[]));
            }
            (Err(why), _) => {
                let middle = Ordinal(first.0.midpoint(end.0));
                if middle > first && asked + left.len() + 2 <= MOST {
                    left.extend([(first, middle), (middle, end)]);
                } else if is_of_a_value(&why) {
                    tell(all, ordinals, &why);
                } else {
                    return Err(complaint::failure(&why, &search.condition, &[]));
                }
            }
        }
    }
    Ok((found, failing))
}
