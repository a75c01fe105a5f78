//! Means over hours or longer periods: block rate with RMS deviation, production mean and peak.

use std::collections::BTreeMap;

use super::moments::Moments;
use super::rows::MinuteRow;
use crate::planning::BitRate;

/// Statistics of one period.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Period {
    /// First minute of the period since 1970-01-01 00:00 UTC.
    pub start: i64,
    /// Transfer rate of the blocks in bits per second; empty if no block was sent.
    pub rate: Moments,
    /// Production rate averaged over the recorded part of the period.
    pub production: BitRate,
    /// Greatest production rate of one minute.
    pub production_peak: BitRate,
}

/// Statistics per hour, in order of time; hours without rows are absent.
pub fn hourly(rows: &[MinuteRow]) -> Vec<Period> {
    periods(rows, 1)
}

/// Statistics per period of `hours` hours (at least 1), in order of time; periods without rows are absent.
///
/// The recorded part of the first and the last period begins and ends with the first and the last row.
/// Minutes without a row inside it count as minutes without production.
pub fn periods(rows: &[MinuteRow], hours: u32) -> Vec<Period> {
    let length = 60 * i64::from(hours.max(1));
    let mut minutes: BTreeMap<i64, (Moments, u64)> = BTreeMap::new();
    for row in rows {
        let (rate, produced) = minutes.entry(row.minute).or_default();
        *rate = rate.merge(Moments::of_row(row));
        *produced = produced.saturating_add(row.produced_bytes);
    }
    let (Some(&first), Some(&last)) = (minutes.keys().next(), minutes.keys().next_back()) else {
        return Vec::new();
    };
    let mut periods: BTreeMap<i64, Vec<(Moments, u64)>> = BTreeMap::new();
    for (minute, counters) in minutes {
        periods.entry(minute.div_euclid(length)).or_default().push(counters);
    }
    let period = |(index, counters): (i64, Vec<(Moments, u64)>)| {
        let start = index.saturating_mul(length);
        let recorded = start.saturating_add(length - 1).min(last) - start.max(first) + 1;
        let produced = counters.iter().fold(0, |sum: u64, (_, produced)| sum.saturating_add(*produced));
        let peak = counters.iter().map(|(_, produced)| *produced).max().unwrap_or(0);
        Period {
            start,
            rate: counters.iter().map(|(rate, _)| *rate).collect(),
            production: BitRate::from_bytes(produced, recorded as f64 * 60.0),
            production_peak: BitRate::from_bytes(peak, 60.0),
        }
    };
    periods.into_iter().map(period).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn produced(minute: i64, produced_bytes: u64) -> MinuteRow {
        MinuteRow { minute, produced_bytes, ..MinuteRow::default() }
    }

    #[test]
    fn gaps_stay_gaps_and_borders_count_their_own_part() {
        let rows = [produced(30, 7500), produced(30, 7500), produced(-1, 7500), produced(200, 7500)];
        let found = hourly(&rows);
        let starts: Vec<i64> = found.iter().map(|period| period.start).collect();
        assert_eq!(starts, [-60, 0, 180]);
        let production: Vec<f64> = found.iter().map(|period| period.production.bits()).collect();
        // 7500 bytes are 1 kb/s for a minute; the last period lasts 21 minutes so far.
        assert_eq!(production, [1000.0, 2000.0 / 60.0, 1000.0 / 21.0]);
        assert_eq!(found[1].production_peak, BitRate::from_bits(2000.0));
        assert_eq!(found[1].rate.mean(), None);
        assert_eq!(periods(&rows, 24).len(), 2);
        assert!(hourly(&[]).is_empty());
    }

    proptest! {
        #[test]
        fn rows_equal_single_blocks(
            blocks in prop::collection::vec((-300i64..300, 1u64..100_000, 1e3..1e9f64), 1..200),
            hours in 1u32..4,
        ) {
            let row = |&(minute, bytes, rate): &(i64, u64, f64)| MinuteRow {
                minute, blocks: 1, bytes, rate_sum: rate, rate_square_sum: rate * rate, produced_bytes: bytes,
                ..MinuteRow::default()
            };
            let rows: Vec<MinuteRow> = blocks.iter().map(row).collect();
            let found = periods(&rows, hours);
            let length = i64::from(hours) * 60;
            let mut count = 0;
            for period in &found {
                let inside = |minute: i64| (period.start..period.start + length).contains(&minute);
                let own: Vec<_> = blocks.iter().filter(|(minute, ..)| inside(*minute)).collect();
                count += own.len();
                let mean = own.iter().map(|(.., rate)| rate).sum::<f64>() / own.len() as f64;
                let square = own.iter().map(|(.., rate)| (rate - mean).powi(2)).sum::<f64>() / own.len() as f64;
                prop_assert!((period.rate.mean().unwrap() - mean).abs() < 1e-9 * mean);
                prop_assert!((period.rate.rms().unwrap() - square.sqrt()).abs() < 1e-6 * mean);
                let bytes = |minute: i64| -> u64 {
                    own.iter().filter(|(at, ..)| *at == minute).map(|(_, bytes, _)| *bytes).sum()
                };
                let peak = (period.start..period.start + length).map(bytes).max().unwrap();
                prop_assert_eq!(period.production_peak, BitRate::from_bytes(peak, 60.0));
                prop_assert!(period.production <= period.production_peak);
            }
            prop_assert_eq!(count, blocks.len());
        }
    }
}
