//! Joins of more than there is memory for. Sides that are joined by equal values are sorted instead, which puts aside on disk what does
//! not fit; a side that is joined by other conditions is gone through once more, which the engine does by itself.

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::dataframe::DataFrame;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, SessionState, TaskContext};
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::execution_plan::{replace_children_if_necessary, reset_plan_states};
use datafusion::physical_plan::joins::{HashJoinExec, NestedLoopJoinExec};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, execute_stream,
};
use futures::stream::{StreamExt, TryStreamExt, iter, once};
use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Sides that are sorted are joined in so many parts at least: of one the engine makes a table in memory whatever it is told.
const PARTS: usize = 2;

/// Asks. Where a side of a join does not fit into memory before the first rows have come, it is asked anew with both sides sorted.
pub(crate) async fn asked(frame: DataFrame) -> Result<SendableRecordBatchStream> {
    let (state, plan) = frame.into_parts();
    let quick = state.create_physical_plan(&plan).await?;
    let task = Arc::new(TaskContext::from(&state));
    if !has_table(&quick)? {
        return execute_stream(quick, task);
    }
    let schema = quick.schema();
    let batches = async move {
        let mut batches = execute_stream(quick, task)?;
        match batches.next().await {
            Some(Err(error)) if is_full(&error) => {
                drop(batches);
                sorted(state, &plan).await
            }
            first => {
                let schema = batches.schema();
                let all = iter(first).chain(batches);
                Ok(Box::pin(RecordBatchStreamAdapter::new(schema, all)) as SendableRecordBatchStream)
            }
        }
    };
    Ok(Box::pin(RecordBatchStreamAdapter::new(schema, once(batches).try_flatten())))
}

/// The same, with both sides sorted.
async fn sorted(mut state: SessionState, plan: &LogicalPlan) -> Result<SendableRecordBatchStream> {
    let options = state.config_mut().options_mut();
    options.optimizer.prefer_hash_join = false;
    options.execution.target_partitions = options.execution.target_partitions.max(PARTS);
    let plan = state.create_physical_plan(plan).await?;
    execute_stream(plan, Arc::new(TaskContext::from(&state)))
}

/// Whether a side of a join is kept in memory, where it is found by its values.
fn has_table(plan: &Arc<dyn ExecutionPlan>) -> Result<bool> {
    plan.exists(|node| Ok((node.as_ref() as &dyn Any).is::<HashJoinExec>()))
}

fn is_full(error: &DataFusionError) -> bool {
    matches!(error.find_root(), DataFusionError::ResourcesExhausted(_))
}

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
