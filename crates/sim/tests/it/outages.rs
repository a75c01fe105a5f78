//! Tests of a device that fails whole and returns, again and again, at any moment: in the middle of a slot,
//! of a commit, of a snapshot, of the writes that are tried again. Sources are drained meanwhile. What was
//! taken is there, undamaged, until its age comes, and a reader without the recorder finds it at any time.
//! Promises 2, 3, 5 and 6.
//!
//! One seed again: `HOLDFAST_SEED=123 cargo test -p holdfast-sim outages`. More: `HOLDFAST_SEEDS=20` (times as many).
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use holdfast_base::Timestamp;
use holdfast_media::{FaultPlan, Seed};
use holdfast_ring::{Config, Range, SlotLook};
use holdfast_sim::{Op, Setup, World, seeds};
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);

/// Longer than a device that does not answer is left alone.
const LONG: u64 = 4_000;

/// Moments at which anything may happen.
const MOMENTS: u64 = 400;

fn setup(seed: u64, chance: &mut Seed) -> Setup {
    let slow = chance.below(4) as usize;
    let plan = FaultPlan {
        latency: [0, 1, 5, 60][slow] * MS,
        jitter: [0, 3, 30, 900][slow] * MS,
        reorder: chance.below(2) == 0,
        sector: [512, 4096][chance.below(2) as usize],
        ..FaultPlan::default()
    };
    let config = Config {
        buffers: 2 + chance.below(5) as u32,
        flush: Duration::from_secs(1),
        writes: 1 + chance.below(3) as usize,
    };
    Setup { seed, slots: 8 + chance.below(24) as u32, config, plan, ..Setup::plain() }
}

/// How long until the next moment: often within what one request takes, now and then past all retries.
fn pause(chance: &mut Seed) -> Duration {
    match chance.below(12) {
        0..=3 => Duration::ZERO,
        4..=6 => Duration::from_micros(chance.below(3_000)),
        7..=9 => Duration::from_millis(chance.below(80)),
        10 => Duration::from_millis(chance.below(1_200)),
        _ => Duration::from_millis(chance.below(LONG)),
    }
}

/// What is on the medium now, for somebody who only looks.
fn look_from_outside(world: &mut World) -> Result<(), String> {
    let bound = world.bound();
    let image = world.disk()?.seen();
    world.inspect(&image, bound).map(drop)
}

#[derive(Default)]
struct Tally {
    outages: u32,
    absent: u32,
    dropped: u32,
}

fn live(seed: u64, tally: &mut Tally) -> Result<(), String> {
    let chance = &mut Seed::new(seed ^ 0x0a7a);
    let mut world = World::new(setup(seed, chance))?;
    world.model.outages = true;
    let (mut out, mut outages, mut size) = (false, 0, 3_000);
    for moment in 0..MOMENTS {
        if chance.below(if out { 12 } else { 30 }) == 0 {
            if out {
                world.device_returns()?;
            } else {
                world.device_fails(chance.below(3) == 0)?;
                outages += 1;
            }
            out = !out;
        }
        match chance.below(40) {
            0 => size = [40, 700, 3_000, 8_000][chance.below(4) as usize],
            1 if chance.below(3) == 0 => {
                let range = Range { from: world.now() - 300 * MS, to: Timestamp::MAX, ..Range::ALL };
                world.hold(Vec::new(), range, None, Timestamp::MAX, false)?;
            }
            2 | 3 if !out => world.run(&Op::Release(chance.below(4) as u8))?,
            4 => world.seal(holdfast_format::SlotFlags::SHORT)?,
            _ => {}
        }
        for _ in 0..chance.below(12) {
            tally.dropped += u32::from(!world.offer(chance.below(3) as u8, size)?);
        }
        world.pass(pause(chance))?;
        tally.absent += u32::from(world.recorder()?.driver.ring().is_absent());
        world.look()?;
        if moment % 40 == 0 {
            look_from_outside(&mut world)?;
        }
    }
    if out {
        world.device_returns()?;
    }
    match chance.below(3) {
        0 => {
            let bound = world.mourn()?;
            let image = world.power_cut()?;
            world.resume(image, bound, None)?;
        }
        1 => {}
        _ => world.pass(Duration::from_secs(8))?,
    }
    world.run(&Op::Write { stream: 0, count: 200, bytes: 3_000, every: MS, event: false })?;
    world.pass(Duration::from_secs(70))?;
    tally.outages += outages;
    let ring = world.recorder()?.driver.ring();
    // However short an outage was: no place was bad.
    let bad = ring.slot_looks(holdfast_base::SlotNo(0), u32::MAX).filter(|s| s.look == SlotLook::Bad).count();
    if bad > 0 || ring.is_absent() {
        return Err(format!("{bad} slots are bad after {outages} outages, {:?}", ring.device()));
    }
    world.finish()
}

#[test]
fn a_device_that_fails_and_returns_at_any_moment_damages_nothing_that_was_taken() {
    let mut tally = Tally::default();
    for seed in seeds(60) {
        live(seed, &mut tally).unwrap_or_else(|error| {
            panic!("HOLDFAST_SEED={seed} cargo test -p holdfast-sim outages: {error}")
        });
    }
    let Tally { outages, absent, dropped } = tally;
    assert!(
        outages > 3 && absent > 0 && dropped > 0,
        "{outages} outages, {absent} absent, {dropped} dropped"
    );
}
