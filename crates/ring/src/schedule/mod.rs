//! The schedule of a lane: writes first, everything else with what is left. A pure function of waiting
//! requests, requests in flight, measured times and the time. It moves no buffer and knows no disk; `reads`
//! orders the reads.
//!
//! A full slot goes first, but while somebody reads, full slots are gathered, so that a drive goes back and forth once for
//! several; then it is the readers' turn again. A read begins only if, should it take as long as reads may, the buffers
//! still last: so nothing that a reader does can cost a byte within the guarantee (Bigelow et al., “Mahanaxar”, sections
//! IV and VI).
//!
//! Where the head has to travel it stays for a moment with a reader whose answers have all gone out, whoever else waits: who reads
//! on asks again at once, and a turn of writing, or another's, lasts for seconds (Iyer and Druschel, “Anticipatory scheduling”).

mod reads;

pub use reads::{Class, ReadRequest, Reads, visit};

use crate::guarantee::{COMMIT_BYTES, Costs, Load, Shape, admit, figures};
use crate::rates::Spare;
use holdfast_base::{Rate, Timestamp};
use holdfast_format::Measured;
use std::time::Duration;

/// What the schedule of a ring goes by.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Policy {
    /// Slot buffers.
    pub buffers: u32,
    /// Bytes of a slot.
    pub slot: u64,
    /// Full slots that are written in one go while somebody reads.
    pub gather: u32,
    /// What was promised; without it the ring does its best.
    pub promise: Option<Promise>,
    /// Requests in flight at most, besides slots and commits.
    pub reads: u32,
    /// Whether reads and writes are served beside each other: not by a drive with a head.
    pub parallel: bool,
}

/// What a guarantee comes to, for the schedule.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Promise {
    /// Bytes a second that may arrive, on the medium.
    pub rate: f64,
    /// Bytes that may come at once beyond that.
    pub burst: f64,
    /// Seconds that may pass, after a read was begun, until a buffer is free.
    pub blocked: f64,
    /// Seconds that a read may take.
    pub read: f64,
    /// Seconds that may pass, after a commit was begun, until a buffer is free.
    pub blocked_by_commit: f64,
    /// The age of its first byte at which what is full is written, whoever reads.
    pub forced: Duration,
    /// Slots that are written in that time.
    pub beyond: u32,
    /// Seconds that the write of a slot takes.
    pub write: f64,
    /// Seconds that what comes in a burst may be late by.
    pub late: f64,
    /// The longest of the bursts beyond the rate that are published: for so long readers may have no turn for the sake of one.
    pub rides: Duration,
    /// Bytes that the journal takes in no more time than the write of a slot: where more of the open slot is that old, the slot
    /// ends. All there are, where slots fill slowly by what was declared: those commits are counted on, and buffers on whole slots.
    pub row: u64,
    /// How long the head stays where somebody has read, though he asks for nothing more: as long as it takes to come back.
    /// Zero where there is no head.
    pub stay: Duration,
}

impl Policy {
    /// The policy of a ring that was admitted, or one that does its best.
    pub fn new(terms: Option<(&Measured, &Load)>, shape: &Shape) -> Self {
        let granted = terms.and_then(|(measured, load)| {
            let granted = admit(measured, load, shape).ok()?;
            let costs = Costs::of(measured, shape);
            let promise = Promise {
                rate: load.rate.0 as f64,
                burst: load.burst.0 as f64,
                blocked: costs.blocked(),
                read: costs.wait / costs.moving,
                blocked_by_commit: costs.blocked_by_commit(),
                forced: granted.forced,
                beyond: (granted.forced.as_secs_f64() * costs.drained(shape.slot) / shape.slot.0 as f64)
                    as u32,
                write: costs.write / costs.moving,
                late: load.burst.0 as f64 / costs.drained(shape.slot),
                rides: figures(measured, load, shape).bursts.into_iter().flatten().max().unwrap_or_default(),
                row: costs.row(shape.slot, granted.period, measured),
                stay: if measured.parallel > 1 { Duration::ZERO } else { measured.reposition },
            };
            Some((promise, measured.parallel))
        });
        let parallel = granted.is_none_or(|(_, parallel)| parallel > 1);
        Self {
            buffers: shape.buffers,
            slot: shape.slot.0,
            gather: u32::from(shape.gather.max(1)),
            promise: granted.map(|(promise, _)| promise),
            reads: granted.map_or(8, |(_, parallel)| u32::from(parallel.max(1))),
            parallel,
        }
    }
}

/// How near a ring came to losing something that it had promised to keep.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Margin {
    /// Bytes a second, on the medium, that were promised.
    pub rate: Rate,
    /// The slack with which nothing else is begun any more: for the longest read, commit and pause, and a burst.
    pub kept: Duration,
    /// The least slack that there was: how long capture could have gone on without any write ending.
    pub least: Duration,
    /// When that was.
    pub since: Timestamp,
}

/// What the schedule must know of the moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct View {
    /// The time.
    pub now: Timestamp,
    /// Full slots that have a place and are not being written.
    pub full: u32,
    /// Since when they have waited: see [`Schedule::waiting_since`].
    pub oldest: Timestamp,
    /// Buffers that nothing is in.
    pub free: u32,
    /// What the open slot still takes; 0 when none is open.
    pub room: u64,
    /// Slots being written.
    pub writing: u32,
    /// Whether a commit is being written.
    pub committing: bool,
    /// Whether a commit waits to be written.
    pub commit: bool,
    /// Reads in flight.
    pub reading: u32,
    /// Whether a read waits.
    pub reads: bool,
    /// Whether the reader whose turn it is asks for nothing at this moment: see [`Reads::is_away`].
    pub away: bool,
    /// Whether nothing that is full can be written, whatever is done: no place is free, or the device does not answer.
    pub starved: bool,
    /// The run is ending: full slots are written at once, and no reader is waited for.
    pub draining: bool,
}

/// How long a read waits on a ring that does its best and never has buffers to spare.
const PATIENCE: Duration = Duration::from_millis(100);

/// What is to be begun.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// The oldest full slot.
    Write,
    /// The commit.
    Commit {
        /// Bytes that it may have.
        most: u64,
    },
    /// The read that [`Reads::pick`] gives.
    Read,
    /// Nothing, until something ends or arrives, or this time has come.
    Rest(Option<Timestamp>),
}

/// Remembers what phase the lane is in.
#[derive(Clone, Debug)]
pub struct Schedule {
    policy: Policy,
    /// So many more full slots are written before it is the readers' turn.
    going: u32,
    /// Slots begun since the last commit.
    since_commit: u32,
    /// When somebody last read, or wanted to.
    read: Option<Timestamp>,
    /// Whether a read was under way when this was last asked.
    reading: bool,
    /// Since when reads wait and none was begun.
    hungry: Option<Timestamp>,
    /// The fewest bytes that could still arrive, and when.
    margin: Option<(f64, Timestamp)>,
    /// The most buffers that were in use at once, and when.
    most: (u32, Timestamp),
}

impl Schedule {
    /// Nothing has happened yet.
    pub fn new(policy: Policy) -> Self {
        Self {
            policy,
            going: 0,
            since_commit: u32::MAX,
            read: None,
            reading: false,
            hungry: None,
            margin: None,
            most: (0, Timestamp(0)),
        }
    }

    /// What it goes by.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// The least slack seen; `None` for a ring that was promised nothing, and before anything was seen.
    pub fn margin(&self) -> Option<Margin> {
        let (promise, (left, since)) = (self.policy.promise?, self.margin?);
        let rate = promise.rate.max(1.0);
        let kept = Duration::from_secs_f64(promise.blocked + promise.burst / rate);
        let least = Duration::from_secs_f64(left / rate);
        Some(Margin { rate: Rate(promise.rate as u64), kept, least, since })
    }

    /// The most buffers that were in use at once, and since when.
    pub fn most_buffers(&self) -> (u32, Timestamp) {
        self.most
    }

    /// What may be taken in beyond what was declared, with `free` buffers besides the open slot, which takes `room`
    /// more, and so many reads under way.
    ///
    /// The others keep what may come of theirs until a buffer is free, as if a read began now. And what is beyond never
    /// lets more slots wait than are written in the age at which data is forced out; and fewer than that and than are
    /// gathered where somebody reads: readers have their turn before what waits is due. Where they had none for that long all the
    /// same, nothing is beyond until one of them has. Who is alone has nobody to leave anything to but readers: he fills all
    /// buffers, and they wait for a burst of his as long as any that is published.
    pub fn spare(&self, now: Timestamp, free: u32, room: Option<u64>, reading: u32) -> Spare {
        let Some(promise) = &self.policy.promise else { return Spare::ALL };
        let starve = |after: Duration| self.hungry.is_some_and(|since| now.since(since) >= after);
        let alone = if starve(promise.forced + promise.rides) { 0 } else { u64::MAX };
        let beside = if starve(promise.forced) { 0 } else { self.beside(promise, now, free, room, reading) };
        Spare { beside, alone }
    }

    /// Bytes that who shares the ring with others may have beyond his rate.
    fn beside(&self, promise: &Promise, now: Timestamp, free: u32, room: Option<u64>, reading: u32) -> u64 {
        let closed = self.policy.buffers.saturating_sub(free + u32::from(room.is_some()));
        let reads = self.read.is_some_and(|read| now.since(read) < promise.forced);
        let most =
            if reads { promise.beyond.min(self.policy.gather).saturating_sub(1) } else { promise.beyond };
        if closed >= most.max(1) {
            return 0;
        }
        let seconds = promise.blocked + f64::from(reading.saturating_sub(1)) * promise.read;
        // For what is not counted: gaps, notes, and the end of the open slot, which may stay empty.
        let kept = promise.rate * seconds + promise.burst + self.policy.slot as f64 / 8.0;
        let left = f64::from(free) * self.policy.slot as f64 + room.unwrap_or(0) as f64;
        // A float below zero becomes zero.
        (left - kept) as u64
    }

    /// By what the schedule judges how long slots have waited, the oldest first, the open one last: by the first; or where others
    /// came close behind it, so that they would be late by the time that those before them take, by as much earlier. `writing`
    /// slots come before them all.
    pub fn waiting_since(&self, slots: impl Iterator<Item = Timestamp>, writing: u32) -> Option<Timestamp> {
        let Some(promise) = &self.policy.promise else { return slots.min() };
        let ahead = |before: u32| {
            Duration::from_secs_f64((f64::from(before) * promise.write - promise.late).max(0.0))
        };
        slots.zip(writing..).map(|(since, before)| since - ahead(before)).min()
    }

    /// Whether the open slot may end now, with room in it: the buffers last all the same, should a read or commit that is under
    /// way take as long as it may.
    pub fn may_end_slot(&self, view: &View) -> bool {
        let Some(promise) = &self.policy.promise else { return true };
        let under_way = match (view.reading, view.committing) {
            (0, false) => return true,
            (0, true) => promise.blocked_by_commit,
            (reading, _) => promise.blocked + f64::from(reading) * promise.read,
        };
        self.lasts(&View { room: 0, ..*view }, promise, under_way)
    }

    /// What to begin now. The caller begins it and asks again, until told to rest.
    pub fn next(&mut self, view: &View) -> Next {
        self.watch(view);
        let next = self.decide(view);
        match next {
            Next::Write => {
                self.since_commit = self.since_commit.saturating_add(1);
                let go = if self.going == 0 { self.policy.gather } else { self.going };
                self.going = go - 1;
            }
            Next::Commit { .. } => self.since_commit = 0,
            Next::Read => self.hungry = None,
            Next::Rest(_) => {}
        }
        next
    }

    fn decide(&mut self, view: &View) -> Next {
        let policy = &self.policy;
        if !policy.parallel && (view.writing > 0 || view.committing || view.reading > 0) {
            // A drive with a head does one thing at a time; but the next write is there before the last one ends, unless it
            // is a commit's turn: else none would come while the drive is busy with slots.
            let alone = view.writing == 1 && !view.committing && view.reading == 0;
            let ahead = alone && view.full > 0 && self.drains(view) && !(view.commit && self.owes_commit());
            return if ahead { Next::Write } else { Next::Rest(None) };
        }
        if view.full == 0 {
            self.going = 0;
        }
        if let Some(most) = self.commit_bytes(view).filter(|_| view.commit && !view.committing) {
            return Next::Commit { most };
        }
        if view.full > 0 && self.drains(view) {
            return Next::Write;
        }
        // Commits often come in a row; each would wait for the reads that were begun beside the one before.
        let beside = view.committing && policy.promise.is_some();
        let held = policy.promise.as_ref().and_then(|promise| self.stays(view, promise));
        let may = view.reads && held.is_none() && !beside && view.reading < policy.reads;
        if may && (self.may_read(view) || self.has_waited(view)) {
            return Next::Read;
        }
        let Some(promise) = &self.policy.promise else {
            return Next::Rest(self.hungry.map(|since| since + PATIENCE).filter(|until| view.now < *until));
        };
        let forced = Some(view.oldest + promise.forced).filter(|_| view.full > 0);
        let until = held.filter(|_| view.full > 0 || view.reads);
        Next::Rest(forced.into_iter().chain(until).min())
    }

    /// Whether a read goes although buffers are short: on a ring that was promised nothing, and that a source without a
    /// rate keeps full, no read may starve.
    fn has_waited(&self, view: &View) -> bool {
        let waited = self.hungry.is_some_and(|since| view.now >= since + PATIENCE);
        self.policy.promise.is_none() && view.reading == 0 && waited
    }

    /// Whether what is full is to be written now.
    fn drains(&self, view: &View) -> bool {
        let Some(promise) = &self.policy.promise else { return true };
        view.draining
            || self.going > 0
            || !(view.reads || self.stays(view, promise).is_some())
            || view.full >= self.policy.gather
            || !self.may_read(view)
            || view.now >= view.oldest + promise.forced
    }

    /// Until when the head stays with a reader who may ask for more.
    fn stays(&self, view: &View, promise: &Promise) -> Option<Timestamp> {
        let nobody = (!view.reads || view.away) && !view.draining;
        self.read.map(|read| read + promise.stay).filter(|until| view.now < *until && nobody)
    }

    /// Whether capture goes on should a read take as long as reads may.
    fn may_read(&self, view: &View) -> bool {
        if view.starved && view.full == 0 && view.writing == 0 {
            // There is nothing that it could keep from being written.
            return true;
        }
        match &self.policy.promise {
            // Those under way may each fail first, one after the other: no device promises to do that side by side.
            Some(promise) => {
                self.lasts(view, promise, promise.blocked + f64::from(view.reading) * promise.read)
            }
            // No time is known that a read takes: some buffers are left to find it out with.
            None => view.free >= self.policy.buffers / 4,
        }
    }

    /// What a commit may have that goes before what is full: anything where there is time for it, and else once for
    /// several slots as much as admission counts on.
    fn commit_bytes(&self, view: &View) -> Option<u64> {
        let Some(promise) = &self.policy.promise else { return Some(u64::MAX) };
        // What is full and due would wait for a commit after the other.
        let due = view.full > 0 && view.now >= view.oldest + promise.forced;
        if !due && self.lasts(view, promise, promise.blocked_by_commit) {
            return Some(u64::MAX);
        }
        // Where nothing is full that has a place, there may be no place before a commit has named some.
        let turn = view.full == 0 || self.owes_commit();
        turn.then_some(COMMIT_BYTES)
    }

    /// Whether so many slots were begun since the last commit that the way of the next one is counted on.
    fn owes_commit(&self) -> bool {
        self.since_commit >= self.policy.gather.max(4)
    }

    /// Whether the buffers last for so many seconds in which none becomes free.
    fn lasts(&self, view: &View, promise: &Promise, seconds: f64) -> bool {
        self.left(view) - promise.burst >= promise.rate * seconds
    }

    /// Bytes that can still arrive while nothing is written.
    fn left(&self, view: &View) -> f64 {
        f64::from(view.free) * self.policy.slot as f64 + view.room as f64
    }

    fn watch(&mut self, view: &View) {
        self.hungry = self.hungry.or(Some(view.now)).filter(|_| view.reads);
        let reading = view.reading > 0;
        // Also when the last one has just ended.
        let was_reading = std::mem::replace(&mut self.reading, reading);
        if (view.reads && !view.away) || was_reading || reading {
            self.read = Some(view.now);
        }
        let used = self.policy.buffers.saturating_sub(view.free);
        if used > self.most.0 {
            self.most = (used, view.now);
        }
        let left = self.left(view);
        if self.policy.promise.is_some() && self.margin.is_none_or(|(least, _)| left < least) {
            self.margin = Some((left, view.now));
        }
    }
}

#[cfg(test)]
mod tests;
