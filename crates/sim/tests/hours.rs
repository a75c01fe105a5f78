//! Promise 1: what was admitted loses nothing, whatever is read beside it: hours of virtual time over emulated drives.
//! More of them, and one in words: `cargo run --release -p holdfast-sim --bin hours -- --help`.

use holdfast_sim::{Scene, play};

#[test]
fn what_was_admitted_loses_nothing() {
    let wrong = |seed| {
        let scene = Scene::from_seed(seed);
        play(&scene).wrong(&scene).map(|why| (seed, why))
    };
    let bad: Vec<(u64, String)> = (0..300).filter_map(wrong).collect();
    for (seed, why) in &bad {
        println!("hour {seed}: {why}");
    }
    let first = bad.first().map(|(seed, _)| {
        format!("cargo run --release -p holdfast-sim --bin hours -- --seed {seed} tells of it")
    });
    assert!(bad.is_empty(), "{} hours went wrong; {}", bad.len(), first.unwrap_or_default());
}
