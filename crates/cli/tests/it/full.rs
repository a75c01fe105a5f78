//! File systems that are full, and file systems without direct I/O: it is said, nothing is harmed (promise 8), and what
//! was lost is counted (promise 2).
#![allow(missing_docs, clippy::unwrap_used)]

use crate::common;

use common::{Mount, ends, folder, holdfast, record};
use rustix::fs::FallocateFlags;
use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStderr, Stdio};

/// Fills a file system to its last byte.
fn fill(dir: &Path) {
    let mut file = File::create(dir.join("filler")).unwrap();
    let mut piece = 1 << 20;
    while piece > 0 {
        if file.write_all(&vec![1; piece]).is_err() {
            piece /= 2;
        }
    }
}

fn lines(count: usize) -> String {
    let lines: Vec<_> =
        (0..count).map(|number| format!("line {number:08} of a log that somebody keeps\n")).collect();
    lines.concat()
}

/// A ring of 16 MiB on a file system that is full, with its last 10 MiB not reserved, as after copying it with a tool that
/// makes holes of zeros; with some lines on it.
fn sparse_ring(work: &Path, ring: &Path, first: &str) -> String {
    let line = format!("{} --source file:input --name log --frame lines --patience 100ms", ring.display());
    ends(work, &format!("format {} --size 16MiB --slot 256KiB", ring.display()), 0);
    fs::write(work.join("input"), first).unwrap();
    assert_eq!(record(work, &line, Stdio::null()).code, Some(0));
    let file = OpenOptions::new().write(true).open(ring).unwrap();
    let holes = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    rustix::fs::fallocate(&file, holes, 6 << 20, 10 << 20).unwrap();
    file.sync_all().unwrap();
    fill(ring.parent().unwrap());
    line
}

/// A recorder that ends with its test.
struct Recording(Child);

impl Drop for Recording {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a recorder that finds no room for all of its input, and waits until it says so.
fn starved(work: &Path, line: &str) -> (Recording, BufReader<ChildStderr>) {
    let mut command = holdfast(work);
    command.arg("record").args(line.split(' ')).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut recording = Recording(command.spawn().unwrap());
    let mut err = BufReader::new(recording.0.stderr.take().unwrap());
    let mut said = String::new();
    while !said.contains("holdfast: ") {
        assert!(err.read_line(&mut said).unwrap() > 0, "it ended: {said}");
    }
    assert!(said.contains("its file system is full") && said.contains("free space there"), "{said}");
    (recording, err)
}

#[test]
fn a_full_file_system_under_a_sparse_ring_is_waited_for() {
    let Some(mount) = Mount::new("tmpfs", "size=28m") else { return };
    let work = folder();
    let (work, ring) = (work.path(), mount.path().join("r.hf"));
    let (first, more) = (lines(10_000), lines(150_000));
    let line = sparse_ring(work, &ring, &first);
    fs::write(work.join("input"), &more).unwrap();
    let (mut recording, mut err) = starved(work, &line);
    fs::remove_file(mount.path().join("filler")).unwrap();
    let mut rest = String::new();
    err.read_to_string(&mut rest).unwrap();
    assert_eq!(recording.0.wait().unwrap().code(), Some(0), "{rest}");
    let all = ends(work, &format!("read {} --stream log", ring.display()), 0).out;
    assert!(all == first + &more, "a file waits: nothing is lost");
    ends(work, &format!("gaps {}", ring.display()), 3);
    ends(work, &format!("check {}", ring.display()), 0);
}

#[test]
fn a_recorder_that_is_ended_on_a_full_file_system_harms_nothing() {
    let aside = folder();
    let Some(mount) = Mount::over("ext4", &aside.path().join("image"), 32 << 20) else { return };
    let work = folder();
    let (work, ring) = (work.path(), mount.path().join("r.hf"));
    let first = lines(10_000);
    let line = sparse_ring(work, &ring, &first);
    fs::write(work.join("input"), lines(150_000)).unwrap();
    let (mut recording, mut err) = starved(work, &line);
    let pid = rustix::process::Pid::from_child(&recording.0);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let mut rest = String::new();
    err.read_to_string(&mut rest).unwrap();
    assert_eq!(recording.0.wait().unwrap().code(), Some(1), "{rest}");
    assert!(rest.contains("the last received data is lost"), "{rest}");
    let ring = ring.display();
    assert!(ends(work, &format!("read {ring} --stream log"), 0).out.starts_with(&first));
    ends(work, &format!("check {ring}"), 0);
    // With room again it goes on, and tells the loss.
    fs::remove_file(mount.path().join("filler")).unwrap();
    fs::write(work.join("input"), &first).unwrap();
    let said = record(work, &line, Stdio::null());
    assert_eq!(said.code, Some(0), "{}", said.err);
    let all = ends(work, &format!("read {ring} --stream log"), 0).out;
    assert!(all.starts_with(&first) && all.ends_with(&first));
    assert!(ends(work, &format!("gaps {ring} --json"), 0).out.contains("crash"));
    ends(work, &format!("check {ring}"), 0);
}

#[test]
fn a_file_system_that_fills_up_while_a_ring_is_made_is_told_and_nothing_is_left() {
    let aside = folder();
    let dir = aside.path();
    // ext2 knows no reservation: the ring is written, and the file system's own blocks make it too small on the way.
    let Some(mount) = Mount::over("ext2", &dir.join("image"), 32 << 20) else { return };
    let free = rustix::fs::statvfs(mount.path()).unwrap();
    let free = free.f_bavail * free.f_frsize / 4096 * 4096;
    let ring = mount.path().join("r.hf");
    for options in ["", "--prefill"] {
        let said = ends(dir, &format!("format {} --size {free} {options}", ring.display()), 1);
        assert!(said.err.contains("do not fit: the file system has"), "{}", said.err);
        assert!(!ring.exists());
    }
    let said =
        record(dir, &format!("{} --size {free} --source stdin --name a", ring.display()), Stdio::null());
    assert_eq!(said.code, Some(1));
    assert!(said.err.contains("do not fit: the file system has"), "{}", said.err);
    assert!(!ring.exists());
    ends(dir, &format!("format {} --size 24MiB", ring.display()), 0);
    // A ring that cannot grow is as it was.
    let said = ends(dir, &format!("grow {} --size {free}", ring.display()), 1);
    assert!(said.err.contains("do not fit"), "{}", said.err);
    assert_eq!(fs::metadata(&ring).unwrap().len(), 24 << 20);
    ends(dir, &format!("check {}", ring.display()), 0);
}

#[test]
fn without_direct_io_a_warning_is_given_and_everything_works() {
    let aside = folder();
    let dir = aside.path();
    let Some(mount) = Mount::new("ramfs", "mode=755") else { return };
    let ring = mount.path().join("r.hf");
    let probe = mount.path().join("probe");
    fs::write(&probe, "x").unwrap();
    let direct = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::DIRECT;
    if rustix::fs::open(&probe, direct, rustix::fs::Mode::empty()).is_ok() {
        eprintln!("ramfs has direct I/O here: this is not checked");
        return;
    }
    let warning = "the file system has no direct I/O: writes go through the page cache";
    let ring = ring.to_str().unwrap();
    let made = ends(dir, &format!("format {ring} --size 16MiB --slot 64KiB"), 0);
    assert!(made.out.contains(warning) && made.out.contains("no guarantee on ramfs"), "{}", made.out);
    let text = lines(100_000);
    fs::write(dir.join("input"), &text).unwrap();
    let said = record(dir, &format!("{ring} --source file:input --name log --frame lines"), Stdio::null());
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(said.err.contains(warning), "{}", said.err);
    assert_eq!(ends(dir, &format!("read {ring} --stream log"), 0).out, text);
    ends(dir, &format!("hold {ring} --stream log --ordinals 10..20 --reason why"), 0);
    ends(dir, &format!("grow {ring} --size 20MiB"), 0);
    ends(dir, &format!("check {ring}"), 0);
    assert_eq!(ends(dir, &format!("read {ring} --stream log"), 0).out, text);
}

#[test]
fn every_output_says_that_the_disk_is_full() {
    let folder = folder();
    let dir = folder.path();
    fs::write(dir.join("input"), lines(50_000)).unwrap();
    let line = "r.hf --size 16MiB --source file:input --name log --frame lines";
    assert_eq!(record(dir, line, Stdio::null()).code, Some(0));
    let commands = [
        "query r.hf select_ordinal,payload_from_log --format table",
        "query r.hf select_ordinal,payload_from_log --format csv",
        "query r.hf select_ordinal,payload_from_log --format jsonl",
        "query r.hf select_ordinal,payload_from_log --format arrow",
        "query r.hf select_ordinal,payload_from_log --format parquet",
        "query r.hf select_ordinal_from_log --format mcap",
        "read r.hf --format raw",
        "read r.hf --format mcap",
        "read r.hf --format jsonl",
    ];
    for command in commands {
        let said = ends(dir, &format!("{command} -o /dev/full"), 1).err;
        assert!(said.contains("no space left on device: make room"), "{command}: {said}");
        assert!(!said.contains("--format"), "{command}: {said}");
        let words = command.split(' ').map(|word| word.replace('_', " "));
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = holdfast(dir).args(words).args(["-o", "-"]).stdout(full).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            output.status.code() == Some(1) && said.contains("no space left on device"),
            "{command}: {said}"
        );
    }
    for command in ["status r.hf", "slots r.hf", "streams r.hf --json"] {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = holdfast(dir).args(command.split(' ')).stdout(full).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            output.status.code() == Some(1) && said.contains("no space left on device"),
            "{command}: {said}"
        );
    }
}
