//! Axes: ranges, ticks and tick labels of values, rates and times.

use jiff::civil::Date;
use jiff::tz::TimeZone;

use super::markup::{format_minute, minute_text};
use crate::planning::{BitRate, decimal_scale};
use crate::statistics::nice_step;

const DAY: i64 = 1440;

/// Steps of time ticks in minutes; longer steps are months.
const TIME_STEPS: [i64; 11] = [10, 30, 60, 120, 180, 360, 720, DAY, 2 * DAY, 7 * DAY, 14 * DAY];

/// Steps of time ticks in months.
const MONTH_STEPS: [i64; 8] = [1, 3, 6, 12, 24, 60, 120, 1200];

/// Multiples of `step` from `low` to `high`.
fn multiples(low: i64, high: i64, step: i64) -> Vec<i64> {
    let first = low.div_euclid(step) + i64::from(low.rem_euclid(step) > 0);
    (first..=high.div_euclid(step)).map(|index| index * step).collect()
}

/// First minutes of months from `low` to `high`; none if the range leaves the calendar.
fn months(low: i64, high: i64) -> Vec<i64> {
    let month = |minute: i64| {
        let date =
            jiff::Timestamp::from_second(minute.saturating_mul(60)).ok()?.to_zoned(TimeZone::UTC).date();
        Some(i64::from(date.year()) * 12 + i64::from(date.month()) - 1)
    };
    let minute = |month: i64| {
        let (year, month) = (i16::try_from(month.div_euclid(12)).ok()?, month.rem_euclid(12) as i8 + 1);
        let start = Date::new(year, month, 1).ok()?.to_zoned(TimeZone::UTC).ok()?;
        Some(start.timestamp().as_second() / 60)
    };
    let (Some(first), Some(last)) = (month(low), month(high)) else {
        return Vec::new();
    };
    let step = MONTH_STEPS.into_iter().find(|step| (last - first) / step <= 10).unwrap_or(12_000);
    multiples(first, last, step).into_iter().filter_map(minute).filter(|minute| *minute >= low).collect()
}

/// Range of values with labelled ticks.
pub(super) struct Axis {
    low: f64,
    high: f64,
    logarithmic: bool,
    pub(super) ticks: Vec<(f64, String)>,
    pub(super) label: String,
}

impl Axis {
    /// Linear axis from 0 to the first tick at or above `greatest`, with 4 to 11 ticks.
    pub(super) fn from_zero(label: &str, unit: &str, greatest: f64) -> Self {
        let greatest = if greatest > 0.0 && greatest.is_finite() { greatest } else { 1.0 };
        let step = nice_step(greatest / 4.0);
        let (scale, prefix) = decimal_scale(greatest);
        let count = (greatest / step - 1e-6).ceil();
        let digits = (-(step / scale).log10() - 1e-6).ceil().max(0.0) as usize;
        let tick = |index| {
            let value = f64::from(index) * step;
            (value, format!("{:.digits$}", value / scale))
        };
        let label = if unit.is_empty() && prefix.is_empty() {
            label.to_owned()
        } else if unit.is_empty() {
            format!("{label} (× {scale:.0})")
        } else {
            format!("{label} ({prefix}{unit})")
        };
        let ticks = (0..=count as u32).map(tick).collect();
        Self { low: 0.0, high: count * step, logarithmic: false, ticks, label }
    }

    /// Logarithmic axis of rates with ticks at powers of ten, and at 2 and 5 times these below 3 decades.
    pub(super) fn logarithmic_rates(label: &str, low: f64, high: f64) -> Self {
        let (low, high) = (low.max(1.0), high.max(low.max(1.0) * 10.0));
        let factors: &[f64] = if high / low < 1000.0 { &[1.0, 2.0, 5.0] } else { &[1.0] };
        let powers = low.log10().floor() as i32..=high.log10().ceil() as i32;
        let values = powers.flat_map(|power| factors.iter().map(move |factor| factor * 10f64.powi(power)));
        let inside = values.filter(|value| (low * 0.999..=high * 1.001).contains(value));
        let ticks = inside.map(|value| (value, BitRate::from_bits(value).to_string())).collect();
        Self { low, high, logarithmic: true, ticks, label: label.to_owned() }
    }

    /// Time axis in minutes with at most 12 ticks at full hours, days, months or years.
    pub(super) fn time(low: i64, high: i64) -> Self {
        let high = high.max(low.saturating_add(60));
        let span = high as f64 - low as f64;
        let step = TIME_STEPS.into_iter().find(|step| span / *step as f64 <= 10.0);
        let minutes = step.map_or_else(|| months(low, high), |step| multiples(low, high, step));
        let tick = |minute: i64| {
            let form = match (step, minute.rem_euclid(DAY)) {
                (None, _) => "%b %Y",
                (Some(_), 0) => "%-d %b",
                (Some(_), _) => "%H:%M",
            };
            (minute as f64, format_minute(minute, form))
        };
        let ticks = minutes.into_iter().map(tick).collect();
        let label = format!("time from {} (UTC)", minute_text(low));
        Self { low: low as f64, high: high as f64, logarithmic: false, ticks, label }
    }

    /// Position of a value on the axis, from 0 to 1; values outside lie at the nearer end.
    pub(super) fn position(&self, value: f64) -> f64 {
        let share = if self.logarithmic {
            (value / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        share.clamp(0.0, 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn labels(axis: &Axis) -> Vec<&str> {
        axis.ticks.iter().map(|(_, label)| label.as_str()).collect()
    }

    #[test]
    fn values_have_round_ticks() {
        let axis = Axis::from_zero("rate", "b/s", 690e3);
        assert_eq!(axis.label, "rate (kb/s)");
        assert_eq!(labels(&axis), ["0", "100", "200", "300", "400", "500", "600", "700"]);
        assert_eq!(labels(&Axis::from_zero("", "B", 1.0e9)), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(labels(&Axis::from_zero("", "", f64::NAN)), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(Axis::from_zero("blocks", "", 5000.0).label, "blocks (× 1000)");
    }

    #[test]
    fn times_have_calendar_ticks() {
        let november = 14_123_520; // 1996-11-08 00:00
        assert_eq!(labels(&Axis::time(november + 30, november + 3000))[..3], ["06:00", "12:00", "18:00"]);
        assert_eq!(labels(&Axis::time(november, november + 5760))[..3], ["8 Nov", "12:00", "9 Nov"]);
        assert_eq!(labels(&Axis::time(november, november + 40 * 1440))[0], "14 Nov");
        assert_eq!(labels(&Axis::time(november, november + 300 * DAY))[..2], ["Dec 1996", "Jan 1997"]);
        assert_eq!(labels(&Axis::time(november, november + 2000 * DAY))[..2], ["Jan 1997", "Jan 1998"]);
        assert!(Axis::time(i64::MIN, i64::MAX).ticks.is_empty());
    }

    #[test]
    fn logarithmic_ticks_are_powers() {
        let axis = Axis::logarithmic_rates("rate", 1e3, 1e6);
        assert_eq!(labels(&axis), ["1 kb/s", "10 kb/s", "100 kb/s", "1 Mb/s"]);
        assert_eq!(
            labels(&Axis::logarithmic_rates("rate", 1e3, 1e4)),
            ["1 kb/s", "2 kb/s", "5 kb/s", "10 kb/s"]
        );
    }

    proptest! {
        #[test]
        fn ticks_are_few_distinct_and_ascending(greatest in 1e-3..1e18f64, low in -1_000_000_000i64..1_000_000_000, span in 0i64..10_000_000_000) {
            for axis in [Axis::from_zero("", "B", greatest), Axis::time(low, low + span)] {
                prop_assert!(axis.ticks.len() <= 12);
                prop_assert!(axis.ticks.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 != pair[1].1));
                prop_assert!(axis.ticks.iter().all(|(value, _)| (0.0..=1.0).contains(&axis.position(*value))));
            }
            prop_assert!(Axis::from_zero("", "B", greatest).ticks.len() >= 4);
        }
    }
}
