//! Token bucket that all connections share. Pure: the caller passes the time and waits.

use crate::rate_schedule::RateLimit;
use std::time::{Duration, Instant};

/// Bytes that may be sent at once after a pause: one second of the rate, and at least one default block.
const LEAST_BURST: u64 = 1 << 20;

const NANOSECONDS: u128 = 1_000_000_000;

/// Token bucket. Every admission reserves its bytes, so the order of the calls is the order of sending.
#[derive(Clone, Debug)]
pub struct Throttle {
    limit: RateLimit,
    /// Admitted bytes that the rate has not worked off yet, in bytes times nanoseconds per second, at the time `at`.
    debt: u128,
    at: Instant,
}

impl Throttle {
    /// Makes a full bucket.
    pub fn new(limit: RateLimit, now: Instant) -> Self {
        Self { limit, debt: 0, at: now }
    }

    /// Changes the limit. Bytes that were admitted before count at the new rate.
    pub fn set_limit(&mut self, limit: RateLimit, now: Instant) {
        self.work_off(now);
        self.limit = limit;
        if limit == RateLimit::Unlimited {
            self.debt = 0;
        }
    }

    /// Admits bytes and returns the time at which they may be sent; `None`, without a reservation, while the rate is zero.
    pub fn admit(&mut self, bytes: u64, now: Instant) -> Option<Instant> {
        self.work_off(now);
        let rate = match self.limit {
            RateLimit::Unlimited => return Some(now),
            RateLimit::BytesPerSecond(0) => return None,
            RateLimit::BytesPerSecond(rate) => rate,
        };
        let burst = u128::from(rate.max(LEAST_BURST)) * NANOSECONDS;
        self.debt += u128::from(bytes) * NANOSECONDS;
        let wait = self.debt.saturating_sub(burst).div_ceil(u128::from(rate));
        let wait = Duration::from_nanos(u64::try_from(wait).unwrap_or(u64::MAX));
        now.checked_add(wait)
    }

    fn work_off(&mut self, now: Instant) {
        if let RateLimit::BytesPerSecond(rate) = self.limit {
            let passed = now.saturating_duration_since(self.at).as_nanos();
            self.debt = self.debt.saturating_sub(passed.saturating_mul(u128::from(rate)));
        }
        self.at = self.at.max(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn limits_change_while_bytes_wait() {
        let start = Instant::now();
        let second = Duration::from_secs(1);
        let mut throttle = Throttle::new(RateLimit::BytesPerSecond(1 << 20), start);
        assert_eq!(throttle.admit(1 << 20, start), Some(start));
        assert_eq!(throttle.admit(2 << 20, start), Some(start + 2 * second));
        throttle.set_limit(RateLimit::BytesPerSecond(0), start + second);
        assert_eq!(throttle.admit(1, start + second), None);
        assert_eq!(throttle.admit(1, start + 100 * second), None);
        // Two of three megabytes are still to be worked off, one of which is the burst.
        throttle.set_limit(RateLimit::BytesPerSecond(1 << 19), start + 100 * second);
        assert_eq!(throttle.admit(0, start + 100 * second), Some(start + 102 * second));
        throttle.set_limit(RateLimit::Unlimited, start + 100 * second);
        assert_eq!(throttle.admit(1 << 40, start + 100 * second), Some(start + 100 * second));
    }

    proptest! {
        #[test]
        fn no_period_carries_more_than_rate_and_burst(
            rate in 1_u64..10_000_000,
            steps in proptest::collection::vec((0_u64..3_000_000, 0_u64..2_000_000_000), 1..50),
        ) {
            let start = Instant::now();
            let mut throttle = Throttle::new(RateLimit::BytesPerSecond(rate), start);
            let (mut now, mut sent) = (start, Vec::new());
            for (bytes, pause) in steps {
                now += Duration::from_nanos(pause);
                let at = throttle.admit(bytes, now).unwrap();
                prop_assert!(at >= now);
                sent.push((at, bytes));
            }
            for first in 0..sent.len() {
                let mut total: u128 = 0;
                for (at, bytes) in &sent[first..] {
                    total += u128::from(*bytes);
                    let period = at.duration_since(sent[first].0).as_nanos();
                    // One segment that begins the period may be greater than the burst.
                    let most = period * u128::from(rate) / NANOSECONDS
                        + u128::from(rate.max(LEAST_BURST)) + u128::from(sent[first].1) + 1;
                    prop_assert!(total <= most, "{} > {}", total, most);
                }
            }
        }

        #[test]
        fn a_saturated_throttle_reaches_its_rate(rate in 100_000_u64..10_000_000) {
            let start = Instant::now();
            let mut throttle = Throttle::new(RateLimit::BytesPerSecond(rate), start);
            let mut last = start;
            for _ in 0..100 {
                last = throttle.admit(1 << 20, last).unwrap();
            }
            let ideal = (100.0 * f64::from(1 << 20)) / rate as f64;
            let took = last.duration_since(start).as_secs_f64();
            prop_assert!(took <= ideal, "{} > {}", took, ideal);
        }
    }
}
