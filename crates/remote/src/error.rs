//! Errors of requests, by kinds that a caller decides on. Reading of problem bodies is in `problem`.

use reqwest::Url;
use std::error::Error;
use std::io;
use std::time::Duration;

/// Kind of an error, which decides between trying again, resuming, starting over and giving up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RemoteErrorKind {
    /// No connection exists, or it broke; try again.
    Unreachable,
    /// The server was silent for too long; try again.
    TimedOut,
    /// The server does not accept the token.
    Unauthorized,
    /// The certificate of the server is not trusted.
    Untrusted,
    /// The token does not allow the request.
    Forbidden,
    /// The address does not exist.
    NotFound,
    /// Another entry has the name.
    Taken,
    /// The upload was terminated or has expired; start a new one.
    Gone,
    /// The upload has another offset; resume from there.
    OffsetMismatch,
    /// Another request is changing the upload; try again.
    Locked,
    /// The received bytes do not have their checksum; send them again.
    ChecksumMismatch,
    /// The disk of the server is full; wait.
    Full,
    /// The server has too many requests or uploads; wait.
    Busy,
    /// The body or the upload is longer than the server allows.
    TooLarge,
    /// The server lacks a feature that the request needs.
    Unsupported,
    /// The server, or this client, refuses the request; its repetition would fail too.
    Refused,
    /// The server failed or answered nonsense; try again later.
    ServerFailed,
}

/// Error of a request to a server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct RemoteError {
    /// Kind that decides about the next step.
    pub kind: RemoteErrorKind,
    /// Message of the form "cannot VERB OBJECT: REASON; REMEDY".
    pub message: String,
    /// Pause that the server asks for.
    pub retry_after: Option<Duration>,
    /// Offset of the upload in bytes, if the server told it.
    pub offset: Option<u64>,
    /// Place of the refused entry of a request with several, counted from 0.
    pub entry: Option<usize>,
}

impl RemoteError {
    pub(crate) fn new(kind: RemoteErrorKind, message: String) -> Self {
        Self { kind, message, retry_after: None, offset: None, entry: None }
    }

    /// Error of a request that would fail again.
    pub fn refused(message: impl Into<String>) -> Self {
        Self::new(RemoteErrorKind::Refused, message.into())
    }

    /// Error of an answer that does not follow its protocol.
    pub(crate) fn nonsense(action: &str, url: &Url, reason: impl std::fmt::Display) -> Self {
        let message = format!("cannot {action} {url}: {reason}; check that the address is that of a server");
        Self::new(RemoteErrorKind::ServerFailed, message)
    }

    /// Error of this machine while it took an answer.
    pub(crate) fn local(action: &str, url: &Url, error: &io::Error) -> Self {
        Self::new(
            RemoteErrorKind::Refused,
            format!("cannot {action} the answer of {url}: {error}; free some space"),
        )
    }

    /// Error of a feature that the server does not announce.
    pub(crate) fn unsupported(action: &str, url: &Url, feature: &str) -> Self {
        let message = format!("cannot {action} {url}: the server has no {feature}; use a server that has it");
        Self::new(RemoteErrorKind::Unsupported, message)
    }

    /// Error of a server that was silent for too long.
    pub(crate) fn timed_out(action: &str, url: &Url, idle: Duration) -> Self {
        let seconds = idle.as_secs_f64();
        let message =
            format!("cannot {action} {url}: nothing was transferred for {seconds} s; check the network");
        Self::new(RemoteErrorKind::TimedOut, message)
    }

    /// Error of the HTTP library, which never reached an answer of the server.
    pub(crate) fn transport(action: &str, url: &Url, error: &reqwest::Error) -> Self {
        let (root, is_certificate) = root_cause(error);
        let (kind, remedy) = if is_certificate {
            (RemoteErrorKind::Untrusted, "compare the fingerprint with that of the server")
        } else if error.is_builder() {
            (RemoteErrorKind::Refused, "correct the request")
        } else if error.is_timeout() && !error.is_connect() {
            (RemoteErrorKind::TimedOut, "check the network")
        } else {
            (RemoteErrorKind::Unreachable, "check the address and the network")
        };
        Self::new(kind, format!("cannot {action} {url}: {root}; {remedy}"))
    }
}

/// Text of the innermost error, and true when a certificate was refused.
fn root_cause(error: &reqwest::Error) -> (String, bool) {
    let mut cause: &(dyn Error + 'static) = error;
    loop {
        if let Some(rustls::Error::InvalidCertificate(reason)) = cause.downcast_ref() {
            return (format!("the server's certificate is not trusted ({reason})"), true);
        }
        // An I/O error hides the error that it wraps from `source`.
        let inner = cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        let inner = inner.map(|inner| inner as &(dyn Error + 'static));
        match inner.or_else(|| cause.source()) {
            Some(inner) => cause = inner,
            None => break,
        }
    }
    let text = cause.to_string();
    (text.split(" (os error").next().unwrap_or_default().to_owned(), false)
}
