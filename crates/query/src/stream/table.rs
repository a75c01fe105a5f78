//! Table provider of a stream: filter push-down, and the plan of a scan.

use super::exec::{ScanWork, StreamExec};
use super::pruning_report::{ExplainOnly, PruningReport, excluded};
use super::pruning_stats::SequenceStatistics;
use super::reader_pool::ReaderPool;
use super::residual_filter::{self, ResidualFilter};
use super::scan_cutoff::{ScanCutoff, StreamScans};
use super::scan_diagnostics::ScanDiagnostics;
use super::scan_spec::{LinkTypes, ScanSpec};
use super::slot_queue::SlotQueue;
use crate::columns::{Columns, CommonColumn};
use crate::predicate::{Predicate, translate};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use holdfast_attributes::Schema;
use holdfast_base::{StreamId, Timestamp};
use holdfast_protocol::Pins;
use holdfast_protocol::server::MAX_CLIENTS;
use holdfast_reader::ReaderError;
use holdfast_reader::{Plan, Selection};
use holdfast_ring::{Range, StreamStatus};
use std::fmt;
use std::sync::Arc;

/// Clients of a recorder that a question may be: half of the places are left to others.
const MOST_CLIENTS: usize = MAX_CLIENTS / 2;

/// A stream as a table.
pub struct StreamTable {
    name: String,
    stream: StreamId,
    schema: Schema,
    link_types: Arc<LinkTypes>,
    columns: Columns,
    readers: ReaderPool,
    diagnostics: Arc<ScanDiagnostics>,
}

impl fmt::Debug for StreamTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamTable").field("name", &self.name).finish_non_exhaustive()
    }
}

impl StreamTable {
    /// The stream `name`; `trouble` learns what was missed.
    pub fn new(
        name: &str,
        stream: StreamId,
        schema: Schema,
        link_types: LinkTypes,
        readers: ReaderPool,
        diagnostics: Arc<ScanDiagnostics>,
    ) -> Self {
        let columns = Columns::new(&schema);
        let link_types = Arc::new(link_types);
        Self { name: name.to_owned(), stream, schema, link_types, columns, readers, diagnostics }
    }

    /// The stream.
    pub(crate) fn stream(&self) -> StreamId {
        self.stream
    }

    /// The ways to its ring.
    pub(crate) fn readers(&self) -> &ReaderPool {
        &self.readers
    }
}

#[async_trait::async_trait]
impl TableProvider for StreamTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(self.columns.arrow())
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        let support = |filter: &&Expr| match translate(filter, &self.columns) {
            Some(_) => TableProviderFilterPushDown::Exact,
            None if residual_filter::may_be_asked(filter) => TableProviderFilterPushDown::Inexact,
            None => TableProviderFilterPushDown::Unsupported,
        };
        Ok(filters.iter().map(support).collect())
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let conditions = filters.iter().filter_map(|filter| translate(filter, &self.columns));
        let predicate = Predicate::all(conditions);
        let all = || (0..self.columns.arrow().fields().len()).collect();
        let mut spec = ScanSpec {
            stream: self.stream,
            schema: self.schema.clone(),
            link_types: Arc::clone(&self.link_types),
            columns: self.columns.clone(),
            projection: projection.cloned().unwrap_or_else(all),
            limit,
            predicate,
            residual: None,
        };
        if spec.payload() {
            let residual = filters.iter().filter(|filter| translate(filter, &self.columns).is_none());
            let residual = ResidualFilter::of(state, &self.columns, residual.cloned().collect());
            let is_there = |residual: &ResidualFilter| {
                residual.columns.iter().all(|(place, _)| spec.projection.contains(place))
            };
            spec.residual = residual.filter(is_there);
        }
        let selection = self.selection(&spec.predicate);
        let slot = self.columns.arrow().index_of(CommonColumn::Slot.name()).ok();
        let by_slot = slot.filter(|place| spec.predicate.columns().contains(place));
        let by_slot = by_slot.map(|place| (place, spec.predicate.clone()));
        let (readers, diagnostics) = (self.readers.clone(), Arc::clone(&self.diagnostics));
        let never = spec.predicate == Predicate::Constant(false);
        // Each thread that searches a ring through its recorder is a client, and so is what pins slots for them, for each of a question's
        // looks at streams: they may all be at work at once.
        let scans = state.config().get_extension::<StreamScans>().map_or(1, |scans| scans.count.max(1));
        let clients = (MOST_CLIENTS / scans).saturating_sub(1).max(1);
        let (stream, has_payload) = (self.stream, spec.payload());
        let explained = state.config().get_extension::<ExplainOnly>().map(|_| spec.clone());
        let planned = tokio::task::spawn_blocking(move || {
            if never {
                return Ok((SlotQueue::default(), PruningReport::default(), 1, 0));
            }
            let mut pooled = readers.take()?;
            let payload = if has_payload { mean(&pooled.reader.streams()?, stream) } else { 0 };
            let Plan { mut slots, of: all, .. } = pooled.reader.plan(&selection)?;
            diagnostics.expired(pooled.reader.gone(&diagnostics.expected())?);
            if let Some((place, predicate)) = by_slot {
                // Those that are left out are not looked at, damaged or not.
                slots.retain(|slot| {
                    predicate.may_hold(&SequenceStatistics { place, sequence: slot.sequence.0 })
                });
            }
            let by_view = explained.and_then(|spec| excluded(&mut pooled.reader, &spec, &slots));
            let report = PruningReport { all, by_time: all - slots.len(), by_view };
            if pooled.reader.is_live() {
                return Ok((SlotQueue::new(slots, pooled.reader.into_pins()), report, clients, payload));
            }
            readers.give(pooled);
            Ok((SlotQueue::new(slots, Pins::default()), report, usize::MAX, payload))
        });
        let external = |error: ReaderError| DataFusionError::External(Box::new(error));
        let (slots, report, most, payload) =
            planned.await.map_err(|error| DataFusionError::External(Box::new(error)))?.map_err(external)?;
        let (readers, diagnostics) = (self.readers.clone(), Arc::clone(&self.diagnostics));
        let cutoff = state.config().get_extension::<ScanCutoff>().and_then(|cutoff| cutoff.bound(&spec));
        let work = ScanWork { readers, spec, cutoff, queue: slots, report, diagnostics, payload };
        let threads = state.config().target_partitions().min(most);
        Ok(Arc::new(StreamExec::new(&self.name, work, threads)?))
    }
}

impl StreamTable {
    /// Which slots may have something, by the times that are asked for.
    fn selection(&self, predicate: &Predicate) -> Selection {
        let place = self.columns.arrow().index_of(CommonColumn::Time.name());
        let (low, high) = place.map_or((None, None), |place| predicate.bounds(place));
        let time = |word: u64| Timestamp((word ^ 1 << 63) as i64);
        let range = Range {
            from: low.map_or(Timestamp::MIN, time),
            to: high.map_or(Timestamp::MAX, time),
            ..Range::ALL
        };
        Selection { streams: vec![self.stream], range }
    }
}

/// What an element of a stream has in bytes, on the average of all that were received.
fn mean(streams: &[StreamStatus], stream: StreamId) -> u64 {
    let counters = streams.iter().find(|status| status.id == stream).map(|status| status.counters);
    counters.map_or(0, |counters| counters.received_bytes.div_ceil(counters.received.max(1)))
}
