//! Answers that carry contents: whole, in part, or following an upload until it is complete.
//!
//! The whole contents of a stored version are hashed while they are sent. If the hash differs, the connection is cut before the
//! last piece, so that no client takes damaged contents for whole ones. A range is not verified: the archive keeps one hash for
//! the whole version. A client that must be sure reads the whole, or compares the blocks of its upload.

use crate::app::App;
use crate::archive::{OpenVersion, ReadAt, StoredVersion};
use crate::error::reason;
use crate::log::{Event, Log};
use crate::metrics::Metrics;
use crate::object_path::ProjectName;
use crate::problem::{Problem, ProblemKind};
use crate::range::Range;
use crate::upload_record::{UploadRecord, UploadState};
use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http::header::{
    ACCEPT_RANGES, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG, IF_NONE_MATCH, IF_RANGE,
    RANGE, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use std::io;
use std::sync::Arc;
use tokio::sync::watch;

/// Bytes that are read and sent together.
const PIECE: u64 = 256 << 10;

/// Last byte of a range whose end is not known yet: the greatest integer of JSON, in the way of RFC 8673.
const UNKNOWN_END: u64 = (1 << 53) - 2;

/// Header with the state of the contents.
pub(crate) const STATE: HeaderName = HeaderName::from_static("holdfast-state");

/// Header with the version of the contents in the archive.
pub(crate) const VERSION: HeaderName = HeaderName::from_static("holdfast-version");

/// Contents that a request reads.
pub(crate) enum Contents {
    /// Upload that the archive does not have yet.
    Upload { file: Box<dyn ReadAt>, updates: watch::Receiver<UploadRecord> },
    /// Version in the archive, of an object in this project.
    Stored(ProjectName, OpenVersion),
}

/// Answer to a request for contents. With `follow` the answer ends when the upload is complete.
pub(crate) fn respond(
    contents: Contents,
    headers: &HeaderMap,
    follow: bool,
    app: &App,
) -> Result<Response, Problem> {
    match contents {
        Contents::Stored(project, version) => stored(project, version, headers, app),
        Contents::Upload { file, updates } => {
            let record = updates.borrow().clone();
            let stream = |at, end| Stream {
                file: Arc::from(file),
                at,
                end,
                updates: Some(updates),
                verification: None,
                metrics: Arc::clone(&app.metrics),
            };
            let is_growing = record.state.is_growing();
            let (start, end, total) = if follow && is_growing {
                let start = match requested(headers, None) {
                    Range::From { first, .. } => first,
                    Range::Whole => 0,
                    Range::Last(_) => record.offset,
                };
                (start, record.length, record.length)
            } else {
                let range = requested(headers, None).within(record.offset);
                let (start, end) = range.ok_or_else(|| unsatisfiable(record.offset))?;
                (start, Some(end), record.length)
            };
            let is_part = headers.contains_key(RANGE) && requested(headers, None) != Range::Whole;
            if end.is_some_and(|end| start > end) {
                return Err(unsatisfiable(record.offset));
            }
            let mut response = answer(is_part, (start, end), total, stream(start, end));
            response.headers_mut().insert(STATE, HeaderValue::from_static(record.state.name()));
            response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
            Ok(response)
        }
    }
}

fn stored(
    project: ProjectName,
    version: OpenVersion,
    headers: &HeaderMap,
    app: &App,
) -> Result<Response, Problem> {
    let OpenVersion { stored, contents } = version;
    let etag = format!("\"{}\"", stored.blake3.to_hex());
    if headers.get(IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == etag.as_bytes()) {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        describe(&mut response, &stored, &etag);
        return Ok(response);
    }
    let range = requested(headers, Some(&etag));
    let (start, end) = range.within(stored.size).ok_or_else(|| unsatisfiable(stored.size))?;
    let verification = Verification {
        hasher: blake3::Hasher::new(),
        project,
        stored: stored.clone(),
        log: app.log.clone(),
        metrics: Arc::clone(&app.metrics),
    };
    let is_whole = (start, end) == (0, stored.size);
    if is_whole && stored.size == 0 && !verification.passes() {
        // There is no piece that could be withheld.
        return Err(Problem::internal("read the object", "its contents are lost"));
    }
    let stream = Stream {
        file: Arc::from(contents),
        at: start,
        end: Some(end),
        updates: None,
        verification: is_whole.then(|| Box::new(verification)),
        metrics: Arc::clone(&app.metrics),
    };
    let mut response = answer(range != Range::Whole, (start, Some(end)), Some(stored.size), stream);
    describe(&mut response, &stored, &etag);
    Ok(response)
}

fn describe(response: &mut Response, stored: &StoredVersion, etag: &str) {
    let headers = response.headers_mut();
    headers.insert(STATE, HeaderValue::from_static("stored"));
    for (name, value) in [(ETAG, etag), (VERSION, stored.version.as_str())] {
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.insert(name, value);
        }
    }
}

/// Range of a request. A condition `If-Range` holds only for the entity tag of stored contents.
fn requested(headers: &HeaderMap, etag: Option<&str>) -> Range {
    let condition = headers.get(IF_RANGE).map(HeaderValue::as_bytes);
    if condition.is_some_and(|condition| etag.map(str::as_bytes) != Some(condition)) {
        return Range::Whole;
    }
    headers.get(RANGE).and_then(|range| range.to_str().ok()).map_or(Range::Whole, Range::parse)
}

fn unsatisfiable(size: u64) -> Problem {
    let detail =
        format_args!("cannot read the range: the contents have {size} bytes; ask for a range within them");
    Problem::new(ProblemKind::RangeUnsatisfiable, detail).with(CONTENT_RANGE, format_args!("bytes */{size}"))
}

fn answer(is_part: bool, (start, end): (u64, Option<u64>), total: Option<u64>, stream: Stream) -> Response {
    let mut response = Response::new(stream.body());
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    if let Some(end) = end {
        headers.insert(CONTENT_LENGTH, HeaderValue::from(end - start));
    }
    if is_part {
        let last = end.map_or(UNKNOWN_END, |end| end.saturating_sub(1));
        let total = total.map_or("*".to_owned(), |total| total.to_string());
        if let Ok(value) = HeaderValue::try_from(format!("bytes {start}-{last}/{total}")) {
            headers.insert(CONTENT_RANGE, value);
        }
        *response.status_mut() = StatusCode::PARTIAL_CONTENT;
    }
    response
}

/// Hash of the contents of a stored version that were read so far.
struct Verification {
    hasher: blake3::Hasher,
    project: ProjectName,
    stored: StoredVersion,
    log: Log,
    metrics: Arc<Metrics>,
}

impl Verification {
    /// True when the hash is that of the version. Reports a difference.
    fn passes(&self) -> bool {
        let found = self.hasher.finalize();
        if found == self.stored.blake3 {
            return true;
        }
        self.metrics.damaged_reads.add(1);
        self.log.event(&Event::DamagedRead {
            project: self.project.to_string(),
            path: self.stored.path.to_string(),
            version: self.stored.version.to_string(),
            found: found.to_hex().to_string(),
        });
        false
    }
}

/// Position in contents that are being sent.
struct Stream {
    file: Arc<dyn ReadAt>,
    at: u64,
    /// Offset behind the last byte; `None` until the length of a followed upload is known.
    end: Option<u64>,
    updates: Option<watch::Receiver<UploadRecord>>,
    /// Present while whole contents of a stored version are sent.
    verification: Option<Box<Verification>>,
    metrics: Arc<Metrics>,
}

impl Stream {
    fn body(self) -> Body {
        Body::from_stream(futures::stream::try_unfold(self, |mut stream| async {
            Ok::<_, io::Error>(stream.next().await?.map(|piece| (piece, stream)))
        }))
    }

    /// Next piece; waits for a growing upload, and fails if the upload will never be complete.
    async fn next(&mut self) -> io::Result<Option<Bytes>> {
        loop {
            let (available, state) = match &mut self.updates {
                None => (u64::MAX, None),
                Some(updates) => {
                    let record = updates.borrow_and_update();
                    (record.offset, Some(record.state.clone()))
                }
            };
            let limit = self.end.map_or(available, |end| end.min(available));
            if self.at < limit {
                return self.read((limit - self.at).min(PIECE)).await.map(Some);
            }
            if self.end == Some(self.at) {
                return Ok(None);
            }
            match (&mut self.updates, state) {
                (Some(updates), Some(state)) if state.is_growing() => {
                    updates.changed().await.map_err(|_| io::Error::other("the server stops"))?;
                }
                (_, Some(UploadState::Failed(_) | UploadState::Removed)) => {
                    return Err(io::Error::other("the upload was given up"));
                }
                _ => return Ok(None),
            }
        }
    }

    async fn read(&mut self, length: u64) -> io::Result<Bytes> {
        let (file, at, end) = (Arc::clone(&self.file), self.at, self.end);
        let mut verification = self.verification.take();
        let read = move || {
            let mut piece = vec![0; length as usize];
            let read = file.read_at(&mut piece, at)?;
            piece.truncate(read);
            if let Some(verification) = &mut verification {
                verification.hasher.update(&piece);
                let is_end = piece.is_empty() || end == Some(at + read as u64);
                if is_end && !verification.passes() {
                    return Err(io::Error::new(io::ErrorKind::InvalidData, "the contents are damaged"));
                }
            }
            Ok::<_, io::Error>((Bytes::from(piece), verification))
        };
        let (piece, verification) = tokio::task::spawn_blocking(read).await.map_err(io::Error::other)??;
        if piece.is_empty() {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the contents end early"));
        }
        self.verification = verification;
        self.at += piece.len() as u64;
        self.metrics.sent_bytes.add(piece.len() as u64);
        Ok(piece)
    }
}

/// Problem of an operating system's error while contents are opened.
pub(crate) fn unreadable(error: &io::Error) -> Problem {
    Problem::internal("read the contents", reason(error))
}
