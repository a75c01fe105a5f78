//! An MCAP file that is replayed is found by what its messages say of themselves, and comes back as it was (promise 5): by the crate
//! that everybody reads such files with, and by the Python package, where it is.
#![allow(missing_docs, clippy::unwrap_used)]

use crate::common;

use common::{ends, folder, holdfast, record};
use mcap::records::MessageHeader;
use mcap::{MessageStream, WriteOptions, Writer};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};

/// All that a reader is told of each message.
fn told(file: &Path) -> Vec<String> {
    let bytes = fs::read(file).unwrap();
    let message = |message: mcap::Message<'_>| {
        let (channel, schema) = (&message.channel, message.channel.schema.as_ref());
        let schema =
            schema.map(|schema| (schema.name.clone(), schema.encoding.clone(), schema.data.to_vec()));
        let times = (message.sequence, message.log_time, message.publish_time);
        format!(
            "{} {} {:?} {schema:?} {times:?} {:?}",
            channel.topic, channel.message_encoding, channel.metadata, message.data
        )
    };
    MessageStream::new(&bytes).unwrap().map(|one| message(one.unwrap())).collect()
}

fn make(file: &Path) {
    let options = WriteOptions::new().compression(None).chunk_size(Some(10_000));
    let mut writer: Writer<_> = options.create(File::create(file).unwrap()).unwrap();
    let point = writer.add_schema("geometry/Point", "ros2msg", b"float64 x\nfloat64 y").unwrap();
    let rate = BTreeMap::from([("rate".to_owned(), "10".to_owned())]);
    let channels = [
        writer.add_channel(point, "/robot/position", "cdr", &rate).unwrap(),
        writer.add_channel(0, "/log", "json", &BTreeMap::new()).unwrap(),
        writer.add_channel(point, "/never/used", "cdr", &BTreeMap::new()).unwrap(),
    ];
    for number in 0..900u64 {
        let which = usize::from(number % 3 == 0);
        let header = MessageHeader {
            channel_id: channels[which],
            // One is missing.
            sequence: (number + u64::from(number >= 500)) as u32 / 3,
            log_time: 1_763_800_000_000_000_000 + number * 1000,
            publish_time: 1_763_800_000_000_000_000 + number * 1000 - 77,
        };
        let data = vec![number as u8; 40 + number as usize % 50];
        writer.write_to_known_channel(&header, &data).unwrap();
    }
    writer.finish().unwrap();
}

#[test]
fn messages_are_found_by_topic_and_come_back_with_channels_schemas_times_and_numbers() {
    let folder = folder();
    let dir = folder.path();
    make(&dir.join("robot.mcap"));
    let line = "r.hf --size 16MiB --slot 64KiB --source replay:robot.mcap --name robot --speed max --on-overload block";
    let said = record(dir, line, Stdio::null());
    assert_eq!(said.code, Some(0), "{}", said.err);
    ends(dir, "read r.hf --format mcap -o back.mcap", 0);
    let wanted = told(&dir.join("robot.mcap"));
    assert_eq!(wanted.len(), 900);
    assert_eq!(told(&dir.join("back.mcap")), wanted);
    let ask = |options: &[&str], sql: &str| {
        let output = holdfast(dir).args(["query", "r.hf"]).args(options).arg(sql).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let counts = ask(
        &["--format", "csv"],
        "select topic, count(*), min(sequence), max(publish_time) < max(event_time) from robot group by topic order by topic",
    );
    assert!(counts.contains("/log,300,0,true\n/robot/position,600,0,true"), "{counts}");
    // A part of it, by a question.
    let sql = "select ordinal from robot where topic = '/log' and sequence < 5";
    ask(&["--format", "mcap", "-o", "some.mcap"], sql);
    let some: Vec<_> = wanted.iter().filter(|one| one.starts_with("/log ")).take(5).cloned().collect();
    assert_eq!(told(&dir.join("some.mcap")), some);
    // What it is not, it is told by.
    let said = record(
        dir,
        "x.hf --size 16MiB --source replay:robot.mcap --name s --attr packets:src",
        Stdio::null(),
    );
    assert!(
        said.code == Some(1) && said.err.contains("--attr src:ip=packet:src: this file has messages"),
        "{}",
        said.err
    );

    let Some(python) = std::env::var_os("HOLDFAST_PYTHON").filter(|python| Path::new(python).is_file())
    else {
        eprintln!("HOLDFAST_PYTHON is unset: the package mcap does not look at the export");
        return;
    };
    let script = "
from mcap.reader import make_reader
def told(name):
    with open(name, 'rb') as file:
        reader = make_reader(file, validate_crcs=True)
        channels = reader.get_summary().channels.values()
        known = sorted((c.topic, c.message_encoding, tuple(c.metadata.items())) for c in channels)
        messages = [(s and (s.name, s.encoding, s.data), c.topic, m.sequence, m.log_time, m.publish_time, m.data)
                    for s, c, m in reader.iter_messages(log_time_order=False)]
        return known, messages
assert told('robot.mcap') == told('back.mcap')
assert len(told('back.mcap')[0]) == 3
";
    let output = Command::new(python).args(["-c", script]).current_dir(dir).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn entry(kind: u8, content: &[u8]) -> Vec<u8> {
    [&[kind][..], &(content.len() as u64).to_le_bytes(), content].concat()
}

fn text(text: &str) -> Vec<u8> {
    [&(text.len() as u32).to_le_bytes()[..], text.as_bytes()].concat()
}

fn channel(id: u16, schema: u16, topic: &str) -> Vec<u8> {
    entry(4, &[&id.to_le_bytes()[..], &schema.to_le_bytes(), &text(topic), &text("json"), &[0; 4]].concat())
}

fn schema(id: u16) -> Vec<u8> {
    entry(3, &[&id.to_le_bytes()[..], &text("S"), &text("jsonschema"), &text("{}")].concat())
}

fn message(channel: u16, sequence: u32, log_time: u64, publish_time: u64) -> Vec<u8> {
    let times = [log_time.to_le_bytes(), publish_time.to_le_bytes()].concat();
    entry(5, &[&channel.to_le_bytes()[..], &sequence.to_le_bytes(), &times, b"{}"].concat())
}

/// A file of these records, which ends as it should.
fn file(records: &[Vec<u8>]) -> Vec<u8> {
    let end = [entry(15, &[0; 4]), entry(2, &[0; 20])].concat();
    [MAGIC, &records.concat(), &end, MAGIC].concat()
}

const MAGIC: &[u8] = b"\x89MCAP0\r\n";

/// Records a file, and exports the stream; the recorder's exit code and messages, and what the export tells.
fn there_and_back(dir: &Path, bytes: &[u8]) -> (Option<i32>, String, Vec<String>) {
    for name in ["r.hf", "back.mcap"] {
        let _ = fs::remove_file(dir.join(name));
    }
    fs::write(dir.join("in.mcap"), bytes).unwrap();
    let said = record(dir, "r.hf --size 16MiB --source replay:in.mcap --name s --speed max", Stdio::null());
    ends(dir, "read r.hf --format mcap -o back.mcap", 0);
    (said.code, said.err, told(&dir.join("back.mcap")))
}

fn line(topic: &str, schema: &str, sequence: u32, log_time: u64, publish_time: u64) -> String {
    format!("{topic} json {{}} {schema} {:?} {:?}", (sequence, log_time, publish_time), b"{}")
}

#[test]
fn times_beyond_63_bits_come_back() {
    let folder = folder();
    let last = u64::MAX - 89_999_999_999;
    let times = [(last, 1 << 63), (1 << 63, 7), (7, u64::MAX), ((1 << 63) - 1, 0)];
    let messages = (1..).zip(times).map(|(number, (log, publish))| message(1, number, log, publish));
    let header = entry(1, &[text("ros2"), text("lib")].concat());
    let bytes = file(&[header, channel(1, 0, "/t"), messages.collect::<Vec<_>>().concat()]);
    let (code, said, back) = there_and_back(folder.path(), &bytes);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("messages with a log or publish time after the year 2262: 3"), "{said}");
    let wanted: Vec<_> =
        (1..).zip(times).map(|(number, (log, publish))| line("/t", "None", number, log, publish)).collect();
    assert_eq!(back, wanted);
    // The profile tells readers how messages are encoded.
    let export = fs::read(folder.path().join("back.mcap")).unwrap();
    assert!(export.starts_with(&[MAGIC, &[1], &(8 + 4 + 14u64).to_le_bytes(), &text("ros2")].concat()));
}

#[test]
fn numbers_of_channels_and_schemas_come_back_even_where_their_contents_are_the_same() {
    let folder = folder();
    let records = [
        schema(3),
        schema(9),
        channel(5, 3, "/t"),
        channel(7, 9, "/t"),
        channel(0, 9, "/t"),
        message(7, 1, 2, 3),
    ];
    let (code, said, back) = there_and_back(folder.path(), &file(&records));
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(back.len(), 1);
    let export = fs::read(folder.path().join("back.mcap")).unwrap();
    let summary = mcap::Summary::read(&export).unwrap().unwrap();
    let mut numbers: Vec<_> =
        summary.channels.values().map(|channel| (channel.id, channel.schema.as_ref().unwrap().id)).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [(0, 9), (5, 3), (7, 9)]);
    let counts = summary.stats.unwrap().channel_message_counts;
    assert_eq!(counts.into_iter().filter(|(_, count)| *count > 0).collect::<Vec<_>>(), [(7, 1)]);
}

// Promises 2 and 8: the stream ends where the file is wrong, with a gap, and the export has all before.
#[test]
fn files_that_are_wrong_end_with_the_fault_and_are_exported_up_to_there() {
    let folder = folder();
    let header = || entry(1, &[0; 8]);
    let good = || [channel(1, 0, "/t"), message(1, 1, 5, 6)].concat();
    let map = [text("a"), text("1"), text("a"), text("2")].concat();
    let map = [&(map.len() as u32).to_le_bytes()[..], &map].concat();
    let key_twice = entry(4, &[&[2, 0, 0, 0][..], &text("/u"), &text(""), &map].concat());
    let other_schema = entry(3, &[&[1, 0][..], &text("T"), &text("x"), &text("y")].concat());
    let cases = [
        (channel(1, 0, "/other"), "channel 1 is defined again with other contents"),
        ([schema(1), other_schema].concat(), "schema 1 is defined again with other contents"),
        (
            [channel(2, 7, "/u"), schema(7)].concat(),
            "channel 2 refers to schema 7, which no record before it defines",
        ),
        (key_twice, "the metadata of channel 2 has a key twice"),
        (message(2, 1, 1, 1), "a message refers to channel 2, which no record before it defines"),
    ];
    for (fault, wanted) in cases {
        let bytes = file(&[header(), good(), fault, message(1, 2, 7, 8)]);
        let (code, said, back) = there_and_back(folder.path(), &bytes);
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains(wanted) && !said.contains("packet"), "{said}");
        assert_eq!(back, [line("/t", "None", 1, 5, 6)], "{wanted}");
        let gaps = ends(folder.path(), "gaps r.hf --json", 0).lines();
        assert_eq!(gaps[0]["cause"], "source_failed", "{gaps:?}");
    }
}

#[test]
fn a_file_without_a_header_is_exported_with_an_empty_one() {
    let folder = folder();
    let (code, said, back) =
        there_and_back(folder.path(), &file(&[channel(1, 0, "/t"), message(1, 1, 5, 6)]));
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(back, [line("/t", "None", 1, 5, 6)]);
}
