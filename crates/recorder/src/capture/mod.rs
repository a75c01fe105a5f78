//! Capture core: batches from sources into slots, slots to the ring, one step at a time.
//!
//! One owner, one thread, no waiting: the recorder runs it over a lane in real time, tests and the simulator over a
//! faulty disk in virtual time. It allocates nothing after [`Capture::start`], except for what an order, or a preamble or a
//! schema that comes with the input, leaves in the ring, and for the columns of that schema.
//! What clients may ask of it is in `asks`; threads, clocks and sockets are not known here.

mod asks;
mod end;
mod feed;
mod opening;

use asks::WaitingOrder;
pub use asks::{Answer, Ask, NotRead, ReadOrigin, Stats};
pub use end::Phase;
pub use opening::{CRASH_STEP, Stream};

use feed::Feed;
use holdfast_base::{Age, ByteSize, Clock, LaneNo, Sequence, SlotNo, StreamId, Timestamp};
use holdfast_format::{Counters, Cursor, Entry, FormatError, SlotFlags, SlotId};
use holdfast_ingest::{Inlet, Packer, Pressure};
use holdfast_media::{Buffer, Disk};
use holdfast_ring::{Bounds, Driver, Excess, OpenBrief, Rates, SealedSlot};
use opening::Opening;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// How far the wall clock may leave arrival time in a second before that is recorded as a step: more than NTP slews.
const CLOCK_STEP: Duration = Duration::from_millis(10);

/// Captures into one ring.
pub struct Capture<D: Disk> {
    driver: Driver<D>,
    packer: Packer<Buffer>,
    feeds: Vec<Feed>,
    /// What the feeds' streams may bring, where something is promised.
    rates: Option<Rates>,
    /// Whose turn it is.
    turn: usize,
    /// Whether what is there finds no room.
    full: bool,
    /// When it was last looked what there is.
    looked: Option<Timestamp>,
    away: Away,
    /// The dictionary of the next slot: the feeds' streams first, in their order.
    entries: Vec<Entry>,
    /// Where the streams' counters go at a seal.
    counted: Vec<(StreamId, u32, Counters)>,
    pressure: Arc<Pressure>,
    opening: Opening,
    phase: Phase,
    /// The run ends: clients get neither reads nor orders.
    ending: bool,
    /// A job's step that was refused.
    job_refused: bool,
    /// Orders that wait for what arrived before them.
    orders: VecDeque<WaitingOrder>,
    flush: Duration,
    /// When bytes without a row were last given one.
    cut: Timestamp,
    /// Wall clock minus arrival time, when last looked at.
    offset: i64,
    slots_sealed: u64,
    /// The first of them.
    first: Option<Sequence>,
    /// Bytes of slots on their way that readers were given since the last step.
    copied: usize,
}

/// The longest time in which it did not look what there is: asleep, at work, or without a processor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Away {
    /// So long.
    pub longest: Duration,
    /// When it came back.
    pub since: Timestamp,
}

/// What a step came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Whether there is more to do at once.
    pub busy: bool,
    /// Whether nothing will ever be left to do.
    pub done: bool,
}

impl<D: Disk> Capture<D> {
    /// Joins a driver that is starting with the inlets of its streams' sources, in the same order as `streams`, of
    /// which those behind the inlets have no source in this run. Refused where their columns do not fit the slots.
    pub fn start(
        driver: Driver<D>,
        streams: &[Stream],
        inlets: Vec<Inlet>,
        pressure: Arc<Pressure>,
        flush: Duration,
        clock: &dyn Clock,
    ) -> Result<Self, FormatError> {
        let (now, wall) = (clock.now(), clock.wall());
        let slot_bytes = driver.superblock().geometry.slot_bytes;
        let mut packer = Packer::new(slot_bytes, streams.len().max(1));
        let entries: Vec<Entry> = streams.iter().map(|stream| stream.entry).collect();
        packer.prepare(&entries)?;
        let opening = Opening::new(streams, now);
        let feeds = inlets.into_iter().zip(streams).map(|(inlet, stream)| Feed::new(inlet, stream)).collect();
        Ok(Self {
            driver,
            packer,
            feeds,
            rates: None,
            turn: 0,
            full: false,
            looked: None,
            away: Away::default(),
            counted: Vec::with_capacity(entries.len()),
            entries,
            pressure,
            opening,
            phase: Phase::Recording,
            ending: false,
            job_refused: false,
            orders: VecDeque::with_capacity(16),
            flush,
            cut: now,
            offset: wall.0.saturating_sub(now.0),
            slots_sealed: 0,
            first: None,
            copied: 0,
        })
    }

    /// Holds the feeds' streams, by their numbers, to what they declared.
    pub fn hold_to(&mut self, rates: Rates) {
        self.rates = Some(rates);
    }

    /// What a feed's stream brought beyond what it declared, and was recorded all the same.
    pub fn excess(&self, feed: usize) -> Excess {
        self.rates.as_ref().map(|rates| rates.excess(feed)).unwrap_or_default()
    }

    /// When there is something to do again though nothing should end or arrive until then.
    pub fn rests_until(&self) -> Option<Timestamp> {
        let held = self.feeds.iter().filter_map(|feed| feed.held).min();
        held.into_iter().chain(self.driver.rests_until()).min()
    }

    /// The driver, to look at.
    pub fn driver(&self) -> &Driver<D> {
        &self.driver
    }

    /// The disk, for tests that break it.
    pub fn disk_mut(&mut self) -> &mut D {
        self.driver.disk_mut()
    }

    /// Ends where it stands, as a crash does, and gives the disk back.
    pub fn into_disk(self) -> D {
        self.driver.into_disk()
    }

    /// One round: takes in what the disk has done, waiting for that at most `wait`, and one batch of every source.
    pub fn step(&mut self, now: Timestamp, wait: Duration) -> Step {
        self.copied = 0;
        self.look(now);
        if !self.ending && self.feeds.iter().all(|feed| feed.inlet.has_ended()) {
            self.drain();
        }
        self.poll(now, wait);
        self.cut_old(now);
        self.tell_holes(now);
        self.take_preambles(now);
        let fed = self.feed_round(now);
        self.give_orders(now);
        match self.driver.ring().starved() {
            None if self.full => self.pressure.no_buffer(),
            None => self.pressure.room(),
            Some(holdfast_format::Cause::DeviceAbsent) => self.pressure.device_absent(),
            Some(_) => self.pressure.no_slot(),
        }
        if self.driver.wants_seal(now) {
            self.seal(now, SlotFlags::SHORT);
        }
        let ended = self.advance_end(now);
        Step { busy: fed || ended, done: self.phase == Phase::Done }
    }

    /// Takes note of how long it was away.
    fn look(&mut self, now: Timestamp) {
        let longest = now.since(self.looked.replace(now).unwrap_or(now));
        if longest > self.away.longest {
            self.away = Away { longest, since: now };
        }
    }

    /// How long it was away from its queues.
    pub fn away(&self) -> Away {
        self.away
    }

    fn poll(&mut self, now: Timestamp, wait: Duration) {
        let brief = self.brief();
        let Self { driver, packer, .. } = self;
        driver.poll(now, wait, brief, &mut |from, writer| {
            if !packer.is_open() {
                return (from, true);
            }
            if from == Cursor::default() && !writer.push(&packer.slot().open_record()) {
                return (from, false);
            }
            packer.journal_delta(from, writer)
        });
    }

    /// What the ring must know of the open slot.
    fn brief(&self) -> Option<OpenBrief> {
        let slot = self.packer.is_open().then(|| self.packer.slot())?;
        Some(OpenBrief {
            sequence: slot.sequence(),
            bounds: self.bounds(),
            end: slot.cursor(),
            room: slot.room() as u64,
        })
    }

    fn bounds(&self) -> Bounds {
        Bounds::of(self.packer.slot().summaries())
    }

    /// Gives bytes a row that have waited for the rest of their element: only rows are journaled.
    fn cut_old(&mut self, now: Timestamp) {
        if now.since(self.cut) >= self.flush / 2 {
            self.cut = now;
            if self.packer.slot().uncommitted() > 0 {
                self.packer.cut();
            }
        }
    }

    /// Takes note of what a crash has taken out of the middle: before the first slot is opened, and when the check behind capture finds
    /// more; that is written at once.
    fn tell_holes(&mut self, now: Timestamp) {
        while let Some(hole) = self.driver.take_crash_gap() {
            if let Some(at) = self.entries.iter().position(|entry| entry.stream == hole.stream) {
                self.opening.add(at as u16, &hole, now);
            }
        }
        if self.opening.is_due()
            && self.packer.is_open()
            && self.packer.slot().room() > 2 * self.opening.bytes()
        {
            self.opening.write(&mut self.packer);
        }
    }

    /// Makes sure that a slot is open; `false` while there is no sequence, or no buffer for one where its source can or cannot wait.
    fn ensure_open(&mut self, can_wait: bool, now: Timestamp) -> bool {
        if self.packer.is_open() {
            return true;
        }
        if !self.driver.has_buffer(can_wait) {
            return false;
        }
        let Some(sequence) = self.driver.ring_mut().open_next(now) else { return false };
        let Some(buffer) = self.driver.take_buffer() else { return false };
        let superblock = self.driver.superblock();
        let id = SlotId {
            ring: superblock.ring,
            group: superblock.group,
            lane: LaneNo(0),
            sequence,
            epoch: self.driver.ring().epoch(),
            age: Age(sequence.0),
        };
        match self.packer.open(buffer, id, now, &self.entries) {
            Ok(()) => {
                self.opening.write(&mut self.packer);
                true
            }
            // The entries were accepted by the ring and the buffer is a slot's: this cannot be. Capture goes on with
            // the next sequence rather than end the process.
            Err((buffer, _)) => {
                self.driver.give_buffer(buffer);
                false
            }
        }
    }

    /// Seals the open slot and hands it to the ring.
    fn seal(&mut self, now: Timestamp, flags: SlotFlags) {
        let key = self.driver.key().clone();
        let Some((buffer, sealed)) = self.packer.seal(&key, SlotNo(0), now, flags) else { return };
        let bounds = self.bounds();
        let slot = self.packer.slot();
        self.counted.clear();
        for (number, entry) in self.entries.iter_mut().enumerate() {
            (entry.counters, entry.began) = (slot.counters(number as u16), slot.began(number as u16));
            self.counted.push((entry.stream, entry.preamble, entry.counters));
        }
        let age = slot.id().age;
        let moving = SealedSlot { sequence: sealed.sequence, age, bytes: sealed.bytes, bounds };
        self.driver.sealed(buffer, moving, &self.counted, now);
        self.slots_sealed += 1;
        self.first = self.first.or(Some(sealed.sequence));
        // Streams without a source had their say in the first slot, unless there may be more to be told of them.
        if !self.driver.may_find_holes() && !self.opening.is_due() {
            self.entries.truncate(self.feeds.len().max(1));
        }
    }

    /// Compares the clocks; to be called about once a second.
    pub fn look_at_clock(&mut self, now: Timestamp, wall: Timestamp) {
        let before = Timestamp(now.0.saturating_add(self.offset));
        let moved = Duration::from_nanos(wall.0.abs_diff(before.0));
        if moved > CLOCK_STEP {
            self.driver.ring_mut().note_clock_step(now, before, wall);
        }
        self.offset = wall.0.saturating_sub(now.0);
    }

    /// Slots sealed in this run.
    pub fn slots_sealed(&self) -> u64 {
        self.slots_sealed
    }

    /// What a feed's stream has come to, what is open included.
    pub fn counters(&self, feed: usize) -> Counters {
        if self.packer.is_open() {
            self.packer.slot().counters(feed as u16)
        } else {
            self.entries.get(feed).map(|entry| entry.counters).unwrap_or_default()
        }
    }

    /// What a feed's stream had come to when the run began.
    pub fn began(&self, feed: usize) -> Counters {
        self.feeds.get(feed).map(|feed| feed.began).unwrap_or_default()
    }

    /// Bytes of memory that a capture over slots of `slot_bytes` takes beside its slot buffers.
    pub fn own_memory(slot_bytes: u64) -> ByteSize {
        // Builder, commit, scan window.
        ByteSize(slot_bytes.min(1 << 20) + (slot_bytes / 32) + (3 << 20))
    }
}
