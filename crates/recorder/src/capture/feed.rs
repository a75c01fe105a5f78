//! Feed of one source into the open slot: batches in order, each until it is packed or the slot is full.

use super::{Capture, Stream};
use holdfast_base::Timestamp;
use holdfast_format::{Builder, Classes, Counters, Entry, SlotFlags};
use holdfast_ingest::{Batch, BatchPosition, Inlet, NewAttributes, Progress};
use holdfast_media::Disk;
use holdfast_ring::{NewSchema, NewStream, Piece, RateVerdict, Refusal};

/// One source, as the capture thread sees it.
pub(super) struct Feed {
    pub(super) inlet: Inlet,
    /// A batch of which a part is packed, or none.
    pub(super) batch: Option<(Batch, BatchPosition)>,
    /// The stream's counters when the run began.
    pub(super) began: Counters,
    pub(super) lead: Lead,
    /// The record of a new schema is on its way to the medium; its first batch waits.
    adopting: bool,
    /// The batch in part is let through, whatever else comes.
    passed: bool,
    /// It waits, beyond the declared rate, until then at most.
    pub(super) held: Option<Timestamp>,
}

/// Where a preamble is that comes with the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lead {
    /// None is awaited.
    None,
    /// It has not come.
    Awaited,
    /// It has, and its record is on its way to the medium.
    Recording,
}

impl Feed {
    pub(super) fn new(inlet: Inlet, stream: &Stream) -> Self {
        let lead = if inlet.leads() { Lead::Awaited } else { Lead::None };
        Self {
            inlet,
            batch: None,
            began: stream.entry.counters,
            lead,
            adopting: false,
            passed: false,
            held: None,
        }
    }

    /// Whether something waits, beyond the declared rate or for its schema, that arrived until then.
    pub(super) fn holds_back(&self, until: Timestamp) -> bool {
        let first = self.batch.as_ref().filter(|_| self.held.is_some() || self.adopting);
        first.and_then(|(batch, _)| batch.rows().first()).is_some_and(|row| row.arrival <= until)
    }

    /// Whether nothing is there and nothing will come.
    pub(super) fn is_finished(&self) -> bool {
        self.batch.is_none() && self.inlet.is_finished()
    }
}

impl<D: Disk> Capture<D> {
    /// One batch of every source that has one. When there is no room, the next round begins with the one that found none.
    pub(super) fn feed_round(&mut self, now: Timestamp) -> bool {
        let mut fed = false;
        self.full = false;
        for _ in 0..self.feeds.len() {
            match self.feed_one(self.turn, now) {
                Fed::Packed => fed = true,
                Fed::Nothing | Fed::Held => {}
                Fed::NoRoom => {
                    self.full = true;
                    return fed;
                }
            }
            self.turn = (self.turn + 1) % self.feeds.len();
        }
        fed
    }

    /// All batches that wait now, as far as there is room: never more than the sources have.
    pub(super) fn feed_waiting(&mut self, now: Timestamp) {
        let most = self.feeds.iter().map(|feed| feed.inlet.waiting() + 1).max().unwrap_or(0);
        for _ in 0..most {
            if !self.feed_round(now) {
                return;
            }
        }
    }

    /// Takes preambles that have come, and lets a source go on once its own is durable: what is behind it must never be
    /// found without it.
    pub(super) fn take_preambles(&mut self, now: Timestamp) {
        for at in 0..self.feeds.len() {
            match self.feeds[at].lead {
                Lead::None => {}
                Lead::Awaited => {
                    let Some(preamble) = self.feeds[at].inlet.take_preamble() else { continue };
                    match self.put_in_force(at, &preamble, now) {
                        Ok(()) => self.feeds[at].lead = Lead::Recording,
                        Err(refusal) => {
                            self.feeds[at].lead = Lead::None;
                            self.feeds[at].inlet.answer_preamble(Err(refusal.to_string()));
                        }
                    }
                }
                Lead::Recording => {
                    if self.driver.ring().is_recorded(self.entries[at].stream) {
                        self.feeds[at].lead = Lead::None;
                        self.feeds[at].inlet.answer_preamble(Ok(()));
                    }
                }
            }
        }
    }

    /// Puts a preamble in force from the next slot on. This allocates, once a source: what the ring keeps.
    fn put_in_force(&mut self, at: usize, preamble: &[u8], now: Timestamp) -> Result<(), Refusal> {
        let Entry { stream, kind, preamble: version, .. } = self.entries[at];
        if self.driver.ring().preamble(stream, version) == Some(preamble) {
            return Ok(());
        }
        let Some(known) = self.driver.ring().stream_looks().find(|known| known.id == stream) else {
            return Ok(());
        };
        let new = NewStream {
            name: &known.name,
            kind,
            framing: &known.framing,
            preamble: Some(preamble),
            schema: None,
        };
        let version = self.driver.ring_mut().add_stream(&new, now)?.preamble;
        // A slot has one version of it.
        self.seal(now, SlotFlags::SHORT);
        self.entries[at].preamble = version;
        Ok(())
    }

    /// Puts an inferred schema in force. False while its record is on its way to the medium: no slot may have columns that
    /// a reader could not name. This allocates, once a source. A schema that the ring refuses is dropped, with its cells.
    fn adopt(&mut self, at: usize, new: &NewAttributes, now: Timestamp) -> bool {
        let Entry { stream, .. } = self.entries[at];
        if !self.feeds[at].adopting {
            self.feeds[at].adopting = self.record_schema(at, new, now).is_ok();
            return !self.feeds[at].adopting;
        }
        if !self.driver.ring().is_recorded(stream) {
            return false;
        }
        self.feeds[at].adopting = false;
        // A slot has one version of it.
        self.seal(now, SlotFlags::SHORT);
        let before = std::mem::replace(&mut self.entries[at].classes, new.classes);
        if self.packer.prepare(&self.entries).is_err() {
            self.entries[at].classes = before;
            // These columns fitted before.
            let _ = self.packer.prepare(&self.entries);
            return true;
        }
        let _ = self.feeds[at].inlet.counters().schema.set(new.text.clone());
        true
    }

    /// Hands the record of a stream's new schema to the ring.
    fn record_schema(&mut self, at: usize, new: &NewAttributes, now: Timestamp) -> Result<(), Refusal> {
        let Entry { stream, kind, preamble, .. } = self.entries[at];
        let columns =
            |(number, entry): (usize, &Entry)| if number == at { new.classes } else { entry.classes };
        let classes: Vec<Classes> = self.entries.iter().enumerate().map(columns).collect();
        let slot_bytes = self.driver.superblock().geometry.slot_bytes;
        Builder::column_memory(slot_bytes, &classes).map_err(|error| Refusal::Wrong(error.to_string()))?;
        let preamble = self.driver.ring().preamble(stream, preamble).map(<[u8]>::to_vec);
        let known = self.driver.ring().stream_looks().find(|known| known.id == stream);
        let Some(known) = known else { return Err(Refusal::Wrong("the stream is not there".to_owned())) };
        let new = NewStream {
            name: &known.name,
            kind,
            framing: &known.framing,
            preamble: preamble.as_deref(),
            schema: Some(NewSchema { text: &new.text, classes: new.classes }),
        };
        self.driver.ring_mut().add_stream(&new, now).map(drop)
    }

    /// Whether a batch is let through: at the declared rate, or because the others leave room. Once it is, all of it is.
    fn passes(&mut self, at: usize, batch: &Batch, now: Timestamp) -> bool {
        let Some(rates) = &mut self.rates else { return true };
        let feed = &mut self.feeds[at];
        if !feed.passed {
            let room = self.packer.is_open().then(|| self.packer.slot().room() as u64);
            let (bytes, elements) = batch.weight();
            let piece = Piece { arrived: batch.arrived().unwrap_or(now), bytes, elements };
            let verdict = rates.pass(at, &piece, self.driver.spare(room, now), now);
            feed.inlet.set_beyond(verdict != RateVerdict::Within);
            feed.held = match verdict {
                RateVerdict::Held(until) => Some(until),
                RateVerdict::Within | RateVerdict::Beyond => None,
            };
            feed.passed = feed.held.is_none();
        }
        feed.passed
    }

    fn feed_one(&mut self, at: usize, now: Timestamp) -> Fed {
        let feed = &mut self.feeds[at];
        let Some((mut batch, mut place)) =
            feed.batch.take().or_else(|| Some((feed.inlet.take()?, BatchPosition::default())))
        else {
            return Fed::Nothing;
        };
        if let Some(new) = batch.new_attributes() {
            if !self.adopt(at, new, now) {
                self.feeds[at].batch = Some((batch, place));
                return Fed::Held;
            }
            batch.take_attributes();
        }
        // Those of a schema that was refused.
        batch.limit_columns(self.entries[at].classes.len());
        if !self.passes(at, &batch, now) {
            self.feeds[at].batch = Some((batch, place));
            return Fed::Held;
        }
        loop {
            let can_wait = self.feeds[at].inlet.can_wait();
            if !self.ensure_open(can_wait, now) {
                self.feeds[at].batch = Some((batch, place));
                // Others may have what is kept from it.
                return if can_wait && self.driver.buffers().1 > 0 { Fed::Held } else { Fed::NoRoom };
            }
            let before = self.packer.meta_left_out();
            let progress = self.packer.push(at as u16, &batch, place);
            self.feeds[at].inlet.left_options_out(self.packer.meta_left_out() - before);
            match progress {
                Progress::Done => {
                    self.feeds[at].passed = false;
                    self.feeds[at].inlet.give_back(batch);
                    return Fed::Packed;
                }
                Progress::Full(next) => {
                    place = next;
                    self.seal(now, SlotFlags::default());
                }
            }
        }
    }
}

enum Fed {
    Packed,
    Nothing,
    NoRoom,
    /// It waits while others go on: it is beyond its declared rate and what is left does not last for it, or it can wait and the disk
    /// has enough to do.
    Held,
}
