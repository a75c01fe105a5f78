//! A drive at work: accesses in the order of their arrival, and when each begins and is done. Contents are
//! not kept here.

use super::arm::{Arm, HeadDirection};
use super::cells::Cells;
use super::outages::Outages;
use super::zones::Zones;
use super::{Damage, DriveKind, DriveModel, Flaw, Nanos, nanos};
use crate::{Fault, Seed};
use holdfast_base::{BLOCK, Timestamp};
use std::time::Duration;

/// What an access does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessKind {
    /// Brings bytes from the medium.
    Read,
    /// Puts bytes on the medium; it is done when they are there.
    Write,
    /// Waits for what came before it. The write cache is off, so that is all.
    Flush,
}

/// One access. What lies beyond the drive's end is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriveAccess {
    /// What it does.
    pub kind: AccessKind,
    /// Where.
    pub offset: u64,
    /// How much.
    pub len: u64,
}

/// When an access was served, and how it went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Served {
    /// When the drive turned to it; not before its arrival.
    pub began: Timestamp,
    /// When it was done.
    pub done: Timestamp,
    /// What went wrong.
    pub fault: Option<Fault>,
}

/// What does the work.
#[derive(Clone, Debug)]
enum Works {
    Rotating(Arm),
    Shingled(Arm, Zones),
    Flash(Cells),
}

/// A drive at work. It serves in the order of the calls: whoever has an access that arrives before another is done
/// simply says so, and it counts as queued. Nothing is allocated after [`Drive::new`].
#[derive(Clone, Debug)]
pub struct Drive {
    model: DriveModel,
    start: Timestamp,
    works: Works,
    outages: Outages,
    /// By offset, which is that of a block.
    flaws: Vec<Damage>,
}

impl Drive {
    /// A drive that was switched on at time 0, with an empty queue and its head at the outer edge. The seed gives the
    /// angle at which the platter stood.
    pub fn new(model: DriveModel, seed: u64) -> Self {
        Self::starting(model, seed, Timestamp(0))
    }

    /// The same, switched on at `start`: the stalls count from there.
    pub fn starting(model: DriveModel, seed: u64, start: Timestamp) -> Self {
        let angle = (Seed::new(seed).bits() >> 11) as f64 / (1u64 << 53) as f64;
        let works = match &model.kind {
            DriveKind::Rotating(mechanics) => Works::Rotating(Arm::new(&model, mechanics, angle)),
            DriveKind::Shingled(mechanics, shingles) => {
                Works::Shingled(Arm::new(&model, mechanics, angle), Zones::new(shingles, model.bytes))
            }
            DriveKind::Flash(flash) => Works::Flash(Cells::new(&model, flash)),
        };
        let outages = Outages::new(&model.stalls);
        let block = BLOCK as u64;
        let mut flaws: Vec<Damage> = model.damage.clone();
        for flaw in &mut flaws {
            flaw.offset -= flaw.offset % block;
        }
        flaws.sort_by_key(|flaw| flaw.offset);
        flaws.dedup_by_key(|flaw| flaw.offset);
        Self { model, start, works, outages, flaws }
    }

    /// What it is.
    pub fn model(&self) -> &DriveModel {
        &self.model
    }

    /// When all that was asked so far is done.
    pub fn free(&self) -> Timestamp {
        self.time(match &self.works {
            Works::Rotating(arm) | Works::Shingled(arm, _) => arm.free(),
            Works::Flash(cells) => cells.free(),
        })
    }

    /// How long an access that arrives at `at` would take until it is done, waiting for others included. For tests:
    /// it works on a copy of the drive.
    pub fn estimate(&self, access: DriveAccess, at: Timestamp) -> Duration {
        self.clone().serve(access, at).done.since(at)
    }

    /// How long it takes to stream over `len` bytes at `offset` once the head is there: the model's limit. A flush
    /// takes nothing.
    pub fn stream_time(&self, kind: AccessKind, offset: u64, len: u64) -> Duration {
        let (from, to) = self.inside(offset, len);
        let way = match kind {
            AccessKind::Read => HeadDirection::Read,
            AccessKind::Write => HeadDirection::Write,
            AccessKind::Flush => return Duration::ZERO,
        };
        let time = match &self.works {
            Works::Rotating(arm) | Works::Shingled(arm, _) => arm.stream(way, from, to),
            Works::Flash(cells) => cells.stream(way, from, to),
        };
        Duration::from_nanos(time.max(0.0).round() as u64)
    }

    /// Serves an access that arrived at `arrived`; not before those that were served already arrived.
    pub fn serve(&mut self, access: DriveAccess, arrived: Timestamp) -> Served {
        let (from, to) = self.inside(access.offset, access.len);
        let now = arrived.0.saturating_sub(self.start.0).max(0);
        let way = match access.kind {
            AccessKind::Read if to > from => HeadDirection::Read,
            AccessKind::Write if to > from => HeadDirection::Write,
            _ => return self.wait(arrived, now),
        };
        let turns = match &self.works {
            Works::Rotating(arm) | Works::Shingled(arm, _) => arm.free(),
            Works::Flash(cells) => cells.next(),
        };
        let began = now.max(turns);
        let clear = self.outages.clear(began);
        // After a stall nothing goes on where it was.
        let asked = if clear > began { clear } else { now };
        let mut done = match &mut self.works {
            Works::Rotating(arm) => step(arm, way, from, to, asked),
            Works::Shingled(arm, zones) => {
                zones.tidy(arm, asked);
                match way {
                    HeadDirection::Read => arm.read(from, to - from, asked),
                    HeadDirection::Write => zones.write(arm, from, to - from, asked),
                }
            }
            Works::Flash(cells) => cells.serve(way, from, to - from, asked),
        };
        let mut fault = None;
        if !self.flaws.is_empty() {
            let late;
            (late, fault) = self.suffer(way, from, to);
            done += late;
        }
        let late = self.outages.delay(done);
        if late > 0 {
            self.postpone(late);
        }
        Served { began: self.time(began).max(arrived), done: self.time(done + late).max(arrived), fault }
    }

    /// From `from` on the drive does nothing for `length`, unasked: what is under way is done so much later.
    pub fn stall(&mut self, from: Timestamp, length: Duration) {
        let now = from.0.saturating_sub(self.start.0).max(0);
        if self.free() > from {
            self.postpone(Nanos::try_from(length.as_nanos()).unwrap_or(Nanos::MAX / 4));
        }
        self.outages.add(now, length);
    }

    /// What has nothing to do but wait for its turn.
    fn wait(&mut self, arrived: Timestamp, now: Nanos) -> Served {
        let (free, overhead) = match &self.works {
            Works::Rotating(arm) | Works::Shingled(arm, _) => (arm.free(), arm.overhead()),
            Works::Flash(cells) => (cells.free(), cells.overhead()),
        };
        let done = self.outages.clear(free.max(now.saturating_add(overhead)));
        Served { began: self.time(free).max(arrived), done: self.time(done).max(arrived), fault: None }
    }

    /// What the flaws between two bytes add to the access that was just served.
    fn suffer(&mut self, way: HeadDirection, from: u64, to: u64) -> (Nanos, Option<Fault>) {
        let block = BLOCK as u64;
        let first = self.flaws.partition_point(|flaw| flaw.offset + block <= from);
        let last = self.flaws.partition_point(|flaw| flaw.offset < to);
        let (mut late, mut fault) = (0, None);
        for at in first..last {
            if way == HeadDirection::Write {
                self.flaws[at].flaw = Flaw::Remapped;
            }
            let Damage { offset, flaw } = self.flaws[at];
            let more = match (flaw, &mut self.works) {
                (Flaw::Unreadable, _) => {
                    fault = Some(Fault::Io);
                    nanos(self.model.read_error_limit) as Nanos
                }
                (Flaw::Weak { revolutions }, Works::Rotating(arm) | Works::Shingled(arm, _)) => {
                    arm.revolutions(revolutions)
                }
                (Flaw::Remapped, Works::Rotating(arm) | Works::Shingled(arm, _)) => arm.detour(offset),
                (Flaw::Weak { revolutions }, Works::Flash(cells)) => cells.tries(revolutions),
                (Flaw::Remapped, Works::Flash(cells)) => cells.tries(1),
            };
            self.postpone(more);
            late += more;
            if fault.is_some() {
                break;
            }
        }
        (late, fault)
    }

    fn postpone(&mut self, by: Nanos) {
        match &mut self.works {
            Works::Rotating(arm) | Works::Shingled(arm, _) => arm.postpone(by),
            Works::Flash(cells) => cells.postpone(by),
        }
    }

    /// First byte and end, on the drive.
    fn inside(&self, offset: u64, len: u64) -> (u64, u64) {
        let end = self.model.bytes;
        (offset.min(end), offset.saturating_add(len).min(end))
    }

    fn time(&self, at: Nanos) -> Timestamp {
        Timestamp(self.start.0.saturating_add(at))
    }
}

fn step(arm: &mut Arm, way: HeadDirection, from: u64, to: u64, asked: Nanos) -> Nanos {
    match way {
        HeadDirection::Read => arm.read(from, to - from, asked),
        HeadDirection::Write => arm.write(from, to - from, asked),
    }
}
