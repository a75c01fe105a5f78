//! Units of settings: sizes, rates and durations as texts such as "1MiB", "10MB/s" and "30s". No other parsing belongs here.

use holdfast_base::{ByteSize, Rate, UnitError};
use std::time::Duration;

/// Suffixes of durations and their milliseconds.
const DURATIONS: [(&str, u64); 5] =
    [("ms", 1), ("s", 1_000), ("min", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

/// Reads a size such as "512B", "1MiB" or "2.5GB" as bytes. The error is the reason and the remedy.
pub(crate) fn parse_size(text: &str) -> Result<u64, String> {
    in_bytes(text)?;
    text.parse().map(|ByteSize(bytes)| bytes).map_err(|error: UnitError| error.to_string())
}

/// Reads a rate such as "10MB/s" or "80Mbit/s" as bytes per second. The error is the reason and the remedy.
pub(crate) fn parse_rate(text: &str) -> Result<u64, String> {
    if !text.trim_end().ends_with("/s") {
        return Err(format!(
            "'{text}' is no rate per second; write it like '10MB/s', '500KiB/s' or '80Mbit/s'"
        ));
    }
    if !text.contains("bit") {
        in_bytes(text)?;
    }
    text.parse().map(|Rate(bytes)| bytes).map_err(|error: UnitError| error.to_string())
}

/// Refuses a lower-case `b`: it may be a bit, which no size has.
fn in_bytes(text: &str) -> Result<(), String> {
    let is_bits = text.contains('b');
    if is_bits { Err(format!("'{text}' counts bits; write 'B' for bytes")) } else { Ok(()) }
}

/// Reads a duration such as "30s" or "1.5h". The error is the reason and the remedy.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, String> {
    scaled(text, &DURATIONS)
        .map(Duration::from_millis)
        .ok_or_else(|| format!("'{text}' is no duration; write a number and one of ms, s, min, h and d"))
}

/// Number with a suffix, multiplied exactly; `None` if it is unreadable, above 2^63, or no whole multiple of the base unit.
fn scaled(text: &str, suffixes: &[(&str, u64)]) -> Option<u64> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, suffix) = text.split_at(end);
    let (_, scale) = suffixes.iter().find(|(known, _)| *known == suffix.trim_start())?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    // Nine decimals of the greatest suffix fit into 128 bits.
    if whole.is_empty() || fraction.is_empty() || fraction.len() > 9 {
        return None;
    }
    let decimals = 10_u128.pow(fraction.len() as u32);
    let scale = u128::from(*scale);
    let whole = u128::from(whole.parse::<u64>().ok()?) * scale;
    let part = u128::from(fraction.parse::<u64>().ok()?) * scale;
    let total = whole + part.is_multiple_of(decimals).then(|| part / decimals)?;
    i64::try_from(total).ok().map(|total| total as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_rates_and_durations_are_exact() {
        assert_eq!(parse_size("1MiB"), Ok(1 << 20));
        assert_eq!(parse_size(" 2.5 GB "), Ok(2_500_000_000));
        assert_eq!(parse_size("0B"), Ok(0));
        assert_eq!(parse_rate("10MB/s"), Ok(10_000_000));
        assert_eq!(parse_rate("0.5KiB/s"), Ok(512));
        assert_eq!(parse_rate("80 Mbit/s"), Ok(10_000_000));
        assert_eq!(parse_duration("1.5min"), Ok(Duration::from_secs(90)));
        assert_eq!(parse_duration("200ms"), Ok(Duration::from_millis(200)));
        for bad in ["", "MB", "1Mb", "-1B", "1e3B"] {
            assert!(parse_size(bad).is_err(), "{bad}");
        }
        // Lower-case b may mean bits or bytes.
        for bad in ["10MB", "10Mb/s", "9600b/s", "10Mib/s", "10mib/s", "/s", "1s"] {
            assert!(parse_rate(bad).is_err(), "{bad}");
        }
        assert!(parse_duration("1m").unwrap_err().contains("'1m' is no duration; "));
    }
}
