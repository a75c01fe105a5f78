//! Packets put together layer by layer.

pub const A: [u8; 6] = [2, 0, 0, 0, 0, 0xa];
pub const B: [u8; 6] = [2, 0, 0, 0, 0, 0xb];

fn pair(number: u16) -> [u8; 2] {
    number.to_be_bytes()
}

/// From A to B, with VLAN tags of these types and numbers.
pub fn ethernet(tags: &[(u16, u16)], kind: u16, payload: &[u8]) -> Vec<u8> {
    let tags: Vec<u8> =
        tags.iter().flat_map(|(kind, vlan)| [pair(*kind), pair(0xe000 | vlan)].concat()).collect();
    [&B[..], &A, &tags, &pair(kind), payload].concat()
}

/// From 10.0.0.1 to 10.0.0.2, at this place of a fragmented packet, in 8 bytes.
pub fn ipv4(protocol: u8, fragment: u16, payload: &[u8]) -> Vec<u8> {
    let more = if fragment > 0 { fragment | 0x2000 } else { 0 };
    let len = pair(20 + payload.len() as u16);
    let head = [&[0x45, 0][..], &len, &[0, 7], &pair(more), &[64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]]
        .concat();
    [&head, payload].concat()
}

/// From `2001:db8::1` to `2001:db8::2`.
pub fn ipv6(next: u8, payload: &[u8]) -> Vec<u8> {
    let address = |last| [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last];
    let head =
        [&[0x60, 0, 0, 0][..], &pair(payload.len() as u16), &[next, 64], &address(1), &address(2)].concat();
    [&head, payload].concat()
}

pub fn udp(src: u16, dst: u16, payload: &[u8]) -> Vec<u8> {
    [&pair(src)[..], &pair(dst), &pair(8 + payload.len() as u16), &[0, 0], payload].concat()
}

/// With 12 bytes of options.
pub fn tcp(src: u16, dst: u16, flags: u16, payload: &[u8]) -> Vec<u8> {
    [&pair(src)[..], &pair(dst), &[0; 8], &pair(8 << 12 | flags), &[0; 6], &[1; 12], payload].concat()
}

/// A question for a name, with an answer that points back to it.
pub fn dns(labels: &[&[u8]]) -> Vec<u8> {
    let mut message = vec![0, 7, 1, 0, 0, 1, 0, 1, 0, 0, 0, 0];
    for label in labels {
        message.push(label.len() as u8);
        message.extend_from_slice(label);
    }
    message.extend([0, 0, 1, 0, 1, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 9, 0, 4, 10, 0, 0, 9]);
    message
}

/// A greeting for a server, with another extension in front of its name.
pub fn hello(name: &[u8]) -> Vec<u8> {
    let len = name.len() as u16;
    let server = [&pair(0)[..], &pair(len + 5), &pair(len + 3), &[0], &pair(len), name].concat();
    let extensions = [&[0, 0x17, 0, 2, 9, 9][..], &server, &[0, 0x23, 0, 0]].concat();
    let body = [
        &[3, 3][..],
        &[5; 32],
        &[2, 1, 1],
        &[0, 4, 0x13, 1, 0x13, 2],
        &[1, 0],
        &pair(extensions.len() as u16),
        &extensions,
    ]
    .concat();
    let handshake = [&[1, 0][..], &pair(body.len() as u16), &body].concat();
    [&[22, 3, 1][..], &pair(handshake.len() as u16), &handshake].concat()
}

/// A packet behind two MPLS labels.
pub fn mpls(payload: &[u8]) -> Vec<u8> {
    [&[0, 1, 0, 64, 0, 2, 1, 64], payload].concat()
}

/// A packet in a `PPPoE` session, behind the number of a PPP protocol and with padding.
pub fn pppoe(protocol: &[u8], payload: &[u8]) -> Vec<u8> {
    let len = pair((protocol.len() + payload.len()) as u16);
    [&[0x11, 0, 0, 7][..], &len, protocol, payload, &[0; 6]].concat()
}

/// Behind GRE with these flags, and as many zeros as these need.
pub fn gre(flags: u8, kind: u16, payload: &[u8]) -> Vec<u8> {
    let options = vec![0; 4 * (flags & 0xb0).count_ones() as usize];
    [&[flags, 0][..], &pair(kind), &options, payload].concat()
}

/// An Ethernet frame in a datagram of VXLAN.
pub fn vxlan(frame: &[u8]) -> Vec<u8> {
    udp(50_000, 4789, &[&[8, 0, 0, 0, 0, 0, 5, 0], frame].concat())
}

/// A datagram of VXLAN to another port.
pub fn vxlan_to(port: u16, frame: &[u8]) -> Vec<u8> {
    udp(50_000, port, &[&[8, 0, 0, 0, 0, 0, 5, 0], frame].concat())
}

/// A packet of a type in a datagram of GENEVE, behind so many options of 4 bytes.
pub fn geneve(kind: u16, options: u8, payload: &[u8]) -> Vec<u8> {
    let head = [&[options, 0][..], &pair(kind), &[0, 1, 9, 0]].concat();
    udp(50_000, 6081, &[&head, &vec![0; 4 * usize::from(options)][..], payload].concat())
}

/// A packet in a datagram of GTP-U: extension headers of these lengths in 4 bytes, or none and these flags.
pub fn gtp(flags: u8, extensions: &[u8], payload: &[u8]) -> Vec<u8> {
    // Container of a PDU session.
    const KIND: u8 = 0x85;
    let flags = if extensions.is_empty() { flags } else { flags | 4 };
    let mut optional = Vec::new();
    if flags & 7 != 0 {
        optional.extend([0, 7, 0, if extensions.is_empty() { 0 } else { KIND }]);
    }
    for (number, length) in extensions.iter().enumerate() {
        let last = if number + 1 == extensions.len() { 0 } else { KIND };
        optional.push(*length);
        optional.extend(vec![0; 4 * usize::from(*length) - 2]);
        optional.push(last);
    }
    let len = pair((optional.len() + payload.len()) as u16);
    udp(2152, 2152, &[&[0x30 | flags, 255][..], &len, &[0, 0, 0, 1], &optional, payload].concat())
}

/// A mirrored frame behind GRE: the first type, or the second one with a sequence.
pub fn erspan(second: bool, frame: &[u8]) -> Vec<u8> {
    let head: &[u8] = if second { &[0x10, 0x0b, 0, 3, 0, 0, 0, 0] } else { &[] };
    gre(if second { 0x10 } else { 0 }, 0x88be, &[head, frame].concat())
}

/// A mirrored frame of the third type behind GRE, with a subheader or without.
pub fn erspan_3(subheader: bool, frame: &[u8]) -> Vec<u8> {
    let head = [0x20, 0x0b, 0, 3, 0, 0, 0, 9, 0, 0, 0, u8::from(subheader)];
    gre(0x10, 0x22eb, &[&head, &vec![0; 8 * usize::from(subheader)][..], frame].concat())
}

/// A packet behind PPP in a call of PPTP.
pub fn pptp(protocol: &[u8], payload: &[u8]) -> Vec<u8> {
    let len = pair((protocol.len() + payload.len()) as u16);
    [&[0x30, 1, 0x88, 0x0b][..], &len, &[0, 1, 0, 0, 0, 1], protocol, payload].concat()
}

/// A packet behind PPP in a datagram of L2TP, with a length or without.
pub fn l2tp(has_length: bool, protocol: &[u8], payload: &[u8]) -> Vec<u8> {
    let content = [&[0, 1, 0, 1][..], protocol, payload].concat();
    let message = if has_length {
        [&[0x40, 2][..], &pair(content.len() as u16 + 4), &content].concat()
    } else {
        [&[0, 2][..], &content].concat()
    };
    udp(1701, 1701, &message)
}

/// An IPv4 or IPv6 packet with other addresses: the last byte of each is 16 more.
pub fn elsewhere(mut packet: Vec<u8>) -> Vec<u8> {
    let places = if packet[0] >> 4 == 4 { [15, 19] } else { [23, 39] };
    for at in places {
        packet[at] += 16;
    }
    packet
}
