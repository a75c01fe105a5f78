//! A hold becomes a dataset outside the ring: verified, released, read and queried where it lies, and opened by MCAP tools.
#![allow(missing_docs, clippy::unwrap_used)]

use crate::common;

use common::{documented, ends, folder, record, run};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// Records lines with attributes, and holds the middle of them.
fn held(dir: &Path) {
    let mut lines = String::new();
    for at in 0..20_000 {
        let level = ["info", "warn", "error"][at % 3];
        let text = format!("the {level} of request {} on host web-{}", at / 7, at % 20).repeat(3);
        writeln!(lines, "{{\"n\": {at}, \"level\": \"{level}\", \"text\": \"{text}\"}}").unwrap();
    }
    fs::write(dir.join("in.jsonl"), lines).unwrap();
    let said = record(
        dir,
        "r.hf --size 16MiB --slot 64KiB --source file:in.jsonl --name log --frame lines --attr n:int=json:n \
         --attr level:text=json:level",
        Stdio::null(),
    );
    assert_eq!(said.code, Some(0), "{}", said.err);
    ends(dir, "hold r.hf --stream log --ordinals 5000..12000 --reason outage_4711", 0);
}

#[test]
fn a_hold_becomes_a_dataset_that_is_read_and_queried_like_the_ring() {
    let folder = folder();
    let dir = folder.path();
    held(dir);
    let exports = ["raw", "mcap", "jsonl"];
    for format in exports {
        ends(dir, &format!("read r.hf --ordinals 5000..12000 --format {format} -o ring.{format}"), 0);
    }
    let question = "select_level,_count(*)_c,_sum(n)_s_from_log_group_by_level_order_by_level";
    let all = ends(dir, &format!("query r.hf {question}"), 0).out;

    let said = ends(dir, "evacuate r.hf 1 --to run1.mcap --release --json", 0).json();
    documented("evacuate", [&said]);
    assert_eq!(said["elements"], 7000);
    assert!(said["released_slots"].as_u64().unwrap() > 0, "{said}");
    assert!(said["bytes"].as_u64().unwrap() < said["payload_bytes"].as_u64().unwrap() / 2, "{said}");
    assert_eq!(run(dir, "holds r.hf --json").lines(), Vec::<serde_json::Value>::new());

    // The dataset exports the same bytes as the ring.
    for format in exports {
        ends(dir, &format!("read run1.mcap --format {format} -o dataset.{format}"), 0);
        let (ring, dataset) =
            (fs::read(dir.join(format!("ring.{format}"))), fs::read(dir.join(format!("dataset.{format}"))));
        assert!(ring.unwrap() == dataset.unwrap(), "{format}");
    }
    // Reduced forms are the same of both.
    for (less, lines) in [("--every 10", 700), ("--bytes 0..6", 7000), ("--every 7 --bytes 2..5", 1000)] {
        ends(dir, &format!("read r.hf --ordinals 5000..12000 {less} --format jsonl -o ring.less --force"), 0);
        ends(dir, &format!("read run1.mcap {less} --format jsonl -o dataset.less --force"), 0);
        let (ring, dataset) = (fs::read(dir.join("ring.less")), fs::read(dir.join("dataset.less")));
        let (ring, dataset) = (ring.unwrap(), dataset.unwrap());
        assert!(ring == dataset, "{less}");
        assert_eq!(ring.split(|byte| *byte == b'\n').count(), lines + 1, "{less}");
    }
    let part = ends(dir, "read run1.mcap --bytes 0..6 --ordinals 6000..6002 --format raw -o -", 0);
    assert_eq!(part.bytes, b"{\"n\": \n{\"n\": \n");
    ends(dir, "read run1.mcap --bytes 6..6 --format raw -o x", 2);
    // One query spans both, and every element counts once.
    assert_eq!(ends(dir, &format!("query r.hf run1.mcap {question}"), 0).out, all);
    let counted =
        ends(dir, "query run1.mcap select_count(*)_c,_min(ordinal)_a,_max(ordinal)_z_from_log --json", 0);
    assert_eq!(counted.json(), serde_json::json!({"c": 7000, "a": 5000, "z": 11999}));

    let info = ends(dir, "dataset info run1.mcap --json", 0).json();
    // docs/dataset.md describes the manifest.
    let mut brief = info.clone();
    brief["manifest"] = serde_json::json!({});
    documented("dataset", [&brief]);
    assert_eq!(info["dataset"], said["dataset"]);
    assert_eq!(info["manifest"]["provenance"]["reason"], "outage 4711");
    assert!(
        ends(dir, "dataset info run1.mcap", 0).out.contains("hold 1 of ring \"r\", by tester: outage 4711")
    );
    let verified = ends(dir, "dataset verify run1.mcap --json", 0).json();
    documented("dataset", [&verified]);
    assert_eq!(verified["damaged"], serde_json::json!([]));

    python_reads(dir);
}

/// The Python package reads every message, and checks all checksums.
fn python_reads(dir: &Path) {
    let Some(python) = std::env::var_os("HOLDFAST_PYTHON").filter(|python| Path::new(python).is_file())
    else {
        eprintln!("HOLDFAST_PYTHON is unset: the package mcap does not look at the dataset");
        return;
    };
    let script = "
import json
from mcap.reader import make_reader
with open('run1.mcap', 'rb') as file:
    reader = make_reader(file, validate_crcs=True)
    seen = [json.loads(m.data)['n'] for s, c, m in reader.iter_messages(topics=['log'])]
    assert seen == list(range(5000, 12000)), len(seen)
    names = [a.name for a in reader.iter_attachments()]
    assert names == ['holdfast/index/log.0.parquet', 'holdfast/manifest.json'], names
";
    let said = Command::new(python).current_dir(dir).args(["-c", script]).output().unwrap();
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
}

#[test]
fn damage_in_a_dataset_is_named_and_never_read() {
    let folder = folder();
    let dir = folder.path();
    held(dir);
    ends(dir, "evacuate r.hf 1 --to run1.mcap --compress none", 0);
    let mut bytes = fs::read(dir.join("run1.mcap")).unwrap();
    let at = bytes.windows(9).position(|bytes| bytes == b"\"n\": 6000").unwrap();
    bytes[at + 5] ^= 1;
    fs::write(dir.join("bad.mcap"), &bytes).unwrap();
    let said = ends(dir, "dataset verify bad.mcap", 1);
    assert!(
        said.out.contains("bad.mcap: chunk 0 is damaged: its bytes do not have its BLAKE3"),
        "{}",
        said.out
    );
    for line in ["read bad.mcap --format raw -o bad.txt", "query bad.mcap select_max(payload)_from_log"] {
        let said = ends(dir, line, 1);
        assert!(said.err.contains("chunk 0 is damaged"), "{line}: {}", said.err);
    }
    assert!(!dir.join("bad.txt").exists());
    // Queries that do not need the chunk are answered.
    ends(dir, "query bad.mcap select_count(*)_from_log_where_n_>_6000", 0);
    // Cut anywhere, it is no dataset, and says so.
    for length in [0, 7, 8, 100, bytes.len() / 2, bytes.len() - 1] {
        fs::write(dir.join("cut.mcap"), &bytes[..length]).unwrap();
        let said = run(dir, "dataset verify cut.mcap");
        assert_eq!(said.code, Some(1), "{length}: {}", said.out);
        assert!(said.err.contains("not a complete MCAP file"), "{length}: {}", said.err);
    }
}

#[test]
fn a_hold_that_may_get_more_is_not_released() {
    let folder = folder();
    let dir = folder.path();
    held(dir);
    let line = "hold r.hf --stream log --where level_=_'error' --standing --quota 50% --reason errors";
    let mut evaluator = common::evaluating::Evaluator::start(dir, line);
    evaluator.next();
    let said = ends(dir, "evacuate r.hf 2 --to errors.mcap --release", 1);
    assert!(said.err.contains("hold 2 was not released: it stands"), "{}", said.err);
    evaluator.kill();
    assert_eq!(ends(dir, "holds r.hf --json", 0).lines().len(), 2);
    ends(dir, "dataset verify errors.mcap", 0);
}

#[test]
fn an_evacuation_that_cannot_be_done_changes_nothing() {
    let folder = folder();
    let dir = folder.path();
    held(dir);
    fs::write(dir.join("there.mcap"), "mine").unwrap();
    for (line, code, words) in [
        ("evacuate r.hf 1 --to there.mcap --release", 1, "there.mcap"),
        ("evacuate r.hf 2 --to run.mcap", 3, "there is no hold 2"),
        ("evacuate r.hf 1 --to missing/run.mcap --release", 1, "missing"),
        ("evacuate r.hf 1 --to run.mcap --compress zip", 2, "zstd:LEVEL"),
        ("evacuate r.hf 1 --to /dev/full --release", 1, "full"),
        ("query r.hf r.hf select_1", 2, "one ring at most"),
    ] {
        let said = ends(dir, line, code);
        assert!(said.err.contains(words), "{line}: {}", said.err);
    }
    assert_eq!(fs::read(dir.join("there.mcap")).unwrap(), b"mine");
    assert!(!dir.join("run.mcap").exists());
    assert_eq!(ends(dir, "holds r.hf --json", 0).lines().len(), 1);
}

#[test]
fn a_cut_dataset_is_recovered_up_to_its_last_whole_chunk() {
    let folder = folder();
    let dir = folder.path();
    held(dir);
    ends(dir, "evacuate r.hf 1 --to run1.mcap", 0);
    let bytes = fs::read(dir.join("run1.mcap")).unwrap();
    let info = ends(dir, "dataset info run1.mcap --json", 0).json();
    let chunks = info["manifest"]["chunks"].as_array().unwrap();
    let end = |at: usize| chunks[at]["offset"].as_u64().unwrap() + chunks[at]["length"].as_u64().unwrap();
    assert!(chunks.len() > 3);
    fs::write(dir.join("cut.mcap"), &bytes[..end(2) as usize - 1]).unwrap();
    let said = ends(dir, "dataset recover cut.mcap -o saved.mcap --json", 0).json();
    documented("dataset", [&said]);
    assert_eq!((&said["chunks"], &said["dataset"]), (&2.into(), &serde_json::Value::Null));
    let said = run(dir, "dataset recover cut.mcap -o again.mcap");
    assert!(
        said.out.contains("a plain MCAP file") && said.err.contains("is cut off"),
        "{}{}",
        said.out,
        said.err
    );
    // Behind the manifest the whole dataset comes back.
    fs::write(dir.join("tail.mcap"), &bytes[..bytes.len() - 50]).unwrap();
    let said = ends(dir, "dataset recover tail.mcap -o whole.mcap --json", 0).json();
    assert_eq!(said["dataset"], info["dataset"]);
    assert!(fs::read(dir.join("whole.mcap")).unwrap() == bytes);
    for (length, words) in [(end(0) as usize - 1, "no chunk of the file is whole"), (3, "MCAP magic")] {
        fs::write(dir.join("short.mcap"), &bytes[..length]).unwrap();
        let said = ends(dir, "dataset recover short.mcap -o none.mcap", 1);
        assert!(said.err.contains(words) && !dir.join("none.mcap").exists(), "{}", said.err);
    }
    let Some(python) = std::env::var_os("HOLDFAST_PYTHON").filter(|python| Path::new(python).is_file())
    else {
        eprintln!("HOLDFAST_PYTHON is unset: the package mcap does not look at the recovered file");
        return;
    };
    let script = "
import json
from mcap.reader import make_reader
with open('saved.mcap', 'rb') as file:
    reader = make_reader(file, validate_crcs=True)
    seen = [json.loads(m.data)['n'] for s, c, m in reader.iter_messages(topics=['log'])]
    assert seen == list(range(5000, 5000 + len(seen))) and len(seen) > 100, len(seen)
    assert reader.get_summary().statistics.message_count == len(seen)
";
    let said = Command::new(python).current_dir(dir).args(["-c", script]).output().unwrap();
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
}
