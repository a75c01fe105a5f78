//! `read --filter` gives the packets that tcpdump would take out of the same captures, to the byte, in every form.
#![allow(missing_docs, clippy::unwrap_used)]

use crate::common;
use crate::common::filled;

use common::{Said, ends, folder, holdfast, record, tool};
use filled::Filler;
use holdfast_ingest::packet::Reader;
use serde_json::Value;
use std::fmt::Write;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const FILTERS: [&str; 14] = [
    "ip protochain 6",
    "ip6 protochain 58 or ip protochain 17",
    "tcp port 443",
    "udp and not port 53",
    "host 192.168.1.7 or net 149.154.160.0/20",
    "ip6 and tcp",
    "arp or igmp or icmp or icmp6",
    "tcp[tcpflags] & (tcp-syn|tcp-fin) != 0 and tcp[tcpflags] & tcp-ack == 0",
    "greater 1400",
    "less 60",
    "ether broadcast or ether multicast",
    "portrange 1900-5355 and dst net 224.0.0.0/4",
    "tcp[((tcp[12] & 0xf0) >> 2):4] = 0x47455420",
    "not ip",
];

fn read(dir: &Path, line: &str, filter: &str, code: i32) -> Said {
    let mut command = holdfast(dir);
    let said: Said =
        command.args(["read", "r.hf", "--filter", filter]).args(line.split(' ')).output().unwrap().into();
    assert_eq!(said.code, Some(code), "{filter}: {}", said.err);
    assert!(!said.err.contains("panicked") && !said.err.contains("this is a bug"), "{}", said.err);
    said
}

/// Time (to the microsecond, which is what tcpdump writes), length on the wire, and bytes of each packet.
fn packets(file: &[u8]) -> Vec<(i64, u32, Vec<u8>)> {
    let mut reader = Reader::new(file);
    let mut packets = Vec::new();
    while let Some(packet) = reader.next_packet().unwrap() {
        packets.push((packet.time.unwrap().0 / 1000, packet.original_len, packet.data.to_vec()));
    }
    packets
}

#[test]
fn real_packets_pass_as_tcpdump_lets_them() {
    let Some(data) = std::env::var_os("HOLDFAST_TEST_DATA") else {
        println!("skipped: there are no real captures ($HOLDFAST_TEST_DATA names the folder of real inputs)");
        return;
    };
    let Some(tcpdump) = tool("tcpdump") else { return };
    let mut files: Vec<PathBuf> =
        fs::read_dir(PathBuf::from(data).join("pcap")).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    let folder = folder();
    let dir = folder.path();
    let mut line = "r.hf --size 64MiB --slot 256KiB".to_owned();
    for (number, file) in files.iter().enumerate() {
        std::os::unix::fs::symlink(file, dir.join(format!("c{number}"))).unwrap();
        write!(line, " --source replay:c{number} --name c{number} --speed max").unwrap();
    }
    let said = record(dir, &line, Stdio::null());
    assert_eq!(said.code, Some(0), "{}", said.err);
    for filter in FILTERS {
        let (mut passed, mut all) = (0, 0);
        for (number, file) in files.iter().enumerate() {
            let mut theirs = Command::new(&tcpdump);
            theirs.args(["-r", "-", "-w", "-", filter]).stdin(File::open(file).unwrap());
            let theirs = theirs.output().unwrap();
            assert!(theirs.status.success(), "{filter}: {}", String::from_utf8_lossy(&theirs.stderr));
            let wanted = packets(&theirs.stdout);
            let ours =
                read(dir, &format!("--stream c{number} -o -"), filter, if wanted.is_empty() { 3 } else { 0 });
            let ours = if wanted.is_empty() { Vec::new() } else { packets(&ours.bytes) };
            assert!(ours == wanted, "{filter}, {}: {} and {}", file.display(), ours.len(), wanted.len());
            passed += wanted.len();
            all += packets(&fs::read(file).unwrap()).len();
        }
        assert!(passed > 0 && passed < all, "{filter}: {passed}");
    }
}

/// 3000 packets, and some lines.
fn ring(dir: &Path) {
    ends(dir, "format r.hf --size 16MiB --slot 64KiB", 0);
    let mut filler = Filler::open(&dir.join("r.hf"));
    filler.packets(3000).lines(10);
    filler.close();
}

#[test]
fn every_form_has_what_passes_and_other_streams_are_refused() {
    let folder = folder();
    let dir = folder.path();
    ring(dir);
    // The number that each packet carries, in its last bytes.
    let filter = "udp[14:2] >= 1000 and udp[14:2] < 1200";
    let passing: Vec<Vec<u8>> = (1000..1200).map(filled::packet).collect();
    let said = read(dir, "--stream eth0 -o some.pcapng --json", filter, 0).json();
    assert_eq!(
        (&said["elements"], &said["payload_bytes"]),
        (&Value::from(200), &Value::from(200 * passing[0].len()))
    );
    let of_file: Vec<Vec<u8>> =
        packets(&fs::read(dir.join("some.pcapng")).unwrap()).into_iter().map(|(_, _, data)| data).collect();
    assert!(of_file == passing);
    let stretch = ends(dir, "read r.hf --stream eth0 --ordinals 1000..1200 -o -", 0);
    assert!(fs::read(dir.join("some.pcapng")).unwrap() == stretch.bytes, "the same file, to the byte");
    let raw = ends(dir, "read r.hf --stream eth0 --ordinals 1000..1200 --format raw -o -", 0);
    assert!(read(dir, "--stream eth0 --format raw -o -", filter, 0).bytes == raw.bytes);
    let file = read(dir, "--stream eth0 --format mcap -o -", filter, 0).bytes;
    let messages = mcap::MessageStream::new(&file).unwrap().map(|message| message.unwrap().data.to_vec());
    assert!(messages.eq(passing.iter().cloned()));
    let ordinals: Vec<u64> = read(dir, "--stream eth0 --format jsonl", filter, 0)
        .lines()
        .iter()
        .filter_map(|line| line["ordinal"].as_u64())
        .collect();
    assert!(ordinals.iter().copied().eq(1000..1200));
    let none = read(dir, "--stream eth0 -o out", "tcp", 3);
    assert!(none.err.contains("packets in that range none passes, --filter"), "{}", none.err);
    for (line, filter, said) in [
        ("--stream log -o out", "udp", "stream `log` has no packets"),
        ("--format jsonl", "udp", "stream `log` has no packets"),
        ("--stream eth0 -o out", "udp prot 9", "the filter `udp prot 9` is not in the syntax of tcpdump"),
        ("--stream eth0 -o out", "wlan type mgt", "link type 1"),
    ] {
        let refused = read(dir, line, filter, 2);
        assert!(refused.err.contains(said), "{line} {filter}: {}", refused.err);
    }
    assert!(!dir.join("out").exists() && !dir.join("out.part").exists());
}

// What a packet begins with is told by the preamble that was there when it was recorded, not by the last one.
#[test]
fn packets_are_read_by_the_preamble_that_they_came_with() {
    let folder = folder();
    let dir = folder.path();
    ends(dir, "format r.hf --size 8MiB --slot 64KiB", 0);
    // An IPv4 UDP datagram from 10.0.0.1, bare and in an Ethernet frame.
    let framed = filled::packet(7);
    let capture = |link_type: u32, packet: &[u8]| -> Vec<u8> {
        let head = [0xa1b2_c3d4u32, 2 | 4 << 16, 0, 0, 65_535, link_type];
        let mut file: Vec<u8> = head.iter().flat_map(|word| word.to_le_bytes()).collect();
        for second in 0..20 {
            let len = packet.len() as u32;
            file.extend([1_700_000_000 + second, 0, len, len].iter().flat_map(|word| word.to_le_bytes()));
            file.extend_from_slice(packet);
        }
        file
    };
    for (name, link_type, packet, attributes) in [
        ("bare.pcap", 101, &framed[14..], "none"),
        ("framed.pcap", 1, &framed[..], "none"),
        ("again.pcap", 101, &framed[14..], "packets"),
    ] {
        fs::write(dir.join(name), capture(link_type, packet)).unwrap();
        let line = format!("r.hf --source replay:{name} --speed max --name p --attr {attributes}");
        let said = record(dir, &line, Stdio::null());
        assert_eq!(said.code, Some(0), "{}", said.err);
    }
    let sql = "select count(*) n, count(src) src, count(eth_src) eth from p where dst = '10.0.0.2'";
    let said: Said = holdfast(dir).args(["query", "r.hf", sql, "--json"]).output().unwrap().into();
    let told = said.json();
    assert_eq!([&told["n"], &told["src"], &told["eth"]], [60, 60, 20].map(Value::from).each_ref(), "{told}");
}
