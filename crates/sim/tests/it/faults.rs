//! Tests of a failing device, one fault at a time. Promises 2, 4, 5 and 6.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use holdfast_base::{BLOCK, SlotNo, Timestamp};
use holdfast_format::Cause;
use holdfast_media::{Buffer, FaultPlan, Seed, Stall, Survival};
use holdfast_ring::{Class, Config, Depth, Range, SlotCheck, SlotLook, SlotRead};
use holdfast_sim::{Bound, Op, Setup, Stage, World, read_slot, survey};
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);

fn write(stream: u8, count: u16, bytes: u32, every: Duration) -> Op {
    Op::Write { stream, count, bytes, every, event: false }
}

fn world(setup: Setup) -> World {
    World::new(setup).unwrap()
}

fn slow_disk() -> FaultPlan {
    FaultPlan { latency: 5 * MS, jitter: 5 * MS, ..FaultPlan::default() }
}

fn looks(world: &mut World, look: SlotLook) -> Vec<SlotNo> {
    let ring = world.recorder().unwrap().driver.ring();
    ring.slot_looks(SlotNo(0), u32::MAX).filter(|s| s.look == look).map(|s| s.slot).collect()
}

fn errors(world: &mut World) -> u64 {
    world.recorder().unwrap().driver.counts().errors
}

fn slot_range(world: &World, slot: u32) -> std::ops::Range<u64> {
    let geometry = &world.superblock().geometry;
    let at = geometry.slot_offset(SlotNo(slot));
    at..at + geometry.slot_bytes
}

fn hold_all(world: &mut World) {
    let range = Range { from: world.now() - Duration::from_secs(2), to: Timestamp::MAX, ..Range::ALL };
    world.hold(Vec::new(), range, None, Timestamp::MAX, true).unwrap();
    assert!(world.model.holds.values().any(|h| h.acked), "the hold was refused");
}

#[test]
fn a_slot_that_fails_once_is_written_again_and_stays() {
    let mut world = world(Setup { plan: slow_disk(), ..Setup::plain() });
    world.run(&write(0, 30, 1_000, MS)).unwrap();
    world.disk().unwrap().plan_mut().write_error = 1.0;
    world.seal(holdfast_format::SlotFlags::SHORT).unwrap();
    while errors(&mut world) == 0 {
        world.pass(MS).unwrap();
    }
    world.disk().unwrap().plan_mut().write_error = 0.0;
    world.pass(Duration::from_secs(2)).unwrap();
    world.look().unwrap();
    assert_eq!((errors(&mut world), looks(&mut world, SlotLook::Live)), (1, vec![SlotNo(0)]));
    assert_eq!(looks(&mut world, SlotLook::Bad), []);
    world.finish().unwrap();
}

#[test]
fn a_slot_that_fails_again_and_again_is_bad_for_ever_and_its_data_goes_to_the_next() {
    let mut world = world(Setup { plan: slow_disk(), ..Setup::plain() });
    let bad = slot_range(&world, 2);
    world.setup.plan.unwritable = vec![bad.clone()];
    world.disk().unwrap().plan_mut().unwritable = vec![bad];
    // Three laps; the model misses nothing.
    world.run(&write(0, 600, 4_000, MS)).unwrap();
    assert_eq!(looks(&mut world, SlotLook::Bad), [SlotNo(2)]);
    world.run(&Op::Restart).unwrap();
    assert_eq!(looks(&mut world, SlotLook::Bad), [SlotNo(2)]);
    world.run(&write(0, 200, 4_000, MS)).unwrap();
    assert_eq!(world.refused, 0);
    world.run(&Op::Crash { after: 3, draw: 5 }).unwrap();
    assert_eq!(looks(&mut world, SlotLook::Bad), [SlotNo(2)]);
    world.finish().unwrap();
}

fn everywhere() -> Vec<std::ops::Range<u64>> {
    let all = 0..u64::MAX;
    vec![all]
}

/// A world that has recorded for some laps, then as much as its buffers take while every write is an error.
fn in_an_outage(writes: usize, seed: u64) -> World {
    let config = Config { buffers: 4, flush: Duration::from_secs(1), writes };
    let mut world = world(Setup { plan: slow_disk(), config, seed, ..Setup::plain() });
    world.run(&write(0, 500, 3_000, MS)).unwrap();
    world.disk().unwrap().plan_mut().unwritable = everywhere();
    world.run(&write(0, 30, 3_000, MS)).unwrap();
    world
}

#[test]
fn a_device_that_answers_only_errors_is_absent_and_none_of_its_slots_is_bad() {
    for (writes, seconds) in [(1, 2), (1, 7), (1, 40), (2, 3), (2, 9), (3, 1), (3, 30)] {
        let mut world = in_an_outage(writes, seconds);
        world.pass(Duration::from_secs(seconds)).unwrap();
        let ring = world.recorder().unwrap().driver.ring();
        assert!(ring.is_absent(), "{writes} writes at once, {seconds} s");
        assert_eq!(ring.starved(), Some(Cause::DeviceAbsent));
        assert!(ring.failed_writes() > 1);
        world.look().unwrap();
        world.disk().unwrap().plan_mut().unwritable.clear();
        world.pass(Duration::from_secs(2)).unwrap();
        assert!(!world.recorder().unwrap().driver.ring().is_absent(), "{writes} at once, {seconds} s");
        world.run(&write(0, 1_500, 3_000, MS)).unwrap();
        assert_eq!(looks(&mut world, SlotLook::Bad), [], "{writes} at once, {seconds} s");
        assert_eq!(world.recorder().unwrap().driver.ring().failed_writes(), 0, "all were tried again");
        assert_eq!(world.refused, 0);
        world.finish().unwrap();
    }
}

#[test]
fn a_crash_in_an_outage_costs_no_slot_and_nothing_that_was_durable() {
    for seed in 1..=20 {
        let mut world = in_an_outage(1 + seed as usize % 2, seed);
        world.pass(Duration::from_millis(seed * 170)).unwrap();
        let bound = world.mourn().unwrap();
        let image = world.power_cut().unwrap();
        world.resume(image, bound, None).unwrap();
        world.run(&write(1, 900, 3_000, MS)).unwrap();
        assert_eq!(looks(&mut world, SlotLook::Bad), []);
        world.finish().unwrap();
    }
}

#[test]
fn bad_neighbours_are_told_from_a_device_that_is_gone() {
    for (first, last, writes) in [(2, 3, 1), (0, 4, 1), (5, 9, 2), (3, 8, 3)] {
        let config = Config { buffers: 4, flush: Duration::from_secs(1), writes };
        let mut world = world(Setup { slots: 24, plan: slow_disk(), config, ..Setup::plain() });
        let bad: Vec<_> = (first..=last).map(|no| slot_range(&world, no)).collect();
        world.setup.plan.unwritable = bad.clone();
        world.disk().unwrap().plan_mut().unwritable = bad;
        let begin = world.now();
        world.run(&write(0, 2_500, 3_000, MS)).unwrap();
        let took = world.now().since(begin);
        let numbers: Vec<_> = (first..=last).map(SlotNo).collect();
        assert_eq!(looks(&mut world, SlotLook::Bad), numbers);
        assert_eq!((world.refused, world.recorder().unwrap().driver.ring().failed_writes()), (0, 0));
        assert!(took < Duration::from_secs(15), "capture stood still: {took:?}");
        world.run(&Op::Crash { after: 3, draw: 5 }).unwrap();
        assert_eq!(looks(&mut world, SlotLook::Bad), numbers);
        world.finish().unwrap();
    }
}

#[test]
fn a_bad_place_in_the_journal_does_not_end_capture() {
    let mut world = world(Setup { plan: slow_disk(), ..Setup::plain() });
    let journal = world.superblock().geometry.extent_offset(0);
    let extent = world.superblock().geometry.extent_bytes();
    let block = |at: u64| at..at + BLOCK as u64;
    world.disk().unwrap().plan_mut().unwritable =
        vec![block(journal + 81_920), block(journal + extent + 98_304)];
    for _ in 0..6 {
        world.run(&write(0, 30, 1_500, 600 * MS)).unwrap();
        hold_all(&mut world);
        world.run(&Op::Release(0)).unwrap();
    }
    hold_all(&mut world);
    assert!(errors(&mut world) >= 8, "the bad places were met often: {}", errors(&mut world));
    assert_eq!(world.refused, 0);
    world.run(&Op::Crash { after: 2, draw: 3 }).unwrap();
    world.finish().unwrap();
}

#[test]
fn while_the_journal_fails_nothing_is_acknowledged_and_afterwards_nothing_is_missing() {
    let mut world = world(Setup { plan: slow_disk(), ..Setup::plain() });
    world.run(&write(0, 20, 1_500, 300 * MS)).unwrap();
    let journal = world.superblock().geometry.extent_offset(0);
    let all = journal..journal + 2 * world.superblock().geometry.extent_bytes();
    world.disk().unwrap().plan_mut().unwritable = vec![all];
    let range = Range { from: Timestamp(0), ..Range::ALL };
    world.hold(Vec::new(), range, None, Timestamp::MAX, false).unwrap();
    world.pass(Duration::from_secs(8)).unwrap();
    assert!(world.model.holds.values().all(|h| !h.acked), "acknowledged without a record");
    assert!(world.recorder().unwrap().driver.ring().is_absent());
    world.disk().unwrap().plan_mut().unwritable.clear();
    world.pass(Duration::from_secs(3)).unwrap();
    assert!(world.model.holds.values().all(|h| h.acked));
    world.run(&Op::Crash { after: 0, draw: 1 }).unwrap();
    assert_eq!(world.model.holds.len(), 1);
    world.finish().unwrap();
}

#[test]
fn during_a_stall_the_published_bound_grows_with_what_waits() {
    for millis in (200..12_000).step_by(550) {
        let mut world = world(Setup { plan: slow_disk(), seed: millis, ..Setup::plain() });
        world.run(&write(0, 20, 1_500, 300 * MS)).unwrap();
        let first = world.now().since(world.disk_start()) + Duration::from_millis(millis % 1_000);
        let stall = Stall { first, length: Duration::from_secs(9), every: None };
        world.disk().unwrap().plan_mut().stalls.push(stall);
        // Until somewhere in the stall or after it.
        let pause = Duration::from_millis(if millis % 1_100 < 600 { 40 } else { 350 });
        let end = world.now() + Duration::from_millis(millis);
        while world.now() < end {
            world.element(1, 3_000, false).unwrap();
            world.pass(pause).unwrap();
        }
        let published = world.recorder().unwrap().driver.ring().status("").durable_after;
        world.look().unwrap();
        let bound = Bound { durable: world.now() - published, now: world.now() };
        for draw in 0..6 {
            let image = world.power_cut().unwrap();
            world.inspect(&image, bound).unwrap_or_else(|e| panic!("{millis} ms, draw {draw}: {e}"));
        }
    }
}

#[test]
fn a_device_that_dies_and_returns_costs_nothing_that_was_taken() {
    let mut world = world(Setup { plan: slow_disk(), ..Setup::plain() });
    for round in 0..8 {
        world.run(&write(0, 40, 3_000, MS * (round % 3) * 20)).unwrap();
        let span = Duration::from_millis(u64::from(round) * 1_300);
        world.run(&Op::Death(span)).unwrap();
        world.pass(Duration::from_secs(2)).unwrap();
        assert!(!world.recorder().unwrap().driver.ring().is_absent(), "the device is back");
    }
    assert_eq!(world.refused, 0);
    world.finish().unwrap();
}

#[test]
fn late_writes_never_make_wrong_data_of_right_data() {
    for seed in 1..=30 {
        let mut world = world(Setup { plan: slow_disk(), seed, ..Setup::plain() });
        world.run(&write(0, 100, 3_000, 2 * MS)).unwrap();
        let plan = world.disk().unwrap().plan_mut();
        (plan.zombie, plan.zombie_after) = (0.2, Duration::from_millis(400 + seed * 50));
        for number in 0..200 {
            if world.element(number as u8, 2_500, false).is_err() {
                break;
            }
            if world.pass(3 * MS).is_err() {
                break;
            }
        }
        world.disk().unwrap().plan_mut().zombie = 0.0;
        let _ = world.pass(Duration::from_secs(5));
        // Whatever stands there: read back it is an error, or exactly what was recorded under that sequence.
        let image = world.power_cut().unwrap();
        let Ok(found) = survey(&image) else { continue };
        for slot in &found.found {
            let Ok(seen) = &slot.slot else { continue };
            let model = &world.model.slots;
            if let Some(pushed) = model.get(&slot.sequence.0) {
                let right = seen.rows.iter().zip(&pushed.rows).all(|(seen, pushed)| pushed.is(seen));
                assert!(right, "seed {seed}: sequence {} reads back wrong", slot.sequence);
            }
        }
    }
}

#[test]
fn silent_damage_is_an_error_that_names_the_place_and_never_data() {
    let mut world = world(Setup { preamble: 0, ..Setup::plain() });
    world.run(&write(0, 40, 1_000, MS)).unwrap();
    world.run(&write(1, 40, 37, MS)).unwrap();
    world.seal(holdfast_format::SlotFlags::SHORT).unwrap();
    let superblock = world.superblock().clone();
    let slot = SlotNo(0);
    let at = superblock.geometry.slot_offset(slot);
    let image = world.disk().unwrap().seen().range(at, superblock.geometry.slot_bytes as usize);
    let right = read_slot(&image, &superblock).unwrap();
    let chance = &mut Seed::new(3);
    let mut found = 0;
    for _ in 0..1_500 {
        let mut wrong = image.clone();
        let byte = chance.below(right.header.bytes() as u64) as usize;
        wrong[byte] ^= 1 << chance.below(8);
        // The ring's own check and the reader's agree.
        let mut check = SlotCheck::new(slot, 0, Depth::Full);
        let mut damage = None;
        while let Some((from, len)) = check.next_read() {
            let from = from as usize;
            if let Err(error) = check.feed(&wrong[from..from + len], &superblock.key, superblock.ring) {
                damage = Some(error.to_string());
                break;
            }
        }
        match read_slot(&wrong, &superblock) {
            Ok(seen) => {
                assert_eq!(seen.rows, right.rows, "byte {byte} changed what is read");
                assert_eq!(damage, None, "byte {byte} is no damage");
            }
            Err(error) => {
                found += 1;
                assert!(damage.is_some(), "byte {byte} passes the ring's check: {error}");
            }
        }
    }
    assert!(found > 1_000, "{found} of 1500 flips were found");
}

#[test]
fn damage_is_found_behind_a_restart_and_stays_in_its_slot() {
    let mut world = world(Setup { preamble: 0, ..Setup::plain() });
    world.run(&write(0, 300, 2_000, MS)).unwrap();
    let disk = world.stop().unwrap().unwrap();
    let mut image = disk.seen();
    let (at, summary) = (slot_range(&world, 3).start, BLOCK as u64 + 100);
    image.flip(at + summary, 4);
    let victim = world.model.slots.values_mut().find(|s| s.stage == Stage::Written(SlotNo(3))).unwrap();
    victim.damaged = true;
    let now = world.now();
    world.resume(image, Bound { durable: now, now }, None).unwrap();
    world.pass(Duration::from_secs(1)).unwrap();
    assert_eq!(looks(&mut world, SlotLook::Damaged), [SlotNo(3)]);
    world.run(&write(0, 600, 2_000, MS)).unwrap();
    assert_eq!(looks(&mut world, SlotLook::Damaged), [], "a new lap makes it whole");
    world.finish().unwrap();
}

#[test]
fn an_unreadable_slot_is_an_error_until_it_is_written_again() {
    let mut world = world(Setup::plain());
    world.run(&write(0, 200, 3_000, MS)).unwrap();
    let place = slot_range(&world, 1);
    let sequence = {
        let ring = world.recorder().unwrap().driver.ring();
        ring.slot_looks(SlotNo(1), 1).next().unwrap().sequence
    };
    world.disk().unwrap().plan_mut().unreadable = vec![place.clone()];
    let buffer = Buffer::aligned(64 << 10).unwrap();
    let now = world.now();
    let wanted = SlotRead { id: 1, class: Class::Export, client: 1, sequence, offset: 0, len: 64 << 10 };
    world.recorder().unwrap().driver.read(&wanted, buffer, now).unwrap();
    world.pass(MS).unwrap();
    let done = world.recorder().unwrap().driver.read_done().unwrap();
    let error = done.result.unwrap().unwrap_err();
    assert_eq!((error.what, error.offset), ("read", place.start));
    // Others read on, and the next lap heals it.
    world.run(&write(0, 400, 3_000, MS)).unwrap();
    world.run(&Op::Read(3)).unwrap();
    world.finish().unwrap();
}

#[test]
fn a_held_slot_that_cannot_be_read_at_a_restart_is_not_given_away() {
    // The last of the runway that were written are those whose headers a restart reads.
    for slots in 1..=6 {
        let mut world = world(Setup { preamble: 0, ..Setup::plain() });
        for _ in 0..slots {
            world.run(&write(0, 5, 3_000, MS)).unwrap();
            world.run(&Op::Seal).unwrap();
            world.pass(MS).unwrap();
        }
        hold_all(&mut world);
        let held = looks(&mut world, SlotLook::Held);
        assert_eq!(held.len(), slots);
        let bound = world.mourn().unwrap();
        let image = world.disk().unwrap().crash_with(Survival::Everything);
        world.setup.plan.unreadable = held.iter().map(|no| slot_range(&world, no.0)).collect();
        for slot in world.model.slots.values_mut() {
            slot.damaged |= matches!(slot.stage, Stage::Written(no) if held.contains(&no));
        }
        world.resume(image, bound, None).unwrap();
        world.disk().unwrap().plan_mut().unreadable.clear();
        world.setup.plan.unreadable.clear();
        world.run(&write(0, 600, 3_000, MS)).unwrap();
        let kept = looks(&mut world, SlotLook::Damaged);
        assert!(held.iter().all(|no| kept.contains(no)), "{held:?} were held, {kept:?} are left");
        let image = world.disk().unwrap().seen();
        for no in held {
            let place = slot_range(&world, no.0);
            let slot = read_slot(&image.range(place.start, 64 << 10), world.superblock()).unwrap();
            let model = &world.model.slots[&slot.header.sequence.0];
            assert!(slot.rows.iter().zip(&model.rows).all(|(seen, pushed)| pushed.is(seen)));
        }
    }
}

#[test]
fn a_growth_that_a_crash_cut_off_is_finished_by_the_next_run() {
    let mut cut_off = 0;
    for n in 1..=6 {
        let mut world = world(Setup { plan: slow_disk(), ..Setup::plain() });
        world.run(&write(0, 30, 3_000, MS)).unwrap();
        world.disk().unwrap().cut_after(n);
        world.run(&Op::Grow(2)).unwrap();
        if !world.is_dead() {
            break;
        }
        world.after_cut(n, None).unwrap();
        world.pass(Duration::from_secs(3)).unwrap();
        let slots = world.model.total;
        cut_off += u32::from(slots == 18);
        let image = world.disk().unwrap().seen();
        let found = survey(&image).unwrap().recovered.superblock.geometry.slots;
        assert_eq!(found, slots, "the superblock says what the journal says");
        world.finish().unwrap();
    }
    assert!(cut_off > 1, "a crash between journal and superblock was among them");
}
