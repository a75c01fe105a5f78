//! Tests of promises 4 and 6 against the real program: SIGKILL at random moments, on a file and on a loop device.
//! (SIGKILL tears no write on the medium; the simulator does that.)

use crate::process::common::{Contents, Recorder, TestFolder, hold, reader};
use crate::process::device::Loop;
use holdfast_base::{Ordinal, Timestamp};
use holdfast_format::Cause;
use holdfast_media::Seed;
use holdfast_reader::Selection;
use holdfast_ring::{Outcome, Range};
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

const KILLS: u64 = 12;

/// A number that names itself and its run in every line.
fn line(run: u64, number: u64) -> String {
    format!("run {run} line {number} {}\n", "~".repeat((number % 300) as usize))
}

/// One thing that was watched held: elements that must be there for ever.
type Kept = Vec<(u64, Vec<u8>)>;

/// Feeds until a moment that `seed` chooses, and kills. Returns how many elements had been packed longer than the bound
/// before the kill, and what was held.
fn run_and_kill(mut recorder: Recorder, run: u64, seed: &mut Seed) -> (u64, Option<Kept>) {
    let mut stdin = recorder.stdin().unwrap();
    let mut connection = recorder.connect();
    let looks = 3 + seed.below(60);
    let hold_at = seed.below(looks);
    // Half of the runs are so slow that of what is older than the bound the journal alone has much.
    let slow = seed.below(2) == 0;
    let lines = if slow { 8 } else { 1500 };
    let mut watched: Vec<(Timestamp, u64)> = Vec::new();
    let (mut bound, mut kept) = (Duration::ZERO, None);
    let mut number = 0;
    for look in 0.. {
        // What the ring loses by going round between two looks must stay small against what it has.
        let mut text = String::new();
        for _ in 0..seed.below(lines) {
            text.push_str(&line(run, number));
            number += 1;
        }
        stdin.write_all(text.as_bytes()).unwrap();
        let status = connection.status().unwrap();
        let recorder_status = status.recorder.unwrap();
        bound = bound.max(status.ring.durable_after);
        watched.push((recorder_status.now, recorder_status.sources[0].packed_elements));
        if look == hold_at && recorder_status.sources[0].packed_elements > 0 {
            let (from, to) = (recorder_status.now - Duration::from_millis(20), recorder_status.now);
            if let Outcome::Held { .. } = hold(&mut connection, from, to) {
                let range = Range { from, to, by_event: false, ordinals: None };
                let selection = Selection { streams: Vec::new(), range };
                let contents = Contents::select(&mut recorder.reader(), &selection);
                kept =
                    Some(contents.elements.into_iter().map(|(_, ordinal, data)| (ordinal, data)).collect());
            }
        }
        let watched_for = recorder_status.now.since(watched[0].0);
        if look + 1 >= looks && (!slow || watched_for >= bound * 2) {
            break;
        }
    }
    recorder.signal(Signal::KILL);
    let ended = recorder.end();
    assert!(!ended.status.success());
    drop(stdin);
    let last = watched.last().unwrap().0;
    let durable = watched.iter().filter(|(at, _)| *at + bound <= last).map(|(_, packed)| *packed).max();
    (durable.unwrap_or(0), kept)
}

fn kill_again_and_again(place: &TestFolder, ring: &Path, seed: u64) {
    let mut seed = Seed::new(seed);
    let options = ["--source", "stdin", "--name", "s", "--frame", "lines", "--flush", "20ms"];
    let mut held: Kept = Vec::new();
    let mut highest = 0;
    for run in 0..KILLS {
        let recorder = place.start(&options);
        let (durable, kept) = run_and_kill(recorder, run, &mut seed);
        let holds = usize::from(kept.is_some());
        held.extend(kept.unwrap_or_default());
        let contents = Contents::read(&mut reader(ring));
        assert!(contents.damaged.is_empty(), "run {run}: {:?}", contents.damaged);
        let prefix = format!("run {run} line ");
        let own: Vec<&(_, u64, Vec<u8>)> =
            contents.elements.iter().filter(|(_, _, data)| data.starts_with(prefix.as_bytes())).collect();
        // All is there that was older than the bound, as far as it has not expired: one hole at most, behind what the
        // run's hold has kept of what expired. (Of what was younger a later slot may be there without an earlier one.)
        let numbers: Vec<u64> =
            own.iter().map(|(_, _, data)| number_of(data)).filter(|n| *n < durable).collect();
        let missing = numbers.windows(2).filter(|w| w[1] != w[0] + 1).count();
        assert!(missing <= holds, "run {run}: {missing} holes with {holds} holds");
        let last = numbers.last().map_or(0, |last| last + 1);
        let found = contents.brief();
        assert!(last == durable, "run {run}: {last} lines are there, {durable} were durable; {found}");
        for (_, ordinal, data) in &contents.elements {
            let text = String::from_utf8(data.clone()).unwrap();
            let run = text.split(' ').nth(1).unwrap().parse().unwrap();
            assert_eq!(format!("{text}\n"), line(run, number_of(data)), "ordinal {ordinal}");
        }
        let all: BTreeMap<u64, &Vec<u8>> =
            contents.elements.iter().map(|(_, ordinal, data)| (*ordinal, data)).collect();
        for (ordinal, data) in &held {
            assert_eq!(all.get(ordinal), Some(&data), "run {run}: held element {ordinal}");
        }
        // No ordinal is given twice, and each crash is told by a gap of unknown size.
        let mut ordinals: Vec<u64> = contents.elements.iter().map(|(_, ordinal, _)| *ordinal).collect();
        assert!(ordinals.windows(2).all(|w| w[0] < w[1]));
        highest = highest.max(ordinals.pop().unwrap_or(0));
        assert!(
            contents
                .gaps
                .iter()
                .all(|(_, _, _, elements, cause)| *cause == Cause::Crash && elements.is_none())
        );
    }
    let ended = place.start(&options).end();
    assert!(ended.status.success(), "{}", ended.err);
    let contents = Contents::read(&mut reader(ring));
    let stream = contents.elements.last().unwrap().0;
    let (_, first, skipped, ..) = *contents.gaps.iter().rfind(|(of, ..)| *of == stream).unwrap();
    assert!(
        first > highest && Ordinal(first + skipped).0.is_multiple_of(1 << 32),
        "{first} {skipped} {highest}"
    );
}

fn number_of(data: &[u8]) -> u64 {
    std::str::from_utf8(data).unwrap().split(' ').nth(3).unwrap().parse().unwrap()
}

#[test]
fn killed_at_random_moments_on_a_file() {
    let place = TestFolder::new();
    let made =
        place.record(&["--size", "48MiB", "--slot", "256KiB", "--source", "stdin", "--name", "first"], b"");
    assert!(made.status.success());
    kill_again_and_again(&place, &place.ring.clone(), 0x5eed);
}

#[test]
fn killed_at_random_moments_on_a_loop_device() {
    let mut place = TestFolder::new();
    let made =
        place.record(&["--size", "48MiB", "--slot", "256KiB", "--source", "stdin", "--name", "first"], b"");
    assert!(made.status.success());
    let Some(device) = Loop::direct(&place.ring) else { return };
    place.ring = device.path();
    kill_again_and_again(&place, &device.path(), 0x100b);
}
