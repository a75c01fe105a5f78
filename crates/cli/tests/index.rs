//! An index drive: what is kept there of a ring, and that searches find the same with it, and read the ring less (promise 5).
#![allow(missing_docs, clippy::unwrap_used)]

mod common;
#[path = "common/figures.rs"]
mod figures;
#[path = "common/recording.rs"]
mod recording;

use common::{documented, ends, folder, holdfast};
use figures::figure;
use recording::{PATIENCE, Recording};
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
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
    start(dir, 8000).end();
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
    assert!(figure(&with, "bytes_read") == 0 && figure(&with, "bytes_read_index") > 0, "{with}");
    let config = dir.join("config.toml");
    let text = |name: &str| dir.join(name).display().to_string();
    fs::write(&config, format!("[rings.lab]\npath = \"{}\"\nindex = \"{}\"", text("r.hf"), text("drive")))
        .unwrap();
    let question = format!("explain analyze {}", QUESTIONS[1]);
    let named =
        holdfast(dir).env("HOLDFAST_CONFIG", &config).args(["query", "lab", &question]).output().unwrap();
    assert_eq!(figure(&String::from_utf8_lossy(&named.stdout), "bytes_read"), 0, "{named:?}");

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
    ends(dir, "purge r.hf --ordinals 2000..3000 --reason test --index drive", 0);
    let left = copies(dir);
    assert!(left.len() < all.len() && left.iter().all(|file| all.contains(file)), "{left:?}");
    let said = ends(dir, "index r.hf --index drive --once --json", 0).json();
    assert_eq!(said["left"].as_u64(), Some(0));
    assert!(copies(dir).len() > left.len());
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
    assert!(nowhere.err.contains("--index DIR"), "{}", nowhere.err);
    fs::write(dir.join("file"), "").unwrap();
    let failed = ends(dir, "index r.hf --index file --once", 1);
    assert!(failed.err.contains("cannot keep copies"), "{}", failed.err);
}
