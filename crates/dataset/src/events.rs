//! Events of a stream, gaps and notes, as JSON messages of two channels.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use holdfast_base::{Ordinal, Timestamp};
use holdfast_format::{Cause, Flags, Gap};
use serde::{Deserialize, Serialize};

/// Topic of the gaps' channel.
pub(crate) const GAPS: &str = "holdfast/gaps";

/// Topic of the notes' channel.
pub(crate) const NOTES: &str = "holdfast/notes";

/// Gap: elements that were lost before they were recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct GapMessage {
    pub(crate) stream: String,
    /// First ordinal that was lost.
    ordinal: u64,
    /// Number of ordinals that it skips.
    ordinals: u64,
    /// Number of lost elements; absent if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    elements: Option<u64>,
    /// Number of lost bytes; absent if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    first_ns: i64,
    last_ns: i64,
    cause: String,
    note: u64,
}

impl GapMessage {
    pub(crate) fn new(stream: &str, ordinal: Ordinal, gap: &Gap) -> Self {
        Self {
            stream: stream.to_owned(),
            ordinal: ordinal.0,
            ordinals: gap.ordinals,
            elements: gap.elements,
            bytes: gap.bytes,
            first_ns: gap.first.0,
            last_ns: gap.last.0,
            cause: gap.cause.name().to_owned(),
            note: gap.note,
        }
    }

    /// The gap; `None` where its cause is not known to this release.
    pub(crate) fn gap(&self) -> Option<(Ordinal, Gap)> {
        let cause = (1..=u8::MAX).map_while(Cause::from_byte).find(|cause| cause.name() == self.cause)?;
        let gap = Gap {
            ordinals: self.ordinals,
            elements: self.elements,
            bytes: self.bytes,
            first: Timestamp(self.first_ns),
            last: Timestamp(self.last_ns),
            cause,
            note: self.note,
        };
        Some((Ordinal(self.ordinal), gap))
    }
}

/// Note: metadata of a stream that belongs to no element.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NoteMessage {
    pub(crate) stream: String,
    pub(crate) arrival_ns: i64,
    pub(crate) tag: u16,
    flags: u8,
    /// Its bytes, in base64.
    meta: String,
}

impl NoteMessage {
    pub(crate) fn new(stream: &str, arrival: Timestamp, tag: u16, flags: Flags, meta: &[u8]) -> Self {
        let meta = STANDARD.encode(meta);
        Self { stream: stream.to_owned(), arrival_ns: arrival.0, tag, flags: flags.0, meta }
    }

    pub(crate) fn flags(&self) -> Flags {
        Flags(self.flags)
    }

    /// Its bytes; `None` where they are no base64.
    pub(crate) fn meta(&self) -> Option<Vec<u8>> {
        STANDARD.decode(&self.meta).ok()
    }
}
