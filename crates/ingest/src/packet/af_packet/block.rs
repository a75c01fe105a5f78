//! Parser of a block of the kernel's packet ring: walks its frames, and puts VLAN tags and cooked headers in front.
//!
//! ```text
//! block   12 frames | 16 offset of the first
//! frame    0 offset of the next | 4 seconds | 8 nanoseconds | 12 bytes kept | 16 bytes on the wire | 20 status
//!         24 offset of the link header (2) | 26 of the network header (2) | 32 VLAN tag | 36 VLAN type (2)
//!         48 sockaddr_ll: 50 protocol (2, big-endian) | 56 hardware type (2) | 58 packet type (1)
//!            59 address length (1) | 60 address (8)
//! ```

use super::link_type::LinkFraming;
use crate::packet::{Flags, Order};
use holdfast_base::Timestamp;

/// Where the kernel's own words of a frame end, and packets may begin.
const FRAME_HEAD: usize = 68;
/// Bytes that are kept free in front of each packet, for the tag.
pub(super) const VLAN_TAG: usize = 4;
/// Bytes of the two Ethernet addresses, in front of which the tag goes.
const ADDRESSES: usize = 12;
/// Bytes of a cooked header.
const COOKED: usize = 16;
/// Type of a tag whose frame does not name one.
const VLAN_TYPE: u16 = 0x8100;

/// A packet as it came from an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LivePacket<'a> {
    /// The frame, with its VLAN tag, cut at the snap length.
    pub data: &'a [u8],
    /// Bytes on the wire, tag included.
    pub original_len: u32,
    /// When the kernel took it, by the wall clock. Where the interface has stamped it the kernel does not say, and
    /// this is when its block was read.
    pub time: Timestamp,
    /// The interface's own stamp, by the interface's clock.
    pub hardware_time: Option<Timestamp>,
    /// Which way it went and how it was addressed.
    pub flags: Flags,
}

/// How the frames of a capture are made up.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) framing: LinkFraming,
    /// Bytes to keep.
    pub(super) snaplen: usize,
}

/// Gives each frame of the block to `each`, in order. `read_at` is the time now. Tells how many frames did not make
/// sense: none, unless the kernel's layout is not what we think.
pub(super) fn walk(
    block: &mut [u8],
    shape: Shape,
    read_at: Timestamp,
    mut each: impl FnMut(LivePacket<'_>),
) -> u64 {
    let frames = Order::NATIVE.u32(block, 12);
    let mut at = Order::NATIVE.u32(block, 16) as usize;
    for done in 0..frames {
        let Some(frame) = block.get_mut(at..).filter(|frame| frame.len() >= FRAME_HEAD) else {
            return u64::from(frames - done);
        };
        let next = Order::NATIVE.u32(frame, 0) as usize;
        let Some(packet) = packet(frame, shape, read_at) else {
            return u64::from(frames - done);
        };
        each(packet);
        at += next;
    }
    0
}

/// The packet in a frame, tag and cooked header put in place in front of it, where nothing is needed any more.
fn packet(frame: &mut [u8], shape: Shape, read_at: Timestamp) -> Option<LivePacket<'_>> {
    let word = |at| Order::NATIVE.u32(frame, at);
    let nanos = i64::from(word(4)) * 1_000_000_000 + i64::from(word(8));
    let (kept, mut original_len, status) = (word(12) as usize, word(16), word(20));
    let (tag, tag_type) = (word(32) as u16, Order::NATIVE.u16(frame, 36));
    let flags = Flags::from_packet_type(frame[58]);
    let mut start = usize::from(Order::NATIVE.u16(frame, 24));
    let end = start.checked_add(kept)?;
    if start < FRAME_HEAD || end > frame.len() {
        return None;
    }
    // Where in the frame a tag belongs, which is just before its type.
    let mut tag_at = None;
    match shape.framing {
        LinkFraming::Ethernet if kept >= ADDRESSES => tag_at = Some(start + ADDRESSES),
        LinkFraming::Cooked => {
            let header = cooked_header(frame);
            start = start.checked_sub(COOKED).filter(|start| *start >= FRAME_HEAD)?;
            frame[start..start + COOKED].copy_from_slice(&header);
            original_len = original_len.saturating_add(COOKED as u32);
            tag_at = Some(start + COOKED - 2);
        }
        LinkFraming::Can if kept >= 4 => {
            let identifier = Order::NATIVE.u32(frame, start);
            frame[start..start + 4].copy_from_slice(&identifier.to_be_bytes());
        }
        LinkFraming::Ethernet | LinkFraming::Can | LinkFraming::AsIs => {}
    }
    if let (Some(tag_at), true) = (tag_at, status & libc::TP_STATUS_VLAN_VALID != 0) {
        let moved = start.checked_sub(VLAN_TAG).filter(|moved| *moved >= FRAME_HEAD)?;
        frame.copy_within(start..tag_at, moved);
        start = moved;
        let named = status & libc::TP_STATUS_VLAN_TPID_VALID != 0;
        let tag_type = if named { tag_type } else { VLAN_TYPE };
        frame[tag_at - 4..tag_at - 2].copy_from_slice(&tag_type.to_be_bytes());
        frame[tag_at - 2..tag_at].copy_from_slice(&tag.to_be_bytes());
        original_len = original_len.saturating_add(VLAN_TAG as u32);
    }
    let stamped = status & libc::TP_STATUS_TS_RAW_HARDWARE != 0;
    Some(LivePacket {
        data: &frame[start..end.min(start.saturating_add(shape.snaplen))],
        original_len,
        time: if stamped { read_at } else { Timestamp(nanos) },
        hardware_time: stamped.then_some(Timestamp(nanos)),
        flags,
    })
}

/// The cooked header (`LINKTYPE_LINUX_SLL`), from the frame's `sockaddr_ll`.
fn cooked_header(frame: &[u8]) -> [u8; COOKED] {
    let mut header = [0; COOKED];
    header[0..2].copy_from_slice(&u16::from(frame[58]).to_be_bytes());
    header[2..4].copy_from_slice(&Order::NATIVE.u16(frame, 56).to_be_bytes());
    header[4..6].copy_from_slice(&u16::from(frame[59]).to_be_bytes());
    header[6..14].copy_from_slice(&frame[60..68]);
    header[14..16].copy_from_slice(&frame[50..52]);
    header
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{Direction, Reception};
    use proptest::prelude::*;

    /// A block of one frame that starts at 48 and carries `data` at 100 in it.
    fn block(data: &[u8], status: u32, tag: u16) -> Vec<u8> {
        let mut bytes = vec![0; 1024];
        bytes[12] = 1;
        bytes[16] = 48;
        let frame = &mut bytes[48..];
        let words = [
            (4, 7),
            (8, 9),
            (12, data.len() as u32),
            (16, data.len() as u32 + 5),
            (20, status),
            (32, u32::from(tag)),
        ];
        for (at, word) in words {
            frame[at..at + 4].copy_from_slice(&u32::to_ne_bytes(word));
        }
        frame[24..26].copy_from_slice(&100u16.to_ne_bytes());
        frame[36..38].copy_from_slice(&0x88a8u16.to_ne_bytes());
        frame[50..52].copy_from_slice(&[0x08, 0x00]);
        frame[56..58].copy_from_slice(&512u16.to_ne_bytes());
        frame[58] = libc::PACKET_BROADCAST;
        frame[100..100 + data.len()].copy_from_slice(data);
        bytes
    }

    fn only(
        mut bytes: Vec<u8>,
        framing: LinkFraming,
        snaplen: usize,
    ) -> (Vec<u8>, u32, Timestamp, Option<Timestamp>) {
        let mut seen = Vec::new();
        let shape = Shape { framing, snaplen };
        assert_eq!(
            walk(&mut bytes, shape, Timestamp(1), |packet| {
                assert_eq!(packet.flags, Flags::new(Direction::Inbound, Reception::Broadcast));
                seen.push((packet.data.to_vec(), packet.original_len, packet.time, packet.hardware_time));
            }),
            0
        );
        assert_eq!(seen.len(), 1);
        seen.remove(0)
    }

    const PLAIN: &[u8] = b"ddddddssssss\x08\x00payload";

    #[test]
    fn a_stripped_tag_is_put_back_with_its_own_type() {
        let status = libc::TP_STATUS_VLAN_VALID | libc::TP_STATUS_VLAN_TPID_VALID;
        let (data, original, time, hardware) =
            only(block(PLAIN, status, 0x2005), LinkFraming::Ethernet, 1000);
        assert_eq!(data, b"ddddddssssss\x88\xa8\x20\x05\x08\x00payload");
        assert_eq!((original, time, hardware), (PLAIN.len() as u32 + 9, Timestamp(7_000_000_009), None));
        let (data, ..) = only(block(PLAIN, libc::TP_STATUS_VLAN_VALID, 5), LinkFraming::Ethernet, 18);
        assert_eq!(data, b"ddddddssssss\x81\x00\x00\x05\x08\x00");
        let (data, ..) = only(block(PLAIN, 0, 5), LinkFraming::Ethernet, 1000);
        assert_eq!(data, PLAIN);
    }

    #[test]
    fn a_cooked_header_comes_before_packets_without_a_link_header() {
        let (data, original, ..) =
            only(block(b"ip", libc::TP_STATUS_VLAN_VALID, 5), LinkFraming::Cooked, 1000);
        assert_eq!(data, b"\0\x01\x02\0\0\0\0\0\0\0\0\0\0\0\x81\x00\x00\x05\x08\x00ip");
        assert_eq!(original, 2 + 5 + 16 + 4);
    }

    #[test]
    fn a_stamp_of_the_interface_is_told_apart() {
        let (_, _, time, hardware) =
            only(block(PLAIN, libc::TP_STATUS_TS_RAW_HARDWARE, 0), LinkFraming::Ethernet, 1000);
        assert_eq!((time, hardware), (Timestamp(1), Some(Timestamp(7_000_000_009))));
    }

    #[test]
    fn frames_from_the_first_without_sense_on_are_counted() {
        let shape = Shape { framing: LinkFraming::Ethernet, snaplen: 1000 };
        let mut sound = block(PLAIN, 0, 0);
        // Five of them, each at the place of the one.
        sound[12] = 5;
        let count = |bytes: &[u8]| {
            let mut seen = 0;
            let malformed = walk(&mut bytes.to_vec(), shape, Timestamp(1), |_| seen += 1);
            (seen, malformed)
        };
        assert_eq!(count(&sound), (5, 0));
        let mut beyond = sound.clone();
        beyond[48..52].copy_from_slice(&2000u32.to_ne_bytes());
        assert_eq!(count(&beyond), (1, 4), "the next one lies beyond the block");
        let mut long = sound.clone();
        long[60..64].copy_from_slice(&2000u32.to_ne_bytes());
        assert_eq!(count(&long), (0, 5), "longer than the block");
        let mut early = sound;
        early[72..74].copy_from_slice(&20u16.to_ne_bytes());
        assert_eq!(count(&early), (0, 5), "begins within the kernel's own words");
    }

    proptest! {
        /// Whatever the memory says, nothing outside the block is touched.
        #[test]
        fn no_block_makes_the_walk_panic(
            mut bytes in prop::collection::vec(any::<u8>(), 0..300),
            cooked in any::<bool>(),
        ) {
            let framing = if cooked { LinkFraming::Cooked } else { LinkFraming::Ethernet };
            if let Some(words) = bytes.get_mut(12..20) {
                words.copy_from_slice(&[3, 0, 0, 0, 20, 0, 0, 0]);
            }
            walk(&mut bytes, Shape { framing, snaplen: 60 }, Timestamp(0), |_| {});
        }
    }
}
