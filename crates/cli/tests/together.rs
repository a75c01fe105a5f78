//! Holds that find something in the same slots, and in turn: what each has found is distilled together, and they share the copies.
#![allow(missing_docs, clippy::unwrap_used)]

mod common;
#[path = "common/evaluating.rs"]
mod evaluating;
#[path = "common/recording.rs"]
mod recording;

use common::{ends, folder};
use evaluating::{Evaluator, left};
use recording::{PATIENCE, Recording, line};
use std::collections::HashSet;
use std::path::Path;
use std::time::Instant;

/// Elements of a thousand that two holds look for: one lies in the slots of the other, and one in slots of its own.
const FIRST: [u64; 1] = [7];
const SECOND: [u64; 2] = [9, 507];

fn command(wanted: &[u64], reason: &str, quota: u64) -> String {
    let wanted: Vec<String> = wanted.iter().map(u64::to_string).collect();
    let condition = format!("ordinal_%_1000_in_({})", wanted.join(","));
    format!("hold r.hf --where {condition} --standing --quota {quota} --distil --reason {reason}")
}

/// The number of a hold, and how many slots it keeps.
fn hold(dir: &Path, reason: &str) -> (u64, u64) {
    let holds = ends(dir, "holds r.hf --json", 0).lines();
    let hold = holds.iter().find(|hold| hold["reason"] == reason).unwrap();
    (hold["id"].as_u64().unwrap(), hold["slots"].as_u64().unwrap())
}

/// What is there of the lines that were looked for, of so many.
fn kept(dir: &Path, wanted: &[u64], lines: u64) -> (usize, usize) {
    let left: HashSet<String> = left(dir).into_iter().collect();
    let all = (0..lines).filter(|ordinal| wanted.contains(&(ordinal % 1000)));
    (all.clone().filter(|ordinal| left.contains(&line(*ordinal))).count(), all.count())
}

#[test]
fn what_two_holds_find_in_turn_and_in_the_same_slots_takes_no_more_space_than_it_is() {
    let folder = folder();
    let dir = folder.path();
    let mut recording = Recording::start(dir, "--size 8MiB --slot 64KiB");
    let mut evaluators = [(&FIRST[..], "first", 25), (&SECOND[..], "second", 42)]
        .map(|(wanted, reason, quota)| Evaluator::start(dir, &command(wanted, reason, quota)));
    let (mut sent, mut originals) = (0, 0);
    let mut found = [0, 0];
    let started = Instant::now();
    while originals < 40 {
        assert!(started.elapsed() < PATIENCE, "{originals} slots were distilled of {sent} lines");
        recording.lines(1000);
        sent += 1000;
        recording.await_lines(dir, sent);
        for (at, evaluator) in evaluators.iter_mut().enumerate() {
            while found[at] < (at as u64 + 1) * sent / 1000 {
                let said = evaluator.next();
                if let Some(slots) = said["originals"].as_u64() {
                    originals += slots;
                    continue;
                }
                assert_eq!(said["missed"], 0, "{said}");
                found[at] += said["elements"].as_u64().unwrap();
            }
        }
    }
    for evaluator in evaluators {
        assert_eq!(evaluator.end(), Some(0));
    }
    // What is whole still is of one lap of the ring, which has less than 16 thousand lines; with eight, and the copies.
    for (reason, wanted, most) in [("first", &FIRST[..], 16 + 8 + 4), ("second", &SECOND[..], 32 + 8 + 4)] {
        let (_, slots) = hold(dir, reason);
        assert!(slots <= most && slots < wanted.len() as u64 * sent / 1000, "{reason} keeps {slots}");
        let (kept, all) = kept(dir, wanted, sent);
        assert_eq!(kept, all, "of {reason}");
    }
    // Who is released takes nothing with it that the other keeps.
    ends(dir, &format!("release r.hf {}", hold(dir, "first").0), 0);
    for _ in 0..20 {
        recording.lines(1000);
        sent += 1000;
        recording.await_lines(dir, sent);
    }
    recording.end();
    let before = sent - 20_000;
    let (kept, all) = kept(dir, &SECOND, before);
    assert_eq!(kept, all);
    ends(dir, "check r.hf", 0);
}
