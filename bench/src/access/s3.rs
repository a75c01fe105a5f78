//! S3 server over a folder in memory, for mounts of other programs.

use crate::BenchError;
use crate::program::Program;
use crate::tools;
use crate::work_folder::WorkFolder;
use std::fs;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::Stdio;

/// Name of the only bucket.
pub const BUCKET: &str = "bucket";

/// Access key and secret of the server.
pub const KEY: &str = "holdfast";

/// Running server; ended and removed when dropped.
#[derive(Debug)]
pub struct S3Server {
    // Dropped in this order: the program ends before its folder is removed.
    #[allow(dead_code, reason = "runs until it is dropped")]
    program: Program,
    folder: WorkFolder,
    address: SocketAddr,
}

impl S3Server {
    /// Starts a server with an empty bucket and room for so many bytes.
    pub fn start(contents: u64) -> Result<Self, BenchError> {
        let path = tools::need("versitygw")?;
        let folder = WorkFolder::in_memory(contents)?;
        let bucket = folder.file("data").join(BUCKET);
        fs::create_dir_all(&bucket).map_err(BenchError::file(&bucket, "make it"))?;
        let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let address = free.map_err(BenchError::during("finding a free port"))?;
        let data = folder.file("data").display().to_string();
        let arguments = ["--access", KEY, "--secret", KEY, "--port", &address.to_string(), "posix", &data]
            .map(str::to_owned);
        let mut program = Program::start(&path, &arguments, Stdio::null(), &folder.file("said"))?;
        program.until("the port of the S3 server", |_| TcpStream::connect(address).is_ok())?;
        Ok(Self { program, folder, address })
    }

    /// Address of the server.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// File of an object.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.file("data").join(BUCKET).join(name)
    }
}
