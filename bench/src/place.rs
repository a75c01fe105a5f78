//! Where a bench writes: a folder with room that is gone afterwards, and a loop device over one of its files.

use crate::undo::{self, Noted, Undo, note};
use crate::{Trouble, tool};
use holdfast_base::ByteSize;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A folder of the bench's own.
#[derive(Debug)]
pub struct Place(TempDir, #[allow(dead_code, reason = "for a signal")] Noted);

/// A file system in memory.
pub const MEMORY: &str = "/dev/shm";

/// Where folders of benches are made: in `HOLDFAST_BENCH_DIR`, or where temporary files go.
pub fn parent() -> PathBuf {
    std::env::var_os("HOLDFAST_BENCH_DIR").map_or_else(std::env::temp_dir, PathBuf::from)
}

impl Place {
    /// A new folder with room for `bytes`.
    pub fn with_room(bytes: u64) -> Result<Self, Trouble> {
        Self::within(&parent(), bytes)
    }

    /// One in memory, where the system has a file system there: for what no disk is to count in.
    pub fn in_memory(bytes: u64) -> Result<Self, Trouble> {
        let memory = Path::new(MEMORY);
        if memory.is_dir() { Self::within(memory, bytes) } else { Self::with_room(bytes) }
    }

    fn within(parent: &Path, bytes: u64) -> Result<Self, Trouble> {
        let stat = rustix::fs::statvfs(parent).map_err(Trouble::file(parent, "look at it"))?;
        let free = stat.f_bavail * stat.f_frsize;
        if free < bytes + bytes / 4 {
            return Err(Trouble::skipped(format!(
                "{} has {} free, too little for {}: set HOLDFAST_BENCH_DIR to another folder",
                parent.display(),
                ByteSize(free),
                ByteSize(bytes)
            )));
        }
        let folder = tempfile::Builder::new().prefix(&undo::folder_prefix()).tempdir_in(parent);
        let folder = folder.map_err(Trouble::file(parent, "make a folder in it"))?;
        let noted = note(Undo::Folder(folder.path().to_owned()));
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
pub struct Loop(PathBuf, Option<Noted>);

impl Loop {
    /// Skipped where that is not possible.
    pub fn over(file: &Path) -> Result<Self, Trouble> {
        if !tool::is_root() {
            return Err(Trouble::skipped("only root can make a loop device"));
        }
        let file = file.to_string_lossy();
        let made = tool::output("losetup", &["--direct-io=on", "--find", "--show", &file]);
        let made = made.map_err(|error| Trouble::skipped(format!("no loop device: {error}")))?;
        let device = PathBuf::from(made.trim());
        // Its last user may have left it read-only.
        let _ = tool::output("blockdev", &["--setrw", made.trim()]);
        Ok(Self(device.clone(), Some(note(Undo::Loop(device)))))
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

impl Drop for Loop {
    fn drop(&mut self) {
        // Once it is detached somebody else may get it: a signal must not take theirs.
        self.1 = None;
        let _ = tool::output("losetup", &["--detach", &self.0.to_string_lossy()]);
    }
}
