//! A standing hold goes on looking at what arrives while slots of it are distilled, however long copies take.
#![allow(missing_docs, clippy::unwrap_used)]

#[path = "common/between.rs"]
mod between;
mod common;
#[path = "common/evaluating.rs"]
mod evaluating;
#[path = "common/recording.rs"]
mod recording;

use between::Between;
use common::{ends, folder, holdfast};
use evaluating::{Evaluator, left};
use recording::{PATIENCE, Recording, line};

#[test]
fn what_arrives_while_slots_are_distilled_is_found_and_held() {
    let folder = folder();
    let dir = folder.path();
    let mut recording = Recording::start(dir, "--size 8MiB --slot 64KiB");
    recording.lines(2000);
    recording.await_lines(dir, 2000);
    let between = Between::of(dir);
    let mut command = holdfast(dir);
    let words = "hold r.hf --where ordinal_%_1000_=_7 --standing --quota 40 --distil --reason few";
    command.args(words.split(' ').map(|word| word.replace('_', " "))).env("HOLDFAST_RUN", &between.run);
    let mut evaluator = Evaluator::run(command);
    evaluator.await_found(2);
    // The ring turns over once, and half as far again.
    for at in 1..15 {
        recording.lines(2000);
        recording.await_lines(dir, 2000 * (at + 1));
        evaluator.await_found(2);
    }
    between.await_order(PATIENCE);
    recording.lines(1000);
    let found = evaluator.next();
    assert!(
        found["elements"] == 1 && found["originals"].is_null(),
        "not before the copies were made: {found}"
    );
    between.let_go();
    while evaluator.next()["originals"].as_u64() < Some(8) {}
    recording.lines(1000);
    assert_eq!(evaluator.await_found(1)["elements"], 1);
    assert_eq!(evaluator.end(), Some(0));
    recording.end();
    let kept = left(dir);
    for ordinal in (7..32_000).step_by(1000) {
        assert!(kept.contains(&line(ordinal)), "{ordinal} was not held");
    }
    ends(dir, "check r.hf", 0);
}
