//! Tests of upstream losses (promise 2): the numbers reported as missing equal those that a naive model finds, whatever
//! is lost, late or duplicated.

use super::flow::{Flow, Mark};
use super::flows::MOST;
use super::*;
use holdfast_attributes::Count;
use proptest::prelude::*;
use std::collections::BTreeSet;

const MILLI: i64 = 1_000_000;

/// Flows and what they told.
struct Heard {
    cycle: Cycle,
    flows: Flows,
    told: PendingLosses,
    now: i64,
}

impl Heard {
    fn new(cycle: Cycle) -> Self {
        Self { cycle, flows: Flows::new(), told: PendingLosses::default(), now: 0 }
    }

    fn hear(&mut self, flow: u64, second: u32, number: u64) -> bool {
        self.now += 1;
        let count = Count { flow, second, number, alone: true };
        self.flows.count(self.cycle, &count, Timestamp(self.now), &mut self.told)
    }

    /// Numbers of one flow without seconds.
    fn all(&mut self, numbers: impl IntoIterator<Item = u64>) -> &mut Self {
        for number in numbers {
            self.hear(7, 0, number);
        }
        self
    }

    /// Elements missing at the end, and whether there are such of which nobody knows how many.
    fn end(&mut self) -> (u64, bool) {
        assert!(!self.flows.rest(Timestamp::MAX, &mut self.told), "nothing waits at the end");
        let PendingLosses { known, unknown } = std::mem::take(&mut self.told);
        (known.map_or(0, |missing| missing.elements.unwrap()), unknown.is_some())
    }
}

/// What becomes of an element on its way: lost with so many behind it, late by so many, doubled.
#[derive(Clone, Copy, Debug)]
struct Way {
    lost: u64,
    late: u64,
    twice: bool,
}

fn ways(most: usize) -> impl Strategy<Value = Vec<Way>> {
    let way = (prop_oneof![6 => Just(0u64), 1 => 1u64..33], 0u64..17, prop::bool::weighted(0.1))
        .prop_map(|(lost, late, twice)| Way { lost, late, twice });
    prop::collection::vec(way, 1..most)
}

/// The numbers that arrive, in their order, and how many between the first of them and the greatest never do.
fn on_the_way(ways: &[Way], most_lost: u64, most_late: u64) -> (Vec<u64>, u64) {
    let mut sent = Vec::new();
    let mut number = 0;
    for way in ways {
        number += way.lost.min(most_lost);
        sent.push((number + way.late.min(most_late), number));
        if way.twice {
            sent.push((number + most_late, number));
        }
        number += 1;
    }
    sent.sort_by_key(|(when, _)| *when);
    let arrived: Vec<u64> = sent.into_iter().map(|(_, number)| number).collect();
    let there: BTreeSet<u64> = arrived.iter().copied().collect();
    let (first, greatest) = (arrived[0], there.last().copied().unwrap());
    let missing = (first..greatest).filter(|number| !there.contains(number)).count();
    (arrived, missing as u64)
}

proptest! {
    #[test]
    fn what_is_missing_is_told_once_and_nothing_that_is_late_or_doubled(
        bits in prop_oneof![Just(4u32), Just(5), Just(8), Just(16), Just(48), Just(64)],
        senders in prop::collection::vec((any::<u64>(), ways(300)), 1..5),
        turns in prop::collection::vec(0usize..5, 1..50),
    ) {
        let window = 64.min(1u64 << (bits - 2));
        let mask = u64::MAX >> (64 - bits);
        let mut heard = Heard::new(Cycle::Bits(bits));
        let mut wanted = 0;
        let mut left = Vec::new();
        for (key, (start, ways)) in senders.iter().enumerate() {
            let (numbers, missing) = on_the_way(ways, window / 2, window / 4);
            wanted += missing;
            left.push((key as u64, *start, numbers.into_iter().peekable()));
        }
        // Mixed with those of the others.
        for turn in turns.iter().cycle() {
            let at = turn % left.len();
            let (key, start, numbers) = &mut left[at];
            if let Some(number) = numbers.next() {
                heard.hear(*key, 0, start.wrapping_add(number) & mask);
            }
            if numbers.peek().is_none() {
                drop(left.swap_remove(at));
            }
            if left.is_empty() {
                break;
            }
        }
        prop_assert_eq!(heard.end(), (wanted, false));
    }

    #[test]
    fn numbers_that_begin_anew_with_each_second_are_counted_over_its_end(
        a_second in 2u64..300, first in 0u64..300, epoch in 0u32..1 << 29, ways in ways(900),
    ) {
        let mut heard = Heard::new(Cycle::Second);
        let first = first % a_second;
        // All of the second that is heard first, and of the next.
        let begun = 2 * a_second - first;
        let (numbers, missing) = on_the_way(&ways, 20, 16);
        for number in (0..begun).chain(numbers.iter().map(|number| begun + number)) {
            let number = first + number;
            heard.hear(1, epoch + (number / a_second) as u32, number % a_second);
        }
        // Those before the first that arrived are between it and what was heard at the beginning.
        let before = numbers[0] - numbers.iter().filter(|number| **number < numbers[0]).collect::<BTreeSet<_>>().len() as u64;
        prop_assert_eq!(heard.end(), (missing + before, false));
    }

    #[test]
    fn a_long_loss_is_counted_when_the_next_but_one_comes_and_a_jump_back_or_too_far_is_unknown(
        bits in prop_oneof![Just(16u32), Just(32), Just(64)],
        start in any::<u64>(),
        jump in prop_oneof![65u64..1000, 1000u64..40_000, 1u64 << 20..1 << 26, any::<u64>()],
    ) {
        let mask = u64::MAX >> (64 - bits);
        let jump = jump & mask;
        prop_assume!((65..mask - 200).contains(&jump));
        let far = (1u64 << 24).min((1 << (bits - 1)) - 1);
        let mut heard = Heard::new(Cycle::Bits(bits));
        let at = |number: u64| start.wrapping_add(number) & mask;
        heard.all((0..100).map(at)).all((0..100).map(|number| at(99 + jump + number)));
        let wanted = if jump <= far { (jump - 1, false) } else { (0, true) };
        prop_assert_eq!(heard.end(), wanted);
        // It goes on there.
        heard.all([at(99 + jump + 103)]);
        prop_assert_eq!(heard.end(), (3, false));
    }

    #[test]
    fn one_wrong_header_changes_nothing(numbers in prop::collection::vec((any::<u64>(), 0u64..100), 1..20)) {
        let mut heard = Heard::new(Cycle::Bits(64));
        heard.all([1 << 40]);
        let mut next = (1 << 40) + 1;
        // None of them near another.
        for (place, (wrong, right)) in numbers.iter().enumerate() {
            heard.all([(wrong >> 32) << 32 | 0x8000_0000 | (place as u64) << 10]);
            heard.all(next..next + right);
            next += right;
        }
        prop_assert_eq!(heard.end(), (0, false));
    }

    #[test]
    fn nonsense_is_taken_and_leaves_nothing_waiting(
        second in any::<bool>(), bits in 4u32..65, counts in prop::collection::vec((0u64..600, any::<u32>(), any::<u64>(), 0u8..4), 0..2000),
    ) {
        let cycle = if second { Cycle::Second } else { Cycle::Bits(bits) };
        let mut heard = Heard::new(cycle);
        let (mut second, mut number) = (0, 0);
        for (flow, other_second, other, how) in counts {
            match how {
                0 => (second, number) = (other_second & 0x3fff_ffff, other),
                1 => second = (second + 1) & 0x3fff_ffff,
                _ => number = u64::wrapping_add(number, other % 70),
            }
            number &= if cycle == Cycle::Second { 0xff_ffff } else { u64::MAX >> (64 - bits) };
            heard.hear(flow, second, number);
        }
        heard.end();
    }
}

#[test]
fn the_first_end_of_a_second_tells_nothing_unless_a_number_is_missing_for_certain() {
    let seconds = |numbers: &[(u32, u64)]| {
        let mut heard = Heard::new(Cycle::Second);
        for (second, number) in numbers {
            heard.hear(3, *second, *number);
        }
        heard.end()
    };
    // Perhaps there were more than six in it: nobody can know.
    assert_eq!(seconds(&[(9, 4), (9, 5), (10, 0), (10, 1)]), (0, false));
    // The beginning of the second is missing, and perhaps the end of the one before.
    assert_eq!(seconds(&[(9, 4), (9, 5), (10, 2), (10, 3)]), (0, true));
    // Two whole ones are known by now.
    let known = [(9, 0), (9, 1), (9, 2), (10, 0), (10, 1), (10, 2)];
    assert_eq!(seconds(&[&known[..], &[(11, 1), (11, 2)]].concat()), (1, false));
    assert_eq!(seconds(&[&known[..5], &[(11, 0)]].concat()), (1, false));
    // 25 seconds of three each are missing; of a longer pause nobody knows what was sent in it.
    assert_eq!(seconds(&[&known[..], &[(36, 0), (36, 1)]].concat()), (75, false));
    assert_eq!(seconds(&[&known[..], &[(50, 0), (50, 1)]].concat()), (0, true));
}

#[test]
fn elements_that_come_alone_between_long_losses_are_not_missing() {
    let mut heard = Heard::new(Cycle::Bits(32));
    heard.all([1, 2, 1000, 2000, 2000, 3000, 3001]);
    assert_eq!(heard.end(), (3001 - 6, false));
    // Of those that go back nothing is believed.
    heard.all([70_000, 60_000, 80_000, 80_001]);
    assert_eq!(heard.end(), (80_000 - 3001 - 1 - 1, false));
}

#[test]
fn a_hole_may_be_filled_for_a_quarter_of_a_second() {
    let (mut told, cycle) = (PendingLosses::default(), Cycle::Bits(32));
    let at = |milli: i64| Timestamp(milli * MILLI);
    let mark = |number| Mark { second: 0, number };
    let mut flow = Flow::new(1, mark(10), at(0));
    for (milli, number) in [(0, 10), (5, 11), (20, 14)] {
        flow.count(cycle, mark(number), true, at(milli), &mut told);
    }
    assert!(flow.rest(at(269), &mut told), "it may still be filled");
    flow.count(cycle, mark(12), true, at(269), &mut told);
    assert!(told.is_empty());
    assert!(!flow.rest(at(270), &mut told));
    let one = Missing { elements: Some(1), from: at(5), to: at(20) };
    assert_eq!((told.known, told.unknown), (Some(one), None));
    // Too late: it was told, and is not taken back, nor told again.
    flow.count(cycle, mark(13), true, at(271), &mut told);
    assert!(!flow.rest(Timestamp::MAX, &mut told));
    assert_eq!(told.known, Some(one));
}

#[test]
fn senders_are_told_apart_as_long_as_there_are_not_too_many_and_strangers_push_none_out_that_speaks() {
    let mut heard = Heard::new(Cycle::Bits(32));
    for number in 0..20_000u64 {
        // One of two is lost.
        heard.hear(7, 0, 2 * number);
        heard.hear(1_000_000 + number, 0, number);
    }
    assert_eq!(heard.end(), (19_999, false));
    let mut heard = Heard::new(Cycle::Bits(32));
    for number in 0..100u64 {
        // As many are lost of each as its own number; of those of which it is too many at a time, nothing is believed.
        for flow in 0..MOST as u64 {
            heard.hear(flow, 0, number * (flow + 1));
        }
    }
    assert_eq!(heard.end(), ((0..64).sum::<u64>() * 99, false));
}

#[test]
fn heaps_of_several_packets_are_missing_but_nobody_knows_how_many_elements_that_is() {
    let (mut told, cycle) = (PendingLosses::default(), Cycle::Bits(48));
    let mut flow = Flow::new(0, Mark { second: 0, number: 5 }, Timestamp(0));
    for number in [5, 5, 5, 6, 6, 9] {
        flow.count(cycle, Mark { second: 0, number }, false, Timestamp(1), &mut told);
    }
    flow.give_up(&mut told);
    assert_eq!((told.known, told.unknown.unwrap().elements), (None, None));
}

#[test]
fn what_was_lost_here_is_not_told_of_those_upstream() {
    let at = |milli: i64| Timestamp(milli * MILLI);
    let hole = |elements, from, to| Missing { elements, from: at(from), to: at(to) };
    let mut ours = LocalLosses::default();
    ours.add(3, at(100), at(110));
    ours.add(2, at(150), at(150));
    // Before, behind, and around.
    assert_eq!(ours.explain(hole(Some(4), 10, 99)), Some(hole(Some(4), 10, 99)));
    assert_eq!(ours.explain(hole(Some(4), 151, 160)), Some(hole(Some(4), 151, 160)));
    assert_eq!(ours.explain(hole(None, 120, 130)), None);
    assert_eq!(ours.explain(hole(Some(4), 90, 120)), None);
    assert_eq!(ours.explain(hole(Some(4), 90, 160)), Some(hole(Some(3), 90, 160)));
    assert_eq!(ours.explain(hole(Some(4), 90, 160)), Some(hole(Some(4), 90, 160)));
    // What explained nothing is forgotten.
    ours.add(50, at(200), at(200));
    ours.add(1, at(20_000), at(20_000));
    assert_eq!(ours.explain(hole(Some(4), 100, 30_000)), Some(hole(Some(3), 100, 30_000)));
}
