//! Physical operator of a stream scan: threads that search slots, each with its own reader.

use super::open_slot;
use super::pruning_report::PruningReport;
use super::read_plan;
use super::reader_pool::ReaderPool;
use super::scan_cutoff::StreamCutoff;
use super::scan_diagnostics::ScanDiagnostics;
use super::scan_spec::ScanSpec;
use super::slot_queue::SlotQueue;
use super::slot_scan::{RecordedState, ScanCounters, ScanStop, SlotScan};
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{DataType, Field, SchemaRef};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricBuilder, MetricsSet};
use datafusion::physical_plan::stream::RecordBatchReceiverStreamBuilder;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties};
use holdfast_reader::ReaderError;
use holdfast_reader::{PlannedSlot, RingReader, SlotError};
use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::mpsc::Sender;

/// Batches that may wait for whoever takes them: many, so that threads change seldom; few where texts or payloads may make them
/// large.
const WAITING: usize = 16;
const WAITING_LARGE: usize = 2;

/// What the threads of a search do with what they find, each by itself, instead of giving it away: no other thread has to be waited for,
/// and what was found is still in the processor's own memory.
pub(crate) trait BatchFold: Send {
    /// Takes what was found.
    fn take(&mut self, found: &RecordBatch) -> Result<()>;

    /// No more is found.
    fn end(&mut self) -> Result<()>;

    /// What is to be given away for it, until there is no more.
    fn give(&mut self) -> Option<RecordBatch>;
}

/// A search over slots, shared by the threads that carry it out.
pub(super) struct ScanWork {
    pub(super) readers: ReaderPool,
    pub(super) spec: ScanSpec,
    /// Where nothing is to be found that came after a moment.
    pub(super) cutoff: Option<StreamCutoff>,
    pub(super) queue: SlotQueue,
    pub(super) report: PruningReport,
    pub(super) diagnostics: Arc<ScanDiagnostics>,
    /// What an element's payload has in bytes on the average, where it is wanted.
    pub(super) payload: u64,
}

pub(crate) struct StreamExec {
    name: String,
    work: Arc<ScanWork>,
    schema: SchemaRef,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
    /// How many elements are still wanted.
    wanted: Arc<AtomicUsize>,
}

impl StreamExec {
    pub(super) fn new(name: &str, work: ScanWork, threads: usize) -> Result<Self> {
        let schema = Arc::new(work.spec.columns.arrow().project(&work.spec.projection)?);
        let threads = threads.min(work.queue.slots().len()).max(1);
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
        })
    }

    /// What an element's payload has in bytes on the average, where it is wanted.
    pub(crate) fn payload(&self) -> u64 {
        self.work.payload
    }

    /// The same as `execute`, with what `fold` makes of it, which has such a schema.
    pub(crate) fn folded(
        &self,
        partition: usize,
        schema: SchemaRef,
        mut fold: Box<dyn BatchFold>,
    ) -> SendableRecordBatchStream {
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

    /// Starts a thread of the search. `give` takes what is found, and at last nothing; it breaks off where nobody wants more.
    fn spawn(
        &self,
        partition: usize,
        mut stream: RecordBatchReceiverStreamBuilder,
        mut give: impl FnMut(&Sender<Result<RecordBatch>>, Option<RecordBatch>) -> Result<ControlFlow<()>>
        + Send
        + 'static,
    ) -> SendableRecordBatchStream {
        let rows = MetricBuilder::new(&self.metrics).output_rows(partition);
        let count = |name| MetricBuilder::new(&self.metrics).counter(name, partition);
        let counts =
            ["slots_pruned", "slots_pruned_unread", "slots_searched", "bytes_read", "bytes_read_index"]
                .map(count);
        let mut worker = ScanWorker {
            work: Arc::clone(&self.work),
            schema: Arc::clone(&self.schema),
            wanted: Arc::clone(&self.wanted),
            threads: self.properties.partitioning.partition_count(),
            to: stream.tx(),
        };
        stream.spawn_blocking(move || {
            let (mut counters, mut counted) = (ScanCounters::default(), [0; 5]);
            // Counted before what was found is given: whoever has enough then asks how it was come by.
            let mut count = |counters: &ScanCounters, found: usize| {
                rows.add(found);
                let ScanCounters { pruned, unread, searched, bytes, copied, .. } = *counters;
                for ((count, so_far), amount) in
                    counts.iter().zip(&mut counted).zip([pruned, unread, searched, bytes, copied])
                {
                    count.add(usize::try_from(amount.saturating_sub(*so_far)).unwrap_or(usize::MAX));
                    *so_far = amount.max(*so_far);
                }
            };
            let to = worker.to.clone();
            let mut failed = Ok(());
            let mut sink = |batch: RecordBatch, counters: &ScanCounters| {
                count(counters, batch.num_rows());
                give(&to, Some(batch)).unwrap_or_else(|error| {
                    failed = Err(error);
                    ControlFlow::Break(())
                })
            };
            let ended = worker.run(&mut counters, &mut sink);
            worker.work.diagnostics.partial(counters.partial);
            count(&counters, 0);
            ended.and(failed)?;
            give(&to, None).map(|_| ())
        });
        stream.build()
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
        let ScanWork { readers, spec, cutoff, queue, report, diagnostics, payload } = &*self.work;
        let work = ScanWork {
            readers: readers.clone(),
            spec: spec.clone(),
            cutoff: cutoff.clone(),
            queue: queue.again(),
            report: *report,
            diagnostics: Arc::clone(diagnostics),
            payload: *payload,
        };
        Ok(Arc::new(Self::new(&self.name, work, self.properties.partitioning.partition_count())?))
    }

    fn execute(&self, partition: usize, _context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let is_large =
            |field: &Arc<Field>| matches!(field.data_type(), DataType::Utf8View | DataType::BinaryView);
        let waiting = if self.schema.fields().iter().any(is_large) { WAITING_LARGE } else { WAITING };
        let stream = RecordBatchReceiverStreamBuilder::new(Arc::clone(&self.schema), waiting);
        Ok(self.spawn(partition, stream, |to, found| {
            let gone = found.is_some_and(|found| to.blocking_send(Ok(found)).is_err());
            Ok(if gone { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        }))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}

/// A slot whose turn it is, or is next.
struct QueuedSlot<'a> {
    place: usize,
    planned: &'a PlannedSlot,
    /// Whether it takes a read, where somebody has looked.
    reads: Option<bool>,
}

impl<'a> QueuedSlot<'a> {
    fn new((place, planned): (usize, &'a PlannedSlot)) -> Self {
        Self { place, planned, reads: None }
    }
}

/// Takes what is found, with what was done until then.
type BatchSink<'a> = dyn FnMut(RecordBatch, &ScanCounters) -> ControlFlow<()> + 'a;

/// One thread's part of a search.
struct ScanWorker {
    work: Arc<ScanWork>,
    schema: SchemaRef,
    wanted: Arc<AtomicUsize>,
    /// How many there are.
    threads: usize,
    to: Sender<Result<RecordBatch>>,
}

impl ScanWorker {
    fn run(&mut self, counters: &mut ScanCounters, give: &mut BatchSink<'_>) -> Result<()> {
        let ended = self.search(counters, give);
        if ended.is_err() || self.is_enough() {
            self.work.queue.stop();
        }
        ended
    }

    /// Whether nobody wants more.
    fn is_enough(&self) -> bool {
        self.to.is_closed() || self.wanted.load(Ordering::Relaxed) == 0
    }

    /// Asks for what is going to be read of a slot, which is kept from expiring; `false`: what is known of it excludes it.
    fn foresee(
        &self,
        reader: &mut RingReader,
        place: usize,
        slot: &PlannedSlot,
    ) -> std::result::Result<bool, ReaderError> {
        let ScanWork { queue, spec, .. } = &*self.work;
        let Some(mut view) = reader.foresee(slot) else {
            // Of what is open its recorder may tell enough.
            if slot.slot.is_some() {
                queue.keep(place);
            }
            return Ok(true);
        };
        match read_plan::foresee(&mut view, spec, &mut || queue.keep(place)) {
            Ok(reads) => Ok(reads),
            Err(ScanStop::Slot(SlotError::Failed(error))) => Err(error),
            // Whoever looks into it finds the same.
            Err(_) => {
                queue.keep(place);
                Ok(true)
            }
        }
    }

    /// Searches one slot.
    fn look_into(
        &self,
        reader: &mut RingReader,
        slot: &PlannedSlot,
        counters: &mut ScanCounters,
        sink: &mut dyn FnMut(RecordBatch, &ScanCounters) -> ControlFlow<()>,
    ) -> std::result::Result<(), ScanStop> {
        let ScanWork { spec, cutoff, queue, diagnostics, .. } = &*self.work;
        let mut wanted = read_plan::of_open(cutoff.as_ref().map_or(spec, |cutoff| &cutoff.spec));
        loop {
            let mut view = reader.look_into_for(slot, &wanted)?;
            let mut search = SlotScan {
                view: &mut view,
                has_rows: wanted.rows || slot.slot.is_some(),
                spec,
                cutoff: cutoff.as_ref(),
                planned: queue.slots(),
                diagnostics,
                schema: &self.schema,
                counters,
                sink,
                torn: Arc::default(),
                recorded: RecordedState::default(),
            };
            let searched = search.run();
            counters.copied += view.copied();
            match searched {
                // Of what is open rows are taken only where they are needed.
                Err(ScanStop::Rows) if !wanted.rows => wanted.rows = true,
                searched => return searched,
            }
        }
    }

    fn search(&mut self, counters: &mut ScanCounters, give: &mut BatchSink<'_>) -> Result<()> {
        let external = |error: ReaderError| DataFusionError::External(Box::new(error));
        let mut pooled = self.work.readers.take().map_err(external)?;
        let reader = &mut pooled.reader;
        let queue = &self.work.queue;
        if reader.is_live() {
            queue.open_pins(|| Ok(self.work.readers.take()?.reader.into_pins())).map_err(external)?;
        }
        let mut next: Option<QueuedSlot<'_>> = None;
        loop {
            if self.is_enough() {
                return Ok(());
            }
            let Some(QueuedSlot { place, planned, reads }) =
                next.take().or_else(|| queue.take().map(QueuedSlot::new))
            else {
                self.work.readers.give(pooled);
                return Ok(());
            };
            let slot = &reader.placed(planned).map_err(external)?;
            // What was open when it was looked at may have a place by now.
            let reads = match reads.filter(|_| planned.slot.is_some()) {
                Some(reads) => reads,
                None => self.foresee(reader, place, slot).map_err(external)?,
            };
            if !reads {
                counters.pruned += 1;
                counters.unread += 1;
                queue.done(place, counters.back);
                continue;
            }
            // A turn at reading goes to the next one as soon as nothing waits, and a turn is long.
            if reader.is_live()
                && self.work.spec.limit.is_none()
                && let Some((place, planned)) = queue.take_ahead(self.threads)
            {
                let reads = Some(self.foresee(reader, place, planned).map_err(external)?);
                next = Some(QueuedSlot { place, planned, reads });
            }
            let wanted = &self.wanted;
            let before = counters.bytes;
            // What is open the recorder's memory has.
            let read = |bytes: u64| if slot.slot.is_none() { before } else { bytes };
            let mut sink = |batch: RecordBatch, so_far: &ScanCounters| {
                let Some(batch) = take(wanted, batch) else { return ControlFlow::Break(()) };
                give(batch, &ScanCounters { bytes: read(so_far.bytes), ..*so_far })
            };
            let may_hold = open_slot::may_hold(reader, &self.work.spec, slot).map_err(external)?;
            if may_hold && slot.slot.is_none() {
                queue.keep(place);
            }
            let searched = if may_hold {
                self.look_into(reader, slot, counters, &mut sink)
            } else {
                counters.pruned += 1;
                counters.unread += 1;
                Ok(())
            };
            reader.forget_ahead(slot.sequence);
            counters.bytes = read(counters.bytes);
            queue.done(place, counters.back);
            match searched {
                Ok(()) => {}
                Err(ScanStop::Enough | ScanStop::Rows) => return Ok(()),
                Err(ScanStop::Slot(SlotError::Failed(error))) => return Err(external(error)),
                Err(ScanStop::Slot(SlotError::Expired)) => self.work.diagnostics.expired([slot.sequence]),
                Err(ScanStop::Slot(SlotError::Damaged(place))) => {
                    self.work.diagnostics.damaged(slot.slot, slot.sequence, &place);
                }
                Err(ScanStop::Arrow(error)) => return Err(error.into()),
            }
        }
    }
}

/// As many rows of a batch as are still wanted.
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
