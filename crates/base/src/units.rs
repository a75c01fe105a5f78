//! Sizes, rates and points in time: how they are kept, read from text and shown.

use std::fmt;
use std::ops::{Add, Sub};
use std::str::FromStr;
use std::time::Duration;

/// A text that should have been a size, rate or id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a {what}: give {wanted}")]
pub struct UnitError {
    what: &'static str,
    text: String,
    wanted: &'static str,
}

impl UnitError {
    /// An error that names what was expected, what was found, and what to give instead.
    pub fn new(what: &'static str, text: &str, wanted: &'static str) -> Self {
        Self { what, text: text.chars().take(80).collect(), wanted }
    }
}

/// A number of bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct ByteSize(pub u64);

impl ByteSize {
    /// `n` KiB.
    pub const fn kib(n: u64) -> Self {
        Self(n << 10)
    }

    /// `n` MiB.
    pub const fn mib(n: u64) -> Self {
        Self(n << 20)
    }

    /// `n` GiB.
    pub const fn gib(n: u64) -> Self {
        Self(n << 30)
    }
}

/// Factor of a unit such as `MiB`, `MB`, `M` or nothing. A bare letter is binary, as in `dd` and `fio`.
fn factor(unit: &str) -> Option<u64> {
    let unit = unit.to_ascii_lowercase();
    let (prefix, decimal) = match unit.as_str() {
        "" | "b" => return Some(1),
        u if u.ends_with("ib") => (&u[..u.len() - 2], false),
        u if u.ends_with('b') => (&u[..u.len() - 1], true),
        u => (u, false),
    };
    let power = match prefix {
        "k" => 1,
        "m" => 2,
        "g" => 3,
        "t" => 4,
        "p" => 5,
        _ => return None,
    };
    Some(if decimal { 1000u64.pow(power) } else { 1024u64.pow(power) })
}

fn parse_bytes(text: &str) -> Option<u64> {
    let text = text.trim();
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let factor = factor(unit.trim())?;
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(factor);
    }
    let value: f64 = number.parse().ok()?;
    let bytes = value * factor as f64;
    (bytes.is_finite() && bytes <= 9e18).then_some(bytes.round() as u64)
}

impl FromStr for ByteSize {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        parse_bytes(text)
            .map(Self)
            .ok_or_else(|| UnitError::new("size", text, "a number with a unit, such as 10GiB, 64MiB or 60MB"))
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
        let mut power = 0;
        let mut unit = 1u64;
        while power < 5 && self.0 / unit >= 1024 {
            unit <<= 10;
            power += 1;
        }
        let text = if self.0.is_multiple_of(unit) {
            format!("{} {}", self.0 / unit, UNITS[power])
        } else {
            format!("{:.1} {}", self.0 as f64 / unit as f64, UNITS[power])
        };
        f.pad(&text)
    }
}

/// Bytes a second.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Rate(pub u64);

impl Rate {
    /// The rate of `bytes` in `span`; 0 for an empty span.
    pub fn of(bytes: u64, span: Duration) -> Self {
        let seconds = span.as_secs_f64();
        Self(if seconds > 0.0 { (bytes as f64 / seconds) as u64 } else { 0 })
    }
}

impl FromStr for Rate {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let size = text.trim().strip_suffix("/s").unwrap_or(text);
        parse_bytes(size)
            .map(Self)
            .ok_or_else(|| UnitError::new("rate", text, "a size per second, such as 60MiB/s"))
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}/s", ByteSize(self.0)))
    }
}

/// A point in time: nanoseconds since 1970-01-01 00:00 UTC, leap seconds not counted.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// Earlier than anything that is recorded.
    pub const MIN: Self = Self(i64::MIN);
    /// Later than anything that is recorded.
    pub const MAX: Self = Self(i64::MAX);

    /// Time from `earlier` to here; zero if `earlier` is later.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

fn nanos(span: Duration) -> i64 {
    i64::try_from(span.as_nanos()).unwrap_or(i64::MAX)
}

impl Add<Duration> for Timestamp {
    type Output = Self;

    fn add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(nanos(span)))
    }
}

impl Sub<Duration> for Timestamp {
    type Output = Self;

    fn sub(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(nanos(span)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_in_binary_and_decimal_units() {
        for (text, bytes) in [
            ("0", 0),
            ("64MiB", 64 << 20),
            ("64 MiB", 64 << 20),
            ("64M", 64 << 20),
            ("60MB", 60_000_000),
            ("1.5GiB", 3 << 29),
            ("10gib", 10 << 30),
            ("4096b", 4096),
        ] {
            assert_eq!(text.parse(), Ok(ByteSize(bytes)), "{text}");
        }
        for text in ["", "MiB", "-1", "1XB", "1e3", "99999999999999TiB", "1..5M"] {
            assert!(text.parse::<ByteSize>().is_err(), "{text}");
        }
        let said = "ten".parse::<ByteSize>().unwrap_err().to_string();
        assert_eq!(said, "`ten` is not a size: give a number with a unit, such as 10GiB, 64MiB or 60MB");
    }

    #[test]
    fn sizes_and_rates_are_shown_in_binary_units() {
        assert_eq!(ByteSize::mib(64).to_string(), "64 MiB");
        assert_eq!(ByteSize(1536).to_string(), "1.5 KiB");
        assert_eq!(ByteSize(1023).to_string(), "1023 B");
        assert_eq!("60MB/s".parse(), Ok(Rate(60_000_000)));
        assert_eq!(Rate::of(3 << 20, Duration::from_secs(2)).to_string(), "1.5 MiB/s");
    }

    #[test]
    fn time_saturates_instead_of_wrapping() {
        assert_eq!(Timestamp::MIN - Duration::from_secs(1), Timestamp::MIN);
        assert_eq!(Timestamp(5).since(Timestamp(9)), Duration::ZERO);
        assert_eq!((Timestamp(5) + Duration::from_nanos(4)).since(Timestamp(5)), Duration::from_nanos(4));
    }
}
