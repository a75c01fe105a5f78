//! Tests of promise 1: work beside a recorder costs it no data. The bench of the same name measures in real time how
//! much work there may be while the drive is busy.

use crate::process::common::{Contents, TestFolder};
use crate::process::watch::Watch;
use holdfast_base::Sequence;
use holdfast_protocol::client::Connection;
use holdfast_protocol::server::MAX_CLIENTS;
use holdfast_protocol::wire::{Purpose, Reply, Request};
use rustix::fs::OFlags;
use std::fs::File;
use std::io::Write as _;
use std::process::{Command, Stdio};

const OPTIONS: [&str; 10] =
    ["--size", "16MiB", "--slot", "256KiB", "--source", "stdin", "--name", "s", "--frame", "lines"];

/// So many lines.
fn lines(count: u64) -> Vec<u8> {
    (0..count).flat_map(|n| format!("line {n}\n").into_bytes()).collect()
}

/// Runs a recorder with these streams to its end; its exit code.
fn record(mut command: Command, input: &[u8]) -> Option<i32> {
    let mut child = command.spawn().unwrap();
    let _watch = Watch::over(&child);
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input).unwrap();
    drop(stdin);
    child.wait().unwrap().code()
}

/// A pipe that takes nothing any more, as whoever writes to it sees it; and its other end.
fn clogged() -> (File, File) {
    let (theirs, ours) = rustix::pipe::pipe().unwrap();
    let mut ours = File::from(ours);
    rustix::fs::fcntl_setfl(&ours, OFlags::NONBLOCK).unwrap();
    while ours.write(b"x").is_ok() {}
    rustix::fs::fcntl_setfl(&ours, OFlags::empty()).unwrap();
    (ours, File::from(theirs))
}

#[test]
fn a_log_that_nobody_reads_is_not_waited_for() {
    let place = TestFolder::new();
    let (log, _reader) = clogged();
    let mut command = place.command(&OPTIONS);
    command.stderr(log).stdout(Stdio::null());
    assert_eq!(record(command, &lines(1000)), Some(0));
    assert_eq!(place.contents().elements.len(), 1000);
}

#[test]
fn a_full_log_costs_nothing_and_a_summary_that_finds_no_room_is_a_failure() {
    let place = TestFolder::new();
    let full = || File::options().write(true).open("/dev/full").unwrap();
    let mut command = place.command(&OPTIONS);
    command.stderr(full()).stdout(Stdio::null());
    assert_eq!(record(command, &lines(1000)), Some(0));
    let mut command = place.command(&OPTIONS[4..]);
    command.stdout(full());
    let child = command.stdin(Stdio::null()).spawn().unwrap();
    let _watch = Watch::over(&child);
    let ended = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(1), "{said}");
    assert!(said.contains("cannot print the summary on standard output"), "{said}");
    assert_eq!(place.contents().elements.len(), 1000);
}

#[test]
fn as_many_clients_as_there_is_room_for_are_answered_and_the_rest_is_told() {
    let place = TestFolder::new();
    let mut recorder = place.start(&OPTIONS);
    let mut all: Vec<Connection> = (0..MAX_CLIENTS).map(|_| recorder.connect()).collect();
    for _ in 0..100 {
        let refused = Connection::connect(&recorder.socket).unwrap_err().to_string();
        assert!(refused.contains("clients are connected and all are busy"), "{refused}");
    }
    let mut stdin = recorder.stdin().unwrap();
    stdin.write_all(&lines(100_000)).unwrap();
    let packed = |connection: &mut Connection| {
        connection.status().unwrap().recorder.unwrap().sources[0].packed_elements
    };
    while packed(&mut all[0]) < 100_000 {}
    for connection in &mut all {
        assert_eq!(packed(connection), 100_000);
    }
    // Who leaves makes room. That the place is free is known a moment later.
    all.pop();
    while Connection::connect(&recorder.socket).is_err() {}
    drop((all, stdin));
    assert!(recorder.end().status.success());
    assert_eq!(place.contents().elements.len(), 100_000);
}

#[test]
fn a_client_that_keeps_all_that_it_was_given_keeps_nobody_from_reading() {
    let place = TestFolder::new();
    let mut recorder = place.start(&OPTIONS);
    let mut stdin = recorder.stdin().unwrap();
    stdin.write_all(&lines(100_000)).unwrap();
    recorder.await_packed(100_000);
    let mut reader = recorder.reader();
    let sequences: Vec<Sequence> = loop {
        let slots = reader.slots().unwrap();
        let data: Vec<_> = slots.iter().filter(|slot| slot.has_data()).map(|slot| slot.sequence).collect();
        if data.len() > 3 {
            break data;
        }
    };
    let mut dawdler = recorder.connect();
    // More than there are pieces.
    for sequence in sequences.iter().cycle().take(10) {
        dawdler
            .send(&Request::Read { sequence: *sequence, offset: 0, len: 4096, purpose: Purpose::Export })
            .unwrap();
    }
    for _ in 0..8 {
        assert!(matches!(dawdler.next_reply().unwrap().1, Reply::Ready { .. }));
    }
    let contents = Contents::read(&mut reader);
    assert_eq!((contents.elements.len(), contents.damaged.len()), (100_000, 0), "{}", contents.brief());
    // And no data of later is kept out.
    stdin.write_all(&lines(100_000)).unwrap();
    recorder.await_packed(200_000);
    drop(stdin);
    drop(dawdler);
    let ended = recorder.end();
    assert!(ended.out.contains("200000 elements"), "{}", ended.out);
}
