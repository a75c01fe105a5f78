//! Answers of commands about a ring are true, and the same with a recorder and without (promises 2, 4 and 8).
#![allow(missing_docs, clippy::unwrap_used)]

use crate::common;
use crate::common::recording;

use common::{ends, folder, holdfast, run};
use recording::{Recording, line};
use serde_json::Value;
use std::path::Path;
use std::process::Stdio;

/// All that is said of a ring that must not depend on whether a recorder runs.
fn answers(dir: &Path) -> Vec<(String, Option<i32>, String)> {
    let mut all: Vec<_> = ["gaps", "streams", "holds", "slots"]
        .map(|command| {
            let said = run(dir, &format!("{command} r.hf --json"));
            (command.to_owned(), said.code, said.out)
        })
        .into();
    for range in ["", "--ordinals 0..50", "--ordinals 105..300", "--last 1h"] {
        let said = run(dir, &format!("read r.hf --format jsonl {range}"));
        let told: Vec<&str> =
            said.err.lines().filter(|line| !line.starts_with("the ring begins at")).collect();
        all.push((format!("read {range}"), said.code, said.out + &told.join("\n")));
    }
    let status = ends(dir, "status r.hf --json", 0).json();
    for field in ["lost_elements", "lost_unknown", "oldest", "newest", "oldest_live", "holds"] {
        all.push((field.to_owned(), None, status[field].to_string()));
    }
    all.push(("held".to_owned(), None, status["slots"]["held"].to_string()));
    all
}

/// What `streams` counts as lost, and what `gaps` lists: purged, and for other reasons.
fn losses(dir: &Path) -> (Value, u64, u64) {
    let lost = ends(dir, "streams r.hf --json", 0).lines()[0]["lost"].clone();
    let sum = |purged: bool| {
        let gaps = run(dir, "gaps r.hf --json").lines();
        let gaps = gaps.iter().filter(|gap| (gap["cause"] == "purged") == purged);
        gaps.map(|gap| gap["elements"].as_u64().unwrap_or(0)).sum()
    };
    (lost, sum(true), sum(false))
}

#[test]
fn what_was_purged_is_listed_and_not_counted_as_lost_with_a_recorder_and_without() {
    let folder = folder();
    let dir = folder.path();
    let mut recording = Recording::start(dir, "--size 16MiB --slot 64KiB");
    recording.lines(1000);
    recording.await_lines(dir, 1000);
    ends(dir, "gaps r.hf", 3);
    for first in [0, 20, 100] {
        ends(dir, &format!("purge r.hf --ordinals {first}..{} --reason law", first + 10), 0);
    }
    ends(dir, "hold r.hf --ordinals 200..300 --reason why", 0);
    assert_eq!(losses(dir), (Value::from(0), 30, 0));
    let live = answers(dir);
    assert_eq!(recording.end().0, Some(0));
    for (with, without) in live.iter().zip(&answers(dir)) {
        // Times of slots are read behind capture, and the table is known anyway.
        assert_eq!(with, without);
    }
    for first in [40, 60, 80, 5] {
        ends(dir, &format!("purge r.hf --ordinals {first}..{} --held --reason law", first + 10), 0);
    }
    let without = answers(dir);
    assert_eq!(losses(dir), (Value::from(0), 65, 0));
    let said = ends(dir, "read r.hf --ordinals 0..200", 0).err;
    assert!(!said.contains("expired"), "they were purged: {said}");
    let said = ends(dir, "purge r.hf --ordinals 0..10 --reason law", 3).err;
    assert!(
        said.contains("nothing in that range is on the ring: the oldest data that is left is of"),
        "{said}"
    );

    let recording = Recording::start(dir, "");
    for ((what, code, with), (_, _, without)) in answers(dir).iter().zip(&without) {
        if what != "slots" {
            assert_eq!(with, without, "{what} {code:?}");
        }
    }
    assert_eq!(losses(dir), (Value::from(0), 65, 0));
    ends(dir, "purge r.hf --ordinals 0..10 --reason law", 3);
    assert_eq!(recording.end().0, Some(0));
    ends(dir, "check r.hf", 0);
}

#[test]
fn a_stream_keeps_its_framing() {
    let folder = folder();
    let dir = folder.path();
    let mut recording = Recording::start(dir, "--size 16MiB --slot 64KiB");
    recording.lines(100);
    recording.await_lines(dir, 100);
    assert_eq!(recording.end().0, Some(0));
    let before = ends(dir, "read r.hf", 0).bytes;
    for frame in ["--frame fixed:5", "--frame len32", ""] {
        let said = ends(dir, &format!("record r.hf --source stdin --name log {frame}"), 1);
        let wanted = "stream `log` of this ring is framed as `lines`";
        assert!(
            said.err.contains(wanted) && said.err.contains("choose another name"),
            "{frame}: {}",
            said.err
        );
    }
    ends(dir, "record r.hf --source stdin --name other --frame fixed:5", 0);
    ends(dir, "record r.hf --source stdin --name log --frame lines", 0);
    assert!(ends(dir, "read r.hf --stream log", 0).bytes == before);
    // A name under which nothing came yet is free.
    ends(dir, "record r.hf --source stdin --name other --frame fixed:6", 0);
}

#[test]
fn what_only_the_journal_has_is_counted_and_checked() {
    let folder = folder();
    let dir = folder.path();
    let mut recording = Recording::start(dir, "--size 16MiB --slot 256KiB");
    recording.lines(50);
    recording.await_lines(dir, 50);
    let held = ends(dir, "hold r.hf --last 5m --reason alarm --json", 0).json();
    assert_eq!(held["slots"], 1);
    assert_eq!(ends(dir, "holds r.hf --json", 0).json()["slots"], 1);
    recording.child.kill().unwrap();
    recording.child.wait().unwrap();
    let after = ends(dir, "holds r.hf --json", 0).json();
    assert_eq!((&after["slots"], &after["bytes"]), (&Value::from(1), &Value::from(256 << 10)));
    let said = ends(dir, "check r.hf", 0).out;
    assert!(said.starts_with("1 slot (in the journal only), ") && said.contains(": sound"), "{said}");
    assert_eq!(ends(dir, "check r.hf --json", 0).json()["slots"], 1);
    assert_eq!(ends(dir, "read r.hf", 0).out.lines().count(), 50);
}

#[test]
fn a_ring_on_which_nothing_expired_begins_and_is_not_said_to_have_lost_its_past() {
    let folder = folder();
    let dir = folder.path();
    let mut recording = Recording::start(dir, "--size 16MiB --slot 64KiB");
    recording.lines(10);
    recording.await_lines(dir, 10);
    let young = |dir: &Path| {
        for command in ["read r.hf --last 1h", "hold r.hf --last 1h --reason x", "read r.hf --last -1h"] {
            let said = ends(dir, command, 0);
            let text = said.err.clone() + &said.out;
            assert!(text.contains("the ring begins at 20") && !text.contains("expired"), "{command}: {text}");
        }
        let held = ends(dir, "hold r.hf --last 1h --reason x --json", 0).json();
        assert_eq!(held["expired_before"], Value::Null);
    };
    young(dir);
    assert_eq!(recording.end().0, Some(0));
    young(dir);
    // Later runs begin at higher sequences.
    let mut recording = Recording::start(dir, "");
    recording.lines(10);
    recording.await_lines(dir, 10);
    young(dir);
    for hold in 1..=6 {
        ends(dir, &format!("release r.hf {hold}"), 0);
    }
    // After a lap it is true.
    recording.lines(40_000);
    recording.await_lines(dir, 40_010);
    let said = ends(dir, "read r.hf --last 1h", 0).err;
    assert!(said.contains("had expired already") && !said.contains("begins at"), "{said}");
    assert_eq!(recording.end().0, Some(0));
}

#[test]
fn the_only_stream_need_not_be_named_and_one_is_not_many() {
    let folder = folder();
    let dir = folder.path();
    let mut recording = Recording::start(dir, "--size 16MiB --slot 64KiB");
    recording.lines(100);
    recording.await_lines(dir, 100);
    let held = ends(dir, "hold r.hf --ordinals 5..6 --reason x", 0).out;
    assert!(held.starts_with("hold 1: 1 slot ("), "{held}");
    assert_eq!(ends(dir, "holds r.hf --json", 0).json()["streams"], Value::from(vec!["log"]));
    let read = ends(dir, "read r.hf --ordinals 5..6", 0);
    assert!(read.out.trim_end() == line(5) && read.err.starts_with("1 element, "), "{}", read.err);
    let purged = ends(dir, "purge r.hf --ordinals 5..6 --held --reason law", 0).out;
    assert!(
        purged.starts_with("purged: 1 element (") && purged.contains("destroyed, 1 slot overwritten"),
        "{purged}"
    );
    let read = ends(dir, "read r.hf --ordinals 4..7", 0).err;
    assert!(read.starts_with("2 elements, ") && read.contains("1 gap inside the range"), "{read}");
    let gone = ends(dir, "read r.hf --ordinals 5..6", 3).err;
    assert!(gone.contains("in 1 gap: see `holdfast gaps`"), "{gone}");
    assert_eq!(recording.end().0, Some(0));
}

#[test]
fn reads_through_a_recorder_are_counted() {
    let folder = folder();
    let dir = folder.path();
    let mut recording = Recording::start(dir, "--size 16MiB --slot 64KiB");
    recording.lines(2000);
    let lane = &recording.await_lines(dir, 2000)["recorder"]["lanes"][0];
    assert_eq!((&lane["read_bytes"], &lane["reads"]), (&Value::from(0), &Value::from(0)));
    let bytes = ends(dir, "read r.hf", 0).bytes.len() as u64;
    let lane = &ends(dir, "status r.hf --json", 0).json()["recorder"]["lanes"][0];
    // All but what the open slot has was read from the medium.
    let read = lane["read_bytes"].as_u64().unwrap();
    assert!(read + (64 << 10) >= bytes, "{read} of {bytes}");
    assert!(lane["worst_read_seconds"].as_f64() > Some(0.0), "{lane}");
    let page = ends(dir, "metrics r.hf", 0).out;
    let figure = |name: &str| {
        let found = page.lines().find(|sample| sample.starts_with(name));
        let found = found.unwrap_or_else(|| panic!("{name}: {page}"));
        found.rsplit(' ').next().unwrap().parse::<f64>().unwrap()
    };
    assert!(figure("holdfast_lane_read_bytes_total{") >= read as f64);
    assert!(figure("holdfast_lane_read_seconds_count{") >= lane["reads"].as_f64().unwrap());
    assert!(figure("holdfast_lane_read_seconds_sum{") > 0.0);
    assert_eq!(recording.end().0, Some(0));
}

#[test]
fn a_recorder_whose_socket_is_elsewhere_is_named() {
    let folder = folder();
    let dir = folder.path();
    let mut recording = Recording::start(dir, "--size 16MiB --slot 64KiB");
    recording.lines(300);
    recording.await_lines(dir, 300);
    let asked = |line: &str| {
        let mut command = holdfast(dir);
        command.env("HOLDFAST_RUN", dir.join("elsewhere")).args(line.split_whitespace());
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let lines =
        ["status r.hf", "read r.hf", "slots r.hf", "streams r.hf", "gaps r.hf", "check r.hf", "holds r.hf"];
    let orders = ["hold r.hf --reason x", "purge r.hf --stream log --reason x", "metrics r.hf"];
    let all: Vec<(&str, std::process::Child)> =
        lines.into_iter().chain(orders).map(|line| (line, asked(line))).collect();
    for (line, child) in all {
        let output = child.wait_with_output().unwrap();
        let err = String::from_utf8_lossy(&output.stderr);
        let pid = format!("pid {})", recording.child.id());
        let said = ["cannot find the socket of the recorder", &pid, "HOLDFAST_RUN"];
        assert!(said.iter().all(|part| err.contains(part)), "{line}: {err}");
        assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(1), &b""[..]), "{line}");
    }
    assert_eq!(recording.end().0, Some(0));
}

#[test]
fn attributes_are_listed_with_their_units_and_comments_and_may_become_more() {
    let folder = folder();
    let dir = folder.path();
    let first = "--attr rate:float=json:r,unit=Hz,comment=of-the-pulsar";
    for more in [format!("--size 8MiB --slot 64KiB {first}"), format!("{first} --attr host:text=json:h")] {
        let mut recording = Recording::start(dir, &more);
        recording.lines(3);
        assert_eq!(recording.end().0, Some(0));
    }
    let said = ends(dir, "streams r.hf --attributes", 0).out;
    let rows: Vec<Vec<&str>> = said.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(
        rows,
        [
            vec!["stream", "attribute", "type", "from", "unit", "comment"],
            vec!["log", "rate", "float", "json:r", "Hz", "of-the-pulsar"],
            vec!["log", "host", "text", "json:h", "-"],
        ]
    );
    let said = ends(dir, "streams r.hf --attributes --json", 0).json();
    assert_eq!(said["schema"].as_array().unwrap().len(), 2, "{said}");
    assert_eq!((&said["schema"][0]["unit"], &said["schema"][1]["unit"]), (&"Hz".into(), &Value::Null));
}

#[test]
fn whole_numbers_are_divided_into_whole_numbers() {
    let folder = folder();
    let dir = folder.path();
    let mut recording = Recording::start(dir, "--size 8MiB --slot 64KiB");
    recording.lines(3);
    recording.await_lines(dir, 3);
    let whole = "query r.hf --format csv select_size_/_3,_size_%_3,_100_/_size_from_log_order_by_ordinal";
    let said = ends(dir, whole, 0).out;
    assert_eq!(said.lines().skip(1).collect::<Vec<_>>(), ["2,1,14", "2,2,12", "3,0,11"]);
    let histogram = "query r.hf --format csv select_size_/_8_n,_count(*)_from_log_group_by_1_order_by_1";
    let said = ends(dir, histogram, 0).out;
    assert_eq!(said.lines().skip(1).collect::<Vec<_>>(), ["0,1", "1,2"]);
    recording.end();
}
