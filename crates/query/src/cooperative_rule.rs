//! Optimizer rule that lets other tasks run while a join produces batches, so that a query can be cancelled. The engine
//! itself yields only where data is read, but a join may produce many batches of what it has read.

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coop::CooperativeExec;
use std::sync::Arc;

/// Puts the engine's [`CooperativeExec`] above operators with several inputs.
#[derive(Debug)]
pub(crate) struct CooperativeRule;

impl PhysicalOptimizerRule for CooperativeRule {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let put = |node: Arc<dyn ExecutionPlan>| {
            if node.children().len() < 2 {
                return Ok(Transformed::no(node));
            }
            let yielding: Arc<dyn ExecutionPlan> = Arc::new(CooperativeExec::new(node));
            Ok(Transformed::yes(yielding))
        };
        plan.transform_up(put).data()
    }

    fn name(&self) -> &'static str {
        "CooperativeRule"
    }

    fn schema_check(&self) -> bool {
        true
    }
}
