//! LZ4 frames, unpacked: bytes in, bytes out, and never more than a limit. The sums that frames may carry are passed over, for chunks have
//! one of their own.
//!
//! ```text
//! frame   magic u32 | flags: version 01 (6–7), blocks have sums (4), size is told (3), sum at the end (2), dictionary (0) | largest block |
//!         size u64, if it is told | sum of these u8 | blocks | 0 u32 | sum u32, if there is one
//! block   bytes u32, with bit 31 if they are as they were | they | sum u32, if there is one
//!         within: token (literals 4–7, match 0–3) | more literals: bytes of 255 and one of less | literals | offset u16 | more match
//! ```

const MAGIC: u32 = 0x184d_2204;

/// Matches have at least so many bytes.
const LEAST_MATCH: usize = 4;

/// Adds what all frames unpack to to `into`, up to `limit` bytes; `None` if they do not, or to more.
pub(super) fn unpack(mut packed: &[u8], into: &mut Vec<u8>, limit: usize) -> Option<()> {
    while !packed.is_empty() {
        frame(&mut packed, into, limit)?;
    }
    Some(())
}

fn take<'a>(from: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (taken, rest) = from.split_at_checked(count)?;
    *from = rest;
    Some(taken)
}

fn word(from: &mut &[u8]) -> Option<u32> {
    take(from, 4)?.try_into().ok().map(u32::from_le_bytes)
}

fn frame(packed: &mut &[u8], into: &mut Vec<u8>, limit: usize) -> Option<()> {
    let magic = word(packed)?;
    let [flags, _largest] = *take(packed, 2)?.first_chunk()?;
    let has = |bit: u8| flags >> bit & 1 == 1;
    if magic != MAGIC || flags >> 6 != 1 || has(0) {
        return None;
    }
    take(packed, if has(3) { 9 } else { 1 })?;
    // Blocks may refer to those before them in the frame, and to nothing else.
    let start = into.len();
    loop {
        let count = word(packed)?;
        if count == 0 {
            break;
        }
        let bytes = take(packed, (count & 0x7fff_ffff) as usize)?;
        if count >> 31 == 1 {
            push(into, bytes, limit)?;
        } else {
            block(bytes, into, start, limit)?;
        }
        take(packed, if has(4) { 4 } else { 0 })?;
    }
    take(packed, if has(2) { 4 } else { 0 })?;
    Some(())
}

fn push(into: &mut Vec<u8>, bytes: &[u8], limit: usize) -> Option<()> {
    (bytes.len() <= limit - into.len()).then(|| into.extend_from_slice(bytes))
}

fn block(mut bytes: &[u8], into: &mut Vec<u8>, start: usize, limit: usize) -> Option<()> {
    while let Some((token, rest)) = bytes.split_first() {
        bytes = rest;
        let literals = length(&mut bytes, token >> 4)?;
        push(into, take(&mut bytes, literals)?, limit)?;
        // The last of a block are literals alone.
        if bytes.is_empty() {
            return Some(());
        }
        let offset = usize::from(u16::from_le_bytes(*take(&mut bytes, 2)?.first_chunk()?));
        let count = length(&mut bytes, token & 15)?.checked_add(LEAST_MATCH)?;
        if offset == 0 || offset > into.len() - start || count > limit - into.len() {
            return None;
        }
        let mut left = count;
        while left > 0 {
            // What is copied may be copied on.
            let from = into.len() - offset;
            let now = left.min(offset);
            into.extend_from_within(from..from + now);
            left -= now;
        }
    }
    None
}

fn length(bytes: &mut &[u8], nibble: u8) -> Option<usize> {
    let mut length = usize::from(nibble);
    if nibble == 15 {
        loop {
            let [more] = *take(bytes, 1)?.first_chunk()?;
            length = length.checked_add(more.into())?;
            if more < 255 {
                break;
            }
        }
    }
    Some(length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lz4_flex::frame::{BlockMode, BlockSize, FrameEncoder, FrameInfo};
    use proptest::prelude::*;
    use std::io::Write as _;

    proptest! {
        #[test]
        fn what_the_library_packs_is_unpacked_and_what_is_damaged_is_none_or_within_the_limit(
            words in prop::collection::vec((0usize..40, 1usize..60), 0..400), repeat in 1usize..40,
            linked in any::<bool>(), sums in any::<bool>(), flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        ) {
            let text: Vec<u8> = words
                .iter()
                .flat_map(|(seed, count)| (0..*count).map(move |at| (seed * 7 + at % (seed + 1)) as u8))
                .collect::<Vec<u8>>()
                .repeat(repeat);
            let mode = if linked { BlockMode::Linked } else { BlockMode::Independent };
            let info = FrameInfo::new()
                .block_mode(mode)
                .block_size(BlockSize::Max64KB)
                .block_checksums(sums)
                .content_checksum(sums)
                .content_size(sums.then_some(text.len() as u64));
            let mut encoder = FrameEncoder::with_frame_info(info, Vec::new());
            encoder.write_all(&text).unwrap();
            let mut packed = encoder.finish().unwrap();
            let mut out = Vec::new();
            prop_assert_eq!(unpack(&packed, &mut out, text.len()), Some(()));
            prop_assert!(out == text);
            if !text.is_empty() {
                prop_assert_eq!(unpack(&packed, &mut Vec::new(), text.len() - 1), None);
            }
            for (at, with) in flips {
                let at = at.index(packed.len());
                packed[at] ^= with;
            }
            let mut out = Vec::new();
            let _ = unpack(&packed, &mut out, text.len());
            prop_assert!(out.len() <= text.len());
        }
    }
}
