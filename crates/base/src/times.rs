//! Text forms of points in time and lengths of time, for people and for JSON. What people type is parsed elsewhere.

use crate::Timestamp;
use std::time::Duration;

/// Nanoseconds of a second.
const SECOND: i64 = 1_000_000_000;
/// Seconds of a day.
const DAY: i64 = 86_400;

/// RFC 3339 in UTC, with nanoseconds when there are any.
pub fn rfc3339(time: Timestamp) -> String {
    let nanos = format!("{:09}", time.0.rem_euclid(SECOND));
    let fraction = nanos.trim_end_matches('0');
    let point = if fraction.is_empty() { "" } else { "." };
    format!("{}{point}{fraction}Z", seconds(time))
}

/// RFC 3339 in UTC to the second: for tables.
pub fn to_the_second(time: Timestamp) -> String {
    format!("{}Z", seconds(time))
}

/// RFC 3339 in UTC to the millisecond: for tables.
pub fn to_the_milli(time: Timestamp) -> String {
    format!("{}.{:03}Z", seconds(time), time.0.rem_euclid(SECOND) / 1_000_000)
}

/// Date and time of day to the second, without a zone.
fn seconds(time: Timestamp) -> String {
    let seconds = time.0.div_euclid(SECOND);
    let (day, second) = (seconds.div_euclid(DAY), seconds.rem_euclid(DAY));
    let (year, month, day) = date(day);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")
}

/// Year, month and day of a number of days since 1970-01-01, in the Gregorian calendar.
fn date(day: i64) -> (i64, i64, i64) {
    // Days since 0000-03-01: leap days come last in a year that begins in March. An era is 400 years.
    let day = day + 719_468;
    let (era, of_era) = (day.div_euclid(146_097), day.rem_euclid(146_097));
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let march = (5 * of_year + 2) / 153;
    let month = if march < 10 { march + 3 } else { march - 9 };
    (era * 400 + year + i64::from(month <= 2), month, of_year - (153 * march + 2) / 5 + 1)
}

/// A length of time as people say it: two units at most (`3 d 4 h`, `12 min 5 s`, `1.5 s`, `320 ms`).
pub fn spoken(span: Duration) -> String {
    said(span, false)
}

/// The same of a bound: what is said is no less than it is.
pub fn spoken_up(span: Duration) -> String {
    said(span, true)
}

fn said(span: Duration, up: bool) -> String {
    // In steps of the smallest unit that is told.
    let step: u128 = match span.as_secs() {
        0 if span.as_millis() > 0 => 1_000_000,
        0 if span.as_micros() > 0 => 1_000,
        0 => 1,
        1..60 => 100_000_000,
        60..3600 => 1_000_000_000,
        3600..86400 => 60_000_000_000,
        86400..31_536_000 => 3_600_000_000_000,
        _ => 86_400_000_000_000,
    };
    let steps = if up { span.as_nanos().div_ceil(step) } else { span.as_nanos() / step };
    let nanos = u64::try_from(steps.saturating_mul(step)).unwrap_or(u64::MAX);
    let span = Duration::from_nanos(nanos);
    let seconds = span.as_secs();
    match seconds {
        0 if span.is_zero() => "0 s".to_owned(),
        0 if span.as_millis() > 0 => format!("{} ms", span.as_millis()),
        0 if span.as_micros() > 0 => format!("{} µs", span.as_micros()),
        0 => format!("{} ns", span.as_nanos()),
        1..60 => match span.subsec_millis() / 100 {
            0 if seconds >= 10 => format!("{seconds} s"),
            tenths => format!("{seconds}.{tenths} s"),
        },
        60..3600 => pair(seconds, 60, "min", 1, "s"),
        3600..86400 => pair(seconds, 3600, "h", 60, "min"),
        86400..31_536_000 => pair(seconds, 86400, "d", 3600, "h"),
        _ => pair(seconds, 31_536_000, "y", 86400, "d"),
    }
}

fn pair(seconds: u64, large: u64, large_name: &str, small: u64, small_name: &str) -> String {
    let rest = seconds % large / small;
    let first = format!("{} {large_name}", seconds / large);
    if rest == 0 { first } else { format!("{first} {rest} {small_name}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_795_169_100_000_000_000);

    #[test]
    fn times_and_spans_are_shown_for_people() {
        let time = Timestamp(NOW.0 + 1_500);
        assert_eq!(rfc3339(time), "2026-11-20T10:05:00.0000015Z");
        assert_eq!(rfc3339(NOW), "2026-11-20T10:05:00Z");
        assert_eq!(to_the_second(time), "2026-11-20T10:05:00Z");
        assert_eq!(to_the_milli(time), "2026-11-20T10:05:00.000Z");
        assert_eq!(to_the_second(Timestamp(-1)), "1969-12-31T23:59:59Z");
        for (nanos, text) in [
            (0, "0 s"),
            (320_000_000, "320 ms"),
            (1_500_000_000, "1.5 s"),
            (1_580_000_000, "1.5 s"),
            (17_750_000_000, "17.7 s"),
            (59_900_000_000, "59.9 s"),
            (60_000_000_000, "1 min"),
            (125_000_000_000, "2 min 5 s"),
            (7_200_000_000_000, "2 h"),
            (273_600_000_000_000, "3 d 4 h"),
        ] {
            assert_eq!(spoken(Duration::from_nanos(nanos)), text);
        }
        // Promise 1: no bound is said to be less than it is.
        for (nanos, text) in [
            (0, "0 s"),
            (320_000_001, "321 ms"),
            (999_999_999, "1.0 s"),
            (1_500_000_001, "1.6 s"),
            (17_000_000_000, "17 s"),
            (17_750_000_000, "17.8 s"),
            (59_950_000_000, "1 min"),
            (125_000_000_001, "2 min 6 s"),
            (86_399_000_000_000, "1 d"),
        ] {
            assert_eq!(spoken_up(Duration::from_nanos(nanos)), text);
        }
    }

    #[test]
    fn dates_follow_the_calendar() {
        for (days, text) in [
            (-1, "1969-12-31T00:00:00Z"),
            (11_016, "2000-02-29T00:00:00Z"),
            (11_017, "2000-03-01T00:00:00Z"),
            (-25_509, "1900-02-28T00:00:00Z"),
            (-25_508, "1900-03-01T00:00:00Z"),
            (20_512, "2026-02-28T00:00:00Z"),
        ] {
            assert_eq!(rfc3339(Timestamp(days * DAY * SECOND)), text);
        }
        assert_eq!(rfc3339(Timestamp(i64::MIN)), "1677-09-21T00:12:43.145224192Z");
        assert_eq!(rfc3339(Timestamp(i64::MAX)), "2262-04-11T23:47:16.854775807Z");
    }
}
