//! Filters of people who know tshark, asked in SQL of rings with real captures (`$HOLDFAST_TEST_DATA`): the same packets are
//! found, where tshark is installed.
#![allow(missing_docs, clippy::unwrap_used)]

use crate::common;

use common::{folder, holdfast, record, tool};
use holdfast_ingest::packet::{Reader, scan};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What a question finds, and what tshark is to show instead: of the outermost headers (`#1`; a packet that an ICMP message
/// quotes has ports, too), and of one packet at a time.
const FILTERS: [(&str, &str); 20] = [
    ("src = '192.168.1.7'", "ip.src#1 == 192.168.1.7"),
    (
        "dst = '2a01:cb01:2049:8b07:991d:ec85:28df:f629'",
        "ipv6.dst#1 == 2a01:cb01:2049:8b07:991d:ec85:28df:f629",
    ),
    ("in_net(src, '149.154.160.0/20')", "ip.src#1 == 149.154.160.0/20"),
    (
        "in_net(dst, 'ff00::/8') or in_net(dst, '224.0.0.0/4')",
        "ipv6.dst#1 == ff00::/8 or ip.dst#1 == 224.0.0.0/4",
    ),
    ("eth_dst = 'ff:ff:ff:ff:ff:ff'", "eth.dst == ff:ff:ff:ff:ff:ff"),
    ("vlan = 100", "ieee8021ad.id == 100 or (not ieee8021ad and vlan.id == 100)"),
    (
        "vlan is null and ip_version = 4",
        "not vlan and not ieee8021ad and ip.version#1 == 4 and not (ipv6 and eth.type == 0x86dd)",
    ),
    ("protocol = 'udp' and 1900 in (src_port, dst_port)", "not icmp and udp.port == 1900"),
    (
        "src_port between 8000 and 9000",
        "not icmp and (tcp.srcport in {8000..9000} or udp.srcport in {8000..9000})",
    ),
    (
        "src_port < dst_port and dst_port > 49151",
        "not icmp and ((tcp.srcport < tcp.dstport and tcp.dstport > 49151) or (udp.srcport < udp.dstport and udp.dstport > 49151))",
    ),
    ("src_port is null", "icmp or icmpv6 or not (tcp or udp)"),
    (
        "not (src_port = 443 or dst_port = 443)",
        "(tcp or udp) and not icmp and not icmpv6 and not tcp.port == 443 and not udp.port == 443",
    ),
    ("tcp_flags & 18 = 2", "tcp.flags.syn == 1 and tcp.flags.ack == 0"),
    (
        "tcp_flags & 5 <> 0 and not in_net(dst, '192.168.0.0/16')",
        "(tcp.flags.reset == 1 or tcp.flags.fin == 1) and ((ip and not ip.dst#1 == 192.168.0.0/16) or ipv6)",
    ),
    ("wire_len > 1400 or captured_len < 60", "frame.len > 1400 or frame.cap_len < 60"),
    ("protocol in ('arp', 'igmp', 'icmpv6')", "arp or igmp or icmpv6"),
    ("ip_version = 6 and protocol <> 'tcp'", "ipv6 and not tcp"),
    (
        "dns_name like '%.netflix.com' or dns_name like '%.local'",
        "udp.port in {53, 5353} and dns.qry.name matches \"[.](netflix[.]com|local)$\"",
    ),
    ("tls_name like '%amazon%'", "tcp and tls.handshake.extensions_server_name matches \"amazon\""),
    (
        "tls_name is not null and wire_len < 400 and not tcp_flags & 8 = 0 or dns_name is not null and src = '192.168.1.6'",
        "(tcp.flags.push == 1 and tls.handshake.extensions_server_name and frame.len < 400) or (dns.qry.name and udp.port in {53, 5353} and ip.src#1 == 192.168.1.6)",
    ),
];

/// The captures.
fn captures() -> Option<Vec<PathBuf>> {
    let Some(data) = std::env::var_os("HOLDFAST_TEST_DATA") else {
        println!("skipped: there are no real captures ($HOLDFAST_TEST_DATA names the folder of real inputs)");
        return None;
    };
    let folder = PathBuf::from(data).join("pcap");
    let files = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
    files.sort();
    Some(files)
}

/// The packets of a capture, which are of Ethernet.
fn packets(path: &Path) -> Vec<Vec<u8>> {
    let bytes = fs::read(path).unwrap();
    let (preamble, _) = scan(&bytes[..], 1 << 20).unwrap();
    assert!(preamble.interfaces().iter().all(|interface| interface.link_type.0 == 1), "{}", path.display());
    let mut reader = Reader::new(&bytes[..]);
    let mut packets = Vec::new();
    while let Some(packet) = reader.next_packet().unwrap() {
        assert_eq!(packet.original_len as usize, packet.data.len(), "{}", path.display());
        packets.push(packet.data.to_vec());
    }
    packets
}

/// The same packets in VLANs, which none of the captures has: one in three untagged, one tagged, one tagged twice.
fn tagged(packets: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let tags = |number: usize| match number % 3 {
        0 => Vec::new(),
        1 => vec![0x81, 0, 0, 100 + (number % 2) as u8],
        _ => vec![0x88, 0xa8, 0, 100 + (number % 2) as u8, 0x81, 0, 0, 100],
    };
    let packets = packets.iter().enumerate();
    packets.map(|(number, packet)| [&packet[..12], &tags(number), &packet[12..]].concat()).collect()
}

/// Writes a capture file.
fn write(path: &Path, packets: &[Vec<u8>]) {
    let mut file = [0xa1b2_c3d4u32, 0x0004_0002, 0, 0, 65_535, 1].map(u32::to_le_bytes).concat();
    for packet in packets {
        file.extend([0, 0, packet.len() as u32, packet.len() as u32].map(u32::to_le_bytes).concat());
        file.extend(packet);
    }
    fs::write(path, file).unwrap();
}

/// The numbers of the packets of a file that tshark shows, from 0.
fn shown(tshark: &Path, path: &Path, filter: &str) -> BTreeSet<u64> {
    let mut command = Command::new(tshark);
    // Nothing is to come from packets before: no reassembly, and no silence on what was sent again.
    for preference in
        ["tcp.desegment_tcp_streams", "tcp.analyze_sequence_numbers", "ip.defragment", "ipv6.defragment"]
    {
        command.args(["-o", &format!("{preference}:FALSE")]);
    }
    command.args(["-n", "-T", "fields", "-e", "frame.number", "-Y", filter, "-r"]).arg(path);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{filter}: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| line.parse::<u64>().unwrap() - 1).collect()
}

/// The same of all streams, one behind the other.
fn found(dir: &Path, starts: &[u64], condition: &str) -> BTreeSet<u64> {
    let of = |(number, start): (usize, &u64)| {
        format!("select {start} + ordinal number from c{number} where {condition}")
    };
    let sql: Vec<String> = starts.iter().enumerate().map(of).collect();
    let output =
        holdfast(dir).args(["query", "r.hf", "--json"]).arg(sql.join(" union all ")).output().unwrap();
    assert!(output.status.success(), "{condition}: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let number = |line: &str| serde_json::from_str::<Value>(line).unwrap()["number"].as_u64().unwrap();
    text.lines().map(number).collect()
}

#[test]
fn questions_find_what_tshark_shows() {
    let (Some(files), Some(tshark)) = (captures(), tool("tshark")) else { return };
    let folder = folder();
    let dir = folder.path();
    let mut all = Vec::new();
    let mut starts = Vec::new();
    let mut line = "r.hf --size 64MiB --slot 512KiB".to_owned();
    let mut add = |file: &Path, packets: Vec<Vec<u8>>| {
        let name = format!("c{}", starts.len());
        std::os::unix::fs::symlink(file, dir.join(&name)).unwrap();
        write!(line, " --source replay:{name} --name {name} --speed max").unwrap();
        starts.push(all.len() as u64);
        all.extend(packets);
    };
    for file in &files {
        add(file, packets(file));
    }
    let teams = files.iter().find(|file| file.ends_with("teams.pcap")).unwrap();
    let with_tags = tagged(&packets(teams));
    write(&dir.join("tagged"), &with_tags);
    add(&dir.join("tagged"), with_tags);
    let said = record(dir, &line, Stdio::null());
    assert_eq!(said.code, Some(0), "{}", said.err);
    // Those with tags apart: tshark would take them for more of the same connections.
    let apart = *starts.last().unwrap();
    write(&dir.join("all"), &all[..apart as usize]);
    for (condition, filter) in FILTERS {
        let ours = found(dir, &starts, condition);
        let mut theirs = shown(&tshark, &dir.join("all"), filter);
        theirs.extend(shown(&tshark, &dir.join("tagged"), filter).iter().map(|number| apart + number));
        let differ: Vec<_> = ours.symmetric_difference(&theirs).take(5).collect();
        assert!(
            differ.is_empty(),
            "{condition}: {} found, tshark shows {}; among others {differ:?} of {starts:?}",
            ours.len(),
            theirs.len()
        );
        assert!(!ours.is_empty() && ours.len() < all.len(), "{condition}: {}", ours.len());
    }
}
