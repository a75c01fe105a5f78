//! Wall clock of a server, replaceable in tests, and its timestamps.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Instant in milliseconds since 1970-01-01 UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// Timestamp of a number of milliseconds since 1970.
    pub fn from_milliseconds(milliseconds: i64) -> Self {
        Self(milliseconds)
    }

    /// Number of milliseconds since 1970.
    pub fn milliseconds(self) -> i64 {
        self.0
    }

    /// Timestamp that lies `duration` later, at most the greatest one.
    #[must_use]
    pub fn plus(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)))
    }

    /// Duration since an earlier timestamp; zero if that one is later.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0).max(0) as u64)
    }

    /// Date in the format of HTTP headers, with a resolution of one second.
    pub(crate) fn http_date(self) -> String {
        // The greatest date that the format can carry is the end of the year 9999.
        let seconds = self.0.div_euclid(1000).clamp(0, 253_402_300_799);
        httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(seconds as u64))
    }
}

/// Source of the current time.
#[derive(Clone, Debug)]
pub enum Clock {
    /// Clock of the operating system.
    System,
    /// Clock that moves only by [`Clock::advance`].
    Manual(Arc<AtomicI64>),
}

impl Clock {
    /// Manual clock that stands at `start`.
    pub fn manual(start: Timestamp) -> Self {
        Self::Manual(Arc::new(AtomicI64::new(start.0)))
    }

    /// Current time of this clock.
    pub fn now(&self) -> Timestamp {
        match self {
            Self::System => {
                let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
            }
            Self::Manual(now) => Timestamp(now.load(Ordering::SeqCst)),
        }
    }

    /// Moves a manual clock forward; a system clock does not move.
    pub fn advance(&self, duration: Duration) {
        if let Self::Manual(now) = self {
            now.fetch_add(duration.as_millis() as i64, Ordering::SeqCst);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manual_clock_moves_only_when_told() {
        let clock = Clock::manual(Timestamp::from_milliseconds(1_500));
        let twin = clock.clone();
        twin.advance(Duration::from_secs(2));
        assert_eq!(clock.now(), Timestamp::from_milliseconds(3_500));
        assert_eq!(clock.now().since(Timestamp::from_milliseconds(500)), Duration::from_secs(3));
        assert_eq!(Timestamp::from_milliseconds(0).since(clock.now()), Duration::ZERO);
        assert_eq!(clock.now().http_date(), "Thu, 01 Jan 1970 00:00:03 GMT");
        assert_eq!(clock.now().plus(Duration::MAX).http_date(), "Fri, 31 Dec 9999 23:59:59 GMT");
    }
}
