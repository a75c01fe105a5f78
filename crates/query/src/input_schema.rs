//! Columns that the expressions of a plan can refer to.

use datafusion::common::DFSchema;
use datafusion::logical_expr::LogicalPlan;

/// Columns of a plan's inputs, or those of a scanned table.
pub(crate) fn input_schema(plan: &LogicalPlan) -> DFSchema {
    let mut schema = DFSchema::empty();
    for input in plan.inputs() {
        schema.merge(input.schema());
    }
    if let LogicalPlan::TableScan(scan) = plan {
        schema.merge(&scan.projected_schema);
    }
    schema
}
