//! Folder of this machine as the store of a vault: files are written under a hidden name, synced, and linked to their own.

use crate::owner::Owner;
use crate::store::{Entry, HIDDEN, UploadMode};
use bytes::Bytes;
use holdfast_dataset::{SourceAccess, new_file_mode};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Folder of unfinished uploads.
const UPLOADS: &str = "uploads";

/// Ending of the names of uploads that outlive their process. An upload gets it when it is kept for the first time.
const KEPT: &str = ".kept";

/// Ending of the names of kept uploads that are damaged.
const DAMAGED: &str = ".damaged";

/// Folder as a store.
#[derive(Debug)]
pub(crate) struct Folder {
    root: PathBuf,
}

/// File that is being written.
pub(crate) struct FolderUpload {
    file: File,
    unfinished: PathBuf,
    staged: String,
    target: PathBuf,
    root: PathBuf,
    replace: bool,
    access: SourceAccess,
}

impl Folder {
    pub(crate) fn new(root: PathBuf) -> Self {
        Self { root }
    }

    fn at(&self, path: &str) -> PathBuf {
        if path.is_empty() { self.root.clone() } else { self.root.join(path) }
    }

    fn uploads(&self) -> PathBuf {
        self.root.join(HIDDEN).join(UPLOADS)
    }

    pub(crate) fn access(&self, path: &str) -> SourceAccess {
        SourceAccess::of(&self.at(path))
    }

    fn open(&self, path: &str) -> io::Result<(File, u64)> {
        let file = File::open(self.at(path))?;
        let found = file.metadata()?;
        if !found.is_file() {
            return Err(io::Error::new(ErrorKind::NotFound, "it is not a file"));
        }
        Ok((file, found.len()))
    }

    pub(crate) fn tail(&self, path: &str, most: u64) -> io::Result<(Bytes, u64)> {
        let (file, size) = self.open(path)?;
        let length = size.min(most);
        let mut bytes = vec![0; length as usize];
        file.read_exact_at(&mut bytes, size - length)?;
        Ok((bytes.into(), size))
    }

    pub(crate) fn read(&self, path: &str, offset: u64, length: usize) -> io::Result<Bytes> {
        let (file, _) = self.open(path)?;
        let mut bytes = vec![0; length];
        file.read_exact_at(&mut bytes, offset)?;
        Ok(bytes.into())
    }

    pub(crate) fn list(&self, prefix: &str) -> io::Result<Vec<Entry>> {
        let mut entries = Vec::new();
        let start = self.at(prefix);
        match fs::symlink_metadata(&start) {
            Ok(found) if found.is_file() => entries.push(self.entry(&start, &found)),
            Ok(_) => self.walk(&start, &mut entries)?,
            Err(error) if error.kind() == ErrorKind::NotFound && self.root.is_dir() => {}
            Err(error) => return Err(error),
        }
        Ok(entries.into_iter().flatten().collect())
    }

    fn walk(&self, folder: &Path, entries: &mut Vec<Option<Entry>>) -> io::Result<()> {
        for found in fs::read_dir(folder)? {
            let found = found?;
            let path = found.path();
            let kind = found.file_type()?;
            if path == self.root.join(HIDDEN) {
                continue;
            }
            if kind.is_dir() {
                self.walk(&path, entries)?;
            } else if kind.is_file() {
                match found.metadata() {
                    Err(error) if error.kind() == ErrorKind::NotFound => {}
                    found => entries.push(self.entry(&path, &found?)),
                }
            }
        }
        Ok(())
    }

    /// Entry of a file; `None` for a name that is not UTF-8, which no path of a vault can name.
    fn entry(&self, path: &Path, found: &fs::Metadata) -> Option<Entry> {
        let path = path.strip_prefix(&self.root).ok()?.to_str()?.to_owned();
        Some(Entry { path, bytes: found.len(), modified: found.modified().unwrap_or(std::time::UNIX_EPOCH) })
    }

    pub(crate) fn remove(&self, path: &str) -> io::Result<()> {
        let path = self.at(path);
        fs::remove_file(&path)?;
        path.parent().map_or(Ok(()), sync_folder)
    }

    pub(crate) fn upload(&self, path: &str, mode: UploadMode) -> io::Result<FolderUpload> {
        let replace = mode == UploadMode::Replaces;
        let target = self.at(path);
        if !replace && fs::symlink_metadata(&target).is_ok() {
            return Err(ErrorKind::AlreadyExists.into());
        }
        if !self.root.is_dir() {
            let what = format!("the folder {} of the vault does not exist", self.root.display());
            return Err(io::Error::new(ErrorKind::NotFound, what));
        }
        make_folders(&self.root, &self.uploads())?;
        let name = Owner::new().to_string();
        let unfinished = self.uploads().join(&name);
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&unfinished)?;
        if mode == UploadMode::IsKept {
            // In a file system without locks the owner in the name tells if the process lives.
            let _ = flock(&file, FlockOperation::NonBlockingLockExclusive);
        }
        // A repaired object is no wider than the damaged one.
        let access = if replace { self.access(path) } else { SourceAccess::default() };
        let staged = format!("{HIDDEN}/{UPLOADS}/{name}");
        Ok(FolderUpload { file, unfinished, staged, target, root: self.root.clone(), replace, access })
    }

    pub(crate) fn remove_abandoned(&self) -> io::Result<usize> {
        let found = match fs::read_dir(self.uploads()) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(0),
            found => found?,
        };
        let mut removed = 0;
        for found in found {
            let found = found?;
            let name = found.file_name();
            // Kept and damaged uploads are no owners, and stay.
            if is_gone(name.to_str().unwrap_or_default(), age(&found)) {
                match fs::remove_file(found.path()) {
                    Ok(()) => removed += 1,
                    // Another process was faster.
                    Err(error) if error.kind() == ErrorKind::NotFound => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(removed)
    }

    /// Paths and ages of kept uploads whose process has ended.
    pub(crate) fn left(&self) -> io::Result<Vec<(String, Duration)>> {
        let found = match fs::read_dir(self.uploads()) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            found => found?,
        };
        let mut left = Vec::new();
        for found in found {
            let found = found?;
            let name = found.file_name();
            let Some(owner) = name.to_str().and_then(|name| name.strip_suffix(KEPT)) else { continue };
            let age = age(&found);
            if is_left(&found.path(), owner, age)? {
                left.push((format!("{HIDDEN}/{UPLOADS}/{owner}{KEPT}"), age));
            }
        }
        left.sort();
        Ok(left)
    }

    /// Renames a kept upload that is damaged, so that nothing looks at it again, and returns its new path.
    pub(crate) fn set_aside(&self, path: &str) -> io::Result<String> {
        let aside = format!("{}{DAMAGED}", path.trim_end_matches(KEPT));
        fs::rename(self.at(path), self.at(&aside))?;
        sync_folder(&self.uploads())?;
        Ok(aside)
    }
}

/// True if the process that writes a kept upload has ended. The lock on the file ends with it: after a reboot, in another
/// container, and on another machine.
fn is_left(path: &Path, owner: &str, age: Duration) -> io::Result<bool> {
    let file = match File::open(path) {
        // It was published, or belongs to another user.
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::PermissionDenied) => {
            return Ok(false);
        }
        file => file?,
    };
    // A shared lock: several processes may ask at once.
    match flock(&file, FlockOperation::NonBlockingLockShared) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK) => Ok(false),
        Err(_) => Ok(is_gone(owner, age)),
    }
}

/// True if the upload of this owner will not go on.
fn is_gone(owner: &str, age: Duration) -> bool {
    Owner::parse(owner).is_some_and(|owner| owner.is_gone(age))
}

/// Time since the last change of a file.
fn age(found: &fs::DirEntry) -> Duration {
    let modified = found.metadata().and_then(|found| found.modified());
    modified.ok().and_then(|modified| modified.elapsed().ok()).unwrap_or_default()
}

impl FolderUpload {
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)
    }

    pub(crate) fn narrow(&mut self, access: SourceAccess) {
        self.access = self.access.and(access);
    }

    /// Makes all bytes durable, and has them outlive this process.
    pub(crate) fn keep(&mut self) -> io::Result<()> {
        self.file.sync_data()?;
        if self.staged.ends_with(KEPT) {
            return Ok(());
        }
        let staged = format!("{}{KEPT}", self.staged);
        let kept = self.root.join(&staged);
        fs::rename(&self.unfinished, &kept)?;
        (self.unfinished, self.staged) = (kept, staged);
        self.unfinished.parent().map_or(Ok(()), sync_folder)
    }

    pub(crate) fn complete(&mut self) -> io::Result<String> {
        let uploads = self.unfinished.parent().unwrap_or(&self.root);
        self.access.apply(&self.file, new_file_mode(uploads))?;
        self.file.sync_all()?;
        // Read back from the disk, where the system heeds the hint.
        let _ = rustix::fs::fadvise(&self.file, 0, None, rustix::fs::Advice::DontNeed);
        Ok(self.staged.clone())
    }

    pub(crate) fn publish(&mut self) -> io::Result<()> {
        let parent = self.target.parent().unwrap_or(&self.root);
        make_folders(&self.root, parent)?;
        if self.replace {
            fs::rename(&self.unfinished, &self.target)?;
        } else {
            // A link is refused where the name is taken.
            fs::hard_link(&self.unfinished, &self.target)?;
            fs::remove_file(&self.unfinished)?;
        }
        sync_folder(parent)
    }

    pub(crate) fn abort(&mut self) {
        let _ = fs::remove_file(&self.unfinished);
    }
}

/// Makes folders below `root`, each of them durable.
fn make_folders(root: &Path, folder: &Path) -> io::Result<()> {
    if folder == root || folder.is_dir() {
        return Ok(());
    }
    let parent = folder.parent().unwrap_or(root);
    make_folders(root, parent)?;
    match fs::create_dir(folder) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    sync_folder(parent)
}

fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::SystemTime;

    #[test]
    fn a_kept_upload_is_left_when_its_lock_is_free_whoever_its_owner_and_however_old_it_is() {
        let root = tempfile::tempdir().unwrap();
        let folder = Folder::new(root.path().to_owned());
        let mut upload = folder.upload("a", UploadMode::IsKept).unwrap();
        upload.write(b"bytes").unwrap();
        assert!(folder.left().unwrap().is_empty(), "nothing is kept before the first checkpoint");
        upload.keep().unwrap();
        // As another machine, or this one before a reboot, names it.
        let elsewhere = format!("{HIDDEN}/{UPLOADS}/elsewhere-1-1-0{KEPT}");
        fs::rename(root.path().join(&upload.staged), root.path().join(&elsewhere)).unwrap();
        assert!(folder.left().unwrap().is_empty(), "it is being written");
        upload.file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        drop(upload);
        assert_eq!(folder.remove_abandoned().unwrap(), 0);
        let left = folder.left().unwrap();
        assert!(left.len() == 1 && left[0].0 == elsewhere, "{left:?}");
        let aside = folder.set_aside(&elsewhere).unwrap();
        assert!(folder.left().unwrap().is_empty() && folder.remove_abandoned().unwrap() == 0);
        assert_eq!(fs::read(root.path().join(aside)).unwrap(), b"bytes");
    }
}
