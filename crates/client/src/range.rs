//! Range options: a range as it is asked for, and what it means from now on.

use crate::times::{self, When};
use holdfast_base::failure::{Failure, Result};
use holdfast_base::{Ordinal, Timestamp, UnitError};
use holdfast_ring::Range;
use std::time::Duration;

/// Options that choose a range: all conditions must hold.
#[derive(Clone, Debug, Default)]
pub struct RangeOptions {
    /// Not before this time.
    pub from: Option<When>,
    /// Not after this time.
    pub to: Option<When>,
    /// The last so much, up to now; instead of the times.
    pub last: Option<Duration>,
    /// Elements of one stream, from the first ordinal up to, not including, the second.
    pub ordinals: Option<(Ordinal, Ordinal)>,
    /// Times mean event times; otherwise arrival times.
    pub event: bool,
}

impl RangeOptions {
    /// True when nothing was chosen, so that everything is meant.
    pub fn is_all(&self) -> bool {
        self.from.is_none() && self.to.is_none() && self.last.is_none() && self.ordinals.is_none()
    }

    /// The range, seen from `now`, of so many streams.
    pub fn resolve(&self, now: Timestamp, streams: usize) -> Result<Range> {
        let (from, to) = match self.last {
            Some(span) => (now - span, now),
            None => (
                self.from.map_or(Timestamp::MIN, |from| from.resolve(now)),
                self.to.map_or(Timestamp::MAX, |to| to.resolve(now)),
            ),
        };
        if from > to {
            return Err(Failure::usage("the range ends before it begins")
                .at(format_args!("{} to {}", times::rfc3339(from), times::rfc3339(to)))
                .advice("exchange --from and --to"));
        }
        if self.ordinals.is_some() && streams != 1 {
            return Err(Failure::usage("ordinals count the elements of one stream")
                .at("--ordinals")
                .advice("give --stream once"));
        }
        Ok(Range { from, to, by_event: self.event, ordinals: self.ordinals })
    }
}

/// Parses a range of ordinals: `A..B`, either of which may be left out.
pub fn ordinals(text: &str) -> Result<(Ordinal, Ordinal), UnitError> {
    let wrong = || {
        UnitError::new(
            "range of ordinals",
            text,
            "A..B with A below B, such as 100..200 (200 is not included)",
        )
    };
    let (from, to) = text.trim().split_once("..").ok_or_else(wrong)?;
    let number = |text: &str, none: u64| {
        if text.is_empty() { Ok(none) } else { text.replace('_', "").parse::<u64>().map_err(|_| wrong()) }
    };
    let (from, to) = (number(from, 0)?, number(to, u64::MAX)?);
    if from >= to {
        return Err(wrong());
    }
    Ok((Ordinal(from), Ordinal(to)))
}
