//! Hybrid logical clock: stamps that respect causality and stay close to wall time.
//!
//! No system clock is read here: callers pass `now`.

use crate::ids::SiteId;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Greatest lead of a remote stamp over the local clock, in milliseconds: five minutes.
///
/// Sites run NTP; a larger lead means a broken clock, and would carry every later stamp with it.
pub const MAX_LEAD_MS: u64 = 5 * 60 * 1000;

/// Bits of the logical counter below the milliseconds.
const COUNTER_BITS: u32 = 16;

/// Latest millisecond that a stamp can hold (year 6429): a stamp fits a signed integer.
const MAX_MILLIS: u64 = (1 << 47) - 1;

/// Milliseconds of wall time since 1970 (UTC).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Millis(pub u64);

/// Time part of a stamp: 47 bits of milliseconds above a 16-bit counter.
///
/// ```text
/// bit 63      0
/// bit 62..16  milliseconds since 1970
/// bit 15..0   counter of events within the millisecond; an overflow carries into the milliseconds
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
pub struct HlcTime(pub u64);

impl HlcTime {
    /// Packs milliseconds and a counter.
    pub const fn new(millis: u64, counter: u16) -> Self {
        Self((millis << COUNTER_BITS) | counter as u64)
    }

    /// Physical part, in milliseconds since 1970.
    pub const fn millis(self) -> Millis {
        Millis(self.0 >> COUNTER_BITS)
    }

    /// Logical part: counter of events within the millisecond.
    pub const fn counter(self) -> u16 {
        self.0 as u16
    }
}

/// Time of the first stamp that is not older than `age`.
pub(crate) fn oldest_within(age: std::time::Duration, now: Millis) -> HlcTime {
    let age = u64::try_from(age.as_millis()).unwrap_or(u64::MAX);
    HlcTime::new(now.0.saturating_sub(age).min(MAX_MILLIS), 0)
}

/// Stamp of an operation. The order is total: time first, then site.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Hlc {
    /// Time of the stamp, unique within its site.
    pub time: HlcTime,
    /// Site that made the stamp; it breaks ties.
    pub site: SiteId,
}

impl fmt::Display for Hlc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}@{}", self.time.millis().0, self.time.counter(), self.site)
    }
}

/// Refusal of a stamp or of a time by the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClockError {
    /// Remote stamp that leads the local clock by more than [`MAX_LEAD_MS`].
    #[error(
        "cannot accept stamp {stamp}: it is {lead_ms} ms ahead of the local clock, more than {MAX_LEAD_MS} ms; \
         correct the clock of site {} or of this site", stamp.site
    )]
    Ahead {
        /// Stamp that was refused.
        stamp: Hlc,
        /// Lead over the local clock, in milliseconds.
        lead_ms: u64,
    },
    /// Wall time beyond the range of stamps.
    #[error("cannot make a stamp at {0} ms: stamps end at {MAX_MILLIS} ms; correct the clock of this site")]
    Range(u64),
}

/// True if a stamp leads the time by more than [`MAX_LEAD_MS`].
pub(crate) fn is_ahead(stamp: Hlc, now: Millis) -> bool {
    stamp.time.millis().0.saturating_sub(now.0) > MAX_LEAD_MS
}

/// Clock of one site. Its stamps grow, and are greater than each stamp that it has witnessed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clock {
    site: SiteId,
    last: HlcTime,
}

impl Clock {
    /// Clock of a site that continues after `last`, the greatest stamp that the site has kept.
    pub const fn new(site: SiteId, last: HlcTime) -> Self {
        Self { site, last }
    }

    /// Greatest time that the clock has given or witnessed.
    pub const fn last(&self) -> HlcTime {
        self.last
    }

    /// Makes the stamp of a local event. A wall clock that was set back does not set stamps back.
    pub fn tick(&mut self, now: Millis) -> Result<Hlc, ClockError> {
        let next = HlcTime(self.last.0 + 1);
        let time = if now.0 > MAX_MILLIS { next } else { next.max(HlcTime::new(now.0, 0)) };
        if now.0 > MAX_MILLIS || time.millis().0 > MAX_MILLIS {
            return Err(ClockError::Range(now.0));
        }
        self.last = time;
        Ok(Hlc { time, site: self.site })
    }

    /// Takes note of a remote stamp, so that later local stamps are greater.
    pub fn witness(&mut self, remote: Hlc, now: Millis) -> Result<(), ClockError> {
        let lead_ms = remote.time.millis().0.saturating_sub(now.0);
        if is_ahead(remote, now) || remote.time.millis().0 > MAX_MILLIS {
            return Err(ClockError::Ahead { stamp: remote, lead_ms });
        }
        self.last = self.last.max(remote.time);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn site(number: u64) -> SiteId {
        SiteId::new(number).unwrap()
    }

    #[test]
    fn stamps_grow_when_the_wall_clock_is_set_back() {
        let mut clock = Clock::new(site(1), HlcTime::default());
        let first = clock.tick(Millis(1_000)).unwrap();
        let second = clock.tick(Millis(10)).unwrap();
        assert!(second > first);
        assert_eq!((second.time.millis(), second.time.counter()), (Millis(1_000), 1));
    }

    #[test]
    fn a_full_counter_carries_into_the_milliseconds() {
        let mut clock = Clock::new(site(1), HlcTime::new(7, u16::MAX));
        assert_eq!(clock.tick(Millis(7)).unwrap().time, HlcTime::new(8, 0));
    }

    #[test]
    fn a_stamp_more_than_five_minutes_ahead_is_refused_and_changes_nothing() {
        let mut clock = Clock::new(site(1), HlcTime::default());
        let at = |millis| Hlc { time: HlcTime::new(millis, 0), site: site(2) };
        assert_eq!(clock.witness(at(MAX_LEAD_MS), Millis(0)), Ok(()));
        let last = clock.last();
        let refused = clock.witness(at(MAX_LEAD_MS + 1), Millis(0)).unwrap_err();
        assert_eq!(refused, ClockError::Ahead { stamp: at(MAX_LEAD_MS + 1), lead_ms: MAX_LEAD_MS + 1 });
        assert!(refused.to_string().starts_with("cannot accept stamp 300001.0@2: it is 300001 ms ahead"));
        assert_eq!(clock.last(), last);
    }

    #[test]
    fn times_beyond_the_range_are_refused() {
        let mut clock = Clock::new(site(1), HlcTime::default());
        assert_eq!(clock.tick(Millis(u64::MAX)), Err(ClockError::Range(u64::MAX)));
        let mut clock = Clock::new(site(1), HlcTime::new(MAX_MILLIS, u16::MAX));
        assert_eq!(clock.tick(Millis(5)), Err(ClockError::Range(5)));
    }

    proptest! {
        #[test]
        fn stamps_exceed_all_that_came_before(steps in prop::collection::vec((0u64..400_000, any::<Option<u16>>()), 1..60)) {
            let mut clock = Clock::new(site(1), HlcTime::default());
            let mut greatest = HlcTime::default();
            for (now, remote) in steps {
                if let Some(lead) = remote {
                    let stamp = Hlc { time: HlcTime::new(now + u64::from(lead), lead), site: site(2) };
                    clock.witness(stamp, Millis(now)).unwrap();
                    greatest = greatest.max(stamp.time);
                } else {
                    let stamp = clock.tick(Millis(now)).unwrap();
                    prop_assert!(stamp.time > greatest);
                    prop_assert!(stamp.time >= HlcTime::new(now, 0));
                    greatest = stamp.time;
                }
            }
        }
    }
}
