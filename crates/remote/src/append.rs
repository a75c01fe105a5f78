//! Appending of one segment to an upload: checksum, optional compression, and times.

use crate::abilities::{Abilities, SiteExtension};
use crate::checksum::upload_checksum;
use crate::create::{OFFSET_STREAM, TUS_RESUMABLE};
use crate::error::{RemoteError, RemoteErrorKind};
use crate::problem::number;
use crate::progress::hash;
use crate::send::Call;
use crate::site::Site;
use crate::timings::Timings;
use crate::upload_address::UploadAddress;
use bytes::Bytes;
use reqwest::Method;
use reqwest::header::{CONTENT_ENCODING, CONTENT_TYPE};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Greatest distance in bytes of a segment's offset above the offset of its upload: the limit of sites.
pub const MOST_AHEAD_BYTES: u64 = 64 << 20;

/// Greatest segment in bytes that is compressed or sent ahead: the limit of sites.
pub const MOST_COMPRESSED_BYTES: usize = 8 << 20;

/// Level of zstd: fast enough for a gigabit link on one core.
const LEVEL: i32 = 1;

/// Time that a site lets a segment wait for its turn.
const TURN: Duration = Duration::from_mins(1);

const ACTION: &str = "append to";

/// Segment of a file that is appended to an upload.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// Offset of the first byte in the file.
    pub offset: u64,
    /// Contents of the segment.
    pub bytes: Bytes,
    /// Length of the whole upload in bytes, once it is known.
    pub length: Option<u64>,
    /// True to let the server hold the segment until its turn. Only sites can do this.
    pub ahead: bool,
    /// True to compress the segment if the server accepts this and the segment becomes shorter.
    pub compress: bool,
}

/// Result of an append.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Appended {
    /// Offset of the upload in bytes after the append.
    pub offset: u64,
    /// Bytes that went over the network as the body.
    pub wire_bytes: usize,
    /// Times of the append.
    pub timings: Timings,
    /// BLAKE3 of the whole contents, when the append has completed the upload and the server knows it.
    pub blake3: Option<blake3::Hash>,
}

/// Segment as it goes over the network.
struct Prepared {
    checksum: Option<String>,
    body: Bytes,
    is_compressed: bool,
}

impl Site {
    /// Appends a segment to an upload. When it returns, the bytes are durable at the server.
    pub async fn append(&self, address: &UploadAddress, segment: &Segment) -> Result<Appended, RemoteError> {
        let url = &address.0;
        let abilities = self.known_abilities().await?;
        if segment.ahead && !abilities.has_site(SiteExtension::Ahead) {
            return Err(RemoteError::unsupported(ACTION, url, "segments ahead of their turn"));
        }
        let prepared = prepare(Arc::clone(&abilities), segment).await.ok_or_else(|| {
            let message = format!("cannot {ACTION} {url}: its preparation was interrupted; send it again");
            RemoteError::new(RemoteErrorKind::Refused, message)
        })?;
        let (name, version) = TUS_RESUMABLE;
        let mut request = self
            .request(Method::PATCH, url)
            .header(name, version)
            .header(CONTENT_TYPE, OFFSET_STREAM)
            .header("Upload-Offset", segment.offset);
        if let Some(length) = segment.length {
            request = request.header("Upload-Length", length);
        }
        if let Some(checksum) = prepared.checksum {
            request = request.header("Upload-Checksum", checksum);
        }
        if segment.ahead {
            request = request.header("Holdfast-Ahead", 1);
        }
        if prepared.is_compressed {
            request = request.header(CONTENT_ENCODING, "zstd");
        }
        let wire_bytes = prepared.body.len();
        let patience = if segment.ahead { TURN } else { Duration::ZERO };
        let started = Instant::now();
        let response =
            self.send(Call { action: ACTION, url, request, body: prepared.body, patience }).await?;
        let total = started.elapsed();
        let headers = response.headers();
        let offset = number(headers, "upload-offset");
        let offset = offset.ok_or_else(|| RemoteError::nonsense(ACTION, url, "the answer has no offset"))?;
        let timings = headers.get("server-timing").and_then(|value| value.to_str().ok());
        let blake3 = hash(headers, "holdfast-blake3");
        Ok(Appended { offset, wire_bytes, timings: Timings::of(total, timings), blake3 })
    }
}

/// Hashes and compresses a segment on a blocking thread; `None` if the runtime stops.
async fn prepare(abilities: Arc<Abilities>, segment: &Segment) -> Option<Prepared> {
    let bytes = segment.bytes.clone();
    let compress = segment.compress
        && abilities.has_site(SiteExtension::Zstd)
        && (1..=MOST_COMPRESSED_BYTES).contains(&bytes.len());
    let work = move || {
        let checksum = if bytes.is_empty() { None } else { upload_checksum(&abilities, &bytes) };
        let compressed = if compress { zstd::bulk::compress(&bytes, LEVEL).ok() } else { None };
        match compressed.filter(|compressed| compressed.len() < bytes.len()) {
            Some(compressed) => Prepared { checksum, body: compressed.into(), is_compressed: true },
            None => Prepared { checksum, body: bytes, is_compressed: false },
        }
    };
    tokio::task::spawn_blocking(work).await.ok()
}
