//! Ring as a source of streams: its segments are slots, pruned by the bird's-eye view, slot outlines, block bounds and
//! the recorder's statistics of the open slot.

mod attribute_reads;
mod block_selection;
mod column_blocks;
mod errors;
mod open_slot;
mod payload;
mod pruning_stats;
mod read_plan;
mod reader_pool;
mod ring_scan;
mod rows;
mod slot_chunk;
mod slot_queue;
mod slot_scan;
mod slot_state;

pub use attribute_reads::LinkTypes;
pub use reader_pool::{OpenRing, ReaderPool};

use crate::columns::CommonColumn;
use crate::stream::{
    FEW_SEGMENTS, PruningReport, ScanDiagnostics, ScanPlan, ScanRequest, ScanSpec, StreamEnds, StreamSource,
    StreamSurvey,
};
use datafusion::error::Result;
use errors::external;
use holdfast_base::{Ordinal, StreamId, Timestamp};
use holdfast_protocol::Pins;
use holdfast_protocol::server::MAX_CLIENTS;
use holdfast_reader::{Plan, PlannedSlot, ReaderError, RingReader, Selection};
use holdfast_ring::{Range, StreamStatus};
use pruning_stats::SequenceStatistics;
use ring_scan::RingScan;
use slot_queue::SlotQueue;
use std::collections::HashMap;
use std::sync::Arc;

/// Maximum number of clients of a recorder that one query may be: half of the places are left to others.
const MOST_CLIENTS: usize = MAX_CLIENTS / 2;

/// Source of the streams of one ring.
#[derive(Debug)]
pub struct RingSource {
    readers: ReaderPool,
    link_types: HashMap<StreamId, Arc<LinkTypes>>,
    diagnostics: Arc<ScanDiagnostics>,
}

impl RingSource {
    /// Creates the source of a ring, with the link types of its packet streams. `diagnostics` receives what scans skip.
    pub fn new(
        readers: ReaderPool,
        link_types: HashMap<StreamId, LinkTypes>,
        diagnostics: Arc<ScanDiagnostics>,
    ) -> Self {
        let link_types = link_types.into_iter().map(|(stream, links)| (stream, Arc::new(links))).collect();
        Self { readers, link_types, diagnostics }
    }

    /// Runs `read` with a pooled reader.
    fn with_reader<T>(&self, read: impl FnOnce(&mut RingReader) -> Result<T, ReaderError>) -> Result<T> {
        let mut pooled = self.readers.take().map_err(external)?;
        let result = read(&mut pooled.reader);
        self.readers.give(pooled);
        result.map_err(external)
    }
}

impl StreamSource for RingSource {
    fn plan(&self, request: ScanRequest) -> Result<ScanPlan> {
        let ScanRequest { spec, cutoff, scans, explain } = request;
        let mut pooled = self.readers.take().map_err(external)?;
        let reader = &mut pooled.reader;
        let payload =
            if spec.payload() { mean_payload(&reader.streams().map_err(external)?, spec.stream) } else { 0 };
        let Plan { mut slots, of: all, .. } = reader.plan(&selection(&spec)).map_err(external)?;
        self.diagnostics.expired(reader.gone(&self.diagnostics.expected()).map_err(external)?);
        if let Some(place) = place_of(&spec, CommonColumn::Slot)
            && spec.predicate.columns().contains(&place)
        {
            // A slot that the query leaves out is not read, damaged or not.
            let may_hold = |sequence| spec.predicate.may_hold(&SequenceStatistics { place, sequence });
            slots.retain(|slot| may_hold(slot.sequence.0));
        }
        let by_view = if explain { excluded_by_view(reader, &spec, &slots) } else { None };
        let report = PruningReport { all, by_time: all - slots.len(), by_view };
        // Through a recorder each thread is a client, and so is what pins slots for them: for all scans of the query, which
        // may run at once.
        let (pins, clients) = if reader.is_live() {
            (pooled.reader.into_pins(), (MOST_CLIENTS / scans.max(1)).saturating_sub(1).max(1))
        } else {
            self.readers.give(pooled);
            (Pins::default(), usize::MAX)
        };
        let threads = clients.min(slots.len());
        let scan = RingScan {
            readers: self.readers.clone(),
            link_types: self.link_types.get(&spec.stream).cloned().unwrap_or_default(),
            diagnostics: Arc::clone(&self.diagnostics),
            spec,
            cutoff,
            queue: SlotQueue::new(slots, pins),
        };
        Ok(ScanPlan { scan: Box::new(scan), report, threads, payload })
    }

    fn survey(&self, stream: StreamId, from: Ordinal) -> Result<StreamSurvey> {
        self.with_reader(|reader| survey(reader, stream, from))
    }

    fn next_ordinals(&self) -> Result<Option<HashMap<StreamId, Ordinal>>> {
        let streams = self.with_reader(RingReader::streams)?;
        Ok(Some(streams.iter().map(|stream| (stream.id, stream.counters.next_ordinal)).collect()))
    }
}

/// Returns the place of a common column in the table.
fn place_of(spec: &ScanSpec, column: CommonColumn) -> Option<usize> {
    spec.columns.arrow().index_of(column.name()).ok()
}

/// Selects slots by the arrival times that a predicate accepts.
fn selection(spec: &ScanSpec) -> Selection {
    let times = place_of(spec, CommonColumn::Time).map(|place| spec.predicate.bounds(place));
    let (low, high) = times.unwrap_or_default();
    let time = |word: u64| Timestamp((word ^ 1 << 63) as i64);
    let range =
        Range { from: low.map_or(Timestamp::MIN, time), to: high.map_or(Timestamp::MAX, time), ..Range::ALL };
    Selection { streams: vec![spec.stream], range }
}

/// Counts the slots that the bird's-eye view excludes; `None` if it covers none of them.
fn excluded_by_view(reader: &mut RingReader, spec: &ScanSpec, slots: &[PlannedSlot]) -> Option<usize> {
    let (mut covered, mut excluded) = (0, 0);
    for slot in slots {
        if let Some(view) = reader.foresee(slot) {
            covered += 1;
            excluded += usize::from(read_plan::is_excluded(&view, spec));
        }
    }
    (covered > 0).then_some(excluded)
}

/// Returns the average payload bytes of an element, of all that a stream received.
fn mean_payload(streams: &[StreamStatus], stream: StreamId) -> u64 {
    let counters = streams.iter().find(|status| status.id == stream).map(|status| status.counters);
    counters.map_or(0, |counters| counters.received_bytes.div_ceil(counters.received.max(1)))
}

fn survey(reader: &mut RingReader, stream: StreamId, from: Ordinal) -> Result<StreamSurvey, ReaderError> {
    let ordinals = (from > Ordinal(0)).then_some((from, Ordinal(u64::MAX)));
    let selection = Selection { streams: vec![stream], range: Range { ordinals, ..Range::ALL } };
    let Plan { slots, of: all, .. } = reader.plan(&selection)?;
    let ends = if slots.len() > FEW_SEGMENTS { ends(reader, stream, &slots)? } else { None };
    Ok(StreamSurvey { segments: slots.len(), all, ends })
}

/// Finds the ends of a stream in some slots. The open slot is younger than its newest end.
fn ends(
    reader: &mut RingReader,
    stream: StreamId,
    slots: &[PlannedSlot],
) -> Result<Option<StreamEnds>, ReaderError> {
    if reader.is_live() {
        let known = || slots.iter().filter_map(|slot| slot.first.zip(slot.last));
        let ends = known().map(|(first, _)| first).min().zip(known().map(|(_, last)| last).max());
        let streams = reader.streams()?;
        let status = streams.iter().find(|status| status.id == stream);
        let next = status.map(|status| status.counters.next_ordinal);
        return Ok(ends.map(|(oldest, newest)| StreamEnds { oldest, newest, next }));
    }
    let by_age = |slot: &&PlannedSlot| slot.age;
    let first = slots.iter().min_by_key(by_age).and_then(|slot| arrivals(reader, slot));
    let last = slots.iter().max_by_key(by_age).and_then(|slot| arrivals(reader, slot));
    let ends = first.zip(last);
    Ok(ends.map(|((oldest, _), (_, newest))| StreamEnds { oldest, newest, next: None }))
}

/// Returns the first and the last arrival in a slot; `None` if it cannot be read, which a scan reports.
fn arrivals(reader: &mut RingReader, slot: &PlannedSlot) -> Option<(Timestamp, Timestamp)> {
    let view = reader.look_into(slot).ok()?;
    let all = || view.summary().entries.iter().filter_map(|entry| entry.arrivals);
    all().map(|(first, _)| first).min().zip(all().map(|(_, last)| last).max())
}
