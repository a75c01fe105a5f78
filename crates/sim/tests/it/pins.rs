//! Tests of slots that queries pin: they outlast all others, a restart forgets them, and capture never waits
//! for one. Promises 1 and 3.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use holdfast_base::{Sequence, SlotNo, Timestamp};
use holdfast_ring::{Range, SlotLook, SlotStatus};
use holdfast_sim::{Op, Setup, World};
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);

/// A ring that has been written round.
fn full(slots: u32) -> World {
    let mut world = World::new(Setup { slots, ..Setup::plain() }).unwrap();
    fill(&mut world, slots + 10);
    world
}

/// Fills so many slots; every element finds a place.
fn fill(world: &mut World, slots: u32) {
    for number in 0..slots * 21 {
        assert!(world.element(number as u8 % 2, 3_000, false).unwrap());
        world.pass(MS).unwrap();
    }
}

fn looks(world: &mut World) -> Vec<SlotStatus> {
    world.look().unwrap();
    let mut slots: Vec<_> = world.recorder().unwrap().driver.ring().slot_looks(SlotNo(0), u32::MAX).collect();
    slots.retain(SlotStatus::has_data);
    slots.sort_unstable_by_key(|slot| slot.age);
    slots
}

fn pinned(world: &mut World) -> Vec<Sequence> {
    let pinned = looks(world).into_iter().filter(|slot| slot.look == SlotLook::Pinned);
    pinned.map(|slot| slot.sequence).collect()
}

#[test]
fn what_is_pinned_outlives_laps_and_a_restart_forgets_it() {
    for crash in [false, true] {
        // Three may be pinned.
        let mut world = full(60);
        let oldest: Vec<Sequence> = looks(&mut world).iter().take(3).map(|slot| slot.sequence).collect();
        world.pin(1, 0, 9).unwrap();
        assert_eq!(pinned(&mut world), oldest);
        fill(&mut world, 200);
        assert_eq!(pinned(&mut world), oldest);
        assert!(world.passed_over > 3, "{}", world.passed_over);
        for number in 0..3 {
            world.run(&Op::Read(number)).unwrap();
        }
        // Another client gets some, and the first keeps what it needs first.
        world.pin(2, 20, 9).unwrap();
        let shared = pinned(&mut world);
        assert_eq!((shared.len(), &shared[..2]), (3, &oldest[..2]));
        world.pin(1, 0, 0).unwrap();
        assert_eq!(pinned(&mut world), shared[2..]);
        world.pin(1, 0, 9).unwrap();
        assert_eq!(pinned(&mut world), shared);
        world.run(&if crash { Op::Crash { after: 0, draw: 7 } } else { Op::Restart }).unwrap();
        assert!(pinned(&mut world).is_empty());
        fill(&mut world, 70);
        assert!(looks(&mut world).iter().all(|slot| !oldest.contains(&slot.sequence)));
        world.finish().unwrap();
    }
}

#[test]
fn where_holds_leave_nothing_else_capture_takes_what_is_pinned_at_once() {
    // Ten may be pinned, of some twenty that no hold can have.
    let mut world = full(200);
    let may_be_held = world.recorder().unwrap().driver.ring().status("").slots.holdable as usize;
    let slots = looks(&mut world);
    let youngest = slots[slots.len() - may_be_held..].iter().map(|slot| (slot.sequence, slot.sequence));
    world.hold(Vec::new(), Range::ALL, Some(youngest.collect()), Timestamp::MAX, true).unwrap();
    let mut lost = 0;
    for _ in 0..120 {
        world.pin(1, 0, 12).unwrap();
        let before = pinned(&mut world);
        fill(&mut world, 2);
        let left = pinned(&mut world);
        lost += before.iter().filter(|sequence| !left.contains(sequence)).count();
    }
    assert!(lost > 10, "{lost}");
    assert_eq!(world.refused, 0);
    world.finish().unwrap();
}
