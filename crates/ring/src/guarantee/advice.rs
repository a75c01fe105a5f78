//! Nearest admissible alternatives to a refused guarantee, found by trial. The caller says which parameters
//! may change. Pure.

use holdfast_base::Rate;

/// The largest number below a refused one that would do; 0 for none.
pub fn most_below(refused: u64, would: impl Fn(u64) -> bool) -> u64 {
    let (mut low, mut high) = (0, refused);
    while high.saturating_sub(low) > 1 {
        let middle = low + (high - low) / 2;
        if would(middle) { low = middle } else { high = middle }
    }
    low
}

/// The least number above a refused one that would do, where `enough` does.
pub fn least_above(refused: u64, enough: u64, would: impl Fn(u64) -> bool) -> u64 {
    let (mut low, mut high) = (refused, enough);
    while high.saturating_sub(low) > 1 {
        let middle = low + (high - low) / 2;
        if would(middle) { high = middle } else { low = middle }
    }
    high
}

/// The highest rate below a refused one that would do, as far as it is shown.
pub fn most_rate(refused: Rate, would: impl Fn(Rate) -> bool) -> Option<Rate> {
    let most = Rate(most_below(refused.0, |rate| would(Rate(rate)))).shown_down();
    (most.0 > 0 && would(most)).then_some(most)
}

/// The slot sizes between two that are not this one: larger ones first, the nearest first of each.
pub fn other_slots(slot: u64, least: u64, most: u64) -> impl Iterator<Item = u64> {
    let larger = std::iter::successors(slot.checked_mul(2), |slot| slot.checked_mul(2));
    let smaller = std::iter::successors(Some(slot / 2), |slot| Some(slot / 2));
    let smaller = smaller.skip_while(move |slot| *slot > most).take_while(move |slot| *slot >= least.max(1));
    larger.skip_while(move |slot| *slot < least).take_while(move |slot| *slot <= most).chain(smaller)
}

/// Single changes that would each do, in words; `None` without any.
pub fn each_would_do(ways: &[String]) -> Option<String> {
    match ways {
        [] => None,
        [one] => Some(format!("admissible instead: {one}")),
        [most @ .., last] => Some(format!("admissible instead: {}, or {last}", most.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        // Promise 8: what is offered is the nearest that would do.
        #[test]
        fn what_is_found_is_the_nearest(limit in 0u64..1000, refused in 1u64..2000, beyond in 1u64..2000) {
            let below = most_below(limit + refused, |number| number <= limit);
            prop_assert_eq!(below, limit);
            let above = least_above(limit, limit + beyond + refused, |number| number >= limit + beyond);
            prop_assert_eq!(above, limit + beyond);
            let rate = most_rate(Rate(limit + refused), |rate| rate.0 <= limit);
            prop_assert_eq!(rate, (limit > 0).then_some(Rate(limit).shown_down()));
        }
    }

    #[test]
    fn where_nothing_would_do_nothing_is_offered() {
        assert_eq!(most_below(u64::MAX, |_| false), 0);
        assert_eq!(most_below(0, |_| true), 0);
        assert_eq!(most_rate(Rate(5), |_| false), None);
        assert_eq!(each_would_do(&[]), None);
    }

    #[test]
    fn other_slots_are_tried_from_the_nearest() {
        let tried = |slot, least, most| other_slots(slot, least, most).collect::<Vec<_>>();
        assert_eq!(tried(32, 8, 128), [64, 128, 16, 8]);
        assert_eq!(tried(4, 8, 32), [8, 16, 32]);
        assert_eq!(tried(128, 8, 32), [32, 16, 8]);
        assert_eq!(tried(1, 0, 2), [2]);
    }

    #[test]
    fn ways_are_joined_as_people_would() {
        let said =
            |ways: &[&str]| each_would_do(&ways.iter().map(|way| (*way).to_owned()).collect::<Vec<_>>());
        assert_eq!(said(&["a"]).unwrap(), "admissible instead: a");
        assert_eq!(said(&["a", "b", "c"]).unwrap(), "admissible instead: a, b, or c");
    }
}
