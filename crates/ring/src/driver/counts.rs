//! Counters of a driver: bytes, requests and their durations. Plain data.

use std::time::Duration;

/// What passed through, cumulative since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DriverCounts {
    /// Slots written.
    pub writes: u64,
    /// Their bytes.
    pub write_bytes: u64,
    /// Bytes of commits.
    pub journal_bytes: u64,
    /// Reads for others.
    pub reads: u64,
    /// Their bytes.
    pub read_bytes: u64,
    /// Requests of our own, not for others, that succeeded.
    pub answers: u64,
    /// Errors that the disk told.
    pub errors: u64,
    /// How long slot writes took.
    pub writing: Took,
    /// How long reads for others took.
    pub reading: Took,
}

/// How long requests of a kind took, cumulative since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Took {
    /// Requests by that: bucket `n` has those below 2ⁿ µs.
    pub buckets: [u64; 32],
    /// The longest.
    pub worst: Duration,
    /// All of them together.
    pub total: Duration,
}

impl Took {
    pub(super) fn add(&mut self, took: Duration) {
        self.worst = self.worst.max(took);
        self.total = self.total.saturating_add(took);
        let micros = took.as_micros().min(u128::from(u32::MAX / 2)) as u64;
        self.buckets[(64 - micros.leading_zeros() as usize).min(31)] += 1;
    }
}
