//! Keys of an order that say nothing. A key that occurs twice, as in `order by w, w desc`: the engine fails on it in
//! `distinct on` and in aggregates. The order of an aggregate that is the same for any order, as in
//! `count(id order by w)`: the engine takes its keys for further arguments, and leaves out rows with a null among them.

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

/// Aggregates with one value for any order of their rows.
const UNORDERED: [&str; 32] = [
    "approx_distinct",
    "approx_median",
    "avg",
    "bit_and",
    "bit_or",
    "bit_xor",
    "bool_and",
    "bool_or",
    "corr",
    "count",
    "covar_pop",
    "covar_samp",
    "grouping",
    "max",
    "median",
    "min",
    "regr_avgx",
    "regr_avgy",
    "regr_count",
    "regr_intercept",
    "regr_r2",
    "regr_slope",
    "regr_sxx",
    "regr_sxy",
    "regr_syy",
    "stddev",
    "stddev_pop",
    "stddev_samp",
    "sum",
    "var",
    "var_pop",
    "var_samp",
];

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
                    function.params.order_by = if UNORDERED.contains(&function.func.name()) {
                        Vec::new()
                    } else {
                        distinct(function.params.order_by)
                    };
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
