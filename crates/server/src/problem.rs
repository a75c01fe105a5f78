//! Errors of requests as problem bodies (RFC 9457). The set of problems is closed; each has one status and one name.

use crate::object_path::NameError;
use crate::store_error::StoreError;
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};
use serde::Serialize;
use std::fmt;
use utoipa::ToSchema;

/// Content type of problem bodies.
const PROBLEM_JSON: &str = "application/problem+json";

macro_rules! problems {
    ($($kind:ident = $status:literal, $name:literal, $title:literal;)*) => {
        /// Kind of a problem: status, name and title.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum ProblemKind {
            $(#[doc = concat!("Problem with this title: ", $title)] $kind,)*
        }

        impl ProblemKind {
            /// All kinds in the order of their declaration.
            pub(crate) const ALL: &[Self] = &[$(Self::$kind,)*];

            /// Status, name and title of this kind.
            pub(crate) fn entry(self) -> (u16, &'static str, &'static str) {
                match self {
                    $(Self::$kind => ($status, $name, $title),)*
                }
            }
        }
    };
}

problems! {
    BadRequest = 400, "bad-request", "A header, parameter or body cannot be understood";
    BadName = 400, "bad-name", "A project's name or a path is not allowed";
    UnknownChecksum = 400, "unknown-checksum", "The checksum algorithm is not supported";
    Unauthorized = 401, "unauthorized", "The request needs a valid token";
    Forbidden = 403, "forbidden", "The token does not allow the request";
    FinalUpload = 403, "final-upload", "A final upload takes no bytes";
    NotFound = 404, "not-found", "Nothing has this address";
    MethodNotAllowed = 405, "method-not-allowed", "The address does not support the method";
    BodyTimeout = 408, "body-timeout", "The body of the request stopped";
    OffsetMismatch = 409, "offset-mismatch", "The offset is not the upload's offset";
    PartUnfinished = 409, "part-unfinished", "A part of the concatenation is not complete";
    AlreadyComplete = 409, "already-complete", "The upload is complete and keeps its path";
    AccountExists = 409, "account-exists", "Another account or group has the name";
    NameTaken = 409, "name-taken", "Another entry has the new path";
    NotComplete = 409, "not-complete", "The upload has failed and cannot be read or continued";
    Unacknowledged = 409, "unacknowledged", "Another site does not know of the deletion yet";
    Gone = 410, "gone", "The upload was terminated or has expired";
    Compacted = 410, "compacted", "The log does not reach back so far";
    WrongVersion = 412, "wrong-version", "The tus version is missing or not supported";
    TooLarge = 413, "too-large", "The upload or the body is too large";
    WrongMediaType = 415, "wrong-media-type", "The content type or encoding is not supported";
    RangeUnsatisfiable = 416, "range-unsatisfiable", "The range lies behind the available bytes";
    Locked = 423, "upload-locked", "Another request is changing the upload";
    TooManyRequests = 429, "too-many-requests", "The request rate is too high";
    ChecksumMismatch = 460, "checksum-mismatch", "The checksum does not match the body";
    Internal = 500, "internal", "The server cannot do the request";
    Busy = 503, "busy", "The memory for request bodies is at its limit";
    TooManyConnections = 503, "too-many-connections", "The number of connections is at its limit";
    TooManyUploads = 503, "too-many-uploads", "The number of open uploads is at its limit";
    DiskFull = 507, "disk-full", "The disk of the server is full";
}

/// Error that answers a request.
#[derive(Debug)]
pub(crate) struct Problem {
    kind: ProblemKind,
    detail: String,
    entry: Option<usize>,
    headers: Vec<(HeaderName, HeaderValue)>,
}

/// JSON body of every error (RFC 9457).
#[derive(Serialize, ToSchema)]
#[schema(as = Problem)]
pub(crate) struct ProblemBody {
    /// Address of the problem's kind, `urn:holdfast:problem:NAME`.
    r#type: String,
    /// Description of the kind, the same for all its problems.
    title: &'static str,
    /// HTTP status of the answer.
    status: u16,
    /// Message of the form "cannot VERB OBJECT: REASON; REMEDY".
    detail: String,
    /// Place of the refused entry of a request with several, counted from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    entry: Option<usize>,
}

impl Problem {
    /// Problem with a message of the form "cannot VERB OBJECT: REASON; REMEDY".
    pub(crate) fn new(kind: ProblemKind, detail: impl fmt::Display) -> Self {
        Self { kind, detail: detail.to_string(), entry: None, headers: Vec::new() }
    }

    /// Adds a header to the answer.
    #[must_use]
    pub(crate) fn with(mut self, name: impl Into<HeaderName>, value: impl fmt::Display) -> Self {
        if let Ok(value) = HeaderValue::try_from(value.to_string()) {
            self.headers.push((name.into(), value));
        }
        self
    }

    /// Adds the place of the refused entry of a request with several.
    #[must_use]
    pub(crate) fn at_entry(mut self, place: usize) -> Self {
        self.entry = Some(place);
        self
    }

    /// Problem of a name or path that is not allowed.
    pub(crate) fn name(action: &str, error: &NameError) -> Self {
        Self::new(ProblemKind::BadName, format_args!("cannot {action}: {error}"))
    }

    /// Problem of an address without contents.
    pub(crate) fn not_found(object: impl fmt::Display) -> Self {
        Self::new(
            ProblemKind::NotFound,
            format_args!("cannot find {object}: it does not exist; check the address"),
        )
    }

    /// Problem of the store while it did `action`.
    pub(crate) fn store(action: &str, error: &StoreError) -> Self {
        match error {
            StoreError::Full => Self::new(
                ProblemKind::DiskFull,
                format_args!("cannot {action}: the disk of the server is full; make room, then resume"),
            )
            .with(RETRY_AFTER, 60),
            StoreError::TooMany => Self::new(
                ProblemKind::TooManyUploads,
                format_args!("cannot {action}: too many uploads are open; finish or terminate some"),
            )
            .with(RETRY_AFTER, 60),
            StoreError::Failed(reason) => Self::internal(action, reason),
        }
    }

    /// Problem that the server's administrator must solve.
    pub(crate) fn internal(action: &str, reason: impl fmt::Display) -> Self {
        let detail = format_args!("cannot {action}: {reason}; try again, or ask the server's administrator");
        Self::new(ProblemKind::Internal, detail)
    }

    /// Kind of this problem.
    pub(crate) fn kind(&self) -> ProblemKind {
        self.kind
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let (status, name, title) = self.kind.entry();
        let body = ProblemBody {
            r#type: format!("urn:holdfast:problem:{name}"),
            title,
            status,
            detail: self.detail,
            entry: self.entry,
        };
        let text = serde_json::to_vec(&body).unwrap_or_default();
        let mut response = Response::new(Body::from(text));
        *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        self.headers.into_iter().for_each(|(name, value)| drop(response.headers_mut().insert(name, value)));
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(PROBLEM_JSON));
        // Read by the layer that counts rejected requests.
        response.extensions_mut().insert(self.kind);
        response
    }
}
