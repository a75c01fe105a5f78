//! IP packets in IP packets: directly, behind GRE, or in the Ethernet frames of VXLAN.
//!
//! ```text
//! GRE     0 flags: 0x80 checksum, 0x40 routing, 0x20 key, 0x10 sequence | 1 version (3 bits) | 2 Ethernet type (2)
//!         4 checksum (4), key (4) and sequence (4), those that there are
//! VXLAN   UDP to port 4789: 0 flags: 8 has a number | 4 number (3) | 8 Ethernet frame
//! ```

use super::ip::{Address, Ip};
use super::link::{Link, Next};
use super::protocol::UDP;

/// Protocols of IP whose packets are IP packets of version 4, of version 6, and behind GRE.
const IPV4: u8 = 4;
const IPV6: u8 = 41;
const GRE: u8 = 47;

/// GRE's type of Ethernet frames, and the link type of these.
const BRIDGED: u16 = 0x6558;
const ETHERNET: u16 = 1;

/// UDP port of VXLAN frames.
const VXLAN: u16 = 4789;

/// Packets in each other at most: real networks have two or three.
const MAX_TUNNELS: usize = 16;

/// The innermost packet is not known: its header is cut or malformed, or there are too many around it.
pub(super) struct Unknown;

/// Addresses of the innermost header of an IP packet in this one; `None` if there is none.
pub(super) fn innermost(outer: &Ip<'_>) -> Result<Option<(Address, Address)>, Unknown> {
    let (mut ip, mut found) = (*outer, None);
    for _ in 0..=MAX_TUNNELS {
        let Some(inner) = payload(&ip)? else { return Ok(found) };
        ip = Ip::read(inner).filter(|ip| ip.whole).ok_or(Unknown)?;
        found = Some(ip.addresses);
    }
    Err(Unknown)
}

/// The IP packet in an IP packet. In a later fragment nobody knows.
fn payload<'a>(ip: &Ip<'a>) -> Result<Option<&'a [u8]>, Unknown> {
    match ip.protocol {
        Some(IPV4 | IPV6) if ip.first => Ok(Some(ip.payload)),
        Some(GRE) if ip.first => gre(ip.payload),
        Some(UDP) if ip.first => vxlan(ip.payload),
        _ => Ok(None),
    }
}

fn gre(data: &[u8]) -> Result<Option<&[u8]>, Unknown> {
    let [flags, version, t1, t0, rest @ ..] = data else { return Err(Unknown) };
    // Routes are long out of use, and version 1 has PPP of calls.
    if flags & 0x40 != 0 || version & 7 != 0 {
        return Ok(None);
    }
    let options = [0x80, 0x20, 0x10].iter().filter(|flag| flags & **flag != 0).count();
    let rest = rest.get(4 * options..).ok_or(Unknown)?;
    match u16::from_be_bytes([*t1, *t0]) {
        BRIDGED => framed(Link::read(ETHERNET, rest)),
        kind => framed(Some(Link::behind(kind, rest))),
    }
}

fn vxlan(datagram: &[u8]) -> Result<Option<&[u8]>, Unknown> {
    match datagram {
        [_, _, d1, d0, rest @ ..] if u16::from_be_bytes([*d1, *d0]) == VXLAN => match rest {
            [_, _, _, _, flags, _, _, _, _, _, _, _, frame @ ..] if flags & 8 != 0 => {
                framed(Link::read(ETHERNET, frame))
            }
            [_, _, _, _, _, _, _, _, _, _, _, _, ..] => Ok(None),
            _ => Err(Unknown),
        },
        _ => Ok(None),
    }
}

/// The IP packet behind a link header.
fn framed(link: Option<Link<'_>>) -> Result<Option<&[u8]>, Unknown> {
    let link = link.filter(|link| link.whole).ok_or(Unknown)?;
    Ok((link.next == Next::Ip).then_some(link.rest))
}
