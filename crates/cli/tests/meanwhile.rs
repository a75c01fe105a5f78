//! A standing hold goes on looking at what arrives, however long it takes until slots of it are distilled, or until it would survive a
//! crash.
#![allow(missing_docs, clippy::unwrap_used)]

#[path = "common/between.rs"]
mod between;
mod common;
#[path = "common/evaluating.rs"]
mod evaluating;
#[path = "common/recording.rs"]
mod recording;

use between::{Between, Deal};
use common::{ends, folder, holdfast};
use evaluating::{Evaluator, left};
use holdfast_ring::{ExtendRequest, Order, Outcome, Refusal};
use recording::{PATIENCE, Recording, line};
use std::path::Path;
use std::time::Instant;

/// A hold of every thousandth line, by whoever meets somebody else in the recorder's place.
fn standing(dir: &Path, between: &Between, more: &str) -> Evaluator {
    let words = format!("hold r.hf --where ordinal_%_1000_=_7 --standing --reason few {more}");
    let mut command = holdfast(dir);
    command.args(words.split_whitespace().map(|word| word.replace('_', " ")));
    command.env("HOLDFAST_RUN", &between.run);
    Evaluator::run(command)
}

fn keeps_durable(order: &Order) -> Deal {
    match order {
        Order::Extend(ExtendRequest { durable: true, .. }) => Deal::Keep,
        _ => Deal::Pass,
    }
}

/// Waits until so many slots are kept from expiring, whoever says so.
fn await_kept(dir: &Path, slots: u64) {
    let started = Instant::now();
    while ends(dir, "holds r.hf --json", 0).lines()[0]["slots"] != slots {
        assert!(started.elapsed() < PATIENCE, "{slots} slots are not kept");
    }
}

/// The ring turns over, twice: what is wanted of it must be there.
fn outlasts(dir: &Path, mut recording: Recording, sent: u64) {
    for lot in 1..9 {
        recording.lines(4000);
        recording.await_lines(dir, sent + 4000 * lot);
    }
    recording.end();
    let kept = left(dir);
    for ordinal in (7..sent).step_by(1000) {
        assert!(kept.contains(&line(ordinal)), "{ordinal} was not held");
    }
    ends(dir, "check r.hf", 0);
}

#[test]
fn what_arrives_is_kept_while_it_waits_until_what_came_before_would_survive_a_crash() {
    let folder = folder();
    let dir = folder.path();
    let mut recording = Recording::start(dir, "--size 8MiB --slot 64KiB");
    recording.lines(2000);
    recording.await_lines(dir, 2000);
    let between = Between::of(dir, keeps_durable);
    let mut evaluator = standing(dir, &between, "--quota 40");
    evaluator.await_found(2);
    for slots in 3..6 {
        recording.lines(1000);
        await_kept(dir, slots);
    }
    // It was looked at in turns one after the other, and nothing is told before it would survive.
    between.await_order(PATIENCE);
    assert!(!evaluator.has_said(), "{}", evaluator.next());
    between.let_go();
    let (first, others) = (evaluator.next(), evaluator.next());
    assert!(first["elements"] == 1 && first["added"] == 1, "{first}");
    assert!(others["elements"] == 2 && others["added"] == 2 && others["slots"] == 5, "{others}");
    assert_eq!(evaluator.end(), Some(0));
    outlasts(dir, recording, 5000);
}

/// A connection is cut when something was taken and not said to be durable.
fn is_found_again(deal: fn(&Order) -> Deal, added: u64) {
    let folder = folder();
    let dir = folder.path();
    let mut recording = Recording::start(dir, "--size 8MiB --slot 64KiB");
    recording.lines(2000);
    recording.await_lines(dir, 2000);
    let between = Between::of(dir, deal);
    let mut evaluator = standing(dir, &between, "--quota 40");
    evaluator.await_found(2);
    recording.lines(1000);
    between.await_order(PATIENCE);
    between.cut();
    await_kept(dir, 3);
    let said = evaluator.await_found(1);
    assert!(said["added"] == added && said["slots"] == 3, "{said}");
    // Neither before nor after that it is told again.
    recording.lines(1000);
    let said = evaluator.await_found(1);
    assert!(said["added"] == 1 && said["slots"] == 4, "{said}");
    let (code, said) = evaluator.finish();
    assert!(code == Some(0) && said.is_empty(), "{said:?}");
    outlasts(dir, recording, 4000);
}

#[test]
fn what_a_recorder_took_that_ended_before_it_would_survive_is_found_again() {
    let lost = |order: &Order| match order {
        Order::Extend(ExtendRequest { durable: true, .. }) => Deal::Keep,
        Order::Extend(_) => Deal::Pretend(Outcome::Extended { added: 1, slots: 3, left: 37, missed: 0 }),
        _ => Deal::Pass,
    };
    is_found_again(lost, 1);
}

#[test]
fn what_survives_though_nobody_said_so_is_told_once() {
    is_found_again(keeps_durable, 0);
}

#[test]
fn what_is_looked_for_again_for_what_is_to_come_around_it_is_told_once() {
    let folder = folder();
    let dir = folder.path();
    let mut recording = Recording::start(dir, "--size 8MiB --slot 64KiB");
    recording.lines(2000);
    recording.await_lines(dir, 2000);
    let between = Between::of(dir, keeps_durable);
    let mut evaluator = standing(dir, &between, "--quota 60 --after 1h");
    evaluator.await_found(2);
    recording.lines(1000);
    between.await_order(PATIENCE);
    between.cut();
    evaluator.await_found(1);
    recording.lines(1000);
    evaluator.await_found(1);
    assert_eq!(evaluator.end(), Some(0));
    outlasts(dir, recording, 4000);
}

#[test]
fn a_hold_that_was_released_while_it_was_to_be_found_again_ends() {
    let folder = folder();
    let dir = folder.path();
    let mut recording = Recording::start(dir, "--size 8MiB --slot 64KiB");
    recording.lines(2000);
    recording.await_lines(dir, 2000);
    let between = Between::of(dir, keeps_durable);
    let mut evaluator = standing(dir, &between, "--quota 40");
    evaluator.await_found(2);
    recording.lines(1000);
    between.await_order(PATIENCE);
    ends(dir, "release r.hf 1", 0);
    between.cut();
    assert!(!evaluator.child.wait().unwrap().success());
    let said = evaluator.warnings();
    assert!(said.contains("there is no hold 1"), "{said}");
    recording.end();
}

#[test]
fn what_could_not_be_taken_is_told_when_it_was() {
    let folder = folder();
    let dir = folder.path();
    let mut recording = Recording::start(dir, "--size 8MiB --slot 64KiB");
    recording.lines(2000);
    recording.await_lines(dir, 2000);
    let between = Between::of(dir, |order| match order {
        Order::Extend(ExtendRequest { durable: false, .. }) => {
            Deal::Pretend(Outcome::Refused(Refusal::Busy("purge")))
        }
        _ => Deal::Pass,
    });
    let mut evaluator = standing(dir, &between, "--quota 40");
    evaluator.await_found(2);
    recording.lines(1000);
    between.await_order(PATIENCE);
    assert!(evaluator.warning().contains("purge"));
    between.let_go();
    let said = evaluator.next();
    assert!(said["elements"] == 1 && said["added"] == 1 && said["slots"] == 3, "{said}");
    assert_eq!(evaluator.end(), Some(0));
    outlasts(dir, recording, 3000);
}

#[test]
fn what_arrives_while_slots_are_distilled_is_found_and_held() {
    let folder = folder();
    let dir = folder.path();
    let mut recording = Recording::start(dir, "--size 8MiB --slot 64KiB");
    recording.lines(2000);
    recording.await_lines(dir, 2000);
    let between = Between::of(dir, |order| match order {
        Order::Distil(_) => Deal::Keep,
        _ => Deal::Pass,
    });
    let mut evaluator = standing(dir, &between, "--quota 40 --distil");
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
