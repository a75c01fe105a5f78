//! Model tests: any mix of writes, holds, holds by condition that grow, releases, repeated orders,
//! purges, reads, pins of queries, crashes (in the middle of purges, too), growth and clock steps shows what the naive model shows.
//! Promises 3, 4, 5 and 6.
//!
//! One seed again: `HOLDFAST_SEED=123 cargo test -p holdfast-sim model`. More seeds: `HOLDFAST_SEEDS=20` (times as many).

use holdfast_sim::{Diet, check, seeds};

fn all(test: &str, diet: Diet, count: u64, steps: usize) {
    let (mut extended, mut taken, mut spent, mut passed_over) = (0, 0, 0, 0);
    let (mut purged, mut torn, mut repeated) = (0, 0, 0);
    for seed in seeds(count) {
        let world = check(test, seed, diet, steps).unwrap_or_else(|failure| panic!("{failure}"));
        (extended, taken, spent) = (extended + world.extended, taken + world.taken, spent + world.spent);
        passed_over += world.passed_over;
        repeated += world.repeated;
        (purged, torn) = (purged + world.purged, torn + world.torn);
    }
    let often = diet == Diet::Calm || torn > count / 10;
    let grew = extended > count && taken > count / 4 && spent > count / 10;
    let asked_again = diet == Diet::Calm || repeated > count / 2;
    let enough = grew && asked_again && passed_over > count / 4 && purged > count / 4 && often;
    let seen = format!(
        "{extended} grew, {taken} of them told before that was durable, {spent} were spent, {passed_over} pinned slots were \
         passed over, {repeated} orders were repeated, {purged} purges came to their end and {torn} did not"
    );
    assert!(std::env::var_os("HOLDFAST_SEED").is_some() || enough, "{seen}");
}

#[test]
fn without_crashes_what_is_visible_is_predicted_exactly() {
    all("model", Diet::Calm, 100, 200);
}

#[test]
fn with_crashes_nothing_is_missing_but_what_was_too_young() {
    all("model", Diet::Crashes, 120, 200);
}

#[test]
fn with_a_failing_device_nothing_is_wrong_or_lost_either() {
    all("model", Diet::Faults, 80, 200);
}
