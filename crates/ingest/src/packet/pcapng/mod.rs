//! Parser of single pcapng blocks, and the writer of packets (`write`).
//!
//! ```text
//! block: type (4) | total length (4) | body, a multiple of 4 | total length again (4)
//! section header 0x0A0D0D0A: order magic (4) | major, minor (2+2) | section length (8) | options
//! interface      1:          link type (2) | reserved (2) | snap length (4) | options
//! packet         6:          interface (4) | time, high and low (8) | captured (4) | original (4) | data | options
//! packet, old    2:          interface (2) | drops (2) | the rest as in 6
//! packet, simple 3:          original (4) | data
//! ```
//!
//! Only single blocks are known here; what belongs to a whole file (its interfaces over all sections) is
//! `reader`'s.

mod convert;
pub(crate) mod options;
mod write;

pub(crate) use convert::canonical_other;
pub use write::{packet_block_len, write_packet};
pub(crate) use write::{push_block, push_interface, push_section};

use super::interface::Resolution;
use super::{Damage, Interface, LinkType, MAX_BLOCK, MAX_INTERFACE_OPTIONS, MAX_PACKET, Order};
use options::{BadOption, Owner};
use std::ops::Range;

pub(crate) const SECTION: u32 = 0x0a0d_0d0a;
pub(crate) const INTERFACE: u32 = 1;
pub(crate) const OLD_PACKET: u32 = 2;
pub(crate) const SIMPLE_PACKET: u32 = 3;
pub(crate) const NAMES: u32 = 4;
pub(crate) const STATISTICS: u32 = 5;
pub(crate) const PACKET: u32 = 6;
pub(crate) const JOURNAL: u32 = 9;
pub(crate) const SECRETS: u32 = 10;
pub(crate) const CUSTOM: u32 = 0x0000_0bad;
pub(crate) const CUSTOM_NO_COPY: u32 = 0x4000_0bad;

/// Bytes that tell what a block is, how long, and (of a section header) in which order.
pub(crate) const BLOCK_HEAD: usize = 12;
/// Where a block's body starts.
pub(crate) const BODY: usize = 8;

/// The start of a block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    pub(crate) kind: u32,
    pub(crate) len: usize,
    pub(crate) order: Order,
}

/// Where the parts of a packet block are.
#[derive(Clone, Debug)]
pub(crate) struct PacketParts {
    pub(crate) interface: u32,
    /// Time in units of the interface.
    pub(crate) ticks: Option<u64>,
    pub(crate) original_len: u32,
    /// Packets that were lost before this one, as old blocks tell it.
    pub(crate) drops: Option<u16>,
    pub(crate) data: Range<usize>,
    pub(crate) options: Range<usize>,
}

/// Reads the first 12 bytes of a block; `order` is that of the section so far, `at` its place in the file.
pub(crate) fn head(bytes: &[u8], order: Option<Order>, at: u64) -> Result<Head, Damage> {
    let starts_section = Order::Little.u32(bytes, 0) == SECTION;
    let order = if starts_section {
        [Order::Little, Order::Big].into_iter().find(|order| order.u32(bytes, 8) == 0x1a2b_3c4d)
    } else {
        order
    };
    let Some(order) = order else {
        return Err(Damage::Field { what: "the byte order of a section is unknown", at: at + 8 });
    };
    let (kind, len) = (order.u32(bytes, 0), order.u32(bytes, 4));
    let shortest = match kind {
        SECTION => 28,
        INTERFACE => 20,
        OLD_PACKET | PACKET => 32,
        SIMPLE_PACKET => 16,
        _ => 12,
    };
    let wrong = |why| Err(Damage::BlockLength { kind, len, why });
    match len as usize {
        len if len < shortest => wrong("too short for its type"),
        len if len % 4 != 0 => wrong("no multiple of 4"),
        len if len > MAX_BLOCK => wrong("more than any block may have"),
        len => Ok(Head { kind, len, order }),
    }
}

/// Checks the second length of a whole block.
pub(crate) fn check_trailer(block: &[u8], head: Head, at: u64) -> Result<(), Damage> {
    let place = head.len - 4;
    let trailer = head.order.u32(block, place);
    if trailer as usize == head.len {
        return Ok(());
    }
    Err(Damage::Trailer { kind: head.kind, len: head.len as u32, trailer, at: at + place as u64 })
}

/// Checks a section header and gives the place of its options.
pub(crate) fn section(block: &[u8], head: Head, at: u64) -> Result<Range<usize>, Damage> {
    if head.order.u16(block, 12) != 1 {
        return Err(Damage::Field { what: "the major version of a section is not 1", at: at + 12 });
    }
    Ok(24..head.len - 4)
}

/// Reads an interface description; also tells how many options were left out.
pub(crate) fn interface(block: &mut [u8], head: Head, at: u64) -> Result<(Interface, u64), Damage> {
    const OPTIONS: usize = 16;
    let link_type = LinkType(head.order.u16(block, 8));
    let snaplen = head.order.u32(block, 12);
    let bytes = &mut block[OPTIONS..head.len - 4];
    let done = options::canonicalise(bytes, head.order, Owner::Interface, usize::MAX)
        .map_err(|bad| bad_option(bad, at + OPTIONS as u64))?;
    let mut interface = Interface { resolution: Resolution::MICRO, ..Interface::plain(link_type, snaplen) };
    let mut left_out = 0;
    for (code, value) in options::iter(&bytes[..done.len]) {
        let wrong = |what| Err(Damage::Field { what, at: at + OPTIONS as u64 });
        match code {
            options::IF_RESOLUTION => match value {
                [resolution] => interface.resolution = Resolution(*resolution),
                _ => return wrong("the time resolution of an interface is not one byte"),
            },
            options::IF_OFFSET => match value.try_into() {
                Ok(offset) => interface.offset = i64::from_le_bytes(offset),
                Err(_) => return wrong("the time offset of an interface is not eight bytes"),
            },
            _ if interface.options.len() + options::size(value) > MAX_INTERFACE_OPTIONS => left_out += 1,
            _ => options::push(&mut interface.options, code, value),
        }
    }
    Ok((interface, left_out))
}

/// Takes a packet block of any of the three kinds to pieces. `snaplen` is that of the section's first interface,
/// which simple packets belong to.
pub(crate) fn packet(block: &[u8], head: Head, at: u64, snaplen: u32) -> Result<PacketParts, Damage> {
    let field = |place| head.order.u32(block, place);
    let end = head.len - 4;
    if head.kind == SIMPLE_PACKET {
        let original_len = field(8);
        let captured = if snaplen == 0 { original_len } else { original_len.min(snaplen) };
        let data = data(12, captured, end, at + 8)?;
        return Ok(PacketParts {
            interface: 0,
            ticks: None,
            original_len,
            drops: None,
            data,
            options: end..end,
        });
    }
    let (interface, drops) = if head.kind == OLD_PACKET {
        let drops = head.order.u16(block, 10);
        (u32::from(head.order.u16(block, 8)), (drops != u16::MAX).then_some(drops))
    } else {
        (field(8), None)
    };
    let data = data(28, field(20), end, at + 20)?;
    Ok(PacketParts {
        interface,
        ticks: Some(u64::from(field(12)) << 32 | u64::from(field(16))),
        original_len: field(24),
        drops,
        options: data.end.next_multiple_of(4)..end,
        data,
    })
}

/// The place of `captured` bytes from `start`, if they end before `end`; `at` is where their length stands.
fn data(start: usize, captured: u32, end: usize, at: u64) -> Result<Range<usize>, Damage> {
    if captured as usize > MAX_PACKET {
        return Err(Damage::PacketLength { len: captured });
    }
    let data = start..start + captured as usize;
    if data.end > end {
        return Err(Damage::Field { what: "a packet says it is longer than its block", at });
    }
    Ok(data)
}

/// A bad option as damage; `at` is where its list starts.
pub(crate) fn bad_option(bad: BadOption, at: u64) -> Damage {
    Damage::Field { what: bad.what, at: at + bad.at as u64 }
}
