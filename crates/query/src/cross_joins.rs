//! Optimizer rule of the engine that takes joins apart and puts them together in another order. It gives all of them
//! the null equality of one: with a join by `is not distinct from` among them, rows are lost or made up. It is left
//! out then.

use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::common::{JoinType, NullEquality};
use datafusion::error::Result;
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::optimizer::{ApplyOrder, Optimizer};
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};
use std::sync::Arc;

/// Name of the engine's rule.
const NAME: &str = "eliminate_cross_join";

/// Logical rules of the engine, with this one in the place of its own.
pub(crate) fn optimizer_rules() -> Vec<Arc<dyn OptimizerRule + Send + Sync>> {
    let sound = |inner: Arc<dyn OptimizerRule + Send + Sync>| -> Arc<dyn OptimizerRule + Send + Sync> {
        if inner.name() == NAME { Arc::new(CrossJoins { inner }) } else { inner }
    };
    Optimizer::new().rules.into_iter().map(sound).collect()
}

/// The rule, left out of queries in which it would be wrong.
#[derive(Debug)]
struct CrossJoins {
    inner: Arc<dyn OptimizerRule + Send + Sync>,
}

impl OptimizerRule for CrossJoins {
    fn name(&self) -> &str {
        NAME
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.inner.apply_order()
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        let mut has_null_keys = false;
        plan.apply_with_subqueries(|node| {
            if let LogicalPlan::Join(join) = node {
                has_null_keys |=
                    join.join_type == JoinType::Inner && join.null_equality == NullEquality::NullEqualsNull;
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
        if has_null_keys { Ok(Transformed::no(plan)) } else { self.inner.rewrite(plan, config) }
    }
}
