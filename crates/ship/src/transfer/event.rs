//! Events that a transfer takes: observations of its file, and answers to its actions.

use super::Observation;

/// Event of a transfer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event<A> {
    /// The file was observed.
    Observed(Observation),
    /// The run has ended: the file is complete as it was observed last.
    Ended,
    /// The file was deleted.
    Gone,
    /// The file has another path.
    Renamed,
    /// The archive has made an upload at this address.
    Created(A),
    /// The whole file was sent as an upload.
    SentWhole {
        /// Address of the upload.
        address: A,
        /// BLAKE3 of the bytes that were sent.
        root: blake3::Hash,
        /// Number of bytes that were sent.
        size: u64,
    },
    /// The archive's bytes were compared with the file.
    Resumed(Resumption),
    /// A segment is durable at the archive.
    Acknowledged {
        /// Number of the action.
        generation: u32,
        /// Offset of the segment.
        start: u64,
    },
    /// A segment was not taken.
    SegmentFailed {
        /// Number of the action.
        generation: u32,
        /// Offset of the segment.
        start: u64,
        /// Kind of the failure.
        failure: Failure,
    },
    /// The file was compared with the bytes that were sent.
    Compared(Comparison),
    /// The upload has its length.
    Sealed,
    /// The archive has stored the upload; `None` if it tells no hash.
    Stored {
        /// BLAKE3 of the stored contents.
        root: Option<blake3::Hash>,
    },
    /// The upload is removed.
    Retired,
    /// The action has failed for this reason.
    Failed(Failure),
}

/// Result of comparing an upload with its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resumption {
    /// The archive's bytes are the file's first ones; more can follow.
    Matches {
        /// Number of bytes at the archive.
        offset: u64,
        /// Length that the upload was made with.
        length: Option<u64>,
    },
    /// The file no longer begins with the archive's bytes.
    Differs,
    /// The upload has its length, and its bytes are the whole file.
    Sealed {
        /// BLAKE3 of the file.
        root: blake3::Hash,
        /// Size of the file in bytes.
        size: u64,
        /// Observation of the file before it was hashed.
        observed: Observation,
    },
    /// The upload has its length, but the file has other contents by now.
    Settled,
    /// The archive does not have the upload.
    Lost,
    /// The file is gone, so that only the archive has the bytes.
    Unreadable {
        /// Number of bytes at the archive.
        offset: u64,
    },
}

/// Result of comparing a file with the bytes that were sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// The file has more bytes, as this observation of the open file shows.
    Grown(Observation),
    /// The file has other bytes.
    Changed,
    /// The file is equal to the bytes that were sent.
    Equal {
        /// BLAKE3 of the file.
        root: blake3::Hash,
        /// Observation of the open file before it was hashed.
        observed: Observation,
    },
    /// The file cannot be read any more, because it is gone.
    Unreadable {
        /// BLAKE3 of the bytes that were sent.
        root: blake3::Hash,
    },
}

/// Kind of a failure, as far as a transfer decides on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Another attempt may succeed: link, load, space, lock.
    Transient,
    /// The bytes arrived damaged, or the archive found its own copy damaged.
    Damaged,
    /// The upload has another offset.
    OffsetMismatch {
        /// Number of bytes at the archive.
        offset: u64,
    },
    /// The archive does not have the upload any more.
    Lost,
    /// The archive will never take this file under this name.
    Refused,
}
