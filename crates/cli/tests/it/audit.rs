//! The audit log records who did what with data: with a recorder and without, and still there when it has ended or was killed
//! (promise 4 holds for what was acknowledged, and its record with it).
#![allow(missing_docs, clippy::unwrap_used)]

use crate::common;
use crate::common::filled;
use crate::common::recording;

use common::{documented, ends, folder, holdfast};
use filled::Filler;
use holdfast_base::Timestamp;
use recording::Recording;
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Lines};
use std::path::Path;
use std::process::{Child, ChildStdout, Stdio};
use std::time::Duration;

/// What is on record: act, number, and the fields that are asked for.
fn acts(dir: &Path, line: &str, fields: &[&str]) -> Vec<Vec<Value>> {
    let mut said = ends(dir, line, 0).lines();
    documented("audit", &said);
    let dropped = said.pop().unwrap();
    assert_eq!((&dropped["dropped_purges"], &dropped["dropped_acts"]), (&Value::from(0), &Value::from(0)));
    said.iter().map(|act| fields.iter().map(|field| act[*field].clone()).collect()).collect()
}

#[test]
fn what_is_done_to_a_ring_alone_is_on_record() {
    let folder = folder();
    let dir = folder.path();
    ends(dir, "format r.hf --size 16MiB --slot 64KiB", 0);
    let mut filler = Filler::open(&dir.join("r.hf"));
    filler.lines(1000).packets(500);
    filler.close();
    assert!(ends(dir, "audit r.hf", 3).out.contains("nothing is on record"));
    ends(dir, "hold r.hf --stream log --ordinals 5..20 --reason case_12 --owner me", 0);
    ends(dir, "hold r.hf --reason all_of_it --until +100d", 0);
    ends(dir, "release r.hf 1 --reason closed --owner you", 0);
    ends(dir, "release r.hf 7", 3);
    ends(dir, "purge r.hf --stream log --ordinals 900..910 --held --reason the_law --yes", 0);
    // To read alone writes nothing, unless somebody wants it on record.
    let before = fs::read(dir.join("r.hf")).unwrap();
    ends(dir, "read r.hf --stream log -o log", 0);
    ends(dir, "query r.hf select_ordinal_from_log --format csv -o log.csv", 0);
    assert!(fs::read(dir.join("r.hf")).unwrap() == before, "the ring was written to");
    ends(dir, "read r.hf --stream eth0 -o eth0 --reason case_13", 0);
    ends(dir, "query r.hf select_*_from_log --format parquet -o all.parquet --owner they", 0);
    ends(dir, "query r.hf select_ordinal_from_eth0 --format pcapng -o some.pcapng --reason case_14", 0);
    let fields = ["act", "number", "hold", "stream", "owner", "reason", "ordinals", "slots"];
    let mut told = acts(dir, "audit r.hf --json", &fields);
    // All within a moment: in the order of their numbers, the purge last.
    told.sort_by_key(|act| (act[0] == "purge", act[1].as_u64()));
    let of = |act: &Vec<Value>| {
        act.iter().take(6).map(|value| value.to_string().replace('"', "")).collect::<Vec<_>>().join(" ")
    };
    let told_of: Vec<String> = told.iter().map(of).collect();
    assert_eq!(
        told_of,
        [
            "hold 1 1 log me case 12",
            "hold 2 2 null tester all of it",
            "release 3 1 log you closed",
            "export 4 null eth0 tester case 13 (pcapng to eth0)",
            "export 5 null null they parquet to all.parquet of `select * from log`",
            "export 6 null null tester case 14 (pcapng to some.pcapng of `select ordinal from eth0`)",
            "purge 1 null log tester the law",
        ]
    );
    assert_eq!((&told[0][6], &told[2][6]), (&Value::from(vec![5, 20]), &Value::from(vec![5, 20])));
    assert!(told[0][7].as_u64() > Some(0) && told[2][7].is_null());
    let said = ends(dir, "audit r.hf", 0).out;
    assert!(said.contains("ordinals 900..910") && !said.contains("dropped"), "{said}");
    ends(dir, "audit r.hf --since +1d", 3);
    assert_eq!(acts(dir, "audit r.hf --since -1h --json", &fields).len(), 7);
    // The other hold ends by itself, in a year.
    let now = std::time::UNIX_EPOCH.elapsed().unwrap() + Duration::from_hours(24 * 365);
    let mut filler = Filler::open_at(&dir.join("r.hf"), Timestamp(now.as_nanos() as i64));
    filler.lines(1);
    filler.close();
    let last = acts(dir, "audit r.hf --json", &fields).pop().unwrap();
    assert_eq!(of(&last), "end 7 2 null  all of it");
}

#[test]
fn what_is_taken_out_beside_a_recorder_is_on_record_and_stays_there() {
    let folder = folder();
    let dir = folder.path();
    ends(dir, "format r.hf --size 16MiB --slot 64KiB", 0);
    let mut recording = Recording::start(dir, "");
    recording.lines(500);
    recording.await_lines(dir, 500);
    ends(dir, "read r.hf --stream log --ordinals 5..10 -o some --reason case_12 --owner me", 0);
    ends(dir, "read r.hf -o - --format raw", 0);
    ends(dir, "query r.hf select_ordinal_from_log_where_ordinal<7 --format mcap -o some.mcap", 0);
    ends(dir, "query r.hf select_ordinal_from_log_where_ordinal>700 --format mcap -o none.mcap", 3);
    ends(dir, "query r.hf select_ordinal_from_log", 0);
    ends(dir, "query r.hf select_count(*)_from_log --format csv -o count.csv --owner me", 0);
    ends(dir, "query r.hf select_ordinal_from_log --format csv -o -", 0);
    ends(dir, "query r.hf select_ordinal_from_log --format arrow -o -", 0);
    ends(dir, "hold r.hf --stream log --reason kept", 0);
    ends(dir, "release r.hf 1 --reason closed", 0);
    let fields = ["act", "number", "owner", "reason", "stream", "ordinals"];
    let live = acts(dir, "audit r.hf --json", &fields);
    let reasons: Vec<String> =
        live.iter().map(|act| format!("{} {}", act[0].as_str().unwrap(), act[3].as_str().unwrap())).collect();
    assert_eq!(
        reasons,
        [
            "export case 12 (raw to some)",
            "export raw to standard output",
            "export mcap to some.mcap of `select ordinal from log where ordinal<7`",
            "export csv to count.csv of `select count(*) from log`",
            "export arrow to standard output of `select ordinal from log`",
            "hold kept",
            "release closed",
        ]
    );
    assert_eq!((&live[0][2], &live[0][5]), (&Value::from("me"), &Value::from(vec![5, 10])));
    assert_eq!((&live[1][2], &live[1][4]), (&Value::from("tester"), &Value::from("log")));
    recording.child.kill().unwrap();
    recording.child.wait().unwrap();
    assert_eq!(
        acts(dir, "audit r.hf --json", &fields),
        live,
        "a recorder that was killed has left all of it"
    );
    // Numbers go on.
    ends(dir, "hold r.hf --stream log --reason again", 0);
    assert_eq!(acts(dir, "audit r.hf --json", &fields).last().unwrap()[1], Value::from(8));
}

#[test]
fn all_that_is_ever_on_record_can_be_kept_in_a_file() {
    let folder = folder();
    let dir = folder.path();
    ends(dir, "format r.hf --size 16MiB --slot 64KiB", 0);
    let mut filler = Filler::open(&dir.join("r.hf"));
    filler.lines(100);
    filler.close();
    let append = || {
        let said = ends(dir, "audit r.hf --append acts --json", 0).json();
        documented("audit", [&said]);
        (said["appended"].as_u64().unwrap(), said["dropped"].as_u64().unwrap())
    };
    assert_eq!(append(), (0, 0));
    ends(dir, "hold r.hf --stream log --reason one", 0);
    ends(dir, "purge r.hf --stream log --ordinals 5..7 --held --reason law --yes", 0);
    assert_eq!(append(), (2, 0));
    assert_eq!(append(), (0, 0));
    // The machine went down while it was written to.
    let file = dir.join("acts");
    let whole = fs::read_to_string(&file).unwrap();
    fs::write(&file, &whole[..whole.len() - 9]).unwrap();
    assert_eq!(append(), (1, 0));
    ends(dir, "release r.hf 1", 0);
    assert_eq!(append(), (1, 0));
    let kept: Vec<Value> =
        fs::read_to_string(&file).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut told = ends(dir, "audit r.hf --json", 0).lines();
    told.pop();
    let by_number = |mut acts: Vec<Value>| {
        acts.sort_by_key(|act| (act["act"] == "purge", act["number"].as_u64()));
        acts
    };
    assert_eq!(by_number(kept), by_number(told));
    // More at once than the ring keeps.
    for hold in 2..40 {
        ends(dir, "hold r.hf --stream log --reason more", 0);
        ends(dir, &format!("release r.hf {hold}"), 0);
    }
    let said = ends(dir, "audit r.hf --append acts", 1);
    assert!(said.err.contains("had been dropped before"), "{}", said.err);
    // Neither another ring's, nor something else.
    ends(dir, "format s.hf --size 16MiB --slot 64KiB", 0);
    assert!(ends(dir, "audit s.hf --append acts", 1).err.contains("another ring"));
    fs::write(dir.join("notes"), "milk\n").unwrap();
    assert!(ends(dir, "audit r.hf --append notes", 1).err.contains("no file of acts"));
    assert_eq!(fs::read(dir.join("notes")).unwrap(), b"milk\n");
}

/// An `audit` that goes on; what it says, line by line.
fn following(dir: &Path) -> (Child, Lines<BufReader<ChildStdout>>) {
    let line = "audit r.hf --append acts --follow --json";
    let mut child = holdfast(dir).args(line.split(' ')).stdout(Stdio::piped()).spawn().unwrap();
    let said = BufReader::new(child.stdout.take().unwrap()).lines();
    (child, said)
}

/// Waits until so many more have been added, one after the other.
fn await_acts(said: &mut Lines<BufReader<ChildStdout>>, mut count: u64) {
    while count > 0 {
        let said: Value = serde_json::from_str(&said.next().unwrap().unwrap()).unwrap();
        documented("audit", [&said]);
        assert_eq!(said["dropped"], 0);
        count -= said["appended"].as_u64().unwrap();
    }
}

// More than the ring keeps, and with no clock that calls for it.
#[test]
fn what_is_on_record_comes_into_a_file_as_it_is_done() {
    let folder = folder();
    let dir = folder.path();
    ends(dir, "format r.hf --size 16MiB --slot 64KiB", 0);
    let mut recording = Recording::start(dir, "");
    recording.lines(500);
    recording.await_lines(dir, 500);
    let (mut child, mut said) = following(dir);
    for hold in 1..25 {
        ends(dir, "hold r.hf --stream log --reason kept", 0);
        ends(dir, &format!("release r.hf {hold}"), 0);
        await_acts(&mut said, 2);
    }
    let told = ends(dir, "audit r.hf", 0).out;
    assert!(told.contains("other acts before these were dropped: only what --append had added"), "{told}");
    // One at a time.
    let twice = ends(dir, "audit r.hf --append acts", 1).err;
    assert!(twice.contains("another `holdfast audit` adds to this file"), "{twice}");
    // It goes on when the recorder has ended, and with the next one.
    recording.end();
    ends(dir, "hold r.hf --stream log --reason alone", 0);
    await_acts(&mut said, 1);
    let recording = Recording::start(dir, "");
    ends(dir, "release r.hf 25 --reason again", 0);
    await_acts(&mut said, 1);
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    recording.end();
    let kept = fs::read_to_string(dir.join("acts")).unwrap();
    let numbers = kept.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["number"].as_u64());
    assert_eq!(numbers.collect::<Vec<_>>(), (1..=50).map(Some).collect::<Vec<_>>());
    // What comes while nobody follows may be dropped, and that is said.
    for hold in 26..50 {
        ends(dir, "hold r.hf --stream log --reason more", 0);
        ends(dir, &format!("release r.hf {hold}"), 0);
    }
    let said = ends(dir, "audit r.hf --append acts", 1);
    assert!(said.out.contains("had been dropped unexported: they are in no file"), "{}", said.out);
}

#[test]
fn what_holds_looked_for_is_on_record() {
    let folder = folder();
    let dir = folder.path();
    ends(dir, "format r.hf --size 16MiB --slot 64KiB", 0);
    let mut filler = Filler::open(&dir.join("r.hf"));
    filler.lines(1000);
    filler.close();
    let window = "--when count(*)_>=_2 --within 1s --before 1s --after 2s";
    ends(dir, &format!("hold r.hf --where ordinal_<_9 {window} --reason case_12 --until +100d"), 0);
    ends(dir, "hold r.hf --sample 1s/2s --reason usual", 0);
    ends(dir, "release r.hf 2 --reason closed", 0);
    let told: Vec<String> = acts(dir, "audit r.hf --json", &["act", "reason"])
        .iter()
        .map(|act| format!("{} {}", act[0].as_str().unwrap(), act[1].as_str().unwrap()))
        .collect();
    let looked = "case 12 (what `ordinal < 9` finds, when `count(*) >= 2` within 1s, 1s before, 2s after)";
    assert_eq!(
        told,
        [format!("hold {looked}"), "hold usual (1s of every 2s)".into(), "release closed".into()]
    );
    assert!(ends(dir, "audit r.hf", 0).out.contains(looked));
    // Whose hold it is says itself why, and no more.
    assert_eq!(ends(dir, "holds r.hf --json", 0).json()["reason"], "case 12");
}
