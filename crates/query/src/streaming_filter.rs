//! Filter operator that emits each batch at once. The engine's own filter collects rows into batches of
//! thousands, which delays the first rows and holds payloads in memory that the pool does not count.

use crate::evaluation_failures::{EvaluationFailures, met};
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::compute::filter_record_batch;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricBuilder, MetricsSet};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::StreamExt;
use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// Puts [`StreamingFilterExec`] in the place of filters.
#[derive(Debug, Default)]
pub(crate) struct StreamingFilter;

impl PhysicalOptimizerRule for StreamingFilter {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let put = |node: Arc<dyn ExecutionPlan>| {
            let filter = (node.as_ref() as &dyn Any).downcast_ref::<FilterExec>();
            Ok(match filter.filter(|filter| filter.fetch().is_none()) {
                Some(filter) => Transformed::yes(StreamingFilterExec::put(filter.clone())),
                None => Transformed::no(node),
            })
        };
        plan.transform_up(put).data()
    }

    fn name(&self) -> &'static str {
        "StreamingFilter"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// What a filter leaves, batch by batch.
#[derive(Debug)]
struct StreamingFilterExec {
    filter: FilterExec,
    metrics: ExecutionPlanMetricsSet,
}

impl StreamingFilterExec {
    fn put(filter: FilterExec) -> Arc<dyn ExecutionPlan> {
        Arc::new(Self { filter, metrics: ExecutionPlanMetricsSet::new() })
    }
}

impl DisplayAs for StreamingFilterExec {
    fn fmt_as(&self, kind: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.filter.fmt_as(kind, f)
    }
}

impl ExecutionPlan for StreamingFilterExec {
    fn name(&self) -> &'static str {
        "StreamingFilterExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.filter.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.filter.children()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        self.filter.maintains_input_order()
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.filter.apply_expressions(f)
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let new = replace_children_if_necessary(Arc::new(self.filter.clone()), children)?;
        let filter = (new.as_ref() as &dyn Any).downcast_ref::<FilterExec>().cloned();
        Ok(filter.map_or(new, Self::put))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let (predicate, projection) = (Arc::clone(self.filter.predicate()), self.filter.projection().clone());
        let rows = MetricBuilder::new(&self.metrics).output_rows(partition);
        let failing = context.session_config().get_extension::<EvaluationFailures>();
        let sift = move |batch: RecordBatch| -> Result<RecordBatch> {
            let picked = match &failing {
                Some(failing) => failing.met(&predicate, &batch)?,
                None => met(&predicate, &batch)?,
            };
            let batch = match &projection {
                Some(columns) => batch.project(columns)?,
                None => batch,
            };
            let left = filter_record_batch(&batch, &picked)?;
            rows.add(left.num_rows());
            Ok(left)
        };
        let batches = self.filter.input().execute(partition, context)?;
        let batches = batches.map(move |batch| batch.and_then(&sift));
        let some = batches
            .filter(|batch| std::future::ready(batch.as_ref().map_or(true, |batch| batch.num_rows() > 0)));
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.filter.schema(), some)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}

#[cfg(test)]
mod tests {
    use crate::{Limits, ask, session};
    use datafusion::arrow::array::{ArrayRef, RecordBatch, UInt64Array};
    use datafusion::arrow::datatypes::UInt64Type;
    use datafusion::catalog::MemTable;
    use holdfast_base::ByteSize;
    use std::num::NonZeroUsize;
    use std::sync::Arc;

    #[test]
    fn what_is_found_comes_as_it_is_found() {
        let numbers = |part: u64| -> RecordBatch {
            let column: ArrayRef = Arc::new(UInt64Array::from_iter_values(part * 100..(part + 1) * 100));
            RecordBatch::try_from_iter([("a", column)]).unwrap()
        };
        let parts: Vec<RecordBatch> = (0..10).map(numbers).collect();
        let table = MemTable::try_new(parts[0].schema(), vec![parts]).unwrap();
        let limits = Limits {
            memory: ByteSize::mib(64),
            spill: None,
            spill_bytes: ByteSize::mib(1),
            threads: NonZeroUsize::MIN,
        };
        let context = session(&limits, Vec::new(), vec![("t".to_owned(), Arc::new(table))]).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        // One part has none of them.
        let sql = "select a b from t where a % 10 = 3 and (a < 500 or a >= 600)";
        let found = runtime.block_on(async { ask(&context, sql).await.unwrap().collect().await.unwrap() });
        assert_eq!(found.iter().map(RecordBatch::num_rows).collect::<Vec<_>>(), [10; 9]);
        let all: Vec<u64> = found
            .iter()
            .flat_map(|batch| {
                use datafusion::arrow::array::AsArray;
                batch.column(0).as_primitive::<UInt64Type>().values().to_vec()
            })
            .collect();
        let wanted = (0..1000).filter(|a| a % 10 == 3 && !(500..600).contains(a));
        assert_eq!(all, wanted.collect::<Vec<_>>());
    }
}
