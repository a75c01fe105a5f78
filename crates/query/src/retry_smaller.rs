//! Execution of a query with retries in smaller batches: if memory for a sort or a merge runs out before the first rows,
//! the query runs again with fewer rows per batch.

use crate::memory_pool::is_join_memory;
use crate::stream::{ScanDiagnostics, StreamExec};
use datafusion::common::config::ConfigNonZeroUsize;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::dataframe::DataFrame;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::MemoryLimit;
use datafusion::execution::{SendableRecordBatchStream, SessionState, TaskContext};
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, execute_stream};
use futures::stream::{StreamExt, TryStreamExt, iter, once};
use std::any::Any;
use std::sync::Arc;

/// A batch has at most one part in so many of a thread's memory: several are merged at once, each of them twice.
const BATCH: usize = 16;

/// A sort reserves one part in so many of its part of the memory for merging.
const SORT: usize = 4;

/// A retry has one row in so many per batch.
const FEWER: usize = 16;

/// Executes a query, again in smaller batches if memory runs out before the first rows.
pub(crate) async fn execute(
    frame: DataFrame,
    diagnostics: &Arc<ScanDiagnostics>,
) -> Result<SendableRecordBatchStream> {
    let (mut state, query) = frame.into_parts();
    let mut plan = state.create_physical_plan(&query).await?;
    let (schema, diagnostics) = (plan.schema(), Arc::clone(diagnostics));
    let batches = async move {
        let batches: SendableRecordBatchStream = loop {
            fit_batches(&mut state, &plan)?;
            let mut batches = execute_stream(Arc::clone(&plan), Arc::new(TaskContext::from(&state)))?;
            match batches.next().await {
                Some(Err(error)) if is_full(&error) && shrink_batches(&mut state, &plan)? => {
                    drop(batches);
                    diagnostics.begin_anew();
                    plan = state.create_physical_plan(&query).await?;
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

/// Limits the rows of a batch to those whose payloads fit, if payloads are read, and what each sort reserves to its
/// part of the memory.
fn fit_batches(state: &mut SessionState, plan: &Arc<dyn ExecutionPlan>) -> Result<()> {
    let MemoryLimit::Finite(all) = state.runtime_env().memory_pool.memory_limit() else { return Ok(()) };
    let (mut payload, mut sorts) = (0, 0);
    plan.apply(|node| {
        let any = node.as_ref() as &dyn Any;
        payload = payload.max(any.downcast_ref::<StreamExec>().map_or(0, StreamExec::payload));
        let sort = any.downcast_ref::<SortExec>();
        sorts += sort.map_or(0, |sort| sort.input().output_partitioning().partition_count());
        Ok(TreeNodeRecursion::Continue)
    })?;
    let execution = &mut state.config_mut().options_mut().execution;
    let (rows, threads) = (execution.batch_size.get(), execution.target_partitions.max(1));
    let reserved = all / sorts.max(threads) / SORT;
    execution.sort_spill_reservation_bytes = execution.sort_spill_reservation_bytes.min(reserved);
    let fitting = (all / threads / BATCH).checked_div(payload as usize).unwrap_or(rows);
    execution.batch_size = ConfigNonZeroUsize::try_new(rows.min(fitting).max(1))?;
    Ok(())
}

/// Returns true if memory ran out for something that smaller batches may help.
fn is_full(error: &DataFusionError) -> bool {
    matches!(error.find_root(), DataFusionError::ResourcesExhausted(_)) && !is_join_memory(error)
}

/// Reduces the rows of a batch for the next try; false if that does not help.
fn shrink_batches(state: &mut SessionState, plan: &Arc<dyn ExecutionPlan>) -> Result<bool> {
    let options = state.config_mut().options_mut();
    let rows = options.execution.batch_size.get();
    let sorts = plan.exists(|node| {
        let node = node.as_ref() as &dyn Any;
        Ok(node.is::<SortExec>() || node.is::<SortPreservingMergeExec>())
    })?;
    if rows == 1 || !sorts {
        return Ok(false);
    }
    options.execution.batch_size = ConfigNonZeroUsize::try_new(rows.div_ceil(FEWER))?;
    Ok(true)
}
