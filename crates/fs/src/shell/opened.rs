//! Open entries of the tree in the processes of a shell, found by the inodes of the files that stand for them.

use super::paths::Names;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::fs::{CWD, Mode, OFlags, fstat, openat};
use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tempfile::TempDir;

/// Entries whose facts are kept after they were found.
const REFERRED: usize = 65_536;

/// Device and inode of a file that stands for an open entry.
type Key = (u64, u64);

/// Open entry of the tree.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) ino: u64,
    /// Entries to which it holds references: itself, and the folders above.
    pub(super) held: Vec<u64>,
    pub(super) kind: OpenedKind,
}

/// Open entry by its way of use.
#[derive(Debug)]
pub(super) enum OpenedKind {
    /// File that is read.
    Reader(Reading),
    /// File that is written, with its handles.
    Writer(Writing),
    /// Folder, with its handle and the position of its list.
    Folder { names: Names, handle: u64, position: tokio::sync::Mutex<u64> },
    /// Mark of the current folder of a process; nothing if that is outside of the tree.
    Current(Option<Names>),
}

/// File that is read.
#[derive(Debug)]
pub(super) struct Reading {
    pub(super) handle: u64,
    /// Memory file that stands for it.
    pub(super) file: File,
    /// True once the memory file has all bytes. It is locked while a position is used.
    pub(super) is_filled: tokio::sync::Mutex<bool>,
}

/// File that is written.
#[derive(Debug)]
pub(super) struct Writing {
    pub(super) handles: Mutex<Vec<u64>>,
    /// Spool of the file.
    pub(super) file: File,
    /// True once a process maps it for writing: a change of memory leaves no trace in the times of the spool.
    pub(super) is_mapped: AtomicBool,
}

impl Opened {
    /// Names of a folder.
    pub(super) fn names(&self) -> Option<&Names> {
        if let OpenedKind::Folder { names, .. } = &self.kind { Some(names) } else { None }
    }

    /// Current folder for which this is the mark.
    pub(super) fn current(&self) -> Option<&Names> {
        if let OpenedKind::Current(names) = &self.kind { names.as_ref() } else { None }
    }
}

/// All open entries, found by their files and by the events of these.
#[derive(Debug)]
pub(super) struct OpenedTable {
    all: Mutex<Tables>,
    /// Source of the events that a last descriptor was closed.
    closes: OwnedFd,
    /// Folder of the files that stand for entries.
    folder: TempDir,
    last: AtomicU64,
    /// Entries that were found last, whose facts the file system keeps meanwhile.
    referred: Mutex<VecDeque<u64>>,
}

#[derive(Debug, Default)]
struct Tables {
    entries: HashMap<Key, Arc<Opened>>,
    watches: HashMap<i32, (Key, Arc<Opened>)>,
}

fn key(file: impl AsFd) -> io::Result<Key> {
    let found = fstat(file)?;
    Ok((found.st_dev, found.st_ino))
}

/// Opens a file anew, with a position and rights of its own.
pub(super) fn reopen(file: &impl AsFd, flags: OFlags) -> io::Result<OwnedFd> {
    let path = format!("/proc/self/fd/{}", file.as_fd().as_raw_fd());
    Ok(openat(CWD, path, flags | OFlags::CLOEXEC, Mode::empty())?)
}

impl OpenedTable {
    pub(super) fn new(folder: &Path) -> io::Result<Self> {
        Ok(Self {
            all: Mutex::default(),
            closes: inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?,
            folder: tempfile::Builder::new().prefix("shell-").tempdir_in(folder)?,
            last: AtomicU64::new(0),
            referred: Mutex::default(),
        })
    }

    /// Notes a reference of an entry, and gives the oldest one back when there are many.
    pub(super) fn refer(&self, ino: u64, forget: impl FnOnce(u64)) {
        let mut referred = self.referred.lock().unwrap_or_else(PoisonError::into_inner);
        referred.push_back(ino);
        let oldest = if referred.len() > REFERRED { referred.pop_front() } else { None };
        drop(referred);
        if let Some(oldest) = oldest {
            forget(oldest);
        }
    }

    /// Descriptor at which the search for a free one begins: another one each time.
    pub(super) fn next_number(&self, first: i32, end: i32) -> i32 {
        first + (self.last.fetch_add(1, Ordering::Relaxed) % (end - first) as u64) as i32
    }

    fn lock(&self) -> MutexGuard<'_, Tables> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Source of events that a last descriptor was closed.
    pub(super) fn closes(&self) -> &OwnedFd {
        &self.closes
    }

    /// Entry for which a file stands.
    pub(super) fn get(&self, file: impl AsFd) -> Option<Arc<Opened>> {
        self.lock().entries.get(&key(file).ok()?).map(Arc::clone)
    }

    /// Keeps an entry until the last descriptor of its file is closed.
    pub(super) fn keep(&self, file: &impl AsFd, opened: Arc<Opened>) -> io::Result<()> {
        let path = format!("/proc/self/fd/{}", file.as_fd().as_raw_fd());
        let (key, mut tables) = (key(file)?, self.lock());
        let watch =
            inotify::add_watch(&self.closes, path, WatchFlags::CLOSE_WRITE | WatchFlags::CLOSE_NOWRITE)?;
        tables.entries.insert(key, Arc::clone(&opened));
        tables.watches.insert(watch, (key, opened));
        Ok(())
    }

    /// Forgets an entry and its events.
    pub(super) fn remove(&self, opened: &Arc<Opened>) {
        let mut tables = self.lock();
        tables.entries.retain(|_, found| !Arc::ptr_eq(found, opened));
        tables.watches.retain(|_, (_, found)| !Arc::ptr_eq(found, opened));
    }

    /// Entries of which a descriptor was closed for the last time.
    pub(super) fn closed(&self) -> Vec<Arc<Opened>> {
        let mut space = [MaybeUninit::uninit(); 4096];
        let mut reader = inotify::Reader::new(&self.closes, &mut space);
        let mut found = Vec::new();
        while let Ok(event) = reader.next() {
            let mut tables = self.lock();
            if event.events().contains(ReadFlags::IGNORED) {
                tables.watches.remove(&event.wd());
            } else if let Some((_, opened)) = tables.watches.get(&event.wd()) {
                found.push(Arc::clone(opened));
            }
        }
        found
    }

    /// Empty folder that has no name, to stand for an open folder.
    pub(super) fn unnamed_folder(&self) -> io::Result<OwnedFd> {
        let name = self.last.fetch_add(1, Ordering::Relaxed).to_string();
        let path = self.folder.path().join(name);
        std::fs::create_dir(&path)?;
        let opened = openat(CWD, &path, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
        std::fs::remove_dir(&path)?;
        Ok(opened?)
    }

    /// Empty file that has no name: in memory if it is small.
    pub(super) fn unnamed_file(&self, size: u64) -> io::Result<File> {
        /// Most bytes of a file in memory.
        const MEMORY: u64 = 64 << 20;
        let file = if size <= MEMORY {
            rustix::fs::memfd_create("holdfast", rustix::fs::MemfdFlags::CLOEXEC)?.into()
        } else {
            tempfile::tempfile_in(self.folder.path())?
        };
        file.set_len(size)?;
        Ok(file)
    }
}
