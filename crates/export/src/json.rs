//! JSON shapes that exports share with results of commands: gaps, and times as text.

use holdfast_base::{Timestamp, times};
use holdfast_format as format;
use serde::{Serialize, Serializer};

/// A time as RFC 3339; the ends of all time as null.
pub fn time<S: Serializer>(time: &Timestamp, to: S) -> Result<S::Ok, S::Error> {
    if *time == Timestamp::MIN || *time == Timestamp::MAX {
        return to.serialize_none();
    }
    to.serialize_str(&times::rfc3339(*time))
}

/// A time that may be unknown: RFC 3339, or null.
pub fn time_if<S: Serializer>(known: &Option<Timestamp>, to: S) -> Result<S::Ok, S::Error> {
    match known {
        Some(known) => time(known, to),
        None => to.serialize_none(),
    }
}

/// Gap in a stream: elements that were lost or purged, as the `gaps` command and JSON-lines exports show it.
#[derive(Clone, Debug, Serialize)]
pub struct Gap<'a> {
    /// Name of the stream.
    pub stream: &'a str,
    /// First of the missing ordinals.
    pub ordinal: u64,
    /// Number of missing ordinals.
    pub ordinals: u64,
    /// Number of missing elements, if known.
    pub elements: Option<u64>,
    /// Bytes of their payloads, if known.
    pub bytes: Option<u64>,
    /// Earliest time at which an element may be missing.
    #[serde(serialize_with = "time")]
    pub first: Timestamp,
    /// Latest time at which an element may be missing.
    #[serde(serialize_with = "time")]
    pub last: Timestamp,
    /// Name of the cause.
    pub cause: &'static str,
}

impl<'a> Gap<'a> {
    /// The shape of a gap of this stream.
    pub fn new(stream: &'a str, ordinal: u64, gap: &format::Gap) -> Self {
        Self {
            stream,
            ordinal,
            ordinals: gap.ordinals,
            elements: gap.elements,
            bytes: gap.bytes,
            first: gap.first,
            last: gap.last,
            cause: gap.cause.name(),
        }
    }
}
