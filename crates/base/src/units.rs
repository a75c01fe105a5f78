//! Sizes, rates and points in time: their types, their parsing and their display.

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

    /// This, or the next larger size that is shown exactly: for advice on what is enough.
    #[must_use]
    pub fn shown_up(self) -> Self {
        let unit = 1u128 << (10 * self.power());
        let tenths = (u128::from(self.0) * 10).div_ceil(unit);
        let up = |tenths: u128| (tenths * unit + 5) / 10;
        let exact = if up(tenths) < u128::from(self.0) { up(tenths + 1) } else { up(tenths) };
        Self(if u128::from(self.0).is_multiple_of(unit) {
            self.0
        } else {
            u64::try_from(exact).unwrap_or(u64::MAX)
        })
    }

    /// The largest size that is shown as it is and is not above it: what may be given, as it is typed.
    #[must_use]
    pub fn shown_down(self) -> Self {
        Self(Rate(self.0).shown_down().0)
    }

    /// Of 1024: that of the unit in which it is shown.
    fn power(self) -> usize {
        (self.0.max(1).ilog2() as usize / 10).min(UNITS.len() - 1)
    }
}

const UNITS: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

/// Power of the thousand that a prefix such as `M` or `m` stands for.
fn power(prefix: &str) -> Option<u32> {
    ["k", "m", "g", "t", "p"]
        .iter()
        .position(|known| prefix.eq_ignore_ascii_case(known))
        .map(|at| at as u32 + 1)
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
    let power = power(prefix)?;
    Some(if decimal { 1000u64.pow(power) } else { 1024u64.pow(power) })
}

/// Bits of a unit such as `Mbit`, `Kibit` or `bit`.
fn bits_factor(unit: &str) -> Option<u64> {
    let unit = unit.to_ascii_lowercase();
    let prefix = unit.strip_suffix("bit")?;
    match prefix.strip_suffix('i') {
        None if prefix.is_empty() => Some(1),
        Some(prefix) => power(prefix).map(|power| 1024u64.pow(power)),
        None => power(prefix).map(|power| 1000u64.pow(power)),
    }
}

/// Number and unit of a text.
fn split_unit(text: &str) -> (&str, &str) {
    let text = text.trim();
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    (&text[..end], text[end..].trim())
}

fn parse_bytes(text: &str) -> Option<u64> {
    let (number, unit) = split_unit(text);
    scaled(number, factor(unit)?)
}

/// Bytes of a number of bits, to the nearest one. A rate above 0 stays above 0.
fn parse_bits(text: &str) -> Option<u64> {
    let (number, unit) = split_unit(text);
    let bits = scaled(number, bits_factor(unit)?)?;
    Some((bits / 8 + u64::from(bits % 8 >= 4)).max(u64::from(bits > 0)))
}

/// Product of a decimal number and a factor, to the nearest whole number.
fn scaled(number: &str, factor: u64) -> Option<u64> {
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(factor);
    }
    let (whole, part) = number.split_once('.')?;
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    // More digits than these make no byte.
    let part = part.get(..part.len().min(18)).filter(|_| digits(part) && digits(whole))?;
    let number = |text: &str| if text.is_empty() { Some(0) } else { text.parse::<u128>().ok() };
    if whole.is_empty() && part.is_empty() {
        return None;
    }
    let below = 10u128.pow(part.len() as u32);
    let of_part = (number(part)? * u128::from(factor) + below / 2) / below;
    u64::try_from(number(whole)?.checked_mul(factor.into())?.checked_add(of_part)?).ok()
}

impl FromStr for ByteSize {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        parse_bytes(text)
            .map(Self)
            .ok_or_else(|| UnitError::new("size", text, "a number with a unit, such as 10GiB, 64MiB or 60MB"))
    }
}

/// To a tenth of the largest unit that fits; whatever is shown can be read back.
impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let power = self.power();
        let unit = 1u64 << (10 * power);
        let text = if self.0.is_multiple_of(unit) {
            format!("{} {}", self.0 / unit, UNITS[power])
        } else {
            let tenths = |bytes: u128| bytes * 10 / u128::from(unit);
            // Never more than there can be.
            let shown = tenths(u128::from(self.0) + u128::from(unit) / 20).min(tenths(u64::MAX.into()));
            format!("{}.{} {}", shown / 10, shown % 10, UNITS[power])
        };
        f.pad(&text)
    }
}

/// Bytes a second.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Rate(pub u64);

impl Rate {
    /// This, or the next lower rate that is shown exactly: for advice on what is not too much.
    #[must_use]
    pub fn shown_down(self) -> Self {
        let unit = 1u64 << (10 * ByteSize(self.0).power());
        if self.0.is_multiple_of(unit) {
            return self;
        }
        let tenths = u128::from(self.0) * 10 / u128::from(unit);
        // To whole bytes as it is read back: those are no more, for a tenth is not above a whole number of them.
        Self(((tenths * u128::from(unit) + 5) / 10) as u64)
    }

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
        // `b/s`, `Mb/s` and `Mib/s` may count bits or bytes; `mib/s` is how MiB/s is typed without capitals.
        let (_, unit) = split_unit(size);
        let is_typed_small = unit.ends_with("ib") && !unit.contains(char::is_uppercase);
        let is_ambiguous = unit.ends_with('b') && !is_typed_small;
        let bytes = parse_bits(size).or_else(|| parse_bytes(size).filter(|_| !is_ambiguous));
        bytes.map(Self).ok_or_else(|| {
            UnitError::new("rate", text, "bytes or bits per second, such as 60MiB/s, 60MB/s or 480Mbit/s")
        })
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
            (".5k", 512),
            ("2.k", 2048),
            ("0.333333333333333333333333333333KB", 333),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(text.parse(), Ok(ByteSize(bytes)), "{text}");
        }
        for text in [
            "",
            "MiB",
            "-1",
            "1XB",
            "1e3",
            "99999999999999TiB",
            "1..5M",
            ".",
            ".M",
            "16384.0 PiB",
            "18446744073709551616",
        ] {
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
        assert_eq!(ByteSize::mib(2049).shown_up().to_string(), "2.1 GiB");
        assert_eq!(ByteSize(u64::MAX).to_string(), "16383.9 PiB");
        assert_eq!(ByteSize(u64::MAX - (5 << 50)).to_string(), "16379.0 PiB");
        assert_eq!("60MB/s".parse(), Ok(Rate(60_000_000)));
        assert_eq!(Rate::of(3 << 20, Duration::from_secs(2)).to_string(), "1.5 MiB/s");
    }

    #[test]
    fn rates_are_read_in_bits_too() {
        for (text, bytes) in [
            ("8kbit/s", 1000),
            ("1 Mbit/s", 125_000),
            ("2.5Gbit/s", 312_500_000),
            ("100mbit/s", 12_500_000),
            ("1Kibit/s", 128),
            ("9600bit/s", 1200),
            ("350 kbit", 43_750),
            ("1bit/s", 1),
            ("0kbit/s", 0),
        ] {
            assert_eq!(text.parse(), Ok(Rate(bytes)), "{text}");
        }
        for text in [
            "kbit/s",
            "1xbit/s",
            "1ibit/s",
            "1kbits/s",
            "9600b/s",
            "10Mb/s",
            "10kb/s",
            "10Mib/s",
            "18446744073709551615Mbit/s",
        ] {
            assert!(text.parse::<Rate>().is_err(), "{text}");
        }
        assert!("1kbit".parse::<ByteSize>().is_err());
        let said = "10Mb/s".parse::<Rate>().unwrap_err().to_string();
        assert!(said.ends_with("bytes or bits per second, such as 60MiB/s, 60MB/s or 480Mbit/s"), "{said}");
    }

    proptest::proptest! {
        // Promise 8: what an error tells to give can be given.
        #[test]
        fn what_is_shown_can_be_read_back(bits in 0u32..=64, near in -2000i64..2000, any: u64) {
            let near = (1u128 << bits).saturating_add_signed(near.into()).min(u64::MAX.into()) as u64;
            for bytes in [near, any, any >> (bits % 64)] {
                let shown = ByteSize(bytes).to_string();
                let read = shown.parse::<ByteSize>().unwrap().0;
                // Half a tenth of at least one unit.
                proptest::prop_assert!(read.abs_diff(bytes) <= bytes / 20 + 1, "{} {} {}", bytes, shown, read);
                proptest::prop_assert!(shown.contains('.') || read == bytes);
                let up = ByteSize(bytes).shown_up();
                proptest::prop_assert!(up.0 >= bytes && (up.0 - bytes) as f64 <= bytes as f64 / 10.0 + 1.0);
                // Above it there is nothing to give.
                proptest::prop_assert!(up.to_string().parse() == Ok(up) || up.0 > u64::MAX - (1 << 47));
                proptest::prop_assert_eq!(Rate(bytes).to_string().parse::<Rate>(), Ok(Rate(read)));
                let down = Rate(bytes).shown_down();
                proptest::prop_assert!(down.0 <= bytes && (bytes - down.0) as f64 <= bytes as f64 / 10.0 + 1.0);
                proptest::prop_assert_eq!(down.to_string().parse::<Rate>(), Ok(down));
                let size = ByteSize(bytes).shown_down();
                proptest::prop_assert!(size.0 == down.0 && size.to_string().parse() == Ok(size));
            }
        }
    }

    #[test]
    fn time_saturates_instead_of_wrapping() {
        assert_eq!(Timestamp::MIN - Duration::from_secs(1), Timestamp::MIN);
        assert_eq!(Timestamp(5).since(Timestamp(9)), Duration::ZERO);
        assert_eq!((Timestamp(5) + Duration::from_nanos(4)).since(Timestamp(5)), Duration::from_nanos(4));
    }
}
