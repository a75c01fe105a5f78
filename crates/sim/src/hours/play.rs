//! Event loop of a simulated hour.

use super::capture::{Capture, Full, Journal, Waits};
use super::intake::Intake;
use super::lane::{Errand, Lane};
use super::reader_fairness::ReaderFairness;
use super::readers::Reader;
use super::scene::Scene;
use super::source::Source;
use holdfast_base::Timestamp;
use holdfast_media::drive::{AccessKind, Drive, DriveAccess};
use holdfast_ring::{Guarantee, Next, Policy, Reads, Schedule, View, admit, soon};
use std::time::Duration;

/// How an hour went.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Verdict {
    /// Bytes that came.
    pub arrived: f64,
    /// Bytes of these that found no buffer.
    pub lost: f64,
    /// Bytes that streams lost which brought more than they declared.
    pub beyond: f64,
    /// Bytes within its rate that such a stream is short of.
    pub withheld: f64,
    /// The least slack, in the schedule's own account.
    pub margin: Duration,
    /// The most buffers in use at once.
    pub most_buffers: u32,
    /// Slots written.
    pub slots: u64,
    /// The greatest age of a byte when it was on the medium first, in the journal or in its slot.
    pub oldest: Duration,
    /// Commits written.
    pub commits: u64,
    /// Bytes read.
    pub read: u64,
    /// Reads that failed.
    pub failed: u64,
    /// The longest that a read took from asking to answer.
    pub longest_read: Duration,
    /// What others were served while a reader waited, as a share of the most that the turns allow: the largest.
    pub turns: f64,
    /// The longest that reads waited and none was begun.
    pub starved: Duration,
    /// Slots that ended with room in them, because so much of them had to be made durable.
    pub short: u64,
    /// Time that the lane spent on slots, going there included; stalls count for what they kept waiting.
    pub writing: Duration,
    /// The same for commits.
    pub committing: Duration,
    /// The same for reads.
    pub reading: Duration,
    /// How long the same slots take to stream.
    pub streamed_writes: Duration,
    /// How long the same reads take to stream.
    pub streamed_reads: Duration,
}

impl Verdict {
    /// What of the promises was not kept.
    pub fn wrong(&self, scene: &Scene) -> Option<String> {
        if self.lost > 0.0 {
            return Some(format!("lost {:.0} bytes", self.lost));
        }
        if self.withheld > 0.0 {
            return Some(format!("withheld {:.0} bytes that were within a rate", self.withheld));
        }
        // At least two slots, or as much as came.
        if self.slots < 2 || self.arrived < 2.0 * scene.shape.slot.0 as f64 {
            return Some(format!("nothing happened: {self:?}"));
        }
        let Ok(granted) = admit(&scene.measured, &scene.load, &scene.shape) else {
            return Some("was not admitted".to_owned());
        };
        // No read starves: each reader has its turn, and all of them have theirs beside writing what was declared.
        if self.turns > 1.0 {
            return Some(format!("a reader waited for {:.3} of what others may read before it", self.turns));
        }
        let idle = starved(scene, &granted, self);
        if self.starved > idle {
            return Some(format!("nobody was served for {:?}, of {idle:?} at most", self.starved));
        }
        // Who is alone makes only himself late.
        if scene.wild.len() == scene.streams.len() {
            return None;
        }
        // The clock of the drive counts nanoseconds, that of what arrives does not.
        (self.oldest > granted.durable_after + Duration::from_millis(1)).then(|| {
            format!("data was durable after {:?}, published are {:?}", self.oldest, granted.durable_after)
        })
    }
}

/// The longest that readers wait for writing: all that is full, with what fills meanwhile, and whatever data may wait for; a burst,
/// where nobody else is there who keeps his word. A drive whose flaws take more than was measured leaves less.
fn starved(scene: &Scene, granted: &Guarantee, came: &Verdict) -> Duration {
    let moving = 1.0 - f64::from(scene.measured.stalled) / 1e6;
    let write = (granted.write.as_secs_f64() / moving).max(came.writing.as_secs_f64() / came.slots as f64);
    let busy = write / granted.period.as_secs_f64();
    let full = f64::from(granted.buffers) + f64::from(scene.shape.gather);
    // Of each period so much is left for making up for what has piled up.
    let written = full * granted.period.as_secs_f64() * busy / (1.0 - busy);
    let written = granted.durable_after + Duration::try_from_secs_f64(written).unwrap_or(Duration::MAX / 2);
    let alone = scene.wild.len() == scene.streams.len();
    let burst = scene.policy().promise.filter(|_| alone).map_or(Duration::ZERO, |promise| promise.rides);
    written + burst
}

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
    let policy = scene.policy();
    assert!(policy.promise.is_some(), "seed {}: the scene asks for more than is admitted", scene.seed);
    play_under(scene, policy)
}

/// Plays a scene under any policy: also one that promises too much.
pub fn play_under(scene: &Scene, policy: Policy) -> Verdict {
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
    /// Instead of that, where somebody breaks his word.
    intake: Option<Intake>,
    capture: Capture,
    journal: Journal,
    readers: Vec<Reader>,
    fairness: ReaderFairness,
    /// Since when reads wait and none was begun.
    hungry: Option<Timestamp>,
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
        let slots = scene.slots();
        Self {
            scene,
            now: Timestamp(0),
            schedule: Schedule::new(policy),
            reads: Reads::new(64, scene.visit),
            lane: Lane::new(Drive::new(scene.drive.clone(), scene.seed)),
            source: Source::new(&scene.streams),
            intake: Intake::new(scene),
            capture: Capture::new(slot, policy.buffers, waits(scene, &policy)),
            journal: Journal::new(&scene.shape, policy.buffers, slots, scene.base),
            readers: scene.readers.clone(),
            fairness: ReaderFairness::new(&scene.readers, scene.visit, scene.shape.quantum.into()),
            hungry: None,
            asked: Vec::with_capacity(64),
            next_read: 0,
            begun: 0,
            slots,
            verdict: Verdict::default(),
        }
    }

    fn run(mut self) -> Verdict {
        let end = Timestamp(0) + self.scene.lasts;
        while self.now < end {
            self.journal.owe(seconds(self.now));
            self.ask();
            let mut rest = self.begin();
            if let Some(intake) = &mut self.intake {
                intake.pack(seconds(self.now), &mut self.capture, &self.schedule, self.lane.reading);
                rest = self.begin();
            }
            let to = self.next_event(rest).min(end);
            self.now = to;
            if let Some(intake) = &mut self.intake {
                intake.advance(seconds(to), &mut self.capture, &self.schedule, self.lane.reading);
            } else {
                let (bytes, first) = self.source.advance(seconds(to));
                self.capture.arrive(bytes, first, seconds(to));
            }
            self.take_in();
        }
        self.feed();
        let within = self.intake.as_ref().map_or((self.capture.lost, 0.0), Intake::lost);
        let withheld = self.intake.as_ref().map_or(0.0, |intake| intake.withheld(seconds(self.now)));
        let margin = self.schedule.margin().map_or(Duration::ZERO, |margin| margin.least);
        Verdict {
            arrived: self.capture.arrived,
            lost: within.0,
            beyond: within.1,
            withheld,
            margin,
            most_buffers: self.schedule.most_buffers().0,
            short: self.capture.short,
            turns: self.fairness.longest(),
            ..self.verdict
        }
    }

    fn next_event(&self, rest: Option<Timestamp>) -> Timestamp {
        let now = seconds(self.now);
        let mut next = match &self.intake {
            Some(intake) => intake.next_event(),
            None => self.source.next_event(self.capture.until_full()),
        };
        next = next.min(self.journal.orders);
        for due in [self.capture.due(), self.capture.overdue(&self.journal)] {
            if due > now {
                next = next.min(due);
            }
        }
        for asks in self.readers.iter().filter_map(Reader::asks).filter(|asks| *asks > now) {
            next = next.min(asks);
        }
        let ends = rest.into_iter().chain(self.lane.next_end());
        ends.fold(stamp(next), Timestamp::min).max(Timestamp(self.now.0 + 1))
    }

    fn ask(&mut self) {
        let (now, slot) = (seconds(self.now), self.scene.shape.slot.0);
        for reader in &mut self.readers {
            while reader.asks().is_some_and(|asks| asks <= now) {
                let quantum = u64::from(self.scene.shape.quantum);
                let mut wanted = reader.ask(self.next_read, now, self.slots, slot, quantum);
                let (place, at) = (wanted.offset >> 32, wanted.offset & u64::from(u32::MAX));
                wanted.offset = self.scene.offset(place) + at;
                if self.reads.push(wanted).is_err() {
                    reader.asked -= 1;
                    break;
                }
                self.fairness.asks(&wanted);
                self.hungry = self.hungry.or(Some(self.now));
                self.asked.push((self.next_read, self.now));
                self.next_read += 1;
            }
        }
    }

    fn view(&self) -> View {
        let waiting = self.capture.full.iter().map(|full| full.since).chain(self.capture.gaining_since());
        let waiting = waiting.map(stamp);
        View {
            now: self.now,
            full: (self.capture.full.len() as u64).min(self.journal.runway) as u32,
            oldest: self.schedule.waiting_since(waiting, self.lane.writing).unwrap_or(self.now),
            free: self.capture.free,
            room: self.capture.room() as u64,
            writing: self.lane.writing,
            committing: self.lane.committing,
            commit: !self.lane.committing && self.journal.waits(&self.capture, seconds(self.now)),
            reading: self.lane.reading,
            reads: !self.reads.is_empty(),
            away: self.reads.is_away(),
            starved: false,
            draining: false,
        }
    }

    /// Begins what the schedule says; until when it rests.
    fn begin(&mut self) -> Option<Timestamp> {
        loop {
            if seconds(self.now) >= self.capture.overdue(&self.journal)
                && self.schedule.may_end_slot(&self.view())
            {
                self.capture.end_slot();
            }
            match self.schedule.next(&self.view()) {
                Next::Rest(until) => return until.filter(|until| *until > self.now),
                Next::Write => {
                    let Full { since, bytes } = self.capture.full.pop_front()?;
                    let place = self.scene.offset(self.scene.places.nth(self.begun, self.slots));
                    self.begun += 1;
                    self.journal.runway -= 1;
                    let bytes = (bytes.ceil() as u64).next_multiple_of(4096).min(self.scene.shape.slot.0);
                    self.start(Errand::Slot(since), AccessKind::Write, place, bytes);
                }
                Next::Commit { most } => {
                    let commit = self.journal.commit(most, &mut self.capture, seconds(self.now));
                    self.start(Errand::Commit(commit), AccessKind::Write, commit.offset, commit.bytes);
                }
                Next::Read => {
                    let wanted = self.reads.pick()?;
                    self.fairness.begins(&wanted);
                    self.feed();
                    self.start(Errand::Read(wanted), AccessKind::Read, wanted.offset, wanted.bytes.into());
                }
            }
        }
    }

    /// A read is begun: those that wait do so from now on.
    fn feed(&mut self) {
        let waited = self.hungry.map_or(Duration::ZERO, |since| self.now.since(since));
        self.verdict.starved = self.verdict.starved.max(waited);
        self.hungry = Some(self.now).filter(|_| !self.reads.is_empty());
    }

    fn start(&mut self, errand: Errand, kind: AccessKind, offset: u64, len: u64) {
        let free = self.lane.drive().free().max(self.now);
        let done = self.lane.begin(errand, DriveAccess { kind, offset, len }, self.now);
        let (spent, streamed) = (done.since(free), self.lane.drive().stream_time(kind, offset, len));
        let verdict = &mut self.verdict;
        match errand {
            Errand::Read(_) => {
                verdict.reading += spent;
                verdict.streamed_reads += streamed;
            }
            Errand::Slot(_) => {
                verdict.writing += spent;
                verdict.streamed_writes += streamed;
            }
            Errand::Commit(_) => verdict.committing += spent,
        }
    }

    fn take_in(&mut self) {
        while let Some((errand, fault)) = self.lane.ended(self.now) {
            match errand {
                Errand::Slot(since) => {
                    self.capture.free += 1;
                    self.verdict.slots += 1;
                    self.verdict.oldest = self.verdict.oldest.max(self.now.since(stamp(since)));
                }
                Errand::Commit(commit) => {
                    self.verdict.commits += 1;
                    self.journal.runway += commit.names;
                    if let Some(since) = commit.since {
                        self.verdict.oldest = self.verdict.oldest.max(self.now.since(stamp(since)));
                    }
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
                        reader.answered(seconds(self.now));
                    }
                }
            }
        }
    }
}

/// How long the product lets what the open slot gained wait.
fn waits(scene: &Scene, policy: &Policy) -> Waits {
    let write = soon(&scene.measured, scene.shape.slot);
    let flush = scene.shape.flush.as_secs_f64();
    let (hard, row) = policy
        .promise
        .map_or((2.0 * flush, f64::INFINITY), |promise| (promise.forced.as_secs_f64(), promise.row as f64));
    Waits { flush, soon: write.max(2.0 * flush), hard, row }
}
