//! Asks for what a hold looks for, also where its condition fails of some elements (a number is divided by zero, a text is no
//! number): all others are found.

use crate::complaint;
use crate::failure::{Failure, Result};
use crate::out::counted;
use crate::sql::Sql;
use holdfast_base::Ordinal;
use holdfast_query::find::{Among, Found, Search};
use holdfast_query::{Failed, is_of_a_value};
use std::fmt;

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

/// What there is of it; where `passes` is set, what the condition fails of is passed over.
pub(super) fn ask(
    sql: &Sql,
    search: &Search,
    stream: &str,
    among: &Among,
    passes: bool,
) -> Result<(Vec<Found>, Option<Failing>)> {
    let failing = sql.engine.failing();
    failing.pass(passes);
    let found = sql.runtime.block_on(search.found(&sql.engine.context, stream, among));
    failing.pass(false);
    let (first, end) = among.ordinals;
    let told = |elements, ordinals, why| Failing {
        stream: stream.to_owned(),
        elements,
        ordinals,
        why: complaint::failure(&why, &search.condition, &[]),
    };
    let failed = failing.take().and_then(|Failed { ordinals, why }| {
        // What came before and counts for a window was told when it came.
        let mut own = ordinals.range(first..end);
        let (least, count) = (*own.next()?, ordinals.range(first..end).count() as u64);
        let greatest = own.next_back().copied().unwrap_or(least);
        Some(told(count, (least, Ordinal(greatest.0 + 1)), why))
    });
    match found {
        Ok(found) => Ok((found, failed)),
        // A condition over several has no single element of which it fails.
        Err(why) if passes && is_of_a_value(&why) => {
            Ok((Vec::new(), Some(told(end.0 - first.0, among.ordinals, why))))
        }
        Err(why) => Err(complaint::failure(&why, &search.condition, &[])),
    }
}
