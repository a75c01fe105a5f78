//! A question in a hot loop on every core, beside a recording whose source waits for nobody: it costs the capture not a byte
//! (promise 1). It goes red where questions keep capture from packing or writing for longer than a few of them take, be it by the
//! capture thread, by buffers or by slots: who sends goes on all the same, and what then finds no batch is dropped and counted.
#![allow(missing_docs, clippy::unwrap_used)]

use crate::common;
use crate::common::evaluating;
use crate::common::recording;

use common::{Said, ends, folder, holdfast};
use evaluating::left;
use recording::{Recording, line};
use serde_json::{Value, json};
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::mpsc::channel;
use std::thread::available_parallelism;

/// Lines that are sent at once: a megabyte, a quarter of what the source's sixteen batches have room for.
const BURST: u64 = 2000;
/// Lines that fill the ring once, and a bit.
const LAP: u64 = 20_000;
/// Laps beside the questions.
const LAPS: u64 = 3;
/// So many questions of each loop may be answered before the next burst is sent, whether the last one is packed or not.
const LATE: usize = 4;
/// Loops at most: a recorder has 32 clients, and a question comes to it by four ways at once.
const MOST: usize = 5;

/// Each goes through the whole ring: by payloads, by columns, by an order.
const QUESTIONS: [&str; 3] = [
    "select sum(length(hex(payload))) from log",
    "select size, count(*), max(time) from log group by size",
    "select ordinal, payload from log order by size desc, ordinal limit 100",
];

/// Asks; whether there is an answer. There is none where something expired meanwhile, and only there.
fn is_answered(dir: &Path, sql: &str) -> bool {
    let words = ["query", "r.hf", "--threads", "1", "--format", "csv", sql];
    let said: Said = holdfast(dir).args(words).output().unwrap().into();
    let good = said.code == Some(0);
    assert!(
        good || said.code == Some(1) && said.err.contains("expired"),
        "{sql}: {:?} {}",
        said.code,
        said.err
    );
    good
}

/// How many lines are packed. Until now none was dropped.
fn packed(dir: &Path) -> u64 {
    let status = ends(dir, "status r.hf --json", 0).json();
    let source = &status["recorder"]["sources"][0];
    assert_eq!((&source["dropped"], &status["losing"]), (&json!([]), &Value::from(false)), "{source}");
    source["packed_elements"].as_u64().unwrap()
}

#[test]
fn questions_on_every_core_cost_the_capture_nothing() {
    let folder = folder();
    let dir = folder.path();
    let mut recording = Recording::start(dir, "--on-overload drop-newest --size 8MiB --slot 64KiB");
    let mut sent = 0;
    while sent < LAP {
        recording.lines(BURST);
        sent += BURST;
        recording.await_lines(dir, sent);
    }
    let loops = available_parallelism().map_or(2, NonZeroUsize::get).min(MOST);
    // Of each question that came to its end, whether it was answered.
    let mut ended: Vec<bool> = Vec::new();
    std::thread::scope(|scope| {
        let (tell, told) = channel();
        for first in 0..loops {
            let tell = tell.clone();
            scope.spawn(move || {
                for sql in QUESTIONS.iter().cycle().skip(first) {
                    if tell.send(is_answered(dir, sql)).is_err() {
                        // Nobody wants to know any more.
                        return;
                    }
                }
            });
        }
        drop(tell);
        while sent < LAP + LAPS * LAP {
            recording.lines(BURST);
            sent += BURST;
            // What has ended by now says nothing of it; of more than there are loops, one at least was begun behind it.
            ended.extend(told.try_iter());
            let (least, most) = (ended.len() + loops, ended.len() + LATE * loops);
            while ended.len() <= least || ended.len() < most && packed(dir) < sent {
                ended.push(told.recv().unwrap());
            }
        }
    });
    let answered = ended.iter().filter(|answered| **answered).count();
    eprintln!("{loops} loops: {answered} questions answered, {} expired", ended.len() - answered);
    assert!(answered > 0, "{} expired", ended.len());

    let status = recording.await_lines(dir, sent);
    let source = &status["recorder"]["sources"][0];
    assert_eq!((&source["elements"], &source["dropped"]), (&Value::from(sent), &json!([])), "{source}");
    assert_eq!((&status["losing"], &status["lost_elements"]), (&Value::from(false), &Value::from(0)));
    let (code, out, err) = recording.end();
    assert_eq!(code, Some(0), "{out}{err}");
    assert!(out.contains("nothing lost"), "{out}");
    // Over the ring's life, and as far as it reaches.
    let stream = ends(dir, "streams r.hf --json", 0).json();
    for (figure, wanted) in
        [("received", sent), ("next_ordinal", sent), ("lost", 0), ("gaps", 0), ("unknown_gaps", 0)]
    {
        assert_eq!(stream[figure], wanted, "{figure}: {stream}");
    }
    ends(dir, "gaps r.hf", 3);
    assert_eq!(ends(dir, "query r.hf select_count(*)_n_from_gaps --json", 0).json()["n"], 0);
    // What is left is the youngest, each line once and in its place; before it what a question had pinned may have stayed.
    let kept = left(dir);
    let count = kept.len() as u64;
    assert!(count > LAP / 4 && count < LAP, "{count} lines are left");
    let numbers: Vec<u64> =
        kept.iter().map(|text| text.split(' ').nth(1).unwrap().parse().unwrap()).collect();
    assert!(kept.iter().zip(&numbers).all(|(text, number)| *text == line(*number)));
    assert!(numbers.windows(2).all(|two| two[0] < two[1]), "{count} lines from {}", numbers[0]);
    assert_eq!(numbers[numbers.len() / 2..], (sent - count.div_ceil(2)..sent).collect::<Vec<_>>());
}
