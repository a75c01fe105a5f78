//! Vaults: holds are evacuated to S3, HDFS and folders, streams archived, datasets scrubbed, repaired and queried where they lie.
#![allow(missing_docs, clippy::unwrap_used)]

#[path = "../../../vault/tests/it/servers.rs"]
pub(crate) mod servers;

use crate::common;

use common::recording::{PATIENCE, Recording};
use common::{Said, documented, ends, folder, holdfast, record, run};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use servers::{KEYS, Server, server};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

/// Writes the user's configuration file.
pub(crate) fn configure(dir: &Path, vaults: &[(&str, String)]) {
    let mut text = String::new();
    for (name, settings) in vaults {
        writeln!(text, "[vaults.{name}]\n{settings}").unwrap();
    }
    fs::create_dir_all(dir.join(".config/holdfast")).unwrap();
    fs::write(dir.join(".config/holdfast/config.toml"), text).unwrap();
}

/// Settings of a vault in the S3 server of a test, with its keys in a file.
pub(crate) fn in_s3(dir: &Path, server: &Server, url: &str) -> String {
    fs::create_dir(dir.join("s3/data/lab")).unwrap();
    let keys = dir.join("keys");
    fs::write(&keys, format!("aws_access_key_id = {}\naws_secret_access_key = {}\n", KEYS[0], KEYS[1]))
        .unwrap();
    fs::set_permissions(&keys, fs::Permissions::from_mode(0o600)).unwrap();
    let (port, keys) = (server.port, keys.display());
    format!("url = \"{url}\"\nendpoint = \"http://127.0.0.1:{port}\"\ncredentials = \"{keys}\"")
}

/// Records 20 000 JSON lines, and holds 7 000 of them.
pub(crate) fn held(dir: &Path) {
    let mut lines = String::new();
    for at in 0..20_000 {
        let level = ["info", "warn", "error"][at % 3];
        writeln!(
            lines,
            "{{\"n\": {at}, \"level\": \"{level}\", \"text\": \"request {} of web-{}\"}}",
            at / 7,
            at % 20
        )
        .unwrap();
    }
    fs::write(dir.join("in.jsonl"), lines).unwrap();
    let line = "r.hf --size 16MiB --slot 64KiB --source file:in.jsonl --name log --frame lines --attr n:int=json:n \
                --attr level:text=json:level";
    let said = record(dir, line, Stdio::null());
    assert_eq!(said.code, Some(0), "{}", said.err);
    ends(dir, "hold r.hf --stream log --ordinals 5000..12000 --reason outage_4711", 0);
}

/// Evacuates the hold to a vault, and compares what is read and queried there with the ring.
fn evacuated(dir: &Path, vault: &str) {
    let question = "select_level,_count(*)_c,_sum(n)_s_from_log_group_by_level_order_by_level";
    let all = ends(dir, &format!("query r.hf {question}"), 0).out;
    ends(dir, "read r.hf --ordinals 5000..12000 --format raw -o ring.raw", 0);
    let said = ends(dir, &format!("evacuate r.hf 1 --to {vault}:runs/run1.mcap --release --json"), 0).json();
    assert_eq!(
        (&said["elements"], &said["output"]),
        (&json!(7000), &json!(format!("{vault}:runs/run1.mcap")))
    );
    assert!(said["released_slots"].as_u64().unwrap() > 0, "{said}");
    let counted = ends(dir, &format!("query {vault}: select_count(*)_c,_min(ordinal)_a_from_log --json"), 0);
    assert_eq!(counted.json(), json!({"c": 7000, "a": 5000}));
    // One query spans ring and vault, and every element counts once.
    assert_eq!(ends(dir, &format!("query r.hf {vault}:runs/*.mcap {question}"), 0).out, all);
    ends(dir, &format!("read {vault}:runs/run1.mcap --format raw -o vault.raw"), 0);
    assert!(fs::read(dir.join("ring.raw")).unwrap() == fs::read(dir.join("vault.raw")).unwrap());
    let info = ends(dir, &format!("dataset info {vault}:runs/run1.mcap --json"), 0).json();
    assert_eq!(info["dataset"], said["dataset"]);
    ends(dir, &format!("dataset verify {vault}:runs/run1.mcap"), 0);
    let listed = ends(dir, &format!("vault ls {vault}:runs --json"), 0).json();
    documented("vault", [&listed]);
    assert_eq!((&listed["path"], &listed["bytes"]), (&json!("runs/run1.mcap"), &said["bytes"]));
    let taken = ends(dir, &format!("evacuate r.hf 1 --to {vault}:runs/run1.mcap"), 1).err;
    assert!(taken.contains("there is an object of that name"), "{taken}");
}

#[test]
fn a_hold_is_evacuated_to_s3_and_queried_there() {
    let folder = folder();
    let dir = folder.path();
    let Some(server) = server("s3", "bin/versitygw", &dir.join("s3")) else { return };
    configure(dir, &[("s3", in_s3(dir, &server, "s3://lab/holdfast"))]);
    documented(
        "vault",
        [&ends(dir, "vault list --json", 0).json(), &ends(dir, "vault check s3 --json", 0).json()],
    );
    held(dir);
    evacuated(dir, "s3");
    // The server keeps objects as files.
    let Some(python) = std::env::var_os("HOLDFAST_PYTHON").filter(|python| Path::new(python).is_file())
    else {
        eprintln!("HOLDFAST_PYTHON is unset: the package mcap does not look at the dataset");
        return;
    };
    let script = "
import json
from mcap.reader import make_reader
with open('s3/data/lab/holdfast/runs/run1.mcap', 'rb') as file:
    messages = make_reader(file, validate_crcs=True).iter_messages(topics=['log'])
    assert [json.loads(m.data)['n'] for s, c, m in messages] == list(range(5000, 12000))
";
    let said = Command::new(python).current_dir(dir).args(["-c", script]).output().unwrap();
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
}

#[test]
fn a_hold_is_evacuated_to_hdfs_and_queried_there() {
    let folder = folder();
    let dir = folder.path();
    let Some(server) = server("hdfs", "hdfs/hadoop-client-api-3.4.2.jar", &dir.join("hdfs")) else { return };
    configure(dir, &[("hdfs", format!("url = \"hdfs://127.0.0.1:{}/holdfast\"", server.port))]);
    held(dir);
    evacuated(dir, "hdfs");
}

/// Bytes of a camera's frame.
const FRAME: usize = 1 << 20;

#[test]
fn one_frame_of_a_dataset_in_s3_takes_three_requests() {
    let folder = folder();
    let dir = folder.path();
    let Some(server) = server("s3", "bin/versitygw", &dir.join("s3")) else { return };
    configure(dir, &[("s3", in_s3(dir, &server, "s3://lab"))]);
    // They do not compress.
    let mut state = 7_u64;
    let mut frames = vec![0; 64 * FRAME];
    for byte in &mut frames {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        *byte = (state >> 56) as u8;
    }
    fs::write(dir.join("frames"), &frames).unwrap();
    let line =
        format!("r.hf --size 128MiB --slot 4MiB --source file:frames --name camera --frame fixed:{FRAME}");
    let said = record(dir, &line, Stdio::null());
    assert_eq!(said.code, Some(0), "{}", said.err);
    ends(dir, "hold r.hf --stream camera --ordinals 0..64 --reason run", 0);
    ends(dir, "evacuate r.hf 1 --to s3:camera.mcap", 0);
    let requests = || fs::read_to_string(dir.join("s3/requests")).unwrap_or_default();
    let before = requests().lines().count();
    ends(dir, "read s3:camera.mcap --ordinals 40..41 --format raw -o frame", 0);
    assert!(fs::read(dir.join("frame")).unwrap() == frames[40 * FRAME..41 * FRAME]);
    let log = requests();
    let made: Vec<&str> = log.lines().skip(before).collect();
    assert!((1..=3).contains(&made.len()), "{made:#?}");
}

/// Ordinals of all datasets of an archive, with their number.
fn archived(dir: &Path, place: &str) -> BTreeMap<u64, usize> {
    let mut seen = BTreeMap::new();
    for entry in ends(dir, &format!("vault ls {place} --json"), 0).lines() {
        let path = entry["path"].as_str().unwrap();
        let (vault, _) = place.split_once(':').unwrap();
        let line = format!("query {vault}:{path} select_ordinal_from_log --json");
        for row in ends(dir, &line, 0).lines() {
            *seen.entry(row["ordinal"].as_u64().unwrap()).or_default() += 1;
        }
    }
    seen
}

#[test]
fn an_archive_that_is_killed_goes_on_without_gap_or_overlap() {
    let folder = folder();
    let dir = folder.path();
    fs::create_dir(dir.join("archive")).unwrap();
    configure(dir, &[("archive", format!("url = \"{}\"", dir.join("archive").display()))]);
    let mut recording = Recording::start(dir, "--size 64MiB --slot 64KiB");
    let line = ["archive", "r.hf", "--stream", "log", "--to", "archive:lab", "--roll", "100KiB", "--json"];
    let mut sent = 0;
    for round in 0..4 {
        let mut child = holdfast(dir)
            .args(line)
            .args(["--compress", "none"])
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        recording.lines(3000);
        sent += 3000;
        let mut told = BufReader::new(child.stdout.take().unwrap());
        // Killed behind one dataset or more, in the middle of the next.
        for _ in 0..=round % 2 {
            let mut text = String::new();
            told.read_line(&mut text).unwrap();
            documented("archive", [&serde_json::from_str(&text).unwrap()]);
        }
        kill_process(Pid::from_child(&child), Signal::KILL).unwrap();
        child.wait().unwrap();
    }
    recording.await_lines(dir, sent);
    assert_eq!(recording.end().0, Some(0));
    let said = ends(dir, "archive r.hf --to archive:lab --once", 0);
    assert!(said.out.contains("verified"), "{}", said.out);
    assert_eq!(ends(dir, "archive r.hf --to archive:lab --once", 0).out, "", "nothing is left");
    let seen = archived(dir, "archive:lab");
    assert_eq!(seen.len() as u64, sent);
    assert!(seen.values().all(|times| *times == 1) && *seen.last_key_value().unwrap().0 == sent - 1);
    let rest = fs::read_dir(dir.join("archive/.holdfast/uploads")).unwrap().count();
    assert_eq!(rest, 0, "uploads of killed processes are removed");
    fs::write(dir.join("in.txt"), "a line\n").unwrap();
    // Another ring does not go on where this one was.
    let said = record(dir, "o.hf --size 16MiB --source file:in.txt --name log --frame lines", Stdio::null());
    assert_eq!(said.code, Some(0), "{}", said.err);
    let said = ends(dir, "archive o.hf --to archive:lab --once", 1).err;
    assert!(said.contains("there are datasets of another ring") && said.contains("--to"), "{said}");
}

/// Bytes of all files of a vault, the unfinished ones too.
fn stored_bytes(vault: &Path) -> u64 {
    let folders = [vault.join("lab"), vault.join(".holdfast/uploads")];
    let files = folders.iter().flat_map(|folder| fs::read_dir(folder).into_iter().flatten());
    files.map(|file| file.unwrap().metadata().map_or(0, |found| found.len())).sum()
}

#[test]
fn an_archive_without_options_is_not_overtaken_by_the_ring() {
    let folder = folder();
    let dir = folder.path();
    let vault = dir.join("a");
    fs::create_dir(&vault).unwrap();
    configure(dir, &[("a", format!("url = \"{}\"", vault.display()))]);
    let mut recording = Recording::start(dir, "--size 16MiB --slot 64KiB");
    recording.lines(100);
    recording.await_lines(dir, 100);
    let mut archive = holdfast(dir);
    archive.args(["archive", "r.hf", "--to", "a:lab", "--compress", "none", "--json"]);
    let child = archive.stdout(Stdio::piped()).spawn().unwrap();
    // More than the ring twice over, and never more than an eighth of it at once.
    let mut sent = 100;
    for _ in 0..24 {
        recording.lines(3000);
        sent += 3000;
        let began = Instant::now();
        while stored_bytes(&vault) + (3 << 20) < sent * 490 {
            assert!(began.elapsed() < PATIENCE, "the archive does not go on");
        }
    }
    let published = fs::read_dir(vault.join("lab")).unwrap().count();
    assert!(published > 1, "{published}");
    recording.await_lines(dir, sent);
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let said: Said = child.wait_with_output().unwrap().into();
    assert_eq!(said.code, Some(0), "{}", said.out);
    assert!(said.lines().iter().all(|told| told["expired_ordinals"] == 0), "{}", said.out);
    recording.end();
    ends(dir, "archive r.hf --to a:lab --once", 0);
    let counted = ends(dir, "query a:lab/*.mcap select_count(*)_c,_max(ordinal)_m_from_log --json", 0).json();
    assert_eq!(counted, json!({"c": sent, "m": sent - 1}));
}

/// Unfinished upload of a vault that has a checkpoint.
fn with_checkpoint(vault: &Path) -> Option<PathBuf> {
    let uploads = fs::read_dir(vault.join(".holdfast/uploads")).into_iter().flatten();
    uploads
        .map(|upload| upload.unwrap().path())
        .find(|path| path.extension().is_some_and(|ending| ending == "kept"))
}

/// Recording whose archive was killed behind a checkpoint; the unfinished dataset, too.
fn killed_archive(dir: &Path) -> (Recording, PathBuf) {
    fs::create_dir(dir.join("a")).unwrap();
    configure(dir, &[("a", format!("url = \"{}\"", dir.join("a").display()))]);
    let mut recording = Recording::start(dir, "--size 16MiB --slot 64KiB");
    recording.lines(100);
    recording.await_lines(dir, 100);
    let mut archive = holdfast(dir);
    let mut child = archive.args(["archive", "r.hf", "--to", "a:lab"]).stdout(Stdio::null()).spawn().unwrap();
    // A quarter of the ring: a checkpoint, and no dataset yet.
    recording.lines(8_000);
    let began = Instant::now();
    let kept = loop {
        if let Some(kept) = with_checkpoint(&dir.join("a")) {
            break kept;
        }
        assert!(began.elapsed() < PATIENCE, "there is no checkpoint");
    };
    kill_process(Pid::from_child(&child), Signal::KILL).unwrap();
    child.wait().unwrap();
    (recording, kept)
}

#[test]
fn what_a_killed_archive_had_written_is_published_by_the_next() {
    let folder = folder();
    let dir = folder.path();
    let (mut recording, kept) = killed_archive(dir);
    // As after a reboot or in another container, and after a long time.
    let elsewhere = kept.with_file_name("elsewhere-1-1-0.kept");
    fs::rename(&kept, &elsewhere).unwrap();
    let file = fs::File::options().append(true).open(&elsewhere).unwrap();
    file.set_modified(SystemTime::now() - Duration::from_hours(40 * 24)).unwrap();
    // The ring is overtaken, and other commands write to the vault meanwhile.
    recording.lines(60_000);
    recording.await_lines(dir, 68_100);
    recording.end();
    ends(dir, "vault check a", 0);
    let all = ends(dir, "archive r.hf --to a:lab --once --json", 1).lines();
    let salvaged = &all[0];
    let count = |field: &str| salvaged[field].as_u64().unwrap();
    assert_eq!((count("first_ordinal"), count("expired_ordinals")), (0, 0), "{salvaged}");
    assert!(count("next_ordinal") > 0 && count("elements") == count("next_ordinal"), "{salvaged}");
    assert_eq!(all[1]["first_ordinal"], salvaged["next_ordinal"]);
    ends(dir, &format!("dataset verify {}", salvaged["output"].as_str().unwrap()), 0);
    let counted = ends(dir, "query a:lab/*.mcap select_count(*)_c,_min(ordinal)_m_from_log --json", 0).json();
    // An element that lost its beginning is there in part, and no query counts it.
    let lost = ["expired_ordinals", "partial", "damaged"];
    let lost = lost.iter().flat_map(|field| all.iter().filter_map(move |told| told[*field].as_u64()));
    assert_eq!(counted, json!({"c": 68_100 - lost.sum::<u64>(), "m": 0}));
    assert_eq!(fs::read_dir(dir.join("a/.holdfast/uploads")).unwrap().count(), 0);
}

#[test]
fn a_damaged_unfinished_dataset_is_kept_under_another_name() {
    let folder = folder();
    let dir = folder.path();
    let (mut recording, kept) = killed_archive(dir);
    // In the first record: no checkpoint can be found.
    let mut bytes = fs::read(&kept).unwrap();
    bytes[8] = 0;
    fs::write(&kept, &bytes).unwrap();
    recording.await_lines(dir, 8_100);
    recording.end();
    let said = ends(dir, "archive r.hf --to a:lab --once", 0);
    assert!(said.err.contains("is damaged") && said.err.contains(".damaged"), "{}", said.err);
    let counted = ends(dir, "query a:lab/*.mcap select_count(*)_c,_min(ordinal)_m_from_log --json", 0).json();
    assert_eq!(counted, json!({"c": 8_100, "m": 0}));
    let left: Vec<_> = fs::read_dir(dir.join("a/.holdfast/uploads")).unwrap().collect();
    assert_eq!((left.len(), fs::read(kept.with_extension("damaged")).unwrap()), (1, bytes));
    assert_eq!(ends(dir, "archive r.hf --to a:lab --once", 0).out, "");
}

#[test]
fn an_archive_takes_what_meets_a_condition_and_tells_what_expired() {
    let folder = folder();
    let dir = folder.path();
    held(dir);
    fs::create_dir(dir.join("a")).unwrap();
    configure(dir, &[("a", format!("url = \"{}\"", dir.join("a").display()))]);
    ends(dir, "archive r.hf --to a:errors --where level_=_'error' --once", 0);
    let counted =
        ends(dir, "query a:errors select_count(*)_c,_min(level)_l,_max(level)_m_from_log --json", 0).json();
    let wanted = ends(
        dir,
        "query r.hf select_count(*)_c,_min(level)_l,_max(level)_m_from_log_where_level_=_'error' --json",
        0,
    );
    assert_eq!(counted, wanted.json());
    assert_eq!(ends(dir, "archive r.hf --to a:errors --where level_=_'error' --once", 0).out, "");
    // A ring that has wrapped round.
    let mut lines = String::new();
    for at in 0..60_000 {
        writeln!(lines, "{at} {}", "x".repeat(500)).unwrap();
    }
    fs::write(dir.join("many"), lines).unwrap();
    let said = record(
        dir,
        "w.hf --size 16MiB --slot 64KiB --source file:many --name log --frame lines",
        Stdio::null(),
    );
    assert_eq!(said.code, Some(0), "{}", said.err);
    let said = ends(dir, "archive w.hf --to a:wrapped --once --json", 1);
    // The failure is the second object.
    let told = &said.lines()[0];
    let expired = told["expired_ordinals"].as_u64().unwrap();
    assert!(expired > 0 && said.err.contains("expired before they were read"), "{told} {}", said.err);
    let counted = |field: &str| told[field].as_u64().unwrap();
    assert_eq!(counted("elements") + counted("partial") + expired, 60_000, "{told}");
}

#[test]
fn a_flipped_byte_in_a_vault_is_named_and_repaired() {
    let folder = folder();
    let dir = folder.path();
    for name in ["a", "b"] {
        fs::create_dir(dir.join(name)).unwrap();
    }
    let url = |name: &str| format!("url = \"{}\"", dir.join(name).display());
    configure(dir, &[("a", url("a")), ("b", url("b"))]);
    held(dir);
    ends(dir, "evacuate r.hf 1 --to a:run1.mcap --compress none", 0);
    documented("vault", [&ends(dir, "vault sync a b --json", 0).json()]);
    let mut bytes = fs::read(dir.join("a/run1.mcap")).unwrap();
    let good = bytes.clone();
    let at = bytes.windows(9).position(|bytes| bytes == b"\"n\": 6000").unwrap();
    bytes[at + 5] ^= 1;
    fs::write(dir.join("a/run1.mcap"), &bytes).unwrap();
    for (line, code) in [
        ("dataset verify a:run1.mcap", 1),
        ("vault scrub a", 1),
        ("read a:run1.mcap --format raw -o bad.raw", 1),
    ] {
        let said = ends(dir, line, code);
        let told = said.out + &said.err;
        assert!(told.contains("a:run1.mcap") && told.contains("chunk 0 is damaged"), "{line}: {told}");
    }
    for (file, mode) in [("a/run1.mcap", 0o600), ("b/run1.mcap", 0o644)] {
        fs::set_permissions(dir.join(file), fs::Permissions::from_mode(mode)).unwrap();
    }
    let said = ends(dir, "vault scrub a --repair-from b --json", 0).json();
    documented("vault", [&said]);
    assert_eq!(said["damaged"][0]["repaired_from"], "run1.mcap");
    assert!(fs::read(dir.join("a/run1.mcap")).unwrap() == good);
    let mode = fs::metadata(dir.join("a/run1.mcap")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "a repaired object is no wider than it was");
    let said = ends(dir, "vault scrub a --rate 1GiB", 0).out;
    assert!(said.contains("1 dataset") && said.contains("0 damaged"), "{said}");
    let removed = ends(dir, "vault rm a:run1.mcap --json", 0).json();
    documented("vault", [&removed]);
    assert_eq!(ends(dir, "vault ls a", 3).out, "");
}

#[test]
fn wrong_vaults_are_refused_with_what_to_do() {
    let folder = folder();
    let dir = folder.path();
    configure(
        dir,
        &[
            ("gone", format!("url = \"{}\"", dir.join("gone").display())),
            ("odd", "url = \"ftp://x\"".to_owned()),
            (
                "far",
                "url = \"s3://lab\"\nendpoint = \"http://127.0.0.1:1\"\ncredentials = \"/nowhere\""
                    .to_owned(),
            ),
        ],
    );
    held(dir);
    for (line, code, wanted) in [
        ("evacuate r.hf 1 --to nowhere:x.mcap", 2, "[vaults.nowhere]"),
        ("evacuate r.hf 1 --to gone:x.mcap", 1, "does not exist"),
        ("vault check odd", 2, "s3://BUCKET/PREFIX"),
        ("vault check far", 1, "/nowhere"),
        ("query gone: select_1", 1, "cannot list the vault"),
        ("archive r.hf --to gone:../x --once", 2, "names"),
        ("archive r.hf --to gone:x --roll 0 --once", 2, "--roll"),
    ] {
        let said = ends(dir, line, code).err;
        assert!(said.contains(wanted), "{line}: {said}");
    }
    assert_eq!(run(dir, "holds r.hf --json").lines().len(), 1, "the hold is still there");
}

/// Bytes of the upload under way in the folder of a vault.
fn under_way(vault: &Path) -> Option<u64> {
    let found = fs::read_dir(vault.join(".holdfast/uploads")).ok()?.next()?.ok()?;
    Some(found.metadata().ok()?.len())
}

#[test]
fn a_pack_that_is_killed_shows_nothing() {
    let folder = folder();
    let dir = folder.path();
    let vault = dir.join("a");
    fs::create_dir(&vault).unwrap();
    configure(dir, &[("a", format!("url = \"{}\"", vault.display()))]);
    fs::create_dir(dir.join("run")).unwrap();
    for number in 0..300_u32 {
        let text: Vec<u8> =
            (0..20_000_u32).map(|at| ((at + number).wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        fs::write(dir.join(format!("run/{number}.bin")), text).unwrap();
    }
    let line = ["dataset", "pack", "run", "-o", "a:run.mcap", "--compress", "none"];
    for bytes in [0, 1, 2_000_000, 5_000_000] {
        let mut child = holdfast(dir).args(line).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        while child.try_wait().unwrap().is_none() && under_way(&vault).is_none_or(|so_far| so_far < bytes) {
            std::thread::yield_now();
        }
        let _ = child.kill();
        let _ = child.wait().unwrap();
        if vault.join("run.mcap").exists() {
            // It was quicker.
            break;
        }
    }
    if !vault.join("run.mcap").exists() {
        ends(dir, &line.join(" "), 0);
        assert_eq!(under_way(&vault), None, "uploads of killed processes are removed");
    }
    ends(dir, "dataset unpack a:run.mcap again", 0);
    for number in 0..300 {
        let read = |folder: &str| fs::read(dir.join(format!("{folder}/{number}.bin"))).unwrap();
        assert!(read("run") == read("again"), "{number}");
    }
}

#[test]
fn an_evacuation_that_is_killed_releases_nothing_and_shows_nothing() {
    let folder = folder();
    let dir = folder.path();
    let vault = dir.join("a");
    fs::create_dir(&vault).unwrap();
    configure(dir, &[("a", format!("url = \"{}\"", vault.display()))]);
    held(dir);
    let line = ["evacuate", "r.hf", "1", "--to", "a:run1.mcap", "--compress", "none", "--release"];
    // Killed as soon as so much of the dataset is written.
    for bytes in [0, 1, 200_000, 400_000, 500_000] {
        let mut child = holdfast(dir).args(line).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        while child.try_wait().unwrap().is_none() && under_way(&vault).is_none_or(|so_far| so_far < bytes) {
            std::thread::yield_now();
        }
        let _ = child.kill();
        let ended = child.wait().unwrap().success();
        let holds = run(dir, "holds r.hf --json").lines().len();
        let is_shown = vault.join("run1.mcap").exists();
        // It may have been quicker.
        assert!(holds == 1 || is_shown, "released, and nothing is in the vault");
        if is_shown {
            ends(dir, "dataset verify a:run1.mcap", 0);
        }
        if ended || is_shown {
            return;
        }
    }
    ends(dir, &line.join(" "), 0);
    ends(dir, "dataset verify a:run1.mcap", 0);
    assert_eq!(under_way(&vault), None, "uploads of killed processes are removed");
}
