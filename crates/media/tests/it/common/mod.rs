//! Shared helpers of the tests of real files and devices: paths that clean up after themselves, and one-line
//! requests.
#![allow(dead_code)] // each test binary uses its share

use holdfast_media::{Buffer, Completion, Disk, Fault, Op, Request};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

pub(crate) const LONG: Duration = Duration::from_mins(1);

pub(crate) fn write(tag: u64, offset: u64, len: usize, byte: u8, durable: bool) -> Request {
    let mut buffer = Buffer::aligned(len).unwrap();
    buffer.fill(byte);
    Request { tag, op: Op::Write { offset, buffer, len, durable } }
}

pub(crate) fn measure() -> Request {
    Request { tag: 0, op: Op::Measure }
}

pub(crate) fn read_into(tag: u64, offset: u64, buffer: Buffer) -> Request {
    let len = buffer.len();
    Request { tag, op: Op::Read { offset, buffer, len } }
}

pub(crate) fn run(disk: &mut dyn Disk, request: Request) -> Completion {
    let tag = request.tag;
    disk.submit(request).unwrap();
    let done = disk.complete(LONG).unwrap();
    assert_eq!(done.tag, tag);
    done
}

pub(crate) fn fault(disk: &mut dyn Disk, request: Request) -> Option<Fault> {
    run(disk, request).result.err().map(|error| error.fault)
}

pub(crate) fn bytes_at(disk: &mut dyn Disk, offset: u64, len: usize) -> Vec<u8> {
    let done = run(disk, read_into(u64::MAX, offset, Buffer::aligned(len).unwrap()));
    done.result.unwrap();
    done.buffer.unwrap()[..len].to_vec()
}

/// Runs a program; its output when it went well.
pub(crate) fn tool(name: &str, arguments: &[&str]) -> Option<String> {
    let out = Command::new(name).args(arguments).output().ok()?;
    out.status.success().then(|| String::from_utf8_lossy(&out.stdout).trim().to_owned())
}

pub(crate) fn root() -> bool {
    rustix::process::geteuid().is_root()
}

/// A loop device over a file, detached at the end.
pub(crate) struct Loop(pub(crate) PathBuf);

impl Loop {
    /// `None`, with the reason printed, where that is not possible.
    pub(crate) fn over(file: &Path) -> Option<Self> {
        let made = root().then(|| tool("losetup", &["-f", "--show", file.to_str()?])).flatten();
        if made.is_none() {
            println!("skipped: no loop device can be made (needs root, losetup and a free /dev/loopN)");
        }
        let made = made?;
        // One whose last user was killed while it was locked stays so.
        tool("blockdev", &["--setrw", &made]);
        // And one that somebody gave no cache that is volatile, for which it would be flushed.
        let name = made.rsplit('/').next().unwrap_or_default();
        let _ = std::fs::write(format!("/sys/class/block/{name}/queue/write_cache"), "write back");
        Some(Self(made.into()))
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        tool("losetup", &["-d", self.0.to_str().unwrap()]);
    }
}

/// A file system mounted on a new folder, unmounted at the end.
pub(crate) struct Mount(pub(crate) tempfile::TempDir);

impl Mount {
    /// `None`, with the reason printed, where that is not possible.
    pub(crate) fn new(kind: &str, options: &str) -> Option<Self> {
        Self::with(&["-t", kind, "-o", options, "none"])
    }

    /// Of the file system on a device.
    pub(crate) fn of(device: &str) -> Option<Self> {
        Self::with(&[device])
    }

    fn with(arguments: &[&str]) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().to_str().unwrap().to_owned();
        if root() && tool("mount", &[arguments, &[&path]].concat()).is_some() {
            return Some(Self(folder));
        }
        println!("skipped: {arguments:?} cannot be mounted (needs root)");
        None
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        tool("umount", &["-l", self.0.path().to_str().unwrap()]);
    }
}
