//! Rewriting of `(a, b) in (select …)`, `= any` and `<> all` of rows into `exists`.
//!
//! An `exists` is never null. So the context decides: in a condition, null counts as false, and below a `not` as true;
//! in other places a `case` gives null.

use super::row_values::{Comparison, row};
use super::{nested, take};
use crate::dialect::RingDialect;
use datafusion::common::plan_err;
use datafusion::error::{DataFusionError, Result};
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Ident, Query, SelectItem, SetExpr, TableFactor, UnaryOperator,
};
use datafusion::sql::sqlparser::parser::Parser;

/// Alias of the query of a rewritten comparison.
pub(crate) const ROWS: &str = "rows of a list";

/// The meaning of null in the context of an expression.
#[derive(Clone, Copy)]
pub(super) enum NullAs {
    False,
    True,
}

impl NullAs {
    fn negated(self) -> Self {
        match self {
            Self::False => Self::True,
            Self::True => Self::False,
        }
    }
}

/// Rewrites the memberships of rows in a condition.
pub(super) fn condition(expr: &mut Expr, null: NullAs) -> Result<()> {
    match expr {
        Expr::Nested(inner) => condition(inner, null),
        Expr::BinaryOp { left, op: BinaryOperator::And | BinaryOperator::Or, right } => {
            condition(left, null)?;
            condition(right, null)
        }
        Expr::UnaryOp { op: UnaryOperator::Not, expr } => condition(expr, null.negated()),
        Expr::IsTrue(inner) | Expr::IsNotTrue(inner) => condition(inner, NullAs::False),
        Expr::IsFalse(inner) | Expr::IsNotFalse(inner) => condition(inner, NullAs::True),
        _ => {
            if let Some(membership) = Membership::of(expr) {
                *expr = membership.condition(null)?;
            }
            Ok(())
        }
    }
}

/// Rewrites a membership of a row in a place where null is a value.
pub(super) fn value(expr: &mut Expr) -> Result<()> {
    let Some(membership) = Membership::of(expr) else {
        return plan_err!(
            "cannot compare rows in `{expr}`: only `in`, `= any` and `<> all` take a row and a query; compare the values by \
             themselves"
        );
    };
    *expr = membership.value()?;
    Ok(())
}

/// A row that is, or is not, among the rows of a query.
struct Membership {
    values: Vec<Expr>,
    query: Box<Query>,
    negated: bool,
}

impl Membership {
    fn of(expr: &mut Expr) -> Option<Self> {
        let (left, is_known) = match &*expr {
            Expr::InSubquery { expr, .. } => (expr, true),
            Expr::AnyOp { left, compare_op, right, .. } => {
                (left, *compare_op == BinaryOperator::Eq && is_query(right))
            }
            Expr::AllOp { left, compare_op, right } => {
                (left, *compare_op == BinaryOperator::NotEq && is_query(right))
            }
            _ => return None,
        };
        let values = row(left).filter(|_| is_known)?;
        match take(expr) {
            Expr::InSubquery { subquery, negated, .. } => Some(Self { values, query: subquery, negated }),
            Expr::AnyOp { right, .. } => query(*right).map(|query| Self { values, query, negated: false }),
            Expr::AllOp { right, .. } => query(*right).map(|query| Self { values, query, negated: true }),
            _ => None,
        }
    }

    fn condition(self, null: NullAs) -> Result<Expr> {
        let equal = self.equal()?;
        // Not in, where null counts as false: no row may be equal.
        let is_strict = matches!((null, self.negated), (NullAs::False, false) | (NullAs::True, true));
        let meets = if is_strict { equal } else { Expr::IsNotFalse(Box::new(equal)) };
        exists(self.query, self.values.len(), meets, self.negated)
    }

    fn value(self) -> Result<Expr> {
        let (equal, width) = (self.equal()?, self.values.len());
        let mut case = expression("case when true then true when true then null else false end")?;
        let Expr::Case { conditions, .. } = &mut case else { return malformed() };
        let [found, unknown] = conditions.as_mut_slice() else { return malformed() };
        found.condition = exists(self.query.clone(), width, equal.clone(), false)?;
        unknown.condition = exists(self.query, width, Expr::IsNull(Box::new(equal)), false)?;
        let case = nested(case);
        Ok(if self.negated {
            nested(Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(case) })
        } else {
            case
        })
    }

    /// The comparison with the columns of the query.
    fn equal(&self) -> Result<Expr> {
        let columns = (1..=self.values.len()).map(|number| Expr::Identifier(column(number)));
        Comparison::Eq.between(&Expr::Tuple(self.values.clone()), &Expr::Tuple(columns.collect()))
    }
}

fn is_query(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(expr) => is_query(expr),
        expr => matches!(expr, Expr::Subquery(_)),
    }
}

fn query(expr: Expr) -> Option<Box<Query>> {
    match expr {
        Expr::Nested(expr) => query(*expr),
        Expr::Subquery(query) => Some(query),
        _ => None,
    }
}

/// Name of a column of the query, which no column of the query around has.
fn column(number: usize) -> Ident {
    Ident::with_quote('"', format!("value {number} of a row"))
}

/// `exists (select 1 from (query) rows(…) where meets)`.
fn exists(query: Box<Query>, width: usize, meets: Expr, negated: bool) -> Result<Expr> {
    let columns = (1..=width).map(|number| column(number).to_string()).collect::<Vec<_>>().join(", ");
    let text = format!("exists (select 1 from (select 1) as \"{ROWS}\" ({columns}) where true)");
    let mut made = expression(&text)?;
    let Expr::Exists { subquery, negated: is_negated } = &mut made else { return malformed() };
    *is_negated = negated;
    let SetExpr::Select(select) = &mut *subquery.body else { return malformed() };
    select.selection = Some(meets);
    let Some(TableFactor::Derived { subquery, .. }) =
        select.from.first_mut().map(|table| &mut table.relation)
    else {
        return malformed();
    };
    *subquery = query;
    name_again(&mut subquery.body);
    Ok(nested(made))
}

/// Names columns that stand in a list twice, which the engine takes for one.
fn name_again(body: &mut SetExpr) {
    match body {
        SetExpr::Select(select) => {
            let mut known: Vec<String> = Vec::new();
            for (number, item) in (1..).zip(&mut select.projection) {
                let SelectItem::UnnamedExpr(expr) = item else { continue };
                let text = match &*expr {
                    Expr::Identifier(name) => name.value.clone(),
                    Expr::CompoundIdentifier(names) => {
                        names.last().map_or_else(String::new, |name| name.value.clone())
                    }
                    expr => expr.to_string(),
                };
                if known.contains(&text) {
                    let expr = take(expr);
                    *item = SelectItem::ExprWithAlias { expr, alias: column(number) };
                } else {
                    known.push(text);
                }
            }
        }
        SetExpr::Query(query) => name_again(&mut query.body),
        SetExpr::SetOperation { left, right, .. } => {
            name_again(left);
            name_again(right);
        }
        _ => {}
    }
}

fn expression(text: &str) -> Result<Expr> {
    let parsed = Parser::new(&RingDialect).try_with_sql(text).and_then(|mut parser| parser.parse_expr());
    parsed.map_err(|error| DataFusionError::SQL(Box::new(error), None))
}

fn malformed<T>() -> Result<T> {
    plan_err!("cannot rewrite the comparison of rows; compare the values by themselves")
}
