//! The rows of a subquery as a set of values with which an expression is compared.

use super::hoist::{Keys, Use, is_correlated};
use super::{has_membership, seen_from_within};
use crate::functions;
use datafusion::common::tree_node::TreeNode;
use datafusion::common::{Column, DFSchema, Spans, plan_err};
use datafusion::error::{DataFusionError, Result};
use datafusion::functions_aggregate::expr_fn::count;
use datafusion::functions_aggregate::min_max::{max_udaf, min_udaf};
use datafusion::logical_expr::expr::{Exists, InSubquery};
use datafusion::logical_expr::{
    AggregateUDF, BinaryExpr, Expr, ExprSchemable, Filter, LogicalPlan, LogicalPlanBuilder, Operator,
    Subquery, binary_expr, lit, not, when,
};
use datafusion::scalar::ScalarValue;
use std::sync::Arc;

/// Name of the column of values. The engine takes a column of the query and one of the subquery for the same if they
/// have one name, and no query has a column of this name.
const VALUE: &str = "value of a subquery";

/// The question whether a subquery has rows, in the form that the engine plans.
#[derive(Debug, Clone, Copy)]
pub(super) enum Form<'a> {
    /// A condition, in a filter: the engine makes a join of it.
    Exists,
    /// A comparison with the number of rows, in any other place.
    Count(&'a Keys),
}

impl Form<'_> {
    /// Existence of a row of a plan.
    pub(super) fn exists(self, plan: LogicalPlan) -> Result<Expr> {
        let is_correlated = is_correlated(&plan);
        // One row tells it, where it is the same for all rows.
        let plan =
            if is_correlated { plan } else { LogicalPlanBuilder::from(plan).limit(0, Some(1))?.build()? };
        let plan = match self {
            Self::Exists => plan,
            Self::Count(_) => {
                LogicalPlanBuilder::from(plan).aggregate(Vec::<Expr>::new(), [count(lit(1_i64))])?.build()?
            }
        };
        let outer_ref_columns = plan.all_out_ref_exprs();
        let subquery = Subquery { subquery: Arc::new(plan), outer_ref_columns, spans: Spans::new() };
        match self {
            Self::Exists => Ok(Expr::Exists(Exists { subquery, negated: false })),
            Self::Count(keys) => {
                let count = Expr::ScalarSubquery(keys.checked_shape(subquery, Use::Scalar)?);
                Ok(count.gt(lit(0_i64)).is_true())
            }
        }
    }
}

/// The values of a subquery, and the expression that is compared with them.
pub(super) struct Set<'a> {
    expr: &'a Expr,
    schema: &'a DFSchema,
    op: Operator,
    expr_nullable: bool,
    /// The subquery with its column under the fixed name.
    values: LogicalPlan,
    values_nullable: bool,
    form: Form<'a>,
}

impl<'a> Set<'a> {
    pub(super) fn of(
        expr: &'a Expr,
        op: Operator,
        subquery: &Subquery,
        schema: &'a DFSchema,
        form: Form<'a>,
    ) -> Result<Self> {
        let plan = &subquery.subquery;
        let (relation, field) = plan.schema().qualified_field(0);
        let values_nullable = field.is_nullable();
        let value = Expr::Column(Column::from((relation, field))).alias(VALUE);
        let values = LogicalPlanBuilder::from(Arc::clone(plan)).project([value])?.build()?;
        Ok(Self { expr, schema, op, expr_nullable: expr.nullable(schema)?, values, values_nullable, form })
    }

    /// Returns true if neither the expression nor a value is ever null.
    pub(super) fn never_null(&self) -> bool {
        !self.expr_nullable && !self.values_nullable
    }

    /// The comparison of the expression with a value.
    pub(super) fn holds(&self) -> Result<Expr> {
        let has_outer = |expr: &Expr| {
            Ok(matches!(expr, Expr::ScalarSubquery(subquery) if !subquery.outer_ref_columns.is_empty()))
        };
        if has_membership(self.expr) || self.expr.exists(has_outer)? {
            return plan_err!(
                "cannot compare a subquery with the values of another one in this place: compute one of them in a \
                 `with`, and join it"
            );
        }
        if self.expr.is_volatile() {
            return plan_err!(
                "cannot compare a random value with the values of a subquery: each comparison has a value of its \
                 own; compare a column"
            );
        }
        let left = Box::new(seen_from_within(self.expr.clone(), self.schema)?);
        let right = Box::new(Expr::Column(Column::from_name(VALUE)));
        Ok(Expr::BinaryExpr(BinaryExpr { left, op: self.op, right }))
    }

    /// IN over the values, as the engine joins it.
    pub(super) fn membership(&self, negated: bool) -> Expr {
        let outer_ref_columns = self.values.all_out_ref_exprs();
        let subquery =
            Subquery { subquery: Arc::new(self.values.clone()), outer_ref_columns, spans: Spans::new() };
        Expr::InSubquery(InSubquery::new(Box::new(self.expr.clone()), subquery, negated))
    }

    /// Existence of a value for which a condition holds.
    pub(super) fn exists(&self, condition: Expr) -> Result<Expr> {
        let filter = Filter::try_new(condition, Arc::new(self.values.clone()))?;
        self.form.exists(LogicalPlan::Filter(filter))
    }

    /// Existence of a value for which the comparison is true, or false.
    pub(super) fn exists_compared(&self, is_true: bool) -> Result<Expr> {
        let op = if is_true { Some(self.op) } else { self.op.negate() };
        let (Form::Count(keys), Some(op)) = (self.form, op.filter(|op| *op != Operator::Eq)) else {
            let holds = self.holds()?;
            return self.exists(if is_true { holds } else { not(holds) });
        };
        // Numbers of rows are grouped by equality alone; an extreme value is the same for all rows.
        self.holds()?;
        let [min, max] = [min_udaf(), max_udaf()];
        let compared = |extreme| {
            Ok::<_, DataFusionError>(binary_expr(self.expr.clone(), op, self.extreme(extreme, keys)?))
        };
        let any = match op {
            Operator::Lt | Operator::LtEq => compared(max)?,
            Operator::Gt | Operator::GtEq => compared(min)?,
            Operator::NotEq => compared(min)?.or(compared(max)?),
            _ => return super::refused_place(),
        };
        Ok(any.is_true())
    }

    /// The least or the greatest of the values.
    fn extreme(&self, function: Arc<AggregateUDF>, keys: &Keys) -> Result<Expr> {
        let exact = functions::aggregates(&[function])
            .into_iter()
            .map(|function| function.call(vec![Expr::Column(Column::from_name(VALUE))]));
        let plan =
            LogicalPlanBuilder::from(self.values.clone()).aggregate(Vec::<Expr>::new(), exact)?.build()?;
        let outer_ref_columns = plan.all_out_ref_exprs();
        let subquery = Subquery { subquery: Arc::new(plan), outer_ref_columns, spans: Spans::new() };
        Ok(Expr::ScalarSubquery(keys.checked_shape(subquery, Use::Scalar)?))
    }

    /// The conditions under which no value is null, and the expression is not, unless there is no value.
    pub(super) fn no_nulls(&self) -> Result<Vec<Expr>> {
        let mut all = Vec::new();
        if self.values_nullable {
            all.push(not(self.nulls()?));
        }
        if self.expr_nullable {
            all.push(self.expr.clone().is_not_null().or(not(self.any()?)));
        }
        Ok(all)
    }

    /// The value of a condition which is `found` if one row is found, null if some comparison is, and else `otherwise`.
    pub(super) fn told_apart(&self, is_found: Expr, found: bool) -> Result<Expr> {
        let mut unknown = Vec::new();
        if self.values_nullable {
            unknown.push(self.nulls()?);
        }
        if self.expr_nullable {
            unknown.push(self.expr.clone().is_null().and(self.any()?));
        }
        let Some(unknown) = unknown.into_iter().reduce(Expr::or) else {
            return Ok(if found { is_found } else { not(is_found) });
        };
        when(is_found, lit(found)).when(unknown, lit(ScalarValue::Boolean(None))).otherwise(lit(!found))
    }

    /// Existence of a null among the values.
    fn nulls(&self) -> Result<Expr> {
        self.exists(Expr::Column(Column::from_name(VALUE)).is_null())
    }

    /// Existence of any row.
    fn any(&self) -> Result<Expr> {
        self.form.exists(self.values.clone())
    }
}
