//! Age ranges: from a slot's age back to the age at which its oldest unfinished element began. Pure.

use holdfast_base::Age;

/// A set of ages, as first and last ones, in order and apart from each other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ages(Vec<(Age, Age)>);

impl Ages {
    /// Whether `age` is in it.
    pub fn has(&self, age: Age) -> bool {
        let at = self.0.partition_point(|(_, last)| *last < age);
        self.0.get(at).is_some_and(|(first, _)| *first <= age)
    }
}

impl FromIterator<(Age, u64)> for Ages {
    /// Every age, and so many before it.
    fn from_iter<I: IntoIterator<Item = (Age, u64)>>(ages: I) -> Self {
        let back = |(age, back): (Age, u64)| (Age(age.0.saturating_sub(back)), age);
        let mut all: Vec<_> = ages.into_iter().map(back).collect();
        all.sort_unstable();
        all.dedup_by(|next, kept| {
            let joined = next.0 <= kept.1;
            kept.1 = if joined { kept.1.max(next.1) } else { kept.1 };
            joined
        });
        Self(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_age_is_in_it_and_those_before_and_no_other(
            ages in proptest::collection::vec((0..60u64, prop_oneof![8 => 0..5u64, 1 => Just(u64::MAX)]), 0..9),
        ) {
            let set: Ages = ages.iter().map(|(age, back)| (Age(*age), *back)).collect();
            for asked in 0..70 {
                let wanted = ages.iter().any(|(age, back)| asked <= *age && age - asked <= *back);
                prop_assert_eq!(set.has(Age(asked)), wanted, "{} in {:?}", asked, set);
            }
        }
    }
}
