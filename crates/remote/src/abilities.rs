//! Abilities of a server: extensions of tus, checksum algorithms, limits, and extensions of sites.

use crate::error::RemoteError;
use crate::problem::number;
use crate::send::Call;
use crate::site::Site;
use bytes::Bytes;
use reqwest::Method;
use reqwest::header::HeaderMap;
use std::sync::Arc;
use std::time::Duration;

/// Extension of the tus protocol that this client uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extension {
    /// Creation of uploads by POST.
    Creation,
    /// First bytes within the creation.
    CreationWithUpload,
    /// Length that is told after the creation.
    CreationDeferLength,
    /// Concatenation of partial uploads.
    Concatenation,
    /// Checksums of requests' bodies.
    Checksum,
    /// Termination of uploads by DELETE.
    Termination,
}

impl Extension {
    /// Name of the extension in the header `Tus-Extension`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Creation => "creation",
            Self::CreationWithUpload => "creation-with-upload",
            Self::CreationDeferLength => "creation-defer-length",
            Self::Concatenation => "concatenation",
            Self::Checksum => "checksum",
            Self::Termination => "termination",
        }
    }
}

/// Extension that only sites have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SiteExtension {
    /// Segments that arrive before their turn.
    Ahead,
    /// Bodies compressed by zstd.
    Zstd,
    /// Hash of the bytes behind the last whole block.
    Tail,
    /// Change of the path of an unfinished upload.
    Path,
    /// Waiting for the end of an upload.
    Wait,
}

impl SiteExtension {
    /// Name of the extension in the header `Holdfast-Extensions`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ahead => "ahead",
            Self::Zstd => "zstd",
            Self::Tail => "tail",
            Self::Path => "path",
            Self::Wait => "wait",
        }
    }
}

/// Abilities that a server announces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Abilities {
    /// Names of the tus extensions.
    pub extensions: Vec<String>,
    /// Names of the checksum algorithms.
    pub checksums: Vec<String>,
    /// Greatest length of an upload in bytes.
    pub max_size: Option<u64>,
    /// Names of the extensions of a site.
    pub site_extensions: Vec<String>,
}

impl Abilities {
    /// True when the server announces a tus extension.
    pub fn has(&self, extension: Extension) -> bool {
        self.extensions.iter().any(|name| name == extension.name())
    }

    /// True when the server announces an extension of sites.
    pub fn has_site(&self, extension: SiteExtension) -> bool {
        self.site_extensions.iter().any(|name| name == extension.name())
    }

    fn of(headers: &HeaderMap) -> Self {
        let list = |name: &str| {
            let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
            let names = values.flat_map(|value| value.split(',')).map(str::trim);
            names.filter(|name| !name.is_empty()).map(str::to_owned).collect()
        };
        Self {
            extensions: list("tus-extension"),
            checksums: list("tus-checksum-algorithm"),
            max_size: number(headers, "tus-max-size"),
            site_extensions: list("holdfast-extensions"),
        }
    }
}

impl Site {
    /// Asks the server for its abilities. Later requests use this answer, until it is asked for again.
    pub async fn abilities(&self) -> Result<Arc<Abilities>, RemoteError> {
        let action = "ask for the abilities of";
        let url = self.uploads();
        let request = self.request(Method::OPTIONS, url);
        let call = Call { action, url, request, body: Bytes::new(), patience: Duration::ZERO };
        let response = self.send(call).await?;
        let headers = response.headers();
        let versions = headers.get("tus-version").or_else(|| headers.get("tus-resumable"));
        let versions = versions.and_then(|versions| versions.to_str().ok()).unwrap_or_default();
        if !versions.split(',').any(|version| version.trim() == "1.0.0") {
            return Err(RemoteError::nonsense(action, url, "it does not speak tus 1.0.0"));
        }
        let abilities = Arc::new(Abilities::of(headers));
        self.remember(&abilities);
        Ok(abilities)
    }
}
