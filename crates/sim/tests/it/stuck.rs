//! Tests of possible deadlocks: a journal that is full or takes a snapshot, a runway that is used up, a place
//! of the journal that cannot be written, a stop meanwhile. All go on, or report that the device does not
//! take what it must. Promises 2, 4 and 6.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use holdfast_base::{BLOCK, Timestamp};
use holdfast_format::{Cause, SlotFlags};
use holdfast_media::FaultPlan;
use holdfast_ring::{Config, Range, SlotLook};
use holdfast_sim::{Op, Setup, World};
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);

fn write(stream: u8, count: u16, bytes: u32, every: Duration) -> Op {
    Op::Write { stream, count, bytes, every, event: false }
}

fn slow_world(slots: u32, writes: usize, seed: u64) -> World {
    let config = Config { buffers: 3, flush: Duration::from_secs(1), writes };
    let plan = FaultPlan { latency: 40 * MS, jitter: 150 * MS, reorder: true, ..FaultPlan::default() };
    // Preambles that make a snapshot take several commits.
    World::new(Setup { slots, config, plan, seed, preamble: 2_480, ..Setup::plain() }).unwrap()
}

#[test]
fn a_journal_near_its_end_and_a_runway_that_is_used_up_never_wait_for_each_other() {
    for commits in 0..64 {
        let mut world = slow_world(8 + commits % 9, 1 + commits as usize % 3, u64::from(commits));
        // The extent is filled commit by commit to any place, the last of them with much of the open slot.
        world.run(&write(0, 1 + commits as u16, 40, 1_300 * MS)).unwrap();
        world.run(&write(1, 16, 3_000, MS)).unwrap();
        let range = Range { from: world.now() - Duration::from_secs(3), to: Timestamp::MAX, ..Range::ALL };
        world.hold(Vec::new(), range, None, Timestamp::MAX, false).unwrap();
        // Slots are sealed faster than the device takes them, for some laps, while the snapshot is written.
        world.run(&write(0, 400, 8_000, MS)).unwrap();
        assert_eq!(world.refused, 0, "{commits} commits");
        match commits % 3 {
            0 => world.run(&Op::Restart).unwrap(),
            1 => world.run(&Op::Crash { after: 4, draw: u64::from(commits) }).unwrap(),
            _ => {}
        }
        world.finish().unwrap_or_else(|e| panic!("{commits} commits: {e}"));
    }
}

/// Blocks of the journal: all of an extent, its beginning, or a place in the middle of it.
fn places(world: &World) -> Vec<std::ops::Range<u64>> {
    let geometry = &world.superblock().geometry;
    let block = BLOCK as u64;
    let of = |extent| {
        let at = geometry.extent_offset(extent);
        [at..at + geometry.extent_bytes(), at..at + block, at + 5 * block..at + 6 * block]
    };
    (0..2).flat_map(of).collect()
}

#[test]
fn a_place_of_the_journal_that_takes_nothing_is_shown_and_tried_again_and_a_stop_says_so() {
    let mut shown = 0;
    for which in 0..6 {
        for (sealed, commits) in [(0, 0), (0, 20), (40, 3), (200, 12)] {
            let at = format!("place {which}, {sealed} elements, {commits} commits");
            let mut world = slow_world(16, 2, which);
            let place = places(&world)[which as usize].clone();
            world.run(&write(0, 40, 1_500, 100 * MS)).unwrap();
            world.disk().unwrap().plan_mut().unwritable = vec![place];
            // Until the ring stands still, or has found a way around the place.
            for number in 0..sealed + commits {
                if world.recorder().unwrap().open().is_some_and(|_| world.recorder().unwrap().room() > 4_000)
                {
                    world.element(number as u8, 3_000, false).unwrap();
                } else {
                    world.seal(SlotFlags::default()).unwrap();
                    for _ in 0..50 {
                        if world.recorder().unwrap().driver.ring().starved().is_some() {
                            break;
                        }
                        if let Some(sequence) = world.recorder().unwrap().open_slot() {
                            world.model.open(sequence.0).unwrap();
                            break;
                        }
                        world.pass(100 * MS).unwrap();
                    }
                }
                world.pass(if number < sealed { 5 * MS } else { 1_200 * MS }).unwrap();
            }
            // A stop: everything is sealed, and is to be written.
            world.seal(SlotFlags::SHORT).unwrap();
            world.pass(Duration::from_secs(10)).unwrap();
            let driver = &world.recorder().unwrap().driver;
            if !driver.is_idle() {
                shown += 1;
                let before = driver.counts().errors;
                for _ in 0..30 {
                    let ring = world.recorder().unwrap().driver.ring();
                    assert!(ring.is_absent() && ring.starved() == Some(Cause::DeviceAbsent), "{at}");
                    world.pass(400 * MS).unwrap();
                }
                let driver = &world.recorder().unwrap().driver;
                let tries = driver.counts().errors - before;
                assert!((6..=30).contains(&tries), "{at}: tried again {tries} times in 12 s");
                assert!(driver.last_error().unwrap().contains("write"), "{at}: {:?}", driver.last_error());
                assert_eq!(driver.on_the_way().count(), 0, "{at}: what needs no journal is written");
            }
            let looks = world.recorder().unwrap().driver.ring().slot_looks(holdfast_base::SlotNo(0), 99);
            assert_eq!(looks.filter(|s| s.look == SlotLook::Bad).count(), 0, "{at}");
            // Whatever it was, it is over; or the power goes.
            world.disk().unwrap().plan_mut().unwritable.clear();
            if sealed == 40 {
                world.run(&Op::Crash { after: 0, draw: which }).unwrap();
            }
            world.run(&write(1, 100, 3_000, MS)).unwrap();
            world.finish().unwrap_or_else(|e| panic!("{at}: {e}"));
        }
    }
    assert!(shown > 4, "{shown} times the ring stood still");
}

#[test]
fn a_snapshot_that_waits_for_a_slot_and_a_slot_that_waits_for_its_runway_both_get_done() {
    // The outage begins while the journal has a part of a sealed slot: every place of the runway fails, so does the journal's,
    // and what names new places cannot be durable before the slot is written.
    let steps = [
        Op::Write { stream: 2, count: 72, bytes: 0, every: 20 * MS, event: false },
        Op::Stall(3_706 * MS),
        Op::Seal,
        Op::Write { stream: 1, count: 42, bytes: 829, every: Duration::ZERO, event: false },
        Op::Outage(9_292 * MS),
    ];
    holdfast_sim::run(42, &steps).unwrap();
}
