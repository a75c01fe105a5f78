//! Partial uploads and their concatenation, for servers with this extension of tus.

use crate::abilities::Extension;
use crate::create::{Created, NewUpload};
use crate::error::RemoteError;
use crate::site::Site;
use crate::upload_address::UploadAddress;
use bytes::Bytes;

impl Site {
    /// Creates a partial upload with a known length, with its first bytes if the server takes them.
    pub async fn create_partial(&self, length: u64, first: Option<&Bytes>) -> Result<Created, RemoteError> {
        let abilities = self.known_abilities().await?;
        if !abilities.has(Extension::Concatenation) {
            let feature = "extension 'concatenation'";
            return Err(RemoteError::unsupported("create a partial upload at", self.uploads(), feature));
        }
        let request = self.creation().header("Upload-Concat", "partial");
        self.create_by(request, &abilities, Some(length), first).await
    }

    /// Creates the upload that consists of complete partial uploads in this order. Its length and first bytes are unused.
    pub async fn concatenate(
        &self,
        parts: &[UploadAddress],
        new: &NewUpload,
    ) -> Result<Created, RemoteError> {
        let parts: Vec<_> = parts.iter().map(|part| part.0.as_str()).collect();
        let list = format!("final;{}", parts.join(" "));
        let request = self.creation().header("Upload-Metadata", new.metadata()).header("Upload-Concat", list);
        self.send_creation(request, Bytes::new()).await
    }
}
