//! `holdfast profile` on small files: nothing is destroyed unasked, a ring's data stays as it is, and what is found is a
//! profile (promises 1, 5, 8). What the figures are worth is tested in virtual time, on emulated drives.
#![allow(missing_docs, clippy::unwrap_used)]

use crate::common;
use crate::common::recording;

use common::{documented, ends, folder, record};
use recording::Recording;
use std::fs::{self, File};
use std::path::Path;
use std::process::Stdio;

const MIB: u64 = 1 << 20;

fn empty(path: &Path, bytes: u64) {
    File::create(path).unwrap().set_len(bytes).unwrap();
}

#[test]
fn an_empty_file_is_measured_and_plan_takes_what_was_found() {
    let folder = folder();
    let dir = folder.path();
    empty(&dir.join("a.img"), 96 * MIB);
    let said = ends(dir, "profile a.img --minutes 0.02 --json", 0).json();
    documented("profile", [&said]);
    assert_eq!(said["device_bytes"], 96 * MIB);
    assert_eq!(said["by_region"].as_array().unwrap().len(), 2);
    assert!(said["worst_write_bytes_per_second"].as_u64() > Some(0), "{said}");
    assert!(said["packer_elements_per_second"].as_u64() > Some(0), "{said}");
    let svg = fs::read_to_string(dir.join("a.profile.svg")).unwrap();
    assert!(svg.contains("<polyline"), "{svg}");
    // It is a profile: plan reads it, whatever it says to so small a device.
    let planned = common::run(dir, "plan --profile a.profile.json --rate 1KiB/s");
    assert!(
        !planned.err.contains("not a profile") && !planned.err.contains("cannot be used"),
        "{}",
        planned.err
    );
    // Now there is data.
    let found = fs::read(dir.join("a.profile.json")).unwrap();
    let said = ends(dir, "profile a.img --minutes 0.02", 1);
    assert!(said.err.contains("a.profile.json") && said.err.contains("--force"), "{}", said.err);
    // A picture of the same name is another's, too.
    let said = ends(dir, "profile a.img --minutes 0.02 -o a.profile.txt", 1);
    assert!(said.err.contains("a.profile.svg") && said.err.contains("--force"), "{}", said.err);
    let said = ends(dir, "profile a.img --minutes 0.02 --force", 1);
    assert!(fs::read(dir.join("a.profile.json")).unwrap() == found, "nothing was measured");
    assert!(said.err.contains("data in it") && said.err.contains("--destroy"), "{}", said.err);
    let said = ends(dir, "profile a.img --minutes 0.02 --zones 2 --destroy -o b.json", 0);
    for wanted in
        ["position on the device", "w writing", "0..80%", "write cache", "at the end), ", "b.json", "b.svg"]
    {
        assert!(said.out.contains(wanted), "{wanted}: {}", said.out);
    }
}

#[test]
fn what_is_there_is_not_destroyed_unasked_and_wrong_use_is_told() {
    let folder = folder();
    let dir = folder.path();
    let notes = "important".repeat(1 << 18);
    fs::write(dir.join("notes"), &notes).unwrap();
    let said = ends(dir, "profile notes --minutes 0.02", 1);
    assert!(said.err.contains("notes") && said.err.contains("--destroy"), "{}", said.err);
    assert!(fs::read(dir.join("notes")).unwrap() == notes.as_bytes());
    let said = ends(dir, "profile none --minutes 0.02", 1);
    assert!(said.err.contains("fallocate"), "{}", said.err);
    empty(&dir.join("nothing"), 0);
    assert!(ends(dir, "profile nothing --destroy", 1).err.contains("too short to be measured"));
    empty(&dir.join("a.img"), 8 * MIB);
    for (line, code, wanted) in [
        ("profile a.img --minutes 0", 2, "minutes"),
        ("profile a.img --minutes nan", 2, "minutes"),
        ("profile a.img --zones 0", 2, "zones"),
        ("profile a.img -o a.img", 2, "a file of its own"),
        ("profile a.img -o b.svg", 2, "a file of its own"),
        ("profile a.img -o none/b.json", 1, "cannot write the profile there"),
    ] {
        let said = ends(dir, line, code);
        assert!(said.err.contains(wanted), "{line}: {}", said.err);
    }
    assert!(fs::read(dir.join("a.img")).unwrap().iter().all(|byte| *byte == 0), "nothing was written");
}

#[test]
fn a_ring_keeps_its_data_and_only_free_slots_are_written() {
    let folder = folder();
    let dir = folder.path();
    ends(dir, "format r.hf --size 96MiB --slot 1MiB", 0);
    let text: String = (0..40_000).map(|n| recording::line(n) + "\n").collect();
    fs::write(dir.join("lines"), &text).unwrap();
    let options = "r.hf --source file:lines --name log --frame lines --flush 100ms";
    let said = record(dir, options, Stdio::null());
    assert_eq!(said.code, Some(0), "{}", said.err);
    let slots = |state: &str| {
        let lines = ends(dir, "slots r.hf --json", 0).lines();
        lines
            .into_iter()
            .filter(|slot| slot["state"] == state)
            .map(|slot| slot["slot"].clone())
            .collect::<Vec<_>>()
    };
    let (before, live) = (fs::read(dir.join("r.hf")).unwrap(), slots("live"));
    assert!(live.len() > 10, "{live:?}");
    // The first slots are taken: nothing can be measured there, and that is said.
    let said = ends(dir, "profile r.hf --minutes 0.02", 0);
    assert!(said.out.contains("could not be measured in the first"), "{}", said.out);
    let after = fs::read(dir.join("r.hf")).unwrap();
    let first = 5 * MIB as usize;
    assert!(before[..first] == after[..first], "superblocks and journal");
    assert!(before != after, "something was written");
    for (at, (old, new)) in
        before[first..].chunks(MIB as usize).zip(after[first..].chunks(MIB as usize)).enumerate()
    {
        let (head, tail) = (4096, old.len().saturating_sub(4096));
        assert!(
            old[..head] == new[..head] && old[tail..] == new[tail..],
            "slot {at}: its first and last block"
        );
        assert!(old == new || !live.contains(&at.into()), "slot {at} holds data");
    }
    assert_eq!(slots("live"), live);
    assert_eq!(ends(dir, "check r.hf --json", 0).json()["damaged"], 0);
    assert!(ends(dir, "read r.hf --stream log", 0).out == text, "byte for byte");
    // And it can be recorded to.
    let said = record(dir, options, Stdio::null());
    assert_eq!(said.code, Some(0), "{}", said.err);
    let read = ends(dir, "read r.hf --stream log", 0).out;
    assert!(read.len() == 2 * text.len() && read.ends_with(&text), "{} bytes", read.len());
}

#[test]
fn a_full_ring_is_refused_and_not_touched() {
    let folder = folder();
    let dir = folder.path();
    ends(dir, "format r.hf --size 16MiB --slot 256KiB", 0);
    let text: String = (0..40_000).map(|n| recording::line(n) + "\n").collect();
    fs::write(dir.join("lines"), &text).unwrap();
    for _ in 0..=(48 << 20) / text.len() {
        let said = record(dir, "r.hf --source file:lines --name log --frame lines", Stdio::null());
        assert_eq!(said.code, Some(0), "{}", said.err);
    }
    let before = fs::read(dir.join("r.hf")).unwrap();
    let said = ends(dir, "profile r.hf --minutes 0.02", 1);
    assert!(said.err.contains("not enough free slots") && said.err.contains("--destroy"), "{}", said.err);
    assert!(fs::read(dir.join("r.hf")).unwrap() == before, "nothing was touched");
}

#[test]
fn a_ring_that_is_recorded_to_is_refused_by_name_and_pid() {
    let folder = folder();
    let dir = folder.path();
    ends(dir, "format r.hf --size 32MiB", 0);
    let mut recording = Recording::start(dir, "");
    recording.lines(10);
    recording.await_lines(dir, 10);
    for more in ["", "--destroy"] {
        let said = ends(dir, &format!("profile r.hf --minutes 0.02 {more}"), 1);
        let pid = recording.child.id().to_string();
        assert!(said.err.contains("holdfast-record") && said.err.contains(&pid), "{}", said.err);
    }
    recording.lines(10);
    recording.await_lines(dir, 20);
    assert_eq!(recording.end().0, Some(0));
}
