//! A standing hold goes on looking at what arrives, however long it takes until slots of it are distilled, or until it would survive a
//! crash.
#![allow(missing_docs, clippy::unwrap_used)]

use crate::common;
use crate::common::between;
use crate::common::evaluating;
use crate::common::recording;

use between::{Between, Deal};
use common::{ends, folder, holdfast};
use evaluating::{Evaluator, left};
use holdfast_ring::{ExtendRequest, Order, Outcome, Refusal};
use recording::{PATIENCE, Recording, line};
use std::path::Path;
use std::time::Instant;

/// A recorder, and a standing hold by whoever meets somebody else in its place.
struct Scene {
    recording: Recording,
    between: Between,
    evaluator: Evaluator,
    /// Behind those who work in it.
    folder: tempfile::TempDir,
}

/// Of every so manyth line, of two thousand that are there: what is found of these is told.
const EVERY: u64 = 1000;

impl Scene {
    fn begin(deal: fn(&Order) -> Deal, more: &str) -> Self {
        Self::of(&format!("ordinal % {EVERY} = 7"), 2000 / EVERY, deal, more)
    }

    fn of(condition: &str, found: u64, deal: fn(&Order) -> Deal, more: &str) -> Self {
        let folder = folder();
        let dir = folder.path();
        let mut recording = Recording::start(dir, "--size 8MiB --slot 64KiB");
        recording.lines(2000);
        recording.await_lines(dir, 2000);
        let between = Between::of(dir, deal);
        let mut command = holdfast(dir);
        command.args(["hold", "r.hf", "--where", condition, "--standing", "--reason", "few"]);
        command.args(more.split_whitespace()).env("HOLDFAST_RUN", &between.run);
        let mut evaluator = Evaluator::run(command);
        evaluator.await_found(found);
        Self { recording, between, evaluator, folder }
    }

    fn dir(&self) -> &Path {
        self.folder.path()
    }

    /// Waits until so many slots are kept from expiring, whoever says so.
    fn await_kept(&self, slots: u64) {
        let started = Instant::now();
        while ends(self.dir(), "holds r.hf --json", 0).lines()[0]["slots"] != slots {
            assert!(started.elapsed() < PATIENCE, "{slots} slots are not kept");
        }
    }

    /// The hold is interrupted, and has nothing more to say; the ring turns over, twice: what is wanted of so many lines must be there.
    fn outlasts(mut self, sent: u64) {
        let (code, said) = self.evaluator.finish();
        assert!(code == Some(0) && said.is_empty(), "{code:?}: {said:?}");
        let dir = self.folder.path();
        for lot in 1..9 {
            self.recording.lines(4000);
            self.recording.await_lines(dir, sent + 4000 * lot);
        }
        self.recording.end();
        let kept = left(dir);
        for ordinal in (7..sent).step_by(EVERY as usize) {
            assert!(kept.contains(&line(ordinal)), "{ordinal} was not held");
        }
        ends(dir, "check r.hf", 0);
    }
}

fn keeps_durable(order: &Order) -> Deal {
    match order {
        Order::Extend(ExtendRequest { durable: true, .. }) => Deal::Keep,
        _ => Deal::Pass,
    }
}

#[test]
fn what_arrives_is_kept_while_it_waits_until_what_came_before_would_survive_a_crash() {
    let mut scene = Scene::begin(keeps_durable, "--quota 40");
    for slots in 3..6 {
        scene.recording.lines(1000);
        scene.await_kept(slots);
    }
    // It was looked at in turns one after the other, and nothing is told before it would survive.
    scene.between.await_order(PATIENCE);
    let Scene { between, evaluator, .. } = &mut scene;
    assert!(!evaluator.has_said(), "{}", evaluator.next());
    between.let_go();
    let (first, others) = (evaluator.next(), evaluator.next());
    assert!(first["elements"] == 1 && first["added"] == 1, "{first}");
    assert!(others["elements"] == 2 && others["added"] == 2 && others["slots"] == 5, "{others}");
    scene.outlasts(5000);
}

#[test]
fn what_lies_in_a_slot_that_is_kept_already_is_told_when_it_would_survive() {
    let mut scene = Scene::of("ordinal >= 1999", 1, keeps_durable, "--quota 40");
    scene.recording.lines(1);
    scene.between.await_order(PATIENCE);
    let Scene { between, evaluator, .. } = &mut scene;
    assert!(!evaluator.has_said(), "{}", evaluator.next());
    between.let_go();
    let said = evaluator.await_found(1);
    assert!(said["added"] == 0 && said["slots"] == 1, "{said}");
    let (code, said) = scene.evaluator.finish();
    assert!(code == Some(0) && said.is_empty(), "{code:?}: {said:?}");
}

/// A connection is cut when something was taken and not said to be durable.
fn is_found_again(deal: fn(&Order) -> Deal, added: u64) {
    let mut scene = Scene::begin(deal, "--quota 40");
    scene.recording.lines(1000);
    scene.between.await_order(PATIENCE);
    scene.between.cut();
    scene.await_kept(3);
    let said = scene.evaluator.await_found(1);
    assert!(said["added"] == added && said["slots"] == 3, "{said}");
    // Neither before nor after that it is told again.
    scene.recording.lines(1000);
    let said = scene.evaluator.await_found(1);
    assert!(said["added"] == 1 && said["slots"] == 4, "{said}");
    scene.outlasts(4000);
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
    let mut scene = Scene::begin(keeps_durable, "--quota 60 --after 1h");
    scene.recording.lines(1000);
    scene.between.await_order(PATIENCE);
    scene.between.cut();
    scene.evaluator.await_found(1);
    scene.recording.lines(1000);
    scene.evaluator.await_found(1);
    let (code, said) = scene.evaluator.finish();
    assert!(code == Some(0) && said.iter().all(|said| said["elements"] == 0), "{code:?}: {said:?}");
}

#[test]
fn a_hold_that_was_released_while_it_was_to_be_found_again_ends() {
    let mut scene = Scene::begin(keeps_durable, "--quota 40");
    scene.recording.lines(1000);
    scene.between.await_order(PATIENCE);
    ends(scene.dir(), "release r.hf 1", 0);
    scene.between.cut();
    assert!(!scene.evaluator.child.wait().unwrap().success());
    let said = scene.evaluator.warnings();
    assert!(said.contains("there is no hold 1"), "{said}");
}

#[test]
fn what_could_not_be_taken_is_told_when_it_was() {
    let busy = |order: &Order| match order {
        Order::Extend(ExtendRequest { durable: false, .. }) => {
            Deal::Pretend(Outcome::Refused(Refusal::Busy("purge")))
        }
        _ => Deal::Pass,
    };
    let mut scene = Scene::begin(busy, "--quota 40");
    scene.recording.lines(1000);
    scene.between.await_order(PATIENCE);
    assert!(scene.evaluator.warning().contains("purge"));
    scene.between.let_go();
    let said = scene.evaluator.next();
    assert!(said["elements"] == 1 && said["added"] == 1 && said["slots"] == 3, "{said}");
    scene.outlasts(3000);
}

#[test]
fn what_arrives_while_slots_are_distilled_is_found_and_held() {
    let distilling = |order: &Order| match order {
        Order::Distil(_) => Deal::Keep,
        _ => Deal::Pass,
    };
    let mut scene = Scene::begin(distilling, "--quota 40 --distil");
    // The ring turns over once, and half as far again.
    for at in 1..15 {
        scene.recording.lines(2000);
        let dir = scene.folder.path();
        scene.recording.await_lines(dir, 2000 * (at + 1));
        scene.evaluator.await_found(2);
    }
    scene.between.await_order(PATIENCE);
    scene.recording.lines(1000);
    let found = scene.evaluator.next();
    assert!(
        found["elements"] == 1 && found["originals"].is_null(),
        "not before the copies were made: {found}"
    );
    scene.between.let_go();
    while scene.evaluator.next()["originals"].as_u64() < Some(8) {}
    scene.recording.lines(1000);
    assert_eq!(scene.evaluator.await_found(1)["elements"], 1);
    let Scene { folder, recording, evaluator, .. } = scene;
    assert_eq!(evaluator.end(), Some(0));
    recording.end();
    let kept = left(folder.path());
    for ordinal in (7..32_000).step_by(EVERY as usize) {
        assert!(kept.contains(&line(ordinal)), "{ordinal} was not held");
    }
    ends(folder.path(), "check r.hf", 0);
}
