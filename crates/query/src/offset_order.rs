//! Offsets over an order by columns that are not in the list. The engine takes an order for useless where the columns
//! of the order are gone, and `order by … offset 4` in a subquery then skips any four rows.

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::logical_expr::{Limit, LogicalPlan, Projection};
use datafusion::optimizer::AnalyzerRule;
use std::sync::Arc;

/// Analyzer rule that skips rows below a projection, where the columns of the order still are.
#[derive(Debug)]
pub(crate) struct OffsetOrder;

/// The plan with its offset below its projections.
fn below(limit: Limit) -> Result<LogicalPlan> {
    let LogicalPlan::Projection(projection) = limit.input.as_ref() else {
        return Ok(LogicalPlan::Limit(limit));
    };
    let Projection { expr, input, schema, .. } = projection.clone();
    let skipped = below(Limit { input, ..limit })?;
    Projection::try_new_with_schema(expr, Arc::new(skipped), schema).map(LogicalPlan::Projection)
}

impl AnalyzerRule for OffsetOrder {
    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        // With a limit, the engine does the same.
        let rewritten = plan.transform_up_with_subqueries(|plan| match plan {
            LogicalPlan::Limit(limit) if limit.skip.is_some() && limit.fetch.is_none() => {
                below(limit).map(Transformed::yes)
            }
            other => Ok(Transformed::no(other)),
        });
        rewritten.map(|plan| plan.data)
    }

    fn name(&self) -> &'static str {
        "offset order"
    }
}
