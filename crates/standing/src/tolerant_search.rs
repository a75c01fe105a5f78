//! Tolerant search: a search of a condition hold that finds the other elements where its condition fails of some (a number is
//! divided by zero, a text is no number).

use datafusion::arrow::error::ArrowError;
use datafusion::error::DataFusionError;
use holdfast_base::counted;
use holdfast_base::failure::{Failure, Result};
use holdfast_base::{Ordinal, StreamId};
use holdfast_client::index_copies::IndexCopies;
use holdfast_client::sql::{self, Sql};
use holdfast_client::sql_errors;
use holdfast_query::condition_search::{Search, SearchScope, SlotMatches};
use holdfast_query::{FailedElements, Limits, is_value_error};
use holdfast_reader::OpenSlots;
use holdfast_ring::StreamStatus;
use std::collections::VecDeque;
use std::fmt;
use std::path::Path;

/// Questions at most into which one is taken apart.
const MOST: usize = 64;

/// Elements of which a condition fails: they count as not found.
#[derive(Debug)]
pub(crate) struct Failing {
    pub(crate) stream: String,
    /// So many at least, or just as many; from the first up to the one behind the last.
    elements: u64,
    more: bool,
    ordinals: (Ordinal, Ordinal),
    why: Failure,
}

impl Failing {
    /// Together with others of the same stream.
    pub(crate) fn with(&mut self, other: &Self) {
        self.elements += other.elements;
        self.more |= other.more;
        self.ordinals = (self.ordinals.0.min(other.ordinals.0), self.ordinals.1.max(other.ordinals.1));
    }
}

impl fmt::Display for Failing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { stream, elements, more, ordinals: (from, end), why } = self;
        let (least, elements) = (if *more { "at least " } else { "" }, counted(*elements, "element"));
        write!(
            f,
            "{least}{elements} of {stream} ({from} up to {end}) cannot be asked and count as not found: {why}"
        )
    }
}

/// An engine for what holds look for, with the streams that there are.
pub(crate) fn engine(ring: &Path, limits: &Limits) -> Result<Sql> {
    // What is looked at is younger than any copy, or has come to its end.
    let sql = sql::open(ring, limits, &IndexCopies::default(), &OpenSlots::default())?;
    // What stands twice in a condition would be worked out ahead of it, where nobody passes over an element of which it fails.
    sql.engine.context.remove_optimizer_rule("common_sub_expression_eliminate");
    Ok(sql)
}

/// Whether an engine that knows some streams knows all of these, with their attributes.
pub(crate) fn is_the_same(known: &[StreamStatus], these: &[StreamStatus]) -> bool {
    let schemas = |all: &[StreamStatus]| -> Vec<(StreamId, u32)> {
        all.iter().map(|stream| (stream.id, stream.schema)).collect()
    };
    schemas(known) == schemas(these)
}

/// Whether not the condition is the matter: the ring is out of reach, a slot has expired, or there is no room to put things aside.
pub(crate) fn is_of_the_ring(error: &DataFusionError) -> bool {
    match error.find_root() {
        DataFusionError::External(_) | DataFusionError::IoError(_) => true,
        DataFusionError::ArrowError(cause, _) => matches!(**cause, ArrowError::IoError(..)),
        _ => false,
    }
}

/// Whether a question takes more memory than there is: of fewer elements it may not.
pub(crate) fn is_of_memory(error: &DataFusionError) -> bool {
    matches!(error.find_root(), DataFusionError::ResourcesExhausted(_))
}

/// What there is of it; where `passes` is set, what the condition fails of is passed over. Where the engine fails of more than single
/// elements (of what is counted over several, or for want of memory) fewer are asked for at once.
pub(crate) fn ask(
    sql: &Sql,
    search: &Search,
    stream: &str,
    among: &SearchScope,
    passes: bool,
) -> Result<(Vec<SlotMatches>, Option<Failing>)> {
    let (mut found, mut failing, mut asked) = (Vec::new(), None::<Failing>, 0);
    let mut tell = |elements, more, ordinals, why: &DataFusionError| {
        let why = sql_errors::failure(why, &search.condition, &[]);
        let one = Failing { stream: stream.to_owned(), elements, more, ordinals, why };
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
        let part = SearchScope { ordinals, ..*among };
        let some = sql.runtime.block_on(search.found(&sql.engine.context, stream, &part));
        passing.pass(None);
        let (first, end) = ordinals;
        let all = end.0 - first.0;
        match (some, passing.take()) {
            (Ok(some), failed) => {
                found.extend(some);
                if let Some(FailedElements { ordinals: of, more, why }) = failed {
                    let last = of.last().map(|last| Ordinal(last.0 + 1));
                    let told = of.first().copied().zip(last).map(|told| (of.len() as u64, told));
                    let (elements, ordinals) = told.unwrap_or((all, ordinals));
                    tell(elements, more, ordinals, &why);
                }
            }
            (Err(why), _) if !passes || is_of_the_ring(&why) => {
                return Err(sql_errors::failure(&why, &search.condition, &[]));
            }
            (Err(why), _) => {
                let middle = Ordinal(first.0.midpoint(end.0));
                if middle > first && asked + left.len() + 2 <= MOST {
                    left.extend([(first, middle), (middle, end)]);
                } else if is_value_error(&why) {
                    tell(all, false, ordinals, &why);
                } else {
                    return Err(sql_errors::failure(&why, &search.condition, &[]));
                }
            }
        }
    }
    Ok((found, failing))
}
