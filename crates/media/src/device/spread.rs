//! Sample places of a device that has no mark at its ends: all of a small one; of a large one its beginning,
//! the places where a ring of any slot size has its journal and its first slots, and samples all over. Places
//! only, no I/O.

use holdfast_base::{BLOCK, HEAD, MAX_SLOT, MIN_SLOT};

/// Bytes read at once.
pub(super) const PIECE: usize = 1 << 20;

/// Devices up to this size are read whole: a second on anything that is in use.
const WHOLE: u64 = 64 << 20;

/// Bytes at the beginning of a larger one that are read whole: most of what is written to a device begins there.
const BEGINNING: u64 = 16 << 20;

/// Places of a ring that are looked at for each slot size: both journal extents and the first slots.
const PARTS: u64 = 8;

/// Samples over the whole device: a few seconds on a drive that must reposition for each.
const SAMPLES: u64 = 256;

/// Bytes of a sample.
const SAMPLE: u64 = 64 << 10;

/// Offset and length of each place, in whole blocks inside `bytes`.
pub(super) fn places(bytes: u64) -> Vec<(u64, usize)> {
    let whole = if bytes <= WHOLE { bytes } else { BEGINNING };
    let mut places = Vec::new();
    let mut place = |at: u64, len: u64| {
        let len = len.min(bytes.saturating_sub(at)) / BLOCK as u64 * BLOCK as u64;
        if len > 0 {
            places.push((at, len as usize));
        }
    };
    for at in (0..whole).step_by(PIECE) {
        place(at, (whole - at).min(PIECE as u64));
    }
    if whole < bytes {
        let sizes = (MIN_SLOT.trailing_zeros()..=MAX_SLOT.trailing_zeros()).map(|log2| 1_u64 << log2);
        for slot in sizes {
            (0..PARTS)
                .map(|part| HEAD + part * slot)
                .filter(|at| *at >= whole)
                .for_each(|at| place(at, BLOCK as u64));
        }
        // At multiples of what is the usual slot size here, so that each sample of a ring begins with a slot's header.
        let step = bytes / SAMPLES;
        let usual = (1_u64 << (bytes / 64).ilog2()).min(MAX_SLOT);
        for at in (0..SAMPLES).map(|sample| sample * step) {
            place(HEAD + at / usual * usual, BLOCK as u64);
            place(at / BLOCK as u64 * BLOCK as u64, SAMPLE);
        }
    }
    places.sort_unstable();
    places.dedup();
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_ring_of_any_slot_size_are_looked_at() {
        for slot in (16..=28).map(|log2| 1_u64 << log2) {
            for bytes in [HEAD + 8 * slot, 100 * slot, 5 << 40] {
                let places = places(bytes);
                let looked =
                    |at: u64| places.iter().any(|(from, len)| (*from..from + *len as u64).contains(&at));
                for part in 0..8 {
                    assert!(looked(HEAD + part * slot), "part {part} of slots of {slot} on {bytes}");
                }
                assert!(places.iter().all(|(at, len)| at + *len as u64 <= bytes && *len <= PIECE));
            }
        }
    }

    #[test]
    fn small_devices_are_read_whole_and_large_ones_everywhere_a_little() {
        for bytes in [BLOCK as u64, 3 * BLOCK as u64, WHOLE - BLOCK as u64, WHOLE] {
            let mut end = 0;
            for (at, len) in places(bytes) {
                assert_eq!(at, end);
                end += len as u64;
            }
            assert_eq!(end, bytes);
        }
        assert!(places(0).is_empty());
        for bytes in [WHOLE + BLOCK as u64, 10 << 30, 20 << 40] {
            let places = places(bytes);
            assert!(places.len() < 700, "{}", places.len());
            let mut before = 0;
            for (at, len) in places {
                assert!(
                    at <= before + bytes / SAMPLES + BLOCK as u64,
                    "a hole of {} before {at}",
                    at - before
                );
                before = before.max(at + len as u64);
            }
            assert!(bytes - before <= bytes / SAMPLES + BLOCK as u64 * SAMPLES);
        }
    }
}
