//! Tests of one write that takes far longer than those after it, on a device that takes several at once:
//! later writes do not wait for it, and all goes on when it ends. Promises 1, 2, 3 and 6.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use holdfast_format::SlotFlags;
use holdfast_ring::Config;
use holdfast_sim::{Op, Setup, World};
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);

/// How long the oldest write takes.
const LONG: Duration = Duration::from_secs(30);

/// A world whose oldest write takes long, with everything else done at once. The journal has a part of that slot if it is
/// flushed often.
fn overtaken(writes: usize, slots: u32, flush: Duration) -> World {
    let config = Config { buffers: 4, flush, writes };
    let mut world = World::new(Setup { slots, config, ..Setup::plain() }).unwrap();
    world.run(&Op::Write { stream: 0, count: 200, bytes: 3_000, every: MS, event: false }).unwrap();
    world.pass(Duration::from_secs(2)).unwrap();
    world.disk().unwrap().plan_mut().latency = LONG;
    let sequence = world.recorder().unwrap().seal(SlotFlags::SHORT).unwrap();
    world.disk().unwrap().plan_mut().latency = Duration::ZERO;
    world.model.seal(sequence.0);
    world
}

/// Records for some laps; the longest that an element had to wait.
fn laps(world: &mut World, slots: u32) -> Duration {
    let mut longest = Duration::ZERO;
    for number in 0..slots * 100 {
        let before = world.now();
        assert!(world.element(number as u8 % 2, 3_000, false).unwrap());
        longest = longest.max(world.now().since(before));
        world.pass(MS).unwrap();
    }
    longest
}

#[test]
fn capture_never_stands_still_while_it_has_buffers_and_slots() {
    for (writes, slots) in [(2, 16), (2, 40), (3, 12), (4, 70)] {
        let begin = Duration::from_secs(2);
        let mut world = overtaken(writes, slots, Duration::from_hours(1));
        let waited = laps(&mut world, slots);
        assert!(waited < Duration::from_secs(1), "{writes} writes, {slots} slots: {waited:?}");
        assert!(
            world.now().since(world.disk_start()) < begin + LONG,
            "all of that was beside the long write"
        );
        // The power goes, or the long write ends.
        let bound = world.mourn().unwrap();
        let image = world.power_cut().unwrap();
        let mut after = world.fork(image, bound, None).unwrap();
        after.run(&Op::Write { stream: 1, count: 300, bytes: 3_000, every: MS, event: false }).unwrap();
        after.finish().unwrap();
    }
}

#[test]
fn when_the_long_write_ends_all_goes_on_at_once() {
    for (writes, slots) in [(2, 16), (2, 40), (3, 12), (4, 70)] {
        // What the journal has of the slot must not be given up before it is written.
        let mut world = overtaken(writes, slots, Duration::from_secs(1));
        let begin = world.now();
        laps(&mut world, slots);
        assert!(world.now().since(begin) < LONG + 2 * slots * 50 * MS, "{writes} writes, {slots} slots");
        world.finish().unwrap();
    }
}
