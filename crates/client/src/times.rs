//! Points in time and spans as people type them, and as they are shown. Only text: `now` is passed in.

use holdfast_base::{Timestamp, UnitError};
use std::borrow::Cow;
use std::time::Duration;

pub use holdfast_base::times::{rfc3339, spoken, spoken_up, to_the_milli, to_the_second};

/// What is said of times in the help of commands that take one.
pub const HELP: &str = "Times: RFC 3339 (2026-11-20T10:05:00Z, 2026-11-20T11:05:00.25+01:00), the same without a zone\n\
    (taken as UTC), `now`, back from now (-5m, -1h30m, -2d), Unix seconds (1795169100.25), or Unix\n\
    nanoseconds.";

const WANTED: &str =
    "RFC 3339 (2026-11-20T10:05:00Z), `now`, a span from now (-5m, -1h30m, +7d), Unix seconds or nanoseconds";
const SPAN_WANTED: &str = "a number with a unit (ms, s, m, h, d), such as 30s or 1h30m";

/// Below this a bare number means seconds (until the year 5138).
const MOST_SECONDS: f64 = 1e11;
/// From this on it means nanoseconds (since 1973). What lies between would be milli- or microseconds: asked back.
const LEAST_NANOS: i64 = 100_000_000_000_000_000;

/// A point in time that may depend on when the command runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// As it was typed.
    At(Timestamp),
    /// So much before now.
    Before(Duration),
    /// So much after now.
    After(Duration),
}

impl When {
    /// The point in time, seen from `now`.
    pub fn resolve(self, now: Timestamp) -> Timestamp {
        match self {
            Self::At(time) => time,
            Self::Before(span) => now - span,
            Self::After(span) => now + span,
        }
    }
}

/// Reads a point in time.
pub fn when(text: &str) -> Result<When, UnitError> {
    let text = text.trim();
    let wrong = || UnitError::new("time", text, WANTED);
    if text.eq_ignore_ascii_case("now") {
        return Ok(When::Before(Duration::ZERO));
    }
    if let Some(back) = text.strip_prefix('-') {
        return span(back).map(When::Before).map_err(|_| wrong());
    }
    if let Some(ahead) = text.strip_prefix('+') {
        return span(ahead).map(When::After).map_err(|_| wrong());
    }
    if text.is_empty() {
        return Err(wrong());
    }
    if text.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
        return unix(text).map(When::At).ok_or_else(|| {
            UnitError::new(
                "time",
                text,
                "Unix seconds (up to 11 digits) or Unix nanoseconds (18 or 19 digits)",
            )
        });
    }
    let text = &to_nanoseconds(text);
    let time = text.parse::<jiff::Timestamp>().or_else(|_| {
        let civil = text.parse::<jiff::civil::DateTime>()?;
        civil.to_zoned(jiff::tz::TimeZone::UTC).map(|zoned| zoned.timestamp())
    });
    let nanos = time.map_err(|_| wrong())?.as_nanosecond();
    i64::try_from(nanos).map(|nanos| When::At(Timestamp(nanos))).map_err(|_| wrong())
}

/// The same without digits finer than nanoseconds.
fn to_nanoseconds(text: &str) -> Cow<'_, str> {
    let Some(point) = text.find('.') else { return text.into() };
    let digits = text[point + 1..].bytes().take_while(u8::is_ascii_digit).count();
    if digits <= 9 {
        return text.into();
    }
    format!("{}{}", &text[..point + 10], &text[point + 1 + digits..]).into()
}

fn unix(text: &str) -> Option<Timestamp> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let whole: i64 = whole.parse().ok()?;
    if whole >= LEAST_NANOS && fraction.is_empty() {
        return Some(Timestamp(whole));
    }
    if whole as f64 >= MOST_SECONDS {
        return None;
    }
    let nanos = decimal_nanos(fraction)?;
    whole.checked_mul(1_000_000_000)?.checked_add(nanos).map(Timestamp)
}

/// The digits after a decimal point, as nanoseconds; finer ones are cut off.
fn decimal_nanos(fraction: &str) -> Option<i64> {
    if !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let digits = fraction.bytes().map(|b| i64::from(b - b'0')).chain(std::iter::repeat(0));
    Some(digits.take(9).fold(0, |value, digit| value * 10 + digit))
}

/// Reads a length of time: `30s`, `1h30m`, `1.5s`, `250ms`, `7d`.
pub fn span(text: &str) -> Result<Duration, UnitError> {
    let wrong = || UnitError::new("length of time", text, SPAN_WANTED);
    let mut rest = text.trim();
    let mut total: u64 = 0;
    if rest.is_empty() {
        return Err(wrong());
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !(c.is_ascii_digit() || c == '.')).ok_or_else(wrong)?;
        let (number, tail) = rest.split_at(digits);
        let letters = tail.find(|c: char| c.is_ascii_digit()).unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(letters);
        let unit: u64 = match unit.trim() {
            "ns" => 1,
            "us" | "µs" => 1_000,
            "ms" => 1_000_000,
            "s" | "sec" => 1_000_000_000,
            "m" | "min" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            "d" => 86_400_000_000_000,
            "w" => 604_800_000_000_000,
            _ => return Err(wrong()),
        };
        total = part(number, unit).and_then(|part| total.checked_add(part)).ok_or_else(wrong)?;
        rest = tail;
    }
    Ok(Duration::from_nanos(total))
}

/// Reads how far back: a length of time, which may be written as a time before now (`-5m`).
pub fn back(text: &str) -> Result<Duration, UnitError> {
    span(text.trim().strip_prefix('-').unwrap_or(text))
}

/// A decimal number of units in nanoseconds.
fn part(number: &str, unit: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let whole: u64 = if whole.is_empty() && !fraction.is_empty() { 0 } else { whole.parse().ok()? };
    let fraction =
        u128::from(u64::try_from(decimal_nanos(fraction)?).ok()?) * u128::from(unit) / 1_000_000_000;
    whole.checked_mul(unit)?.checked_add(u64::try_from(fraction).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NOW: Timestamp = Timestamp(1_795_169_100_000_000_000);

    fn at(text: &str) -> i64 {
        when(text).map_or_else(|error| panic!("{text}: {error}"), |when| when.resolve(NOW).0)
    }

    #[test]
    fn times_are_read_in_every_way_that_the_help_names() {
        for (text, nanos) in [
            ("now", NOW.0),
            ("NOW", NOW.0),
            ("-5m", NOW.0 - 300_000_000_000),
            ("-1h30m", NOW.0 - 5_400_000_000_000),
            ("-2d", NOW.0 - 172_800_000_000_000),
            ("+7d", NOW.0 + 604_800_000_000_000),
            ("-250ms", NOW.0 - 250_000_000),
            ("-1.5s", NOW.0 - 1_500_000_000),
            ("2026-11-20T10:05:00Z", NOW.0),
            ("2026-11-20t10:05:00z", NOW.0),
            ("2026-11-20 10:05:00Z", NOW.0),
            ("2026-11-20T11:05:00.000000001+01:00", NOW.0 + 1),
            ("2026-11-20T10:05:00", NOW.0),
            ("2026-11-20T10:05", NOW.0),
            ("2026-11-20", NOW.0 - 36_300_000_000_000),
            ("1795169100", NOW.0),
            ("1795169100.25", NOW.0 + 250_000_000),
            ("1795169100.123456789123", NOW.0 + 123_456_789),
            ("1795169100000000007", NOW.0 + 7),
            ("0", 0),
        ] {
            assert_eq!(at(text), nanos, "{text}");
        }
    }

    #[test]
    fn what_is_no_time_is_refused_with_what_to_give_instead() {
        for text in [
            "",
            "-",
            "+",
            "-5",
            "5m",
            "yesterday",
            "10:05",
            "2026-13-01",
            "1795169100000",
            "1795169100000000",
            "1.2.3",
            ".",
            "-5x",
            "99999999999999999999",
            "-5m-3s",
            "9999-12-31T00:00:00Z",
        ] {
            let said = when(text).unwrap_err().to_string();
            assert!(said.starts_with(&format!("`{text}` is not a time: give ")), "{said}");
        }
        assert!(when("1795169100000").unwrap_err().to_string().contains("Unix nanoseconds"));
        assert!(when("").unwrap_err().to_string().contains("RFC 3339"));
    }

    #[test]
    fn digits_finer_than_nanoseconds_are_cut_off() {
        for (text, like) in [
            ("2026-11-20T10:05:00.1234567899Z", "2026-11-20T10:05:00.123456789Z"),
            ("2026-11-20T11:05:00.00000000000000000001+01:00", "2026-11-20T10:05:00Z"),
            ("2026-11-20T10:05:00.9999999999", "2026-11-20T10:05:00.999999999Z"),
            ("1795169100.1234567899", "1795169100.123456789"),
        ] {
            assert!(when(like).is_ok() && when(text) == when(like), "{text}");
        }
        for text in ["2026-11-20T10:05:00.1234567890x", "2026-11-20.12345678901T10:05:00Z", "1.2345678901.5"]
        {
            assert!(when(text).is_err(), "{text}");
        }
    }

    #[test]
    fn lengths_of_time_are_sums_of_parts() {
        for (text, nanos) in [
            ("30s", 30_000_000_000),
            ("1h30m", 5_400_000_000_000),
            ("1d2h3m4s5ms", 93_784_005_000_000),
            (".5s", 500_000_000),
            ("10 min", 600_000_000_000),
            ("0s", 0),
            ("1w", 604_800_000_000_000),
        ] {
            assert_eq!(span(text), Ok(Duration::from_nanos(nanos)), "{text}");
        }
        for text in ["", "30", "s", "1.s2", "1..5s", "30 parsecs", "-3s", "99999999999999d"] {
            assert!(span(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn every_time_reads_back_as_it_is_shown(nanos: i64) {
            prop_assert_eq!(when(&rfc3339(Timestamp(nanos))), Ok(When::At(Timestamp(nanos))));
        }

        #[test]
        fn no_text_makes_the_readers_fail_otherwise_than_by_an_error(text in "[-+.:TZ0-9smhd ]{0,30}") {
            let _ = (when(&text), span(&text));
        }
    }
}
