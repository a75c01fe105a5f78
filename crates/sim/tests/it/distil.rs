//! Tests of distilling beside a recording: the wanted elements of held slots are there exactly once at every
//! instant, byte for byte and in their order, whatever expires, is held, is released or fails meanwhile;
//! nothing goes before its turn; and the power may be cut at any write. Promises 1, 3, 4, 5 and 6.
//!
//! One seed again: `HOLDFAST_SEED=123 cargo test -p holdfast-sim --test it distil`. More seeds: `HOLDFAST_SEEDS=20` (times as many).
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use crate::distilling;

use distilling::drawn::{
    all_goes, all_of, copies_of, drawn, drawn_of_several, fixed, kept, original, owners, some_of,
};
use distilling::{Run, SLOT};
use holdfast_base::{Clock as _, HoldId, ManualClock, Ordinal, Sequence, SlotNo, StreamId};
use holdfast_media::{Completion, Disk, DiskInfo, FaultPlan, FaultyDisk, Image, MemoryDisk, Op, Request};
use holdfast_ring::{
    Blocking, CHECK_QUANTUM, Depth, DistilRequest, JobError, JobStep, Order, Original, Outcome, Refusal,
    StepReply, check_slot, order_offline, recover,
};
use holdfast_sim::{SeedReport, seeds};
use std::collections::BTreeSet;
use std::time::Duration;

#[test]
fn what_is_wanted_of_held_slots_is_there_once_in_its_order_and_nothing_goes_before_its_turn() {
    let (mut taken, mut copies, mut untouched, mut ended, mut columns, mut together) = (0, 0, 0, 0, 0, 0);
    for seed in seeds(60) {
        let _report = SeedReport(seed, "holdfast-sim", "distil");
        let mut run = Run::start(seed, 40);
        let slots = 20 + run.seed.below(50);
        run.fill(slots);
        let mut hold = None;
        for round in 0..5 {
            if hold.is_none() {
                let most = run.recorder.driver.ring().status("").slots.holdable as usize;
                let chance = run.seed.below(10) as f64 / 10.0;
                let some = some_of(&mut run, chance, most);
                hold = run.hold(&some);
            }
            let Some(id) = hold else { continue };
            if run.seed.happens(0.3) {
                let some = some_of(&mut run, 0.1, 3);
                run.hold(&some);
            }
            let slots = run.seed.below(50);
            run.fill(slots);
            run.settle();
            let of_several = run.seed.happens(0.5);
            let order = if of_several { drawn_of_several(&mut run) } else { drawn(&mut run, id) };
            if order.is_empty() {
                continue;
            }
            let named: BTreeSet<u64> =
                Run::held(id, &order).iter().flat_map(|o| &o.holds).map(|h| h.0).collect();
            let may_go = run.may_go(id, &order);
            let before = kept(&run);
            let busy = [0.0, 0.3, 0.7][run.seed.below(3) as usize];
            run.disturbances = run.seed.below(4) as u32;
            run.released.clear();
            let outcome = run.distil(id, &order, busy).unwrap();
            run.settle();
            let image = run.image();
            let found = Run::found(&image);
            if run.released.contains(&id.0) || run.released.iter().any(|id| named.contains(id)) {
                // What it kept until then may have expired in part.
                ended += 1;
                hold = hold.filter(|id| !run.released.contains(&id.0));
                run.adopt(&found);
                continue;
            }
            let stand: Vec<_> = before.into_iter().filter(|(id, _)| !run.released.contains(&id.0)).collect();
            let kept: BTreeSet<u64> = stand.iter().flat_map(|(_, kept)| kept.clone()).collect();
            let change = run.look(&found, &order, &may_go, &kept, false);
            for (id, own) in owners(&run, &found, &change, &stand) {
                assert_eq!(copies_of(&run, id, &change), own, "seed {seed}: the copies of hold {id}");
            }
            for (id, kept) in &stand {
                let keeps = run.kept_by(*id);
                assert!(kept.iter().all(|s| keeps.contains(s) || change.gone.contains(s)));
            }
            together += change
                .gone
                .iter()
                .filter(|s| stand.iter().filter(|(_, kept)| kept.contains(s)).count() > 1)
                .count();
            // What a hold that is not named has taken meanwhile is as it was.
            for look in run.recorder.driver.ring().hold_looks().filter(|look| !named.contains(&look.id.0)) {
                let all = look.sequences.iter().flat_map(|(first, last)| first.0..=last.0);
                all.for_each(|s| {
                    assert!(!change.gone.contains(&s), "seed {seed}: {s} is held by {}", look.id);
                });
            }
            let Outcome::Distilled { originals, copies: made, elements, bytes, .. } = outcome else {
                panic!("seed {seed}, round {round}: {outcome:?}")
            };
            let told = (originals as usize, made as usize, elements, bytes);
            let is = (change.gone.len(), change.copies.len(), change.elements, change.bytes);
            assert_eq!(told, is, "seed {seed}, round {round}");
            assert!(made < originals || originals == 0, "seed {seed}: {outcome:?} gains nothing");
            let keeps = run.kept_by(id);
            let looks: Vec<_> =
                run.recorder.driver.ring().hold_looks().filter(|look| look.id == id).collect();
            let mut ends = looks[0].sequences.iter().flat_map(|(first, last)| [first.0, last.0]);
            assert!(
                ends.all(|end| keeps.contains(&end)),
                "seed {seed}: {:?} for {keeps:?}",
                looks[0].sequences
            );
            (taken, copies) = (taken + change.gone.len(), copies + change.copies.len());
            untouched += may_go.len() - change.gone.len();
            columns += change.columns;
            run.adopt(&found);
            if run.seed.happens(0.3) {
                let image = run.image();
                run = run.again(image, b"first");
            }
        }
        all_goes(&mut run, seed);
    }
    let told = (taken, copies, untouched, ended, columns, together);
    assert!(
        std::env::var_os("HOLDFAST_SEED").is_some()
            || (taken > 300 && copies > 40 && untouched > 20 && ended > 3 && columns > 100 && together > 20),
        "{told:?}"
    );
}

#[test]
fn a_cut_at_any_instant_beside_a_recording_leaves_originals_or_copies() {
    let (mut cuts, mut distilled) = (0, 0);
    for seed in seeds(150) {
        let _report = SeedReport(seed, "holdfast-sim", "distil");
        let mut run = Run::start(seed, 40);
        run.fill(45);
        let some = some_of(&mut run, 0.7, 20);
        let Some(id) = run.hold(&some) else { continue };
        let of_several = run.seed.happens(0.5);
        if of_several {
            let some = some_of(&mut run, 0.3, 10);
            run.hold(&some);
        }
        run.fill(45);
        run.settle();
        let order = if of_several { drawn_of_several(&mut run) } else { drawn(&mut run, id) };
        if order.is_empty() {
            continue;
        }
        let (may_go, before, kept) = (run.may_go(id, &order), fixed(&run), kept(&run));
        let n = 1 + run.seed.below(60);
        run.recorder.driver.disk_mut().cut_after(n);
        let done = run.distil(id, &order, 0.5).is_ok();
        while done && !run.is_dead() {
            run.piece();
        }
        cuts += 1;
        let image = run.recorder.driver.disk_mut().crash();
        let found = Run::found(&image);
        let change = run.look(&found, &order, &may_go, &before, true);
        distilled += usize::from(!change.gone.is_empty());
        let owners = owners(&run, &found, &change, &kept);
        run.adopt(&found);
        // It goes on from there, and a second time nothing is lost either.
        let mut run = run.again(image, b"first");
        for (id, own) in owners {
            assert_eq!(copies_of(&run, id, &change), own, "seed {seed}: the copies of hold {id}");
        }
        run.settle();
        let order: Vec<_> = order.into_iter().filter(|o| run.contents.contains_key(&o.sequence.0)).collect();
        if order.is_empty() {
            continue;
        }
        let (may_go, before) = (run.may_go(id, &order), fixed(&run));
        let outcome = run.distil(id, &order, 0.2).unwrap();
        run.settle();
        let image = run.image();
        let change = run.look(&Run::found(&image), &order, &may_go, &before, false);
        assert!(
            matches!(outcome, Outcome::Distilled { originals, .. } if originals as usize == change.gone.len()),
            "seed {seed}: {outcome:?}"
        );
    }
    assert!(
        std::env::var_os("HOLDFAST_SEED").is_some() || (cuts > 120 && distilled > 20),
        "{cuts} cuts, {distilled} behind a distilling"
    );
}

/// A ring of so many slots whose first ones, so many, are held, and due, and all on the medium.
fn due(slots: u64, held: usize, len: usize) -> (Run, HoldId, Vec<u64>) {
    let mut run = Run::start(1, slots);
    while run.contents.len() <= held {
        run.element(0, len);
    }
    run.settle();
    let first: Vec<u64> = run.present().into_iter().take(held).collect();
    let id = run.hold(&first).unwrap();
    let behind = first.last().unwrap() + 1;
    // Until what came behind them has gone.
    while run.recorder.driver.ring().holds_sequence(Sequence(behind))
        || !run.contents.contains_key(&(behind + 8))
    {
        run.element(0, len);
    }
    run.settle();
    (run, id, first)
}

/// Just the first of a slot's elements.
fn first_of(run: &Run, sequence: u64) -> Original {
    let first = &run.rows[&run.contents[&sequence][0]];
    original(sequence, vec![(first.stream, Ordinal(first.ordinal), Ordinal(first.ordinal + 1))])
}

fn all_sound(image: &Image) {
    let mut disk = MemoryDisk::from_image(image.clone());
    let recovered = recover(&mut disk).unwrap();
    let mut window = Blocking::new(&mut disk, CHECK_QUANTUM + 8192).unwrap();
    for (slot, sequence, _) in recovered.data() {
        let check = check_slot(&mut window, &recovered.superblock, slot, Depth::Full).unwrap();
        assert_eq!(check.sound().unwrap().0.sequence, sequence);
    }
}

#[test]
fn a_hold_of_one_in_a_thousand_elements_takes_a_thousandth_of_the_space() {
    let (mut run, id, originals) = due(960, 900, 3_000);
    let elements: usize = originals.iter().map(|s| run.contents[s].len()).sum();
    let every = |n: usize| n % 1_000 == 500;
    let all: Vec<i64> = originals.iter().flat_map(|s| run.contents[s].clone()).collect();
    let chosen: Vec<u64> =
        all.iter().enumerate().filter(|(n, _)| every(*n)).map(|(_, at)| run.rows[at].ordinal).collect();
    let keep: Vec<_> = chosen.iter().map(|o| (run.ids[0], Ordinal(*o), Ordinal(*o + 1))).collect();
    // Each original is named with what is wanted of it: most with nothing.
    let order: Vec<Original> = originals
        .iter()
        .map(|s| {
            let here: BTreeSet<u64> = run.contents[s].iter().map(|at| run.rows[at].ordinal).collect();
            original(*s, keep.iter().filter(|k| here.contains(&k.1.0)).copied().collect())
        })
        .collect();
    let (may_go, before) = (run.may_go(id, &order), fixed(&run));
    assert_eq!((may_go.len(), elements > 10_000), (900, true));
    let outcome = run.distil(id, &order, 0.0).unwrap();
    run.settle();
    let image = run.image();
    let change = run.look(&Run::found(&image), &order, &may_go, &before, false);
    assert_eq!(change.gone.len(), 900, "{outcome:?}");
    assert!(change.copies.len() <= 2, "{outcome:?}");
    let held = run.recorder.driver.ring().status("").slots.held;
    assert!(held <= 2, "{held} of 900 slots for {} of {elements} elements", chosen.len());
    all_sound(&image);
}

fn distil_order(hold: HoldId, originals: &[Original]) -> Order {
    Order::Distil(DistilRequest { hold, originals: Run::held(hold, originals) })
}

#[test]
fn a_crash_after_every_write_of_a_distilling_leaves_originals_or_copies() {
    let (mut run, id, originals) = due(40, 12, 2_000);
    let order: Vec<Original> = originals.iter().map(|s| first_of(&run, *s)).collect();
    let (may_go, before) = (run.may_go(id, &order), fixed(&run));
    assert_eq!(may_go.len(), 12);
    let (image, now) = (run.image(), run.clock.now());
    let mut seen = BTreeSet::new();
    for n in 1.. {
        let clock = ManualClock::new(now);
        let plan = FaultPlan { latency: Duration::from_millis(1), ..FaultPlan::default() };
        let mut disk = FaultyDisk::new(image.clone(), plan.clone(), n, clock.clone());
        disk.cut_after(n);
        let outcome = order_offline(&mut disk, distil_order(id, &order), &clock, &mut || false);
        let whole = outcome.is_ok() && disk.alive();
        for _ in 0..4 {
            let image = if whole { disk.seen() } else { disk.crash() };
            let change = run.look(&Run::found(&image), &order, &may_go, &before, true);
            seen.insert(change.gone.len());
            if whole {
                assert_eq!((change.gone.len(), change.copies.len(), change.elements), (12, 1, 12));
                continue;
            }
            // Given again, it comes to the same end.
            let clock = ManualClock::new(clock.now());
            let mut disk = FaultyDisk::new(image, plan.clone(), n, clock.clone());
            order_offline(&mut disk, distil_order(id, &order), &clock, &mut || false).unwrap();
            let change = run.look(&Run::found(&disk.seen()), &order, &may_go, &before, true);
            assert_eq!(change.gone.len(), 12, "cut at write {n}, given again");
        }
        if whole {
            assert!(n > 4, "a distilling has more than {n} writes");
            break;
        }
    }
    assert_eq!(seen, [0, 12].into(), "all of one record or nothing");
    run.settle();
}

/// Two copies have the same age where one slot is in both. What is older than them does not come behind the second one.
#[test]
fn copies_of_one_slot_are_taken_again_only_together() {
    let (mut run, id, originals) = due(40, 6, 2_000);
    let streams = run.ids.clone();
    let first: Vec<Original> = originals[1..5].iter().map(|s| first_of(&run, *s)).collect();
    let all = original(originals[5], all_of(&streams));
    let distil = |run: &mut Run, order: &[Original]| {
        let (may_go, before) = (run.may_go(id, order), fixed(run));
        run.distil(id, order, 0.0).unwrap();
        run.settle();
        let found = Run::found(&run.image());
        let change = run.look(&found, order, &may_go, &before, false);
        run.adopt(&found);
        (change.gone, change.copies)
    };
    let order: Vec<Original> = first.into_iter().chain([all]).collect();
    let (gone, copies) = distil(&mut run, &order);
    assert_eq!((gone.len(), copies.len()), (5, 2));
    // The oldest of all, and the first of the two: they would come to one copy.
    let oldest = first_of(&run, originals[0]);
    let order = [oldest.clone(), first_of(&run, copies[0])];
    assert_eq!(distil(&mut run, &order), (Vec::new(), Vec::new()));
    let order = [oldest, first_of(&run, copies[0]), first_of(&run, copies[1])];
    let (gone, copies) = distil(&mut run, &order);
    assert_eq!((gone.len(), copies.len()), (3, 1));
}

/// A run that begins behind what the journal alone has of an older slot says nothing that takes back what a copy is.
#[test]
fn a_copy_that_is_younger_than_the_open_slot_outlives_two_cuts() {
    let (mut run, id, originals) = due(40, 12, 2_000);
    let order: Vec<Original> = originals.iter().map(|s| first_of(&run, *s)).collect();
    let (may_go, before) = (run.may_go(id, &order), fixed(&run));
    run.element(0, 2_000);
    // Until the journal has that.
    for _ in 0..3_000 {
        run.poll();
    }
    let open = run.recorder.open().unwrap();
    run.distil(id, &order, 0.0).unwrap();
    assert_eq!(run.recorder.open(), Some(open));
    for _ in 0..2 {
        let image = run.recorder.driver.disk_mut().crash();
        let change = run.look(&Run::found(&image), &order, &may_go, &before, true);
        assert_eq!((change.gone.len(), change.copies.len()), (12, 1));
        assert!(change.copies[0] > open.0);
        run = run.again(image, b"first");
    }
}

#[test]
fn what_another_hold_keeps_stays_and_parts_what_lies_around_it() {
    let (mut run, id, originals) = due(40, 12, 2_000);
    let other = run.hold(&originals[5..6]).unwrap();
    run.settle();
    let order: Vec<Original> = originals.iter().map(|s| first_of(&run, *s)).collect();
    let (may_go, before) = (run.may_go(id, &order), fixed(&run));
    let outcome = run.distil(id, &order, 0.0).unwrap();
    run.settle();
    let image = run.image();
    let found = Run::found(&image);
    let change = run.look(&found, &order, &may_go, &before, false);
    assert_eq!((change.gone.len(), change.copies.len()), (11, 2), "{outcome:?}");
    assert_eq!(run.kept_by(other), [originals[5]].into());
    // It lies between the copies, by age.
    let at = |s: u64| found.iter().position(|found| found.sequence.0 == s).unwrap();
    assert!(at(change.copies[0]) < at(originals[5]) && at(originals[5]) < at(change.copies[1]));
    // Once that hold has ended it is taken, too; and the copies with it, if they are named.
    run.adopt(&found);
    run.order(Order::Release(other.into()));
    run.settle();
    let again: Vec<Original> = [change.copies[0], originals[5], change.copies[1]]
        .iter()
        .map(|s| if *s == originals[5] { first_of(&run, *s) } else { original(*s, all_of(&run.ids)) })
        .collect();
    let (may_go, before) = (run.may_go(id, &again), fixed(&run));
    // What is named with everything counts for all: of the one between nothing else is wanted of other streams.
    let outcome = run.distil(id, &again, 0.0).unwrap();
    run.settle();
    let image = run.image();
    let change = run.look(&Run::found(&image), &again, &may_go, &before, false);
    assert_eq!((change.gone.len(), change.copies.len()), (3, 1), "{outcome:?}");
    all_sound(&image);
}

#[test]
fn a_slot_that_would_not_have_expired_yet_stays() {
    let mut run = Run::start(1, 40);
    while run.contents.len() <= 24 {
        run.element(0, 2_000);
    }
    run.settle();
    // Some at the beginning, then every second one: what lies between goes in its turn.
    let present = run.present();
    let some: Vec<u64> =
        present[..3].iter().chain(present[4..].iter().step_by(2).take(10)).copied().collect();
    let id = run.hold(&some).unwrap();
    let order: Vec<Original> = some.iter().map(|s| first_of(&run, *s)).collect();
    let nothing = Outcome::Distilled { originals: 0, copies: 0, elements: 0, bytes: 0, due: 0 };
    assert_eq!(
        run.distil(id, &order, 0.0).unwrap(),
        nothing,
        "the ring has places left: nothing has expired"
    );
    let mut steps = BTreeSet::new();
    while run.kept_by(id).len() > 1 && run.next[0] < 5_000 {
        run.element(0, 2_000);
        if run.seed.happens(0.05) {
            run.settle();
            let (may_go, before) = (run.may_go(id, &order), fixed(&run));
            if may_go.len() > 1 {
                run.distil(id, &order, 0.0).unwrap();
                run.settle();
                let image = run.image();
                let found = Run::found(&image);
                let change = run.look(&found, &order, &may_go, &before, false);
                assert_eq!(change.gone.len(), may_go.len(), "all whose turn it is, and no other");
                run.adopt(&found);
                steps.insert(change.gone.last().copied());
            } else {
                assert_eq!(run.distil(id, &order, 0.0).unwrap(), nothing);
            }
        }
    }
    assert!(steps.len() > 1, "in more than one step: {steps:?}");
}

#[test]
fn orders_that_make_no_sense_are_refused_and_change_nothing() {
    let (mut run, id, originals) = due(40, 6, 2_000);
    let before = run.present();
    let nowhere = HoldId(id.0 + 7);
    let keep = |first: u64, end: u64| vec![(StreamId(1), Ordinal(first), Ordinal(end))];
    let one = |keep| vec![original(originals[0], keep)];
    assert_eq!(
        run.distil(nowhere, &one(keep(0, 1)), 0.0).unwrap(),
        Outcome::Refused(Refusal::NoSuchHold(nowhere))
    );
    for order in [Vec::new(), one(keep(5, 5)), one(keep(5, 4))] {
        let outcome = run.distil(id, &order, 0.0).unwrap();
        assert!(matches!(outcome, Outcome::Refused(Refusal::Wrong(_))), "{outcome:?}");
    }
    // One that is not there, one that nobody holds, and one alone that would take a slot again.
    let youngest = *before.last().unwrap();
    let order: Vec<Original> =
        [99_999, youngest, originals[0]].map(|s| original(s, keep(0, u64::MAX))).into();
    let outcome = run.distil(id, &order, 0.0).unwrap();
    assert!(matches!(outcome, Outcome::Distilled { originals: 0, copies: 0, .. }), "{outcome:?}");
    assert_eq!(run.present(), before);
    // As one order it is never carried out.
    let busy = run.order(distil_order(id, &order));
    assert!(matches!(busy, Outcome::Refused(Refusal::Busy(_))), "{busy:?}");
}

#[test]
fn a_damaged_slot_is_left_alone_and_a_copy_that_does_not_read_back_counts_for_nothing() {
    let (mut run, id, originals) = due(40, 9, 2_000);
    let order: Vec<Original> = originals.iter().map(|s| first_of(&run, *s)).collect();
    // Every write is said to be done and is not: the copy is not what was written.
    run.recorder.driver.disk_mut().plan_mut().phantom = 1.0;
    let failed = run.distil(id, &order, 0.0);
    assert!(matches!(failed, Err(JobError::Unsound { .. })), "{failed:?}");
    run.settle();
    assert_eq!(run.recorder.driver.ring().status("").slots.writing, 0, "its slot is of use again");
    run.recorder.driver.disk_mut().plan_mut().phantom = 0.0;
    assert_eq!(run.kept_by(id), originals.iter().copied().collect());

    let looks: Vec<_> = run.recorder.driver.ring().slot_looks(SlotNo(0), u32::MAX).collect();
    let place = |s: u64| looks.iter().find(|look| look.sequence.0 == s).unwrap().slot;
    let geometry = run.recorder.driver.superblock().geometry.clone();
    // One whose header is gone, and one whose wanted element is: the rest of each is well.
    let disk = run.recorder.driver.disk_mut();
    disk.flip(geometry.slot_offset(place(originals[2])) + 100, 0xff);
    disk.flip(geometry.slot_offset(place(originals[6])) + 8192 + 100, 0xff);
    let outcome = run.distil(id, &order, 0.0).unwrap();
    let told = Outcome::Distilled { originals: 7, copies: 3, elements: 7, bytes: 14_000, due: 9 };
    assert_eq!(outcome, told);
    let present = run.present();
    assert!(present.contains(&originals[2]) && present.contains(&originals[6]));
    assert_eq!(run.kept_by(id).len(), 5, "copies and what could not be read");
}

#[test]
fn a_preamble_is_kept_for_as_long_as_a_copy_needs_it() {
    let (mut run, _, originals) = due(40, 9, 2_000);
    let stream = run.ids[0];
    let image = run.image();
    let mut run = run.again(image, b"second");
    // Nothing of that is as old as the last slot that the first preamble was in force for.
    run.fill(5);
    run.settle();
    let id = run.recorder.driver.ring().hold_looks().next().unwrap().id;
    let order: Vec<Original> = originals.iter().map(|s| first_of(&run, *s)).collect();
    let outcome = run.distil(id, &order, 0.0).unwrap();
    assert!(matches!(outcome, Outcome::Distilled { originals: 9, copies: 1, .. }), "{outcome:?}");
    run.fill(100);
    run.settle();
    for _ in 0..2 {
        let reply = run.step(JobStep::SwitchJournal, id, 0.0);
        assert!(matches!(reply, Some(StepReply::Extent(..))));
    }
    let image = run.image();
    let recovered = recover(&mut MemoryDisk::from_image(image)).unwrap();
    assert_eq!(recovered.preamble(stream, 1), Some(&b"first"[..]));
    assert_eq!(recovered.preamble(stream, 2), Some(&b"second"[..]));
    // When the copy has gone, so does it.
    run.order(Order::Release(id.into()));
    run.fill(100);
    run.settle();
    run.step(JobStep::SwitchJournal, id, 0.0);
    let recovered = recover(&mut MemoryDisk::from_image(run.image())).unwrap();
    assert_eq!(recovered.preamble(stream, 1), None);
}

/// A restart does not read the headers of all that was written while much was distilled: the journal begins anew in time.
#[test]
fn a_restart_after_much_distilling_reads_few_slots() {
    let mut run = Run::start(3, 200);
    run.fill(220);
    let mut most = 0;
    for _ in 0..30 {
        let present = run.present();
        let some: Vec<u64> = present.into_iter().rev().take(8).collect();
        let Some(id) = run.hold(&some) else { break };
        run.fill(200);
        let order: Vec<Original> = run.kept_by(id).into_iter().map(|s| first_of(&run, s)).collect();
        run.distil(id, &order, 0.3).unwrap();
        run.order(Order::Release(id.into()));
        run.settle();
        run.adopt(&Run::found(&run.recorder.driver.disk().seen()));
        let plan = FaultPlan::default();
        let image = run.image();
        let bytes = image.bytes();
        let mut disk = Counting { inner: FaultyDisk::new(image, plan, 1, run.clock.clone()), slots: 0 };
        assert!(bytes > 200 * SLOT);
        recover(&mut disk).unwrap();
        most = most.max(disk.slots);
    }
    assert!(most > 0 && most < 150, "{most} reads of slots");
}

/// Counts reads of slots.
struct Counting {
    inner: FaultyDisk,
    slots: u32,
}

impl Disk for Counting {
    fn info(&self) -> &DiskInfo {
        self.inner.info()
    }

    fn submit(&mut self, request: Request) -> Result<(), Request> {
        let first = (1 << 20) + 4 * SLOT;
        self.slots += u32::from(matches!(&request.op, Op::Read { offset, .. } if *offset >= first));
        self.inner.submit(request)
    }

    fn complete(&mut self, wait: Duration) -> Option<Completion> {
        self.inner.complete(wait)
    }
}
