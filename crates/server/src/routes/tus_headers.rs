//! Headers of the tus protocol: names, parsing, and the headers that describe an upload.

use crate::contents::{STATE, VERSION};
use crate::problem::{Problem, ProblemKind};
use crate::upload_record::{UploadKind, UploadRecord, UploadState};
use http::header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, TRANSFER_ENCODING};
use http::{HeaderMap, HeaderName, HeaderValue};

/// Version of the protocol.
pub(crate) const TUS_VERSION: &str = "1.0.0";

/// Content type of bodies with bytes of an upload.
const OFFSET_STREAM: &str = "application/offset+octet-stream";

pub(crate) const TUS_RESUMABLE: HeaderName = HeaderName::from_static("tus-resumable");
pub(crate) const TUS_VERSIONS: HeaderName = HeaderName::from_static("tus-version");
pub(crate) const UPLOAD_OFFSET: HeaderName = HeaderName::from_static("upload-offset");
pub(crate) const UPLOAD_LENGTH: HeaderName = HeaderName::from_static("upload-length");
pub(crate) const UPLOAD_DEFER_LENGTH: HeaderName = HeaderName::from_static("upload-defer-length");
pub(crate) const UPLOAD_METADATA: HeaderName = HeaderName::from_static("upload-metadata");
pub(crate) const UPLOAD_CONCAT: HeaderName = HeaderName::from_static("upload-concat");
pub(crate) const UPLOAD_CHECKSUM: HeaderName = HeaderName::from_static("upload-checksum");
pub(crate) const UPLOAD_EXPIRES: HeaderName = HeaderName::from_static("upload-expires");

/// Bytes of a concatenation that are copied already. `Upload-Offset` must be absent until it is complete.
pub(crate) const PROGRESS: HeaderName = HeaderName::from_static("holdfast-progress");

/// Reason for which an upload has failed; answers to HEAD have no body.
pub(crate) const REASON: HeaderName = HeaderName::from_static("holdfast-reason");

/// BLAKE3 of the whole contents in hexadecimal digits, of stored uploads only.
const BLAKE3: HeaderName = HeaderName::from_static("holdfast-blake3");

fn bad(reason: std::fmt::Arguments<'_>, remedy: &str) -> Problem {
    Problem::new(ProblemKind::BadRequest, format_args!("cannot read the request: {reason}; {remedy}"))
}

/// Requires the protocol version that this server speaks.
pub(crate) fn check_version(headers: &HeaderMap) -> Result<(), Problem> {
    if headers.get(TUS_RESUMABLE).is_some_and(|version| version == TUS_VERSION) {
        return Ok(());
    }
    let detail = format_args!(
        "cannot do the request: the header Tus-Resumable is missing or has another version; send '{TUS_VERSION}'"
    );
    Err(Problem::new(ProblemKind::WrongVersion, detail).with(TUS_VERSIONS, TUS_VERSION))
}

/// Text of a header; `None` if it is absent.
pub(crate) fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, Problem> {
    let mut values = headers.get_all(name).iter();
    let value = values.next().map(HeaderValue::to_str).transpose();
    match (value, values.next()) {
        (Ok(value), None) => Ok(value),
        _ => Err(bad(format_args!("the header {name} is not one ASCII text"), "send it once, in ASCII")),
    }
}

/// Non-negative number of a header; `None` if it is absent.
pub(crate) fn number(headers: &HeaderMap, name: &HeaderName) -> Result<Option<u64>, Problem> {
    let Some(text) = text(headers, name)? else { return Ok(None) };
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse().ok().filter(|number: &u64| is_number && i64::try_from(*number).is_ok()) {
        Some(number) => Ok(Some(number)),
        None => Err(bad(format_args!("the header {name} is not a number below 2^63"), "send decimal digits")),
    }
}

/// True when the request announces a body with bytes.
pub(crate) fn has_body(headers: &HeaderMap) -> Result<bool, Problem> {
    Ok(headers.contains_key(TRANSFER_ENCODING) || number(headers, &CONTENT_LENGTH)?.unwrap_or(0) > 0)
}

/// Requires the content type of upload bytes.
pub(crate) fn check_content_type(headers: &HeaderMap) -> Result<(), Problem> {
    if headers
        .get(CONTENT_TYPE)
        .is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(OFFSET_STREAM.as_bytes()))
    {
        return Ok(());
    }
    let detail = format_args!("cannot read the body: its content type is another; send '{OFFSET_STREAM}'");
    Err(Problem::new(ProblemKind::WrongMediaType, detail))
}

/// Adds the hash of the contents, if the upload is stored.
pub(crate) fn add_hash(headers: &mut HeaderMap, record: &UploadRecord) {
    if let Some(hash) = record.blake3
        && let Ok(value) = HeaderValue::from_str(&hash.to_hex())
    {
        headers.insert(BLAKE3, value);
    }
}

/// Headers that describe an upload in answers to HEAD.
pub(crate) fn description(record: &UploadRecord) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let mut add = |name: HeaderName, value: &str| {
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.insert(name, value);
        }
    };
    add(CACHE_CONTROL, "no-store");
    add(STATE, record.state.name());
    match record.length {
        Some(length) => add(UPLOAD_LENGTH, &length.to_string()),
        None => add(UPLOAD_DEFER_LENGTH, "1"),
    }
    if !record.metadata.is_empty() {
        add(UPLOAD_METADATA, &record.metadata);
    }
    match &record.kind {
        UploadKind::Whole => {}
        UploadKind::Partial => add(UPLOAD_CONCAT, "partial"),
        UploadKind::Final { header, .. } => add(UPLOAD_CONCAT, header),
    }
    match &record.state {
        UploadState::Assembling => add(PROGRESS, &record.offset.to_string()),
        _ => add(UPLOAD_OFFSET, &record.offset.to_string()),
    }
    match &record.state {
        UploadState::Receiving => add(UPLOAD_EXPIRES, &record.expires.http_date()),
        UploadState::Stored(version) => add(VERSION, version.as_str()),
        _ => {}
    }
    add_hash(&mut headers, record);
    headers
}
