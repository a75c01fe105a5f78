//! Tests of filters: the interpreter gives libpcap's own answer, and errors in expressions are those of libpcap.

use crate::packet_files::builder::{File, read_whole};
use holdfast_ingest::packet::filter::{FileFilter, Filter, FilterError, MAX_EXPRESSION};
use holdfast_ingest::packet::{LinkType, Packet, Reader, scan};
use proptest::prelude::*;

const EXPRESSIONS: [&str; 14] = [
    "ip",
    "ip6",
    "arp or rarp",
    "tcp",
    "udp port 53",
    "tcp[tcpflags] & (tcp-syn|tcp-fin) != 0",
    "host 192.168.1.1 or net 10.0.0.0/8",
    "portrange 1-1023",
    "greater 200",
    "less 80 and not icmp",
    "ip[6:2] & 0x1fff != 0",
    "ip proto 6 and (ip[2:2] - ((ip[0]&0xf)<<2)) > 40",
    "len % 7 = 3 and len / 3 > 10",
    "ether[0] & 1 = 1",
];

/// An Ethernet frame around an IPv4 packet of `protocol` between two ports.
fn frame(protocol: u8, ports: (u16, u16), size: usize) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
    let mut ip = vec![0x45, 0, 0, 0, 0, 1, 0, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 192, 168, 1, 1];
    ip[2..4].copy_from_slice(&(size as u16 + 24).to_be_bytes());
    frame.extend(ip);
    frame.extend(ports.0.to_be_bytes());
    frame.extend(ports.1.to_be_bytes());
    frame.resize(frame.len() + size, 0);
    frame
}

/// Frames of real captures, and made ones.
fn frames() -> Vec<(LinkType, Vec<u8>)> {
    let mut frames: Vec<(LinkType, Vec<u8>)> = [
        (6, (80, 5000), 10),
        (17, (53, 9), 300),
        (1, (0, 0), 0),
        // On the bounds of `greater 200` and of the range of ports.
        (6, (5000, 1023), 162),
        (17, (1024, 1024), 161),
        (17, (1, 2000), 20),
    ]
    .into_iter()
    .map(|(protocol, ports, size)| (LinkType::ETHERNET, frame(protocol, ports, size)))
    .collect();
    if let Some(data) = std::env::var_os("HOLDFAST_TEST_DATA") {
        for name in ["pcap/teams.pcap", "pcap/opera-vpn.pcapng", "pcap/vnc.pcap"] {
            let bytes = std::fs::read(std::path::Path::new(&data).join(name)).unwrap();
            let (preamble, _) = scan(&bytes[..], 1 << 20).unwrap();
            for packet in read_whole(&bytes).into_iter().step_by(7) {
                let link_type = preamble.interfaces()[usize::from(packet.interface)].link_type;
                frames.push((link_type, packet.data));
            }
        }
    }
    frames
}

#[test]
fn the_interpreter_answers_as_libpcap_does() {
    let frames = frames();
    let (mut accepted, mut rejected) = (0, 0);
    for expression in EXPRESSIONS {
        for link_type in [LinkType::ETHERNET, LinkType::RAW, LinkType::LINUX_SLL, LinkType(0), LinkType(108)]
        {
            let handle = pcap::Capture::dead(pcap::Linktype(link_type.dlt())).unwrap();
            // Both refuse what makes no sense for a link type, such as addresses where there are none.
            let (Ok(theirs), Ok(ours)) =
                (handle.compile(expression, true), Filter::compile(expression, link_type))
            else {
                assert!(handle.compile(expression, true).is_err());
                assert!(Filter::compile(expression, link_type).is_err());
                continue;
            };
            // Frames of another type are as good as random bytes.
            for (_, data) in &frames {
                let wanted = theirs.filter(data);
                assert_eq!(
                    ours.accepts(data, data.len() as u32),
                    wanted,
                    "{expression} {link_type:?} {data:02x?}"
                );
                *if wanted { &mut accepted } else { &mut rejected } += 1;
            }
        }
    }
    assert!(accepted > 0 && rejected > 0);
}

proptest! {
    #[test]
    fn the_interpreter_answers_as_libpcap_does_on_any_bytes(
        mut data in prop::collection::vec(any::<u8>(), 0..120),
        expression in prop::sample::select(&EXPRESSIONS[..]),
        ip in any::<bool>(),
    ) {
        if ip && data.len() > 34 {
            data[12..15].copy_from_slice(&[8, 0, 0x45]);
            data[20] = 0;
        }
        let handle = pcap::Capture::dead(pcap::Linktype(1)).unwrap();
        let theirs = handle.compile(expression, true).unwrap();
        let ours = Filter::compile(expression, LinkType::ETHERNET).unwrap();
        prop_assert_eq!(ours.accepts(&data, data.len() as u32), theirs.filter(&data));
    }
}

#[test]
fn a_wrong_expression_is_told_in_the_words_of_libpcap() {
    let error = Filter::compile("tcp prot 80", LinkType::ETHERNET).unwrap_err();
    let told = error.to_string();
    assert!(told.contains("`tcp prot 80`") && told.contains("syntax error"), "{told}");
    assert!(told.contains("not in the syntax of tcpdump") && !told.contains("link type"), "{told}");
    let error = Filter::compile("ether host 02:00:00:00:00:01", LinkType::RAW).unwrap_err();
    assert!(matches!(error, FilterError::Expression { link_type: 101, .. }), "{error}");
    let long = " ".repeat(MAX_EXPRESSION + 1);
    assert_eq!(Filter::compile(&long, LinkType::RAW), Err(FilterError::TooLong(long.len())));
    assert!(Filter::compile("a\0b", LinkType::RAW).is_err());
}

#[test]
fn one_expression_serves_interfaces_of_several_link_types() {
    let ethernet = frame(17, (9, 9), 20);
    let mut file = File::new(false);
    file.section(&[]);
    file.interface(1, 0, &[]);
    file.interface(101, 0, &[]);
    file.interface(1, 0, &[]);
    for (interface, data) in
        [(0, &ethernet[..]), (1, &ethernet[14..]), (2, &ethernet[..]), (1, &ethernet[..])]
    {
        file.packet(interface, 0, data.len() as u32, data, &[]);
    }
    let (preamble, _) = scan(&file.bytes[..], 1 << 20).unwrap();
    let filter = FileFilter::compile("udp dst port 9", preamble.interfaces()).unwrap();
    let mut reader = Reader::new(&file.bytes[..]);
    let mut answers = Vec::new();
    while let Some(packet) = reader.next_packet().unwrap() {
        answers.push(filter.accepts(&packet));
        assert!(!filter.accepts(&Packet { interface: 3, ..packet }));
    }
    assert_eq!(answers, [true, true, true, false]);
}

#[test]
fn the_length_on_the_wire_counts_for_a_cut_packet() {
    let filter = Filter::compile("greater 1000", LinkType::ETHERNET).unwrap();
    assert!(filter.accepts(&[0; 60], 1500));
    assert!(!filter.accepts(&[0; 60], 60));
}
