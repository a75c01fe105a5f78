//! Real captures through preamble and packet blocks and back, checked by the tools of others where they are installed.

use crate::packet_files::builder::{File, Owned, read_whole};
use holdfast_ingest::packet::pcapng::{packet_block_len, write_packet};
use holdfast_ingest::packet::{Direction, Flags, Reader, Reception, scan};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The real captures, and hand-made ones beside them.
fn inputs() -> Vec<(String, Vec<u8>)> {
    let mut inputs: Vec<(String, Vec<u8>)> = [false, true]
        .into_iter()
        .map(|big| (format!("made by hand, big-endian {big}"), File::mixed(big).bytes))
        .collect();
    if let Some(data) = std::env::var_os("HOLDFAST_TEST_DATA") {
        let folder = PathBuf::from(data).join("pcap");
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            inputs.push((path.display().to_string(), std::fs::read(&path).unwrap()));
        }
        assert!(inputs.len() > 2, "no captures in {}", folder.display());
    }
    inputs
}

/// The file as Holdfast exports it: its preamble and all its packets.
pub(crate) fn exported(bytes: &[u8]) -> Vec<u8> {
    let (preamble, report) = scan(bytes, 1 << 20).unwrap();
    assert_eq!(report.broke, None);
    let mut out = preamble.as_bytes().to_vec();
    let mut reader = Reader::new(bytes);
    while let Some(packet) = reader.next_packet().unwrap() {
        let before = out.len();
        write_packet(&mut out, &packet).unwrap();
        assert_eq!(out.len() - before, packet_block_len(&packet));
    }
    out
}

#[test]
fn what_is_exported_reads_back_the_same() {
    for (name, bytes) in inputs() {
        let packets = read_whole(&bytes);
        assert!(!packets.is_empty(), "{name}");
        let out = exported(&bytes);
        let again = read_whole(&out);
        assert_eq!(packets.len(), again.len(), "{name}");
        for (n, (mut before, after)) in packets.into_iter().zip(again).enumerate() {
            // A packet block always has a time; nothing else may differ.
            before.time = before.time.or(Some(holdfast_base::Timestamp(0)));
            assert_eq!(before, after, "{name}, packet {n}");
        }
        let mut before = Reader::new(&bytes[..]);
        let mut after = Reader::new(&out[..]);
        while before.next_packet().unwrap().is_some() {}
        while after.next_packet().unwrap().is_some() {}
        assert_eq!(before.interfaces().len(), after.interfaces().len());
        for (before, after) in before.interfaces().iter().zip(after.interfaces()) {
            assert_eq!(before.link_type, after.link_type);
            assert_eq!((before.snaplen, &before.options), (after.snaplen, &after.options));
        }
        assert_eq!(exported(&out), out, "{name}");
    }
}

#[test]
fn flags_are_written_once() {
    let flags = Flags::new(Direction::Outbound, Reception::Unknown);
    let mut packet =
        Owned { interface: 0, time: None, original_len: 1, flags, options: Vec::new(), data: vec![1] };
    let file = File::mixed(false);
    let (preamble, _) = scan(&file.bytes[..], 1 << 20).unwrap();
    let mut out = preamble.as_bytes().to_vec();
    write_packet(&mut out, &packet.borrow()).unwrap();
    let back = read_whole(&out).remove(0);
    assert_eq!(back.flags, flags);
    packet.options.clone_from(&back.options);
    let mut again = preamble.as_bytes().to_vec();
    write_packet(&mut again, &packet.borrow()).unwrap();
    assert_eq!(again, out);
    packet.options.push(0);
    assert!(write_packet(&mut again, &packet.borrow()).is_err());
}

/// What a program prints, or `None` where it is not installed.
pub(crate) fn run(program: &str, arguments: &[&str], file: &Path) -> Option<String> {
    let output = match Command::new(program).args(arguments).arg(file).output() {
        Ok(output) if !matches!(output.status.code(), Some(126 | 127)) => output,
        failed => {
            println!("skipped: {program} cannot be run: {failed:?}");
            return None;
        }
    };
    assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).unwrap())
}

#[test]
fn other_tools_see_the_same_packets_before_and_after() {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in inputs() {
        let (before, after) = (folder.path().join("before"), folder.path().join("after.pcapng"));
        std::fs::write(&before, &bytes).unwrap();
        std::fs::write(&after, exported(&bytes)).unwrap();
        let count = ["-c", "-M", "-T", "-r"];
        let counted = |path| {
            run("capinfos", &count, path).map(|text| text.trim().rsplit('\t').next().unwrap().to_owned())
        };
        let (Some(counted_before), Some(counted_after)) = (counted(&before), counted(&after)) else { return };
        assert_eq!(counted_before, counted_after, "{name}");
        assert_eq!(counted_after, read_whole(&bytes).len().to_string(), "{name}");
        // Frame by frame: lengths, times, and all bytes by their hash.
        let fields = [
            "-n",
            "-o",
            "frame.generate_md5_hash:TRUE",
            "-T",
            "fields",
            "-e",
            "frame.len",
            "-e",
            "frame.cap_len",
            "-e",
            "frame.time_epoch",
            "-e",
            "frame.md5_hash",
            "-e",
            "frame.comment",
            "-r",
        ];
        let (Some(seen_before), Some(seen_after)) =
            (run("tshark", &fields, &before), run("tshark", &fields, &after))
        else {
            return;
        };
        for (n, (line, wanted)) in seen_after.lines().zip(seen_before.lines()).enumerate() {
            // A packet without a time in the file has 1970 in ours.
            let without_time = |line: &str| {
                let mut fields: Vec<String> = line.split('\t').map(str::to_owned).collect();
                if fields[2].is_empty() || fields[2].starts_with("0.0") {
                    fields[2].clear();
                }
                fields
            };
            assert_eq!(without_time(line), without_time(wanted), "{name}, packet {n}");
        }
        assert_eq!(seen_before.lines().count(), seen_after.lines().count(), "{name}");
    }
}
