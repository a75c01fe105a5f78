//! Site: shared connection pool and addresses of one server. Requests are in the modules of their objects.

use crate::abilities::Abilities;
use crate::endpoint::Endpoint;
use crate::error::{RemoteError, RemoteErrorKind};
use crate::tls;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{Client, Method, RequestBuilder, Url};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Time for a connection with its TLS handshake.
const CONNECT: Duration = Duration::from_secs(10);

/// Silence on a connection after which the operating system asks whether the peer exists.
const KEEP_ALIVE: Duration = Duration::from_secs(30);

/// Client of one server. Clones share the connections.
#[derive(Clone)]
pub struct Site {
    inner: Arc<Inner>,
}

struct Inner {
    client: Client,
    base: Url,
    uploads: Url,
    token: Option<HeaderValue>,
    idle: Duration,
    abilities: Mutex<Option<Arc<Abilities>>>,
}

impl Site {
    /// Makes the client of an endpoint. The first request opens a connection, so the server may be offline.
    pub fn connect(endpoint: &Endpoint) -> Result<Self, RemoteError> {
        let refuse = |reason: &str, remedy: &str| {
            let message = format!("cannot use the site {}: {reason}; {remedy}", endpoint.url);
            RemoteError::new(RemoteErrorKind::Refused, message)
        };
        let uploads = endpoint.url.join(&endpoint.uploads);
        let uploads = uploads.map_err(|error| refuse(&error.to_string(), "correct the path of uploads"))?;
        let token = endpoint.token.as_deref().map(|token| {
            let value = HeaderValue::try_from(format!("Bearer {}", token.trim()));
            let mut value = value.map_err(|_| refuse("the token is no ASCII text", "copy it again"))?;
            value.set_sensitive(true);
            Ok(value)
        });
        // Segments travel on parallel connections, which HTTP/2 would merge into one.
        let mut builder = Client::builder()
            .http1_only()
            .connect_timeout(CONNECT)
            .tcp_keepalive(KEEP_ALIVE)
            .redirect(Policy::none())
            .user_agent(concat!("holdfast/", env!("CARGO_PKG_VERSION")));
        // Other systems find a dead connection by its silence alone.
        #[cfg(target_os = "linux")]
        {
            builder = builder.tcp_user_timeout(endpoint.idle);
        }
        if let Some(fingerprint) = endpoint.fingerprint {
            if endpoint.url.scheme() != "https" {
                return Err(refuse("a fingerprint needs encryption", "write 'https://'"));
            }
            let config = tls::pinned(fingerprint);
            let config = config.map_err(|error| refuse(&error.to_string(), "leave the fingerprint out"))?;
            builder = builder.use_preconfigured_tls(config);
        }
        let client = builder.build();
        let client = client.map_err(|error| RemoteError::transport("use", &endpoint.url, &error))?;
        let (base, idle) = (endpoint.url.clone(), endpoint.idle);
        let abilities = Mutex::default();
        Ok(Self {
            inner: Arc::new(Inner { client, base, uploads, token: token.transpose()?, idle, abilities }),
        })
    }

    /// Address that creates uploads.
    pub(crate) fn uploads(&self) -> &Url {
        &self.inner.uploads
    }

    /// Silence after which a request ends.
    pub(crate) fn idle(&self) -> Duration {
        self.inner.idle
    }

    /// Address below the site's prefix, with each name percent-encoded.
    pub(crate) fn address<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> Result<Url, RemoteError> {
        let mut url = self.inner.base.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty();
            for name in names {
                // Such names would silently address another object.
                if matches!(name, "" | "." | "..") {
                    let base = &self.inner.base;
                    let message =
                        format!("cannot use {base}: the path contains the name '{name}'; leave it out");
                    return Err(RemoteError::new(RemoteErrorKind::Refused, message));
                }
                path.push(name);
            }
        }
        Ok(url)
    }

    /// Address of an upload in an answer. A path without the prefix comes from a server that a proxy hides.
    pub(crate) fn location(&self, location: &str) -> Option<Url> {
        let prefix = self.inner.base.path();
        if location.starts_with('/') && !location.starts_with("//") && !location.starts_with(prefix) {
            return self.inner.base.join(location.trim_start_matches('/')).ok();
        }
        self.inner.uploads.join(location).ok()
    }

    /// Request with the token. The token never goes to another host.
    pub(crate) fn request(&self, method: Method, url: &Url) -> RequestBuilder {
        let mut headers = HeaderMap::new();
        if let Some(token) = &self.inner.token
            && url.origin() == self.inner.base.origin()
        {
            headers.insert(AUTHORIZATION, token.clone());
        }
        self.inner.client.request(method, url.clone()).headers(headers)
    }

    /// Abilities of the last answer to [`abilities`](Self::abilities), asked for if there is none.
    pub async fn known_abilities(&self) -> Result<Arc<Abilities>, RemoteError> {
        let known = self.inner.abilities.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match known {
            Some(known) => Ok(known),
            None => self.abilities().await,
        }
    }

    pub(crate) fn remember(&self, abilities: &Arc<Abilities>) {
        let mut known = self.inner.abilities.lock().unwrap_or_else(PoisonError::into_inner);
        *known = Some(Arc::clone(abilities));
    }
}

/// Shows the address without the token.
impl fmt::Debug for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Site").field("url", &self.inner.base.as_str()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locations_keep_the_prefix_and_names_are_encoded() {
        let site = Site::connect(&Endpoint::parse("http://host/prefix").unwrap()).unwrap();
        let location = |text| site.location(text).unwrap().to_string();
        assert_eq!(location("/files/1"), "http://host/prefix/files/1");
        assert_eq!(location("/prefix/files/1"), "http://host/prefix/files/1");
        assert_eq!(location("http://other/files/1"), "http://other/files/1");
        assert_eq!(location("1"), "http://host/prefix/files/1");
        let address = site.address(["projects", "p", "a b", "50%?#"]).unwrap();
        assert_eq!(address.as_str(), "http://host/prefix/projects/p/a%20b/50%25%3F%23");
        for bad in ["", ".", ".."] {
            assert!(site.address(["projects", "p", bad]).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_token_goes_to_no_other_host() {
        let mut endpoint = Endpoint::parse("https://host").unwrap();
        endpoint.token = Some("secret".to_owned());
        let site = Site::connect(&endpoint).unwrap();
        for (url, expected) in [
            ("https://host/a", true),
            ("https://other/a", false),
            ("http://host/a", false),
            ("https://host:1/", false),
        ] {
            let request = site.request(Method::GET, &Url::parse(url).unwrap()).build().unwrap();
            assert_eq!(request.headers().contains_key(AUTHORIZATION), expected, "{url}");
        }
    }
}
