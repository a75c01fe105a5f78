//! Holds of what a condition finds: what is there, what arrives, and just that in the end.
#![allow(missing_docs, clippy::unwrap_used)]

mod common;
#[path = "common/filled.rs"]
mod filled;
#[path = "common/recording.rs"]
mod recording;

use common::{documented, ends, folder, holdfast, run};
use filled::{Filler, START, STEP, line};
use recording::{PATIENCE, Recording};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Stdio};
use std::time::Instant;

fn fill(dir: &Path, lines: u64) {
    let mut filler = Filler::open(&dir.join("r.hf"));
    filler.lines(lines);
    filler.close();
}

fn ring(dir: &Path) {
    ends(dir, "format r.hf --size 8MiB --slot 64KiB", 0);
    fill(dir, 3000);
}

/// The lines of the stream that can be read.
fn left(dir: &Path) -> Vec<String> {
    let text = ends(dir, "read r.hf --stream log --format jsonl", 0);
    let elements = text.lines().into_iter().filter(|line| line["kind"] == "element");
    elements.map(|line| line["text"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn what_a_condition_finds_is_kept_with_what_is_around_it() {
    let folder = folder();
    let dir = folder.path();
    ring(dir);
    let search = "hold r.hf --stream log --where matches(payload,'^line_1500_') --reason needle --json";
    let held = ends(dir, search, 0).json();
    documented("hold", [&held]);
    assert_eq!((&held["elements"], &held["slots"]), (&Value::from(1), &Value::from(1)));
    let around = search.replace("--reason", "--before 1s --after 2s --reason");
    let more = ends(dir, &around, 0).json();
    assert!(more["slots"].as_u64().unwrap() >= 3, "{more}");
    let holds = ends(dir, "holds r.hf --json", 0).lines();
    documented("holds", &holds);
    assert_eq!(holds[1]["finding"]["condition"], "matches(payload,'^line 1500 ')");
    for _ in 0..3 {
        fill(dir, 8000);
    }
    ends(dir, "release r.hf 1", 0);
    let kept = left(dir);
    let expected: Vec<String> = (1400..=1700).map(line).collect();
    let first = kept.iter().position(|text| *text == expected[0]).unwrap();
    assert_eq!(kept[first..first + expected.len()], expected);
    for expired in ["500..510", "2500..2510"] {
        ends(dir, &format!("read r.hf --stream log --ordinals {expired}"), 3);
    }
    // A second window: only where ten come within a tenth of a second, which they always do.
    let (from, to) = (START + 1450 * STEP, START + 1460 * STEP);
    let busy = format!(
        "hold r.hf --where size_>_0 --when count(*)_>=_10 --within 90ms --from {from} --to {to} --reason busy --json"
    );
    assert_eq!(ends(dir, &busy, 0).json()["elements"], 11);
    ends(dir, &busy.replace("90ms", "80ms"), 3);
    let (from, to) = (START + 900 * STEP, START + 1200 * STEP);
    let sample = format!("hold r.hf --sample 1s/10s --from {from} --to {to} --reason usual --json");
    assert!(ends(dir, &sample, 0).json()["slots"].as_u64() >= Some(1));
}

#[test]
fn conditions_that_cannot_be_asked_are_refused() {
    let folder = folder();
    let dir = folder.path();
    ring(dir);
    for (line, code, said) in [
        ("--where nosuch_=_1 --reason x", 2, "nosuch"),
        ("--where size_>_>_1 --reason x", 2, "Column: 8"),
        ("--where count(*)_>_1 --reason x", 2, "a condition is about one"),
        ("--where time_>_now() --reason x", 2, "--last"),
        ("--where size_=_999999 --reason x", 3, "nothing of that is on the ring"),
        ("--where size_>_0 --when size_>_1 --within 1s --reason x", 2, "about several elements"),
        ("--where size_>_0 --when count(*)_>_1 --reason x", 2, "--within"),
        ("--where size_>_0 --standing --reason x", 2, "--quota"),
        ("--where size_>_0 --sample 1s/1h --reason x", 2, "cannot be used with"),
        ("--where size_>_0 --ordinals 1..2 --reason x", 2, "cannot be used with"),
        ("--where size_>_0", 2, "--reason"),
        ("--sample 2h/1h --reason x", 2, "30s/1h"),
        ("--where size_>_0 --standing --quota 100000 --reason x", 1, "100000"),
        ("--resume 9", 3, "there is no hold 9"),
    ] {
        let ended = ends(dir, &format!("hold r.hf {line}"), code);
        assert!(ended.err.contains(said), "{line}: {}", ended.err);
    }
    ends(dir, "holds r.hf --json", 3);
}

/// An evaluator at work, and what it says.
struct Evaluator {
    child: Child,
    said: BufReader<ChildStdout>,
}

impl Evaluator {
    fn start(dir: &Path, line: &str) -> Self {
        let words = line.split_whitespace().map(|word| word.replace('_', " "));
        let mut child = holdfast(dir).args(words).arg("--json").stdout(Stdio::piped()).spawn().unwrap();
        let said = BufReader::new(child.stdout.take().unwrap());
        Self { child, said }
    }

    /// The next that it says.
    fn next(&mut self) -> Value {
        let mut line = String::new();
        self.said.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line}: {error}"))
    }

    /// Reads what it says until it has found so many elements in all.
    fn await_found(&mut self, mut count: u64) -> Value {
        loop {
            let said = self.next();
            count = count.checked_sub(said["elements"].as_u64().unwrap()).unwrap();
            if count == 0 {
                return said;
            }
        }
    }

    fn end(mut self) -> Option<i32> {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
        self.child.wait().unwrap().code()
    }
}

impl Drop for Evaluator {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_standing_hold_takes_what_arrives_and_goes_on_after_a_restart() {
    let folder = folder();
    let dir = folder.path();
    let mut recording = Recording::start(dir, "--size 8MiB --slot 64KiB");
    // Every 977th line has this length.
    recording.lines(2000);
    recording.await_lines(dir, 2000);
    let command = "hold r.hf --where length(text(payload))_-_length(trim(text(payload)))_=_0_and_ordinal_%_500_=_7 \
                   --standing --quota 30 --reason seventh";
    let mut evaluator = Evaluator::start(dir, command);
    evaluator.await_found(4);
    recording.lines(1000);
    let said = evaluator.await_found(2);
    assert_eq!((&said["slots"], &said["quota_left"]), (&Value::from(6), &Value::from(24)), "{said}");
    let status = ends(dir, "status r.hf --json", 0).json();
    assert_eq!(status["slots"]["promised"], said["quota_left"]);
    assert_eq!(evaluator.end(), Some(0));
    // Nobody evaluates for a while.
    recording.lines(1000);
    recording.await_lines(dir, 4000);
    let mut evaluator = Evaluator::start(dir, "hold r.hf --resume 1");
    // What was found a moment before the first one ended may be found again: it is held once.
    while evaluator.next()["slots"] != 8 {}
    assert_eq!(evaluator.end(), Some(0));
    for _ in 0..8 {
        recording.lines(4000);
    }
    recording.await_lines(dir, 36_000);
    let (code, _, err) = recording.end();
    assert_eq!(code, Some(0), "{err}");
    let kept = left(dir);
    for ordinal in (7..4000).step_by(500) {
        assert!(kept.contains(&line(ordinal)), "{ordinal} was not held");
    }
    let rest = kept.iter().filter(|text| (0..4000).any(|ordinal| **text == line(ordinal))).count();
    assert!(rest < 2000, "what nobody asked for has expired");
}

#[test]
fn a_standing_hold_ends_with_its_quota() {
    let folder = folder();
    let dir = folder.path();
    let mut recording = Recording::start(dir, "--size 8MiB --slot 64KiB");
    recording.lines(100);
    recording.await_lines(dir, 100);
    let mut evaluator = Evaluator::start(dir, "hold r.hf --where size_>_0 --standing --quota 5 --reason all");
    evaluator.next();
    let started = Instant::now();
    let mut sent = 100;
    let code = loop {
        recording.lines(100);
        sent += 100;
        recording.await_lines(dir, sent);
        if let Some(status) = evaluator.child.try_wait().unwrap() {
            break status.code();
        }
        assert!(started.elapsed() < PATIENCE, "it goes on");
    };
    assert_eq!(code, Some(1));
    let holds = ends(dir, "holds r.hf --json", 0).lines();
    assert!(holds[0]["slots"].as_u64() <= Some(5), "{}", holds[0]);
    recording.end();
}

#[test]
fn distilling_leaves_what_was_found_and_frees_the_rest() {
    let folder = folder();
    let dir = folder.path();
    ring(dir);
    let found: Vec<String> = (0..3000).filter(|ordinal| ordinal % 50 == 3).map(line).collect();
    let mut evaluator =
        Evaluator::start(dir, "hold r.hf --where ordinal_%_50_=_3_and_ordinal_<_3000 --distil --reason few");
    let held = evaluator.next();
    assert_eq!(held["elements"], found.len());
    let whole = held["slots"].as_u64().unwrap();
    assert_eq!(evaluator.end(), Some(0), "their turn has not come, and it can be interrupted");
    for _ in 0..4 {
        fill(dir, 8000);
    }
    let said = ends(dir, "hold r.hf --resume 1 --json", 0).lines();
    documented("hold", &said);
    let originals: u64 = said.iter().map(|said| said["originals"].as_u64().unwrap()).sum();
    assert_eq!(originals, whole);
    let holds = ends(dir, "holds r.hf --json", 0).lines();
    assert!(holds[0]["slots"].as_u64().unwrap() <= whole / 20, "{} of {whole}", holds[0]);
    let kept = left(dir);
    assert_eq!(kept[..found.len()], found);
    // Another lap or two changes nothing.
    for _ in 0..3 {
        fill(dir, 8000);
    }
    assert_eq!(left(dir)[..found.len()], found);
    ends(dir, "check r.hf", 0);
    assert_eq!(run(dir, "gaps r.hf").code, Some(3));
}
