//! Outermost link, network and transport headers of a packet, as far as they are present, and the innermost addresses.

use super::ip::{Address, Ip};
use super::link::{Link, Next};
use super::protocol::{Protocol, SCTP, TCP, UDP};
use super::tunnel;

/// What a packet's headers say.
#[derive(Clone, Copy, Debug)]
pub(super) struct Headers<'a> {
    pub(super) eth_src: Option<[u8; 6]>,
    pub(super) eth_dst: Option<[u8; 6]>,
    pub(super) vlan: Option<u16>,
    pub(super) src: Option<Address>,
    pub(super) dst: Option<Address>,
    /// Those of the innermost IP header, if it is not the only one.
    pub(super) inner: Option<(Address, Address)>,
    pub(super) protocol: Option<Protocol>,
    pub(super) ports: Option<(u16, u16)>,
    pub(super) tcp_flags: Option<u16>,
    pub(super) payload: Transport<'a>,
    /// Whether no header that should be there is cut or malformed.
    pub(super) whole: bool,
}

/// What a transport header is followed by.
#[derive(Clone, Copy, Debug)]
pub(super) enum Transport<'a> {
    /// There is none, or it is not looked into.
    None,
    Udp(&'a [u8]),
    Tcp(&'a [u8]),
}

impl<'a> Headers<'a> {
    pub(super) fn read(link_type: Option<u16>, data: &'a [u8]) -> Self {
        let mut headers = Self {
            eth_src: None,
            eth_dst: None,
            vlan: None,
            src: None,
            dst: None,
            inner: None,
            protocol: None,
            ports: None,
            tcp_flags: None,
            payload: Transport::None,
            whole: false,
        };
        let Some(link) = link_type.and_then(|link_type| Link::read(link_type, data)) else { return headers };
        (headers.eth_src, headers.eth_dst, headers.vlan) = (link.src, link.dst, link.vlan);
        headers.whole = link.whole;
        match link.next {
            Next::Ip => match Ip::read(link.rest) {
                Some(ip) => headers.ip(&ip),
                None => headers.whole = false,
            },
            Next::Other(kind) => headers.protocol = kind.map(Protocol::Frame),
        }
        headers
    }

    fn ip(&mut self, ip: &Ip<'a>) {
        (self.src, self.dst) = (Some(ip.addresses.0), Some(ip.addresses.1));
        self.protocol = ip.protocol.map(Protocol::Ip);
        self.whole &= ip.whole;
        match tunnel::innermost(ip) {
            Ok(inner) => self.inner = inner,
            Err(tunnel::Unknown) => self.whole = false,
        }
        match ip.protocol {
            Some(protocol @ (TCP | UDP | SCTP)) if ip.first => self.transport(protocol, ip.payload),
            _ => {}
        }
    }

    /// Ports are the first four bytes of each; flags are told of a TCP header that is not whole, too.
    fn transport(&mut self, protocol: u8, data: &'a [u8]) {
        self.ports = data
            .first_chunk()
            .map(|[s1, s0, d1, d0]| (u16::from_be_bytes([*s1, *s0]), u16::from_be_bytes([*d1, *d0])));
        let rest = match protocol {
            TCP => {
                let control = data.get(12..).and_then(<[u8]>::first_chunk).copied().map(u16::from_be_bytes);
                self.tcp_flags = control.map(|control| control & 0xfff);
                let header = control.map(|control| usize::from(control >> 12) * 4).filter(|len| *len >= 20);
                header.and_then(|header| data.get(header..))
            }
            UDP => data.get(8..),
            _ => data.get(12..),
        };
        self.whole &= rest.is_some();
        self.payload = match (protocol, rest) {
            (TCP, Some(rest)) => Transport::Tcp(rest),
            (UDP, Some(rest)) => Transport::Udp(rest),
            _ => Transport::None,
        };
    }
}
