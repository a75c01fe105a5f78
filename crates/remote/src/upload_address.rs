//! Address of an upload, as a creation returned it. It survives as text in a ledger.

use crate::error::{RemoteError, RemoteErrorKind};
use reqwest::Url;
use std::fmt;
use std::str::FromStr;

/// Absolute address of an upload.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct UploadAddress(pub(crate) Url);

impl UploadAddress {
    /// Address below the upload, such as its block hashes.
    pub(crate) fn below(&self, name: &str) -> Url {
        let mut url = self.0.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().push(name);
        }
        url
    }
}

impl fmt::Display for UploadAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_str())
    }
}

impl FromStr for UploadAddress {
    type Err = RemoteError;

    fn from_str(text: &str) -> Result<Self, RemoteError> {
        let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
        url.map(Self).ok_or_else(|| {
            let message = format!("cannot use the upload address '{text}': it is no URL; start a new upload");
            RemoteError::new(RemoteErrorKind::Refused, message)
        })
    }
}
