//! Partial aggregation by one number or address column. It replaces the first of the engine's two
//! aggregation steps, the one that sees every element.

mod exec;
mod group_table;
#[cfg(test)]
mod tests;
mod u32_hash_table;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::{ExecutionPlan, InputOrderMode};
use exec::GroupExec;
use group_table::KeyType;
use std::any::Any;
use std::sync::Arc;

/// Groups of a thread at most, before they are handed on to the second step.
const MOST: usize = 1 << 19;

/// Puts [`GroupExec`] in the place of the engine's own first step where it can do its work.
#[derive(Debug)]
pub(crate) struct GroupByRule {
    most: usize,
}

impl Default for GroupByRule {
    fn default() -> Self {
        Self { most: MOST }
    }
}

impl PhysicalOptimizerRule for GroupByRule {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let put = |node: Arc<dyn ExecutionPlan>| {
            let aggregate = (node.as_ref() as &dyn Any).downcast_ref::<AggregateExec>();
            let grouped = aggregate.map(|aggregate| self.grouped(aggregate)).transpose()?.flatten();
            Ok(grouped.map_or_else(|| Transformed::no(node), Transformed::yes))
        };
        plan.transform_down(put).data()
    }

    fn name(&self) -> &'static str {
        "GroupByRule"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

impl GroupByRule {
    fn grouped(&self, aggregate: &AggregateExec) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        // A second step names columns of the first, which are not in the schema of the input.
        if !matches!(aggregate.mode(), AggregateMode::Partial | AggregateMode::Single) {
            return Ok(None);
        }
        let by = aggregate.group_expr();
        let [(expression, _)] = by.expr() else { return Ok(None) };
        let Some(kind) = KeyType::of(&expression.data_type(&aggregate.input_schema())?) else {
            return Ok(None);
        };
        let functions = aggregate.aggr_expr();
        let usual = by.is_single()
            && *aggregate.input_order_mode() == InputOrderMode::Linear
            && aggregate.limit_options().is_none()
            && aggregate.filter_expr().iter().all(Option::is_none)
            && functions.iter().all(|of| of.groups_accumulator_supported() && of.order_bys().is_empty());
        let step = |mode, by, input| {
            let (functions, filters) = (functions.to_vec(), aggregate.filter_expr().to_vec());
            AggregateExec::try_new(mode, by, functions, filters, input, aggregate.input_schema())
        };
        let first = |first: &AggregateExec| Arc::new(GroupExec::new(first, expression, kind, self.most));
        Ok(match aggregate.mode() {
            AggregateMode::Partial if usual => Some(first(aggregate)),
            // Of a single thread both steps are one.
            AggregateMode::Single if usual => {
                let partial = step(AggregateMode::Partial, by.clone(), Arc::clone(aggregate.input()))?;
                Some(Arc::new(step(AggregateMode::Final, by.as_final(), first(&partial))?))
            }
            _ => None,
        })
    }
}
