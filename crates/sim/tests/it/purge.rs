//! Tests of a purge with the power cut after every write of it: what is to stay is there exactly once at
//! every instant, and once the purge is acknowledged nothing of the rest is. Promises 4, 5 and 6.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use holdfast_base::{Clock, ManualClock, Ordinal, StreamId, Timestamp};
use holdfast_format::{Cause, Gap, Kind, SectionKind, SlotFlags};
use holdfast_media::{FaultPlan, FaultyDisk, Image};
use holdfast_ring::{Order, Outcome, PurgeRequest, Range, order_offline};
use holdfast_sim::{Doom, Op, Pushed, Setup, World, survey};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);

/// The ordinals that are to go.
type Doomed = std::ops::Range<u64>;

type Rows = BTreeMap<(StreamId, u64, u32), Pushed>;

fn write(stream: u8, count: u16, bytes: u32, every: Duration) -> Op {
    Op::Write { stream, count, bytes, every, event: stream == 1 }
}

/// A ring that has recorded two streams and ended, some of it held; every row that is on it, and the streams. The second one may
/// have attributes.
fn recorded(ops: &[Op], attributes: bool) -> (Image, Rows, Vec<StreamId>, Timestamp) {
    let mut world = World::new(Setup { slots: 20, attributes, ..Setup::plain() }).unwrap();
    for op in ops {
        world.run(op).unwrap();
    }
    let range = Range { from: world.now() - 60 * MS, ..Range::ALL };
    world.hold(Vec::new(), range, None, Timestamp::MAX, true).unwrap();
    world.run(&write(2, 2, 30_000, MS)).unwrap();
    let disk = world.stop().unwrap().unwrap();
    let alive = world.model.alive().flat_map(|(_, slot)| slot.rows.clone());
    let rows: Rows = alive.map(|row| ((row.stream, row.ordinal, row.number), row)).collect();
    let streams: BTreeSet<StreamId> = rows.keys().map(|(stream, ..)| *stream).collect();
    (disk.seen(), rows, streams.into_iter().collect(), world.now())
}

fn order(stream: StreamId, doomed: &Doomed) -> Order {
    let range = Range { ordinals: Some((Ordinal(doomed.start), Ordinal(doomed.end))), ..Range::ALL };
    let (reason, owner) = ("law".to_owned(), "court".to_owned());
    Order::Purge(PurgeRequest { streams: vec![stream], range, held: true, reason, owner })
}

/// Reads everything: what is to stay is there once, what is there was recorded. How much of the rest is there.
fn left(image: &Image, rows: &Rows, stream: StreamId, range: &Doomed, at: &str) -> usize {
    let doomed = |(of, ordinal, _): &(StreamId, u64, u32)| *of == stream && range.contains(ordinal);
    let found = survey(image).expect(at);
    let mut seen = BTreeMap::new();
    for slot in &found.found {
        for row in &slot.slot.as_ref().unwrap_or_else(|e| panic!("{at}: {}: {e}", slot.sequence)).rows {
            if row.kind == Kind::Gap {
                let gap = Gap::decode(&row.bytes).unwrap();
                assert_eq!((gap.cause, row.stream), (Cause::Purged, stream), "{at}");
                assert!(
                    range.start <= row.ordinal && row.ordinal + gap.ordinals <= range.end,
                    "{at}: {gap:?}"
                );
                continue;
            }
            let key = (row.stream, row.ordinal, row.number);
            assert!(rows[&key].is(row), "{at}: {key:?} reads back wrong");
            *seen.entry(key).or_insert(0) += 1;
        }
    }
    for key in rows.keys() {
        let times = seen.get(key).copied().unwrap_or(0);
        let right = if doomed(key) { times <= 1 } else { times == 1 };
        assert!(right, "{at}: {key:?} is there {times} times");
    }
    seen.keys().filter(|key| doomed(key)).count()
}

#[test]
fn a_crash_after_every_write_of_a_purge_costs_nothing_that_stays() {
    let ops = (0..12).flat_map(|_| [write(0, 10, 1_700, MS), write(1, 5, 900, MS)]).collect::<Vec<_>>();
    for stream in 0..2 {
        let (before, after) = cut_everywhere(&ops, true, stream, &(30..55));
        assert_eq!(before, after, "slots of data");
    }
}

// The journal has a slot from when it was open, and a restart takes that for what is not on the medium unless it knows better.
#[test]
fn what_was_replaced_does_not_come_back_from_when_its_slot_was_open() {
    for (cut, draw) in (1..12).flat_map(|cut| (0..4).map(move |draw| (cut, draw))) {
        let mut world = World::new(Setup { slots: 20, slot_bytes: 64 << 10, ..Setup::plain() }).unwrap();
        let doom = Doom::Ordinals { back: 3, count: 2 };
        let steps = [
            write(0, 8, 1_700, 400 * MS),
            Op::Crash { after: 0, draw },
            Op::Purge { stream: Some(0), doom, held: false, cut: Some((cut, draw)) },
        ];
        for op in steps {
            world.run(&op).unwrap_or_else(|why| panic!("write {cut}, draw {draw}, {op:?}: {why}"));
        }
    }
}

#[test]
fn slots_full_of_tiny_elements_have_room_for_the_gaps_of_a_purge() {
    let ops = [write(0, 40_000, 1, Duration::from_micros(1))];
    let (before, after) = cut_everywhere(&ops, false, 0, &(10_000..10_002));
    assert_eq!(after, before + 1, "slots of data: a full one and a gap take two");
}

/// How many columns the copies have of a stream, each of them as many.
fn columns_of_copies(image: &Image, stream: StreamId) -> Vec<u32> {
    let found = survey(image).unwrap().found;
    let slots = found.iter().filter_map(|found| found.slot.as_ref().ok());
    let copies = slots.filter(|slot| slot.header.flags.has(SlotFlags::DISTILLED));
    let entries =
        copies.flat_map(|slot| slot.summary.entries.iter().filter(|e| e.stream == stream && e.rows > 0));
    entries.map(|entry| entry.schema).collect()
}

// Promise 8: what is to be destroyed does not stay because something else of its slot is damaged; and promise 5.
#[test]
fn a_copy_has_the_columns_of_its_original_or_where_they_are_damaged_none() {
    let ops = (0..12).flat_map(|_| [write(0, 10, 1_700, MS), write(1, 9, 900, MS)]).collect::<Vec<_>>();
    let (image, rows, streams, now) = recorded(&ops, true);
    let (doomed, with_attributes) = (30..40, streams[1]);
    let purged = |image: &Image| {
        let clock = ManualClock::new(now);
        let mut disk = FaultyDisk::new(image.clone(), FaultPlan::default(), 1, clock.clone());
        let outcome = order_offline(&mut disk, order(streams[0], &doomed), &clock, &mut || false);
        assert!(matches!(outcome, Ok(Outcome::Purged { elements: 10, .. })), "{outcome:?}");
        disk.seen()
    };
    let after = purged(&image);
    assert_eq!(left(&after, &rows, streams[0], &doomed, "sound"), 0);
    let columns = columns_of_copies(&after, with_attributes);
    assert!(!columns.is_empty() && columns.iter().all(|columns| *columns == 4), "{columns:?}");
    // In each slot one byte of the last column is another.
    let survey = survey(&image).unwrap();
    let mut image = image;
    for (place, slot) in survey.found.iter().map(|found| (found.place.unwrap(), found.slot.as_ref().unwrap()))
    {
        let sections = slot.summary.sections.iter().filter(|section| section.kind == SectionKind::Attribute);
        for section in sections.filter(|section| section.column == 3) {
            let offset = survey.recovered.superblock.geometry.slot_offset(place);
            image.flip(offset + section.range().end as u64 - 1, 1);
        }
    }
    let after = purged(&image);
    assert_eq!(columns_of_copies(&after, with_attributes), vec![0; columns.len()]);
}

/// Slots of data before and after.
fn cut_everywhere(ops: &[Op], attributes: bool, stream: usize, range: &Doomed) -> (usize, usize) {
    let (image, rows, streams, now) = recorded(ops, attributes);
    let stream = streams[stream];
    let left = |image: &Image, at: &str| left(image, &rows, stream, range, at);
    let before = left(&image, "before") as u64;
    assert_eq!(before, range.end - range.start, "rows that are to go");
    let mut n = 0;
    loop {
        n += 1;
        let clock = ManualClock::new(now);
        let plan = FaultPlan { latency: MS, ..FaultPlan::default() };
        let mut disk = FaultyDisk::new(image.clone(), plan.clone(), n, clock.clone());
        disk.cut_after(n);
        let outcome = order_offline(&mut disk, order(stream, range), &clock, &mut || false);
        let whole = outcome.is_ok() && disk.alive();
        // Many rows take long to compare.
        for draw in 0..if rows.len() > 10_000 { 1 } else { 3 } {
            let at = format!("power cut at write {n} of a purge, draw {draw}");
            let image = if whole { disk.seen() } else { disk.crash() };
            let rest = left(&image, &at);
            if whole {
                assert!(
                    matches!(outcome, Ok(Outcome::Purged { elements, .. }) if elements == before),
                    "{outcome:?}"
                );
            }
            if draw > 0 || whole {
                continue;
            }
            // Given again, it comes to its end.
            let clock = ManualClock::new(clock.now());
            let mut disk = FaultyDisk::new(image, plan.clone(), n, clock.clone());
            let again = order_offline(&mut disk, order(stream, range), &clock, &mut || false);
            let done = match again {
                Ok(Outcome::Purged { .. }) => true,
                Ok(Outcome::Refused(_)) => rest == 0,
                _ => false,
            };
            assert!(done, "{at}, given again: {again:?} with {rest} rows left");
            assert_eq!(left(&disk.seen(), &at), 0, "{at}, given again");
        }
        if whole {
            assert_eq!(left(&disk.seen(), "the end"), 0);
            assert!(n > 15, "a purge has more than {n} writes");
            let slots = |image: &Image| survey(image).unwrap().found.len();
            return (slots(&image), slots(&disk.seen()));
        }
    }
}
