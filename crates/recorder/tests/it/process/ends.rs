//! Tests of the ends of recordings: promise 6 without a crash, and promise 8.

use crate::process::common::TestFolder;
use holdfast_protocol::ProtocolError;
use holdfast_reader::{ReaderError, RingReader, Selection};
use rustix::process::Signal;
use std::io::Write as _;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::mpsc::{Sender, channel};

const SMALL: [&str; 4] = ["--size", "16MiB", "--slot", "256KiB"];

fn with<'a>(options: &[&'a str]) -> Vec<&'a str> {
    SMALL.iter().chain(options).copied().collect()
}

#[test]
fn what_came_through_a_pipe_is_on_the_ring_byte_for_byte() {
    let place = TestFolder::new();
    let input: Vec<u8> = (0..3_000_000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let ended =
        place.record(&with(&["--source", "stdin", "--name", "s", "--frame", "fixed:1000", "--json"]), &input);
    assert!(ended.status.success(), "{}", ended.err);
    assert!(ended.out.contains("\"elements\":3000,\"bytes\":3000000,\"lost_elements\":0"), "{}", ended.out);
    let contents = place.contents();
    assert!(
        contents.gaps.is_empty() && contents.damaged.is_empty() && contents.expired.is_empty(),
        "{}",
        contents.brief()
    );
    let ordinals: Vec<u64> = contents.elements.iter().map(|(_, ordinal, _)| *ordinal).collect();
    assert_eq!(ordinals, (0..3000).collect::<Vec<_>>());
    assert!(contents.payloads().concat() == input);
    assert!(contents.gaps.is_empty() && contents.damaged.is_empty());
}

#[test]
fn a_second_recording_goes_on_where_the_first_ended() {
    let place = TestFolder::new();
    let options = with(&["--source", "stdin", "--name", "s", "--frame", "lines"]);
    place.record(&options, b"one\ntwo\n");
    let ended = place.record(&options, b"three\n");
    assert!(ended.status.success());
    assert!(ended.err.contains("1 slot of data is there"), "{}", ended.err);
    let contents = place.contents();
    assert_eq!(contents.payloads(), [&b"one"[..], b"two", b"three"]);
    assert_eq!(contents.elements[2].1, 2, "its ordinal");
    assert!(contents.gaps.is_empty());
}

#[test]
fn a_signal_ends_it_well_and_everything_taken_is_kept() {
    for signal in [Signal::INT, Signal::TERM] {
        let place = TestFolder::new();
        let mut recorder = place.start(&with(&["--source", "stdin", "--name", "s", "--frame", "lines"]));
        let mut stdin = recorder.stdin().unwrap();
        stdin.write_all(b"first\nsecond\nthird\n").unwrap();
        recorder.await_packed(3);
        recorder.signal(signal);
        // The pipe stays open: it is the signal that ends it.
        let ended = recorder.end();
        drop(stdin);
        assert_eq!(ended.status.code(), Some(0), "{}", ended.err);
        assert!(ended.out.contains("s: 3 elements, 16 B"), "{}", ended.out);
        let contents = place.contents();
        assert_eq!(contents.payloads(), [&b"first"[..], b"second", b"third"]);
    }
}

// Promise 6: `timeout` and supervisors signal the process and its group, and some send two kinds.
#[test]
fn signals_right_after_the_first_are_one_and_the_run_ends_cleanly() {
    for second in [Signal::TERM, Signal::INT] {
        let place = TestFolder::new();
        let options = with(&["--source", "stdin", "--name", "s", "--frame", "lines"]);
        let mut recorder = place.start(&options);
        let mut stdin = recorder.stdin().unwrap();
        stdin.write_all(b"first\nsecond\nthird\n").unwrap();
        recorder.await_packed(3);
        recorder.signal(Signal::TERM);
        recorder.signal(second);
        let ended = recorder.end();
        drop(stdin);
        assert_eq!(ended.status.code(), Some(0), "{}", ended.err);
        let next = place.record(&options, b"fourth\n");
        assert!(next.err.contains("of data is there; opened"), "{}", next.err);
        let contents = place.contents();
        assert_eq!(contents.payloads(), [&b"first"[..], b"second", b"third", b"fourth"]);
        assert!(contents.gaps.is_empty(), "{}", contents.brief());
    }
}

/// Reads the whole ring again and again until the recorder is gone, and says when it has done so once.
fn read_on(socket: &Path, first: Sender<()>) {
    let mut first = Some(first);
    while let Ok(mut reader) = RingReader::connect(socket) {
        loop {
            let read = reader
                .plan(&Selection::ALL)
                .and_then(|plan| reader.read(&plan, &mut |_| ControlFlow::Continue(())));
            match read {
                Ok(_) => drop(first.take()),
                Err(ReaderError::Protocol(ProtocolError::Ending { .. } | ProtocolError::Gone { .. })) => {
                    break;
                }
                Err(error) => panic!("{error}"),
            }
        }
    }
}

// Promise 6: the readers loop until the recorder has ended, so that this ends only if it does not wait for them.
#[test]
fn it_ends_while_clients_go_on_reading() {
    for signal in [None, Some(Signal::TERM)] {
        let place = TestFolder::new();
        let mut recorder = place.start(&with(&["--source", "stdin", "--name", "s", "--frame", "lines"]));
        let mut stdin = recorder.stdin().unwrap();
        let text: Vec<u8> = (0..100_000).flat_map(|n| format!("line {n}\n").into_bytes()).collect();
        stdin.write_all(&text).unwrap();
        recorder.await_packed(100_000);
        let readers: Vec<_> = (0..4)
            .map(|_| {
                let ((first, read), socket) = (channel(), recorder.socket.clone());
                let thread = std::thread::spawn(move || read_on(&socket, first));
                (thread, read)
            })
            .collect();
        for (_, read) in &readers {
            // Its end is dropped once it has read all.
            assert!(read.recv().is_err());
        }
        match signal {
            Some(signal) => recorder.signal(signal),
            None => drop(stdin),
        }
        let ended = recorder.end();
        assert_eq!(ended.status.code(), Some(0), "{}", ended.err);
        for (thread, _) in readers {
            thread.join().unwrap();
        }
        assert_eq!(place.contents().elements.len(), 100_000);
    }
}

#[test]
fn several_sources_fill_one_ring_and_one_that_fails_does_not_stop_the_other() {
    let place = TestFolder::new();
    let cut = place.path("cut");
    // A length that promises more than there is.
    std::fs::write(&cut, [3, 0, 0, 0, b'a', b'b', b'c', 9, 0, 0, 0, b'x']).unwrap();
    let spec = format!("file:{}", cut.display());
    let options = with(&[
        "--source", &spec, "--name", "cut", "--frame", "len32", "--source", "stdin", "--name", "whole",
        "--frame", "lines",
    ]);
    let ended = place.record(&options, b"a line\nanother\n");
    assert_eq!(ended.status.code(), Some(1), "{}", ended.err);
    assert!(
        ended.err.contains("holdfast-recorder: file:") && ended.err.contains("truncated: 1 of 9 bytes"),
        "{}",
        ended.err
    );
    let contents = place.contents();
    let mut payloads = contents.payloads();
    payloads.sort_unstable();
    assert_eq!(payloads, [&b"a line"[..], b"abc", b"another"]);
    assert_eq!(contents.gaps.len(), 1, "the element that was cut: {:?}", contents.gaps);
}

#[test]
fn a_preamble_at_the_head_of_the_input_is_kept_apart() {
    let place = TestFolder::new();
    let options = with(&["--source", "stdin", "--name", "s", "--frame", "fixed:4", "--preamble", "6"]);
    assert!(place.record(&options, b"HEADERabcdefgh").status.success());
    assert_eq!(place.contents().payloads(), [b"abcd", b"efgh"]);
    let mut reader = crate::process::common::reader(&place.ring);
    let stream = reader.streams().unwrap()[0].clone();
    assert_eq!(reader.preamble(stream.id, stream.preamble).unwrap().unwrap(), b"HEADER");
}

#[test]
fn an_element_larger_than_a_slot_comes_back_whole() {
    let place = TestFolder::new();
    let input: Vec<u8> = (0..1_500_000u32).map(|n| (n % 251) as u8).collect();
    let options = with(&["--source", "stdin", "--name", "s", "--frame", "fixed:1500000"]);
    assert!(place.record(&options, &input).status.success());
    assert_eq!(place.contents().payloads(), [&input[..]]);
}
