//! Sides of joins that are gone through once. Where one that is joined by other conditions than equal values does not fit into memory,
//! the engine would begin with it anew, to put it aside: a search hands out each slot once, so that rows would be missing then.
//! It ends instead.

use datafusion::common::config::ConfigOptions;
use datafusion::common::resources_err;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use datafusion::physical_plan::joins::NestedLoopJoinExec;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What is said then.
const FULL: &str = "one side of a join does not fit into memory";

/// Puts [`OnceExec`] before the side of a join that is kept in memory.
#[derive(Debug)]
pub(crate) struct Once;

impl PhysicalOptimizerRule for Once {
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
                *kept = Arc::new(OnceExec { input: Arc::clone(kept), begun: AtomicBool::new(false) });
            }
            Ok(Transformed::yes(replace_children_if_necessary(node, inputs)?))
        };
        plan.transform_up(put).data()
    }

    fn name(&self) -> &'static str {
        "Once"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// The same rows, for the first who asks.
#[derive(Debug)]
struct OnceExec {
    input: Arc<dyn ExecutionPlan>,
    begun: AtomicBool,
}

impl DisplayAs for OnceExec {
    fn fmt_as(&self, _kind: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OnceExec")
    }
}

impl ExecutionPlan for OnceExec {
    fn name(&self) -> &'static str {
        "OnceExec"
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
            return resources_err!("{FULL}");
        }
        self.input.execute(partition, context)
    }
}
