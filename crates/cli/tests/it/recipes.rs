//! The recipes of docs/search.md, each given to the real program as it stands there, on a ring with the streams that they
//! speak of. What those of radio astronomy find is what a look at every frame finds; frames are those of a real file of
//! `$HOLDFAST_TEST_DATA`, or such as are made. What the others find is worked out of what was sent.
#![allow(missing_docs, clippy::unwrap_used)]

use crate::common;
use crate::common::evaluating;
use crate::common::made;

use common::{folder, holdfast, record, run};
use evaluating::Evaluator;
use serde_json::Value;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::ops::Range;
use std::path::Path;
use std::process::Stdio;

/// Flags of TCP.
const SYN: u8 = 2;
const ACK: u8 = 16;
/// Attempts to connect to 10.1.2.3: a thousand within a second are a flood.
const ATTEMPTS: usize = 1200;
const SECOND: i64 = 1_000_000_000;

/// A packet that is sent between hosts of 10.1.2.0/24, and what it says.
struct Sent {
    src: u8,
    dst: u8,
    /// Of TCP; none in others.
    flags: Option<u8>,
    /// Which name it asks for.
    name: Option<&'static str>,
    bytes: Vec<u8>,
}

/// A packet on Ethernet.
fn packet(src: u8, dst: u8, protocol: u8, rest: &[u8]) -> Vec<u8> {
    let mut ip = *b"E\0\0\0\0\0\0\0\x40\0\0\0\x0a\x01\x02\0\x0a\x01\x02\0";
    ip[2..4].copy_from_slice(&(20 + rest.len() as u16).to_be_bytes());
    (ip[9], ip[15], ip[19]) = (protocol, src, dst);
    [&b"\x02\0\0\0\0\x02\x02\0\0\0\0\x01\x08\0"[..], &ip[..], rest].concat()
}

fn tcp(src: u8, dst: u8, flags: u8, payload: &[u8]) -> Sent {
    let mut head = *b"\x12\x34\0\x50\0\0\0\x01\0\0\0\0\x50\0\x20\0\0\0\0\0";
    head[13] = flags;
    let bytes = packet(src, dst, 6, &[&head[..], payload].concat());
    Sent { src, dst, flags: Some(flags), name: None, bytes }
}

/// A question for a name, over UDP.
fn dns(src: u8, name: &'static str) -> Sent {
    let mut question = b"\0\x07\x01\0\0\x01\0\0\0\0\0\0".to_vec();
    for label in name.split('.') {
        question.push(label.len() as u8);
        question.extend_from_slice(label.as_bytes());
    }
    question.extend_from_slice(b"\0\0\x01\0\x01");
    let len = (8 + question.len() as u16).to_be_bytes();
    let udp = [&b"\x30\x39\0\x35"[..], &len[..], &b"\0\0"[..], &question[..]].concat();
    Sent { src, dst: 53, flags: None, name: Some(name), bytes: packet(src, 53, 17, &udp) }
}

/// Names, a flood of attempts to connect of which every fifth is answered, and a credential.
fn packets() -> Vec<Sent> {
    let mut packets = vec![dns(4, "old.example"), dns(5, "both.example"), tcp(9, 7, SYN, b"")];
    for number in 0..ATTEMPTS {
        let src = [4, 4, 4, 5, 5, 6][number % 6];
        packets.push(tcp(src, 3, SYN, b""));
        if number % 5 == 0 {
            packets.push(tcp(3, src, SYN | ACK, b""));
        }
    }
    packets.push(tcp(6, 3, ACK, b"GET / HTTP/1.1\r\nAuthorization: Basic dTpw\r\n\r\n"));
    packets
}

/// A capture file with these.
fn capture(packets: &[Sent]) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65535, 1] {
        file.extend(word.to_le_bytes());
    }
    for (number, packet) in (0_u32..).zip(packets) {
        let len = packet.bytes.len() as u32;
        for word in [1_795_169_100, number, len, len] {
            file.extend(word.to_le_bytes());
        }
        file.extend_from_slice(&packet.bytes);
    }
    file
}

/// Lines of the inertial unit at first, and some that come later.
const LINES: u64 = 100;
const LATER: u64 = 50;

/// The acceleration in one of them. What is computed of it has no rounding.
fn acceleration(line: u64) -> [f64; 3] {
    [(line * 37 % 67) as f64 / 2.0, 0.5, -9.5]
}

fn imu(lines: Range<u64>) -> String {
    let line = |line| {
        let [x, y, z] = acceleration(line);
        format!("{{\"a\": {{\"x\": {x:?}, \"y\": {y:?}, \"z\": {z:?}}}}}\n")
    };
    lines.map(line).collect()
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
    fs::write(dir.join("eth0.pcap"), capture(&packets())).unwrap();
    fs::write(dir.join("vdif"), vdif().0).unwrap();
    fs::write(dir.join("spead"), spead().0).unwrap();
    fs::write(dir.join("trigger"), "{\"snr\": 13.5}\n{\"snr\": 2}\n").unwrap();
    fs::write(dir.join("imu"), imu(0..LINES)).unwrap();
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

/// Runs a recipe as it stands there: its end, and what it said first. One that goes on for ever says first what it holds, and is
/// interrupted then.
fn ends(dir: &Path, words: &[String]) -> (Option<i32>, String) {
    if !words.iter().any(|word| word == "--standing") {
        let output = holdfast(dir).args(words).output().unwrap();
        let (code, said) = (output.status.code(), String::from_utf8_lossy(&output.stderr));
        assert!(matches!(code, Some(0 | 3)), "{words:?}: {code:?} {said}");
        let text = String::from_utf8_lossy(&output.stdout);
        return (code, text.lines().next().unwrap_or_default().to_owned());
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
    let finds = held.contains(" found, ") || words.iter().any(|word| word == "--sample");
    (Some(if finds { 0 } else { 3 }), held)
}

#[test]
fn every_recipe_is_understood() {
    let folder = folder();
    let dir = folder.path();
    ring(dir);
    let commands = commands();
    assert!(commands.len() >= 12, "{commands:?}");
    // Of those of which no other test looks at what they find.
    let knocks =
        (0..LINES).filter(|line| acceleration(*line).iter().map(|a| a * a).sum::<f64>() > 900.0).count();
    let mut found = vec![
        ("snr > 12", "--standing", "1 element found, ".to_owned()),
        ("az*az > 900", "--standing", format!("{knocks} elements found, ")),
        ("authorization", "pcapng", String::new()),
    ];
    let mut standing = 0;
    for words in &commands {
        let has = |text: &str| words.iter().any(|word| word.contains(text));
        let (code, said) = ends(dir, words);
        if let Some(at) = found.iter().position(|(what, how, _)| has(what) && has(how)) {
            let (.., wanted) = found.remove(at);
            assert!(said.contains(&wanted), "{words:?}: {said}");
        }
        // What is of the last moments may be over by now. So many packets there are not.
        if !has("now()") && !has("20 milliseconds") {
            let wanted = if has("41000..41200") { 3 } else { 0 };
            assert_eq!(code, Some(wanted), "{words:?}");
        }
        standing += usize::from(has("--standing"));
    }
    assert_eq!(found, [], "these are no recipes any more");
    // One packet has it, and no other was written.
    let logins = fs::read(dir.join("logins.pcapng")).unwrap();
    let login = packets().pop().unwrap().bytes;
    assert!(logins.windows(login.len()).any(|bytes| bytes == login));
    assert!(logins.len() < 1000, "{} bytes", logins.len());
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

/// The same as texts, a row the values of its columns. There is something.
fn rows(dir: &Path, words: &[String]) -> Vec<Vec<String>> {
    let output = holdfast(dir).args(words).args(["--format", "csv"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{words:?}: {said}");
    let said = String::from_utf8(output.stdout).unwrap();
    said.lines().skip(1).map(|row| row.split(',').map(str::to_owned).collect()).collect()
}

/// What a question finds.
fn asked(dir: &Path, sql: &str) -> Vec<Vec<String>> {
    rows(dir, &["query", "lab.hf", sql].map(str::to_owned))
}

/// The only column of what a question finds.
fn column(dir: &Path, sql: &str) -> Vec<String> {
    asked(dir, sql).into_iter().map(|mut row| row.remove(0)).collect()
}

/// Records more of a stream; when the last of it had arrived before that.
fn goes_on(dir: &Path, stream: &str, source: &str) -> String {
    let last = column(dir, &format!("select max(time) from {stream}")).remove(0);
    let said = record(dir, &format!("lab.hf --source {source} --name {stream}"), Stdio::null());
    assert_eq!(said.code, Some(0), "{}", said.err);
    last
}

/// A recipe with times in the place of those that depend on the moment in which it is asked.
fn at_times(recipe: &[String], times: &[(&str, &str)]) -> Vec<String> {
    let mut words = recipe.to_vec();
    for (moment, time) in times {
        words = words.iter().map(|word| word.replace(*moment, &format!("'{time}'"))).collect();
    }
    assert!(!words.iter().any(|word| word.contains("now()")), "{words:?}");
    words
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

#[test]
fn who_talked_to_an_address_is_told_with_the_times_and_how_much() {
    let folder = folder();
    let dir = folder.path();
    ring(dir);
    let packets = packets();
    let times = column(dir, "select time from eth0 order by ordinal");
    assert_eq!(times.len(), packets.len());
    let mut talked: BTreeMap<u8, Vec<usize>> = BTreeMap::new();
    for (at, packet) in packets.iter().enumerate().filter(|(_, packet)| packet.dst == 3) {
        talked.entry(packet.src).or_default().push(at);
    }
    assert_eq!(talked.len(), 3);
    let row_of = |(src, all): (u8, Vec<usize>)| {
        let bytes: usize = all.iter().map(|at| packets[*at].bytes.len()).sum();
        let (first, last) = (times[all[0]].clone(), times[all[all.len() - 1]].clone());
        (bytes, vec![format!("10.1.2.{src}"), first, last, all.len().to_string(), bytes.to_string()])
    };
    let mut wanted: Vec<(usize, Vec<String>)> = talked.into_iter().map(row_of).collect();
    wanted.sort_by_key(|(bytes, _)| Reverse(*bytes));
    let wanted: Vec<Vec<String>> = wanted.into_iter().map(|(_, row)| row).collect();
    assert_eq!(rows(dir, &recipe("where dst = '10.1.2.3'")), wanted);
}

#[test]
fn names_that_are_new_are_told_and_those_that_were_asked_for_before_are_not() {
    let folder = folder();
    let dir = folder.path();
    ring(dir);
    let later = ["both.example", "new.example", "NEW.example", "newer.example", "both.example"];
    let later = later.map(|name| dns(6, name));
    fs::write(dir.join("later.pcap"), capture(&later)).unwrap();
    let last = goes_on(dir, "eth0", "replay:later.pcap --speed max");
    // As if all that came first had come more than five minutes ago.
    let times = [
        ("now() - interval '5 minutes'", last.as_str()),
        ("now() - interval '65 minutes'", "1970-01-01T00:00:00Z"),
    ];
    let told = rows(dir, &at_times(&recipe("not in (select dns_name"), &times));
    let names = |packets: &[Sent]| -> BTreeSet<String> {
        packets.iter().filter_map(|packet| packet.name).map(str::to_lowercase).collect()
    };
    let wanted: BTreeSet<String> = names(&later).difference(&names(&packets())).cloned().collect();
    let count = told.len();
    let told: BTreeSet<String> = told.into_iter().flatten().collect();
    assert_eq!((told, count), (wanted, 2));
}

#[test]
fn a_flood_of_attempts_is_held_with_what_is_around_it() {
    let folder = folder();
    let dir = folder.path();
    ring(dir);
    let packets = packets();
    let arrived = asked(dir, "select arrow_cast(time, 'Int64'), slot from eth0 order by ordinal");
    let arrived = arrived.iter().map(|row| (row[0].parse::<i64>().unwrap(), row[1].parse::<u64>().unwrap()));
    let arrived: Vec<(i64, u64)> = arrived.collect();
    assert_eq!(arrived.len(), packets.len());
    let is_attempt = |packet: &Sent| packet.flags.is_some_and(|flags| flags & (SYN | ACK) == SYN);
    let attempts = packets.iter().zip(&arrived).filter(|(packet, _)| is_attempt(packet));
    let attempts: Vec<i64> = attempts.map(|(_, (time, _))| *time).collect();
    let before = |time: i64| attempts.iter().filter(|other| (time - SECOND..=time).contains(*other)).count();
    let flood: Vec<i64> = attempts.iter().copied().filter(|time| before(*time) >= 1000).collect();
    // They are replayed at once: that takes much less than a second.
    assert!(!flood.is_empty() && flood.len() < attempts.len(), "{} of {}", flood.len(), attempts.len());
    let mut evaluator = Evaluator::of(dir, recipe("floods of SYN"));
    let said = evaluator.next();
    assert_eq!(said["elements"], flood.len(), "{said}");
    assert_eq!(evaluator.end(), Some(0));
    let told = run(dir, "holds lab.hf --json").json();
    let mut held = BTreeSet::new();
    for stretch in told["sequences"].as_array().unwrap() {
        held.extend(stretch[0].as_u64().unwrap()..=stretch[1].as_u64().unwrap());
    }
    assert_eq!(told["slots"], held.len(), "{told}");
    // Nothing is held for other streams; of this one all is that came up to five seconds before the flood or behind it.
    let slots: BTreeSet<u64> = arrived.iter().map(|(_, slot)| *slot).collect();
    assert!(held.is_subset(&slots), "{told}: {slots:?}");
    let around = flood[0] - 5 * SECOND..=flood[flood.len() - 1] + 5 * SECOND;
    for (time, slot) in arrived.iter().filter(|(time, _)| around.contains(time)) {
        assert!(held.contains(slot), "{slot} of {time}: {told}");
    }
}

#[test]
fn rates_and_the_hardest_knocks_are_told_step_by_step() {
    let folder = folder();
    let dir = folder.path();
    ring(dir);
    fs::write(dir.join("later"), imu(LINES..LINES + LATER)).unwrap();
    let last = goes_on(dir, "imu", "file:later --frame lines");
    let arrived = column(dir, "select arrow_cast(time, 'Int64') from imu order by ordinal");
    let arrived: Vec<i64> = arrived.iter().map(|time| time.parse().unwrap()).collect();
    assert_eq!(arrived.len() as u64, LINES + LATER);
    // In its own steps, of what came later; and of all, in steps that are so small that there are several.
    for (since, from, step, nanos) in
        [(last.as_str(), LINES, "1 second", SECOND), ("1970-01-01T00:00:00Z", 0, "1 microsecond", 1000)]
    {
        let recipe = at_times(&recipe("date_bin"), &[("now() - interval '1 minute'", since)]);
        let recipe: Vec<String> = recipe.iter().map(|word| word.replace("1 second", step)).collect();
        let mut wanted: BTreeMap<i64, (u64, f64)> = BTreeMap::new();
        for (line, time) in (0..).zip(&arrived).skip(from as usize) {
            let [x, y, z] = acceleration(line);
            let (hz, squared) = wanted.entry(time / nanos * nanos).or_default();
            *hz += 1;
            *squared = f64::max(*squared, x * x + y * y + z * z);
        }
        let told = rows(dir, &recipe).into_iter().map(|row| {
            let [time, hz, squared] = &row[..] else { panic!("{row:?}") };
            let time: jiff::Timestamp = time.parse().unwrap();
            (time.as_nanosecond() as i64, (hz.parse::<u64>().unwrap(), squared.parse::<f64>().unwrap()))
        });
        let told: Vec<(i64, (u64, f64))> = told.collect();
        assert_eq!(told, wanted.into_iter().collect::<Vec<_>>(), "{step}");
    }
}
