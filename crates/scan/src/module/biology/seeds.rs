//! Seeds of long patterns: places of a text where a match with few edits may end.
//!
//! Pigeonhole: a pattern is cut into `p` disjoint pieces. An edit changes one piece at most, and so does an ambiguous letter of the
//! text that takes part in a match. A match with `k` edits and `a` ambiguous letters therefore holds `p - k - a` pieces exactly,
//! each moved by `k` letters at most. Ends with fewer pieces around them are no ends of matches; nothing else is passed over.

use crate::module::biology::alphabet::Alphabet;
use crate::module::biology::pattern::Lane;
use crate::module::biology::pieces::{MOST_PIECE, PieceIndex};
use std::collections::HashMap;
use std::ops::Range;

/// Letters of a piece at least: shorter ones occur by chance too often.
const LEAST_PIECE: usize = 12;

/// Equal pieces of a lane that are used: more of them, in a repeat, would all be found at each place of a repeat.
const MOST_EQUAL: usize = 8;

/// Seeds of all long lanes.
#[derive(Clone, Debug)]
pub(super) struct Seeds {
    index: PieceIndex,
    /// Pieces and ambiguous letters that a match holds at least, for each lane; 0 also for short lanes.
    needed: Vec<usize>,
    distance: usize,
}

impl Seeds {
    /// Makes the seeds of the long lanes among all lanes; `None` if there are none.
    pub(super) fn new(lanes: &[Lane], distance: u32) -> Option<Self> {
        let distance = distance as usize;
        let long = || lanes.iter().enumerate().filter(|(_, lane)| lane.is_long(Alphabet::Dna));
        let shortest = long().map(|(_, lane)| lane.letters.len()).min()?;
        // Twice as many pieces as edits may change, if they are long enough.
        let size = (shortest / (2 * (distance + 1))).clamp(LEAST_PIECE, MOST_PIECE);
        let count = long().map(|(_, lane)| lane.letters.len() / size).sum();
        let (mut index, mut needed) = (PieceIndex::new(size, count), vec![0; lanes.len()]);
        for (number, lane) in long() {
            let (mut equal, mut used) = (HashMap::new(), 0_usize);
            for (ordinal, piece) in lane.letters.chunks_exact(size).enumerate() {
                let count: &mut usize = equal.entry(piece).or_default();
                *count += 1;
                if *count <= MOST_EQUAL {
                    used += 1;
                    index.add(piece, number, lane.letters.len() - ordinal * size);
                }
            }
            // A pattern with too many equal pieces needs none: all ends are candidates.
            needed[number] = used.saturating_sub(distance);
        }
        index.sort();
        Some(Self { index, needed, distance })
    }

    /// Finds ranges of ends, for each long lane, that hold the ends of all its matches behind `from`.
    ///
    /// A range `a..b` stands for the ends `a + 1` to `b`. Ranges of a lane are ascending and disjoint.
    pub(super) fn candidates(&self, lanes: &[Lane], text: &[u8], from: usize) -> Vec<Vec<Range<usize>>> {
        let mut ends = vec![Vec::new(); lanes.len()];
        self.index.find(text, |lane, end| ends[lane].push(end));
        let is_ambiguous = |letter: u8| !Alphabet::Dna.is_exact(letter) && Alphabet::Dna.mask(letter) != 0;
        let places = text.iter().enumerate().filter(|(_, letter)| is_ambiguous(**letter));
        let ambiguous: Vec<usize> = places.map(|(at, _)| at).collect();
        let ranges = lanes.iter().zip(ends).zip(&self.needed).map(|((lane, ends), needed)| {
            if !lane.is_long(Alphabet::Dna) || *needed > ends.len() + ambiguous.len() {
                return Vec::new();
            }
            let mut counts = Counts::new(from, text.len());
            for end in ends {
                counts.add(end.saturating_sub(self.distance), end + self.distance);
            }
            for place in &ambiguous {
                counts.add(place + 1, place + lane.letters.len() + self.distance);
            }
            counts.at_least(*needed as i32)
        });
        ranges.collect()
    }
}

/// Numbers of pieces and ambiguous letters that a match at each end may hold.
struct Counts {
    from: usize,
    /// Difference between the counts of each end and of the end before it.
    steps: Vec<i32>,
}

impl Counts {
    /// Makes zero counts for the ends `from + 1` to `last`.
    fn new(from: usize, last: usize) -> Self {
        Self { from, steps: vec![0; last - from + 1] }
    }

    /// Adds one to the ends from `first` to `last`.
    fn add(&mut self, first: usize, last: usize) {
        let (first, behind) = (first.max(self.from + 1), (last + 1).min(self.from + self.steps.len()));
        if first < behind {
            self.steps[first - self.from - 1] += 1;
            self.steps[behind - self.from - 1] -= 1;
        }
    }

    /// Ranges of ends with a count of at least `needed`.
    fn at_least(&self, needed: i32) -> Vec<Range<usize>> {
        let mut ranges: Vec<Range<usize>> = Vec::new();
        let mut count = 0;
        for (before, step) in (self.from..).zip(&self.steps[..self.steps.len() - 1]) {
            count += step;
            if count >= needed {
                match ranges.last_mut() {
                    Some(range) if range.end == before => range.end += 1,
                    _ => ranges.push(before..before + 1),
                }
            }
        }
        ranges
    }
}

#[cfg(test)]
mod tests {
    use super::Counts;

    #[test]
    fn ranges_hold_the_ends_with_enough_counts() {
        let mut counts = Counts::new(10, 20);
        for (first, last) in [(0, 10), (0, 12), (12, 15), (14, 30), (20, 25), (21, 25)] {
            counts.add(first, last);
        }
        // Ends 11 to 20 have the counts 1 2 1 2 2 1 1 1 1 2.
        assert!(counts.at_least(0).iter().eq([&(10..20)]));
        assert_eq!(counts.at_least(2), [11..12, 13..15, 19..20]);
        assert!(counts.at_least(3).is_empty());
    }
}
