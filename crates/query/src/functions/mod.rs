//! SQL functions for packets and samples, in addition to those of the engine.

mod addr_text;
mod bytes;
mod in_net;
mod json;
mod lengths;
mod matches;
mod min_max;
mod one_of;
mod rounding;
mod sha256;
mod sign;
mod totals;
mod whole;

pub(crate) use addr_text::addr_text;
pub(crate) use lengths::{LengthOrder, PartOfLength, is_length};
pub(crate) use rounding::Rounding;
pub(crate) use whole::{WIDE, Whole, WholeOperator};

use crate::address_types::ONE_OF;
use datafusion::logical_expr::{AggregateUDF, ScalarUDF};
use std::sync::Arc;

/// All of them, and those of the engine's that are made for addresses, too.
pub(crate) fn all(engines: &[Arc<ScalarUDF>]) -> Vec<Arc<ScalarUDF>> {
    let mut all = vec![Arc::new(ScalarUDF::from(in_net::InNet::new()))];
    all.push(Arc::new(addr_text()));
    let one_of = engines.iter().filter(|of| ONE_OF.contains(&of.name()));
    all.extend(one_of.map(|of| Arc::new(ScalarUDF::from(one_of::OneOf::new(Arc::clone(of))))));
    all.push(Arc::new(ScalarUDF::from(matches::Matches::new())));
    all.push(Arc::new(ScalarUDF::from(whole::Modulo::new())));
    all.push(Arc::new(ScalarUDF::from(sign::Sign::new())));
    all.push(Arc::new(ScalarUDF::from(sha256::Sha256::new())));
    all.extend(bytes::all().into_iter().map(Arc::new));
    all.extend(json::all().into_iter().map(Arc::new));
    all
}

/// Replacements of the engine's aggregates.
pub(crate) fn aggregates(engines: &[Arc<AggregateUDF>]) -> Vec<Arc<AggregateUDF>> {
    min_max::min_max(engines).into_iter().chain(totals::totals(engines)).collect()
}
