//! Exchange of operations between sites: the vector of a site, pushes of operations, and pulls. Batches are opaque here.

use crate::error::RemoteError;
use crate::send::Call;
use crate::site::Site;
use bytes::Bytes;
use reqwest::header::{CONTENT_TYPE, RANGE};
use reqwest::{Method, Url};
use serde::Deserialize;
use std::io;
use std::time::Duration;
use tokio::time::timeout;

/// Time that a site may take to apply a batch, besides the silence that ends a request.
const PATIENCE: Duration = Duration::from_mins(1);

/// State of a site's catalog.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ReplicationState {
    /// Identity of the site in hexadecimal digits.
    pub site: String,
    /// Name that the site gives itself.
    pub name: String,
    /// Number of operations of each site that are applied, `SITE:NUMBER` with spaces between.
    pub vector: String,
}

/// Digest of a site's catalog.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct CatalogDigest {
    /// Identity of the site in hexadecimal digits.
    pub site: String,
    /// Name that the site gives itself.
    pub name: String,
    /// Digest of all records, equal at sites that have applied the same operations.
    pub digest: String,
    /// Number of operations of each site that are applied, `SITE:NUMBER` with spaces between.
    pub vector: String,
}

/// Effect of pushed operations.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct PushAnswer {
    /// Number of operations that were applied.
    pub applied: u64,
    /// Number of operations that need earlier ones, and were not kept.
    pub waiting: u64,
    /// Number of operations whose stamps are too far ahead.
    pub quarantined: u64,
    /// Number of operations of each site that are applied now.
    pub vector: String,
}

impl Site {
    /// Reads identity, name and vector of the site.
    pub async fn replication_state(&self) -> Result<ReplicationState, RemoteError> {
        let url = &self.address(["replication"])?;
        let request = self.request(Method::GET, url);
        let action = "read the state of the site";
        self.send_json(Call { action, url, request, body: Bytes::new(), patience: Duration::ZERO }).await
    }

    /// Reads the digest of the whole catalog, which takes time for a large one.
    pub async fn catalog_digest(&self) -> Result<CatalogDigest, RemoteError> {
        let url = &self.address(["replication", "digest"])?;
        let (action, request) = ("read the digest of the site", self.request(Method::GET, url));
        let patience = Duration::from_mins(10);
        self.send_json(Call { action, url, request, body: Bytes::new(), patience }).await
    }

    /// Pushes a batch of operations.
    pub async fn push_operations(&self, batch: Bytes) -> Result<PushAnswer, RemoteError> {
        let url = &self.operations()?;
        let request = self.request(Method::POST, url).header(CONTENT_TYPE, "application/octet-stream");
        self.send_json(Call { action: "push operations to", url, request, body: batch, patience: PATIENCE })
            .await
    }

    /// Pulls a batch of operations beyond a vector, of at most `most` bytes.
    pub async fn pull_operations(&self, vector: &str, most: usize) -> Result<Bytes, RemoteError> {
        let url = &self.operations()?;
        let request = self.request(Method::GET, url).query(&[("beyond", vector)]);
        let call =
            Call { action: "pull operations from", url, request, body: Bytes::new(), patience: PATIENCE };
        self.send_bytes(call, most).await
    }

    /// Passes a snapshot of the whole catalog to `visit`, piece by piece. Whoever reads it checks that it is whole.
    pub async fn snapshot(&self, mut visit: impl FnMut(&[u8]) -> io::Result<()>) -> Result<(), RemoteError> {
        let url = &self.address(["replication", "snapshot"])?;
        let action = "read the snapshot of";
        let request = self.request(Method::GET, url);
        let call = Call { action, url, request, body: Bytes::new(), patience: PATIENCE };
        let (mut response, idle) = (self.send(call).await?, self.idle());
        loop {
            let piece = timeout(idle, response.chunk()).await;
            let piece = piece.map_err(|_| RemoteError::timed_out(action, url, idle))?;
            match piece.map_err(|error| RemoteError::transport(action, url, &error))? {
                Some(piece) => visit(&piece).map_err(|error| RemoteError::local("keep", url, &error))?,
                None => return Ok(()),
            }
        }
    }

    /// Reads bytes of a version of an object, the first to the last offset, from a vault of this site only.
    pub async fn read_version(
        &self,
        object: &str,
        version: &str,
        (first, last): (u64, u64),
    ) -> Result<Bytes, RemoteError> {
        let url = &self.address(["replication", "objects", object, version])?;
        let action = "read";
        let request = self.request(Method::GET, url).header(RANGE, format!("bytes={first}-{last}"));
        let call = Call { action, url, request, body: Bytes::new(), patience: Duration::ZERO };
        let wanted = (last + 1).saturating_sub(first) as usize;
        let bytes = self.send_bytes(call, wanted).await?;
        if bytes.len() == wanted {
            return Ok(bytes);
        }
        let reason = format!("the answer has {} bytes in the place of {wanted}", bytes.len());
        Err(RemoteError::nonsense(action, url, reason))
    }

    fn operations(&self) -> Result<Url, RemoteError> {
        self.address(["replication", "operations"])
    }
}
