//! Protocol names of packets.

/// What is in an IP packet, or in a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    /// IANA's number of IP protocols.
    Ip(u8),
    /// An Ethernet type, or below 1536 the length of an 802.3 frame.
    Frame(u16),
}

pub(super) const ICMP: u8 = 1;
pub(super) const ICMP_V6: u8 = 58;
pub(super) const TCP: u8 = 6;
pub(super) const UDP: u8 = 17;
pub(super) const SCTP: u8 = 132;

impl Protocol {
    /// Gives its name to `put`: of a protocol without one the number, of a frame in hexadecimal.
    pub(super) fn name(self, put: impl FnOnce(&[u8])) {
        let name: &[u8] = match self {
            Self::Ip(ICMP) => b"icmp",
            Self::Ip(2) => b"igmp",
            Self::Ip(4) => b"ipip",
            Self::Ip(TCP) => b"tcp",
            Self::Ip(UDP) => b"udp",
            Self::Ip(33) => b"dccp",
            Self::Ip(41) => b"ipv6",
            Self::Ip(47) => b"gre",
            Self::Ip(50) => b"esp",
            Self::Ip(51) => b"ah",
            Self::Ip(ICMP_V6) => b"icmpv6",
            Self::Ip(89) => b"ospf",
            Self::Ip(103) => b"pim",
            Self::Ip(112) => b"vrrp",
            Self::Ip(SCTP) => b"sctp",
            Self::Ip(136) => b"udplite",
            Self::Ip(number) => return crate::value::decimal(number.into(), put),
            Self::Frame(0..1536) => b"llc",
            Self::Frame(0x0806) => b"arp",
            Self::Frame(0x8035) => b"rarp",
            Self::Frame(0x8847) => b"mpls",
            Self::Frame(0x8863 | 0x8864) => b"pppoe",
            Self::Frame(0x888e) => b"eapol",
            Self::Frame(0x88cc) => b"lldp",
            Self::Frame(0x88f7) => b"ptp",
            Self::Frame(kind) => {
                let digit = |at: u32| b"0123456789abcdef"[usize::from(kind >> (4 * at) & 0xf)];
                return put(&[b'0', b'x', digit(3), digit(2), digit(1), digit(0)]);
            }
        };
        put(name);
    }
}
