//! Fit of found slots into a hold: the oldest of them, where the others can wait until slots of the hold are distilled.

use holdfast_base::Sequence;
use holdfast_ring::Refusal;

/// Slots that follow each other, first and last, in order.
pub(crate) type Runs = Vec<(Sequence, Sequence)>;

/// Those that are not among these, which come in order, too.
pub(crate) fn without(runs: &[(Sequence, Sequence)], these: &[(Sequence, Sequence)]) -> Runs {
    let mut left = Vec::new();
    for (first, last) in runs {
        let mut from = *first;
        let begin = these.partition_point(|(_, end)| end < first);
        for (start, end) in these[begin..].iter().take_while(|(start, _)| start <= last) {
            if from < *start {
                left.push((from, Sequence(start.0 - 1)));
            }
            from = end.next();
        }
        if from <= *last {
            left.push((from, *last));
        }
    }
    left
}

/// What has no room for all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Full {
    /// A quota of so many slots.
    Quota(u32),
    /// The ring.
    Ring,
}

/// What a hold is asked to take, and what waits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fit {
    pub(crate) wanted: Runs,
    /// The youngest.
    pub(crate) rest: Runs,
    /// Why they wait.
    pub(crate) full: Option<Full>,
}

impl Fit {
    /// All of it, as long as nobody has said no.
    pub(crate) fn all(sequences: &[(Sequence, Sequence)]) -> Self {
        Self { wanted: sequences.to_vec(), ..Self::default() }
    }

    /// Asks for less, if that is what a refusal is about; a standing hold has the room of its quota, or has none.
    pub(crate) fn takes_less(&mut self, refusal: &Refusal, standing: bool) -> bool {
        let (full, over) = match *refusal {
            Refusal::Quota { quota, wanted } => (Full::Quota(quota), wanted.saturating_sub(quota)),
            Refusal::NoRoom { wanted, free } if !standing => (Full::Ring, wanted.saturating_sub(free)),
            _ => return false,
        };
        self.full = Some(full);
        self.give_up(over.max(1).into());
        true
    }

    /// Lets so many of the youngest wait.
    fn give_up(&mut self, mut count: u64) {
        let mut waiting = Vec::new();
        while count > 0
            && let Some((first, last)) = self.wanted.pop()
        {
            let from = first.0.max((last.0 + 1).saturating_sub(count));
            count -= last.0 + 1 - from;
            waiting.push((Sequence(from), last));
            if from > first.0 {
                self.wanted.push((first, Sequence(from - 1)));
            }
        }
        waiting.reverse();
        waiting.append(&mut self.rest);
        self.rest = waiting;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(runs: &[(u64, u64)]) -> Runs {
        runs.iter().map(|(first, last)| (Sequence(*first), Sequence(*last))).collect()
    }

    #[test]
    fn what_is_left_of_runs_without_others_is_all_that_is_in_none_of_them() {
        let all = runs(&[(3, 5), (7, 7), (9, 14), (20, 23)]);
        for (these, left) in [
            (runs(&[]), all.clone()),
            (runs(&[(0, 2), (6, 6), (8, 8), (15, 19), (24, 30)]), all.clone()),
            (
                runs(&[(4, 4), (7, 9), (11, 12), (14, 20)]),
                runs(&[(3, 3), (5, 5), (10, 10), (13, 13), (21, 23)]),
            ),
            (runs(&[(0, 3), (22, 99)]), runs(&[(4, 5), (7, 7), (9, 14), (20, 21)])),
            (runs(&[(3, 23)]), runs(&[])),
        ] {
            assert_eq!(without(&all, &these), left, "without {these:?}");
        }
    }

    #[test]
    fn what_does_not_fit_is_the_youngest_and_waits() {
        let all = runs(&[(3, 5), (9, 9), (20, 23)]);
        let fit = |over: u32| {
            let mut fit = Fit::all(&all);
            assert!(fit.takes_less(&Refusal::Quota { quota: 8 - over, wanted: 8 }, true));
            assert_eq!(fit.full, Some(Full::Quota(8 - over)));
            (fit.wanted, fit.rest)
        };
        assert_eq!(fit(1), (runs(&[(3, 5), (9, 9), (20, 22)]), runs(&[(23, 23)])));
        assert_eq!(fit(4), (runs(&[(3, 5), (9, 9)]), runs(&[(20, 23)])));
        assert_eq!(fit(6), (runs(&[(3, 4)]), runs(&[(5, 5), (9, 9), (20, 23)])));
        assert_eq!(fit(8), (runs(&[]), all.clone()));
    }

    #[test]
    fn who_is_refused_again_asks_for_still_less() {
        let mut fit = Fit::all(&runs(&[(3, 5), (9, 9)]));
        for _ in 0..2 {
            assert!(fit.takes_less(&Refusal::NoRoom { wanted: 2, free: 1 }, false));
        }
        assert_eq!((&fit.wanted, &fit.rest), (&runs(&[(3, 4)]), &runs(&[(5, 5), (9, 9)])));
        assert_eq!(fit.full, Some(Full::Ring));
        let before = fit.clone();
        for (refusal, standing) in
            [(Refusal::NoRoom { wanted: 2, free: 1 }, true), (Refusal::NoDevice, false)]
        {
            assert!(!fit.takes_less(&refusal, standing));
        }
        assert_eq!(fit, before);
    }
}
