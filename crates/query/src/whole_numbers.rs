//! Types of arithmetic on whole numbers. The engine lets a difference of unsigned numbers wrap around, and makes
//! decimal fractions of an unsigned number beside a signed one. Here an expression planner makes both signed
//! numbers of 64 bits. [`crate::checked_arithmetic`] checks the results of other operators.

use crate::functions::{Whole, WholeOperator};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{Expr, ExprSchemable, cast, lit};
use datafusion::scalar::ScalarValue;
use datafusion::sql::sqlparser::ast::BinaryOperator;

/// Planner of operators between two whole numbers.
#[derive(Debug)]
pub(crate) struct WholeNumbers;

fn operator(of: &BinaryOperator) -> Option<WholeOperator> {
    Some(match of {
        BinaryOperator::Plus => WholeOperator::Add,
        BinaryOperator::Minus => WholeOperator::Subtract,
        BinaryOperator::Multiply => WholeOperator::Multiply,
        BinaryOperator::Divide => WholeOperator::Divide,
        BinaryOperator::Modulo => WholeOperator::Remainder,
        _ => return None,
    })
}

/// Makes a literal unsigned if it can be, beside an unsigned number.
fn unsigned(literal: &mut Expr, kind: &mut DataType, beside: &DataType) {
    if beside.is_unsigned_integer()
        && let Expr::Literal(ScalarValue::Int64(Some(number)), _) = literal
        && let Ok(number) = u64::try_from(*number)
    {
        (*literal, *kind) = (lit(number), DataType::UInt64);
    }
}

/// Type of 64 bits with the same sign; `None` if a type has 64 bits.
fn wider(kind: &DataType) -> Option<DataType> {
    match kind {
        DataType::Int8 | DataType::Int16 | DataType::Int32 => Some(DataType::Int64),
        DataType::UInt8 | DataType::UInt16 | DataType::UInt32 => Some(DataType::UInt64),
        _ => None,
    }
}

impl ExprPlanner for WholeNumbers {
    fn plan_binary_op(
        &self,
        mut expr: RawBinaryExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawBinaryExpr>> {
        let Some(operator) = operator(&expr.op) else { return Ok(PlannerResult::Original(expr)) };
        let (Ok(mut left), Ok(mut right)) = (expr.left.get_type(schema), expr.right.get_type(schema)) else {
            return Ok(PlannerResult::Original(expr));
        };
        if !left.is_integer() || !right.is_integer() {
            return Ok(PlannerResult::Original(expr));
        }
        if operator != WholeOperator::Subtract {
            unsigned(&mut expr.left, &mut left, &right);
            unsigned(&mut expr.right, &mut right, &left);
        }
        let is_mixed = left.is_unsigned_integer() != right.is_unsigned_integer();
        if is_mixed || left.is_unsigned_integer() && operator == WholeOperator::Subtract {
            return Ok(PlannerResult::Planned(Whole::call(operator, DataType::Int64, expr.left, expr.right)));
        }
        // The other side gets the same type.
        if let (Some(wider), Some(_)) = (wider(&left), self::wider(&right)) {
            expr.left = cast(expr.left, wider);
        }
        Ok(PlannerResult::Original(expr))
    }
}
