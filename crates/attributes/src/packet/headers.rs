//! Outermost link, network and transport headers of a packet, as far as they are present, and the contents of tunnels.

use super::flow::Flow;
use super::ip::{Address, Ip};
use super::link::{Link, Next};
use super::protocol::{Protocol, SCTP, TCP, UDP};
use super::tunnel::{self, Tunnelled};
use super::vxlan_ports::VxlanPorts;

/// What a packet's headers say.
#[derive(Clone, Copy, Debug)]
pub(super) struct Headers<'a> {
    pub(super) eth_src: Option<[u8; 6]>,
    pub(super) eth_dst: Option<[u8; 6]>,
    pub(super) vlan: Option<u16>,
    pub(super) src: Option<Address>,
    pub(super) dst: Option<Address>,
    /// Flow of the outermost IP packet.
    pub(super) flow: Option<Flow>,
    /// Contents of the packet's tunnels.
    pub(super) tunnelled: Tunnelled,
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
    pub(super) fn read(link_type: Option<u16>, data: &'a [u8], vxlan: VxlanPorts) -> Self {
        let mut headers = Self {
            eth_src: None,
            eth_dst: None,
            vlan: None,
            src: None,
            dst: None,
            flow: None,
            tunnelled: Tunnelled::default(),
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
                Some(ip) => headers.ip(&ip, vxlan),
                None => headers.whole = false,
            },
            Next::Other(kind) => headers.protocol = kind.map(Protocol::Frame),
        }
        headers
    }

    fn ip(&mut self, ip: &Ip<'a>, vxlan: VxlanPorts) {
        (self.src, self.dst) = (Some(ip.addresses.0), Some(ip.addresses.1));
        self.protocol = ip.protocol.map(Protocol::Ip);
        self.whole &= ip.whole;
        self.flow = Some(Flow::of(ip));
        match tunnel::innermost(ip, vxlan) {
            Ok(tunnelled) => self.tunnelled = tunnelled,
            Err(tunnel::Unknown) => self.whole = false,
        }
        match ip.protocol {
            Some(protocol @ (TCP | UDP | SCTP)) if ip.first => self.transport(protocol, ip.payload),
            _ => {}
        }
    }

    /// Ports are those of the flow; flags are told of a TCP header that is not whole, too.
    fn transport(&mut self, protocol: u8, data: &'a [u8]) {
        self.ports = self.flow.and_then(|flow| flow.ports);
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
