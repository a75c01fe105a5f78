//! Error of a dataset that cannot be written or read.

use std::io;

/// Error of a dataset that cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum DatasetError {
    /// Failure of the storage below.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The file is no MCAP file, or its end is missing.
    #[error("this is not a complete MCAP file: {0}")]
    NotMcap(String),
    /// The file is an MCAP file without a manifest.
    #[error("this MCAP file is no dataset: it has no manifest")]
    NoManifest,
    /// A later release wrote the file.
    #[error("this dataset has format version {0}, which a later release of Holdfast wrote")]
    Version(u32),
    /// Bytes that do not have their checksum, or make no sense.
    #[error("{place} is damaged: {cause}")]
    Damaged {
        /// Name of the chunk or attachment.
        place: String,
        /// The check that failed.
        cause: String,
    },
    /// A stream whose schema cannot be understood.
    #[error("cannot read the schema of stream `{stream}`: {cause}")]
    Schema {
        /// Name of the stream.
        stream: String,
        /// The error in its text.
        cause: String,
    },
    /// The index could not be written or read.
    #[error("index of stream `{stream}`: {cause}")]
    Index {
        /// Name of the stream.
        stream: String,
        /// Cause of the failure.
        cause: String,
    },
    /// The file has no directory of a packed folder.
    #[error("this MCAP file is no packed folder: `holdfast dataset pack` writes one")]
    NotPacked,
    /// An entry of a packed folder that has no contents.
    #[error("`{path}` is {what}, not a file")]
    NoFile {
        /// Path of the entry.
        path: String,
        /// Kind of the entry.
        what: String,
    },
    /// The file is no ROS bag, or one of another version.
    #[error("this is no ROS 1 bag: {0}")]
    NoBag(String),
    /// A limit of the format.
    #[error("{0}")]
    Limit(String),
}

impl DatasetError {
    /// Damage at a place.
    pub(crate) fn damaged(place: impl Into<String>, cause: &(impl ToString + ?Sized)) -> Self {
        Self::Damaged { place: place.into(), cause: cause.to_string() }
    }
}
