//! Creation of uploads, optionally with their first bytes.

use crate::abilities::{Abilities, Extension};
use crate::checksum::upload_checksum;
use crate::error::RemoteError;
use crate::problem::number;
use crate::send::Call;
use crate::site::Site;
use crate::upload_address::UploadAddress;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use reqwest::header::{CONTENT_TYPE, LOCATION};
use reqwest::{Method, RequestBuilder};
use std::time::Duration;

/// Version of the protocol, sent with every request.
pub(crate) const TUS_RESUMABLE: (&str, &str) = ("Tus-Resumable", "1.0.0");

/// Content type of bodies with bytes of an upload.
pub(crate) const OFFSET_STREAM: &str = "application/offset+octet-stream";

const ACTION: &str = "create an upload at";

/// Properties of an upload that is to be created.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewUpload {
    /// Project; `None` lets the server choose by the token.
    pub project: Option<String>,
    /// Path of the object in the project, with `/` between names.
    pub path: String,
    /// Further pairs of key and value of the metadata.
    pub metadata: Vec<(String, String)>,
    /// Length in bytes; `None` while it is unknown.
    pub length: Option<u64>,
    /// First bytes. They are sent only to servers that take them; the created offset tells.
    pub first: Option<Bytes>,
}

/// Upload that was created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Created {
    /// Address of the upload.
    pub address: UploadAddress,
    /// Number of bytes that the server has.
    pub offset: u64,
}

impl NewUpload {
    /// Value of the header `Upload-Metadata`. Foreign servers know the key `filename`.
    pub(crate) fn metadata(&self) -> String {
        let name = self.path.rsplit('/').next().unwrap_or_default();
        let own =
            [("project", self.project.as_deref()), ("path", Some(&self.path)), ("filename", Some(name))];
        let own = own.into_iter().filter_map(|(key, value)| Some((key, value?)));
        let others = self.metadata.iter().map(|(key, value)| (key.as_str(), value.as_str()));
        let pairs = own.chain(others).map(|(key, value)| format!("{key} {}", STANDARD.encode(value)));
        pairs.collect::<Vec<_>>().join(",")
    }
}

impl Site {
    /// Creates an upload, with its first bytes if the server takes them.
    pub async fn create(&self, new: &NewUpload) -> Result<Created, RemoteError> {
        let abilities = self.known_abilities().await?;
        let request = self.creation().header("Upload-Metadata", new.metadata());
        self.create_by(request, &abilities, new.length, new.first.as_ref()).await
    }

    /// Request of a creation without length, metadata and body.
    pub(crate) fn creation(&self) -> RequestBuilder {
        let (name, version) = TUS_RESUMABLE;
        self.request(Method::POST, self.uploads()).header(name, version)
    }

    /// Sends a creation with its length and first bytes.
    pub(crate) async fn create_by(
        &self,
        request: RequestBuilder,
        abilities: &Abilities,
        length: Option<u64>,
        first: Option<&Bytes>,
    ) -> Result<Created, RemoteError> {
        let url = self.uploads();
        if !abilities.has(Extension::Creation) {
            return Err(RemoteError::unsupported(ACTION, url, "extension 'creation'"));
        }
        let mut request = match length {
            Some(length) => request.header("Upload-Length", length),
            None if abilities.has(Extension::CreationDeferLength) => request.header("Upload-Defer-Length", 1),
            None => return Err(RemoteError::unsupported(ACTION, url, "extension 'creation-defer-length'")),
        };
        let first = first.filter(|first| !first.is_empty() && abilities.has(Extension::CreationWithUpload));
        if let Some(first) = first {
            request = request.header(CONTENT_TYPE, OFFSET_STREAM);
            if let Some(checksum) = upload_checksum(abilities, first) {
                request = request.header("Upload-Checksum", checksum);
            }
        }
        self.send_creation(request, first.cloned().unwrap_or_default()).await
    }

    /// Sends a complete creation and reads the address of the upload.
    pub(crate) async fn send_creation(
        &self,
        request: RequestBuilder,
        body: Bytes,
    ) -> Result<Created, RemoteError> {
        let url = self.uploads();
        let call = Call { action: ACTION, url, request, body, patience: Duration::ZERO };
        let response = self.send(call).await?;
        let location = response.headers().get(LOCATION).and_then(|location| location.to_str().ok());
        let address = location
            .and_then(|location| self.location(location))
            .ok_or_else(|| RemoteError::nonsense(ACTION, url, "the answer has no address of the upload"))?;
        let offset = number(response.headers(), "upload-offset").unwrap_or(0);
        Ok(Created { address: UploadAddress(address), offset })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_are_encoded_pairs() {
        let new = NewUpload {
            project: Some("p".to_owned()),
            path: "a/b".to_owned(),
            metadata: vec![("attribute.x".to_owned(), String::new())],
            ..NewUpload::default()
        };
        assert_eq!(new.metadata(), "project cA==,path YS9i,filename Yg==,attribute.x ");
    }
}
