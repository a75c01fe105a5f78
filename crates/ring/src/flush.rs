//! Whether what the open slot gained goes to the journal now, or soon enough to its place with the slot itself. Pure.

use std::time::Duration;

/// How an open slot fills.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Filling {
    /// Bytes of payload it could still take.
    pub(crate) room: u64,
    /// Bytes it gained since the journal last had it all.
    pub(crate) gained: u64,
    /// Age of the oldest of them.
    pub(crate) oldest: Duration,
    /// Time since gains were last looked at, and what came in that time.
    pub(crate) lately: (Duration, u64),
}

/// Whether to journal the gains now. `flush` is the flush interval.
///
/// A slot that will be full within two intervals at the rate of late skips the journal (its own write makes it
/// durable as soon), but nothing waits for more than two intervals: so data is on its way at an age of at most
/// three intervals, which is what [`durable_after`] publishes.
pub(crate) fn due(filling: &Filling, flush: Duration) -> bool {
    if filling.gained == 0 || filling.oldest < flush {
        return false;
    }
    if filling.oldest >= flush * 2 {
        return true;
    }
    let (span, bytes) = filling.lately;
    let rate = bytes as f64 / span.as_secs_f64().max(1e-9);
    let fills_in = filling.room as f64 / rate.max(1e-9);
    fills_in > (flush * 2).as_secs_f64()
}

/// The bound on the age of data that a crash can cost on a ring without a profile: three flush intervals, and the
/// time `write` that the medium was seen to take for a slot at worst.
pub fn durable_after(flush: Duration, write: Duration) -> Duration {
    flush * 3 + write
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLUSH: Duration = Duration::from_secs(1);

    fn filling(gained: u64, oldest_ms: u64, rate: u64) -> Filling {
        Filling {
            room: 1000,
            gained,
            oldest: Duration::from_millis(oldest_ms),
            lately: (Duration::from_secs(1), rate),
        }
    }

    #[test]
    fn slow_gains_are_journaled_after_one_interval() {
        assert!(!due(&filling(0, 5000, 10), FLUSH));
        assert!(!due(&filling(10, 999, 10), FLUSH));
        assert!(due(&filling(10, 1000, 10), FLUSH));
    }

    #[test]
    fn fast_gains_wait_for_their_slot_but_never_longer_than_two_intervals() {
        assert!(!due(&filling(900, 1500, 600), FLUSH));
        assert!(due(&filling(900, 2000, 600), FLUSH));
    }
}
