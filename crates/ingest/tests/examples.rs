//! The producers that docs/protocol.md shows: compiled and run, against a source that takes what they send (promise 2).
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod common;

use common::rig::{Rig, opened};
use holdfast_ingest::{Framing, SourceOptions};
use std::io::Write;
use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name)
}

/// Whether `program` can be run at all; says so when not.
fn is_there(program: &str) -> bool {
    let there = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if let Err(error) = &there {
        println!("skipped: {program} cannot be run: {error}");
    }
    there.is_ok()
}

/// Gives `lines` to `producer` and returns what a source of this kind took, in order: what came with each, and its data.
fn sent_by(producer: &Path, kind: &str, lines: &[Vec<u8>]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let port = if kind == "udp" {
        UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port()
    } else {
        TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port()
    };
    let framing = (kind == "given").then_some(Framing::Attr32);
    let source = if kind == "udp" { "udp" } else { "tcp" };
    let options = SourceOptions { framing, ..SourceOptions::default() };
    let (opened, stop) = opened(&format!("{source}:127.0.0.1:{port}"), &options);
    let mut rig = Rig::start(opened, stop, 4);
    let mut running = Command::new(producer)
        .args([kind, "127.0.0.1", &port.to_string()])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{}: {error}", producer.display()));
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

fn check(producer: &Path) {
    let short: Vec<Vec<u8>> = (0..50).map(|n| format!("datagram {n}").into_bytes()).collect();
    assert_eq!(sent_by(producer, "udp", &short), alone(&short));
    // Empty elements are elements; and one that is larger than a batch.
    let mut lines: Vec<Vec<u8>> = (0..2000).map(|n| vec![b'a' + (n % 26) as u8; n % 90]).collect();
    lines.push(vec![b'x'; 300_000]);
    lines.push(b"the last one".to_vec());
    assert!(sent_by(producer, "tcp", &lines) == alone(&lines));
    assert!(sent_by(producer, "given", &lines) == given(&lines));
}

#[test]
fn the_example_in_c_delivers_all_it_is_given() {
    if !is_there("cc") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("producer");
    let arguments = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-O1", "-o"];
    let built = Command::new("cc").args(arguments).arg(&program).arg(example("producer.c")).status().unwrap();
    assert!(built.success(), "it does not compile without warnings");
    check(&program);
}

#[test]
fn the_example_in_python_delivers_all_it_is_given() {
    if is_there("python3") {
        check(&example("producer.py"));
    }
}
