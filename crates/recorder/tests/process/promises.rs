//! Promise 1, at the start: what a ring was made for is weighed against the memory there is, and said; what cannot be
//! promised is refused with what would do.

use crate::common::{Place, reader};
use holdfast_base::{ByteSize, Rate, RingId, Timestamp};
use holdfast_format::{Geometry, Key, Measured, Terms};
use holdfast_media::{Footing, PlainDisk, Prefill, create_file};
use holdfast_ring::{NewRing, Order, Outcome, Refusal, create};
use std::time::Duration;

const STDIN: [&str; 4] = ["--source", "stdin", "--name", "s"];

/// A ring on a device that was measured to take 40 MiB/s, made for 20.
fn made(place: &Place) {
    made_to_gather(place, 4);
}

/// The same, writing so many slots in one go.
pub(crate) fn made_to_gather(place: &Place, gather: u16) {
    make(place, gather, false);
}

fn make(place: &Place, gather: u16, prefilled: bool) {
    let (slot, slots) = (8 << 20, 40);
    let bytes = (1 << 20) + (4 + slots) * slot;
    let device = create_file(&place.ring, bytes, Prefill::No).unwrap();
    let geometry = Geometry::for_lane(bytes, slot, Vec::new()).unwrap();
    let measured = Measured {
        at: Timestamp(1),
        write: Rate(40 << 20),
        read: Rate(40 << 20),
        reposition: Duration::from_millis(5),
        commit: Duration::from_millis(1),
        read_error: Duration::from_millis(100),
        stall: Duration::from_millis(100),
        stalled: 1000,
        parallel: 1,
        elements: 1_000_000,
    };
    let terms = Terms {
        measured,
        rate: Rate(20 << 20),
        elements: 1000,
        burst: ByteSize(0),
        gather,
        quantum: 1 << 20,
        memory: ByteSize::mib(64),
    };
    let new = NewRing { prefilled, terms: Some(terms), ..NewRing::plain(RingId([7; 16]), Key([9; 32]), "r", geometry) };
    create(&mut PlainDisk::new(device, 1), new, Timestamp(1)).unwrap();
}

/// Slots to which nothing was ever written.
fn unwritten(place: &Place) -> u32 {
    reader(&place.ring).status().unwrap().ring.slots.unwritten
}

/// How a run begins to say what it was admitted for, on a ring that is as it is now.
fn said(place: &Place, promise: &str) -> String {
    match (Footing::of(&place.ring).doubt, unwritten(place)) {
        (Some(why), _) => format!("; best effort: {why}"),
        (None, 0) => format!("; guaranteed {promise}"),
        (None, n) => {
            format!("; best effort until {n} more slots have been written once; then guaranteed {promise}")
        }
    }
}

#[test]
fn a_run_says_what_it_promises() {
    let place = Place::new();
    made(&place);
    assert_eq!(unwritten(&place), 40);
    let wanted = said(&place, "20 MiB/s of payload, 20");
    let ended = place.record(&STDIN, b"one\ntwo\n");
    assert!(ended.status.success(), "{}", ended.err);
    assert!(ended.err.contains(&wanted), "{wanted}: {}", ended.err);
    assert_eq!(unwritten(&place), 39, "the slot with what was recorded");
    let wanted = said(&place, "30 MiB/s of payload, 30");
    let options = [&STDIN[..], &["--rate", "30MiB/s"]].concat();
    let ended = place.record(&options, b"three\n");
    assert!(ended.err.contains(&wanted), "{wanted}: {}", ended.err);
    assert!(ended.err.contains("30 MiB/s of payload, 30"), "{}", ended.err);
    assert_eq!(place.contents().payloads().concat().len(), b"onetwothree".len() + 3, "{}", ended.err);
    // Who declares nothing has what is left of what the ring was made for, if anything is.
    let other = ["--source", "file:/dev/null", "--name", "t"];
    let ended = place.record(&[&STDIN[..], &["--rate", "15MiB/s"], &other].concat(), b"4");
    assert!(ended.err.contains(" 20 MiB/s of payload, 20"), "{}", ended.err);
    let ended = place.record(&[&STDIN[..], &["--rate", "25MiB/s"], &other].concat(), b"5");
    assert!(ended.err.contains(" 25 MiB/s of payload, 25"), "{}", ended.err);
    assert!(ended.err.contains("; t gets what is left; durable after"), "{}", ended.err);
    let plain = Place::new();
    let ended = plain.record(&[&["--size", "16MiB"], &STDIN[..]].concat(), b"x");
    assert!(ended.err.contains("recording s; best effort: it was made without a profile"), "{}", ended.err);
}

// A file of which every byte was written when it was made has a place on its device for each of its slots.
#[test]
fn a_run_on_a_file_that_was_filled_keeps_its_promise_from_the_start() {
    let place = Place::new();
    make(&place, 4, true);
    assert_eq!(unwritten(&place), 0);
    let wanted = said(&place, "20 MiB/s of payload, 20");
    let ended = place.record(&STDIN, b"one\n");
    assert!(ended.err.contains(&wanted), "{wanted}: {}", ended.err);
    assert!(!ended.err.contains("written once"), "{}", ended.err);
}

// What was admitted rests on what was measured: no client of whatever kind makes the ring larger than that.
#[test]
fn a_ring_with_a_promise_is_not_made_larger_by_anybody() {
    let place = Place::new();
    made(&place);
    let recorder = place.start(&STDIN);
    let bytes = std::fs::metadata(&place.ring).unwrap().len();
    std::fs::File::options().write(true).open(&place.ring).unwrap().set_len(bytes + (80 << 20)).unwrap();
    let larger = Order::Grow(ByteSize(bytes + (80 << 20)));
    let Outcome::Refused(Refusal::Geometry(why)) = recorder.connect().order(larger).unwrap() else {
        panic!("it was done")
    };
    assert!(why.contains("rests on what was measured"), "{why}");
    assert!(recorder.end().status.success());
}

#[test]
fn what_cannot_be_promised_is_refused_with_what_would_do() {
    let place = Place::new();
    made(&place);
    let refused = |more: &[&str]| place.refused(&[&STDIN[..], more].concat());
    let (code, error) = refused(&["--rate", "60MiB/s"]);
    assert_eq!(code, 1, "{error}");
    assert!(error.contains("not admitted: 60") && error.contains("on the medium is too fast"), "{error}");
    assert!(error.contains("declare 3") && error.contains("on the medium or less"), "{error}");
    let (code, error) = refused(&["--memory", "40MiB"]);
    assert_eq!(code, 1, "{error}");
    assert!(error.contains("slot buffers") && error.contains("but there is memory for 3"), "{error}");
    let (_, least) = error.split_once("give it --memory ").unwrap();
    let least = least.split(' ').next().unwrap();
    assert!(place.record(&[&STDIN[..], &["--memory", least]].concat(), b"x").status.success());
    let plain = Place::new();
    assert!(plain.record(&[&["--size", "16MiB"], &STDIN[..]].concat(), b"x").status.success());
    let (code, error) = plain.refused(&[&STDIN[..], &["--rate", "1MiB/s"]].concat());
    assert_eq!(code, 1);
    assert!(error.contains("holdfast format --profile"), "{error}");
}
