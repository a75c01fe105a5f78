//! Listings of a project: finished objects, versions of one object, and growing uploads.

use crate::error::RemoteError;
use crate::progress::UploadState;
use crate::send::Call;
use crate::site::Site;
use bytes::Bytes;
use reqwest::Method;
use serde::Deserialize;
use std::time::Duration;

/// Version of an object in the archive.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ObjectVersion {
    /// Path of the object in its project.
    pub path: String,
    /// Version in the archive.
    pub version: String,
    /// Size of the contents in bytes.
    pub size: u64,
    /// BLAKE3 of the contents in hexadecimal digits.
    pub blake3: String,
    /// Time at which the version was stored, in milliseconds since 1970.
    pub stored: i64,
}

/// Upload that the archive does not have yet.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct GrowingObject {
    /// Path of the object in its project.
    pub path: String,
    /// Identity of the upload.
    pub upload: String,
    /// State in the upload's life.
    pub state: UploadState,
    /// Number of durable bytes.
    pub offset: u64,
    /// Length in bytes; `None` while it is unknown.
    pub length: Option<u64>,
}

/// Page of a listing.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ObjectsPage {
    /// Finished objects in the order of their paths, or versions from the oldest to the newest.
    pub objects: Vec<ObjectVersion>,
    /// Uploads that grow towards the next version.
    pub growing: Vec<GrowingObject>,
    /// Path behind which the next page begins; `None` on the last page.
    pub next: Option<String>,
}

impl Site {
    /// Lists the objects of a project in the order of their paths, one page behind the path `after`.
    pub async fn list(&self, project: &str, after: Option<&str>) -> Result<ObjectsPage, RemoteError> {
        self.listing(project, after.map(|after| ("after", after))).await
    }

    /// Lists the versions of one object from the oldest to the newest.
    pub async fn versions(&self, project: &str, path: &str) -> Result<ObjectsPage, RemoteError> {
        self.listing(project, Some(("versions", path))).await
    }

    async fn listing(&self, project: &str, pair: Option<(&str, &str)>) -> Result<ObjectsPage, RemoteError> {
        let url = &self.address(["projects", project])?;
        let request = self.request(Method::GET, url).query(pair.as_slice());
        let call = Call { action: "list", url, request, body: Bytes::new(), patience: Duration::ZERO };
        self.send_json(call).await
    }
}
