//! Errors of decoding a frame.

use holdfast_format::FormatError;

/// The reason that bytes are not a message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// A field is missing, malformed or unknown.
    #[error(transparent)]
    Field(#[from] FormatError),
    /// The frame exceeds its limit.
    #[error("frame of {bytes} bytes exceeds the limit of {limit} bytes")]
    Large {
        /// Bytes of the frame by its head, head included.
        bytes: u64,
        /// The limit.
        limit: usize,
    },
    /// The type of the frame is unknown.
    #[error("unknown frame type {0}")]
    Kind(u16),
}
