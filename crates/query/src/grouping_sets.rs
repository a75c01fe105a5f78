//! Expressions of `rollup`, `cube` and grouping sets as columns of a projection below. The engine loses their names
//! when it rewrites them, such as by a conversion of types.

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, Result};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Aggregate, Expr, LogicalPlan, Projection};
use datafusion::optimizer::AnalyzerRule;
use std::sync::Arc;

/// Analyzer rule that computes the expressions of grouping sets below them.
#[derive(Debug)]
pub(crate) struct GroupingSets;

/// Name of the function that tells by what a row is grouped.
const GROUPING: &str = "grouping";

fn with_columns(aggregate: Aggregate) -> Result<Transformed<LogicalPlan>> {
    let [Expr::GroupingSet(sets)] = aggregate.group_expr.as_slice() else {
        return Ok(Transformed::no(LogicalPlan::Aggregate(aggregate)));
    };
    let is_computed = |key: &&Expr| !matches!(key, Expr::Column(_));
    let keys: Vec<Expr> = sets.distinct_expr().into_iter().filter(is_computed).cloned().collect();
    if keys.is_empty() {
        return Ok(Transformed::no(LogicalPlan::Aggregate(aggregate)));
    }
    let column = |key: Expr| {
        Ok(if keys.contains(&key) {
            // Plans above refer to the keys by these names.
            let column = Expr::Column(Column::new_unqualified(key.schema_name().to_string()));
            Transformed::new(column, true, TreeNodeRecursion::Jump)
        } else {
            Transformed::no(key)
        })
    };
    let names = NamePreserver::new_for_projection();
    let functions = aggregate.aggr_expr.into_iter().map(|function| {
        let name = names.save(&function);
        let rewritten = function.transform_up(|expr| match expr {
            Expr::AggregateFunction(mut function) if function.func.name() == GROUPING => {
                let args = std::mem::take(&mut function.params.args).into_iter();
                function.params.args =
                    args.map(|arg| Ok(arg.transform_down(column)?.data)).collect::<Result<_>>()?;
                Ok(Transformed::yes(Expr::AggregateFunction(function)))
            }
            other => Ok(Transformed::no(other)),
        })?;
        Ok(if rewritten.transformed { name.restore(rewritten.data) } else { rewritten.data })
    });
    let functions = functions.collect::<Result<Vec<_>>>()?;
    let sets = aggregate.group_expr.into_iter().map(|sets| Ok(sets.transform_down(column)?.data));
    let sets = sets.collect::<Result<Vec<_>>>()?;
    let columns = aggregate.input.schema().columns().into_iter().map(Expr::Column);
    let computed = keys.iter().map(|key| key.clone().alias(key.schema_name().to_string()));
    let input = Projection::try_new(columns.chain(computed).collect(), aggregate.input)?;
    let aggregate = Aggregate::try_new(Arc::new(LogicalPlan::Projection(input)), sets, functions)?;
    Ok(Transformed::yes(LogicalPlan::Aggregate(aggregate)))
}

impl AnalyzerRule for GroupingSets {
    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        let rewritten = plan.transform_up_with_subqueries(|plan| match plan {
            LogicalPlan::Aggregate(aggregate) => with_columns(aggregate),
            plan => Ok(Transformed::no(plan)),
        });
        rewritten.map(|plan| plan.data)
    }

    fn name(&self) -> &'static str {
        "grouping sets"
    }
}
