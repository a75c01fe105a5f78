//! File system over a site: entries by inode numbers, open files by handles. It knows no FUSE.

mod contents;
mod extended;
mod made_files;
mod names;
mod rights;

use crate::advance_buffer::BufferMode;
use crate::error::FsError;
use crate::fetch::Source;
use crate::inode_table::{Facts, InodeTable, ShownVersion, number};
use crate::inside::{Inside, InsidePath};
use crate::memory::Memory;
use crate::reader::Reader;
use crate::rings::{Exported, LiveExport, NamedRing, Rings};
use crate::spool::{Spool, Target};
pub(crate) use extended::is_kept;
use holdfast_remote::{CatalogEntry, CatalogKind, CatalogVersion, ReadRequest, Site};
use made_files::{MadeEntry, MadePath};
use rights::KnownRight;
use rustix::io::Errno;
use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

/// Most bytes of a name.
const MOST_NAME: usize = 255;

/// Most bytes of the name of a project.
const MOST_PROJECT: usize = 64;

/// Most bytes of a path in its project.
const MOST_PATH: usize = 900;

/// Number of the root.
pub const ROOT: u64 = 1;

/// Kind of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// Collection of the catalog.
    Directory,
    /// Object, or a link to one.
    File,
}

/// Attributes of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attributes {
    /// Inode number of the entry.
    pub ino: u64,
    /// Kind of the entry.
    pub kind: FileKind,
    /// Size in bytes; 0 for a directory.
    pub size: u64,
    /// Time at which the current version was stored, or at which the directory was made.
    pub modified: SystemTime,
}

/// Entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectoryEntry {
    /// Name in the directory.
    pub name: String,
    /// Attributes of the entry.
    pub attributes: Attributes,
    /// Current version of a file.
    pub(crate) version: Option<ShownVersion>,
}

/// Way in which a file is opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenMode {
    /// True to write, else the file is only read.
    pub write: bool,
    /// True to begin with an empty file.
    pub truncate: bool,
}

/// Settings of a file system.
#[derive(Clone, Debug)]
pub struct FsOptions {
    /// Collection of the site that is the root of the tree.
    pub root: String,
    /// True to refuse all changes.
    pub read_only: bool,
    /// Way in which files are fetched ahead.
    pub buffer: BufferMode,
    /// Memory of all buffers in bytes.
    pub memory: u64,
    /// Time for which an operation waits for a site that is away.
    pub patience: Duration,
    /// Time for which names and attributes are taken as they were.
    pub cache: Duration,
    /// Folder of the files that are being written.
    pub spool: PathBuf,
    /// Rings of this machine, which appear below `/rings`.
    pub rings: Vec<NamedRing>,
}

/// Open file by its way of use.
#[derive(Clone, Debug)]
enum Handle {
    /// Version that is read.
    Read(Arc<Opened>),
    /// File that is being written elsewhere on this machine, and read here.
    Spool(Arc<Spool>),
    /// File that is written, by its number.
    Write(u64, Arc<Spool>),
    /// Closed file made of a ring.
    Exported(Arc<Exported>),
    /// Growing file made of a ring.
    Live(Arc<LiveExport>),
}

/// Version that is open for reading. It is there until it is closed, whatever becomes of its name.
#[derive(Debug)]
struct Opened {
    attributes: Attributes,
    reader: Arc<Reader>,
}

/// Open directory, whose entries come page by page.
#[derive(Debug, Default)]
struct Directory {
    path: String,
    /// Directory that is made, if it is one.
    made: Option<MadePath>,
    entries: Vec<DirectoryEntry>,
    next: Option<String>,
    is_complete: bool,
}

/// File that is being written, with the number of handles that may write it.
#[derive(Debug)]
struct Writing {
    spool: Arc<Spool>,
    handles: u32,
    /// True once a task sends contiguous writes.
    is_sent: bool,
}

/// File system over a site.
pub struct FileSystem {
    site: Site,
    options: FsOptions,
    memory: Arc<Memory>,
    inodes: Mutex<InodeTable>,
    handles: Mutex<HashMap<u64, Handle>>,
    directories: Mutex<HashMap<u64, Arc<tokio::sync::Mutex<Directory>>>>,
    writing: Mutex<HashMap<u64, Writing>>,
    /// Right to write that all paths share.
    right: Mutex<Option<KnownRight>>,
    rings: Rings,
    made: Mutex<HashMap<u64, MadeEntry>>,
    /// Datasets that are open, the last one first.
    insides: Mutex<VecDeque<(InsidePath, Arc<Inside>)>>,
    /// Files whose bytes the site did not take, with the messages and the files that keep them.
    unwritten: Mutex<Vec<String>>,
    last_handle: AtomicU64,
    /// Number of files that are being closed.
    releasing: AtomicU64,
}

impl std::fmt::Debug for FileSystem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FileSystem").field("options", &self.options).finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl FileSystem {
    /// Makes the file system of a site. It asks the site nothing yet.
    pub fn new(site: Site, options: FsOptions) -> Self {
        Self {
            site,
            memory: Memory::new(options.memory),
            rings: Rings::new(options.rings.clone()),
            made: Mutex::default(),
            insides: Mutex::default(),
            options,
            inodes: Mutex::new(InodeTable::new()),
            handles: Mutex::default(),
            directories: Mutex::default(),
            writing: Mutex::default(),
            right: Mutex::default(),
            unwritten: Mutex::default(),
            last_handle: AtomicU64::new(0),
            releasing: AtomicU64::new(0),
        }
    }

    /// Settings of the file system.
    pub fn options(&self) -> &FsOptions {
        &self.options
    }

    /// Messages about files that the site did not take, since the file system was made.
    pub fn unwritten(&self) -> Vec<String> {
        lock(&self.unwritten).clone()
    }

    /// Path at the site of an entry.
    fn path(&self, ino: u64) -> Result<String, FsError> {
        if let Some(made) = self.made(ino) {
            let message = format!("cannot change `{}`: rings and datasets are read only", made.path);
            return Err(FsError::new(Errno::ROFS, message));
        }
        let path = lock(&self.inodes).path(ino);
        let path = path
            .ok_or_else(|| FsError::new(Errno::STALE, "cannot find the entry: it is not known any more"))?;
        Ok(join(&self.options.root, path.trim_start_matches('/')))
    }

    /// Path at the site of a child.
    fn child(&self, parent: u64, name: &str) -> Result<String, FsError> {
        let path = join(&self.path(parent)?, name);
        // The site has no entries with such names.
        if name.len() > MOST_NAME || split(&path).0.len() > MOST_PROJECT {
            return Err(too_long(&path));
        }
        Ok(path)
    }

    /// Path at the site of a child that is to be made.
    fn new_child(&self, parent: u64, name: &str) -> Result<String, FsError> {
        let path = self.child(parent, name)?;
        storable(&path)?;
        Ok(path)
    }

    /// Refuses a change of a tree that is read only.
    fn changeable(&self, verb: &str, path: &str) -> Result<(), FsError> {
        if self.options.read_only {
            let message = format!("cannot {verb} `{path}`: it is mounted read only");
            return Err(FsError::new(Errno::ROFS, message));
        }
        Ok(())
    }

    fn source(&self, path: &str, shown: &ShownVersion) -> Source {
        let (project, inside) = split(path);
        let request = ReadRequest {
            project: project.to_owned(),
            path: inside.to_owned(),
            version: Some(shown.version.clone()),
            object: Some(shown.object.clone()),
            ..ReadRequest::default()
        };
        Source { site: self.site.clone(), request, patience: self.options.patience }
    }

    fn target(&self, path: &str) -> Target {
        let (project, inside) = split(path);
        Target {
            site: self.site.clone(),
            project: project.to_owned(),
            path: inside.to_owned(),
            patience: self.options.patience,
        }
    }

    /// Spool of a file that is being written.
    fn spool(&self, ino: u64) -> Option<Arc<Spool>> {
        lock(&self.writing).get(&ino).map(|writing| Arc::clone(&writing.spool))
    }

    /// Attributes with the size of a file that is being written.
    fn current(&self, mut attributes: Attributes) -> Attributes {
        if let Some(spool) = self.spool(attributes.ino) {
            attributes.size = spool.size();
        }
        attributes
    }
}

fn too_long(path: &str) -> FsError {
    let start: String = path.chars().take(100).collect();
    let message = format!(
        "cannot use `{start}…`: a name has at most {MOST_NAME} bytes, that of a project {MOST_PROJECT}, a path \
         {MOST_PATH}; shorten it"
    );
    FsError::new(Errno::NAMETOOLONG, message)
}

/// Refuses a path at which the site stores nothing. Entries can have longer paths: they lie in a collection that got a longer
/// name.
fn storable(path: &str) -> Result<(), FsError> {
    if split(path).1.len() > MOST_PATH { Err(too_long(path)) } else { Ok(()) }
}

/// Path of a child of a collection.
fn join(parent: &str, name: &str) -> String {
    match (parent.trim_end_matches('/'), name) {
        ("", "") => "/".to_owned(),
        (parent, "") => parent.to_owned(),
        (parent, name) => format!("{parent}/{name}"),
    }
}

/// Project of a path, and the path in it.
fn split(path: &str) -> (&str, &str) {
    let path = path.trim_start_matches('/');
    path.split_once('/').unwrap_or((path, ""))
}

fn time(milliseconds: i64) -> SystemTime {
    let length = Duration::from_millis(milliseconds.unsigned_abs());
    let found = if milliseconds < 0 {
        SystemTime::UNIX_EPOCH.checked_sub(length)
    } else {
        SystemTime::UNIX_EPOCH.checked_add(length)
    };
    found.unwrap_or(SystemTime::UNIX_EPOCH)
}

/// Time at which an identity was made: UUIDs of version 7 begin with it. Others give the epoch.
fn time_of(id: &str) -> SystemTime {
    let digits: String = id.chars().filter(char::is_ascii_hexdigit).collect();
    let is_timed = digits.len() == 32 && digits.as_bytes()[12] == b'7';
    let stamp = digits.get(..12).filter(|_| is_timed).and_then(|stamp| i64::from_str_radix(stamp, 16).ok());
    time(stamp.unwrap_or(0))
}

/// Facts of an entry from its properties at the site.
fn facts(id: &str, kind: CatalogKind, version: Option<&CatalogVersion>) -> Facts {
    let kind = if kind == CatalogKind::Collection { FileKind::Directory } else { FileKind::File };
    let size = version.map_or(0, |version| version.size);
    let modified = version.map_or_else(|| time_of(id), |version| time(version.stored));
    let attributes = Attributes { ino: number(id), kind, size, modified };
    let version =
        version.map(|version| ShownVersion { object: id.to_owned(), version: version.version.clone(), size });
    Facts { attributes, version }
}

fn facts_of(entry: &CatalogEntry) -> Facts {
    facts(&entry.id, entry.kind, entry.version.as_ref())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_joined_below_the_root() {
        assert_eq!(join("/", ""), "/");
        assert_eq!(join("/", "lab"), "/lab");
        assert_eq!(join("/lab", "a/b"), "/lab/a/b");
        assert_eq!(split("/lab/a/b"), ("lab", "a/b"));
        assert_eq!(split("/lab"), ("lab", ""));
    }

    #[test]
    fn an_identity_tells_its_time() {
        let stamp = time_of("019ac3f2-6a00-7c3e-8f00-3b1f0c2d4e5f");
        assert_eq!(stamp, time(0x019a_c3f2_6a00));
        assert_eq!(time_of("019ac3f2-6a00-8c3e-8f00-3b1f0c2d4e5f"), SystemTime::UNIX_EPOCH);
    }
}
