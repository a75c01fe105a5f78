//! What SQL lacks for people who look at packets and samples.

mod bytes;
mod in_net;
mod matches;

use datafusion::logical_expr::ScalarUDF;
use std::sync::Arc;

/// All of them.
pub(crate) fn all() -> Vec<Arc<ScalarUDF>> {
    let mut all = vec![Arc::new(ScalarUDF::from(in_net::InNet::new()))];
    all.push(Arc::new(ScalarUDF::from(matches::Matches::new())));
    all.extend(bytes::all().into_iter().map(Arc::new));
    all
}
