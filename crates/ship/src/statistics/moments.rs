//! Count, mean and RMS deviation of a set of values, mergeable without loss of digits.

use super::rows::MinuteRow;

/// Count, mean and sum of squared deviations.
///
/// Parts are merged by the pairwise formula of Chan et al. Large sums of squares are never subtracted
/// across parts, so cancellation stays within the sums of one minute.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Moments {
    count: u64,
    mean: f64,
    deviation: f64,
}

impl Moments {
    /// Moments of `count` values from their sum and their sum of squares; sums that are not finite count as none.
    pub fn from_sums(count: u64, sum: f64, square_sum: f64) -> Self {
        if count == 0 || !sum.is_finite() || !square_sum.is_finite() {
            return Self::default();
        }
        let mean = sum / count as f64;
        // One rounding instead of two; rounding may still leave a small negative remainder.
        let deviation = sum.mul_add(-mean, square_sum).max(0.0);
        Self { count, mean, deviation }
    }

    /// Moments of the block rates of one minute.
    pub fn of_row(row: &MinuteRow) -> Self {
        Self::from_sums(row.blocks, row.rate_sum, row.rate_square_sum)
    }

    /// Moments of a single value.
    pub fn of_value(value: f64) -> Self {
        Self::from_sums(1, value, value * value)
    }

    /// Moments of the union of two sets.
    #[must_use]
    pub fn merge(self, other: Self) -> Self {
        if self.count == 0 {
            return other;
        }
        let count = self.count.saturating_add(other.count);
        let (own, share) = (self.count as f64, other.count as f64 / count as f64);
        let distance = other.mean - self.mean;
        Self {
            count,
            mean: distance.mul_add(share, self.mean),
            deviation: self.deviation + other.deviation + distance * distance * own * share,
        }
    }

    /// Number of values in the set.
    pub fn count(self) -> u64 {
        self.count
    }

    /// Mean, absent for the empty set.
    pub fn mean(self) -> Option<f64> {
        (self.count > 0).then_some(self.mean)
    }

    /// Root mean square deviation from the mean, absent for the empty set.
    pub fn rms(self) -> Option<f64> {
        (self.count > 0).then(|| (self.deviation / self.count as f64).sqrt())
    }
}

impl FromIterator<Moments> for Moments {
    fn from_iter<I: IntoIterator<Item = Moments>>(parts: I) -> Self {
        parts.into_iter().fold(Self::default(), Self::merge)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn naive(values: &[f64]) -> (f64, f64) {
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let square = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / values.len() as f64;
        (mean, square.sqrt())
    }

    #[test]
    fn empty_and_broken_sums_are_absent() {
        assert_eq!(Moments::default().mean(), None);
        assert_eq!(Moments::from_sums(0, 1.0, 1.0).rms(), None);
        assert_eq!(Moments::from_sums(3, f64::NAN, 1.0).mean(), None);
        assert_eq!(Moments::of_value(7.0).rms(), Some(0.0));
    }

    #[test]
    fn small_deviation_around_a_large_mean_survives() {
        let parts = [1e9, 1e9 + 1.0, 1e9 - 1.0].repeat(1000);
        let rms = parts.iter().map(|value| Moments::of_value(*value)).collect::<Moments>().rms().unwrap();
        assert!((rms - (2.0f64 / 3.0).sqrt()).abs() < 1e-9, "{rms}");
    }

    proptest! {
        #[test]
        fn merged_parts_equal_the_naive_computation(
            parts in prop::collection::vec(prop::collection::vec(1e3..1e9f64, 0..20), 1..20),
        ) {
            let values: Vec<f64> = parts.concat();
            prop_assume!(!values.is_empty());
            let sums = |part: &Vec<f64>| {
                let squares = part.iter().map(|value| value * value).sum();
                Moments::from_sums(part.len() as u64, part.iter().sum(), squares)
            };
            let found: Moments = parts.iter().map(sums).collect();
            let (mean, rms) = naive(&values);
            prop_assert_eq!(found.count(), values.len() as u64);
            prop_assert!((found.mean().unwrap() - mean).abs() < 1e-9 * mean);
            // A minute loses at most half of the digits to cancellation.
            prop_assert!((found.rms().unwrap() - rms).abs() < 1e-6 * mean);
        }
    }
}
