//! Physical operator of a stream scan: threads that search slots, each with its own reader.

use super::chunk_scan::{BatchSink, scan_chunk};
use super::pruning_report::PruningReport;
use super::scan_spec::ScanSpec;
use super::source::{Chunk, ScanCounters, SegmentScan};
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{DataType, Field, SchemaRef};
use datafusion::common::exec_err;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricBuilder, MetricsSet};
use datafusion::physical_plan::stream::RecordBatchReceiverStreamBuilder;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties};
use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use tokio::sync::mpsc::Sender;

/// Batches that may wait for the consumer: many, so that threads switch seldom; few if texts or payloads may be large.
const WAITING: usize = 16;
const WAITING_LARGE: usize = 2;

/// Consumer of found elements within a thread of the scan. No other thread waits for them, and they are still in the
/// processor's cache.
pub(crate) trait BatchFold: Send {
    /// Takes a batch of found elements.
    fn take(&mut self, found: &RecordBatch) -> Result<()>;

    /// Ends the input.
    fn end(&mut self) -> Result<()>;

    /// Returns the next batch of output; `None` if there is none yet.
    fn give(&mut self) -> Option<RecordBatch>;
}

/// Scan of a stream, shared by its threads.
pub(super) struct ScanWork {
    pub(super) spec: ScanSpec,
    /// Segments to scan; `None` if no element can match.
    pub(super) scan: Option<Box<dyn SegmentScan>>,
    pub(super) report: PruningReport,
    /// Average payload bytes of an element, if payloads are wanted.
    pub(super) payload: u64,
}

/// Physical operator of a stream scan.
pub(crate) struct StreamExec {
    name: String,
    work: Arc<ScanWork>,
    schema: SchemaRef,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
    /// Number of elements that are still wanted.
    wanted: Arc<AtomicUsize>,
    /// Partitions that have been executed. Segments are handed out once, so that a second execution would miss them.
    executed: Vec<AtomicBool>,
}

impl StreamExec {
    pub(super) fn new(name: &str, work: ScanWork, threads: usize) -> Result<Self> {
        let schema = Arc::new(work.spec.columns.arrow().project(&work.spec.projection)?);
        let threads = threads.max(1);
        let properties = PlanProperties::new(
            EquivalenceProperties::new(Arc::clone(&schema)),
            Partitioning::UnknownPartitioning(threads),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Ok(Self {
            name: name.to_owned(),
            schema,
            properties: Arc::new(properties),
            metrics: ExecutionPlanMetricsSet::new(),
            wanted: Arc::new(AtomicUsize::new(work.spec.limit.unwrap_or(usize::MAX))),
            work: Arc::new(work),
            executed: (0..threads).map(|_| AtomicBool::new(false)).collect(),
        })
    }

    /// Returns the average payload bytes of an element, if payloads are wanted; else 0.
    pub(crate) fn payload(&self) -> u64 {
        self.work.payload
    }

    /// Executes a partition whose elements `fold` turns into batches with this schema.
    pub(crate) fn folded(
        &self,
        partition: usize,
        schema: SchemaRef,
        mut fold: Box<dyn BatchFold>,
    ) -> Result<SendableRecordBatchStream> {
        let stream = RecordBatchReceiverStreamBuilder::new(schema, WAITING_LARGE);
        self.spawn(partition, stream, move |to, found| {
            match found {
                Some(_) if to.is_closed() => return Ok(ControlFlow::Break(())),
                Some(found) => fold.take(&found)?,
                None => fold.end()?,
            }
            while let Some(batch) = fold.give() {
                if to.blocking_send(Ok(batch)).is_err() {
                    return Ok(ControlFlow::Break(()));
                }
            }
            Ok(ControlFlow::Continue(()))
        })
    }

    /// Starts a thread of the scan. `give` takes each batch, and `None` at the end; it breaks off if no more is wanted.
    fn spawn(
        &self,
        partition: usize,
        mut stream: RecordBatchReceiverStreamBuilder,
        mut give: impl FnMut(&Sender<Result<RecordBatch>>, Option<RecordBatch>) -> Result<ControlFlow<()>>
        + Send
        + 'static,
    ) -> Result<SendableRecordBatchStream> {
        if self.executed.get(partition).is_none_or(|executed| executed.swap(true, Ordering::Relaxed)) {
            return exec_err!("cannot scan stream `{}`: its plan was executed twice", self.name);
        }
        let rows = MetricBuilder::new(&self.metrics).output_rows(partition);
        let count = |name| MetricBuilder::new(&self.metrics).counter(name, partition);
        let counts =
            ["slots_pruned", "slots_pruned_unread", "slots_searched", "bytes_read", "bytes_read_index"]
                .map(count);
        let worker = ScanWorker {
            work: Arc::clone(&self.work),
            schema: Arc::clone(&self.schema),
            wanted: Arc::clone(&self.wanted),
            threads: self.properties.partitioning.partition_count(),
            to: stream.tx(),
        };
        stream.spawn_blocking(move || {
            let (mut counters, mut counted) = (ScanCounters::default(), [0; 5]);
            // Counted before a batch is given: its consumer may have enough, and read the metrics.
            let mut count = |counters: &ScanCounters, found: usize| {
                rows.add(found);
                let ScanCounters { pruned, unread, searched, bytes, copied } = *counters;
                for ((count, so_far), amount) in
                    counts.iter().zip(&mut counted).zip([pruned, unread, searched, bytes, copied])
                {
                    count.add(usize::try_from(amount.saturating_sub(*so_far)).unwrap_or(usize::MAX));
                    *so_far = amount.max(*so_far);
                }
            };
            let mut failed = Ok(());
            let mut sink = |batch: RecordBatch, counters: &ScanCounters| {
                count(counters, batch.num_rows());
                give(&worker.to, Some(batch)).unwrap_or_else(|error| {
                    failed = Err(error);
                    ControlFlow::Break(())
                })
            };
            let ended = worker.run(&mut counters, &mut sink);
            count(&counters, 0);
            ended.and(failed)?;
            give(&worker.to, None).map(|_| ())
        });
        Ok(stream.build())
    }
}

impl fmt::Debug for StreamExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamExec").field("name", &self.name).finish_non_exhaustive()
    }
}

impl DisplayAs for StreamExec {
    fn fmt_as(&self, _kind: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ScanWork { spec, report, .. } = &*self.work;
        let names: Vec<&str> = self.schema.fields().iter().map(|field| field.name().as_str()).collect();
        let payload = if spec.payload() { " of hits" } else { "" };
        write!(
            f,
            "StreamExec: stream={}, {report}, columns=[{}]{payload}, condition={}",
            self.name,
            names.join(", "),
            spec.predicate.shown(&spec.columns)
        )?;
        if let Some(residual) = &spec.residual {
            write!(f, ", before payloads={residual}")?;
        }
        spec.limit.map_or(Ok(()), |limit| write!(f, ", limit={limit}"))
    }
}

impl ExecutionPlan for StreamExec {
    fn name(&self) -> &'static str {
        "StreamExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(
            &Arc<dyn PhysicalExpr>,
        ) -> Result<datafusion::common::tree_node::TreeNodeRecursion>,
    ) -> Result<datafusion::common::tree_node::TreeNodeRecursion> {
        Ok(datafusion::common::tree_node::TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        _children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn reset_state(self: Arc<Self>) -> Result<Arc<dyn ExecutionPlan>> {
        let ScanWork { spec, scan, report, payload } = &*self.work;
        let scan = scan.as_ref().map(|scan| scan.again());
        let work = ScanWork { spec: spec.clone(), scan, report: *report, payload: *payload };
        Ok(Arc::new(Self::new(&self.name, work, self.properties.partitioning.partition_count())?))
    }

    fn execute(&self, partition: usize, _context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let is_large =
            |field: &Arc<Field>| matches!(field.data_type(), DataType::Utf8View | DataType::BinaryView);
        let waiting = if self.schema.fields().iter().any(is_large) { WAITING_LARGE } else { WAITING };
        let stream = RecordBatchReceiverStreamBuilder::new(Arc::clone(&self.schema), waiting);
        self.spawn(partition, stream, |to, found| {
            let gone = found.is_some_and(|found| to.blocking_send(Ok(found)).is_err());
            Ok(if gone { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}

/// One thread of a scan.
struct ScanWorker {
    work: Arc<ScanWork>,
    schema: SchemaRef,
    wanted: Arc<AtomicUsize>,
    /// Number of threads of the scan.
    threads: usize,
    to: Sender<Result<RecordBatch>>,
}

impl ScanWorker {
    /// Scans segments until none is left, or no more elements are wanted.
    fn run(&self, counters: &mut ScanCounters, give: &mut BatchSink<'_>) -> Result<()> {
        let Some(scan) = &self.work.scan else { return Ok(()) };
        let mut reader = scan.reader(self.threads)?;
        let mut sink = |batch: RecordBatch, counters: &ScanCounters| {
            take(&self.wanted, batch).map_or(ControlFlow::Break(()), |batch| give(batch, counters))
        };
        let mut chunks =
            |spec: &ScanSpec, chunk: &mut dyn Chunk| scan_chunk(spec, &self.schema, chunk, &mut sink);
        while !self.is_enough() {
            let more = reader.next(&mut chunks);
            *counters = reader.counters();
            if !more? {
                break;
            }
        }
        Ok(())
    }

    /// Returns true if no more elements are wanted.
    fn is_enough(&self) -> bool {
        self.to.is_closed() || self.wanted.load(Ordering::Relaxed) == 0
    }
}

/// Takes as many rows of a batch as are still wanted.
fn take(wanted: &AtomicUsize, batch: RecordBatch) -> Option<RecordBatch> {
    let rows = batch.num_rows();
    let less = |left: usize| Some(if left == usize::MAX { left } else { left.saturating_sub(rows) });
    let left = wanted.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).unwrap_or_else(|left| left);
    match left {
        0 => None,
        left if left < rows => Some(batch.slice(0, left)),
        _ => Some(batch),
    }
}
