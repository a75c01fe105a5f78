//! Rate limit at a local time. Pure: the caller passes the time. The limiter itself is in `throttle`.

use jiff::civil::{DateTime, Time, Weekday};

/// Days that are searched for the next change: a rule repeats after a week at the latest.
const SEARCHED_DAYS: i64 = 8;

/// Limit of the rate of sending.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RateLimit {
    /// The network alone limits the rate.
    #[default]
    Unlimited,
    /// Bytes per second; zero stops sending.
    BytesPerSecond(u64),
}

/// Rule that sets a limit for some hours of some days.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduleRule {
    /// Time of day at which the rule begins.
    pub from: Time,
    /// Time of day at which the rule ends, on the next day if it is not after `from`.
    pub to: Time,
    /// Days on which the rule begins; empty for every day.
    pub days: Vec<Weekday>,
    /// Limit while the rule holds.
    pub limit: RateLimit,
}

/// Rate limits over the week: the first rule that holds, or else a base limit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RateSchedule {
    /// Limit while no rule holds.
    pub base: RateLimit,
    /// Rules in the order of their precedence.
    pub rules: Vec<ScheduleRule>,
}

impl ScheduleRule {
    fn holds_at(&self, now: DateTime) -> bool {
        let begins_on = |day| self.days.is_empty() || self.days.contains(&day);
        let (time, today) = (now.time(), now.date().weekday());
        if self.from < self.to {
            return begins_on(today) && self.from <= time && time < self.to;
        }
        (begins_on(today) && self.from <= time) || (begins_on(today.previous()) && time < self.to)
    }
}

impl RateSchedule {
    /// Limit at a local time.
    pub fn limit_at(&self, now: DateTime) -> RateLimit {
        self.rules.iter().find(|rule| rule.holds_at(now)).map_or(self.base, |rule| rule.limit)
    }

    /// Next local time at which the limit changes; `None` if it never does.
    pub fn next_change(&self, now: DateTime) -> Option<DateTime> {
        let current = self.limit_at(now);
        let days =
            (0..=SEARCHED_DAYS).filter_map(|days| now.date().checked_add(jiff::Span::new().days(days)).ok());
        let times = || self.rules.iter().flat_map(|rule| [rule.from, rule.to]);
        let moments = days.flat_map(|day| times().map(move |time| day.to_datetime(time)));
        moments.filter(|moment| *moment > now && self.limit_at(*moment) != current).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::ToSpan as _;
    use jiff::civil::{date, time};
    use proptest::prelude::*;

    const SLOW: RateLimit = RateLimit::BytesPerSecond(1);

    fn rule(from: i8, to: i8, days: &[Weekday], limit: RateLimit) -> ScheduleRule {
        ScheduleRule { from: time(from, 0, 0, 0), to: time(to, 0, 0, 0), days: days.to_vec(), limit }
    }

    #[test]
    fn rules_hold_within_their_hours_and_across_midnight() {
        let days = [Weekday::Friday];
        let rules = vec![rule(8, 18, &[], SLOW), rule(22, 6, &days, RateLimit::BytesPerSecond(2))];
        let schedule = RateSchedule { base: RateLimit::Unlimited, rules };
        // 2026-01-02 is a Friday.
        let friday = |hour| date(2026, 1, 2).at(hour, 0, 0, 0);
        let saturday = |hour| date(2026, 1, 3).at(hour, 0, 0, 0);
        assert_eq!(schedule.limit_at(friday(5)), RateLimit::Unlimited);
        assert_eq!(schedule.limit_at(friday(8)), SLOW);
        assert_eq!(schedule.limit_at(friday(18)), RateLimit::Unlimited);
        assert_eq!(schedule.limit_at(friday(22)), RateLimit::BytesPerSecond(2));
        assert_eq!(schedule.limit_at(saturday(5)), RateLimit::BytesPerSecond(2));
        assert_eq!(schedule.limit_at(saturday(6)), RateLimit::Unlimited);
        assert_eq!(schedule.next_change(friday(8)), Some(friday(18)));
        assert_eq!(schedule.next_change(friday(23)), Some(saturday(6)));
        assert_eq!(RateSchedule::default().next_change(friday(8)), None);
        let whole_day = RateSchedule { rules: vec![rule(7, 7, &days, SLOW)], ..RateSchedule::default() };
        assert_eq!(whole_day.limit_at(saturday(6)), SLOW);
        assert_eq!(whole_day.limit_at(saturday(7)), RateLimit::Unlimited);
    }

    proptest! {
        #[test]
        fn the_next_change_is_the_first_hour_with_another_limit(
            hours in proptest::collection::vec((0_i8..24, 0_i8..24, 0_u8..128, 0_u64..3), 0..4),
            start in 0_i64..168,
        ) {
            let rules = hours.iter().map(|(from, to, days, limit)| {
                let days: Vec<_> = (0..7)
                    .filter(|day| days >> day & 1 == 1)
                    .map(|day| Weekday::from_monday_zero_offset(day).unwrap())
                    .collect();
                rule(*from, *to, &days, RateLimit::BytesPerSecond(*limit))
            });
            let schedule = RateSchedule { base: RateLimit::BytesPerSecond(0), rules: rules.collect() };
            let now = date(2026, 1, 5).at(0, 0, 0, 0).checked_add(start.hours()).unwrap();
            let later = (1..=7 * 24 + 1).map(|hour: i64| now.checked_add(hour.hours()).unwrap());
            let current = schedule.limit_at(now);
            let expected = later.into_iter().find(|moment| schedule.limit_at(*moment) != current);
            prop_assert_eq!(schedule.next_change(now), expected);
        }
    }
}
