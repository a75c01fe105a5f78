//! Tests of how near the guarantee and the schedule come to what a drive can do. Virtual time: the figures
//! are the same everywhere.

use holdfast_base::{ByteSize, Rate};
use holdfast_format::{Coming, ElementLoad, on_medium};
use holdfast_media::drive::DriveModel;
use holdfast_sim::{Habit, Places, Scene, Shares, Stream, Tightness, Verdict, Wild, play};
use std::time::Duration;

/// The drive of the paper in its outer 80 %, at 60 MiB/s, in slots of 128 MiB.
fn paper(gather: u16, readers: u64) -> Scene {
    let drive = DriveModel::paper().squeezed(ByteSize::gib(64).0);
    Scene::steady(drive, 0.8, ByteSize::mib(128), gather, Rate(60 << 20)).read_by(readers, Habit::Sequential)
}

/// After a time, in which nothing may be lost.
fn shares(scene: &Scene) -> Shares {
    let verdict = play(scene);
    assert_eq!(verdict.wrong(scene), None);
    Shares::of(&verdict, scene.lasts)
}

// Promise 1: what writing leaves is the readers'.
#[test]
fn readers_get_nine_tenths_of_what_writing_leaves() {
    for (gather, readers, least) in [(2, 1, 0.94), (4, 1, 0.96), (4, 4, 0.96), (8, 4, 0.97)] {
        let shares = shares(&paper(gather, readers));
        assert!(shares.readers >= least, "{gather} {readers} {shares:?}");
        assert!(shares.total >= 0.99, "{gather} {readers} {shares:?}");
    }
    let alone = shares(&paper(1, 1));
    assert!(
        alone.readers >= 0.90 && alone.readers < 0.95,
        "gathering is what makes the difference: {alone:?}"
    );
}

// Promise 1: and a reader who has one piece in hand before he asks for the next has as much of it.
#[test]
fn a_reader_who_asks_again_in_a_moment_keeps_the_head() {
    let read = |pause: f64| {
        let mut scene = paper(4, 0).read_by(1, Habit::Stepwise(pause));
        scene.shape.quantum = 1 << 20;
        shares(&scene).read.0 as f64
    };
    let (at_once, in_a_moment, later) = (read(0.0), read(0.003), read(0.1));
    assert!(in_a_moment > 0.98 * at_once, "{in_a_moment} of {at_once}");
    assert!(later < 0.2 * at_once, "nobody is waited for that long: {later} of {at_once}");
}

// Near what the drive can do something is always full. Readers do not wait until nothing is.
#[test]
fn readers_have_their_turn_every_few_slots() {
    let one = play(&paper(4, 1)).longest_read.as_secs_f64();
    assert!(one < 2.0 * 4.0 * 128.0 / 60.0, "a go of four slots, and what is in the way: {one} s");
    let four = play(&paper(4, 4)).longest_read.as_secs_f64();
    assert!(four < 40.0, "{four} s");
}

// Promise 1: no reader starves, not even beside streams that bring three times what they declared for an hour.
#[test]
fn readers_wait_no_longer_than_it_takes_to_make_up_for_what_was_beyond_the_rates() {
    let wild = Wild { times: 3.0, lasts: 9000.0, every: 9000.0, first: 0.0, lump: 0.0 };
    let drive = DriveModel::paper().squeezed(ByteSize::gib(64).0);
    for (streams, most) in [(1, 60), (2, 60)] {
        let rate = Rate(50 << 20);
        let scene = Scene::steady(drive.clone(), 0.8, ByteSize::mib(128), 4, rate);
        let mut scene = scene.read_by(4, Habit::Sequential);
        let each = rate.0 as f64 / f64::from(streams);
        scene.streams = vec![Stream { rate: each, burst: None, lull: None }; streams as usize];
        scene.wild = vec![(0, wild)];
        let verdict = play(&scene);
        assert_eq!(verdict.wrong(&scene), None, "{streams}");
        assert!(verdict.starved < Duration::from_secs(most), "{streams}: {:?}", verdict.starved);
        assert!(verdict.beyond > 0.0 && verdict.read > 1 << 30, "{verdict:?}");
    }
}

#[test]
fn nothing_declines_after_ten_laps() {
    let mut scene = paper(4, 4);
    // Of all bytes, so that what is under way at a lap's end does not count.
    scene.drive = DriveModel::paper();
    let lap = scene.slots() as f64 * scene.shape.slot.0 as f64 / scene.load.rate.0 as f64;
    let mut after = |laps: f64| {
        scene.lasts = Duration::from_secs_f64(lap * laps);
        play(&scene)
    };
    let [one, ten, eleven] = [1.0, 10.0, 11.0].map(&mut after);
    let share = |from: &Verdict, to: &Verdict| {
        let spent = |of: fn(&Verdict) -> Duration| of(to).as_secs_f64() - of(from).as_secs_f64();
        spent(|verdict| verdict.reading) / (lap - spent(|verdict| verdict.streamed_writes))
    };
    let (first, last) = (share(&Verdict::default(), &one), share(&ten, &eleven));
    assert!((last - first).abs() < 0.005, "of what writing left, readers got {first} and then {last}");
    assert_eq!(eleven.wrong(&scene), None);
}

// A drive whose tracks overlap keeps a guarantee where slots are its zones, written in whatever order, and none where
// they are not: then zones have to be rewritten.
#[test]
fn slots_on_overlapping_tracks_have_to_be_zones() {
    let drive = DriveModel::shingled().squeezed(ByteSize::gib(64).0);
    let zone = 256 << 20;
    for places in [Places::All, Places::Scattered(9), Places::Ends, Places::Torn] {
        let scene = Scene::steady(drive.clone(), 0.8, ByteSize(zone), 4, Rate(1));
        let rate = scene.admitted();
        let mut scene = scene.at(rate).read_by(2, Habit::Torn);
        (scene.places, scene.base) = (places, zone);
        assert_eq!(play(&scene).wrong(&scene), None, "{places:?}");
        scene.base = 1 << 20;
        let lost = play(&scene).lost > 0.0;
        assert_eq!(lost, places != Places::All, "{places:?}: in order they stream all the same");
    }
}

// “20 bytes” of the figures: slots are the same whatever is in them. What elements take of a slot besides themselves is
// known beforehand, and admission counts it; and a thousandth, which may stay empty.
#[test]
fn what_small_elements_take_of_the_medium_is_counted() {
    let slot = ByteSize::mib(128).0;
    let share = |bytes: f64| {
        bytes * 1e4
            / on_medium(slot, &[Coming { payload: bytes * 1e4, elements: 1e4, each: ElementLoad::NONE }])
    };
    assert!(share(60e6) > 0.998, "{}", share(60e6));
    assert!(share(1e6) > 0.998, "{}", share(1e6));
    assert!((share(20.0) - 0.25).abs() < 0.01, "a row is 60 bytes at its widest: {}", share(20.0));
}

// What is admitted is not much less than what a drive can do for whoever wants to break it.
#[test]
fn what_is_admitted_is_nearly_all_that_never_lost() {
    for (drive, slot) in [(DriveModel::paper(), 128), (DriveModel::rpm7200(), 256)] {
        for gather in [1, 4] {
            let drive = drive.squeezed(ByteSize::gib(64).0);
            let scene = Scene::steady(drive, 0.8, ByteSize::mib(slot), gather, Rate(1));
            let (s, w) = (scene.measured.reposition.as_secs_f64(), scene.measured.write.0 as f64);
            assert!(scene.shape.slot.0 as f64 >= 50.0 * s * w);
            let tight = Tightness::of(&scene.adversaries());
            assert!((0.95..1.0).contains(&tight.share()), "{gather} {tight:?}");
        }
    }
}
