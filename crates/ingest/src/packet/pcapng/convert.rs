//! Conversion of pcapng blocks other than sections, interfaces and packets to the form of a preamble: little-endian,
//! interfaces by their index over all sections, times in nanoseconds.

use super::options::{self, Owner};
use super::{CUSTOM, CUSTOM_NO_COPY, JOURNAL, NAMES, SECRETS, STATISTICS, push_block};
use crate::packet::{Interface, Order, OtherBlock};

const ISB_START: u16 = 2;
const ISB_END: u16 = 3;

/// Appends the block; `false` when it cannot be converted without guessing (an unknown layout in big-endian), is
/// malformed, or asks not to be copied.
pub(crate) fn canonical_other(out: &mut Vec<u8>, block: &OtherBlock<'_>) -> bool {
    match (block.kind, block.order) {
        (CUSTOM_NO_COPY, _) => false,
        (STATISTICS, _) => statistics(out, block).is_some(),
        // Text, whatever the order.
        (JOURNAL, _) | (_, Order::Little) => {
            push_block(out, block.kind, &[block.body]);
            true
        }
        (NAMES, Order::Big) => convert(out, block, names),
        (SECRETS, Order::Big) => convert(out, block, secrets),
        // What is behind the vendor's number is known to the vendor only: it stays as it is, as in custom options.
        (CUSTOM, Order::Big) => block.body.split_first_chunk::<4>().is_some_and(|(vendor, data)| {
            let vendor = u32::from_be_bytes(*vendor).to_le_bytes();
            push_block(out, CUSTOM, &[&vendor, data]);
            true
        }),
        (_, Order::Big) => false,
    }
}

/// Appends a copy that `turn` has brought to little-endian; `turn` gives the place of the options.
fn convert(out: &mut Vec<u8>, block: &OtherBlock<'_>, turn: fn(&mut [u8]) -> Option<usize>) -> bool {
    let mut body = block.body.to_vec();
    let Some(at) = turn(&mut body) else { return false };
    let Ok(done) = options::canonicalise(&mut body[at..], block.order, Owner::Text, usize::MAX) else {
        return false;
    };
    body.truncate(at + done.len);
    if done.len > 0 {
        body.extend_from_slice(&[0; 4]);
    }
    push_block(out, block.kind, &[&body]);
    true
}

/// Turns the records of a name resolution block: type (2), length (2), value.
fn names(body: &mut [u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        let (kind, len) = (Order::Big.u16(body, at), usize::from(Order::Big.u16(body, at + 2)));
        let head = body.get_mut(at..at + 4)?;
        head[..2].reverse();
        head[2..].reverse();
        at += 4 + len.next_multiple_of(4);
        if at > body.len() {
            return None;
        }
        if kind == 0 {
            return Some(at);
        }
    }
}

/// Turns a decryption secrets block: type (4), length (4), secrets.
fn secrets(body: &mut [u8]) -> Option<usize> {
    let len = Order::Big.u32(body, 4) as usize;
    body.get_mut(..4)?.reverse();
    body.get_mut(4..8)?.reverse();
    let options = 8 + len.next_multiple_of(4);
    (options <= body.len()).then_some(options)
}

/// An interface statistics block: interface (4), time high and low (8), options.
fn statistics(out: &mut Vec<u8>, block: &OtherBlock<'_>) -> Option<()> {
    let number = block.order.u32(block.body, 0);
    let interface = block.interfaces.get(number as usize)?;
    let ticks = u64::from(block.order.u32(block.body, 4)) << 32 | u64::from(block.order.u32(block.body, 8));
    let mut body = (u32::from(block.first_interface) + number).to_le_bytes().to_vec();
    body.extend_from_slice(&nanos(interface, ticks)?);
    let mut bytes = block.body.get(12..)?.to_vec();
    let done = options::canonicalise(&mut bytes, block.order, Owner::Statistics, usize::MAX).ok()?;
    let fixed = body.len();
    for (code, value) in options::iter(&bytes[..done.len]) {
        if !matches!(code, ISB_START | ISB_END) {
            options::push(&mut body, code, value);
        } else if value.len() == 8 {
            let ticks = u64::from(Order::Little.u32(value, 0)) << 32 | u64::from(Order::Little.u32(value, 4));
            options::push(&mut body, code, &nanos(interface, ticks)?);
        }
    }
    if body.len() > fixed {
        body.extend_from_slice(&[0; 4]);
    }
    push_block(out, STATISTICS, &[&body]);
    Some(())
}

/// A time of the interface in nanoseconds, high half first as pcapng wants it.
fn nanos(interface: &Interface, ticks: u64) -> Option<[u8; 8]> {
    let nanos = u64::try_from(interface.time(ticks)?.0).ok()?;
    let mut bytes = [0; 8];
    bytes[..4].copy_from_slice(&((nanos >> 32) as u32).to_le_bytes());
    bytes[4..].copy_from_slice(&(nanos as u32).to_le_bytes());
    Some(bytes)
}
