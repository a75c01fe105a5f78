//! Opening of sources: everything that needs a name, a file or a privilege, before memory is locked and privileges are
//! dropped.

use super::file::{Fifo, FileSource, Wait, ends_early};
use super::shm::{DEFAULT_AREA, ShmSource};
use super::stop::StopFlag;
use super::tcp::TcpSource;
use super::udp::{self, UdpSource};
use super::{PreambleFrom, Source, SourceError, SourceOptions, SourceSpec, iface, replay, stream};
use crate::framing::{Cutter, Framing};
use crate::producer::Overload;
use holdfast_base::{ByteSize, Clock, SystemClock};
use holdfast_format::StreamKind;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

/// Largest preamble: it lives in the journal, outside expiry. A ring of small slots takes less, and says so.
pub const MAX_PREAMBLE: ByteSize = ByteSize::mib(16);

/// A source that is ready to run.
pub struct Opened {
    /// To be run on a thread of its own.
    pub source: Box<dyn Source>,
    /// What it delivers.
    pub kind: StreamKind,
    /// What leads every export, if anything does.
    pub preamble: Option<Vec<u8>>,
    /// Whether one comes with its input, ahead of the elements: a pipe need not have it yet.
    pub leads: bool,
    /// How its elements are put back into a stream.
    pub framing: Framing,
    /// What happens when there is no room.
    pub overload: Overload,
    /// What its user should know: a buffer smaller than asked for, for example.
    pub notes: Vec<String>,
    /// Memory that reading takes beside its batches, as far as it depends on what is in the input: of a file that is
    /// replayed.
    pub memory: u64,
}

impl std::fmt::Debug for Opened {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Opened")
            .field("kind", &self.kind)
            .field("framing", &self.framing)
            .finish_non_exhaustive()
    }
}

/// Opens a source, without waiting for its input; only a `--preamble` that is itself a pipe is read to its end, until
/// `stop` is raised.
pub fn open(spec: &SourceSpec, options: &SourceOptions, stop: &StopFlag) -> Result<Opened, SourceError> {
    spec.check(options)?;
    let overload = options.overload.unwrap_or_else(|| spec.default_overload());
    let framing = options.framing.unwrap_or_else(|| spec.default_framing());
    let preamble = match &options.preamble {
        Some(PreambleFrom::File(path)) => preamble_file(path, stop)?,
        _ => None,
    };
    let plain = |source: Box<dyn Source>, preamble, notes| Opened {
        source,
        kind: StreamKind::Bytes,
        preamble,
        leads: false,
        framing,
        overload,
        notes,
        memory: 0,
    };
    let file_opened = |(source, leading): (FileSource, Option<Vec<u8>>)| {
        let leads = source.leading.is_some();
        Opened { leads, ..plain(Box::new(source), leading.or_else(|| preamble.clone()), Vec::new()) }
    };
    let name = spec.to_string();
    let failed = |what, error| problem(&name, what, error);
    match spec {
        SourceSpec::Stdin => {
            let owned = io::stdin().as_fd().try_clone_to_owned();
            let file = File::from(owned.map_err(|error| failed("use standard input", error))?);
            file_source(&name, file, framing, options.preamble.as_ref(), stop, false).map(file_opened)
        }
        SourceSpec::File(path) => {
            // Without blocking: a named pipe that has no writer yet is opened, too.
            let file = open_at_once(path).map_err(|error| failed("open the file", error))?;
            file_source(&name, file, framing, options.preamble.as_ref(), stop, true).map(file_opened)
        }
        SourceSpec::Tcp(address) => {
            let source = resolve(address)
                .and_then(TcpListener::bind)
                .and_then(|listener| TcpSource::new(name.clone(), listener, framing, stop))
                .map_err(|error| failed("listen there", error))?;
            Ok(plain(Box::new(source), preamble, Vec::new()))
        }
        SourceSpec::Shm(path) => {
            let area = options.area.unwrap_or(DEFAULT_AREA);
            let source = ShmSource::open(name, path, area, framing)?;
            Ok(plain(Box::new(source), preamble, Vec::new()))
        }
        SourceSpec::Udp { address, interface } => {
            let since = SystemClock::new().now();
            let socket = resolve(address).and_then(|address| udp::bind(address, interface.as_deref()));
            let socket = socket.map_err(|error| failed("receive there", error))?;
            let granted = udp::enlarge(&socket).map_err(|error| failed("make room in the socket", error))?;
            let mut notes = Vec::new();
            if granted < ByteSize::mib(8) {
                notes.push(format!(
                    "{name}: the kernel gives the socket {granted} only; bursts beyond that are lost and counted. \
                     Raise net.core.rmem_max, or run with CAP_NET_ADMIN"
                ));
            }
            let source = UdpSource::new(name.clone(), socket, since)
                .map_err(|error| failed("receive there", error))?;
            Ok(plain(Box::new(source), preamble, notes))
        }
        SourceSpec::Iface(interface) => iface::open(&name, interface, options, overload),
        SourceSpec::Replay(path) => replay::open(&name, path, options, overload),
    }
}

pub(super) fn problem(name: &str, what: &'static str, error: io::Error) -> SourceError {
    let hint = match error.kind() {
        ErrorKind::NotFound => " (check the name)",
        ErrorKind::PermissionDenied => " (run as a permitted user, or choose another port or file)",
        ErrorKind::AddrInUse => " (another program has that port: choose another, or stop it)",
        ErrorKind::AddrNotAvailable => " (no interface has that address: `ip addr` lists all)",
        _ if error.raw_os_error() == Some(libc::ENODEV) => " (no such interface: `ip link` lists all)",
        _ => "",
    };
    SourceError::Open { name: name.to_owned(), what, error, hint }
}

fn resolve(address: &str) -> io::Result<SocketAddr> {
    let none = || io::Error::new(ErrorKind::NotFound, "the name has no address");
    address.to_socket_addrs()?.next().ok_or_else(none)
}

/// Opens for reading without waiting for anybody: not for the writer of a named pipe either.
pub(super) fn open_at_once(path: &Path) -> io::Result<File> {
    File::options().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path)
}

/// Reads a preamble that has a file of its own. `None`: stop.
fn preamble_file(path: &Path, stop: &StopFlag) -> Result<Option<Vec<u8>>, SourceError> {
    let name = format!("--preamble {}", path.display());
    let failed = |error| problem(&name, "read the preamble", error);
    let file = open_at_once(path).map_err(failed)?;
    let read = stream::read_whole(file, MAX_PREAMBLE.0 + 1, stop).map_err(failed)?;
    if let Some(bytes) = &read {
        check_preamble(&name, bytes.len() as u64)?;
    }
    Ok(read)
}

fn check_preamble(name: &str, bytes: u64) -> Result<(), SourceError> {
    if (1..=MAX_PREAMBLE.0).contains(&bytes) {
        return Ok(());
    }
    let what = format!("a preamble has 1 B to {MAX_PREAMBLE}, not {}", ByteSize(bytes));
    Err(SourceError::Unfit { name: name.to_owned(), what })
}

/// Sorts out what kind of file it is, and reads its preamble if that is at its head.
fn file_source(
    name: &str,
    mut file: File,
    framing: Framing,
    preamble: Option<&PreambleFrom>,
    stop: &StopFlag,
    named: bool,
) -> Result<(FileSource, Option<Vec<u8>>), SourceError> {
    let failed = |what, error| problem(name, what, error);
    let unfit = |what: &str| SourceError::Unfit { name: name.to_owned(), what: what.to_owned() };
    let kind = file.metadata().map_err(|error| failed("look at the file", error))?.file_type();
    let wait = if kind.is_fifo() && named {
        Wait::Fifo(Fifo::new(&file, stop).map_err(|error| failed("wait on the pipe", error))?)
    } else if kind.is_dir() {
        return Err(unfit("this is a directory: name a file, a named pipe or a device"));
    } else if kind.is_socket() && named {
        return Err(unfit("this is a socket file: let its owner write to a named pipe or to tcp:"));
    } else if kind.is_file() || kind.is_block_device() {
        Wait::Never
    } else {
        Wait::Poll
    };
    let mut wanted = match preamble {
        Some(PreambleFrom::Leading(bytes)) => Some(*bytes),
        _ => None,
    };
    let once = wanted.is_some();
    let mut leading = None;
    if let Some(bytes) = wanted {
        check_preamble(name, bytes.0)?;
        if matches!(wait, Wait::Never) {
            // It is there already, or never will be.
            let read = stream::read_leading(&mut file, bytes.0 as usize, false, stop);
            leading = read.map_err(|error| match error.kind() {
                ErrorKind::UnexpectedEof => unfit(&ends_early(bytes)),
                _ => failed("read the preamble", error),
            })?;
            wanted = None;
        }
    }
    let before = leading.as_ref().map_or(0, |leading| leading.len() as u64);
    let (name, cutter) = (name.to_owned(), Cutter::new(framing));
    Ok((FileSource { name, file, wait, cutter, leading: wanted, before, once }, leading))
}
