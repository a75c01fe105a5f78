//! Packet attributes: the outermost headers of each layer, the innermost headers of a tunnel, names in DNS questions and TLS
//! client hellos, and Community IDs.

mod dns;
mod flow;
mod headers;
mod ip;
mod link;
mod protocol;
mod tls;
mod tunnel;
mod vxlan_ports;

pub(crate) use flow::ID_BYTES;
pub(crate) use vxlan_ports::VXLAN;
pub use vxlan_ports::VxlanPorts;

use crate::{Element, Outcome, Type, value};
use flow::Flow;
use headers::{Headers, Transport};
use holdfast_format::{CellBuffer, MAX_TEXT};
use ip::Address;
use protocol::Protocol;

/// A field of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketField {
    /// Link address of the sender.
    EthSrc,
    /// Link address of the receiver.
    EthDst,
    /// Number of the outermost VLAN.
    Vlan,
    /// 4 or 6.
    IpVersion,
    /// IP address of the sender.
    Src,
    /// IP address of the receiver.
    Dst,
    /// What is in the IP packet, such as 'tcp'; without one what is in the frame, such as 'arp'.
    Protocol,
    /// Port of the sender.
    SrcPort,
    /// Port of the receiver.
    DstPort,
    /// TCP's twelve bits of flags.
    TcpFlags,
    /// Bytes on the wire.
    WireLen,
    /// Bytes that are recorded.
    CapturedLen,
    /// The name in the first question of a DNS message, in lower case.
    DnsName,
    /// The server's name that a TLS client asks for, in lower case.
    TlsName,
    /// IP address of the sender in the innermost header of a tunnelled packet.
    InnerSrc,
    /// IP address of the receiver in the innermost header of a tunnelled packet.
    InnerDst,
    /// Protocol in the innermost IP packet of a tunnelled packet.
    InnerProtocol,
    /// Port of the sender in the innermost packet of a tunnelled packet.
    InnerSrcPort,
    /// Port of the receiver in the innermost packet of a tunnelled packet.
    InnerDstPort,
    /// Number of the innermost network of VXLAN or GENEVE.
    Vni,
    /// Community ID of the outermost flow.
    CommunityId,
    /// Community ID of the innermost flow of a tunnelled packet.
    InnerCommunityId,
}

impl PacketField {
    /// Fields of the ready-made list: the others cost more than most recordings want.
    pub(crate) const USUAL: usize = 16;

    /// All fields: new ones come last.
    pub(crate) const ALL: [Self; 22] = [
        Self::EthSrc,
        Self::EthDst,
        Self::Vlan,
        Self::IpVersion,
        Self::Src,
        Self::Dst,
        Self::Protocol,
        Self::SrcPort,
        Self::DstPort,
        Self::TcpFlags,
        Self::WireLen,
        Self::CapturedLen,
        Self::DnsName,
        Self::TlsName,
        Self::InnerSrc,
        Self::InnerDst,
        Self::InnerProtocol,
        Self::InnerSrcPort,
        Self::InnerDstPort,
        Self::Vni,
        Self::CommunityId,
        Self::InnerCommunityId,
    ];

    /// True for a field that is read from the contents of tunnels.
    pub(crate) fn is_of_tunnels(self) -> bool {
        matches!(
            self,
            Self::InnerSrc
                | Self::InnerDst
                | Self::InnerProtocol
                | Self::InnerSrcPort
                | Self::InnerDstPort
                | Self::Vni
                | Self::InnerCommunityId
        )
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::EthSrc => "eth_src",
            Self::EthDst => "eth_dst",
            Self::Vlan => "vlan",
            Self::IpVersion => "ip_version",
            Self::Src => "src",
            Self::Dst => "dst",
            Self::Protocol => "protocol",
            Self::SrcPort => "src_port",
            Self::DstPort => "dst_port",
            Self::TcpFlags => "tcp_flags",
            Self::WireLen => "wire_len",
            Self::CapturedLen => "captured_len",
            Self::DnsName => "dns_name",
            Self::TlsName => "tls_name",
            Self::InnerSrc => "inner_src",
            Self::InnerDst => "inner_dst",
            Self::InnerProtocol => "inner_protocol",
            Self::InnerSrcPort => "inner_src_port",
            Self::InnerDstPort => "inner_dst_port",
            Self::Vni => "vni",
            Self::CommunityId => "community_id",
            Self::InnerCommunityId => "inner_community_id",
        }
    }

    pub(crate) fn kind(self) -> Type {
        match self {
            Self::EthSrc | Self::EthDst => Type::Mac,
            Self::Src | Self::Dst | Self::InnerSrc | Self::InnerDst => Type::Ip,
            Self::Protocol
            | Self::InnerProtocol
            | Self::DnsName
            | Self::TlsName
            | Self::CommunityId
            | Self::InnerCommunityId => Type::Text,
            _ => Type::Uint,
        }
    }
}

/// Text of a packet, made on the way: a name in lower case.
pub(crate) type Scratch = [u8; MAX_TEXT];

/// Replacement of bytes that are no text: U+FFFD.
const REPLACEMENT: &[u8] = "\u{fffd}".as_bytes();

/// Reason why a packet gives no name.
#[derive(Clone, Copy)]
enum Unnamed {
    /// The name cannot be decoded.
    Malformed,
    /// The name in the packet exceeds [`MOST_NAME`].
    TooLong,
}

/// Adds a piece of a name in lower case to the `len` bytes of it; what there is no room for is counted in `len` alone.
fn put(piece: &[u8], scratch: &mut Scratch, len: &mut usize) {
    if let Some(room) = scratch.get_mut(*len..*len + piece.len()) {
        room.copy_from_slice(piece);
        room.make_ascii_lowercase();
    }
    *len += piece.len();
}

/// What is read from packets.
#[derive(Clone, Debug)]
pub(crate) struct Packets {
    columns: Vec<(usize, PacketField, VxlanPorts)>,
    scratch: Box<Scratch>,
}

impl Packets {
    pub(crate) fn new(mut columns: Vec<(usize, PacketField, VxlanPorts)>) -> Self {
        // Other fields are the same with any ports: the packet is read once if tunnels have one list of ports.
        let ports = columns.iter().find(|(_, field, _)| field.is_of_tunnels()).map(|(_, _, ports)| *ports);
        for (_, _, own) in columns.iter_mut().filter(|(_, field, _)| !field.is_of_tunnels()) {
            *own = ports.unwrap_or_default();
        }
        Self { columns, scratch: Box::new([0; MAX_TEXT]) }
    }

    /// One cell to each of its columns.
    pub(crate) fn extract(&mut self, element: &Element<'_>, cells: &mut [CellBuffer], outcome: &mut Outcome) {
        let Some(&(_, _, mut ports)) = self.columns.first() else { return };
        let mut headers = Headers::read(element.link_type, element.data, ports);
        outcome.undecodable |= !headers.whole;
        for (number, field, own) in &self.columns {
            if *own != ports {
                ports = *own;
                headers = Headers::read(element.link_type, element.data, ports);
                outcome.undecodable |= !headers.whole;
            }
            let Some(into) = cells.get_mut(*number) else { continue };
            let inner = headers.tunnelled.inner;
            let inner_ports = inner.and_then(|flow| flow.ports);
            let number = |number: Option<u64>, into: &mut CellBuffer| match number {
                Some(number) => into.word(number),
                None => into.null(),
            };
            match field {
                PacketField::EthSrc => number(headers.eth_src.map(value::mac), into),
                PacketField::EthDst => number(headers.eth_dst.map(value::mac), into),
                PacketField::Vlan => number(headers.vlan.map(u64::from), into),
                PacketField::IpVersion => number(headers.src.map(Address::version), into),
                PacketField::Src => address(headers.src, into),
                PacketField::Dst => address(headers.dst, into),
                PacketField::Protocol => protocol(headers.protocol, into),
                PacketField::SrcPort => number(headers.ports.map(|(port, _)| port.into()), into),
                PacketField::DstPort => number(headers.ports.map(|(_, port)| port.into()), into),
                PacketField::TcpFlags => number(headers.tcp_flags.map(u64::from), into),
                PacketField::WireLen => into.word(element.original_size),
                PacketField::CapturedLen => into.word(element.size),
                PacketField::DnsName => name(dns_name(&headers, &mut self.scratch), into, outcome),
                PacketField::InnerSrc => address(inner.map(|flow| flow.addresses.0), into),
                PacketField::InnerDst => address(inner.map(|flow| flow.addresses.1), into),
                PacketField::InnerProtocol => {
                    protocol(inner.and_then(|flow| flow.protocol).map(Protocol::Ip), into);
                }
                PacketField::InnerSrcPort => number(inner_ports.map(|(port, _)| port.into()), into),
                PacketField::InnerDstPort => number(inner_ports.map(|(_, port)| port.into()), into),
                PacketField::Vni => number(headers.tunnelled.vni.map(u64::from), into),
                PacketField::CommunityId => community_id(headers.flow, into),
                PacketField::InnerCommunityId => community_id(inner, into),
                PacketField::TlsName => name(tls_name(&headers, &mut self.scratch), into, outcome),
            }
        }
    }
}

fn address(address: Option<Address>, into: &mut CellBuffer) {
    match address {
        Some(address) => into.wide(address.wide()),
        None => into.null(),
    }
}

fn protocol(protocol: Option<Protocol>, into: &mut CellBuffer) {
    match protocol {
        Some(protocol) => protocol.name(|name| into.bytes(name)),
        None => into.null(),
    }
}

fn community_id(flow: Option<Flow>, into: &mut CellBuffer) {
    let is_known = flow.is_some_and(|flow| flow.community_id(|id| into.bytes(id)));
    if !is_known {
        into.null();
    }
}

/// Bytes of a name in a packet: DNS has none that is longer. Admission counts as many for its text, too.
pub(crate) const MOST_NAME: usize = 255;

/// Bytes of a name's text, each byte of the packet being replaced: a cell has room for them.
const MOST_NAME_TEXT: usize = REPLACEMENT.len() * MOST_NAME;
const _: () = assert!(MOST_NAME_TEXT <= MAX_TEXT);

fn name(name: Result<Option<&[u8]>, Unnamed>, into: &mut CellBuffer, outcome: &mut Outcome) {
    match name {
        Ok(Some(name)) => return into.bytes(name),
        Ok(None) => {}
        Err(Unnamed::TooLong) => outcome.too_long += 1,
        Err(Unnamed::Malformed) => outcome.undecodable = true,
    }
    into.null();
}

/// The ports of DNS and of its multicast form.
const DNS: [u16; 2] = [53, 5353];

/// Over UDP, or in front of it the message's length over TCP, where a segment may as well begin within a message.
fn dns_name<'a>(headers: &Headers<'a>, scratch: &'a mut Scratch) -> Result<Option<&'a [u8]>, Unnamed> {
    let Some((src, dst)) = headers.ports else { return Ok(None) };
    match headers.payload {
        Transport::Udp(payload) if [src, dst].iter().any(|port| DNS.contains(port)) => {
            dns::question(payload, scratch)
        }
        Transport::Tcp([_, _, message @ ..]) if [src, dst].contains(&DNS[0]) => {
            dns::question(message, scratch).or(Ok(None))
        }
        _ => Ok(None),
    }
}

/// A packet has one of the two names, at most.
fn tls_name<'a>(headers: &Headers<'a>, scratch: &'a mut Scratch) -> Result<Option<&'a [u8]>, Unnamed> {
    let Some((src, dst)) = headers.ports else { return Ok(None) };
    match headers.payload {
        Transport::Tcp(payload) if ![src, dst].contains(&DNS[0]) => tls::server_name(payload, scratch),
        _ => Ok(None),
    }
}
