//! Server of a test with its client, and reproducible contents.

use bytes::Bytes;
use holdfast_remote::{Endpoint, NewUpload, Site};
use holdfast_server::{RunningServer, Server, ServerOptions};
use std::path::PathBuf;
use std::time::Duration;
use tempfile::TempDir;

pub(crate) struct World {
    folder: TempDir,
    pub(crate) server: RunningServer,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(|_| {})
    }

    pub(crate) fn with(change: impl FnOnce(&mut ServerOptions)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut options = ServerOptions::new(folder.path().join("data"));
        options.listen.set_port(0);
        options.limits.reserved_space = 0;
        options.limits.requests_per_second = u32::MAX;
        options.limits.request_burst = u32::MAX;
        change(&mut options);
        let server = Server::start(options).unwrap();
        Self { folder, server }
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    pub(crate) fn endpoint(&self) -> Endpoint {
        Endpoint::parse(&self.server.url()).unwrap()
    }

    pub(crate) fn site(&self) -> Site {
        Site::connect(&self.endpoint()).unwrap()
    }
}

/// Reproducible bytes without repetitions.
pub(crate) fn contents(seed: u64, length: usize) -> Bytes {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&seed.to_le_bytes());
    let mut bytes = vec![0; length];
    hasher.finalize_xof().fill(&mut bytes);
    bytes.into()
}

/// Upload to the project `p`.
pub(crate) fn upload(path: &str, length: Option<u64>, first: Option<Bytes>) -> NewUpload {
    NewUpload { project: Some("p".to_owned()), path: path.to_owned(), length, first, ..NewUpload::default() }
}

/// Runs a test's future; a hanging test fails.
pub(crate) fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let test = async { tokio::time::timeout(Duration::from_mins(2), test).await };
    runtime.block_on(test).expect("the test hangs")
}
