//! Scan of a ring: its slots, shared by threads, each of which reads through a connection of its own.

use super::attribute_reads::LinkTypes;
use super::errors::external;
use super::open_slot;
use super::read_plan;
use super::reader_pool::{PooledReader, ReaderPool};
use super::slot_queue::SlotQueue;
use super::slot_state::{RecordedState, SlotScan};
use crate::stream::{
    ChunkSink, ScanCounters, ScanDiagnostics, ScanSpec, ScanStop, SegmentReader, SegmentScan, StreamCutoff,
};
use datafusion::error::Result;
use holdfast_reader::{PlannedSlot, RingReader};
use std::sync::Arc;

/// Scan of some slots of a ring.
pub(super) struct RingScan {
    pub(super) readers: ReaderPool,
    pub(super) link_types: Arc<LinkTypes>,
    pub(super) diagnostics: Arc<ScanDiagnostics>,
    pub(super) spec: ScanSpec,
    pub(super) cutoff: Option<StreamCutoff>,
    pub(super) queue: SlotQueue,
}

impl SegmentScan for RingScan {
    fn reader(&self, threads: usize) -> Result<Box<dyn SegmentReader + '_>> {
        let pooled = self.readers.take().map_err(external)?;
        let reader = SlotReader {
            scan: self,
            threads,
            is_live: pooled.reader.is_live(),
            pooled: Some(pooled),
            next: None,
            counters: ScanCounters::default(),
            back: 0,
        };
        if reader.is_live {
            let pins = || Ok(self.readers.take()?.reader.into_pins());
            self.queue.open_pins(pins).map_err(external)?;
        }
        Ok(Box::new(reader))
    }

    fn again(&self) -> Box<dyn SegmentScan> {
        Box::new(Self {
            readers: self.readers.clone(),
            link_types: Arc::clone(&self.link_types),
            diagnostics: Arc::clone(&self.diagnostics),
            spec: self.spec.clone(),
            cutoff: self.cutoff.clone(),
            queue: self.queue.again(),
        })
    }
}

/// Slot that was taken from the queue.
struct QueuedSlot<'a> {
    place: usize,
    planned: &'a PlannedSlot,
    /// Whether it takes a read, if that is known.
    reads: Option<bool>,
}

/// One thread of a scan.
struct SlotReader<'a> {
    scan: &'a RingScan,
    /// Number of threads of the scan.
    threads: usize,
    is_live: bool,
    /// Reader of the ring, until no slot is left.
    pooled: Option<PooledReader>,
    /// Slot that was taken ahead.
    next: Option<QueuedSlot<'a>>,
    counters: ScanCounters,
    /// Maximum number of ages by which an element began before the slot that it ends in.
    back: u64,
}

impl SegmentReader for SlotReader<'_> {
    fn next(&mut self, sink: &mut ChunkSink<'_>) -> Result<bool> {
        let Some(mut pooled) = self.pooled.take() else { return Ok(false) };
        let queued = self.next.take().or_else(|| {
            let (place, planned) = self.scan.queue.take()?;
            Some(QueuedSlot { place, planned, reads: None })
        });
        let Some(queued) = queued else {
            self.scan.readers.give(pooled);
            return Ok(false);
        };
        let more = self.slot(&mut pooled.reader, &queued, sink);
        self.pooled = Some(pooled);
        more
    }

    fn counters(&self) -> ScanCounters {
        self.counters
    }
}

impl Drop for SlotReader<'_> {
    fn drop(&mut self) {
        // Slots are left: an error ended the scan, or no more elements are wanted.
        if self.pooled.is_some() {
            self.scan.queue.stop();
        }
    }
}

impl<'a> SlotReader<'a> {
    /// Scans a slot; false if the sink has enough.
    fn slot(
        &mut self,
        reader: &mut RingReader,
        queued: &QueuedSlot<'a>,
        sink: &mut ChunkSink<'_>,
    ) -> Result<bool> {
        let RingScan { queue, spec, diagnostics, .. } = self.scan;
        let QueuedSlot { place, planned, reads } = *queued;
        let slot = &reader.placed(planned).map_err(external)?;
        // A slot that was open when it was taken ahead may have a place by now.
        let reads = match reads.filter(|_| planned.slot.is_some()) {
            Some(reads) => reads,
            None => self.foresee(reader, place, slot)?,
        };
        if !reads {
            self.prune_unread();
            queue.done(place, self.back);
            return Ok(true);
        }
        // A reading turn ends as soon as nothing waits, and turns are long: the next slot is requested ahead.
        if self.is_live
            && spec.limit.is_none()
            && let Some((place, planned)) = queue.take_ahead(self.threads)
        {
            let reads = Some(self.foresee(reader, place, planned)?);
            self.next = Some(QueuedSlot { place, planned, reads });
        }
        let may_hold = open_slot::may_hold(reader, spec, slot).map_err(external)?;
        if may_hold && slot.slot.is_none() {
            queue.keep(place);
        }
        let scanned = if may_hold {
            self.look_into(reader, slot, sink)
        } else {
            self.prune_unread();
            Ok(())
        };
        reader.forget_ahead(slot.sequence);
        queue.done(place, self.back);
        match scanned {
            Ok(()) => {}
            Err(ScanStop::Enough) => return Ok(false),
            Err(ScanStop::Failed(error)) => return Err(error),
            Err(ScanStop::Expired) => diagnostics.expired([slot.sequence]),
            Err(ScanStop::Damaged(place)) => diagnostics.damaged(slot.slot, slot.sequence, &place),
        }
        Ok(true)
    }

    /// Counts a slot that is excluded without a read.
    fn prune_unread(&mut self) {
        self.counters.pruned += 1;
        self.counters.unread += 1;
    }

    /// Requests what will be read of a slot, and pins it; false if statistics in memory exclude the slot.
    fn foresee(&self, reader: &mut RingReader, place: usize, slot: &PlannedSlot) -> Result<bool> {
        let RingScan { queue, spec, .. } = self.scan;
        let Some(mut view) = reader.foresee(slot) else {
            // The recorder's statistics may exclude an open slot.
            if slot.slot.is_some() {
                queue.keep(place);
            }
            return Ok(true);
        };
        match read_plan::foresee(&mut view, spec, &mut || queue.keep(place)) {
            Ok(reads) => Ok(reads),
            Err(ScanStop::Failed(error)) => Err(error),
            // The scan of the slot reports the same.
            Err(_) => {
                queue.keep(place);
                Ok(true)
            }
        }
    }

    /// Reads a slot.
    fn look_into(
        &mut self,
        reader: &mut RingReader,
        slot: &PlannedSlot,
        sink: &mut ChunkSink<'_>,
    ) -> Result<(), ScanStop> {
        let RingScan { spec, cutoff, queue, diagnostics, link_types, .. } = self.scan;
        let is_open = slot.slot.is_none();
        // An open slot is in the recorder's memory: nothing is read from the ring.
        let before = self.counters.bytes;
        let unread_bytes = is_open.then_some(before);
        let mut wanted = read_plan::of_open(cutoff.as_ref().map_or(spec, |cutoff| &cutoff.spec));
        loop {
            let mut view = reader.look_into_for(slot, &wanted)?;
            let mut scan = SlotScan {
                view: &mut view,
                has_rows: wanted.rows || !is_open,
                spec,
                cutoff: cutoff.as_ref(),
                link_types,
                planned: queue.slots(),
                diagnostics,
                counters: &mut self.counters,
                unread_bytes,
                back: &mut self.back,
                torn: Arc::default(),
                recorded: RecordedState::default(),
            };
            let complete = scan.run(sink);
            self.counters.copied += view.copied();
            if is_open {
                self.counters.bytes = before;
            }
            // Rows of an open slot are copied only if they are needed.
            match complete {
                Ok(false) if !wanted.rows => wanted.rows = true,
                other => return other.map(|_| ()),
            }
        }
    }
}
