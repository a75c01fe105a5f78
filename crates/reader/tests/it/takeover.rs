//! Takeover: a direct read continues through a recorder that starts, with the same results.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use holdfast_protocol::client::Connection;
use holdfast_protocol::{ProtocolError, RingLocation, socket_path};
use holdfast_reader::ReaderError;
use holdfast_reader::{RingReader, Selection};
use holdfast_sim::fixture::{Behaviour, FakeRecorder, OwnedItem, TestRing, bytes};
use std::ops::ControlFlow;
use std::path::Path;
use std::process::Command;

fn made() -> TestRing {
    let mut test_ring = TestRing::new(256 << 10, 64, 2);
    for number in 0..300u64 {
        let len = if number % 50 == 7 { 100_000 } else { 3000 };
        test_ring.element((number % 2) as usize, number as i64, None, b"", &bytes(number, len), 1);
    }
    test_ring
}

fn behaviour(lane: &Path) -> Behaviour {
    let file = RingLocation::read(lane).unwrap().file;
    Behaviour { file, ..Behaviour::default() }
}

fn write(test_ring: &TestRing, path: &Path) {
    let lane = test_ring.lane();
    std::fs::write(path, lane.range(0, lane.bytes() as usize)).unwrap();
}

/// Reads a lane that changes under the reader, as if slots were being overwritten, while a recorder that has everything
/// starts.
fn read_while_slots_are_overwritten(lane: &Path, test_ring: &TestRing, at: u64) -> (Vec<OwnedItem>, bool) {
    write(test_ring, lane);
    let mut reader = RingReader::open(lane).unwrap();
    let socket =
        socket_path::socket_in(&socket_path::make_run_directory().unwrap(), reader.superblock().ring);
    let plan = reader.plan(&Selection::ALL).unwrap();
    let file = std::fs::OpenOptions::new().write(true).open(lane).unwrap();
    let first = test_ring.superblock.geometry.first_slot();
    std::os::unix::fs::FileExt::write_all_at(&file, &[0x5a; 4096], first + at).unwrap();
    let mut given = Vec::new();
    let mut recorder = None;
    reader
        .read(&plan, &mut |item| {
            recorder.get_or_insert_with(|| FakeRecorder::start_at(made(), behaviour(lane), socket.clone()));
            given.extend(OwnedItem::of(&item));
            ControlFlow::Continue(())
        })
        .unwrap();
    (given, reader.is_live())
}

/// Reads all, and lets a recorder start behind the `start`th element; says whether the reader has gone over to it.
fn read_while_a_recorder_starts(lane: &Path, start: usize) -> (Vec<OwnedItem>, bool) {
    let mut reader = RingReader::open(lane).unwrap();
    assert!(!reader.is_live() && reader.pid().is_none());
    let socket =
        socket_path::socket_in(&socket_path::make_run_directory().unwrap(), reader.superblock().ring);
    let plan = reader.plan(&Selection::ALL).unwrap();
    let mut given = Vec::new();
    let mut recorder = None;
    reader
        .read(&plan, &mut |item| {
            given.extend(OwnedItem::of(&item));
            if given.len() == start && recorder.is_none() {
                recorder = Some(FakeRecorder::start_at(made(), behaviour(lane), socket.clone()));
            }
            ControlFlow::Continue(())
        })
        .unwrap();
    (given, reader.is_live())
}

#[test]
fn a_read_goes_on_through_a_recorder_that_starts() {
    const RUN: &str = socket_path::RUN_VARIABLE;
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
    let test_ring = made();
    write(&test_ring, &lane);
    let wanted = test_ring.all(1);
    for start in [1, 5, 70, 150, 299] {
        let (given, live) = read_while_a_recorder_starts(&lane, start);
        assert_eq!(given, wanted, "{start}");
        assert!(live || start > 290, "{start}");
    }
    // Not in the first 64 KiB of payload: the recorder starts when the first element comes.
    for block in 19..60 {
        let (given, live) = read_while_slots_are_overwritten(&lane, &test_ring, block << 12);
        assert_eq!(given, wanted, "{block}");
        assert!(live, "{block}");
    }
    write(&test_ring, &lane);
    // From the start through one that runs, and without once it has gone.
    let socket = socket_path::socket_in(&socket_path::run_directory(), test_ring.superblock.ring);
    let recorder = FakeRecorder::start_at(made(), behaviour(&lane), socket);
    let mut reader = RingReader::open(&lane).unwrap();
    assert!(reader.is_live());
    assert_eq!(holdfast_sim::fixture::read(&mut reader, &Selection::ALL).unwrap().0, wanted);
    // A copy is another ring: nothing of it is asked from the original's recorder, nor is that waited for.
    let copy = directory.path().join("copy");
    std::fs::copy(&lane, &copy).unwrap();
    let mut of_copy = RingReader::open(&copy).unwrap();
    assert!(!of_copy.is_live());
    assert_eq!(holdfast_sim::fixture::read(&mut of_copy, &Selection::ALL).unwrap().0, wanted);
    assert!(!of_copy.is_live());
    let refused = Connection::connect_to(
        recorder.socket(),
        test_ring.superblock.ring,
        RingLocation::read(&copy).unwrap().file,
    );
    let said = refused.unwrap_err().to_string();
    assert!(
        said.contains("it records to another copy of this ring; give the path of that copy, memory"),
        "{said}"
    );
    drop(recorder);
    assert!(matches!(reader.status(), Err(ReaderError::Protocol(ProtocolError::Gone { .. }))));
    assert!(!RingReader::open(&lane).unwrap().is_live());
}
