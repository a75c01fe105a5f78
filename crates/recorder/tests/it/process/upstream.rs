//! Tests of losses upstream through the whole program (promise 2): they are on the ring, in `status` and in the
//! summary, beside the data received; and a recorder that restarts invents none.

use crate::process::common::{TestFolder, reader};
use holdfast_format::Cause;
use rustix::process::Signal;
use std::io::Write as _;

const FRAMES: [&str; 12] = [
    "--source",
    "stdin",
    "--name",
    "vlbi",
    "--frame",
    "fixed:64",
    "--counter",
    "vdif",
    "--flush",
    "20ms",
    "--memory",
    "64MiB",
];

/// Frames of a second.
const RATE: u32 = 50;

fn frames(numbers: impl Iterator<Item = u32>) -> Vec<u8> {
    let frame = |number: u32| {
        let words = [1000 + number / RATE, (28 << 24) | (number % RATE), 64 / 8, 0x4566];
        let mut frame = words.map(u32::to_le_bytes).concat();
        frame.resize(64, number as u8);
        frame
    };
    numbers.flat_map(frame).collect()
}

/// Some in the middle, the end of a second, more than a second, and one.
fn lost(number: u32) -> bool {
    matches!(number, 120..130 | 145..150 | 210..290 | 333)
}

#[test]
fn frames_that_never_came_are_told_beside_those_that_did() {
    let place = TestFolder::in_memory();
    let options = [&["--size", "16MiB", "--slot", "64KiB", "--json"], &FRAMES[..]].concat();
    let ended = place.record(&options, &frames((0..400).filter(|number| !lost(*number))));
    assert!(ended.status.success(), "{}", ended.err);
    for said in [
        "\"elements\":304,",
        "\"lost_elements\":0,",
        "\"gaps\":0,",
        "\"lost\":{\"upstream\":96},\"interrupted\":0",
    ] {
        assert!(ended.out.contains(said), "{said}: {}", ended.out);
    }
    let contents = place.contents();
    assert_eq!(
        contents.elements.iter().map(|(_, ordinal, _)| *ordinal).collect::<Vec<_>>(),
        (0..304).collect::<Vec<u64>>()
    );
    let missing = contents.gaps.iter().map(|(_, _, ordinals, elements, cause)| {
        assert_eq!((*ordinals, *cause), (0, Cause::Upstream));
        elements.unwrap()
    });
    assert_eq!(missing.sum::<u64>(), 96);
    let counters = reader(&place.ring).streams().unwrap()[0].counters;
    assert_eq!((counters.received, counters.lost, counters.gaps, counters.unknown_gaps), (304, 0, 0, 0));
    assert_eq!(counters.next_ordinal.0, 304);
}

#[test]
fn a_recorder_that_begins_anew_invents_no_loss() {
    let place = TestFolder::in_memory();
    let size = ["--size", "16MiB", "--slot", "64KiB"];
    let mut recorder = place.start(&[&size[..], &FRAMES].concat());
    let mut stdin = recorder.stdin().unwrap();
    stdin.write_all(&frames((0..200).filter(|number| !lost(*number)))).unwrap();
    recorder.await_packed(185);
    // It says so while it is at work, though nothing comes any more.
    let mut connection = recorder.connect();
    let told = loop {
        let source = connection.status().unwrap().recorder.unwrap().sources.remove(0);
        if let [dropped] = &source.dropped[..] {
            break (dropped.cause, dropped.elements, source.packed_elements, source.waiting);
        }
    };
    assert_eq!(told, (Cause::Upstream, 15, 185, 0));
    recorder.signal(Signal::KILL);
    recorder.end();
    // Much has been sent meanwhile.
    let ended = place.record(&FRAMES, &frames(100_000..100_120));
    assert!(ended.status.success(), "{}", ended.err);
    let contents = place.contents();
    let gaps: Vec<_> = contents.gaps.iter().filter(|gap| gap.4 != Cause::Upstream).collect();
    assert!(matches!(&gaps[..], [(_, _, _, None, Cause::Crash)]), "{}", contents.brief());
    let upstream = contents.gaps.iter().filter(|gap| gap.4 == Cause::Upstream);
    assert!(upstream.map(|gap| gap.3.unwrap()).sum::<u64>() <= 15, "{}", contents.brief());
    assert_eq!(contents.elements.len(), 185 + 120, "{}", contents.brief());
}
