//! Error of operations on uploads, and blocking work that ends in it.

use crate::database::DatabaseError;
use crate::error::reason;
use std::io::{self, ErrorKind};

/// Reason why an operation on an upload failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StoreError {
    /// No space is left on the server's disk.
    Full,
    /// The number of open uploads is at its limit.
    TooMany,
    /// The operating system or the database reports another error.
    Failed(String),
}

impl From<DatabaseError> for StoreError {
    fn from(error: DatabaseError) -> Self {
        match error {
            DatabaseError::Full => Self::Full,
            error => Self::Failed(error.to_string()),
        }
    }
}

impl From<io::Error> for StoreError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Self::Full,
            _ => Self::Failed(reason(&error)),
        }
    }
}

/// Starts blocking work on a thread for it, at once; the future awaits its result.
pub(crate) fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> impl Future<Output = Result<T, StoreError>> {
    let started = tokio::task::spawn_blocking(work);
    async {
        let done = started.await;
        done.map_err(|error| StoreError::Failed(format!("the work on it ended early: {error}")))
    }
}
