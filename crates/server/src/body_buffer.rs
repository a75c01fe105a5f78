//! Bodies that are held in memory as a whole: reserved memory, collection, decoding and checksum.
//!
//! Segments ahead of an upload's offset and encoded bodies are received in this way. All other bodies are streamed to their
//! file by `receiver`, which also appends collected bodies.

use crate::checksum::Checksum;
use crate::problem::{Problem, ProblemKind};
use crate::receiver::{ReceiveError, drain};
use crate::store_error::blocking;
use crate::timing::ReceiveSpan;
use crate::upload_store::UploadStore;
use axum::body::Body;
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING};
use http::{HeaderMap, HeaderValue};
use http_body_util::BodyExt as _;
use std::io::Read as _;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;

/// Greatest length of a body in memory, after decoding: eight blocks, so that one connection occupies little.
pub(crate) const MOST_BUFFERED: u64 = 8 << 20;

/// Greatest window of a zstd frame as a power of two, 8 MiB: the decoder allocates the window that a frame demands.
const MOST_WINDOW_LOG: u32 = 23;

/// Coding of a body on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Coding {
    /// Bytes as they are.
    Identity,
    /// Frames of Zstandard (RFC 8878).
    Zstd,
}

impl Coding {
    /// Coding that the header `Content-Encoding` names.
    pub(crate) fn of(headers: &HeaderMap) -> Result<Self, Problem> {
        match headers.get(CONTENT_ENCODING).map(HeaderValue::as_bytes) {
            None | Some(b"identity") => Ok(Self::Identity),
            Some(b"zstd") => Ok(Self::Zstd),
            Some(_) => {
                let detail = "cannot read the body: its Content-Encoding is not supported; send it plain or with 'zstd'";
                Err(Problem::new(ProblemKind::WrongMediaType, detail).with(ACCEPT_ENCODING, "zstd"))
            }
        }
    }

    /// Most bytes on the wire that a body of `MOST_BUFFERED` bytes may have.
    fn most_received(self) -> u64 {
        match self {
            Self::Identity => MOST_BUFFERED,
            Self::Zstd => zstd::zstd_safe::compress_bound(MOST_BUFFERED as usize) as u64,
        }
    }
}

/// Memory that is reserved for one body.
#[derive(Debug)]
pub(crate) struct BodyBuffer {
    coding: Coding,
    announced: Option<u64>,
    memory: OwnedSemaphorePermit,
}

/// Body in memory that has its announced checksum.
#[derive(Debug)]
pub(crate) struct CollectedBody {
    pub(crate) bytes: Vec<u8>,
    /// Time from the first to the last byte.
    pub(crate) receive: Duration,
    _memory: OwnedSemaphorePermit,
}

impl BodyBuffer {
    /// Reserves memory for a body, of which `announced` bytes are announced; `None` when the server's memory for bodies is in
    /// use. A body of unknown length takes the greatest one.
    pub(crate) fn reserve(store: &UploadStore, coding: Coding, announced: Option<u64>) -> Option<Self> {
        let bytes = match (coding, announced) {
            (Coding::Identity, Some(announced)) => announced.min(MOST_BUFFERED),
            (Coding::Identity, None) => MOST_BUFFERED,
            // The decoded bytes come beside those of the wire.
            (Coding::Zstd, announced) => {
                MOST_BUFFERED + announced.map_or(MOST_BUFFERED, |a| a.min(MOST_BUFFERED))
            }
        };
        let memory = Arc::clone(&store.body_memory).try_acquire_many_owned(bytes as u32).ok()?;
        Some(Self { coding, announced, memory })
    }

    /// Collects, decodes and verifies a body. The rest of a refused body is drained.
    pub(crate) async fn collect(
        self,
        store: &UploadStore,
        mut body: Body,
        checksum: Option<Checksum>,
    ) -> Result<CollectedBody, ReceiveError> {
        let Self { coding, announced, mut memory } = self;
        let most = coding.most_received().min(store.limits.request_body);
        let mut span = ReceiveSpan::default();
        let mut received = Vec::with_capacity(announced.unwrap_or(0).min(most) as usize);
        if let Err(error) = receive(store, &mut body, most, &mut received, &mut span).await {
            if error == ReceiveError::Oversized {
                drain(store, body).await;
            }
            return Err(error);
        }
        let decoded = blocking(move || decode(coding, received, checksum)).await;
        let bytes = decoded.map_err(ReceiveError::Store)?.inspect_err(|error| {
            if *error == ReceiveError::Mismatch {
                store.metrics.checksum_mismatches.add(1);
            }
        })?;
        let surplus = memory.num_permits().saturating_sub(bytes.len());
        drop(memory.split(surplus));
        Ok(CollectedBody { bytes, receive: span.length(), _memory: memory })
    }
}

/// Reads a body of at most `most` bytes.
async fn receive(
    store: &UploadStore,
    body: &mut Body,
    most: u64,
    received: &mut Vec<u8>,
    span: &mut ReceiveSpan,
) -> Result<(), ReceiveError> {
    loop {
        let frame = timeout(store.limits.body_idle, body.frame()).await.map_err(|_| ReceiveError::Idle)?;
        let bytes = match frame {
            None => return Ok(()),
            Some(Err(_)) => return Err(ReceiveError::Cut),
            Some(Ok(frame)) => frame.into_data().unwrap_or_default(),
        };
        span.extend();
        if (received.len() + bytes.len()) as u64 > most {
            return Err(ReceiveError::Oversized);
        }
        store.metrics.received_bytes.add(bytes.len() as u64);
        received.extend_from_slice(&bytes);
    }
}

/// Decodes a body and compares its checksum. Blocks.
fn decode(coding: Coding, received: Vec<u8>, checksum: Option<Checksum>) -> Result<Vec<u8>, ReceiveError> {
    let bytes = match coding {
        Coding::Identity => received,
        Coding::Zstd => decompress(&received)?,
    };
    if let Some(mut checksum) = checksum {
        checksum.add(&bytes);
        if !checksum.matches() {
            return Err(ReceiveError::Mismatch);
        }
    }
    Ok(bytes)
}

fn decompress(frames: &[u8]) -> Result<Vec<u8>, ReceiveError> {
    if frames.is_empty() {
        return Ok(Vec::new());
    }
    let mut decoder =
        zstd::stream::read::Decoder::with_buffer(frames).map_err(|_| ReceiveError::Undecodable)?;
    decoder.window_log_max(MOST_WINDOW_LOG).map_err(|_| ReceiveError::Undecodable)?;
    let mut bytes = Vec::with_capacity(MOST_BUFFERED as usize + 1);
    decoder.take(MOST_BUFFERED + 1).read_to_end(&mut bytes).map_err(|_| ReceiveError::Undecodable)?;
    bytes.shrink_to_fit();
    if bytes.len() as u64 > MOST_BUFFERED { Err(ReceiveError::Oversized) } else { Ok(bytes) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_decoded_within_bounds() {
        let encode = |bytes: &[u8]| zstd::encode_all(bytes, 3).unwrap();
        let text = b"a text that a text repeats".repeat(100);
        assert_eq!(decompress(&encode(&text)), Ok(text.clone()));
        assert_eq!(decompress(&[encode(&text), encode(b"more")].concat()), Ok([&text[..], b"more"].concat()));
        assert_eq!(decompress(&[]), Ok(Vec::new()));
        assert_eq!(decompress(&encode(&[])), Ok(Vec::new()));
        let frame = encode(&text);
        for cut in 1..frame.len() {
            assert_eq!(decompress(&frame[..cut]), Err(ReceiveError::Undecodable), "{cut}");
        }
        let most = vec![0; MOST_BUFFERED as usize];
        assert_eq!(decompress(&encode(&most)).map(|bytes| bytes.len()), Ok(most.len()));
        let bomb = encode(&vec![0; 1 << 28]);
        assert!(bomb.len() < 1 << 20);
        assert_eq!(decompress(&bomb), Err(ReceiveError::Oversized));
        // A frame that demands a window of 128 MiB is refused before the window is allocated.
        let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
        encoder.window_log(27).unwrap();
        std::io::Write::write_all(&mut encoder, b"small").unwrap();
        std::io::Write::flush(&mut encoder).unwrap();
        assert_eq!(decompress(&encoder.finish().unwrap()), Err(ReceiveError::Undecodable));
    }
}
