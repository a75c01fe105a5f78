//! Keys of an order that occur twice, as in `order by w, w desc`: the second one says nothing. The engine fails on
//! them in `distinct on` and in aggregates.

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::logical_expr::expr::Sort;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Distinct, DistinctOn, Expr, LogicalPlan};
use datafusion::optimizer::AnalyzerRule;

/// Analyzer rule that leaves out repeated keys.
#[derive(Debug)]
pub(crate) struct OrderKeys;

fn distinct(keys: Vec<Sort>) -> Vec<Sort> {
    let mut all: Vec<Sort> = Vec::with_capacity(keys.len());
    for key in keys {
        if !all.iter().any(|known| known.expr == key.expr) {
            all.push(key);
        }
    }
    all
}

impl AnalyzerRule for OrderKeys {
    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        let rewritten = plan.transform_up_with_subqueries(|plan| {
            if let LogicalPlan::Distinct(Distinct::On(on)) = plan {
                let sort_expr = on.sort_expr.map(distinct);
                return Ok(Transformed::yes(LogicalPlan::Distinct(Distinct::On(DistinctOn {
                    sort_expr,
                    ..on
                }))));
            }
            let names = NamePreserver::new(&plan);
            plan.map_expressions(|expr| {
                let name = names.save(&expr);
                let rewritten = expr.transform_up(|expr| {
                    let Expr::AggregateFunction(mut function) = expr else {
                        return Ok(Transformed::no(expr));
                    };
                    function.params.order_by = distinct(function.params.order_by);
                    Ok(Transformed::yes(Expr::AggregateFunction(function)))
                })?;
                Ok(rewritten.update_data(|expr| name.restore(expr)))
            })
        });
        rewritten.map(|plan| plan.data)
    }

    fn name(&self) -> &'static str {
        "order keys"
    }
}
