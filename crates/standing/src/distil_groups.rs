//! Groups of slots that are to be distilled now. Slots that other holds keep, too, are distilled with them if all these holds
//! want just what they have found: they share the copies.

use holdfast_base::{Age, HoldId, Sequence};
use holdfast_ring::{HoldStatus, SlotLook, SlotStatus};
use std::collections::{HashMap, HashSet};

/// Originals that are distilled together at most.
const MOST: usize = 256;
/// Originals that are waited for while more are to come: every copy that is not full yet is written again with them.
const ENOUGH: usize = 8;

/// Slots that follow each other and may be distilled together.
#[derive(Debug, Default)]
pub(crate) struct Group {
    pub(crate) slots: Vec<SlotStatus>,
    /// Nothing more can come to it: what comes next is kept by a hold that wants it whole.
    closed: bool,
}

impl Group {
    /// Whether it is time to distil it for this hold; at the latest `now`. Of what was `tried` already nothing comes without others.
    pub(crate) fn is_due(&self, hold: &HoldStatus, now: bool, tried: &HashMap<Sequence, Age>) -> bool {
        let fresh = || self.originals().filter(|sequence| !tried.contains_key(sequence));
        let enough = now || self.closed || fresh().count() >= ENOUGH;
        enough && fresh().any(|sequence| keeps(hold, sequence))
    }

    /// Those that are no copies.
    fn originals(&self) -> impl Iterator<Item = Sequence> {
        originals(&self.slots)
    }
}

/// What may be distilled, where this hold keeps some of it: kept by holds alone that are distilled, and there only because of them,
/// since all that no hold keeps is younger.
pub(crate) fn groups(hold: HoldId, holds: &[HoldStatus], slots: &[SlotStatus], open: Age) -> Vec<Group> {
    // Where a slot is left that was never given nothing has expired yet.
    if open.0 <= slots.len() as u64 {
        return Vec::new();
    }
    let mine = holds.iter().find(|other| other.id == hold);
    let is_mine = |slot: &SlotStatus| mine.is_some_and(|hold| keeps(hold, slot.sequence));
    let mut all: Vec<SlotStatus> = slots.iter().filter(|slot| slot.has_data()).copied().collect();
    all.sort_unstable_by_key(|slot| (slot.age, slot.sequence));
    let expiring = all.iter().find(|slot| slot.look != SlotLook::Held).map_or(open, |slot| slot.age);
    let (mut groups, mut group) = (Vec::new(), Group::default());
    for slot in all.into_iter().take_while(|slot| slot.age < expiring) {
        // One that could not be looked into stays as it is.
        let may_go = slot.first.is_some() && may_be_distilled(holds, slot.sequence);
        if !may_go || group.slots.len() == MOST {
            groups.push(Group { closed: true, ..std::mem::take(&mut group) });
        }
        group.slots.extend(may_go.then_some(slot));
    }
    groups.push(group);
    for Group { slots, .. } in &mut groups {
        // Of copies that follow each other only the last may have room.
        let copies = slots.iter().take_while(|slot| is_copy(slot)).count();
        slots.drain(..copies.saturating_sub(1));
    }
    groups.retain(|group| group.slots.iter().any(is_mine));
    groups
}

/// Those of some slots that are no copies.
pub(crate) fn originals(slots: &[SlotStatus]) -> impl Iterator<Item = Sequence> {
    slots.iter().filter(|slot| !is_copy(slot)).map(|slot| slot.sequence)
}

pub(crate) fn keeps(hold: &HoldStatus, sequence: Sequence) -> bool {
    within(&hold.sequences, sequence)
}

/// Whether it keeps some of a group.
pub(crate) fn keeps_of(hold: &HoldStatus, group: &[SlotStatus]) -> bool {
    group.iter().any(|slot| keeps(hold, slot.sequence))
}

/// Those that keep a slot.
pub(crate) fn holders(holds: &[HoldStatus], sequence: Sequence) -> impl Iterator<Item = &HoldStatus> {
    holds.iter().filter(move |hold| keeps(hold, sequence))
}

/// Whether all that keep a slot want just what they have found of it.
fn may_be_distilled(holds: &[HoldStatus], sequence: Sequence) -> bool {
    let whole =
        |hold: &HoldStatus| !hold.condition_hold.as_ref().is_some_and(|condition_hold| condition_hold.distil);
    holders(holds, sequence).next().is_some() && !holders(holds, sequence).any(whole)
}

/// Slots of a group whose last element may end in the next slot, which is not distilled with them. The next slot is held, has
/// matches that `waiting` names and that are not held for lack of room, or is not before `looked`, and so was not searched yet.
/// `slots` are all slots of the ring.
pub(crate) fn going_on(
    group: &[SlotStatus],
    slots: &[SlotStatus],
    waiting: &[(Sequence, Sequence)],
    looked: Sequence,
) -> HashSet<Sequence> {
    let order = |slot: &SlotStatus| (slot.age, slot.sequence);
    let behind = |slot: &SlotStatus| {
        let later = slots.iter().filter(|other| other.has_data() && order(other) > order(slot));
        later.min_by_key(|other| order(other))
    };
    let may_end = |other: &SlotStatus| {
        let is_held = other.look == SlotLook::Held || within(waiting, other.sequence);
        let is_kept = is_held || other.sequence >= looked;
        is_kept && group.iter().all(|slot| slot.sequence != other.sequence)
    };
    group.iter().filter(|slot| behind(slot).is_none_or(may_end)).map(|slot| slot.sequence).collect()
}

/// Whether a sequence is in one of these runs, which come in order.
pub(crate) fn within(runs: &[(Sequence, Sequence)], sequence: Sequence) -> bool {
    let at = runs.partition_point(|(_, last)| *last < sequence);
    runs.get(at).is_some_and(|(first, _)| *first <= sequence)
}

/// Whether a slot is a copy already.
pub(crate) fn is_copy(slot: &SlotStatus) -> bool {
    slot.age.0 != slot.sequence.0
}

/// Whether a hold keeps slots that may still be distilled: no copies, none of which `stays` says otherwise, and kept by no hold that
/// wants them whole.
pub(crate) fn is_left(
    hold: HoldId,
    holds: &[HoldStatus],
    slots: &[SlotStatus],
    stays: &dyn Fn(Sequence) -> bool,
) -> bool {
    let whole = |slot: &&SlotStatus| slot.has_data() && !is_copy(slot) && !stays(slot.sequence);
    let is_mine = |slot: &SlotStatus| holders(holds, slot.sequence).any(|holder| holder.id == hold);
    slots.iter().filter(whole).any(|slot| is_mine(slot) && may_be_distilled(holds, slot.sequence))
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_base::{SlotNo, Timestamp};
    use holdfast_format::ConditionHold;

    fn slot(age: u64, sequence: u64, look: SlotLook) -> SlotStatus {
        let (sequence, age) = (Sequence(sequence), Age(age));
        SlotStatus {
            slot: SlotNo(age.0 as u32),
            look,
            sequence,
            age,
            first: Some(Timestamp(0)),
            last: Some(Timestamp(0)),
        }
    }

    /// One that is distilled.
    fn hold(id: u64, sequences: &[(u64, u64)]) -> HoldStatus {
        let condition_hold = Some(ConditionHold { distil: true, ..ConditionHold::default() });
        HoldStatus { condition_hold, ..plain(id, sequences) }
    }

    fn plain(id: u64, sequences: &[(u64, u64)]) -> HoldStatus {
        let sequences = sequences.iter().map(|(first, last)| (Sequence(*first), Sequence(*last))).collect();
        HoldStatus {
            id: HoldId(id),
            created: Timestamp(0),
            until: Timestamp::MAX,
            reason: String::new(),
            owner: String::new(),
            streams: Vec::new(),
            range: holdfast_ring::Range::ALL,
            slots: 0,
            sequences,
            condition_hold: None,
            order: None,
        }
    }

    #[test]
    fn only_what_would_have_expired_and_nobody_wants_whole_is_distilled() {
        use SlotLook::{Held, Live};
        let mut holds = [hold(1, &[(1, 5), (7, 8), (11, 12), (30, 30)]), plain(2, &[(3, 3), (9, 9)])];
        let groups = |holds: &[HoldStatus; 2], slots: &[SlotStatus]| -> Vec<Vec<u64>> {
            let groups = groups(HoldId(1), holds, slots, Age(40));
            groups.iter().map(|group| group.slots.iter().map(|slot| slot.sequence.0).collect()).collect()
        };
        let mut slots: Vec<SlotStatus> = [12, 11, 9, 8, 7, 5, 3, 2, 1].map(|at| slot(at, at, Held)).to_vec();
        // 30 is a copy, of the age of 4.
        slots.push(slot(4, 30, Held));
        // Another hold keeps 3 and 9: what is on either side does not come together.
        assert_eq!(groups(&holds, &slots), [vec![1, 2], vec![30, 5, 7, 8], vec![11, 12]]);
        slots.push(slot(10, 10, Live));
        assert_eq!(groups(&holds, &slots), [vec![1, 2], vec![30, 5, 7, 8]]);
        // Where that one is distilled, too, what it keeps alone goes with the others.
        holds[1] = hold(2, &[(3, 3), (9, 9)]);
        assert_eq!(groups(&holds, &slots), [vec![1, 2, 3, 30, 5, 7, 8, 9]]);
        holds[0].sequences = vec![(Sequence(12), Sequence(12))];
        assert_eq!(groups(&holds, &slots), Vec::<Vec<u64>>::new(), "nothing of it is this hold's");
        slots.push(slot(0, 6, Live));
        assert_eq!(groups(&holds, &slots), Vec::<Vec<u64>>::new());
    }

    #[test]
    fn few_slots_are_distilled_where_no_more_can_come_to_them() {
        let held = |at: u64| slot(at, at, SlotLook::Held);
        let holds = [hold(1, &[(1, 2), (4, 12)]), plain(2, &[(3, 3)])];
        let due = |ages: std::ops::RangeInclusive<u64>, now| -> Vec<bool> {
            let slots: Vec<SlotStatus> = ages.map(held).collect();
            groups(HoldId(1), &holds, &slots, Age(40))
                .iter()
                .map(|group| group.is_due(&holds[0], now, &HashMap::new()))
                .collect()
        };
        // Behind 2 comes one that another hold keeps; behind 10 there may come more.
        assert_eq!(due(1..=10, false), [true, false]);
        assert_eq!(due(1..=11, false), [true, true]);
        assert_eq!(due(1..=10, true), [true, true]);
        assert_eq!(due(1..=2, false), [false]);
        // A copy alone is distilled already.
        let copy = Group { slots: vec![slot(4, 30, SlotLook::Held)], closed: true };
        assert!(!copy.is_due(&hold(1, &[(30, 30)]), true, &HashMap::new()));
    }

    #[test]
    fn an_element_may_end_in_a_slot_that_waits_for_room() {
        let group = [slot(1, 1, SlotLook::Held), slot(2, 2, SlotLook::Held)];
        let going = |behind: SlotLook, waiting: &[(u64, u64)], looked: u64| {
            let all = [group[0], group[1], slot(3, 3, behind), slot(4, 4, SlotLook::Live)];
            let waiting: Vec<_> =
                waiting.iter().map(|(first, last)| (Sequence(*first), Sequence(*last))).collect();
            let going = going_on(&group, &all, &waiting, Sequence(looked));
            going.into_iter().map(|sequence| sequence.0).collect::<Vec<_>>()
        };
        assert_eq!(going(SlotLook::Live, &[], 9), Vec::<u64>::new(), "nothing of the next slot is kept");
        assert_eq!(going(SlotLook::Held, &[], 9), [2]);
        assert_eq!(going(SlotLook::Live, &[], 3), [2], "the next slot was not searched");
        assert_eq!(going(SlotLook::Live, &[(3, 7)], 9), [2], "what was found in it waits for room");
        assert_eq!(going(SlotLook::Live, &[(4, 7)], 9), Vec::<u64>::new());
    }

    #[test]
    fn nothing_is_due_before_every_slot_was_given() {
        let slots: Vec<SlotStatus> = (1..=9).map(|at| slot(at, at, SlotLook::Held)).collect();
        let count = |open| groups(HoldId(1), &[hold(1, &[(1, 9)])], &slots, Age(open)).len();
        assert_eq!((count(9), count(10)), (0, 1));
    }
}
