//! Beginning of a run's first slot: after a crash, gaps for elements that it took out of the middle, and one gap for
//! every stream, so that no ordinal that a reader may have seen live is given to another element.
//!
//! A crash takes what was younger than *durable after*, and nobody knows how many elements that were. Each stream goes on
//! at the next multiple of 2³² above its last known ordinal; the gap covers what is between. What is in the first slot
//! may be shown live only once these gaps are durable: else a second crash could take them, and the ordinals would be
//! given twice.

use holdfast_base::{Ordinal, Timestamp};
use holdfast_format::{Cause, Entry, Flags, Gap};
use holdfast_ingest::{Batch, BatchPosition, BatchRow, Content, MIN_BATCH_BYTES, Packer};
use holdfast_media::Buffer;
use holdfast_ring::CrashGap;

/// Ordinals after a crash begin at a multiple of this.
pub const CRASH_STEP: u64 = 1 << 32;

/// A stream that takes part in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream {
    /// As slots have it.
    pub entry: Entry,
    /// After a crash: the latest arrival that is known to be kept, where the loss begins.
    pub lost_since: Option<Timestamp>,
}

impl Stream {
    /// The ordinal at which its source begins.
    pub fn next(&self) -> Ordinal {
        let next = self.entry.counters.next_ordinal;
        match self.lost_since {
            Some(_) => Ordinal((next.0 / CRASH_STEP + 1).saturating_mul(CRASH_STEP)),
            None => next,
        }
    }
}

/// The rows in front of everything else, and those of what came to light later.
pub(super) struct Opening {
    /// The gaps, by dictionary entry.
    gaps: Vec<(u16, Ordinal, Gap)>,
    /// When they are told.
    now: Timestamp,
    /// Memory for one of them on its way into the slot.
    batch: Batch,
    /// Rows that the journal must have before anything may be shown.
    rows: u32,
    settled: bool,
}

impl Opening {
    pub(super) fn new(streams: &[Stream], now: Timestamp) -> Self {
        let lost = streams.iter().enumerate().filter_map(|(entry, stream)| {
            let first = stream.entry.counters.next_ordinal;
            let gap = Gap {
                ordinals: stream.next().0 - first.0,
                elements: None,
                bytes: None,
                first: stream.lost_since?.min(now),
                last: now,
                cause: Cause::Crash,
                note: 0,
            };
            Some((entry as u16, first, gap))
        });
        let gaps: Vec<_> = lost.collect();
        let rows = gaps.len() as u32;
        Self { gaps, now, batch: Batch::new(MIN_BATCH_BYTES, 1), rows, settled: rows == 0 }
    }

    /// Adds a gap for what a crash has taken out of the middle of a stream, in front of the others; before anything was written it is
    /// one of the rows that are waited for.
    pub(super) fn add(&mut self, entry: u16, hole: &CrashGap, now: Timestamp) {
        let gap = Gap {
            ordinals: hole.end.0 - hole.first.0,
            elements: None,
            bytes: None,
            first: hole.from.min(now),
            last: hole.to.unwrap_or(now).min(now).max(hole.from.min(now)),
            cause: Cause::Crash,
            note: 0,
        };
        if !self.gaps.is_empty() {
            self.rows += 1;
        }
        self.now = now;
        self.gaps.insert(0, (entry, hole.first, gap));
    }

    /// Whether they are still to be written.
    pub(super) fn is_due(&self) -> bool {
        !self.gaps.is_empty()
    }

    /// Bytes of payload that they take.
    pub(super) fn bytes(&self) -> usize {
        self.gaps.len() * Gap::BYTES
    }

    /// Writes them into the open slot, which has room for them.
    pub(super) fn write(&mut self, packer: &mut Packer<Buffer>) {
        for (entry, first, gap) in self.gaps.drain(..) {
            put_gap(&mut self.batch, first, &gap, self.now);
            // The slot is new, and an eighth of it is more than these rows can take.
            let _ = packer.push(entry, &self.batch, BatchPosition::default());
        }
    }

    /// Whether they are durable: in the slot that they began, once that is `written`, or in the journal, which has so many `rows` of
    /// it while it is open.
    pub(super) fn is_settled(&mut self, rows: Option<u32>, written: bool) -> bool {
        self.settled |= self.gaps.is_empty() && (written || rows.is_some_and(|rows| rows >= self.rows));
        self.settled
    }
}

/// Makes `batch` one gap, which is told at that time.
fn put_gap(batch: &mut Batch, first: Ordinal, gap: &Gap, arrival: Timestamp) {
    batch.clear();
    batch.free()[..Gap::BYTES].copy_from_slice(&gap.encode());
    batch.fill(Gap::BYTES);
    batch.push(BatchRow {
        content: Content::Gap,
        flags: Flags::default(),
        meta: 0,
        tag: 0,
        at: 0,
        len: Gap::BYTES as u32,
        extra: 0,
        ordinal: first,
        arrival,
        span: 0,
        event: Timestamp(0),
    });
}
