//! Tests of promise 1 at the start: the ring's declared load is checked against the available memory and reported; a
//! load that cannot be guaranteed is refused, with the admissible alternatives.

use crate::process::common::{TestFolder, reader};
use crate::process::device::Freezing;
use holdfast_base::{ByteSize, Rate, RingId, Timestamp};
use holdfast_format::{ElementLoad, Geometry, Key, Measured, Region, Terms};
use holdfast_media::{Footing, PlainDisk, Prefill, create_file};
use holdfast_ring::{NewRing, Order, Outcome, Refusal, create};
use std::io::Write as _;
use std::time::Duration;

const STDIN: [&str; 4] = ["--source", "stdin", "--name", "s"];

/// A ring on a device that was measured to take 40 MiB/s, made for 20.
fn made(place: &TestFolder) {
    made_to_gather(place, 4);
}

/// The same, writing so many slots in one go.
pub(crate) fn made_to_gather(place: &TestFolder, gather: u16) {
    make(place, gather, SLOT, bytes_of(LEAST), false);
}

/// Bytes of the least slots of a guarantee, and how many of them it takes at least.
const SLOT: u64 = 8 << 20;
const LEAST: u64 = 40;

fn bytes_of(slots: u64) -> u64 {
    Geometry::lane_for(SLOT, slots)
}

fn make(place: &TestFolder, gather: u16, slot: u64, bytes: u64, prefilled: bool) {
    make_in(place, gather, Geometry::for_lane(bytes, slot, Vec::new()).unwrap(), prefilled);
}

fn make_in(place: &TestFolder, gather: u16, geometry: Geometry, prefilled: bool) {
    let device = create_file(&place.ring, geometry.lane_bytes, Prefill::No).unwrap();
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
        cells: 20_000_000,
    };
    let terms = Terms {
        measured,
        rate: Rate(20 << 20),
        elements: 1000,
        burst: ByteSize(0),
        gather,
        quantum: 1 << 20,
        memory: ByteSize::mib(64),
        each: ElementLoad::NONE,
    };
    let new = NewRing {
        prefilled,
        terms: Some(terms),
        ..NewRing::plain(RingId([7; 16]), Key([9; 32]), "r", geometry)
    };
    create(&mut PlainDisk::new(device, 1), new, Timestamp(1)).unwrap();
}

/// Slots to which nothing was ever written.
fn unwritten(place: &TestFolder) -> u32 {
    reader(&place.ring).status().unwrap().ring.slots.unwritten
}

/// How a run begins to say what it was admitted for, on a ring that is as it is now.
fn said(place: &TestFolder, promise: &str) -> String {
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
    let place = TestFolder::new();
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
    let plain = TestFolder::new();
    let ended = plain.record(&[&["--size", "16MiB"], &STDIN[..]].concat(), b"x");
    assert!(ended.err.contains("recording s; best effort: it was made without a profile"), "{}", ended.err);
}

// A file of which every byte was written when it was made has a place on its device for each of its slots.
#[test]
fn a_run_on_a_file_that_was_filled_keeps_its_promise_from_the_start() {
    let place = TestFolder::new();
    make(&place, 4, SLOT, bytes_of(LEAST), true);
    assert_eq!(unwritten(&place), 0);
    let wanted = said(&place, "20 MiB/s of payload, 20");
    let ended = place.record(&STDIN, b"one\n");
    assert!(ended.err.contains(&wanted), "{wanted}: {}", ended.err);
    assert!(!ended.err.contains("written once"), "{}", ended.err);
}

// What was admitted rests on what was measured: no client of whatever kind makes the ring larger than that.
#[test]
fn a_ring_with_a_promise_is_not_made_larger_by_anybody() {
    let place = TestFolder::new();
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

/// The word that follows.
fn after(error: &str, what: &str) -> String {
    let (_, rest) = error.split_once(what).unwrap_or_else(|| panic!("no {what}in {error}"));
    rest.split([' ', ',', '\n']).next().unwrap_or_default().to_owned()
}

/// The size that a refusal offers behind `what`.
fn offered(error: &str, what: &str) -> ByteSize {
    let (_, offered) = error.split_once(what).unwrap_or_else(|| panic!("no {what}in {error}"));
    offered.split(" would").next().unwrap().trim().parse().unwrap()
}

// What has to be named while the lane is busy takes slots: a refusal says how large a ring has them.
#[test]
fn a_ring_with_too_few_slots_for_a_burst_is_refused_with_the_size_that_would_do() {
    let place = TestFolder::new();
    made(&place);
    let options = [&STDIN[..], &["--rate", "20MiB/s", "--burst", "120MiB"]].concat();
    let (code, error) = place.refused(&options);
    assert_eq!(code, 1, "{error}");
    assert!(error.contains("not admitted: 40 slots are too few"), "{error}");
    let offered = offered(&error, "a ring of ");
    let slots = (LEAST..99).find(|slots| ByteSize(bytes_of(*slots)).shown_up() == offered).unwrap();
    let with = |slots| {
        let place = TestFolder::new();
        make(&place, 4, SLOT, bytes_of(slots), false);
        place
    };
    assert_eq!(with(slots - 1).refused(&options).0, 1, "{error}");
    assert!(with(slots).record(&options, b"x").status.success(), "{error}");
    // So would a smaller burst, as it is offered; a larger one would not.
    let burst = |burst: &str| [&STDIN[..], &["--rate", "20MiB/s", "--burst", burst]].concat().join(" ");
    let fits = after(&error, "--burst ").trim().to_owned();
    let bytes: ByteSize = fits.parse().unwrap();
    assert!(bytes.0 > 0 && bytes < ByteSize::mib(120), "{error}");
    let options = burst(&fits);
    assert!(place.record(&options.split(' ').collect::<Vec<_>>(), b"x").status.success(), "{error}");
    let options = burst(&(bytes.0 + bytes.0 / 8).to_string());
    assert_eq!(place.refused(&options.split(' ').collect::<Vec<_>>()).0, 1, "{error}");
}

// What is left out of a lane does not count: no larger ring by itself would do.
#[test]
fn in_a_region_with_too_few_slots_the_size_that_would_do_is_the_regions() {
    let options = [&STDIN[..], &["--rate", "20MiB/s", "--burst", "120MiB"]].concat();
    let with = |slots| {
        let place = TestFolder::new();
        let region = bytes_of(slots);
        let skipped = Region { offset: region, bytes: region };
        make_in(&place, 4, Geometry::for_lane(2 * region, SLOT, vec![skipped]).unwrap(), false);
        place
    };
    let (code, error) = with(LEAST).refused(&options);
    assert_eq!(code, 1, "{error}");
    assert!(error.contains("not admitted: 40 slots are too few"), "{error}");
    let offered = offered(&error, "a ring with a region of ");
    let slots = (LEAST..99).find(|slots| ByteSize(bytes_of(*slots)).shown_up() == offered).unwrap();
    assert_eq!(with(slots - 1).refused(&options).0, 1, "{error}");
    assert!(with(slots).record(&options, b"x").status.success(), "{error}");
}

// Larger slots cost less time to go to: where there would be enough of them they are offered.
#[test]
fn a_rate_that_larger_slots_would_take_is_refused_with_their_size() {
    let options = [&STDIN[..], &["--rate", "38MiB/s"]].concat();
    let with = |slot| {
        let place = TestFolder::new();
        make(&place, 4, slot, bytes_of(LEAST * 3), false);
        place
    };
    let (code, error) = with(SLOT).refused(&options);
    assert_eq!(code, 1, "{error}");
    assert!(error.ends_with(", or a ring with slots of 16 MiB\n"), "{error}");
    assert!(with(2 * SLOT).record(&options, b"x").status.success(), "{error}");
}

#[test]
fn what_cannot_be_promised_is_refused_with_what_would_do() {
    let place = TestFolder::new();
    made(&place);
    let refused = |more: &[&str]| place.refused(&[&STDIN[..], more].concat());
    let (code, error) = refused(&["--rate", "60MiB/s"]);
    assert_eq!(code, 1, "{error}");
    assert!(error.contains("not admitted: 60") && error.contains("on the medium is too fast"), "{error}");
    // What is offered is what would be typed, of payload, and would do; more would not.
    let offered: Rate = after(&error, "--rate ").parse().unwrap();
    assert!((35 << 20..39 << 20).contains(&offered.0), "{error}");
    let rate = |rate: Rate| rate.0.to_string();
    assert!(
        place.record(&[&STDIN[..], &["--rate", &after(&error, "--rate ")]].concat(), b"x").status.success()
    );
    assert_eq!(refused(&["--rate", &rate(Rate(offered.0 + (1 << 20)))]).0, 1);
    // Of two streams either may bring less.
    let other = ["--source", "file:/dev/null", "--name", "t", "--rate", "25MiB/s"];
    let (code, error) = refused(&[&["--rate", "20MiB/s"], &other[..]].concat());
    assert!(code == 1 && error.contains(" for s, or --rate ") && error.ends_with(" for t\n"), "{error}");
    let less = after(&error, "--rate ");
    let both = [&STDIN[..], &["--rate", &less], &other].concat();
    assert!(place.record(&both, b"x").status.success(), "{error}");
    // So many elements take more room than there is.
    let (code, error) = refused(&["--rate", "30MiB/s", "--elements", "900000"]);
    let fewer = after(&error, "--elements ");
    assert_eq!(code, 1, "{error}");
    let options =
        |elements: &str| [&STDIN[..], &["--rate", "30MiB/s", "--elements", elements]].concat().join(" ");
    let options = options(&fewer);
    let options: Vec<&str> = options.split(' ').collect();
    assert!(place.record(&options, b"x").status.success(), "{error}");
    let (code, error) = refused(&["--memory", "40MiB"]);
    assert_eq!(code, 1, "{error}");
    assert!(error.contains("slot buffers") && error.contains("but there is memory for 3"), "{error}");
    let least = after(&error, "use --memory ");
    assert!(place.record(&[&STDIN[..], &["--memory", &least]].concat(), b"x").status.success());
    // Less fits what there is of memory, too: each that is offered, as it stands there.
    let asked = ["--memory", "72MiB", "--rate", "20MiB/s", "--burst", "64MiB"];
    let (code, error) = refused(&asked);
    assert!(code == 1 && error.contains("use --memory ") && error.contains("declare less"), "{error}");
    let mut offered = 0;
    for (option, at) in [("--rate", 3), ("--burst", 5)] {
        let Some((_, value)) = error.split_once(&format!("{option} ")) else { continue };
        let mut less = asked.map(str::to_owned);
        less[at] = value.split([' ', ',', '\n']).next().unwrap().to_owned();
        let less: Vec<&str> = STDIN.iter().copied().chain(less.iter().map(String::as_str)).collect();
        assert!(place.record(&less, b"x").status.success(), "{option} of {error}");
        offered += 1;
    }
    assert!(offered > 0 && error.contains("--burst "), "{error}");
    let plain = TestFolder::new();
    assert!(plain.record(&[&["--size", "16MiB"], &STDIN[..]].concat(), b"x").status.success());
    let (code, error) = plain.refused(&[&STDIN[..], &["--rate", "1MiB/s"]].concat());
    assert_eq!(code, 1);
    assert!(error.contains("holdfast format --profile"), "{error}");
}

/// Elements of 20 bytes, of which the last may be shorter, at a rate, with these attributes.
fn small(mib: u64, attributes: &[String]) -> Vec<String> {
    let elements = (mib << 20) / 20;
    let mut options: Vec<String> = STDIN.map(str::to_owned).to_vec();
    options.push("--frame=blocks:20".to_owned());
    options.push(format!("--rate={mib}MiB/s"));
    options.push(format!("--elements={elements}"));
    options.extend(attributes.iter().map(|attribute| format!("--attr={attribute}")));
    options
}

// What attributes take on the medium, and of the packer's time, is part of what is promised.
#[test]
fn attributes_are_weighed_and_those_that_nobody_asked_for_give_way() {
    let numbers = |count| (0..count).map(|n| format!("n{n}:uint=at:{n}:u8")).collect::<Vec<_>>();
    let refused = |place: &TestFolder, options: &[String]| {
        place.refused(&options.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let record = |place: &TestFolder, options: &[String]| {
        let ended = place.record(&options.iter().map(String::as_str).collect::<Vec<_>>(), &[7; 2000]);
        assert!(ended.status.success(), "{}", ended.err);
        ended.err
    };
    let place = TestFolder::new();
    made(&place);
    // 60 bytes of a row and 36 of cells on 20, and what filters take.
    assert!(record(&place, &small(4, &numbers(4))).contains(", 2"), "on the medium");
    assert_eq!(reader(&place.ring).streams().unwrap()[0].schema, 4);
    // More than the lane takes; without attributes it does.
    let texts = ["t:binary=at:0:bytes20".to_owned(), "u:binary=at:0:bytes16".to_owned()];
    let (code, error) = refused(&place, &small(6, &[numbers(4), texts.to_vec()].concat()));
    assert_eq!(code, 1, "{error}");
    assert!(error.contains("on the medium is too fast") && error.contains("--attr none"), "{error}");
    let error = record(&place, &small(6, &["none".to_owned()]));
    assert!(!error.contains("get no attributes"), "{error}");
    // What the stream has is read again, and left out where it cannot be promised.
    let error = record(&place, &small(4, &[]));
    assert!(!error.contains("get no attributes"), "{error}");
    let error = record(&place, &small(7, &[]));
    assert!(error.contains("sources without --attr get no attributes"), "{error}");
    // More cells than the packer makes.
    let (code, error) = refused(&place, &small(3, &numbers(19)));
    assert_eq!(code, 1, "{error}");
    assert!(error.contains("on the medium is too fast"), "{error}");
    let plain = TestFolder::new();
    made(&plain);
    let many: Vec<String> = (0..64).map(|n| format!("m{n}:uint=at:0:u8")).collect();
    let mut options = small(4, &many);
    options[5] = "--rate=400KiB/s".to_owned();
    let (code, error) = refused(&plain, &options);
    assert_eq!(code, 1, "{error}");
    assert!(error.contains("cells of their attributes are too many"), "{error}");
}

fn words(options: &[String]) -> Vec<&str> {
    options.iter().map(String::as_str).collect()
}

// Of elements that are alike three times as many are promised, and of no others.
#[test]
fn elements_of_one_size_are_counted_as_what_they_take() {
    let place = TestFolder::new();
    made(&place);
    let numbers = ["n:uint=at:0:u64le", "m:uint=at:8:u32le"].map(str::to_owned);
    let with = |frame: &str, more: &[&str]| {
        let mut options = small(9, &numbers);
        options[4] = format!("--frame={frame}");
        options.extend(more.iter().map(|&more| more.to_owned()));
        options
    };
    let ended = place.record(&words(&with("fixed:20", &[])), &[7; 2000]);
    assert!(ended.status.success() && ended.err.contains("9 MiB/s of payload"), "{}", ended.err);
    // Without a number they are as many as the rate has room for: more than the packer manages.
    let mut many = with("fixed:20", &[]);
    many[5] = "--rate=19MiB/s".to_owned();
    many.remove(6);
    let (code, error) = place.refused(&words(&many));
    assert!(code == 1 && error.contains("996148 elements a second"), "{error}");
    for (frame, more) in [
        ("blocks:20", &[][..]),
        ("lines", &[]),
        ("fixed:20", &["--counter=at:0:u32le"]),
        ("fixed:20", &["--attr=event_time:time=at:8:u64le"]),
        ("fixed:20", &["--source=file:/dev/null", "--name=t", "--rate=1KiB/s"]),
    ] {
        let (code, error) = place.refused(&words(&with(frame, more)));
        assert!(code == 1 && error.contains("on the medium is too fast"), "{frame} {more:?}: {error}");
    }
}

// Who reads the log of a run knows that something was nearly lost, before something is.
#[test]
fn a_device_that_stands_still_for_too_long_is_told_of_in_the_log() {
    let mut place = TestFolder::new();
    made(&place);
    let Some(device) = Freezing::with(place.folder.path(), &place.ring) else { return };
    place.ring = device.path();
    let options = [&STDIN[..], &["--frame", "fixed:65536", "--on-overload", "drop-newest"]].concat();
    let mut recorder = place.start(&options);
    let (mut stdin, much) = (recorder.stdin().unwrap(), vec![1; 1 << 20]);
    stdin.write_all(&much).unwrap();
    recorder.await_packed(1);
    device.freeze();
    let mut connection = recorder.connect();
    let mut margin = || connection.status().unwrap().recorder.unwrap().margin;
    while margin().is_none_or(|margin| margin.least >= margin.kept / 2) {
        stdin.write_all(&much).unwrap();
    }
    device.thaw();
    drop(stdin);
    let ended = recorder.end();
    assert!(ended.err.contains("capture could have continued for only"), "{}", ended.err);
    assert!(ended.err.contains("measure the device again"), "{}", ended.err);
}
