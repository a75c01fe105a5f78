//! Origin of a column of a plan: the table scan whose rows the plan gives one by one.

use datafusion::logical_expr::{Expr, LogicalPlan, TableScan};

/// Finds the table whose rows a plan gives one by one, and the name that a column of the plan has there.
pub(crate) fn origin(plan: &LogicalPlan, place: usize) -> Option<(&TableScan, &str)> {
    match plan {
        LogicalPlan::Projection(projection) => {
            let mut expr = projection.expr.get(place)?;
            while let Expr::Alias(alias) = expr {
                expr = &alias.expr;
            }
            let Expr::Column(column) = expr else { return None };
            origin(&projection.input, projection.input.schema().maybe_index_of_column(column)?)
        }
        LogicalPlan::Filter(filter) => origin(&filter.input, place),
        LogicalPlan::Sort(sort) => origin(&sort.input, place),
        LogicalPlan::Limit(limit) => origin(&limit.input, place),
        LogicalPlan::SubqueryAlias(alias) => origin(&alias.input, place),
        LogicalPlan::TableScan(scan) => Some((scan, scan.projected_schema.field(place).name())),
        _ => None,
    }
}
