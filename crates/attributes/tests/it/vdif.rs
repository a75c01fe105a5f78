//! Tests with frames of real telescopes (`$HOLDFAST_TEST_DATA`) against values from other readers of the format.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::common;

use common::{read, real, schema};
use holdfast_attributes::Element;

#[test]
fn real_frames_are_read() {
    let Some(path) = real("vlbi/sample.vdif") else { return };
    let file = std::fs::read(path).unwrap();
    let schema = schema(&["vdif"]);
    let mut threads = Vec::new();
    for frame in file.chunks(5032) {
        let (values, outcome) = read(&schema, &Element::of(frame));
        assert!(!outcome.undecodable);
        // 2014-06-16T05:56:07Z, and 1600 frames a second by the header's rate.
        let since = outcome.event_time.unwrap().0 - 1_402_898_167_000_000_000;
        assert_eq!(since, values[3].parse::<i64>().unwrap() * 625_000);
        let [_, second, epoch, frame, thread, station, bits, channels, legacy, invalid] = &values[..] else {
            panic!()
        };
        assert_eq!([second, epoch, station, bits, channels], ["14363767", "28", "65532", "2", "1"]);
        assert_eq!([legacy, invalid], ["false", "false"]);
        threads.push((frame.parse::<u32>().unwrap(), thread.parse::<u32>().unwrap()));
    }
    // Eight threads of two frames each.
    threads.sort_unstable();
    assert_eq!(
        threads,
        (0..2).flat_map(|frame| (0..8).map(move |thread| (frame, thread))).collect::<Vec<_>>()
    );
}

/// A header that was damaged on the way is told as it is: a jump in time among frames in order.
#[test]
fn a_damaged_second_is_seen() {
    let Some(path) = real("vlbi/sample_drao_corrupted.vdif") else { return };
    let file = std::fs::read(path).unwrap();
    let schema = schema(&["vdif"]);
    let time = |frame| read(&schema, &Element::of(frame)).1.event_time.unwrap().0 / 1_000_000_000;
    let times: Vec<i64> = file.chunks(5032).map(time).collect();
    assert_eq!(times, [vec![1_472_615_201; 9], vec![1_472_615_207]].concat());
    let (_, outcome) = read(&schema, &Element::of(&file[..5000]));
    assert!(outcome.undecodable && outcome.event_time.is_none());
}
