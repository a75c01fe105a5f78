//! Errors of the file system: an error number for programs, and a message for people.

use holdfast_remote::{RemoteError, RemoteErrorKind};
use rustix::io::Errno;

/// Error of an operation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct FsError {
    /// Error number that a program gets.
    pub errno: Errno,
    /// Message of the form "cannot VERB OBJECT: REASON; REMEDY".
    pub message: String,
}

impl FsError {
    pub(crate) fn new(errno: Errno, message: impl Into<String>) -> Self {
        Self { errno, message: message.into() }
    }
}

/// Error number of each kind of a site's error.
fn errno(kind: RemoteErrorKind) -> Errno {
    match kind {
        RemoteErrorKind::NotFound | RemoteErrorKind::Gone => Errno::NOENT,
        RemoteErrorKind::Unauthorized | RemoteErrorKind::Forbidden | RemoteErrorKind::Untrusted => {
            Errno::ACCESS
        }
        RemoteErrorKind::Taken => Errno::EXIST,
        RemoteErrorKind::Full => Errno::NOSPC,
        RemoteErrorKind::TooLarge => Errno::FBIG,
        RemoteErrorKind::Unsupported => Errno::OPNOTSUPP,
        RemoteErrorKind::Refused => Errno::INVAL,
        RemoteErrorKind::TimedOut => Errno::TIMEDOUT,
        RemoteErrorKind::Unreachable
        | RemoteErrorKind::OffsetMismatch
        | RemoteErrorKind::Locked
        | RemoteErrorKind::ChecksumMismatch
        | RemoteErrorKind::Busy
        | RemoteErrorKind::ServerFailed => Errno::IO,
    }
}

impl From<RemoteError> for FsError {
    fn from(error: RemoteError) -> Self {
        Self { errno: errno(error.kind), message: error.message }
    }
}
