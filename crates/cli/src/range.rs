//! `--from`, `--to`, `--last`, `--ordinals`, `--event`: a range as it is typed, and what it means from now on.

use crate::times::{self, When};
use holdfast_base::failure::{Failure, Result};
use holdfast_base::{Ordinal, Timestamp, UnitError};
use std::time::Duration;

/// The options that choose a range.
#[derive(clap::Args, Clone, Debug, Default)]
pub(crate) struct RangeArgs {
    /// Begin of the range
    #[arg(long, value_name = "T", allow_hyphen_values = true, value_parser = times::when)]
    pub(crate) from: Option<When>,
    /// End of the range
    #[arg(long, value_name = "T", allow_hyphen_values = true, value_parser = times::when)]
    pub(crate) to: Option<When>,
    /// Range of this length up to now: 30s, 5m, 1h30m
    #[arg(long, value_name = "SPAN", allow_hyphen_values = true, value_parser = times::back, conflicts_with_all = ["from", "to"])]
    pub(crate) last: Option<Duration>,
    /// Range of ordinals, A to before B; either may be omitted
    #[arg(long, value_name = "A..B", value_parser = ordinals)]
    pub(crate) ordinals: Option<Ordinals>,
    /// Select by event time (default: arrival time)
    #[arg(long)]
    pub(crate) event: bool,
}

/// Ordinals from the first, without the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ordinals(pub(crate) Ordinal, pub(crate) Ordinal);

/// A range from now on: all conditions must hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// Not before.
    pub(crate) from: Timestamp,
    /// Not after.
    pub(crate) to: Timestamp,
    /// By event time.
    pub(crate) by_event: bool,
    /// Ordinals.
    pub(crate) ordinals: Option<(Ordinal, Ordinal)>,
}

impl RangeArgs {
    /// True when nothing was chosen, so that everything is meant.
    pub(crate) fn is_all(&self) -> bool {
        self.from.is_none() && self.to.is_none() && self.last.is_none() && self.ordinals.is_none()
    }

    /// The range, seen from `now`.
    pub(crate) fn resolve(&self, now: Timestamp, streams: usize) -> Result<Wanted> {
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
        Ok(Wanted { from, to, by_event: self.event, ordinals: self.ordinals.map(|Ordinals(a, b)| (a, b)) })
    }
}

fn ordinals(text: &str) -> Result<Ordinals, UnitError> {
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
    Ok(Ordinals(Ordinal(from), Ordinal(to)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    const NOW: Timestamp = Timestamp(1_795_169_100_000_000_000);

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        range: RangeArgs,
    }

    fn wanted(line: &str) -> Result<Wanted, String> {
        let line = Line::try_parse_from(std::iter::once("x").chain(line.split_whitespace()));
        let line = line.map_err(|error| error.to_string())?;
        line.range.resolve(NOW, 1).map_err(|failure| failure.to_string())
    }

    #[test]
    fn ranges_are_read_as_they_are_typed() {
        let all = Wanted { from: Timestamp::MIN, to: Timestamp::MAX, by_event: false, ordinals: None };
        let minute = Duration::from_mins(1);
        for (line, range) in [
            ("", all),
            ("--from -5m", Wanted { from: NOW - 5 * minute, ..all }),
            ("--from=-5m --to -1m", Wanted { from: NOW - 5 * minute, to: NOW - minute, ..all }),
            ("--to now --event", Wanted { to: NOW, by_event: true, ..all }),
            ("--last 1m", Wanted { from: NOW - minute, to: NOW, ..all }),
            ("--last -1m", Wanted { from: NOW - minute, to: NOW, ..all }),
            ("--ordinals 5..7", Wanted { ordinals: Some((Ordinal(5), Ordinal(7))), ..all }),
            ("--ordinals 1_000..", Wanted { ordinals: Some((Ordinal(1000), Ordinal(u64::MAX))), ..all }),
            ("--ordinals ..7", Wanted { ordinals: Some((Ordinal(0), Ordinal(7))), ..all }),
        ] {
            assert_eq!(wanted(line), Ok(range), "{line}");
        }
    }

    #[test]
    fn ranges_that_make_no_sense_are_refused() {
        for (line, said) in [
            ("--from now --to -1m", "the range ends before it begins"),
            ("--last 5m --from -5m", "cannot be used with"),
            ("--ordinals 7..7", "A..B with A below B"),
            ("--ordinals 7", "A..B with A below B"),
            ("--ordinals -1..7", "unexpected argument"),
            ("--last --5m", "is not a length of time"),
            ("--from 5m", "is not a time"),
        ] {
            let text = wanted(line).unwrap_err();
            assert!(text.contains(said), "{line}: {text}");
        }
        let several = RangeArgs { ordinals: Some(Ordinals(Ordinal(1), Ordinal(2))), ..RangeArgs::default() };
        assert!(several.resolve(NOW, 2).unwrap_err().to_string().contains("give --stream once"));
    }
}
