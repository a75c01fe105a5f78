//! Tests of promise 1 over hours of virtual time on emulated drives: what was admitted loses nothing,
//! whatever is read beside it. More of them, and one in words: `cargo run --release -p holdfast-sim --bin
//! hours -- --help`.

use holdfast_base::{ByteSize, Rate};
use holdfast_media::Stall;
use holdfast_media::drive::DriveModel;
use holdfast_sim::{Habit, Places, Scene, play};
use std::time::Duration;

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

// Nor does it in slots so small that the drive's whole rate is not counted on.
#[test]
fn what_was_admitted_in_small_slots_loses_nothing() {
    let wrong = |seed| {
        let scene = Scene::small_from_seed(seed);
        play(&scene).wrong(&scene).map(|why| (seed, why))
    };
    let bad: Vec<(u64, String)> = (0..100).filter_map(wrong).collect();
    for (seed, why) in &bad {
        println!(
            "hour {seed}: {why}; again: cargo run --release -p holdfast-sim --bin hours -- --small --seed {seed}"
        );
    }
    assert!(bad.is_empty(), "{} hours went wrong", bad.len());
}

// Nor does it for streams that keep their word beside some that bring 1.5 to 10 times what they declared; and these lose
// only what is beyond it.
#[test]
fn who_keeps_its_word_loses_nothing_to_who_does_not() {
    let (mut beyond, mut bad) = (0, Vec::new());
    for seed in 0..80 {
        let scene = Scene::wild_from_seed(seed);
        let verdict = play(&scene);
        beyond += u64::from(verdict.beyond > 0.0);
        bad.extend(verdict.wrong(&scene).map(|why| (seed, why)));
    }
    for (seed, why) in &bad {
        println!(
            "hour {seed}: {why}; again: cargo run --release -p holdfast-sim --bin hours -- --wild --seed {seed}"
        );
    }
    assert!(bad.is_empty(), "{} hours went wrong", bad.len());
    assert!(beyond > 40, "in {beyond} of 80 hours somebody was to bring too much");
}

// A runway that is shorter than what is gathered is renewed also when there is no time for a commit: else capture would
// stand still for ever.
#[test]
fn a_ring_of_few_slots_goes_on_after_a_stall() {
    let stall =
        |first| Stall { first: Duration::from_secs(first), length: Duration::from_secs(10), every: None };
    let drive =
        DriveModel::rpm7200().squeezed(ByteSize::gib(18).0).stalling(stall(100)).stalling(stall(1000));
    let scene = Scene::steady(drive, 0.5, ByteSize::mib(256), 8, Rate(1));
    let rate = scene.admitted();
    let mut scene = scene.at(rate).read_by(2, Habit::Torn);
    scene.places = Places::Last(2);
    assert!(scene.slots() / 4 < 8, "the runway is a quarter of the ring");
    assert_eq!(play(&scene).wrong(&scene), None);
}
