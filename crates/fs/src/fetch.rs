//! Requests to a site that are tried again while it is away, up to the patience of the file system.

use crate::error::FsError;
use bytes::{Bytes, BytesMut};
use holdfast_remote::{ByteRange, ReadRequest, RemoteError, RemoteErrorKind, Site};
use rustix::io::Errno;
use std::ops::Range;
use std::time::{Duration, Instant};
use tokio::time::sleep;

/// First pause before another attempt; each further one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(50);

/// Longest pause: a site that is back is soon noticed.
const LAST_PAUSE: Duration = Duration::from_secs(1);

/// True for errors that may go away by themselves.
fn is_transient(kind: RemoteErrorKind) -> bool {
    matches!(
        kind,
        RemoteErrorKind::Unreachable
            | RemoteErrorKind::TimedOut
            | RemoteErrorKind::Busy
            | RemoteErrorKind::Locked
            | RemoteErrorKind::ServerFailed
            | RemoteErrorKind::ChecksumMismatch
    )
}

/// Pauses between attempts, until a time is over.
#[derive(Debug)]
pub(crate) struct Patience {
    end: Instant,
    pause: Duration,
}

impl Patience {
    pub(crate) fn new(time: Duration) -> Self {
        Self { end: Instant::now() + time, pause: FIRST_PAUSE }
    }

    /// Waits before the next attempt. Returns the error if it is final, or the time is over.
    pub(crate) async fn wait(&mut self, error: RemoteError) -> Result<(), FsError> {
        if !is_transient(error.kind) || Instant::now() + self.pause > self.end {
            return Err(error.into());
        }
        sleep(self.pause).await;
        self.pause = (self.pause * 2).min(LAST_PAUSE);
        Ok(())
    }
}

/// Makes a request, again and again while the site is away.
pub(crate) async fn persist<T, F: Future<Output = Result<T, RemoteError>>>(
    patience: Duration,
    request: impl Fn() -> F,
) -> Result<T, FsError> {
    let mut patience = Patience::new(patience);
    loop {
        match request().await {
            Ok(done) => return Ok(done),
            Err(error) => patience.wait(error).await?,
        }
    }
}

/// Version of an object that is read.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub(crate) site: Site,
    pub(crate) request: ReadRequest,
    pub(crate) patience: Duration,
}

impl Source {
    /// Reads a range, which must not be empty.
    pub(crate) async fn fetch(&self, range: &Range<u64>) -> Result<Bytes, FsError> {
        let bytes = persist(self.patience, || self.attempt(range)).await?;
        if bytes.len() as u64 == range.end - range.start {
            return Ok(bytes);
        }
        let path = &self.request.path;
        let message = format!(
            "cannot read `{path}`: the site gave {} bytes of {} at offset {}; read it again",
            bytes.len(),
            range.end - range.start,
            range.start
        );
        Err(FsError::new(Errno::IO, message))
    }

    async fn attempt(&self, range: &Range<u64>) -> Result<Bytes, RemoteError> {
        let part = ByteRange { first: range.start, last: Some(range.end - 1) };
        let mut reader = self.site.read(&ReadRequest { range: Some(part), ..self.request.clone() }).await?;
        let mut bytes = BytesMut::with_capacity((range.end - range.start) as usize);
        while let Some(piece) = reader.chunk().await? {
            bytes.extend_from_slice(&piece);
        }
        Ok(bytes.freeze())
    }
}
