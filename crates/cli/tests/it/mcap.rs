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
