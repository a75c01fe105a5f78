//! Units of numeric times, and their conversion to nanoseconds since 1970.

/// The unit of a number that is a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum TimeUnit {
    #[default]
    Seconds,
    Millis,
    Micros,
    Nanos,
}

/// Digits that are looked at; more are finer than nanoseconds, or later than any time.
const MOST_DIGITS: u32 = 30;

impl TimeUnit {
    pub(crate) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "s" => Self::Seconds,
            "ms" => Self::Millis,
            "us" => Self::Micros,
            "ns" => Self::Nanos,
            _ => return None,
        })
    }

    /// Nanoseconds, as a power of ten.
    fn exponent(self) -> u32 {
        match self {
            Self::Seconds => 9,
            Self::Millis => 6,
            Self::Micros => 3,
            Self::Nanos => 0,
        }
    }

    /// A whole number of them; `None` outside of what 64 bits of nanoseconds can say.
    pub(crate) fn whole(self, count: i128) -> Option<i64> {
        count.checked_mul(10i128.pow(self.exponent())).and_then(|nanos| i64::try_from(nanos).ok())
    }

    /// A floating-point number of them. What is finer than nanoseconds is rounded down.
    pub(crate) fn float(self, count: f64) -> Option<i64> {
        const MOST: f64 = 9_223_372_036_854_775_808.0;
        let nanos = (count * f64::from(10u32.pow(self.exponent()))).floor();
        (-MOST..MOST).contains(&nanos).then_some(nanos as i64)
    }

    /// A decimal number as JSON has it, exactly. What is finer than nanoseconds is rounded down.
    pub(crate) fn decimal(self, number: &[u8]) -> Option<i64> {
        let (negative, number) = match number {
            [b'-', rest @ ..] => (true, rest),
            number => (false, number),
        };
        let split = number.iter().position(|byte| matches!(byte, b'e' | b'E')).unwrap_or(number.len());
        let (digits, power) = number.split_at(split);
        let power: i64 = match power {
            [_, power @ ..] => std::str::from_utf8(power).ok()?.parse().ok()?,
            [] => 0,
        };
        let (mut value, mut seen, mut scale, mut behind, mut rest) = (0i128, 0, 0i64, false, false);
        for byte in digits {
            match byte {
                b'.' => behind = true,
                _ if seen >= MOST_DIGITS => {
                    rest |= *byte != b'0';
                    scale += i64::from(!behind);
                }
                _ => {
                    value = value * 10 + i128::from(byte - b'0');
                    seen += u32::from(value > 0);
                    scale -= i64::from(behind);
                }
            }
        }
        if value == 0 {
            return Some(0);
        }
        let scale = scale.checked_add(power)?.checked_add(i64::from(self.exponent()))?;
        let (whole, rest) = if scale >= 0 {
            let factor = 10i128.checked_pow(u32::try_from(scale).ok()?)?;
            (value.checked_mul(factor)?, rest)
        } else {
            let factor = u32::try_from(-scale).ok().and_then(|scale| 10i128.checked_pow(scale));
            factor.map_or((0, true), |factor| (value / factor, rest || value % factor != 0))
        };
        i64::try_from(if negative { -whole - i128::from(rest) } else { whole }).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn decimals_are_exact_and_rounded_down() {
        let s = |text: &str| TimeUnit::Seconds.decimal(text.as_bytes());
        assert_eq!(s("1700000000.123456789"), Some(1_700_000_000_123_456_789));
        assert_eq!(s("1700000000.1234567899"), Some(1_700_000_000_123_456_789));
        assert_eq!(s("-0.0000000001"), Some(-1));
        assert_eq!(s("-1.5"), Some(-1_500_000_000));
        assert_eq!(s("1.7e9"), Some(1_700_000_000_000_000_000));
        assert_eq!(s("17E+8"), Some(1_700_000_000_000_000_000));
        assert_eq!(s("1e-300"), Some(0));
        assert_eq!(s("-1e-300"), Some(-1));
        assert_eq!(s("1e300"), None);
        assert_eq!(s("0e999999"), Some(0));
        assert_eq!(s("1e99999999999999999999"), None);
        assert_eq!(s("9223372036.854775807"), Some(i64::MAX));
        assert_eq!(s("9223372036.854775808"), None);
        assert_eq!(s(&format!("0.{}1", "0".repeat(60))), Some(0));
        assert_eq!(s(&format!("1{}", "0".repeat(60))), None);
        assert_eq!(TimeUnit::Millis.decimal(b"1.5"), Some(1_500_000));
        assert_eq!(TimeUnit::Nanos.decimal(b"12.9"), Some(12));
    }

    proptest! {
        #[test]
        fn every_way_comes_to_the_same(count in -9_000_000_000i64..9_000_000_000, unit in 0..4usize) {
            let unit = ["s", "ms", "us", "ns"].map(TimeUnit::named)[unit].unwrap();
            let whole = unit.whole(i128::from(count));
            prop_assert_eq!(unit.decimal(count.to_string().as_bytes()), whole);
            prop_assert_eq!(unit.decimal(format!("{count}.000e0").as_bytes()), whole);
            let near = unit.float(count as f64).unwrap();
            prop_assert!(near.abs_diff(whole.unwrap()) <= 1024, "{near}");
        }
    }

    #[test]
    fn what_64_bits_cannot_say_is_none() {
        let float = |count| TimeUnit::Seconds.float(count);
        assert_eq!((float(1e10), float(f64::NAN), float(f64::NEG_INFINITY)), (None, None, None));
        assert_eq!(float(-1.0), Some(-1_000_000_000));
        assert_eq!(TimeUnit::Seconds.whole(i128::MAX), None);
        assert_eq!(TimeUnit::named("h"), None);
    }
}
