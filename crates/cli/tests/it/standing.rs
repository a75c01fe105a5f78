//! Holds that stand: what arrives is found and kept, whoever looks for it is interrupted or killed, and what came meanwhile is
//! caught up with.
#![allow(missing_docs, clippy::unwrap_used)]

use crate::common;
use crate::common::evaluating;
use crate::common::recording;

use common::{ends, folder, run};
use evaluating::{Evaluator, left};
use recording::{PATIENCE, Recording, line};
use serde_json::Value;
use std::collections::HashSet;
use std::io::Write as _;
use std::path::Path;
use std::time::Instant;

/// Every 500th line is wanted, of which there are two after each thousand.
const WANTED: &str =
    "hold r.hf --where length(text(payload))_-_length(trim(text(payload)))_=_0_and_ordinal_%_500_=_7";

fn takes_what_arrives_and_goes_on(is_killed: bool) {
    let folder = folder();
    let dir = folder.path();
    let mut recording = Recording::start(dir, "--size 8MiB --slot 64KiB");
    recording.lines(2000);
    recording.await_lines(dir, 2000);
    let command = format!("{WANTED} --standing --quota 30 --reason seventh");
    let mut evaluator = Evaluator::start(dir, &command);
    evaluator.await_found(4);
    recording.lines(1000);
    let said = evaluator.await_found(2);
    assert_eq!((&said["slots"], &said["quota_left"]), (&Value::from(6), &Value::from(24)), "{said}");
    let status = ends(dir, "status r.hf --json", 0).json();
    assert_eq!(status["slots"]["promised"], said["quota_left"]);
    if is_killed {
        evaluator.kill();
    } else {
        assert_eq!(evaluator.end(), Some(0));
    }
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
fn a_standing_hold_takes_what_arrives_and_goes_on_after_a_restart() {
    takes_what_arrives_and_goes_on(false);
}

#[test]
fn a_standing_hold_goes_on_after_whoever_looked_for_it_was_killed() {
    takes_what_arrives_and_goes_on(true);
}

#[test]
fn what_arrives_after_what_was_found_is_held_too_also_by_who_goes_on_with_it() {
    let folder = folder();
    let dir = folder.path();
    let mut recording = Recording::start(dir, "--size 8MiB --slot 64KiB");
    recording.lines(2000);
    recording.await_lines(dir, 2000);
    let command = "hold r.hf --where ordinal_=_2007 --after 1h --standing --quota 60 --reason roll";
    let mut evaluator = Evaluator::start(dir, command);
    assert_eq!(evaluator.next()["elements"], 0);
    recording.lines(1000);
    let said = evaluator.await_found(1);
    let first = said["slots"].as_u64().unwrap();
    // Nothing of this is found: it comes in the hour after what was.
    recording.lines(1000);
    while evaluator.next()["slots"].as_u64() < Some(first + 5) {}
    evaluator.kill();
    recording.lines(1000);
    recording.await_lines(dir, 5000);
    let mut evaluator = Evaluator::start(dir, "hold r.hf --resume 1");
    while evaluator.next()["slots"].as_u64() < Some(first + 12) {}
    assert_eq!(evaluator.end(), Some(0));
    for _ in 0..8 {
        recording.lines(4000);
    }
    recording.await_lines(dir, 37_000);
    recording.end();
    let kept = left(dir);
    let held: Vec<u64> = (0..5000).filter(|ordinal| kept.contains(&line(*ordinal))).collect();
    let (first, last) = (held[0], *held.last().unwrap());
    assert!((1700..=2007).contains(&first) && last > 4000, "{first} to {last}");
    assert_eq!(held, (first..=last).collect::<Vec<_>>(), "with all between");
}

#[test]
fn a_standing_hold_fires_on_a_condition_over_several() {
    let folder = folder();
    let dir = folder.path();
    let mut recording = Recording::start(dir, "--size 8MiB --slot 64KiB");
    recording.lines(2000);
    recording.await_lines(dir, 2000);
    let more = "--when count(*)_>=_5 --within 1h --standing --quota 40 --reason five";
    let mut evaluator = Evaluator::start(dir, &format!("{WANTED} {more}"));
    let first = evaluator.next();
    assert_eq!((&first["elements"], &first["slots"]), (&Value::from(0), &Value::from(0)), "four are too few");
    recording.lines(1000);
    // The fifth and the sixth; with them all that the window reaches back to.
    evaluator.await_found(2);
    assert_eq!(evaluator.end(), Some(0));
    for _ in 0..8 {
        recording.lines(4000);
    }
    recording.await_lines(dir, 35_000);
    recording.end();
    let kept = left(dir);
    for ordinal in (7..2508).step_by(500) {
        assert!(kept.contains(&line(ordinal)), "{ordinal} was not held");
    }
    assert!(!kept.contains(&line(6000)), "what nobody asked for has expired");
}

fn is_distilled_while_it_grows(condition: &str, more: u64) {
    let folder = folder();
    let dir = folder.path();
    let mut recording = Recording::start(dir, "--size 12MiB --slot 64KiB");
    recording.lines(2000);
    recording.await_lines(dir, 2000);
    let command = format!("{condition} --standing --quota 70 --distil --reason few");
    let mut evaluator = Evaluator::start(dir, &command);
    let (mut sent, mut found, mut originals) = (2000, 4, 0);
    evaluator.await_found(4);
    let started = Instant::now();
    // Until two lots of slots have been given back: the copy of the first was written again with the second.
    while originals < 16 {
        assert!(started.elapsed() < PATIENCE, "{originals} slots were distilled of {sent} lines");
        recording.lines(1000);
        sent += 1000;
        recording.await_lines(dir, sent);
        while found < (sent - 7).div_ceil(500) {
            let said = evaluator.next();
            match said["originals"].as_u64() {
                Some(slots) => originals += slots,
                None => found += said["elements"].as_u64().unwrap_or_else(|| panic!("{said}")),
            }
        }
    }
    assert_eq!(evaluator.end(), Some(0));
    recording.end();
    let kept = left(dir);
    let wanted: HashSet<String> = (7..sent).step_by(500).map(line).collect();
    assert_eq!(kept.iter().filter(|text| wanted.contains(*text)).count(), wanted.len());
    // They lay in a slot each.
    let holds = ends(dir, "holds r.hf --json", 0).lines();
    let slots = holds[0]["slots"].as_u64().unwrap();
    assert!(slots + originals <= wanted.len() as u64 + more, "{slots} and {originals} of {}", wanted.len());
    ends(dir, "check r.hf", 0);
}

#[test]
fn a_standing_hold_is_distilled_while_it_grows() {
    is_distilled_while_it_grows(WANTED, 4);
}

/// It fails of this line.
const FAILING: u64 = 2222;

fn failing() -> String {
    format!("{WANTED}_or_1_/_(cast(ordinal_as_bigint)_-_{FAILING})_between_5_and_6")
}

#[test]
fn around_a_slot_of_which_a_condition_fails_others_are_distilled() {
    // One slot that stays whole, and a copy more on its other side.
    is_distilled_while_it_grows(&failing(), 6);
}

#[test]
fn what_a_condition_fails_of_does_not_count_for_one_over_several_and_keeps_it_from_nothing() {
    let folder = folder();
    let dir = folder.path();
    let mut recording = Recording::start(dir, "--size 8MiB --slot 64KiB");
    recording.lines(1000);
    recording.await_lines(dir, 1000);
    let more = "--when count(*)_>=_3 --within 1h --standing --quota 40 --reason three";
    let mut evaluator = Evaluator::start(dir, &format!("{} {more}", failing()));
    assert_eq!(evaluator.next()["elements"], 0, "two are too few");
    recording.lines(2000);
    evaluator.await_found(4);
    assert!(evaluator.warning().contains(&format!("1 element of log ({FAILING} up to")));
    // It is within the window of all that comes.
    recording.lines(1000);
    evaluator.await_found(2);
    assert_eq!(evaluator.end(), Some(0));
    recording.end();
}

#[test]
fn what_cannot_be_added_up_is_told_and_all_else_in_its_window_is_found() {
    let folder = folder();
    let dir = folder.path();
    let mut recording = Recording::start(dir, "--size 8MiB --slot 64KiB");
    recording.lines(1000);
    recording.await_lines(dir, 1000);
    // One for each that is wanted, but for 2507, of which it cannot be told.
    let sum = "sum(1_/_(cast(ordinal_as_bigint)_-_2507)_+_1)_>=_3";
    let more = format!("--when {sum} --within 1h --standing --quota 40 --reason three");
    let mut evaluator = Evaluator::start(dir, &format!("{WANTED} {more}"));
    assert_eq!(evaluator.next()["elements"], 0, "two are too few");
    recording.lines(2000);
    evaluator.await_found(3);
    let warned = evaluator.warning();
    assert!(
        warned.contains("1 element of log (2507 up to") && warned.contains("divided by zero"),
        "{warned}"
    );
    // It is within the window of all that comes.
    recording.lines(1000);
    evaluator.await_found(2);
    assert_eq!(evaluator.end(), Some(0));
    recording.end();
}

#[test]
fn what_a_condition_fails_of_is_told_and_what_lies_around_it_is_found() {
    let folder = folder();
    let dir = folder.path();
    let mut recording = Recording::start(dir, "--size 8MiB --slot 64KiB");
    recording.lines(1000);
    recording.await_lines(dir, 1000);
    let failing = failing();
    let mut evaluator = Evaluator::start(dir, &format!("{failing} --standing --quota 30 --reason some"));
    evaluator.await_found(2);
    recording.lines(2000);
    evaluator.await_found(4);
    let warned = evaluator.warning();
    assert!(
        warned.contains(&format!("1 element of log ({FAILING} up to {})", FAILING + 1))
            && warned.contains("divided by zero"),
        "{warned}"
    );
    // Nobody looks at it again, nor does whoever goes on.
    recording.lines(1000);
    evaluator.await_found(2);
    evaluator.kill();
    recording.lines(1000);
    let mut evaluator = Evaluator::start(dir, "hold r.hf --resume 1");
    while evaluator.next()["slots"] != 10 {}
    assert_eq!(evaluator.end(), Some(0));
    // Whoever gives such a condition is told before there is a hold.
    let refused = run(dir, &format!("{failing} --standing --quota 5 --reason none"));
    assert!(refused.code == Some(1) && refused.err.contains("divided by zero"), "{}", refused.err);
    assert_eq!(ends(dir, "holds r.hf --json", 0).lines().len(), 1);
    recording.end();
}

/// One of so many lines is larger than a slot, this one.
const EVERY: u64 = 150;
const LARGE: u64 = 147;

fn long_line(ordinal: u64) -> String {
    let length = if ordinal % EVERY == LARGE { 100_000 } else { 3000 };
    format!("line {ordinal} {}\n", "x".repeat(length))
}

fn send(dir: &Path, recording: &mut Recording, from: u64) {
    let text: String = (from..from + EVERY).map(long_line).collect();
    recording.input.as_mut().unwrap().write_all(text.as_bytes()).unwrap();
    recording.await_lines(dir, from + EVERY);
}

/// Those that a search finds that no distilling comes in the way of: it is asked again.
fn there(dir: &Path) -> Vec<u64> {
    let question = "query r.hf --format csv select_ordinal_from_log_where_size_>_50000_order_by_ordinal";
    let started = Instant::now();
    loop {
        let said = run(dir, question);
        if said.code == Some(0) {
            return said.out.lines().skip(1).map(|line| line.parse().unwrap()).collect();
        }
        assert!(said.err.contains("expired while the query was at work"), "{}", said.err);
        assert!(started.elapsed() < PATIENCE, "all expires: {}", said.err);
    }
}

// What lies in several slots is there as long as all of them, or copies of what they had: whatever became of their numbers.
#[test]
fn elements_larger_than_a_slot_are_found_the_same_while_they_are_distilled_again_and_again() {
    let folder = folder();
    let dir = folder.path();
    let mut recording = Recording::start(dir, "--size 16MiB --slot 64KiB");
    send(dir, &mut recording, 0);
    let command = "hold r.hf --where size_>_50000 --standing --quota 120 --distil --reason large";
    let mut evaluator = Evaluator::start(dir, command);
    let (mut sent, mut found, mut orders) = (EVERY, 0, 0);
    let started = Instant::now();
    while orders < 5 {
        assert!(started.elapsed() < PATIENCE, "distilled {orders} times of {sent} lines");
        send(dir, &mut recording, sent);
        sent += EVERY;
        while found < sent / EVERY {
            let said = evaluator.next();
            match said["originals"].as_u64() {
                Some(_) => orders += 1,
                None => found += said["elements"].as_u64().unwrap_or_else(|| panic!("{said}")),
            }
        }
        assert_eq!(there(dir), (LARGE..sent).step_by(EVERY as usize).collect::<Vec<_>>(), "after {orders}");
    }
    assert_eq!(evaluator.end(), Some(0));
    recording.end();
    let kept: HashSet<String> = left(dir).into_iter().filter(|text| text.len() > 50_000).collect();
    let wanted =
        (LARGE..sent).step_by(EVERY as usize).map(|ordinal| long_line(ordinal).trim_end().to_owned());
    assert_eq!(kept, wanted.collect());
    ends(dir, "check r.hf", 0);
}

#[test]
fn of_an_element_that_ends_in_a_slot_that_is_not_distilled_nothing_is_dropped() {
    let folder = folder();
    let dir = folder.path();
    let mut recording = Recording::start(dir, "--size 8MiB --slot 64KiB");
    send(dir, &mut recording, 0);
    send(dir, &mut recording, EVERY);
    // What comes right behind each is kept by another hold, too: with it the slot in which it ends.
    ends(dir, "hold r.hf --where ordinal_%_150_=_148 --reason behind", 0);
    let command = "hold r.hf --where ordinal_%_15_=_12 --distil --reason large";
    let mut evaluator = Evaluator::start(dir, command);
    assert_eq!(evaluator.next()["elements"], 20);
    for lot in 2..22 {
        send(dir, &mut recording, lot * EVERY);
    }
    let mut originals = 0;
    while originals < 10 {
        let said = evaluator.next();
        originals += said["originals"].as_u64().unwrap_or_else(|| panic!("{said}"));
    }
    evaluator.kill();
    recording.end();
    assert_eq!(there(dir)[..2], [LARGE, EVERY + LARGE]);
    let kept = left(dir);
    for ordinal in (12..2 * EVERY).step_by(15) {
        assert!(kept.contains(&long_line(ordinal).trim_end().to_owned()), "{ordinal} is torn or gone");
    }
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
    let said = evaluator.warnings();
    for how in
        ["the quota of hold 1 (5 slots) is spent", "larger --quota", "--distil", "holdfast release r.hf 1"]
    {
        assert!(said.contains(how), "{said}");
    }
    let holds = ends(dir, "holds r.hf --json", 0).lines();
    assert_eq!(holds[0]["slots"], 5, "what has room is held");
    recording.end();
}

// What came while nobody looked is more than there is room for: the oldest of it is held.
#[test]
fn who_catches_up_with_more_than_its_quota_holds_what_fits() {
    let folder = folder();
    let dir = folder.path();
    let mut recording = Recording::start(dir, "--size 8MiB --slot 64KiB");
    recording.lines(1000);
    recording.await_lines(dir, 1000);
    let mut evaluator = Evaluator::start(dir, &format!("{WANTED} --standing --quota 5 --reason few"));
    evaluator.await_found(2);
    evaluator.kill();
    recording.lines(5000);
    recording.await_lines(dir, 6000);
    let ended = ends(dir, "hold r.hf --resume 1", 1);
    assert!(ended.err.contains("the quota of hold 1 (5 slots) is spent"), "{}", ended.err);
    assert_eq!(ends(dir, "holds r.hf --json", 0).lines()[0]["slots"], 5);
    for _ in 0..8 {
        recording.lines(4000);
    }
    recording.await_lines(dir, 38_000);
    recording.end();
    let kept = left(dir);
    for ordinal in (7..2500).step_by(500) {
        assert!(kept.contains(&line(ordinal)), "{ordinal} was not held");
    }
}

/// What evaluators of a hold have said that they hold and have freed.
struct Tight {
    held: u64,
    freed: u64,
}

impl Tight {
    /// Reads on until so many slots have come to be held.
    fn until(&mut self, evaluator: &mut Evaluator, held: u64) {
        while self.held < held {
            let said = evaluator.next();
            self.held += said["added"].as_u64().unwrap_or(0);
            self.freed += said["originals"].as_u64().unwrap_or(0) - said["copies"].as_u64().unwrap_or(0);
        }
    }
}

#[test]
fn a_standing_hold_that_is_distilled_goes_on_when_its_quota_was_spent() {
    let folder = folder();
    let dir = folder.path();
    let mut recording = Recording::start(dir, "--size 12MiB --slot 64KiB");
    let send = |recording: &mut Recording, from: u64, to: u64| {
        for sent in (from..to).step_by(1000) {
            recording.lines(1000);
            recording.await_lines(dir, sent + 1000);
        }
    };
    send(&mut recording, 0, 2000);
    let wanted = (7..14_000).step_by(500).map(line);
    let what = "--where ordinal_%_500_=_7_and_ordinal_<_14000 --standing --quota 20 --distil --reason few";
    let mut evaluator = Evaluator::start(dir, &format!("hold r.hf {what}"));
    let mut tight = Tight { held: 0, freed: 0 };
    tight.until(&mut evaluator, 4);
    // 28 are found, each in a slot of its own.
    send(&mut recording, 2000, 14_000);
    tight.until(&mut evaluator, 20);
    let said = evaluator.warning();
    assert!(said.contains("quota of hold 1 (20 slots) is spent") && said.contains("waits"), "{said}");
    evaluator.kill();
    let mut evaluator = Evaluator::start(dir, "hold r.hf --resume 1");
    let said = evaluator.warning();
    assert!(said.contains("is spent"), "{said}");
    assert_eq!(tight.freed, 0, "nothing is distilled before its turn");
    // Until the first ten come to their turn; what waits does not by far.
    let mut lines = 14_000;
    while run(dir, "read r.hf --stream log --ordinals 4600..4601").code != Some(3) {
        send(&mut recording, lines, lines + 1000);
        lines += 1000;
    }
    tight.until(&mut evaluator, 28);
    assert!(tight.freed >= 8, "{}", tight.freed);
    assert_eq!(evaluator.end(), Some(0));
    let holds = ends(dir, "holds r.hf --json", 0).lines();
    assert!(holds[0]["slots"].as_u64() <= Some(20), "{}", holds[0]);
    recording.end();
    let kept: HashSet<String> = left(dir).into_iter().collect();
    assert_eq!(wanted.clone().filter(|line| kept.contains(line)).count(), wanted.count());
    ends(dir, "check r.hf", 0);
}

#[test]
fn a_hold_of_which_nothing_can_be_distilled_ends_with_its_quota() {
    let folder = folder();
    let dir = folder.path();
    let mut recording = Recording::start(dir, "--size 8MiB --slot 64KiB");
    recording.lines(100);
    recording.await_lines(dir, 100);
    let what = "--where size_>_0 --standing --quota 5 --distil --reason all";
    let mut evaluator = Evaluator::start(dir, &format!("hold r.hf {what}"));
    evaluator.next();
    let (started, mut sent) = (Instant::now(), 100);
    // Until its turn has come nobody knows.
    let code = loop {
        recording.lines(500);
        sent += 500;
        recording.await_lines(dir, sent);
        if let Some(status) = evaluator.child.try_wait().unwrap() {
            break status.code();
        }
        assert!(started.elapsed() < PATIENCE, "it goes on");
    };
    assert_eq!(code, Some(1));
    let said = evaluator.warnings();
    assert!(
        said.contains("nothing more of it can be distilled") && said.contains("larger --quota"),
        "{said}"
    );
    recording.end();
}

#[test]
fn a_hold_that_is_released_while_something_of_it_waits_for_room_ends() {
    let folder = folder();
    let dir = folder.path();
    let mut recording = Recording::start(dir, "--size 8MiB --slot 64KiB");
    recording.lines(2000);
    recording.await_lines(dir, 2000);
    let what = "--where size_>_0 --standing --quota 5 --distil --reason all";
    let mut evaluator = Evaluator::start(dir, &format!("hold r.hf {what}"));
    assert_eq!(evaluator.next()["slots"], 5);
    ends(dir, "release r.hf 1", 0);
    let said = evaluator.warnings();
    assert!(said.contains("is spent") && said.contains("there is no hold 1"), "{said}");
    assert_eq!(evaluator.child.wait().unwrap().code(), Some(3));
    recording.end();
}

#[test]
fn few_slots_in_front_of_another_hold_are_distilled_while_theirs_stands() {
    let folder = folder();
    let dir = folder.path();
    let mut recording = Recording::start(dir, "--size 8MiB --slot 64KiB");
    recording.lines(4000);
    recording.await_lines(dir, 4000);
    // Three are found in front of what somebody else keeps, and none behind.
    ends(dir, "hold r.hf --ordinals 2000..3000 --reason mine", 0);
    let what = "--where ordinal_%_500_=_7_and_ordinal_<_1500 --standing --quota 20 --distil --reason few";
    let mut evaluator = Evaluator::start(dir, &format!("hold r.hf {what}"));
    assert_eq!(evaluator.next()["slots"], 3);
    for sent in (4000..22_000).step_by(2000) {
        recording.lines(2000);
        recording.await_lines(dir, sent + 2000);
    }
    let started = Instant::now();
    while ends(dir, "holds r.hf --json", 0).lines()[1]["slots"] != 1 {
        assert!(started.elapsed() < PATIENCE, "they stay whole");
    }
    assert_eq!(evaluator.end(), Some(0));
    recording.end();
    let kept = left(dir);
    assert_eq!(kept.iter().take(3).cloned().collect::<Vec<_>>(), [7, 507, 1007].map(line));
    ends(dir, "check r.hf", 0);
}
