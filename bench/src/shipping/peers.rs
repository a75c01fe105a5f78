//! Other ways to send files: a bare TCP stream, `curl` to the same site, `rclone` over `WebDAV`, `rsync` in a loop.
//! Each is timed from the start of the first program to the end of the last.

use super::archive_site::ArchiveSite;
use super::shaped_proxy::{LinkShape, ShapedProxy};
use super::stand::Source;
use crate::program::Program;
use crate::work_folder::WorkFolder;
use crate::{BenchError, tools};
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Bytes of one write of the bare stream.
const PIECE: usize = 256 << 10;

/// Time without a byte after which the bare stream has failed.
const SILENCE: Duration = Duration::from_secs(30);

/// Result of sending one file through a link.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// Time of the whole run.
    pub took: Duration,
    /// Bytes per second through the link while the file was sent.
    pub sustained: f64,
}

/// Sends a file as one TCP stream; the receiver drops the bytes and confirms the last.
pub fn bare_stream(file: &Path, link: LinkShape) -> Result<Sent, BenchError> {
    let listener = TcpListener::bind("127.0.0.1:0").and_then(|listener| {
        let address = listener.local_addr()?;
        Ok((listener, address))
    });
    let (listener, target) = listener.map_err(BenchError::during("starting the receiver"))?;
    let proxy = ShapedProxy::start(target, link)?;
    let took = stream(file, proxy.address(), &listener).map_err(BenchError::during("sending a stream"))?;
    Ok(Sent { took, sustained: proxy.sustained() })
}

/// Time of a file as one TCP stream without a link between.
pub fn bare_loopback(file: &Path) -> Result<Duration, BenchError> {
    let send = || -> io::Result<Duration> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        stream(file, listener.local_addr()?, &listener)
    };
    send().map_err(BenchError::during("sending a stream"))
}

fn stream(file: &Path, to: SocketAddr, listener: &TcpListener) -> io::Result<Duration> {
    let mut file = File::open(file)?;
    let began = Instant::now();
    let mut client = TcpStream::connect(to)?;
    let (mut server, _) = listener.accept()?;
    server.set_read_timeout(Some(SILENCE))?;
    client.set_write_timeout(Some(SILENCE))?;
    client.set_read_timeout(Some(SILENCE))?;
    std::thread::scope(|scope| {
        let receiver = scope.spawn(move || -> io::Result<()> {
            let mut buffer = vec![0; PIECE];
            while server.read(&mut buffer)? > 0 {}
            server.write_all(b".")
        });
        let mut buffer = vec![0; PIECE];
        loop {
            let length = file.read(&mut buffer)?;
            if length == 0 {
                break;
            }
            client.write_all(&buffer[..length])?;
        }
        client.shutdown(Shutdown::Write)?;
        client.read_exact(&mut [0])?;
        receiver.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })?;
    Ok(began.elapsed())
}

/// Runs a program to its end, at most until the deadline.
fn timed(
    program: &Path,
    arguments: &[String],
    place: &Path,
    deadline: Duration,
) -> Result<Duration, BenchError> {
    let began = Instant::now();
    let program = Program::start(program, arguments, Stdio::null(), &place.join("said"))?;
    program.end_within(deadline, &[0])?;
    Ok(began.elapsed())
}

/// Sends a file by one request of `curl` to a site. The site may still store it when `curl` ends.
pub fn curl(
    curl: &Path,
    site: &ArchiveSite,
    file: &Path,
    link: LinkShape,
    deadline: Duration,
) -> Result<Sent, BenchError> {
    let bytes = fs::metadata(file).map_err(BenchError::file(file, "look at it"))?.len();
    let proxy = ShapedProxy::start(site.address(), link)?;
    let place = WorkFolder::in_memory(1 << 20)?;
    let mut arguments: Vec<String> = ["-sS", "--fail", "-X", "POST"].map(str::to_owned).into();
    // The metadata are the project "p" and the path "curl", in Base64.
    for header in [
        "Tus-Resumable: 1.0.0".to_owned(),
        format!("Upload-Length: {bytes}"),
        "Upload-Metadata: project cA==,path Y3VybA==".to_owned(),
        "Content-Type: application/offset+octet-stream".to_owned(),
        "Expect:".to_owned(),
    ] {
        arguments.extend(["-H".to_owned(), header]);
    }
    let url = format!("http://{}/files", proxy.address());
    arguments.extend(["-T".to_owned(), file.display().to_string(), url]);
    let took = timed(curl, &arguments, place.path(), deadline)?;
    Ok(Sent { took, sustained: proxy.sustained() })
}

/// Server of `rclone` for `WebDAV` over a folder in memory.
#[derive(Debug)]
pub struct WebDav {
    // Dropped in this order: the program ends before its folder is removed.
    #[allow(dead_code, reason = "runs until it is dropped")]
    server: Program,
    folder: WorkFolder,
    rclone: PathBuf,
    address: SocketAddr,
}

impl WebDav {
    /// Starts a server with room for so many bytes.
    pub fn start(rclone: &Path, contents: u64) -> Result<Self, BenchError> {
        let folder = WorkFolder::in_memory(contents + (16 << 20))?;
        let data = folder.file("data");
        fs::create_dir(&data).map_err(BenchError::file(&data, "make it"))?;
        let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let address = free.map_err(BenchError::during("finding a port"))?;
        let arguments = format!("serve webdav --config= --addr {address}")
            .split(' ')
            .map(str::to_owned)
            .collect::<Vec<_>>();
        let arguments = [arguments, vec![data.display().to_string()]].concat();
        let mut server = Program::start(rclone, &arguments, Stdio::null(), &folder.file("served"))?;
        server.until("the port of rclone", |_| TcpStream::connect(address).is_ok())?;
        Ok(Self { server, folder, rclone: rclone.to_owned(), address })
    }

    /// Copies a file, or all files of a folder, to the server through a link.
    pub fn copy(&self, from: &Path, link: LinkShape, deadline: Duration) -> Result<Sent, BenchError> {
        let proxy = ShapedProxy::start(self.address, link)?;
        let took = self.copy_to(from, proxy.address(), deadline)?;
        Ok(Sent { took, sustained: proxy.sustained() })
    }

    /// Copies a file, or all files of a folder, to the server without a link between.
    pub fn copy_directly(&self, from: &Path, deadline: Duration) -> Result<Duration, BenchError> {
        self.copy_to(from, self.address, deadline)
    }

    fn copy_to(&self, from: &Path, to: SocketAddr, deadline: Duration) -> Result<Duration, BenchError> {
        let url = format!("http://{to}");
        let arguments = ["copy", "--config=", &from.display().to_string(), ":webdav:", "--webdav-url", &url]
            .map(str::to_owned);
        timed(&self.rclone, &arguments, self.folder.path(), deadline)
    }
}

/// Copies files to another folder by one call of `rclone`.
pub fn rclone_to_folder(rclone: &Path, source: &Source, deadline: Duration) -> Result<Duration, BenchError> {
    let place = WorkFolder::in_memory(source.space())?;
    let (from, to) = (source.folder().display().to_string(), place.file("copy").display().to_string());
    let arguments = ["copy", "--config=", &from, &to].map(str::to_owned);
    timed(rclone, &arguments, place.path(), deadline)
}

/// Copies files to another folder by one call of `rsync --append-verify` for each.
pub fn rsync_loop(rsync: &Path, source: &Source, deadline: Duration) -> Result<Duration, BenchError> {
    let place = WorkFolder::in_memory(source.space())?;
    let to = place.file("copy");
    fs::create_dir(&to).map_err(BenchError::file(&to, "make it"))?;
    let (program, to) = (rsync.display().to_string(), format!("{}/", to.display()));
    let began = Instant::now();
    for number in 0..source.files {
        if began.elapsed() > deadline {
            return Err(BenchError::program("rsync --append-verify", format!("not done after {deadline:?}")));
        }
        tools::output(&program, &["--append-verify", &source.file(number).display().to_string(), &to])?;
    }
    Ok(began.elapsed())
}
