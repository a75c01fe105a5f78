//! Without a recorder commands read the ring themselves, and yield to a recorder that starts: what they give
//! is the same. A test of its own, because the place of the sockets comes from the environment.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::common;

use common::recorder::{FakeRecorder, Mood};
use common::{Given, Maker, bytes};
use holdfast_protocol::client::Connection;
use holdfast_protocol::{LinkError, path};
use holdfast_reader::{RingReader, Selection};
use std::ops::ControlFlow;
use std::path::Path;
use std::process::Command;

fn made() -> Maker {
    let mut maker = Maker::new(256 << 10, 64, 2);
    for number in 0..300u64 {
        let len = if number % 50 == 7 { 100_000 } else { 3000 };
        maker.element((number % 2) as usize, number as i64, None, b"", &bytes(number, len), 1);
    }
    maker
}

fn mood(lane: &Path) -> Mood {
    let file = path::find(lane).unwrap().file;
    Mood { file, ..Mood::default() }
}

fn write(maker: &Maker, path: &Path) {
    let lane = maker.lane();
    std::fs::write(path, lane.range(0, lane.bytes() as usize)).unwrap();
}

/// Reads a lane that changes under the reader, as if slots were being overwritten, while a recorder that has everything
/// starts.
fn read_while_slots_are_overwritten(lane: &Path, maker: &Maker, at: u64) -> (Vec<Given>, bool) {
    write(maker, lane);
    let mut reader = RingReader::open(lane).unwrap();
    let socket = path::socket_in(&path::make_run_directory().unwrap(), reader.superblock().ring);
    let plan = reader.plan(&Selection::ALL).unwrap();
    let file = std::fs::OpenOptions::new().write(true).open(lane).unwrap();
    let first = maker.superblock.geometry.first_slot();
    std::os::unix::fs::FileExt::write_all_at(&file, &[0x5a; 4096], first + at).unwrap();
    let mut given = Vec::new();
    let mut recorder = None;
    reader
        .read(&plan, &mut |item| {
            recorder.get_or_insert_with(|| FakeRecorder::start_at(made(), mood(lane), socket.clone()));
            given.extend(Given::of(&item));
            ControlFlow::Continue(())
        })
        .unwrap();
    (given, reader.is_live())
}

/// Reads all, and lets a recorder start behind the `start`th element; says whether the reader has gone over to it.
fn read_while_a_recorder_starts(lane: &Path, start: usize) -> (Vec<Given>, bool) {
    let mut reader = RingReader::open(lane).unwrap();
    assert!(!reader.is_live() && reader.pid().is_none());
    let socket = path::socket_in(&path::make_run_directory().unwrap(), reader.superblock().ring);
    let plan = reader.plan(&Selection::ALL).unwrap();
    let mut given = Vec::new();
    let mut recorder = None;
    reader
        .read(&plan, &mut |item| {
            given.extend(Given::of(&item));
            if given.len() == start && recorder.is_none() {
                recorder = Some(FakeRecorder::start_at(made(), mood(lane), socket.clone()));
            }
            ControlFlow::Continue(())
        })
        .unwrap();
    (given, reader.is_live())
}

#[test]
fn a_read_goes_on_through_a_recorder_that_starts() {
    const RUN: &str = path::RUN_VARIABLE;
    const INSIDE: &str = "HOLDFAST_TEST_INSIDE";
    let directory = tempfile::tempdir().unwrap();
    if std::env::var_os(INSIDE).is_none() {
        let mut again = Command::new(std::env::current_exe().unwrap());
        again.args(["--exact", "takeover::a_read_goes_on_through_a_recorder_that_starts", "--nocapture"]);
        let status = again.env(INSIDE, "1").env(RUN, directory.path().join("run")).status().unwrap();
        assert!(status.success());
        return;
    }
    let lane = directory.path().join("lane");
    let maker = made();
    write(&maker, &lane);
    let wanted = maker.all(1);
    for start in [1, 5, 70, 150, 299] {
        let (given, live) = read_while_a_recorder_starts(&lane, start);
        assert_eq!(given, wanted, "{start}");
        assert!(live || start > 290, "{start}");
    }
    // Not in the first 64 KiB of payload: the recorder starts when the first element comes.
    for block in 19..60 {
        let (given, live) = read_while_slots_are_overwritten(&lane, &maker, block << 12);
        assert_eq!(given, wanted, "{block}");
        assert!(live, "{block}");
    }
    write(&maker, &lane);
    // From the start through one that runs, and without once it has gone.
    let socket = path::socket_in(&path::run_directory(), maker.superblock.ring);
    let recorder = FakeRecorder::start_at(made(), mood(&lane), socket);
    let mut reader = RingReader::open(&lane).unwrap();
    assert!(reader.is_live());
    assert_eq!(common::read(&mut reader, &Selection::ALL).unwrap().0, wanted);
    // A copy is another ring: nothing of it is asked from the original's recorder, nor is that waited for.
    let copy = directory.path().join("copy");
    std::fs::copy(&lane, &copy).unwrap();
    let mut of_copy = RingReader::open(&copy).unwrap();
    assert!(!of_copy.is_live());
    assert_eq!(common::read(&mut of_copy, &Selection::ALL).unwrap().0, wanted);
    assert!(!of_copy.is_live());
    let refused =
        Connection::connect_to(recorder.socket(), maker.superblock.ring, path::find(&copy).unwrap().file);
    let said = refused.unwrap_err().to_string();
    assert!(said.contains("a recorder runs on another copy of this ring, memory"), "{said}");
    drop(recorder);
    assert!(matches!(reader.status(), Err(LinkError::Gone { .. })));
    assert!(!RingReader::open(&lane).unwrap().is_live());
}
