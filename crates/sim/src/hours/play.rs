//! Lets an hour pass.

use super::lane::{Errand, Lane};
use super::readers::{AHEAD, Habit};
use super::scene::{Places, Scene};
use super::source::Source;
use holdfast_base::Timestamp;
use holdfast_media::drive::{Drive, Kind};
use holdfast_ring::{Next, Policy, Reads, Schedule, View};
use std::collections::VecDeque;
use std::time::Duration;

/// How an hour went.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Verdict {
    /// Bytes that came.
    pub arrived: f64,
    /// Bytes of these that found no buffer.
    pub lost: f64,
    /// The least slack, in the schedule's own account.
    pub margin: Duration,
    /// The most buffers in use at once.
    pub most_buffers: u32,
    /// Slots written.
    pub slots: u64,
    /// The greatest age of a slot's first byte when the slot was on the medium.
    pub oldest: Duration,
    /// Commits written.
    pub commits: u64,
    /// Bytes read.
    pub read: u64,
    /// Reads that failed.
    pub failed: u64,
    /// The longest that a read took from asking to answer.
    pub longest_read: Duration,
    /// Time that the lane spent on slots and commits, going there included.
    pub writing: Duration,
    /// Time that it spent on reads, going there included.
    pub reading: Duration,
}

/// What capture holds.
#[derive(Debug)]
struct Capture {
    slot: f64,
    free: u32,
    /// Bytes and opening of the open slot.
    open: Option<(f64, f64)>,
    /// Since when the full slots have had what the journal did not take, the oldest first.
    full: VecDeque<f64>,
    /// Seconds in which a slot fills; what waits for longer goes to the journal.
    period: f64,
    lost: f64,
    arrived: f64,
}

impl Capture {
    fn room(&self) -> f64 {
        self.open.map_or(0.0, |(bytes, _)| self.slot - bytes)
    }

    fn arrive(&mut self, mut bytes: f64, now: f64) {
        self.arrived += bytes;
        while bytes > 0.0 {
            let Some((had, opened)) = self.open else {
                if self.free == 0 {
                    self.lost += bytes;
                    return;
                }
                self.free -= 1;
                self.open = Some((0.0, now));
                continue;
            };
            let taken = bytes.min(self.slot - had);
            bytes -= taken;
            // What rounding leaves is not a slot's worth of anything.
            if self.slot - had - taken < 0.5 {
                self.full.push_back(opened.max(now - self.period));
                self.open = None;
            } else {
                self.open = Some((had + taken, opened));
            }
        }
    }
}

/// What the journal wants.
#[derive(Debug)]
struct Journal {
    /// Bytes that wait for a commit.
    owed: u64,
    /// Slots named and not begun yet, and how many are named at once.
    runway: u64,
    named: u64,
    at: u64,
    /// When gains, and orders, come next.
    gains: f64,
    orders: f64,
}

/// Bytes of an ordinary commit: the runway and a few records.
const RECORDS: u64 = 8 << 10;

/// Seconds between orders.
const ORDERS: f64 = 5.0;

fn seconds(at: Timestamp) -> f64 {
    at.0 as f64 / 1e9
}

/// The first nanosecond at or after it.
fn stamp(seconds: f64) -> Timestamp {
    Timestamp((seconds * 1e9).ceil().min(9e18) as i64)
}

/// Plays a scene under the policy that admission gives it.
///
/// # Panics
/// When the scene was not admitted: then there is nothing to be shown.
pub fn play(scene: &Scene) -> Verdict {
    let policy = Policy::new(Some((&scene.measured, &scene.load)), &scene.shape);
    assert!(policy.promise.is_some(), "seed {}: the scene asks for more than is admitted", scene.seed);
    Hour::new(scene, policy).run()
}

/// An hour under way.
struct Hour<'a> {
    scene: &'a Scene,
    now: Timestamp,
    schedule: Schedule,
    reads: Reads,
    lane: Lane,
    source: Source,
    capture: Capture,
    journal: Journal,
    readers: Vec<super::Reader>,
    /// When each read that is not answered was asked for.
    asked: Vec<(u64, Timestamp)>,
    next_read: u64,
    begun: u64,
    slots: u64,
    verdict: Verdict,
}

impl<'a> Hour<'a> {
    fn new(scene: &'a Scene, policy: Policy) -> Self {
        let slot = scene.shape.slot.0;
        let buffers = u64::from(policy.buffers);
        let visit = 16.0 * scene.measured.reposition.as_secs_f64() * scene.measured.read.0 as f64;
        let named = (2 * buffers).max(16);
        let (gains, orders) = (scene.shape.flush.as_secs_f64(), ORDERS);
        Self {
            scene,
            now: Timestamp(0),
            schedule: Schedule::new(policy),
            reads: Reads::new(64, visit as u64),
            lane: Lane::new(Drive::new(scene.drive.clone(), scene.seed)),
            source: Source::new(scene.load.rate.0 as f64, scene.burst),
            capture: Capture {
                slot: slot as f64,
                free: policy.buffers,
                open: None,
                full: VecDeque::new(),
                period: slot as f64 / scene.load.rate.0 as f64,
                lost: 0.0,
                arrived: 0.0,
            },
            journal: Journal { owed: 0, runway: named, named, at: 0, gains, orders },
            readers: scene.readers.clone(),
            asked: Vec::with_capacity(64),
            next_read: 0,
            begun: 0,
            slots: scene.slots(),
            verdict: Verdict::default(),
        }
    }

    fn run(mut self) -> Verdict {
        let end = Timestamp(0) + self.scene.lasts;
        while self.now < end {
            self.owe();
            self.ask();
            let rest = self.begin();
            let to = self.next_event(rest).min(end);
            let bytes = self.source.advance(seconds(to));
            self.now = to;
            self.capture.arrive(bytes, seconds(to));
            self.take_in();
        }
        let margin = self.schedule.margin().map_or(Duration::ZERO, |(least, _)| least);
        Verdict {
            arrived: self.capture.arrived,
            lost: self.capture.lost,
            margin,
            most_buffers: self.schedule.most_buffers().0,
            ..self.verdict
        }
    }

    fn next_event(&self, rest: Option<Timestamp>) -> Timestamp {
        let room = if self.capture.open.is_some() { self.capture.room() } else { self.capture.slot };
        let mut next = stamp(self.source.next_event(room.max(0.5)));
        let ready = |reader: &super::Reader| {
            let waits = matches!(reader.habit, Habit::Paced(_)) && reader.asked < AHEAD;
            (waits && reader.ready > seconds(self.now)).then(|| stamp(reader.ready))
        };
        let timers = [self.journal.gains, self.journal.orders].map(stamp);
        let others = rest.into_iter().chain(self.lane.next_end()).chain(timers);
        for time in others.chain(self.readers.iter().filter_map(ready)) {
            next = next.min(time);
        }
        next.max(Timestamp(self.now.0 + 1))
    }

    /// What the journal wants by now.
    fn owe(&mut self) {
        let now = seconds(self.now);
        let scene = self.scene;
        if now >= self.journal.gains {
            self.journal.gains = now + scene.shape.flush.as_secs_f64();
            // A slot that fills soon enough skips the journal.
            let fills = scene.shape.slot.0 as f64 / scene.load.rate.0 as f64;
            if fills > 3.0 * scene.shape.slot.0 as f64 / scene.measured.write.0 as f64 {
                self.journal.owed += (scene.load.rate.0 as f64 * scene.shape.flush.as_secs_f64()) as u64;
            }
        }
        if now >= self.journal.orders {
            self.journal.orders = now + ORDERS;
            self.journal.owed += RECORDS;
        }
        if self.journal.runway <= self.journal.named / 2 {
            self.journal.owed = self.journal.owed.max(RECORDS);
        }
    }

    fn ask(&mut self) {
        let (now, slot) = (seconds(self.now), self.scene.shape.slot.0);
        for reader in &mut self.readers {
            while reader.asked < AHEAD && (reader.ready <= now || !matches!(reader.habit, Habit::Paced(_))) {
                let quantum = u64::from(self.scene.shape.quantum);
                let mut wanted = reader.ask(self.next_read, now, self.slots, slot, quantum);
                let (place, at) = (wanted.offset >> 32, wanted.offset & u64::from(u32::MAX));
                wanted.offset = offset(place, slot) + at;
                if self.reads.push(wanted).is_err() {
                    reader.asked -= 1;
                    break;
                }
                self.asked.push((self.next_read, self.now));
                self.next_read += 1;
            }
        }
    }

    /// Begins what the schedule says; until when it rests.
    fn begin(&mut self) -> Option<Timestamp> {
        loop {
            let full = (self.capture.full.len() as u64).min(self.journal.runway) as u32;
            let view = View {
                now: self.now,
                full,
                oldest: self.capture.full.front().map_or(self.now, |opened| stamp(*opened)),
                free: self.capture.free,
                room: self.capture.room() as u64,
                writing: self.lane.writing,
                committing: self.lane.committing,
                commit: self.journal.owed > 0,
                reading: self.lane.reading,
                reads: !self.reads.is_empty(),
            };
            let slot = self.scene.shape.slot.0;
            match self.schedule.next(&view) {
                Next::Rest(until) => return until.filter(|until| *until > self.now),
                Next::Write => {
                    let opened = self.capture.full.pop_front()?;
                    let place = offset(self.place(), slot);
                    self.begun += 1;
                    self.journal.runway -= 1;
                    self.start(Errand::Slot(opened), Kind::Write, place, slot);
                }
                Next::Commit { most } => {
                    let bytes = self.journal.owed.min(most).min(slot.min(1 << 20)).next_multiple_of(4096);
                    self.journal.owed = self.journal.owed.saturating_sub(bytes);
                    let at = (1 << 20) + self.journal.at % (2 * slot);
                    self.journal.at += bytes;
                    self.start(Errand::Commit, Kind::Write, at, bytes);
                }
                Next::Read => {
                    let wanted = self.reads.pick()?;
                    self.start(Errand::Read(wanted), Kind::Read, wanted.offset, wanted.bytes.into());
                }
            }
        }
    }

    fn start(&mut self, errand: Errand, kind: Kind, offset: u64, len: u64) {
        let free = self.lane.drive().free().max(self.now);
        let done = self.lane.begin(errand, kind, offset, len, self.now);
        let spent = done.since(free);
        match errand {
            Errand::Read(_) => self.verdict.reading += spent,
            Errand::Slot(_) | Errand::Commit => self.verdict.writing += spent,
        }
    }

    /// Where the next slot goes.
    fn place(&self) -> u64 {
        let (count, slots) = (self.begun, self.slots);
        match self.scene.places {
            Places::All => count % slots,
            Places::Scattered(free) => {
                let one = count % free.min(slots);
                ((one.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20) % slots).min(slots - 1)
            }
            Places::Ends => (count % 2) * (slots - 1),
            Places::Torn => {
                let step = count / 2 % (slots / 2);
                if count.is_multiple_of(2) { step } else { slots - 1 - step }
            }
        }
    }

    fn take_in(&mut self) {
        while let Some((errand, fault)) = self.lane.ended(self.now) {
            match errand {
                Errand::Slot(opened) => {
                    self.capture.free += 1;
                    self.verdict.slots += 1;
                    self.verdict.oldest = self.verdict.oldest.max(self.now.since(stamp(opened)));
                }
                Errand::Commit => {
                    self.verdict.commits += 1;
                    self.journal.runway = self.journal.named;
                }
                Errand::Read(wanted) => {
                    if fault.is_some() {
                        self.verdict.failed += 1;
                    } else {
                        self.verdict.read += u64::from(wanted.bytes);
                    }
                    if let Some(at) = self.asked.iter().position(|(id, _)| *id == wanted.id) {
                        let took = self.now.since(self.asked.swap_remove(at).1);
                        self.verdict.longest_read = self.verdict.longest_read.max(took);
                    }
                    if let Some(reader) = self.readers.iter_mut().find(|r| r.client == wanted.client) {
                        reader.asked -= 1;
                    }
                }
            }
        }
    }
}

/// Where a slot begins on the lane.
fn offset(place: u64, slot: u64) -> u64 {
    (1 << 20) + 4 * slot + place * slot
}
