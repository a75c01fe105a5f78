//! Values of settings in their TOML form: sizes, rates, durations, fingerprints and schedules.

use crate::rate_schedule::{RateLimit, ScheduleRule};
use crate::units::{parse_duration, parse_rate, parse_size};
use holdfast_remote::Fingerprint;
use jiff::civil::{Time, Weekday};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use std::time::Duration;

/// Text of a rate that is not limited.
const UNLIMITED: &str = "unlimited";

/// Table `[[network.schedule]]` as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rule {
    #[serde(deserialize_with = "time")]
    from: Time,
    #[serde(deserialize_with = "time")]
    to: Time,
    #[serde(default)]
    days: Vec<Day>,
    #[serde(deserialize_with = "limit")]
    rate: RateLimit,
}

/// Day of the week as it is written.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Day {
    Mon,
    Tue,
    Wed,
    Thu,
    Fri,
    Sat,
    Sun,
}

impl From<Day> for Weekday {
    fn from(day: Day) -> Self {
        match day {
            Day::Mon => Self::Monday,
            Day::Tue => Self::Tuesday,
            Day::Wed => Self::Wednesday,
            Day::Thu => Self::Thursday,
            Day::Fri => Self::Friday,
            Day::Sat => Self::Saturday,
            Day::Sun => Self::Sunday,
        }
    }
}

/// Reads a text and parses it.
fn parsed<'de, D: Deserializer<'de>, T>(
    deserializer: D,
    parse: impl FnOnce(&str) -> Result<T, String>,
) -> Result<T, D::Error> {
    let text = String::deserialize(deserializer)?;
    parse(&text).map_err(D::Error::custom)
}

pub(crate) fn size<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    parsed(deserializer, parse_size)
}

pub(crate) fn duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    parsed(deserializer, parse_duration)
}

pub(crate) fn fingerprint<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Fingerprint>, D::Error> {
    parsed(deserializer, |text| {
        text.parse().map(Some).map_err(|_| format!("'{text}' is no fingerprint; copy it from the server"))
    })
}

pub(crate) fn limit<'de, D: Deserializer<'de>>(deserializer: D) -> Result<RateLimit, D::Error> {
    parsed(deserializer, |text| match text {
        UNLIMITED => Ok(RateLimit::Unlimited),
        text => parse_rate(text).map(RateLimit::BytesPerSecond),
    })
}

pub(crate) fn rules<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<ScheduleRule>, D::Error> {
    let rules = Vec::<Rule>::deserialize(deserializer)?;
    let rule = |Rule { from, to, days, rate }: Rule| {
        let days = days.into_iter().map(Weekday::from).collect();
        ScheduleRule { from, to, days, limit: rate }
    };
    Ok(rules.into_iter().map(rule).collect())
}

fn time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Time, D::Error> {
    parsed(deserializer, |text| {
        Time::strptime("%H:%M", text)
            .map_err(|_| format!("'{text}' is no time of day; write it like '08:30'"))
    })
}
