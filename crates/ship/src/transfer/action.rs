//! Actions that a transfer asks its driver for.

use super::Delivery;
use crate::link::Request;

/// Part of a file that is sent in one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Offset of the first byte.
    pub start: u64,
    /// Number of its bytes.
    pub length: u64,
    /// True when segments before this one may still be on their way.
    pub is_ahead: bool,
    /// True when the segment was sent before: the driver sends the bytes that it has kept.
    pub is_again: bool,
}

/// Action of a transfer; each is answered by one event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action<A> {
    /// Make an upload; record its address durably before `Created`.
    Create {
        /// Length in bytes, for archives that must know it at first.
        length: Option<u64>,
    },
    /// Read the whole file and send it as one upload; answer with `SentWhole`.
    SendWhole {
        /// Size of the file when it was observed.
        size: u64,
    },
    /// Ask the archive for its bytes, compare them with the file by hashes; answer with `Resumed`.
    Resume {
        /// Address of the upload.
        address: A,
    },
    /// Send a segment; answer with `Acknowledged` or `SegmentFailed`.
    Send {
        /// Address of the upload.
        address: A,
        /// Number to repeat in the answer.
        generation: u32,
        /// Part of the file to send.
        segment: Segment,
    },
    /// Hash the file and compare it with the hash of the bytes that were sent; answer with `Compared`.
    Compare {
        /// Number of bytes that were sent.
        size: u64,
    },
    /// Compare the file with contents that the archive has; answer with `Compared`.
    Check {
        /// Contents at the archive.
        delivery: Delivery,
    },
    /// Give the upload its length; answer with `Sealed`.
    Seal {
        /// Address of the upload.
        address: A,
        /// Number of its bytes.
        length: u64,
        /// True when the upload was made with its length, so that nothing is left to tell.
        has_length: bool,
    },
    /// Wait until the archive has stored the upload; answer with `Stored`.
    Await {
        /// Address of the upload.
        address: A,
        /// Contents that the archive must have.
        delivery: Delivery,
    },
    /// Remove the upload; answer with `Retired`.
    Retire {
        /// Address of the upload.
        address: A,
    },
    /// Give the upload the file's new path; answer with `Transfer::renamed` or `Failed`.
    Rename {
        /// Address of the upload.
        address: A,
    },
}

impl<A> Action<A> {
    /// Kind of the request to the archive.
    pub fn request(&self) -> Request {
        match self {
            Self::Resume { .. } | Self::Await { .. } | Self::Compare { .. } | Self::Check { .. } => {
                Request::Question
            }
            Self::Create { .. } | Self::Retire { .. } | Self::Rename { .. } => Request::Change,
            Self::SendWhole { .. } | Self::Send { .. } | Self::Seal { .. } => Request::Bytes,
        }
    }

    /// True for actions that need the file alone, not the archive.
    pub fn is_local(&self) -> bool {
        matches!(self, Self::Compare { .. } | Self::Check { .. })
    }
}
