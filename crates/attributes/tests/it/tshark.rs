//! Comparison of every packet field with tshark, where it is installed: real captures (`$HOLDFAST_TEST_DATA`) and
//! packets built by hand.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::common;

use common::packets::{
    dns, elsewhere, erspan, erspan_3, ethernet, geneve, gre, gtp, hello, ipv4, ipv6, l2tp, mpls, pppoe, pptp,
    tcp, udp, vxlan, vxlan_to,
};
use common::{real, schema};
use holdfast_attributes::{Element, Schema};
use holdfast_ingest::packet::{Reader, scan};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

const FIELDS: [&str; 29] = [
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
    "sctp.srcport",
    "sctp.dstport",
    "vxlan.vni",
    "geneve.vni",
    "communityid",
    "ipv6.plen",
];

/// Names of protocols that both have.
const KNOWN: [&str; 10] = ["tcp", "udp", "icmp", "icmpv6", "igmp", "gre", "ipip", "ipv6", "sctp", "arp"];

/// All fields, with a further port of VXLAN.
fn all_fields() -> Schema {
    schema(&[
        "packets,vxlan=8472",
        "packets:inner_protocol,inner_src_port,inner_dst_port,vni,inner_community_id,vxlan=8472",
        "packets:community_id",
    ])
}

/// Fields of a packet: all occurrences of each, from the outside in.
type Row = BTreeMap<&'static str, Vec<String>>;

/// A row for each packet, of this packet alone. `None` where there is no tshark.
fn tshark(path: &Path) -> Option<Vec<Row>> {
    let mut command = Command::new("tshark");
    command.args(["--enable-protocol", "communityid", "-d", "udp.port==8472,vxlan"]);
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
            .find(|layer| !layer.starts_with("ipv6.") && **layer != "ah")
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
            "132" => "sctp".into(),
            "51" => behind("ah").and_then(|inner| inner.first()).copied().unwrap_or_default().into(),
            "" if layers.contains(&"arp") => "arp".into(),
            "" if layers.contains(&"llc") => "llc".into(),
            number => number.to_owned(),
        }
    };
    // A packet within an ICMP message has ports, too.
    let port = |end: &str| match protocol.as_str() {
        "tcp" | "udp" | "sctp" => get(&format!("{protocol}.{end}port")),
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
    let tunnel = inner_fields(row, &layers, headers.len());
    let asks = ["53", "5353"].iter().any(|dns| [port("src"), port("dst")].iter().any(|port| port == dns));
    // Tags in a tunnel are not those of the packet.
    let before_ip = layers.iter().take_while(|layer| !["ip", "ipv6"].contains(layer));
    let is_tagged = before_ip.clone().any(|layer| ["vlan", "ieee8021ad"].contains(layer));
    let or = |first: String, second: &str| if first.is_empty() { get(second) } else { first };
    BTreeMap::from([
        ("eth_src", or(get("eth.src"), "sll.src.eth")),
        ("eth_dst", get("eth.dst")),
        ("vlan", if is_tagged { or(get("ieee8021ad.id"), "vlan.id") } else { String::new() }),
        ("ip_version", ip("version")),
        ("inner_src", inner("src")),
        ("inner_dst", inner("dst")),
        ("inner_protocol", tunnel[0].clone()),
        ("inner_src_port", tunnel[1].clone()),
        ("inner_dst_port", tunnel[2].clone()),
        ("vni", tunnel[3].clone()),
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

/// Protocol and ports of the innermost of so many IP headers, if there are several, and the number of the innermost network.
fn inner_fields(row: &Row, layers: &[&str], headers: usize) -> [String; 4] {
    let is_ip = |layer: &&str| ["ip", "ipv6"].contains(layer);
    let last =
        layers.iter().enumerate().filter(|(_, layer)| is_ip(layer)).map(|(at, _)| at).nth(headers.max(1) - 1);
    let behind = last.map_or(&[][..], |last| &layers[last + 1..]);
    let inner = behind.iter().find(|layer| !layer.starts_with("ipv6.")).filter(|_| headers > 1).copied();
    let before = layers.len() - behind.len();
    let port = |end: &str| match inner {
        Some(protocol @ ("tcp" | "udp" | "sctp")) => {
            let number = layers[..before].iter().filter(|layer| **layer == protocol).count();
            row[format!("{protocol}.{end}port").as_str()][number].clone()
        }
        _ => String::new(),
    };
    let vni = match layers.iter().rev().find(|layer| ["vxlan", "geneve"].contains(layer)) {
        Some(&"vxlan") => row["vxlan.vni"].last().cloned().unwrap_or_default(),
        Some(_) => {
            let number = row["geneve.vni"].last().unwrap();
            u32::from_str_radix(number.trim_start_matches("0x"), 16).unwrap().to_string()
        }
        None => String::new(),
    };
    [inner.unwrap_or_default().to_owned(), port("src"), port("dst"), vni]
}

/// True for a packet of which we tell less than tshark, as docs/search.md says: Teredo, tunnels from their port instead of to it,
/// and link headers that are not passed by.
fn tells_more(row: &Row) -> bool {
    let layers: Vec<&str> = row["frame.protocols"][0].split(':').collect();
    let to_other_port = layers.contains(&"vxlan") && row["udp.srcport"][0] == "4789";
    let links = ["macsec", "ieee8021ah", "nsh", "vntag", "trill", "cmd", "llc", "pwethheuristic", "teredo"];
    // Nor does it look behind an IPv6 header without a length.
    to_other_port || row["ipv6.plen"][0] == "0" || links.iter().any(|link| layers.contains(link))
}

/// True for a value that tshark tells in another way, or not at all.
fn is_told_otherwise(name: &str, value: &str, other: &str, row: &Row) -> bool {
    let layers = &row["frame.protocols"][0];
    match name {
        // Types of frames and protocols without a common name; and later fragments, of which tshark says that they are data.
        "protocol" | "inner_protocol" => {
            other == "data" || !KNOWN.contains(&other) && !KNOWN.contains(&value)
        }
        // Tshark tells no number of tags of the type 0x9100.
        "vlan" => layers.contains("ieee8021ad") && row["ieee8021ad.id"][0].is_empty(),
        // The root, pointers and control characters; and over TCP messages of another length than told.
        "dns_name" => {
            other.starts_with('<') || other.contains('\\') || layers.ends_with("tcp:dns") && other.is_empty()
        }
        _ => false,
    }
}

/// Compares the Community ID, which tshark tells of the innermost flow.
fn compare_ids(row: &Row, values: &BTreeMap<String, String>, place: &str) -> bool {
    let other = &row["communityid"][0];
    let ours = Some(&values["inner_community_id"]).filter(|id| !id.is_empty());
    let ours = ours.unwrap_or(&values["community_id"]);
    let layers: Vec<&str> = row["frame.protocols"][0].split(':').collect();
    // UDP-Lite has the number of UDP there, IPv6 without ports no ID, nor has a UDP header that is cut ports.
    let is_other = layers.contains(&"udplite") || other.is_empty() || layers.last() == Some(&"udp");
    assert!(is_other || ours == other, "{place}: `{ours}`, and for tshark `{other}`: {row:?}");
    !is_other
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
        let named = schema.attributes().iter().map(|attribute| attribute.name().to_owned());
        let values: BTreeMap<String, String> = named.zip(values).collect();
        let wanted = wanted(&rows[number]);
        number += 1;
        if tells_more(&rows[number - 1]) {
            continue;
        }
        let place = format!("{}, packet {number}", path.display());
        let is_same = compare_ids(&rows[number - 1], &values, &place);
        *told.entry("community_id".to_owned()).or_default() += usize::from(is_same);
        for (name, value) in values.into_iter().filter(|(name, _)| !name.ends_with("community_id")) {
            let name = name.as_str();
            let other = &wanted[name];
            assert!(
                value == *other || is_told_otherwise(name, &value, other, &rows[number - 1]),
                "{place}: {name} is `{value}`, and for tshark `{other}`: {:?}",
                rows[number - 1]
            );
            *told.entry(name.to_owned()).or_default() += usize::from(!value.is_empty());
        }
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

/// A packet with its addresses exchanged.
fn turned(packet: &[u8]) -> Vec<u8> {
    let (at, len) = if packet[0] >> 4 == 4 { (12, 4) } else { (8, 16) };
    let (before, addresses, behind) = (&packet[..at], &packet[at..at + 2 * len], &packet[at + 2 * len..]);
    [before, &addresses[len..], &addresses[..len], behind].concat()
}

/// Packets for the inside of tunnels, of both versions.
fn inner_packets() -> (Vec<u8>, Vec<u8>) {
    (elsewhere(ipv4(17, 0, &udp(7, 9, b"ab"))), elsewhere(ipv6(6, &tcp(7, 9, 2, b""))))
}

/// Tunnels of every kind over IPv4.
fn tunnels() -> Vec<Vec<u8>> {
    let (v4, v6) = inner_packets();
    vec![
        ipv4(4, 0, &v4),
        ipv4(41, 0, &v6),
        ipv4(47, 0, &gre(0, 0x0800, &v4)),
        ipv4(47, 0, &gre(0x20, 0x86dd, &v6)),
        ipv4(47, 0, &gre(0xb0, 0x6558, &ethernet(&[], 0x0800, &v4))),
        ipv4(47, 0, &gre(0x10, 0x8847, &mpls(&v4))),
        ipv4(17, 0, &vxlan(&ethernet(&[], 0x86dd, &v6))),
        ipv4(4, 0, &ipv4(47, 0, &gre(0, 0x86dd, &ipv6(4, &v4)))),
        ipv4(17, 0, &vxlan_to(8472, &ethernet(&[(0x8100, 5)], 0x0800, &v4))),
        ipv4(17, 0, &vxlan(&ethernet(&[], 0x0806, &[&[0, 1, 8, 0, 6, 4, 0, 1][..], &[2; 20]].concat()))),
        ipv4(17, 0, &gtp(0, &[], &v4)),
        ipv4(17, 0, &gtp(2, &[], &v6)),
        ipv4(17, 0, &gtp(0, &[1, 2], &v4)),
        ipv4(17, 0, &geneve(0x6558, 0, &ethernet(&[], 0x86dd, &v6))),
        ipv4(17, 0, &geneve(0x0800, 2, &v4)),
        ipv4(17, 0, &vxlan(&ethernet(&[], 0x0800, &ipv4(17, 0, &geneve(0x86dd, 0, &v6))))),
        ipv4(47, 0, &erspan(false, &ethernet(&[], 0x0800, &v4))),
        ipv4(47, 0, &erspan(true, &ethernet(&[], 0x86dd, &v6))),
        ipv4(47, 0, &erspan_3(false, &ethernet(&[], 0x0800, &v4))),
        ipv4(97, 0, &[&[0x30, 0][..], &ethernet(&[], 0x0800, &v4)].concat()),
        ipv4(47, 0, &pptp(&[0xff, 3, 0, 0x21], &v4)),
        ipv4(47, 0, &pptp(&[0x57], &v6)),
        ipv4(17, 0, &l2tp(true, &[0xff, 3, 0, 0x21], &v4)),
        ipv4(17, 0, &l2tp(false, &[0, 0x57], &v6)),
    ]
}

/// Flows of every kind in both directions.
fn flows() -> Vec<Vec<u8>> {
    let messages = [(8, 0), (0, 0), (13, 0), (14, 0), (10, 0), (9, 0), (3, 1), (11, 0), (5, 0)];
    let flows = messages.into_iter().map(|(kind, code)| ipv4(1, 0, &[&[kind, code][..], &[0; 26]].concat()));
    let flows = flows.chain([
        ipv4(132, 0, &[&[0, 9, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0][..], &[3, 0, 0, 16], &[0; 12]].concat()),
        ipv4(6, 0, &tcp(443, 40_000, 2, b"")),
        elsewhere(ipv4(6, 0, &tcp(40_000, 443, 2, b""))),
    ]);
    let flows: Vec<Vec<u8>> = flows.flat_map(|packet| [turned(&packet), packet]).collect();
    let wide_flows =
        [128u8, 129, 133, 134, 135, 136, 1, 3].map(|kind| ipv6(58, &[&[kind, 0][..], &[0; 30]].concat()));
    let wide_flows: Vec<Vec<u8>> =
        wide_flows.into_iter().flat_map(|packet| [turned(&packet), packet]).collect();
    [flows, wide_flows].concat()
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
    let (v4, v6) = inner_packets();
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
        (1, tunnels().iter().map(|packet| ethernet(&[], 0x0800, packet)).collect()),
        (101, flows()),
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
        compare(&path, &all_fields(), &mut told);
    }
    assert!(told.is_empty() || told.len() == 21 && told.values().all(|count| *count > 0), "{told:?}");
}

#[test]
fn real_packets_are_as_tshark_tells_them() {
    let Some(folder) = real("pcap") else { return };
    let mut told = BTreeMap::new();
    for file in std::fs::read_dir(folder).unwrap() {
        compare(&file.unwrap().path(), &all_fields(), &mut told);
    }
    let often = told.iter().filter(|(_, count)| **count > 100).count();
    assert!(told.is_empty() || often >= 12, "{told:?}");
}

/// Odd packets: names of high bytes, and tunnels of every kind.
#[test]
fn odd_packets_are_as_tshark_tells_them() {
    let Some(folder) = real("odd") else { return };
    let mut told = BTreeMap::new();
    for name in ["dns-name-with-high-byte.pcap", "dns-90-high-bytes.pcap", "tunnels.pcap"] {
        compare(&folder.join(name), &all_fields(), &mut told);
    }
    let least = |field: &str, count: usize| told.get(field).is_some_and(|told| *told >= count);
    assert!(told.is_empty() || least("inner_src", 29) && least("vni", 9) && least("dns_name", 5), "{told:?}");
}
