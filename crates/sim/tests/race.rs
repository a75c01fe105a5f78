//! Holds given while the ring overwrites its oldest slots, on a slow disk that reorders: once a hold is acknowledged, what it
//! covers is never overwritten. Promise 4.
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
    match chance.below(10) {
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
        _ => Op::Release(chance.below(9) as u8),
    }
}

#[test]
fn what_an_acknowledged_hold_covers_is_never_overwritten() {
    let (mut holds, mut laps) = (0, 0);
    for seed in seeds(60) {
        let again = format!("HOLDFAST_SEED={seed} cargo test -p holdfast-sim --test race");
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
    }
    assert!(holds > 100 && laps > 100, "{holds} holds in {laps} laps");
}
