//! Thinning of an export: every nth element, a part of each period, and a part of each payload.

use holdfast_base::{Ordinal, Timestamp};
use holdfast_reader::Element;
use std::time::Duration;

/// Thinning of an export. Its default keeps everything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Thinning {
    /// Elements whose ordinal is a multiple of it are kept; 0: all.
    pub every: u64,
    /// Elements that arrive in the first length of every period are kept; periods follow each other from 1970 on.
    pub sample: Option<(Duration, Duration)>,
    /// Bytes of each payload that are kept: from the first, without the second.
    pub bytes: Option<(u64, u64)>,
}

impl Thinning {
    /// Returns true if an element is kept.
    pub fn keeps(&self, ordinal: Ordinal, arrival: Timestamp) -> bool {
        let is_every = self.every == 0 || ordinal.0.is_multiple_of(self.every);
        let is_sampled = self.sample.is_none_or(|(length, period)| {
            let since = i128::from(arrival.0).rem_euclid((period.as_nanos() as i128).max(1));
            since < length.as_nanos() as i128
        });
        is_every && is_sampled
    }

    /// Cuts an element's payload. What is cut off counts as missing, as with a snap length.
    pub(crate) fn cut<'a>(&self, element: &Element<'a>) -> Element<'a> {
        let Some((from, end)) = self.bytes else { return *element };
        let length = element.data.len();
        let at = |wanted: u64| usize::try_from(wanted).unwrap_or(usize::MAX).min(length);
        let data = &element.data[at(from)..at(end).max(at(from))];
        let extra = element.extra.saturating_add((length - data.len()) as u32);
        Element { data, extra, ..*element }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_kept_by_number_and_time() {
        let second = 1_000_000_000;
        let thinning = Thinning {
            every: 10,
            sample: Some((Duration::from_secs(2), Duration::from_mins(1))),
            bytes: None,
        };
        let keeps = |ordinal, time: i64| thinning.keeps(Ordinal(ordinal), Timestamp(time));
        assert!(keeps(0, 0) && keeps(30, 61 * second) && keeps(10, -59 * second));
        assert!(!keeps(1, 0) && !keeps(10, 2 * second) && !keeps(10, -second));
        assert!(Thinning::default().keeps(Ordinal(7), Timestamp(7)));
    }
}
