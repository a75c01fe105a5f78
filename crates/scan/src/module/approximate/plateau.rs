//! Plateaus of adjacent ends with equal distances; a hit is a plateau between greater distances, also across borders of blocks.
//!
//! Approximate matches come in groups: beside an end with one edit there are mostly ends with two. A plateau is a maximal run
//! of ends `e, e + 1, …` of one lane with the same distance. It is a minimum if no end beside it has a smaller distance. Its hit
//! is the leftmost end. So a hit does not depend on the greatest distance that is searched for, as long as it is within it.

/// Bytes of a match that a hit shows.
pub(in crate::module) const MOST_TEXT: usize = 1100;

/// Run of adjacent ends of one lane with one distance. A lane is a pattern, or one strand of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::module) struct Plateau {
    /// Number of the lane.
    pub(in crate::module) lane: usize,
    /// First end of the run.
    pub(in crate::module) first: u64,
    /// Last end of the run.
    pub(in crate::module) last: u64,
    /// Distance at all of these ends.
    pub(in crate::module) distance: u32,
    /// True if the end in front of the run has a greater distance, or is no end.
    falls: bool,
    /// True if the end behind the run has a greater distance, or is no end.
    rises: bool,
}

impl Plateau {
    fn new(lane: usize, end: u64, distance: u32) -> Self {
        Self { lane, first: end, last: end, distance, falls: true, rises: true }
    }

    /// True if no end beside the plateau has a smaller distance.
    fn is_minimum(&self) -> bool {
        self.falls && self.rises
    }

    /// Settles which of two adjacent plateaus lies lower. True: they are one.
    fn meet(&mut self, next: &mut Self) -> bool {
        if self.distance == next.distance {
            (self.last, self.rises) = (next.last, next.rises);
            return true;
        }
        if next.distance < self.distance {
            self.rises = false;
        } else {
            next.falls = false;
        }
        false
    }

    fn is_before(&self, next: &Self) -> bool {
        self.lane == next.lane && self.last + 1 == next.first
    }
}

/// Adds an end to the plateaus of its lane. Ends come in ascending order.
///
/// The list has the first plateau of the lane, the minima, and the last plateau: further blocks may meet the first and the last.
pub(in crate::module) fn push_end(plateaus: &mut Vec<Plateau>, lane: usize, end: u64, distance: u32) {
    let mut next = Plateau::new(lane, end, distance);
    let count = plateaus.len();
    if let Some(last) = plateaus.last_mut() {
        if last.is_before(&next) && last.meet(&mut next) {
            return;
        }
        if count > 1 && !last.is_minimum() {
            *last = next;
            return;
        }
    }
    plateaus.push(next);
}

/// Match at the first end of a plateau.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::module) struct Match {
    /// Plateau that the match represents.
    pub(in crate::module) plateau: Plateau,
    /// Offset of the first byte.
    pub(in crate::module) start: u64,
    /// First bytes of the matched text.
    pub(in crate::module) text: Vec<u8>,
}

impl Match {
    /// Makes the match of a plateau from a text that begins at an offset, and from the length of the match.
    pub(in crate::module) fn new(plateau: Plateau, text: &[u8], offset: u64, length: usize) -> Self {
        let start = plateau.first - length as u64;
        let at = (start - offset) as usize;
        let text = text[at..at + length.min(MOST_TEXT)].to_vec();
        Self { plateau, start, text }
    }
}

/// Matches whose plateaus may go on in the next part of an item: at most one for each lane.
#[derive(Debug, Default)]
pub(in crate::module) struct Pending {
    matches: Vec<Match>,
}

impl Pending {
    /// Adds the matches of all ends up to `border`, and returns the minima that are complete.
    ///
    /// The returned matches are ordered by the last ends of their plateaus, then by lane. This order does not depend on borders.
    pub(in crate::module) fn add(&mut self, found: Vec<Match>, border: u64) -> Vec<Match> {
        let mut matches = std::mem::take(&mut self.matches);
        let waiting = matches.len();
        for mut next in found {
            let earlier =
                matches[..waiting].iter_mut().find(|earlier| earlier.plateau.is_before(&next.plateau));
            if !earlier.is_some_and(|earlier| earlier.plateau.meet(&mut next.plateau)) {
                matches.push(next);
            }
        }
        matches.sort_unstable_by_key(|found| (found.plateau.last, found.plateau.lane));
        let complete = matches.partition_point(|found| found.plateau.last < border);
        self.matches = matches.split_off(complete);
        matches.retain(|found| found.plateau.is_minimum());
        matches
    }

    /// Returns all minima that wait, at the end of the item.
    pub(in crate::module) fn finish(&mut self) -> Vec<Match> {
        let mut matches = std::mem::take(&mut self.matches);
        matches.retain(|found| found.plateau.is_minimum());
        matches
    }
}

#[cfg(test)]
mod tests {
    use super::{Match, Pending, push_end};

    fn matches(ends: &[(u64, u32)]) -> Vec<Match> {
        let mut plateaus = Vec::new();
        for (end, distance) in ends {
            push_end(&mut plateaus, 0, *end, *distance);
        }
        plateaus.into_iter().map(|plateau| Match::new(plateau, &[0; 32], 0, 1)).collect()
    }

    #[test]
    fn a_minimum_across_borders_is_one_match_with_its_leftmost_end() {
        let ends = [
            (3, 2),
            (4, 1),
            (5, 1),
            (6, 2),
            (7, 2),
            (8, 1),
            (9, 3),
            (10, 3),
            (13, 1),
            (14, 2),
            (15, 2),
            (16, 1),
        ];
        for border in 0..18 {
            let mut pending = Pending::default();
            let (left, right): (Vec<_>, Vec<_>) = ends.into_iter().partition(|(end, _)| *end <= border);
            let mut found = pending.add(matches(&left), border);
            found.extend(pending.add(matches(&right), 18));
            found.extend(pending.finish());
            let ends: Vec<_> = found.iter().map(|found| (found.plateau.first, found.plateau.last)).collect();
            assert_eq!(ends, [(4, 5), (8, 8), (13, 13), (16, 16)], "border {border}");
        }
    }
}
