//! Holds of what a condition finds: what is there, what arrives, and just that in the end.
#![allow(missing_docs, clippy::unwrap_used)]

use crate::common;
use crate::common::evaluating;
use crate::common::filled;

use common::{documented, ends, folder, run};
use evaluating::{Evaluator, left, left_of};
use filled::{Filler, START, STEP, line};
use holdfast_base::Timestamp;
use serde_json::Value;
use std::path::Path;

/// A run, and when it is: later than those with smaller numbers.
fn fill(dir: &Path, lines: u64, run: i64) {
    let start = Timestamp(START + run * 10_000 * STEP);
    let mut filler = Filler::open_at(&dir.join("r.hf"), start);
    filler.lines(lines);
    filler.close();
}

fn ring(dir: &Path) {
    ends(dir, "format r.hf --size 8MiB --slot 64KiB", 0);
    fill(dir, 3000, 0);
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
    for run in 1..4 {
        fill(dir, 8000, run);
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
    let (from, to) = (START + 1450 * STEP, START + 1650 * STEP);
    let sample = format!("hold r.hf --sample 1s/5s --from {from} --to {to} --reason usual --json");
    assert!(ends(dir, &sample, 0).json()["slots"].as_u64() >= Some(1));
}

#[test]
fn conditions_that_cannot_be_asked_are_refused() {
    let folder = folder();
    let dir = folder.path();
    ring(dir);
    for (line, code, said) in [
        ("--where nosuch_=_1 --reason x", 2, "nosuch"),
        ("--where size_>_>_1 --reason x", 2, "\n         ^"),
        ("--where count(*)_>_1 --reason x", 2, "it has an aggregate or a window function"),
        ("--where time_>_now() --reason x", 2, "--last"),
        ("--where size_=_999999 --reason x", 3, "nothing of that is on the ring"),
        ("--where size_>_0 --when size_>_1 --within 1s --reason x", 2, "it has no aggregate"),
        ("--where size_>_0 --when count(*)_>_1 --reason x", 2, "--within"),
        ("--where size_>_0 --standing --reason x", 2, "--quota"),
        ("--where size_>_0 --sample 1s/1h --reason x", 2, "cannot be used with"),
        ("--where size_>_0 --ordinals 1..2 --reason x", 2, "cannot be used with"),
        ("--where size_>_0", 2, "--reason"),
        ("--sample 2h/1h --reason x", 2, "30s/1h"),
        ("--where size_>_0 --standing --quota 100000 --reason x", 1, "100000"),
        ("--resume 9", 3, "there is no hold 9"),
        ("--resume 9 --quota 7", 2, "cannot be used with"),
        ("--resume 9 --before 7s", 2, "cannot be used with"),
        ("--sample 1s/1h --before 1s --reason x", 2, "cannot be used with"),
        ("--distil --reason x", 2, "nothing is looked for"),
        ("--last 2s --standing --quota 3 --reason x", 2, "nothing is looked for"),
        ("--where size --reason x", 2, "this is neither"),
        ("--where size_>_0 --when count(*) --within 1s --reason x", 2, "this is neither"),
        ("--where size_>_0 --when count(*)_>= --within 1s --reason x", 2, "count(*) >=\n"),
    ] {
        let ended = ends(dir, &format!("hold r.hf {line}"), code);
        assert!(ended.err.contains(said), "{line}: {}", ended.err);
    }
    ends(dir, "holds r.hf --json", 3);
}

#[test]
fn a_hold_that_is_interrupted_before_all_has_arrived_says_so() {
    let folder = folder();
    let dir = folder.path();
    ring(dir);
    let what = "hold r.hf --where ordinal_=_1500 --after 1000d --reason x";
    let mut evaluator = Evaluator::start(dir, what);
    assert_eq!(evaluator.next()["elements"], 1);
    rustix::process::kill_process(
        rustix::process::Pid::from_child(&evaluator.child),
        rustix::process::Signal::INT,
    )
    .unwrap();
    assert_eq!(evaluator.child.wait().unwrap().code(), Some(1));
    let said = evaluator.warnings();
    assert!(said.contains("before all had arrived that --after asks for"), "{said}");
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
    for run in 1..5 {
        fill(dir, 8000, run);
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
    for run in 5..8 {
        fill(dir, 8000, run);
    }
    assert_eq!(left(dir)[..found.len()], found);
    ends(dir, "check r.hf", 0);
    assert_eq!(run(dir, "gaps r.hf").code, Some(3));
}

// The numbers of slots jump where a recorder begins: that they have passed the ring's size does not mean that anything has expired.
#[test]
fn a_hold_waits_for_its_turn_on_a_ring_that_was_recorded_to_several_times() {
    let folder = folder();
    let dir = folder.path();
    ends(dir, "format r.hf --size 8MiB --slot 64KiB", 0);
    fill(dir, 400, 0);
    let mut runs = 1;
    let slots = || ends(dir, "slots r.hf --json", 0).lines();
    let greatest = |slots: &[Value]| slots.iter().filter_map(|slot| slot["sequence"].as_u64()).max().unwrap();
    while greatest(&slots()) <= slots().len() as u64 {
        fill(dir, 10, runs);
        runs += 1;
    }
    assert!(slots().iter().any(|slot| slot["state"] == "free"), "{:?}", slots());
    let mut evaluator =
        Evaluator::start(dir, "hold r.hf --where ordinal_%_50_=_3_and_ordinal_<_400 --distil --reason few");
    let whole = evaluator.next()["slots"].as_u64().unwrap();
    for run in runs..runs + 4 {
        fill(dir, 8000, run);
    }
    let mut originals = 0;
    while originals < whole {
        originals += evaluator.next()["originals"].as_u64().unwrap();
    }
    evaluator.kill();
}

/// What is left of the first run's lines once a hold is distilled, and all others have expired.
fn distilled(what: &str) -> Vec<String> {
    let folder = folder();
    let dir = folder.path();
    ring(dir);
    let mut evaluator = Evaluator::start(dir, &format!("hold r.hf {what} --distil --reason few"));
    let whole = evaluator.next()["slots"].as_u64().unwrap();
    assert_eq!(evaluator.end(), Some(0));
    for run in 1..5 {
        fill(dir, 8000, run);
    }
    let said = ends(dir, "hold r.hf --resume 1 --json", 0).lines();
    let originals: u64 = said.iter().map(|said| said["originals"].as_u64().unwrap()).sum();
    assert_eq!(originals, whole, "{said:?}");
    let slots = ends(dir, "holds r.hf --json", 0).lines()[0]["slots"].as_u64().unwrap();
    assert!(slots <= whole / 3, "{slots} of {whole}");
    ends(dir, "check r.hf", 0);
    left_of(dir, &format!("--to {}", START + 10_000 * STEP))
}

#[test]
fn distilling_keeps_what_is_around_what_was_found() {
    let kept = distilled("--where ordinal_%_300_=_100_and_ordinal_<_3000 --before 50ms --after 100ms");
    let wanted: Vec<String> =
        (0..3000).filter(|ordinal| (95..=110).contains(&(ordinal % 300))).map(line).collect();
    assert_eq!(kept, wanted);
}

#[test]
fn distilling_keeps_of_a_sample_just_that() {
    let kept = distilled(&format!("--sample 100ms/2s --to {}", START + 3001 * STEP));
    // A hundred lines a second.
    let is_wanted =
        |ordinal: &u64| (START + (*ordinal as i64 + 1) * STEP).rem_euclid(2_000_000_000) < 100_000_000;
    let wanted: Vec<String> = (0..3000).filter(is_wanted).map(line).collect();
    assert!(wanted.len() > 100, "{}", wanted.len());
    assert_eq!(kept, wanted);
}

#[test]
fn distilling_keeps_of_a_range_just_what_was_looked_for_in_it() {
    let at = |ordinal: i64| START + (ordinal + 1) * STEP;
    let range = format!("--from {} --to {}", at(1003), at(1997));
    let of = |is_wanted: &dyn Fn(u64) -> bool| -> Vec<String> {
        (0..3000).filter(|ordinal| is_wanted(*ordinal)).map(line).collect()
    };
    let sampled = |ordinal: u64| at(ordinal as i64).rem_euclid(2_000_000_000) < 100_000_000;
    for (what, wanted) in [
        ("--where ordinal_%_50_=_3", of(&|n| n % 50 == 3 && (1003..=1997).contains(&n))),
        // What is around what was found may lie outside.
        (
            "--where ordinal_%_300_=_103 --before 50ms --after 100ms",
            of(&|n| (98..=113).contains(&(n % 300)) && (998..1998).contains(&n)),
        ),
        ("--sample 100ms/2s", of(&|n| sampled(n) && (1003..=1997).contains(&n))),
    ] {
        let kept = distilled(&format!("{what} {range}"));
        assert!(wanted.len() > 10, "{what}");
        assert_eq!(kept, wanted, "{what}");
    }
}

#[test]
fn distilling_keeps_what_counted_toward_a_window_that_ends_behind_it() {
    let folder = folder();
    let dir = folder.path();
    ring(dir);
    // Another hold keeps the slot in which the window is full: those before it are distilled by themselves.
    ends(dir, "hold r.hf --stream log --ordinals 1390..1391 --reason other", 0);
    let search = "ordinal_%_10_=_0_and_ordinal_>=_1000_and_ordinal_<_1400";
    let when = "--when count(*)_>=_40 --within 5s";
    let mut evaluator =
        Evaluator::start(dir, &format!("hold r.hf --where {search} {when} --distil --reason burst"));
    assert!(evaluator.next()["slots"].as_u64().unwrap() > 2);
    assert_eq!(evaluator.end(), Some(0));
    for run in 1..5 {
        fill(dir, 8000, run);
    }
    let said = ends(dir, "hold r.hf --resume 2 --json", 0).lines();
    assert!(said.iter().any(|said| said["originals"].as_u64() > Some(0)), "{said:?}");
    let kept = left_of(dir, &format!("--to {}", START + 10_000 * STEP));
    let wanted: Vec<String> = (1000..1400).step_by(10).map(line).collect();
    let there: Vec<&String> = kept.iter().filter(|text| wanted.contains(text)).collect();
    assert_eq!(there, wanted.iter().collect::<Vec<_>>());
    assert!(kept.len() < 250, "{}", kept.len());
}
