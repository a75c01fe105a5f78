//! Detection of subqueries in expressions.

use datafusion::common::tree_node::TreeNode;
use datafusion::logical_expr::Expr;

/// Returns true if an expression has a subquery in it.
pub(crate) fn has_subquery(expr: &Expr) -> bool {
    let is_subquery = |expr: &Expr| {
        Ok(matches!(
            expr,
            Expr::InSubquery(_) | Expr::Exists(_) | Expr::ScalarSubquery(_) | Expr::SetComparison(_)
        ))
    };
    expr.exists(is_subquery).unwrap_or(true)
}
