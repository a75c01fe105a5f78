//! Channel between a source and the capture thread: settings, both ends, and all memory between them.

use super::Producer;
use crate::auto_schema::AutoSchema;
use crate::batch::{BATCH_BYTES, BATCH_ROWS, Batch};
use crate::counters::{Pressure, SourceCounters, add};
use crate::extraction::Extraction;
use crate::loss::Losses;
use crate::queue::{CaptureQueue, Waker, exchange};
use crate::upstream::Upstream;
use holdfast_attributes::Counter;
use holdfast_base::{ByteSize, Clock, Ordinal, Timestamp};
use std::sync::Arc;

/// What a source does when there is no empty batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overload {
    /// It waits, and so does whoever feeds it.
    Block,
    /// It drops what arrives, counts it, and puts a gap in front of the next element that finds room.
    DropNewest,
}

/// How a source's batches are laid out, and where its ordinals start.
#[derive(Clone, Debug)]
pub struct ProducerSettings {
    /// Batches in the pool; at least 4.
    pub batches: usize,
    /// Bytes of each.
    pub batch_bytes: ByteSize,
    /// Rows of each.
    pub batch_rows: usize,
    /// What happens when all of them are full.
    pub overload: Overload,
    /// The ordinal of the next element to arrive.
    pub next: Ordinal,
    /// Whether a preamble comes with the input, ahead of its elements.
    pub leads: bool,
    /// What is read of every element, if anything is.
    pub extraction: Option<Extraction>,
    /// Inference of further attributes from its first elements, if wanted.
    pub inference: Option<AutoSchema>,
    /// By what is seen which elements were lost before they came to us, if by anything.
    pub counter: Option<Counter>,
}

impl ProducerSettings {
    /// 16 batches of the usual size, starting at `next`.
    pub fn new(overload: Overload, next: Ordinal) -> Self {
        Self {
            batches: 16,
            batch_bytes: BATCH_BYTES,
            batch_rows: BATCH_ROWS,
            overload,
            next,
            leads: false,
            extraction: None,
            inference: None,
            counter: None,
        }
    }
}

/// The capture thread's end of one source.
#[derive(Debug)]
pub struct Inlet {
    end: CaptureQueue<Batch>,
    counters: Arc<SourceCounters>,
    leads: bool,
    can_wait: bool,
}

impl Inlet {
    /// The next batch, in the order they were sent.
    pub fn take(&mut self) -> Option<Batch> {
        self.end.take()
    }

    /// Says whether this source brings more than was declared: then what finds no batch is lost for that.
    pub fn set_beyond(&self, beyond: bool) {
        self.counters.set_beyond(beyond);
    }

    /// Says that so many more elements were recorded without their options.
    pub fn left_options_out(&self, elements: u64) {
        if elements > 0 {
            add(&self.counters.options_left_out, elements);
        }
    }

    /// Gives a batch back, done with.
    pub fn give_back(&mut self, mut batch: Batch) {
        batch.clear();
        self.end.give_back(batch);
    }

    /// Whether the source waits when there is no room, and loses nothing by it.
    pub fn can_wait(&self) -> bool {
        self.can_wait
    }

    /// Whether a preamble may come ahead of the batches.
    pub fn leads(&self) -> bool {
        self.leads
    }

    /// The preamble that led the input, once it has come. The source waits for [`Inlet::answer_preamble`].
    pub fn take_preamble(&mut self) -> Option<Vec<u8>> {
        self.end.take_offer()
    }

    /// Says that the preamble is in force, or why it cannot be.
    pub fn answer_preamble(&mut self, word: Result<(), String>) {
        self.end.answer(word);
    }

    /// Whether all that arrived until then has been handed over.
    pub fn has_all_until(&self, until: Timestamp) -> bool {
        self.counters.handed_over_until() > until || self.end.is_gone()
    }

    /// Batches that wait to be taken.
    pub fn waiting(&self) -> usize {
        self.end.waiting()
    }

    /// Says whether the source has ended: all it will ever send is here, though it may not be taken yet.
    pub fn has_ended(&self) -> bool {
        self.end.is_gone()
    }

    /// True once the source has ended and all it sent was taken. To be asked behind the last [`Inlet::take`] and
    /// before waiting: the end wakes once.
    pub fn is_finished(&self) -> bool {
        self.end.is_finished()
    }

    /// The source's counters.
    pub fn counters(&self) -> &Arc<SourceCounters> {
        &self.counters
    }
}

/// Allocates a source's batches and joins its thread to the capture thread, which `capture` wakes.
pub fn channel(
    settings: &ProducerSettings,
    clock: Arc<dyn Clock>,
    pressure: Arc<Pressure>,
    capture: Waker,
) -> (Producer, Inlet) {
    let batch = || Batch::new(settings.batch_bytes, settings.batch_rows);
    let classes = settings.extraction.as_ref().map(Extraction::classes).unwrap_or_default();
    let pool = (0..settings.batches.max(4)).map(|_| batch().with_columns(classes)).collect();
    let (end, capture) = exchange(pool, capture);
    let counters = Arc::new(SourceCounters::default());
    let now = clock.now();
    let producer = Producer {
        end,
        clock,
        pressure,
        counters: Arc::clone(&counters),
        batches: settings.batches.max(4) - 1,
        batch_bytes: settings.batch_bytes.0.max(1) as usize,
        overload: settings.overload,
        batch: None,
        spill: batch(),
        claimed: 0,
        gaps: 0,
        since: now,
        now,
        keeps: false,
        next: settings.next,
        open: None,
        losses: Losses::new(),
        abort_due: None,
        extraction: settings
            .extraction
            .clone()
            .or_else(|| settings.inference.as_ref().map(AutoSchema::extraction)),
        inference: settings.inference.clone(),
        batch_rows: settings.batch_rows,
        upstream: settings.counter.clone().map(Upstream::new),
    };
    (
        producer,
        Inlet {
            end: capture,
            counters,
            leads: settings.leads,
            can_wait: settings.overload == Overload::Block,
        },
    )
}
