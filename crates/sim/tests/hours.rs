//! Promise 1: what was admitted loses nothing, whatever is read beside it: hours of virtual time over emulated drives.
//!
//! `HOLDFAST_HOURS=100000` plays so many seeds, `HOLDFAST_HOUR=7` that one, and says how it went.

use holdfast_sim::{Scene, play};
use std::time::Duration;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Plays one hour; what is wrong with it.
fn wrong(seed: u64, tell: bool) -> Option<String> {
    let scene = Scene::from_seed(seed);
    let verdict = play(&scene);
    if tell {
        println!("{scene}\n{verdict:#?}");
    }
    let durable = holdfast_ring::admit(&scene.measured, &scene.load, &scene.shape).ok()?.durable_after;
    if verdict.lost > 0.0 {
        return Some(format!("lost {:.0} bytes", verdict.lost));
    }
    if verdict.slots == 0 || verdict.arrived < scene.load.rate.0 as f64 {
        return Some(format!("nothing happened: {verdict:?}"));
    }
    let fills = scene.shape.slot.0 as f64 / scene.load.rate.0 as f64;
    let soon = fills <= 3.0 * scene.shape.slot.0 as f64 / scene.measured.write.0 as f64;
    if soon && verdict.oldest > durable + Duration::from_millis(1) {
        return Some(format!("data was durable after {:?}, published are {durable:?}", verdict.oldest));
    }
    None
}

#[test]
fn what_was_admitted_loses_nothing() {
    if let Some(seed) = number("HOLDFAST_HOUR") {
        assert_eq!(wrong(seed, true), None);
        return;
    }
    let seeds = number("HOLDFAST_HOURS").unwrap_or(300);
    let bad: Vec<(u64, String)> = (0..seeds).filter_map(|seed| Some((seed, wrong(seed, false)?))).collect();
    for (seed, why) in &bad {
        println!("hour {seed}: {why}");
    }
    let first = bad.first().map(|(seed, why)| {
        format!("HOLDFAST_HOUR={seed} cargo test -p holdfast-sim --test hours -- --nocapture: {why}")
    });
    assert!(bad.is_empty(), "{} of {seeds} hours went wrong; {}", bad.len(), first.unwrap_or_default());
}
