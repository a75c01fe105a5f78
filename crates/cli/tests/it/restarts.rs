//! Restarts of a recorder beside commands that write to its ring by themselves.
#![allow(missing_docs, clippy::unwrap_used)]

use crate::common;
use crate::common::evaluating;
use crate::common::recording;

use common::folder;
use evaluating::Evaluator;
use recording::Recording;
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
    let mut written = 0;
    for round in 0..rounds {
        recording.lines(200);
        recording.await_lines(dir, if round == 0 { 400 } else { 200 });
        recording.child.kill().unwrap();
        recording.child.wait().unwrap();
        // In most rounds it comes while the hold has the ring for what was found.
        let begun = Instant::now();
        while round % 4 > 0 && begun.elapsed() < Duration::from_secs(2) {
            if holdfast_media::owner(&ring).unwrap().is_some() {
                written += 1;
                break;
            }
            std::thread::yield_now();
        }
        recording = Recording::start(dir, "");
    }
    let (code, _, err) = recording.end();
    assert!(code == Some(0) && written > 0, "{written} of {rounds}: {err}");
    assert_eq!(evaluator.end(), Some(0));
}
