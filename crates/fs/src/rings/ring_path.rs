//! Paths below the directory of rings, and the range of time that a name stands for. Pure.

use super::{HOLDS, QUERIES};
use holdfast_base::Timestamp;
use holdfast_export::Format;
use jiff::civil::{Date, Time};
use jiff::tz::TimeZone;
use std::fmt;

/// Ending of the names of queries' files.
const ROWS: &str = ".jsonl";

/// Nanoseconds of a minute.
const MINUTE: i64 = 60_000_000_000;

/// Range of time or of holds that a file contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Span {
    /// Minute with a number since 1970, UTC.
    Minute(i64),
    /// Last minute before the open, and all that comes.
    Live,
    /// Data of the hold with a number.
    Hold(u64),
}

/// File made of a stream.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RingFile {
    pub(crate) ring: String,
    pub(crate) stream: String,
    pub(crate) span: Span,
    pub(crate) format: FileFormat,
}

/// Format of a file, by its ending.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum FileFormat {
    Raw,
    Pcapng,
    Mcap,
    Jsonl,
}

impl FileFormat {
    /// Format of an ending of names.
    pub(crate) fn of(ending: &str) -> Option<Self> {
        [Self::Raw, Self::Pcapng, Self::Mcap, Self::Jsonl]
            .into_iter()
            .find(|format| Format::from(*format).name() == ending)
    }
}

impl From<FileFormat> for Format {
    fn from(format: FileFormat) -> Self {
        match format {
            FileFormat::Raw => Self::Raw,
            FileFormat::Pcapng => Self::Pcapng,
            FileFormat::Mcap => Self::Mcap,
            FileFormat::Jsonl => Self::Jsonl,
        }
    }
}

/// Entry below the directory of rings.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum RingPath {
    /// Directory of all rings.
    Root,
    /// Ring with its streams.
    Ring(String),
    /// Holds of a ring.
    Holds(String),
    /// Hold of a ring with its streams.
    Hold(String, u64),
    /// Queries of a ring.
    Queries(String),
    /// Rows of a query of a ring, by its name.
    Query(String, String),
    /// Stream with its days.
    Stream(String, String),
    /// Day of a stream with its minutes.
    Day(String, String, String),
    /// File made of a stream.
    File(RingFile),
}

impl RingPath {
    /// Entry of a name in a directory; nothing if no entry has such a name.
    pub(crate) fn child(&self, name: &str) -> Option<Self> {
        let file = |ring: &str, stream: &str, span, ending: &str| {
            let (ring, stream, format) = (ring.to_owned(), stream.to_owned(), FileFormat::of(ending)?);
            Some(Self::File(RingFile { ring, stream, span, format }))
        };
        match self {
            Self::Root => Some(Self::Ring(name.to_owned())),
            Self::Ring(ring) if name == QUERIES => Some(Self::Queries(ring.clone())),
            Self::Queries(ring) => Some(Self::Query(ring.clone(), name.strip_suffix(ROWS)?.to_owned())),
            Self::Ring(ring) if name == HOLDS => Some(Self::Holds(ring.clone())),
            Self::Ring(ring) => Some(Self::Stream(ring.clone(), name.to_owned())),
            Self::Holds(ring) => Some(Self::Hold(ring.clone(), name.parse().ok()?)),
            Self::Hold(ring, id) => {
                let (stream, ending) = name.rsplit_once('.')?;
                file(ring, stream, Span::Hold(*id), ending)
            }
            Self::Stream(ring, stream) => {
                if let Some(ending) = name.strip_prefix("live.") {
                    return file(ring, stream, Span::Live, ending);
                }
                let is_day = name.parse::<Date>().is_ok_and(|date| date.to_string() == name);
                is_day.then(|| Self::Day(ring.clone(), stream.clone(), name.to_owned()))
            }
            Self::Day(ring, stream, date) => {
                let (time, ending) = name.split_once('.')?;
                let (hour, minute) = time.split_once(':')?;
                let number = |text: &str| (text.len() == 2).then(|| text.parse::<i8>().ok()).flatten();
                let date: Date = date.parse().ok()?;
                let at = date.to_datetime(Time::new(number(hour)?, number(minute)?, 0, 0).ok()?);
                let at = at.to_zoned(TimeZone::UTC).ok()?.timestamp().as_second().div_euclid(60);
                file(ring, stream, Span::Minute(at), ending)
            }
            Self::Query(..) | Self::File(_) => None,
        }
    }

    /// Directory that contains the entry.
    pub(crate) fn parent(&self) -> Option<Self> {
        match self {
            Self::Root => None,
            Self::Ring(_) => Some(Self::Root),
            Self::Query(ring, _) => Some(Self::Queries(ring.clone())),
            Self::Holds(ring) | Self::Queries(ring) | Self::Stream(ring, _) => Some(Self::Ring(ring.clone())),
            Self::Hold(ring, _) => Some(Self::Holds(ring.clone())),
            Self::Day(ring, stream, _) => Some(Self::Stream(ring.clone(), stream.clone())),
            Self::File(file) => Some(match file.span {
                Span::Live => Self::Stream(file.ring.clone(), file.stream.clone()),
                Span::Hold(id) => Self::Hold(file.ring.clone(), id),
                Span::Minute(at) => Self::Day(file.ring.clone(), file.stream.clone(), day(at)),
            }),
        }
    }

    /// Name of the entry in its directory.
    pub(crate) fn last(&self) -> Option<String> {
        Some(match self {
            Self::Root => return None,
            Self::Ring(name) | Self::Stream(_, name) | Self::Day(_, _, name) => name.clone(),
            Self::Holds(_) => HOLDS.to_owned(),
            Self::Queries(_) => QUERIES.to_owned(),
            Self::Query(_, name) => format!("{name}{ROWS}"),
            Self::Hold(_, id) => id.to_string(),
            Self::File(file) => {
                let ending = Format::from(file.format).name();
                match file.span {
                    Span::Live => format!("live.{ending}"),
                    Span::Hold(_) => format!("{}.{ending}", file.stream),
                    Span::Minute(at) => format!("{}.{ending}", minute(at)),
                }
            }
        })
    }

    pub(crate) fn is_directory(&self) -> bool {
        !matches!(self, Self::File(_) | Self::Query(..))
    }
}

impl fmt::Display for RingPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.parent() {
            Some(Self::Root) | None => {}
            Some(parent) => write!(f, "{parent}/")?,
        }
        f.write_str(&self.last().unwrap_or_default())
    }
}

/// Number of the minute of a time.
pub(super) fn minute_of(time: Timestamp) -> i64 {
    time.0.div_euclid(MINUTE)
}

/// First and last time of a minute.
pub(super) fn bounds(minute: i64) -> (Timestamp, Timestamp) {
    (Timestamp(minute * MINUTE), Timestamp(minute * MINUTE + MINUTE - 1))
}

fn civil(minute: i64) -> jiff::civil::DateTime {
    let at = jiff::Timestamp::from_second(minute * 60).unwrap_or_default();
    at.to_zoned(TimeZone::UTC).datetime()
}

/// Name of the day of a minute.
pub(super) fn day(minute: i64) -> String {
    civil(minute).date().to_string()
}

/// Name of a minute in its day.
pub(super) fn minute(minute: i64) -> String {
    let time = civil(minute).time();
    format!("{:02}:{:02}", time.hour(), time.minute())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> Option<RingPath> {
        text.split('/').try_fold(RingPath::Root, |at, name| at.child(name))
    }

    #[test]
    fn names_read_back() {
        for text in [
            "lab",
            "lab/eth0",
            "lab/eth0/2026-11-27",
            "lab/eth0/2026-11-27/10:05.pcapng",
            "lab/eth0/2026-11-27/00:00.jsonl",
            "lab/eth0/live.raw",
            "lab/holds",
            "lab/holds/7",
            "lab/holds/7/eth0.mcap",
            "lab/holds/7/a.b.pcapng",
            "lab/query",
            "lab/query/busy hosts.jsonl",
        ] {
            let found = path(text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!(found.to_string(), text);
            assert_eq!(found.is_directory(), !text.contains('.'), "{text}");
        }
        for text in [
            "lab/eth0/2026-13-01",
            "lab/eth0/2026-1-1",
            "lab/eth0/yesterday",
            "lab/eth0/live",
            "lab/eth0/live.exe",
            "lab/eth0/2026-11-27/10:5.raw",
            "lab/eth0/2026-11-27/24:00.raw",
            "lab/eth0/2026-11-27/10:05",
            "lab/holds/x",
            "lab/query/busy.csv",
            "lab/eth0/live.raw/x",
        ] {
            assert_eq!(path(text), None, "{text}");
        }
    }

    #[test]
    fn a_minute_is_in_utc() {
        let Some(RingPath::File(file)) = path("lab/eth0/1970-01-02/00:01.raw") else { panic!("no file") };
        assert_eq!(file.span, Span::Minute(24 * 60 + 1));
        assert_eq!(bounds(1), (Timestamp(60_000_000_000), Timestamp(119_999_999_999)));
        assert_eq!(
            (minute_of(Timestamp(-1)), day(-1), minute(-1)),
            (-1, "1969-12-31".to_owned(), "23:59".to_owned())
        );
    }
}
