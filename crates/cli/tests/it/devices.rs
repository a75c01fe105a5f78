//! Commands on block devices: nothing that is there is destroyed unasked, and what is said of it is right (promise 8).
#![allow(missing_docs, clippy::unwrap_used)]

use crate::common;

use common::{Loop, ends, folder, record};
use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Stdio;

const MIB: u64 = 1 << 20;
const COPIES: [u64; 4] = [0, 256 << 10, 512 << 10, 768 << 10];

fn write(path: &str, at: u64, bytes: &[u8]) {
    let file = OpenOptions::new().write(true).open(path).unwrap();
    file.write_all_at(bytes, at).unwrap();
    file.sync_all().unwrap();
}

#[test]
fn a_ring_that_lost_its_superblocks_is_not_formatted_but_brought_back() {
    let folder = folder();
    let dir = folder.path();
    for (bytes, slot) in [(64 * MIB, 64 << 10), (300 * MIB, 16 * MIB)] {
        let Some(device) = Loop::new(&dir.join("disk"), bytes) else { return };
        let ring = &device.0;
        ends(dir, &format!("format {ring} --slot {slot}"), 0);
        let lines = "a line of some length\n".repeat(50_000);
        fs::write(dir.join("lines"), &lines).unwrap();
        let options = format!("{ring} --source file:lines --name a --frame lines");
        let said = record(dir, &options, Stdio::null());
        assert_eq!(said.code, Some(0), "{}", said.err);
        for at in COPIES {
            write(ring, at, &[0; 4096]);
        }
        let before = fs::read(dir.join("disk")).unwrap();
        let said = ends(dir, &format!("format {ring}"), 1);
        assert!(said.err.contains("left of a Holdfast ring"), "{}", said.err);
        assert!(said.err.contains("holdfast check --geometry find"), "{}", said.err);
        let said = record(dir, &options, Stdio::null());
        assert_eq!(said.code, Some(1));
        assert!(said.err.contains("do not format it: `holdfast check --geometry find"), "{}", said.err);
        assert!(!said.err.contains("empty"), "{}", said.err);
        assert!(fs::read(dir.join("disk")).unwrap() == before, "nothing was touched");
        ends(dir, &format!("check --geometry find {ring}"), 0);
        assert_eq!(ends(dir, &format!("read {ring} --stream a"), 0).out, lines);
    }
}

#[test]
fn data_beyond_the_first_bytes_is_not_destroyed_unasked() {
    let folder = folder();
    let dir = folder.path();
    for at in [2 * MIB, 10 * MIB, 32 * MIB - 1] {
        let Some(device) = Loop::new(&dir.join("disk"), 32 * MIB) else { return };
        write(&device.0, at, b"x");
        let said = ends(dir, &format!("format {}", device.0), 1);
        assert!(said.err.contains("data of an unknown kind") && said.err.contains("--force"), "{}", said.err);
        let said = record(dir, &format!("{} --source stdin --name a", device.0), Stdio::null());
        assert!(said.err.contains("it carries data of an unknown kind"), "{}", said.err);
        assert!(!said.err.contains("creates one"), "{}", said.err);
        ends(dir, &format!("format {} --force", device.0), 0);
    }
    let Some(device) = Loop::new(&dir.join("disk"), 32 * MIB) else { return };
    let said = record(dir, &format!("{} --source stdin --name a", device.0), Stdio::null());
    assert!(said.err.contains("nothing was found on it") && said.err.contains("creates one"), "{}", said.err);
    ends(dir, &format!("format {}", device.0), 0);
}

/// The slots of a ring with slots of 1 MiB as they lie on the device.
fn slots(disk: &Path) -> Vec<u8> {
    fs::read(disk).unwrap().split_off(5 << 20)
}

#[test]
fn prefilling_a_device_writes_every_slot_and_nothing_else_does() {
    let folder = folder();
    let dir = folder.path();
    let disk = dir.join("disk");
    let Some(device) = Loop::new(&disk, 32 * MIB) else { return };
    write(&device.0, 0, &vec![0xa5; 32 << 20]);
    ends(dir, &format!("format {} --force", device.0), 0);
    let left = slots(&disk);
    assert!(left[..left.len() - (1 << 20)].iter().all(|byte| *byte == 0xa5), "not prefilled");
    ends(dir, &format!("format {} --force --prefill", device.0), 0);
    assert!(slots(&disk).iter().all(|byte| *byte == 0));
    ends(dir, &format!("check {}", device.0), 0);
}

#[test]
fn a_device_that_has_not_grown_is_not_asked_for_a_size() {
    let folder = folder();
    let dir = folder.path();
    let Some(device) = Loop::new(&dir.join("disk"), 32 * MIB) else { return };
    ends(dir, &format!("format {}", device.0), 0);
    let said = ends(dir, &format!("grow {}", device.0), 2);
    assert!(said.err.contains("make the device larger") && !said.err.contains("--size"), "{}", said.err);
}
