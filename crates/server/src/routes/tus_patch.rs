//! Continuation of an upload: PATCH at the offset, and PATCH ahead of it.
//!
//! A plain request locks its upload, streams its body and answers. A segment ahead (`tus_ahead`) waits for its turn instead, so
//! that parallel connections can carry one upload.

use super::find_upload;
use super::tus_ahead::{AHEAD, Segment, ahead, check_distance};
use super::tus_headers::{
    UPLOAD_CHECKSUM, UPLOAD_EXPIRES, UPLOAD_LENGTH, UPLOAD_OFFSET, add_hash, check_content_type,
    check_version, has_body, number, text,
};
use crate::access::Access;
use crate::app::App;
use crate::body_buffer::{BodyBuffer, Coding};
use crate::checksum::Checksum;
use crate::live_upload::UploadGuard;
use crate::problem::{Problem, ProblemKind};
use crate::receiver::{ReceiveError, append, drain, receive};
use crate::timing::Timing;
use crate::token::Scope;
use crate::upload_record::{UploadKind, UploadRecord, UploadState};
use axum::Extension;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Response};
use http::header::{CONNECTION, CONTENT_LENGTH, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, StatusCode};
use std::sync::Arc;

/// Continuation of an upload: appends the body at the offset.
#[utoipa::path(patch, path = "/files/{id}", tag = "uploads",
    params(("id" = String, Path, description = "Identity of the upload, 32 hexadecimal digits"),
        ("Tus-Resumable" = String, Header, description = "1.0.0"),
        ("Upload-Offset" = u64, Header, description = "Offset of the body: that of the upload, or above it with Holdfast-Ahead"),
        ("Upload-Length" = Option<u64>, Header, description = "Length in bytes, once for an upload of unknown length"),
        ("Upload-Checksum" = Option<String>, Header, description = "Algorithm (sha1, sha256, blake3) and Base64 digest"),
        ("Holdfast-Ahead" = Option<u64>, Header, description = "1 for a body of at most 8 MiB with a checksum, up to 64 MiB \
            above the upload's offset; it waits until the offset reaches it"),
        ("Content-Encoding" = Option<String>, Header, description = "zstd for a body of at most 8 MiB; offset and checksum \
            are those of the decoded bytes")),
    request_body(content = Vec<u8>, content_type = "application/offset+octet-stream"),
    responses((status = 204, description = "The body is durable; the header Upload-Offset has the new offset, \
            Server-Timing the times, and Holdfast-Blake3 the hash of a stored upload"),
        (status = 409, description = "The offset is not the upload's"), (status = 413, description = "Too long"),
        (status = 415, description = "The content type or encoding is not supported"),
        (status = 423, description = "Another request changes the upload"),
        (status = 460, description = "The checksum does not match"),
        (status = 503, description = "The memory for bodies is at its limit"), (status = 507, description = "The disk is full")))]
pub(crate) async fn patch(
    State(app): State<Arc<App>>,
    Extension(access): Extension<Access>,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let prepared = match prepare(&app, &access, &id, &headers).await {
        Ok(prepared) => prepared,
        Err(problem) => {
            drain(&app.uploads, body).await;
            return Err(problem);
        }
    };
    let checksum = prepared.checksum;
    let (record, received) = match prepared.work {
        Work::Nothing(record) => return Ok(accepted(&record, None)),
        Work::Stream(guard) => receive(&app.uploads, guard, body, checksum).await,
        Work::Buffer(guard, buffer) => receive_buffered(&app, guard, buffer, body, checksum).await,
        Work::Ahead(segment, buffer) => return ahead(&app, segment, buffer, body, checksum).await,
    };
    let timing = received.map_err(|error| refusal(&record, error))?;
    Ok(accepted(&record, has_body(&headers)?.then_some(timing)))
}

/// PATCH request after its checks.
struct Prepared {
    work: Work,
    checksum: Option<Checksum>,
}

/// Work that a PATCH request leaves after its checks.
enum Work {
    /// The body must be appended to this locked upload while it arrives.
    Stream(UploadGuard),
    /// The body must be collected and appended to this locked upload.
    Buffer(UploadGuard, BodyBuffer),
    /// The body must be collected, and appended when its turn comes.
    Ahead(Segment, BodyBuffer),
    /// The upload is complete, and the request repeats the last one.
    Nothing(Box<UploadRecord>),
}

/// Checks a PATCH request before its body is read, and locks its upload unless it is a segment ahead.
async fn prepare(app: &App, access: &Access, id: &str, headers: &HeaderMap) -> Result<Prepared, Problem> {
    check_version(headers)?;
    check_content_type(headers)?;
    let coding = Coding::of(headers)?;
    let (upload, record) = find_upload(app, access, id, &[Scope::Write]).await?;
    if matches!(record.kind, UploadKind::Final { .. }) {
        let detail = "cannot append to the upload: it is a concatenation; send the bytes to a partial upload";
        return Err(Problem::new(ProblemKind::FinalUpload, detail));
    }
    let offset = number(headers, &UPLOAD_OFFSET)?.ok_or_else(|| {
        let detail =
            "cannot append to the upload: the header Upload-Offset is missing; send the offset of HEAD";
        Problem::new(ProblemKind::BadRequest, detail)
    })?;
    let checksum = text(headers, &UPLOAD_CHECKSUM)?.map(Checksum::parse).transpose()?;
    let announced = number(headers, &CONTENT_LENGTH)?;
    let is_ahead = headers.get(AHEAD).is_some_and(|value| value == "1");
    if is_ahead && checksum.is_none() {
        let detail = "cannot append to the upload: a segment ahead has no Upload-Checksum; send one";
        return Err(Problem::new(ProblemKind::BadRequest, detail));
    }
    if record.state != UploadState::Receiving {
        // The archive may be taking the upload, and holds its lock.
        check_offset(&record, offset)?;
        check_size(app, &record, announced.unwrap_or(0))?;
        return Ok(Prepared { work: Work::Nothing(Box::new(record)), checksum });
    }
    let length = number(headers, &UPLOAD_LENGTH)?;
    if is_ahead {
        check_distance(app, &record, offset, announced.filter(|_| coding == Coding::Identity))?;
        if let Some(buffer) = BodyBuffer::reserve(&app.uploads, coding, announced) {
            let segment = Segment { upload, offset, length };
            return Ok(Prepared { work: Work::Ahead(segment, buffer), checksum });
        }
        // Waiting segments may occupy all memory, so that the segment that they wait for must do without.
        if offset != record.offset || coding != Coding::Identity {
            return Err(busy());
        }
    }
    let guard = upload.try_lock().ok_or_else(|| locked("append to"))?;
    check_offset(&guard.record(), offset)?;
    if !guard.is_receiving() {
        return Err(locked("append to"));
    }
    let buffer = match coding {
        Coding::Identity => None,
        Coding::Zstd => Some(BodyBuffer::reserve(&app.uploads, coding, announced).ok_or_else(busy)?),
    };
    if let Some(length) = length {
        set_length(app, &guard, length).await?;
    }
    let record = guard.record();
    if coding == Coding::Identity {
        check_size(app, &record, announced.unwrap_or(0))?;
    }
    let work = match (&record.state, buffer) {
        (UploadState::Receiving, None) => Work::Stream(guard),
        (UploadState::Receiving, Some(buffer)) => Work::Buffer(guard, buffer),
        // The length was the only thing that was missing.
        _ => Work::Nothing(Box::new(record)),
    };
    Ok(Prepared { work, checksum })
}

/// Collects a body and appends it to a locked upload.
pub(crate) async fn receive_buffered(
    app: &App,
    guard: UploadGuard,
    buffer: BodyBuffer,
    body: Body,
    checksum: Option<Checksum>,
) -> (UploadRecord, Result<Timing, ReceiveError>) {
    match buffer.collect(&app.uploads, body, checksum).await {
        Ok(body) => append(&app.uploads, guard, body).await,
        Err(error) => (guard.record(), Err(error)),
    }
}

pub(crate) fn check_offset(record: &UploadRecord, offset: u64) -> Result<(), Problem> {
    if record.offset == offset { Ok(()) } else { Err(mismatch(record, offset)) }
}

pub(crate) fn mismatch(record: &UploadRecord, offset: u64) -> Problem {
    let detail = format_args!(
        "cannot append to the upload: it has {} bytes, the request begins at {offset}; ask HEAD for the offset",
        record.offset
    );
    Problem::new(ProblemKind::OffsetMismatch, detail).with(UPLOAD_OFFSET, record.offset)
}

/// Sets the length of an upload that was created without one.
pub(crate) async fn set_length(app: &App, guard: &UploadGuard, length: u64) -> Result<(), Problem> {
    let record = guard.record();
    let refuse = |kind, reason, remedy| {
        Err(Problem::new(
            kind,
            format_args!("cannot set the upload's length to {length}: {reason}; {remedy}"),
        ))
    };
    match record.length {
        Some(known) if known == length => return Ok(()),
        Some(_) => {
            return refuse(ProblemKind::BadRequest, "it has another length", "leave Upload-Length out");
        }
        None => {}
    }
    if length < record.offset {
        return refuse(ProblemKind::BadRequest, "more bytes are stored already", "start a new upload");
    }
    if length > app.limits.upload {
        return refuse(ProblemKind::TooLarge, "it is above the limit Tus-Max-Size", "split the file");
    }
    let change = |record: &mut UploadRecord| {
        record.length = Some(length);
        record.state = record.state_at(record.offset);
    };
    app.uploads.change(guard, change).await.map_err(|error| Problem::store("set the upload's length", &error))
}

/// Refuses a body that is longer than its limits before any byte of it is read.
pub(crate) fn check_size(app: &App, record: &UploadRecord, announced: u64) -> Result<(), Problem> {
    let limit = record.room(app.limits.upload).min(app.limits.request_body);
    if announced > limit { Err(too_large(record, announced, limit)) } else { Ok(()) }
}

pub(crate) fn too_large(record: &UploadRecord, announced: u64, limit: u64) -> Problem {
    let detail = format_args!(
        "cannot append {announced} bytes to the upload: at most {limit} bytes are allowed; send fewer"
    );
    Problem::new(ProblemKind::TooLarge, detail).with(UPLOAD_OFFSET, record.offset)
}

/// Problem of an upload that another request holds.
pub(crate) fn locked(verb: &str) -> Problem {
    let detail = format_args!("cannot {verb} the upload: another request is using it; try again soon");
    Problem::new(ProblemKind::Locked, detail).with(RETRY_AFTER, 1)
}

/// Problem of a body for which no memory is left.
pub(crate) fn busy() -> Problem {
    let detail =
        "cannot take the body: the memory for bodies is in use; send it again soon, or at the offset";
    Problem::new(ProblemKind::Busy, detail).with(RETRY_AFTER, 1)
}

/// Answer to a body that was appended wholly.
pub(crate) fn accepted(record: &UploadRecord, timing: Option<Timing>) -> Response {
    let mut headers = HeaderMap::new();
    headers.insert(UPLOAD_OFFSET, HeaderValue::from(record.offset));
    if record.state == UploadState::Receiving
        && let Ok(date) = HeaderValue::try_from(record.expires.http_date())
    {
        headers.insert(UPLOAD_EXPIRES, date);
    }
    add_hash(&mut headers, record);
    if let Some(timing) = timing {
        timing.add_to(&mut headers);
    }
    (StatusCode::NO_CONTENT, headers).into_response()
}

/// Problem of a body that was not appended wholly, with the offset that was reached.
pub(crate) fn refusal(record: &UploadRecord, error: ReceiveError) -> Problem {
    let (kind, reason, remedy) = match error {
        ReceiveError::Store(error) => {
            return Problem::store("append to the upload", &error).with(UPLOAD_OFFSET, record.offset);
        }
        ReceiveError::Cut => {
            (ProblemKind::BadRequest, "the body was cut", "ask HEAD for the offset and resume")
        }
        ReceiveError::Idle => {
            (ProblemKind::BodyTimeout, "the body stopped", "ask HEAD for the offset and resume")
        }
        ReceiveError::TooLong => {
            (ProblemKind::TooLarge, "the body is longer than the upload", "send fewer bytes")
        }
        ReceiveError::Oversized => {
            (ProblemKind::TooLarge, "a body in memory has at most 8 MiB", "send shorter segments")
        }
        ReceiveError::Undecodable => {
            (ProblemKind::BadRequest, "the body is no whole zstd data of small windows", "send it plain")
        }
        ReceiveError::Mismatch => {
            (ProblemKind::ChecksumMismatch, "the body does not have its checksum", "send it again")
        }
    };
    let problem = Problem::new(kind, format_args!("cannot append to the upload: {reason}; {remedy}"));
    let problem = problem.with(UPLOAD_OFFSET, record.offset);
    if kind == ProblemKind::BodyTimeout { problem.with(CONNECTION, "close") } else { problem }
}
