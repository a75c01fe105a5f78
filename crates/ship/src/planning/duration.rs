//! Durations in hours, times of day, and the time until the archive has caught up.
//!
//! Calendar dates do not belong here.

use std::fmt;

use serde::Deserialize;

use super::units::{BitRate, ByteSize};

/// Non-negative time in hours.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default)]
pub struct Hours(f64);

impl Hours {
    /// Length of one day.
    pub const DAY: Self = Self(24.0);

    /// Length of two days.
    pub(crate) const DAY_PAIR: Self = Self(48.0);

    /// Duration of `hours` hours; negative values and NaN become 0.
    pub fn new(hours: f64) -> Self {
        Self(hours.max(0.0))
    }

    /// Number of hours as a fraction.
    pub fn get(self) -> f64 {
        self.0
    }

    /// Text of this time as a moment of a schedule, such as `day 2 03:15`.
    pub fn as_moment(self) -> String {
        let minutes = (self.0 * 60.0).round() as u64;
        format!("day {} {:02}:{:02}", minutes / 1440 + 1, minutes / 60 % 24, minutes % 60)
    }
}

impl fmt::Display for Hours {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let minutes = (self.0 * 60.0).round() as u64;
        match (minutes / 1440, minutes / 60 % 24, minutes % 60) {
            (0, 0, 0) => write!(f, "{:.0} s", self.0 * 3600.0),
            (0, 0, minutes) => write!(f, "{minutes} min"),
            (0, hours, minutes) => write!(f, "{hours} h {minutes} min"),
            (days, hours, _) => write!(f, "{days} d {hours} h"),
        }
    }
}

/// Time of day, written `HH:MM`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct ClockTime {
    minutes: u16,
}

impl ClockTime {
    /// Time since midnight of the day.
    pub fn since_midnight(self) -> Hours {
        Hours(f64::from(self.minutes) / 60.0)
    }
}

impl TryFrom<String> for ClockTime {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let number = |part: &str, end: u16| {
            let digits = part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_digit());
            part.parse::<u16>().ok().filter(|value| digits && *value < end)
        };
        text.split_once(':')
            .and_then(|(hours, minutes)| Some(number(hours, 24)? * 60 + number(minutes, 60)?))
            .map(|minutes| Self { minutes })
            .ok_or_else(|| {
                format!("cannot read time {text:?}: it is not a time of day; write HH:MM from 00:00 to 23:59")
            })
    }
}

/// Time until the archive has caught up with production.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum CatchUp {
    /// The backlog is empty after this time.
    After(Hours),
    /// The backlog does not shrink.
    Never,
}

impl CatchUp {
    /// Catch-up time of `backlog`: backlog / (archive − production).
    ///
    /// It is `Never` if production reaches the archive rate while there is a backlog, and if production
    /// exceeds the archive rate.
    pub fn new(production: BitRate, archive: BitRate, backlog: ByteSize) -> Self {
        if backlog.0 == 0 && production <= archive {
            return Self::After(Hours(0.0));
        }
        let spare = archive.bytes_per_hour() - production.bytes_per_hour();
        if spare > 0.0 { Self::After(Hours(backlog.0 as f64 / spare)) } else { Self::Never }
    }
}

impl fmt::Display for CatchUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::After(hours) => hours.fmt(f),
            Self::Never => f.write_str("never"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kilobits(value: f64) -> BitRate {
        BitRate::from_bits(value * 1e3)
    }

    #[test]
    fn catch_up_is_backlog_over_spare_rate() {
        let backlog = ByteSize(45_000_000);
        assert_eq!(CatchUp::new(kilobits(250.0), kilobits(350.0), backlog), CatchUp::After(Hours(1.0)));
        assert_eq!(CatchUp::new(kilobits(350.0), kilobits(350.0), backlog), CatchUp::Never);
        assert_eq!(CatchUp::new(kilobits(350.0), kilobits(350.0), ByteSize(0)), CatchUp::After(Hours(0.0)));
        assert_eq!(CatchUp::new(kilobits(351.0), kilobits(350.0), ByteSize(0)), CatchUp::Never);
    }

    #[test]
    fn times_read_and_print() {
        let read = |text: &str| ClockTime::try_from(text.to_owned());
        assert_eq!(read("08:30").unwrap().since_midnight(), Hours(8.5));
        for text in ["24:00", "8:30", "08:60", "+8:30", "0830", "", "08:30:00"] {
            assert!(read(text).is_err(), "{text}");
        }
        assert_eq!(Hours(27.25).as_moment(), "day 2 03:15");
        assert_eq!(Hours(0.999_99).to_string(), "1 h 0 min");
        assert_eq!(Hours(0.005).to_string(), "18 s");
        assert_eq!(Hours(49.0).to_string(), "2 d 1 h");
        assert_eq!(Hours::new(f64::NAN), Hours(0.0));
    }
}
