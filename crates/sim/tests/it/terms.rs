//! Counter-tests of promise 1: a guarantee that forgets a term of the inequality is not kept. They show that
//! the simulated hours are hard enough.

use holdfast_base::Rate;
use holdfast_format::Measured;
use holdfast_ring::{Load, Policy, Shape, figures};
use holdfast_sim::{Places, Scene, play_under};
use std::time::Duration;

/// The hour, run by somebody who believes this of the drive and of what comes, and admits as much as follows from it.
fn believing(seed: u64, change: impl Fn(&mut Measured, &mut Load)) -> (Scene, Policy) {
    let mut scene = Scene::from_seed(seed);
    let (mut measured, mut load) = (scene.measured, scene.load);
    change(&mut measured, &mut load);
    let ample = Shape { buffers: u32::MAX, ..scene.shape };
    let admits = |measured: &Measured, load: &Load| figures(measured, load, &ample).with_reads.0 as f64;
    let more = admits(&measured, &load) / admits(&scene.measured, &scene.load);
    load.rate = Rate((load.rate.0 as f64 * more) as u64);
    for stream in &mut scene.streams {
        stream.rate *= more;
    }
    let truly = std::mem::replace(&mut scene.measured, measured);
    scene.load = load;
    scene = scene.just_enough();
    let policy = scene.policy();
    scene.measured = truly;
    (scene, policy)
}

/// Whether one of these hours loses something. Each test names seeds that did when it was written, and some more, so
/// that other scenes will do, too.
fn loses(seeds: &[u64], run: impl Fn(u64) -> (Scene, Policy)) -> bool {
    seeds.iter().copied().chain(0..60).any(|seed| lost(run(seed)))
}

fn lost((scene, policy): (Scene, Policy)) -> bool {
    play_under(&scene, policy).lost > 0.0
}

/// Hours in which holds come and go.
fn changing() -> impl Iterator<Item = u64> {
    (0..300).filter(|seed| matches!(Scene::from_seed(*seed).places, Places::Changing { .. }))
}

/// More comes than was admitted.
fn faster(seed: u64) -> (Scene, Policy) {
    let (mut scene, policy) = believing(seed, |_, _| ());
    for stream in &mut scene.streams {
        stream.rate *= 1.05;
    }
    (scene, policy)
}

#[test]
fn whoever_takes_the_drive_for_better_than_it_is_loses_data() {
    assert!(
        !loses(&[44, 71, 2469], |seed| believing(seed, |_, _| ())),
        "who believes what is true loses nothing"
    );
    assert!(loses(&[0], |seed| believing(seed, |drive, _| drive.stall = Duration::ZERO)), "σ");
    assert!(loses(&[71], |seed| believing(seed, |drive, _| drive.stalled = 0)), "ρ");
    assert!(loses(&[44], |seed| believing(seed, |drive, _| drive.read_error = Duration::ZERO)), "e");
    let nimble = |seed| believing(seed, |drive, _| drive.reposition = Duration::ZERO);
    assert!(loses(&[2469], nimble), "s, and with it j");
}

#[test]
fn whoever_forgets_a_burst_or_the_gathered_slots_loses_data() {
    assert!(loses(&[5], |seed| believing(seed, |_, load| load.burst.0 = 0)), "b");
    let without = |buffers: fn(&Policy) -> u32| {
        move |seed| {
            let (scene, mut policy) = believing(seed, |_, _| ());
            policy.buffers = buffers(&policy).max(2);
            (scene, policy)
        }
    };
    assert!(loses(&[1], without(|policy| policy.buffers.saturating_sub(policy.gather + 1))), "g + 1");
}

#[test]
fn whoever_lets_more_in_than_was_admitted_loses_data() {
    assert!(loses(&[10], faster));
}

// Hours in which holds come and go tell, too: some of those that would go well in order.
#[test]
fn holds_that_come_and_go_save_nobody() {
    let changes = changing().count();
    assert!((50..100).contains(&changes), "in {changes} of 300 hours");
    let calm = |seed| believing(seed, |drive, _| drive.stall = Duration::ZERO);
    assert!(changing().any(|seed| lost(calm(seed))), "σ");
    let in_order = |(scene, policy)| (Scene { places: Places::All, ..scene }, policy);
    assert!(changing().any(|seed| lost(faster(seed)) && !lost(in_order(faster(seed)))));
}
