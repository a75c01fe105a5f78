//! A ROS 1 bag becomes an MCAP file that ROS tools decode: real bags, compared with an independent parser in Python.
#![allow(missing_docs, clippy::unwrap_used)]

use crate::common;

use common::{documented, ends, folder, run};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn real(name: &str) -> Option<PathBuf> {
    let path =
        std::env::var_os("HOLDFAST_TEST_DATA").map(|data| PathBuf::from(data).join("rosbag").join(name));
    let path = path.filter(|path| path.is_file());
    if path.is_none() {
        eprintln!("skipped: there is no rosbag/{name} in the folder of real inputs ($HOLDFAST_TEST_DATA)");
    }
    path
}

#[test]
fn a_real_bag_is_decoded_by_the_ros_package_and_queried() {
    let Some(bag) = real("example-lz4.bag") else { return };
    let folder = folder();
    let dir = folder.path();
    fs::copy(bag, dir.join("run.bag")).unwrap();
    let said = ends(dir, "dataset convert run.bag -o run.mcap --json", 0).json();
    documented("dataset", [&said]);
    assert_eq!(said["damage"], serde_json::Value::Null);
    assert!(said["messages"].as_u64().unwrap() > 100, "{said}");
    python_decodes(dir, said["messages"].as_u64().unwrap());
    for compression in ["lz4", "none"] {
        let line = format!("dataset convert run.bag -o {compression}.mcap --compress {compression} --json");
        assert_eq!(ends(dir, &line, 0).json()["messages"], said["messages"]);
    }
    let said = ends(dir, "dataset convert run.bag -o run.mcap", 1);
    assert!(said.err.contains("there is a file of that name"), "{}", said.err);
}

/// The package decodes every message; count, order, times and bytes are those that another parser finds in the bag.
fn python_decodes(dir: &Path, count: u64) {
    let Some(python) = std::env::var_os("HOLDFAST_PYTHON").filter(|python| Path::new(python).is_file())
    else {
        eprintln!("HOLDFAST_PYTHON is unset: the package mcap-ros1-support does not decode the messages");
        return;
    };
    let has = Command::new(&python).args(["-c", "import mcap_ros1, lz4.frame"]).output().unwrap();
    if !has.status.success() {
        eprintln!("the Python package mcap-ros1-support is missing: nothing decodes the messages");
        return;
    }
    let script = "
import struct, sys
import lz4.frame
from mcap.reader import make_reader
from mcap_ros1.decoder import DecoderFactory

def records(data):
    at = 0
    while at < len(data):
        parts = []
        for _ in range(2):
            length, = struct.unpack_from('<I', data, at)
            parts.append(data[at + 4:at + 4 + length])
            at += 4 + length
        yield fields(parts[0]), parts[1]

def fields(data):
    at, found = 0, {}
    while at < len(data):
        length, = struct.unpack_from('<I', data, at)
        name, value = data[at + 4:at + 4 + length].split(b'=', 1)
        found[name.decode()] = value
        at += 4 + length
    return found

topics, messages = {}, []
for header, data in records(open('run.bag', 'rb').read()[13:]):
    if header['op'] != b'\\x05':
        continue
    assert header['compression'] == b'lz4'
    for header, data in records(lz4.frame.decompress(data)):
        if header['op'] == b'\\x07':
            topics[header['conn']] = header['topic'].decode(), fields(data)
        else:
            seconds, nanoseconds = struct.unpack('<II', header['time'])
            topic, connection = topics[header['conn']]
            messages.append((topic, connection['type'].decode(), seconds * 10**9 + nanoseconds, data))

with open('run.mcap', 'rb') as file:
    reader = make_reader(file, validate_crcs=True, decoder_factories=[DecoderFactory()])
    assert reader.get_header().profile == 'ros1'
    found = [(c.topic, s.name, m.log_time, m.data) for s, c, m in reader.iter_messages(log_time_order=False)]
    assert found == messages, (len(found), len(messages))
    assert reader.get_summary().statistics.message_count == len(messages) == int(sys.argv[1])
    for channel in reader.get_summary().channels.values():
        schema = reader.get_summary().schemas[channel.schema_id]
        assert any(schema.data == connection['message_definition'] and
                   channel.metadata['md5sum'] == connection['md5sum'].decode() for _, connection in topics.values())
    decoded = sum(1 for s, c, m, ros in reader.iter_decoded_messages() if ros is not None and ros._type == s.name)
    assert decoded == len(messages), decoded
";
    let said =
        Command::new(python).current_dir(dir).args(["-c", script, &count.to_string()]).output().unwrap();
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
}

#[test]
fn a_bag_without_messages_becomes_a_valid_file() {
    let Some(bag) = real("no-messages.bag") else { return };
    let folder = folder();
    let dir = folder.path();
    fs::copy(bag, dir.join("empty.bag")).unwrap();
    let said = ends(dir, "dataset convert empty.bag -o empty.mcap --json", 0).json();
    assert_eq!(said["messages"], 0);
    let bytes = fs::read(dir.join("empty.mcap")).unwrap();
    assert_eq!(mcap::Summary::read(&bytes).unwrap().unwrap().stats.unwrap().message_count, 0);
}

#[test]
fn a_cut_bag_is_an_error_that_says_what_can_be_saved() {
    let Some(bag) = real("example-lz4.bag") else { return };
    let folder = folder();
    let dir = folder.path();
    let bytes = fs::read(bag).unwrap();
    // Its messages are one chunk.
    fs::write(dir.join("half.bag"), &bytes[..bytes.len() / 2]).unwrap();
    fs::write(dir.join("cut.bag"), &bytes[..bytes.len() - 100]).unwrap();
    let said = ends(dir, "dataset convert cut.bag -o cut.mcap", 1);
    assert!(
        said.err.contains("cut.bag: ") && said.err.contains("can be saved: `--salvage` writes them"),
        "{}",
        said.err
    );
    assert!(!dir.join("cut.mcap").exists());
    let said = ends(dir, "dataset convert cut.bag -o cut.mcap --salvage --json", 0).json();
    documented("dataset", [&said]);
    assert!(said["messages"].as_u64().unwrap() > 0 && said["damage"]["at_byte"].is_u64(), "{said}");
    let said = run(dir, "dataset convert cut.bag -o again.mcap --salvage");
    assert!(said.code == Some(0) && said.err.contains("damaged, the record at byte"), "{}", said.err);

    fs::write(dir.join("none.txt"), "no bag").unwrap();
    for (line, code, words) in [
        ("dataset convert half.bag -o x.mcap --salvage", 1, "no message of it can be saved"),
        ("dataset convert none.txt -o x.mcap", 1, "this is not a pcap, pcapng or MCAP file"),
        ("dataset convert cut.bag -o x.csv", 2, "a ROS bag is converted to MCAP"),
        ("dataset convert missing.bag -o x.mcap", 1, "missing.bag"),
        ("dataset convert cut.bag -o none/x.mcap --salvage", 1, "none"),
        ("dataset convert cut.bag -o /dev/full --salvage --format mcap", 1, "full"),
    ] {
        let said = ends(dir, line, code);
        assert!(said.err.contains(words), "{line}: {}", said.err);
    }
}
