//! State of an upload, its block hashes, its termination and the change of its path.

use crate::create::TUS_RESUMABLE;
use crate::error::{RemoteError, RemoteErrorKind};
use crate::problem::number;
use crate::send::Call;
use crate::site::Site;
use crate::upload_address::UploadAddress;
use bytes::Bytes;
use reqwest::Method;
use reqwest::header::{CONTENT_TYPE, HeaderMap};
use serde::Deserialize;
use std::time::Duration;

/// Longest time that a site lets a request wait for the end of an upload.
const MOST_WAIT: Duration = Duration::from_secs(30);

/// State of an upload in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum UploadState {
    /// Bytes are missing, and clients send them.
    Receiving,
    /// The server copies the bytes of partial uploads.
    Assembling,
    /// All bytes are durable at the server. This is the last state at foreign servers.
    Complete,
    /// The archive of the site has the bytes.
    Stored,
    /// The upload cannot be completed.
    Failed,
}

/// Progress of an upload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// State in the upload's life.
    pub state: UploadState,
    /// Number of bytes that the server has.
    pub offset: u64,
    /// Length in bytes; `None` while it is unknown.
    pub length: Option<u64>,
    /// BLAKE3 of the stored contents, if the server tells it.
    pub blake3: Option<blake3::Hash>,
    /// Version in the archive, once it is stored.
    pub version: Option<String>,
    /// Reason of the failure of a failed upload.
    pub reason: Option<String>,
}

/// Hashes of the whole blocks of an upload from some block on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockPage {
    /// Size of a block in bytes.
    pub block_bytes: u64,
    /// Number of durable bytes.
    pub offset: u64,
    /// Length in bytes; `None` while it is unknown.
    pub length: Option<u64>,
    /// Number of the first block of this page.
    pub first: u64,
    /// BLAKE3 of the blocks in their order.
    pub blocks: Vec<blake3::Hash>,
    /// Number of the first block of the next page; `None` on the last page.
    pub next: Option<u64>,
    /// BLAKE3 of the durable bytes behind the last whole block; `None` if there are none or the server does not tell.
    pub tail: Option<blake3::Hash>,
}

/// Answer of a site to a request for block hashes.
#[derive(Deserialize)]
struct BlockHashes {
    block_bytes: u64,
    offset: u64,
    length: Option<u64>,
    first: u64,
    blocks: Vec<String>,
    next: Option<u64>,
    tail_blake3: Option<String>,
}

/// BLAKE3 hash in a header; `None` if it is absent or unreadable.
pub(crate) fn hash(headers: &HeaderMap, name: &str) -> Option<blake3::Hash> {
    blake3::Hash::from_hex(headers.get(name)?.as_bytes()).ok()
}

impl Site {
    /// Asks for the progress of an upload. With `wait` the server answers when the upload is stored or has failed, or when the
    /// time is over, at most 30 s. Foreign servers answer at once.
    pub async fn progress(
        &self,
        address: &UploadAddress,
        wait: Option<Duration>,
    ) -> Result<Progress, RemoteError> {
        let action = "read the state of";
        let mut url = address.0.clone();
        let wait = wait.unwrap_or_default().min(MOST_WAIT);
        if wait.as_secs() > 0 {
            url.query_pairs_mut().append_pair("wait", &wait.as_secs().to_string());
        }
        let (name, version) = TUS_RESUMABLE;
        let request = self.request(Method::HEAD, &url).header(name, version);
        let call = Call { action, url: &url, request, body: Bytes::new(), patience: wait };
        let response = match self.send(call).await {
            Ok(response) => response,
            // An answer to HEAD has no body: the reason of the failure is in the answer to another request.
            Err(error)
                if matches!(error.kind, RemoteErrorKind::OffsetMismatch | RemoteErrorKind::Refused) =>
            {
                return self.failure(address, &error).await;
            }
            Err(error) => return Err(error),
        };
        let headers = response.headers();
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let length = number(headers, "upload-length");
        let offset = number(headers, "upload-offset").or_else(|| number(headers, "holdfast-progress"));
        let offset = match (offset, text("upload-concat")) {
            (Some(offset), _) => offset,
            // A foreign server is still assembling.
            (None, Some(_)) => 0,
            (None, None) => return Err(RemoteError::nonsense(action, &url, "the answer has no offset")),
        };
        let state = match text("holdfast-state") {
            Some("receiving") => UploadState::Receiving,
            Some("assembling") => UploadState::Assembling,
            Some("complete") => UploadState::Complete,
            Some("stored") => UploadState::Stored,
            Some("failed") => {
                return self.failure(address, &RemoteError::nonsense(action, &url, "it failed")).await;
            }
            Some(other) => {
                let reason = format!("the state '{}' is unknown", other.escape_debug());
                return Err(RemoteError::nonsense(action, &url, reason));
            }
            None if length == Some(offset) => UploadState::Complete,
            None => UploadState::Receiving,
        };
        let version = text("holdfast-version").map(str::to_owned);
        Ok(Progress {
            state,
            offset,
            length,
            blake3: hash(headers, "holdfast-blake3"),
            version,
            reason: None,
        })
    }

    /// Progress of a failed upload with its reason; `error` is the answer to the request for its state.
    async fn failure(&self, address: &UploadAddress, error: &RemoteError) -> Result<Progress, RemoteError> {
        match self.blocks(address, 0).await {
            Err(reason) if reason.kind == RemoteErrorKind::Refused => Ok(Progress {
                state: UploadState::Failed,
                offset: 0,
                length: None,
                blake3: None,
                version: None,
                reason: Some(reason.message),
            }),
            Err(other) => Err(other),
            Ok(_) => Err(error.clone()),
        }
    }

    /// Reads one page of the block hashes of an upload at a site, from block number `first` on.
    pub async fn blocks(&self, address: &UploadAddress, first: u64) -> Result<BlockPage, RemoteError> {
        let action = "read the block hashes of";
        let mut url = address.below("blocks");
        url.query_pairs_mut().append_pair("first", &first.to_string());
        let request = self.request(Method::GET, &url);
        let call = Call { action, url: &url, request, body: Bytes::new(), patience: Duration::ZERO };
        let found: BlockHashes = self.send_json(call).await?;
        let bad = |error| RemoteError::nonsense(action, &url, format!("a hash is unreadable ({error})"));
        let blocks = found.blocks.iter().map(|text| blake3::Hash::from_hex(text).map_err(bad));
        Ok(BlockPage {
            block_bytes: found.block_bytes,
            offset: found.offset,
            length: found.length,
            first: found.first,
            blocks: blocks.collect::<Result<_, _>>()?,
            next: found.next,
            tail: found.tail_blake3.map(|text| blake3::Hash::from_hex(text).map_err(bad)).transpose()?,
        })
    }

    /// Terminates an upload. Stored versions stay in the archive.
    pub async fn terminate(&self, address: &UploadAddress) -> Result<(), RemoteError> {
        let (name, version) = TUS_RESUMABLE;
        let url = &address.0;
        let request = self.request(Method::DELETE, url).header(name, version);
        let call = Call { action: "terminate", url, request, body: Bytes::new(), patience: Duration::ZERO };
        self.send(call).await.map(drop)
    }

    /// Changes the path of an unfinished upload at a site.
    pub async fn rename(&self, address: &UploadAddress, path: &str) -> Result<(), RemoteError> {
        let url = address.below("path");
        let request = self.request(Method::POST, &url).header(CONTENT_TYPE, "application/json");
        let body = serde_json::json!({ "path": path }).to_string().into();
        let call = Call { action: "rename by", url: &url, request, body, patience: Duration::ZERO };
        self.send(call).await.map(drop)
    }
}
