//! Common code of packet sources: a packet as an element.

use crate::Flags;
use crate::packet::pcapng::options;
use crate::packet::{self, Direction, Packet, Reception};
use crate::producer::Marks;
use holdfast_base::{MAX_META, Timestamp};

/// The flags of a row with this packet's direction.
pub(super) fn direction(flags: packet::Flags) -> Flags {
    Flags::default().with_direction(match flags.direction() {
        Direction::Unknown => holdfast_format::Direction::Unknown,
        Direction::Inbound => holdfast_format::Direction::In,
        Direction::Outbound => holdfast_format::Direction::Out,
    })
}

/// The marks of a packet of which `kept` bytes are recorded.
pub fn marks(
    interface: u16,
    time: Option<Timestamp>,
    flags: packet::Flags,
    original_len: u32,
    kept: usize,
) -> Marks {
    let extra = original_len.saturating_sub(u32::try_from(kept).unwrap_or(u32::MAX));
    Marks { flags: direction(flags), tag: interface, extra, event: time }
}

/// The metadata of a packet from a file: its options. How it was addressed is in them, or else added, since rows
/// know the direction only. `scratch` has room for [`MAX_META`] bytes.
pub fn metadata<'a>(packet: &Packet<'a>, scratch: &'a mut Vec<u8>) -> &'a [u8] {
    const FLAGS: usize = 8;
    let addressed = packet.flags.reception() != Reception::Unknown;
    let known = !addressed || options::find(packet.options, options::PACKET_FLAGS).is_some();
    if known || packet.options.len() + FLAGS > MAX_META {
        return packet.options;
    }
    scratch.clear();
    scratch.extend_from_slice(packet.options);
    options::push(scratch, options::PACKET_FLAGS, &packet.flags.0.to_le_bytes());
    scratch
}
