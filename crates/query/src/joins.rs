//! Joins by other conditions than equal values. A side that does not fit into memory is gone through once more for each part of the other
//! that does, which the engine does by itself; a search hands out each slot once, so that it is made anew for that. Joins of any kind may
//! make any number of batches of two without a wait: they are made to let others go first once in a while.

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

/// Puts [`AgainExec`] before the side of a join that is gone through once more where it does not fit into memory.
#[derive(Debug)]
pub(crate) struct Again;

impl PhysicalOptimizerRule for Again {
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
                *kept = Arc::new(AgainExec { input: Arc::clone(kept), begun: AtomicBool::new(false) });
            }
            Ok(Transformed::yes(replace_children_if_necessary(node, inputs)?))
        };
        plan.transform_up(put).data()
    }

    fn name(&self) -> &'static str {
        "Again"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Puts the engine's own [`CooperativeExec`] behind what brings several inputs together. The engine itself puts it just behind what reads:
/// a question could not be ended while a join makes much of what it has read.
#[derive(Debug)]
pub(crate) struct Yielding;

impl PhysicalOptimizerRule for Yielding {
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
        "Yielding"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// The same rows, each time anew: a search hands out each slot once.
#[derive(Debug)]
struct AgainExec {
    input: Arc<dyn ExecutionPlan>,
    begun: AtomicBool,
}

impl DisplayAs for AgainExec {
    fn fmt_as(&self, _kind: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AgainExec")
    }
}

impl ExecutionPlan for AgainExec {
    fn name(&self) -> &'static str {
        "AgainExec"
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
