//! Expressions of the allow list.

use super::allow_list::ignored;
use super::is_volatile;
use datafusion::common::plan_err;
use datafusion::error::Result;
use datafusion::execution::SessionState;
use datafusion::sql::sqlparser::ast::{
    ArrayElemTypeDef, BinaryOperator, DataType, ExactNumberInfo, Expr, TypedString,
};

/// Refuses an expression that the engine does not plan as it is written. Its parts are visited by themselves.
pub(super) fn allowed(state: &SessionState, expr: &Expr) -> Result<()> {
    match expr {
        Expr::Identifier(_)
        | Expr::CompoundIdentifier(_)
        | Expr::CompoundFieldAccess { root: _, access_chain: _ }
        | Expr::IsFalse(_)
        | Expr::IsNotFalse(_)
        | Expr::IsTrue(_)
        | Expr::IsNotTrue(_)
        | Expr::IsNull(_)
        | Expr::IsNotNull(_)
        | Expr::IsUnknown(_)
        | Expr::IsNotUnknown(_)
        | Expr::IsDistinctFrom(_, _)
        | Expr::IsNotDistinctFrom(_, _)
        | Expr::InList { expr: _, list: _, negated: _ }
        | Expr::InSubquery { expr: _, subquery: _, negated: _ }
        | Expr::UnaryOp { op: _, expr: _ }
        | Expr::AtTimeZone { timestamp: _, time_zone: _ }
        | Expr::Extract { field: _, syntax: _, expr: _ }
        | Expr::Ceil { expr: _, field: _ }
        | Expr::Floor { expr: _, field: _ }
        | Expr::Position { expr: _, r#in: _ }
        | Expr::Substring { expr: _, substring_from: _, substring_for: _, special: _, shorthand: _ }
        | Expr::Overlay { expr: _, overlay_what: _, overlay_from: _, overlay_for: _ }
        | Expr::Nested(_)
        | Expr::Value(_)
        | Expr::Case { case_token: _, end_token: _, operand: _, conditions: _, else_result: _ }
        | Expr::Exists { subquery: _, negated: _ }
        | Expr::Subquery(_)
        | Expr::GroupingSets(_)
        | Expr::Cube(_)
        | Expr::Rollup(_)
        // Rewritten, or refused, behind this list.
        | Expr::Tuple(_)
        | Expr::Array(_)
        // The engine refuses the fields that it does not know.
        | Expr::Interval(_) => Ok(()),
        Expr::Between { expr: value, negated: _, low, high } => {
            if [value, low, high].iter().any(|part| is_volatile(state, part)) { plan_err!(
                    "cannot use a function with another value at each call in `between`: it would be called more than \
                     once; compute it in a subquery"
                ) } else { Ok(()) }
        }
        Expr::Like { negated: _, any, expr: _, pattern: _, escape_char: _ }
        | Expr::ILike { negated: _, any, expr: _, pattern: _, escape_char: _ } => if *any { plan_err!("cannot use `like any`: it is not supported; join several `like` by `or`") } else { Ok(()) },
        Expr::BinaryOp { left: _, op, right: _ } => allowed_operator(op),
        Expr::AnyOp { left: _, compare_op: _, right, is_some: _ }
        | Expr::AllOp { left: _, compare_op: _, right } => if is_query(right) { Ok(()) } else { plan_err!(
                "cannot compare with `any` or `all` of `{right}`: only a query is supported; write `in (…)` or \
                 `= any (select unnest(…))`"
            ) },
        Expr::Cast { kind: _, expr: _, data_type, array, format } => {
            ignored(*array || format.is_some(), "`array` or `format` of a cast", "leave it out")?;
            allowed_type(data_type)
        }
        Expr::TypedString(TypedString { data_type, value: _, uses_odbc_syntax: _ }) => allowed_type(data_type),
        Expr::Trim { expr: _, trim_where: _, trim_what: _, trim_characters } => {
            let is_there = trim_characters.as_ref().is_some_and(|characters| characters.len() > 1);
            ignored(is_there, "a third argument of `trim`", "put all characters into one text")
        }
        Expr::Struct { .. } | Expr::Dictionary(_) | Expr::Map(_) => plan_err!(
            "cannot make a struct of `{expr}`: structs with nulls would compare wrongly; use its values by themselves"
        ),
        other => plan_err!(
            "cannot evaluate `{other}`: this kind of expression is not supported; use a function or an operator that the \
             manual names"
        ),
    }
}

fn is_query(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(expr) => is_query(expr),
        expr => matches!(expr, Expr::Subquery(_)),
    }
}

fn allowed_operator(operator: &BinaryOperator) -> Result<()> {
    match operator {
        // The engine takes it for an operation on bits of numbers.
        BinaryOperator::Xor => {
            plan_err!("cannot use `xor`: it would combine bits; write `a <> b` for conditions")
        }
        BinaryOperator::Plus
        | BinaryOperator::Minus
        | BinaryOperator::Multiply
        | BinaryOperator::Divide
        | BinaryOperator::Modulo
        | BinaryOperator::StringConcat
        | BinaryOperator::Gt
        | BinaryOperator::Lt
        | BinaryOperator::GtEq
        | BinaryOperator::LtEq
        | BinaryOperator::Spaceship
        | BinaryOperator::Eq
        | BinaryOperator::NotEq
        | BinaryOperator::And
        | BinaryOperator::Or
        | BinaryOperator::BitwiseOr
        | BinaryOperator::BitwiseAnd
        | BinaryOperator::BitwiseXor
        | BinaryOperator::PGBitwiseXor
        | BinaryOperator::PGBitwiseShiftLeft
        | BinaryOperator::PGBitwiseShiftRight
        | BinaryOperator::PGRegexMatch
        | BinaryOperator::PGRegexIMatch
        | BinaryOperator::PGRegexNotMatch
        | BinaryOperator::PGRegexNotIMatch
        | BinaryOperator::PGLikeMatch
        | BinaryOperator::PGILikeMatch
        | BinaryOperator::PGNotLikeMatch
        | BinaryOperator::PGNotILikeMatch
        | BinaryOperator::DuckIntegerDivide
        | BinaryOperator::MyIntegerDivide
        | BinaryOperator::Arrow
        | BinaryOperator::LongArrow => Ok(()),
        other => plan_err!(
            "cannot use the operator `{other}`: it is not supported; use a function that the manual names"
        ),
    }
}

/// Refuses lengths and precisions that the engine ignores. It refuses types that it does not know by itself.
fn allowed_type(data_type: &DataType) -> Result<()> {
    let remedy = match data_type {
        DataType::Varchar(Some(_)) | DataType::String(Some(_)) | DataType::Char(_) => {
            "use `text`, and left(s, 10) for a number of characters"
        }
        DataType::Float(ExactNumberInfo::Precision(_) | ExactNumberInfo::PrecisionAndScale(..)) => {
            "use `real` or `double`"
        }
        DataType::TinyInt(Some(_))
        | DataType::SmallInt(Some(_))
        | DataType::Int2(Some(_))
        | DataType::Int(Some(_))
        | DataType::Integer(Some(_))
        | DataType::Int4(Some(_))
        | DataType::BigInt(Some(_))
        | DataType::Int8(Some(_))
        | DataType::TinyIntUnsigned(Some(_))
        | DataType::SmallIntUnsigned(Some(_))
        | DataType::Int2Unsigned(Some(_))
        | DataType::IntUnsigned(Some(_))
        | DataType::IntegerUnsigned(Some(_))
        | DataType::Int4Unsigned(Some(_))
        | DataType::BigIntUnsigned(Some(_))
        | DataType::Int8Unsigned(Some(_)) => "use the type without it",
        DataType::Array(
            ArrayElemTypeDef::AngleBracket(inner) | ArrayElemTypeDef::SquareBracket(inner, _),
        ) => return allowed_type(inner),
        _ => return Ok(()),
    };
    plan_err!("cannot cast to `{data_type}`: the length would have no effect; {remedy}")
}
