//! Queries that somebody reads slowly, beside a recording that goes round the ring meanwhile: what they pinned they find, and what
//! they lost they tell of. Promises 1 and 3.
#![allow(missing_docs, clippy::unwrap_used)]

use crate::common;
use crate::common::recording;

use common::{ends, folder, holdfast};
use recording::{PATIENCE, Recording};
use rustix::process::{Pid, Signal, kill_process};
use std::ffi::OsStr;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Instant;

/// Lines that fill the ring once, and a bit.
const LAP: u64 = 40_000;

/// A ring that has wrapped, and what goes on with it.
struct Run<'d> {
    dir: &'d Path,
    recording: Recording,
    lines: u64,
}

impl<'d> Run<'d> {
    fn start(dir: &'d Path) -> Self {
        let recording = Recording::start(dir, "--size 16MiB --slot 64KiB");
        let mut run = Self { dir, recording, lines: 0 };
        run.laps(2);
        run
    }

    fn laps(&mut self, laps: u64) {
        for _ in 0..laps {
            self.lines += LAP;
            self.recording.lines(LAP);
            self.recording.await_lines(self.dir, self.lines);
        }
        self.await_written();
    }

    /// Waits until all slots but the open one are on the medium: until then others expire for them.
    fn await_written(&self) {
        let started = Instant::now();
        loop {
            let in_use =
                ends(self.dir, "status r.hf --json", 0).json()["recorder"]["buffers_in_use"].as_u64();
            if in_use.unwrap() <= 1 {
                return;
            }
            assert!(started.elapsed() < PATIENCE, "{in_use:?} slots are not written");
        }
    }

    /// How many slots may be pinned.
    fn budget(&self) -> usize {
        ends(self.dir, "status r.hf --json", 0).json()["slots"]["total"].as_u64().unwrap() as usize / 20
    }

    /// The sequences of slots in these states, oldest first.
    fn slots(&self, states: &[&str]) -> Vec<u64> {
        let mut all = ends(self.dir, "slots r.hf --json", 0).lines();
        all.retain(|slot| states.contains(&slot["state"].as_str().unwrap()));
        all.sort_by_key(|slot| slot["age"].as_u64());
        all.iter().map(|slot| slot["sequence"].as_u64().unwrap()).collect()
    }

    /// Waits until those slots are pinned that should be.
    fn await_pinned(&self, as_wanted: impl Fn(&[u64]) -> bool) {
        let started = Instant::now();
        loop {
            let pinned = self.slots(&["pinned"]);
            if as_wanted(&pinned) {
                return;
            }
            assert!(started.elapsed() < PATIENCE, "{pinned:?} are pinned");
        }
    }

    /// What a query over some slots says. It is more than goes into a pipe that nobody reads.
    fn answer(&self, slots: &[u64]) -> String {
        ends(self.dir, &question(slots), 0).out
    }

    /// A query over some slots that has begun, and whose answer nobody takes.
    fn asked(&self, slots: &[u64]) -> Asked {
        self.begun(question(slots).split_whitespace().map(|word| word.replace('_', " ")))
    }

    fn begun(&self, words: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Asked {
        let mut command = holdfast(self.dir);
        Asked(command.args(words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
    }

    /// An export that has been stopped where it still has to read much more than it has pinned.
    fn stopped(&self, words: &[&str]) -> Asked {
        let started = Instant::now();
        loop {
            let mut asked = self.begun(words);
            while self.slots(&["pinned"]).is_empty() && asked.0.try_wait().unwrap().is_none() {}
            asked.signal(Signal::STOP);
            let (pinned, all) = (self.slots(&["pinned"]), self.slots(&["pinned", "live"]));
            let behind = |last: &u64| all.iter().filter(|slot| *slot > last).count();
            if pinned.last().map_or(0, behind) > 2 * self.budget() {
                return asked;
            }
            assert!(started.elapsed() < PATIENCE, "it is always too far: {pinned:?}");
        }
    }
}

fn question(slots: &[u64]) -> String {
    let (first, last) = (slots.first().unwrap(), slots.last().unwrap());
    format!(
        "query r.hf select_slot,_ordinal,_payload_from_log_where_slot_between_{first}_and_{last} --threads 1 --format csv"
    )
}

/// A query at work; ends with the test.
struct Asked(Child);

impl Asked {
    fn signal(&self, signal: Signal) {
        let _ = kill_process(Pid::from_child(&self.0), signal);
    }

    /// Takes the answer: exit code, rows, and what else it says.
    fn taken(mut self) -> (Option<i32>, String, String) {
        let (mut out, mut err) = (String::new(), String::new());
        self.0.stdout.take().unwrap().read_to_string(&mut out).unwrap();
        self.0.stderr.take().unwrap().read_to_string(&mut err).unwrap();
        (self.0.wait().unwrap().code(), out, err)
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_query_that_is_read_slowly_finds_all_that_it_has_pinned() {
    let folder = folder();
    let mut run = Run::start(folder.path());
    let slots = run.slots(&["live"])[..run.budget()].to_vec();
    assert!(slots.len() > 8, "{slots:?}");
    let wanted = run.answer(&slots);
    run.await_pinned(<[u64]>::is_empty);
    let asked = run.asked(&slots);
    run.await_pinned(|pinned| pinned == slots);
    run.laps(3);
    assert_eq!(run.slots(&["pinned", "live"])[..slots.len()], slots);
    let (code, found, said) = asked.taken();
    assert_eq!((code, said.as_str()), (Some(0), ""));
    assert!(found == wanted, "{} bytes instead of {}", found.len(), wanted.len());
    run.await_pinned(<[u64]>::is_empty);
    let (code, out, err) = run.recording.end();
    assert_eq!(code, Some(0), "{out}{err}");
}

#[test]
fn a_query_that_has_lost_pins_says_what_expired_and_finds_nothing_wrong() {
    let folder = folder();
    let mut run = Run::start(folder.path());
    let (live, budget) = (run.slots(&["live"]), run.budget());
    let slots = live[..budget].to_vec();
    let wanted = run.answer(&slots);
    let asked = run.asked(&slots);
    run.await_pinned(|pinned| pinned == slots);
    // Another one gets half of them.
    let others = &live[2 * budget..3 * budget];
    let other = run.asked(others);
    let (kept, lost) = slots.split_at(budget - budget / 2);
    run.await_pinned(|pinned| {
        let (first, rest) = pinned.split_at(kept.len().min(pinned.len()));
        first == kept && rest.len() == lost.len() && rest.iter().all(|slot| others.contains(slot))
    });
    run.laps(2);
    let (code, found, said) = asked.taken();
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains(&format!("{} slots expired while the query was at work", lost.len())), "{said}");
    let is_kept = |row: &&str| {
        row.split(',').next().and_then(|slot| slot.parse().ok()).is_none_or(|slot| kept.contains(&slot))
    };
    let left: Vec<&str> = wanted.lines().filter(is_kept).collect();
    assert!(left.len() > 100 && left.len() < wanted.lines().count());
    assert!(found.lines().eq(left.iter().copied()), "{} rows", found.lines().count());
    drop(other);
    run.await_pinned(<[u64]>::is_empty);
    let (code, out, err) = run.recording.end();
    assert_eq!(code, Some(0), "{out}{err}");
}

#[test]
fn an_export_of_what_others_are_not_leaves_no_file_where_some_of_them_expired() {
    let folder = folder();
    let dir = folder.path();
    let mut run = Run::start(dir);
    let sql = "select ordinal from log where ordinal % 100 = 7 and ordinal not in \
               (select ordinal from log where matches(payload, '^line [0-9]*(1|2|3|4)07 '))";
    let words = ["query", "r.hf", sql, "--threads", "1", "--format", "mcap", "-o", "out.mcap"];
    let (code, _, said) = run.begun(words).taken();
    assert_eq!(code, Some(0), "{said}");
    std::fs::remove_file(dir.join("out.mcap")).unwrap();
    run.await_pinned(<[u64]>::is_empty);
    let asked = run.stopped(&words);
    run.laps(3);
    asked.signal(Signal::CONT);
    let (code, _, said) = asked.taken();
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("without what was in them the answer would be wrong"), "{said}");
    assert!(!dir.join("out.mcap").exists() && !dir.join("out.mcap.part").exists());
    run.await_pinned(<[u64]>::is_empty);
    let (code, out, err) = run.recording.end();
    assert_eq!(code, Some(0), "{out}{err}");
}
