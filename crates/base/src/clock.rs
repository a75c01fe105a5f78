//! The clock: monotonic time anchored to UTC once, so that arrival times never step.

use crate::Timestamp;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Tells the time. Decisions never ask it: `now` is passed to them.
pub trait Clock: Send + Sync {
    /// Arrival time: monotonic, anchored to UTC once per epoch.
    fn now(&self) -> Timestamp;
    /// What the machine's wall clock says, steps included.
    fn wall(&self) -> Timestamp;
}

fn wall() -> Timestamp {
    match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(span) => Timestamp(i64::try_from(span.as_nanos()).unwrap_or(i64::MAX)),
        Err(before) => Timestamp(-i64::try_from(before.duration().as_nanos()).unwrap_or(i64::MAX)),
    }
}

/// The machine's clock.
#[derive(Clone, Debug)]
pub struct SystemClock {
    start: Instant,
    anchor: Timestamp,
}

impl SystemClock {
    /// Anchors the monotonic clock to what the wall clock says now.
    pub fn new() -> Self {
        Self { start: Instant::now(), anchor: wall() }
    }

    /// Anchors to the wall clock, but not before `floor`: arrival times of one ring never go back, even when
    /// the wall clock was set back between two runs.
    pub fn not_before(floor: Timestamp) -> Self {
        Self { start: Instant::now(), anchor: wall().max(floor) }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        self.anchor + self.start.elapsed()
    }

    fn wall(&self) -> Timestamp {
        wall()
    }
}

/// A clock that tests move by hand. Clones share the time.
#[derive(Clone, Debug, Default)]
pub struct ManualClock {
    now: Arc<AtomicI64>,
}

impl ManualClock {
    /// A clock that stands at `now`.
    pub fn new(now: Timestamp) -> Self {
        Self { now: Arc::new(AtomicI64::new(now.0)) }
    }

    /// Moves the clock.
    pub fn set(&self, now: Timestamp) {
        self.now.store(now.0, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.now.load(Ordering::SeqCst))
    }

    fn wall(&self) -> Timestamp {
        self.now()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrival_time_starts_at_the_floor_when_the_wall_clock_went_back() {
        let floor = wall() + std::time::Duration::from_hours(1);
        let clock = SystemClock::not_before(floor);
        assert!(clock.now() >= floor);
        assert!(clock.wall() < floor);
    }

    #[test]
    fn clones_of_a_manual_clock_share_the_time() {
        let clock = ManualClock::new(Timestamp(1));
        let seen = clock.clone();
        clock.set(Timestamp(7));
        assert_eq!((seen.now(), seen.wall()), (Timestamp(7), Timestamp(7)));
    }
}
