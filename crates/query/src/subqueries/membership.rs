//! `IN`, `EXISTS`, `ANY` and `ALL` in conditions.

use super::set::{Form, Set};
use super::{has_membership, is_one_row};
use datafusion::common::DFSchema;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result;
use datafusion::logical_expr::expr::{Exists, InSubquery, SetComparison, SetQuantifier};
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{BinaryExpr, Expr, Filter, LogicalPlan, Operator, lit, not};
use std::sync::Arc;

/// A filter with subqueries that the engine answers rightly.
pub(super) fn exact_filter(filter: Filter) -> Result<LogicalPlan> {
    let schema = Arc::clone(filter.input.schema());
    let exact = |one| if has_membership(&one) { top(one, &schema) } else { Ok(one) };
    let all = split_conjunction_owned(filter.predicate).into_iter().map(exact).collect::<Result<Vec<_>>>()?;
    let predicate = conjunction(all).unwrap_or_else(|| lit(true));
    Ok(LogicalPlan::Filter(Filter::try_new(predicate, filter.input)?))
}

/// A condition that drops rows for which it is null, as it does those for which it is false.
fn top(condition: Expr, schema: &DFSchema) -> Result<Expr> {
    match condition {
        Expr::Not(inner) => match *inner {
            Expr::InSubquery(one) => top_in(InSubquery { negated: !one.negated, ..one }, schema),
            Expr::Exists(one) => Ok(exists_of(Exists { negated: !one.negated, ..one })),
            Expr::SetComparison(one) => top_compared(one, true, schema),
            Expr::Not(inner) => top(*inner, schema),
            inner => embedded(not(inner), schema, Form::Exists),
        },
        Expr::InSubquery(one) => top_in(one, schema),
        Expr::Exists(one) => Ok(exists_of(one)),
        Expr::SetComparison(one) => top_compared(one, false, schema),
        other => branch(other, schema),
    }
}

/// The same of a part that the engine answers with a mark for each row, which is false where it should be null.
fn branch(condition: Expr, schema: &DFSchema) -> Result<Expr> {
    match condition {
        Expr::InSubquery(one) if !one.negated && !is_one_row(&one.subquery.subquery) => {
            let set = Set::of(&one.expr, Operator::Eq, &one.subquery, schema, Form::Exists)?;
            Ok(set.membership(false))
        }
        Expr::SetComparison(one) => top_compared(one, false, schema),
        Expr::BinaryExpr(BinaryExpr { left, op: op @ (Operator::And | Operator::Or), right }) => {
            let (left, right) = (branch(*left, schema)?, branch(*right, schema)?);
            Ok(Expr::BinaryExpr(BinaryExpr { left: Box::new(left), op, right: Box::new(right) }))
        }
        other => embedded(other, schema, Form::Exists),
    }
}

fn exists_of(one: Exists) -> Expr {
    if is_one_row(&one.subquery.subquery) { lit(!one.negated) } else { Expr::Exists(one) }
}

fn top_in(one: InSubquery, schema: &DFSchema) -> Result<Expr> {
    if is_one_row(&one.subquery.subquery) {
        return Ok(compared_with_one_row(one));
    }
    let set = Set::of(&one.expr, Operator::Eq, &one.subquery, schema, Form::Exists)?;
    let is_correlated = !one.subquery.outer_ref_columns.is_empty();
    // The engine's own join counts nulls where it has one pair of keys, and looks for nulls in columns alone.
    let is_plain = !is_correlated && matches!(*one.expr, Expr::Column(_));
    if !one.negated || is_plain || (set.never_null() && !is_correlated) {
        return Ok(set.membership(one.negated));
    }
    let mut all = vec![not(set.exists_compared(true)?)];
    all.extend(set.no_nulls()?);
    Ok(conjunction(all).unwrap_or_else(|| lit(true)))
}

/// `ANY` or `ALL` where null is as good as false.
fn top_compared(one: SetComparison, is_negated: bool, schema: &DFSchema) -> Result<Expr> {
    if is_one_row(&one.subquery.subquery) {
        let compared = compared(one.expr, one.op, one.subquery);
        return Ok(if is_negated { not(compared) } else { compared });
    }
    let set = Set::of(&one.expr, one.op, &one.subquery, schema, Form::Exists)?;
    let holds = set.holds()?;
    match (one.quantifier, is_negated) {
        (SetQuantifier::Any, false) => set.exists(holds),
        (SetQuantifier::Any, true) if set.never_null() => Ok(not(set.exists(holds)?)),
        (SetQuantifier::Any, true) => Ok(not(set.exists(holds.is_not_false())?)),
        (SetQuantifier::All, false) if set.never_null() => Ok(not(set.exists(not(holds))?)),
        (SetQuantifier::All, false) => Ok(not(set.exists(holds.is_not_true())?)),
        (SetQuantifier::All, true) => set.exists(not(holds)),
    }
}

/// A condition whose value counts where it is null: of each part that may be null, all three values are told apart.
pub(super) fn embedded(condition: Expr, schema: &DFSchema, form: Form<'_>) -> Result<Expr> {
    let rewritten = condition.transform_up(|expr| match expr {
        Expr::Exists(one) if matches!(form, Form::Exists) || is_one_row(&one.subquery.subquery) => {
            Ok(Transformed::yes(exists_of(one)))
        }
        Expr::Exists(one) => {
            let exists = form.exists(Arc::unwrap_or_clone(one.subquery.subquery))?;
            Ok(Transformed::yes(if one.negated { not(exists) } else { exists }))
        }
        Expr::InSubquery(one) if is_one_row(&one.subquery.subquery) => {
            Ok(Transformed::yes(compared_with_one_row(one)))
        }
        Expr::InSubquery(one) => {
            let set = Set::of(&one.expr, Operator::Eq, &one.subquery, schema, form)?;
            let is_correlated = !one.subquery.outer_ref_columns.is_empty();
            // The engine has no `NOT IN` of several keys.
            if set.never_null() && !is_correlated && matches!(form, Form::Exists) {
                return Ok(Transformed::yes(set.membership(one.negated)));
            }
            let is_found = set.exists_compared(true)?;
            Ok(Transformed::yes(set.told_apart(is_found, !one.negated)?))
        }
        Expr::SetComparison(one) if is_one_row(&one.subquery.subquery) => {
            Ok(Transformed::yes(compared(one.expr, one.op, one.subquery)))
        }
        Expr::SetComparison(one) => {
            let set = Set::of(&one.expr, one.op, &one.subquery, schema, form)?;
            let is_any = matches!(one.quantifier, SetQuantifier::Any);
            let is_found = set.exists_compared(is_any)?;
            Ok(Transformed::yes(set.told_apart(is_found, is_any)?))
        }
        other => Ok(Transformed::no(other)),
    });
    rewritten.map(|rewritten| rewritten.data)
}

/// IN over a subquery of one row is a comparison with its value.
fn compared_with_one_row(one: InSubquery) -> Expr {
    compared(one.expr, if one.negated { Operator::NotEq } else { Operator::Eq }, one.subquery)
}

fn compared(left: Box<Expr>, op: Operator, subquery: datafusion::logical_expr::Subquery) -> Expr {
    Expr::BinaryExpr(BinaryExpr { left, op, right: Box::new(Expr::ScalarSubquery(subquery)) })
}
