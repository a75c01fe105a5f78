//! Rewriting of text literals that stand for addresses: `src = '10.0.0.1'` compares with the address. An
//! expression planner handles comparisons, whose types the engine checks while it parses; an analyzer rule
//! handles lists, ranges, cases and functions.

use crate::address;
use crate::address_types::{ONE_OF, address_type_of, address_type_of_first};
use crate::input_schema::input_schema;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::expr::{InList, InSubquery, ScalarFunction};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{Between, BinaryExpr, Case, Expr, LogicalPlan, Operator};
use datafusion::optimizer::AnalyzerRule;
use datafusion::sql::sqlparser::ast::{self, BinaryOperator, UnaryOperator, visit_expressions_mut};
use holdfast_attributes::Type;
use std::ops::ControlFlow;

/// Makes addresses of texts that are compared with addresses.
#[derive(Debug)]
pub(crate) struct AddressLiterals;

/// The text of a literal.
pub(crate) fn text_of(expression: &Expr) -> Option<&str> {
    match expression {
        Expr::Literal(
            ScalarValue::Utf8(Some(text))
            | ScalarValue::Utf8View(Some(text))
            | ScalarValue::LargeUtf8(Some(text)),
            _,
        ) => Some(text),
        _ => None,
    }
}

/// An address as a literal.
pub(crate) fn literal(bytes: Vec<u8>) -> Expr {
    Expr::Literal(ScalarValue::FixedSizeBinary(bytes.len() as i32, Some(bytes)), None)
}

/// Texts among these that stand for addresses, where one of them is an address.
fn alike<'a>(all: impl IntoIterator<Item = &'a mut Expr>, schema: &DFSchema) -> Result<bool> {
    let all: Vec<&mut Expr> = all.into_iter().collect();
    let Some(kind) = all.iter().find_map(|one| address_type_of(one, schema)) else { return Ok(false) };
    for one in all {
        address(one, kind)?;
    }
    Ok(true)
}

/// Makes an address of a text that stands for one.
fn address(expression: &mut Expr, kind: Type) -> Result<()> {
    if let Some(text) = text_of(expression) {
        let bytes = address::parse(kind, text).map_err(|error| DataFusionError::Plan(error.to_string()))?;
        *expression = literal(bytes);
    }
    Ok(())
}

impl ExprPlanner for AddressLiterals {
    fn plan_binary_op(&self, expr: RawBinaryExpr, schema: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
        let compares = matches!(
            expr.op,
            BinaryOperator::Eq
                | BinaryOperator::NotEq
                | BinaryOperator::Lt
                | BinaryOperator::LtEq
                | BinaryOperator::Gt
                | BinaryOperator::GtEq
                | BinaryOperator::Spaceship
        );
        let mut expr = expr;
        if !compares {
            return Ok(PlannerResult::Original(expr));
        }
        alike([&mut expr.left, &mut expr.right], schema)?;
        Ok(PlannerResult::Original(expr))
    }
}

fn compares(operator: Operator) -> bool {
    matches!(
        operator,
        Operator::Eq
            | Operator::NotEq
            | Operator::Lt
            | Operator::LtEq
            | Operator::Gt
            | Operator::GtEq
            | Operator::IsDistinctFrom
            | Operator::IsNotDistinctFrom
    )
}

fn rewrite(mut expression: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let is_other = match &mut expression {
        Expr::InList(InList { expr, list, .. }) => alike([&mut **expr].into_iter().chain(list), schema)?,
        Expr::Between(Between { expr, low, high, .. }) => alike([&mut **expr, low, high], schema)?,
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if compares(*op) => {
            alike([&mut **left, right], schema)?
        }
        Expr::Case(Case { expr, when_then_expr, else_expr }) => {
            let (whens, thens): (Vec<_>, Vec<_>) =
                when_then_expr.iter_mut().map(|(when, then)| (&mut **when, &mut **then)).unzip();
            let compared = match expr {
                Some(expr) => alike([&mut **expr].into_iter().chain(whens), schema)?,
                None => false,
            };
            alike(thens.into_iter().chain(else_expr.as_deref_mut()), schema)? || compared
        }
        Expr::ScalarFunction(ScalarFunction { func, args }) if ONE_OF.contains(&func.name()) => {
            alike(args, schema)?
        }
        Expr::InSubquery(InSubquery { expr, subquery, .. }) => {
            match address_type_of_first(&subquery.subquery) {
                Some(kind) => {
                    address(expr, kind)?;
                    true
                }
                None => false,
            }
        }
        _ => false,
    };
    Ok(if is_other { Transformed::yes(expression) } else { Transformed::no(expression) })
}

/// What the engine compares as `a IS [NOT] DISTINCT FROM '…'` without a look at what stands there: it is written as an operator, of
/// which it asks what it compares.
pub(crate) fn as_operators_in<V: ast::VisitMut>(part: &mut V) {
    let _ = visit_expressions_mut(part, |expression: &mut ast::Expr| {
        as_operator(expression);
        ControlFlow::<()>::Continue(())
    });
}

fn as_operator(expression: &mut ast::Expr) {
    let is_text = |side: &ast::Expr| matches!(side, ast::Expr::Value(value) if matches!(value.value, ast::Value::SingleQuotedString(_)));
    let (ast::Expr::IsDistinctFrom(left, right) | ast::Expr::IsNotDistinctFrom(left, right)) = expression
    else {
        return;
    };
    if !is_text(left) && !is_text(right) {
        return;
    }
    let none = || Box::new(ast::Expr::Value(ast::Value::Null.into()));
    let side = |side: &mut Box<ast::Expr>| Box::new(ast::Expr::Nested(std::mem::replace(side, none())));
    let (left, right) = (side(left), side(right));
    let same = ast::Expr::BinaryOp { left, op: BinaryOperator::Spaceship, right };
    let same = ast::Expr::Nested(Box::new(same));
    *expression = match expression {
        ast::Expr::IsDistinctFrom(..) => {
            ast::Expr::Nested(Box::new(ast::Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(same) }))
        }
        _ => same,
    };
}

impl AnalyzerRule for AddressLiterals {
    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        let rewritten = plan.transform_up_with_subqueries(|plan| {
            let schema = input_schema(&plan);
            // Plans above refer to an expression by its name, which has the literal in it.
            let names = NamePreserver::new(&plan);
            plan.map_expressions(|expression| {
                let name = names.save(&expression);
                let rewritten = expression.transform_up(|expression| rewrite(expression, &schema))?;
                Ok(rewritten.update_data(|expression| name.restore(expression)))
            })
        });
        rewritten.map(|plan| plan.data)
    }

    fn name(&self) -> &'static str {
        "addresses"
    }
}
