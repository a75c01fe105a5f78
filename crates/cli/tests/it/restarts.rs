//! Restarts of a recorder beside commands that write to its ring by themselves.
#![allow(missing_docs, clippy::unwrap_used)]

use crate::common;
use crate::common::evaluating;
use crate::common::recording;

use common::{ends, folder, holdfast};
use evaluating::Evaluator;
use holdfast_protocol::RingLocation;
use holdfast_protocol::socket_path::socket_in;
use recording::Recording;
use rustix::fs::{FlockOperation, flock};
use serde_json::Value;
use std::fs::File;
use std::process::Stdio;
use std::time::{Duration, Instant};

// Promise 1: a recorder that was killed starts again each time, also while a hold that stands writes to the ring by itself.
// More rounds: HOLDFAST_ROUNDS=100.
#[test]
fn a_recorder_starts_again_whatever_a_standing_hold_has_to_write() {
    let rounds = std::env::var("HOLDFAST_ROUNDS").map_or(12, |text| text.parse().unwrap());
    let folder = folder();
    let dir = folder.path();
    let ring = dir.join("r.hf");
    let mut recording = Recording::start(dir, "--size 48MiB --slot 64KiB");
    recording.lines(200);
    recording.await_lines(dir, 200);
    let command = "hold r.hf --where ordinal_%_50_=_7 --standing --quota 400 --reason often";
    let mut evaluator = Evaluator::start(dir, command);
    evaluator.await_found(4);
    for round in 0..rounds {
        recording.lines(200);
        recording.await_lines(dir, if round == 0 { 400 } else { 200 });
        recording.child.kill().unwrap();
        recording.child.wait().unwrap();
        // In most rounds it comes while the hold has the ring for what was found, if that is soon.
        let begun = Instant::now();
        let is_soon = || begun.elapsed() < Duration::from_secs(2);
        while round % 4 > 0 && is_soon() && holdfast_media::owner(&ring).unwrap().is_none() {
            std::thread::yield_now();
        }
        recording = Recording::start(dir, "");
    }
    let (code, _, err) = recording.end();
    assert_eq!(code, Some(0), "{err}");
    assert_eq!(evaluator.end(), Some(0));
}

// Promise 1: an order that finds the mark of a recorder that starts leaves the ring alone, and is the recorder's.
#[test]
fn an_order_waits_for_a_recorder_that_starts_and_is_given_to_it() {
    let folder = folder();
    let dir = folder.path();
    let mut recording = Recording::start(dir, "--size 16MiB --slot 64KiB");
    recording.lines(200);
    recording.await_lines(dir, 200);
    assert_eq!(recording.end().0, Some(0));
    let ring = RingLocation::read(&dir.join("r.hf")).unwrap().superblock.ring;
    let mark = File::create(socket_in(&dir.join("run"), ring).with_extension("starting")).unwrap();
    flock(&mark, FlockOperation::NonBlockingLockExclusive).unwrap();
    let mut hold = holdfast(dir);
    hold.args("hold r.hf --last 1h --reason often --json".split(' '))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let hold = hold.spawn().unwrap();
    let mut recording = Recording::start(dir, "");
    let output = hold.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let status = recording.await_lines(dir, 0);
    let time = |value: &Value| value.as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
    let created = time(&ends(dir, "holds r.hf --json", 0).json()["created"]);
    let since = time(&status["recorder"]["since"]);
    assert!(created >= since, "held at {created}, the recorder came at {since}");
    drop(mark);
    assert_eq!(recording.end().0, Some(0));
}
