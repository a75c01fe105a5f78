//! Errors of sources, each with its remedy.

use super::SourceEnd;
use crate::mcap;
use crate::packet::af_packet::CaptureError;
use crate::packet::filter::FilterError;
use crate::packet::{PreambleError, ReadError, ScanError};
use std::io;

/// Why a source cannot begin, or ended early.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// An option that means nothing for this kind of source.
    #[error("{option} cannot be used with {name}: {why}")]
    Option {
        /// The source as given.
        name: String,
        /// The option.
        option: &'static str,
        /// Why not, and what else.
        why: &'static str,
    },
    /// It could not be opened.
    #[error("{name}: cannot {what}: {error}{hint}")]
    Open {
        /// The source as given.
        name: String,
        /// What was tried.
        what: &'static str,
        /// What the system said.
        error: io::Error,
        /// What to do, if we know.
        hint: &'static str,
    },
    /// It is something that cannot be read.
    #[error("{name}: {what}")]
    Unfit {
        /// The source as given.
        name: String,
        /// What it is, and what to do.
        what: String,
    },
    /// Reading failed in the middle.
    #[error("{name}: reading failed at byte {at}: {error}")]
    Read {
        /// The source as given.
        name: String,
        /// Bytes read before.
        at: u64,
        /// What the system said.
        error: io::Error,
    },
    /// The input ended inside an element. All elements before it are recorded, and it is counted as lost.
    #[error("{name}: the last element is truncated: {have} of {} bytes at byte {at}", of(*.want))]
    Cut {
        /// The source as given.
        name: String,
        /// Bytes of it that came.
        have: u64,
        /// Bytes it should have had.
        want: Option<u64>,
        /// Where it began in the input.
        at: u64,
    },
    /// A capture file that is no capture file, or too rich.
    #[error("{name}: {error}")]
    Scan {
        /// The source as given.
        name: String,
        /// What is wrong.
        error: ScanError,
    },
    /// A capture file that breaks in the middle. All packets before are recorded.
    #[error("{name}: {error}")]
    Packets {
        /// The source as given.
        name: String,
        /// What is wrong, and at which byte.
        error: ReadError,
    },
    /// An MCAP file that is none, or breaks in the middle: all messages before are recorded.
    #[error("{name}: {error}")]
    Messages {
        /// The source as given.
        name: String,
        /// What is wrong, and at which byte.
        error: mcap::McapError,
    },
    /// A filter that cannot be used.
    #[error("{name}: {error}")]
    Filter {
        /// The source as given.
        name: String,
        /// What is wrong.
        error: FilterError,
    },
    /// An interface that packets cannot be taken from.
    #[error("{name}: {error}")]
    Capture {
        /// The source as given.
        name: String,
        /// What is wrong.
        error: CaptureError,
    },
    /// The preamble of an interface could not be made.
    #[error("{name}: {error}")]
    Preamble {
        /// The source as given.
        name: String,
        /// What is wrong.
        error: PreambleError,
    },
    /// A mistake in the program: the source ended, the recorder goes on.
    #[error("{name}: internal error of the source: {message}")]
    Panicked {
        /// The source as given.
        name: String,
        /// What it said.
        message: String,
    },
}

fn of(want: Option<u64>) -> String {
    want.map_or_else(|| "an unknown number of".to_owned(), |want| want.to_string())
}

impl SourceError {
    /// Whether it is what was asked for that makes no sense, rather than what is there.
    pub fn is_wrong_use(&self) -> bool {
        matches!(
            self,
            Self::Option { .. } | Self::Filter { .. } | Self::Capture { error: CaptureError::Filter(_), .. }
        )
    }

    /// Whether everything that arrived is recorded or counted in a gap all the same: the input was at fault, and
    /// its damage is known.
    pub fn is_accounted_for(&self) -> bool {
        matches!(self, Self::Cut { .. })
    }
}

/// Why a source's loop ended: what makes `?` work where the capture thread may be gone.
pub(super) enum Fault {
    /// The capture thread is gone: no error of the source.
    Gone,
    Failed(SourceError),
}

impl From<crate::Closed> for Fault {
    fn from(_: crate::Closed) -> Self {
        Self::Gone
    }
}

impl From<SourceError> for Fault {
    fn from(error: SourceError) -> Self {
        Self::Failed(error)
    }
}

impl Fault {
    /// What a source's `run` returns.
    pub(super) fn settle(end: Result<SourceEnd, Self>) -> Result<SourceEnd, SourceError> {
        match end {
            Ok(end) => Ok(end),
            Err(Self::Gone) => Ok(SourceEnd::CaptureGone),
            Err(Self::Failed(error)) => Err(error),
        }
    }
}
