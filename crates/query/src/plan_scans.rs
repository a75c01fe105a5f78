//! Scans of streams in a query, counted before it is planned physically.

use crate::nearest::NearestTable;
use crate::stream::{StreamScans, StreamTable};
use datafusion::catalog::TableProvider;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::datasource::source_as_provider;
use datafusion::error::Result;
use datafusion::logical_expr::LogicalPlan;
use std::any::Any;
use std::sync::Arc;

/// Counts the scans of streams in a plan.
pub(crate) fn stream_scans(plan: &LogicalPlan) -> Result<StreamScans> {
    let mut scans = StreamScans::default();
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node {
            add(&mut scans, &source_as_provider(&scan.source)?);
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(scans)
}

fn add(scans: &mut StreamScans, table: &Arc<dyn TableProvider>) {
    let table = table.as_ref() as &dyn Any;
    if let Some(stream) = table.downcast_ref::<StreamTable>() {
        scans.add(stream.source());
    } else if let Some(nearest) = table.downcast_ref::<NearestTable>() {
        nearest.sides().into_iter().for_each(|side| add(scans, side));
    }
}
