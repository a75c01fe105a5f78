//! Bit rates and byte sizes: newtypes, their text forms, and the parser of both.
//!
//! `b` and `bit` are a bit and `B` a byte. Prefixes k, M, G, T are powers of 1000; Ki, Mi, Gi, Ti are powers of 1024.
//! Times do not belong here (see `duration.rs`).

use std::fmt;
use std::str::FromStr;

use serde::Deserialize;

use super::duration::Hours;

const PREFIXES: [(&str, f64); 9] = [
    ("", 1.0),
    ("k", 1e3),
    ("M", 1e6),
    ("G", 1e9),
    ("T", 1e12),
    ("Ki", 1_024.0),
    ("Mi", 1_048_576.0),
    ("Gi", 1_073_741_824.0),
    ("Ti", 1_099_511_627_776.0),
];

/// Data rate in bits per second, from 0 to 1 Pb/s.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default, Deserialize)]
#[serde(try_from = "String")]
pub struct BitRate(f64);

impl BitRate {
    /// Greatest rate: no network or disk of today comes near it.
    pub const MAX: Self = Self(1e15);

    /// Rate of `bits` per second, moved into the admissible range; NaN becomes 0.
    pub fn from_bits(bits: f64) -> Self {
        if bits > 0.0 { Self(bits.min(Self::MAX.0)) } else { Self(0.0) }
    }

    /// Average rate of `bytes` bytes in `seconds` seconds.
    pub fn from_bytes(bytes: u64, seconds: f64) -> Self {
        Self::from_bits(bytes as f64 * 8.0 / seconds)
    }

    /// Number of bits per second.
    pub fn bits(self) -> f64 {
        self.0
    }

    /// Bytes per hour, the slope of a backlog.
    pub(crate) fn bytes_per_hour(self) -> f64 {
        self.0 * 450.0
    }

    /// Data volume at this rate over `hours`.
    pub fn volume(self, hours: Hours) -> ByteSize {
        ByteSize::from_bytes(self.bytes_per_hour() * hours.get())
    }
}

/// Data size in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Deserialize)]
#[serde(try_from = "String")]
pub struct ByteSize(pub u64);

impl ByteSize {
    /// Size rounded to whole bytes; negative values and NaN become 0.
    pub(crate) fn from_bytes(bytes: f64) -> Self {
        Self(bytes.round() as u64)
    }
}

/// Reason why a text is not a rate or a size.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot read {quantity} {text:?}: {reason}; write {example}")]
pub struct UnitError {
    quantity: &'static str,
    text: String,
    reason: String,
    example: &'static str,
}

/// Reads a number with a unit; `units` are the admissible units without prefix, with their factor.
fn parse(
    quantity: &'static str,
    example: &'static str,
    units: &[(&str, f64)],
    limit: f64,
    text: &str,
) -> Result<f64, UnitError> {
    let fail = |reason: String| UnitError { quantity, text: text.to_owned(), reason, example };
    let trimmed = text.trim();
    let split = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(trimmed.len());
    let (number, unit) = (&trimmed[..split], trimmed[split..].trim_start());
    let number: f64 = number.parse().map_err(|_| fail("it does not begin with a plain number".to_owned()))?;
    if unit.is_empty() {
        return Err(fail("the unit is missing".to_owned()));
    }
    let factor = units.iter().find_map(|(name, factor)| {
        let prefix = unit.strip_suffix(name)?;
        PREFIXES.iter().find(|(known, _)| *known == prefix).map(|(_, scale)| factor * scale)
    });
    let value = number * factor.ok_or_else(|| fail(format!("the unit {unit:?} is unknown")))?;
    if value > limit {
        return Err(fail("the value is too large".to_owned()));
    }
    Ok(value)
}

impl FromStr for BitRate {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let example =
            "bits (bit or b) or bytes (B) per second with prefix k, M, G or T, such as 350kbit/s or 44kB/s";
        parse("rate", example, &[("bit/s", 1.0), ("b/s", 1.0), ("B/s", 8.0)], Self::MAX.0, text).map(Self)
    }
}

impl FromStr for ByteSize {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let example = "bytes (B) with prefix k, M, G, T, Ki, Mi, Gi or Ti, such as 4GB or 500GiB";
        parse("size", example, &[("B", 1.0)], 1e18, text).map(Self::from_bytes)
    }
}

impl TryFrom<String> for BitRate {
    type Error = UnitError;

    fn try_from(text: String) -> Result<Self, UnitError> {
        text.parse()
    }
}

impl TryFrom<String> for ByteSize {
    type Error = UnitError;

    fn try_from(text: String) -> Result<Self, UnitError> {
        text.parse()
    }
}

/// Decimal scale of a value: the divisor and the prefix that make it a number of 1 to 3 digits.
pub(crate) fn decimal_scale(value: f64) -> (f64, &'static str) {
    let steps = [("P", 1e15), ("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)];
    // Values that round up to 1000 take the next prefix.
    let found = steps.iter().find(|(_, scale)| value >= scale * 0.9995);
    found.map_or((1.0, ""), |(prefix, scale)| (*scale, *prefix))
}

/// Writes `value` with three significant digits, without trailing zeros.
fn write_scaled(f: &mut fmt::Formatter<'_>, value: f64, unit: &str) -> fmt::Result {
    let (scale, prefix) = decimal_scale(value);
    let scaled = value / scale;
    let digits = if scaled < 9.995 { 2 } else { usize::from(scaled < 99.95) };
    let mut number = format!("{scaled:.digits$}");
    if number.contains('.') {
        number.truncate(number.trim_end_matches('0').trim_end_matches('.').len());
    }
    write!(f, "{number} {prefix}{unit}")
}

impl fmt::Display for BitRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_scaled(f, self.0, "b/s")
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_scaled(f, self.0 as f64, "B")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn bits_and_bytes_differ() {
        for (text, bits) in [
            ("350kb/s", 350e3),
            ("1.5Mb/s", 1.5e6),
            ("1.5 MB/s", 12e6),
            ("1MiB/s", 8_388_608.0),
            (" 0b/s", 0.0),
            ("9600 b/s", 9600.0),
            ("350kbit/s", 350e3),
            ("1.5 Gbit/s", 1.5e9),
        ] {
            assert_eq!(text.parse(), Ok(BitRate(bits)), "{text}");
        }
        assert_eq!("4GB".parse(), Ok(ByteSize(4_000_000_000)));
        assert_eq!("1.5KiB".parse(), Ok(ByteSize(1536)));
    }

    #[test]
    fn wrong_units_are_named() {
        let message = "350".parse::<BitRate>().unwrap_err().to_string();
        assert!(
            message.starts_with("cannot read rate \"350\": the unit is missing; write bits (bit or b)"),
            "{message}"
        );
        for text in [
            "", "kb/s", "-1kb/s", "1e3kb/s", "1kb", "1Kb/s", "1mb/s", "1kbits/s", "1..2kb/s", "2Pb/s",
            "9999Tb/s",
        ] {
            assert!(text.parse::<BitRate>().is_err(), "{text}");
        }
        for text in ["4", "4G", "4Gb", "4gb", "99999999TB"] {
            assert!(text.parse::<ByteSize>().is_err(), "{text}");
        }
    }

    #[test]
    fn rates_print_three_digits() {
        for (bits, text) in [
            (0.0, "0 b/s"),
            (538e3, "538 kb/s"),
            (1.5e6, "1.5 Mb/s"),
            (999.9, "1 kb/s"),
            (56.04e3, "56 kb/s"),
        ] {
            assert_eq!(BitRate::from_bits(bits).to_string(), text);
        }
        assert_eq!(BitRate::from_bits(f64::NAN), BitRate::default());
        assert_eq!(BitRate::from_bytes(1, 0.0), BitRate::MAX);
    }

    proptest! {
        #[test]
        fn printed_rates_are_read_back(bits in 0.0..1e15f64) {
            let rate = BitRate::from_bits(bits);
            let again: BitRate = rate.to_string().replace("1 Pb/s", "1000 Tb/s").parse().unwrap();
            prop_assert!((again.bits() - bits).abs() <= bits * 0.00501 + 0.00501);
        }

        #[test]
        fn any_text_is_read_or_refused(text in ".{0,20}") {
            let _ = (text.parse::<BitRate>(), text.parse::<ByteSize>());
        }
    }
}
