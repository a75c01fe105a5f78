//! The commands while a recorder runs, with the real programs: the same answers, through the socket. What the recorder
//! itself promises is shown by its own tests.
#![allow(missing_docs, clippy::unwrap_used)]

use crate::common;
use crate::common::recording;

use common::{documented, ends, folder, holdfast, recorder_program, run, tool};
use recording::{PATIENCE, Recording, line};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

#[test]
fn every_command_answers_while_it_is_recorded() {
    let folder = folder();
    let dir = folder.path();
    let mut recording = Recording::start(dir, "--size 16MiB --slot 64KiB");
    recording.lines(3000);
    let status = recording.await_lines(dir, 3000);
    documented("status", [&status]);
    assert_eq!(status["recorder"]["pid"], recording.child.id());
    assert_eq!((&status["losing"], &status["lost_elements"]), (&Value::from(false), &Value::from(0)));
    assert!(ends(dir, "status r.hf", 0).out.contains("being lost       nothing since the recorder started"));

    // All of it, the open slot included.
    let all = ends(dir, "read r.hf --stream log -o -", 0);
    let texts: Vec<&str> = all.out.lines().collect();
    assert_eq!(texts.len(), 3000);
    assert!(texts.iter().enumerate().all(|(at, text)| *text == line(at as u64)));
    let few = ends(dir, "read r.hf --stream log --ordinals 2990..3000 --format jsonl", 0).lines();
    assert_eq!((few.len(), &few[9]["text"]), (10, &Value::from(line(2999))));
    assert_eq!(ends(dir, "read r.hf --stream log --last 5m", 0).bytes, all.bytes);

    let held = ends(dir, "hold r.hf --stream log --ordinals 500..600 --reason why --json", 0).json();
    documented("hold", [&held]);
    assert_eq!(held["id"], 1);
    let by_time = ends(dir, "hold r.hf --last 5m --reason recent", 0);
    assert!(by_time.out.starts_with("hold 2: "), "{}", by_time.out);
    assert_eq!(ends(dir, "holds r.hf --json", 0).lines().len(), 2);
    ends(dir, "release r.hf 2", 0);
    assert_eq!(ends(dir, "streams r.hf --json", 0).lines()[0]["received"], 3000);
    assert!(ends(dir, "slots r.hf", 0).out.contains("held"));
    ends(dir, "gaps r.hf", 3);
    ends(dir, "check r.hf", 0);
    let grown = ends(dir, "grow r.hf --size 24MiB --json", 0).json();
    assert!(grown["slots"].as_u64() > grown["slots_before"].as_u64());

    // Several laps: what is held stays, byte for byte, the rest expires.
    let read = "read r.hf --stream log --ordinals 500..600";
    let before = ends(dir, read, 0).bytes;
    for lap in 1..=3 {
        recording.lines(35_000);
        recording.await_lines(dir, 3000 + lap * 35_000);
    }
    assert!(ends(dir, read, 0).bytes == before);
    ends(dir, "read r.hf --stream log --ordinals 0..1", 3);
    // How far back one can go is told without what is held, by the metrics as by the status.
    let reaches = || ends(dir, "status r.hf --json", 0).json()["reaches_back_seconds"].as_f64().unwrap();
    let (earlier, page, later) = (reaches(), ends(dir, "metrics r.hf", 0).out, reaches());
    let age = |name: &str| {
        let line =
            page.lines().find(|line| line.starts_with(&format!("holdfast_oldest_{name}_age_seconds{{")));
        line.unwrap().rsplit(' ').next().unwrap().parse::<f64>().unwrap()
    };
    assert!(earlier <= age("data") && age("data") <= later, "{earlier} to {later}: {page}");
    assert!(later < age("kept"), "{later}: {page}");
    let purged =
        ends(dir, "purge r.hf --stream log --ordinals 500..600 --held --reason law --json", 0).json();
    assert_eq!(purged["elements"], 100);
    ends(dir, read, 3);

    recording.input = None;
    let (code, out, err) = recording.end();
    assert_eq!(code, Some(0), "{out}{err}");
    // The same again without a recorder.
    let last = ends(dir, "read r.hf --stream log --ordinals 107000..108000", 0);
    assert!(last.out.lines().enumerate().all(|(at, text)| text == line(107_000 + at as u64)));
    ends(dir, "check r.hf", 0);
    assert_eq!(ends(dir, "status r.hf --json", 0).json()["recorder"], Value::Null);
}

// Promise 5: a session that asks again and again is told each time of what came since, and finds all that there is.
#[test]
fn a_session_finds_all_that_has_come_whenever_it_asks() {
    let folder = folder();
    let dir = folder.path();
    let mut recording = Recording::start(dir, "--size 64MiB --slot 256KiB");
    let session =
        holdfast(dir).args(["sql", "r.hf", "--json"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut session = session.unwrap();
    let mut questions = session.stdin.take().unwrap();
    let mut answers = BufReader::new(session.stdout.take().unwrap());
    let (mut sent, mut bytes) = (0, 0);
    for portion in [1, 2, 500, 1, 4000, 7, 7, 3000, 1, 9000, 3] {
        recording.lines(portion);
        bytes += (sent..sent + portion).map(|at| line(at).len()).sum::<usize>();
        sent += portion;
        recording.await_lines(dir, sent);
        writeln!(questions, "select count(*) n, max(ordinal) last, sum(size) bytes from log;").unwrap();
        let mut answer = String::new();
        answers.read_line(&mut answer).unwrap();
        let answer: Value = serde_json::from_str(&answer).unwrap();
        assert_eq!(answer, serde_json::json!({ "n": sent, "last": sent - 1, "bytes": bytes }));
    }
    drop(questions);
    assert!(session.wait().unwrap().success());
    recording.input = None;
    assert_eq!(recording.end().0, Some(0));
}

// Promise 2: what is missing is told of while others go on, though nobody knows how much it is.
#[test]
fn a_loss_of_unknown_size_is_told_as_one() {
    let folder = folder();
    let dir = folder.path();
    // A capture file that breaks behind its head.
    let head = [0xa1b2_c3d4_u32, 4 << 16 | 2, 0, 0, 65_535, 1, 7].map(u32::to_le_bytes);
    fs::write(dir.join("cut.pcap"), head.as_flattened()).unwrap();
    let mut recording =
        Recording::start(dir, "--size 16MiB --slot 64KiB --source replay:cut.pcap --name cut --speed max");
    let started = Instant::now();
    let status = loop {
        recording.lines(1);
        let status = recording.await_lines(dir, 1);
        if status["recorder"]["sources"][1]["state"] == "failed" {
            break status;
        }
        assert!(started.elapsed() < PATIENCE, "{status}");
    };
    let source = &status["recorder"]["sources"][1];
    assert_eq!((&status["losing"], &source["unknown_losses"]), (&true.into(), &1.into()), "{status}");
    let said = ends(dir, "status r.hf", 0).out;
    assert!(said.contains("being lost       yes, the last "), "{said}");
    assert!(said.contains(" ago: cut an unknown number\n"), "{said}");
    let source = &ends(dir, "status r.hf --json", 0).json()["recorder"]["sources"][1];
    assert_eq!(source["recent_unknown_losses"], 1, "{source}");
    assert!(source["last_lost_at"].is_string(), "{source}");
    let page = ends(dir, "metrics r.hf", 0).out;
    assert!(page.contains("holdfast_stream_unknown_losses_total{ring=\"r\",stream=\"cut\"} 1"), "{page}");
    assert_eq!(recording.end().0, Some(1));
}

#[test]
fn a_copy_of_a_ring_is_another_ring() {
    let folder = folder();
    let dir = folder.path();
    let mut recording = Recording::start(dir, "--size 16MiB --slot 64KiB");
    recording.lines(300);
    recording.await_lines(dir, 300);
    assert_eq!(recording.end().0, Some(0));
    fs::copy(dir.join("r.hf"), dir.join("copy.hf")).unwrap();
    let mut recording = Recording::start(dir, "");
    recording.lines(300);
    recording.await_lines(dir, 300);
    assert_eq!(ends(dir, "status copy.hf --json", 0).json()["recorder"], Value::Null);
    ends(dir, "hold copy.hf --last 5m --stream log --reason x", 0);
    ends(dir, "holds r.hf", 3);
    ends(dir, "purge copy.hf --stream log --ordinals 0..50 --held --reason law", 0);
    ends(dir, "read copy.hf --stream log --ordinals 0..50", 3);
    ends(dir, "check copy.hf", 0);
    let kept = ends(dir, "read r.hf --stream log --ordinals 0..50", 0).out;
    assert!(kept.lines().enumerate().all(|(at, text)| text == line(at as u64)), "{kept}");
    // A link to it is the same ring.
    fs::hard_link(dir.join("r.hf"), dir.join("linked.hf")).unwrap();
    let linked = ends(dir, "status linked.hf --json", 0).json();
    assert_eq!(linked["recorder"]["pid"], recording.child.id());
    assert_eq!(recording.end().0, Some(0));
}

#[test]
fn a_ring_that_cannot_be_read_any_more_is_told_of_by_its_recorder() {
    let folder = folder();
    let dir = folder.path();
    let (place, gone) = (dir.join("place"), dir.join("gone"));
    fs::create_dir_all(dir.join(".config/holdfast")).unwrap();
    let named = format!("[rings.\"r.hf\"]\npath = {place:?}\n");
    fs::write(dir.join(".config/holdfast/config.toml"), named).unwrap();
    let mut recording = Recording::start(dir, "--size 16MiB --slot 64KiB");
    recording.lines(3000);
    recording.await_lines(dir, 3000);
    let told = || {
        let status = ends(dir, "status r.hf --json", 0).json();
        assert_eq!(status["recorder"]["pid"], recording.child.id());
        assert!(ends(dir, "metrics r.hf", 0).out.contains("holdfast_recorder_up{ring=\"place\"} 1"));
    };
    // A device that was pulled out: its path leads nowhere.
    fs::rename(&place, &gone).unwrap();
    told();
    ends(dir, "hold r.hf --last 5m --reason why", 0);
    assert_eq!(ends(dir, "read r.hf", 0).out.lines().count(), 3000);
    ends(dir, &format!("status {}", dir.join("other").display()), 1);
    fs::rename(&gone, &place).unwrap();
    assert_eq!(ends(dir, "holds r.hf", 0).out.lines().count(), 2);
    // Its superblocks are lost, and that is told, too.
    let file = fs::OpenOptions::new().write(true).open(&place).unwrap();
    for offset in holdfast_format::Superblock::OFFSETS {
        file.write_all_at(&[0; 4096], offset).unwrap();
    }
    told();
    assert_eq!(ends(dir, "check r.hf", 1).out.matches("superblock copy").count(), 4);
    recording.end();
    assert!(ends(dir, "status r.hf", 1).err.contains("not a ring"));
}

#[test]
fn metrics_are_served_beside_the_recorder_and_end_with_it() {
    let folder = folder();
    let dir = folder.path();
    let mut recording = Recording::start(dir, "--size 16MiB --slot 64KiB --metrics 127.0.0.1:0");
    recording.lines(100);
    recording.await_lines(dir, 100);
    let mut err = BufReader::new(recording.child.stderr.take().unwrap());
    let mut first = String::new();
    while !first.contains("serving metrics at http://") {
        first.clear();
        assert!(err.read_line(&mut first).unwrap() > 0, "the address of the metrics is not told");
    }
    let address = first.split("http://").nth(1).unwrap().split('/').next().unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).unwrap();
    for wanted in [
        "holdfast_recorder_up{ring=\"r\"} 1",
        "holdfast_stream_received_elements_total{ring=\"r\",stream=\"log\"} 100",
    ] {
        assert!(page.contains(wanted), "{page}");
    }
    assert_eq!(
        ends(dir, "metrics r.hf", 0).out.lines().count(),
        page.split("\r\n\r\n").nth(1).unwrap().lines().count()
    );
    // The same for programs, once.
    let told = ends(dir, "metrics r.hf --json", 0).json();
    documented("metrics", [&told]);
    let metrics = told["metrics"].as_array().unwrap();
    let helped = page.lines().filter(|line| line.starts_with("# HELP ")).count();
    assert_eq!((&told["ring"], metrics.len()), (&"r".into(), helped));
    let received =
        metrics.iter().find(|one| one["name"] == "holdfast_stream_received_elements_total").unwrap();
    assert_eq!((&received["type"], &received["samples"][0]["value"]), (&"counter".into(), &100.into()));
    assert_eq!(received["samples"][0]["labels"]["stream"], "log");
    let said = ends(dir, "metrics r.hf --json --listen 127.0.0.1:0", 2).err;
    assert!(said.contains("--json") && said.contains("leave out --listen"), "{said}");
    // An address in use is told before anything is recorded.
    let said = run(dir, &format!("record other.hf --size 16MiB --source stdin --name a --metrics {address}"));
    assert_eq!(said.code, Some(1), "{}", said.err);
    assert!(said.err.contains("cannot serve metrics") && !dir.join("other.hf").exists(), "{}", said.err);
    let pid = rustix::process::Pid::from_child(&recording.child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    // Both processes hold the other end: it closes when both have ended.
    let mut rest = String::new();
    err.read_to_string(&mut rest).unwrap();
    assert_eq!(recording.child.wait().unwrap().code(), Some(0), "{rest}");
    // Its listening socket is the last that a process closes as it ends.
    let started = Instant::now();
    while TcpStream::connect(address).is_ok() {
        assert!(started.elapsed() < PATIENCE, "somebody still listens at {address}");
    }
}

#[test]
fn a_ring_that_is_recorded_is_not_formatted() {
    let folder = folder();
    let dir = folder.path();
    let mut recording = Recording::start(dir, "--size 16MiB --slot 64KiB");
    recording.lines(10);
    recording.await_lines(dir, 10);
    let pid = recording.child.id().to_string();
    let said = ends(dir, "format r.hf --size 16MiB --force", 1);
    assert!(said.err.contains(&pid), "the recorder is named: {}", said.err);
    let status = ends(dir, "status r.hf --json", 0).json();
    let geometry = ends(dir, &format!("check --geometry holdfast1:aa{} r.hf", status["epoch"]), 2);
    assert!(geometry.err.contains("recovery string"), "{}", geometry.err);
    assert_eq!(recording.end().0, Some(0));
}

#[test]
fn the_watch_leaves_the_terminal_as_it_was() {
    let Some(script) = tool("script") else { return };
    let folder = folder();
    let dir = folder.path();
    let mut recording = Recording::start(dir, "--size 16MiB --slot 64KiB");
    recording.lines(100);
    recording.await_lines(dir, 100);
    let watch =
        format!("stty rows 40 cols 120; exec '{}' status r.hf --watch", env!("CARGO_BIN_EXE_holdfast"));
    let mut command = Command::new(script);
    command.args(["-qec", &watch, "/dev/null"]).current_dir(dir).env("HOLDFAST_RUN", dir.join("run"));
    command.env("HOME", dir).env("TERM", "xterm-256color").env("COLUMNS", "120").env("LINES", "40");
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut out = child.stdout.take().unwrap();
    let mut seen = Vec::new();
    let mut piece = [0; 4096];
    while !String::from_utf8_lossy(&seen).contains("ends") {
        let read = out.read(&mut piece).unwrap();
        assert!(read > 0, "{}", String::from_utf8_lossy(&seen));
        seen.extend_from_slice(&piece[..read]);
    }
    child.stdin.as_mut().unwrap().write_all(b"q").unwrap();
    out.read_to_end(&mut seen).unwrap();
    assert!(child.wait().unwrap().success());
    let seen = String::from_utf8_lossy(&seen);
    let (enter, leave) = (seen.find("\u{1b}[?1049h"), seen.rfind("\u{1b}[?1049l"));
    assert!(enter.is_some() && leave > enter, "{seen:?}");
    assert_eq!(recording.end().0, Some(0));
}

#[test]
fn the_watch_ends_quietly_when_its_terminal_goes_away() {
    let Some(script) = tool("script") else { return };
    let folder = folder();
    let dir = folder.path();
    ends(dir, "format r.hf --size 16MiB --slot 64KiB", 0);
    // The shell outlives the terminal, to tell how the watch ended.
    let watch = format!(
        "trap '' HUP; '{}' status r.hf --watch; echo $? > code.part; mv code.part code",
        env!("CARGO_BIN_EXE_holdfast")
    );
    let mut command = Command::new(script);
    command.args(["-qec", &watch, "/dev/null"]).current_dir(dir).env("HOLDFAST_RUN", dir.join("run"));
    command.env("HOME", dir).env("TERM", "xterm-256color").env("SHELL", "/bin/sh");
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut out = child.stdout.take().unwrap();
    let mut seen = Vec::new();
    let mut piece = [0; 4096];
    while !String::from_utf8_lossy(&seen).contains("\u{1b}[?1049h") {
        let read = out.read(&mut piece).unwrap();
        assert!(read > 0, "{}", String::from_utf8_lossy(&seen));
        seen.extend_from_slice(&piece[..read]);
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let started = Instant::now();
    while !dir.join("code").exists() {
        assert!(started.elapsed() < PATIENCE, "the watch goes on without a terminal");
    }
    assert_eq!(fs::read_to_string(dir.join("code")).unwrap(), "0\n");
}

#[test]
fn the_recorder_speaks_json_at_its_end_and_when_it_cannot_begin() {
    let folder = folder();
    let dir = folder.path();
    let mut recording = Recording::start(dir, "--size 16MiB --slot 64KiB --json");
    recording.lines(100);
    recording.await_lines(dir, 100);
    let (code, out, err) = recording.end();
    assert_eq!(code, Some(0), "{err}");
    let summary: Value = serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}"));
    documented("record", [&summary]);
    assert_eq!(summary["streams"][0]["elements"], 100);
    for (line, code) in [
        ("record r.hf --json", 2),
        ("record none/new.hf --size 16MiB --source stdin --name s --json", 1),
        ("record r.hf --source file:/none --name \"a\" --json", 1),
        ("metrics r.hf --json --listen 127.0.0.1:0", 2),
    ] {
        let said = ends(dir, line, code);
        assert_eq!(said.json()["exit"], code, "{line}");
        let error = said.json()["error"].as_str().unwrap().to_owned();
        assert!(said.err.ends_with(&format!("holdfast: {error}\n")), "{line}: {}", said.err);
    }
}

/// The least memory that a recorder of such a ring says it takes.
fn least_memory(dir: &Path) -> String {
    let said = ends(dir, "record few.hf --size 16MiB --slot 64KiB --source stdin --name a --memory 1KiB", 2);
    let least = said.err.trim().rsplit_once("at least ").unwrap().1.replace(' ', "");
    assert!(!dir.join("few.hf").exists());
    least
}

#[test]
fn commands_beside_each_other_share_two_pieces_of_memory_and_all_are_right() {
    recorder_program();
    let folder = folder();
    let dir = folder.path();
    let memory = least_memory(dir);
    let mut recording = Recording::start(dir, &format!("--size 16MiB --slot 64KiB --memory {memory}"));
    recording.lines(6000);
    recording.await_lines(dir, 6000);
    let wanted: String = (1000..3000).map(|ordinal| line(ordinal) + "\n").collect();
    std::thread::scope(|scope| {
        for reader in 0..4 {
            let wanted = &wanted;
            scope.spawn(move || {
                for _ in 0..3 {
                    let said = ends(dir, "read r.hf --stream log --ordinals 1000..3000", 0);
                    assert!(said.out == *wanted, "reader {reader}: {} bytes", said.out.len());
                }
            });
        }
        scope.spawn(|| {
            for number in 0..6 {
                let order = format!(
                    "hold r.hf --stream log --ordinals {}..{} --reason x",
                    number * 100,
                    number * 100 + 50
                );
                ends(dir, &order, 0);
                ends(dir, "gaps r.hf", 3);
            }
        });
        scope.spawn(|| {
            for _ in 0..3 {
                assert!(ends(dir, "check r.hf", 0).out.contains("sound"));
                ends(dir, "slots r.hf", 0);
            }
        });
        scope.spawn(|| {
            for _ in 0..12 {
                let status = ends(dir, "status r.hf --json", 0).json();
                assert_eq!(
                    (&status["losing"], &status["recorder"]["device"]),
                    (&Value::from(false), &"ok".into())
                );
            }
        });
        // The recording goes on all the while.
        for _ in 0..10 {
            recording.lines(200);
        }
    });
    recording.await_lines(dir, 8000);
    assert_eq!(ends(dir, "holds r.hf --json", 0).lines().len(), 6);
    let last = ends(dir, "read r.hf --stream log --ordinals 7000..8000", 0).out;
    assert!(last.lines().enumerate().all(|(at, text)| text == line(7000 + at as u64)));
    let (code, out, err) = recording.end();
    assert_eq!(code, Some(0), "{out}{err}");
}
