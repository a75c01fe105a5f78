//! Subqueries in expressions and `lateral` joins: rewriting of the forms that the engine plans wrongly, and refusal
//! of those without a simple right plan. The engine ignores nulls of `NOT IN` except in the plainest form, joins a
//! correlated aggregate, of which an empty group has no row, and takes equal names of the query and of its subquery
//! for one column.

mod hoist;
mod membership;
mod select_list;
mod set;
mod shapes;

use crate::input_schema::input_schema;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, ExprSchema, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::expr::{Exists, InSubquery, SetComparison, SetQuantifier};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{
    Distinct, Expr, FetchType, Filter, Join, JoinType, Limit, LogicalPlan, LogicalPlanBuilder, Operator,
    SkipType, Subquery, Union, lit,
};
use hoist::{Keys, Use};
use std::cell::Cell;
use std::sync::Arc;

/// Returns true if an expression has a subquery in it.
pub(crate) fn has_subquery(expr: &Expr) -> bool {
    let is_subquery = |expr: &Expr| Ok(is_membership(expr) || matches!(expr, Expr::ScalarSubquery(_)));
    expr.exists(is_subquery).unwrap_or(true)
}

/// Returns true for a subquery of which the engine makes a join.
fn is_membership(expr: &Expr) -> bool {
    matches!(expr, Expr::InSubquery(_) | Expr::Exists(_) | Expr::SetComparison(_))
}

/// Returns true if an expression has a subquery in it of which the engine makes a join.
fn has_membership(expr: &Expr) -> bool {
    expr.exists(|expr| Ok(is_membership(expr))).unwrap_or(true)
}

/// Replaces subqueries that the engine answers wrongly by others of the same meaning, or refuses them.
pub(crate) fn exact_subqueries(plan: LogicalPlan) -> Result<LogicalPlan> {
    let (keys, recompute) = (Keys::default(), Cell::new(false));
    plan.transform_up_with_subqueries(|node| {
        // A column that is computed from counts may be null where the one before was not.
        let node = match node {
            LogicalPlan::Union(union) if recompute.get() => {
                LogicalPlan::Union(Union::try_new_with_loose_types(union.inputs)?)
            }
            other if recompute.get() => other.recompute_schema()?,
            other => other,
        };
        let node = match node {
            LogicalPlan::Join(join) => LogicalPlan::Join(keys.checked_join(join)?),
            other => other,
        };
        if !node.expressions().iter().any(has_subquery) {
            return Ok(Transformed::yes(node));
        }
        let schema = input_schema(&node);
        // Plans above refer to an expression by its name, which tells of the subquery's form.
        let names = NamePreserver::new(&node);
        let node = node.map_expressions(|expr| {
            let name = names.save(&expr);
            let rewritten = expr.transform(|expr| simplified(expr, &keys, &schema))?;
            Ok(rewritten.update_data(|expr| name.restore(expr)))
        })?;
        let node = node.data;
        if !node.expressions().iter().any(has_membership) {
            return Ok(Transformed::yes(node));
        }
        match node {
            LogicalPlan::Filter(filter) => Ok(Transformed::yes(membership::exact_filter(filter)?)),
            LogicalPlan::Join(join) if join.join_type == JoinType::Inner => {
                Ok(Transformed::yes(joined_before(join)?))
            }
            other => {
                recompute.set(true);
                select_list::with_counts(other, &keys).map(Transformed::yes)
            }
        }
    })
    .map(|rewritten| rewritten.data)
}

/// Moves conditions with subqueries from an inner join into a filter over it.
fn joined_before(join: Join) -> Result<LogicalPlan> {
    let on = join.on.iter().any(|(left, right)| has_membership(left) || has_membership(right));
    let Some(condition) = join.filter.clone().filter(|_| !on) else { return refused_place() };
    let join = LogicalPlan::Join(Join { filter: None, ..join });
    membership::exact_filter(Filter::try_new(condition, Arc::new(join))?)
}

/// Refuses a subquery where the engine plans none.
fn refused_place<T>() -> Result<T> {
    plan_err!(
        "cannot use `in (select …)`, `exists`, `any` or `all` in this place: use it in a condition of `where` or \
         `having`, or in the list of columns, or use a join"
    )
}

/// A subquery in the form that the engine joins rightly; equality with `any` value as IN.
fn simplified(expr: Expr, keys: &Keys, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let of_values = |plan: &LogicalPlan| if is_one_row(plan) { Use::Scalar } else { Use::Set };
    let values = |subquery: Subquery| {
        let subquery = Subquery { subquery: as_set(subquery.subquery), ..subquery };
        let of = of_values(&subquery.subquery);
        keys.checked(subquery, of, schema)
    };
    let is_correlated = |subquery: &Subquery| !subquery.outer_ref_columns.is_empty();
    Ok(match expr {
        Expr::Exists(Exists { subquery, negated })
            if is_correlated(&subquery) && !is_one_row(&subquery.subquery) =>
        {
            let rows = LogicalPlanBuilder::from(as_rows(subquery.subquery)).project([lit(1_i64)])?.build()?;
            let subquery = Subquery { subquery: Arc::new(rows), ..subquery };
            let subquery = keys.checked(subquery, Use::Set, schema)?;
            Transformed::yes(Expr::Exists(Exists { subquery, negated }))
        }
        Expr::InSubquery(InSubquery { expr, subquery, negated }) if is_correlated(&subquery) => {
            Transformed::yes(Expr::InSubquery(InSubquery { expr, subquery: values(subquery)?, negated }))
        }
        Expr::ScalarSubquery(subquery) if is_correlated(&subquery) => {
            Transformed::yes(Expr::ScalarSubquery(keys.checked(subquery, Use::Scalar, schema)?))
        }
        Expr::SetComparison(SetComparison { expr, subquery, op, quantifier }) => {
            let subquery = if is_correlated(&subquery) { values(subquery)? } else { subquery };
            Transformed::yes(match (op, quantifier) {
                (Operator::Eq, SetQuantifier::Any) => {
                    Expr::InSubquery(InSubquery { expr, subquery, negated: false })
                }
                (Operator::NotEq, SetQuantifier::All) => {
                    Expr::InSubquery(InSubquery { expr, subquery, negated: true })
                }
                _ => Expr::SetComparison(SetComparison { expr, subquery, op, quantifier }),
            })
        }
        other => Transformed::no(other),
    })
}

/// Returns true for a limit that leaves at least one row, if there is one.
fn leaves_one(limit: &Limit) -> bool {
    matches!(limit.get_skip_type(), Ok(SkipType::Literal(0)))
        && matches!(limit.get_fetch_type(), Ok(FetchType::Literal(fetch)) if fetch != Some(0))
}

/// A plan with rows if a subquery has some: without its limit, its order and its list of columns.
fn as_rows(plan: Arc<LogicalPlan>) -> Arc<LogicalPlan> {
    match plan.as_ref() {
        LogicalPlan::Limit(limit) if leaves_one(limit) => as_rows(Arc::clone(&limit.input)),
        LogicalPlan::Sort(sort) if sort.fetch != Some(0) => as_rows(Arc::clone(&sort.input)),
        LogicalPlan::Projection(projection) => as_rows(Arc::clone(&projection.input)),
        LogicalPlan::Distinct(Distinct::All(input)) => as_rows(Arc::clone(input)),
        _ => plan,
    }
}

/// A plan with the set of a subquery's values: without `distinct`, which leaves it as it is.
fn as_set(plan: Arc<LogicalPlan>) -> Arc<LogicalPlan> {
    match plan.as_ref() {
        LogicalPlan::Sort(sort) if sort.fetch.is_none() => as_set(Arc::clone(&sort.input)),
        LogicalPlan::Distinct(Distinct::All(input)) => as_set(Arc::clone(input)),
        _ => plan,
    }
}

/// Returns true for an aggregate without groups, which has one row whatever it is over.
fn is_one_row(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Projection(projection) => is_one_row(&projection.input),
        LogicalPlan::SubqueryAlias(alias) => is_one_row(&alias.input),
        LogicalPlan::Aggregate(aggregate) => aggregate.group_expr.is_empty(),
        _ => false,
    }
}

/// An expression of a query as a subquery of it sees it.
fn seen_from_within(expr: Expr, schema: &DFSchema) -> Result<Expr> {
    expr.transform_up(|expr| match expr {
        Expr::Column(column) => {
            let field = Arc::clone(schema.field_from_column(&column)?);
            Ok(Transformed::yes(Expr::OuterReferenceColumn(field, column)))
        }
        other => Ok(Transformed::no(other)),
    })
    .map(|rewritten| rewritten.data)
}
