//! The recipes of docs/search.md, each given to the real program as it stands there, on a ring with the streams that they
//! speak of. What those of radio astronomy find is what a look at every frame finds; frames are those of a real file of
//! `$HOLDFAST_TEST_DATA`, or such as are made.
#![allow(missing_docs, clippy::unwrap_used)]

mod common;
#[path = "common/made.rs"]
mod made;

use common::{folder, holdfast, record};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::Stdio;

/// A capture file with a SYN from 10.1.2.4 to 10.1.2.3.
fn capture() -> Vec<u8> {
    let ip = b"E\0\0\x28\0\0\0\0\x40\x06\0\0\x0a\x01\x02\x04\x0a\x01\x02\x03";
    let tcp = b"\x12\x34\0\x50\0\0\0\x01\0\0\0\0\x50\x02\x20\0\0\0\0\0";
    let packet = [&b"\x02\0\0\0\0\x02\x02\0\0\0\0\x01\x08\0"[..], ip, tcp].concat();
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65535, 1] {
        file.extend(word.to_le_bytes());
    }
    for word in [1_795_169_100, 0, packet.len() as u32, packet.len() as u32] {
        file.extend(word.to_le_bytes());
    }
    file.extend(packet);
    file
}

/// Bytes of a VDIF frame.
const FRAME: usize = 5032;
/// Seconds of frames.
const SECONDS: u32 = 4;

/// What the header of a frame says: its thread, its second and its number in that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Header {
    thread: u32,
    second: u32,
    number: u32,
}

impl Header {
    fn of(frame: &[u8]) -> Self {
        let word = |place: usize| u32::from_le_bytes(frame[place..place + 4].try_into().unwrap());
        Self { thread: word(12) >> 16 & 0x3ff, second: word(0) & 0x3fff_ffff, number: word(4) & 0xff_ffff }
    }
}

/// Frames of some seconds, made of those of one. Missing are the last of a second with the first of the next, a whole second, and one in the
/// middle.
fn vdif() -> (Vec<u8>, BTreeSet<Header>) {
    let real = std::env::var_os("HOLDFAST_TEST_DATA").map(|data| Path::new(&data).join("vlbi/sample.vdif"));
    let file = real.and_then(|path| fs::read(path).ok()).unwrap_or_else(made::vdif);
    let rate = file.chunks_exact(FRAME).map(|frame| Header::of(frame).number + 1).max().unwrap();
    let (mut frames, mut left) = (Vec::new(), BTreeSet::new());
    for second in 0..SECONDS {
        for frame in file.chunks_exact(FRAME) {
            let Header { thread, number, .. } = Header::of(frame);
            let lost = match second {
                0 => thread % 3 == 0 && number + 1 == rate,
                1 => thread % 3 == 0 && number == 0 || thread % 3 == 1,
                2 => thread % 3 == 2 && number == rate / 2,
                _ => false,
            };
            if lost {
                continue;
            }
            let mut frame = frame.to_vec();
            let first = u32::from_le_bytes(frame[..4].try_into().unwrap()) + second;
            frame[..4].copy_from_slice(&first.to_le_bytes());
            left.insert(Header::of(&frame));
            frames.extend(frame);
        }
    }
    (frames, left)
}

/// Heaps of four packets of 1000 bytes; of every third one a packet is missing, of every fifth one another.
fn spead() -> (Vec<u8>, BTreeMap<u64, u64>) {
    let (mut packets, mut came) = (Vec::new(), BTreeMap::new());
    for heap in 1..40_u64 {
        for part in (0..4).filter(|part| !(heap % 3 == 0 && *part == 1 || heap % 5 == 0 && *part == 3)) {
            let items: [(u64, u64); 4] = [(1, heap), (2, 4000), (3, part * 1000), (4, 1000)];
            let mut packet = vec![0x53, 4, 2, 6, 0, 0, 0, 4];
            packet.extend(
                items.iter().flat_map(|(item, value)| (1_u64 << 63 | item << 48 | value).to_be_bytes()),
            );
            packet.extend([heap as u8; 1000]);
            packets.extend((packet.len() as u32).to_le_bytes());
            packets.extend(packet);
            *came.entry(heap).or_default() += 1000;
        }
    }
    (packets, came)
}

fn ring(dir: &Path) {
    fs::write(dir.join("eth0.pcap"), capture()).unwrap();
    fs::write(dir.join("vdif"), vdif().0).unwrap();
    fs::write(dir.join("spead"), spead().0).unwrap();
    fs::write(dir.join("trigger"), "{\"snr\": 13.5}\n{\"snr\": 2}\n").unwrap();
    fs::write(dir.join("imu"), "{\"a\": {\"x\": 31.0, \"y\": 0.5, \"z\": -9.8}}\n").unwrap();
    let line = "lab.hf --size 32MiB --slot 256KiB --source replay:eth0.pcap --name eth0 --speed max \
                --source file:vdif --name vdif --frame fixed:5032 --attr vdif \
                --source file:spead --name spead --frame len32 --attr spead \
                --source file:trigger --name trigger --frame lines --attr snr:float=json:snr \
                --source file:imu --name imu --frame lines \
                --attr ax:float=json:a.x --attr ay:float=json:a.y --attr az:float=json:a.z";
    let said = record(dir, line, Stdio::null());
    assert_eq!(said.code, Some(0), "{}", said.err);
}

/// The commands of the recipes, as a shell takes them.
fn commands() -> Vec<Vec<String>> {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/search.md");
    let text = fs::read_to_string(docs).unwrap();
    let recipes = &text[text.find("\n## Recipes").unwrap()..];
    let code = recipes.lines().filter(|line| line.starts_with("       "));
    let code = code.collect::<Vec<_>>().join("\n").replace("\\\n", " ");
    let mut commands: Vec<Vec<String>> = Vec::new();
    for command in code.split("holdfast ").skip(1) {
        let (mut words, mut quoted) = (vec![String::new()], false);
        for c in command.trim().chars() {
            match c {
                '"' => quoted = !quoted,
                ' ' | '\n' if !quoted => words.push(String::new()),
                c => words.last_mut().unwrap().push(c),
            }
        }
        words.retain(|word| !word.is_empty());
        commands.push(words);
    }
    commands
}

/// Runs a recipe as it stands there. One that goes on for ever says first what it holds, and is interrupted then.
fn ends(dir: &Path, words: &[String]) -> Option<i32> {
    if !words.iter().any(|word| word == "--standing") {
        let output = holdfast(dir).args(words).output().unwrap();
        let (code, said) = (output.status.code(), String::from_utf8_lossy(&output.stderr));
        assert!(matches!(code, Some(0 | 3)), "{words:?}: {code:?} {said}");
        return code;
    }
    let mut child = holdfast(dir).args(words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut held = String::new();
    out.read_line(&mut held).unwrap();
    let mut said = String::new();
    if held.starts_with("hold ") {
        rustix::process::kill_process(rustix::process::Pid::from_child(&child), rustix::process::Signal::INT)
            .unwrap();
        out.read_to_string(&mut said).unwrap();
    }
    let output = child.wait_with_output().unwrap();
    let told = format!("{words:?}: {held}{said}{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{told}");
    assert!(said.contains("goes on with it"), "{told}");
    Some(if held.contains(" found, ") || words.iter().any(|word| word == "--sample") { 0 } else { 3 })
}

#[test]
fn every_recipe_is_understood() {
    let folder = folder();
    let dir = folder.path();
    ring(dir);
    let commands = commands();
    assert!(commands.len() >= 12, "{commands:?}");
    let (mut found, mut standing) = (0, 0);
    for words in &commands {
        found += usize::from(ends(dir, words) == Some(0));
        standing += usize::from(words.iter().any(|word| word == "--standing"));
    }
    let empty = commands.len() - found;
    assert!(found >= 6 && empty >= 3, "{found} found something, {empty} nothing");
    // All of them stand beside each other.
    let output = holdfast(dir).args(["holds", "lab.hf", "--json"]).output().unwrap();
    assert_eq!((String::from_utf8_lossy(&output.stdout).lines().count(), standing), (4, 4));
}

/// The recipe in which this stands.
fn recipe(has: &str) -> Vec<String> {
    let found: Vec<_> =
        commands().into_iter().filter(|words| words.iter().any(|word| word.contains(has))).collect();
    let [recipe] = &found[..] else { panic!("{has}: {found:?}") };
    recipe.clone()
}

/// What a recipe finds, a row an object.
fn found(dir: &Path, recipe: &[String]) -> Vec<Value> {
    let output = holdfast(dir).args(recipe).arg("--json").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(matches!(output.status.code(), Some(0 | 3)), "{recipe:?}: {said}");
    let said = String::from_utf8(output.stdout).unwrap();
    said.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn numbers<const N: usize>(row: &Value, names: [&str; N]) -> [u64; N] {
    names.map(|name| row[name].as_u64().unwrap_or_else(|| panic!("{name} of {row}")))
}

#[test]
fn frames_that_are_missing_are_found_also_where_a_second_ends() {
    let folder = folder();
    let dir = folder.path();
    ring(dir);
    let left = vdif().1;
    let rate = left.iter().map(|frame| frame.number + 1).max().unwrap();
    let place = |frame: &Header| u64::from(frame.second * rate + frame.number);
    let mut missing = BTreeSet::new();
    for (before, frame) in left.iter().zip(left.iter().skip(1)).filter(|(a, b)| a.thread == b.thread) {
        let gap = place(frame) - place(before) - 1;
        if gap > 0 {
            missing.insert([frame.thread.into(), frame.second.into(), frame.number.into(), gap]);
        }
    }
    let rows = found(dir, &recipe("from vdif))"));
    let told: BTreeSet<[u64; 4]> =
        rows.iter().map(|row| numbers(row, ["thread", "second", "frame", "missing"])).collect();
    assert_eq!((told, rows.len()), (missing.clone(), missing.len()));
    let across = left.iter().zip(left.iter().skip(1)).filter(|(before, frame)| {
        before.thread == frame.thread && before.second + 1 == frame.second && frame.number == 1
    });
    assert!(across.count() > 0, "none is missing where a second ends");
}

#[test]
fn heaps_that_are_not_whole_are_found() {
    let folder = folder();
    let dir = folder.path();
    ring(dir);
    let rows = found(dir, &recipe("heap_size"));
    let told: BTreeMap<u64, u64> = rows
        .iter()
        .map(|row| {
            let [heap, bytes, came] = numbers(row, ["heap", "bytes", "came"]);
            assert_eq!(bytes, 4000);
            (heap, came)
        })
        .collect();
    let wanted: BTreeMap<u64, u64> = spead().1.into_iter().filter(|(_, came)| *came < 4000).collect();
    assert_eq!((told, rows.len()), (wanted.clone(), wanted.len()));
    assert!(wanted.values().any(|came| *came == 2000), "two are missing of some");
}

#[test]
fn samples_around_strong_triggers_are_found() {
    let folder = folder();
    let dir = folder.path();
    ring(dir);
    let recipe = recipe("t.snr > 12");
    let time = |row: &Value, name: &str| row[name].as_str().unwrap().to_owned();
    let all = |question: &str| found(dir, &["query", "lab.hf", question].map(str::to_owned));
    let nanos = |row: &Value| row["nanos"].as_i64().unwrap();
    let samples = all("select ordinal, arrow_cast(time, 'Int64') nanos from vdif");
    let triggers = all("select time, snr, arrow_cast(time, 'Int64') nanos from trigger where snr > 12");
    assert_eq!((samples.len(), triggers.len()), (vdif().1.len(), 1));
    // However long the machine took between the two: as it stands there, and with time enough.
    for span in ["20 milliseconds", "10 minutes"] {
        let within = if span.starts_with("10") { 600_000_000_000 } else { 20_000_000 };
        let words: Vec<String> = recipe.iter().map(|word| word.replace("20 milliseconds", span)).collect();
        let mut told = BTreeSet::new();
        for row in found(dir, &words) {
            assert_eq!((time(&row, "time"), &row["snr"]), (time(&triggers[0], "time"), &triggers[0]["snr"]));
            told.insert(row["ordinal"].as_u64().unwrap());
        }
        let near = samples.iter().filter(|row| nanos(row).abs_diff(nanos(&triggers[0])) <= within);
        assert_eq!(told, near.map(|row| row["ordinal"].as_u64().unwrap()).collect());
    }
}
