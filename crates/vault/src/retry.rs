//! Retries with exponential back-off, and object-store errors as I/O errors.

use object_store::Error;
use std::future::Future;
use std::io::{self, ErrorKind};
use std::time::Duration;

/// Attempts of one request, of which each may itself retry inside the client.
const ATTEMPTS: u32 = 5;

/// Delay after the first failed attempt; it doubles with each.
const FIRST_DELAY: Duration = Duration::from_millis(50);

/// Repeats an idempotent request until it succeeds, fails for good, or has failed too often.
pub(crate) async fn retry<T, F>(mut request: impl FnMut() -> F) -> io::Result<T>
where
    F: Future<Output = io::Result<T>>,
{
    let mut delay = FIRST_DELAY;
    for _ in 1..ATTEMPTS {
        match request().await {
            Err(error) if is_transient(error.kind()) => tokio::time::sleep(delay).await,
            done => return done,
        }
        delay *= 2;
    }
    request().await
}

fn is_transient(kind: ErrorKind) -> bool {
    !matches!(
        kind,
        ErrorKind::NotFound
            | ErrorKind::AlreadyExists
            | ErrorKind::PermissionDenied
            | ErrorKind::InvalidInput
            | ErrorKind::Unsupported
    )
}

/// Converts an error of an object store. Its text is kept, in one line.
#[expect(clippy::needless_pass_by_value, reason = "as `map_err` wants it")]
pub(crate) fn io_error(error: Error) -> io::Error {
    let kind = match &error {
        Error::NotFound { .. } => ErrorKind::NotFound,
        Error::AlreadyExists { .. } | Error::Precondition { .. } => ErrorKind::AlreadyExists,
        Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => ErrorKind::PermissionDenied,
        Error::InvalidPath { .. } => ErrorKind::InvalidInput,
        Error::NotSupported { .. } | Error::NotImplemented { .. } => ErrorKind::Unsupported,
        _ => ErrorKind::Other,
    };
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(&error);
    while let Some(inner) = cause {
        let said = inner.to_string();
        if !text.contains(&said) {
            text = format!("{text}: {said}");
        }
        cause = inner.source();
    }
    io::Error::new(kind, text.split_whitespace().collect::<Vec<_>>().join(" "))
}
