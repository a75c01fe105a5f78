//! Endpoint: address of a site, token and fingerprint. No connection is made here.

use crate::error::{RemoteError, RemoteErrorKind};
use crate::fingerprint::Fingerprint;
use reqwest::Url;
use std::fmt;
use std::time::Duration;

/// Silence after which a request ends, unless the endpoint sets another time.
pub const DEFAULT_IDLE: Duration = Duration::from_mins(1);

/// Address and credentials of a site or of a foreign tus server.
#[derive(Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// Address of the site with its prefix, without the project. The path ends with `/`.
    pub url: Url,
    /// Path of the address that creates uploads, relative to `url`. Sites have `files/`.
    pub uploads: String,
    /// Bearer token; `None` for a server without access control.
    pub token: Option<String>,
    /// Fingerprint of the only certificate that is trusted; `None` trusts the roots of the operating system.
    pub fingerprint: Option<Fingerprint>,
    /// Silence in either direction after which a request ends.
    pub idle: Duration,
}

impl Endpoint {
    /// Reads `http(s)://HOST[:PORT][/PREFIX]`. A path that ends with `/files` or `/files/` is the address that creates uploads.
    pub fn parse(text: &str) -> Result<Self, RemoteError> {
        let refuse = |reason: &str| {
            let message =
                format!("cannot use the address '{text}': {reason}; write 'http(s)://HOST[:PORT][/PREFIX]'");
            RemoteError::new(RemoteErrorKind::Refused, message)
        };
        let mut url = Url::parse(text).map_err(|error| refuse(&error.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(refuse("its scheme is neither http nor https"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(refuse("it contains a user; give the token separately"));
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(refuse("it contains a query or a fragment"));
        }
        let path = url.path().trim_end_matches('/');
        let path = format!("{}/", path.strip_suffix("/files").unwrap_or(path));
        url.set_path(&path);
        let uploads = "files/".to_owned();
        Ok(Self { url, uploads, token: None, fingerprint: None, idle: DEFAULT_IDLE })
    }

    /// Reads `http(s)://HOST[:PORT][/PREFIX]/PROJECT` into the endpoint and the project.
    pub fn parse_with_project(text: &str) -> Result<(Self, String), RemoteError> {
        let trimmed = text.trim_end_matches('/');
        let (site, project) = trimmed.rsplit_once('/').unwrap_or_default();
        if project.is_empty() || !site.contains("://") || site.ends_with('/') {
            let message =
                format!("cannot use the address '{text}': it names no project; write '{trimmed}/PROJECT'");
            return Err(RemoteError::new(RemoteErrorKind::Refused, message));
        }
        Ok((Self::parse(site)?, project.to_owned()))
    }
}

/// Shows the endpoint without the token, which must not reach logs.
impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("url", &self.url.as_str())
            .field("uploads", &self.uploads)
            .field("fingerprint", &self.fingerprint)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_with_and_without_prefix_and_project() {
        let url = |text: &str| Endpoint::parse(text).unwrap().url.to_string();
        assert_eq!(url("http://host"), "http://host/");
        assert_eq!(url("https://host:7370/a/b"), "https://host:7370/a/b/");
        assert_eq!(url("https://host/files/"), "https://host/");
        assert_eq!(url("https://host/a/files"), "https://host/a/");
        assert_eq!(url("http://[::1]:80/"), "http://[::1]/");
        let (endpoint, project) = Endpoint::parse_with_project("http://host:1/prefix/radar/").unwrap();
        assert_eq!((endpoint.url.as_str(), project.as_str()), ("http://host:1/prefix/", "radar"));
        for bad in ["", "host", "ftp://host", "http://", "http://user@host", "http://host?a", "http://host#a"]
        {
            assert!(Endpoint::parse(bad).is_err(), "{bad}");
        }
        for bad in ["http://host", "http://host/", "host/project", ""] {
            assert!(Endpoint::parse_with_project(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_token_stays_out_of_debug_output() {
        let mut endpoint = Endpoint::parse("http://host").unwrap();
        endpoint.token = Some("hft_secret".to_owned());
        assert!(!format!("{endpoint:?}").contains("secret"));
    }
}
