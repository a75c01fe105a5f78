//! Seeded simulation of shipper, network and archive: files that grow, shrink and change; lost, late and reordered messages;
//! crashes at both ends; a full archive.
//!
//! A history is a function of its seed. After the faults the world heals, and the archive must have each file's contents.
//! `HOLDFAST_SEED=N` replays one history, `HOLDFAST_HISTORIES=N` runs another number of them.

mod archive;
mod files;
mod random;
mod world;

use world::{Faults, World};

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap())
}

fn run(seeds: std::ops::Range<u64>, faults: Faults) {
    let seeds = number("HOLDFAST_SEED").map_or(seeds, |seed| seed..seed + 1);
    for seed in seeds {
        let result = std::panic::catch_unwind(|| World::new(seed, faults).run());
        if let Err(cause) = result {
            eprintln!("replay by: HOLDFAST_SEED={seed} cargo test -p holdfast-ship simulation");
            std::panic::resume_unwind(cause);
        }
    }
}

fn histories(usual: u64) -> std::ops::Range<u64> {
    0..number("HOLDFAST_HISTORIES").unwrap_or(usual)
}

#[test]
fn archives_copy_equals_file_after_any_history() {
    run(histories(10_000), Faults { is_rewriting: true, has_crashes: true, has_damage: true });
}

#[test]
fn crashes_cost_at_most_the_segments_on_their_way() {
    run(histories(2_000), Faults { is_rewriting: false, has_crashes: true, has_damage: false });
}

#[test]
fn quiet_world_sends_each_byte_once() {
    run(histories(1_000), Faults { is_rewriting: false, has_crashes: false, has_damage: false });
}
