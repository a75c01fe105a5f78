//! Rewriting of row values: `(a, b) < (1, 2)` and `row(a, b) is null` become comparisons of their values, by the rules of
//! the standard. The engine would compare structs, for which null is a value.

use super::row_subqueries::{self, NullAs};
use super::{function_name, is_volatile, nested, step, take};
use datafusion::common::plan_err;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::SessionState;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList, FunctionArguments,
    GroupByExpr, JoinConstraint, JoinOperator, Select, TableFactor, TableWithJoins, UnaryOperator, Visitor,
    VisitorMut,
};
use std::ops::ControlFlow;

/// Comparisons that a list of rows may become: each level of an expression costs the engine some stack.
const MOST: usize = 1000;

/// Values of a row: of `(a, b)` or of `row(a, b)`.
pub(super) fn row(expr: &Expr) -> Option<Vec<Expr>> {
    match expr {
        Expr::Nested(expr) => row(expr),
        Expr::Tuple(values) => Some(values.clone()),
        Expr::Function(Function {
            name,
            uses_odbc_syntax: _,
            parameters: FunctionArguments::None,
            args: FunctionArguments::List(FunctionArgumentList { duplicate_treatment: None, args, clauses }),
            filter: None,
            null_treatment: None,
            over: None,
            within_group,
        }) if function_name(name) == "row" && clauses.is_empty() && within_group.is_empty() => {
            let values = args.iter().map(|argument| match argument {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => Some(value.clone()),
                _ => None,
            });
            values.collect()
        }
        _ => None,
    }
}

fn is_row(expr: &Expr) -> bool {
    row(expr).is_some()
}

/// Visitor that rewrites operations on rows.
pub(super) struct RowValues<'a> {
    pub(super) state: &'a SessionState,
}

impl RowValues<'_> {
    fn rewrite(&self, expr: &mut Expr) -> Result<()> {
        let has_row = match &*expr {
            Expr::BinaryOp { left, right, op } => {
                Comparison::of(op).is_some() && (is_row(left) || is_row(right))
            }
            Expr::IsDistinctFrom(left, right) | Expr::IsNotDistinctFrom(left, right) => {
                is_row(left) || is_row(right)
            }
            Expr::Between { expr, low, high, .. } => is_row(expr) || is_row(low) || is_row(high),
            Expr::InList { expr, list, .. } => is_row(expr) || list.iter().any(is_row),
            Expr::IsNull(expr) | Expr::IsNotNull(expr) | Expr::InSubquery { expr, .. } => is_row(expr),
            Expr::AnyOp { left, .. } | Expr::AllOp { left, .. } => is_row(left),
            _ => false,
        };
        if !has_row {
            return Ok(());
        }
        if is_volatile(self.state, expr) {
            return plan_err!(
                "cannot compare rows with a function with another value at each call: it would be called more than once; \
                 compute it in a subquery"
            );
        }
        *expr = match take(expr) {
            Expr::BinaryOp { left, op, right } => match Comparison::of(&op) {
                Some(comparison) => comparison.between(&left, &right)?,
                None => Expr::BinaryOp { left, op, right },
            },
            Expr::IsDistinctFrom(left, right) => Comparison::Distinct.between(&left, &right)?,
            Expr::IsNotDistinctFrom(left, right) => Comparison::Same.between(&left, &right)?,
            Expr::Between { expr, negated, low, high } => {
                let from = Comparison::GtEq.between(&expr, &low)?;
                let to = Comparison::LtEq.between(&expr, &high)?;
                unless(negated, all(vec![from, to]))
            }
            Expr::InList { expr, list, negated } => {
                let width = row(&expr).map_or(1, |values| values.len());
                if list.len().saturating_mul(width) > MOST {
                    return plan_err!(
                        "cannot compare with a list of {} rows: the limit is {MOST} values; write `in (values (…), (…))` \
                         without a list",
                        list.len()
                    );
                }
                let equal = list.iter().map(|one| Comparison::Eq.between(&expr, one));
                unless(negated, any(equal.collect::<Result<_>>()?))
            }
            Expr::IsNull(expr) => each(&expr, Expr::IsNull)?,
            Expr::IsNotNull(expr) => each(&expr, Expr::IsNotNull)?,
            mut other => {
                row_subqueries::value(&mut other)?;
                other
            }
        };
        Ok(())
    }
}

impl VisitorMut for RowValues<'_> {
    type Break = DataFusionError;

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<DataFusionError> {
        if let GroupByExpr::Expressions(keys, _) = &mut select.group_by {
            // A row of keys is its keys.
            *keys = std::mem::take(keys)
                .into_iter()
                .flat_map(|key| match row(&key) {
                    Some(values) if !values.is_empty() => values,
                    _ => vec![key],
                })
                .collect();
        }
        let conditions = [&mut select.selection, &mut select.having, &mut select.qualify];
        step(
            conditions
                .into_iter()
                .flatten()
                .try_for_each(|condition| row_subqueries::condition(condition, NullAs::False))
                .and_then(|()| select.from.iter_mut().try_for_each(join_conditions)),
        )
    }

    fn pre_visit_table_factor(&mut self, table: &mut TableFactor) -> ControlFlow<DataFusionError> {
        match table {
            TableFactor::NestedJoin { table_with_joins, .. } => step(join_conditions(table_with_joins)),
            _ => ControlFlow::Continue(()),
        }
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<DataFusionError> {
        match expr {
            Expr::Case { operand: None, conditions, .. } => step(
                conditions
                    .iter_mut()
                    .try_for_each(|when| row_subqueries::condition(&mut when.condition, NullAs::False)),
            ),
            Expr::Function(Function { filter: Some(filter), .. }) => {
                step(row_subqueries::condition(filter, NullAs::False))
            }
            _ => ControlFlow::Continue(()),
        }
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<DataFusionError> {
        step(self.rewrite(expr))
    }
}

fn join_conditions(table: &mut TableWithJoins) -> Result<()> {
    table.joins.iter_mut().try_for_each(|join| match &mut join.join_operator {
        JoinOperator::Join(JoinConstraint::On(on))
        | JoinOperator::Inner(JoinConstraint::On(on))
        | JoinOperator::Left(JoinConstraint::On(on))
        | JoinOperator::LeftOuter(JoinConstraint::On(on))
        | JoinOperator::Right(JoinConstraint::On(on))
        | JoinOperator::RightOuter(JoinConstraint::On(on))
        | JoinOperator::FullOuter(JoinConstraint::On(on)) => row_subqueries::condition(on, NullAs::False),
        _ => Ok(()),
    })
}

/// Visitor that refuses the rows that are left: the engine would make structs of them.
pub(super) struct NoRowValues;

impl Visitor for NoRowValues {
    type Break = DataFusionError;

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<DataFusionError> {
        let is_struct =
            |call: &Function| matches!(function_name(&call.name).as_str(), "row" | "struct" | "named_struct");
        match expr {
            Expr::Tuple(_) => step(left_over(expr)),
            Expr::Function(call) if is_struct(call) => step(left_over(expr)),
            _ => ControlFlow::Continue(()),
        }
    }
}

fn left_over(expr: &Expr) -> Result<()> {
    plan_err!(
        "cannot use the row `{expr}` in this place: rows can be compared, and be keys of `group by`; use its values by \
         themselves"
    )
}

/// A comparison of two values or rows.
#[derive(Clone, Copy)]
pub(super) enum Comparison {
    Eq,
    NotEq,
    Lt,
    LtEq,
    Gt,
    GtEq,
    /// The comparison `is distinct from`.
    Distinct,
    /// The comparison `is not distinct from`.
    Same,
}

impl Comparison {
    pub(super) fn of(operator: &BinaryOperator) -> Option<Self> {
        Some(match operator {
            BinaryOperator::Eq => Self::Eq,
            BinaryOperator::NotEq => Self::NotEq,
            BinaryOperator::Lt => Self::Lt,
            BinaryOperator::LtEq => Self::LtEq,
            BinaryOperator::Gt => Self::Gt,
            BinaryOperator::GtEq => Self::GtEq,
            BinaryOperator::Spaceship => Self::Same,
            _ => return None,
        })
    }

    /// The comparison of both, value by value if they are rows.
    pub(super) fn between(self, left: &Expr, right: &Expr) -> Result<Expr> {
        match (row(left), row(right)) {
            (None, None) => Ok(self.of_values(left.clone(), right.clone())),
            (Some(one), Some(other)) if one.len() == other.len() && !one.is_empty() => {
                self.of_rows(&one, &other)
            }
            (Some(_), Some(_)) => plan_err!(
                "cannot compare `{left}` with `{right}`: the rows have different numbers of values; give both the same"
            ),
            _ => plan_err!(
                "cannot compare `{left}` with `{right}`: only one of them is a row; compare its values by themselves"
            ),
        }
    }

    fn of_values(self, left: Expr, right: Expr) -> Expr {
        let (left, right) = (Box::new(nested(left)), Box::new(nested(right)));
        let op = match self {
            Self::Distinct => return nested(Expr::IsDistinctFrom(left, right)),
            Self::Same => return nested(Expr::IsNotDistinctFrom(left, right)),
            Self::Eq => BinaryOperator::Eq,
            Self::NotEq => BinaryOperator::NotEq,
            Self::Lt => BinaryOperator::Lt,
            Self::LtEq => BinaryOperator::LtEq,
            Self::Gt => BinaryOperator::Gt,
            Self::GtEq => BinaryOperator::GtEq,
        };
        nested(Expr::BinaryOp { left, op, right })
    }

    fn of_rows(self, left: &[Expr], right: &[Expr]) -> Result<Expr> {
        let pairs = || left.iter().zip(right);
        let each = |comparison: Self| {
            pairs().map(|(left, right)| comparison.between(left, right)).collect::<Result<Vec<_>>>()
        };
        match self {
            Self::Eq | Self::Same => Ok(all(each(self)?)),
            Self::NotEq | Self::Distinct => Ok(any(each(self)?)),
            Self::Lt | Self::LtEq | Self::Gt | Self::GtEq => {
                let strict = match self {
                    Self::Lt | Self::LtEq => Self::Lt,
                    _ => Self::Gt,
                };
                // The first pair that differs decides, and from behind: a < c or (a = c and rest).
                let mut rest = None;
                for (left, right) in pairs().rev() {
                    rest = Some(match rest {
                        None => self.between(left, right)?,
                        Some(rest) => {
                            let equal = Self::Eq.between(left, right)?;
                            any(vec![strict.between(left, right)?, all(vec![equal, rest])])
                        }
                    });
                }
                rest.map_or_else(|| plan_err!("cannot compare rows without values"), Ok)
            }
        }
    }
}

/// A test of each value of a row.
fn each(expr: &Expr, test: fn(Box<Expr>) -> Expr) -> Result<Expr> {
    let values = row(expr).unwrap_or_default();
    if values.is_empty() || values.iter().any(is_row) {
        return plan_err!(
            "cannot test the row `{expr}` for null: it has no values, or rows among them; test the values by themselves"
        );
    }
    Ok(all(values.into_iter().map(|value| nested(test(Box::new(nested(value))))).collect()))
}

fn unless(negated: bool, expr: Expr) -> Expr {
    if negated { nested(Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(expr) }) } else { expr }
}

fn all(conditions: Vec<Expr>) -> Expr {
    joined(conditions, &BinaryOperator::And)
}

fn any(conditions: Vec<Expr>) -> Expr {
    joined(conditions, &BinaryOperator::Or)
}

/// All of one or more conditions, as a tree without deep branches.
fn joined(mut conditions: Vec<Expr>, op: &BinaryOperator) -> Expr {
    if conditions.len() < 2 {
        return conditions.pop().unwrap_or_else(super::null);
    }
    let right = conditions.split_off(conditions.len() / 2);
    let (left, right) = (Box::new(joined(conditions, op)), Box::new(joined(right, op)));
    nested(Expr::BinaryOp { left, op: op.clone(), right })
}
