//! Parser of RFC 3339 times that does not allocate.

/// Nanoseconds since 1970; `None` where the text is no such time, or one that 64 bits of them cannot say. A second 60 is taken
/// for 59, and digits behind nanoseconds for nothing.
pub(crate) fn nanos(text: &[u8]) -> Option<i64> {
    let mut at = DigitReader(text);
    let (year, month, day) =
        (at.digits(4)?, (at.byte(b"-")?, at.digits(2)?).1, (at.byte(b"-")?, at.digits(2)?).1);
    at.byte(b"Tt ")?;
    let (hour, minute, second) =
        (at.digits(2)?, (at.byte(b":")?, at.digits(2)?).1, (at.byte(b":")?, at.digits(2)?).1);
    let fraction = at.fraction()?;
    let offset = match at.byte(b"Zz+-")? {
        b'Z' | b'z' => 0,
        sign => {
            let (hours, minutes) = (at.digits(2)?, (at.byte(b":")?, at.digits(2)?).1);
            if hours > 23 || minutes > 59 {
                return None;
            }
            let seconds = hours * 3600 + minutes * 60;
            if sign == b'-' { -seconds } else { seconds }
        }
    };
    if !at.0.is_empty() || day < 1 || day > days_in(year, month)? || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let seconds = days(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second.min(59) - offset;
    i64::try_from(i128::from(seconds) * 1_000_000_000 + i128::from(fraction)).ok()
}

fn days_in(year: i64, month: i64) -> Option<i64> {
    Some(match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    })
}

/// Days since 1970 in the Gregorian calendar: years begin in March, so that the leap day is the last.
pub(crate) fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month > 2 { year } else { year - 1 };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

struct DigitReader<'a>(&'a [u8]);

impl DigitReader<'_> {
    /// The next byte, if it is one of these.
    fn byte(&mut self, one_of: &[u8]) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        one_of.contains(first).then_some(*first)
    }

    fn digits(&mut self, count: usize) -> Option<i64> {
        let (digits, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        digits.iter().try_fold(0, |number, digit| {
            digit.is_ascii_digit().then(|| number * 10 + i64::from(digit - b'0'))
        })
    }

    /// Nanoseconds behind a point, if there is one.
    fn fraction(&mut self) -> Option<i64> {
        if self.0.first() != Some(&b'.') {
            return Some(0);
        }
        self.0 = &self.0[1..];
        let count = self.0.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (digits, rest) = self.0.split_at(count);
        self.0 = rest;
        let nanos = (0..9)
            .fold(0, |nanos, at| nanos * 10 + digits.get(at).map_or(0, |digit| i64::from(digit - b'0')));
        (count > 0).then_some(nanos)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// What another library writes is read as what it was.
        #[test]
        fn times_are_those_of_jiff(nanos in any::<i64>(), hours in -23..=23i8, digits in 0..=9u8) {
            let time = jiff::Timestamp::from_nanosecond(i128::from(nanos)).unwrap();
            let zone = jiff::tz::Offset::constant(hours);
            let text = format!("{:.*}", usize::from(digits), time.display_with_offset(zone));
            let wanted: Option<jiff::Timestamp> = text.parse().ok();
            let wanted = wanted.and_then(|time| i64::try_from(time.as_nanosecond()).ok());
            prop_assert_eq!(super::nanos(text.as_bytes()), wanted, "{}", text);
        }

        /// And so is what looks nearly like a time.
        #[test]
        fn what_is_no_time_is_none_for_both(
            text in "[0-9]{4}-[01][0-9]-[0-3][0-9][Tt ][0-2][0-9]:[0-6][0-9]:[0-6][0-9](\\.[0-9]{1,9})?(Z|[+-][01][0-9]:[0-6][0-9])"
        ) {
            let wanted: Option<jiff::Timestamp> = text.parse().ok();
            let wanted = wanted.and_then(|time| i64::try_from(time.as_nanosecond()).ok());
            prop_assert_eq!(super::nanos(text.as_bytes()), wanted, "{}", text);
        }
    }

    #[test]
    fn times_are_taken_whole_or_not_at_all() {
        let read = |text: &str| nanos(text.as_bytes());
        assert_eq!(read("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(read("1970-01-01T00:00:00.25Z"), Some(250_000_000));
        assert_eq!(read("1969-12-31T23:59:59.9999999999Z"), Some(-1));
        assert_eq!(read("2000-02-29T12:00:00+01:00"), Some(951_822_000_000_000_000));
        assert_eq!(read("2016-12-31T23:59:60Z"), read("2016-12-31T23:59:59Z"));
        for wrong in [
            "",
            "2000-02-30T00:00:00Z",
            "2000-01-01T00:00:00",
            "2000-01-01",
            "1900-02-29T00:00:00Z",
            "2000-01-01T00:00:00.Z",
            "2000-01-01T00:00:00Zz",
            "0000-01-01T00:00:00Z",
            "２000-01-01T00:00:00Z",
        ] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
