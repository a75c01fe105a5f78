//! Counters of a running cell, shared by its threads and read every second, and the gate that paces its reader.

use super::cell::ReadDemand;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// How often somebody who waits looks again.
const LOOK: Duration = Duration::from_millis(2);

/// Who wanted to look again after 2 ms, and did so after this, was kept from it: elements came in a burst that nobody
/// meant.
const LATE: Duration = Duration::from_millis(250);

/// Below the drive, above everything that is compared: what arrives, arrives on time.
const PRIORITY: i32 = 42;

/// Bytes since the start of a cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// That arrived.
    pub offered: u64,
    /// For which there was no room.
    pub lost: u64,
    /// That are durable.
    pub durable: u64,
    /// That the reader got.
    pub read: u64,
}

impl Counts {
    /// Arrived, not lost, not durable: in buffers, or in the page cache.
    pub fn pending(&self) -> u64 {
        self.offered.saturating_sub(self.lost).saturating_sub(self.durable)
    }
}

/// The books of a cell.
#[derive(Debug)]
pub struct Tally {
    begin: Instant,
    end: Instant,
    leads: bool,
    stopped: AtomicBool,
    late: AtomicBool,
    offered: AtomicU64,
    lost: AtomicU64,
    durable: AtomicU64,
    read: AtomicU64,
}

impl Tally {
    /// From now on, for so long.
    pub fn lasting(time: Duration) -> Self {
        let begin = Instant::now();
        Self {
            begin,
            end: begin + time,
            leads: false,
            stopped: AtomicBool::new(false),
            late: AtomicBool::new(false),
            offered: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            durable: AtomicU64::new(0),
            read: AtomicU64::new(0),
        }
    }

    /// For what is measured: see [`Tally::lead`].
    #[must_use]
    pub fn leading(self) -> Self {
        Self { leads: true, ..self }
    }

    /// Lets the calling thread go before the contestants, as far as that is allowed: it stands for the world around
    /// them.
    pub fn lead(&self) {
        if self.leads {
            let _ = holdfast_media::run_first(PRIORITY);
        }
    }

    /// Seconds since the start.
    pub fn seconds(&self) -> f64 {
        self.begin.elapsed().as_secs_f64()
    }

    /// Whether it is not over.
    pub fn runs(&self) -> bool {
        !self.stopped.load(Relaxed) && Instant::now() < self.end
    }

    /// Ends it at once, because something failed.
    pub fn stop(&self) {
        self.stopped.store(true, Relaxed);
    }

    /// Bytes arrived.
    pub fn offered(&self, bytes: u64) {
        self.offered.fetch_add(bytes, Relaxed);
    }

    /// Of them, these found no room.
    pub fn lost(&self, bytes: u64) {
        self.lost.fetch_add(bytes, Relaxed);
    }

    /// So many more are durable. What becomes so when it is over is not counted.
    pub fn durable(&self, bytes: u64) {
        if self.runs() {
            self.durable.fetch_add(bytes, Relaxed);
        }
    }

    /// The reader got so many more.
    pub fn read(&self, bytes: u64) {
        if self.runs() {
            self.read.fetch_add(bytes, Relaxed);
        }
    }

    /// As it stands.
    pub fn counts(&self) -> Counts {
        let get = |count: &AtomicU64| count.load(Relaxed);
        // What is lost or durable was offered before: in this order the difference is never negative.
        let (lost, durable, read) = (get(&self.lost), get(&self.durable), get(&self.read));
        Counts { offered: get(&self.offered), lost, durable, read }
    }

    /// Waits until `ready`; `false` when the cell is over first.
    pub fn wait(&self, mut ready: impl FnMut() -> bool) -> bool {
        while self.runs() {
            if ready() {
                return true;
            }
            let before = Instant::now();
            std::thread::sleep(LOOK);
            if before.elapsed() > LATE {
                self.late();
            }
        }
        false
    }

    /// The machine kept somebody from working.
    pub fn late(&self) {
        self.late.store(true, Relaxed);
    }

    /// Whether it did: then what was measured says nothing.
    pub fn was_late(&self) -> bool {
        self.late.load(Relaxed)
    }
}

/// Lets a reader have what it asks for, and, where writing goes first, only while that has nothing to do.
#[derive(Debug)]
pub struct ReadGate<'a> {
    tally: &'a Tally,
    ask: ReadDemand,
    busy: Option<&'a AtomicBool>,
    got: u64,
}

impl<'a> ReadGate<'a> {
    /// `busy` is set while the writer is at work.
    pub fn new(tally: &'a Tally, ask: ReadDemand, busy: Option<&'a AtomicBool>) -> Self {
        Self { tally, ask, busy, got: 0 }
    }

    /// Waits until the reader may go on; `false` when the cell is over.
    pub fn may(&self) -> bool {
        self.tally.wait(|| {
            let due = self.ask.bytes().is_none_or(|rate| (self.got as f64) < rate * self.tally.seconds());
            due && !self.busy.is_some_and(|busy| busy.load(Relaxed))
        })
    }

    /// It got so much.
    pub fn got(&mut self, bytes: u64) {
        self.got += bytes;
        self.tally.read(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_after_the_end_is_not_counted() {
        let tally = Tally::lasting(Duration::from_hours(1));
        tally.offered(10);
        tally.lost(3);
        tally.durable(5);
        tally.read(2);
        tally.stop();
        tally.durable(2);
        tally.read(2);
        let counts = tally.counts();
        assert_eq!(counts, Counts { offered: 10, lost: 3, durable: 5, read: 2 });
        assert_eq!(counts.pending(), 2);
    }

    #[test]
    fn a_reader_waits_for_its_pace_for_the_writer_and_not_beyond_the_end() {
        let tally = Tally::lasting(Duration::from_hours(1));
        let busy = AtomicBool::new(false);
        let mut gate = ReadGate::new(&tally, ReadDemand::All, Some(&busy));
        assert!(gate.may());
        gate.got(7);
        assert_eq!(tally.counts().read, 7);
        busy.store(true, Relaxed);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| gate.may());
            tally.stop();
            assert!(!waiting.join().unwrap());
        });
        assert!(!ReadGate::new(&tally, ReadDemand::Rate(0), None).may());
    }
}
