//! Sorts, and joins that keep a side, whose batches are counted as what they are: those that come are cut where they are large, so
//! that one alone fits, and what goes to the step that merges is copied out of the buffers that it shares.

use super::tight;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use datafusion::physical_plan::joins::NestedLoopJoinExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::StreamExt;
use futures::stream::iter;
use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// Puts [`TightExec`] before and behind sorts, and before what a join keeps.
#[derive(Debug)]
pub(crate) struct Tightly {
    /// Bytes of a batch.
    pub(crate) most: usize,
}

impl PhysicalOptimizerRule for Tightly {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let put = |node: Arc<dyn ExecutionPlan>| {
            let any = node.as_ref() as &dyn Any;
            let sorts = any.downcast_ref::<SortExec>().is_some_and(|sort| sort.fetch().is_none());
            let mut inputs: Vec<_> = node.children().into_iter().cloned().collect();
            // Of a join it is the side that is kept, in parts if it does not fit.
            let kept = if sorts || any.is::<SortPreservingMergeExec>() {
                inputs.len()
            } else {
                usize::from(any.is::<NestedLoopJoinExec>())
            };
            if kept == 0 {
                return Ok(Transformed::no(node));
            }
            for input in inputs.iter_mut().take(kept) {
                *input = Arc::new(TightExec { input: Arc::clone(input), most: self.most });
            }
            Ok(Transformed::yes(replace_children_if_necessary(node, inputs)?))
        };
        plan.transform_up(put).data()
    }

    fn name(&self) -> &'static str {
        "Tightly"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// The same rows in the same order, in batches that share nothing and are not large.
#[derive(Debug)]
struct TightExec {
    input: Arc<dyn ExecutionPlan>,
    most: usize,
}

impl DisplayAs for TightExec {
    fn fmt_as(&self, _kind: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TightExec: most={}", self.most)
    }
}

impl ExecutionPlan for TightExec {
    fn name(&self) -> &'static str {
        "TightExec"
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
        Ok(Arc::new(Self { input, most: self.most }))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let (most, most_rows) = (self.most, context.session_config().batch_size());
        let batches = self.input.execute(partition, context)?.flat_map(move |batch| match batch {
            Ok(batch) => {
                iter(parts(&batch, most, most_rows).map(move |part| Ok(tight(&part)?))).left_stream()
            }
            Err(error) => iter([Err(error)]).right_stream(),
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.input.schema(), batches)))
    }
}

/// A batch in parts of so many bytes, as far as its rows are alike, and so many rows.
fn parts(batch: &RecordBatch, most: usize, most_rows: usize) -> impl Iterator<Item = RecordBatch> + use<> {
    let (batch, rows) = (batch.clone(), batch.num_rows());
    let bytes = batch.columns().iter().map(size).sum::<usize>().max(1);
    let of_each = ((rows as u128 * most as u128 / bytes as u128) as usize).clamp(1, most_rows.max(1));
    (0..rows).step_by(of_each).map(move |from| batch.slice(from, of_each.min(rows - from)))
}

/// Bytes of a column's values, as far as they can be told.
fn size(column: &ArrayRef) -> usize {
    let viewed = match column.data_type() {
        DataType::Utf8View => column.as_string_view().total_buffer_bytes_used(),
        DataType::BinaryView => column.as_binary_view().total_buffer_bytes_used(),
        _ => 0,
    };
    column.to_data().get_slice_memory_size().unwrap_or(0) + viewed
}
