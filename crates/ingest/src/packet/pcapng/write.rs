//! Writer of pcapng blocks: little-endian, nanosecond times.

use super::{INTERFACE, PACKET, SECTION, options};
use crate::packet::interface::Resolution;
use crate::packet::{Interface, Packet};
use std::io::{self, Write};

/// Bytes of a packet block before its data.
const PACKET_HEAD: usize = 28;
/// Bytes of the flags option.
const FLAGS_OPTION: usize = 8;
/// Bytes of the end marker of options.
const OPTIONS_END: usize = 4;

/// Whether the packet's flags have to be added to its options.
fn adds_flags(packet: &Packet<'_>) -> bool {
    packet.flags.0 != 0 && options::find(packet.options, options::PACKET_FLAGS).is_none()
}

/// Bytes of the block that [`write_packet`] writes for this packet.
pub fn packet_block_len(packet: &Packet<'_>) -> usize {
    let options = packet.options.len() + if adds_flags(packet) { FLAGS_OPTION } else { 0 };
    let end = if options > 0 { OPTIONS_END } else { 0 };
    PACKET_HEAD + packet.data.len().next_multiple_of(4) + options + end + 4
}

/// Writes a packet as an enhanced packet block, to stand behind a preamble. Its flags are written unless its
/// options hold some already; a packet without a time gets 0. Allocates nothing.
pub fn write_packet(out: &mut impl Write, packet: &Packet<'_>) -> io::Result<()> {
    if !options::well_formed(packet.options) {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "the packet's options are not canonical pcapng options",
        ));
    }
    let Ok(len) = u32::try_from(packet_block_len(packet)) else {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "the packet is too large for a pcapng block",
        ));
    };
    let ticks = packet.time.map_or(0, |time| u64::try_from(time.0).unwrap_or(0));
    let mut head = [0u8; PACKET_HEAD];
    let fields = [
        PACKET,
        len,
        u32::from(packet.interface),
        (ticks >> 32) as u32,
        ticks as u32,
        packet.data.len() as u32,
        packet.original_len,
    ];
    for (place, field) in head.chunks_exact_mut(4).zip(fields) {
        place.copy_from_slice(&field.to_le_bytes());
    }
    out.write_all(&head)?;
    out.write_all(packet.data)?;
    out.write_all(&[0; 3][..packet.data.len().next_multiple_of(4) - packet.data.len()])?;
    out.write_all(packet.options)?;
    let flags = adds_flags(packet);
    if flags {
        let mut option = [0u8; FLAGS_OPTION];
        option[0] = options::PACKET_FLAGS as u8;
        option[2] = 4;
        option[4..].copy_from_slice(&packet.flags.0.to_le_bytes());
        out.write_all(&option)?;
    }
    if flags || !packet.options.is_empty() {
        out.write_all(&[0; OPTIONS_END])?;
    }
    out.write_all(&len.to_le_bytes())
}

/// Appends a block with this body, which is padded to four bytes.
pub(crate) fn push_block(out: &mut Vec<u8>, kind: u32, body: &[&[u8]]) {
    let size: usize = body.iter().map(|part| part.len()).sum();
    let padded = size.next_multiple_of(4);
    let len = ((padded + 12) as u32).to_le_bytes();
    out.extend_from_slice(&kind.to_le_bytes());
    out.extend_from_slice(&len);
    for part in body {
        out.extend_from_slice(part);
    }
    out.resize(out.len() + padded - size, 0);
    out.extend_from_slice(&len);
}

/// The end marker that follows options, nothing where there are none.
fn end_of(options: &[u8]) -> &'static [u8] {
    if options.is_empty() { &[] } else { &[0; OPTIONS_END] }
}

/// Appends a section header whose section has no stated length.
pub(crate) fn push_section(out: &mut Vec<u8>, options: &[u8]) {
    let fixed = [0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff];
    push_block(out, SECTION, &[&fixed, options, end_of(options)]);
}

/// Appends an interface description with nanosecond times.
pub(crate) fn push_interface(out: &mut Vec<u8>, interface: &Interface) {
    let resolution = [options::IF_RESOLUTION as u8, 0, 1, 0, Resolution::NANO.0, 0, 0, 0];
    push_block(
        out,
        INTERFACE,
        &[
            &interface.link_type.0.to_le_bytes(),
            &[0; 2],
            &interface.snaplen.to_le_bytes(),
            &interface.options,
            &resolution,
            &[0; OPTIONS_END],
        ],
    );
}
