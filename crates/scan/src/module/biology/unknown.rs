//! Share of unknown letters (`N` of nucleotides, `X` of proteins) in the text of a match.

/// Counts of unknown letters in a text.
#[derive(Debug, Default)]
pub(super) struct UnknownCounts {
    /// Unknown letters in front of each place of the text; empty if the text has none.
    sums: Vec<u32>,
}

impl UnknownCounts {
    /// Counts the unknown letters of a text; the memory of the last text is used again.
    pub(super) fn count(&mut self, text: &[u8], unknown: u8) {
        self.sums.clear();
        if memchr::memchr(unknown, text).is_none() {
            return;
        }
        self.sums.reserve(text.len() + 1);
        self.sums.push(0);
        let mut sum = 0;
        self.sums.extend(text.iter().map(|letter| {
            sum += u32::from(*letter == unknown);
            sum
        }));
    }

    /// Number of unknown letters among the last `length` letters in front of an end.
    pub(super) fn before(&self, end: usize, length: usize) -> u32 {
        let at = |place: usize| self.sums.get(place).copied().unwrap_or(0);
        at(end) - at(end.saturating_sub(length))
    }

    /// True if the match at an end may be reported: if at most the share `most` of its letters is unknown.
    ///
    /// Bounds on the length of the match decide most cases; `length` aligns the match for the others.
    pub(super) fn is_admissible(
        &self,
        end: usize,
        pattern: usize,
        distance: u32,
        most: f64,
        length: impl FnOnce() -> usize,
    ) -> bool {
        let distance = distance as usize;
        let (shortest, longest) = (pattern - distance, pattern + distance);
        if self.sums.is_empty() || self.before(end, longest) == 0 {
            return true;
        }
        if f64::from(self.before(end, shortest)) > most * longest as f64 {
            return false;
        }
        let length = length();
        f64::from(self.before(end, length)) <= most * length as f64
    }
}
