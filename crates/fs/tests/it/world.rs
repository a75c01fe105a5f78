//! Site of a test with a file system over it.

use holdfast_fs::{BufferMode, FileSystem, FsOptions};
use holdfast_remote::{Endpoint, Site};
use holdfast_server::{NewToken, RunningServer, Server, ServerOptions};
use std::io::Write as _;
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio::runtime::Runtime;

pub(crate) struct World {
    folder: TempDir,
    options: ServerOptions,
    server: Option<RunningServer>,
    pub(crate) runtime: Runtime,
}

impl World {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut options = ServerOptions::new(folder.path().join("data"));
        options.listen.set_port(0);
        options.limits.reserved_space = 0;
        options.limits.requests_per_second = u32::MAX;
        options.limits.request_burst = u32::MAX;
        let server = Server::start(options.clone()).unwrap();
        options.listen = server.address();
        std::fs::create_dir(folder.path().join("spool")).unwrap();
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        Self { folder, options, server: Some(server), runtime }
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn site(&self) -> Site {
        let address = self.options.listen;
        Site::connect(&Endpoint::parse(&format!("http://{address}")).unwrap()).unwrap()
    }

    /// Stops the server of the site.
    pub(crate) fn stop(&mut self) {
        self.server = None;
    }

    /// Starts the server again at its address.
    pub(crate) fn start(&mut self) {
        self.server = Some(Server::start(self.options.clone()).unwrap());
    }

    pub(crate) fn options(&self) -> FsOptions {
        FsOptions {
            root: "/".to_owned(),
            read_only: false,
            buffer: BufferMode::Adaptive(16 << 20),
            memory: 64 << 20,
            patience: Duration::from_mins(1),
            cache: Duration::from_secs(1),
            spool: self.folder.path().join("spool"),
            rings: Vec::new(),
        }
    }

    /// Makes a token of the site, after which requests need one.
    pub(crate) fn token(&self, new: NewToken) -> String {
        self.server.as_ref().unwrap().tokens().create(new).unwrap().1
    }

    /// File system with a token.
    pub(crate) fn fs_with(&self, token: &str) -> Arc<FileSystem> {
        let mut endpoint = Endpoint::parse(&format!("http://{}", self.options.listen)).unwrap();
        endpoint.token = Some(token.to_owned());
        Arc::new(FileSystem::new(Site::connect(&endpoint).unwrap(), self.options()))
    }

    /// Counter of the site.
    pub(crate) fn metric(&self, name: &str) -> u64 {
        let mut stream = TcpStream::connect(self.options.listen).unwrap();
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
        let text = std::io::read_to_string(stream).unwrap();
        let value = text.lines().find_map(|line| line.strip_prefix(&format!("holdfast_{name} ")));
        value.unwrap_or_else(|| panic!("{name} is not in {text}")).parse().unwrap()
    }

    /// Waits until the site has received a number of bytes.
    pub(crate) async fn until_received(&self, bytes: u64) {
        while self.metric("received_bytes_total") < bytes {
            tokio::task::yield_now().await;
        }
    }

    pub(crate) fn fs(&self, options: FsOptions) -> Arc<FileSystem> {
        Arc::new(FileSystem::new(self.site(), options))
    }

    /// Runs a test's future; a hanging test fails.
    pub(crate) fn run<T>(&self, test: impl Future<Output = T>) -> T {
        let test = async { tokio::time::timeout(Duration::from_mins(2), test).await };
        self.runtime.block_on(test).expect("the test hangs")
    }
}

/// Reproducible bytes without repetitions.
pub(crate) fn contents(seed: u64, length: usize) -> Vec<u8> {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&seed.to_le_bytes());
    let mut bytes = vec![0; length];
    hasher.finalize_xof().fill(&mut bytes);
    bytes
}
