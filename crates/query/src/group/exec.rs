//! Physical operator of the partial aggregation: assigns elements to groups, and emits all groups at the
//! end of the input or when the table is full.

use super::group_table::{GroupTable, KeyType};
use crate::stream::{BatchFold, StreamExec};
use datafusion::arrow::array::{ArrayRef, RecordBatch};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::Result;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{EmitTo, GroupsAccumulator};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::StreamExt;
use std::any::Any;
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

/// Where there are not so many elements to a group, there is little to be gained here: they are handed on as they come.
const LEAST_OF_A_GROUP: usize = 2;

/// The partial aggregation as a step of a physical plan.
#[derive(Clone)]
pub(super) struct GroupExec {
    input: Arc<dyn ExecutionPlan>,
    by: Arc<dyn PhysicalExpr>,
    kind: KeyType,
    functions: Vec<Arc<AggregateFunctionExpr>>,
    most: usize,
    schema: SchemaRef,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl GroupExec {
    /// What does the work of `aggregate`, whose values are of this kind.
    pub(super) fn new(
        aggregate: &AggregateExec,
        by: &Arc<dyn PhysicalExpr>,
        kind: KeyType,
        most: usize,
    ) -> Self {
        Self {
            input: Arc::clone(aggregate.input()),
            by: Arc::clone(by),
            kind,
            functions: aggregate.aggr_expr().to_vec(),
            most,
            schema: aggregate.schema(),
            properties: Arc::clone(aggregate.properties()),
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }
}

impl fmt::Debug for GroupExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GroupExec").finish_non_exhaustive()
    }
}

impl DisplayAs for GroupExec {
    fn fmt_as(&self, _kind: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.functions.iter().map(|function| function.name()).collect();
        write!(f, "GroupExec: by={}, functions=[{}]", self.by, names.join(", "))
    }
}

impl ExecutionPlan for GroupExec {
    fn name(&self) -> &'static str {
        "GroupExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        f(&self.by)
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let input = children.into_iter().next().unwrap_or_else(|| Arc::clone(&self.input));
        let metrics = ExecutionPlanMetricsSet::new();
        Ok(Arc::new(Self { input, metrics, ..(*self).clone() }))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let functions = self.functions.iter().map(|function| {
            Ok(GroupFunction {
                arguments: function.expressions(),
                accumulator: function.create_groups_accumulator()?,
            })
        });
        let consumer = MemoryConsumer::new(format!("GroupExec[{partition}]"));
        let groups = GroupAccumulator {
            by: Arc::clone(&self.by),
            functions: functions.collect::<Result<_>>()?,
            places: GroupTable::new(self.kind.clone()),
            of: Vec::new(),
            elements: 0,
            most: self.most,
            few: false,
            ready: VecDeque::new(),
            batch: context.session_config().batch_size().max(1),
            memory: consumer.register(context.memory_pool()),
            schema: Arc::clone(&self.schema),
            metrics: BaselineMetrics::new(&self.metrics, partition),
        };
        if let Some(search) = search(&self.input) {
            return search.folded(partition, Arc::clone(&self.schema), Box::new(groups));
        }
        let input = self.input.execute(partition, context)?;
        let batches = futures::stream::try_unfold(
            (input, groups, false),
            |(mut input, mut groups, mut ended)| async move {
                loop {
                    if let Some(batch) = groups.give() {
                        return Ok(Some((batch, (input, groups, ended))));
                    }
                    if ended {
                        return Ok(None);
                    }
                    if let Some(batch) = input.next().await.transpose()? {
                        groups.take(&batch)?;
                    } else {
                        ended = true;
                        groups.end()?;
                    }
                }
            },
        );
        Ok(Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), batches)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}

/// An aggregate function, computed for each group.
struct GroupFunction {
    arguments: Vec<Arc<dyn PhysicalExpr>>,
    accumulator: Box<dyn GroupsAccumulator>,
}

impl GroupFunction {
    fn arguments(&self, of: &RecordBatch) -> Result<Vec<ArrayRef>> {
        self.arguments.iter().map(|argument| array(argument, of)).collect()
    }
}

fn array(of: &Arc<dyn PhysicalExpr>, batch: &RecordBatch) -> Result<ArrayRef> {
    of.evaluate(batch)?.into_array(batch.num_rows())
}

/// The search that gives this, if nothing else is done to it.
fn search(of: &Arc<dyn ExecutionPlan>) -> Option<&StreamExec> {
    let of = of.as_ref() as &dyn Any;
    match of.downcast_ref::<CooperativeExec>() {
        Some(cooperative) => search(cooperative.input()),
        None => of.downcast_ref(),
    }
}

/// Groups of one thread and their aggregates.
struct GroupAccumulator {
    by: Arc<dyn PhysicalExpr>,
    functions: Vec<GroupFunction>,
    places: GroupTable,
    /// Of the elements of a batch; reused.
    of: Vec<usize>,
    /// Elements in the groups.
    elements: usize,
    /// Maximum number of groups.
    most: usize,
    /// True if groups have few elements each.
    few: bool,
    ready: VecDeque<RecordBatch>,
    /// Rows of a batch.
    batch: usize,
    memory: MemoryReservation,
    schema: SchemaRef,
    metrics: BaselineMetrics,
}

impl BatchFold for GroupAccumulator {
    fn take(&mut self, batch: &RecordBatch) -> Result<()> {
        let time = self.metrics.elapsed_compute().clone();
        let _timer = time.timer();
        let values = array(&self.by, batch)?;
        if self.few {
            let mut columns = vec![values];
            for function in &self.functions {
                let arguments = function.arguments(batch)?;
                columns.extend(function.accumulator.convert_to_state(&arguments, None)?);
            }
            self.ready.push_back(RecordBatch::try_new(Arc::clone(&self.schema), columns)?);
            return Ok(());
        }
        self.places.assign(&values, &mut self.of);
        let count = self.places.len();
        for function in &mut self.functions {
            let arguments = function.arguments(batch)?;
            function.accumulator.update_batch(&arguments, &self.of, None, count)?;
        }
        self.elements += batch.num_rows();
        let known: usize = self.functions.iter().map(|function| function.accumulator.size()).sum();
        // What there is no memory for need not be kept: the second step puts it together.
        if count >= self.most || self.memory.try_resize(self.places.size() + known).is_err() {
            self.few = self.elements < LEAST_OF_A_GROUP * count;
            self.hand_on()?;
        }
        Ok(())
    }

    fn end(&mut self) -> Result<()> {
        let time = self.metrics.elapsed_compute().clone();
        let _timer = time.timer();
        self.hand_on()
    }

    fn give(&mut self) -> Option<RecordBatch> {
        let batch = self.ready.pop_front()?;
        self.metrics.record_output(batch.num_rows());
        Some(batch)
    }
}

impl GroupAccumulator {
    /// Hands all groups on, and begins again.
    fn hand_on(&mut self) -> Result<()> {
        let count = self.places.len();
        if count == 0 {
            return Ok(());
        }
        let mut columns = vec![self.places.take()?];
        for function in &mut self.functions {
            columns.extend(function.accumulator.state(EmitTo::All)?);
        }
        let all = RecordBatch::try_new(Arc::clone(&self.schema), columns)?;
        let parts = (0..count).step_by(self.batch);
        self.ready.extend(parts.map(|from| all.slice(from, self.batch.min(count - from))));
        self.elements = 0;
        self.memory.free();
        Ok(())
    }
}
