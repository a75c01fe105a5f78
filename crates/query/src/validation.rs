//! Validation of SQL before execution: number of operators, and plans that the engine computes wrongly. `ast` checks
//! clauses.

use crate::ast;
use crate::dialect::{self, RingDialect};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::expr::NullTreatment;
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::prelude::SessionContext;
use datafusion::scalar::ScalarValue;
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};

/// Operators in a row at most: the engine goes down from each to the one before it, and a stack has an end.
const MOST: usize = 1000;

/// Refuses what has more operators than the engine can go through.
pub(crate) fn too_long(sql: &str) -> Result<()> {
    // What is no SQL the parser tells, and where.
    let tokens = Tokenizer::new(&RingDialect, sql).tokenize().unwrap_or_default();
    let joins = |token: &&Token| match token {
        Token::Word(word) => matches!(word.keyword, Keyword::AND | Keyword::OR),
        Token::Plus | Token::Minus | Token::Mul | Token::Div | Token::Mod | Token::StringConcat => true,
        _ => false,
    };
    match tokens.iter().filter(joins).count() {
        count if count > MOST => plan_err!(
            "cannot plan the query: {count} operators exceed the limit of {MOST}; instead of `a = 1 or a = 2` write \
             `a in (1, 2)`, which has no limit"
        ),
        _ => Ok(()),
    }
}

/// A condition on rows with this schema.
pub(crate) fn condition(context: &SessionContext, sql: &str, schema: &DFSchema) -> Result<Expr> {
    too_long(sql)?;
    let mut parsed = dialect::condition(context, sql)?;
    if let Some(alias) = &parsed.alias {
        return plan_err!("cannot use `{alias}` in a condition: an alias would have no effect; leave it out");
    }
    ast::prepare(context, &mut parsed.expr)?;
    context.state().create_logical_expr_from_sql_expr(parsed, schema)
}

/// Refuses plans that the engine cannot decorrelate, and those of which it gets values wrong: some window functions.
pub(crate) fn wrong_plans(plan: &LogicalPlan) -> Result<()> {
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::SubqueryAlias(alias) = node
            && alias.alias.table() == ast::ROWS
            && !alias.input.all_out_ref_exprs().is_empty()
        {
            return plan_err!(
                "cannot compare a row with a query that names columns of the query around it; write `exists (select …)` \
                 with a condition for each value"
            );
        }
        let LogicalPlan::Window(window) = node else { return Ok(TreeNodeRecursion::Continue) };
        for expr in &window.window_expr {
            expr.apply(|expr| {
                let Expr::WindowFunction(function) = expr else { return Ok(TreeNodeRecursion::Continue) };
                let name = function.fun.name();
                let ignores_nulls = function.params.null_treatment == Some(NullTreatment::IgnoreNulls);
                if ignores_nulls && matches!(name, "lag" | "lead") && !steps_by_one(&function.params.args) {
                    return plan_err!(
                        "cannot compute `{name}` with `ignore nulls` and an offset other than 1; leave out the rows \
                         with nulls by `where … is not null` in a subquery, and join the result"
                    );
                }
                Ok(TreeNodeRecursion::Continue)
            })?;
        }
        Ok(TreeNodeRecursion::Continue)
    })
    .map(|_| ())
}

/// Returns true if `lag` or `lead` has the offset 1, by itself or by default.
fn steps_by_one(args: &[Expr]) -> bool {
    match args.get(1) {
        None => true,
        Some(Expr::Literal(offset, _)) => {
            matches!(offset.cast_to(&DataType::Int64), Ok(ScalarValue::Int64(Some(1))))
        }
        Some(_) => false,
    }
}
