//! Optimizer rules for joins. `RescanRule` lets the engine read one side of a nested-loop join repeatedly,
//! although a scan hands out each slot once. `CooperativeRule` lets other tasks run while a join produces
//! batches, so that a query can be cancelled.

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::execution_plan::{replace_children_if_necessary, reset_plan_states};
use datafusion::physical_plan::joins::NestedLoopJoinExec;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Puts [`RescanExec`] before the side of a join that is gone through once more where it does not fit into memory.
#[derive(Debug)]
pub(crate) struct RescanRule;

impl PhysicalOptimizerRule for RescanRule {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let put = |node: Arc<dyn ExecutionPlan>| {
            if !(node.as_ref() as &dyn Any).is::<NestedLoopJoinExec>() {
                return Ok(Transformed::no(node));
            }
            let mut inputs: Vec<_> = node.children().into_iter().cloned().collect();
            if let Some(kept) = inputs.first_mut() {
                *kept = Arc::new(RescanExec { input: Arc::clone(kept), begun: AtomicBool::new(false) });
            }
            Ok(Transformed::yes(replace_children_if_necessary(node, inputs)?))
        };
        plan.transform_up(put).data()
    }

    fn name(&self) -> &'static str {
        "RescanRule"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Puts the engine's own [`CooperativeExec`] behind what brings several inputs together. The engine itself puts it just behind what reads:
/// a question could not be ended while a join makes much of what it has read.
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

/// The same rows, each time anew: a search hands out each slot once.
#[derive(Debug)]
struct RescanExec {
    input: Arc<dyn ExecutionPlan>,
    begun: AtomicBool,
}

impl DisplayAs for RescanExec {
    fn fmt_as(&self, _kind: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RescanExec")
    }
}

impl ExecutionPlan for RescanExec {
    fn name(&self) -> &'static str {
        "RescanExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let input = children.into_iter().next().unwrap_or_else(|| Arc::clone(&self.input));
        Ok(Arc::new(Self { input, begun: AtomicBool::new(false) }))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        // It has a single partition.
        if self.begun.swap(true, Ordering::Relaxed) {
            return reset_plan_states(Arc::clone(&self.input))?.execute(partition, context);
        }
        self.input.execute(partition, context)
    }
}
