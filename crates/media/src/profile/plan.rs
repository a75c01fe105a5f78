//! Measurement plan: zones, and places that may be written. Pure.

use crate::Seed;
use holdfast_base::BLOCK;
use std::ops::Range;

/// The most zones of a profile: they are read by people, too.
pub const MAX_ZONES: u16 = 256;

/// Zones are not made smaller than this: what is measured in them would be noise.
const LEAST_ZONE: u64 = 4 << 20;

/// Neighbouring rates that differ by more than so many thousandths are told apart.
const APART: f64 = 0.03;

/// Fewer writable bytes of a zone tell nothing.
const LEAST_SAMPLE: u64 = 512 << 10;

/// `count` equal stretches over a device; fewer on a small one.
pub(super) fn zones(bytes: u64, count: u16) -> Vec<Range<u64>> {
    let count = u64::from(count.clamp(1, MAX_ZONES)).min(bytes / LEAST_ZONE).max(1);
    let cut = |n: u64| {
        let at = (u128::from(bytes) * u128::from(n) / u128::from(count)) as u64;
        if n == count { bytes } else { floor(at) }
    };
    (0..count).map(|n| cut(n)..cut(n + 1)).collect()
}

/// Down to a whole block.
pub(super) fn floor(bytes: u64) -> u64 {
    bytes - bytes % BLOCK as u64
}

/// Whether two rates are so far apart that they deserve zones of their own.
pub(super) fn apart(one: u64, other: u64) -> bool {
    one.abs_diff(other) as f64 > APART * one.max(other) as f64
}

/// A piece of a row: where, how long, and whether it does not follow its predecessor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) offset: u64,
    pub(super) len: usize,
    pub(super) fresh: bool,
}

/// Places in rising order, seen as one row of bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Places {
    ranges: Vec<Range<u64>>,
    bytes: u64,
}

impl Places {
    /// Of ranges in any order; what overlaps, is not aligned or lies beyond `end` is left out.
    pub(super) fn new(ranges: &[Range<u64>], end: u64) -> Self {
        let mut ranges: Vec<Range<u64>> = ranges.to_vec();
        ranges.sort_unstable_by_key(|range| range.start);
        let (mut kept, mut at, mut bytes) = (Vec::with_capacity(ranges.len()), 0, 0);
        for range in ranges {
            let start = range.start.next_multiple_of(BLOCK as u64).max(at);
            let stop = floor(range.end.min(end));
            if start < stop {
                kept.push(start..stop);
                bytes += stop - start;
                at = stop;
            }
        }
        Self { ranges: kept, bytes }
    }

    /// How many bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Those within a zone.
    pub(super) fn within(&self, zone: &Range<u64>) -> Self {
        let inside = |range: &Range<u64>| range.start.max(zone.start)..range.end.min(zone.end);
        let ranges: Vec<_> = self.ranges.iter().map(inside).filter(|range| range.start < range.end).collect();
        Self::new(&ranges, zone.end)
    }

    /// Whether there is enough of it to measure a rate.
    pub(super) fn enough(&self) -> bool {
        self.bytes >= LEAST_SAMPLE
    }

    /// Where a byte of the row lies, and how many follow it there.
    fn find(&self, mut at: u64) -> Option<(u64, u64)> {
        for range in &self.ranges {
            let len = range.end - range.start;
            if at < len {
                return Some((range.start + at, len - at));
            }
            at -= len;
        }
        None
    }

    /// `want` bytes of the row from its byte `from` on, in pieces.
    pub(super) fn pieces(&self, from: u64, want: u64, piece: usize) -> Vec<Piece> {
        let mut at = floor(from);
        let end = at.saturating_add(floor(want)).min(self.bytes);
        let (mut pieces, mut expected) = (Vec::new(), None);
        while at < end {
            let Some((offset, room)) = self.find(at) else { break };
            let len = room.min(end - at).min(piece as u64);
            pieces.push(Piece { offset, len: len as usize, fresh: expected != Some(offset) });
            expected = Some(offset + len);
            at += len;
        }
        pieces
    }

    /// `want` bytes at a share of the row: 0 is its beginning, 1 its end.
    pub(super) fn at(&self, share: f64, want: u64, piece: usize) -> Vec<Piece> {
        let want = want.min(self.bytes);
        self.pieces((share * (self.bytes - want) as f64) as u64, want, piece)
    }

    /// Any place for `len` bytes within so much of the row; the next, where that one has no room.
    pub(super) fn any(&self, within: Range<u64>, len: usize, seed: &mut Seed) -> Option<u64> {
        let span = within.end.min(self.bytes).saturating_sub(within.start);
        let from = floor(within.start + seed.below(span.max(1)));
        let (offset, room) = self.find(from.min(self.bytes.saturating_sub(len as u64)))?;
        if room >= len as u64 {
            return Some(offset);
        }
        let fits = |range: &&Range<u64>| range.end - range.start >= len as u64;
        self.ranges
            .iter()
            .filter(fits)
            .min_by_key(|range| range.start.abs_diff(offset))
            .map(|range| range.start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        // Promise 3, 8: nothing outside of what was allowed is ever written.
        #[test]
        fn pieces_lie_in_what_is_allowed_and_in_the_zone(
            parts in prop::collection::vec((0u64..300_000, 1u64..900_000), 0..12),
            zone in (0u64..4_000_000, 1u64..4_000_000),
            share in 0.0f64..=1.0,
            want in 1u64..3_000_000,
        ) {
            let (mut at, mut ranges) = (0, Vec::new());
            for (gap, length) in parts {
                ranges.push(at + gap..at + gap + length);
                at += gap + length;
            }
            let zone = zone.0..zone.0 + zone.1;
            let places = Places::new(&ranges, at).within(&zone);
            let mut seed = Seed::new(want);
            let any = places.any(0..places.bytes(), BLOCK, &mut seed).map(|offset| (offset, BLOCK as u64));
            prop_assert_eq!(any.is_some(), places.bytes() > 0);
            let pieces = places.at(share, want, 128 << 10);
            let sum: u64 = pieces.iter().map(|piece| piece.len as u64).sum();
            prop_assert!(sum <= want && (sum + 2 * BLOCK as u64 > want.min(places.bytes())), "{} of {}", sum, want);
            for (offset, len) in pieces.iter().map(|piece| (piece.offset, piece.len as u64)).chain(any) {
                prop_assert!(offset % BLOCK as u64 == 0 && len % BLOCK as u64 == 0);
                prop_assert!(offset >= zone.start && offset + len <= zone.end);
                prop_assert!(ranges.iter().any(|range| range.start <= offset && offset + len <= range.end));
            }
        }
    }

    #[test]
    fn zones_cover_the_device_without_holes() {
        let found = zones(1_000_204_886_016, 32);
        assert_eq!((found.len(), found[0].start, found[31].end), (32, 0, 1_000_204_886_016));
        assert!(found.windows(2).all(|pair| pair[0].end == pair[1].start && pair[0].end % BLOCK as u64 == 0));
        assert_eq!(zones(64 << 20, 32).len(), 16);
        assert_eq!(zones(BLOCK as u64, 32).first(), Some(&(0..BLOCK as u64)));
    }
}
