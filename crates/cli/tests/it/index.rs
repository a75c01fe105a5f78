//! An index drive: what is kept there of a ring, and that searches find the same with it, and read the ring less (promise 5).
#![allow(missing_docs, clippy::unwrap_used)]

use crate::common;
use crate::common::figures;
use crate::common::recording;

use common::{Loop, Mount, documented, ends, folder, holdfast, run};
use figures::figure;
use recording::{PATIENCE, Recording};
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

const QUESTIONS: [&str; 4] = [
    "select ordinal, n from log where n between 40000 and 80000 order by ordinal",
    "select count(*), min(n), max(n) from log where n % 7 = 3",
    "select count(*) from log where ordinal >= 3000 and ordinal < 3300",
    "select hex(payload) from log where n = 0",
];

fn document(number: u64) -> String {
    format!("{{\"n\":{},\"pad\":\"{}\"}}\n", number.wrapping_mul(0x9e37_79b9) % 16_000_000, "x".repeat(150))
}

fn start(dir: &Path, count: u64) -> Recording {
    let mut recording = Recording::start(dir, "--size 8MiB --slot 64KiB --attr n:uint=json:n");
    let all: String = (0..count).map(document).collect();
    recording.input.as_mut().unwrap().write_all(all.as_bytes()).unwrap();
    recording.await_lines(dir, count);
    recording
}

fn ask(dir: &Path, question: &str, more: &str) -> String {
    ends(dir, &format!("query r.hf --format csv {more} {}", question.replace(' ', "_")), 0).out
}

/// The copies that there are.
fn copies(dir: &Path) -> Vec<PathBuf> {
    let rings = fs::read_dir(dir.join("drive")).map(|all| all.map(|ring| ring.unwrap().path()));
    let mut copies: Vec<PathBuf> = rings
        .into_iter()
        .flatten()
        .flat_map(|ring| fs::read_dir(ring).unwrap().map(|file| file.unwrap().path()))
        .filter(|file| file.file_name().is_some_and(|name| name.len() == 16))
        .collect();
    copies.sort();
    copies
}

#[test]
fn what_is_copied_is_found_the_same_and_not_read_from_the_ring() {
    let folder = folder();
    let dir = folder.path();
    let recording = start(dir, 8000);
    ends(dir, "index r.hf --index drive --once", 0);
    let question = format!("explain analyze {}", QUESTIONS[1]);
    // Its recorder knows what each slot has.
    let live = ask(dir, &question, "--index drive");
    assert!(figure(&live, "bytes_read") == 0 && figure(&live, "bytes_read_index") > 0, "{live}");
    recording.end();
    fs::remove_dir_all(dir.join("drive")).unwrap();
    let wanted = QUESTIONS.map(|question| ask(dir, question, ""));
    let said = ends(dir, "index r.hf --index drive --once --json", 0).json();
    documented("index", [&said]);
    let all = copies(dir);
    assert!(all.len() > 10, "{all:?}");
    assert_eq!(
        (said["slots"].as_u64(), said["copied"].as_u64()),
        (Some(all.len() as u64), Some(all.len() as u64))
    );
    let bytes: u64 = all.iter().map(|file| file.metadata().unwrap().len()).sum();
    assert_eq!(said["bytes"].as_u64(), Some(bytes));

    let analyzed = |more: &str| ask(dir, &format!("explain analyze {}", QUESTIONS[1]), more);
    let (without, with) = (analyzed(""), analyzed("--index drive"));
    assert!(figure(&without, "bytes_read") > 0 && figure(&without, "bytes_read_index") == 0, "{without}");
    assert!(is_heads(&with) && figure(&with, "bytes_read_index") > 0, "{with}");
    let config = dir.join("config.toml");
    let text = |name: &str| dir.join(name).display().to_string();
    fs::write(&config, format!("[rings.lab]\npath = \"{}\"\nindex = \"{}\"", text("r.hf"), text("drive")))
        .unwrap();
    let named =
        holdfast(dir).env("HOLDFAST_CONFIG", &config).args(["query", "lab", &question]).output().unwrap();
    assert!(is_heads(&String::from_utf8_lossy(&named.stdout)), "{named:?}");

    for (number, file) in all.iter().enumerate() {
        let mut bytes = fs::read(file).unwrap();
        let last = bytes.len() - 1;
        match number % 4 {
            0 => bytes[last] ^= 1,
            1 => bytes.truncate(last),
            2 => bytes[9000] ^= 0x40,
            _ => {}
        }
        fs::write(file, bytes).unwrap();
    }
    for (question, wanted) in QUESTIONS.iter().zip(&wanted) {
        assert_eq!(&ask(dir, question, "--index drive"), wanted, "{question}");
        assert_eq!(&ask(dir, question, "--index nowhere"), wanted, "{question}");
    }
    // What is damaged is copied again, and nothing else.
    let damaged = (0..all.len()).filter(|number| number % 4 != 3).count() as u64;
    let said = ends(dir, "index r.hf --index drive --once --json", 0).json();
    assert_eq!((said["removed"].as_u64(), said["copied"].as_u64()), (Some(damaged), Some(damaged)), "{said}");
    let said = ends(dir, "index r.hf --index drive --once --json", 0).json();
    assert_eq!((said["removed"].as_u64(), said["copied"].as_u64()), (Some(0), Some(0)), "{said}");
}

// A ring that was put back to what it was before gives its sequences again.
#[test]
fn copies_of_what_a_ring_had_before_it_was_put_back_are_passed_by_and_replaced() {
    let folder = folder();
    let dir = folder.path();
    start(dir, 2000).end();
    let (ring, kept) = (dir.join("r.hf"), dir.join("kept.hf"));
    fs::copy(&ring, &kept).unwrap();
    let more = |first: u64| {
        let mut recording = Recording::start(dir, "");
        let all: String = (first..first + 3000).map(document).collect();
        recording.input.as_mut().unwrap().write_all(all.as_bytes()).unwrap();
        recording.await_lines(dir, 3000);
        recording
    };
    more(2000).end();
    ends(dir, "index r.hf --index drive --once", 0);
    fs::copy(&kept, &ring).unwrap();
    let recording = more(50_000);
    // Its recorder knows when each slot was written; without one that is read.
    let wanted = QUESTIONS.map(|question| ask(dir, question, ""));
    for (question, wanted) in QUESTIONS.iter().zip(&wanted) {
        assert_eq!(&ask(dir, question, "--index drive"), wanted, "{question}");
    }
    recording.end();
    for (question, wanted) in QUESTIONS.iter().zip(&wanted) {
        assert_eq!(&ask(dir, question, "--index drive"), wanted, "{question}");
    }
    let said = ends(dir, "index r.hf --index drive --once --json", 0).json();
    let (copied, removed) = (said["copied"].as_u64().unwrap(), said["removed"].as_u64().unwrap());
    assert!(copied > 3 && removed > 3 && said["slots"].as_u64() > Some(copied), "{said}");
    is_answered_from(dir, "drive", &wanted);
}

#[test]
fn an_index_drive_with_nothing_of_the_ring_is_told_once() {
    let folder = folder();
    let dir = folder.path();
    start(dir, 3000).end();
    ends(dir, "index r.hf --index drive --once", 0);
    fs::create_dir(dir.join("empty")).unwrap();
    let config = dir.join("config.toml");
    let text = |name: &str| dir.join(name).display().to_string();
    fs::write(&config, format!("[rings.lab]\npath = \"{}\"\nindex = \"{}\"", text("r.hf"), text("gone")))
        .unwrap();
    let query = ["query", "r.hf", QUESTIONS[1], "--index"];
    let session = ["sql", "r.hf", "--index"];
    let purge = ["purge", "r.hf", "--ordinals", "0..10", "--reason", "test", "--index"];
    let again = ["purge", "r.hf", "--ordinals", "2000..2010", "--reason", "test", "--index"];
    for (args, place, told) in [
        (&query[..], "drive", ""),
        (&query, "empty", "empty has no copies of this ring's index"),
        (&query, "nowhere", "there is no nowhere (--index, or `index` in the configuration file)"),
        (&query, "config.toml", "config.toml has no copies of this ring"),
        (&session, "empty", "empty has no copies"),
        (&purge, "drive", ""),
        (&again, "nowhere", "there is no nowhere"),
        (&["query", "lab", QUESTIONS[1]], "", "gone (--index, or `index` in the configuration file)"),
    ] {
        let place = Some(place).filter(|place| !place.is_empty());
        let mut command = holdfast(dir);
        command.env("HOLDFAST_CONFIG", &config).args(args).args(place);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut asked = command.spawn().unwrap();
        // Two questions of one session.
        asked.stdin.take().unwrap().write_all(b"select 1; select count(*) from log;").unwrap();
        let asked = asked.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&asked.stderr);
        assert!(asked.status.success(), "{args:?} {place:?} {said}");
        assert_eq!(said.lines().count(), usize::from(!told.is_empty()), "{args:?} {place:?}: {said}");
        assert!(said.contains(told), "{args:?} {place:?}: {said}");
    }
}

#[test]
fn copies_stay_within_their_bound_and_what_is_purged_is_not_kept_there() {
    let folder = folder();
    let dir = folder.path();
    start(dir, 8000).end();
    ends(dir, "index r.hf --index drive --once", 0);
    let all = copies(dir);
    let bytes = |files: &[PathBuf]| files.iter().map(|file| file.metadata().unwrap().len()).sum::<u64>();
    // The youngest of as many as have room; those that were there before give way to them.
    let bound = bytes(&all[all.len() - 3..]) + 10;
    fs::remove_file(&all[all.len() - 2]).unwrap();
    let said = ends(dir, &format!("index r.hf --index drive --once --json --size {bound}"), 0).json();
    assert_eq!(copies(dir), all[all.len() - 3..]);
    assert_eq!(said["copied"].as_u64(), Some(1), "{said}");
    assert_eq!(said["left"].as_u64(), Some(all.len() as u64 - 3), "{said}");

    ends(dir, "index r.hf --index drive --once", 0);
    assert_eq!(copies(dir), all);
    // Under other names, to be seen when they are gone.
    let other_name = |file: &PathBuf| file.with_extension("seen");
    let name_all = |all: &[PathBuf]| all.iter().try_for_each(|file| fs::hard_link(file, other_name(file)));
    // What is left, and that of the others nothing is.
    let compare = |all: &[PathBuf], left: &[PathBuf]| {
        for file in all {
            let is_empty = fs::read(other_name(file)).unwrap().iter().all(|byte| *byte == 0);
            assert_eq!(is_empty, !left.contains(file), "{file:?}");
            fs::remove_file(other_name(file)).unwrap();
        }
    };
    name_all(&all).unwrap();
    ends(dir, "purge r.hf --ordinals 2000..3000 --reason test --index drive", 0);
    let left = copies(dir);
    assert!(left.len() < all.len() && left.iter().all(|file| all.contains(file)), "{left:?}");
    compare(&all, &left);
    // The oldest, which who keeps the copies finds gone; a link to what is no copy is not followed.
    name_all(&left).unwrap();
    fs::write(dir.join("mine"), "mine").unwrap();
    let link = left[0].parent().unwrap().join(format!("{:016x}", 1_u64 << 40));
    std::os::unix::fs::symlink(dir.join("mine"), &link).unwrap();
    ends(dir, "purge r.hf --ordinals 0..1500 --reason test", 0);
    let said = ends(dir, "index r.hf --index drive --once", 0);
    assert!(said.err.contains("could not be overwritten"), "{}", said.err);
    compare(&left, &copies(dir));
    assert!(!link.exists() && fs::read(dir.join("mine")).unwrap() == b"mine");
    let left = copies(dir);
    fs::remove_file(&left[0]).unwrap();
    let said = ends(dir, "index r.hf --index drive --once --json", 0).json();
    assert_eq!(said["left"].as_u64(), Some(0));
    assert_eq!(copies(dir).len(), left.len());
}

#[test]
fn it_goes_on_with_what_comes_and_alone() {
    let folder = folder();
    let dir = folder.path();
    let mut recording = start(dir, 2000);
    let mut follower =
        holdfast(dir).args(["index", "r.hf", "--index", "drive"]).stdout(Stdio::piped()).spawn().unwrap();
    let await_copies = |least: usize| {
        let started = Instant::now();
        while copies(dir).len() < least {
            assert!(started.elapsed() < PATIENCE, "{:?}", copies(dir));
            std::thread::yield_now();
        }
    };
    await_copies(1);
    let other = ends(dir, "index r.hf --index drive", 1);
    assert!(other.err.contains("another `holdfast index` keeps the copies of this ring"), "{}", other.err);
    let before = copies(dir).len();
    let more: String = (2000..6000).map(document).collect();
    recording.input.as_mut().unwrap().write_all(more.as_bytes()).unwrap();
    await_copies(before + 3);
    rustix::process::kill_process(rustix::process::Pid::from_child(&follower), rustix::process::Signal::TERM)
        .unwrap();
    assert!(follower.wait().unwrap().success());
    recording.end();
    let nowhere = ends(dir, "index r.hf", 2);
    assert!(nowhere.err.contains("--index PATH"), "{}", nowhere.err);
    fs::write(dir.join("file"), "").unwrap();
    let failed = ends(dir, "index r.hf --index file --once", 1);
    assert!(failed.err.contains("cannot keep copies"), "{}", failed.err);
}

/// A `holdfast index` at work, ended with its test.
struct Follower(Child);

impl Follower {
    fn start(dir: &Path, place: &str) -> Self {
        let mut command = holdfast(dir);
        command.args(["index", "r.hf", "--index", place]);
        Self(command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap())
    }

    fn end(mut self) {
        let pid = rustix::process::Pid::from_child(&self.0);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        assert!(self.0.wait().unwrap().success());
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn until(what: &str, is: impl Fn() -> bool) {
    let started = Instant::now();
    while !is() {
        assert!(started.elapsed() < PATIENCE, "{what}");
        std::thread::yield_now();
    }
}

#[test]
fn copies_that_are_lost_or_replaced_while_they_are_kept_are_made_again() {
    let folder = folder();
    let dir = folder.path();
    let recording = start(dir, 6000);
    ends(dir, "index r.hf --index drive --once", 0);
    let whole = |files: &[PathBuf]| -> Vec<Option<Vec<u8>>> {
        files.iter().map(|file| fs::read(file).ok()).collect()
    };
    let all = copies(dir);
    let wanted = whole(&all);
    assert!(all.len() > 5, "{all:?}");
    fs::remove_file(&all[0]).unwrap();
    let follower = Follower::start(dir, "drive");
    until("it does not begin", || whole(&all) == wanted);
    fs::rename(dir.join("drive"), dir.join("lost")).unwrap();
    until("the folder does not come back", || whole(&all) == wanted);
    // Others of the same name come in the place of those that it has made.
    let ring = all[0].parent().unwrap();
    let spoiled = dir.join("spoiled");
    fs::create_dir(&spoiled).unwrap();
    for file in &all {
        let mut bytes = fs::read(file).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        fs::write(spoiled.join(file.file_name().unwrap()), bytes).unwrap();
    }
    fs::rename(ring, dir.join("made")).unwrap();
    // It may be quicker.
    while fs::rename(&spoiled, ring).is_err() {
        let _ = fs::remove_dir_all(ring);
    }
    until("what was put in its place is taken for sound", || whole(&all) == wanted);
    follower.end();
    recording.end();
}

#[test]
fn copies_wait_for_their_drive_and_fill_no_other() {
    let folder = folder();
    let dir = folder.path();
    let Some(mount) = Mount::new("tmpfs", "size=64m") else { return };
    let recording = start(dir, 3000);
    let follower = {
        let mut follower = Follower::start(dir, mount.path().join("drive").to_str().unwrap());
        let number = || {
            let rings = fs::read_dir(mount.path().join("drive")).into_iter().flatten();
            let files = rings.flat_map(|ring| fs::read_dir(ring.unwrap().path()).into_iter().flatten());
            files.filter(|file| file.as_ref().unwrap().file_name().len() == 16).count()
        };
        until("nothing is copied", || number() > 2);
        let before = number();
        let mounted = |args: &[&str]| {
            assert!(Command::new(args[0]).args(&args[1..]).arg(mount.path()).status().unwrap().success());
        };
        mounted(&["umount", "-l"]);
        let mut said = String::new();
        BufReader::new(follower.0.stderr.as_mut().unwrap()).read_line(&mut said).unwrap();
        assert!(said.contains("its drive is not mounted"), "{said}");
        assert_eq!(fs::read_dir(mount.path()).unwrap().count(), 0, "another one is filled");
        // Another drive, with nothing on it.
        mounted(&["mount", "-t", "tmpfs", "none"]);
        until("nothing is copied to a drive that was replaced", || number() >= before);
        follower
    };
    follower.end();
    recording.end();
}

/// Whether no more was read of slots than what tells which ones they are.
fn is_heads(said: &str) -> bool {
    let read = figure(said, "bytes_read");
    let slots = figure(said, "slots_searched") + figure(said, "slots_pruned");
    // What is told is rounded.
    read > 0 && read <= slots * (16 << 10) * 1001 / 1000
}

/// What is asked of the ring with an index drive, read from nothing else but its heads.
fn is_answered_from(dir: &Path, drive: &str, wanted: &[String]) {
    for (question, wanted) in QUESTIONS.iter().zip(wanted) {
        assert_eq!(&ask(dir, question, &format!("--index {drive}")), wanted, "{question}");
    }
    let said = ask(dir, &format!("explain analyze {}", QUESTIONS[1]), &format!("--index {drive}"));
    assert!(is_heads(&said) && figure(&said, "bytes_read_index") > 0, "{said}");
}

/// Fills a device, spoils it, and lets it serve two rings.
fn serves_as_a_device(dir: &Path, drive: &str) {
    let wanted = QUESTIONS.map(|question| ask(dir, question, ""));
    let index = format!("index r.hf --index {drive} --once --json");
    let said = ends(dir, &index, 0).json();
    let slots = said["slots"].as_u64().unwrap();
    assert!(slots > 10 && said["copied"].as_u64() == Some(slots), "{said}");
    is_answered_from(dir, drive, &wanted);
    // Of another ring, with slots of the same numbers; neither disturbs the other.
    fs::rename(dir.join("r.hf"), dir.join("first.hf")).unwrap();
    start(dir, 3000).end();
    let others = QUESTIONS.map(|question| ask(dir, question, ""));
    assert_ne!(others, wanted);
    ends(dir, &index, 0);
    is_answered_from(dir, drive, &others);
    fs::rename(dir.join("r.hf"), dir.join("second.hf")).unwrap();
    fs::rename(dir.join("first.hf"), dir.join("r.hf")).unwrap();
    is_answered_from(dir, drive, &wanted);
    let said = ends(dir, &index, 0).json();
    assert_eq!((said["copied"].as_u64(), said["removed"].as_u64()), (Some(0), Some(0)), "{said}");
    // A block of the directory, and bytes of copies.
    let device = fs::File::options().write(true).open(dir.join(drive)).unwrap();
    for at in [4096, 700_000, 2_000_000] {
        std::os::unix::fs::FileExt::write_all_at(&device, &[0x5a; 100], at).unwrap();
    }
    for (question, wanted) in QUESTIONS.iter().zip(&wanted) {
        assert_eq!(&ask(dir, question, &format!("--index {drive}")), wanted, "{question}");
    }
    let said = ends(dir, &index, 0).json();
    assert!(said["slots"].as_u64() == Some(slots) && said["copied"].as_u64() > Some(0), "{said}");
    is_answered_from(dir, drive, &wanted);
}

#[test]
fn a_file_that_stands_for_a_device_serves_several_rings() {
    let folder = folder();
    let dir = folder.path();
    start(dir, 8000).end();
    let drive = fs::File::create(dir.join("device")).unwrap();
    drive.set_len(32 << 20).unwrap();
    serves_as_a_device(dir, "device");
    // What is on it is not lost by mistake, and nothing else is taken for it.
    let refused = ends(dir, "format device", 1);
    assert!(refused.err.contains("an index drive of Holdfast"), "{}", refused.err);
    fs::write(dir.join("notes"), vec![b'x'; 1 << 20]).unwrap();
    let refused = ends(dir, "index r.hf --index notes --once", 1);
    assert!(refused.err.contains("--force"), "{}", refused.err);
    assert!(fs::read(dir.join("notes")).unwrap().iter().all(|byte| *byte == b'x'));
    ends(dir, "index r.hf --index notes --once --force", 0);
}

#[test]
fn a_device_serves_as_an_index_drive() {
    let folder = folder();
    let dir = folder.path();
    let Some(device) = Loop::new(&dir.join("disk"), 32 << 20) else { return };
    start(dir, 8000).end();
    serves_as_a_device(dir, &device.0);
}

#[test]
fn the_oldest_give_way_where_a_device_has_no_room_for_all() {
    let folder = folder();
    let dir = folder.path();
    start(dir, 8000).end();
    let wanted = QUESTIONS.map(|question| ask(dir, question, ""));
    ends(dir, "index r.hf --index drive --once", 0);
    let all = copies(dir);
    let bytes: u64 = all.iter().map(|file| file.metadata().unwrap().len()).sum();
    fs::File::create(dir.join("device")).unwrap().set_len(bytes / 2).unwrap();
    let said = run(dir, "index r.hf --index device --once");
    assert!(said.code == Some(1) && said.err.contains("make room there"), "{:?} {}", said.code, said.err);
    let index = format!("index r.hf --index device --once --json --size {}", bytes / 4);
    let said = ends(dir, &index, 0).json();
    assert!(said["slots"].as_u64() > Some(2) && said["left"].as_u64() > Some(2), "{said}");
    for (question, wanted) in QUESTIONS.iter().zip(&wanted) {
        assert_eq!(&ask(dir, question, "--index device"), wanted, "{question}");
    }
}
