//! The table of a stream: what of a query its slots can answer.

use super::chosen::{Chosen, Explained, excluded};
use super::exec::{StreamExec, Work};
use super::known::Numbered;
use super::list::SlotList;
use super::moment::{Looks, Moment};
use super::rest::{self, Rest};
use super::trouble::Trouble;
use super::wants::{LinkTypes, Wants};
use super::ways::Ways;
use crate::columns::{Columns, Fixed};
use crate::predicate::{Predicate, translate};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use holdfast_attributes::Schema;
use holdfast_base::{StreamId, Timestamp};
use holdfast_protocol::server::MAX_CLIENTS;
use holdfast_protocol::{LinkError, Pins};
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
    ways: Ways,
    trouble: Arc<Trouble>,
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
        ways: Ways,
        trouble: Arc<Trouble>,
    ) -> Self {
        let columns = Columns::new(&schema);
        let link_types = Arc::new(link_types);
        Self { name: name.to_owned(), stream, schema, link_types, columns, ways, trouble }
    }

    /// The stream.
    pub(crate) fn stream(&self) -> StreamId {
        self.stream
    }

    /// The ways to its ring.
    pub(crate) fn ways(&self) -> &Ways {
        &self.ways
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
            None if rest::may_be_asked(filter) => TableProviderFilterPushDown::Inexact,
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
        let mut wants = Wants {
            stream: self.stream,
            schema: self.schema.clone(),
            link_types: Arc::clone(&self.link_types),
            columns: self.columns.clone(),
            projection: projection.cloned().unwrap_or_else(all),
            limit,
            predicate,
            rest: None,
        };
        if wants.payload() {
            let rest = filters.iter().filter(|filter| translate(filter, &self.columns).is_none());
            let rest = Rest::of(state, &self.columns, rest.cloned().collect());
            let is_there =
                |rest: &Rest| rest.columns.iter().all(|(place, _)| wants.projection.contains(place));
            wants.rest = rest.filter(is_there);
        }
        let selection = self.selection(&wants.predicate);
        let slot = self.columns.arrow().index_of(Fixed::Slot.name()).ok();
        let by_slot = slot.filter(|place| wants.predicate.columns().contains(place));
        let by_slot = by_slot.map(|place| (place, wants.predicate.clone()));
        let (ways, trouble) = (self.ways.clone(), Arc::clone(&self.trouble));
        let never = wants.predicate == Predicate::Constant(false);
        // Each thread that searches a ring through its recorder is a client, and so is what pins slots for them, for each of a question's
        // looks at streams: they may all be at work at once.
        let looks = state.config().get_extension::<Looks>().map_or(1, |looks| looks.count.max(1));
        let clients = (MOST_CLIENTS / looks).saturating_sub(1).max(1);
        let (stream, has_payload) = (self.stream, wants.payload());
        let explained = state.config().get_extension::<Explained>().map(|_| wants.clone());
        let planned = tokio::task::spawn_blocking(move || {
            if never {
                return Ok((SlotList::default(), Chosen::default(), 1, 0));
            }
            let mut way = ways.take()?;
            let payload = if has_payload { mean(&way.reader.streams()?, stream) } else { 0 };
            let Plan { mut slots, of: all, .. } = way.reader.plan(&selection)?;
            trouble.expired(way.reader.gone(&trouble.expected())?);
            if let Some((place, predicate)) = by_slot {
                // Those that are left out are not looked at, damaged or not.
                slots.retain(|slot| predicate.may_hold(&Numbered { place, sequence: slot.sequence.0 }));
            }
            let by_view = explained.and_then(|wants| excluded(&mut way.reader, &wants, &slots));
            let chosen = Chosen { all, by_time: all - slots.len(), by_view };
            if way.reader.is_live() {
                return Ok((SlotList::new(slots, way.reader.into_pins()), chosen, clients, payload));
            }
            ways.give(way);
            Ok((SlotList::new(slots, Pins::default()), chosen, usize::MAX, payload))
        });
        let external = |error: LinkError| DataFusionError::External(Box::new(error));
        let (slots, chosen, most, payload) =
            planned.await.map_err(|error| DataFusionError::External(Box::new(error)))?.map_err(external)?;
        let (ways, trouble) = (self.ways.clone(), Arc::clone(&self.trouble));
        let until = state.config().get_extension::<Moment>().and_then(|moment| moment.bound(&wants));
        let work = Work { ways, wants, until, list: slots, chosen, trouble, payload };
        let threads = state.config().target_partitions().min(most);
        Ok(Arc::new(StreamExec::new(&self.name, work, threads)?))
    }
}

impl StreamTable {
    /// Which slots may have something, by the times that are asked for.
    fn selection(&self, predicate: &Predicate) -> Selection {
        let place = self.columns.arrow().index_of(Fixed::Time.name());
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
