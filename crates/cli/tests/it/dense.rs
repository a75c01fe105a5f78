//! Holds of a condition that finds something in every slot of a full ring, more than may be held: the oldest is distilled to make
//! room for the others, and in the end just what was found is held, in as much space as it takes.
#![allow(missing_docs, clippy::unwrap_used)]

use crate::common;
use crate::common::evaluating;
use crate::common::filled;
use crate::common::recording;

use common::{ends, folder};
use evaluating::{Evaluator, left};
use filled::Filler;
use holdfast_format::SectionKind;
use holdfast_media::{Access, Device, RealDisk};
use holdfast_ring::{Blocking, CHECK_QUANTUM, Depth, check_slot, recover};
use recording::Recording;
use serde_json::Value;
use std::fs::OpenOptions;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

/// Every 100th line: of each slot some, and a hundredth of all.
const WHAT: &str = "--where ordinal_%_100_=_3 --distil --reason few --json";

fn is_wanted(text: &str) -> bool {
    let ordinal = text.split(' ').nth(1).and_then(|ordinal| ordinal.parse::<u64>().ok());
    ordinal.unwrap() % 100 == 3
}

/// A ring that has turned over, and what of it is wanted.
fn full(dir: &Path) -> Vec<String> {
    ends(dir, "format r.hf --size 16MiB --slot 128KiB", 0);
    lap(dir, 0);
    left(dir).into_iter().filter(|text| is_wanted(text)).collect()
}

fn lap(dir: &Path, from: u64) {
    let mut filler = Filler::open(&dir.join("r.hf")).goes_on_at(from);
    filler.lines(40_000);
    filler.close();
}

fn sum(said: &[Value], what: &str) -> u64 {
    said.iter().filter_map(|said| said[what].as_u64()).sum()
}

/// All that was wanted is held, in no more slots than four times its bytes take, and stays.
fn is_dense(dir: &Path, wanted: &[String]) {
    let kept = |kept: Vec<String>| kept.into_iter().filter(|text| is_wanted(text)).collect::<Vec<_>>();
    assert_eq!(kept(left(dir)), wanted);
    let slots = ends(dir, "holds r.hf --json", 0).lines()[0]["slots"].as_u64().unwrap();
    let bytes: usize = wanted.iter().map(String::len).sum();
    assert!((slots - 1) << 17 <= 4 * bytes as u64, "{slots} slots for {bytes} bytes");
    lap(dir, 40_000);
    let left = kept(left(dir));
    assert_eq!(left[..wanted.len()], *wanted);
    ends(dir, "check r.hf", 0);
}

#[test]
fn what_is_found_in_every_slot_is_distilled_to_its_share_of_the_ring() {
    let folder = folder();
    let dir = folder.path();
    let wanted = full(dir);
    let slots = ends(dir, "status r.hf --json", 0).json()["slots"]["total"].as_u64().unwrap();
    let done = ends(dir, &format!("hold r.hf {WHAT}"), 0);
    let said = done.lines();
    assert_eq!(said[0]["elements"], wanted.len());
    assert!(said[0]["slots"].as_u64() < Some(slots), "not all had room: {}", said[0]);
    assert!(done.err.contains("there is no room for all of hold 1"), "{}", done.err);
    assert_eq!((sum(&said, "missed"), done.err.contains("expired before they")), (0, false), "{}", done.err);
    // A copy that had room was distilled once more.
    assert!(sum(&said, "originals") >= sum(&said, "added"), "{said:?}");
    is_dense(dir, &wanted);
    // There is nothing more to do.
    assert_eq!(ends(dir, "hold r.hf --resume 1 --json", 0).out, "");
}

#[test]
fn what_waited_when_whoever_held_it_was_killed_is_held_by_who_goes_on() {
    let folder = folder();
    let dir = folder.path();
    let wanted = full(dir);
    let mut evaluator = Evaluator::start(dir, &format!("hold r.hf {}", WHAT.replace("--json", "")));
    let held = evaluator.next();
    evaluator.next();
    evaluator.kill();
    let done = ends(dir, "hold r.hf --resume 1 --json", 0);
    assert_eq!((sum(&done.lines(), "missed"), done.err.contains("expired")), (0, false), "{}", done.err);
    assert!(sum(&done.lines(), "added") > 0, "{held} {}", done.out);
    is_dense(dir, &wanted);
}

#[test]
fn a_standing_hold_begins_with_more_than_its_quota_and_goes_on() {
    let folder = folder();
    let dir = folder.path();
    let mut recording = Recording::start(dir, "--size 16MiB --slot 128KiB");
    let mut sent = 0;
    let more = |recording: &mut Recording, sent: &mut u64, lines: u64| {
        for _ in 0..lines / 2000 {
            recording.lines(2000);
            *sent += 2000;
            recording.await_lines(dir, *sent);
        }
    };
    more(&mut recording, &mut sent, 40_000);
    let wanted: Vec<String> = left(dir).into_iter().filter(|text| is_wanted(text)).collect();
    let what = WHAT.replace("--json", "--standing --quota 30");
    let mut evaluator = Evaluator::start(dir, &format!("hold r.hf {what}"));
    let first = evaluator.next();
    assert_eq!((&first["slots"], &first["elements"]), (&Value::from(30), &Value::from(wanted.len())));
    let count = "query r.hf --format csv select_count(distinct_slot)_from_log_where_ordinal_%_100_=_3";
    let slots: u64 = ends(dir, count, 0).out.lines().nth(1).unwrap().parse().unwrap();
    assert!(slots > 60, "{slots}");
    let mut said = vec![first];
    while sum(&said, "added") < slots {
        said.push(evaluator.next());
    }
    // And then with what arrives.
    more(&mut recording, &mut sent, 4000);
    let is_found = |said: &&Value| said["originals"].is_null();
    let found =
        |said: &[Value]| said.iter().filter(is_found).filter_map(|said| said["elements"].as_u64()).sum();
    while (wanted.len() as u64 + 40).checked_sub(found(&said)) > Some(0) {
        said.push(evaluator.next());
    }
    assert_eq!(evaluator.end(), Some(0));
    recording.end();
    assert_eq!(sum(&said, "missed"), 0);
    let holds = ends(dir, "holds r.hf --json", 0).lines();
    assert!(holds[0]["slots"].as_u64() <= Some(30), "{}", holds[0]);
    let kept: Vec<String> = left(dir).into_iter().filter(|text| is_wanted(text)).collect();
    assert_eq!(kept[..wanted.len()], wanted);
    assert_eq!(kept.len(), wanted.len() + 40);
    ends(dir, "check r.hf", 0);
}

#[test]
fn a_damaged_slot_stays_whole_and_the_others_are_distilled() {
    let folder = folder();
    let dir = folder.path();
    ends(dir, "format r.hf --size 16MiB --slot 128KiB", 0);
    let mut filler = Filler::open(&dir.join("r.hf"));
    filler.lines(10_000);
    filler.close();
    let mut evaluator = Evaluator::start(
        dir,
        &format!("hold r.hf {} --standing --quota 60", WHAT.trim_end_matches(" --json")),
    );
    let held = evaluator.next()["slots"].as_u64().unwrap();
    evaluator.kill();
    damage(&dir.join("r.hf"), 9);
    lap(dir, 10_000);
    let mut evaluator = Evaluator::start(dir, "hold r.hf --resume 1");
    while !evaluator.warning().contains("sequence 9 is damaged and stays whole") {}
    while evaluator.next()["originals"].as_u64() < Some(held - 1) {}
    assert_eq!(evaluator.end(), Some(0));
    let slots = ends(dir, "slots r.hf --json", 0).lines();
    assert!(slots.iter().any(|slot| slot["sequence"] == 9 && slot["state"] == "held"), "{slots:?}");
}

/// Damages what tells of the rows of a slot.
fn damage(ring: &Path, sequence: u64) {
    let mut disk = RealDisk::new(Device::open(ring, Access::Own).unwrap(), &[], 4);
    let recovered = recover(&mut disk).unwrap();
    let (slot, ..) = recovered.data().find(|(_, there, _)| there.0 == sequence).unwrap();
    let mut window = Blocking::new(&mut disk, CHECK_QUANTUM + 8192).unwrap();
    let check = check_slot(&mut window, &recovered.superblock, slot, Depth::Full).unwrap();
    let (_, summary, _) = check.sound().unwrap();
    let rows = summary.section(SectionKind::Chunks).unwrap();
    let at = recovered.superblock.geometry.slot_offset(slot) + u64::from(rows.offset);
    drop(disk);
    let file = OpenOptions::new().write(true).open(ring).unwrap();
    file.write_all_at(&vec![0xa5; rows.bytes as usize], at).unwrap();
}
