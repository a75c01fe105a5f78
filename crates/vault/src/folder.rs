//! Folder of this machine as the store of a vault: files are written under a hidden name, synced, and linked to their own.

use crate::owner::Owner;
use crate::store::{Entry, HIDDEN, UploadMode};
use bytes::Bytes;
use holdfast_dataset::{SourceAccess, new_file_mode};
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Folder of unfinished uploads.
const UPLOADS: &str = "uploads";

/// Ending of the names of uploads that outlive their process.
const KEPT: &str = ".kept";

/// Age at which a kept upload that nobody completes is removed.
const MOST_KEPT: Duration = Duration::from_hours(30 * 24);

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
                entries.push(self.entry(&path, &found.metadata()?));
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
        let kept = if mode == UploadMode::IsKept { KEPT } else { "" };
        let name = format!("{}{kept}", Owner::new());
        let unfinished = self.uploads().join(&name);
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&unfinished)?;
        let access = SourceAccess::default();
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
            let name = name.to_str().unwrap_or_default();
            let is_kept = name.ends_with(KEPT);
            let age = age(&found);
            if is_gone(name.trim_end_matches(KEPT), age) && (!is_kept || age > MOST_KEPT) {
                fs::remove_file(found.path())?;
                removed += 1;
            }
        }
        Ok(removed)
    }

    /// Paths of kept uploads whose process has ended.
    pub(crate) fn left(&self) -> io::Result<Vec<String>> {
        let found = match fs::read_dir(self.uploads()) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            found => found?,
        };
        let mut left = Vec::new();
        for found in found {
            let found = found?;
            let name = found.file_name();
            let owner = name.to_str().and_then(|name| name.strip_suffix(KEPT));
            if let Some(owner) = owner.filter(|owner| is_gone(owner, age(&found))) {
                left.push(format!("{HIDDEN}/{UPLOADS}/{owner}{KEPT}"));
            }
        }
        left.sort();
        Ok(left)
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

    pub(crate) fn complete(&mut self) -> io::Result<String> {
        self.access.apply(&self.file, new_file_mode())?;
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
