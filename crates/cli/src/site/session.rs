//! Session with a site: its client, and the runtime on which the synchronous commands run requests.

use holdfast_base::failure::{Failure, Result, reason};
use holdfast_remote::{Endpoint, RemoteError, RemoteErrorKind, Site};
use std::fmt;
use std::future::Future;
use tokio::runtime::{Builder, Runtime};

/// Client of one site with its runtime.
pub(crate) struct Session {
    site: Site,
    address: String,
    runtime: Runtime,
}

impl Session {
    /// Opens a session. The first request makes a connection.
    pub(crate) fn open(endpoint: &Endpoint) -> Result<Self> {
        let site = Site::connect(endpoint).map_err(|error| Failure::usage(error).at("--site"))?;
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime
            .map_err(|error| Failure::failed(format_args!("cannot start the client: {}", reason(&error))))?;
        Ok(Self { site, address: endpoint.url.to_string(), runtime })
    }

    /// Client of the site.
    pub(crate) fn site(&self) -> &Site {
        &self.site
    }

    /// Address of the site.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Runs work of several requests to its end.
    pub(crate) fn run<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        self.runtime.block_on(work)
    }

    /// Runs one request to its end.
    pub(crate) fn request<T>(&self, request: impl Future<Output = Result<T, RemoteError>>) -> Result<T> {
        self.runtime.block_on(request).map_err(|error| failure(&error))
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("site", &self.site).finish_non_exhaustive()
    }
}

/// Failure of a command by an error of a request. The error names the remedy.
pub(crate) fn failure(error: &RemoteError) -> Failure {
    let text = holdfast_base::clean(&error.message);
    match error.kind {
        RemoteErrorKind::NotFound => Failure::nothing(text),
        _ => Failure::failed(text),
    }
}
