//! Flow of an IP packet: addresses, protocol and ports, and its Community ID (version 1, seed 0).
//!
//! ```text
//! hashed   0 seed (2) | 2 lower address | higher address | protocol | 0 | port of the lower, of the higher (2 each)
//! text     "1:" | base64 of the SHA-1
//! ```
//!
//! The lower end is that with the lower address, and of equal ones with the lower port. TCP, UDP and SCTP have ports. ICMP has its type
//! and that of the answer in their place; messages without an answer have type and code, and keep their direction.

use super::ip::{Address, Ip};
use super::protocol::{ICMP, ICMP_V6, SCTP, TCP, UDP};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha1::{Digest as _, Sha1};

/// Bytes of a Community ID.
pub(crate) const ID_BYTES: usize = 2 + 28;

/// Types of ICMP messages, and of their answers.
const ICMP_ANSWERS: [(u8, u8); 10] =
    [(8, 0), (0, 8), (13, 14), (14, 13), (15, 16), (16, 15), (17, 18), (18, 17), (10, 9), (9, 10)];
const ICMP_V6_ANSWERS: [(u8, u8); 12] = [
    (128, 129),
    (129, 128),
    (133, 134),
    (134, 133),
    (135, 136),
    (136, 135),
    (130, 131),
    (131, 130),
    (139, 140),
    (140, 139),
    (144, 145),
    (145, 144),
];

/// Flow of an IP packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flow {
    /// Addresses of sender and receiver.
    pub(super) addresses: (Address, Address),
    /// Protocol in the packet; unknown behind an extension that is cut.
    pub(super) protocol: Option<u8>,
    /// Ports of TCP, UDP and SCTP.
    pub(super) ports: Option<(u16, u16)>,
    /// Type and code of an ICMP message.
    message: Option<(u8, u8)>,
    /// True for a packet whose transport header begins in it.
    first: bool,
}

impl Flow {
    pub(super) fn of(ip: &Ip<'_>) -> Self {
        let mut flow = Self {
            addresses: ip.addresses,
            protocol: ip.protocol,
            ports: None,
            message: None,
            first: ip.first,
        };
        match (ip.protocol, ip.payload) {
            (Some(TCP | UDP | SCTP), [s1, s0, d1, d0, ..]) if ip.first => {
                flow.ports = Some((u16::from_be_bytes([*s1, *s0]), u16::from_be_bytes([*d1, *d0])));
            }
            (Some(ICMP | ICMP_V6), [kind, code, ..]) if ip.first => flow.message = Some((*kind, *code)),
            _ => {}
        }
        flow
    }

    /// Gives the Community ID to `put`, if the headers that it needs are there. Later fragments have no ports.
    pub(super) fn community_id(&self, put: impl FnOnce(&[u8])) -> bool {
        let Some(protocol) = self.protocol else { return false };
        let needs_ports = matches!(protocol, TCP | UDP | SCTP | ICMP | ICMP_V6) && self.first;
        let (ports, is_one_way) = match (self.ports, self.message) {
            (Some(ports), _) => (Some(ports), false),
            (None, Some((kind, code))) => {
                let answers = if protocol == ICMP { &ICMP_ANSWERS[..] } else { &ICMP_V6_ANSWERS };
                let answer = answers.iter().find(|(asked, _)| *asked == kind).map(|(_, answer)| *answer);
                (Some((kind.into(), answer.unwrap_or(code).into())), answer.is_none())
            }
            (None, None) if needs_ports => return false,
            (None, None) => (None, false),
        };
        let (src, dst) = (self.addresses.0.octets(), self.addresses.1.octets());
        let (from, to) = ports.unwrap_or_default();
        let is_ordered = is_one_way || (src, from) <= (dst, to);
        let ends = if is_ordered { [(src, from), (dst, to)] } else { [(dst, to), (src, from)] };
        let mut hash = Sha1::new();
        hash.update([0; 2]);
        for (address, _) in &ends {
            hash.update(address);
        }
        hash.update([protocol, 0]);
        if ports.is_some() {
            for (_, port) in &ends {
                hash.update(port.to_be_bytes());
            }
        }
        let mut text = [0; ID_BYTES];
        let (version, rest) = text.split_at_mut(2);
        version.copy_from_slice(b"1:");
        let written = STANDARD.encode_slice(hash.finalize(), rest);
        debug_assert_eq!(written, Ok(ID_BYTES - 2));
        put(&text);
        true
    }
}
