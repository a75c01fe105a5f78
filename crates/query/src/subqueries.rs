//! Subqueries in conditions: rewriting of the forms that the engine plans wrongly, and refusal of those
//! without a simple right plan. The engine ignores nulls of `NOT IN` except in the plainest form, and joins a
//! correlated aggregate, of which an empty group has no row.

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, ExprSchema, Spans, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::expr::{Exists, InSubquery};
use datafusion::logical_expr::utils::{conjunction, split_conjunction, split_conjunction_owned};
use datafusion::logical_expr::{
    BinaryExpr, Distinct, Expr, ExprSchemable, Filter, JoinType, LogicalPlan, LogicalPlanBuilder, Operator,
    Subquery, lit, not, when,
};
use datafusion::scalar::ScalarValue;
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

/// Replaces subqueries that the engine answers wrongly by others of the same meaning, or refuses them.
pub(crate) fn exact_subqueries(plan: LogicalPlan) -> Result<LogicalPlan> {
    plan.transform_up_with_subqueries(|node| {
        for expr in node.expressions() {
            expr.apply(|expr| check_shape(expr).map(|()| TreeNodeRecursion::Continue))?;
        }
        let LogicalPlan::Filter(filter) = node else {
            let is_other = |expr: &Expr| expr.exists(|expr| Ok(is_membership(expr)));
            for expr in node.expressions() {
                if is_other(&expr)? {
                    return plan_err!(
                        "cannot use `in (select …)`, `exists`, `any` or `all` in this place: use it in a condition \
                         of `where` or `having`, or use a join"
                    );
                }
            }
            return Ok(Transformed::no(node));
        };
        if !filter.predicate.exists(|expr| Ok(is_membership(expr)))? {
            return Ok(Transformed::no(LogicalPlan::Filter(filter)));
        }
        let schema = Arc::clone(filter.input.schema());
        let exact = |one| top(one, &schema);
        let all = split_conjunction_owned(filter.predicate).into_iter().map(exact).collect::<Result<Vec<_>>>()?;
        let predicate = conjunction(all).unwrap_or_else(|| lit(true));
        Ok(Transformed::yes(LogicalPlan::Filter(Filter::try_new(predicate, filter.input)?)))
    })
    .map(|rewritten| rewritten.data)
}

/// A condition that drops rows for which it is null, as it does those for which it is false.
fn top(condition: Expr, schema: &DFSchema) -> Result<Expr> {
    match condition {
        Expr::Not(inner) => match *inner {
            Expr::InSubquery(one) => top_in(InSubquery { negated: !one.negated, ..one }, schema),
            Expr::Exists(one) => Ok(exists_of(Exists { negated: !one.negated, ..one })),
            Expr::Not(inner) => top(*inner, schema),
            inner => embedded(not(inner), schema),
        },
        Expr::InSubquery(one) => top_in(one, schema),
        Expr::Exists(one) => Ok(exists_of(one)),
        Expr::BinaryExpr(BinaryExpr { left, op: op @ (Operator::And | Operator::Or), right }) => {
            let (left, right) = (branch(*left, schema)?, branch(*right, schema)?);
            Ok(Expr::BinaryExpr(BinaryExpr { left: Box::new(left), op, right: Box::new(right) }))
        }
        other => embedded(other, schema),
    }
}

/// The same of a part that the engine answers with a mark for each row, which is false where it should be null.
fn branch(condition: Expr, schema: &DFSchema) -> Result<Expr> {
    match condition {
        Expr::InSubquery(one) if !one.negated && !is_one_row(&one.subquery.subquery) => {
            Ok(Expr::InSubquery(one))
        }
        Expr::BinaryExpr(BinaryExpr { left, op: op @ (Operator::And | Operator::Or), right }) => {
            let (left, right) = (branch(*left, schema)?, branch(*right, schema)?);
            Ok(Expr::BinaryExpr(BinaryExpr { left: Box::new(left), op, right: Box::new(right) }))
        }
        other => embedded(other, schema),
    }
}

fn exists_of(one: Exists) -> Expr {
    if is_one_row(&one.subquery.subquery) { lit(!one.negated) } else { Expr::Exists(one) }
}

fn top_in(one: InSubquery, schema: &DFSchema) -> Result<Expr> {
    if is_one_row(&one.subquery.subquery) {
        return Ok(compared_with_one_row(one));
    }
    let set = Set::of(&one, schema)?;
    let is_correlated = !one.subquery.outer_ref_columns.is_empty();
    // The engine's own join counts nulls where it has one pair of keys.
    let is_plain = !is_correlated && !one.expr.column_refs().is_empty();
    if !one.negated || is_plain || (set.never_null() && !is_correlated) {
        return Ok(Expr::InSubquery(one));
    }
    let mut all = vec![not(set.matches()?)];
    if set.values_nullable {
        all.push(not(set.nulls()?));
    }
    if set.expr_nullable {
        all.push(set.expr.clone().is_not_null().or(not(set.any()?)));
    }
    Ok(conjunction(all).unwrap_or_else(|| lit(true)))
}

/// A condition whose value counts where it is null: of each IN that may be null, all three values are told apart.
fn embedded(condition: Expr, schema: &DFSchema) -> Result<Expr> {
    let rewritten = condition.transform_up(|expr| match expr {
        Expr::Exists(one) => Ok(Transformed::yes(exists_of(one))),
        Expr::InSubquery(one) if is_one_row(&one.subquery.subquery) => {
            Ok(Transformed::yes(compared_with_one_row(one)))
        }
        Expr::InSubquery(one) => {
            let set = Set::of(&one, schema)?;
            if set.never_null() {
                let is_correlated = !one.subquery.outer_ref_columns.is_empty();
                // The engine has no `NOT IN` of several keys.
                if is_correlated {
                    let matches = set.matches()?;
                    return Ok(Transformed::yes(if one.negated { not(matches) } else { matches }));
                }
                return Ok(Transformed::no(Expr::InSubquery(one)));
            }
            let mut unknown = Vec::new();
            if set.values_nullable {
                unknown.push(set.nulls()?);
            }
            if set.expr_nullable {
                unknown.push(set.expr.clone().is_null().and(set.any()?));
            }
            let unknown = unknown.into_iter().reduce(Expr::or).unwrap_or_else(|| lit(false));
            let value = when(set.matches()?, lit(!one.negated))
                .when(unknown, lit(ScalarValue::Boolean(None)))
                .otherwise(lit(one.negated))?;
            Ok(Transformed::yes(value))
        }
        other => Ok(Transformed::no(other)),
    });
    rewritten.map(|rewritten| rewritten.data)
}

/// IN over a subquery of one row is a comparison with its value.
fn compared_with_one_row(one: InSubquery) -> Expr {
    let value = Expr::ScalarSubquery(one.subquery);
    let op = if one.negated { Operator::NotEq } else { Operator::Eq };
    Expr::BinaryExpr(BinaryExpr { left: one.expr, op, right: Box::new(value) })
}

/// The subquery of an IN, and the expression that is looked for in it.
struct Set<'a> {
    expr: &'a Expr,
    /// The expression as the subquery sees it.
    outer_expr: Expr,
    expr_nullable: bool,
    plan: &'a Arc<LogicalPlan>,
    value: Expr,
    values_nullable: bool,
}

impl<'a> Set<'a> {
    fn of(one: &'a InSubquery, schema: &DFSchema) -> Result<Self> {
        let plan = &one.subquery.subquery;
        let (relation, field) = plan.schema().qualified_field(0);
        let outer = one.expr.as_ref().clone().transform_up(|expr| match expr {
            Expr::Column(column) => {
                let field = Arc::clone(schema.field_from_column(&column)?);
                Ok(Transformed::yes(Expr::OuterReferenceColumn(field, column)))
            }
            other => Ok(Transformed::no(other)),
        })?;
        Ok(Self {
            expr: &one.expr,
            outer_expr: outer.data,
            expr_nullable: one.expr.nullable(schema)?,
            plan,
            value: Expr::Column(Column::from((relation, field))),
            values_nullable: field.is_nullable(),
        })
    }

    fn never_null(&self) -> bool {
        !self.expr_nullable && !self.values_nullable
    }

    /// Existence of a value that equals the expression.
    fn matches(&self) -> Result<Expr> {
        self.exists(Some(self.value.clone().eq(self.outer_expr.clone())))
    }

    /// Existence of a null among the values.
    fn nulls(&self) -> Result<Expr> {
        self.exists(Some(self.value.clone().is_null()))
    }

    /// Existence of any row.
    fn any(&self) -> Result<Expr> {
        self.exists(None)
    }

    fn exists(&self, condition: Option<Expr>) -> Result<Expr> {
        let mut builder = LogicalPlanBuilder::from(Arc::clone(self.plan));
        if let Some(condition) = condition {
            builder = LogicalPlanBuilder::from(LogicalPlan::Filter(Filter::try_new(
                condition,
                Arc::new(builder.build()?),
            )?));
        }
        let plan = builder.build()?;
        let outer_ref_columns = plan.all_out_ref_exprs();
        // One row tells it, where it is the same for all rows.
        let plan = if outer_ref_columns.is_empty() {
            LogicalPlanBuilder::from(plan).limit(0, Some(1))?.build()?
        } else {
            plan
        };
        let subquery = Subquery { subquery: Arc::new(plan), outer_ref_columns, spans: Spans::new() };
        Ok(Expr::Exists(Exists { subquery, negated: false }))
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

/// Refuses a correlated subquery of a form that the engine does not join rightly.
fn check_shape(expr: &Expr) -> Result<()> {
    let (subquery, is_scalar) = match expr {
        Expr::InSubquery(one) => (&one.subquery, is_one_row(&one.subquery.subquery)),
        Expr::Exists(one) if is_one_row(&one.subquery.subquery) => return Ok(()),
        Expr::Exists(one) => (&one.subquery, false),
        Expr::ScalarSubquery(subquery) => (subquery, true),
        Expr::SetComparison(one) => (&one.subquery, false),
        _ => return Ok(()),
    };
    let refused = match refused_part(&subquery.subquery, is_scalar) {
        Some(part) => part,
        None if matches!(expr, Expr::SetComparison(_)) && is_correlated(&subquery.subquery) => "any or all",
        None => return Ok(()),
    };
    plan_err!(
        "cannot answer a subquery that names columns of the query around it below {refused}: compute it in a \
         `with` for all rows at once, grouped by those columns, and join it"
    )
}

fn is_correlated(plan: &LogicalPlan) -> bool {
    !plan.all_out_ref_exprs().is_empty()
}

/// The part of a correlated subquery over which its outer columns cannot be taken out.
fn refused_part(plan: &LogicalPlan, is_scalar: bool) -> Option<&'static str> {
    if !is_correlated(plan) {
        return None;
    }
    match plan {
        LogicalPlan::Filter(filter) => match filter.input.as_ref() {
            LogicalPlan::Aggregate(aggregate)
                if aggregate.group_expr.is_empty() && is_correlated(&filter.input) =>
            {
                Some("`having`")
            }
            input => refused_part(input, is_scalar),
        },
        LogicalPlan::Projection(projection) if projection.expr.iter().any(Expr::contains_outer) => {
            Some("its own list of columns")
        }
        LogicalPlan::Projection(projection) => refused_part(&projection.input, is_scalar),
        LogicalPlan::SubqueryAlias(alias) => refused_part(&alias.input, is_scalar),
        LogicalPlan::Distinct(Distinct::All(input)) if !is_scalar => refused_part(input, is_scalar),
        LogicalPlan::Join(join) if join.join_type == JoinType::Inner => {
            if join.on.iter().any(|(left, right)| left.contains_outer() || right.contains_outer())
                || join.filter.as_ref().is_some_and(Expr::contains_outer)
            {
                return Some("the condition of a join");
            }
            refused_part(&join.left, is_scalar).or_else(|| refused_part(&join.right, is_scalar))
        }
        LogicalPlan::Aggregate(aggregate) => {
            let own = aggregate.group_expr.iter().chain(&aggregate.aggr_expr).any(Expr::contains_outer);
            // A second aggregate, or one without groups that is not the whole, has rows where the join has none.
            if own || aggregate.group_expr.is_empty() != is_scalar {
                return Some("an aggregate");
            }
            aggregate_part(&aggregate.input)
        }
        LogicalPlan::TableScan(_) => None,
        LogicalPlan::Limit(_) => Some("`limit` or `offset`"),
        LogicalPlan::Window(_) => Some("a window function"),
        LogicalPlan::Sort(_) => Some("`order by`"),
        LogicalPlan::Join(_) | LogicalPlan::Union(_) => Some("an outer join or a union"),
        _ => Some("this clause"),
    }
}

/// Returns true for a condition without outer columns, and for an equality of a column with some: the rows that
/// meet that for one outer row are a group.
fn has_a_group(condition: &Expr) -> bool {
    let Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) = condition else {
        return !condition.contains_outer();
    };
    let is_pair = |one: &Expr, other: &Expr| matches!(one, Expr::Column(_)) && !other.any_column_refs();
    !condition.contains_outer() || is_pair(left, right) || is_pair(right, left)
}

/// The same of what is below an aggregate: only conditions, and inner joins.
fn aggregate_part(plan: &LogicalPlan) -> Option<&'static str> {
    if !is_correlated(plan) {
        return None;
    }
    match plan {
        LogicalPlan::Aggregate(_) | LogicalPlan::Distinct(_) => Some("an aggregate"),
        LogicalPlan::Filter(filter) if !split_conjunction(&filter.predicate).into_iter().all(has_a_group) => {
            Some("an aggregate, unless it is equal to one of its columns")
        }
        LogicalPlan::Filter(filter) => aggregate_part(&filter.input),
        LogicalPlan::Projection(projection) if !projection.expr.iter().any(Expr::contains_outer) => {
            aggregate_part(&projection.input)
        }
        LogicalPlan::SubqueryAlias(alias) => aggregate_part(&alias.input),
        other => refused_part(other, false),
    }
}
