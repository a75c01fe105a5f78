//! Promise 1, the other way round: a guarantee that forgets a term of the inequality is not kept. So the hours of the
//! simulation are hard enough to tell.

use holdfast_base::Rate;
use holdfast_format::Measured;
use holdfast_ring::{Load, Policy, Shape, figures};
use holdfast_sim::{Scene, play_under};
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
    let lost = |seed| {
        let (scene, policy) = run(seed);
        play_under(&scene, policy).lost > 0.0
    };
    seeds.iter().copied().chain(0..60).any(lost)
}

#[test]
fn whoever_takes_the_drive_for_better_than_it_is_loses_data() {
    assert!(
        !loses(&[13, 53, 388], |seed| believing(seed, |_, _| ())),
        "who believes what is true loses nothing"
    );
    assert!(loses(&[0], |seed| believing(seed, |drive, _| drive.stall = Duration::ZERO)), "σ");
    assert!(loses(&[53], |seed| believing(seed, |drive, _| drive.stalled = 0)), "ρ");
    assert!(loses(&[13], |seed| believing(seed, |drive, _| drive.read_error = Duration::ZERO)), "e");
    let nimble = |seed| believing(seed, |drive, _| drive.reposition = Duration::ZERO);
    assert!(loses(&[388], nimble), "s, and with it j");
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
    assert!(loses(&[8], without(|policy| policy.buffers.saturating_sub(policy.gather + 1))), "g + 1");
}

#[test]
fn whoever_lets_more_in_than_was_admitted_loses_data() {
    let faster = |seed| {
        let (mut scene, policy) = believing(seed, |_, _| ());
        for stream in &mut scene.streams {
            stream.rate *= 1.05;
        }
        (scene, policy)
    };
    assert!(loses(&[10], faster));
}
