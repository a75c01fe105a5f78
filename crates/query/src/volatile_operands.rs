//! Refusal of operands that change at each evaluation, such as `random()`, where the engine evaluates an operand
//! more than once: `random() between 0.2 and 0.3` is two comparisons of two numbers to it.

use datafusion::common::plan_err;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, LogicalPlan};

/// Functions that compare an argument with null, and then evaluate it again.
const REPEATING: [&str; 4] = ["coalesce", "ifnull", "nvl", "nvl2"];

/// The clause that evaluates one of its operands more than once, if that is volatile.
fn repeating_clause(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Between(between) => between.expr.is_volatile().then_some("between"),
        Expr::InList(list) => list.expr.is_volatile().then_some("in"),
        Expr::Case(case) => {
            case.expr.as_ref().is_some_and(|base| base.is_volatile()).then_some("case … when")
        }
        Expr::ScalarFunction(call) => {
            let name = REPEATING.into_iter().find(|name| *name == call.func.name())?;
            call.args.iter().any(Expr::is_volatile).then_some(name)
        }
        _ => None,
    }
}

/// Refuses a plan in which a volatile operand is evaluated more than once for a row.
pub(crate) fn refuse_repeated(plan: &LogicalPlan) -> Result<()> {
    let in_expression = |expr: &Expr| {
        expr.apply(|expr| match repeating_clause(expr) {
            Some(clause) => plan_err!(
                "cannot use a function like `random()` with `{clause}`: it has another value each time it is evaluated; \
                 name its value in a subquery, as in `from (select random() r, * from …) where r between 0.2 and 0.3`"
            ),
            None => Ok(TreeNodeRecursion::Continue),
        })
    };
    plan.apply_with_subqueries(|node| node.apply_expressions(in_expression)).map(|_| ())
}
