//! Checks of subqueries: correlated ones get the form that the engine joins rightly, others are refused.

use super::hoist::{Keys, Unhoisted, Use, is_correlated};
use super::is_one_row;
use datafusion::common::{DFSchema, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, Join, LogicalPlan, Subquery, SubqueryAlias};
use std::sync::Arc;

impl Keys {
    /// A subquery of a query with the columns of `schema`, in a form that the engine joins rightly.
    pub(super) fn checked(&self, subquery: Subquery, of: Use, schema: &DFSchema) -> Result<Subquery> {
        if !is_correlated(&subquery.subquery) {
            return Ok(subquery);
        }
        let subquery = self.checked_shape(subquery, of)?;
        check_names(&subquery, schema)?;
        Ok(subquery)
    }

    /// The same without a look at its outer columns.
    pub(super) fn checked_shape(&self, subquery: Subquery, of: Use) -> Result<Subquery> {
        match self.hoisted(&subquery.subquery, of) {
            Ok(plan) => {
                let outer_ref_columns = plan.all_out_ref_exprs();
                Ok(Subquery { subquery: Arc::new(plan), outer_ref_columns, ..subquery })
            }
            Err(Unhoisted::Failed(error)) => Err(error),
            Err(Unhoisted::Part(part)) => plan_err!(
                "cannot answer a subquery that names columns of the query around it below {part}: compute it in a \
                 `with` for all rows at once, grouped by those columns, and join it"
            ),
        }
    }

    /// A join whose `lateral` side the engine joins rightly.
    pub(super) fn checked_join(&self, join: Join) -> Result<Join> {
        let (subquery, alias) = match join.right.as_ref() {
            LogicalPlan::Subquery(subquery) => (subquery, None),
            LogicalPlan::SubqueryAlias(alias) => match alias.input.as_ref() {
                LogicalPlan::Subquery(subquery) => (subquery, Some(alias.alias.clone())),
                _ => return Ok(join),
            },
            _ => return Ok(join),
        };
        let of = if is_one_row(&subquery.subquery) { Use::Scalar } else { Use::Rows };
        let right = LogicalPlan::Subquery(self.checked(subquery.clone(), of, join.left.schema())?);
        let right = match alias {
            Some(alias) => LogicalPlan::SubqueryAlias(SubqueryAlias::try_new(Arc::new(right), alias)?),
            None => right,
        };
        Ok(Join { right: Arc::new(right), ..join })
    }
}

/// Refuses names from farther out than the query directly around a subquery.
fn check_names(subquery: &Subquery, schema: &DFSchema) -> Result<()> {
    let is_far =
        |expr: &&Expr| matches!(expr, Expr::OuterReferenceColumn(_, column) if !schema.has_column(column));
    match subquery.outer_ref_columns.iter().find(is_far) {
        Some(Expr::OuterReferenceColumn(_, column)) => plan_err!(
            "cannot answer a subquery that names `{column}`, a column of a query that is not directly around it: \
             compute it in a `with` for all rows at once, grouped by that column, and join it"
        ),
        _ => Ok(()),
    }
}
