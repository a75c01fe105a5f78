//! Keys of windows as columns: expressions by which a window is partitioned or ordered are computed in a projection
//! below it, once. The engine does not always recognize the order by an expression that it has sorted by.

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, Result};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Expr, LogicalPlan, Projection, Window};
use datafusion::optimizer::AnalyzerRule;
use std::sync::Arc;

/// Analyzer rule that computes the keys of windows below them.
#[derive(Debug)]
pub(crate) struct WindowKeys;

/// Keys of a window that are to be computed, each once.
#[derive(Default)]
struct Keys(Vec<Expr>);

impl Keys {
    fn name(at: usize) -> String {
        format!("window key {at}")
    }

    /// Column of a key.
    fn column(&mut self, key: Expr) -> Expr {
        if matches!(key, Expr::Column(_) | Expr::Literal(..)) || key.contains_outer() {
            return key;
        }
        let known = self.0.iter().position(|known| *known == key);
        let at = known.unwrap_or_else(|| {
            self.0.push(key);
            self.0.len() - 1
        });
        Expr::Column(Column::new_unqualified(Self::name(at)))
    }
}

fn with_columns(window: Window) -> Result<LogicalPlan> {
    let original = LogicalPlan::Window(window.clone());
    let mut keys = Keys::default();
    let names = NamePreserver::new(&original);
    let functions = window.window_expr.into_iter().map(|function| {
        let name = names.save(&function);
        let rewritten = function.transform_up(|expr| {
            let Expr::WindowFunction(mut function) = expr else { return Ok(Transformed::no(expr)) };
            let params = &mut function.params;
            let partition = std::mem::take(&mut params.partition_by).into_iter();
            params.partition_by = partition.map(|key| keys.column(key)).collect();
            for order in &mut params.order_by {
                order.expr = keys.column(order.expr.clone());
            }
            Ok(Transformed::yes(Expr::WindowFunction(function)))
        })?;
        Ok(name.restore(rewritten.data))
    });
    let functions = functions.collect::<Result<Vec<_>>>()?;
    if keys.0.is_empty() {
        return Ok(original);
    }
    let columns = window.input.schema().columns().into_iter().map(Expr::Column);
    let computed = keys.0.into_iter().enumerate().map(|(at, key)| key.alias(Keys::name(at)));
    let input = Projection::try_new(columns.chain(computed).collect(), window.input)?;
    let window = Window::try_new(functions, Arc::new(LogicalPlan::Projection(input)))?;
    let columns = original.schema().columns().into_iter().map(Expr::Column).collect();
    Ok(LogicalPlan::Projection(Projection::try_new(columns, Arc::new(LogicalPlan::Window(window)))?))
}

impl AnalyzerRule for WindowKeys {
    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        let rewritten = plan.transform_up_with_subqueries(|plan| match plan {
            LogicalPlan::Window(window) => with_columns(window).map(Transformed::yes),
            plan => Ok(Transformed::no(plan)),
        });
        rewritten.map(|plan| plan.data)
    }

    fn name(&self) -> &'static str {
        "window keys"
    }
}
