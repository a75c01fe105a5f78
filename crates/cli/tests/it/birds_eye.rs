//! Searches with the bird's-eye view of a recorder, with one that is coarse, and without: the same is found (promise 5), and the
//! medium is left alone where the view tells enough.
#![allow(missing_docs, clippy::unwrap_used)]

use crate::common;
use crate::common::figures;
use crate::common::recording;

use common::{documented, ends, folder, run};
use figures::figure;
use recording::{PATIENCE, Recording};
use serde_json::Value;
use std::io::Write as _;
use std::path::Path;
use std::time::Instant;

const QUESTIONS: [&str; 6] = [
    "select ordinal, n, host from log where n = 123 or n between 40000 and 80000 order by ordinal",
    "select count(*), min(n), max(host) from log where host = 'h77'",
    "select host, count(*) c from log where n % 1000 = 5 group by host order by c desc, host limit 5",
    "select ordinal from log where host is null order by ordinal limit 9",
    "select count(*) from log where n > 20000000",
    "select count(*), sum(size) from log where ordinal >= 3000 and ordinal < 3300",
];

fn document(number: u64) -> String {
    let spread = number.wrapping_mul(0x9e37_79b9) % 16_000_000;
    let host =
        if number.is_multiple_of(500) { String::new() } else { format!(",\"host\":\"h{}\"", spread % 100) };
    format!("{{\"n\":{spread}{host},\"pad\":\"{}\"}}\n", "x".repeat((number % 300) as usize))
}

fn start(dir: &Path, more: &str) -> Recording {
    Recording::start(dir, &format!("--attr n:uint=json:n --attr host:text=json:host {more}"))
}

fn ask(dir: &Path, question: &str) -> String {
    ends(dir, &format!("query r.hf --format csv {}", question.replace(' ', "_")), 0).out
}

/// Waits until the view tells of all slots of data; how many these are.
fn await_told(dir: &Path) -> u64 {
    let started = Instant::now();
    loop {
        let status = ends(dir, "status r.hf --json", 0).json();
        documented("status", [&status]);
        let slots = |name: &str| status["slots"][name].as_u64().unwrap();
        let data = slots("live") + slots("held");
        if status["recorder"]["birds_eye"]["slots"].as_u64() == Some(data) {
            return data;
        }
        assert!(started.elapsed() < PATIENCE, "{status}");
    }
}

/// Bytes that the recorder has read of its device.
fn read(dir: &Path) -> u64 {
    let status: Value = ends(dir, "status r.hf --json", 0).json();
    status["recorder"]["lanes"][0]["read_bytes"].as_u64().unwrap()
}

/// The same once nothing more is read: of what a question had asked for ahead some may come when its client has gone.
fn settled(dir: &Path) -> u64 {
    let (started, mut before, mut same) = (Instant::now(), read(dir), 0);
    while same < 10 {
        let now = read(dir);
        same = if now == before { same + 1 } else { 0 };
        assert!(started.elapsed() < PATIENCE, "{before} bytes, {now}");
        before = now;
    }
    before
}

#[test]
fn the_same_is_found_with_a_view_a_coarse_one_and_none_and_a_needle_that_is_nowhere_costs_no_read() {
    let folder = folder();
    let dir = folder.path();
    let mut recording = start(dir, "--size 8MiB --slot 64KiB");
    let all: String = (0..20_000).map(document).collect();
    recording.input.as_mut().unwrap().write_all(all.as_bytes()).unwrap();
    recording.await_lines(dir, 20_000);
    assert_eq!(recording.end().0, Some(0));

    let wanted = QUESTIONS.map(|question| ask(dir, question));
    assert!(wanted.iter().filter(|text| text.lines().count() > 1).count() == 6, "{wanted:?}");
    let needle = "explain analyze select ordinal from log where n = 16500001 and host = 'h101'";
    let within = "explain analyze select ordinal from log where n = 7654321";
    let mut costs = Vec::new();
    for more in ["", "--birds-eye 110KiB", "--birds-eye 0"] {
        let recording = start(dir, more);
        let kept = !more.ends_with(" 0");
        let slots = if kept { await_told(dir) } else { 0 };
        for (question, wanted) in QUESTIONS.iter().zip(&wanted) {
            assert_eq!(&ask(dir, question), wanted, "{more}: {question}");
        }
        let before = settled(dir);
        let said = ask(dir, needle);
        assert_eq!(figure(&said, "slots_searched"), 0, "{said}");
        if kept {
            assert!(slots > 40 && figure(&said, "slots_pruned_unread") == slots, "{slots}: {said}");
            assert_eq!((figure(&said, "bytes_read"), read(dir) - before), (0, 0), "{said}");
        } else {
            assert_eq!(figure(&said, "slots_pruned_unread"), 0, "{said}");
            assert!(figure(&said, "bytes_read") > 0 && read(dir) > before);
        }
        // Inside all bounds: only filters tell.
        let said = ask(dir, within);
        costs.push((figure(&said, "slots_pruned_unread"), figure(&said, "bytes_read")));
        drop(recording);
    }
    assert!(costs[0].0 > costs[1].0 && costs[1].0 >= costs[2].0, "{costs:?}");
    assert!(costs[0].1 < costs[1].1 && costs[1].1 < costs[2].1, "{costs:?}");
    let ended = run(dir, "status r.hf");
    assert!(ended.out.contains("no recorder runs"), "{}", ended.out);
}

#[test]
fn a_plan_tells_how_many_slots_are_passed_over_before_any_is_read() {
    let folder = folder();
    let dir = folder.path();
    let mut recording = start(dir, "--size 8MiB --slot 64KiB");
    let all: String = (0..20_000).map(document).collect();
    recording.input.as_mut().unwrap().write_all(all.as_bytes()).unwrap();
    recording.await_lines(dir, 20_000);
    assert_eq!(recording.end().0, Some(0));
    let needle = "select ordinal from log where n = 16500001";
    let old = "select ordinal from log where time < '2001-01-01'";
    for more in ["", "--birds-eye 0"] {
        let recording = start(dir, more);
        let slots = if more.is_empty() { await_told(dir) } else { 0 };
        let before = settled(dir);
        let said = ask(dir, &format!("explain {needle}"));
        let all = figure(&said, "slots");
        assert!(all > 40 && figure(&said, "pruned_by_time") == 0, "{said}");
        if more.is_empty() {
            assert_eq!((figure(&said, "pruned_by_birds_eye"), read(dir) - before), (slots, 0), "{said}");
        } else {
            assert!(!said.contains("pruned_by_birds_eye"), "nobody knows: {said}");
        }
        // A few at its ends are looked into nevertheless: elements may have come a little out of order.
        for question in [format!("explain {old}"), format!("explain analyze {old}")] {
            let said = ask(dir, &question);
            assert_eq!(figure(&said, "slots"), all, "{said}");
            assert!((all - 8..all).contains(&figure(&said, "pruned_by_time")), "{said}");
        }
        drop(recording);
    }
    // Without a recorder, too.
    let said = ask(dir, &format!("explain {old}"));
    assert!(figure(&said, "pruned_by_time") >= figure(&said, "slots") - 8, "{said}");
}

#[test]
fn what_the_open_slot_does_not_have_is_told_without_it_and_what_it_has_is_found() {
    let folder = folder();
    let dir = folder.path();
    let mut recording = start(dir, "--size 32MiB --slot 2MiB");
    let mut count = 0;
    // In chunks that are closed, and in the one that is not.
    for more in [3, 3000, 3333] {
        let lines: String = (count..count + more).map(document).collect();
        recording.input.as_mut().unwrap().write_all(lines.as_bytes()).unwrap();
        count += more;
        recording.await_lines(dir, count);
        for condition in
            ["n = 16500001", "n = 7654321", "n in (7654321, 7654323)", "host = 'h1x'", "host > 'i'"]
        {
            let said = ask(dir, &format!("explain analyze select ordinal from log where {condition}"));
            let slots = (figure(&said, "slots_searched"), figure(&said, "slots_pruned_unread"));
            assert_eq!(slots, (0, 1), "{condition}: {said}");
        }
        for number in [0, 1, count / 2, count - 1] {
            let n = number * 0x9e37_79b9 % 16_000_000;
            let found = ask(dir, &format!("select ordinal from log where n = {n} and ordinal = {number}"));
            assert_eq!(found, format!("ordinal\n{number}\n"));
        }
        let found = ask(dir, "select count(*) from log where host in ('h1x', 'h7') or n = 7654321");
        let right = (0..count).filter(|number| document(*number).contains(":\"h7\"")).count();
        assert_eq!(found, format!("count(*)\n{right}\n"));
        let found = ask(dir, "select count(*) from log where host is null");
        assert_eq!(found, format!("count(*)\n{}\n", count.div_ceil(500)));
    }
    assert_eq!(recording.end().0, Some(0));
}

// What another stream brings costs a question nothing, however much of it is open.
#[test]
fn an_open_slot_that_has_nothing_of_a_stream_is_not_looked_into() {
    let folder = folder();
    let dir = folder.path();
    let mut recording = start(dir, "--size 32MiB --slot 2MiB");
    let lines = |count: u64| (0..count).map(document).collect::<String>();
    recording.input.as_mut().unwrap().write_all(lines(300).as_bytes()).unwrap();
    recording.await_lines(dir, 300);
    assert_eq!(recording.end().0, Some(0));
    // Once it is not recorded, and once nothing has come of it yet.
    let also =
        "--source tcp:127.0.0.1:0 --name log --frame lines --attr n:uint=json:n --attr host:text=json:host";
    for (before, more) in ["", also].into_iter().enumerate() {
        let mut recording = Recording::named(dir, "other", &format!("--attr n:uint=json:n {more}"));
        recording.input.as_mut().unwrap().write_all(lines(1000).as_bytes()).unwrap();
        recording.await_lines(dir, 1000);
        for question in ["select count(*), sum(n) from log", "select count(*) from log where n <> 123"] {
            let said = ask(dir, &format!("explain analyze {question}"));
            let slots = (figure(&said, "slots_searched"), figure(&said, "slots_pruned_unread"));
            assert_eq!(slots, (1, 1 + before as u64), "{more}: {question}: {said}");
        }
        assert_eq!(ask(dir, "select count(*) from log"), "count(*)\n300\n");
        assert_eq!(recording.end().0, Some(0));
    }
}
