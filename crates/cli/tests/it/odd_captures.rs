//! Odd captures and MCAP files (`$HOLDFAST_TEST_DATA`) with the right value for each: recorded, exported, searched, recovered.
#![allow(missing_docs, clippy::unwrap_used)]

use crate::common;

use common::{ends, folder, record};
use mcap::MessageStream;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// Copies an odd input into a folder; false where there is none.
fn odd(dir: &Path, name: &str) -> bool {
    let data = std::env::var_os("HOLDFAST_TEST_DATA").map(|data| Path::new(&data).join("odd").join(name));
    let copied = data.is_some_and(|path| fs::copy(path, dir.join(name)).is_ok());
    if !copied {
        eprintln!("SKIPPED: there is no odd/{name} in HOLDFAST_TEST_DATA");
    }
    copied
}

/// Records a file into a ring `r.hf`: its exit code, and what it says.
fn replayed(dir: &Path, name: &str) -> (Option<i32>, String) {
    let line = format!("r.hf --size 8MiB --slot 64KiB --source replay:{name} --name s --speed max");
    let said = record(dir, &line, Stdio::null());
    (said.code, said.err)
}

/// Topic, sequence and log time of each message.
fn messages(file: &Path) -> Vec<(String, u32, u64)> {
    let bytes = fs::read(file).unwrap();
    let message =
        |message: mcap::Message<'_>| (message.channel.topic.clone(), message.sequence, message.log_time);
    MessageStream::new(&bytes).unwrap().map(|one| message(one.unwrap())).collect()
}

#[test]
fn times_beyond_2262_are_exported_and_told() {
    let folder = folder();
    let dir = folder.path();
    if !odd(dir, "log-time-beyond-2262.mcap") {
        return;
    }
    let (code, said) = replayed(dir, "log-time-beyond-2262.mcap");
    assert_eq!(code, Some(0));
    assert!(said.contains("after the year 2262: 2"), "{said}");
    ends(dir, "read r.hf --format mcap -o out.mcap", 0);
    let found = messages(&dir.join("out.mcap"));
    for wanted in [("/t".to_owned(), 1, 18_446_744_073_619_551_616), ("/t".to_owned(), 2, 1 << 63)] {
        assert!(found.contains(&wanted), "{found:?}");
    }
}

#[test]
fn a_channel_number_that_is_taken_twice_ends_the_stream_with_a_gap() {
    let folder = folder();
    let dir = folder.path();
    if !odd(dir, "channel-number-taken-twice.mcap") {
        return;
    }
    let (code, said) = replayed(dir, "channel-number-taken-twice.mcap");
    assert_eq!(code, Some(1));
    assert!(said.contains("channel 1 is defined again with other contents"), "{said}");
    assert!(said.contains("1 gap"), "{said}");
    ends(dir, "read r.hf --format mcap -o out.mcap", 0);
    assert!(messages(&dir.join("out.mcap")).iter().all(|(topic, ..)| topic == "/t"));
}

#[test]
fn a_file_without_a_header_is_exported() {
    let folder = folder();
    let dir = folder.path();
    if !odd(dir, "no-header.mcap") {
        return;
    }
    assert_eq!(replayed(dir, "no-header.mcap").0, Some(0));
    ends(dir, "read r.hf --format mcap -o out.mcap", 0);
    assert_eq!(messages(&dir.join("out.mcap")).len(), 1);
}

#[test]
fn a_channel_before_its_schema_is_named() {
    let folder = folder();
    let dir = folder.path();
    if !odd(dir, "schema-behind-its-channel.mcap") {
        return;
    }
    let (code, said) = replayed(dir, "schema-behind-its-channel.mcap");
    assert_eq!(code, Some(1));
    assert!(said.contains("channel 1 refers to schema 1, which no record before it defines"), "{said}");
}

#[test]
fn tcpdump_reads_packets_longer_than_their_snapshot_length() {
    let folder = folder();
    let dir = folder.path();
    if !odd(dir, "longer-than-snaplen.pcap") {
        return;
    }
    assert_eq!(replayed(dir, "longer-than-snaplen.pcap").0, Some(0));
    ends(dir, "read r.hf -o out.pcapng", 0);
    let count = |name: &str| {
        let told = Command::new("tcpdump").current_dir(dir).args(["-nr", name]).output();
        told.ok().map(|told| (told.status.success(), told.stdout.split(|byte| *byte == b'\n').count()))
    };
    let original = count("longer-than-snaplen.pcap");
    assert!(original.is_none_or(|(is_read, lines)| is_read && lines == 3), "{original:?}");
    assert_eq!(count("out.pcapng"), original);
}

#[test]
fn names_with_high_bytes_are_found() {
    for (name, condition, wanted) in [
        ("dns-name-with-high-byte.pcap", "dns_name_like_'%.example.org'", 2),
        ("dns-90-high-bytes.pcap", "dns_name_is_not_null", 3),
    ] {
        let folder = folder();
        let dir = folder.path();
        if !odd(dir, name) {
            return;
        }
        assert_eq!(replayed(dir, name).0, Some(0));
        let line = format!("query r.hf select_count(*)_c_from_s_where_{condition} --json");
        assert_eq!(ends(dir, &line, 0).json()["c"], wanted, "{name}");
    }
}

#[test]
fn damaged_heads_of_chunks_are_told_and_cost_no_message() {
    for (name, is_damaged) in
        [("recover-undamaged.mcap", false), ("recover-opcode.mcap", true), ("recover-length-byte.mcap", true)]
    {
        let folder = folder();
        let dir = folder.path();
        if !odd(dir, name) {
            return;
        }
        let said = ends(dir, &format!("dataset recover {name} -o new.mcap --json"), 0).json();
        assert_eq!(
            (&said["messages"], said["damage"].is_null()),
            (&400.into(), !is_damaged),
            "{name}: {said}"
        );
        assert_eq!(messages(&dir.join("new.mcap")).len(), 400);
        let line = format!("dataset convert {name} -o run.mcap --json");
        let said = ends(dir, &line, i32::from(is_damaged));
        assert_eq!(said.err.contains("is damaged at byte"), is_damaged, "{name}: {}", said.err);
        // The recovered file is whole.
        let said = ends(dir, "dataset convert new.mcap -o whole.mcap --json", 0).json();
        assert_eq!(said["messages"], 400);
    }
}

#[test]
fn contents_of_tunnels_are_searched() {
    let folder = folder();
    let dir = folder.path();
    if !odd(dir, "tunnels.pcap") {
        return;
    }
    let fields =
        "packets:inner_src,inner_protocol,inner_src_port,vni,community_id,inner_community_id,vxlan=8472";
    let line = format!(
        "r.hf --size 8MiB --slot 64KiB --source replay:tunnels.pcap --name s --speed max --attr {fields}"
    );
    assert_eq!(record(dir, &line, Stdio::null()).code, Some(0));
    for (condition, wanted) in [
        // Rows 31 to 47 of tshark, but 38 (from VXLAN's port), 42 (ARP), and 49 (no tunnel); with the port that is named row 37, too.
        ("ordinal_between_30_and_46_and_inner_src_is_not_null", 15),
        ("vni_=_7_and_inner_src_port_=_1111", 5),
        ("inner_community_id_=_'1:G2aqklFb1V02c6r6Wz/5MxqmgDI='", 24),
        ("community_id_=_'1:zajkWhYe2Vqsle+oHwuWopk8ZrM='", 12),
    ] {
        let line = format!("query r.hf select_count(*)_c_from_s_where_{condition} --json");
        assert_eq!(ends(dir, &line, 0).json()["c"], wanted, "{condition}");
    }
}
