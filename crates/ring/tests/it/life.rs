//! Tests of a ring's life on a memory disk: made, written for several laps, held, released, restarted.
//! Promises 3, 4 and 6.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::common;

use common::{Recorder, SLOT, SLOTS, hold_last, made, make, ordinals, payloads, purge, rows, traces};
use holdfast_base::{Clock as _, HoldId, ManualClock, Ordinal, RingId, SlotNo, Timestamp};
use holdfast_format::{Cause, ConditionHold, Counters, Flags, Gap, Kind, Row, SlotFlags, Superblock};
use holdfast_media::{Image, MemoryDisk};
use holdfast_ring::{
    ActKind, HoldRequest, JobError, JobStep, OfflineOrderError, Order, Outcome, Refusal, SlotLook, StepReply,
    Work, find_superblock, order_giving_way, order_offline, read_superblock, recover, write_superblocks,
};
use std::cell::Cell;
use std::time::Duration;

#[test]
fn the_oldest_expires_and_the_newest_stays_over_many_laps() {
    let clock = ManualClock::new(Timestamp(1_000_000_000));
    let mut recorder = Recorder::start(made(), &clock);
    for _ in 0..10_000 {
        recorder.element();
    }
    let found = ordinals(&recorder.stop());
    assert_eq!(*found.last().unwrap(), 9_999);
    assert!(found.windows(2).all(|w| w[1] == w[0] + 1), "a hole in {found:?}");
    assert!(found.len() as u64 > (SLOTS - 8) * 50, "{} elements are left", found.len());
}

// Promise 1: a file ring knows when every slot has been written once, whoever looks, and after whatever restart; what is
// named to be overwritten was written before.
#[test]
fn slots_that_were_never_written_are_counted_until_there_are_none() {
    let clock = ManualClock::new(Timestamp(1_000_000_000));
    let mut disk = made();
    let (mut ended, mut restarts) = (0, 0);
    while ended < 3 {
        let mut recorder = Recorder::start(disk, &clock);
        restarts += 1;
        for _ in 0..70 {
            recorder.element();
        }
        // In turn a run that ends and one that is cut off.
        disk = if restarts % 2 == 0 { recorder.stop() } else { recorder.driver.into_disk() };
        let image = disk.snapshot();
        let geometry = read_superblock(&mut MemoryDisk::from_image(image.clone())).unwrap().geometry;
        let blank =
            |no: u32| image.range(geometry.slot_offset(SlotNo(no)), SLOT as usize).iter().all(|b| *b == 0);
        let blank = (0..geometry.slots).filter(|no| blank(*no)).count() as u32;
        let recovered = recover(&mut MemoryDisk::from_image(image)).unwrap();
        assert_eq!(recovered.status("lane").slots.unwritten, blank, "after {restarts} runs");
        ended += u32::from(blank == 0);
        let recorder = Recorder::start(disk, &clock);
        let running = recorder.driver.ring().status("lane").slots;
        assert!(running.unwritten <= blank && running.runway > 0, "{running:?}, {blank} were blank");
        disk = recorder.driver.into_disk();
    }
    assert!(restarts > 4, "{restarts}");
}

#[test]
fn a_held_range_outlives_laps_and_restarts_until_it_is_released() {
    let clock = ManualClock::new(Timestamp(1_000_000_000));
    let mut recorder = Recorder::start(made(), &clock);
    for _ in 0..1_000 {
        recorder.element();
    }
    let Outcome::Held { id, slots, .. } = recorder.order(hold_last(&clock, Duration::from_millis(200)))
    else {
        panic!("refused");
    };
    assert!((4..=5).contains(&slots), "{slots} slots");
    for _ in 0..5_000 {
        recorder.element();
    }
    let disk = recorder.stop();
    let mut recorder = Recorder::start(disk, &clock);
    assert!(!recorder.driver.ring().after_crash());
    for _ in 0..5_000 {
        recorder.element();
    }
    let disk = recorder.stop();
    let found = ordinals(&disk);
    assert!((801..=999).all(|o| found.contains(&o)), "held elements are gone: {found:?}");

    let outcome = order_offline(disk, Order::Release(id.into()), &clock, &mut || true).unwrap();
    assert_eq!(outcome, Outcome::Released { slots });
}

#[test]
fn what_the_journal_has_survives_a_crash_that_takes_the_open_slot() {
    let clock = ManualClock::new(Timestamp(1_000_000_000));
    let mut recorder = Recorder::start(made(), &clock);
    for _ in 0..10 {
        recorder.element();
        clock.set(clock.now() + Duration::from_secs(1));
        recorder.poll();
        clock.set(clock.now() + Duration::from_secs(1));
        recorder.poll();
        recorder.poll();
    }
    let disk = recorder.driver.into_disk();
    assert_eq!(ordinals(&disk), (0..10).collect::<Vec<_>>());
    let mut recorder = Recorder::start(disk, &clock);
    assert!(recorder.driver.ring().after_crash());
    assert_eq!(recorder.next, 10);
    recorder.element();
    let found = ordinals(&recorder.stop());
    assert_eq!(found, (0..11).collect::<Vec<_>>());
}

#[test]
fn a_hold_on_the_open_slot_is_acknowledged_when_its_data_is_durable() {
    let clock = ManualClock::new(Timestamp(1_000_000_000));
    let mut recorder = Recorder::start(made(), &clock);
    for _ in 0..5 {
        recorder.element();
    }
    let outcome = recorder.order(hold_last(&clock, Duration::from_secs(1)));
    assert!(matches!(outcome, Outcome::Held { slots: 1, .. }), "{outcome:?}");
    let disk = recorder.driver.into_disk();
    assert_eq!(ordinals(&disk), (0..5).collect::<Vec<_>>());
}

#[test]
fn pinned_slots_are_shown_and_outlive_laps() {
    let clock = ManualClock::new(Timestamp(1_000_000_000));
    let mut recorder = Recorder::start(made(), &clock);
    for _ in 0..500 {
        recorder.element();
    }
    let ring = recorder.driver.ring();
    let live = ring.slot_looks(SlotNo(0), 99).find(|s| s.look == SlotLook::Live).unwrap();
    recorder.driver.step(JobStep::Lock(live.slot), clock.now());
    assert!(matches!(recorder.driver.step_reply(), Some(StepReply::Done)));
    for _ in 0..5_000 {
        recorder.element();
    }
    let ring = recorder.driver.ring();
    let pinned = ring.slot_looks(live.slot, 1).next().unwrap();
    assert_eq!((pinned.look, pinned.sequence, pinned.has_data()), (SlotLook::Pinned, live.sequence, true));
    assert_eq!(ring.status("lane").slots.pinned, 1);
    recorder.driver.step(JobStep::Unlock(live.slot), clock.now());
    for _ in 0..2_000 {
        recorder.element();
    }
    let now = recorder.driver.ring().slot_looks(live.slot, 1).next().unwrap();
    assert!(now.sequence > live.sequence || now.look == SlotLook::Runway, "{now:?}");
}

#[test]
fn sequences_that_nothing_was_written_under_do_not_stop_capture() {
    let clock = ManualClock::new(Timestamp(1_000_000_000));
    let mut recorder = Recorder::start(made(), &clock);
    for _ in 0..120 {
        recorder.element();
    }
    recorder.seal(SlotFlags::SHORT);
    for _ in 0..20 {
        recorder.poll();
    }
    // A job takes sequences for copies until there are none, and makes no copy; the runway stays as long as it was.
    let mut taken = 0;
    loop {
        recorder.driver.step(JobStep::NewCopy, clock.now());
        match recorder.driver.step_reply() {
            Some(StepReply::Copy { buffer, .. }) => {
                taken += 1;
                recorder.driver.step(JobStep::GiveBack(buffer), clock.now());
                recorder.driver.step_reply();
            }
            other => break assert!(matches!(other, Some(StepReply::Later(None))), "{other:?}"),
        }
    }
    assert!(taken > 2, "{taken}");
    for _ in 0..20 {
        recorder.poll();
    }
    let sequence = recorder.driver.ring_mut().open_next(clock.now());
    assert!(sequence.is_some(), "the ring stands still with buffers and slots");
}

#[test]
fn a_release_gives_back_as_many_slots_as_the_hold_took() {
    let clock = ManualClock::new(Timestamp(1_000_000_000));
    let mut recorder = Recorder::start(made(), &clock);
    for _ in 0..300 {
        recorder.element();
    }
    let outcome = recorder.order(hold_last(&clock, Duration::from_hours(1)));
    let Outcome::Held { id, slots, .. } = outcome else { panic!("{outcome:?}") };
    let written = recorder.driver.ring().status("lane").slots.held;
    assert_eq!(written + 1, slots, "the open one is among them");
    let outcome = recorder.order(Order::Release(id.into()));
    assert!(matches!(outcome, Outcome::Released { slots: freed } if freed == slots), "{outcome:?}");
}

#[test]
fn holds_never_take_what_capture_needs() {
    let clock = ManualClock::new(Timestamp(1_000_000_000));
    let mut recorder = Recorder::start(made(), &clock);
    for _ in 0..2_000 {
        recorder.element();
    }
    let outcome = recorder.order(hold_last(&clock, Duration::from_hours(1)));
    assert!(matches!(outcome, Outcome::Refused(_)), "{outcome:?}");
    let held = recorder.driver.ring().slot_looks(SlotNo(0), 99).filter(|s| s.look == SlotLook::Held).count();
    assert_eq!(held, 0);
}

#[test]
fn a_purge_leaves_no_trace_and_takes_nothing_else() {
    let clock = ManualClock::new(Timestamp(1_000_000_000));
    let mut recorder = Recorder::start(made(), &clock);
    for at in 0..700 {
        recorder.element();
        if at % 20 == 0 {
            // Slowly enough for the journal to have some of every slot.
            clock.set(clock.now() + Duration::from_secs(2));
            recorder.poll();
            clock.set(clock.now() + Duration::from_secs(1));
            recorder.poll();
        }
    }
    let mut disk = recorder.stop();
    let before = ordinals(&disk);
    // Late enough for the journal to have some of it.
    let (first, end) = (before[before.len() - 200], before[before.len() - 40]);
    assert!((first..end).all(|o| traces(&disk).contains(&o)));
    let outcome = order_offline(&mut disk, purge(first, end, false), &clock, &mut || true).unwrap();
    let Outcome::Purged { elements, bytes, slots } = outcome else { panic!("{outcome:?}") };
    assert_eq!((elements, bytes), (160, 160_000));
    assert!(slots >= 3, "{slots}");
    let left = traces(&disk);
    assert!(!left.iter().any(|o| (first..end).contains(o)), "traces of {left:?}");
    let expected: Vec<u64> = before.iter().copied().filter(|o| !(first..end).contains(o)).collect();
    assert_eq!(payloads(&disk), expected);
    // What was there still is after the next run has written over every free slot.
    let mut recorder = Recorder::start(disk, &clock);
    assert_eq!(recorder.next, 700);
    recorder.element();
    assert_eq!(payloads(&recorder.stop()).last(), Some(&700));
}

// Promises 1 and 5: a purge gives way to a recorder from one slot to the next, leaves a sound ring, and goes on from there. All
// that its parts destroyed is in their answers and on record, and nothing of it is left, in the journal either.
#[test]
fn a_purge_that_gives_way_after_any_step_goes_on_when_it_is_given_again() {
    let clock = ManualClock::new(Timestamp(1_000_000_000));
    let mut recorder = Recorder::start(made(), &clock);
    for at in 0..300 {
        recorder.element();
        if at % 20 == 0 {
            // Slowly enough for the journal to have some of every slot.
            clock.set(clock.now() + Duration::from_secs(2));
            recorder.poll();
            clock.set(clock.now() + Duration::from_secs(1));
            recorder.poll();
        }
    }
    let disk = recorder.stop();
    let expected: Vec<u64> = ordinals(&disk).into_iter().filter(|o| !(150..260).contains(o)).collect();
    let (mut gave_way, mut all_done) = (0, 0);
    for steps in 0.. {
        let mut disk = MemoryDisk::from_image(disk.snapshot());
        let asked = Cell::new(0);
        let gives_way = || asked.replace(asked.get() + 1) >= steps;
        let order = || purge(150, 260, false);
        let before = match order_giving_way(&mut disk, order(), &clock, &mut || true, &gives_way) {
            Err(OfflineOrderError::GaveWay { elements, bytes, slots }) => (elements, bytes, slots),
            done => {
                assert!(matches!(done, Ok(Outcome::Purged { elements: 110, .. })), "{done:?}");
                break;
            }
        };
        gave_way += 1;
        assert!(!recover(&mut disk).unwrap().after_crash(), "after {steps} steps");
        clock.set(clock.now() + Duration::from_secs(1));
        let again = match order_offline(&mut disk, order(), &clock, &mut || true).unwrap() {
            Outcome::Purged { elements, bytes, .. } => (elements, bytes),
            Outcome::Refused(Refusal::Nothing { .. }) if before.2 > 0 => {
                all_done += 1;
                (0, 0)
            }
            other => panic!("after {steps} steps: {other:?}"),
        };
        assert_eq!((before.0 + again.0, before.1 + again.1), (110, 110_000), "after {steps} steps");
        let recovered = recover(&mut disk).unwrap();
        let audits = recovered.act_looks().filter(|act| act.kind == ActKind::Purge);
        assert_eq!(audits.map(|act| act.elements).sum::<u64>(), 110, "after {steps} steps");
        assert_eq!(payloads(&disk), expected, "after {steps} steps");
        assert!(!traces(&disk).iter().any(|o| (150..260).contains(o)), "after {steps} steps");
        let mut recorder = Recorder::start(disk, &clock);
        recorder.element();
        assert_eq!(payloads(&recorder.stop()).last(), Some(&300), "after {steps} steps");
    }
    assert!(gave_way > 10 && all_done > 0, "{gave_way}, {all_done}");
}

/// Promise 2: of elements in fragments, too, those that were given up and those that were received, every byte that came
/// is in an element that is there or in one gap, whatever is purged.
#[test]
fn a_purge_of_fragments_counts_no_byte_that_another_gap_counts() {
    for (first, end) in [(1, 2), (2, 3), (1, 3), (0, 4)] {
        let clock = ManualClock::new(Timestamp(1_000_000_000));
        let mut recorder = Recorder::start(made(), &clock);
        let fragment = |ordinal, number, offset, flags| {
            let ordinal = Ordinal(ordinal);
            Row { kind: Kind::Fragment, ordinal, number, offset, flags, ..Row::default() }
        };
        recorder.element();
        // Given up after 800 bytes, and 100 that were never packed.
        recorder.row(fragment(1, 0, 0, Flags::default()), &[1; 500]);
        recorder.row(fragment(1, 1, 500, Flags::default()), &[1; 300]);
        recorder.row(Row { kind: Kind::Abort, ordinal: Ordinal(1), ..Row::default() }, &[]);
        let now = clock.now();
        let (elements, bytes, cause) = (Some(1), Some(900), Cause::Aborted);
        let gap = Gap { ordinals: 1, elements, bytes, first: now, last: now, cause, note: 0 };
        recorder.row(Row { kind: Kind::Gap, ordinal: Ordinal(1), ..Row::default() }, &gap.encode());
        recorder.row(fragment(2, 0, 0, Flags::default()), &[2; 400]);
        recorder.row(fragment(2, 1, 400, Flags::LAST), &[2; 600]);
        recorder.next = 3;
        recorder.element();
        let mut disk = recorder.stop();
        let outcome = order_offline(&mut disk, purge(first, end, false), &clock, &mut || true).unwrap();
        let Outcome::Purged { bytes, .. } = outcome else { panic!("{outcome:?}") };
        let destroyed: u64 = [1000, 800, 1000, 1000][first as usize..end as usize].iter().sum();
        assert_eq!(bytes, destroyed, "{first}..{end}");
        let (mut kept, mut gone) = (Counters::default(), (0, 0));
        for (row, data) in rows(&disk) {
            if row.kind == Kind::Gap {
                let gap = Gap::decode(&data).unwrap();
                gone = (gone.0 + gap.elements.unwrap(), gone.1 + gap.bytes.unwrap());
            } else {
                kept.count(&row, None);
            }
        }
        let stream = recover(&mut disk).unwrap().streams()[0].counters;
        assert_eq!((stream.received, stream.received_bytes, stream.lost_bytes), (3, 3000, 900));
        assert_eq!(kept.received + gone.0, stream.received + stream.lost, "{first}..{end}: elements");
        assert_eq!(
            kept.received_bytes + gone.1,
            stream.received_bytes + stream.lost_bytes,
            "{first}..{end}: bytes"
        );
    }
}

#[test]
fn held_data_is_purged_only_when_that_is_said() {
    let clock = ManualClock::new(Timestamp(1_000_000_000));
    let mut recorder = Recorder::start(made(), &clock);
    for _ in 0..300 {
        recorder.element();
    }
    let held = recorder.order(hold_last(&clock, Duration::from_millis(100)));
    assert!(matches!(held, Outcome::Held { .. }));
    let mut disk = recorder.stop();
    let refused = order_offline(&mut disk, purge(250, 260, false), &clock, &mut || true).unwrap();
    assert!(matches!(refused, Outcome::Refused(Refusal::Held(_))), "{refused:?}");
    let outcome = order_offline(&mut disk, purge(250, 260, true), &clock, &mut || true).unwrap();
    assert!(matches!(outcome, Outcome::Purged { elements: 10, .. }), "{outcome:?}");
}

#[test]
fn a_lost_superblock_is_found_in_the_journal() {
    let clock = ManualClock::new(Timestamp(1_000_000_000));
    let mut recorder = Recorder::start(made(), &clock);
    for _ in 0..300 {
        recorder.element();
    }
    let mut disk = recorder.stop();
    let before = read_superblock(&mut disk).unwrap();
    let held = ordinals(&disk);
    let mut image = disk.snapshot();
    for offset in Superblock::OFFSETS {
        image.write(offset, &[0; 4096]);
    }
    let mut lost = MemoryDisk::from_image(image);
    assert!(read_superblock(&mut lost).is_err());
    let found = find_superblock(&mut lost).unwrap().unwrap();
    assert_eq!((found.ring, &found.key.0, &found.geometry), (before.ring, &before.key.0, &before.geometry));
    write_superblocks(&mut lost, &found).unwrap();
    assert_eq!(ordinals(&lost), held);
}

#[test]
fn of_several_rings_that_a_lane_was_the_last_is_found() {
    let clock = ManualClock::new(Timestamp(1_000_000_000));
    // A run writes to the other extent than the one that the ring was made with.
    let mut disk = Recorder::start(made(), &clock).stop();
    let last = make(&mut disk, 8, 2 * SLOT);
    assert!(u64::from(last.geometry.slots) < SLOTS);
    let mut image = disk.snapshot();
    for offset in Superblock::OFFSETS {
        image.write(offset, &[0; 4096]);
    }
    let found = |image: &Image| find_superblock(&mut MemoryDisk::from_image(image.clone())).unwrap();
    assert_eq!(found(&image).unwrap().ring, last.ring);
    // Where nothing is left of the last, one of whose snapshots something was overwritten is none either.
    let extent = last.geometry.extent_offset(0);
    image.write(extent, &[0; 4096]);
    assert_eq!(found(&image).map(|s| s.ring), Some(RingId([7; 16])));
    image.write(extent + 2 * SLOT, &[0; 4096]);
    assert_eq!(found(&image).map(|s| s.ring), None);
}

#[test]
fn a_purge_that_fails_keeps_nothing_from_expiring() {
    let clock = ManualClock::new(Timestamp(1_000_000_000));
    let mut recorder = Recorder::start(made(), &clock);
    for _ in 0..600 {
        recorder.element();
    }
    let mut disk = recorder.stop();
    let recovered = recover(&mut disk).unwrap();
    // Not one of the last, of which recovery would say that they were never whole.
    let (no, ..) = recovered.data().min_by_key(|(_, sequence, _)| sequence.0).unwrap();
    let mut image = disk.snapshot();
    image.write(recovered.superblock.geometry.slot_offset(no), &[0xee; 4096]);

    // The job runs beside a recorder, step by step.
    let mut recorder = Recorder::start(MemoryDisk::from_image(image), &clock);
    for _ in 0..200 {
        recorder.poll();
    }
    let superblock = recorder.driver.superblock().clone();
    let run = |recorder: &mut Recorder, order: Order| {
        let mut port = |step| {
            recorder.driver.step(step, clock.now());
            loop {
                if let Some(reply) = recorder.driver.step_reply() {
                    return Some(reply);
                }
                if recorder.driver.ring().wants_seal() {
                    recorder.seal(SlotFlags::SHORT);
                }
                clock.set(clock.now() + Duration::from_millis(1));
                recorder.poll();
            }
        };
        Work::of(&order).unwrap().run(&superblock, clock.now(), &mut port, &|| false)
    };
    let failed = run(&mut recorder, purge(0, 1 << 40, false));
    assert!(matches!(failed, Err(JobError::Damaged { slot, .. }) if slot == no), "{failed:?}");
    let last = recorder.next - 1;
    for _ in 0..3_000 {
        recorder.element();
    }
    let left = recorder.driver.ring().slot_looks(SlotNo(0), 99).filter(|s| s.look == SlotLook::Live).count();
    assert!(left > 10, "{left}");
    // Holds keep some of what is purged, the rest of it is kept on.
    for _ in 0..2 {
        let held = recorder.order(hold_last(&clock, Duration::from_millis(200)));
        assert!(matches!(held, Outcome::Held { .. }), "{held:?}");
    }
    // And one by condition, that may keep more.
    let named = recorder.driver.ring().hold_looks().next().map(|hold| hold.sequences);
    let Order::Hold(request) = hold_last(&clock, Duration::ZERO) else { unreachable!() };
    let condition_hold =
        Some(ConditionHold { condition: "len > 9".into(), quota: 9, ..ConditionHold::default() });
    let held = recorder.order(Order::Hold(HoldRequest { sequences: named, condition_hold, ..request }));
    assert!(matches!(held, Outcome::Held { .. }), "{held:?}");
    let some = purge(recorder.next - 150, recorder.next - 100, true);
    let done = run(&mut recorder, some).unwrap();
    assert!(matches!(done, Outcome::Purged { elements: 50, .. }), "{done:?}");
    for id in [1, 2, 3] {
        assert!(recorder.driver.ring().hold_looks().any(|h| h.id.0 == id && h.slots >= 3));
        let released = recorder.order(Order::Release(HoldId(id).into()));
        assert!(matches!(released, Outcome::Released { slots } if (slots > 0) == (id == 3)), "{released:?}");
    }
    let done = run(&mut recorder, purge(0, 1 << 40, false)).unwrap();
    assert!(matches!(done, Outcome::Purged { elements, .. } if elements > 500), "{done:?}");
    let disk = recorder.stop();
    assert_eq!(payloads(&disk), Vec::<u64>::new());
    assert_eq!(traces(&disk), Vec::<u64>::new(), "what was recorded up to {last} and after is gone");
}
