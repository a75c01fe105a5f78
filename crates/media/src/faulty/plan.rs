//! Fault plan of a faulty disk: which faults, how often and where. Only numbers: `faulty` and `medium` have
//! their effects.

use holdfast_base::{BLOCK, Rate};
use std::ops::Range;
use std::time::Duration;

/// The faults of a disk. The default has none: requests are done at once, in order.
///
/// Chances are shares of all requests of the kind, from 0 to 1. Ranges are bytes on the medium.
#[derive(Clone, Debug, PartialEq)]
pub struct FaultPlan {
    /// What the medium writes whole or not at all: 512 or 4096. Crashes and failing writes tear between sectors.
    pub sector: usize,
    /// Every request takes at least this.
    pub latency: Duration,
    /// And up to this more, drawn for each: requests overtake each other.
    pub jitter: Duration,
    /// One request after the other, at this rate; without it all are served side by side.
    pub rate: Option<Rate>,
    /// Requests that are ready complete in any order.
    pub reorder: bool,
    /// Times at which nothing is done.
    pub stalls: Vec<Stall>,
    /// Chance that a write fails; any of its sectors may have been written.
    pub write_error: f64,
    /// Chance that a read fails.
    pub read_error: f64,
    /// Chance that a flush fails; any part of what it was to bring to the medium is lost for good.
    pub flush_error: f64,
    /// Writes that touch these fail, always.
    pub unwritable: Vec<Range<u64>>,
    /// Reads that touch these fail until the place is written again.
    pub unreadable: Vec<Range<u64>>,
    /// Chance that a read delivers one wrong bit.
    pub flip_read: f64,
    /// Chance that a write puts one wrong bit on the medium.
    pub flip_write: f64,
    /// Chance that a write is reported done, and never is.
    pub phantom: f64,
    /// Chance that a write is reported failed, and lands `zombie_after` later over whatever stands there then.
    pub zombie: f64,
    /// See `zombie`.
    pub zombie_after: Duration,
    /// Writes that end beyond this, and growing beyond it, find no space.
    pub room: Option<u64>,
}

/// A time at which a disk does nothing, once or again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stall {
    /// Start, counted from the clock's time when the disk was made.
    pub first: Duration,
    /// How long.
    pub length: Duration,
    /// From start to start; `None` for one that never returns.
    pub every: Option<Duration>,
}

impl Default for FaultPlan {
    fn default() -> Self {
        Self {
            sector: 512,
            latency: Duration::ZERO,
            jitter: Duration::ZERO,
            rate: None,
            reorder: false,
            stalls: Vec::new(),
            write_error: 0.0,
            read_error: 0.0,
            flush_error: 0.0,
            unwritable: Vec::new(),
            unreadable: Vec::new(),
            flip_read: 0.0,
            flip_write: 0.0,
            phantom: 0.0,
            zombie: 0.0,
            zombie_after: Duration::from_secs(30),
            room: None,
        }
    }
}

impl FaultPlan {
    /// The sector size, made sane.
    pub(super) fn sector(&self) -> usize {
        self.sector.clamp(1, BLOCK)
    }

    /// When something that would end at `at` (counted from the disk's start) ends, stalls considered.
    pub(super) fn after_stalls(&self, mut at: Duration) -> Duration {
        // One stall may push into another; two rounds over the list settle all but absurd plans.
        for stall in self.stalls.iter().chain(&self.stalls) {
            at = stall.delay(at);
        }
        at
    }
}

impl Stall {
    fn delay(&self, at: Duration) -> Duration {
        let Some(since) = at.checked_sub(self.first) else { return at };
        let into = match self.every {
            Some(every) if !every.is_zero() => {
                Duration::from_nanos((since.as_nanos() % every.as_nanos()) as u64)
            }
            _ => since,
        };
        at + self.length.saturating_sub(into)
    }
}

/// Whether any of `ranges` has a byte in common with `len` bytes at `offset`.
pub(super) fn touches(ranges: &[Range<u64>], offset: u64, len: u64) -> bool {
    ranges.iter().any(|range| range.start < offset + len && offset < range.end)
}

/// Takes `len` bytes at `offset` out of `ranges`.
pub(super) fn remove(ranges: &mut Vec<Range<u64>>, offset: u64, len: u64) {
    if !touches(ranges, offset, len) {
        return;
    }
    let end = offset + len;
    *ranges = ranges
        .iter()
        .flat_map(|range| [range.start..range.end.min(offset), range.start.max(end)..range.end])
        .filter(|range| range.start < range.end)
        .collect();
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: Duration = Duration::from_secs(1);

    #[test]
    fn stalls_come_once_or_again() {
        let once = FaultPlan {
            stalls: vec![Stall { first: 10 * S, length: 2 * S, every: None }],
            ..FaultPlan::default()
        };
        assert_eq!(once.after_stalls(9 * S), 9 * S);
        assert_eq!(once.after_stalls(11 * S), 12 * S);
        assert_eq!(once.after_stalls(111 * S), 111 * S);
        let again = FaultPlan {
            stalls: vec![Stall { first: 10 * S, length: 2 * S, every: Some(100 * S) }],
            ..FaultPlan::default()
        };
        assert_eq!(again.after_stalls(111 * S), 112 * S);
        assert_eq!(again.after_stalls(113 * S), 113 * S);
    }

    #[test]
    fn ranges_are_cut_out() {
        let mut ranges = vec![0..100, 200..300];
        remove(&mut ranges, 50, 200);
        assert_eq!(ranges, [0..50, 250..300]);
        assert!(touches(&ranges, 49, 1) && !touches(&ranges, 50, 200) && touches(&ranges, 0, 500));
    }
}
