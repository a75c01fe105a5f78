//! Errors of the reader.

use holdfast_protocol::ProtocolError;
use std::path::PathBuf;

/// The reason that a ring could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReaderError {
    /// The ring or its recorder could not be reached.
    #[error(transparent)]
    Protocol(#[from] ProtocolError),
    /// The device could not be opened for direct reading.
    #[error(transparent)]
    Device(#[from] holdfast_media::OpenError),
    /// The journal or the slot table could not be recovered.
    #[error(transparent)]
    Recover(#[from] holdfast_ring::RecoverError),
    /// Read buffers could not be allocated.
    #[error(transparent)]
    Memory(#[from] holdfast_media::PoolError),
    /// A recorder took over the ring during a direct read, and does not answer.
    #[error("cannot read {}: a recorder took over the ring and does not answer; retry when it runs", path.display())]
    TakenOver {
        /// The path of the ring.
        path: PathBuf,
    },
}
