//! Repetition of requests that failed by the network or a busy site, with growing pauses.

use holdfast_remote::{RemoteError, RemoteErrorKind};
use std::time::Duration;

/// Failures without progress in between after which a command gives up: the pauses are half a minute together.
const MOST_FAILURES: u32 = 8;

/// First pause; each further one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(250);

/// Count of the failures since the last progress.
#[derive(Debug, Default)]
pub(super) struct Retry {
    failures: u32,
}

impl Retry {
    /// Forgets earlier failures: bytes have passed.
    pub(super) fn progress(&mut self) {
        self.failures = 0;
    }

    /// Waits before a repetition, or returns the error if a repetition would not help.
    pub(super) async fn pause(&mut self, error: RemoteError) -> Result<(), RemoteError> {
        let passes = matches!(
            error.kind,
            RemoteErrorKind::Unreachable
                | RemoteErrorKind::TimedOut
                | RemoteErrorKind::Locked
                | RemoteErrorKind::Busy
                | RemoteErrorKind::ServerFailed
        );
        self.failures += 1;
        if !passes || self.failures >= MOST_FAILURES {
            return Err(error);
        }
        let pause = FIRST_PAUSE * 2_u32.pow(self.failures - 1);
        tokio::time::sleep(error.retry_after.unwrap_or(pause)).await;
        Ok(())
    }

    /// Waits like [`pause`](Self::pause), also after an append that the site did not take as it was.
    pub(super) async fn pause_append(&mut self, mut error: RemoteError) -> Result<(), RemoteError> {
        if matches!(error.kind, RemoteErrorKind::OffsetMismatch | RemoteErrorKind::ChecksumMismatch) {
            error.kind = RemoteErrorKind::Locked;
        }
        self.pause(error).await
    }
}
