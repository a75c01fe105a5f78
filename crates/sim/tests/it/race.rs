//! Tests of holds given while the ring overwrites its oldest slots, on a slow disk that reorders: once a hold
//! is acknowledged, what it covers is never overwritten. Promise 4.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use holdfast_media::{FaultPlan, Seed};
use holdfast_ring::Config;
use holdfast_sim::{Op, Setup, World, seeds};
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);

fn setup(seed: u64) -> Setup {
    let chance = &mut Seed::new(seed);
    Setup {
        seed,
        slots: 8 + chance.below(8) as u32,
        config: Config {
            buffers: 2 + chance.below(3) as u32,
            flush: Duration::from_secs(1),
            writes: 1 + chance.below(3) as usize,
        },
        plan: FaultPlan {
            latency: MS,
            jitter: MS * (1 + chance.below(300) as u32),
            reorder: true,
            ..FaultPlan::default()
        },
        preamble: 0,
        ..Setup::plain()
    }
}

/// Full speed, and orders that nobody waits for, at every moment of a slot's life.
fn step(chance: &mut Seed) -> Op {
    let back = MS * chance.below(3_000) as u32;
    match chance.below(12) {
        0..=5 => Op::Write {
            stream: 0,
            count: 1 + chance.below(20) as u16,
            bytes: 5_000,
            every: MS * chance.below(20) as u32,
            event: false,
        },
        6 | 7 => Op::Hold {
            stream: None,
            back,
            span: MS * chance.below(600) as u32,
            by_event: false,
            lasts: None,
            wait: chance.below(4) == 0,
        },
        8 => {
            Op::HoldOrdinals { stream: 0, back: chance.below(90) as u16, count: 1 + chance.below(20) as u16 }
        }
        9 => Op::Release(chance.below(9) as u8),
        10 => Op::Find {
            stream: 0,
            back: chance.below(90) as u16,
            count: chance.below(20) as u16,
            quota: chance.below(4) as u8,
            lasts: None,
        },
        _ => Op::Extend {
            which: chance.below(9) as u8,
            stream: 0,
            back: chance.below(40) as u16,
            count: 1 + chance.below(40) as u16,
            wait: chance.below(4) == 0,
            durable: chance.below(2) == 0,
        },
    }
}

#[test]
fn what_an_acknowledged_hold_covers_is_never_overwritten() {
    let (mut holds, mut laps, mut extended) = (0, 0, 0);
    for seed in seeds(60) {
        let again = format!("HOLDFAST_SEED={seed} cargo test -p holdfast-sim --test it race");
        let mut world = World::new(setup(seed)).expect(&again);
        let chance = &mut Seed::new(!seed);
        for number in 0..150 {
            let op = step(chance);
            let why = |e| panic!("step {number}, {op:?}: {e}\n{again}");
            world.run(&op).unwrap_or_else(why);
        }
        world.finish().expect(&again);
        holds += world.model.hold_ids.len();
        laps += world.model.newest / u64::from(world.model.total);
        extended += world.extended;
    }
    assert!(holds > 100 && laps > 100, "{holds} holds in {laps} laps");
    assert!(extended > 20, "{extended} grew");
}

/// Slots on their way to a slow disk are named for a hold by condition, and the power goes when that has been acknowledged.
#[test]
fn what_a_hold_has_grown_by_is_there_after_a_crash_at_that_moment() {
    let mut extended = 0;
    for seed in seeds(60) {
        let again = format!("HOLDFAST_SEED={seed} cargo test -p holdfast-sim --test it race");
        let mut world = World::new(Setup { slots: 20, ..setup(seed) }).expect(&again);
        let chance = &mut Seed::new(!seed);
        for round in 0..8 {
            let bytes = 5_000;
            let count = 20 + chance.below(20) as u16;
            let steps = [
                Op::Find { stream: 0, back: 0, count: 0, quota: 4, lasts: None },
                Op::Write { stream: 0, count, bytes, every: Duration::ZERO, event: false },
                Op::Extend { which: 0, stream: 0, back: 24, count: 24, wait: true, durable: true },
                Op::Crash { after: 0, draw: chance.bits() },
                Op::Release(0),
            ];
            for op in steps {
                world.run(&op).unwrap_or_else(|e| panic!("round {round}, {op:?}: {e}\n{again}"));
            }
        }
        world.finish().expect(&again);
        extended += world.extended;
    }
    assert!(std::env::var_os("HOLDFAST_SEED").is_some() || extended > 300, "{extended} grew");
}
