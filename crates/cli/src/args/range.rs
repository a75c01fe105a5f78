//! `--from`, `--to`, `--last`, `--ordinals`, `--event`: a range as it is typed.

use holdfast_base::{Ordinal, UnitError};
use holdfast_client::range::{self, RangeOptions};
use holdfast_client::times::{self, When};
use std::time::Duration;

/// The options that choose a range.
#[derive(clap::Args, Clone, Debug, Default)]
pub(crate) struct RangeArgs {
    /// Begin of the range
    #[arg(long, value_name = "T", allow_hyphen_values = true, value_parser = times::when)]
    from: Option<When>,
    /// End of the range
    #[arg(long, value_name = "T", allow_hyphen_values = true, value_parser = times::when)]
    to: Option<When>,
    /// Range of this length up to now: 30s, 5m, 1h30m
    #[arg(long, value_name = "SPAN", allow_hyphen_values = true, value_parser = times::back, conflicts_with_all = ["from", "to"])]
    last: Option<Duration>,
    /// Range of ordinals, A to before B; either may be omitted
    #[arg(long, value_name = "A..B", value_parser = ordinals)]
    ordinals: Option<Ordinals>,
    /// Select by event time (default: arrival time)
    #[arg(long)]
    event: bool,
}

/// Ordinals from the first, without the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ordinals(Ordinal, Ordinal);

fn ordinals(text: &str) -> Result<Ordinals, UnitError> {
    range::ordinals(text).map(|(from, to)| Ordinals(from, to))
}

impl RangeArgs {
    /// The options.
    pub(crate) fn options(&self) -> RangeOptions {
        let Self { from, to, last, ordinals, event } = *self;
        let ordinals = ordinals.map(|Ordinals(from, to)| (from, to));
        RangeOptions { from, to, last, ordinals, event }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use holdfast_base::{Ordinal, Timestamp};
    use holdfast_ring::Range;

    const NOW: Timestamp = Timestamp(1_795_169_100_000_000_000);

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        range: RangeArgs,
    }

    fn wanted(line: &str) -> Result<Range, String> {
        let line = Line::try_parse_from(std::iter::once("x").chain(line.split_whitespace()));
        let line = line.map_err(|error| error.to_string())?;
        line.range.options().resolve(NOW, 1).map_err(|failure| failure.to_string())
    }

    #[test]
    fn ranges_are_read_as_they_are_typed() {
        let minute = Duration::from_mins(1);
        for (line, range) in [
            ("", Range::ALL),
            ("--from -5m", Range { from: NOW - 5 * minute, ..Range::ALL }),
            ("--from=-5m --to -1m", Range { from: NOW - 5 * minute, to: NOW - minute, ..Range::ALL }),
            ("--to now --event", Range { to: NOW, by_event: true, ..Range::ALL }),
            ("--last 1m", Range { from: NOW - minute, to: NOW, ..Range::ALL }),
            ("--last -1m", Range { from: NOW - minute, to: NOW, ..Range::ALL }),
            ("--ordinals 5..7", Range { ordinals: Some((Ordinal(5), Ordinal(7))), ..Range::ALL }),
            (
                "--ordinals 1_000..",
                Range { ordinals: Some((Ordinal(1000), Ordinal(u64::MAX))), ..Range::ALL },
            ),
            ("--ordinals ..7", Range { ordinals: Some((Ordinal(0), Ordinal(7))), ..Range::ALL }),
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
        let several = RangeOptions { ordinals: Some((Ordinal(1), Ordinal(2))), ..RangeOptions::default() };
        assert!(several.resolve(NOW, 2).unwrap_err().to_string().contains("give --stream once"));
    }
}
