//! Packets put together by hand: every field of every layer, cut and damaged ones too.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::common;

use common::packets::{
    dns, elsewhere, erspan, erspan_3, ethernet, geneve, gre, gtp, hello, ipv4, ipv6, l2tp, mpls, pppoe, pptp,
    tcp, udp, vxlan, vxlan_to,
};
use common::{read, schema};
use holdfast_attributes::{Element, Outcome};

const ETHERNET: u16 = 1;

fn all(link_type: u16, packet: &[u8]) -> (Vec<String>, Outcome) {
    read(&schema(&["packets"]), &Element { link_type: Some(link_type), ..Element::of(packet) })
}

/// The fields that are told, each as `name=value`, without the sizes; `!` in front if the packet is undecodable.
fn told(link_type: u16, packet: &[u8]) -> String {
    let schema = schema(&["packets"]);
    let (values, outcome) = all(link_type, packet);
    let named = schema.attributes().iter().zip(&values);
    let told = named.filter(|(attribute, value)| !value.is_empty() && !attribute.name().ends_with("_len"));
    let told: Vec<String> = told.map(|(attribute, value)| format!("{}={value}", attribute.name())).collect();
    format!("{}{}", if outcome.undecodable { "! " } else { "" }, told.join(" "))
}

const MACS: &str = "eth_src=02:00:00:00:00:0a eth_dst=02:00:00:00:00:0b";
const V4: &str = "ip_version=4 src=10.0.0.1 dst=10.0.0.2";
const V6: &str = "ip_version=6 src=2001:db8::1 dst=2001:db8::2";

#[test]
fn every_layer_is_told() {
    let packet = |kind, payload: &[u8]| told(ETHERNET, &ethernet(&[], kind, payload));
    let v4 = |payload: &[u8]| packet(0x0800, payload);
    let v6 = |payload: &[u8]| packet(0x86dd, payload);
    assert_eq!(
        v4(&ipv4(6, 0, &tcp(40_000, 443, 0x112, b"x"))),
        format!("{MACS} {V4} protocol=tcp src_port=40000 dst_port=443 tcp_flags=274")
    );
    assert_eq!(v4(&ipv4(17, 0, &udp(1, 2, b""))), format!("{MACS} {V4} protocol=udp src_port=1 dst_port=2"));
    assert_eq!(
        v4(&ipv4(132, 0, &[0, 1, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0])),
        format!("{MACS} {V4} protocol=sctp src_port=1 dst_port=2")
    );
    assert_eq!(v4(&ipv4(1, 0, &[3, 3, 0, 0])), format!("{MACS} {V4} protocol=icmp"));
    assert_eq!(v4(&ipv4(47, 0, &[0; 4])), format!("{MACS} {V4} protocol=gre"));
    assert_eq!(v4(&ipv4(253, 0, b"?")), format!("{MACS} {V4} protocol=253"));
    assert_eq!(v6(&ipv6(58, &[128, 0, 0, 0])), format!("{MACS} {V6} protocol=icmpv6"));
    assert_eq!(v6(&ipv6(17, &udp(1, 2, b""))), format!("{MACS} {V6} protocol=udp src_port=1 dst_port=2"));
    assert_eq!(packet(0x0806, &[0; 28]), format!("{MACS} protocol=arp"));
    assert_eq!(packet(0x88cc, b""), format!("{MACS} protocol=lldp"));
    assert_eq!(packet(0x88b5, b""), format!("{MACS} protocol=0x88b5"));
    assert_eq!(packet(38, &[0x42; 38]), format!("{MACS} protocol=llc"));
}

#[test]
fn sizes_are_those_on_the_wire_and_on_disk() {
    let packet = ethernet(&[], 0x0806, &[0; 28]);
    let element =
        Element { link_type: Some(ETHERNET), original_size: 1514, size: 1000, ..Element::of(&packet) };
    let schema = schema(&["packets:wire_len,captured_len"]);
    assert_eq!(read(&schema, &element).0, ["1514", "1000"]);
}

#[test]
fn of_vlans_the_outermost_is_told() {
    let inner = ipv4(17, 0, &udp(1, 2, b""));
    for (tags, vlan) in [
        (&[(0x8100, 5)][..], 5),
        (&[(0x88a8, 100), (0x8100, 5)], 100),
        (&[(0x9100, 7), (0x9100, 8), (0x8100, 4095)], 7),
        (&[(0x8100, 0)], 0),
    ] {
        let wanted = format!("{MACS} vlan={vlan} {V4} protocol=udp src_port=1 dst_port=2");
        assert_eq!(told(ETHERNET, &ethernet(tags, 0x0800, &inner)), wanted);
    }
}

#[test]
fn other_links_are_known() {
    let inner = ipv4(17, 0, &udp(1, 2, b""));
    let rest = format!("{V4} protocol=udp src_port=1 dst_port=2");
    for raw in [12, 14, 101, 228] {
        assert_eq!(told(raw, &inner), rest);
    }
    assert_eq!(told(229, &ipv6(58, &[0; 4])), format!("{V6} protocol=icmpv6"));
    for family in [[2, 0, 0, 0], [0, 0, 0, 2], [30, 0, 0, 0], [0, 0, 0, 24]] {
        assert_eq!(told(0, &[&family, &inner[..]].concat()), rest);
        assert_eq!(told(108, &[&family, &inner[..]].concat()), rest);
    }
    assert_eq!(told(0, &[&[7, 0, 0, 0], &inner[..]].concat()), "");
    // Cooked, as on the interface `any`: the sender only, and VLAN tags as on Ethernet.
    let cooked = |hardware: u8, len: u8, kind: [u8; 2]| {
        [&[0, 0, 0, hardware, 0, len, 2, 0, 0, 0, 0, 0xa, 0, 0][..], &kind].concat()
    };
    let sender = "eth_src=02:00:00:00:00:0a";
    assert_eq!(told(113, &[cooked(1, 6, [8, 0]), inner.clone()].concat()), format!("{sender} {rest}"));
    assert_eq!(told(113, &[cooked(1, 0, [8, 0]), inner.clone()].concat()), rest);
    let tagged = [cooked(1, 6, [0x81, 0]), vec![0, 9, 8, 0], inner.clone()].concat();
    assert_eq!(told(113, &tagged), format!("{sender} vlan=9 {rest}"));
    assert_eq!(told(113, &[vec![0, 0, 3, 0x38, 0, 0], vec![0; 10], inner.clone()].concat()), "");
    let second = [8, 0, 0, 0, 0, 0, 0, 3, 0, 1, 0, 6, 2, 0, 0, 0, 0, 0xa, 0, 0];
    assert_eq!(told(276, &[&second, &inner[..]].concat()), format!("{sender} {rest}"));
    // Some other link, and no packet at all.
    assert_eq!(told(105, &inner), "! ");
    let (values, outcome) = read(&schema(&["packets:src,wire_len"]), &Element::of(&inner));
    assert_eq!((values[0].as_str(), values[1].as_str(), outcome.undecodable), ("", "28", true));
}

#[test]
fn labels_and_sessions_are_passed_by() {
    let (v4, v6) = (ipv4(17, 0, &udp(1, 2, b"")), ipv6(6, &tcp(3, 4, 2, b"")));
    let of_v4 = format!("{MACS} {V4} protocol=udp src_port=1 dst_port=2");
    let of_v6 = format!("{MACS} {V6} protocol=tcp src_port=3 dst_port=4 tcp_flags=2");
    for kind in [0x8847, 0x8848] {
        assert_eq!(told(ETHERNET, &ethernet(&[], kind, &mpls(&v4))), of_v4);
        assert_eq!(told(ETHERNET, &ethernet(&[], kind, &mpls(&v6))), of_v6);
    }
    // A pseudowire, and labels without an end.
    assert_eq!(told(ETHERNET, &ethernet(&[], 0x8847, &mpls(&[0; 20]))), format!("{MACS} protocol=mpls"));
    assert_eq!(told(ETHERNET, &ethernet(&[], 0x8847, &[0; 20])), format!("! {MACS}"));
    for (protocol, packet, wanted) in [
        (&[0, 0x21][..], &v4, &of_v4),
        (&[0x21], &v4, &of_v4),
        (&[0, 0x57], &v6, &of_v6),
        (&[0x57], &v6, &of_v6),
        (&[2, 0x81], &mpls(&v4), &of_v4),
    ] {
        assert_eq!(&told(ETHERNET, &ethernet(&[], 0x8864, &pppoe(protocol, packet))), wanted);
    }
    let tagged = told(ETHERNET, &ethernet(&[(0x8100, 7)], 0x8864, &pppoe(&[0, 0x21], &v4)));
    assert_eq!(tagged, of_v4.replace("ip_version", "vlan=7 ip_version"));
    // The session's own protocols, and the discovery of one.
    let control = pppoe(&[0xc0, 0x21], &[9, 1, 0, 8, 0, 0, 0, 0]);
    assert_eq!(told(ETHERNET, &ethernet(&[], 0x8864, &control)), format!("{MACS} protocol=pppoe"));
    assert_eq!(
        told(ETHERNET, &ethernet(&[], 0x8863, &[0x11, 9, 0, 0, 0, 0])),
        format!("{MACS} protocol=pppoe")
    );
}

#[test]
fn of_tunnels_the_innermost_addresses_are_told() {
    const INNER_V4: &str = "inner_src=10.0.0.17 inner_dst=10.0.0.18";
    const INNER_V6: &str = "inner_src=2001:db8::11 inner_dst=2001:db8::12";
    let (v4, v6) = (elsewhere(ipv4(17, 0, &udp(1, 2, b""))), elsewhere(ipv6(58, &[128, 0, 0, 0])));
    for (packet, wanted) in [
        (ipv4(4, 0, &v4), format!("{V4} protocol=ipip {INNER_V4}")),
        (ipv4(41, 0, &v6), format!("{V4} protocol=ipv6 {INNER_V6}")),
        (ipv6(4, &v4), format!("{V6} protocol=ipip {INNER_V4}")),
        (ipv6(41, &v6), format!("{V6} protocol=ipv6 {INNER_V6}")),
        (ipv6(60, &[&[41, 0, 1, 4, 0, 0, 0, 0], &v6[..]].concat()), format!("{V6} protocol=ipv6 {INNER_V6}")),
        (ipv4(47, 0, &gre(0, 0x0800, &v4)), format!("{V4} protocol=gre {INNER_V4}")),
        (ipv4(47, 0, &gre(0xb0, 0x86dd, &v6)), format!("{V4} protocol=gre {INNER_V6}")),
        (ipv4(47, 0, &gre(0x20, 0x8847, &mpls(&v4))), format!("{V4} protocol=gre {INNER_V4}")),
        (
            ipv6(47, &gre(0x10, 0x6558, &ethernet(&[(0x8100, 5)], 0x0800, &v4))),
            format!("{V6} protocol=gre {INNER_V4}"),
        ),
        (
            ipv4(17, 0, &vxlan(&ethernet(&[], 0x86dd, &v6))),
            format!("{V4} protocol=udp src_port=50000 dst_port=4789 {INNER_V6}"),
        ),
        // The innermost of three.
        (ipv4(4, 0, &ipv4(47, 0, &gre(0, 0x86dd, &ipv6(4, &v4)))), format!("{V4} protocol=ipip {INNER_V4}")),
        // No tunnels: other frames and versions, routes, later fragments, and packets that ICMP quotes.
        (ipv4(47, 0, &gre(0, 0x6558, &ethernet(&[], 0x0806, &[0; 28]))), format!("{V4} protocol=gre")),
        (ipv4(47, 0, &gre(0x40, 0x0800, &v4)), format!("{V4} protocol=gre")),
        (ipv4(47, 0, &[0x20, 1, 0x88, 0x0b, 0, 0, 0, 0]), format!("{V4} protocol=gre")),
        (ipv4(4, 9, &v4), format!("{V4} protocol=ipip")),
        (ipv4(1, 0, &[&[3, 3, 0, 0, 0, 0, 0, 0], &v4[..]].concat()), format!("{V4} protocol=icmp")),
        (
            ipv4(17, 0, &udp(4789, 50_000, &[0; 60])),
            format!("{V4} protocol=udp src_port=4789 dst_port=50000"),
        ),
        // Nothing where there should be a packet.
        (ipv4(4, 0, b""), format!("! {V4} protocol=ipip")),
        (ipv4(4, 0, &[0x95; 60]), format!("! {V4} protocol=ipip")),
    ] {
        assert_eq!(told(101, &packet), wanted);
    }
    // As deep as is looked, and deeper.
    let nested = |count: usize| (0..count).fold(v4.clone(), |packet, _| ipv4(4, 0, &packet));
    assert_eq!(told(101, &nested(16)), format!("{V4} protocol=ipip {INNER_V4}"));
    assert_eq!(told(101, &nested(17)), format!("! {V4} protocol=ipip"));
}

/// All that is told of the contents of a tunnel around an IPv4 datagram and an IPv6 segment.
#[test]
fn contents_of_tunnels_are_told() {
    const V4: &str = "10.0.0.17 udp 7 9 ";
    const V6: &str = "2001:db8::11 tcp 8 10 ";
    let v4 = elsewhere(ipv4(17, 0, &udp(7, 9, b"ab")));
    let v6 = elsewhere(ipv6(6, &tcp(8, 10, 2, b"")));
    let frame = |tags: &[(u16, u16)]| ethernet(tags, 0x0800, &v4);
    let told = |packet: &[u8]| {
        let schema =
            schema(&["packets:inner_src,inner_protocol,inner_src_port,inner_dst_port,vni,vxlan=8472+4790"]);
        let (values, outcome) = read(&schema, &Element { link_type: Some(101), ..Element::of(packet) });
        assert!(!outcome.undecodable);
        values.join(" ")
    };
    for (packet, wanted) in [
        (ipv4(17, 0, &gtp(0, &[], &v4)), V4.to_owned()),
        (ipv4(17, 0, &gtp(2, &[], &v6)), V6.to_owned()),
        (ipv6(17, &gtp(1, &[1, 2, 1], &v4)), V4.to_owned()),
        (ipv4(17, 0, &geneve(0x6558, 0, &frame(&[]))), format!("{V4}265")),
        (ipv4(17, 0, &geneve(0x86dd, 3, &v6)), format!("{V6}265")),
        (ipv4(17, 0, &vxlan(&frame(&[(0x8100, 5)]))), format!("{V4}5")),
        (ipv4(17, 0, &vxlan_to(8472, &frame(&[]))), format!("{V4}5")),
        (ipv4(17, 0, &vxlan_to(4790, &frame(&[]))), format!("{V4}5")),
        (ipv4(47, 0, &erspan(false, &frame(&[]))), V4.to_owned()),
        (ipv4(47, 0, &erspan(true, &frame(&[(0x8100, 5)]))), V4.to_owned()),
        (ipv4(47, 0, &erspan_3(false, &frame(&[]))), V4.to_owned()),
        (ipv4(47, 0, &erspan_3(true, &frame(&[]))), V4.to_owned()),
        (ipv4(97, 0, &[&[0x30, 0][..], &frame(&[])].concat()), V4.to_owned()),
        (ipv4(47, 0, &pptp(&[0xff, 3, 0, 0x21], &v4)), V4.to_owned()),
        (ipv4(47, 0, &pptp(&[0x57], &v6)), V6.to_owned()),
        (ipv4(17, 0, &l2tp(true, &[0xff, 3, 0, 0x21], &v4)), V4.to_owned()),
        (ipv4(17, 0, &l2tp(false, &[0, 0x57], &v6)), V6.to_owned()),
        // A network in another: the inner number, and that of the outer one where the inner one has none.
        (
            ipv4(17, 0, &vxlan(&ethernet(&[], 0x0800, &ipv4(17, 0, &geneve(0x0800, 0, &v4))))),
            format!("{V4}265"),
        ),
        (ipv4(17, 0, &vxlan(&ethernet(&[], 0x0800, &ipv4(4, 0, &v4)))), format!("{V4}5")),
        // Tunnels without an IP packet.
        (ipv4(17, 0, &vxlan(&ethernet(&[], 0x0806, &[0; 28]))), "    5".to_owned()),
        (ipv4(17, 0, &udp(2152, 2152, &[0x30, 1, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0])), "    ".to_owned()),
        (ipv4(17, 0, &udp(9, 2152, &[0; 8])), "    ".to_owned()),
        (ipv4(17, 0, &udp(1701, 1701, &[0xc8, 2, 0, 12, 0, 1, 0, 0, 0, 0, 0, 0])), "    ".to_owned()),
        (ipv4(17, 0, &udp(9, 6081, &[0x40, 0, 8, 0, 0, 0, 0, 0])), "    ".to_owned()),
        // Fields of the outermost packet alone, and of a later fragment nothing.
        (v4.clone(), "    ".to_owned()),
        (ipv4(17, 5, &gtp(0, &[], &v4)), "    ".to_owned()),
        (ipv4(4, 0, &elsewhere(ipv4(1, 0, &[8, 0, 0, 0]))), "10.0.0.17 icmp   ".to_owned()),
    ] {
        assert_eq!(told(&packet), wanted, "{packet:02x?}");
    }
    // Ports that are not named are no tunnels; each attribute has its own list.
    let schema = schema(&["packets:vni,inner_src", "named:uint=packet:vni,vxlan=8472", "packets:src"]);
    let packet = ipv4(17, 0, &vxlan_to(8472, &frame(&[])));
    let (values, _) = read(&schema, &Element { link_type: Some(101), ..Element::of(&packet) });
    assert_eq!(values, ["", "", "5", "10.0.0.1"]);
    // Cut anywhere in a tunnel's headers: undecodable, and nothing wrong is told.
    for packet in [
        gtp(1, &[1, 2], &v4),
        geneve(0x6558, 2, &frame(&[])),
        l2tp(true, &[0xff, 3, 0, 0x21], &v4),
        vxlan(&frame(&[])),
    ] {
        let whole = packet.len() - v4.len() + 20;
        for cut in 9..packet.len() {
            let (values, outcome) = all(101, &ipv4(17, 0, &packet[..cut]));
            assert_eq!(outcome.undecodable, cut < whole, "{cut}: {packet:02x?}");
            assert_eq!(values[14].as_str(), if cut < whole { "" } else { "10.0.0.17" });
        }
    }
}

#[test]
fn community_ids_are_those_of_both_directions() {
    let id = |packet: &[u8]| {
        let schema = schema(&["packets:community_id,inner_community_id"]);
        let (values, _) = read(&schema, &Element { link_type: Some(101), ..Element::of(packet) });
        <[String; 2]>::try_from(values).unwrap()
    };
    let back = |packet: Vec<u8>| {
        let mut packet = packet;
        packet[15] = 2;
        packet[19] = 1;
        packet
    };
    let there = ipv4(6, 0, &tcp(40_000, 443, 2, b""));
    let [outer, inner] = id(&there);
    assert!(outer.starts_with("1:") && outer.len() == 30 && inner.is_empty());
    assert_eq!(id(&back(ipv4(6, 0, &tcp(443, 40_000, 2, b""))))[0], outer);
    assert_ne!(id(&back(ipv4(6, 0, &tcp(40_000, 443, 2, b""))))[0], outer);
    assert_eq!(id(&ipv4(4, 0, &there))[1], outer);
    // A question and its answer are of one flow; a message without an answer has a direction.
    let echo = id(&ipv4(1, 0, &[8, 0, 0, 0]));
    assert_eq!(id(&back(ipv4(1, 0, &[0, 0, 0, 0]))), echo);
    assert_ne!(id(&back(ipv4(1, 0, &[3, 1, 0, 0]))), id(&ipv4(1, 0, &[3, 1, 0, 0])));
    // Without ports that should be there nothing is known; a later fragment has none.
    assert_eq!(id(&ipv4(6, 0, &[1, 2, 3]))[0], "");
    assert_eq!(id(&ipv4(6, 3, &[1, 2, 3]))[0].len(), 30);
    assert_eq!(id(&ipv4(50, 0, &[]))[0].len(), 30);
}

#[test]
fn later_fragments_have_no_ports() {
    let datagram = udp(1, 2, &[0; 32]);
    let first = told(101, &{
        let mut first = ipv4(17, 0, &datagram);
        first[6] = 0x20;
        first
    });
    assert_eq!(first, format!("{V4} protocol=udp src_port=1 dst_port=2"));
    assert_eq!(told(101, &ipv4(17, 5, &datagram)), format!("{V4} protocol=udp"));
    let fragment = |offset: u16| {
        let place = (offset << 3 | 1).to_be_bytes();
        ipv6(44, &[&[17, 0, place[0], place[1], 0, 0, 0, 7], &datagram[..]].concat())
    };
    assert_eq!(told(101, &fragment(0)), format!("{V6} protocol=udp src_port=1 dst_port=2"));
    assert_eq!(told(101, &fragment(5)), format!("{V6} protocol=udp"));
}

#[test]
fn extension_headers_are_passed_by() {
    let datagram = udp(1, 2, b"");
    let options = [60, 0, 1, 4, 0, 0, 0, 0, 17, 0, 1, 4, 0, 0, 0, 0];
    let packet = ipv6(0, &[&options, &datagram[..]].concat());
    assert_eq!(told(101, &packet), format!("{V6} protocol=udp src_port=1 dst_port=2"));
    // Cut in the middle of one, or between two: nobody knows what comes.
    assert_eq!(told(101, &packet[..48]), format!("! {V6}"));
    assert_eq!(told(101, &packet[..52]), format!("! {V6}"));
    let authenticated = [&[17, 4, 0, 0][..], &[0; 20], &datagram].concat();
    assert_eq!(told(101, &ipv4(51, 0, &authenticated)), format!("{V4} protocol=udp src_port=1 dst_port=2"));
}

#[test]
fn names_are_told_in_lower_case() {
    let asked = |port, message: &[u8]| told(101, &ipv4(17, 0, &udp(40_000, port, message)));
    let message = dns(&[b"Www", b"eXample", b"org"]);
    let name = "dns_name=www.example.org";
    for port in [53, 5353] {
        assert!(asked(port, &message).ends_with(name));
    }
    assert!(!asked(54, &message).contains("dns_name"));
    assert!(told(101, &ipv4(17, 0, &udp(53, 40_000, &message))).ends_with(name));
    let stream = [&(message.len() as u16).to_be_bytes()[..], &message].concat();
    assert!(told(101, &ipv4(6, 0, &tcp(40_000, 53, 0x18, &stream))).ends_with(name));
    assert!(asked(53, &dns(&[])).ends_with("dns_name=."));
    assert!(asked(5353, &dns(&["Küche".as_bytes(), b"local"])).ends_with("dns_name=küche.local"));
    let longest = [&[b'x'; 63][..], &[b'x'; 63], &[b'x'; 63], &[b'x'; 61]];
    assert!(asked(53, &dns(&longest)).ends_with(&"x".repeat(61)));
    // Bytes that are not UTF-8, each run of them that could be a character's.
    for (label, name) in [
        (&b"T\xe4st"[..], "t\u{fffd}st"),
        (b"\xff\xfe", "\u{fffd}\u{fffd}"),
        (b"a\xe2\x82b", "a\u{fffd}b"),
        (b"\xf0\x9f\x98", "\u{fffd}"),
    ] {
        let told = asked(53, &dns(&[label, b"example", b"org"]));
        assert!(told.ends_with(&format!("dns_name={name}.example.org")) && !told.starts_with('!'), "{told}");
    }
    // As long as a name may be in a packet, with a text three times as long.
    let widest = [&[0xff; 63][..], &[0xff; 63], &[0xff; 63], &[0xff; 61]];
    let packet = ipv4(17, 0, &udp(53, 40_000, &dns(&widest)));
    let (values, outcome) = all(101, &packet);
    let replaced = widest.map(|label| "\u{fffd}".repeat(label.len())).join(".");
    assert_eq!((values[12].as_str(), outcome), (replaced.as_str(), Outcome::default()));
    // No question: no name.
    let mut answer = dns(&[b"a"]);
    answer[5] = 0;
    assert_eq!(asked(53, &answer), format!("{V4} protocol=udp src_port=40000 dst_port=53"));
    // Too long, a pointer, cut in the question and in the header: no name, and undecodable.
    let pointer = [&dns(&[])[..12], &[0xc0, 12, 0, 1, 0, 1]].concat();
    for wrong in [&dns(&[&[b'x'; 63][..]; 4]), &pointer, &message[..message.len() - 20], &message[..11], b""]
    {
        assert_eq!(asked(53, wrong), format!("! {V4} protocol=udp src_port=40000 dst_port=53"));
        // A segment may begin anywhere in a stream.
        let segment = told(101, &ipv4(6, 0, &tcp(40_000, 53, 0x18, &[&[0, 9], wrong].concat())));
        assert_eq!(segment, format!("{V4} protocol=tcp src_port=40000 dst_port=53 tcp_flags=24"));
    }

    let greeted = |greeting: &[u8]| told(101, &ipv4(6, 0, &tcp(40_000, 8443, 0x18, greeting)));
    let greeting = hello(b"Example.ORG");
    assert!(greeted(&greeting).ends_with("tls_name=example.org"));
    assert!(greeted(&[&[20, 3, 3, 0, 1, 1][..], &greeting].concat()).ends_with("tls_name=example.org"));
    // A greeting that goes on in the next packet tells its name if that is here.
    assert!(greeted(&greeting[..greeting.len() - 4]).ends_with("tls_name=example.org"));
    for cut in 0..greeting.len() - 4 {
        assert!(!greeted(&greeting[..cut]).contains("tls_name"), "{cut}");
    }
    assert!(!greeted(&[&[23][..], &greeting[1..]].concat()).contains("tls_name"));
    assert!(greeted(&hello("\u{fc}.de".as_bytes())).ends_with("tls_name=\u{fffd}\u{fffd}.de"));
    assert!(greeted(&hello(b"T\xe4st.de")).ends_with("tls_name=t\u{fffd}st.de"));
    // A greeting that is here as a whole and whose lists go beyond it is undecodable; one without a name is not.
    assert!(!greeted(&hello(b"")).starts_with('!') && !greeted(&hello(b"")).contains("tls_name"));
    for at in [43, 46, 52, 58] {
        let mut wrong = greeting.clone();
        wrong[at] = 0xff;
        let said = greeted(&wrong);
        assert!(said.starts_with('!') && !said.contains("tls_name"), "{at}: {said}");
    }
    let schema = schema(&["packets:tls_name"]);
    let named = |name: &[u8]| {
        let greeting = ipv4(6, 0, &tcp(40_000, 8443, 0x18, &hello(name)));
        read(&schema, &Element { link_type: Some(101), ..Element::of(&greeting) })
    };
    assert_eq!(named(&[0xff; 255]), (vec!["\u{fffd}".repeat(255)], Outcome::default()));
    for len in [256, 1025] {
        let too_long = Outcome { too_long: 1, ..Outcome::default() };
        assert_eq!(named(&vec![b'x'; len]), (vec![String::new()], too_long));
    }
}

/// What stands behind an IP packet in its frame is padding.
#[test]
fn padding_is_no_payload() {
    let question = dns(&[b"example", b"org"]);
    for (kind, whole) in
        [(0x0800, ipv4(17, 0, &udp(9, 53, &question))), (0x86dd, ipv6(17, &udp(9, 53, &question)))]
    {
        assert!(told(ETHERNET, &ethernet(&[], kind, &whole)).ends_with("dns_name=example.org"));
        let mut short = whole.clone();
        let (at, len) = if kind == 0x0800 { (2, 20 + 8 + 12) } else { (4, 8 + 12) };
        short[at..at + 2].copy_from_slice(&[0, len]);
        assert!(told(ETHERNET, &ethernet(&[], kind, &short)).ends_with("dst_port=53"), "{kind:#x}");
        // A card that cuts up packets is given them without a length.
        short[at..at + 2].copy_from_slice(&[0, 0]);
        assert!(told(ETHERNET, &ethernet(&[], kind, &short)).ends_with("dns_name=example.org"), "{kind:#x}");
    }
}

#[test]
fn headers_that_cannot_be_are_told() {
    let mut packet = ipv4(6, 0, &tcp(7, 9, 0x10, &hello(b"example.org")));
    packet[32] = 0x40;
    assert_eq!(told(101, &packet), format!("! {V4} protocol=tcp src_port=7 dst_port=9 tcp_flags=16"));
    packet[0] = 0x44;
    assert_eq!(told(101, &packet), "! ");
    packet[0] = 0x55;
    assert_eq!(told(101, &packet), "! ");
    packet.truncate(30);
    packet[0] = 0x4f;
    assert_eq!(told(101, &packet), format!("! {V4} protocol=tcp"));
    assert_eq!(told(101, &[]), "! ");
}

/// Of a packet that is cut, what is whole is told as it is; and it is decodable only if no header is cut.
#[test]
fn what_is_cut_tells_what_is_whole() {
    let name = dns(&[b"example", b"org"]);
    let extension = [&[17, 0, 1, 4, 0, 0, 0, 0][..], &udp(9, 53, &name)].concat();
    for (packet, headers) in [
        (ethernet(&[(0x88a8, 1), (0x8100, 2)], 0x0800, &ipv4(17, 0, &udp(9, 53, &name))), 22 + 20 + 8),
        (ethernet(&[], 0x0800, &ipv4(6, 0, &tcp(9, 443, 2, &hello(b"example.org")))), 14 + 20 + 32),
        (ethernet(&[], 0x86dd, &ipv6(0, &extension)), 14 + 40 + 8 + 8),
        (ethernet(&[], 0x8847, &mpls(&ipv4(17, 0, &udp(9, 53, &name)))), 14 + 8 + 20 + 8),
        (ethernet(&[], 0x8864, &pppoe(&[0, 0x21], &ipv4(17, 0, &udp(9, 53, &name)))), 14 + 8 + 20 + 8),
        (ethernet(&[], 0x8864, &pppoe(&[2, 0x81], &mpls(&ipv6(17, &udp(9, 9, &[]))))), 14 + 8 + 8 + 40 + 8),
        (ethernet(&[], 0x0800, &ipv4(4, 0, &elsewhere(ipv6(17, &udp(9, 53, &name))))), 14 + 20 + 40),
        (
            ethernet(&[], 0x86dd, &ipv6(47, &gre(0xa0, 0x0800, &ipv4(4, 0, &elsewhere(ipv4(6, 0, &[])))))),
            14 + 40 + 12 + 20 + 20,
        ),
        (
            ethernet(
                &[],
                0x0800,
                &ipv4(17, 0, &vxlan(&ethernet(&[(0x8100, 5)], 0x0800, &ipv4(6, 0, &[9; 9])))),
            ),
            14 + 20 + 8 + 8 + 18 + 20,
        ),
    ] {
        let (whole, outcome) = all(ETHERNET, &packet);
        assert!(!outcome.undecodable);
        let mut before = 0;
        for cut in 0..=packet.len() {
            let (values, outcome) = all(ETHERNET, &packet[..cut]);
            // A question over UDP is cut where its name is not told; a greeting over TCP may go on.
            let question = !whole[12].is_empty() && values[12].is_empty();
            assert_eq!(outcome.undecodable, cut < headers || question, "{cut}");
            for (value, whole) in values[..10].iter().zip(&whole).chain(values[12..].iter().zip(&whole[12..]))
            {
                assert!(value.is_empty() || value == whole, "{cut}: {value} is not {whole}");
            }
            let told = values.iter().filter(|value| !value.is_empty()).count();
            assert!(told >= before, "{cut}: {values:?}");
            before = told;
        }
    }
}
