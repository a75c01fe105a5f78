//! Tests of the example producers in docs/protocol.md: compiled, and run against a source that receives their data
//! (promise 2).
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use crate::common;

use common::rig::{Rig, opened};
use holdfast_base::ByteSize;
use holdfast_ingest::{Cause, Framing, SourceOptions};
use std::io::Write;
use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name)
}

/// Whether `program` can be run at all; says so when not.
fn is_there(program: &str) -> bool {
    let there = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    let can_run = there.as_ref().is_ok_and(|status| !matches!(status.code(), Some(126 | 127)));
    if !can_run {
        println!("skipped: {program} cannot be run: {there:?}");
    }
    can_run
}

/// Gives `lines` to `producer` and returns what a source of this kind took, in order: what came with each, and its data.
fn sent_by(producer: &Path, kind: &str, lines: &[Vec<u8>]) -> Vec<(Vec<u8>, Vec<u8>)> {
    if let Some(how) = kind.strip_prefix("shm ") {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("area.sock").display().to_string();
        return sent_to(
            &format!("shm:{path}"),
            how == "given",
            Command::new(producer).args([how, &path]),
            lines,
        );
    }
    let port = if kind == "udp" {
        UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port()
    } else {
        TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port()
    };
    let source = if kind == "udp" { "udp" } else { "tcp" };
    let mut command = Command::new(producer);
    command.args([kind, "127.0.0.1", &port.to_string()]);
    sent_to(&format!("{source}:127.0.0.1:{port}"), kind == "given", &mut command, lines)
}

/// The same of a command for a source.
fn sent_to(source: &str, given: bool, command: &mut Command, lines: &[Vec<u8>]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let framing = given.then_some(Framing::Attr32);
    // So small that it is gone around often, and that not every element fits.
    let area = source.starts_with("shm:").then_some(ByteSize::kib(64));
    let options = SourceOptions { framing, area, ..SourceOptions::default() };
    let (opened, stop) = opened(source, &options);
    let mut rig = Rig::start(opened, stop, 4);
    let mut running =
        command.stdin(Stdio::piped()).spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let mut input = running.stdin.take().unwrap();
    let text = lines.join(&b'\n');
    let feeder = std::thread::spawn(move || input.write_all(&text));
    // A producer that fails sends less: its end must end the waiting, too.
    let stop = rig.stop.clone();
    let waiter = std::thread::spawn(move || {
        let status = running.wait().unwrap();
        if !status.success() {
            stop.stop();
        }
        status
    });
    // One that cuts its elements wrongly leaves one cut off at its end.
    rig.collect_until(|collector| collector.elements.len() == lines.len() || !collector.gaps.is_empty());
    feeder.join().unwrap().unwrap();
    assert!(waiter.join().unwrap().success());
    let (collector, _) = rig.stop();
    assert_eq!(collector.gaps, []);
    collector.elements.into_iter().map(|element| (element.meta, element.data)).collect()
}

/// With nothing beside them.
fn alone(lines: &[Vec<u8>]) -> Vec<(Vec<u8>, Vec<u8>)> {
    lines.iter().map(|line| (Vec::new(), line.clone())).collect()
}

/// With the number of each and its first word, up to 100 bytes of it.
fn given(lines: &[Vec<u8>]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let header = |number: usize, line: &[u8]| {
        let word = line.split(|byte| *byte == b' ').next().unwrap();
        let word = &word[..word.len().min(100)];
        let number = (number as u64 + 1).to_le_bytes();
        [&[8, 0][..], &number, &(word.len() as u16).to_le_bytes(), word].concat()
    };
    lines.iter().enumerate().map(|(number, line)| (header(number, line), line.clone())).collect()
}

fn check_sockets(producer: &Path) {
    let short: Vec<Vec<u8>> = (0..50).map(|n| format!("datagram {n}").into_bytes()).collect();
    assert_eq!(sent_by(producer, "udp", &short), alone(&short));
    check(producer, ["tcp", "given"]);
}

fn check_shared(producer: &Path) {
    check(producer, ["shm put", "shm given"]);
    check_drops(producer);
}

fn check(producer: &Path, [plain, with_header]: [&str; 2]) {
    // Empty elements are elements; and one that is larger than a batch.
    let mut lines: Vec<Vec<u8>> = (0..2000).map(|n| vec![b'a' + (n % 26) as u8; n % 90]).collect();
    lines.push(vec![b'x'; 300_000]);
    lines.push(b"the last one".to_vec());
    assert!(sent_by(producer, plain, &lines) == alone(&lines));
    assert!(sent_by(producer, with_header, &lines) == given(&lines));
}

/// What finds no room is given up, said, and in gaps.
fn check_drops(producer: &Path) {
    const MORE: usize = 20_000;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("area.sock").display().to_string();
    let options = SourceOptions { area: Some(ByteSize::kib(64)), ..SourceOptions::default() };
    let (opened, stop) = opened(&format!("shm:{path}"), &options);
    let mut rig = Rig::start(opened, stop, 4);
    let mut running = Command::new(producer)
        .args(["drop", &path])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = running.stdin.take().unwrap();
    let line = [&[b'x'; 99][..], b"\n"].concat();
    let is_starved = AtomicBool::new(false);
    let sent = std::thread::scope(|scope| {
        let feeder = scope.spawn(|| {
            let mut sent = 0;
            // However much is given up before: until the source has nothing left to put them into, and more than the area holds.
            while !is_starved.load(Ordering::Relaxed) {
                input.write_all(&line).unwrap();
                sent += 1;
            }
            input.write_all(&line.repeat(MORE)).unwrap();
            drop(input);
            (sent + MORE) as u64
        });
        // Nothing is given back before it has ended.
        rig.starve(4);
        is_starved.store(true, Ordering::Relaxed);
        feeder.join().unwrap()
    });
    let ended = running.wait_with_output().unwrap();
    assert!(ended.status.success());
    rig.collect_until(|collector| collector.elements.len() as u64 + collector.all_lost() == sent);
    let (collector, _) = rig.stop();
    let said = String::from_utf8(ended.stderr).unwrap();
    let lost = collector.lost(Cause::NoBuffer as u8);
    assert!(said.contains(&format!(" {lost} lines were dropped")), "{said} {lost}");
    assert!(lost > 0 && collector.lost_bytes() == 99 * lost);
    assert!(collector.elements.iter().all(|element| element.data == [b'x'; 99]));
}

/// Compiles an example as the strictest would.
fn compiled(name: &str, folder: &Path) -> Option<PathBuf> {
    if !is_there("cc") {
        return None;
    }
    let program = folder.join("producer");
    let arguments = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-O1", "-o"];
    let built = Command::new("cc").args(arguments).arg(&program).arg(example(name)).status().unwrap();
    assert!(built.success(), "it does not compile without warnings");
    Some(program)
}

#[test]
fn the_example_in_c_delivers_all_it_is_given() {
    let folder = tempfile::tempdir().unwrap();
    if let Some(program) = compiled("producer.c", folder.path()) {
        check_sockets(&program);
    }
}

#[test]
fn the_example_in_python_delivers_all_it_is_given() {
    if is_there("python3") {
        check_sockets(&example("producer.py"));
    }
}

#[test]
fn the_example_of_shared_memory_in_c_delivers_all_it_is_given() {
    let folder = tempfile::tempdir().unwrap();
    if let Some(program) = compiled("shared.c", folder.path()) {
        check_shared(&program);
    }
}

#[test]
fn the_example_of_shared_memory_in_python_delivers_all_it_is_given() {
    if is_there("python3") && is_there("cc") {
        check_shared(&example("holdfast_producer.py"));
    }
}

#[test]
fn the_header_of_shared_memory_is_of_cpp_too() {
    if !is_there("g++") {
        return;
    }
    let header = example("holdfast_producer.h");
    let arguments = ["-std=c++11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-include"];
    let built = Command::new("g++").args(arguments).arg(header).args(["-x", "c++", "/dev/null"]).status();
    assert!(built.unwrap().success(), "it does not compile without warnings");
}
