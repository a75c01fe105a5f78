//! Validation of SQL before execution: nesting depth, clauses that the engine accepts but ignores, and window
//! functions that it computes wrongly.

use crate::address_literals::as_operators_in;
use crate::dialect::{self, RingDialect};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::expr::NullTreatment;
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::prelude::SessionContext;
use datafusion::scalar::ScalarValue;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    Join, JoinConstraint, JoinOperator, Select, TableFactor, Visit, Visitor,
};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};
use std::ops::ControlFlow;

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
    as_operators_in(&mut parsed.expr);
    context.state().create_logical_expr_from_sql_expr(parsed, schema)
}

/// Refuses clauses that the engine takes and does not heed, or heeds only in part.
pub(crate) fn unheeded(statement: &Statement) -> Result<()> {
    struct ClauseVisitor;
    impl Visitor for ClauseVisitor {
        type Break = &'static str;

        fn pre_visit_table_factor(&mut self, table: &TableFactor) -> ControlFlow<&'static str> {
            match table {
                TableFactor::Table { sample: Some(_), .. } | TableFactor::Derived { sample: Some(_), .. } => {
                    ControlFlow::Break(
                        "cannot sample a table: `tablesample` is not supported; use `where ordinal % 100 = 0` or a \
                         time range",
                    )
                }
                TableFactor::NestedJoin { table_with_joins, .. } => shared_columns(&table_with_joins.joins),
                _ => ControlFlow::Continue(()),
            }
        }

        fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<&'static str> {
            select.from.iter().try_for_each(|table| shared_columns(&table.joins))
        }
    }
    match statement {
        Statement::Statement(statement) => match statement.visit(&mut ClauseVisitor) {
            ControlFlow::Break(refusal) => plan_err!("{refusal}"),
            ControlFlow::Continue(()) => Ok(()),
        },
        Statement::Explain(explain) => unheeded(&explain.statement),
        _ => Ok(()),
    }
}

/// Refuses a column that both sides of a join share, where the left side may have no row: the engine takes its value
/// all the same, which is null.
fn shared_columns(joins: &[Join]) -> ControlFlow<&'static str> {
    let is_wrong = |join: &Join| {
        let (JoinOperator::Right(on) | JoinOperator::RightOuter(on) | JoinOperator::FullOuter(on)) =
            &join.join_operator
        else {
            return false;
        };
        matches!(on, JoinConstraint::Using(_) | JoinConstraint::Natural)
    };
    if joins.iter().any(is_wrong) {
        return ControlFlow::Break(
            "cannot use `using` or `natural` in a right or full join; write `on a.w = b.w`, and coalesce(a.w, b.w) \
             for the shared column",
        );
    }
    ControlFlow::Continue(())
}

/// Refuses plans of which the engine gets values wrong: some window functions.
pub(crate) fn wrong_plans(plan: &LogicalPlan) -> Result<()> {
    plan.apply_with_subqueries(|node| {
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
