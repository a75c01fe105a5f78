//! A folder becomes a dataset and comes back: many small files and frame series, one file read, damage named.
#![allow(missing_docs, clippy::unwrap_used)]

use crate::common;

use common::{documented, ends, folder, holdfast, tool};
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::Command;

/// Name without a number: a series is not found among such.
fn name(at: usize) -> String {
    at.to_string().bytes().map(|digit| char::from(digit - b'0' + b'a')).collect()
}

/// Small files in folders of a hundred, and three series of frames.
fn tree(dir: &Path, files: usize) {
    for at in 0..files {
        let below = dir.join(format!("notes/{:03}", at / 100));
        if at % 100 == 0 {
            fs::create_dir_all(&below).unwrap();
        }
        fs::write(below.join(name(at)), format!("note {at}\n").repeat(at % 50)).unwrap();
    }
    for camera in 0..3u8 {
        let below = dir.join(format!("cam{camera}"));
        fs::create_dir_all(&below).unwrap();
        for frame in 0..20u8 {
            let pixels = (0..64 * 48u16).map(|at| (at % 251) as u8 ^ frame ^ (camera << 6));
            let bytes = b"P5\n64 48\n255\n".iter().copied().chain(pixels).collect::<Vec<u8>>();
            fs::write(below.join(format!("frame_{frame:06}.pgm")), bytes).unwrap();
        }
    }
}

/// The same names, modes, times and contents.
fn assert_same(before: &Path, after: &Path) -> usize {
    let (old, new) = (fs::metadata(before).unwrap(), fs::metadata(after).unwrap());
    let state = |of: &fs::Metadata| (of.mode(), of.mtime(), of.mtime_nsec());
    assert_eq!(state(&old), state(&new), "{}", before.display());
    if old.is_file() {
        assert!(fs::read(before).unwrap() == fs::read(after).unwrap(), "{}", before.display());
        return 1;
    }
    let names = |dir: &Path| {
        let mut names: Vec<_> = fs::read_dir(dir).unwrap().map(|item| item.unwrap().file_name()).collect();
        names.sort();
        names
    };
    assert_eq!(names(before), names(after));
    names(before).iter().map(|name| assert_same(&before.join(name), &after.join(name))).sum()
}

#[test]
fn a_folder_of_small_files_and_frame_series_packs_and_unpacks_identically() {
    let folder = folder();
    let dir = folder.path();
    tree(&dir.join("in"), 5000);
    let said = ends(dir, "dataset pack in -o packed.mcap --plain-images --json", 0).json();
    documented("dataset", [&said]);
    assert_eq!((&said["files"], &said["series"], &said["left_out"]), (&5060.into(), &3.into(), &0.into()));
    let info = ends(dir, "dataset info packed.mcap --json", 0).json();
    assert_eq!(info["dataset"], said["dataset"]);
    assert!(ends(dir, "dataset info packed.mcap", 0).out.contains("060 files, "));
    assert_eq!(ends(dir, "dataset verify packed.mcap --json", 0).json()["damaged"], serde_json::json!([]));

    let one = ends(dir, "dataset cat packed.mcap notes/012/bcde", 0);
    assert_eq!(one.bytes, fs::read(dir.join("in/notes/012/bcde")).unwrap());
    let args = ["dataset", "cat", "packed.mcap", "cam1/frame_000007.pgm"];
    let frame = holdfast(dir).args(args).output().unwrap();
    assert_eq!(frame.stdout, fs::read(dir.join("in/cam1/frame_000007.pgm")).unwrap());

    let said = ends(dir, "dataset unpack packed.mcap out --json", 0).json();
    documented("dataset", [&said]);
    assert_eq!(assert_same(&dir.join("in"), &dir.join("out")), 5060);
    python_reads(dir);
}

/// The Python package reads all messages and series, and checks all checksums.
fn python_reads(dir: &Path) {
    let Some(python) = std::env::var_os("HOLDFAST_PYTHON").filter(|python| Path::new(python).is_file())
    else {
        eprintln!("HOLDFAST_PYTHON is unset: the package mcap does not look at the packed folder");
        return;
    };
    let script = "
from mcap.reader import make_reader
with open('packed.mcap', 'rb') as file:
    reader = make_reader(file, validate_crcs=True)
    topics = sorted(c.topic for c in reader.get_summary().channels.values())
    assert topics == ['cam0/frame_*.pgm', 'cam1/frame_*.pgm', 'cam2/frame_*.pgm', 'files'], topics
    frames = [m for s, c, m in reader.iter_messages(topics=['cam1/frame_*.pgm'])]
    frame = next(m for m in frames if m.sequence == 7)
    assert frame.data == open('in/cam1/frame_000007.pgm', 'rb').read()
    names = [a.name for a in reader.iter_attachments()]
    assert names == ['holdfast/tree/0.parquet', 'holdfast/manifest.json'], names
";
    let said = Command::new(python).current_dir(dir).args(["-c", script]).output().unwrap();
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
}

#[test]
fn packing_refusals_are_clear_and_leave_nothing() {
    let folder = folder();
    let dir = folder.path();
    tree(&dir.join("in"), 200);
    fs::write(dir.join("there.mcap"), "mine").unwrap();
    ends(dir, "dataset pack in -o packed.mcap --compress lz4", 0);
    for (line, code, words) in [
        ("dataset pack in -o there.mcap", 1, "there is a file of that name"),
        ("dataset pack none -o q.mcap", 1, "none"),
        ("dataset pack there.mcap -o q.mcap", 2, "this is no folder"),
        ("dataset pack in -o missing/q.mcap", 1, "missing"),
        ("dataset pack in -o q.mcap --series [", 2, "--series"),
        ("dataset pack in -o q.mcap --compress zip", 2, "zstd:LEVEL"),
        ("dataset pack in", 2, "--output"),
        ("dataset unpack packed.mcap in", 1, "not empty"),
        ("dataset unpack there.mcap q", 1, "not a complete MCAP file"),
        ("dataset cat packed.mcap notes", 1, "`notes` is a directory"),
        ("dataset cat packed.mcap nothing", 3, "has no file `nothing`"),
    ] {
        let said = ends(dir, line, code);
        assert!(said.err.contains(words), "{line}: {}", said.err);
    }
    assert_eq!(fs::read(dir.join("there.mcap")).unwrap(), b"mine");
    let mut names: Vec<_> = fs::read_dir(dir).unwrap().map(|item| item.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["in", "packed.mcap", "there.mcap"]);

    // Damage in a chunk costs the files in it, and nothing else.
    let mut bytes = fs::read(dir.join("packed.mcap")).unwrap();
    let place = bytes.len() / 4;
    bytes[place] ^= 4;
    fs::write(dir.join("damaged.mcap"), bytes).unwrap();
    let said = ends(dir, "dataset verify damaged.mcap --json", 1);
    let damaged = said.lines()[0]["damaged"].as_array().unwrap().clone();
    assert!(damaged.len() > 1 && damaged[0]["place"].as_str().unwrap().starts_with("chunk "), "{damaged:?}");
    let said = ends(dir, "dataset unpack damaged.mcap out --json", 1);
    let lost = said.lines()[0]["damaged_files"].as_u64().unwrap();
    // Files that share contents are one finding.
    assert!(lost as usize >= damaged.len() - 1);
}

#[test]
fn a_named_pipe_is_reported_and_left_out() {
    let folder = folder();
    let dir = folder.path();
    tree(&dir.join("in"), 10);
    let Some(mkfifo) = tool("mkfifo") else { return };
    assert!(Command::new(mkfifo).arg(dir.join("in/pipe")).status().unwrap().success());
    let said = ends(dir, "dataset pack in -o packed.mcap", 1);
    assert!(
        said.err.contains("pipe: it is a named pipe") && said.err.contains("left out: 1"),
        "{}",
        said.err
    );
    ends(dir, "dataset verify packed.mcap", 0);
    fs::remove_file(dir.join("in/pipe")).unwrap();
}
