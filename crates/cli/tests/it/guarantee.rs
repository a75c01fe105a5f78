//! Rings with a guarantee: admitted when they are made, told of by every command, and not stretched beyond what was
//! measured (promises 1 and 8). The profiles are made by hand: nothing here measures.
#![allow(missing_docs, clippy::unwrap_used)]

use crate::common;
use crate::common::by_hand;
use crate::common::recording;

use by_hand::{of_file, profile, promising};
use common::{Loop, documented, ends, folder, run};
use recording::Recording;
use serde_json::{Value, json};
use std::fs;

const MIB: u64 = 1 << 20;

#[test]
fn what_was_admitted_is_kept_in_the_ring_and_told_by_every_command() {
    let folder = folder();
    let dir = folder.path();
    of_file(dir);
    let made =
        ends(dir, "format a.hf --size 400MiB --profile p.json --rate 100MiB/s --burst 8MiB --json", 0).json();
    documented("format", [&json!({ "guarantee": null, "warnings": made["warnings"] })]);
    let promised = &made["guarantee"];
    documented("guarantee", [promised]);
    assert_eq!(
        (&promised["holds"], &promised["rate_bytes_per_second"]),
        (&false.into(), &(100 * MIB).into())
    );
    assert_eq!(promised["elements_per_second"], 1600);
    assert_eq!(promised["region_bytes"], 400 * MIB);
    let slots = &made["slots"];
    assert_eq!(made["slot_bytes"], 8 * MIB);
    let until = format!("until {slots} more slots have been written once");
    assert!(promised["best_effort"].as_array().unwrap().contains(&until.into()), "{promised}");
    assert!(made["warnings"].to_string().contains("made by hand"), "{made}");
    for line in ["status a.hf --json", "check a.hf --json"] {
        assert_eq!(&ends(dir, line, 0).json()["guarantee"], promised, "{line}");
    }
    for line in ["status a.hf", "check a.hf", "slots a.hf"] {
        let said = ends(dir, line, 0).out;
        assert!(said.contains("100 MiB/s of payload") && said.contains("best effort"), "{line}: {said}");
        for figure in
            ["while nobody reads", "with readers", "left for them", "at 1.5 times the rate", "durable after"]
        {
            assert!(said.contains(figure), "{line}: {figure}: {said}");
        }
    }
    ends(dir, "format b.hf --size 16MiB", 0);
    for line in ["status b.hf", "check b.hf", "slots b.hf"] {
        let said = ends(dir, line, 0).out;
        assert!(said.contains("best effort: it was made without a profile"), "{line}: {said}");
    }
    assert_eq!(ends(dir, "status b.hf --json", 0).json()["guarantee"], Value::Null);
}

// A run is admitted for what its streams declare, and says so beside what the ring was made for.
#[test]
fn a_run_tells_what_it_was_admitted_for() {
    let folder = folder();
    let dir = folder.path();
    of_file(dir);
    ends(dir, "format r.hf --size 400MiB --profile p.json --rate 100MiB/s", 0);
    let mut recording = Recording::start(dir, "--rate 20MiB/s");
    recording.lines(1);
    recording.await_lines(dir, 1);
    let shown = ends(dir, "status r.hf --json", 0).json();
    documented("guarantee", [&shown["guarantee"]]);
    let (run, made) = ("run_medium_bytes_per_second", "medium_bytes_per_second");
    assert_eq!(shown["guarantee"][run], shown["recorder"]["margin"][made]);
    assert!(shown["guarantee"][run].as_u64().unwrap() < 30 * MIB, "{shown}");
    assert!(shown["guarantee"][made].as_u64().unwrap() > 90 * MIB, "{shown}");
    let said = ends(dir, "status r.hf", 0).out;
    assert!(said.contains("this run was admitted for 20"), "{said}");
    recording.end();
    assert!(!ends(dir, "status r.hf", 0).out.contains("this run"));
}

// Promise 8: a run is told of each term that its advice is about.
#[test]
fn a_run_that_asks_for_too_much_is_told_why_what_is_offered_is_less() {
    let folder = folder();
    let dir = folder.path();
    of_file(dir);
    ends(dir, "format r.hf --size 400MiB --profile p.json --rate 100MiB/s", 0);
    let run = "--source stdin --name s --frame lines --rate 150MiB/s --elements 4000001";
    let said = ends(dir, &format!("record r.hf {run}"), 1).err;
    let (named, offered) = said.split_once("--elements ").unwrap();
    for term in
        ["elements a second are too many", "4000000; and with so many, ", " on the medium is too fast"]
    {
        assert!(named.contains(term), "{said}");
    }
    let offered: u64 = offered.split(|c: char| !c.is_ascii_digit()).next().unwrap().parse().unwrap();
    assert!(offered < 4_000_000, "{said}");
}

// Whatever memory there is for it, no more is published than the slots are enough for.
#[test]
fn a_run_is_admitted_for_the_rates_that_are_published() {
    let folder = folder();
    let dir = folder.path();
    of_file(dir);
    let line =
        "format r.hf --size 400MiB --profile p.json --rate 100MiB/s --burst 64MiB --memory 400MiB --json";
    let promised = ends(dir, line, 0).json()["guarantee"].take();
    let of = |figure: &str| promised[figure].as_f64().unwrap();
    let share = of("rate_bytes_per_second") / of("medium_bytes_per_second");
    let rate = of("with_reads_bytes_per_second") * share * 0.999;
    assert!(rate > 200e6, "{promised}");
    let run = format!("--source stdin --name s --frame lines --rate {rate:.0} --burst 64MiB");
    ends(dir, &format!("record r.hf {run}"), 0);
}

#[test]
fn a_file_that_was_written_once_keeps_its_promise_at_once() {
    let folder = folder();
    let dir = folder.path();
    of_file(dir);
    let line = "format a.hf --size 600MiB --profile p.json --rate 50MiB/s --region 0..60% --prefill";
    let said = ends(dir, line, 0).out;
    assert_eq!(fs::metadata(dir.join("a.hf")).unwrap().len(), 360 * MIB);
    if promising(dir) {
        assert!(said.contains("\n  guaranteed 50 MiB/s of payload"), "{said}");
        assert_eq!(ends(dir, "status a.hf --json", 0).json()["guarantee"]["holds"], true);
    } else {
        assert!(said.contains("best effort: no guarantee on"), "{said}");
    }
}

// Promise 8: nothing is half done.
#[test]
fn what_cannot_be_promised_is_refused_before_anything_is_touched() {
    let folder = folder();
    let dir = folder.path();
    of_file(dir);
    fs::write(dir.join("notes"), "important").unwrap();
    let promise = "--profile p.json --rate";
    for (line, code, wanted) in [
        (format!("--size 400MiB {promise} 500MiB/s"), 1, "too fast"),
        (format!("--size 400MiB {promise} 500MiB/s"), 1, "p.json: admissible instead: --rate "),
        (format!("--size 1400MiB {promise} 10MiB/s"), 1, "the first 1 GiB only"),
        (format!("--size 400MiB --slot 4MiB {promise} 10MiB/s"), 1, "at least 8 MiB, "),
        (format!("--size 400MiB --memory 24MiB {promise} 100MiB/s"), 1, "slot buffers"),
        (format!("--size 400MiB --elements 4000001/s {promise} 1MiB/s"), 1, "elements a second are too many"),
        // The advice is about the lane then, so that is named, too.
        (format!("--size 400MiB --elements 4000001/s {promise} 150MiB/s"), 1, "; and with so many, "),
        (format!("--size 400MiB --elements 4000001/s {promise} 150MiB/s"), 1, " on the medium is too fast"),
        (format!("--size 300MiB {promise} 10MiB/s"), 1, "too little for a guarantee"),
        (format!("--size 400MiB --slot 9MiB {promise} 10MiB/s"), 2, "power of two"),
        (format!("--size 400MiB --slot 64MiB {promise} 10MiB/s"), 2, "too small"),
        (format!("--size 400MiB {promise} 0"), 2, "a rate of 0"),
        ("--size 400MiB --profile p.json".to_owned(), 2, "--rate"),
        ("--size 400MiB --rate 10MiB/s".to_owned(), 2, "--profile"),
        ("--size 400MiB --region 0..80%".to_owned(), 2, "--profile"),
        ("--size 400MiB --profile notes --rate 10MiB/s".to_owned(), 1, "cut off"),
        ("--size 400MiB --profile none --rate 10MiB/s".to_owned(), 1, "check the path"),
    ] {
        let said = ends(dir, &format!("format a.hf {line}"), code);
        assert!(said.err.contains(wanted), "{line}: {}", said.err);
        assert!(!dir.join("a.hf").exists(), "{line}");
        // A file that would be replaced is there afterwards.
        ends(dir, &format!("format notes --force {line}"), code);
        assert_eq!(fs::read(dir.join("notes")).unwrap(), b"important", "{line}");
    }
}

#[test]
fn a_ring_with_a_guarantee_is_not_grown_beyond_what_was_measured() {
    let folder = folder();
    let dir = folder.path();
    of_file(dir);
    ends(dir, "format a.hf --size 400MiB --profile p.json --rate 10MiB/s", 0);
    let said = ends(dir, "grow a.hf --size 500MiB", 1);
    assert!(
        said.err.contains("measured of its 400 MiB") && said.err.contains("holdfast format"),
        "{}",
        said.err
    );
    assert_eq!(fs::metadata(dir.join("a.hf")).unwrap().len(), 400 * MIB);
}

#[test]
fn a_device_is_told_from_another_and_only_its_region_is_used() {
    let folder = folder();
    let dir = folder.path();
    let bytes = 1024 * MIB;
    let Some(device) = Loop::new(&dir.join("disk"), bytes) else { return };
    let name = &device.0;
    let identity = |model: &str, serial: &str, bytes: u64| {
        json!({
            "path": name, "model": model, "serial": serial, "medium": "device", "bytes": bytes, "rotational": false,
        })
    };
    for (other, wanted) in [
        (identity("WDC WD15EARS", "", bytes), "it is of a WDC WD15EARS, and this is a loop device"),
        (identity("", "WD-1", bytes), "it is of number WD-1"),
        (identity("", "", bytes + 4096), "bytes, and this has 1073741824"),
    ] {
        profile(&dir.join("q.json"), 128 * MIB, &other);
        let said = ends(dir, &format!("format {name} --profile q.json --rate 10MiB/s"), 1);
        assert!(said.err.contains(wanted) && said.err.contains("holdfast profile"), "{}", said.err);
        assert_eq!(run(dir, &format!("status {name}")).code, Some(1), "no ring was made");
    }
    profile(&dir.join("q.json"), 128 * MIB, &identity("loop device", "", bytes));
    let format = format!("format {name} --profile q.json --rate 300MiB/s --json");
    let said = ends(dir, &format, 1);
    assert!(said.out.contains("or --region 0.."), "{}", said.out);
    let made = ends(dir, &format!("{format} --region 0..50%"), 0).json();
    assert_eq!(made["lane_bytes"], 512 * MIB);
    assert_eq!(
        (&made["guarantee"]["holds"], &made["guarantee"]["region_bytes"]),
        (&true.into(), &(512 * MIB).into())
    );
    let said = ends(dir, &format!("grow {name}"), 1);
    assert!(said.err.contains("and on nothing beyond"), "{}", said.err);
    ends(dir, &format!("check {name}"), 0);
}
