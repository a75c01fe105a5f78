//! Reads of objects: whole, in part, or following an upload while it grows.

use crate::create::TUS_RESUMABLE;
use crate::error::{RemoteError, RemoteErrorKind};
use crate::problem::number;
use crate::progress::UploadState;
use crate::send::Call;
use crate::site::Site;
use crate::upload_address::UploadAddress;
use bytes::Bytes;
use futures::Stream;
use reqwest::header::{CONTENT_LENGTH, CONTENT_RANGE, ETAG, HeaderMap, RANGE};
use reqwest::{Method, Response, StatusCode, Url};
use std::time::Duration;
use tokio::time::timeout;

const ACTION: &str = "read";

const READ_BACK: &str = "read back";

/// Range of bytes of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteRange {
    /// Offset of the first byte.
    pub first: u64,
    /// Offset of the last byte; `None` for the end of the object.
    pub last: Option<u64>,
}

/// Object, version and range that are read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadRequest {
    /// Project of the object.
    pub project: String,
    /// Path of the object in the project.
    pub path: String,
    /// Version in the archive; `None` for the newest contents.
    pub version: Option<String>,
    /// Identity of the object: with a version, it is read wherever the object is by now, whatever has its path.
    pub object: Option<String>,
    /// Range of bytes; `None` for the whole object.
    pub range: Option<ByteRange>,
    /// True to read a growing object until it is complete, without a limit of time.
    pub follow: bool,
}

/// Open contents of an object. Whole contents of a stored version are verified by their hash when they end.
#[derive(Debug)]
pub struct ObjectReader {
    /// State of the object; `None` if the server does not tell.
    pub state: Option<UploadState>,
    /// Version in the archive; `None` for an upload that is not stored yet.
    pub version: Option<String>,
    /// Size of the whole object in bytes; `None` while it is unknown.
    pub size: Option<u64>,
    /// BLAKE3 of the whole object, once it is stored.
    pub blake3: Option<blake3::Hash>,
    response: Response,
    url: Url,
    /// Silence after which the read ends; `None` for followed reads.
    idle: Option<Duration>,
    /// Hash of the bytes so far and the expected one.
    check: Option<(Box<blake3::Hasher>, blake3::Hash)>,
}

impl Site {
    /// Opens the contents of an object.
    pub async fn read(&self, read: &ReadRequest) -> Result<ObjectReader, RemoteError> {
        if let (Some(object), Some(version)) = (&read.object, &read.version) {
            let url = self.address(["catalog", "versions", object, version])?;
            match self.read_at(url, read).await {
                // An older site knows paths only.
                Err(error) if error.kind == RemoteErrorKind::NotFound => {}
                opened => return opened,
            }
        }
        let mut url = self.address(["projects", &read.project].into_iter().chain(read.path.split('/')))?;
        if let Some(version) = &read.version {
            url.query_pairs_mut().append_pair("version", version);
        }
        if read.follow {
            url.query_pairs_mut().append_pair("follow", "true");
        }
        self.read_at(url, read).await
    }

    async fn read_at(&self, url: Url, read: &ReadRequest) -> Result<ObjectReader, RemoteError> {
        let mut request = self.request(Method::GET, &url);
        if let Some(ByteRange { first, last }) = read.range {
            let last = last.map(|last| last.to_string()).unwrap_or_default();
            request = request.header(RANGE, format!("bytes={first}-{last}"));
        }
        let call = Call { action: ACTION, url: &url, request, body: Bytes::new(), patience: Duration::ZERO };
        let response = self.send(call).await?;
        let is_part = response.status() == StatusCode::PARTIAL_CONTENT;
        if read.range.is_some() && !is_part {
            return Err(RemoteError::unsupported(ACTION, &url, "reads of ranges"));
        }
        let headers = response.headers();
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let state = text("holdfast-state").and_then(state);
        let blake3 = text(ETAG.as_str()).and_then(|etag| blake3::Hash::from_hex(etag.trim_matches('"')).ok());
        let check = blake3.filter(|_| !is_part && state == Some(UploadState::Stored));
        Ok(ObjectReader {
            state,
            version: text("holdfast-version").map(str::to_owned),
            size: size(headers, is_part),
            blake3,
            check: check.map(|expected| (Box::default(), expected)),
            idle: (!read.follow).then(|| self.idle()),
            response,
            url,
        })
    }
}

impl Site {
    /// Reads a complete upload back by its address and hashes it; `None` if the server does not give its contents. For foreign
    /// servers, which tell no hash.
    pub async fn read_back(&self, address: &UploadAddress) -> Result<Option<blake3::Hash>, RemoteError> {
        let url = &address.0;
        let request = self.request(Method::GET, url).header(TUS_RESUMABLE.0, TUS_RESUMABLE.1);
        let call = Call { action: READ_BACK, url, request, body: Bytes::new(), patience: Duration::ZERO };
        let mut response = match self.send(call).await {
            Err(error) if is_refusal(error.kind) => return Ok(None),
            response => response?,
        };
        let idle = self.idle();
        let mut hasher = blake3::Hasher::new();
        loop {
            let chunk = timeout(idle, response.chunk()).await;
            let chunk = chunk.map_err(|_| RemoteError::timed_out(READ_BACK, url, idle))?;
            match chunk.map_err(|error| RemoteError::transport(READ_BACK, url, &error))? {
                Some(bytes) => drop(hasher.update(&bytes)),
                None => return Ok(Some(hasher.finalize())),
            }
        }
    }
}

/// True for answers of servers without downloads.
fn is_refusal(kind: RemoteErrorKind) -> bool {
    matches!(
        kind,
        RemoteErrorKind::NotFound
            | RemoteErrorKind::Gone
            | RemoteErrorKind::Forbidden
            | RemoteErrorKind::Unsupported
            | RemoteErrorKind::Refused
    )
}

impl ObjectReader {
    /// Reads the next bytes; `None` at the end.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, RemoteError> {
        let chunk = match self.idle {
            None => self.response.chunk().await,
            Some(idle) => {
                let chunk = timeout(idle, self.response.chunk()).await;
                chunk.map_err(|_| RemoteError::timed_out(ACTION, &self.url, idle))?
            }
        };
        let chunk = chunk.map_err(|error| RemoteError::transport(ACTION, &self.url, &error))?;
        match (&chunk, &mut self.check) {
            (Some(bytes), Some((hasher, _))) => {
                hasher.update(bytes);
            }
            (None, Some((hasher, expected))) if hasher.finalize() != *expected => {
                let message = format!(
                    "cannot {ACTION} {}: the contents do not have the hash {}; read again",
                    self.url,
                    expected.to_hex()
                );
                return Err(RemoteError::new(RemoteErrorKind::ChecksumMismatch, message));
            }
            _ => {}
        }
        Ok(chunk)
    }

    /// Stream of the remaining bytes.
    pub fn into_stream(self) -> impl Stream<Item = Result<Bytes, RemoteError>> + Send {
        futures::stream::try_unfold(self, |mut reader| async move {
            Ok(reader.chunk().await?.map(|bytes| (bytes, reader)))
        })
    }
}

fn state(name: &str) -> Option<UploadState> {
    serde_json::from_value(serde_json::Value::from(name)).ok()
}

/// Size of the whole object, from the total of `Content-Range` or from `Content-Length`.
fn size(headers: &HeaderMap, is_part: bool) -> Option<u64> {
    if is_part {
        let range = headers.get(CONTENT_RANGE)?.to_str().ok()?;
        return range.rsplit_once('/')?.1.parse().ok();
    }
    number(headers, CONTENT_LENGTH.as_str())
}
