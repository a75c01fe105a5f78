//! Holds that stand: what expired before anybody looked at it is told.
#![allow(missing_docs, clippy::unwrap_used)]

use crate::common;
use crate::common::evaluating;
use crate::common::filled;
use crate::common::recording;

use common::{ends, folder};
use evaluating::{Evaluator, left};
use filled::{Filler, START, STEP};
use holdfast_base::Timestamp;
use recording::{Recording, line};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use std::collections::HashSet;

#[test]
fn a_standing_sample_goes_on_and_tells_what_expired_before() {
    let folder = folder();
    let dir = folder.path();
    ends(dir, "format r.hf --size 8MiB --slot 64KiB", 0);
    // A hundred lines a second; a break of a tenth between one fill and the next.
    let fill = |first: u64, lines: u64, breaks: u64| {
        let start = Timestamp(START + (first + 10 * breaks) as i64 * STEP);
        let mut filler = Filler::open_at(&dir.join("r.hf"), start).goes_on_at(first);
        filler.lines(lines);
        filler.close();
    };
    fill(0, 3000, 0);
    let span = format!("--from {START} --to {}", START + 100_000 * STEP);
    let command = format!("hold r.hf --sample 1s/10s {span} --standing --quota 60 --reason usual");
    let mut evaluator = Evaluator::start(dir, &command);
    let first = evaluator.next()["slots"].as_u64().unwrap();
    assert!(first >= 3, "{first}");
    evaluator.kill();
    fill(3000, 3000, 1);
    let mut evaluator = Evaluator::start(dir, "hold r.hf --resume 1");
    let more = evaluator.next();
    assert!(more["slots"].as_u64() >= Some(first + 3), "{more}");
    evaluator.kill();
    // So much that some of it is gone before anybody looks.
    fill(6000, 60_000, 2);
    let mut evaluator = Evaluator::start(dir, "hold r.hf --resume 1");
    let said = evaluator.warning();
    assert!(said.contains("of log expired before they were looked at (6000 up to "), "{said}");
    evaluator.kill();
    let kept: HashSet<String> = left(dir).into_iter().collect();
    let (mut sampled, mut others) = (0, 0);
    for ordinal in 0..6000 {
        let breaks = u64::from(ordinal >= 3000);
        let at = START + (ordinal + 10 * breaks + 1) as i64 * STEP;
        let is_kept = kept.contains(&line(ordinal));
        if at % 10_000_000_000 < 1_000_000_000 {
            sampled += 1;
            assert!(is_kept, "{ordinal}");
        } else {
            others += u64::from(is_kept);
        }
    }
    assert!(sampled > 500 && others < 2500, "{sampled} sampled, {others} others");
}

/// Stops a program as it is, or lets it go on, or ends it.
fn signal(evaluator: &Evaluator, signal: Signal) {
    kill_process(Pid::from_child(&evaluator.child), signal).unwrap();
}

/// Whoever looks is stopped while the ring turns over: the first line that it sees then, after it has told which it has not, and
/// how many it finds from there on.
fn tells_what_it_has_not_seen(what: &str, finds: bool) -> (u64, u64) {
    let folder = folder();
    let dir = folder.path();
    let mut recording = Recording::start(dir, "--size 8MiB --slot 64KiB");
    recording.lines(2000);
    recording.await_lines(dir, 2000);
    let command = format!("hold r.hf {what} --standing --quota 60 --reason thousandth");
    let mut evaluator = Evaluator::start(dir, &command);
    // With the last there is.
    evaluator.next();
    signal(&evaluator, Signal::STOP);
    let stat = format!("/proc/{}/stat", evaluator.child.id());
    while !std::fs::read_to_string(&stat).unwrap().contains(") T ") {}
    for _ in 0..8 {
        recording.lines(4000);
    }
    recording.await_lines(dir, 34_000);
    signal(&evaluator, Signal::CONT);
    let unseen = evaluator.next();
    let found = if finds { evaluator.next()["elements"].as_u64().unwrap() } else { 0 };
    signal(&evaluator, Signal::INT);
    let warned = evaluator.warnings();
    recording.end();
    let expired = warned.lines().find(|line| line.contains("of log expired before they were looked at"));
    let expired = expired.unwrap_or_else(|| panic!("it is passed by in silence: {warned}"));
    let (_, ordinals) = expired.split_once('(').unwrap();
    let (from, end) = ordinals.trim_end_matches(')').split_once(" up to ").unwrap();
    let (from, end): (u64, u64) = (from.parse().unwrap(), end.parse().unwrap());
    assert_eq!((&unseen["stream"], &unseen["unseen_ordinals"]), (&"log".into(), &json!([from, end])));
    // Of the slot that the hold keeps the rest is there, except an element that ended in the next one.
    let left = left(dir);
    let is_there = |ordinal: u64| ordinal < 2000 || left.contains(&line(ordinal));
    assert!(from >= 2000 && (is_there(from - 1) || is_there(from - 2)), "{expired}");
    let count: String = expired.split(" elements").next().unwrap().matches(char::is_numeric).collect();
    assert!(count == (end - from).to_string() && end < 34_000, "{expired}");
    ends(dir, &format!("read r.hf --stream log --ordinals {from}..{end}"), 3);
    (end, found)
}

#[test]
fn what_expires_while_whoever_looks_for_a_condition_is_stopped_is_told() {
    let (end, found) = tells_what_it_has_not_seen("--where ordinal_%_1000_=_999", true);
    assert_eq!(found, (end..34_000).filter(|ordinal| ordinal % 1000 == 999).count() as u64);
}

#[test]
fn what_expires_while_whoever_takes_samples_is_stopped_is_told() {
    tells_what_it_has_not_seen("--sample 1s/1h", false);
}
