//! A site (`holdfast serve`) and a shipper (`holdfast ship`) with folders of their own, in memory.
//! Not here: the link between them, and other programs that send files.

use crate::BenchError;
use crate::program::Program;
use crate::work_folder::WorkFolder;
use serde_json::Value;
use std::fmt::Display;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Project of all files.
const PROJECT: &str = "p";

/// Space for catalog, ledger and events beside the contents.
const OVERHEAD: u64 = 64 << 20;

/// Options of the site: a bench may ask more often than a client should.
const OPTIONS: &str = "[limits]\nrequests_per_second = 1000000\nrequest_burst = 1000000\n";

fn put(path: &Path, text: &str) -> Result<(), BenchError> {
    fs::write(path, text).map_err(BenchError::file(path, "write it"))
}

/// Running site; ended and removed when dropped.
#[derive(Debug)]
pub struct ArchiveSite {
    // Dropped in this order: the program ends before its folder is removed.
    #[allow(dead_code, reason = "runs until it is dropped")]
    program: Program,
    #[allow(dead_code, reason = "is there until it is dropped")]
    folder: WorkFolder,
    address: SocketAddr,
}

impl ArchiveSite {
    /// Starts an empty site with room for so many bytes of contents.
    pub fn start(holdfast: &Path, contents: u64) -> Result<Self, BenchError> {
        // The vault may copy an upload.
        let folder = WorkFolder::in_memory(2 * contents + OVERHEAD)?;
        let (data, options, out) = (folder.file("data"), folder.file("site.toml"), folder.file("events"));
        put(&options, OPTIONS)?;
        let arguments = [
            "serve".as_ref(),
            data.as_os_str(),
            "--listen".as_ref(),
            "127.0.0.1:0".as_ref(),
            "--config".as_ref(),
            options.as_os_str(),
            "--json".as_ref(),
        ];
        let mut program =
            Program::start_apart(holdfast, &arguments, Stdio::null(), &out, &folder.file("said"))?;
        let mut address = None;
        program.until("the address of the site", |_| {
            let events = fs::read_to_string(&out).unwrap_or_default();
            let started = events.lines().next().and_then(|line| serde_json::from_str::<Value>(line).ok());
            address =
                started.and_then(|started| started["url"].as_str()?.strip_prefix("http://")?.parse().ok());
            address.is_some()
        })?;
        let address = address.ok_or_else(|| BenchError::accounting("the site has no address"))?;
        Ok(Self { program, folder, address })
    }

    /// Address of the site.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// True when the catalog has a stored version of `bytes` bytes of a file.
    pub fn has(&self, name: &str, bytes: u64) -> Result<bool, BenchError> {
        let failed = BenchError::during("asking the site");
        let path = format!("/catalog/stat?path=/{PROJECT}/{name}");
        let answer = get(self.address, &path).map_err(failed)?;
        let Some((_, body)) = answer.split_once("\r\n\r\n").filter(|_| answer.starts_with("HTTP/1.1 200"))
        else {
            return Ok(false);
        };
        let stat: Value =
            serde_json::from_str(body).map_err(BenchError::during("reading the site's answer"))?;
        let versions = stat["versions"].as_array().map_or(&[][..], Vec::as_slice);
        Ok(versions.iter().any(|version| version["size"].as_u64() == Some(bytes)))
    }
}

/// Answer to a request, with its header.
fn get(address: SocketAddr, path: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

/// Settings of a shipper that cases change.
#[derive(Clone, Copy, Debug)]
pub struct ShipperSetup {
    /// Bytes of a block.
    pub block: u64,
    /// Connections at the same time.
    pub connections: usize,
    /// True to end when the archive has every file.
    pub once: bool,
}

impl Default for ShipperSetup {
    fn default() -> Self {
        Self { block: 1 << 20, connections: 8, once: true }
    }
}

/// Running shipper of one folder.
#[derive(Debug)]
pub struct Shipper {
    program: Program,
    folder: WorkFolder,
    out: PathBuf,
    began: Instant,
}

/// Totals of a shipper that has ended.
#[derive(Clone, Copy, Debug, Default)]
pub struct Shipped {
    /// Time from the start of the program to its end.
    pub took: Duration,
    /// Files that were delivered.
    pub files: u64,
    /// Bytes that were sent more than once.
    pub resent_bytes: u64,
    /// Blocks that arrived damaged.
    pub damaged_blocks: u64,
}

impl Shipper {
    /// Starts a shipper of the files in `source` to the site behind `archive`.
    pub fn start(
        holdfast: &Path,
        source: &Path,
        archive: SocketAddr,
        setup: ShipperSetup,
    ) -> Result<Self, BenchError> {
        let folder = WorkFolder::in_memory(OVERHEAD)?;
        let (settings, out) = (folder.file("ship.toml"), folder.file("events"));
        let ShipperSetup { block, connections, once } = setup;
        let quoted = |text: &dyn Display| Value::from(text.to_string()).to_string();
        let text = format!(
            "[archive]\nurl = \"http://{archive}\"\nproject = \"{PROJECT}\"\n\
             [[folder]]\npath = {}\nquiet = \"100ms\"\n\
             [network]\nblock = \"{block}B\"\nconnections = {connections}\n\
             [state]\nfolder = {}\n",
            quoted(&source.display()),
            quoted(&folder.file("state").display()),
        );
        put(&settings, &text)?;
        let mut arguments = vec!["ship".as_ref(), settings.as_os_str(), "--json".as_ref()];
        if once {
            arguments.push("--once".as_ref());
        }
        let began = Instant::now();
        let program = Program::start_apart(holdfast, &arguments, Stdio::null(), &out, &folder.file("said"))?;
        Ok(Self { program, folder, out, began })
    }

    /// Waits until the shipper watches its folder: it has written its first status.
    pub fn until_it_watches(&mut self) -> Result<(), BenchError> {
        let status = self.folder.file("state").join("status.json");
        self.program.until("the status of the shipper", |_| status.is_file())
    }

    /// Stops a shipper that would go on.
    pub fn stop(self) -> Result<Shipped, BenchError> {
        self.program.interrupt();
        self.finish(Duration::from_secs(30))
    }

    /// Waits for the end of the program; a shipper that is not done after `deadline` is killed.
    pub fn finish(self, deadline: Duration) -> Result<Shipped, BenchError> {
        let Self { program, folder, out, began } = self;
        let said = program.end_within(deadline, &[0])?;
        let took = began.elapsed();
        let events = fs::read_to_string(&out).map_err(BenchError::file(&out, "read it"))?;
        let status: Value = serde_json::from_str(events.lines().next_back().unwrap_or_default())
            .map_err(|_| BenchError::program("holdfast ship", format!("no status\n{said}")))?;
        drop(folder);
        let total = |name: &str| status["totals"][name].as_u64().unwrap_or(0);
        Ok(Shipped {
            took,
            files: total("files"),
            resent_bytes: total("resent_bytes"),
            damaged_blocks: total("damaged_blocks"),
        })
    }
}
