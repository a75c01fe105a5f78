//! Arithmetic on whole numbers that never wraps around: an analyzer rule replaces the engine's operators by those of
//! [`crate::functions::Whole`]. A result that is compared, or converted to a wider type, has up to 38 digits, so
//! that conditions do not fail.

use crate::functions::{WIDE, Whole, WholeOperator};
use crate::input_schema::input_schema;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr::{Cast, InList, ScalarFunction};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Between, BinaryExpr, Expr, ExprSchemable, LogicalPlan, Operator, cast};
use datafusion::optimizer::AnalyzerRule;
use datafusion::scalar::ScalarValue;

/// Analyzer rule that checks arithmetic; behind the rule that gives operands their types.
#[derive(Debug)]
pub(crate) struct CheckedArithmetic;

/// Operators whose engine kernels drop bits.
fn wraps(operator: Operator) -> Option<WholeOperator> {
    match operator {
        Operator::Plus | Operator::Minus | Operator::Multiply => WholeOperator::of(operator),
        _ => None,
    }
}

/// Call of a checked operator over columns.
fn is_computed(expr: &Expr) -> bool {
    matches!(expr, Expr::ScalarFunction(call) if Whole::of(call).is_some()) && !expr.column_refs().is_empty()
}

/// Expression of whole numbers with results of 38 digits.
fn widened(expr: Expr) -> Expr {
    let Expr::ScalarFunction(ScalarFunction { func, args }) = expr else { return cast(expr, WIDE) };
    let operator = func.inner().downcast_ref::<Whole>().map(Whole::operator);
    match (operator, <[Expr; 2]>::try_from(args)) {
        (Some(operator), Ok([left, right])) => Whole::call(operator, WIDE, operand(left), operand(right)),
        (_, args) => {
            let args = args.map_or_else(|args| args, Vec::from);
            cast(Expr::ScalarFunction(ScalarFunction::new_udf(func, args)), WIDE)
        }
    }
}

/// Operand of a wide operator: wide itself if it is computed.
fn operand(expr: Expr) -> Expr {
    if matches!(&expr, Expr::ScalarFunction(call) if Whole::of(call).is_some()) {
        widened(expr)
    } else {
        expr
    }
}

/// Whole number that the engine made a decimal to compare it with another, in 38 digits.
fn widened_decimal(expr: Expr) -> Expr {
    match expr {
        Expr::Cast(Cast { expr, .. }) => widened(*expr),
        expr => cast(expr, WIDE),
    }
}

/// Computed whole number, or such a number as a decimal.
fn is_computed_decimal(expr: &Expr) -> bool {
    match expr {
        Expr::Cast(Cast { expr, field }) => {
            matches!(field.data_type(), DataType::Decimal128(_, 0)) && is_computed(expr)
        }
        _ => false,
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

fn checked(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let is_whole = |expr: &Expr| expr.get_type(schema).is_ok_and(|kind| kind.is_integer());
    // Converted whole numbers, so that the conversion is the outermost part.
    let is_whole_decimal = |expr: &Expr| match expr {
        Expr::Cast(Cast { expr, field }) => {
            matches!(field.data_type(), DataType::Decimal128(_, 0))
                && (is_whole(expr) || matches!(expr.get_type(schema), Ok(DataType::Decimal128(_, 0))))
        }
        Expr::Literal(value, _) => matches!(value.data_type(), DataType::Decimal128(_, 0)),
        _ => false,
    };
    Ok(match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if wraps(op).is_some() => {
            let kind = left.get_type(schema)?;
            match wraps(op) {
                Some(operator) if kind.is_integer() && right.get_type(schema)? == kind => {
                    Transformed::yes(Whole::call(operator, kind, *left, *right))
                }
                _ => Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right })),
            }
        }
        Expr::Negative(inner) if is_whole(&inner) => {
            let kind = inner.get_type(schema)?;
            let zero = Expr::Literal(ScalarValue::new_zero(&kind)?, None);
            Transformed::yes(Whole::call(WholeOperator::Subtract, kind, zero, *inner))
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right })
            if compares(op)
                && (is_computed(&left) || is_computed(&right))
                && is_whole(&left)
                && is_whole(&right) =>
        {
            let (left, right) = (Box::new(widened(*left)), Box::new(widened(*right)));
            Transformed::yes(Expr::BinaryExpr(BinaryExpr { left, op, right }))
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right })
            if compares(op)
                && (is_computed_decimal(&left) || is_computed_decimal(&right))
                && is_whole_decimal(&left)
                && is_whole_decimal(&right) =>
        {
            let [left, right] = [left, right].map(|side| Box::new(widened_decimal(*side)));
            Transformed::yes(Expr::BinaryExpr(BinaryExpr { left, op, right }))
        }
        Expr::InList(InList { expr, list, negated })
            if is_computed(&expr) && is_whole(&expr) && list.iter().all(is_whole) =>
        {
            let list = list.into_iter().map(widened).collect();
            Transformed::yes(Expr::InList(InList { expr: Box::new(widened(*expr)), list, negated }))
        }
        Expr::Between(Between { expr, negated, low, high })
            if [&expr, &low, &high].into_iter().any(|part| is_computed(part))
                && [&expr, &low, &high].into_iter().all(|part| is_whole(part)) =>
        {
            let [expr, low, high] = [expr, low, high].map(|part| Box::new(widened(*part)));
            Transformed::yes(Expr::Between(Between { expr, negated, low, high }))
        }
        Expr::Cast(Cast { expr, field })
            if is_computed(&expr)
                && matches!(field.data_type(), DataType::Decimal128(..) | DataType::Float64) =>
        {
            Transformed::yes(Expr::Cast(Cast { expr: Box::new(widened(*expr)), field }))
        }
        expr => Transformed::no(expr),
    })
}

impl AnalyzerRule for CheckedArithmetic {
    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        let rewritten = plan.transform_up_with_subqueries(|plan| {
            let schema = input_schema(&plan);
            let names = NamePreserver::new(&plan);
            plan.map_expressions(|expr| {
                let name = names.save(&expr);
                let rewritten = expr.transform_up(|expr| checked(expr, &schema))?;
                Ok(rewritten.update_data(|expr| name.restore(expr)))
            })
        });
        rewritten.map(|plan| plan.data)
    }

    fn name(&self) -> &'static str {
        "checked arithmetic"
    }
}
