//! Comparison of every packet field with tshark, where it is installed: real captures (`$HOLDFAST_TEST_DATA`) and
//! packets built by hand.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::common;

use common::packets::{dns, elsewhere, ethernet, gre, hello, ipv4, ipv6, mpls, pppoe, tcp, udp, vxlan};
use common::{real, schema};
use holdfast_attributes::{Element, Schema};
use holdfast_ingest::packet::{Reader, scan};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

const FIELDS: [&str; 23] = [
    "frame.protocols",
    "frame.len",
    "frame.cap_len",
    "eth.src",
    "eth.dst",
    "sll.src.eth",
    "ieee8021ad.id",
    "vlan.id",
    "ip.version",
    "ip.src",
    "ip.dst",
    "ip.proto",
    "ipv6.version",
    "ipv6.src",
    "ipv6.dst",
    "tcp.srcport",
    "tcp.dstport",
    "tcp.flags",
    "udp.srcport",
    "udp.dstport",
    "dns.qry.name",
    "tls.handshake.extensions_server_name",
    "tls.handshake.type",
];

/// Fields of a packet: all occurrences of each, from the outside in.
type Row = BTreeMap<&'static str, Vec<String>>;

/// A row for each packet, of this packet alone. `None` where there is no tshark.
fn tshark(path: &Path) -> Option<Vec<Row>> {
    let mut command = Command::new("tshark");
    command.args(["-n", "-T", "fields", "-E", "occurrence=a", "-E", "aggregator=|", "-E", "separator=/t"]);
    // Nothing is to come from packets before: no reassembly, and no silence on what was sent again.
    for preference in
        ["tcp.desegment_tcp_streams", "tcp.analyze_sequence_numbers", "ip.defragment", "ipv6.defragment"]
    {
        command.args(["-o", &format!("{preference}:FALSE")]);
    }
    for field in FIELDS {
        command.args(["-e", field]);
    }
    let output = match command.arg("-r").arg(path).output() {
        Ok(output) => output,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            eprintln!("SKIPPED: there is no tshark");
            return None;
        }
        Err(error) => panic!("{error}"),
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let all = |field: &str| field.split('|').map(str::to_owned).collect();
    let row = |line: &str| FIELDS.into_iter().zip(line.split('\t').map(all)).collect();
    Some(text.lines().map(row).collect())
}

/// What tshark tells in our words.
fn wanted(row: &Row) -> BTreeMap<&'static str, String> {
    let get = |field: &str| row[field][0].clone();
    let layers: Vec<&str> = row["frame.protocols"][0].split(':').collect();
    let behind = |layer: &str| layers.iter().position(|name| *name == layer).map(|at| &layers[at + 1..]);
    let v6 = match (layers.iter().position(|l| *l == "ip"), layers.iter().position(|l| *l == "ipv6")) {
        (Some(v4), Some(v6)) => v6 < v4,
        (_, v6) => v6.is_some(),
    };
    let protocol = if v6 {
        let inner = behind("ipv6").unwrap_or_default();
        inner
            .iter()
            .find(|layer| !layer.starts_with("ipv6."))
            .map(|layer| if *layer == "ip" { "ipip".to_owned() } else { (*layer).to_owned() })
            .unwrap_or_default()
    } else {
        match row["ip.proto"][0].as_str() {
            "1" => "icmp".into(),
            "2" => "igmp".into(),
            "4" => "ipip".into(),
            "41" => "ipv6".into(),
            "47" => "gre".into(),
            "6" => "tcp".into(),
            "17" => "udp".into(),
            "" if layers.contains(&"arp") => "arp".into(),
            "" if layers.contains(&"llc") => "llc".into(),
            number => number.to_owned(),
        }
    };
    // A packet within an ICMP message has ports, too.
    let port = |end: &str| match protocol.as_str() {
        "tcp" | "udp" => get(&format!("{protocol}.{end}port")),
        _ => String::new(),
    };
    let flags = u16::from_str_radix(row["tcp.flags"][0].trim_start_matches("0x"), 16);
    let ip = |end: &str| get(&format!("{}.{end}", if v6 { "ipv6" } else { "ip" }));
    // Headers in each other, but not those that an ICMP message quotes.
    let headers: Vec<&str> = layers
        .iter()
        .copied()
        .take_while(|layer| !["icmp", "icmpv6", "teredo"].contains(layer))
        .filter(|layer| ["ip", "ipv6"].contains(layer))
        .collect();
    let inner = |end: &str| match &headers[..] {
        [before @ .., last] if !before.is_empty() => {
            let number = before.iter().filter(|layer| *layer == last).count();
            row[format!("{last}.{end}").as_str()][number].clone()
        }
        _ => String::new(),
    };
    let asks = ["53", "5353"].iter().any(|dns| [port("src"), port("dst")].iter().any(|port| port == dns));
    let or = |first: String, second: &str| if first.is_empty() { get(second) } else { first };
    BTreeMap::from([
        ("eth_src", or(get("eth.src"), "sll.src.eth")),
        ("eth_dst", get("eth.dst")),
        ("vlan", or(get("ieee8021ad.id"), "vlan.id")),
        ("ip_version", ip("version")),
        ("inner_src", inner("src")),
        ("inner_dst", inner("dst")),
        ("src", ip("src")),
        ("dst", ip("dst")),
        ("src_port", port("src")),
        ("dst_port", port("dst")),
        (
            "tcp_flags",
            flags.ok().filter(|_| protocol == "tcp").map(|flags| flags.to_string()).unwrap_or_default(),
        ),
        ("dns_name", if asks { get("dns.qry.name").to_lowercase() } else { String::new() }),
        (
            "tls_name",
            if protocol == "tcp" { get("tls.handshake.extensions_server_name") } else { String::new() },
        ),
        ("protocol", protocol),
        ("wire_len", get("frame.len")),
        ("captured_len", get("frame.cap_len")),
    ])
}

/// Compares a file, and counts what each field was told for.
fn compare(path: &Path, schema: &Schema, told: &mut BTreeMap<String, usize>) {
    let Some(rows) = tshark(path) else { return };
    let bytes = std::fs::read(path).unwrap();
    let (preamble, _) = scan(&bytes[..], 1 << 20).unwrap();
    let mut reader = Reader::new(&bytes[..]);
    let mut number = 0;
    while let Some(packet) = reader.next_packet().unwrap() {
        let interface = &preamble.interfaces()[usize::from(packet.interface)];
        let element = Element {
            original_size: packet.original_len.into(),
            link_type: Some(interface.link_type.0),
            ..Element::of(packet.data)
        };
        let (values, _) = common::read(schema, &element);
        let wanted = wanted(&rows[number]);
        for (attribute, value) in schema.attributes().iter().zip(values) {
            let name = attribute.name();
            let other = &wanted[name];
            // Types of frames that have no name here; and later fragments, of which tshark says that they are data.
            let nameless =
                name == "protocol" && (value.starts_with("0x") && other.is_empty() || other == "data");
            assert!(
                value == *other || nameless,
                "{}, packet {}: {name} is `{value}`, and for tshark `{other}`: {:?}",
                path.display(),
                number + 1,
                rows[number]
            );
            *told.entry(name.to_owned()).or_default() += usize::from(!value.is_empty());
        }
        number += 1;
    }
    assert_eq!(number, rows.len(), "{}", path.display());
}

/// A capture file of these packets.
fn capture(path: &Path, link_type: u32, packets: &[Vec<u8>]) {
    let mut file = [0xa1b2_c3d4u32, 0x0004_0002, 0, 0, 65_535, link_type].map(u32::to_le_bytes).concat();
    for packet in packets {
        let len = packet.len() as u32;
        file.extend([0, 0, len, len + 3].map(u32::to_le_bytes).concat());
        file.extend(packet);
    }
    std::fs::write(path, file).unwrap();
}

#[test]
fn made_packets_are_as_tshark_tells_them() {
    let question = dns(&[b"www", b"Example", b"org"]);
    let fragment = |payload: &[u8]| [&[17, 0, 0, 9, 0, 0, 0, 7], payload].concat();
    let inner = [
        ipv4(17, 0, &udp(40_000, 53, &question)),
        ipv4(17, 5, &udp(40_000, 53, &question)),
        ipv4(6, 0, &tcp(40_000, 443, 0x1c2, &hello(b"example.org"))),
        ipv4(6, 0, &tcp(40_000, 53, 0x18, &[&(question.len() as u16).to_be_bytes()[..], &question].concat())),
        ipv4(1, 0, &[3, 3, 0, 0, 0, 0, 0, 0]),
    ];
    let wide = [
        ipv6(17, &udp(40_000, 5353, &question)),
        ipv6(0, &[&[17, 0, 1, 4, 0, 0, 0, 0][..], &udp(7, 9, b"")].concat()),
        ipv6(44, &fragment(&udp(7, 9, b"not ports"))),
        ipv6(58, &[128, 0, 0, 0, 0, 0, 0, 0]),
    ];
    let cooked = |kind: [u8; 2], packet: &[u8]| {
        [&[0, 0, 0, 1, 0, 6, 2, 0, 0, 0, 0, 0xa, 0, 0][..], &kind, packet].concat()
    };
    let second = |kind: [u8; 2], packet: &[u8]| {
        [&kind[..], &[0, 0, 0, 0, 0, 3, 0, 1, 0, 6, 2, 0, 0, 0, 0, 0xa, 0, 0], packet].concat()
    };
    let each = |v4: &dyn Fn(&[u8]) -> Vec<u8>, v6: &dyn Fn(&[u8]) -> Vec<u8>| -> Vec<Vec<u8>> {
        inner.iter().map(|packet| v4(packet)).chain(wide.iter().map(|packet| v6(packet))).collect()
    };
    let tagged = |tags: &'static [(u16, u16)]| {
        each(&|packet| ethernet(tags, 0x0800, packet), &|packet| ethernet(tags, 0x86dd, packet))
    };
    // Bytes of names that are no text.
    let names = [&b"t\xe4st"[..], b"\xff", "k\u{fc}che".as_bytes(), b"a\xe2\x82b", b"a\\b"];
    let names = names.iter().flat_map(|name| {
        let question = udp(40_000, 53, &dns(&[name, b"Example", b"org"]));
        let greeting = tcp(40_000, 443, 0x18, &hello(&[name, &b".example.org"[..]].concat()));
        [ipv4(17, 0, &question), ipv4(6, 0, &greeting)]
    });
    // Labels, sessions and tunnels.
    let (v4, v6) = (elsewhere(ipv4(17, 0, &udp(7, 9, b"ab"))), elsewhere(ipv6(6, &tcp(7, 9, 2, b""))));
    let tunnels = [
        ipv4(4, 0, &v4),
        ipv4(41, 0, &v6),
        ipv4(47, 0, &gre(0, 0x0800, &v4)),
        ipv4(47, 0, &gre(0x20, 0x86dd, &v6)),
        ipv4(47, 0, &gre(0xb0, 0x6558, &ethernet(&[], 0x0800, &v4))),
        ipv4(47, 0, &gre(0x10, 0x8847, &mpls(&v4))),
        ipv4(17, 0, &vxlan(&ethernet(&[], 0x86dd, &v6))),
        ipv4(4, 0, &ipv4(47, 0, &gre(0, 0x86dd, &ipv6(4, &v4)))),
    ];
    let wide_tunnels = [ipv6(4, &v4), ipv6(41, &v6), ipv6(47, &gre(0, 0x0800, &v4))];
    let passed_by = each(&|packet| ethernet(&[], 0x8847, &mpls(packet)), &|packet| {
        ethernet(&[(0x8100, 5)], 0x8847, &mpls(packet))
    });
    let sessions = each(&|packet| ethernet(&[], 0x8864, &pppoe(&[0, 0x21], packet)), &|packet| {
        ethernet(&[(0x8100, 5)], 0x8864, &pppoe(&[0, 0x57], packet))
    });
    let shortened =
        vec![ethernet(&[], 0x8864, &pppoe(&[0x21], &v4)), ethernet(&[], 0x8864, &pppoe(&[0x57], &v6))];
    let files = [
        (1, tunnels.iter().map(|packet| ethernet(&[], 0x0800, packet)).collect()),
        (1, wide_tunnels.iter().map(|packet| ethernet(&[], 0x86dd, packet)).collect()),
        (1, passed_by),
        (1, sessions),
        (1, shortened),
        (1, names.map(|packet| ethernet(&[], 0x0800, &packet)).collect()),
        (1, tagged(&[])),
        (1, tagged(&[(0x8100, 5)])),
        (1, tagged(&[(0x88a8, 100), (0x8100, 5)])),
        (1, vec![ethernet(&[], 0x0806, &[&[0, 1, 8, 0, 6, 4, 0, 1][..], &[2; 20]].concat())]),
        (101, each(&<[u8]>::to_vec, &<[u8]>::to_vec)),
        (0, each(&|packet| [&[2, 0, 0, 0], packet].concat(), &|packet| [&[30, 0, 0, 0], packet].concat())),
        (113, each(&|packet| cooked([8, 0], packet), &|packet| cooked([0x86, 0xdd], packet))),
        (276, each(&|packet| second([8, 0], packet), &|packet| second([0x86, 0xdd], packet))),
    ];
    let folder = tempfile::tempdir().unwrap();
    let mut told = BTreeMap::new();
    for (number, (link_type, packets)) in files.iter().enumerate() {
        let path = folder.path().join(format!("{number}-{link_type}.pcap"));
        capture(&path, *link_type, packets);
        compare(&path, &schema(&["packets"]), &mut told);
    }
    assert!(told.is_empty() || told.len() == 16 && told.values().all(|count| *count > 0), "{told:?}");
}

#[test]
fn real_packets_are_as_tshark_tells_them() {
    let Some(folder) = real("pcap") else { return };
    let mut told = BTreeMap::new();
    for file in std::fs::read_dir(folder).unwrap() {
        compare(&file.unwrap().path(), &schema(&["packets"]), &mut told);
    }
    let often = told.iter().filter(|(_, count)| **count > 100).count();
    assert!(told.is_empty() || often >= 12, "{told:?}");
}
