//! pcapng options: iteration, look-up, and conversion to canonical form.
//!
//! Canonical: little-endian codes, lengths and numbers, values padded to four bytes with zeros, no end marker.
//! Byte strings and whatever is private to a vendor stay as they are.

use crate::packet::Order;

/// End of the options.
const END: u16 = 0;
/// A comment, in any block.
pub(crate) const COMMENT: u16 = 1;
/// Custom options: text or bytes, to be copied or not; all start with the vendor's number.
pub(crate) const CUSTOM: [u16; 4] = [2988, 2989, 19372, 19373];

pub(crate) const SHB_HARDWARE: u16 = 2;
pub(crate) const SHB_OS: u16 = 3;
pub(crate) const SHB_APPLICATION: u16 = 4;

pub(crate) const IF_NAME: u16 = 2;
pub(crate) const IF_DESCRIPTION: u16 = 3;
pub(crate) const IF_MAC: u16 = 6;
pub(crate) const IF_SPEED: u16 = 8;
pub(crate) const IF_RESOLUTION: u16 = 9;
const IF_ZONE: u16 = 10;
pub(crate) const IF_FILTER: u16 = 11;
pub(crate) const IF_FCS_LEN: u16 = 13;
pub(crate) const IF_OFFSET: u16 = 14;
const IF_TX_SPEED: u16 = 16;
const IF_RX_SPEED: u16 = 17;

pub(crate) const PACKET_FLAGS: u16 = 2;
pub(crate) const PACKET_DROPS: u16 = 4;
const PACKET_ID: u16 = 5;
const PACKET_QUEUE: u16 = 6;
const PACKET_VERDICT: u16 = 7;
const PACKET_PROCESS: u16 = 8;

/// Whose options these are: the same codes mean other things elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    Section,
    Interface,
    Packet,
    Statistics,
    /// Blocks whose own options are texts and byte strings only.
    Text,
}

/// Why options cannot be read: the place, relative to their first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BadOption {
    pub(crate) at: usize,
    pub(crate) what: &'static str,
}

/// What came out of [`canonicalise`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Canonical {
    /// Bytes that remain.
    pub(crate) len: usize,
    /// Options that did not fit the limit.
    pub(crate) left_out: u64,
}

const fn padded(len: usize) -> usize {
    len.next_multiple_of(4)
}

/// Brings the options in `bytes` to canonical form, in place; at most `limit` bytes of them are kept, whole
/// options only.
pub(crate) fn canonicalise(
    bytes: &mut [u8],
    order: Order,
    owner: Owner,
    limit: usize,
) -> Result<Canonical, BadOption> {
    let mut done = Canonical::default();
    let mut at = 0;
    while at < bytes.len() {
        let value_at = at + 4;
        if value_at > bytes.len() {
            return Err(BadOption { at, what: "an option is cut off by the end of its block" });
        }
        let (code, len) = (order.u16(bytes, at), usize::from(order.u16(bytes, at + 2)));
        if code == END {
            break;
        }
        let end = value_at + padded(len);
        let Some(value) = bytes.get_mut(value_at..end) else {
            return Err(BadOption { at, what: "an option says it is longer than its block" });
        };
        if done.left_out > 0 || end > limit {
            done.left_out += 1;
        } else {
            value[len..].fill(0);
            if order == Order::Big {
                swap_numbers(&mut value[..len], code, owner);
            }
            bytes[at..at + 2].copy_from_slice(&code.to_le_bytes());
            bytes[at + 2..value_at].copy_from_slice(&(len as u16).to_le_bytes());
            done.len = end;
        }
        at = end;
    }
    Ok(done)
}

/// Turns the numbers in one big-endian value; values of a length that the format does not know stay.
fn swap_numbers(value: &mut [u8], code: u16, owner: Owner) {
    if CUSTOM.contains(&code) {
        if let Some(vendor) = value.first_chunk_mut::<4>() {
            vendor.reverse();
        }
        return;
    }
    let widths: &[usize] = match (owner, code, value.len()) {
        (Owner::Interface, IF_SPEED | IF_OFFSET | IF_TX_SPEED | IF_RX_SPEED, 8)
        | (Owner::Packet, PACKET_DROPS | PACKET_ID, 8)
        | (Owner::Statistics, 4..=8, 8) => &[8],
        (Owner::Interface, IF_ZONE, 4) | (Owner::Packet, PACKET_FLAGS | PACKET_QUEUE, 4) => &[4],
        (Owner::Packet, PACKET_PROCESS, 8) | (Owner::Statistics, 2 | 3, 8) => &[4, 4],
        (Owner::Packet, PACKET_VERDICT, 9) if matches!(value.first(), Some(1 | 2)) => &[1, 8],
        _ => &[],
    };
    let mut rest = value;
    for width in widths {
        let (number, after) = rest.split_at_mut(*width);
        number.reverse();
        rest = after;
    }
}

/// The options in canonical bytes, one after the other; ends at the first that is not whole.
pub(crate) fn iter(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        if bytes.len() < 4 {
            return None;
        }
        let (code, len) = (Order::Little.u16(bytes, 0), usize::from(Order::Little.u16(bytes, 2)));
        let value = bytes.get(4..4 + len)?;
        bytes = bytes.get(4 + padded(len)..).unwrap_or_default();
        Some((code, value))
    })
}

/// The value of the first option with this code.
pub(crate) fn find(bytes: &[u8], code: u16) -> Option<&[u8]> {
    iter(bytes).find(|(found, _)| *found == code).map(|(_, value)| value)
}

/// Bytes that an option with this value takes.
pub(crate) const fn size(value: &[u8]) -> usize {
    4 + padded(value.len())
}

/// Appends one option in canonical form; values end at 65,535 bytes, the most that the format can say.
pub(crate) fn push(out: &mut Vec<u8>, code: u16, value: &[u8]) {
    let value = &value[..value.len().min(usize::from(u16::MAX))];
    out.extend_from_slice(&code.to_le_bytes());
    out.extend_from_slice(&(value.len() as u16).to_le_bytes());
    out.extend_from_slice(value);
    out.resize(out.len() + padded(value.len()) - value.len(), 0);
}

/// Whether `bytes` are canonical options and nothing else.
pub(crate) fn well_formed(bytes: &[u8]) -> bool {
    let mut at = 0;
    for (code, value) in iter(bytes) {
        if code == END {
            return false;
        }
        at += 4 + padded(value.len());
    }
    at == bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_both_orders_become_the_same_bytes() {
        let big = [0u8, 2, 0, 4, 0, 0, 0, 9, 0, 1, 0, 3, b'a', b'b', b'c', 0xee, 0, 0, 0, 0];
        let little = [2u8, 0, 4, 0, 9, 0, 0, 0, 1, 0, 3, 0, b'a', b'b', b'c', 0];
        let mut bytes = big;
        let done = canonicalise(&mut bytes, Order::Big, Owner::Packet, 1000).unwrap();
        assert_eq!(&bytes[..done.len], &little);
        let mut bytes = little;
        let done = canonicalise(&mut bytes, Order::Little, Owner::Packet, 1000).unwrap();
        assert_eq!(&bytes[..done.len], &little);
        assert!(well_formed(&little));
        assert!(!well_formed(&little[..15]));
        assert_eq!(find(&little, COMMENT), Some(&b"abc"[..]));
    }

    #[test]
    fn what_passes_the_limit_is_counted_and_left_out_whole() {
        let mut bytes = Vec::new();
        for _ in 0..3 {
            push(&mut bytes, COMMENT, b"12345");
        }
        let done = canonicalise(&mut bytes, Order::Little, Owner::Packet, 25).unwrap();
        assert_eq!(done, Canonical { len: 24, left_out: 1 });
    }

    #[test]
    fn an_option_longer_than_its_block_is_named_by_its_place() {
        let mut bytes = [1u8, 0, 0, 0, 1, 0, 9, 0, 0, 0, 0, 0];
        let bad = canonicalise(&mut bytes, Order::Little, Owner::Packet, 1000).unwrap_err();
        assert_eq!(bad.at, 4);
    }

    #[test]
    fn a_big_endian_verdict_of_an_ebpf_program_is_turned_behind_its_kind() {
        let mut bytes = vec![0u8, 7, 0, 9, 1, 0, 0, 0, 0, 0, 0, 0, 5, 0xff, 0xff, 0xff];
        let done = canonicalise(&mut bytes, Order::Big, Owner::Packet, 1000).unwrap();
        assert_eq!(&bytes[..done.len], &[7, 0, 9, 0, 1, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    }
}
