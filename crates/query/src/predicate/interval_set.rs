//! Sets of values as sorted, disjoint intervals: the values of a column that a comparison accepts.

use std::ops::Bound::{self, Excluded, Included, Unbounded};

/// From here to there.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Interval<K> {
    low: Bound<K>,
    high: Bound<K>,
}

/// A set of values: spans that rise, and neither touch nor overlap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IntervalSet<K>(Vec<Interval<K>>);

/// Whether nothing lies between a low and a high bound.
fn is_empty<K: Ord>(low: &Bound<K>, high: &Bound<K>) -> bool {
    match (low, high) {
        (Unbounded, _) | (_, Unbounded) => false,
        (Included(low), Included(high)) => low > high,
        (Included(low) | Excluded(low), Included(high) | Excluded(high)) => low >= high,
    }
}

/// Whether what ends at `high` and what begins at `low` leave nothing between them.
fn meet<K: Ord>(high: &Bound<K>, low: &Bound<K>) -> bool {
    match (high, low) {
        (Unbounded, _) | (_, Unbounded) => true,
        (Excluded(high), Excluded(low)) => high > low,
        (Included(high) | Excluded(high), Included(low) | Excluded(low)) => high >= low,
    }
}

/// Orders low bounds by what they let in.
fn lower<K: Ord>(a: &Bound<K>, b: &Bound<K>) -> bool {
    match (a, b) {
        (Unbounded, _) => true,
        (_, Unbounded) => false,
        (Excluded(a), Included(b)) => a < b,
        (Included(a) | Excluded(a), Included(b) | Excluded(b)) => a <= b,
    }
}

/// Whether a high bound lets in no more than another.
fn shorter<K: Ord>(a: &Bound<K>, b: &Bound<K>) -> bool {
    match (a, b) {
        (_, Unbounded) => true,
        (Unbounded, _) => false,
        (Included(a), Excluded(b)) => a < b,
        (Included(a) | Excluded(a), Included(b) | Excluded(b)) => a <= b,
    }
}

/// The same edge seen from the other side.
fn beyond<K: Clone>(edge: &Bound<K>) -> Bound<K> {
    match edge {
        Included(edge) => Excluded(edge.clone()),
        Excluded(edge) => Included(edge.clone()),
        Unbounded => Unbounded,
    }
}

impl<K: Ord + Clone> IntervalSet<K> {
    /// Every value.
    pub fn all() -> Self {
        Self::between(Unbounded, Unbounded)
    }

    /// No value.
    pub fn none() -> Self {
        Self(Vec::new())
    }

    /// One value.
    pub fn point(value: K) -> Self {
        Self(vec![Interval { low: Included(value.clone()), high: Included(value) }])
    }

    /// What lies between two bounds.
    pub fn between(low: Bound<K>, high: Bound<K>) -> Self {
        if is_empty(&low, &high) { Self::none() } else { Self(vec![Interval { low, high }]) }
    }

    /// Whether there is no value in it.
    pub fn is_none(&self) -> bool {
        self.0.is_empty()
    }

    /// How many of its spans end before something, by their high bounds.
    pub(super) fn position(&self, ends_before: impl Fn(&Bound<K>) -> bool) -> usize {
        self.0.partition_point(|span| ends_before(&span.high))
    }

    /// One of its spans.
    pub(super) fn nth(&self, at: usize) -> Option<(&Bound<K>, &Bound<K>)> {
        self.0.get(at).map(|span| (&span.low, &span.high))
    }

    /// What is in either.
    #[must_use]
    pub fn or(&self, other: &Self) -> Self {
        let mut all: Vec<Interval<K>> = Vec::with_capacity(self.0.len() + other.0.len());
        let (mut mine, mut its) = (self.0.iter().peekable(), other.0.iter().peekable());
        loop {
            let next = match (mine.peek(), its.peek()) {
                (Some(a), Some(b)) if lower(&a.low, &b.low) => mine.next(),
                (_, Some(_)) => its.next(),
                (Some(_), None) => mine.next(),
                (None, None) => return Self(all),
            };
            let Some(next) = next else { return Self(all) };
            match all.last_mut() {
                Some(last) if meet(&last.high, &next.low) => {
                    if shorter(&last.high, &next.high) {
                        last.high = next.high.clone();
                    }
                }
                _ => all.push(next.clone()),
            }
        }
    }

    /// What is in neither.
    #[must_use]
    pub fn complement(&self) -> Self {
        let mut all = Vec::with_capacity(self.0.len() + 1);
        let mut low = Unbounded;
        let mut ended = false;
        for span in &self.0 {
            let high = beyond(&span.low);
            if span.low != Unbounded && !is_empty(&low, &high) {
                all.push(Interval { low, high });
            }
            ended = span.high == Unbounded;
            low = beyond(&span.high);
        }
        if !ended {
            all.push(Interval { low, high: Unbounded });
        }
        Self(all)
    }

    /// What is in both.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        self.complement().or(&other.complement()).complement()
    }

    /// Whether a value is in it.
    pub fn contains(&self, value: &K) -> bool {
        self.meets(value, value)
    }

    /// Whether a value from `least` to `greatest` may be in it.
    pub fn meets(&self, least: &K, greatest: &K) -> bool {
        let at = self.0.partition_point(|span| match &span.high {
            Unbounded => false,
            Included(high) => high < least,
            Excluded(high) => high <= least,
        });
        self.0.get(at).is_some_and(|span| match &span.low {
            Unbounded => true,
            Included(low) => low <= greatest,
            Excluded(low) => low < greatest,
        })
    }

    /// Its values, where they are single ones.
    pub fn points(&self) -> Option<Vec<&K>> {
        let point = |span| match span {
            &Interval { low: Included(ref low), high: Included(ref high) } if low == high => Some(low),
            _ => None,
        };
        self.0.iter().map(point).collect()
    }

    /// Its spans.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&Bound<K>, &Bound<K>)> {
        self.0.iter().map(|span| (&span.low, &span.high))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type NaiveSet = Vec<(Bound<i32>, Bound<i32>)>;

    /// Values of a small world, so that edges often touch; odd ones lie between those that bounds are made of.
    fn bound() -> impl Strategy<Value = Bound<i32>> {
        prop_oneof![
            1 => Just(Unbounded),
            4 => (0..12).prop_map(|n| Included(2 * n)),
            4 => (0..12).prop_map(|n| Excluded(2 * n)),
        ]
    }

    /// A set, and what is in it, said by each of its spans.
    fn set() -> impl Strategy<Value = (IntervalSet<i32>, NaiveSet)> {
        proptest::collection::vec((bound(), bound()), 0..5).prop_map(|spans| {
            let set = spans
                .iter()
                .fold(IntervalSet::none(), |set, (low, high)| set.or(&IntervalSet::between(*low, *high)));
            (set, spans)
        })
    }

    fn is_in(spans: &[(Bound<i32>, Bound<i32>)], value: i32) -> bool {
        use std::ops::RangeBounds;
        spans.iter().any(|span| span.contains(&value))
    }

    fn world() -> std::ops::Range<i32> {
        -3..28
    }

    proptest! {
        #[test]
        fn sets_hold_what_their_spans_hold((a, naive_a) in set(), (b, naive_b) in set()) {
            for value in world() {
                let (in_a, in_b) = (is_in(&naive_a, value), is_in(&naive_b, value));
                prop_assert_eq!(a.contains(&value), in_a);
                prop_assert_eq!(a.or(&b).contains(&value), in_a || in_b);
                prop_assert_eq!(a.and(&b).contains(&value), in_a && in_b);
                prop_assert_eq!(a.complement().contains(&value), !in_a);
            }
            prop_assert_eq!(&a.complement().complement(), &a);
        }

        // A slot whose values lie within bounds is passed over only if none of them can be meant.
        #[test]
        fn bounds_meet_a_set_where_any_value_between_them_is_in_it((set, naive) in set(), a in world(), b in world()) {
            let (least, greatest) = (a.min(b), a.max(b));
            let any = (least..=greatest).any(|value| is_in(&naive, value));
            prop_assert!(set.meets(&least, &greatest) >= any);
        }
    }

    #[test]
    fn single_values_are_told() {
        let some = IntervalSet::point(3).or(&IntervalSet::point(1)).or(&IntervalSet::point(3));
        assert_eq!(some.points(), Some(vec![&1, &3]));
        assert_eq!(some.or(&IntervalSet::between(Included(7), Excluded(8))).points(), None);
        assert_eq!(IntervalSet::<i32>::none().points(), Some(vec![]));
        assert_eq!(IntervalSet::<i32>::all().complement(), IntervalSet::none());
    }
}
