//! Conversions of captures, MCAP files and datasets: the bytes that a ring gives of the same file, and rows that queries find.
#![allow(missing_docs, clippy::unwrap_used)]

use crate::common;

use common::{documented, ends, folder, record};
use mcap::records::MessageHeader;
use mcap::{MessageStream, WriteOptions, Writer};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Stdio;

/// Capture file of the real inputs, or a small one.
fn capture(dir: &Path, name: &str) -> Vec<u8> {
    let real = std::env::var_os("HOLDFAST_TEST_DATA").map(|data| Path::new(&data).join("pcap").join(name));
    let bytes = real.and_then(|path| fs::read(path).ok()).unwrap_or_else(|| {
        let mut bytes = Vec::new();
        for word in [0xa1b2_c3d4u32, 0x0004_0002, 0, 0, 65_535, 1] {
            bytes.extend(word.to_le_bytes());
        }
        for number in 0..500u32 {
            for word in [1_700_000_000 + number, number, 60, 60] {
                bytes.extend(word.to_le_bytes());
            }
            bytes.extend([number as u8; 60]);
        }
        bytes
    });
    fs::write(dir.join(name), &bytes).unwrap();
    bytes
}

#[test]
fn a_capture_becomes_a_dataset_rows_and_the_packets_that_a_ring_gives() {
    for name in ["bitcoin.pcap", "alexa-app.pcapng"] {
        let folder = folder();
        let dir = folder.path();
        capture(dir, name);
        let line = format!(
            "r.hf --size 24MiB --slot 256KiB --source replay:{name} --name net --speed max --on-overload block"
        );
        let said = record(dir, &line, Stdio::null());
        assert_eq!(said.code, Some(0), "{}", said.err);
        ends(dir, "read r.hf --format pcapng -o ring.pcapng", 0);
        ends(dir, "read r.hf --format raw -o ring.raw", 0);
        let counted = ends(dir, "query r.hf select_count(*)_c,_sum(size)_s_from_net --json", 0).json();
        let question = "select_src,_count(*)_c,_max(size)_s_from_net_group_by_src_order_by_c,_src";
        let answer = ends(dir, &format!("query r.hf {question} --json"), 0).out;

        let said = ends(dir, &format!("dataset convert {name} -o net.mcap --stream net --json"), 0).json();
        documented("dataset", [&said]);
        assert_eq!((&said["messages"], &said["channels"]), (&counted["c"], &1.into()));
        assert_eq!(ends(dir, "dataset verify net.mcap --json", 0).json()["damaged"], serde_json::json!([]));
        assert_eq!(ends(dir, &format!("query net.mcap {question} --json"), 0).out, answer);
        for (ending, ring) in [("pcapng", "ring.pcapng"), ("raw", "ring.raw")] {
            ends(dir, &format!("dataset convert {name} -o direct.{ending} --stream net"), 0);
            ends(dir, &format!("dataset convert net.mcap -o dataset.{ending}"), 0);
            let wanted = fs::read(dir.join(ring)).unwrap();
            assert!(fs::read(dir.join(format!("direct.{ending}"))).unwrap() == wanted, "{name} {ending}");
            assert!(fs::read(dir.join(format!("dataset.{ending}"))).unwrap() == wanted, "{name} {ending}");
        }
        // Rows: of the capture itself, and of the dataset.
        for ending in ["csv", "parquet", "jsonl"] {
            ends(dir, &format!("dataset convert {name} -o direct.{ending} --stream net"), 0);
            let said = ends(dir, &format!("dataset convert net.mcap -o dataset.{ending} --json"), 0).json();
            assert_eq!(said["messages"], counted["c"], "{ending}");
            let read = |name: &str| fs::read(dir.join(format!("{name}.{ending}"))).unwrap();
            assert!(read("direct") == read("dataset"), "{name} {ending}");
        }
        let lines = fs::read_to_string(dir.join("direct.csv")).unwrap();
        assert!(lines.starts_with("ordinal,time,"), "{}", &lines[..100]);
        assert_eq!(lines.lines().count() as u64, counted["c"].as_u64().unwrap() + 1);
        duckdb_reads(dir, &counted);
        let names = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        assert!(names.filter(|name| name.contains(".part")).count() == 0);
    }
}

fn duckdb_reads(dir: &Path, counted: &serde_json::Value) {
    let Some(python) = std::env::var_os("HOLDFAST_PYTHON").filter(|python| Path::new(python).is_file())
    else {
        eprintln!("HOLDFAST_PYTHON is unset: DuckDB does not read the Parquet file");
        return;
    };
    let script = "
import duckdb, sys
rows = duckdb.sql(\"select count(*), sum(size), sum(octet_length(payload)) from 'direct.parquet'\").fetchall()[0]
assert str(rows[0]) == sys.argv[1] and str(rows[1]) == sys.argv[2] == str(rows[2]), rows
";
    let args = [counted["c"].to_string(), counted["s"].to_string()];
    let said = std::process::Command::new(python).current_dir(dir).args(["-c", script]).args(args).output();
    let said = said.unwrap();
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
}

/// All that a reader is told of each message.
fn told(file: &Path) -> Vec<String> {
    let bytes = fs::read(file).unwrap();
    let message = |message: mcap::Message<'_>| {
        let (channel, schema) = (&message.channel, message.channel.schema.as_ref());
        let mut line = format!("{} {} {:?} ", channel.topic, channel.message_encoding, channel.metadata);
        let schema = schema.map(|schema| (&schema.name, &schema.encoding));
        let times = (message.sequence, message.log_time, message.publish_time);
        write!(line, "{schema:?} {times:?} {:?}", message.data).unwrap();
        line
    };
    MessageStream::new(&bytes).unwrap().map(|one| message(one.unwrap())).collect()
}

fn foreign(file: &Path, summary: bool) {
    let options = WriteOptions::new().compression(None).chunk_size(Some(2000)).emit_summary_records(summary);
    let mut writer: Writer<_> = options.create(fs::File::create(file).unwrap()).unwrap();
    let point = writer.add_schema("geometry/Point", "ros2msg", b"float64 x").unwrap();
    let rate = BTreeMap::from([("rate".to_owned(), "10".to_owned())]);
    let channels = [
        writer.add_channel(point, "/position", "cdr", &rate).unwrap(),
        writer.add_channel(0, "/log", "json", &BTreeMap::new()).unwrap(),
    ];
    for number in 0..300u32 {
        let time = 1_763_800_000_000_000_000 + u64::from(number ^ 5) * 1000;
        let channel_id = channels[usize::from(number % 3 == 0)];
        let header = MessageHeader { channel_id, sequence: number, log_time: time, publish_time: time - 9 };
        writer.write_to_known_channel(&header, &vec![number as u8; 20 + number as usize % 30]).unwrap();
    }
    writer.finish().unwrap();
}

#[test]
fn info_shows_channels_of_files_without_a_manifest() {
    let folder = folder();
    let dir = folder.path();
    let mut infos = Vec::new();
    for summary in [true, false] {
        foreign(&dir.join("robot.mcap"), summary);
        let mut info = ends(dir, "dataset info robot.mcap --json", 0).json();
        documented("dataset", [&info]);
        assert_eq!(info["scanned"], !summary);
        assert_eq!((&info["messages"], &info["topics"][0]["messages"]), (&300.into(), &200.into()));
        assert_eq!(info["topics"][0]["schema"], "geometry/Point");
        (info["bytes"], info["scanned"]) = (0.into(), true.into());
        infos.push(info);
        let shown = ends(dir, "dataset info robot.mcap", 0).out;
        assert!(shown.contains("300 messages from 2025-11-22T") && shown.contains("/position"), "{shown}");
        fs::remove_file(dir.join("robot.mcap")).unwrap();
    }
    assert_eq!(infos[0], infos[1]);
}

#[test]
fn an_mcap_file_becomes_a_dataset_and_comes_back() {
    let folder = folder();
    let dir = folder.path();
    foreign(&dir.join("robot.mcap"), true);
    let wanted = told(&dir.join("robot.mcap"));
    let line = "dataset convert robot.mcap -o run.mcap --compress none --json";
    let said = ends(dir, line, 0).json();
    assert_eq!((&said["messages"], &said["channels"]), (&300.into(), &2.into()));
    assert_eq!(told(&dir.join("run.mcap")), wanted);
    ends(dir, "dataset verify run.mcap", 0);
    let counts =
        ends(dir, "query run.mcap select_topic,_count(*)_c_from_robot_group_by_topic_order_by_c --json", 0);
    assert_eq!(counts.out, "{\"topic\":\"/log\",\"c\":100}\n{\"topic\":\"/position\",\"c\":200}\n");
    ends(dir, "dataset convert run.mcap -o back.mcap", 0);
    assert_eq!(told(&dir.join("back.mcap")), wanted);
    for (line, words) in [
        ("dataset convert run.mcap -o x.zip", "the ending of the output names no format"),
        ("dataset convert run.mcap -o x.csv --stream other", "other"),
        ("dataset convert robot.mcap -o x.pcapng", "pcapng"),
    ] {
        let said = ends(dir, line, if line.contains("other") { 3 } else { 2 });
        assert!(said.err.contains(words), "{line}: {}", said.err);
    }
}

#[test]
fn a_cut_capture_is_an_error_unless_it_is_to_be_salvaged() {
    let folder = folder();
    let dir = folder.path();
    let bytes = capture(dir, "bitcoin.pcap");
    fs::write(dir.join("cut.pcap"), &bytes[..bytes.len() - 10]).unwrap();
    let said = ends(dir, "dataset convert cut.pcap -o cut.pcapng", 1);
    assert!(said.err.contains("packets") || said.err.contains("elements can be saved"), "{}", said.err);
    assert!(!dir.join("cut.pcapng").exists());
    for ending in ["pcapng", "mcap", "parquet"] {
        let line = format!("dataset convert cut.pcap -o cut.{ending} --salvage --json");
        let said = ends(dir, &line, 0).json();
        documented("dataset", [&said]);
        assert!(said["messages"].as_u64().unwrap() > 100 && said["damage"]["at_byte"].is_u64(), "{said}");
    }
}

/// Compresses a file by a program of this machine; false where there is none.
fn packed(dir: &Path, program: &str, name: &str, to: &str) -> bool {
    let out = fs::File::create(dir.join(to)).unwrap();
    let ran = std::process::Command::new(program).current_dir(dir).args(["-c", name]).stdout(out).status();
    if ran.is_err() {
        eprintln!("SKIPPED: there is no {program}");
    }
    ran.is_ok_and(|status| status.success())
}

#[test]
fn a_compressed_capture_is_converted_as_the_capture_in_it() {
    let folder = folder();
    let dir = folder.path();
    let capture = capture(dir, "bitcoin.pcap");
    foreign(&dir.join("robot.mcap"), true);
    ends(dir, "dataset convert bitcoin.pcap -o plain.pcapng", 0);
    ends(dir, "dataset convert robot.mcap -o plain.mcap --compress none", 0);
    for (program, ending) in [("gzip", "gz"), ("zstd", "zst")] {
        if !packed(dir, program, "bitcoin.pcap", &format!("bitcoin.pcap.{ending}"))
            || !packed(dir, program, "robot.mcap", &format!("robot.mcap.{ending}"))
        {
            continue;
        }
        ends(dir, &format!("dataset convert bitcoin.pcap.{ending} -o {ending}.pcapng"), 0);
        let read = |name: &str| fs::read(dir.join(name)).unwrap();
        assert!(read(&format!("{ending}.pcapng")) == read("plain.pcapng"), "{ending}");
        let line = format!("dataset convert bitcoin.pcap.{ending} -o {ending}.mcap --json");
        let said = ends(dir, &line, 0).json();
        let line = format!("query {ending}.mcap select_count(*)_c_from_bitcoin --json");
        assert_eq!(ends(dir, &line, 0).json()["c"], said["messages"]);
        ends(dir, &format!("dataset convert robot.mcap.{ending} -o {ending}-robot.mcap --compress none"), 0);
        assert_eq!(told(&dir.join(format!("{ending}-robot.mcap"))), told(&dir.join("plain.mcap")));
        // Cut: an error, unless it is to be salvaged.
        let whole = read(&format!("bitcoin.pcap.{ending}"));
        fs::write(dir.join("cut"), &whole[..whole.len() / 2]).unwrap();
        let said = ends(dir, "dataset convert cut -o cut.pcapng", 1);
        assert!(said.err.contains("cut: ") || said.err.contains(", cut"), "{}", said.err);
        assert!(!dir.join("cut.pcapng").exists());
        if ending == "zst" {
            // A file of one block has nothing before the damage.
            continue;
        }
        assert!(said.err.contains("cannot unpack the whole file"), "{}", said.err);
        let line = format!("dataset convert cut -o cut-{ending}.pcapng --salvage --json");
        let said = ends(dir, &line, 0).json();
        assert!(said["damage"]["at_byte"].as_u64().unwrap() < capture.len() as u64, "{said}");
    }
    let names = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert_eq!(names.filter(|name| name.contains(".part")).count(), 0);
}

/// Recordings that are no rings are named, with the command that makes datasets of them.
#[test]
fn other_recordings_are_named_with_the_command_for_them() {
    let folder = folder();
    let dir = folder.path();
    capture(dir, "bitcoin.pcap");
    ends(dir, "dataset convert bitcoin.pcap -o b.pcapng", 0);
    ends(dir, "dataset convert bitcoin.pcap -o b.parquet", 0);
    foreign(&dir.join("robot.mcap"), true);
    fs::write(dir.join("old.bag"), b"#ROSBAG V2.0\n").unwrap();
    assert!(packed(dir, "gzip", "bitcoin.pcap", "b.pcap.gz"));
    for (name, kind, command) in [
        ("bitcoin.pcap", "a pcap file, not a ring", "dataset convert bitcoin.pcap -o bitcoin.mcap"),
        ("b.pcapng", "a pcapng file, not a ring", "dataset convert b.pcapng -o b.mcap"),
        ("b.pcap.gz", "compressed by gzip, not a ring", "dataset convert b.pcap.gz -o b.mcap"),
        ("old.bag", "a ROS 1 bag, not a ring", "dataset convert old.bag -o old.mcap"),
        ("b.parquet", "a Parquet file, not a ring", "DuckDB"),
        ("robot.mcap", "it has no manifest", "dataset convert robot.mcap -o robot-dataset.mcap"),
    ] {
        for line in [format!("query {name} select_1"), format!("read {name} -o x.out")] {
            let said = ends(dir, &line, 1);
            assert!(said.err.contains(kind) && said.err.contains(command), "{line}: {}", said.err);
        }
        // Every file is searched as bytes, but those that are datasets.
        ends(dir, &format!("grep --hex 00 {name} -c"), if name == "old.bag" { 3 } else { 0 });
    }
    for (name, said) in [
        ("b.pcap.gz", "dataset convert FILE -o NEW.pcapng"),
        ("old.bag", "dataset convert FILE -o NEW.mcap"),
        ("b.parquet", "a Parquet file"),
    ] {
        let line = format!("r.hf --size 8MiB --slot 64KiB --source replay:{name} --name s");
        let replayed = record(dir, &line, Stdio::null());
        assert!(replayed.code != Some(0) && replayed.err.contains(said), "{}", replayed.err);
    }
}
