//! Pins are those of the last request, and end with the connection; a search works without them (promise 3).
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use holdfast_base::Sequence;
use holdfast_reader::{RingReader, Selection};
use holdfast_sim::fixture::{Behaviour, FakeRecorder, TestRing};

fn test_ring() -> TestRing {
    let mut test_ring = TestRing::new(64 << 10, 20, 1);
    for number in 0..200 {
        test_ring.element(0, 1000 + number, None, b"", &[7; 3000], 1);
    }
    test_ring
}

fn sequences(all: &[u64]) -> Vec<Sequence> {
    all.iter().map(|sequence| Sequence(*sequence)).collect()
}

#[test]
fn pins_are_those_that_were_asked_for_last_and_end_with_the_connection() {
    let recorder = FakeRecorder::start(test_ring(), Behaviour { pins: Some(3), ..Behaviour::default() });
    let pinned = || recorder.pinned.lock().unwrap().values().cloned().collect::<Vec<_>>();
    let mut reader = RingReader::connect(recorder.socket()).unwrap();
    assert!(!reader.plan(&Selection::ALL).unwrap().slots.is_empty());
    let mut pins = reader.into_pins();
    assert!(pins.is_open());
    assert_eq!(pins.keep(sequences(&[4, 5])), 2);
    assert_eq!(pinned(), [[4, 5]]);
    assert_eq!(pins.keep(sequences(&[5, 6, 7, 8])), 3);
    assert_eq!(pinned(), [[5, 6, 7]]);
    drop(pins);
    while !pinned().is_empty() {
        std::thread::yield_now();
    }
}

#[test]
fn without_a_recorder_that_knows_of_pins_there_are_none_and_nothing_fails() {
    let recorder = FakeRecorder::start(test_ring(), Behaviour::default());
    let mut pins = RingReader::connect(recorder.socket()).unwrap().into_pins();
    assert_eq!((pins.keep(sequences(&[4])), pins.is_open()), (0, false));
    assert_eq!(pins.keep(sequences(&[4])), 0);
    let mut pins = test_ring().direct().into_pins();
    assert_eq!((pins.is_open(), pins.keep(sequences(&[4]))), (false, 0));
}
