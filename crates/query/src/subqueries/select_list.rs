//! `IN`, `EXISTS`, `ANY` and `ALL` outside conditions: in the list of columns, in functions and in orders. The engine
//! joins them in filters alone; here they are comparisons with a number of rows, which it computes anywhere below a
//! projection.

use super::hoist::Keys;
use super::set::Form;
use super::{has_membership, is_membership, membership, refused_place};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema};
use datafusion::error::Result;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Aggregate, Expr, LogicalPlan, LogicalPlanBuilder, Projection, Sort};
use std::sync::Arc;

/// Replaces the subqueries of a plan's expressions.
pub(super) fn with_counts(node: LogicalPlan, keys: &Keys) -> Result<LogicalPlan> {
    match node {
        LogicalPlan::Projection(projection) => {
            let schema = Arc::clone(projection.input.schema());
            let names = NamePreserver::new_for_projection();
            let exact = |expr: Expr| {
                let name = names.save(&expr);
                let rewritten = membership::embedded(expr, &schema, Form::Count(keys))?;
                Ok(name.restore(rewritten))
            };
            let exprs = projection.expr.into_iter().map(exact).collect::<Result<Vec<_>>>()?;
            Ok(LogicalPlan::Projection(Projection::try_new(exprs, projection.input)?))
        }
        LogicalPlan::Aggregate(aggregate) => below_aggregate(aggregate, keys),
        LogicalPlan::Sort(sort) => below_sort(sort, keys),
        _ => refused_place(),
    }
}

/// Columns that a projection below a plan computes for it.
struct Computed<'a> {
    schema: &'a DFSchema,
    keys: &'a Keys,
    columns: Vec<Expr>,
}

impl Computed<'_> {
    /// The column of an expression under a name.
    fn column(&mut self, expr: Expr, name: String) -> Result<Expr> {
        let exact = membership::embedded(expr, self.schema, Form::Count(self.keys))?;
        self.columns.push(exact.alias(name.clone()));
        Ok(Expr::Column(Column::new_unqualified(name)))
    }

    /// An expression with columns in the place of its subqueries.
    fn replaced(&mut self, expr: Expr) -> Result<Expr> {
        expr.transform_down(|expr| {
            if !is_membership(&expr) {
                return Ok(Transformed::no(expr));
            }
            let name = format!("subquery {} of a row", self.columns.len());
            Ok(Transformed::new(self.column(expr, name)?, true, TreeNodeRecursion::Jump))
        })
        .map(|rewritten| rewritten.data)
    }

    /// The input of the plan with these columns.
    fn over(self, input: Arc<LogicalPlan>) -> Result<LogicalPlan> {
        let columns = input.schema().columns().into_iter().map(Expr::Column);
        Ok(LogicalPlan::Projection(Projection::try_new(columns.chain(self.columns).collect(), input)?))
    }
}

fn below_aggregate(aggregate: Aggregate, keys: &Keys) -> Result<LogicalPlan> {
    let schema = Arc::clone(aggregate.input.schema());
    let mut computed = Computed { schema: &schema, keys, columns: Vec::new() };
    if aggregate.group_expr.iter().any(|key| matches!(key, Expr::GroupingSet(_)) && has_membership(key)) {
        return refused_place();
    }
    let groups = aggregate.group_expr.into_iter().map(|key| {
        // Plans above refer to the keys by these names.
        if has_membership(&key) {
            let name = key.schema_name().to_string();
            computed.column(key.unalias(), name)
        } else {
            Ok(key)
        }
    });
    let groups = groups.collect::<Result<Vec<_>>>()?;
    let names = NamePreserver::new_for_projection();
    let functions = aggregate.aggr_expr.into_iter().map(|function| {
        let name = names.save(&function);
        Ok(name.restore(computed.replaced(function)?))
    });
    let functions = functions.collect::<Result<Vec<_>>>()?;
    let input = computed.over(aggregate.input)?;
    Ok(LogicalPlan::Aggregate(Aggregate::try_new(Arc::new(input), groups, functions)?))
}

fn below_sort(sort: Sort, keys: &Keys) -> Result<LogicalPlan> {
    let schema = Arc::clone(sort.input.schema());
    let mut computed = Computed { schema: &schema, keys, columns: Vec::new() };
    let keys = sort.expr.into_iter().map(|mut key| {
        key.expr = computed.replaced(key.expr)?;
        Ok(key)
    });
    let expr = keys.collect::<Result<Vec<_>>>()?;
    let columns: Vec<Expr> = schema.columns().into_iter().map(Expr::Column).collect();
    let input = Arc::new(computed.over(sort.input)?);
    let sort = LogicalPlan::Sort(Sort { expr, input, fetch: sort.fetch });
    LogicalPlanBuilder::from(sort).project(columns)?.build()
}
