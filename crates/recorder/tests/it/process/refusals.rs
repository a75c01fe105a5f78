//! Tests of refusals (promise 8): each says what, where and what to do, and nothing is harmed.

use crate::process::common::{PROGRAM, TestFolder, as_nobody};
use crate::process::device::Lockable;
use holdfast_media::{Access, Device, owner};
use holdfast_protocol::RingLocation;
use holdfast_protocol::socket_path::socket_in;
use rustix::fs::{FlockOperation, OFlags, flock};
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Longest wait for anything in these tests.
const PATIENCE: Duration = Duration::from_mins(1);

const STDIN: [&str; 4] = ["--source", "stdin", "--name", "s"];

fn made(place: &TestFolder) {
    let options: Vec<&str> = ["--size", "16MiB", "--slot", "256KiB"].into_iter().chain(STDIN).collect();
    assert!(place.record(&options, b"x").status.success());
}

#[test]
fn wrong_flags_are_wrong_use() {
    let place = TestFolder::new();
    for (options, said) in [
        (&["--colour"][..], "unknown option --colour"),
        (&[], "no source is given"),
        (&["--size", "16MiB", "--slot", "100KiB", "--source", "stdin", "--name", "s"], "--slot"),
        (&["--size", "1KiB", "--source", "stdin", "--name", "s"], "--size"),
        (
            &["--size", "64MiB", "--memory", "1MiB", "--source", "stdin", "--name", "s"],
            "--memory 1 MiB is too little",
        ),
    ] {
        let (code, error) = place.refused(options);
        assert_eq!(code, 2, "{options:?}: {error}");
        assert!(error.starts_with("holdfast-recorder: ") && error.contains(said), "{options:?}: {error}");
        assert!(!place.ring.exists(), "{options:?} left a ring behind");
    }
}

#[test]
fn a_filter_that_makes_no_sense_is_wrong_use() {
    let place = TestFolder::new();
    let capture = place.path("c.pcap");
    let head: [u32; 6] = [0xa1b2_c3d4, 0x0004_0002, 0, 0, 65535, 1];
    std::fs::write(&capture, head.map(u32::to_le_bytes).concat()).unwrap();
    let source = format!("replay:{}", capture.display());
    let (code, error) =
        place.refused(&["--size", "16MiB", "--source", &source, "--name", "s", "--filter", "tcp and ("]);
    assert_eq!(code, 2, "{error}");
    assert!(error.contains("the filter `tcp and (`"), "{error}");
    assert!(!place.ring.exists(), "it left a ring behind");
}

#[test]
fn help_and_version_are_on_standard_output() {
    for (option, said) in [("--help", "Usage: holdfast record"), ("--version", "holdfast-recorder ")] {
        let output = Command::new(PROGRAM).arg(option).output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty());
        assert!(String::from_utf8(output.stdout).unwrap().contains(said));
    }
}

#[test]
fn a_ring_that_is_not_there_is_made_only_when_a_size_is_given() {
    let place = TestFolder::new();
    let (code, error) = place.refused(&STDIN);
    assert_eq!(code, 1);
    assert!(error.contains("r.hf: not found") && error.contains("size"), "{error}");
}

#[test]
fn a_file_that_is_no_ring_is_left_alone() {
    let place = TestFolder::new();
    let text = b"a letter that somebody wrote".repeat(100_000);
    std::fs::write(&place.ring, &text).unwrap();
    let (code, error) = place.refused(&STDIN);
    assert_eq!(code, 1);
    assert!(error.contains("no ring (it carries data of an unknown kind"), "{error}");
    assert!(error.contains("choose another path") && !error.contains("` creates one"), "{error}");
    assert!(std::fs::read(&place.ring).unwrap() == text, "it was changed");
}

#[test]
fn a_second_recorder_is_refused_with_name_and_pid_of_the_first() {
    let place = TestFolder::new();
    made(&place);
    let recorder = place.start(&STDIN);
    let (code, error) = place.refused(&STDIN);
    assert_eq!(code, 1);
    assert!(error.contains(&format!("in use by holdfast-recorder (pid {})", recorder.child.id())), "{error}");
    assert!(recorder.end().status.success());
}

// Promise 1: a recorder has the ring next, whichever command has it at that moment.
#[test]
fn a_recorder_gets_the_ring_from_a_command_that_has_it() {
    let place = TestFolder::new();
    made(&place);
    let ring = RingLocation::read(&place.ring).unwrap().superblock.ring;
    let mark = socket_in(&place.run(), ring).with_extension("starting");
    let device = Device::open(&place.ring, Access::Own).unwrap();
    std::thread::scope(|scope| {
        let mark = &mark;
        scope.spawn(move || {
            // As commands do, it gives way once a recorder asks for the ring.
            let begun = Instant::now();
            while !matches!(owner(mark), Ok(Some(_))) && begun.elapsed() < PATIENCE {
                std::thread::yield_now();
            }
            drop(device);
        });
        let recorder = place.start(&STDIN);
        assert!(!mark.exists(), "what comes now goes through the recorder");
        assert!(recorder.end().status.success());
    });
}

// Promise 1: who cannot ask for the ring says so, and records all the same.
#[test]
fn a_recorder_that_cannot_mark_its_start_warns() {
    let place = TestFolder::new();
    made(&place);
    let ring = RingLocation::read(&place.ring).unwrap().superblock.ring;
    let mark = File::create(socket_in(&place.run(), ring).with_extension("starting")).unwrap();
    flock(&mark, FlockOperation::NonBlockingLockExclusive).unwrap();
    let recorder = place.start(&STDIN);
    assert!(recorder.said.contains("commands that have the ring do not give way"), "{}", recorder.said);
    assert!(recorder.end().status.success());
}

#[test]
fn a_source_that_cannot_be_opened_leaves_no_ring_behind() {
    let place = TestFolder::new();
    for (spec, said) in
        [("file:/nowhere/at/all", "file:/nowhere/at/all: cannot open"), ("iface:no-such-if", "no-such-if")]
    {
        let (code, error) = place.refused(&["--size", "16MiB", "--source", spec, "--name", "s"]);
        assert_eq!(code, 1);
        assert!(error.contains(said), "{error}");
        assert!(!place.ring.exists());
    }
}

#[test]
fn other_sizes_than_the_ring_has_are_told_and_change_nothing() {
    let place = TestFolder::new();
    made(&place);
    let options: Vec<&str> = ["--size", "32MiB", "--slot", "1MiB"].into_iter().chain(STDIN).collect();
    let ended = place.record(&options, b"y");
    assert!(ended.status.success());
    assert!(
        ended.err.contains("the ring exists and has 16 MiB")
            && ended.err.contains("the ring exists and has slots of 256 KiB"),
        "{}",
        ended.err
    );
}

#[test]
fn missing_permissions_are_told_with_what_would_do() {
    let place = TestFolder::new();
    made(&place);
    let Some((code, error)) = as_nobody(&place, &[], &STDIN) else { return };
    assert_eq!(code, 1);
    assert!(error.contains("r.hf: permission denied; run as a user who may read and write it"), "{error}");
    std::fs::remove_file(&place.ring).unwrap();
    let (code, error) =
        as_nobody(&place, &[], &["--size", "16MiB", "--source", "iface:lo", "--name", "s"]).unwrap();
    assert_eq!(code, 1);
    assert!(error.to_lowercase().contains("permi"), "{error}");
}

#[test]
fn a_device_that_takes_no_writes_is_told_before_anything_is_recorded() {
    let mut place = TestFolder::new();
    made(&place);
    let Some(device) = Lockable::over(&place.ring) else { return };
    place.ring = device.0.path();
    device.lock();
    let (code, error) = place.refused(&STDIN);
    assert_eq!(code, 1);
    assert!(error.contains("is read-only; make it writable first (`blockdev --setrw`"), "{error}");
    device.unlock();
    assert!(place.record(&STDIN, b"y").status.success());
}

#[test]
fn a_full_file_system_is_told_and_nothing_is_left_on_it() {
    let place = TestFolder::new();
    let mount = place.path("small");
    std::fs::create_dir(&mount).unwrap();
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=8m", "tmpfs"])
        .arg(&mount)
        .stderr(Stdio::null())
        .status();
    if !mounted.is_ok_and(|status| status.success()) {
        return;
    }
    let ring = mount.join("r.hf");
    let output = Command::new(PROGRAM)
        .arg(&ring)
        .args(["--size", "16MiB", "--source", "stdin", "--name", "s"])
        .env("HOLDFAST_RUN", place.run())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let left = std::fs::read_dir(&mount).unwrap().count();
    assert!(Command::new("umount").arg(&mount).status().unwrap().success());
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.contains("16 MiB do not fit") && error.contains("8 MiB free"), "{error}");
    assert_eq!(left, 0);
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let place = TestFolder::new();
    made(&place);
    let mut recorder = place.start(&STDIN);
    let mut stdin = recorder.stdin().unwrap();
    stdin.write_all(b"x\n").unwrap();
    // Its standard output takes nothing more and nobody reads it: without a second signal it would wait there for ever.
    let mut full = OpenOptions::new()
        .write(true)
        .custom_flags(OFlags::NONBLOCK.bits() as i32)
        .open(format!("/proc/{}/fd/1", recorder.child.id()))
        .unwrap();
    let blocked = std::iter::repeat_with(|| full.write(&[b' '; 4096])).find_map(Result::err).unwrap();
    assert_eq!(blocked.kind(), ErrorKind::WouldBlock);
    drop(full);
    recorder.signal_until_it_ends();
    assert_eq!(recorder.child.wait().unwrap().code(), Some(130));
}
