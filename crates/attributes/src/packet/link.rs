//! Link headers of packets, and the VLAN tags, MPLS labels or `PPPoE` session headers behind them.
//!
//! ```text
//! Ethernet   0 receiver (6) | 6 sender (6) | 12 type (2)
//! cooked     0 packet type (2) | 2 hardware (2) | 4 address length (2) | 6 sender (8) | 14 type (2)
//! cooked 2   0 type (2) | 4 interface (4) | 8 hardware (2) | 10 packet type | 11 address length | 12 sender (8)
//! loopback   0 address family, in either order (4)
//! VLAN tag   0 priority and number (2) | 2 type (2)
//! MPLS       0 label (20 bits), class (3), the last of the stack (1) | 3 time to live
//! PPPoE      0 version | 1 code: 0 is data | 2 session (2) | 4 length behind it (2) | 6 protocol (1 or 2)
//! ```

/// What follows the link header and tags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// An IP packet.
    Ip,
    /// A frame of this Ethernet type, or nobody knows of which.
    Other(Option<u16>),
}

/// The link header of a packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Link<'a> {
    pub(super) src: Option<[u8; 6]>,
    pub(super) dst: Option<[u8; 6]>,
    pub(super) vlan: Option<u16>,
    pub(super) next: Next,
    pub(super) rest: &'a [u8],
    /// Whether all of it is there.
    pub(super) whole: bool,
}

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const MPLS: [u16; 2] = [0x8847, 0x8848];
const PPPOE_SESSION: u16 = 0x8864;

/// Types of VLAN tags: customer's, provider's, and one from before there was a standard.
const TAGS: [u16; 3] = [0x8100, 0x88a8, 0x9100];

/// Hardware of cooked headers behind whose addresses is no Ethernet type.
const NETLINK: u16 = 824;

/// Hardware whose addresses are those of Ethernet: itself, and the loopback interface.
const ETHERNET: [u16; 2] = [1, 772];

impl<'a> Link<'a> {
    /// Link header of which nothing is known.
    const NOTHING: Self =
        Link { src: None, dst: None, vlan: None, next: Next::Other(None), rest: &[], whole: false };

    /// The headers behind one with this Ethernet type.
    pub(super) fn behind(kind: u16, rest: &'a [u8]) -> Self {
        Self::NOTHING.tagged(kind, rest)
    }

    /// By the type that capture files have for it; `None` if that is none that is known here.
    pub(super) fn read(link_type: u16, data: &'a [u8]) -> Option<Self> {
        let nothing = Self::NOTHING;
        let ip = |rest| Link { next: Next::Ip, rest, whole: true, ..nothing };
        let read = match link_type {
            1 => Self::ethernet(nothing, data),
            0 | 108 => data.split_first_chunk().map(|(family, rest)| match u32::from_le_bytes(*family) {
                family if is_inet(family) || is_inet(family.swap_bytes()) => ip(rest),
                _ => Link { whole: true, ..nothing },
            }),
            12 | 14 | 101 | 228 | 229 => Some(ip(data)),
            113 => data.split_first_chunk::<16>().map(|(head, rest)| {
                let [_, _, h1, h0, _, len, address @ .., t1, t0] = *head;
                let (hardware, kind) = (u16::from_be_bytes([h1, h0]), u16::from_be_bytes([t1, t0]));
                Self::cooked(nothing, hardware, len, address, kind, rest)
            }),
            276 => data.split_first_chunk::<20>().map(|(head, rest)| {
                let [t1, t0, _, _, _, _, _, _, h1, h0, _, len, address @ ..] = *head;
                let (hardware, kind) = (u16::from_be_bytes([h1, h0]), u16::from_be_bytes([t1, t0]));
                Self::cooked(nothing, hardware, len, address, kind, rest)
            }),
            _ => return None,
        };
        Some(read.unwrap_or(nothing))
    }

    fn ethernet(nothing: Self, data: &'a [u8]) -> Option<Self> {
        let (addresses, rest) = data.split_first_chunk::<12>()?;
        let [dst, src] = *addresses.as_chunks::<6>().0.first_chunk()?;
        let link = Link { src: Some(src), dst: Some(dst), ..nothing };
        Some(match rest.split_first_chunk() {
            Some((kind, rest)) => link.tagged(u16::from_be_bytes(*kind), rest),
            None => link,
        })
    }

    fn cooked(nothing: Self, hardware: u16, len: u8, address: [u8; 8], kind: u16, rest: &'a [u8]) -> Self {
        let src = address.first_chunk().copied().filter(|_| len == 6 && ETHERNET.contains(&hardware));
        let link = Link { src, ..nothing };
        if hardware == NETLINK { Link { whole: true, ..link } } else { link.tagged(kind, rest) }
    }

    /// Behind any number of VLAN tags, of which the first counts.
    fn tagged(mut self, mut kind: u16, mut rest: &'a [u8]) -> Self {
        while TAGS.contains(&kind) {
            let Some(([high, low, k1, k0], behind)) = rest.split_first_chunk() else { return self };
            self.vlan = self.vlan.or(Some(u16::from_be_bytes([*high, *low]) & 0xfff));
            (kind, rest) = (u16::from_be_bytes([*k1, *k0]), behind);
        }
        match kind {
            IPV4 | IPV6 => Self { next: Next::Ip, rest, whole: true, ..self },
            _ if MPLS.contains(&kind) => self.labelled(kind, rest),
            PPPOE_SESSION => self.in_session(rest),
            _ => Self { next: Next::Other(Some(kind)), rest, whole: true, ..self },
        }
    }

    /// Behind any number of MPLS labels, which do not tell what follows: IP begins with its version.
    fn labelled(self, kind: u16, mut rest: &'a [u8]) -> Self {
        loop {
            let Some(([_, _, last, _], behind)) = rest.split_first_chunk() else { return self };
            rest = behind;
            if last & 1 == 1 {
                break;
            }
        }
        match rest.first().map(|first| first >> 4) {
            Some(4 | 6) => Self { next: Next::Ip, rest, whole: true, ..self },
            Some(_) => Self { next: Next::Other(Some(kind)), rest, whole: true, ..self },
            None => self,
        }
    }

    /// Behind the header of a `PPPoE` session.
    fn in_session(self, rest: &'a [u8]) -> Self {
        let Some(([_, code, _, _, l1, l0], behind)) = rest.split_first_chunk() else { return self };
        // Bytes behind that length are padding.
        let data = behind.get(..usize::from(u16::from_be_bytes([*l1, *l0]))).unwrap_or(behind);
        if *code == 0 {
            self.point_to_point(data)
        } else {
            Self { next: Next::Other(Some(PPPOE_SESSION)), rest: data, whole: true, ..self }
        }
    }

    /// The headers of a PPP frame, with address and control bytes or without.
    pub(super) fn ppp(data: &'a [u8]) -> Option<Self> {
        if data == [0xff] {
            return None;
        }
        Some(Self::NOTHING.point_to_point(data.strip_prefix(&[0xff, 3]).unwrap_or(data)))
    }

    /// Behind the protocol number of PPP, which may lack its first byte.
    fn point_to_point(self, data: &'a [u8]) -> Self {
        match data {
            [0, 0x21 | 0x57, rest @ ..] | [0x21 | 0x57, rest @ ..] => {
                Self { next: Next::Ip, rest, whole: true, ..self }
            }
            [2, 0x81, rest @ ..] => self.labelled(MPLS[0], rest),
            [] | [0 | 2] => self,
            _ => Self { next: Next::Other(Some(PPPOE_SESSION)), rest: data, whole: true, ..self },
        }
    }
}

/// IPv4, or IPv6 as one system or another numbers it.
fn is_inet(family: u32) -> bool {
    matches!(family, 2 | 10 | 24 | 28 | 30)
}
