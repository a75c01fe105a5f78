//! Spans of arrival time: around matches (pre-roll and post-roll) and of a regular sample. Pure.

use holdfast_base::Timestamp;
use std::time::Duration;

/// From the first to the last instant, both included.
pub type Span = (Timestamp, Timestamp);

/// How far around what is found things are wanted, too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Roll {
    /// So long before it.
    pub before: Duration,
    /// So long after it.
    pub after: Duration,
}

impl Roll {
    /// Whether only what was found itself is wanted.
    pub fn is_none(self) -> bool {
        self == Self::default()
    }

    /// With what is around it.
    pub fn around(self, (first, last): Span) -> Span {
        (first - self.before, last + self.after)
    }
}

/// Puts stretches into order, those that touch each other into one.
pub fn merged(mut spans: Vec<Span>) -> Vec<Span> {
    spans.sort_unstable();
    spans.dedup_by(|next, kept| {
        let joined = next.0.0 <= kept.1.0.saturating_add(1);
        kept.1 = if joined { kept.1.max(next.1) } else { kept.1 };
        joined
    });
    spans
}

/// A regular sample: so much of every period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// So much of each.
    pub length: Duration,
    /// Periods follow each other from 1970 on.
    pub period: Duration,
}

impl Sample {
    /// The stretches that begin in `range` or reach into it, the later ones first.
    pub fn spans(self, (from, to): Span) -> impl Iterator<Item = Span> {
        let nanos = |span: Duration| i64::try_from(span.as_nanos()).unwrap_or(i64::MAX);
        let (length, period) = (nanos(self.length).max(1), nanos(self.period).max(1));
        let mut at = Some(to.0.div_euclid(period).saturating_mul(period));
        std::iter::from_fn(move || {
            let begin = at?;
            let end = begin.saturating_add(length - 1);
            at = begin.checked_sub(period);
            (begin <= to.0 && end >= from.0).then_some((Timestamp(begin), Timestamp(end)))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn merged_spans_cover_the_same_and_are_apart(
            spans in proptest::collection::vec((-50..50i64, 0..9i64), 0..12),
        ) {
            let spans: Vec<Span> =
                spans.iter().map(|(at, len)| (Timestamp(*at), Timestamp(at + len))).collect();
            let result = merged(spans.clone());
            for at in -60..70 {
                let in_any = |spans: &[Span]| spans.iter().any(|(a, b)| a.0 <= at && at <= b.0);
                prop_assert_eq!(in_any(&spans), in_any(&result), "{} of {:?}", at, result);
            }
            prop_assert!(result.windows(2).all(|two| two[0].1.0 + 1 < two[1].0.0), "{:?}", result);
        }

        #[test]
        fn a_sample_has_every_stretch_that_reaches_into_a_range(
            from in -300..300i64, len in 0..200i64, length in 1..30u64, more in 0..40u64,
        ) {
            let sample =
                Sample { length: Duration::from_nanos(length), period: Duration::from_nanos(length + more) };
            let range = (Timestamp(from), Timestamp(from + len));
            let period = (length + more) as i64;
            let naive: Vec<Span> = (-700..700)
                .rev()
                .filter(|at| at % period == 0)
                .map(|at| (Timestamp(at), Timestamp(at + length as i64 - 1)))
                .filter(|(first, last)| *first <= range.1 && *last >= range.0)
                .collect();
            prop_assert_eq!(sample.spans(range).collect::<Vec<_>>(), naive);
        }
    }
}
