//! IP packets in IP packets: directly, behind GRE, in Ethernet frames or PPP, or in datagrams of tunnel protocols.
//!
//! ```text
//! GRE      0 flags: 0x80 checksum, 0x40 routing, 0x20 key, 0x10 sequence | 1 version (3 bits) | 2 type (2)
//!          4 checksum (4), key (4) and sequence (4), those that there are
//! GRE 1    as GRE, type 0x880b: 4 length (2) | 6 call (2) | sequence (4, flag 0x10) | acknowledged (4, flag 0x80 of byte 1) | PPP
//! ERSPAN   behind GRE, type 0x88be: nothing without GRE's sequence, else 8 bytes | Ethernet frame
//!          type 0x22eb: 12 bytes, of the last one bit 0: 8 more | Ethernet frame
//! EtherIP  0 version (2) | 2 Ethernet frame
//! VXLAN    UDP to port 4789 or one named: 0 flags: 8 has a number | 4 number (3) | 8 Ethernet frame
//! GENEVE   UDP to port 6081: 0 version (2 bits), options in 4 bytes (6 bits) | 2 type (2) | 4 number (3) | 8 options
//! GTP-U    UDP to port 2152: 0 version (3 bits), 0x10, flags 7 | 1 type: 255 has a packet | 2 length (2) | 4 endpoint (4)
//!          8 of any flag: sequence (2), N-PDU, type of the next extension | its length in 4 bytes … type of the next one
//! L2TP     UDP to port 1701: 0 flags (2): 0x8000 control, 0x4000 length, 0x0800 sequence, 0x0200 offset | version 2 | PPP
//! ```

use super::flow::Flow;
use super::ip::Ip;
use super::link::{Link, Next};
use super::protocol::UDP;
use super::vxlan_ports::VxlanPorts;

/// Protocols of IP whose packets are IP packets of version 4, of version 6, behind GRE, or Ethernet frames.
const IPV4: u8 = 4;
const IPV6: u8 = 41;
const GRE: u8 = 47;
const ETHER_IP: u8 = 97;

/// GRE's types of Ethernet frames, of mirrored ones, and of PPP.
const BRIDGED: u16 = 0x6558;
const ERSPAN: u16 = 0x88be;
const ERSPAN_3: u16 = 0x22eb;
const PPP: u16 = 0x880b;

/// Link type of Ethernet frames.
const ETHERNET: u16 = 1;

/// UDP ports of tunnel protocols.
const L2TP: u16 = 1701;
const GTP_U: u16 = 2152;
const GENEVE: u16 = 6081;

/// Packets in each other at most: real networks have two or three.
const MAX_TUNNELS: usize = 16;

/// The innermost packet is not known: its header is cut or malformed, or there are too many around it.
pub(super) struct Unknown;

/// Contents of the tunnels of a packet.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tunnelled {
    /// Flow of the innermost packet, if there is one.
    pub(super) inner: Option<Flow>,
    /// Number of the innermost network that has one.
    pub(super) vni: Option<u32>,
}

/// Content of a tunnel: the bytes of an IP packet, if it has one, and the number of the network.
struct Content<'a> {
    packet: Option<&'a [u8]>,
    vni: Option<u32>,
}

impl<'a> Content<'a> {
    /// Content of a packet that is no tunnel, or of one that is not looked into.
    const NONE: Self = Self { packet: None, vni: None };

    fn packet(packet: &'a [u8]) -> Self {
        Self { packet: Some(packet), vni: None }
    }

    /// The IP packet behind a link header.
    fn framed(link: Option<Link<'a>>) -> Result<Self, Unknown> {
        let link = link.filter(|link| link.whole).ok_or(Unknown)?;
        Ok(Self { packet: (link.next == Next::Ip).then_some(link.rest), vni: None })
    }

    fn of_network(self, number: [u8; 3]) -> Self {
        let [n2, n1, n0] = number;
        Self { vni: Some(u32::from_be_bytes([0, n2, n1, n0])), ..self }
    }
}

/// Contents of the tunnels of an IP packet.
pub(super) fn innermost(outer: &Ip<'_>, vxlan: VxlanPorts) -> Result<Tunnelled, Unknown> {
    let (mut ip, mut found) = (*outer, Tunnelled::default());
    for _ in 0..=MAX_TUNNELS {
        let content = content(&ip, vxlan)?;
        found.vni = content.vni.or(found.vni);
        let Some(inner) = content.packet else { return Ok(found) };
        ip = Ip::read(inner).filter(|ip| ip.whole).ok_or(Unknown)?;
        found.inner = Some(Flow::of(&ip));
    }
    Err(Unknown)
}

/// Content of the tunnel that an IP packet is. In a later fragment nobody knows.
fn content<'a>(ip: &Ip<'a>, vxlan: VxlanPorts) -> Result<Content<'a>, Unknown> {
    match ip.protocol {
        Some(IPV4 | IPV6) if ip.first => Ok(Content::packet(ip.payload)),
        Some(GRE) if ip.first => gre(ip.payload),
        Some(UDP) if ip.first => datagram(ip.payload, vxlan),
        Some(ETHER_IP) if ip.first => match ip.payload {
            [0x30, 0, frame @ ..] => Content::framed(Link::read(ETHERNET, frame)),
            [] | [_] => Err(Unknown),
            _ => Ok(Content::NONE),
        },
        _ => Ok(Content::NONE),
    }
}

fn gre(data: &[u8]) -> Result<Content<'_>, Unknown> {
    let [flags, version, t1, t0, rest @ ..] = data else { return Err(Unknown) };
    let kind = u16::from_be_bytes([*t1, *t0]);
    if version & 7 == 1 && kind == PPP {
        let more = [flags & 0x10, version & 0x80].iter().filter(|flag| **flag != 0).count();
        let behind = rest.get(4 + 4 * more..).ok_or(Unknown)?;
        // A packet that acknowledges alone has no sequence and no content.
        return if flags & 0x10 == 0 { Ok(Content::NONE) } else { Content::framed(Link::ppp(behind)) };
    }
    // Routes are long out of use.
    if flags & 0x40 != 0 || version & 7 != 0 {
        return Ok(Content::NONE);
    }
    let options = [0x80, 0x20, 0x10].iter().filter(|flag| flags & **flag != 0).count();
    let rest = rest.get(4 * options..).ok_or(Unknown)?;
    let mirrored = match kind {
        BRIDGED => 0,
        ERSPAN => 8 * usize::from(flags & 0x10 != 0),
        ERSPAN_3 => 12 + 8 * usize::from(rest.get(11).ok_or(Unknown)? & 1),
        _ => return Content::framed(Some(Link::behind(kind, rest))),
    };
    Content::framed(Link::read(ETHERNET, rest.get(mirrored..).ok_or(Unknown)?))
}

fn datagram(datagram: &[u8], vxlan_ports: VxlanPorts) -> Result<Content<'_>, Unknown> {
    let [_, _, d1, d0, rest @ ..] = datagram else { return Ok(Content::NONE) };
    let tunnel: fn(&[u8]) -> Result<Content<'_>, Unknown> = match u16::from_be_bytes([*d1, *d0]) {
        port if vxlan_ports.contains(port) => vxlan,
        GENEVE => geneve,
        GTP_U => gtp,
        L2TP => l2tp,
        _ => return Ok(Content::NONE),
    };
    tunnel(rest.get(4..).ok_or(Unknown)?)
}

fn vxlan(data: &[u8]) -> Result<Content<'_>, Unknown> {
    match data {
        [flags, _, _, _, n2, n1, n0, _, frame @ ..] if flags & 8 != 0 => {
            Ok(Content::framed(Link::read(ETHERNET, frame))?.of_network([*n2, *n1, *n0]))
        }
        [_, _, _, _, _, _, _, _, ..] => Ok(Content::NONE),
        _ => Err(Unknown),
    }
}

fn geneve(data: &[u8]) -> Result<Content<'_>, Unknown> {
    let [first, _, t1, t0, n2, n1, n0, _, rest @ ..] = data else { return Err(Unknown) };
    if first >> 6 != 0 {
        return Ok(Content::NONE);
    }
    let rest = rest.get(4 * usize::from(first & 0x3f)..).ok_or(Unknown)?;
    let link = match u16::from_be_bytes([*t1, *t0]) {
        BRIDGED => Link::read(ETHERNET, rest),
        kind => Some(Link::behind(kind, rest)),
    };
    Ok(Content::framed(link)?.of_network([*n2, *n1, *n0]))
}

fn gtp(data: &[u8]) -> Result<Content<'_>, Unknown> {
    /// Type of the messages with a packet of a user.
    const USER: u8 = 255;
    let ([flags, kind, ..], mut rest) = data.split_first_chunk::<8>().ok_or(Unknown)?;
    if flags >> 4 != 3 || *kind != USER {
        return Ok(Content::NONE);
    }
    if flags & 7 != 0 {
        let ([_, _, _, next], behind) = rest.split_first_chunk().ok_or(Unknown)?;
        rest = behind;
        // Without its flag the type of an extension means nothing.
        let mut next = if flags & 4 == 0 { 0 } else { *next };
        while next != 0 {
            let length = 4 * usize::from(*rest.first().ok_or(Unknown)?);
            let (extension, behind) = rest.split_at_checked(length).ok_or(Unknown)?;
            next = *extension.last().ok_or(Unknown)?;
            rest = behind;
        }
    }
    match rest.first().ok_or(Unknown)? >> 4 {
        4 | 6 => Ok(Content::packet(rest)),
        _ => Ok(Content::NONE),
    }
}

fn l2tp(data: &[u8]) -> Result<Content<'_>, Unknown> {
    let [high, low, rest @ ..] = data else { return Err(Unknown) };
    if high & 0x80 != 0 || low & 0xf != 2 {
        return Ok(Content::NONE);
    }
    let fields = [(0x40, 2), (0x08, 4)].iter().filter(|(flag, _)| high & flag != 0).map(|(_, bytes)| bytes);
    let rest = rest.get(4 + fields.sum::<usize>()..).ok_or(Unknown)?;
    let rest = match rest {
        [o1, o0, rest @ ..] if high & 0x02 != 0 => {
            rest.get(usize::from(u16::from_be_bytes([*o1, *o0]))..).ok_or(Unknown)?
        }
        _ if high & 0x02 != 0 => return Err(Unknown),
        rest => rest,
    };
    Content::framed(Link::ppp(rest))
}
