//! The classic pcap format: its file header and record headers, as bytes.
//!
//! ```text
//! file header, 24 bytes                      record header, 16 bytes (24 in the modified kind)
//!  0  magic: byte order, resolution, kind     0  seconds
//!  4  version, major then minor (16 bits)     4  micro- or nanoseconds
//!  8  time zone, never used                   8  bytes captured
//! 12  accuracy, never used                   12  bytes on the wire
//! 16  snap length                            16  modified kind: interface index of its machine
//! 20  link type (16 bits), check sequence    20  modified kind: protocol, packet type, padding
//! ```

use super::pcapng::options;
use super::{Damage, Flags, Interface, LinkType, MAX_PACKET, Order};
use holdfast_base::Timestamp;

pub(crate) const FILE_HEADER: usize = 24;

const MICRO: u32 = 0xa1b2_c3d4;
const NANO: u32 = 0xa1b2_3c4d;
/// Written by libpcap with Alexey Kuznetsov's patches: longer record headers.
const MODIFIED: u32 = 0xa1b2_cd34;

/// What the file header says of the records.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Header {
    pub(crate) order: Order,
    nano: bool,
    modified: bool,
    lengths: Lengths,
}

/// Which length comes first in a record: writers before version 2.4 did not agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lengths {
    Captured,
    Original,
    SmallerIsCaptured,
}

/// What a record header says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record {
    pub(crate) time: Option<Timestamp>,
    pub(crate) captured: u32,
    pub(crate) original: u32,
    pub(crate) flags: Flags,
}

/// The byte order of a file that starts so, if it is a pcap file.
pub(crate) fn order(start: &[u8]) -> Option<Order> {
    [Order::Little, Order::Big]
        .into_iter()
        .find(|order| matches!(order.u32(start, 0), MICRO | NANO | MODIFIED))
}

impl Header {
    /// Reads the file header; `bytes` are its 24.
    pub(crate) fn parse(bytes: &[u8], order: Order) -> Result<(Self, Interface), Damage> {
        let magic = order.u32(bytes, 0);
        let (major, minor) = (order.u16(bytes, 4), order.u16(bytes, 6));
        if major != 2 {
            return Err(Damage::Field { what: "the version of this pcap file is not 2", at: 4 });
        }
        let lengths = match minor {
            0..=2 => Lengths::Original,
            3 => Lengths::SmallerIsCaptured,
            _ => Lengths::Captured,
        };
        let header = Self { order, nano: magic == NANO, modified: magic == MODIFIED, lengths };
        let network = order.u32(bytes, 20);
        let mut interface = Interface::plain(LinkType(network as u16), order.u32(bytes, 16));
        if network & 0x0400_0000 != 0 {
            // In the header the check sequence counts in 16 bits, in the option in bits.
            let bits = (network >> 28) * 16;
            options::push(&mut interface.options, options::IF_FCS_LEN, &[bits as u8]);
        }
        Ok((header, interface))
    }

    /// Bytes of a record header.
    pub(crate) fn record_len(self) -> usize {
        if self.modified { 24 } else { 16 }
    }

    /// Reads a record header.
    pub(crate) fn record(self, bytes: &[u8]) -> Result<Record, Damage> {
        let field = |at| self.order.u32(bytes, at);
        let unit = if self.nano { 1 } else { 1000 };
        let nanos = i64::from(field(0)) * 1_000_000_000 + i64::from(field(4)) * unit;
        let (first, second) = (field(8), field(12));
        let swap = match self.lengths {
            Lengths::Captured => false,
            Lengths::Original => true,
            Lengths::SmallerIsCaptured => first > second,
        };
        let (captured, original) = if swap { (second, first) } else { (first, second) };
        if captured as usize > MAX_PACKET {
            return Err(Damage::PacketLength { len: captured });
        }
        let flags = match bytes.get(22) {
            Some(packet_type) if self.modified => Flags::from_packet_type(*packet_type),
            _ => Flags::default(),
        };
        Ok(Record { time: Some(Timestamp(nanos)), captured, original, flags })
    }
}
