//! Holds that find something in the same slots, and in turn: what each has found is distilled together, and they share the copies.
#![allow(missing_docs, clippy::unwrap_used)]

use crate::common;
use crate::common::evaluating;
use crate::common::recording;

use common::{ends, folder};
use evaluating::{Evaluator, left};
use recording::{PATIENCE, Recording, line};
use std::collections::HashSet;
use std::fmt::Write as _;
use std::io::Write as _;
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

/// Sends so many thousand lines.
fn send(dir: &Path, recording: &mut Recording, sent: &mut u64, thousands: u64) {
    for _ in 0..thousands {
        recording.lines(1000);
        *sent += 1000;
        recording.await_lines(dir, *sent);
    }
}

#[test]
fn what_waits_for_room_is_not_taken_from_the_slots_of_another() {
    let folder = folder();
    let dir = folder.path();
    let mut recording = Recording::start(dir, "--size 8MiB --slot 64KiB");
    let mut sent = 0;
    send(dir, &mut recording, &mut sent, 7);
    let mut other = Evaluator::start(dir, &command(&[9], "other", 25));
    other.await_found(7);
    other.kill();
    // It has room for three of seven, all of which lie in slots of the other, whose turn comes.
    let few = "--where ordinal_%_1000_=_7_and_ordinal_<_7000 --standing --quota 3 --distil --reason few";
    let mut evaluator = Evaluator::start(dir, &format!("hold r.hf {few}"));
    assert_eq!(evaluator.next()["slots"], 3);
    let (started, mut added) = (Instant::now(), 3);
    while added < 7 {
        assert!(started.elapsed() < PATIENCE, "{added} of 7 have got room");
        send(dir, &mut recording, &mut sent, 1);
        if sent < 20_000 {
            continue;
        }
        let said = evaluator.next();
        assert_eq!(said["missed"].as_u64().unwrap_or(0), 0, "{said}");
        added += said["added"].as_u64().unwrap_or(0);
    }
    assert_eq!(evaluator.end(), Some(0));
    recording.end();
    assert_eq!((kept(dir, &[7], 7000), kept(dir, &[9], 7000)), ((7, 7), (7, 7)));
}

#[test]
fn a_hold_of_which_nobody_can_tell_what_it_wants_keeps_its_slots_and_is_in_nobody_s_way() {
    let folder = folder();
    let dir = folder.path();
    let mut recording = Recording::start(dir, "--size 8MiB --slot 64KiB");
    let mut sent = 0;
    send(dir, &mut recording, &mut sent, 1);
    let broken = "--where ordinal_%_1000_in_(9,999)_or_1/(cast(ordinal_as_bigint)-1002)_=_5 --standing --quota 20 --distil";
    let mut other = Evaluator::start(dir, &format!("hold r.hf {broken} --reason broken"));
    // It keeps the slot in which what it cannot look at comes later.
    other.await_found(2);
    other.kill();
    let mut evaluator = Evaluator::start(dir, &command(&[7], "well", 30));
    evaluator.next();
    let (started, mut originals) = (Instant::now(), 0);
    while originals < 8 {
        assert!(started.elapsed() < PATIENCE, "{originals} slots were distilled of {sent} lines");
        send(dir, &mut recording, &mut sent, 1);
        let mut is_found = false;
        while !is_found {
            let said = evaluator.next();
            originals += said["originals"].as_u64().unwrap_or(0);
            is_found = said["elements"] == 1 && said["originals"].is_null();
        }
    }
    let warned = evaluator.warning();
    assert!(
        warned.contains("what hold 1 wants cannot be told") && warned.contains("divided by zero"),
        "{warned}"
    );
    assert_eq!(hold(dir, "broken").1, 2);
    assert_eq!(evaluator.end(), Some(0));
    recording.end();
    let (kept, all) = kept(dir, &[7], sent);
    assert_eq!(kept, all);
}

// An order to a recorder has at most 64 KiB: what is wanted is told in several.
#[test]
fn more_is_distilled_than_one_order_can_name() {
    let folder = folder();
    let dir = folder.path();
    let mut recording = Recording::start(dir, "--size 12MiB --slot 256KiB");
    let mut sent = 0;
    // Until the ring has turned over.
    while sent < 1_600_000 {
        let mut text = String::new();
        (sent..sent + 100_000).for_each(|ordinal| writeln!(text, "{ordinal}").unwrap());
        recording.input.as_mut().unwrap().write_all(text.as_bytes()).unwrap();
        sent += 100_000;
        recording.await_lines(dir, sent);
    }
    // All but what is in the slot that is being filled.
    let condition = format!("ordinal_%_10_=_7_and_ordinal_<_{}", sent - 50_000);
    let wanted = |dir: &Path| {
        let question = format!("query r.hf --format csv select_count(*)_from_log_where_{condition}");
        ends(dir, &question, 0).out.lines().nth(1).unwrap().parse::<u64>().unwrap()
    };
    let before = wanted(dir);
    let said = ends(dir, &format!("hold r.hf --where {condition} --distil --reason many --json"), 0);
    let originals: u64 = said.lines().iter().filter_map(|said| said["originals"].as_u64()).sum();
    let (_, slots) = hold(dir, "many");
    assert!(originals > 30 && slots < 10, "{originals} slots in {slots}: {}{}", said.out, said.err);
    assert_eq!(wanted(dir), before);
    recording.end();
}
