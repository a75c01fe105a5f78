//! Helpers that start, watch and end the real program.

use crate::process::watch::Watch;
use holdfast_base::{ByteSize, StreamId, Timestamp};
use holdfast_media::{Access, Device, PlainDisk};
use holdfast_protocol::RingLocation;
use holdfast_protocol::client::Connection;
use holdfast_protocol::socket_path::socket_in;
use holdfast_reader::{Item, RingReader, Selection};
use holdfast_ring::{HoldRequest, Order, Outcome, Range};
use std::io::{BufRead, BufReader, Read, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_holdfast-recorder");

/// A folder for a ring, its socket and its sources.
pub(crate) struct TestFolder {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) ring: PathBuf,
}

impl TestFolder {
    pub(crate) fn new() -> Self {
        Self::within(&std::env::temp_dir())
    }

    /// In memory, where the system has such a file system: a device over a file there is slow only when told to be.
    pub(crate) fn in_memory() -> Self {
        let memory = Path::new("/dev/shm");
        if memory.is_dir() { Self::within(memory) } else { Self::new() }
    }

    fn within(parent: &Path) -> Self {
        let folder = tempfile::Builder::new().prefix("holdfast-recorder.").tempdir_in(parent).unwrap();
        let ring = folder.path().join("r.hf");
        Self { folder, ring }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn run(&self) -> PathBuf {
        self.path("run")
    }

    /// The program with this place's sockets, its streams piped.
    pub(crate) fn command(&self, options: &[&str]) -> Command {
        let mut command = Command::new(PROGRAM);
        command.arg(&self.ring).args(options).env("HOLDFAST_RUN", self.run());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Starts it and waits until it records.
    pub(crate) fn start(&self, options: &[&str]) -> Recorder {
        self.start_with(options, Vec::new())
    }

    /// The same, for one that waits for input at its start.
    pub(crate) fn start_with(&self, options: &[&str], input: Vec<u8>) -> Recorder {
        let mut child = Running::of(self.command(options).spawn().unwrap());
        let mut stdin = child.stdin.take().unwrap();
        // Aside: it may be more than a pipe takes.
        let feeder = std::thread::spawn(move || {
            let _ = stdin.write_all(&input);
            stdin
        });
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut said = String::new();
        while !said.contains("; recording ") {
            assert!(stderr.read_line(&mut said).unwrap() > 0, "it ended at once: {said}");
        }
        // Read to the end aside, so that it never waits for us.
        let rest = std::thread::spawn(move || {
            let mut rest = String::new();
            let _ = stderr.read_to_string(&mut rest);
            rest
        });
        let socket = socket_in(&self.run(), RingLocation::read(&self.ring).unwrap().superblock.ring);
        Recorder { child, feeder: Some(feeder), said, rest, socket }
    }

    /// Runs it to its end with this input.
    pub(crate) fn record(&self, options: &[&str], input: &[u8]) -> Ended {
        self.start_with(options, input.to_vec()).end()
    }

    /// What it says when it does not start: exit code and error.
    pub(crate) fn refused(&self, options: &[&str]) -> (i32, String) {
        let child = self.command(options).stdin(Stdio::null()).spawn().unwrap();
        let _watch = Watch::over(&child);
        let output = child.wait_with_output().unwrap();
        (output.status.code().unwrap_or(-1), String::from_utf8_lossy(&output.stderr).into_owned())
    }

    /// The least memory that a recorder of such a ring says it takes, as an option has it.
    pub(crate) fn least(&self, options: &[&str]) -> String {
        let (code, said) = self.refused(&[options, &["--memory", "1KiB"]].concat());
        assert_eq!(code, 2, "{said}");
        let least: ByteSize = said.trim().rsplit_once("at least ").unwrap().1.parse().unwrap();
        format!("{}KiB", least.0.div_ceil(1024))
    }

    /// Everything on the ring, without a recorder.
    pub(crate) fn contents(&self) -> Contents {
        Contents::read(&mut reader(&self.ring))
    }
}

/// Runs it as a user without rights, where we may: through `before`, programs that run others. Its exit code and what it
/// says.
pub(crate) fn as_nobody(place: &TestFolder, before: &[&str], options: &[&str]) -> Option<(i32, String)> {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: only root can run a program as somebody else");
        return None;
    }
    // Our temporary folder and our target directory may be closed to others: a copy of the program is not.
    let folder = tempfile::Builder::new().prefix("holdfast-nobody").tempdir_in("/tmp").unwrap();
    let open = |path: &Path, mode| {
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    open(folder.path(), 0o755);
    let program = folder.path().join("holdfast-recorder");
    // By a process of its own: what another test starts meanwhile would have our copy open for writing, and it could
    // not be run.
    assert!(Command::new("cp").arg(PROGRAM).arg(&program).status().unwrap().success());
    open(&program, 0o755);
    open(place.folder.path(), 0o777);
    let nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all"];
    let words: Vec<&str> = before.iter().chain(&nobody).copied().collect();
    let output = Command::new(words[0])
        .args(&words[1..])
        .arg(&program)
        .arg(&place.ring)
        .args(options)
        .env("HOLDFAST_RUN", place.path("nobody"))
        .stdin(Stdio::null())
        .output();
    let Ok(output) = output else {
        println!("skipped: {} is not installed", words[0]);
        return None;
    };
    Some((output.status.code().unwrap_or(-1), String::from_utf8_lossy(&output.stderr).into_owned()))
}

/// A reader straight from the lane.
pub(crate) fn reader(path: &Path) -> RingReader {
    let device = Device::open(path, Access::Look).unwrap();
    RingReader::over(Box::new(PlainDisk::new(device, 4))).unwrap()
}

/// A process that ends with its test, however that ends.
pub(crate) struct Running {
    child: Child,
    _watch: Watch,
}

impl Running {
    pub(crate) fn of(child: Child) -> Self {
        Self { _watch: Watch::over(&child), child }
    }
}

impl std::ops::Deref for Running {
    type Target = Child;

    fn deref(&self) -> &Child {
        &self.child
    }
}

impl std::ops::DerefMut for Running {
    fn deref_mut(&mut self) -> &mut Child {
        &mut self.child
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Nothing is left to do where it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) struct Recorder {
    pub(crate) child: Running,
    feeder: Option<JoinHandle<ChildStdin>>,
    pub(crate) said: String,
    rest: JoinHandle<String>,
    pub(crate) socket: PathBuf,
}

pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Recorder {
    /// Its input, once what it was started with is written.
    pub(crate) fn stdin(&mut self) -> Option<ChildStdin> {
        self.feeder.take().map(|feeder| feeder.join().unwrap())
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        rustix::process::kill_process(rustix::process::Pid::from_child(&self.child), signal).unwrap();
    }

    /// Signals again and again, until a signal counts as the second one and the process ends.
    pub(crate) fn signal_until_it_ends(&mut self) {
        while self.child.try_wait().unwrap().is_none() {
            self.signal(rustix::process::Signal::TERM);
            std::thread::yield_now();
        }
    }

    pub(crate) fn connect(&self) -> Connection {
        Connection::connect(&self.socket).unwrap()
    }

    pub(crate) fn reader(&self) -> RingReader {
        RingReader::connect(&self.socket).unwrap()
    }

    /// Waits for its end. Its input is closed unless somebody else has it.
    pub(crate) fn end(mut self) -> Ended {
        drop(self.stdin());
        let mut out = String::new();
        self.child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
        let status = self.child.wait().unwrap();
        let err = self.said + &self.rest.join().unwrap();
        Ended { status, out, err }
    }

    /// Elements that were packed, and the recorder's time, once at least `wanted` are.
    pub(crate) fn await_packed(&self, wanted: u64) -> Timestamp {
        let mut connection = self.connect();
        loop {
            let status = connection.status().unwrap().recorder.unwrap();
            if status.sources.iter().map(|s| s.packed_elements).sum::<u64>() >= wanted {
                return status.now;
            }
        }
    }
}

/// An order to hold what arrived in a span of time.
pub(crate) fn hold(connection: &mut Connection, from: Timestamp, to: Timestamp) -> Outcome {
    connection.order(hold_of(from, to)).unwrap()
}

/// The order for it.
pub(crate) fn hold_of(from: Timestamp, to: Timestamp) -> Order {
    Order::Hold(HoldRequest {
        streams: Vec::new(),
        range: Range { from, to, by_event: false, ordinals: None },
        sequences: None,
        reason: "test".into(),
        owner: "test".into(),
        until: Timestamp::MAX,
        condition_hold: None,
        order: None,
    })
}

/// All that a reader gives.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Contents {
    pub(crate) elements: Vec<(StreamId, u64, Vec<u8>)>,
    /// First ordinal, ordinals skipped, elements, cause.
    pub(crate) gaps: Vec<(StreamId, u64, u64, Option<u64>, holdfast_format::Cause)>,
    pub(crate) damaged: Vec<String>,
    pub(crate) partial: u64,
    /// Sequences.
    pub(crate) expired: Vec<(u64, u64)>,
}

impl Contents {
    pub(crate) fn read(reader: &mut RingReader) -> Self {
        Self::select(reader, &Selection::ALL)
    }

    pub(crate) fn select(reader: &mut RingReader, selection: &Selection) -> Self {
        let plan = reader.plan(selection).unwrap();
        let mut all = Self::default();
        reader
            .read(&plan, &mut |item| {
                match item {
                    Item::Element(e) => all.elements.push((e.stream, e.ordinal.0, e.data.to_vec())),
                    Item::Gap { stream, ordinal, gap } => {
                        all.gaps.push((stream, ordinal.0, gap.ordinals, gap.elements, gap.cause));
                    }
                    Item::Damaged { place, .. } => all.damaged.push(place.to_owned()),
                    Item::Partial { .. } => all.partial += 1,
                    Item::Expired { from, to, .. } => all.expired.push((from.0, to.0)),
                    _ => {}
                }
                ControlFlow::Continue(())
            })
            .unwrap();
        all
    }

    /// Without the bytes.
    pub(crate) fn brief(&self) -> String {
        let Self { elements, gaps, damaged, partial, expired } = self;
        let ends = elements.first().zip(elements.last()).map(|(a, b)| (a.1, b.1));
        format!(
            "{} elements {ends:?}, gaps {gaps:?}, damaged {damaged:?}, {partial} partial, expired {expired:?}",
            elements.len()
        )
    }

    pub(crate) fn payloads(&self) -> Vec<&[u8]> {
        self.elements.iter().map(|(_, _, data)| data.as_slice()).collect()
    }
}
