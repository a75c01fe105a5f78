//! Holds on rings that nobody records to: acknowledged means kept (promise 4), what is not held expires oldest first
//! (promise 3), and what is purged is gone.
#![allow(missing_docs, clippy::unwrap_used)]

use crate::common;
use crate::common::filled;
use crate::common::recording;

use common::{documented, ends, folder};
use filled::{Filler, START, STEP, line};
use holdfast_base::{ManualClock, Ordinal, Sequence, StreamId, Timestamp};
use holdfast_format::ConditionHold;
use holdfast_media::{Access, Device, RealDisk};
use holdfast_ring::{HoldRequest, Order, Outcome, Range, order_offline};
use recording::Recording;
use serde_json::Value;
use std::fs;
use std::path::Path;

fn ring(dir: &Path) {
    ends(dir, "format r.hf --size 8MiB --slot 64KiB", 0);
    let mut filler = Filler::open(&dir.join("r.hf"));
    filler.lines(3000);
    filler.close();
}

fn fill(dir: &Path, lines: u64) {
    let mut filler = Filler::open(&dir.join("r.hf"));
    filler.lines(lines);
    filler.close();
}

#[test]
fn what_is_held_outlives_many_laps() {
    let folder = folder();
    let dir = folder.path();
    ring(dir);
    let read = "read r.hf --stream log --ordinals 1000..1400";
    let before = ends(dir, read, 0).bytes;
    let held =
        ends(dir, "hold r.hf --stream log --ordinals 1000..1400 --reason door_alarm --owner me --json", 0)
            .json();
    documented("hold", [&held]);
    assert!(held["slots"].as_u64().unwrap() >= 3);
    // The second one is by time, and ends by itself in the far future.
    let (from, to) = (START + 2001 * STEP, START + 2100 * STEP);
    let said = ends(dir, &format!("hold r.hf --from {from} --to {to} --until 2100-01-01 --reason later"), 0);
    assert!(said.out.starts_with("hold 2: ") && said.out.contains("2100-01-01"), "{}", said.out);
    let holds = ends(dir, "holds r.hf --json", 0).lines();
    documented("holds", &holds);
    assert_eq!(holds.len(), 2);
    assert_eq!((&holds[0]["reason"], &holds[0]["owner"]), (&Value::from("door alarm"), &Value::from("me")));
    assert_eq!(holds[0]["ordinals"], Value::from(vec![1000, 1400]));
    assert_eq!(
        (&holds[1]["owner"], &holds[1]["streams"]),
        (&Value::from("tester"), &Value::from(Vec::<String>::new()))
    );
    for _ in 0..4 {
        // A new run begins its arrival times where it likes: what counts is the order.
        fill(dir, 8000);
    }
    assert!(ends(dir, read, 0).bytes == before, "the held range is the same byte for byte");
    ends(dir, "read r.hf --stream log --ordinals 0..10", 3);
    ends(dir, "check r.hf", 0);
    let status = ends(dir, "status r.hf --json", 0).json();
    assert_eq!(status["holds"], 2);
    assert!(status["slots"]["held"].as_u64().unwrap() >= held["slots"].as_u64().unwrap());

    let released = ends(dir, "release r.hf 1 --json", 0).json();
    documented("release", [&released]);
    assert!(released["slots"].as_u64().unwrap() >= 3);
    ends(dir, "release r.hf 1", 3);
    fill(dir, 16_000);
    ends(dir, read, 3);
    assert_eq!(ends(dir, "holds r.hf --json", 0).lines().len(), 1);
}

#[test]
fn a_hold_names_what_had_expired_of_its_range() {
    let folder = folder();
    let dir = folder.path();
    ring(dir);
    let order = "hold r.hf --stream log --reason why --ordinals";
    let whole = ends(dir, &format!("{order} 0..10 --json"), 0).json();
    assert_eq!((&whole["expired_before_ordinal"], &whole["expired_before"]), (&Value::Null, &Value::Null));
    ends(dir, "release r.hf 1", 0);
    fill(dir, 12_000);
    let left = ends(dir, "read r.hf --stream log --format jsonl", 0).lines();
    let oldest = left.iter().find(|line| line["kind"] == "element").unwrap();
    let (ordinal, arrival) = (oldest["ordinal"].as_u64().unwrap(), oldest["arrival"].as_str().unwrap());
    let end = ordinal + 10;
    let said = ends(dir, &format!("{order} 5..{end}"), 0).out;
    assert!(said.contains(&format!("elements before ordinal {ordinal} had expired already")), "{said}");
    let held = ends(dir, &format!("{order} 5..{end} --json"), 0).json();
    documented("hold", [&held]);
    assert_eq!(held["expired_before_ordinal"], ordinal);
    let sound = ends(dir, &format!("{order} {ordinal}..{end}"), 0).out;
    assert!(!sound.contains("expired"), "{sound}");

    // By event time: packets are said to have happened a second before they arrived.
    let mut filler = Filler::open(&dir.join("r.hf"));
    filler.packets(10);
    filler.close();
    let by_event = format!("hold r.hf --stream eth0 --reason why --event --from {}", START - 1000 * STEP);
    let said = ends(dir, &by_event, 0).out;
    assert!(
        said.contains("what arrived before ") && said.contains(arrival.split('.').next().unwrap()),
        "{said}"
    );
    assert!(ends(dir, &format!("{by_event} --json"), 0).json()["expired_before"].is_string());
}

#[test]
fn a_hold_that_leaves_too_little_room_or_makes_no_sense_is_refused() {
    let folder = folder();
    let dir = folder.path();
    ring(dir);
    fill(dir, 12_000);
    for (command, code, wanted) in [
        ("hold r.hf --reason all", 1, "more slots"),
        ("hold r.hf --stream log --ordinals 900000.. --reason x", 3, "nothing in that range"),
        ("hold r.hf --ordinals 1..2 --reason x", 2, "--stream"),
        ("hold r.hf --stream nobody --reason x", 3, "the ring has log, eth0"),
        ("hold r.hf --last 1m --until -1m --reason x", 2, "ended already"),
        ("hold r.hf --from now --to -1m --reason x", 2, "ends before it begins"),
    ] {
        let said = ends(dir, command, code);
        assert!(said.err.contains(wanted), "{command}: {}", said.err);
    }
    ends(dir, "holds r.hf", 3);
    let most = ends(dir, "status r.hf --json", 0).json()["slots"]["holdable"].clone();
    let said = ends(dir, "hold r.hf --reason all", 1).err;
    assert!(said.contains(&format!("only {most} may still be held")), "{said}");
}

#[test]
fn what_is_purged_is_gone_and_nothing_else_is() {
    let folder = folder();
    let dir = folder.path();
    ring(dir);
    assert_eq!(ends(dir, "purge r.hf --reason all", 2).code, Some(2));
    ends(dir, "hold r.hf --stream log --ordinals 1000..1010 --reason keep", 0);
    let said = ends(dir, "purge r.hf --stream log --ordinals 1000..1100 --reason law", 1);
    assert!(said.err.contains("--held"), "{}", said.err);
    let purged =
        ends(dir, "purge r.hf --stream log --ordinals 1000..1100 --held --reason law --json", 0).json();
    documented("purge", [&purged]);
    assert_eq!(purged["elements"], 100);
    ends(dir, "read r.hf --stream log --ordinals 1000..1100", 3);
    let left = ends(dir, "read r.hf --stream log", 0).out;
    let texts: Vec<&str> = left.lines().skip(1).collect();
    assert_eq!(texts.len(), 2900);
    assert_eq!((texts[999], texts[1000]), (line(999).as_str(), line(1100).as_str()));
    let file = fs::read(dir.join("r.hf")).unwrap();
    let gone = line(1050);
    assert!(!file.windows(gone.len()).any(|bytes| bytes == gone.as_bytes()), "no copy is left on the medium");
    ends(dir, "check r.hf", 0);
}

#[test]
fn a_ring_grows_with_what_it_holds() {
    let folder = folder();
    let dir = folder.path();
    ring(dir);
    ends(dir, "hold r.hf --stream log --ordinals 100..200 --reason keep", 0);
    let before = ends(dir, "read r.hf --stream log", 0).bytes;
    ends(dir, "grow r.hf --size 16MiB", 0);
    assert!(ends(dir, "read r.hf --stream log", 0).bytes == before);
    fill(dir, 16_000);
    ends(dir, "read r.hf --stream log --ordinals 100..200", 0);
    ends(dir, "check r.hf", 0);
}

#[test]
fn purges_leave_what_was_really_lost_counted_once() {
    let folder = folder();
    let dir = folder.path();
    ends(dir, "format r.hf --size 8MiB --slot 64KiB", 0);
    let mut filler = Filler::open(&dir.join("r.hf"));
    filler.lines(50).lose(5).lines(50);
    filler.close();
    let counted = |dir: &Path| {
        let stream = ends(dir, "streams r.hf --json", 0).lines().remove(0);
        let gaps = ends(dir, "gaps r.hf --json", 0).lines();
        let lost = gaps.iter().filter(|gap| gap["cause"] != "purged");
        let lost: u64 = lost.map(|gap| gap["elements"].as_u64().unwrap()).sum();
        assert_eq!(ends(dir, "status r.hf --json", 0).json()["lost_elements"], lost);
        (stream["lost"].clone(), lost, stream["gaps"].clone(), gaps.len())
    };
    assert_eq!(counted(dir), (Value::from(5), 5, Value::from(1), 1));
    for purge in 1..=4 {
        let (first, end) = (purge * 8, purge * 8 + 4);
        ends(dir, &format!("purge r.hf --stream log --ordinals {first}..{end} --reason law"), 0);
        assert_eq!(counted(dir), (Value::from(5), 5, Value::from(1), 1 + purge));
    }
    ends(dir, "check r.hf", 0);
}

#[test]
fn a_hold_by_condition_is_listed_with_what_it_looks_for() {
    let folder = folder();
    let dir = folder.path();
    ring(dir);
    let disk = RealDisk::new(Device::open(&dir.join("r.hf"), Access::Own).unwrap(), &[], 8);
    let hold = HoldRequest {
        streams: Vec::new(),
        range: Range::ALL,
        sequences: Some(vec![(Sequence(2), Sequence(3))]),
        reason: "to see".to_owned(),
        owner: "me".to_owned(),
        until: Timestamp::MAX,
        order: None,
        condition_hold: Some(ConditionHold {
            condition: "len > 9".to_owned(),
            after: 30_000_000_000,
            standing: true,
            quota: 7,
            watermarks: vec![(StreamId(1), Ordinal(40))],
            ..ConditionHold::default()
        }),
    };
    let outcome =
        order_offline(disk, Order::Hold(hold), &ManualClock::new(Timestamp(1)), &mut || true).unwrap();
    assert!(matches!(outcome, Outcome::Held { slots: 2, .. }), "{outcome:?}");
    let holds = ends(dir, "holds r.hf --json", 0).lines();
    documented("holds", &holds);
    let condition_hold = &holds[0]["finding"];
    assert_eq!(
        (&condition_hold["condition"], &condition_hold["quota"]),
        (&Value::from("len > 9"), &Value::from(7))
    );
    assert_eq!(condition_hold["evaluated"], serde_json::json!([{"stream": "log", "ordinal": 40}]));
    let said = ends(dir, "holds r.hf", 0).out;
    assert!(said.contains(" 2 of 7 ") && said.contains("len > 9, with 30 s after, standing"), "{said}");
    assert!(said.trim_end().ends_with("log to ordinal 40"), "{said}");
    assert_eq!(ends(dir, "status r.hf --json", 0).json()["slots"]["promised"], 5);
    let said = ends(dir, "status r.hf", 0).out;
    assert!(said.contains("1; 5 slots promised to what they are still to find; "), "{said}");
    ends(dir, "check r.hf", 0);
}

#[test]
fn what_is_in_the_open_slot_counts_as_left_and_what_is_to_come_is_told_apart() {
    let folder = folder();
    let dir = folder.path();
    let mut recording = Recording::start(dir, "--size 16MiB");
    recording.lines(10);
    recording.await_lines(dir, 10);
    assert_eq!(
        ends(dir, "status r.hf --json", 0).json()["slots"]["live"],
        0,
        "all of it is in the open slot"
    );
    let said = ends(dir, "hold r.hf --from 2001-02-03T04:05:06Z --to 2001-02-03T04:05:07Z --reason x", 3);
    assert!(said.err.contains("the oldest data that is left is of 2"), "{}", said.err);
    let said = ends(dir, "hold r.hf --from +1h --to +2h --reason x", 3);
    assert!(said.err.contains("begins in the future") && said.err.contains("--standing"), "{}", said.err);
    assert_eq!(recording.end().0, Some(0));
}

#[test]
fn a_hold_whose_time_has_come_is_shown_no_longer() {
    let folder = folder();
    let dir = folder.path();
    ring(dir);
    let disk = RealDisk::new(Device::open(&dir.join("r.hf"), Access::Own).unwrap(), &[], 8);
    let hold = HoldRequest {
        streams: Vec::new(),
        range: Range::ALL,
        sequences: None,
        reason: "for a moment".to_owned(),
        owner: "me".to_owned(),
        until: Timestamp(2),
        condition_hold: None,
        order: None,
    };
    // A day that is long over.
    let clock = ManualClock::new(Timestamp(1));
    let outcome = order_offline(disk, Order::Hold(hold), &clock, &mut || true).unwrap();
    assert!(matches!(outcome, Outcome::Held { .. }), "{outcome:?}");
    ends(dir, "holds r.hf", 3);
    let status = ends(dir, "status r.hf --json", 0).json();
    assert_eq!((&status["holds"], &status["slots"]["held"]), (&Value::from(0), &Value::from(0)));
    assert!(ends(dir, "slots r.hf --json", 0).lines().iter().all(|slot| slot["state"] != "held"));
}
