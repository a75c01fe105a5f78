//! Ranges of sequences, first and last, as holds have them: sorted and apart from each other. Pure.

use holdfast_base::Sequence;

/// Puts ranges in order and joins what touches or overlaps; what ends before it begins is left out.
pub(crate) fn joined(ranges: impl IntoIterator<Item = (Sequence, Sequence)>) -> Vec<(Sequence, Sequence)> {
    let mut all: Vec<_> = ranges.into_iter().filter(|(first, last)| first <= last).collect();
    // Most often a few behind many that are in order: this sort has little to do then.
    all.sort();
    all.dedup_by(|next, kept| {
        let joins = next.0.0 <= kept.1.0.saturating_add(1);
        if joins {
            kept.1 = kept.1.max(next.1);
        }
        joins
    });
    all
}

/// Whether a sequence is in one of the ranges, which are in order and apart.
pub(crate) fn within(ranges: &[(Sequence, Sequence)], sequence: Sequence) -> bool {
    let at = ranges.partition_point(|(_, last)| *last < sequence);
    ranges.get(at).is_some_and(|(first, _)| *first <= sequence)
}

/// How many sequences they name.
pub(crate) fn count(ranges: &[(Sequence, Sequence)]) -> u64 {
    let one = |(first, last): &(Sequence, Sequence)| last.0.saturating_sub(first.0).saturating_add(1);
    ranges.iter().map(one).fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn end() -> impl Strategy<Value = u64> {
        prop_oneof![9 => 0..50u64, 1 => u64::MAX - 9..=u64::MAX]
    }

    proptest! {
        #[test]
        fn joined_ranges_name_the_same_and_lie_apart(
            ranges in proptest::collection::vec((end(), 0..9u64, any::<bool>()), 0..12),
        ) {
            let mut named = BTreeSet::new();
            let ranges = ranges.iter().map(|(first, more, turned)| {
                let last = first.saturating_add(*more);
                let (a, b) = if *turned { (last, *first) } else { (*first, last) };
                named.extend(a..=b);
                (Sequence(a), Sequence(b))
            });
            let found = joined(ranges.collect::<Vec<_>>());
            prop_assert!(found.iter().all(|(first, last)| first <= last), "{found:?}");
            prop_assert!(found.windows(2).all(|two| two[0].1.0 + 1 < two[1].0.0), "{found:?}");
            prop_assert_eq!(count(&found), named.len() as u64);
            for sequence in (0..70).chain(u64::MAX - 20..=u64::MAX) {
                prop_assert_eq!(within(&found, Sequence(sequence)), named.contains(&sequence), "{}", sequence);
            }
        }
    }
}
