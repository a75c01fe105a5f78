//! Taking turns and comparing: contestants run one after the other in every round, each round begins with another
//! one, and ratios are made within a round, so that a machine that is slow for a while is slow for all.

use crate::BenchError;

/// Median and extremes of a few figures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The one in the middle.
    pub median: f64,
    /// The least.
    pub least: f64,
    /// The most.
    pub most: f64,
}

impl Spread {
    /// Of at least one figure.
    pub fn of(figures: impl IntoIterator<Item = f64>) -> Self {
        let mut all: Vec<f64> = figures.into_iter().collect();
        all.sort_unstable_by(f64::total_cmp);
        let at = |n: usize| all.get(n).copied().unwrap_or(f64::NAN);
        let half = all.len() / 2;
        let median =
            if all.len() % 2 == 1 { at(half) } else { f64::midpoint(at(half.wrapping_sub(1)), at(half)) };
        Self { median, least: at(0), most: at(all.len().wrapping_sub(1)) }
    }

    /// So many times of each.
    #[must_use]
    pub fn by(&self, factor: f64) -> Self {
        Self { median: self.median * factor, least: self.least * factor, most: self.most * factor }
    }

    /// `median (least–most)` with so many decimals.
    pub fn show(&self, decimals: usize) -> String {
        format!("{:.decimals$} ({:.decimals$}–{:.decimals$})", self.median, self.least, self.most)
    }
}

/// What every contestant reached in every round.
#[derive(Clone, Debug)]
pub struct Rounds(Vec<Vec<f64>>);

impl Rounds {
    /// Lets `contestants` take turns for so many rounds.
    pub fn run(
        rounds: usize,
        contestants: usize,
        mut measure: impl FnMut(usize) -> Result<f64, BenchError>,
    ) -> Result<Self, BenchError> {
        let mut all = vec![Vec::with_capacity(rounds); contestants];
        for round in 0..rounds {
            for turn in 0..contestants {
                let who = (round + turn) % contestants;
                all[who].push(measure(who)?);
            }
        }
        Ok(Self(all))
    }

    /// What one contestant reached.
    pub fn of(&self, who: usize) -> Spread {
        Spread::of(self.0[who].iter().copied())
    }

    /// Its ratio to another, round by round.
    pub fn ratio(&self, who: usize, to: usize) -> Spread {
        Spread::of(self.0[who].iter().zip(&self.0[to]).map(|(a, b)| a / b))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_made_within_a_round_and_turns_alternate() {
        let mut order = Vec::new();
        let rounds = Rounds::run(3, 2, |who| {
            order.push(who);
            // The machine is ten times slower in the second round.
            let slow = if order.len() == 3 || order.len() == 4 { 0.1 } else { 1.0 };
            Ok(slow * if who == 0 { 9.0 } else { 10.0 })
        });
        let rounds = rounds.unwrap();
        assert_eq!(order, [0, 1, 1, 0, 0, 1]);
        assert_eq!(rounds.ratio(0, 1).show(2), "0.90 (0.90–0.90)");
        assert_eq!(rounds.of(0).show(1), "9.0 (0.9–9.0)");
    }

    #[test]
    fn the_median_of_an_even_number_lies_between() {
        let spread = Spread::of([4.0, 1.0, 2.0, 3.0]);
        assert_eq!((spread.median, spread.least, spread.most), (2.5, 1.0, 4.0));
        assert!(Spread::of([]).median.is_nan());
    }
}
