//! Flash: many commands side by side, one stream of bytes, and pauses in which garbage is collected.

use super::arm::HeadDirection;
use super::curve::Track;
use super::{DriveModel, Flash, Nanos, nanos};

/// Parameters as nanoseconds, and what is under way.
#[derive(Clone, Debug)]
pub(super) struct Cells {
    write: Track,
    read: Track,
    overhead: Nanos,
    bus: f64,
    read_latency: Nanos,
    write_latency: Nanos,
    pause_after: f64,
    pause: Nanos,
    /// Bytes a nanosecond.
    tidies: f64,
    /// When each of those that work side by side is free; the first `parallel` count.
    units: [Nanos; Flash::MOST_PARALLEL],
    parallel: usize,
    /// When the stream of bytes is free.
    pipe: Nanos,
    /// Bytes written for which there was no time to tidy up.
    debt: f64,
    last_unit: usize,
}

impl Cells {
    pub(super) fn new(model: &DriveModel, flash: &Flash) -> Self {
        Self {
            write: Track::new(&model.write, &model.stretch, model.bytes),
            read: Track::new(&model.read, &model.stretch, model.bytes),
            overhead: nanos(model.overhead) as Nanos,
            bus: 1e9 / model.bus.0.max(1) as f64,
            read_latency: nanos(flash.read_latency) as Nanos,
            write_latency: nanos(flash.write_latency) as Nanos,
            pause_after: flash.pause_after.max(1) as f64,
            pause: nanos(flash.pause) as Nanos,
            tidies: flash.tidies.0 as f64 / 1e9,
            units: [0; Flash::MOST_PARALLEL],
            parallel: flash.parallel.clamp(1, Flash::MOST_PARALLEL),
            pipe: 0,
            debt: 0.0,
            last_unit: 0,
        }
    }

    /// When everything was done.
    pub(super) fn free(&self) -> Nanos {
        self.pipe
    }

    /// When the next command can be begun.
    pub(super) fn next(&self) -> Nanos {
        self.units[..self.parallel].iter().copied().min().unwrap_or(0)
    }

    /// Time to understand a command.
    pub(super) fn overhead(&self) -> Nanos {
        self.overhead
    }

    /// Another try at a place.
    pub(super) fn tries(&self, n: u32) -> Nanos {
        self.read_latency * Nanos::from(n)
    }

    /// Streaming over a stretch, nanoseconds.
    pub(super) fn stream(&self, way: HeadDirection, from: u64, to: u64) -> f64 {
        match way {
            HeadDirection::Read => self.read.time(from, to),
            HeadDirection::Write => self.write.time(from, to),
        }
    }

    /// Reads or writes; when it is done.
    pub(super) fn serve(&mut self, way: HeadDirection, offset: u64, len: u64, arrived: Nanos) -> Nanos {
        let idle = (arrived - self.pipe).max(0) as f64;
        self.debt = (self.debt - idle * self.tidies).max(0.0);
        let unit = (0..self.parallel).min_by_key(|unit| self.units[*unit]).unwrap_or(0);
        let latency = if way == HeadDirection::Read { self.read_latency } else { self.write_latency };
        let begun = self.units[unit].max(arrived) + self.overhead + latency;
        let stream = self.stream(way, offset, offset + len).max(len as f64 * self.bus);
        let mut done = begun.max(self.pipe) + stream.round() as Nanos;
        if way == HeadDirection::Write {
            self.debt += len as f64;
            let pauses = (self.debt / self.pause_after).floor();
            self.debt -= pauses * self.pause_after;
            done += self.pause.saturating_mul(pauses as Nanos);
        }
        (self.pipe, self.units[unit], self.last_unit) = (done, done, unit);
        done
    }

    /// The last access ends so much later than it said.
    pub(super) fn postpone(&mut self, by: Nanos) {
        self.pipe += by;
        self.units[self.last_unit] += by;
    }
}
