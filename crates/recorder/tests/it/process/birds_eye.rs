//! Tests of the bird's-eye view that clients get: every place describes the medium (promise 5), again after a kill,
//! within its memory bound (promise 1), and nothing of purged data.

use crate::process::common::{Recorder, TestFolder};
use holdfast_base::{BLOCK, Ordinal};
use holdfast_format::{Glance, PartHeader, SectionKind, Summary};
use holdfast_protocol::RingLocation;
use holdfast_ring::{Order, Outcome, PurgeRequest, Range, SlotStatus};
use rustix::process::Signal;
use std::io::Write as _;
use std::path::Path;
use std::process::ChildStdin;
use std::time::{Duration, Instant};

const RING: [&str; 4] = ["--size", "32MiB", "--slot", "256KiB"];
const SOURCE: [&str; 12] = [
    "--source",
    "stdin",
    "--name",
    "log",
    "--frame",
    "lines",
    "--flush",
    "20ms",
    "--attr",
    "n:uint=json:n",
    "--attr",
    "name:text=json:name",
];

/// Known by its first bytes, as bounds have them: the last one first.
const SECRET: &str = "a secret of some sixteen bytes";

fn send(stdin: &mut ChildStdin, numbers: std::ops::Range<u64>) {
    let line = |number: u64| {
        let name = if number < 4000 { SECRET } else { "known to all" };
        let spread = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
        format!("{{\"n\":{spread},\"name\":\"{name}\",\"pad\":\"{}\"}}\n", "x".repeat(300))
    };
    let lines: String = numbers.map(line).collect();
    stdin.write_all(lines.as_bytes()).unwrap();
}

/// All bytes of the view, as a client sees them, and bytes of a place.
fn memory(recorder: &Recorder) -> (Vec<u8>, usize) {
    let connection = recorder.connect();
    let (area, place) = connection.view().unwrap();
    let mut bytes = vec![0; area.bytes()];
    assert!(area.copy(0, &mut bytes));
    (bytes, place)
}

/// Waits until all slots of data are told, but for so many at most; those.
fn await_told(recorder: &Recorder, left_out: usize) -> Vec<SlotStatus> {
    let started = Instant::now();
    loop {
        let mut connection = recorder.connect();
        let mut slots = connection.slots().unwrap();
        slots.retain(SlotStatus::has_data);
        let status = connection.status().unwrap();
        let view = status.recorder.unwrap().view.unwrap();
        if status.ring.scanned && view.slots as usize + left_out >= slots.len() {
            return slots;
        }
        assert!(started.elapsed() < Duration::from_mins(1), "{view:?} of {}", slots.len());
    }
}

/// Everything that the view tells is what the medium has: heads of all slots, and of so many filters in all.
fn compare(ring: &Path, recorder: &Recorder, left_out: usize) -> (usize, usize, usize) {
    let slots = await_told(recorder, left_out);
    let (memory, place) = memory(recorder);
    let superblock = RingLocation::read(ring).unwrap().superblock;
    let lane = std::fs::read(ring).unwrap();
    let (mut whole, mut bounds, mut left) = (0, 0, 0);
    for slot in &slots {
        let at = superblock.geometry.slot_offset(slot.slot) as usize;
        let image = &lane[at..at + superblock.geometry.slot_bytes as usize];
        let own = &memory[slot.slot.0 as usize * place..][..place];
        let Some(bytes) = Glance::bytes(own.first_chunk().unwrap(), slot.sequence, place) else {
            left += 1;
            continue;
        };
        let glance = Glance::new(own[..bytes].to_vec(), place).unwrap();
        let head = glance.head();
        assert!(head == image[..head.len()]);
        let header = PartHeader::decode(&head, &superblock.key, superblock.ring).unwrap();
        let summary = Summary::decode(&header, &head[BLOCK..]).unwrap();
        for section in summary.sections.iter().filter(|section| section.kind == SectionKind::Filter) {
            let copy = |offset: usize, into: &mut [u8]| {
                into.copy_from_slice(&own[offset..offset + into.len()]);
                true
            };
            let Some((found, bytes)) = glance.section(section, copy) else { continue };
            assert!(bytes == image[section.range()][..bytes.len()]);
            *(if found == *section { &mut whole } else { &mut bounds }) += 1;
        }
    }
    assert!(left <= left_out, "{left} slots are not told");
    (slots.len(), whole, bounds)
}

#[test]
fn every_slot_is_told_while_it_is_recorded_and_again_after_a_kill() {
    let place = TestFolder::in_memory();
    // Whole filters, bounds alone, and summaries alone; of what was read, of what is written, and of both.
    for (number, (options, columns)) in
        [(&[][..], (2, 0)), (&["--birds-eye", "128KiB"], (1, 1)), (&["--birds-eye", "96KiB"], (0, 0))]
            .into_iter()
            .enumerate()
    {
        let all: Vec<&str> = RING.into_iter().chain(SOURCE).chain(options.iter().copied()).collect();
        let mut recorder = place.start(&all);
        // A summary that tells of blocks, too, may be larger than its place where that is the smallest.
        let left_out = if number == 2 { 4 } else { 0 };
        let before = compare(&place.ring, &recorder, left_out);
        let mut stdin = recorder.stdin().unwrap();
        send(&mut stdin, 0..8000);
        recorder.await_packed(8000);
        let (slots, whole, bounds) = compare(&place.ring, &recorder, left_out);
        assert!(slots >= 10 * (number + 1) && slots > before.0, "{slots}");
        if number == 0 {
            assert_eq!((whole, bounds), (columns.0 * slots, columns.1 * slots));
        }
        recorder.signal(Signal::KILL);
        drop(stdin);
        recorder.end();
        let recorder = place.start(&all);
        let (slots, whole, bounds) = compare(&place.ring, &recorder, left_out);
        // What the journal gave back has no columns.
        let made_again = number + 1;
        let with_columns = slots - made_again;
        assert!(whole <= columns.0 * slots && bounds <= columns.1 * slots, "{slots} {whole} {bounds}");
        assert!(
            whole >= columns.0 * with_columns && bounds >= columns.1 * with_columns,
            "{slots} {whole} {bounds}"
        );
        recorder.signal(Signal::KILL);
        recorder.end();
    }
}

#[test]
fn nothing_of_what_is_purged_stays_in_the_view() {
    let place = TestFolder::in_memory();
    let all: Vec<&str> = RING.into_iter().chain(SOURCE).collect();
    let mut recorder = place.start(&all);
    let mut stdin = recorder.stdin().unwrap();
    send(&mut stdin, 0..8000);
    recorder.await_packed(8000);
    await_told(&recorder, 0);
    let secret: Vec<u8> = SECRET.bytes().take(16).rev().collect();
    let told = || memory(&recorder).0.windows(16).filter(|bytes| *bytes == secret).count();
    assert!(told() >= 5, "{}", told());
    let range = Range { ordinals: Some((Ordinal(0), Ordinal(4000))), ..Range::ALL };
    let (reason, owner) = ("law".to_owned(), "court".to_owned());
    let order = Order::Purge(PurgeRequest { streams: Vec::new(), range, held: false, reason, owner });
    let outcome = recorder.connect().order(order).unwrap();
    assert!(matches!(outcome, Outcome::Purged { elements: 4000, .. }), "{outcome:?}");
    assert_eq!(told(), 0);
    let (slots, whole, _) = compare(&place.ring, &recorder, 0);
    assert!(slots >= 6 && whole >= 6, "{slots} {whole}");
}

#[test]
fn a_view_is_as_large_as_was_said_or_refused() {
    let place = TestFolder::in_memory();
    let with = |more: &[&'static str]| -> Vec<&str> {
        RING.into_iter().chain(SOURCE).chain(more.iter().copied()).collect()
    };
    let recorder = place.start(&with(&["--birds-eye", "0"]));
    assert!(recorder.connect().view().is_none());
    assert_eq!(recorder.connect().status().unwrap().recorder.unwrap().view, None);
    recorder.signal(Signal::INT);
    assert!(recorder.end().status.success());
    let recorder = place.start(&with(&["--birds-eye", "1KiB"]));
    assert!(recorder.connect().view().is_none());
    recorder.signal(Signal::INT);
    let ended = recorder.end();
    assert!(ended.err.contains("--birds-eye 1 KiB: no bird's-eye view"), "{}", ended.err);
    let (code, said) =
        place.refused(&with(&["--memory", "16MiB", "--birds-eye", "64MiB", "--slot", "256KiB"]));
    assert_eq!(code, 2, "{said}");
    let (code, said) = place.refused(&with(&["--memory", "5MiB", "--birds-eye", "64MiB"]));
    assert_eq!(code, 2, "{said}");
    assert!(
        said.contains("and a bird's-eye view of") && said.contains("(--birds-eye) take at least"),
        "{said}"
    );
}
