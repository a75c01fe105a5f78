//! Losses upstream of the recorder, detected by a counter in the elements: a number that never arrived is missing once
//! it is too late for it to arrive. Reported at most once a second, so that a sender of random numbers causes few gaps.
//!
//! Pure: what came when goes in, losses come out. How one sender's numbers are judged is `flow`'s, where they stand in an
//! element the `attributes` crate's, how a loss becomes a gap the producer's. Nothing is allocated after `new`.

mod flow;
mod flows;

use crate::batch::{Batch, BatchRow, Content};
use crate::framing::MAX_HEADER;
use flows::Flows;
use holdfast_attributes::{Counter, Cycle, Element};
use holdfast_base::Timestamp;
use holdfast_format::Flags;
use std::time::Duration;

/// How long a loss waits for others, and for the kernel's count of what it dropped itself.
const GATHER: Duration = Duration::from_secs(1);

/// What was lost here and never explained a hole is forgotten after this.
const FORGET: Duration = Duration::from_secs(10);

/// Elements that never came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Missing {
    /// How many; `None`: nobody knows.
    pub(crate) elements: Option<u64>,
    /// When the last one before them came.
    pub(crate) from: Timestamp,
    /// When the first one behind them came.
    pub(crate) to: Timestamp,
}

impl Missing {
    fn and(self, more: &Self) -> Self {
        let elements = self.elements.zip(more.elements).map(|(one, other)| one.saturating_add(other));
        Self { elements, from: self.from.min(more.from), to: self.to.max(more.to) }
    }
}

/// Losses that wait: those of known size, and those of unknown.
#[derive(Clone, Copy, Debug, Default)]
struct PendingLosses {
    known: Option<Missing>,
    unknown: Option<Missing>,
}

impl PendingLosses {
    fn add(&mut self, missing: Missing) {
        let place = if missing.elements.is_some() { &mut self.known } else { &mut self.unknown };
        *place = Some(place.map_or(missing, |before| before.and(&missing)));
    }

    fn is_empty(&self) -> bool {
        self.known.is_none() && self.unknown.is_none()
    }
}

/// Elements that were lost here and of which nothing is known but how many: each may be one of those that a hole tells of.
#[derive(Clone, Copy, Debug, Default)]
struct LocalLosses {
    elements: u64,
    from: Timestamp,
    until: Timestamp,
}

impl LocalLosses {
    fn add(&mut self, elements: u64, from: Timestamp, until: Timestamp) {
        if self.elements == 0 || from.since(self.until) > FORGET {
            *self = Self { elements: 0, from, until };
        }
        self.elements = self.elements.saturating_add(elements);
        (self.from, self.until) = (self.from.min(from), self.until.max(until));
    }

    /// What is left of a loss without them; nothing is left of one of unknown size in whose time any of them fell.
    fn explain(&mut self, missing: Missing) -> Option<Missing> {
        if self.elements == 0 || self.until < missing.from || missing.to < self.from {
            return Some(missing);
        }
        let elements = missing.elements?;
        let ours = self.elements.min(elements);
        self.elements -= ours;
        (elements > ours).then_some(Missing { elements: Some(elements - ours), ..missing })
    }
}

/// The counters of one source's elements.
#[derive(Debug)]
pub(crate) struct Upstream {
    counter: Counter,
    cycle: Cycle,
    flows: Flows,
    told: PendingLosses,
    /// Since when something waits: a loss, or a hole that may still be filled.
    since: Option<Timestamp>,
    /// When losses were told last.
    taken: Timestamp,
    ours: LocalLosses,
    /// The beginning of an element that came in pieces, as far as the counter reaches; and the bytes that came of it.
    window: Vec<u8>,
    came: u64,
    header: Vec<u8>,
}

impl Upstream {
    pub(crate) fn new(counter: Counter) -> Self {
        Self {
            cycle: counter.cycle(),
            window: Vec::with_capacity(counter.reach()),
            header: Vec::with_capacity(MAX_HEADER),
            counter,
            flows: Flows::new(),
            told: PendingLosses::default(),
            since: None,
            taken: Timestamp::MIN,
            ours: LocalLosses::default(),
            came: 0,
        }
    }

    /// Looks at the numbers of all elements that end in `batch`.
    pub(crate) fn look(&mut self, batch: &Batch) {
        for row in batch.rows() {
            let (meta, data) = batch.bytes_of(row).split_at_checked(row.meta.into()).unwrap_or_default();
            match row.content {
                Content::Whole => self.count(row, meta, data, data.len() as u64),
                Content::First { .. } => {
                    self.window.clear();
                    self.header.clear();
                    self.came = 0;
                    self.take_in(meta, data);
                }
                Content::Middle => self.take_in(meta, data),
                Content::Last => {
                    self.take_in(meta, data);
                    let (window, header) =
                        (std::mem::take(&mut self.window), std::mem::take(&mut self.header));
                    self.count(row, &header, &window, self.came);
                    (self.window, self.header) = (window, header);
                }
                Content::Abort | Content::Gap | Content::Note => {}
            }
        }
    }

    /// Takes in a piece.
    fn take_in(&mut self, meta: &[u8], data: &[u8]) {
        let more = meta.len().min(MAX_HEADER - self.header.len());
        self.header.extend_from_slice(&meta[..more]);
        let more = data.len().min(self.counter.reach() - self.window.len());
        self.window.extend_from_slice(&data[..more]);
        self.came += data.len() as u64;
    }

    fn count(&mut self, row: &BatchRow, meta: &[u8], data: &[u8], size: u64) {
        let (at, header) = (row.arrival, row.flags.has(Flags::HEADER).then_some(meta));
        let data = &data[..data.len().min(self.counter.reach())];
        let element = Element { data, size, original_size: size, link_type: None, header };
        let Some(count) = self.counter.read(&element) else { return };
        let waits = self.flows.count(self.cycle, &count, at, &mut self.told);
        if self.since.is_none() && (waits || !self.told.is_empty()) {
            self.since = Some(at.max(self.taken));
        }
    }

    /// What comes from here on is numbered anew.
    pub(crate) fn begin_anew(&mut self) {
        self.flows.forget(&mut self.told);
    }

    /// Elements were lost here between two times: by the kernel, or for want of room.
    pub(crate) fn lost_here(&mut self, elements: u64, from: Timestamp, until: Timestamp) {
        self.ours.add(elements, from, until);
    }

    /// After how long [`Upstream::take`] has something to do; `None`: not before something comes.
    pub(crate) fn due_in(&self, now: Timestamp) -> Option<Duration> {
        Some(GATHER.saturating_sub(now.since(self.since?)))
    }

    /// The losses that are certain by now, of known and of unknown size, less what was lost here. At the end of all time
    /// that is every hole there is.
    pub(crate) fn take(&mut self, now: Timestamp) -> [Option<Missing>; 2] {
        let waits = self.flows.rest(now, &mut self.told);
        (self.since, self.taken) = (waits.then_some(now), now);
        let PendingLosses { known, unknown } = std::mem::take(&mut self.told);
        // Both were waiting all the time: the same losses may be behind either.
        let mut ours = self.ours;
        let known = known.and_then(|missing| self.ours.explain(missing));
        [known, unknown.and_then(|missing| ours.explain(missing))]
    }
}

#[cfg(test)]
mod tests;
