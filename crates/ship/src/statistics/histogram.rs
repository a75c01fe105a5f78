//! Histogram of block rates: the fixed bins of recorded rows, and the bins of a figure.

use super::rows::HistogramRow;
use crate::planning::BitRate;

/// Recorded bins per factor of ten; a bin is 2.3 % wide.
const BINS_PER_DECADE: u16 = 100;

/// Last recorded bin: it ends at the greatest rate, 1 Pb/s.
const LAST_BIN: u16 = 15 * BINS_PER_DECADE - 1;

/// Bins of a logarithmic figure per factor of ten.
const FIGURE_BINS_PER_DECADE: u16 = 10;

/// Least number of bins of a linear figure.
const LINEAR_BINS: f64 = 40.0;

/// Ratio of the 95 % quantile to the 5 % quantile above which a figure is logarithmic.
const LINEAR_RATIO: f64 = 100.0;

/// Lower bound of a recorded bin.
fn lower_bound(bin: u16) -> f64 {
    10f64.powf(f64::from(bin) / f64::from(BINS_PER_DECADE))
}

/// Number of the recorded bin of a rate; rates below 1 b/s fall into bin 0.
pub fn rate_bin(rate: BitRate) -> u16 {
    let position = rate.bits().log10() * f64::from(BINS_PER_DECADE);
    let bin = (position as u16).min(LAST_BIN);
    // The logarithm may be off by one rounding at a bound.
    if bin < LAST_BIN && rate.bits() >= lower_bound(bin + 1) {
        bin + 1
    } else if bin > 0 && rate.bits() < lower_bound(bin) {
        bin - 1
    } else {
        bin
    }
}

/// Lower and upper bound of a recorded bin; numbers beyond the last bin mean the last bin.
pub fn rate_bin_bounds(bin: u16) -> (BitRate, BitRate) {
    let bin = bin.min(LAST_BIN);
    (BitRate::from_bits(lower_bound(bin)), BitRate::from_bits(lower_bound(bin + 1)))
}

/// Histogram for a figure: `counts[i]` blocks have rates from `edges[i]` to `edges[i + 1]`.
#[derive(Debug, Clone, PartialEq)]
pub struct Histogram {
    /// Bins have equal ratios of their bounds, not equal widths.
    pub logarithmic: bool,
    /// Bounds of the bins in bits per second, one more than counts.
    pub edges: Vec<f64>,
    /// Blocks per bin; a recorded bin that crosses a bound is divided in proportion.
    pub counts: Vec<f64>,
}

/// Histogram of all rows, absent without blocks.
///
/// The bins are linear from 0 if nine tenths of the blocks lie within a factor of 100, else logarithmic.
pub fn histogram(rows: &[HistogramRow]) -> Option<Histogram> {
    let mut recorded = vec![0u64; usize::from(LAST_BIN) + 1];
    for row in rows {
        let count = &mut recorded[usize::from(row.bin.min(LAST_BIN))];
        *count = count.saturating_add(row.count);
    }
    let bins: Vec<(u16, f64)> = (0..)
        .zip(&recorded)
        .filter(|(_, count)| **count > 0)
        .map(|(bin, count)| (bin, *count as f64))
        .collect();
    let (first, last) = (bins.first()?.0, bins.last()?.0);
    let logarithmic = lower_bound(quantile(&bins, 0.95)) > LINEAR_RATIO * lower_bound(quantile(&bins, 0.05));
    let edges: Vec<f64> = if logarithmic {
        let (step, low) =
            (BINS_PER_DECADE / FIGURE_BINS_PER_DECADE, first / (BINS_PER_DECADE / FIGURE_BINS_PER_DECADE));
        (low..=last / step + 1).map(|edge| lower_bound(edge * step)).collect()
    } else {
        let width = nice_step(lower_bound(last + 1) / LINEAR_BINS);
        let count = (lower_bound(last + 1) / width).ceil() as u32;
        (0..=count).map(|edge| f64::from(edge) * width).collect()
    };
    let share = |low: f64, high: f64| -> f64 {
        let part = |&(bin, count): &(u16, f64)| {
            let (start, end) = (lower_bound(bin), lower_bound(bin + 1));
            count * ((high.min(end) - low.max(start)) / (end - start)).max(0.0)
        };
        bins.iter().map(part).sum()
    };
    let counts = edges.windows(2).map(|pair| share(pair[0], pair[1])).collect();
    Some(Histogram { logarithmic, edges, counts })
}

/// First recorded bin at which the cumulated count reaches `share` of all blocks.
fn quantile(bins: &[(u16, f64)], share: f64) -> u16 {
    let total: f64 = bins.iter().map(|(_, count)| count).sum();
    let mut sum = 0.0;
    let reached = |(_, count): &&(u16, f64)| {
        sum += count;
        sum >= share * total
    };
    bins.iter().find(reached).or(bins.last()).map_or(0, |(bin, _)| *bin)
}

/// Greatest of 1, 2 and 5 times a power of ten that does not exceed `step`, a positive number.
pub(crate) fn nice_step(step: f64) -> f64 {
    let power = 10f64.powf(step.log10().floor());
    let factor = [5.0, 2.0].into_iter().find(|factor| factor * power <= step * 1.000_001);
    factor.unwrap_or(1.0) * power
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rows(rates: &[f64]) -> Vec<HistogramRow> {
        let row = |rate: &f64| HistogramRow { hour: 0, bin: rate_bin(BitRate::from_bits(*rate)), count: 1 };
        rates.iter().map(row).collect()
    }

    #[test]
    fn scale_follows_the_range() {
        let linear = histogram(&rows(&[60e3, 280e3, 350e3, 525e3, 700e3])).unwrap();
        assert!(!linear.logarithmic);
        assert_eq!((linear.edges[0], linear.edges[1]), (0.0, 10e3));
        let logarithmic = histogram(&rows(&[1e3, 1e6])).unwrap();
        assert!(logarithmic.logarithmic);
        assert_eq!(logarithmic.counts.len(), 31);
        assert_eq!(histogram(&[]), None);
    }

    #[test]
    fn extreme_rates_have_bins() {
        assert_eq!(rate_bin(BitRate::default()), 0);
        assert_eq!(rate_bin(BitRate::MAX), LAST_BIN);
        assert!(histogram(&[HistogramRow { hour: 0, bin: u16::MAX, count: u64::MAX }]).is_some());
        assert!(histogram(&rows(&[0.0])).is_some());
    }

    proptest! {
        #[test]
        fn rate_lies_within_its_bin(exponent in 0.0..15.0f64, bin in 0u16..=LAST_BIN) {
            let rate = BitRate::from_bits(10f64.powf(exponent));
            let (low, high) = rate_bin_bounds(rate_bin(rate));
            prop_assert!(low <= rate && rate < high);
            prop_assert_eq!(rate_bin(rate_bin_bounds(bin).0), bin);
        }

        #[test]
        fn histogram_keeps_all_blocks(rates in prop::collection::vec(1.0..1e9f64, 1..300), spread in 0.1..3.0f64) {
            let rates: Vec<f64> = rates.iter().map(|rate| rate.powf(spread / 3.0)).collect();
            let found = histogram(&rows(&rates)).unwrap();
            let total: f64 = found.counts.iter().sum();
            prop_assert!((total - rates.len() as f64).abs() < 1e-6);
            prop_assert!(found.counts.len() <= 160);
            // A block is at most one recorded bin away from its own figure bin.
            for edge in &found.edges {
                let below = rates.iter().filter(|rate| *rate < edge).count() as f64;
                let counted: f64 = found.edges.iter().skip(1).zip(&found.counts)
                    .take_while(|(upper, _)| *upper <= edge).map(|(_, count)| count).sum();
                let near = rates.iter().filter(|rate| (**rate / edge).log10().abs() <= 0.0101).count() as f64;
                prop_assert!((below - counted).abs() <= near + 1e-6);
            }
        }
    }
}
