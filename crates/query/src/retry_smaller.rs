//! Execution of a query with retries that need less memory. Hash joins and large batches are tried first;
//! if memory runs out before the first rows, the query runs again with sort-merge joins, then with smaller
//! batches.

use crate::stream::{ScanDiagnostics, StreamExec};
use datafusion::common::config::ConfigNonZeroUsize;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::dataframe::DataFrame;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::MemoryLimit;
use datafusion::execution::{SendableRecordBatchStream, SessionState, TaskContext};
use datafusion::physical_plan::joins::{HashJoinExec, SortMergeJoinExec};
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use futures::stream::{StreamExt, TryStreamExt, iter, once};
use std::any::Any;
use std::sync::Arc;

/// Sides that are sorted are joined in so many parts at least: of one the engine makes a table in memory whatever it is told.
const PARTS: usize = 2;

/// A batch has one part in so many of a thread's memory: several are merged at once, each of them twice.
const BATCH: usize = 16;

/// Batches have one row in so many when there was no memory for them.
const FEWER: usize = 16;

/// Asks, and asks anew where memory runs out before the first rows have come.
pub(crate) async fn asked(
    frame: DataFrame,
    diagnostics: &Arc<ScanDiagnostics>,
) -> Result<SendableRecordBatchStream> {
    let (mut state, question) = frame.into_parts();
    let mut plan = state.create_physical_plan(&question).await?;
    let (schema, diagnostics) = (plan.schema(), Arc::clone(diagnostics));
    let batches = async move {
        let batches: SendableRecordBatchStream = loop {
            fit(&mut state, &plan)?;
            let mut batches = execute_stream(Arc::clone(&plan), Arc::new(TaskContext::from(&state)))?;
            match batches.next().await {
                Some(Err(error)) if is_full(&error) && takes_less(&mut state, &plan)? => {
                    drop(batches);
                    diagnostics.begin_anew();
                    plan = state.create_physical_plan(&question).await?;
                }
                first => {
                    let all = RecordBatchStreamAdapter::new(plan.schema(), iter(first).chain(batches));
                    break Box::pin(all);
                }
            }
        };
        Ok::<_, DataFusionError>(batches)
    };
    Ok(Box::pin(RecordBatchStreamAdapter::new(schema, once(batches).try_flatten())))
}

/// Has no more rows in a batch than there is memory for, where payloads are in them.
fn fit(state: &mut SessionState, plan: &Arc<dyn ExecutionPlan>) -> Result<()> {
    let MemoryLimit::Finite(all) = state.runtime_env().memory_pool.memory_limit() else { return Ok(()) };
    let mut payload = 0;
    plan.apply(|node| {
        let stream = (node.as_ref() as &dyn Any).downcast_ref::<StreamExec>();
        payload = payload.max(stream.map_or(0, StreamExec::payload));
        Ok(TreeNodeRecursion::Continue)
    })?;
    let execution = &mut state.config_mut().options_mut().execution;
    let (rows, threads) = (execution.batch_size.get(), execution.target_partitions.max(1));
    let fitting = (all / threads / BATCH).checked_div(payload as usize).unwrap_or(rows);
    execution.batch_size = ConfigNonZeroUsize::try_new(rows.min(fitting).max(1))?;
    Ok(())
}

fn is_full(error: &DataFusionError) -> bool {
    matches!(error.find_root(), DataFusionError::ResourcesExhausted(_))
}

/// Makes the next plan one that takes less memory than this one; not, if there is none.
fn takes_less(state: &mut SessionState, plan: &Arc<dyn ExecutionPlan>) -> Result<bool> {
    let options = state.config_mut().options_mut();
    if options.optimizer.prefer_hash_join && has(plan, <dyn Any>::is::<HashJoinExec>)? {
        options.optimizer.prefer_hash_join = false;
        options.execution.target_partitions = options.execution.target_partitions.max(PARTS);
        return Ok(true);
    }
    let rows = options.execution.batch_size.get();
    let sorts = has(plan, |node| {
        node.is::<SortExec>() || node.is::<SortPreservingMergeExec>() || node.is::<SortMergeJoinExec>()
    })?;
    if rows == 1 || !sorts {
        return Ok(false);
    }
    options.execution.batch_size = ConfigNonZeroUsize::try_new(rows.div_ceil(FEWER))?;
    Ok(true)
}

fn has(plan: &Arc<dyn ExecutionPlan>, is: impl Fn(&dyn Any) -> bool) -> Result<bool> {
    plan.exists(|node| Ok(is(node.as_ref())))
}
