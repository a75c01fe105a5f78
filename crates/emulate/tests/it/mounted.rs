//! Tests of the mounted drive: bytes read back, commands obeyed, no early reply, clean unmount. Promise 1 is shown on
//! this drive, so it must be exact. Needs /dev/fuse; loop devices where root may create them.
#![allow(clippy::unwrap_used)] // helpers of tests are tests too

use holdfast_media::drive::{AccessKind, Drive, DriveModel};
use holdfast_media::{Buffer, Seed};
use rustix::fs::OFlags;
use rustix::process::{Pid, Signal, kill_process};
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const MIB: usize = 1 << 20;

/// Whether a drive can be mounted here; says so where not.
fn possible() -> bool {
    let fuse = File::options().read(true).write(true).open("/dev/fuse");
    if let Err(cause) = &fuse {
        eprintln!("SKIPPED: /dev/fuse cannot be opened ({cause}), so the emulated drive is not tested");
    }
    fuse.is_ok()
}

/// A mounted drive.
struct Mounted {
    child: Child,
    folder: TempDir,
}

impl Mounted {
    fn new(arguments: &[&str]) -> Self {
        let folder = tempfile::Builder::new().prefix("holdfast-drive-").tempdir().unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_holdfast-drive"))
            .arg(folder.path())
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        // It says so once it is mounted.
        let mut line = String::new();
        let mut said = BufReader::new(child.stdout.take().unwrap());
        said.read_line(&mut line).unwrap();
        assert!(line.contains("/drive ("), "{line}");
        child.stdout = Some(said.into_inner());
        Self { child, folder }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("drive")
    }

    fn open(&self) -> File {
        open(&self.path()).unwrap()
    }

    fn order(&self, order: &str) -> std::io::Result<()> {
        std::fs::write(self.folder.path().join("control"), order)
    }

    fn report(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("control")).unwrap()
    }

    /// How late the latest answer was.
    fn worst(&self) -> Duration {
        let report = self.report();
        let worst = report.lines().find_map(|line| line.strip_prefix("late_worst_us ")).unwrap();
        Duration::from_micros(1 + worst.parse::<u64>().unwrap())
    }

    fn until(&self, line: &str) {
        while !self.report().lines().any(|said| said == line) {
            std::thread::yield_now();
        }
    }

    fn signal(&self) {
        kill_process(Pid::from_child(&self.child), Signal::TERM).unwrap();
    }

    /// Ends it; how, and what it said.
    fn end(mut self) -> (ExitStatus, String) {
        self.signal();
        self.ended()
    }

    fn ended(&mut self) -> (ExitStatus, String) {
        let status = self.child.wait().unwrap();
        let mut said = String::new();
        self.child.stdout.take().unwrap().read_to_string(&mut said).unwrap();
        (status, said)
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // After a failed assertion only: others have ended it.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = rustix::mount::unmount(self.folder.path(), rustix::mount::UnmountFlags::DETACH);
    }
}

fn open(path: &Path) -> std::io::Result<File> {
    let flags = OFlags::DIRECT.bits() as i32;
    File::options().read(true).write(true).custom_flags(flags).open(path)
}

fn buffer(bytes: usize, seed: u64) -> Buffer {
    let mut buffer = Buffer::aligned(bytes).unwrap();
    Seed::new(seed).fill(&mut buffer);
    buffer
}

/// Writes and reads of all sizes, compared with a plain vector.
fn exercise(file: &File, bytes: usize, seed: u64) {
    let mut naive = vec![0u8; bytes];
    let mut seed = Seed::new(seed);
    let blocks = bytes as u64 / 4096;
    for round in 0..120 {
        let at = seed.below(blocks);
        // Some larger than one request of the kernel.
        let most = if round % 10 == 0 { 1024 } else { 64 };
        let len = (1 + seed.below(most)).min(blocks - at) as usize * 4096;
        let at = at as usize * 4096;
        if seed.happens(0.5) {
            let data = buffer(len, round);
            file.write_all_at(&data[..len], at as u64).unwrap();
            naive[at..at + len].copy_from_slice(&data[..len]);
        } else {
            let mut data = buffer(len, round);
            file.read_exact_at(&mut data[..len], at as u64).unwrap();
            assert!(data[..len] == naive[at..at + len], "round {round}: {len} bytes at {at}");
        }
    }
}

#[test]
fn bytes_come_back_with_and_without_a_loop_device() {
    if !possible() {
        return;
    }
    let drive = Mounted::new(&["--bytes", "32MiB", "--model", "flash"]);
    assert_eq!(std::fs::metadata(drive.path()).unwrap().len(), 32 << 20);
    exercise(&drive.open(), 32 * MIB, 1);
    // Beyond the end there is nothing, and no room.
    let file = drive.open();
    let mut data = buffer(8192, 0);
    assert_eq!(file.read_at(&mut data[..8192], 32 << 20).unwrap(), 0);
    assert_eq!(file.read_at(&mut data[..8192], (32 << 20) - 4096).unwrap(), 4096);
    assert!(file.write_at(&data[..4096], 32 << 20).is_err());
    assert!(file.set_len(1 << 20).is_err());
    drop(file);

    drive.order("fast").unwrap();
    let mut zeros = buffer(32 * MIB, 0);
    zeros.fill(0);
    drive.open().write_all_at(&zeros, 0).unwrap();
    let path = drive.path();
    let made = Command::new("losetup").args(["--direct-io=on", "--find", "--show"]).arg(path).output();
    match made {
        Ok(made) if made.status.success() => {
            let device = String::from_utf8(made.stdout).unwrap().trim().to_owned();
            // Its last user may have left it read-only.
            Command::new("blockdev").args(["--setrw", &device]).status().unwrap();
            drive.order("ok").unwrap();
            let tried = std::panic::catch_unwind(|| {
                exercise(&open(Path::new(&device)).unwrap(), 32 * MIB, 2);
            });
            Command::new("losetup").args(["--detach", &device]).status().unwrap();
            assert!(tried.is_ok());
        }
        _ => eprintln!("SKIPPED: no loop device can be made, so the drive is not tested under one"),
    }
    let _ = drive.end();
}

#[test]
fn it_is_never_earlier_than_the_model() {
    if !possible() {
        return;
    }
    let drive = Mounted::new(&["--bytes", "64MiB", "--part", "0.5", "--late", "3600s"]);
    let twin = Drive::new(DriveModel::paper().part(0.5, 64 << 20), 0);
    let (file, mut data) = (drive.open(), buffer(8 * MIB, 1));
    // By as much as the answer before was late may the next seem early: the account is in modelled time.
    let taken = |begin: Instant| begin.elapsed() + drive.worst();
    let begin = Instant::now();
    file.write_all_at(&data[..8 * MIB], 0).unwrap();
    let least = twin.stream_time(AccessKind::Write, 0, 8 << 20);
    assert!(taken(begin) >= least, "{:?} {least:?}", taken(begin));
    let begin = Instant::now();
    file.read_exact_at(&mut data[..8 * MIB], 0).unwrap();
    let least = twin.stream_time(AccessKind::Read, 0, 8 << 20);
    assert!(taken(begin) >= least, "{:?} {least:?}", taken(begin));
    file.sync_all().unwrap();
    let report = drive.report();
    for line in ["written_bytes 8388608", "read_bytes 8388608", "flushes 1", "faults 0", "late 0"] {
        assert!(report.lines().any(|said| said == line), "{line}: {report}");
    }
    let begin = Instant::now();
    drive.order("stall 300ms").unwrap();
    file.read_exact_at(&mut data[..4096], 32 << 20).unwrap();
    assert!(taken(begin).as_millis() >= 300, "{:?}", taken(begin));
    drop(file);
    let (status, said) = drive.end();
    assert_eq!(status.code(), Some(0), "{said}");
    assert!(said.contains("too_slow no\n"));
}

#[test]
fn it_fails_hangs_and_vanishes_on_command() {
    if !possible() {
        return;
    }
    let drive = Mounted::new(&["--bytes", "8MiB", "--model", "flash"]);
    let file = drive.open();
    let errno = |result: std::io::Result<()>| result.unwrap_err().raw_os_error();
    let data = buffer(4096, 5);
    file.write_all_at(&data[..4096], 4096).unwrap();
    let read = |file: &File| {
        let mut data = buffer(4096, 0);
        file.read_exact_at(&mut data[..4096], 4096).map(|()| data)
    };
    drive.order("eio").unwrap();
    assert_eq!(errno(read(&file).map(drop)), Some(5));
    assert_eq!(errno(file.write_all_at(&buffer(4096, 6)[..4096], 4096)), Some(5));
    assert_eq!(errno(file.sync_all()), Some(5));
    drive.order("vanish").unwrap();
    assert_eq!(errno(read(&file).map(drop)), Some(19));
    drive.order("hang").unwrap();
    std::thread::scope(|scope| {
        let stuck = scope.spawn(|| read(&file).unwrap()[..4096] == data[..4096]);
        drive.until("under_way 1");
        assert!(!stuck.is_finished());
        drive.order("ok").unwrap();
        assert!(stuck.join().unwrap(), "what failed has changed nothing");
    });
    std::thread::scope(|scope| {
        drive.order("hang").unwrap();
        let stuck = scope.spawn(|| errno(read(&file).map(drop)));
        drive.until("under_way 1");
        drive.order("vanish").unwrap();
        assert_eq!(stuck.join().unwrap(), Some(19));
    });
    assert_eq!(errno(drive.order("explode")), Some(22));
    assert!(drive.report().contains("faults 5\n"), "{}", drive.report());
    drive.order("reset").unwrap();
    assert!(drive.report().contains("faults 0\n"));

    // In use: the first signal is refused, the second pulls the plug.
    let mut drive = drive;
    drive.signal();
    drive.order("ok").unwrap();
    assert!(read(&file).is_ok());
    drive.signal();
    // Both may have come as one.
    while drive.child.try_wait().unwrap().is_none() {
        drive.signal();
        std::thread::yield_now();
    }
    let (status, said) = drive.ended();
    assert!(matches!(status.code(), Some(0 | 3)), "{status} {said}");
    assert!(read(&file).is_err());
}

#[test]
fn a_machine_that_is_too_slow_is_told() {
    if !possible() {
        return;
    }
    let log = tempfile::NamedTempFile::new().unwrap();
    let log_path = log.path().to_str().unwrap();
    let drive = Mounted::new(&["--bytes", "8MiB", "--model", "flash", "--late", "0us", "--log", log_path]);
    let (file, mut data) = (drive.open(), buffer(4096, 5));
    file.read_exact_at(&mut data[..4096], 0).unwrap();
    // How late an answer was is known only after it was given.
    drive.until("too_slow yes");
    drop(file);
    let (status, said) = drive.end();
    assert_eq!(status.code(), Some(3), "{said}");
    assert!(said.contains("late_share 1.000000\n") && said.ends_with("too_slow yes\n"), "{said}");
    assert_eq!(std::fs::read_to_string(log.path()).unwrap(), said);
}

/// Promise 8.
#[test]
fn what_cannot_be_is_refused_clearly() {
    let run = |arguments: &[&str]| {
        let done = Command::new(env!("CARGO_BIN_EXE_holdfast-drive")).args(arguments).output().unwrap();
        (done.status.code(), String::from_utf8(done.stderr).unwrap())
    };
    let (code, said) = run(&["/nowhere", "--bytes", "4KiB"]);
    assert_eq!(code, Some(1));
    assert!(said.contains("cannot emulate a drive of 4 KiB: use --bytes from 1MiB to 1TiB"), "{said}");
    if possible() {
        let (code, said) = run(&["/nowhere", "--bytes", "8MiB"]);
        assert_eq!(code, Some(1));
        assert!(said.contains("/nowhere: No such file"), "{said}");
    }
}
