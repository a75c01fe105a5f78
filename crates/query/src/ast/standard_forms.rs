//! Rewriting of standard forms that the engine lacks: `fetch first`, `between symmetric`, and `similar to`, which it
//! takes for a plain regular expression.

use super::{null, similar_pattern, step, take};
use crate::dialect::SYMMETRIC;
use datafusion::common::plan_err;
use datafusion::error::{DataFusionError, Result};
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Fetch, LimitClause, Query, UnaryOperator, Value, ValueWithSpan, VisitorMut,
};
use std::ops::ControlFlow;

/// Visitor that rewrites these forms.
pub(super) struct StandardForms;

impl VisitorMut for StandardForms {
    type Break = DataFusionError;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<DataFusionError> {
        step(limit(query))
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<DataFusionError> {
        match expr {
            Expr::Between { low, .. } if is_symmetric(low) => *expr = symmetric(take(expr)),
            Expr::SimilarTo { .. } => return step(similar(take(expr)).map(|similar| *expr = similar)),
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// Makes a limit of `fetch first N rows only`.
fn limit(query: &mut Query) -> Result<()> {
    let Some(Fetch { with_ties, percent, quantity }) = query.fetch.take() else { return Ok(()) };
    if with_ties || percent {
        return plan_err!(
            "cannot use `percent` or `with ties` in `fetch first`: only a number of rows is supported; compare \
             `rank() over (…)` with it in a query around"
        );
    }
    let one = || Expr::Value(Value::Number("1".to_owned(), false).into());
    let rows = Some(quantity.unwrap_or_else(one));
    match &mut query.limit_clause {
        None => {
            query.limit_clause =
                Some(LimitClause::LimitOffset { limit: rows, offset: None, limit_by: Vec::new() });
        }
        Some(LimitClause::LimitOffset { limit: limit @ None, .. }) => *limit = rows,
        Some(_) => return plan_err!("cannot use `limit` and `fetch first` together; leave one of them out"),
    }
    Ok(())
}

fn is_symmetric(low: &Expr) -> bool {
    matches!(low, Expr::Prefixed { prefix, .. } if prefix.value == SYMMETRIC)
}

/// `x between symmetric a and b`, which is `x between a and b or x between b and a`.
fn symmetric(between: Expr) -> Expr {
    let Expr::Between { expr, negated, low, high } = between else { return between };
    let low = match *low {
        Expr::Prefixed { value, .. } => value,
        low => Box::new(low),
    };
    let either = |low, high| {
        Box::new(Expr::Between { expr: Box::new(super::nested(*expr.clone())), negated: false, low, high })
    };
    let (left, right) = (either(low.clone(), high.clone()), either(high, low));
    let within = super::nested(Expr::BinaryOp { left, op: BinaryOperator::Or, right });
    if negated {
        super::nested(Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(within) })
    } else {
        within
    }
}

/// `s similar to 'pattern'` as a match of the whole text with a regular expression.
fn similar(expr: Expr) -> Result<Expr> {
    let Expr::SimilarTo { negated, expr, pattern, escape_char } = expr else { return Ok(null()) };
    let Some(text) = text(&pattern) else {
        return plan_err!(
            "cannot match `similar to` with `{pattern}`: the pattern has to be a text in quotes; use `~` and a regular \
             expression"
        );
    };
    let escape = match &escape_char {
        None => Some('\\'),
        Some(value) => escape(&value.value)?,
    };
    let pattern = similar_pattern::regular_expression(text, escape)?;
    let op = if negated { BinaryOperator::PGRegexNotMatch } else { BinaryOperator::PGRegexMatch };
    let right = Box::new(Expr::Value(Value::SingleQuotedString(pattern).into()));
    Ok(super::nested(Expr::BinaryOp { left: Box::new(super::nested(*expr)), op, right }))
}

/// Text of a literal.
fn text(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Nested(expr) => text(expr),
        Expr::Value(ValueWithSpan {
            value: Value::SingleQuotedString(text) | Value::EscapedStringLiteral(text),
            ..
        }) => Some(text),
        _ => None,
    }
}

/// Character of an `escape` clause; none for an empty text, as in `PostgreSQL`.
fn escape(value: &Value) -> Result<Option<char>> {
    if let Value::SingleQuotedString(text) = value {
        let mut chars = text.chars();
        if let (char, None) = (chars.next(), chars.next()) {
            return Ok(char);
        }
    }
    plan_err!("cannot escape with {value}: `escape` takes one character; write `escape '#'`")
}
