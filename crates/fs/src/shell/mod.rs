//! Shell: unmodified programs see the tree below a folder, without any privilege.
//!
//! The tree is a FUSE mount in name spaces of the program ([`ShellWay::Fuse`]) on systems that allow it. Else the system
//! calls of the program are answered by the file system ([`ShellWay::Calls`], `seccomp_unotify`(2)): a file that is read is an
//! empty memory file in its process, at a high descriptor. Reads of such descriptors are answered with bytes of the site; a
//! mapping or a copy to a low descriptor fills the file first. A file that is written is the spool itself: the kernel writes it,
//! and its close stores it. The kernel carries out all other calls.

mod calls;
mod files;
mod layout;
mod names;
mod namespace;
mod opened;
mod paths;
mod process;
mod sys;

use crate::error::FsError;
use crate::file_system::FileSystem;
use crate::mount::serve_mount;
use calls::Kind;
use namespace::Namespace;
use opened::{Opened, OpenedTable};
use paths::{Names, Place};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use seccompiler::BpfProgram;
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::{Component, Path, PathBuf};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use sys::{Answer, Call, Listener};
use tempfile::TempDir;
use tokio::runtime::Handle;

/// First descriptor of entries of the tree, which is kept for the current folder. Programs that use select(2) see them too.
const FIRST: u32 = 512;

/// Pause between two looks whether the shell is over.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// Way in which programs see the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShellWay {
    /// FUSE mount in name spaces of its own.
    Fuse,
    /// System calls are answered by the file system.
    Calls,
}

/// Program that sees the tree, and so do the programs that it starts. The tree is gone when this is dropped.
#[derive(Debug)]
pub struct Shell {
    /// First process of the shell.
    pub program: Child,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Shell {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A bug in that thread was reported there.
            let _ = thread.join();
        }
    }
}

/// Error of a start.
#[derive(Debug, thiserror::Error)]
pub enum ShellError {
    /// The system does not allow this way.
    #[error("this way is not possible: {0}")]
    Way(io::Error),
    /// The program cannot be run.
    #[error("the program cannot be run: {0}")]
    Program(io::Error),
}

/// Tells whether a way is possible, by trying it without a program.
pub fn check(way: ShellWay, fs: &FileSystem, folder: &Path) -> io::Result<()> {
    let mut command = Command::new("/");
    let started = Start::new(way, fs, folder, &command)?.prepare(&mut command)?;
    std::thread::scope(|scope| {
        // A call of the process may wait for the listener, which is closed at once.
        let accepted = scope.spawn(|| {
            let descriptor = started.accept()?;
            if way == ShellWay::Calls {
                // The memory of the process must be readable.
                let listener = Listener::new(descriptor);
                let call = listener.receive()?;
                call.text(call.arguments[0])?;
            }
            Ok::<(), io::Error>(())
        });
        let spawned = command.spawn();
        drop(command);
        match (accepted.join(), spawned) {
            (Ok(Ok(())), _) => Ok(()),
            (Ok(Err(error)), Ok(_)) | (_, Err(error)) => Err(error),
            (Err(_), Ok(_)) => Err(io::Error::other("the process did not do its steps")),
        }
    })
}

/// Starts a program that sees the tree below an absolute path.
pub fn start(
    way: ShellWay,
    fs: &Arc<FileSystem>,
    folder: &Path,
    mut command: Command,
    runtime: &Handle,
) -> Result<Shell, ShellError> {
    let start = Start::new(way, fs, folder, &command).and_then(|start| start.prepare(&mut command));
    let start = start.map_err(ShellError::Way)?;
    let is_over = Arc::new(AtomicBool::new(false));
    let is_begun = Arc::new(AtomicBool::new(false));
    let (over, begun) = (Arc::clone(&is_over), Arc::clone(&is_begun));
    let (fs, folder, runtime) = (Arc::clone(fs), folder.to_owned(), runtime.clone());
    // The first call of the program waits for an answer, and `spawn` waits for the program.
    let thread = std::thread::Builder::new().name("shell".to_owned()).spawn(move || {
        let Ok(descriptor) = start.accept() else { return };
        begun.store(true, Ordering::Relaxed);
        let served = match way {
            ShellWay::Fuse => serve_mount(fs, descriptor, runtime).map(drop),
            ShellWay::Calls => {
                Supervisor::new(fs, &folder, descriptor, runtime).map(|supervisor| supervisor.serve(&over))
            }
        };
        // Without an answer the program fails, and tells so.
        drop(served);
    });
    let thread = thread.map_err(ShellError::Way)?;
    let program = command.spawn();
    // The other end of the socket is closed with the command.
    drop(command);
    match program {
        Ok(program) => Ok(Shell { program, is_over, thread: Some(thread) }),
        Err(error) => {
            is_over.store(true, Ordering::Relaxed);
            let _ = thread.join();
            let is_begun = is_begun.load(Ordering::Relaxed);
            Err(if is_begun { ShellError::Program(error) } else { ShellError::Way(error) })
        }
    }
}

/// Steps of a new process.
enum Steps {
    Namespace(Namespace),
    Filter(BpfProgram),
}

/// Start of a program.
struct Start {
    steps: Steps,
    /// Folder for a new root.
    staging: Option<TempDir>,
}

impl Start {
    fn new(way: ShellWay, fs: &FileSystem, folder: &Path, command: &Command) -> io::Result<Self> {
        match way {
            ShellWay::Fuse => {
                let current =
                    command.get_current_dir().map_or_else(std::env::current_dir, |at| Ok(at.to_owned()));
                let current = current.unwrap_or_else(|_| PathBuf::from("/"));
                let staging = tempfile::Builder::new().prefix("root-").tempdir_in(&fs.options().spool)?;
                let steps = Steps::Namespace(Namespace::new(folder, staging.path(), &current)?);
                Ok(Self { steps, staging: Some(staging) })
            }
            ShellWay::Calls => {
                let program = calls::filter();
                let program =
                    program.ok_or_else(|| io::Error::other("no filter for this machine is known"))?;
                Ok(Self { steps: Steps::Filter(program), staging: None })
            }
        }
    }

    fn prepare(self, command: &mut Command) -> io::Result<Started> {
        let (socket, other) =
            socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        match self.steps {
            Steps::Namespace(namespace) => sys::prepare(command, other, move || namespace.enter()),
            Steps::Filter(program) => sys::prepare(command, other, move || sys::filter(&program)),
        }
        Ok(Started { socket, staging: self.staging })
    }
}

/// Program that is being started.
struct Started {
    socket: OwnedFd,
    /// Folder of a new root, for as long as the steps take.
    #[expect(dead_code, reason = "kept for its removal")]
    staging: Option<TempDir>,
}

impl Started {
    /// Waits until its process has done its steps.
    fn accept(&self) -> io::Result<OwnedFd> {
        sys::accept(&self.socket)
    }
}

/// Answers the calls of all processes of a shell.
struct Supervisor {
    fs: Arc<FileSystem>,
    prefix: Names,
    listener: Listener,
    opened: OpenedTable,
    calls: BTreeMap<i64, Kind>,
    runtime: Handle,
    /// True once a process has a current folder in the tree.
    is_entered: AtomicBool,
    /// Current folders of processes that closed their marks.
    closed: Mutex<HashMap<(i32, u64), Names>>,
    /// Locked while a process gets a descriptor.
    giving: Mutex<()>,
}

/// Result of a call: its answer, nothing if it was answered already.
type Answered = Result<Option<Answer>, Errno>;

impl From<FsError> for Errno {
    fn from(error: FsError) -> Self {
        error.errno
    }
}

/// Answer of a call that the kernel carries out.
const CONTINUE: Answered = Ok(Some(Answer::Continue));

/// Answer of a call that returns nothing.
const DONE: Answered = Ok(Some(Answer::Value(0)));

impl Supervisor {
    fn new(
        fs: Arc<FileSystem>,
        folder: &Path,
        descriptor: OwnedFd,
        runtime: Handle,
    ) -> io::Result<Arc<Self>> {
        let opened = OpenedTable::new(&fs.options().spool)?;
        let names = folder.components().filter_map(|part| match part {
            Component::Normal(name) => Some(name.to_string_lossy().into_owned()),
            _ => None,
        });
        let (prefix, listener, calls) = (names.collect(), Listener::new(descriptor), calls::calls());
        let is_entered = AtomicBool::new(false);
        let (closed, giving) = (Mutex::default(), Mutex::default());
        Ok(Arc::new(Self { fs, prefix, listener, opened, calls, runtime, is_entered, closed, giving }))
    }

    fn serve(self: Arc<Self>, is_over: &AtomicBool) {
        while !is_over.load(Ordering::Relaxed) {
            let mut sources = [
                PollFd::new(&self.listener, PollFlags::IN),
                PollFd::new(self.opened.closes(), PollFlags::IN),
            ];
            if poll(&mut sources, Some(&LOOK)).is_err() {
                continue;
            }
            let (calls, closes) = (sources[0].revents(), sources[1].revents());
            if closes.contains(PollFlags::IN) {
                self.release_closed();
            }
            if calls.contains(PollFlags::IN) {
                if let Ok(call) = self.listener.receive() {
                    self.take(call);
                }
            } else if calls.contains(PollFlags::HUP) {
                return;
            }
        }
    }

    /// Answers a call at once if the kernel carries it out, else in a task.
    fn take(self: &Arc<Self>, call: Call) {
        let this = Arc::clone(self);
        match self.plan(&call) {
            // A process whose memory must not be read, such as an agent with keys, sees no tree.
            Err(Errno::PERM | Errno::ACCESS | Errno::SRCH) | Ok(Work::Kernel) => {
                self.listener.answer(&call, Answer::Continue);
            }
            Err(errno) => self.listener.answer(&call, Answer::Error(errno)),
            Ok(Work::Missing) => self.listener.answer(&call, Answer::Error(Errno::NOSYS)),
            Ok(work) => drop(self.runtime.spawn(async move {
                match this.work(&call, work).await {
                    Ok(Some(answer)) => this.listener.answer(&call, answer),
                    Ok(None) => {}
                    Err(errno) => this.listener.answer(&call, Answer::Error(errno)),
                }
            })),
        }
    }

    /// Work of a call, from its arguments.
    fn plan(&self, call: &Call) -> Result<Work, Errno> {
        let Some(kind) = self.calls.get(&call.number) else { return Ok(Work::Kernel) };
        Ok(match *kind {
            Kind::Missing => Work::Missing,
            Kind::Clone => return Err(Errno::OPNOTSUPP),
            Kind::Path(named, act) => match self.find(call, named)? {
                Found::Outside => self.outside(call, act),
                found => Work::Path(found, act),
            },
            Kind::Pair(old, new, act) => match (self.find(call, old)?, self.find(call, new)?) {
                (Found::Outside, Found::Outside) => Work::Kernel,
                (Found::Inside(old), Found::Inside(new)) => Work::Pair(old, new, act),
                _ => return Err(Errno::XDEV),
            },
            Kind::File(argument, act) => match self.opened(call, call.arguments[argument]) {
                Some(opened) => Work::File(opened, act),
                None => Work::Kernel,
            },
            Kind::EnterFile => match self.opened(call, call.arguments[0]) {
                Some(opened) => Work::Enter(opened),
                None if self.current(call).is_some() => {
                    // The kernel tells an error itself: the current folder stays.
                    let file = call.file(call.arguments[0] as i32);
                    let found = file.and_then(rustix::fs::fstat);
                    if found.is_ok_and(|found| names::is_folder(found.st_mode)) {
                        Work::Leave
                    } else {
                        Work::Kernel
                    }
                }
                None => Work::Kernel,
            },
            Kind::Current => self.current(call).map_or(Work::Kernel, Work::Current),
        })
    }

    async fn work(self: &Arc<Self>, call: &Call, work: Work) -> Answered {
        match work {
            Work::Kernel => CONTINUE,
            Work::Missing => Err(Errno::NOSYS),
            Work::Path(found, act) => self.path(call, found, act).await,
            Work::Pair(old, new, act) => self.pair(call, &old, &new, act).await,
            Work::File(opened, act) => self.file(call, &opened, act).await,
            Work::Enter(opened) => match opened.names() {
                Some(names) => self.enter(call, names.clone()).await,
                None => Err(Errno::NOTDIR),
            },
            Work::Leave => self.leave(call),
            Work::Restore(names) => self.restore(call, names),
            Work::Current(names) => self.tell_current(call, &names),
        }
    }

    /// Entry of the tree that an open descriptor of a process stands for.
    fn opened(&self, call: &Call, descriptor: u64) -> Option<Arc<Opened>> {
        let descriptor = descriptor as i32;
        if descriptor < 0 {
            return None;
        }
        self.opened.get(&call.file(descriptor).ok()?)
    }

    /// Current folder of a process, if it lies in the tree.
    fn current(&self, call: &Call) -> Option<Names> {
        if !self.is_entered.load(Ordering::Relaxed) {
            return None;
        }
        match self.opened(call, FIRST.into()) {
            Some(mark) => mark.current().cloned(),
            None => self.closed_mark(call),
        }
    }

    /// Current folder of a process that closed its mark.
    fn closed_mark(&self, call: &Call) -> Option<Names> {
        let closed = self.closed.lock().unwrap_or_else(PoisonError::into_inner);
        if closed.is_empty() { None } else { closed.get(&call.identity().ok()?).cloned() }
    }

    /// Finds the entry that a call names.
    fn find(&self, call: &Call, place: calls::Named) -> Result<Found, Errno> {
        let calls::Named(folder_at, path_at) = place;
        let folder = folder_at.map_or(libc::AT_FDCWD, |argument| call.arguments[argument] as i32);
        let address = call.arguments[path_at];
        let text = if address == 0 { Vec::new() } else { call.text(address)? };
        if text.is_empty() && folder != libc::AT_FDCWD {
            let opened = self.opened(call, folder as u64);
            return Ok(opened.map_or(Found::Outside, Found::Open));
        }
        if let Some(opened) = paths::descriptor(&text).and_then(|number| self.opened(call, number as u64)) {
            return Ok(Found::Alias(opened));
        }
        let base = match folder {
            _ if text.starts_with(b"/") => None,
            libc::AT_FDCWD => self.current(call),
            folder => self.opened(call, folder as u64).and_then(|opened| opened.names().cloned()),
        };
        Ok(match paths::place(&self.prefix, base.as_deref(), &text)? {
            Place::Outside => Found::Outside,
            Place::Left(path) => Found::Left(path),
            Place::Inside(names) => Found::Inside(names),
        })
    }
}

/// Entry that a call names.
enum Found {
    /// Entry of the machine.
    Outside,
    /// Entry of the machine to which a path leads from within the tree.
    Left(std::path::PathBuf),
    /// Entry of the tree.
    Inside(Names),
    /// Entry of the tree that is open.
    Open(Arc<Opened>),
    /// Open entry by its path in `/proc` or `/dev`.
    Alias(Arc<Opened>),
}

/// Work of a call.
enum Work {
    Kernel,
    Missing,
    Path(Found, calls::Act),
    Pair(Names, Names, calls::PairAct),
    File(Arc<Opened>, calls::FileAct),
    Enter(Arc<Opened>),
    Leave,
    Restore(Names),
    Current(Names),
}
