//! Physical operator of the nearest-time join: both inputs are sorted by time and read once.

use datafusion::arrow::array::{
    Array, AsArray, RecordBatch, RecordBatchOptions, TimestampNanosecondArray, new_null_array,
};
use datafusion::arrow::compute::{SortOptions, interleave_record_batch};
use datafusion::arrow::datatypes::{SchemaRef, TimestampNanosecondType};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{
    Distribution, EquivalenceProperties, LexOrdering, OrderingRequirements, PhysicalExpr, PhysicalSortExpr,
};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::stream::RecordBatchReceiverStreamBuilder;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, InputDistributionRequirements, Partitioning, PlanProperties,
};
use futures::StreamExt;
use std::fmt;
use std::sync::Arc;
use tokio::sync::mpsc::Sender;

/// Batches that may wait for whoever takes them.
const WAITING: usize = 2;

/// Batches of the other stream that are kept for one of the first; then what there is goes out.
const KEPT: usize = 16;

/// One of the two streams.
#[derive(Clone)]
pub(super) struct JoinSide {
    pub(super) plan: Arc<dyn ExecutionPlan>,
    /// Its first columns are those that are wanted.
    pub(super) columns: usize,
    /// The place of its time, and that of its ordinal.
    pub(super) time: usize,
    pub(super) ordinal: usize,
}

impl JoinSide {
    fn with(&self, plan: Arc<dyn ExecutionPlan>) -> Self {
        Self { plan, ..*self }
    }

    /// In the order of its times, those without one last; and of equal ones in that of its elements.
    fn order(&self) -> Option<OrderingRequirements> {
        let schema = self.plan.schema();
        let options = SortOptions { descending: false, nulls_first: false };
        let by = [self.time, self.ordinal].map(|place| {
            PhysicalSortExpr::new(Arc::new(Column::new(schema.field(place).name(), place)), options)
        });
        LexOrdering::new(by).map(OrderingRequirements::from)
    }
}

pub(super) struct NearestExec {
    left: JoinSide,
    right: JoinSide,
    schema: SchemaRef,
    within: Option<i64>,
    properties: Arc<PlanProperties>,
}

impl NearestExec {
    pub(super) fn new(left: JoinSide, right: JoinSide, schema: SchemaRef, within: Option<i64>) -> Self {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(Arc::clone(&schema)),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Self { left, right, schema, within, properties: Arc::new(properties) }
    }
}

impl fmt::Debug for NearestExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NearestExec").finish_non_exhaustive()
    }
}

impl DisplayAs for NearestExec {
    fn fmt_as(&self, _kind: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NearestExec")?;
        self.within.map_or(Ok(()), |within| write!(f, ": within={within}ns"))
    }
}

impl ExecutionPlan for NearestExec {
    fn name(&self) -> &'static str {
        "NearestExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.left.plan, &self.right.plan]
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        InputDistributionRequirements::new(vec![Distribution::SinglePartition; 2])
    }

    fn required_input_ordering(&self) -> Vec<Option<OrderingRequirements>> {
        vec![self.left.order(), self.right.order()]
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
        let [left, right] = <[_; 2]>::try_from(children)
            .unwrap_or_else(|_| [Arc::clone(&self.left.plan), Arc::clone(&self.right.plan)]);
        let (left, right) = (self.left.with(left), self.right.with(right));
        Ok(Arc::new(Self::new(left, right, Arc::clone(&self.schema), self.within)))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let mut stream = RecordBatchReceiverStreamBuilder::new(Arc::clone(&self.schema), WAITING);
        let left = self.left.plan.execute(partition, Arc::clone(&context))?;
        let right = self.right.plan.execute(partition, context)?;
        let join = NearestJoin {
            right: RightInput::new(right, &self.right)?,
            columns: self.left.columns,
            time: self.left.time,
            schema: Arc::clone(&self.schema),
            within: self.within,
            to: stream.tx(),
        };
        stream.spawn(join.run(left));
        Ok(stream.build())
    }
}

fn times(batch: &RecordBatch, place: usize) -> TimestampNanosecondArray {
    batch.column(place).as_primitive::<TimestampNanosecondType>().clone()
}

/// A row of the other stream: in which of the batches that are kept, where, and its time.
#[derive(Clone, Copy)]
struct RowRef {
    batch: usize,
    row: usize,
    time: i64,
}

/// The other stream, as far as it has been gone through.
struct RightInput {
    stream: SendableRecordBatchStream,
    columns: Vec<usize>,
    time: usize,
    /// Batches that may still be wanted; first one of a row that is null all over. It stands where one is wanted no more.
    kept: Vec<RecordBatch>,
    /// The last of them that something was taken of since [`RightInput::take`], and those before this one are wanted no more beside it.
    chosen: usize,
    passed: usize,
    /// The times of the last of them, and the next row of it.
    times: Option<(TimestampNanosecondArray, usize)>,
    /// The last row that is not after where the first stream is, and the first one after it.
    before: Option<RowRef>,
    after: Option<RowRef>,
    ended: bool,
}

impl RightInput {
    fn new(stream: SendableRecordBatchStream, side: &JoinSide) -> Result<Self> {
        let columns: Vec<usize> = (0..side.columns).collect();
        let schema = Arc::new(side.plan.schema().project(&columns)?);
        let fields: Vec<_> =
            schema.fields().iter().map(|field| field.as_ref().clone().with_nullable(true)).collect();
        let nulls = fields.iter().map(|field| new_null_array(field.data_type(), 1)).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(1));
        let schema = Arc::new(datafusion::arrow::datatypes::Schema::new(fields));
        let null = RecordBatch::try_new_with_options(schema, nulls, &options)?;
        Ok(Self {
            stream,
            columns,
            time: side.time,
            kept: vec![null],
            chosen: 0,
            passed: 1,
            times: None,
            before: None,
            after: None,
            ended: false,
        })
    }

    /// The next row that has a time.
    async fn next(&mut self) -> Result<Option<RowRef>> {
        while !self.ended {
            if let Some((times, row)) = &mut self.times
                && *row < times.len()
            {
                let at = *row;
                *row += 1;
                if times.is_null(at) {
                    continue;
                }
                return Ok(Some(RowRef { batch: self.kept.len() - 1, row: at, time: times.value(at) }));
            }
            match self.stream.next().await {
                Some(batch) => {
                    let batch = batch?;
                    self.times = Some((times(&batch, self.time), 0));
                    self.pass();
                    self.kept.push(batch.project(&self.columns)?);
                }
                None => self.ended = true,
            }
        }
        Ok(None)
    }

    /// Lets go of what lies behind all that was chosen, and before the last row that was passed.
    fn pass(&mut self) {
        let from = self.passed.max(self.chosen + 1);
        let to = self.before.map_or(from, |before| before.batch);
        for batch in from..to {
            self.kept[batch] = self.kept[0].clone();
        }
        self.passed = from.max(to);
    }

    /// The row that is nearest to a time; the earlier one of two.
    async fn nearest(&mut self, time: i64, within: Option<i64>) -> Result<(usize, usize)> {
        if self.after.is_none() && self.before.is_none() {
            self.after = self.next().await?;
        }
        while let Some(after) = self.after.filter(|after| after.time <= time) {
            self.before = Some(after);
            self.after = self.next().await?;
        }
        let far = |place: &RowRef| place.time.abs_diff(time);
        let nearest = self.before.into_iter().chain(self.after).min_by_key(far);
        let near = nearest.filter(|place| within.is_none_or(|within| far(place) <= within.unsigned_abs()));
        self.chosen = near.map_or(self.chosen, |place| place.batch.max(self.chosen));
        Ok(near.map_or((0, 0), |place| (place.batch, place.row)))
    }

    /// The rows at these places, and from here on only what may still be wanted.
    fn take(&mut self, places: &[(usize, usize)]) -> Result<Option<RecordBatch>> {
        let rows = if self.columns.is_empty() {
            None
        } else {
            let kept: Vec<&RecordBatch> = self.kept.iter().collect();
            // The one with nulls is first: its columns may be null.
            Some(interleave_record_batch(&kept, places)?)
        };
        let last = self.kept.len() - 1;
        let mut keep: Vec<usize> = self.before.iter().chain(&self.after).map(|place| place.batch).collect();
        keep.extend([0, last]);
        keep.sort_unstable();
        keep.dedup();
        self.kept = keep.iter().map(|batch| self.kept[*batch].clone()).collect();
        (self.chosen, self.passed) = (0, 1);
        for place in self.before.iter_mut().chain(&mut self.after) {
            place.batch = keep.binary_search(&place.batch).unwrap_or_default();
        }
        Ok(rows)
    }
}

struct NearestJoin {
    right: RightInput,
    columns: usize,
    time: usize,
    schema: SchemaRef,
    within: Option<i64>,
    to: Sender<Result<RecordBatch>>,
}

impl NearestJoin {
    async fn run(mut self, mut left: SendableRecordBatchStream) -> Result<()> {
        while let Some(batch) = left.next().await {
            let batch = batch?;
            let times = times(&batch, self.time);
            let (mut places, mut from) = (Vec::with_capacity(batch.num_rows()), 0);
            for row in 0..batch.num_rows() {
                places.push(if times.is_null(row) {
                    (0, 0)
                } else {
                    self.right.nearest(times.value(row), self.within).await?
                });
                if self.right.kept.len() > KEPT || row + 1 == batch.num_rows() {
                    let joined = self.rows(&batch.slice(from, places.len()), &places)?;
                    if self.to.send(Ok(joined)).await.is_err() {
                        // Whoever asked has gone.
                        return Ok(());
                    }
                    from += places.len();
                    places.clear();
                }
            }
        }
        Ok(())
    }

    /// Rows of the first stream with those of the other.
    fn rows(&mut self, left: &RecordBatch, places: &[(usize, usize)]) -> Result<RecordBatch> {
        let mut arrays = left.columns()[..self.columns].to_vec();
        arrays.extend(self.right.take(places)?.iter().flat_map(|right| right.columns().to_vec()));
        let options = RecordBatchOptions::new().with_row_count(Some(left.num_rows()));
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.schema), arrays, &options)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::{ArrayRef, UInt64Array};

    #[test]
    fn what_is_passed_over_between_two_rows_is_let_go() {
        let batch = |number: i64| -> RecordBatch {
            let times = TimestampNanosecondArray::from_iter_values((0..10).map(|row| number * 10 + row));
            let ordinals = UInt64Array::from_iter_values((0..10).map(|row| (number * 10 + row) as u64));
            let columns: [(&str, ArrayRef); 2] = [("ordinal", Arc::new(ordinals)), ("time", Arc::new(times))];
            RecordBatch::try_from_iter(columns).unwrap()
        };
        let all: Vec<RecordBatch> = (0..500).map(batch).collect();
        let plan = datafusion::datasource::memory::MemorySourceConfig::try_new_exec(
            std::slice::from_ref(&all),
            all[0].schema(),
            None,
        );
        let side = JoinSide { plan: plan.unwrap(), columns: 1, time: 1, ordinal: 0 };
        let stream = side.plan.execute(0, Arc::default()).unwrap();
        let mut right = RightInput::new(stream, &side).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let wanted = [7, 12, 4000, 4001, 4990];
        let mut places = Vec::new();
        for time in wanted {
            places.push(runtime.block_on(right.nearest(time, None)).unwrap());
            let whole = right.kept.iter().filter(|batch| batch.num_rows() > 1).count();
            assert!(whole <= places.len() + 3, "{whole} batches are kept");
        }
        let rows = right.take(&places).unwrap().unwrap();
        let found = rows.column(0).as_primitive::<datafusion::arrow::datatypes::UInt64Type>();
        assert_eq!(found.values(), &[7, 12, 4000, 4001, 4990]);
    }
}
