//! `INTERSECT ALL` and `EXCEPT ALL` over rows that occur several times. The engine plans both as a join that
//! keeps every row of the left side with, or without, an equal one on the right; here equal rows are numbered
//! on both sides, and the numbers are compared with them.

use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, NullEquality};
use datafusion::error::Result;
use datafusion::functions_window::expr_fn::row_number;
use datafusion::logical_expr::{Distinct, Expr, ExprFunctionExt, JoinType, LogicalPlan, LogicalPlanBuilder};
use std::sync::Arc;

/// Name of the column with the number of a row among its equals.
const NUMBER: &str = "number of an equal row";

/// Compares equal rows by their numbers, too, where all of them count.
pub(crate) fn exact_set_operations(plan: LogicalPlan) -> Result<LogicalPlan> {
    plan.transform_up_with_subqueries(|node| {
        let LogicalPlan::Join(join) = &node else { return Ok(Transformed::no(node)) };
        // Both forms are the same if the rows on the left are distinct.
        let is_all = matches!(join.join_type, JoinType::LeftSemi | JoinType::LeftAnti)
            && join.null_equality == NullEquality::NullEqualsNull
            && !matches!(join.left.as_ref(), LogicalPlan::Distinct(Distinct::All(_)));
        if !is_all {
            return Ok(Transformed::no(node));
        }
        let columns = join.left.schema().columns();
        let (mut left, mut right): (Vec<Column>, Vec<Column>) = (Vec::new(), Vec::new());
        for (one, other) in &join.on {
            if let (Expr::Column(one), Expr::Column(other)) = (one, other) {
                left.push(one.clone());
                right.push(other.clone());
            }
        }
        let (left_side, right_side) = (numbered(&join.left)?, numbered(&join.right)?);
        left.push(Column::from_name(NUMBER));
        right.push(Column::from_name(NUMBER));
        let builder = LogicalPlanBuilder::from(left_side).join_detailed(
            right_side,
            join.join_type,
            (left, right),
            None,
            NullEquality::NullEqualsNull,
        )?;
        let plan = builder.project(columns.into_iter().map(Expr::Column))?.build()?;
        Ok(Transformed::yes(plan))
    })
    .map(|rewritten| rewritten.data)
}

/// A side with the number of each row among those that equal it.
fn numbered(side: &Arc<LogicalPlan>) -> Result<LogicalPlan> {
    let columns: Vec<Expr> = side.schema().columns().into_iter().map(Expr::Column).collect();
    let number = row_number().partition_by(columns.clone()).build()?;
    let name = number.schema_name().to_string();
    let windowed = LogicalPlanBuilder::from(Arc::clone(side)).window([number])?;
    let number = Expr::Column(Column::from_name(name)).alias(NUMBER);
    windowed.project(columns.into_iter().chain([number]))?.build()
}
