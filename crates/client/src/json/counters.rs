//! Counters of a stream.

use holdfast_format as format;
use serde::Serialize;

/// Counters of a stream over the ring's life.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Counters {
    /// Number of elements received.
    pub received: u64,
    /// Bytes of their payloads.
    pub received_bytes: u64,
    /// Elements known to be lost.
    pub lost: u64,
    /// Bytes of their payloads, as far as known.
    pub lost_bytes: u64,
    /// Ordinal of the next element.
    pub next_ordinal: u64,
    /// Number of gaps recorded.
    pub gaps: u64,
    /// Gaps of an unknown number of elements.
    pub unknown_gaps: u64,
}

impl From<&format::Counters> for Counters {
    fn from(counters: &format::Counters) -> Self {
        Self {
            received: counters.received,
            received_bytes: counters.received_bytes,
            lost: counters.lost,
            lost_bytes: counters.lost_bytes,
            next_ordinal: counters.next_ordinal.0,
            gaps: counters.gaps,
            unknown_gaps: counters.unknown_gaps,
        }
    }
}
