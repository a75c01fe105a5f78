//! Attributes of packets, behind any link header.

use crate::attributes::{check, schema};
use holdfast_attributes::Element;

const LINK_TYPES: [u16; 8] = [1, 0, 101, 108, 113, 229, 276, 105];

/// The input is a choice of link, then a packet.
pub fn run(data: &[u8]) {
    let Some((link, data)) = data.split_first() else { return };
    let link_type = Some(LINK_TYPES[usize::from(*link) % LINK_TYPES.len()]);
    let tunnels = "packets:inner_protocol,inner_src_port,vni,community_id,inner_community_id,vxlan=8472";
    check(&schema(&["packets", tunnels]), &Element { link_type, ..Element::of(data) });
}

/// A DNS question behind two VLAN tags, a TLS greeting over IPv6 with extension headers, a fragment, and cooked links.
pub fn seeds() -> Vec<Vec<u8>> {
    let dns =
        b"\x00\x07\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x03www\x07Example\x03org\x00\x00\x01\x00\x01";
    let udp = [&[0x9c, 0x40, 0, 53, 0, 41, 0, 0][..], dns].concat();
    let v4 = |fragment: u8, payload: &[u8]| {
        let head =
            [0x45, 0, 0, 20 + payload.len() as u8, 0, 7, 0, fragment, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        [&head, payload].concat()
    };
    let datagram = |port: u16, payload: &[u8]| {
        [&[0x9c, 0x40][..], &port.to_be_bytes(), &[0, 8 + payload.len() as u8, 0, 0], payload].concat()
    };
    let hello = [
        &[22, 3, 1, 0, 74, 1, 0, 0, 70, 3, 3][..],
        &[5; 32],
        &[0, 0, 2, 0x13, 1, 1, 0, 0, 27, 0, 0x17, 0, 0, 0, 0, 0, 15, 0, 13, 0, 0, 10],
        b"example.de",
        &[0, 0x23, 0, 0],
    ]
    .concat();
    let tcp =
        [&[0x9c, 0x40, 1, 187, 0, 0, 0, 0, 0, 0, 0, 0, 0x50, 0x18, 0, 0, 0, 0, 0, 0][..], &hello].concat();
    let extensions = [60, 0, 1, 4, 0, 0, 0, 0, 44, 0, 1, 4, 0, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 9];
    let len = (extensions.len() + tcp.len()) as u8;
    let v6 = [&[0x60, 0, 0, 0, 0, len, 0, 64][..], &[0x20; 32], &extensions, &tcp].concat();
    let tags = [0x88, 0xa8, 0, 100, 0x81, 0, 0, 5, 8, 0];
    let cooked = [0, 0, 0, 1, 0, 6, 2, 0, 0, 0, 0, 10, 0, 0, 0x86, 0xdd];
    let second = [8, 0, 0, 0, 0, 0, 0, 3, 0, 1, 0, 6, 2, 0, 0, 0, 0, 10, 0, 0];
    vec![
        [&[0][..], &[2; 12], &tags, &v4(0, &udp)].concat(),
        [&[0][..], &[2; 12], &[0x86, 0xdd], &v6].concat(),
        [&[0][..], &[2; 12], &[8, 6], &[0; 28]].concat(),
        [&[1, 2, 0, 0, 0][..], &v4(5, &udp)].concat(),
        [&[2][..], &v6].concat(),
        [&[4][..], &cooked, &v6].concat(),
        [&[6][..], &second, &v4(0, &udp)].concat(),
        // GTP-U with an extension header, and GENEVE with an option.
        [
            &[2][..],
            &v4(
                0,
                &datagram(
                    2152,
                    &[&[0x34, 255, 0, 9, 0, 0, 0, 1, 0, 0, 0, 0x85, 1, 0, 0, 0], &v4(0, &udp)[..]].concat(),
                ),
            ),
        ]
        .concat(),
        [
            &[2][..],
            &v4(0, &datagram(6081, &[&[1, 0, 8, 0, 0, 0, 5, 0, 0, 0, 0, 0], &v4(0, &udp)[..]].concat())),
        ]
        .concat(),
    ]
}
