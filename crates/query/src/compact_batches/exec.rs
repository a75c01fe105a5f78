//! Optimizer rule that compacts and cuts the input batches of sorts, merges and nested-loop joins, so that
//! the memory pool counts each batch as its own bytes and a single batch fits.

use super::compact;
use crate::memory_pool::JoinTooLarge;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, OffsetSizeTrait, RecordBatch};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::error::{DataFusionError, Result};
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
use std::iter::repeat;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Puts [`CompactBatchesExec`] below sorts and merges, and below the left side of nested-loop joins, which is held in memory.
#[derive(Debug)]
pub(crate) struct CompactBatches {
    /// Bytes of a batch.
    pub(crate) most: usize,
}

impl PhysicalOptimizerRule for CompactBatches {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let put = |node: Arc<dyn ExecutionPlan>| {
            let any = node.as_ref() as &dyn Any;
            let sorts = any.downcast_ref::<SortExec>().is_some_and(|sort| sort.fetch().is_none());
            let mut inputs: Vec<_> = node.children().into_iter().cloned().collect();
            let is_join = any.is::<NestedLoopJoinExec>();
            let compacted = if sorts || any.is::<SortPreservingMergeExec>() {
                inputs.len()
            } else {
                usize::from(is_join)
            };
            if compacted == 0 {
                return Ok(Transformed::no(node));
            }
            for input in inputs.iter_mut().take(compacted) {
                let executed = is_join.then(AtomicBool::default);
                *input = Arc::new(CompactBatchesExec { input: Arc::clone(input), most: self.most, executed });
            }
            Ok(Transformed::yes(replace_children_if_necessary(node, inputs)?))
        };
        plan.transform_up(put).data()
    }

    fn name(&self) -> &'static str {
        "CompactBatches"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Operator that gives the rows of its input in batches of limited size that share no buffers.
#[derive(Debug)]
struct CompactBatchesExec {
    input: Arc<dyn ExecutionPlan>,
    /// Maximum bytes of a batch.
    most: usize,
    /// Set once a left side of a join was executed. The engine executes it again if it does not fit into memory, but
    /// scans hand out each segment once.
    executed: Option<AtomicBool>,
}

impl DisplayAs for CompactBatchesExec {
    fn fmt_as(&self, _kind: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CompactBatchesExec: most={}", self.most)
    }
}

impl ExecutionPlan for CompactBatchesExec {
    fn name(&self) -> &'static str {
        "CompactBatchesExec"
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
        let executed = self.executed.is_some().then(AtomicBool::default);
        Ok(Arc::new(Self { input, most: self.most, executed }))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        if self.executed.as_ref().is_some_and(|executed| executed.swap(true, Ordering::Relaxed)) {
            return Err(DataFusionError::External(Box::new(JoinTooLarge)));
        }
        let (most, most_rows) = (self.most, context.session_config().batch_size());
        let batches = self.input.execute(partition, context)?.flat_map(move |batch| match batch {
            Ok(batch) => {
                iter(parts(&batch, most, most_rows).map(move |part| Ok(compact(&part)?))).left_stream()
            }
            Err(error) => iter([Err(error)]).right_stream(),
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.input.schema(), batches)))
    }
}

/// A batch in parts of so many bytes, as long as one row is not more, and so many rows.
fn parts(batch: &RecordBatch, most: usize, most_rows: usize) -> impl Iterator<Item = RecordBatch> + use<> {
    let (batch, rows) = (batch.clone(), batch.num_rows());
    let mut bytes = vec![0; rows];
    batch.columns().iter().for_each(|column| add_sizes(column, &mut bytes));
    let mut from = 0;
    std::iter::from_fn(move || {
        let mut has = *bytes.get(from)?;
        let more = bytes[from + 1..].iter().take(most_rows.saturating_sub(1)).take_while(|row| {
            has += **row;
            has <= most
        });
        let part = batch.slice(from, 1 + more.count());
        from += part.num_rows();
        Some(part)
    })
}

/// Adds what each row of a column has in bytes: of texts and bytes each its own, of others what they have on the average.
fn add_sizes(column: &ArrayRef, bytes: &mut [usize]) {
    let mut add = |lengths: &mut dyn Iterator<Item = usize>| {
        bytes.iter_mut().zip(lengths).for_each(|(row, length)| *row += length);
    };
    match column.data_type() {
        DataType::Utf8View => add(&mut column.as_string_view().views().iter().map(viewed)),
        DataType::BinaryView => add(&mut column.as_binary_view().views().iter().map(viewed)),
        DataType::Utf8 => add(&mut spans(column.as_string::<i32>().offsets())),
        DataType::Binary => add(&mut spans(column.as_binary::<i32>().offsets())),
        DataType::LargeUtf8 => add(&mut spans(column.as_string::<i64>().offsets())),
        DataType::LargeBinary => add(&mut spans(column.as_binary::<i64>().offsets())),
        _ => {
            let all = column.to_data().get_slice_memory_size().unwrap_or(0);
            add(&mut repeat(all.div_ceil(column.len().max(1))));
        }
    }
}

/// Bytes of a value, whose length is the first number of its view, and of the view.
fn viewed(view: &u128) -> usize {
    size_of_val(view) + *view as u32 as usize
}

/// Bytes between offsets, with the offset of each.
fn spans<O: OffsetSizeTrait>(offsets: &[O]) -> impl Iterator<Item = usize> {
    offsets.windows(2).map(|pair| size_of::<O>() + (pair[1] - pair[0]).as_usize())
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::{BinaryViewArray, LargeBinaryArray, StringArray, UInt64Array};
    use datafusion::arrow::compute::concat_batches;

    // Most rows are small, and all large ones lie side by side.
    #[test]
    fn parts_are_as_large_as_they_may_be_however_unlike_their_rows_are() {
        const MOST: usize = 4096;
        let length = |row: usize| if (300..330).contains(&row) { 1000 } else { row % 20 };
        let bytes = || (0..400).map(move |row| vec![row as u8; length(row)]);
        let texts = (0..400).map(|row| "x".repeat(length(row)));
        let columns: [ArrayRef; 3] = [
            Arc::new(BinaryViewArray::from_iter_values(bytes())),
            Arc::new(LargeBinaryArray::from_iter_values(bytes())),
            Arc::new(StringArray::from_iter_values(texts)),
        ];
        for column in columns {
            let numbers: ArrayRef = Arc::new(UInt64Array::from_iter_values(0..400));
            let batch = RecordBatch::try_from_iter([("number", numbers), ("value", column)]).unwrap();
            let all: Vec<RecordBatch> =
                parts(&batch, MOST, 100).map(|part| compact(&part).unwrap()).collect();
            let sizes = all.iter().map(|part| part.columns().iter().map(Array::get_array_memory_size).sum());
            let sizes: Vec<usize> = sizes.collect();
            assert!(sizes.iter().all(|size| *size <= MOST + 600), "{sizes:?}");
            assert!(all.iter().all(|part| (1..=100).contains(&part.num_rows())));
            // No more of them than it takes.
            assert!(all.len() < 2 * (4 + 30 * 1000 / MOST), "{}", all.len());
            assert_eq!(concat_batches(&batch.schema(), &all).unwrap(), batch);
        }
        // Where one row is more than that it comes alone.
        let one: ArrayRef = Arc::new(BinaryViewArray::from_iter_values([[1; 5000], [2; 5000]]));
        let batch = RecordBatch::try_from_iter([("value", one)]).unwrap();
        assert_eq!(parts(&batch, MOST, 100).map(|part| part.num_rows()).collect::<Vec<_>>(), [1, 1]);
        assert_eq!(parts(&batch.slice(0, 0), MOST, 100).count(), 0);
    }
}
