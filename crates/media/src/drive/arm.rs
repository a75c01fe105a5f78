//! Platters and an arm: the position of the head, and the time that it takes to any place. One access at a
//! time.

use super::curve::Track;
use super::{DriveModel, Mechanics, Nanos, nanos};
use holdfast_base::BLOCK;
use std::ops::Range;

/// What the head did last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Last {
    /// Nothing that could go on.
    Nothing,
    Read,
    Write,
    /// A write to the media cache.
    Log,
}

/// What it is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HeadDirection {
    Read,
    Write,
}

/// The arm: its parameters as nanoseconds, and its state.
///
/// A byte passes under the head whenever the time is, revolutions aside, that at which a stream from the first byte
/// would reach it. So a write that ends is where the next byte comes, and one that is late for it waits for nearly
/// a revolution.
#[derive(Clone, Debug)]
pub(super) struct Arm {
    write: Track,
    read: Track,
    stretch: Range<f64>,
    bytes: u64,
    overhead: Nanos,
    /// Nanoseconds a byte.
    bus: f64,
    revolution: f64,
    settle: f64,
    root: f64,
    linear: f64,
    to_write: f64,
    to_read: f64,
    look_ahead: u64,
    /// Nanoseconds a byte in the media cache.
    log: f64,
    /// Where the platter stood at the start, as nanoseconds.
    angle: f64,

    /// When the last access was done.
    free: Nanos,
    last: Last,
    /// Where it ended.
    end: u64,
    /// After a read, the head is at this byte …
    head: u64,
    /// … at this time, and goes on to `end` and `look_ahead` more.
    passed: Nanos,
    /// Bytes written to the media cache so far.
    logged: f64,
}

impl Arm {
    /// `angle` is the platter's at the start, from 0 to 1.
    pub(super) fn new(model: &DriveModel, mechanics: &Mechanics, angle: f64) -> Self {
        let revolution = nanos(mechanics.revolution).max(1.0);
        Self {
            write: Track::new(&model.write, &model.stretch, model.bytes),
            read: Track::new(&model.read, &model.stretch, model.bytes),
            stretch: model.stretch.clone(),
            bytes: model.bytes,
            overhead: nanos(model.overhead) as Nanos,
            bus: 1e9 / model.bus.0.max(1) as f64,
            revolution,
            settle: nanos(mechanics.seek.settle),
            root: nanos(mechanics.seek.root),
            linear: nanos(mechanics.seek.linear),
            to_write: nanos(mechanics.to_write),
            to_read: nanos(mechanics.to_read),
            look_ahead: mechanics.look_ahead,
            log: 1e9 / model.write.at(0.0),
            angle: angle * revolution,
            free: 0,
            last: Last::Nothing,
            end: 0,
            head: 0,
            passed: 0,
            logged: 0.0,
        }
    }

    /// When the last access was done.
    pub(super) fn free(&self) -> Nanos {
        self.free
    }

    /// Time to understand a command.
    pub(super) fn overhead(&self) -> Nanos {
        self.overhead
    }

    /// Streaming over a stretch, nanoseconds.
    pub(super) fn stream(&self, way: HeadDirection, from: u64, to: u64) -> f64 {
        self.track(way).time(from, to)
    }

    /// The last access ends so much later than it said.
    pub(super) fn postpone(&mut self, by: Nanos) {
        self.free += by;
        self.passed += by;
    }

    fn track(&self, way: HeadDirection) -> &Track {
        match way {
            HeadDirection::Read => &self.read,
            HeadDirection::Write => &self.write,
        }
    }

    /// Position on the whole drive.
    fn place(&self, at: u64) -> f64 {
        self.stretch.start + (self.stretch.end - self.stretch.start) * at as f64 / self.bytes.max(1) as f64
    }

    fn seek(&self, from: f64, to: f64) -> f64 {
        let share = (to - from).abs();
        self.settle + self.root * share.sqrt() + self.linear * share
    }

    /// How far the head reads on by itself.
    fn limit(&self) -> u64 {
        self.end.saturating_add(self.look_ahead).min(self.bytes)
    }

    /// The byte that the head is at; `None` at the media cache.
    fn position(&self, now: Nanos) -> Option<u64> {
        match self.last {
            Last::Write | Last::Nothing => Some(self.end),
            Last::Log => None,
            Last::Read => {
                let ran = (now - self.passed).max(0) as f64 * self.read.rate(self.head);
                Some(self.head.saturating_add(ran as u64).min(self.limit().max(self.head)))
            }
        }
    }

    /// From `now` until an angle, given as the streaming time up to it, is under the head.
    fn wait(&self, streamed: f64, now: f64) -> f64 {
        let ahead = streamed + self.angle - now;
        let wait = ahead - self.revolution * (ahead / self.revolution).floor();
        // Times are whole nanoseconds: what is missed by less was not missed.
        if wait > self.revolution - 1.0 { 0.0 } else { wait }
    }

    /// When the head, which is free at `now`, is over the byte `to`.
    fn go(&self, way: HeadDirection, to: u64, now: Nanos) -> f64 {
        let track = self.track(way);
        let turn = match (self.last, way) {
            (Last::Read, HeadDirection::Write) => self.to_write,
            (Last::Write | Last::Log, HeadDirection::Read) => self.to_read,
            _ => 0.0,
        };
        let seek = match self.position(now) {
            // On the same track the platter brings it.
            Some(at) if (to.abs_diff(at) as f64) < track.rate(to) * self.revolution => 0.0,
            Some(at) => self.seek(self.place(at), self.place(to)),
            None => self.seek(0.0, self.place(to)),
        };
        let there = now as f64 + seek + turn;
        there + self.wait(track.before(to), there)
    }

    /// Reads; when it is done.
    pub(super) fn read(&mut self, offset: u64, len: u64, arrived: Nanos) -> Nanos {
        let (end, asked) = (offset + len, self.free.max(arrived + self.overhead));
        let cable = asked + (len as f64 * self.bus) as Nanos;
        let limit = self.limit();
        let streaming = self.last == Last::Read
            && (self.end..=limit).contains(&offset)
            && self.ready(offset) <= asked.saturating_add(self.revolution as Nanos);
        // The buffer was full, so the head stopped; now that there is room it goes on from there.
        let resumed = streaming && limit < self.bytes && self.ready(limit) < arrived;
        if streaming {
            if resumed {
                let wait = self.wait(self.read.before(limit), arrived as f64);
                self.passed = arrived + wait.round() as Nanos;
                self.head = limit;
            }
        } else {
            self.passed = self.go(HeadDirection::Read, offset, asked).round() as Nanos;
            self.head = offset;
        }
        // What the head has left behind is in the drive's memory, even where it stopped and is to go on.
        let media = if end > self.head || (end == self.head && !resumed) { self.ready(end) } else { arrived };
        if end > self.head {
            (self.head, self.passed) = (end, media);
        }
        (self.last, self.end) = (Last::Read, end);
        self.free = media.max(cable);
        self.free
    }

    /// When a byte behind the last read has been or will be passed, should the head go on.
    fn ready(&self, at: u64) -> Nanos {
        if at <= self.head {
            return if at == self.head { self.passed } else { Nanos::MIN };
        }
        self.passed + self.read.time(self.head, at).round() as Nanos
    }

    /// Writes; when it is done.
    pub(super) fn write(&mut self, offset: u64, len: u64, arrived: Nanos) -> Nanos {
        let goes_on = self.last == Last::Write && offset == self.end && arrived <= self.free;
        let there = if goes_on {
            self.free as f64
        } else {
            self.go(HeadDirection::Write, offset, self.free.max(arrived + self.overhead))
        };
        (self.last, self.end) = (Last::Write, offset + len);
        self.free = (there + self.write.time(offset, offset + len)).round() as Nanos;
        self.free
    }

    /// Writes to the log at the outer edge; when it is done.
    pub(super) fn log(&mut self, len: u64, arrived: Nanos) -> Nanos {
        let there = if self.last == Last::Log && arrived <= self.free {
            self.free as f64
        } else {
            let now = self.free.max(arrived + self.overhead);
            let from = self.position(now).map_or(0.0, |at| self.place(at));
            let turn = if self.last == Last::Read { self.to_write } else { 0.0 };
            let there = now as f64 + self.seek(from, 0.0) + turn;
            there + self.wait(self.logged * self.log, there)
        };
        self.logged += len as f64;
        (self.last, self.end) = (Last::Log, 0);
        self.free = (there + len as f64 * self.log).round() as Nanos;
        self.free
    }

    /// Reads a stretch into the drive's own memory and writes it again; when it is done.
    pub(super) fn rewrite(&mut self, stretch: &Range<u64>, arrived: Nanos) -> Nanos {
        let len = stretch.end - stretch.start;
        let read = self.read(stretch.start, len, arrived);
        self.write(stretch.start, len, read)
    }

    /// To the spare area, for the block at `place`, and back to where the block ends: whole revolutions, since that
    /// place must come by again.
    pub(super) fn detour(&self, place: u64) -> Nanos {
        let way = self.seek(self.place(place), 1.0) / self.revolution;
        // Spare sectors stand at any angle.
        let spare = (place / BLOCK as u64) as f64 * 0.618 - way;
        let turns = (2.0 * way + spare - spare.floor()).ceil();
        (turns * self.revolution).round() as Nanos
    }

    /// So many revolutions.
    pub(super) fn revolutions(&self, n: u32) -> Nanos {
        (self.revolution * f64::from(n)).round() as Nanos
    }

    /// The arm was sent elsewhere while nobody asked: it is at `at`, and no stream goes on.
    pub(super) fn rest(&mut self, at: u64) {
        (self.last, self.end) = (Last::Nothing, at);
    }
}
