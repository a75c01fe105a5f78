//! Folder of a bench: it has room, and is gone afterwards. And a loop device over one of its files.

use crate::cleanup::{self, Cleanup, CleanupGuard, register};
use crate::{BenchError, tools};
use holdfast_base::ByteSize;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A folder of the bench's own.
#[derive(Debug)]
pub struct WorkFolder(TempDir, #[allow(dead_code, reason = "for a signal")] CleanupGuard);

/// A file system in memory.
pub const MEMORY: &str = "/dev/shm";

/// Where folders of benches are made: in `HOLDFAST_BENCH_DIR`, or where temporary files go.
pub fn parent() -> PathBuf {
    std::env::var_os("HOLDFAST_BENCH_DIR").map_or_else(std::env::temp_dir, PathBuf::from)
}

impl WorkFolder {
    /// A new folder with room for `bytes`.
    pub fn with_room(bytes: u64) -> Result<Self, BenchError> {
        Self::within(&parent(), bytes)
    }

    /// One in memory, where the system has a file system there: for what no disk is to count in.
    pub fn in_memory(bytes: u64) -> Result<Self, BenchError> {
        let memory = Path::new(MEMORY);
        if memory.is_dir() { Self::within(memory, bytes) } else { Self::with_room(bytes) }
    }

    fn within(parent: &Path, bytes: u64) -> Result<Self, BenchError> {
        let stat = rustix::fs::statvfs(parent).map_err(BenchError::file(parent, "look at it"))?;
        let free = stat.f_bavail * stat.f_frsize;
        if free < bytes + bytes / 4 {
            return Err(BenchError::skipped(format!(
                "{} has {} free, too little for {}: set HOLDFAST_BENCH_DIR to another folder",
                parent.display(),
                ByteSize(free),
                ByteSize(bytes)
            )));
        }
        let folder = tempfile::Builder::new().prefix(&cleanup::folder_prefix()).tempdir_in(parent);
        let folder = folder.map_err(BenchError::file(parent, "make a folder in it"))?;
        let noted = register(Cleanup::Folder(folder.path().to_owned()));
        Ok(Self(folder, noted))
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// A file in it.
    pub fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}

/// A loop device over a file, detached at the end.
#[derive(Debug)]
pub struct LoopDevice(PathBuf, Option<CleanupGuard>);

impl LoopDevice {
    /// Skipped where that is not possible.
    pub fn over(file: &Path) -> Result<Self, BenchError> {
        if !tools::is_root() {
            return Err(BenchError::skipped("only root can make a loop device"));
        }
        let file = file.to_string_lossy();
        let made = tools::output("losetup", &["--direct-io=on", "--find", "--show", &file]);
        let made = made.map_err(|error| BenchError::skipped(format!("no loop device: {error}")))?;
        let device = PathBuf::from(made.trim());
        // Its last user may have left it read-only.
        let _ = tools::output("blockdev", &["--setrw", made.trim()]);
        Ok(Self(device.clone(), Some(register(Cleanup::LoopDevice(device)))))
    }

    /// The device.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Its name, without folder.
    pub fn name(&self) -> std::borrow::Cow<'_, str> {
        self.0.file_name().unwrap_or_default().to_string_lossy()
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        // Once it is detached somebody else may get it: a signal must not take theirs.
        self.1 = None;
        let _ = tools::output("losetup", &["--detach", &self.0.to_string_lossy()]);
    }
}
