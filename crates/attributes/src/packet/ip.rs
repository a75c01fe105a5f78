//! IP headers of both versions, and the extension headers behind them.
//!
//! ```text
//! IPv4        0 version, header in 4 bytes | 2 length (2) | 6 flags, fragment's place in 8 bytes (2) | 9 protocol
//!            12 sender (4) | 16 receiver (4) | 20 options
//! IPv6        0 version | 4 length behind the header (2) | 6 what is next | 8 sender (16) | 24 receiver (16)
//! extension   0 what is next | 1 length in 8 bytes, less one | of a fragment 2: its place in 8 bytes (13 bits)
//! AH          0 what is next | 1 length in 4 bytes, less two
//! ```

use crate::value;

/// Extension headers: options for each hop, routing, fragments, authentication, options for the receiver.
const HOPS: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;
const OPTIONS: u8 = 60;

/// An address of either version.
#[derive(Clone, Copy, Debug)]
pub(super) enum Address {
    V4([u8; 4]),
    V6([u8; 16]),
}

impl Address {
    pub(super) fn version(self) -> u64 {
        match self {
            Self::V4(_) => 4,
            Self::V6(_) => 6,
        }
    }

    /// Bytes of the address as they stand in a packet.
    pub(super) fn octets(&self) -> &[u8] {
        match self {
            Self::V4(octets) => octets,
            Self::V6(octets) => octets,
        }
    }

    pub(super) fn wide(self) -> u128 {
        match self {
            Self::V4(octets) => value::mapped(octets),
            Self::V6(octets) => u128::from_be_bytes(octets),
        }
    }
}

/// The headers of an IP packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ip<'a> {
    /// From and to.
    pub(super) addresses: (Address, Address),
    /// What is in it; behind an extension that is cut nobody knows.
    pub(super) protocol: Option<u8>,
    /// Whether a transport header may come first: not in later fragments.
    pub(super) first: bool,
    pub(super) payload: &'a [u8],
    /// Whether no header is cut.
    pub(super) whole: bool,
}

impl<'a> Ip<'a> {
    /// `None` if it does not begin with a whole header of either version, IPv4's options aside.
    pub(super) fn read(data: &'a [u8]) -> Option<Self> {
        match data.first()? >> 4 {
            4 => Self::v4(data),
            6 => Self::v6(data),
            _ => None,
        }
    }

    fn v4(data: &'a [u8]) -> Option<Self> {
        let head = data.first_chunk::<20>()?;
        let [first, _, l1, l0, _, _, f1, f0, _, protocol, _, _, addresses @ ..] = *head;
        let [src, dst] = *addresses.as_chunks().0.first_chunk()?;
        let header = usize::from(first & 15) * 4;
        if header < head.len() {
            return None;
        }
        let ip = Self {
            addresses: (Address::V4(src), Address::V4(dst)),
            protocol: Some(protocol),
            first: u16::from_be_bytes([f1, f0]) << 3 == 0,
            payload: &[],
            whole: false,
        };
        // A length that cannot be is that of a packet which the network card was to cut up.
        let len = match usize::from(u16::from_be_bytes([l1, l0])) {
            len if len < header => data.len(),
            len => len.min(data.len()),
        };
        Some(match data.get(header..len) {
            Some(rest) if ip.first => ip.behind(protocol, rest, false),
            Some(payload) => Self { payload, whole: true, ..ip },
            None => ip,
        })
    }

    fn v6(data: &'a [u8]) -> Option<Self> {
        let (head, rest) = data.split_first_chunk::<40>()?;
        let [_, _, _, _, l1, l0, next, _, addresses @ ..] = *head;
        let [src, dst] = *addresses.as_chunks().0.first_chunk()?;
        let rest = match usize::from(u16::from_be_bytes([l1, l0])) {
            0 => rest,
            len => &rest[..len.min(rest.len())],
        };
        let addresses = (Address::V6(src), Address::V6(dst));
        Some(
            Self { addresses, protocol: None, first: true, payload: &[], whole: false }
                .behind(next, rest, true),
        )
    }

    /// Behind the extension headers, of which IPv4 has one kind only.
    fn behind(self, mut next: u8, mut rest: &'a [u8], v6: bool) -> Self {
        let cut = Self { protocol: None, ..self };
        loop {
            let sized = |unit: usize, more: usize| {
                rest.get(1).and_then(|len| rest.split_at_checked((usize::from(*len) + more) * unit))
            };
            let extension = match next {
                HOPS | ROUTING | OPTIONS if v6 => sized(8, 1),
                FRAGMENT if v6 => rest.split_at_checked(8),
                AUTHENTICATION => sized(4, 2),
                _ => return Self { protocol: Some(next), payload: rest, whole: true, ..self },
            };
            let Some((extension, behind)) = extension else { return cut };
            let place = match (next, extension) {
                (FRAGMENT, [_, _, high, low, ..]) => u16::from_be_bytes([*high, *low]) >> 3,
                _ => 0,
            };
            let Some(after) = extension.first() else { return cut };
            (next, rest) = (*after, behind);
            if place > 0 {
                return Self { protocol: Some(next), first: false, payload: rest, whole: true, ..self };
            }
        }
    }
}
