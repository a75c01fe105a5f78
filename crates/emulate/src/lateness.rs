//! Lateness of replies: a histogram, the maximum, and the verdict whether a run is valid.

use std::time::Duration;

/// Upper bounds of the counts, in microseconds; one more count is for what is later than all.
const STEPS: [u64; 12] = [50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000, 1_000_000];

/// The share of late answers up to which a run is believed.
const TOLERATED: f64 = 0.01;

/// Lateness of all answers since the last reset.
#[derive(Clone, Debug)]
pub(crate) struct Lateness {
    limit: Duration,
    counts: [u64; STEPS.len() + 1],
    answers: u64,
    late: u64,
    worst: Duration,
    sum: Duration,
}

impl Lateness {
    /// What is later than `limit` counts as late.
    pub(crate) fn new(limit: Duration) -> Self {
        let counts = [0; STEPS.len() + 1];
        Self { limit, counts, answers: 0, late: 0, worst: Duration::ZERO, sum: Duration::ZERO }
    }

    /// Begins anew.
    pub(crate) fn reset(&mut self) {
        *self = Self::new(self.limit);
    }

    /// One more answer.
    pub(crate) fn add(&mut self, late: Duration) {
        let micros = u64::try_from(late.as_micros()).unwrap_or(u64::MAX);
        self.counts[STEPS.iter().position(|step| micros < *step).unwrap_or(STEPS.len())] += 1;
        self.answers += 1;
        self.late += u64::from(late > self.limit);
        self.worst = self.worst.max(late);
        self.sum += late;
    }

    /// The share of answers that were later than the limit.
    pub(crate) fn share(&self) -> f64 {
        self.late as f64 / self.answers.max(1) as f64
    }

    /// Whether the machine was too slow for the model, so that what was measured says nothing.
    pub(crate) fn too_slow(&self) -> bool {
        self.share() > TOLERATED
    }

    /// A line a figure.
    pub(crate) fn lines(&self) -> String {
        use std::fmt::Write as _;
        let mut text = String::new();
        let mean = self.sum.as_micros() / u128::from(self.answers.max(1));
        let _ = writeln!(text, "late_limit_us {}", self.limit.as_micros());
        let _ = writeln!(text, "late {}", self.late);
        let _ = writeln!(text, "late_share {:.6}", self.share());
        let _ = writeln!(text, "late_mean_us {mean}");
        let _ = writeln!(text, "late_worst_us {}", self.worst.as_micros());
        for (step, count) in STEPS.iter().zip(&self.counts) {
            let _ = writeln!(text, "late_below_{step}us {count}");
        }
        let _ = writeln!(text, "late_beyond {}", self.counts[STEPS.len()]);
        let _ = writeln!(text, "too_slow {}", if self.too_slow() { "yes" } else { "no" });
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_with_many_late_answers_is_not_believed() {
        let mut lateness = Lateness::new(Duration::from_millis(1));
        for _ in 0..99 {
            lateness.add(Duration::from_micros(60));
        }
        lateness.add(Duration::from_millis(3));
        assert!(!lateness.too_slow());
        let said = lateness.lines();
        for line in ["late 1", "late_share 0.010000", "late_mean_us 89", "late_worst_us 3000"] {
            assert!(said.lines().any(|said| said == line), "{said}");
        }
        assert!(said.contains("late_below_100us 99\n") && said.contains("late_below_5000us 1\n"));
        lateness.add(Duration::from_secs(5));
        assert!(lateness.too_slow() && lateness.lines().ends_with("late_beyond 1\ntoo_slow yes\n"));
        lateness.reset();
        assert!(!lateness.too_slow() && lateness.lines().contains("late_worst_us 0\n"));
    }
}
