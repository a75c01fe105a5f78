//! Tests of repeated orders: a client that has lost the answer repeats its order, and the ring carries it out once
//! (promise 4); and of rings of format version 1, which know no order UUIDs.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::common;

use common::{Recorder, hold_last, made, ordinals};
use holdfast_base::{Clock as _, HoldId, MAX_RELEASES, ManualClock, OrderId, Timestamp};
use holdfast_format::Superblock;
use holdfast_media::{Image, MemoryDisk};
use holdfast_ring::{
    HoldRequest, HoldStatus, Order, OrderTag, Outcome, Refusal, ReleaseRequest, order_offline,
    read_superblock, recover,
};
use std::time::Duration;

fn id(number: u16) -> OrderId {
    OrderId::new(Timestamp(1), [number.to_le_bytes(); 5].concat().try_into().unwrap())
}

fn hold(clock: &ManualClock, order: OrderId) -> Order {
    let Order::Hold(request) = hold_last(clock, Duration::from_millis(100)) else { panic!("no hold") };
    Order::Hold(HoldRequest { order: Some(order), ..request })
}

fn release(hold: u64, order: OrderId) -> Order {
    Order::Release(ReleaseRequest { order: Some(order), ..HoldId(hold).into() })
}

fn number(outcome: &Outcome) -> u64 {
    let Outcome::Held { id, .. } = outcome else { panic!("{outcome:?}") };
    id.0
}

fn holds(recorder: &Recorder) -> Vec<HoldStatus> {
    recorder.driver.ring().hold_looks().collect()
}

#[test]
fn a_repeated_hold_order_is_answered_with_the_hold_that_stands() {
    let clock = ManualClock::new(Timestamp(1_000_000_000));
    let mut recorder = Recorder::start(made(), &clock);
    (0..200).for_each(|_| recorder.element());
    let given = hold(&clock, id(1));
    let first = recorder.order(given.clone());
    let shown = holds(&recorder);
    assert_eq!((shown.len(), shown[0].order), (1, Some(id(1))));
    assert_eq!(recorder.order(given.clone()), first);
    // Whatever else it says by then: the UUID counts.
    (0..200).for_each(|_| recorder.element());
    assert_eq!(recorder.order(hold(&clock, id(1))), first);
    assert_eq!(holds(&recorder), shown);
    // After a clean end, and after a crash.
    let mut recorder = Recorder::start(recorder.stop(), &clock);
    assert_eq!(recorder.order(given.clone()), first);
    let mut recorder = Recorder::start(recorder.driver.into_disk(), &clock);
    assert_eq!(recorder.order(given.clone()), first);
    assert_eq!(holds(&recorder), shown);
    // Where no recorder runs.
    let disk = recorder.stop();
    let mut copy = MemoryDisk::from_image(disk.snapshot());
    assert_eq!(order_offline(&mut copy, given, &clock, &mut || true).unwrap(), first);
    // Another order is another hold.
    let mut recorder = Recorder::start(disk, &clock);
    (0..10).for_each(|_| recorder.element());
    assert_ne!(number(&recorder.order(hold(&clock, id(2)))), number(&first));
}

#[test]
fn an_order_that_is_repeated_before_its_answer_is_answered_twice_when_it_is_durable() {
    let clock = ManualClock::new(Timestamp(1_000_000_000));
    let mut recorder = Recorder::start(made(), &clock);
    (0..5).for_each(|_| recorder.element());
    let given = hold(&clock, id(1));
    let brief = recorder.brief();
    for tag in 1..=3 {
        recorder.driver.order(OrderTag(tag), given.clone(), brief, clock.now());
    }
    assert!(recorder.driver.reply().is_none(), "nothing is durable yet");
    let mut answers = Vec::new();
    for _ in 0..100 {
        recorder.poll();
        answers.extend(std::iter::from_fn(|| recorder.driver.reply()));
    }
    answers.sort_by_key(|(tag, _)| *tag);
    assert_eq!(answers.iter().map(|(tag, _)| tag.0).collect::<Vec<_>>(), [1, 2, 3]);
    assert!(answers.iter().all(|(_, outcome)| outcome == &answers[0].1), "{answers:?}");
    // What it keeps survives, though only the journal has it.
    let disk = recorder.driver.into_disk();
    assert_eq!(ordinals(&disk), (0..5).collect::<Vec<_>>());
    assert_eq!(recover(&mut MemoryDisk::from_image(disk.snapshot())).unwrap().holds().len(), 1);
}

#[test]
fn a_repeated_release_is_answered_as_done() {
    let clock = ManualClock::new(Timestamp(1_000_000_000));
    let mut recorder = Recorder::start(made(), &clock);
    (0..200).for_each(|_| recorder.element());
    let first = number(&recorder.order(hold(&clock, id(1))));
    let done = recorder.order(release(first, id(2)));
    assert!(matches!(done, Outcome::Released { slots } if slots > 0), "{done:?}");
    let again = Outcome::Released { slots: 0 };
    assert_eq!(recorder.order(release(first, id(2))), again);
    // After a clean end, after a crash, and once snapshots have been written since.
    let mut recorder = Recorder::start(recorder.stop(), &clock);
    assert_eq!(recorder.order(release(first, id(2))), again);
    (0..5000).for_each(|_| recorder.element());
    let mut recorder = Recorder::start(recorder.driver.into_disk(), &clock);
    assert_eq!(recorder.order(release(first, id(2))), again);
    // One that the ring has not carried out is refused.
    let refused = Outcome::Refused(Refusal::NoSuchHold(HoldId(first)));
    assert_eq!(recorder.order(release(first, id(3))), refused);
    assert_eq!(recorder.order(Order::Release(HoldId(first).into())), refused);
    // The hold has ended: its order is a new one.
    (0..10).for_each(|_| recorder.element());
    assert_ne!(number(&recorder.order(hold(&clock, id(1)))), first);
}

#[test]
fn the_newest_releases_are_remembered_and_no_more_than_there_is_room_for() {
    let clock = ManualClock::new(Timestamp(1_000_000_000));
    let mut recorder = Recorder::start(made(), &clock);
    (0..100).for_each(|_| recorder.element());
    let count = MAX_RELEASES as u16 + 44;
    let released: Vec<u64> = (0..count)
        .map(|order| {
            let held = number(&recorder.order(hold(&clock, id(2 * order))));
            recorder.order(release(held, id(2 * order + 1)));
            held
        })
        .collect();
    let mut recorder = Recorder::start(recorder.driver.into_disk(), &clock);
    let mut known = 0;
    for (order, hold) in (0..count).zip(&released) {
        match recorder.order(release(*hold, id(2 * order + 1))) {
            Outcome::Released { .. } => known += 1,
            outcome => {
                assert_eq!(outcome, Outcome::Refused(Refusal::NoSuchHold(HoldId(*hold))));
                assert_eq!(known, 0, "an older one is known");
            }
        }
    }
    // A 64th of a slot of 64 KiB, at 40 bytes each.
    assert_eq!(known, 25);
}

/// A ring that format version 1 wrote, cut off while it recorded: runs of equal words, a count and the word each.
fn old_ring() -> MemoryDisk {
    let runs = include_bytes!("../golden/v1/ring.bin");
    let mut bytes = Vec::new();
    for run in runs.chunks_exact(12) {
        let (count, word) = run.split_at(4);
        let count = u32::from_le_bytes(count.try_into().unwrap());
        bytes.extend(word.repeat(count as usize));
    }
    let mut image = Image::new(bytes.len() as u64);
    image.write(0, &bytes);
    MemoryDisk::from_image(image)
}

#[test]
fn a_ring_of_format_version_1_opens_and_is_written_on_in_the_newest_version() {
    let mut disk = old_ring();
    assert_eq!(read_superblock(&mut disk).unwrap().version, 1);
    assert_eq!(ordinals(&disk), (0..330).collect::<Vec<_>>());
    let recovered = recover(&mut disk).unwrap();
    let shown: Vec<_> = recovered.holds().iter().map(|hold| (hold.id.0, hold.order)).collect();
    assert_eq!(shown, [(1, None), (2, None)]);
    let conditions = recovered.holds().iter().filter_map(|hold| hold.condition_hold.as_ref());
    assert_eq!(conditions.map(|hold| hold.condition.as_str()).collect::<Vec<_>>(), ["len > 9"]);

    let clock = ManualClock::new(Timestamp(5_000_000_000));
    let mut recorder = Recorder::start(disk, &clock);
    assert_eq!(recorder.next, 330);
    (0..100).for_each(|_| recorder.element());
    let given = hold(&clock, id(1));
    let first = recorder.order(given.clone());
    assert_eq!(recorder.order(given.clone()), first);
    assert!(matches!(recorder.order(release(1, id(2))), Outcome::Released { .. }));
    let disk = recorder.stop();
    let newest = read_superblock(&mut MemoryDisk::from_image(disk.snapshot())).unwrap();
    assert_eq!(newest.version, Superblock::VERSION);
    assert_eq!(ordinals(&disk), (0..430).collect::<Vec<_>>());
    let mut recorder = Recorder::start(disk, &clock);
    assert_eq!(recorder.order(given), first);
    assert_eq!(recorder.order(release(1, id(2))), Outcome::Released { slots: 0 });
    assert_eq!(holds(&recorder).len(), 2);
}

/// The same by one order where no recorder runs.
#[test]
fn an_order_brings_a_ring_of_format_version_1_to_the_newest() {
    let clock = ManualClock::new(Timestamp(5_000_000_000));
    let mut disk = old_ring();
    let outcome = order_offline(&mut disk, release(1, id(1)), &clock, &mut || true).unwrap();
    assert!(matches!(outcome, Outcome::Released { slots } if slots > 0), "{outcome:?}");
    assert_eq!(read_superblock(&mut disk).unwrap().version, Superblock::VERSION);
    let again = order_offline(&mut disk, release(1, id(1)), &clock, &mut || true).unwrap();
    assert_eq!(again, Outcome::Released { slots: 0 });
    assert_eq!(ordinals(&disk), (0..330).collect::<Vec<_>>());
}
