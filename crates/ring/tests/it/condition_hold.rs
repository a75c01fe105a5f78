//! Tests of holds by condition in the ring: hits are kept (promise 4), promised slots are taken by no other
//! hold and cost capture nothing (promise 1), invalid conditions are refused and change nothing (promise 8).

#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::common;

use common::{Recorder, SLOTS, made, ordinals, purge};
use holdfast_base::{HoldId, MAX_CONDITION, ManualClock, Ordinal, Sequence, StreamId, Timestamp};
use holdfast_format::ConditionHold;
use holdfast_media::MemoryDisk;
use holdfast_ring::{
    ExtendRequest, HoldRequest, HoldStatus, Order, Outcome, Range, Refusal, SlotCounts, order_offline,
    recover,
};

fn condition_hold(quota: u32) -> ConditionHold {
    ConditionHold { condition: "len > 9".into(), standing: quota > 0, quota, ..ConditionHold::default() }
}

fn hold(condition_hold: Option<ConditionHold>, sequences: Option<Vec<(Sequence, Sequence)>>) -> Order {
    Order::Hold(HoldRequest {
        streams: Vec::new(),
        range: Range::ALL,
        sequences,
        reason: "test".into(),
        owner: "me".into(),
        until: Timestamp::MAX,
        condition_hold,
        order: None,
    })
}

fn extend(hold: HoldId, sequences: &[u64], watermark: u64) -> Order {
    Order::Extend(ExtendRequest {
        hold,
        sequences: sequences.iter().map(|sequence| (Sequence(*sequence), Sequence(*sequence))).collect(),
        watermarks: vec![(StreamId(1), Ordinal(watermark))],
        durable: true,
    })
}

fn started() -> (Recorder, ManualClock) {
    let clock = ManualClock::new(Timestamp(1_000_000_000));
    (Recorder::start(made(), &clock), clock)
}

/// Gives a hold by condition that has found nothing yet.
fn begun(recorder: &mut Recorder, quota: u32) -> HoldId {
    let outcome = recorder.order(hold(Some(condition_hold(quota)), Some(Vec::new())));
    let Outcome::Held { id, slots: 0, .. } = outcome else { panic!("{outcome:?}") };
    id
}

fn copy(disk: &MemoryDisk) -> MemoryDisk {
    MemoryDisk::from_image(disk.snapshot())
}

fn counts(recorder: &Recorder) -> SlotCounts {
    recorder.driver.ring().status("").slots
}

fn looks(recorder: &Recorder) -> Vec<HoldStatus> {
    recorder.driver.ring().hold_looks().collect()
}

/// Records until the next slot is open, and gives the sequence of the one before it. Capture never stands still.
fn next_slot(recorder: &mut Recorder) -> u64 {
    recorder.element();
    let open = recorder.brief().unwrap().sequence;
    while recorder.brief().unwrap().sequence == open {
        recorder.element();
        assert_eq!(recorder.driver.ring().starved(), None);
    }
    open.0
}

#[test]
fn a_ring_that_fills_up_with_what_was_promised_goes_on_capturing_and_promises_nothing_twice() {
    let (mut recorder, clock) = started();
    let free = counts(&recorder).holdable;
    let id = begun(&mut recorder, free);
    assert_eq!((counts(&recorder).holdable, counts(&recorder).promised), (0, free));
    let mut kept = Vec::new();
    while (kept.len() as u32) < free {
        // What a standing hold has been promised no other gets, though nothing of it is held yet.
        let (found, other) =
            (next_slot(&mut recorder), hold(None, Some(vec![(Sequence(1), Sequence(u64::MAX))])));
        let wanted = recorder.order(other);
        assert!(matches!(wanted, Outcome::Refused(Refusal::NoRoom { free: 0, .. })), "{wanted:?}");
        let more = recorder.order(hold(Some(condition_hold(1)), Some(Vec::new())));
        assert_eq!(more, Outcome::Refused(Refusal::NoRoom { wanted: 1, free: 0 }));
        kept.push(found);
        let slots = kept.len() as u32;
        let grown = recorder.order(extend(id, &[found], recorder.next));
        assert_eq!(grown, Outcome::Extended { added: 1, slots, left: free - slots, missed: 0 });
        assert_eq!((counts(&recorder).promised, counts(&recorder).holdable), (free - slots, 0));
    }
    // Its quota is spent: it says so, and keeps what it has.
    let one_more = next_slot(&mut recorder);
    let spent = recorder.order(extend(id, &[one_more], recorder.next));
    assert_eq!(spent, Outcome::Refused(Refusal::Quota { quota: free, wanted: free + 1 }));
    for _ in 0..3 * SLOTS {
        next_slot(&mut recorder);
    }
    assert_eq!(looks(&recorder)[0].slots, free);
    assert!(kept.iter().all(|sequence| recorder.driver.ring().holds_sequence(Sequence(*sequence))));
    // Evaluating goes on, and what is kept already costs nothing.
    let again = recorder.order(extend(id, &kept, recorder.next));
    assert_eq!(again, Outcome::Extended { added: 0, slots: free, left: 0, missed: 0 });
    let last = recorder.next;
    let disk = recorder.stop();
    let found = ordinals(&disk);
    assert_eq!(found.last(), Some(&(last - 1)));
    // Each of the slots kept has some 60 elements, and they are whole.
    assert!(found.len() as u32 > free * 50, "{}", found.len());
    let outcome = order_offline(disk, Order::Release(id.into()), &clock, &mut || true).unwrap();
    assert_eq!(outcome, Outcome::Released { slots: free });
}

#[test]
fn the_open_slot_and_what_has_expired_can_be_named() {
    let (mut recorder, _) = started();
    let id = begun(&mut recorder, 4);
    let first = next_slot(&mut recorder);
    for _ in 0..2 * SLOTS {
        next_slot(&mut recorder);
    }
    let last = next_slot(&mut recorder);
    let open = recorder.brief().unwrap().sequence.0;
    let outcome = recorder.order(extend(id, &[first, first + 1, last, open, open + 9], 7));
    assert_eq!(outcome, Outcome::Extended { added: 2, slots: 2, left: 2, missed: 2 });
    assert_eq!(looks(&recorder)[0].sequences, [(Sequence(last), Sequence(open))]);
    // Once durable, all of it stays, whatever becomes of the slot.
    let last = recorder.next;
    for _ in 0..2 * SLOTS {
        next_slot(&mut recorder);
    }
    assert_eq!(looks(&recorder)[0].slots, 2);
    assert!(ordinals(&recorder.stop()).contains(&(last - 1)));
}

#[test]
fn what_is_found_is_kept_at_once_and_the_next_durable_answer_is_of_all_of_it() {
    let (mut recorder, _) = started();
    let id = begun(&mut recorder, 4);
    let sealed = next_slot(&mut recorder);
    let (open, last) = (recorder.brief().unwrap().sequence.0, recorder.next - 1);
    let before = recorder.driver.disk().snapshot();
    for (named, slots) in [(sealed, 1), (open, 2)] {
        let Order::Extend(taken) = extend(id, &[named], 9) else { unreachable!() };
        let outcome = recorder.order(Order::Extend(ExtendRequest { durable: false, ..taken }));
        assert_eq!(outcome, Outcome::Extended { added: 1, slots, left: 4 - slots, missed: 0 });
    }
    assert!(recorder.driver.disk().snapshot() == before, "nobody waited for anything to be written");
    assert_eq!((looks(&recorder)[0].slots, counts(&recorder).promised), (2, 2));
    let kept = |disk: MemoryDisk| recover(&mut { disk }).unwrap().hold_looks().next().unwrap().slots;
    assert_eq!(kept(copy(recorder.driver.disk())), 0);
    let outcome = recorder.order(extend(id, &[], 9));
    assert_eq!(outcome, Outcome::Extended { added: 0, slots: 2, left: 2, missed: 0 });
    let left = copy(recorder.driver.disk());
    assert_eq!(kept(copy(&left)), 2);
    assert_eq!(ordinals(&left).last(), Some(&last));
}

#[test]
fn what_it_looks_for_and_how_far_it_has_come_outlives_restarts_and_watermarks_never_go_back() {
    let (mut recorder, clock) = started();
    let looks_for = ConditionHold {
        before: 10,
        after: 30,
        distil: true,
        when: Some(("count(*) > 5".into(), 9)),
        watermarks: vec![(StreamId(1), Ordinal(3)), (StreamId(1), Ordinal(2))],
        ..condition_hold(5)
    };
    let first = next_slot(&mut recorder);
    let named = Some(vec![(Sequence(first), Sequence(first))]);
    let outcome = recorder.order(hold(Some(looks_for.clone()), named));
    let Outcome::Held { id, slots: 1, .. } = outcome else { panic!("{outcome:?}") };
    let sought = |watermark| ConditionHold {
        watermarks: vec![(StreamId(1), Ordinal(watermark))],
        ..looks_for.clone()
    };
    assert_eq!(looks(&recorder)[0].condition_hold, Some(sought(3)));
    assert_eq!(counts(&recorder).promised, 4);
    recorder.order(extend(id, &[], 50));
    recorder.order(extend(id, &[], 40));
    assert_eq!(looks(&recorder)[0].condition_hold, Some(sought(50)));

    let mut disk = recorder.stop();
    let recovered = recover(&mut disk).unwrap();
    let shown: Vec<_> = recovered.hold_looks().collect();
    assert_eq!((shown[0].condition_hold.clone(), shown[0].slots), (Some(sought(50)), 1));
    let unattended = recovered.status("").slots;
    assert_eq!(unattended.promised, 4);
    // An evaluator finds something more on a ring that nobody records to, too; and so does one of the next run.
    let second = recovered.data().map(|(_, sequence, _)| sequence.0).max().unwrap();
    let outcome = order_offline(copy(&disk), extend(id, &[second], 60), &clock, &mut || true).unwrap();
    assert_eq!(outcome, Outcome::Extended { added: 1, slots: 2, left: 3, missed: 0 });
    let mut recorder = Recorder::start(disk, &clock);
    assert_eq!((looks(&recorder)[0].slots, counts(&recorder).promised), (1, 4));
    let third = next_slot(&mut recorder);
    let outcome = recorder.order(extend(id, &[third], 70));
    assert_eq!(outcome, Outcome::Extended { added: 1, slots: 2, left: 3, missed: 0 });
    assert_eq!(looks(&recorder)[0].condition_hold, Some(sought(70)));
}

#[test]
fn without_a_quota_it_takes_what_may_be_held_and_no_more() {
    let (mut recorder, _) = started();
    let id = begun(&mut recorder, 0);
    assert_eq!(counts(&recorder).promised, 0);
    let free = counts(&recorder).holdable;
    let mut taken = 0;
    loop {
        let found = next_slot(&mut recorder);
        match recorder.order(extend(id, &[found], 0)) {
            Outcome::Extended { added: 1, slots, left, missed: 0 } => {
                taken += 1;
                assert_eq!((slots, left), (taken, free - taken));
            }
            refused => {
                assert_eq!(refused, Outcome::Refused(Refusal::NoRoom { wanted: 1, free: 0 }));
                break;
            }
        }
    }
    assert_eq!(taken, free);
}

#[test]
fn what_several_holds_keep_is_counted_once_and_so_are_copies() {
    let (mut recorder, clock) = started();
    let found = next_slot(&mut recorder);
    let free = counts(&recorder).holdable;
    let (one, other) = (begun(&mut recorder, 3), begun(&mut recorder, 2));
    assert_eq!(counts(&recorder).holdable, free - 5);
    for id in [one, other] {
        let grown = recorder.order(extend(id, &[found], 0));
        assert!(matches!(grown, Outcome::Extended { added: 1, slots: 1, .. }), "{grown:?}");
    }
    // One slot, of two promises.
    assert_eq!((counts(&recorder).promised, counts(&recorder).holdable), (3, free - 4));
    let plain = recorder.order(hold(None, Some(vec![(Sequence(found), Sequence(found))])));
    assert!(matches!(plain, Outcome::Held { slots: 1, .. }), "{plain:?}");
    assert_eq!(counts(&recorder).holdable, free - 4, "it is kept already");
    recorder.order(Order::Release(other.into()));
    assert_eq!((counts(&recorder).promised, counts(&recorder).holdable), (2, free - 3));

    // A purge leaves copies that tell of it: they count as what they stand for.
    for _ in 0..4 {
        next_slot(&mut recorder);
    }
    let last = next_slot(&mut recorder);
    recorder.order(extend(one, &[last], 0));
    let mut disk = recorder.stop();
    let done = order_offline(&mut disk, purge(0, 1 << 40, true), &clock, &mut || true).unwrap();
    assert!(matches!(done, Outcome::Purged { .. }), "{done:?}");
    assert_eq!(recover(&mut disk).unwrap().status("").slots.promised, 1);
}

#[test]
fn what_makes_no_sense_is_refused_and_nothing_changes() {
    let (mut recorder, _) = started();
    next_slot(&mut recorder);
    let nothing = || Some(Vec::new());
    let outcome = recorder.order(hold(None, None));
    let Outcome::Held { id: plain, .. } = outcome else { panic!("{outcome:?}") };
    let id = begun(&mut recorder, 2);
    let before = (looks(&recorder), counts(&recorder));
    let long = "c".repeat(MAX_CONDITION + 1);
    for (order, wanted) in [
        (hold(Some(condition_hold(2)), None), "names what was found"),
        (
            hold(Some(ConditionHold { condition: String::new(), ..condition_hold(2) }), nothing()),
            "a condition, or takes",
        ),
        (
            hold(Some(ConditionHold { sample: Some((1, 2)), ..condition_hold(2) }), nothing()),
            "a condition, or takes",
        ),
        (
            hold(Some(ConditionHold { condition: long.clone(), ..condition_hold(2) }), nothing()),
            "at most 1024 bytes",
        ),
        (
            hold(Some(ConditionHold { when: Some((long, 1)), ..condition_hold(2) }), nothing()),
            "at most 1024 bytes",
        ),
        (
            hold(Some(ConditionHold { when: Some((String::new(), 1)), ..condition_hold(2) }), nothing()),
            "a window",
        ),
        (
            hold(Some(ConditionHold { when: Some(("n > 1".into(), 0)), ..condition_hold(2) }), nothing()),
            "a window",
        ),
        (hold(Some(ConditionHold { quota: 0, ..condition_hold(2) }), nothing()), "needs a quota"),
        (
            hold(
                Some(ConditionHold { watermarks: vec![(StreamId(9), Ordinal(1))], ..condition_hold(2) }),
                nothing(),
            ),
            "no stream 9",
        ),
        (extend(plain, &[1], 1), "looks for nothing"),
        (extend(HoldId(99), &[1], 1), "there is no hold 99"),
        (
            Order::Extend(ExtendRequest {
                hold: id,
                sequences: vec![(Sequence(1), Sequence(1))],
                watermarks: vec![(StreamId(9), Ordinal(1))],
                durable: true,
            }),
            "no stream 9",
        ),
        (hold(None, nothing()), "nothing in that range"),
    ] {
        let outcome = recorder.order(order.clone());
        let Outcome::Refused(refusal) = &outcome else { panic!("{order:?}: {outcome:?}") };
        assert!(refusal.to_string().contains(wanted), "{order:?}: {refusal}");
        assert_eq!((looks(&recorder), counts(&recorder)), before, "{order:?}");
    }
    for sample in [(0, 5), (5, 5), (6, 5)] {
        let sampled = ConditionHold { condition: String::new(), sample: Some(sample), ..condition_hold(2) };
        let outcome = recorder.order(hold(Some(sampled), nothing()));
        assert!(
            matches!(&outcome, Outcome::Refused(Refusal::Wrong(why)) if why.contains("sample")),
            "{outcome:?}"
        );
    }
    let three = Some((1..=3).map(|_| next_slot(&mut recorder)).map(|s| (Sequence(s), Sequence(s))).collect());
    let outcome = recorder.order(hold(Some(condition_hold(2)), three));
    assert_eq!(outcome, Outcome::Refused(Refusal::Quota { quota: 2, wanted: 3 }));
}
