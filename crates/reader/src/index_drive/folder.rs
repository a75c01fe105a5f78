//! Index copies as files: one file a slot, in a folder of the ring. Only the user who makes them may read them.

use super::writer_lock::{WriterLock, mount_of};
use holdfast_base::{RingId, Sequence};
use rustix::fs::OFlags;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The file that whoever writes here has locked.
const OWNER: &str = "owner";

/// The folder of one ring's copies.
#[derive(Clone, Debug)]
pub(super) struct Folder {
    path: PathBuf,
}

impl Folder {
    /// That of a ring.
    pub(super) fn new(of_all: &Path, ring: RingId) -> Self {
        Self { path: of_all.join(ring.to_string()) }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn is_there(&self) -> io::Result<bool> {
        match self.path.metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            found => Ok(found?.is_dir()),
        }
    }

    pub(super) fn lock(&self) -> io::Result<Option<WriterLock>> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.path)?;
        let file = File::options().create(true).append(true).mode(0o600).open(self.path.join(OWNER))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(WriterLock { file, mount: Some(mount_of(&self.path)?) })),
            Err(fs::TryLockError::WouldBlock) => Ok(None),
            Err(fs::TryLockError::Error(error)) => Err(error),
        }
    }

    /// Whether the file that was locked is the one that is there.
    pub(super) fn is_locked(&self, lock: &WriterLock) -> bool {
        lock.is(&self.path.join(OWNER))
    }

    /// Makes it anew, on the file system where it was or on one in the place of that: where none is there, it is waited for, lest
    /// the copies fill another.
    pub(super) fn relock(&self, lock: &mut WriterLock) -> io::Result<bool> {
        if lock.mount.as_ref() != Some(&mount_of(&self.path)?) {
            return Err(io::Error::new(io::ErrorKind::NotFound, "its drive is not mounted"));
        }
        Ok(self.lock()?.map(|anew| *lock = anew).is_some())
    }

    fn file(&self, sequence: Sequence) -> PathBuf {
        self.path.join(format!("{:016x}", sequence.0))
    }

    pub(super) fn copies(&self) -> io::Result<Vec<(Sequence, u64)>> {
        let listed = match fs::read_dir(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            listed => listed?,
        };
        let mut copies = Vec::new();
        for file in listed {
            let file = file?;
            let name = file.file_name();
            let number = name.to_str().filter(|name| name.len() == 16);
            if let Some(number) = number.and_then(|name| u64::from_str_radix(name, 16).ok()) {
                // One that is gone by now is none.
                copies.extend(file.metadata().ok().map(|found| (Sequence(number), found.len())));
            }
        }
        Ok(copies)
    }

    pub(super) fn put(&self, sequence: Sequence, copy: &[u8]) -> io::Result<()> {
        let mut options = File::options();
        options.write(true).create(true).truncate(true).mode(0o600);
        options.open(self.file(sequence))?.write_all(copy)
    }

    pub(super) fn remove(&self, sequence: Sequence) -> io::Result<()> {
        match fs::remove_file(self.file(sequence)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }

    /// The same as `open`, to be written to.
    pub(super) fn writable(&self, sequence: Sequence) -> io::Result<Option<(File, u64, u64)>> {
        // What somebody has put in its place is not followed, nor waited for.
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let open = File::options().write(true).custom_flags(flags.bits() as i32).open(self.file(sequence));
        let file = match open {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file?,
        };
        let found = file.metadata()?;
        Ok(found.is_file().then_some((file, 0, found.len())))
    }

    /// The file of a copy, where it begins in it, and its bytes.
    pub(super) fn open(&self, sequence: Sequence) -> Option<(File, u64, u64)> {
        let file = File::open(self.file(sequence)).ok()?;
        let bytes = file.metadata().ok()?.len();
        Some((file, 0, bytes))
    }
}
