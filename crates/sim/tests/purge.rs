//! A purge, with the power cut after every write of it: what is to stay is there exactly once at every instant, and once the
//! purge is acknowledged nothing of the rest is. Promises 4, 5 and 6.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use holdfast_base::{Clock, ManualClock, Ordinal, StreamId, Timestamp};
use holdfast_format::{Cause, Gap, Kind};
use holdfast_media::{FaultPlan, FaultyDisk, Image};
use holdfast_ring::{Order, Outcome, PurgeRequest, Range, order_once};
use holdfast_sim::{Op, Pushed, Setup, World, survey};
use std::collections::BTreeMap;
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);

/// The ordinals that are to go.
type Doomed = std::ops::Range<u64>;

type Rows = BTreeMap<(StreamId, u64, u32), Pushed>;

fn write(stream: u8, count: u16, bytes: u32, every: Duration) -> Op {
    Op::Write { stream, count, bytes, every, event: stream == 1 }
}

/// A ring that has recorded two streams and ended, some of it held; and every row that is on it.
fn recorded(ops: &[Op]) -> (Image, Rows, StreamId, Timestamp) {
    let mut world = World::new(Setup { slots: 20, ..Setup::plain() }).unwrap();
    for op in ops {
        world.run(op).unwrap();
    }
    let range = Range { from: world.now() - 60 * MS, ..Range::ALL };
    world.hold(Vec::new(), range, None, Timestamp::MAX, true).unwrap();
    world.run(&write(2, 2, 30_000, MS)).unwrap();
    let disk = world.stop().unwrap().unwrap();
    let alive = world.model.alive().flat_map(|(_, slot)| slot.rows.clone());
    let rows: Rows = alive.map(|row| ((row.stream, row.ordinal, row.number), row)).collect();
    let stream = *rows.keys().map(|(stream, ..)| stream).min().unwrap();
    (disk.seen(), rows, stream, world.now())
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
    let (before, after) = cut_everywhere(&ops, &(30..75));
    assert_eq!(before, after, "slots of data");
}

#[test]
fn slots_full_of_tiny_elements_have_room_for_the_gaps_of_a_purge() {
    let (before, after) = cut_everywhere(&[write(0, 40_000, 1, Duration::from_micros(1))], &(10_000..10_002));
    assert_eq!(after, before + 1, "slots of data: a full one and a gap take two");
}

/// Slots of data before and after.
fn cut_everywhere(ops: &[Op], range: &Doomed) -> (usize, usize) {
    let (image, rows, stream, now) = recorded(ops);
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
        let outcome = order_once(&mut disk, order(stream, range), &clock, &mut || false);
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
            let again = order_once(&mut disk, order(stream, range), &clock, &mut || false);
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
