//! Creation of uploads: whole files, partial uploads and concatenations, with the first bytes in the same request.

use super::tus_headers::{
    UPLOAD_CHECKSUM, UPLOAD_CONCAT, UPLOAD_DEFER_LENGTH, UPLOAD_EXPIRES, UPLOAD_LENGTH, UPLOAD_METADATA,
    UPLOAD_OFFSET, add_hash, check_content_type, check_version, has_body, number, text,
};
use super::tus_patch::{busy, check_size, receive_buffered, refusal};
use super::{check_rights, find_upload};
use crate::access::Access;
use crate::app::App;
use crate::authorization::Verb;
use crate::body_buffer::{BodyBuffer, Coding};
use crate::checksum::Checksum;
use crate::live_upload::{LiveUpload, UploadGuard};
use crate::metadata;
use crate::object_path::{ObjectPath, ProjectName};
use crate::problem::{Problem, ProblemKind};
use crate::receiver::{ReceiveError, drain, receive};
use crate::timing::Timing;
use crate::token::Scope;
use crate::upload_id::UploadId;
use crate::upload_record::{UploadKind, UploadRecord, UploadState};
use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use http::header::{CONTENT_LENGTH, LOCATION};
use http::{HeaderMap, HeaderValue, StatusCode};
use std::sync::Arc;

/// Parts of one concatenation: what fits into the head of a request.
const MOST_PARTS: usize = 2000;

/// Collection of the objects whose client sent no name.
const UNNAMED: &str = "unnamed";

/// Creation of an upload, optionally with its first bytes.
#[utoipa::path(post, path = "/files/", tag = "uploads",
    params(("Tus-Resumable" = String, Header, description = "1.0.0"),
        ("Upload-Length" = Option<u64>, Header, description = "Length of the upload in bytes"),
        ("Upload-Defer-Length" = Option<u64>, Header, description = "1 for an upload of unknown length"),
        ("Upload-Metadata" = Option<String>, Header, description = "Pairs of key and Base64 value: project, path, filename or name, attribute.NAME"),
        ("Upload-Concat" = Option<String>, Header, description = "'partial', or 'final;' and the addresses of the parts"),
        ("Upload-Checksum" = Option<String>, Header, description = "Algorithm (sha1, sha256, blake3) and Base64 digest"),
        ("Content-Encoding" = Option<String>, Header, description = "zstd for a body of at most 8 MiB; the checksum is \
            that of the decoded bytes")),
    request_body(content = Vec<u8>, content_type = "application/offset+octet-stream"),
    responses((status = 201, description = "The header Location has the upload's address; Server-Timing has \
            the times of a body"),
        (status = 400, description = "A header is wrong"), (status = 413, description = "Too long"),
        (status = 415, description = "The content type or encoding is not supported"),
        (status = 503, description = "The number of uploads or the memory for bodies is at its limit"),
        (status = 460, description = "The checksum does not match"), (status = 507, description = "The disk is full")))]
pub(crate) async fn create(
    State(app): State<Arc<App>>,
    Extension(access): Extension<Access>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let created = prepare(&app, &access, &headers).await;
    let Created { upload, checksum, buffer } = match created {
        Ok(created) => created,
        Err(problem) => {
            drain(&app.uploads, body).await;
            return Err(problem);
        }
    };
    let is_empty = !has_body(&headers)?;
    let guard = if is_empty { None } else { upload.try_lock() };
    let Some(guard) = guard.filter(UploadGuard::is_receiving) else {
        return Ok(created_answer(&upload.record(), !is_empty, None));
    };
    let (record, received) = match buffer {
        None => receive(&app.uploads, guard, body, checksum).await,
        Some(buffer) => receive_buffered(&app, guard, buffer, body, checksum).await,
    };
    let timing = received.as_ref().ok().copied();
    if let Err(error) = received {
        // The client learns the address only by a success. If bytes were kept, the upload can go on from there.
        if matches!(error, ReceiveError::Mismatch | ReceiveError::TooLong) || record.offset == 0 {
            if let Some(guard) = upload.try_lock() {
                let _ = app.uploads.remove(&guard).await;
            }
            return Err(refusal(&record, error));
        }
    }
    Ok(created_answer(&record, true, timing))
}

fn created_answer(record: &UploadRecord, with_offset: bool, timing: Option<Timing>) -> Response {
    let mut headers = HeaderMap::new();
    if let Ok(address) = HeaderValue::try_from(record.id.address()) {
        headers.insert(LOCATION, address);
    }
    if record.state == UploadState::Receiving
        && let Ok(date) = HeaderValue::try_from(record.expires.http_date())
    {
        headers.insert(UPLOAD_EXPIRES, date);
    }
    add_hash(&mut headers, record);
    if let Some(timing) = timing {
        timing.add_to(&mut headers);
    }
    if with_offset {
        headers.insert(UPLOAD_OFFSET, HeaderValue::from(record.offset));
    }
    (StatusCode::CREATED, headers).into_response()
}

fn bad(reason: impl std::fmt::Display) -> Problem {
    Problem::new(ProblemKind::BadRequest, format_args!("cannot create the upload: {reason}"))
}

/// Upload that was made, and the preparations for its first bytes.
struct Created {
    upload: Arc<LiveUpload>,
    checksum: Option<Checksum>,
    /// Memory for a body that must be decoded.
    buffer: Option<BodyBuffer>,
}

/// Checks a creation and makes its upload, without its first bytes.
async fn prepare(app: &App, access: &Access, headers: &HeaderMap) -> Result<Created, Problem> {
    check_version(headers)?;
    let header = text(headers, &UPLOAD_METADATA)?.unwrap_or_default();
    let pairs = metadata::parse(header).map_err(bad)?;
    let id = UploadId::random();
    let id = id.map_err(|_| Problem::internal("create the upload", "no random bytes are available"))?;
    let concat = text(headers, &UPLOAD_CONCAT)?;
    let named = metadata::text(&pairs, "project").map_err(bad)?;
    let named = named.map(ProjectName::parse).transpose();
    let named = named.map_err(|error| Problem::name("create the upload", &error))?;
    let project = named.or_else(|| access.own_project().cloned());
    let (kind, project, path, length) = match concat {
        Some("partial") => (UploadKind::Partial, project, None, length(headers)?),
        Some(list) if list.starts_with("final;") => {
            let project = project.unwrap_or_else(ProjectName::fallback);
            access.require(&[Scope::Write], Some(&project))?;
            let (kind, length) = concatenation(app, access, headers, list).await?;
            (kind, Some(project), Some(path(&pairs, &id)?), Some(length))
        }
        None => {
            let project = project.unwrap_or_else(ProjectName::fallback);
            (UploadKind::Whole, Some(project), Some(path(&pairs, &id)?), length(headers)?)
        }
        Some(_) => return Err(bad("Upload-Concat is neither 'partial' nor 'final;'; correct it")),
    };
    access.require(&[Scope::Write], project.as_ref())?;
    check_rights(app, access, Verb::Upload, project.as_ref(), path.as_ref()).await?;
    if length.is_some_and(|length| length > app.limits.upload) {
        let limit = app.limits.upload;
        let detail = format_args!("cannot create the upload: it has more than {limit} bytes; split the file");
        return Err(Problem::new(ProblemKind::TooLarge, detail));
    }
    let checksum = text(headers, &UPLOAD_CHECKSUM)?.map(Checksum::parse).transpose()?;
    let is_final = matches!(kind, UploadKind::Final { .. });
    let state = match length {
        _ if is_final => UploadState::Assembling,
        Some(0) => UploadState::Complete,
        _ => UploadState::Receiving,
    };
    let (created, expires) = (app.clock.now(), app.uploads.expiry());
    let metadata = header.to_owned();
    let record = UploadRecord {
        id,
        kind,
        project,
        path,
        metadata,
        length,
        offset: 0,
        state,
        blake3: None,
        created,
        expires,
    };
    let mut buffer = None;
    if has_body(headers)? {
        if is_final {
            return Err(bad("a concatenation takes no body; leave it out"));
        }
        check_content_type(headers)?;
        let announced = number(headers, &CONTENT_LENGTH)?;
        match Coding::of(headers)? {
            Coding::Identity => check_size(app, &record, announced.unwrap_or(0))?,
            coding @ Coding::Zstd => {
                let reserved = BodyBuffer::reserve(&app.uploads, coding, announced);
                buffer = Some(reserved.ok_or_else(busy)?);
            }
        }
    }
    let upload = app.uploads.create(record).await;
    let upload = upload.map_err(|error| Problem::store("create the upload", &error))?;
    Ok(Created { upload, checksum, buffer })
}

/// Length of a new upload; `None` if it is deferred.
fn length(headers: &HeaderMap) -> Result<Option<u64>, Problem> {
    let length = number(headers, &UPLOAD_LENGTH)?;
    match (length, text(headers, &UPLOAD_DEFER_LENGTH)?) {
        (Some(length), None) => Ok(Some(length)),
        (None, Some("1")) => Ok(None),
        (None, None) => Err(bad("it has no length; send Upload-Length, or 'Upload-Defer-Length: 1'")),
        (Some(_), Some(_)) => Err(bad("it has a length and defers it; send only one of both headers")),
        (None, Some(_)) => Err(bad("Upload-Defer-Length is not 1; send '1', or Upload-Length")),
    }
}

/// Path of the object: from the key `path`, else from `filename` or `name`. Many clients send none of them: their object is
/// named by the upload.
fn path(pairs: &[(String, Vec<u8>)], id: &UploadId) -> Result<ObjectPath, Problem> {
    let mut path = format!("{UNNAMED}/{id}");
    for key in ["path", "filename", "name"] {
        let value = metadata::text(pairs, key).map_err(bad)?;
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            value.clone_into(&mut path);
            break;
        }
    }
    ObjectPath::parse(&path).map_err(|error| Problem::name("create the upload", &error))
}

/// Parts and length of a concatenation. All parts must be complete partial uploads that the request may use.
async fn concatenation(
    app: &App,
    access: &Access,
    headers: &HeaderMap,
    list: &str,
) -> Result<(UploadKind, u64), Problem> {
    if headers.contains_key(UPLOAD_LENGTH) || headers.contains_key(UPLOAD_DEFER_LENGTH) {
        return Err(bad("a concatenation has the length of its parts; leave Upload-Length out"));
    }
    let mut parts = Vec::new();
    let mut length: u64 = 0;
    for address in list.trim_start_matches("final;").split_whitespace() {
        let id = address.rsplit_once("/files/").map_or("", |(_, id)| id);
        let (_, part) = find_upload(app, access, id, &[Scope::Write]).await?;
        if part.kind != UploadKind::Partial {
            return Err(bad(format_args!(
                "its part {} is not a partial upload; list partial uploads",
                part.id
            )));
        }
        if part.state != UploadState::Complete {
            let detail =
                format_args!("cannot create the upload: its part {} is not complete; send its rest", part.id);
            return Err(Problem::new(ProblemKind::PartUnfinished, detail));
        }
        length = length.saturating_add(part.offset);
        parts.push(part.id);
    }
    if parts.is_empty() || parts.len() > MOST_PARTS {
        return Err(bad(format_args!("it has {} parts; list 1 to {MOST_PARTS}", parts.len())));
    }
    Ok((UploadKind::Final { header: list.to_owned(), parts }, length))
}
