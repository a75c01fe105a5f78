//! Entries that are made when they are read, of rings and of datasets: lookup, lists and opening.

use super::{Attributes, Directory, DirectoryEntry, FileKind, FileSystem, Handle, ROOT, lock};
use crate::error::FsError;
use crate::inode_table::number;
use crate::inside::{self, Inside, InsidePath};
use crate::reader::Reader;
use crate::rings::{RINGS, RingFile, RingPath, Span};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::runtime::Handle as Runtime;

/// Place of an entry that is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum MadePath {
    /// Entry below the directory of rings.
    Ring(RingPath),
    /// Entry inside of a dataset, with its kind and time.
    Inside(InsidePath, FileKind, SystemTime),
}

impl MadePath {
    fn is_directory(&self) -> bool {
        match self {
            Self::Ring(path) => path.is_directory(),
            Self::Inside(_, kind, _) => *kind == FileKind::Directory,
        }
    }
}

impl fmt::Display for MadePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ring(path) => write!(f, "/{RINGS}/{path}"),
            Self::Inside(path, ..) => path.fmt(f),
        }
    }
}

/// Entry that is made when it is read.
#[derive(Clone, Debug)]
pub(super) struct MadeEntry {
    pub(super) path: MadePath,
    /// Size of the file: that of the last open, or the one that its dataset tells.
    size: u64,
    /// Reason for which it could not be opened.
    error: Option<String>,
}

fn ino(path: &MadePath) -> u64 {
    match path {
        MadePath::Ring(_) => number(&path.to_string()),
        // Another version of a dataset has other entries.
        MadePath::Inside(inside, ..) => number(&format!("{} {path}", inside.version.version)),
    }
}

impl FileSystem {
    /// Entry that is made with a number.
    pub(super) fn made(&self, ino: u64) -> Option<MadeEntry> {
        lock(&self.made).get(&ino).cloned()
    }

    /// True for an entry that is made, whose size is known once it is open, and may grow.
    pub fn is_made(&self, ino: u64) -> bool {
        lock(&self.made).contains_key(&ino)
    }

    /// Message of the last error of an entry that is made.
    pub(super) fn made_error(&self, ino: u64) -> Option<String> {
        self.made(ino).and_then(|made| made.error)
    }

    /// Finds a child that is made; nothing for other entries.
    pub(super) async fn made_child(&self, parent: u64, name: &str) -> Option<Result<Attributes, FsError>> {
        if parent == ROOT && name == RINGS && self.shows_rings() {
            return Some(Ok(self.keep_made(MadePath::Ring(RingPath::Root), 0)));
        }
        Some(match self.made(parent)?.path {
            MadePath::Ring(above) => self.ring_child(&above, name).await,
            MadePath::Inside(above, ..) => self.inside_child(&above.child(name)).await,
        })
    }

    async fn ring_child(&self, above: &RingPath, name: &str) -> Result<Attributes, FsError> {
        let missing =
            || FsError::new(Errno::NOENT, format!("cannot find `{name}`: no such file is made of a ring"));
        let path = above.child(name).ok_or_else(missing)?;
        let (rings, wanted) = (self.rings.clone(), path.clone());
        Self::block(move || rings.check(&wanted)).await?;
        Ok(self.keep_made(MadePath::Ring(path), 0))
    }

    async fn inside_child(&self, path: &InsidePath) -> Result<Attributes, FsError> {
        let missing =
            || FsError::new(Errno::NOENT, format!("cannot find `{path}`: no such entry is in the dataset"));
        let (inside, names) = (self.inside(path).await?.ok_or_else(missing)?, path.names.clone());
        let found = Self::block(move || inside.find(&names)).await?.ok_or_else(missing)?;
        Ok(self.keep_made(MadePath::Inside(path.clone(), found.kind, found.modified), found.size))
    }

    /// Finds the inside of a dataset by the name of the dataset with its ending; nothing if there is none.
    pub(super) async fn lookup_inside(&self, path: &str) -> Option<Attributes> {
        let dataset = path.strip_suffix(inside::ENDING)?;
        let version = self.read_facts(dataset).await.ok()?.version?;
        let path = InsidePath { dataset: dataset.to_owned(), version, names: Vec::new() };
        self.inside_child(&path).await.ok()
    }

    /// Dataset of a path, kept open for a while; nothing if the file is none.
    async fn inside(&self, path: &InsidePath) -> Result<Option<Arc<Inside>>, FsError> {
        /// Datasets that are kept open.
        const OPEN: usize = 8;
        let kept = |all: &VecDeque<(InsidePath, Arc<Inside>)>| {
            let is_it = |found: &InsidePath| found.dataset == path.dataset && found.version == path.version;
            all.iter().find(|(found, _)| is_it(found)).map(|(_, inside)| Arc::clone(inside))
        };
        if let Some(inside) = kept(&lock(&self.insides)) {
            return Ok(Some(inside));
        }
        let source = self.source(&path.dataset, &path.version);
        let reader = Reader::open(source, path.version.size, self.options.buffer, &self.memory);
        let (wanted, runtime) = (path.clone(), Runtime::current());
        let Some(inside) = Self::block(move || Inside::open(reader, &wanted, runtime)).await? else {
            return Ok(None);
        };
        let inside = Arc::new(inside);
        let mut all = lock(&self.insides);
        all.truncate(OPEN - 1);
        all.push_front((path.clone(), Arc::clone(&inside)));
        Ok(Some(inside))
    }

    pub(super) fn shows_rings(&self) -> bool {
        self.options.root == "/" && !self.rings.is_empty()
    }

    /// Attributes of an entry, which is kept.
    pub(super) fn keep_made(&self, path: MadePath, size: u64) -> Attributes {
        let number = ino(&path);
        let mut made = lock(&self.made);
        let entry = made.entry(number).or_insert(MadeEntry { path, size, error: None });
        attributes(number, entry)
    }

    /// Runs blocking work on rings and datasets.
    async fn block<T: Send + 'static>(
        work: impl FnOnce() -> Result<T, FsError> + Send + 'static,
    ) -> Result<T, FsError> {
        let ended = |_| FsError::new(Errno::IO, "cannot read the file: the work was stopped; try again");
        tokio::task::spawn_blocking(work).await.map_err(ended)?
    }

    /// Attributes of a known entry that is made.
    pub(super) fn made_attributes(&self, ino: u64) -> Option<Attributes> {
        self.made(ino).map(|made| attributes(ino, &made))
    }

    /// Reads the entries of a directory that is made.
    pub(super) async fn list_made(&self, path: &MadePath, directory: &mut Directory) -> Result<(), FsError> {
        let mut keep = |name: String, path, size| {
            let attributes = self.keep_made(path, size);
            directory.entries.push(DirectoryEntry { name, attributes, version: None });
        };
        match path {
            MadePath::Ring(path) => {
                let (rings, wanted) = (self.rings.clone(), path.clone());
                for (name, _) in Self::block(move || rings.list(&wanted)).await? {
                    // Names that a path cannot have do not come from streams.
                    let Some(child) = path.child(&name) else { continue };
                    keep(name, MadePath::Ring(child), 0);
                }
            }
            MadePath::Inside(path, ..) => {
                let names = path.names.clone();
                let Some(inside) = self.inside(path).await? else {
                    return Err(FsError::new(
                        Errno::STALE,
                        format!("cannot list `{path}`: it is no dataset"),
                    ));
                };
                for found in Self::block(move || inside.list(&names)).await? {
                    let child = path.child(&found.name);
                    keep(found.name, MadePath::Inside(child, found.kind, found.modified), found.size);
                }
            }
        }
        directory.is_complete = true;
        Ok(())
    }

    /// Opens a file that is made: makes it, or begins to.
    pub(super) async fn open_made(&self, ino: u64, made: MadeEntry) -> Result<Handle, FsError> {
        let opened = match made.path {
            MadePath::Ring(RingPath::File(file)) => self.open_ring(file).await,
            MadePath::Ring(path @ RingPath::Query(..)) => self.open_query(path).await,
            MadePath::Inside(path, FileKind::File, _) => self.open_inside(path).await,
            path => {
                let message = format!("cannot open `{path}`: it is a directory");
                return Err(FsError::new(Errno::ISDIR, message));
            }
        };
        let mut all = lock(&self.made);
        if let Some(entry) = all.get_mut(&ino) {
            match &opened {
                Ok((size, _)) => (entry.size, entry.error) = (*size, None),
                Err(error) => entry.error = Some(error.message.clone()),
            }
        }
        opened.map(|(_, handle)| handle)
    }

    async fn open_inside(&self, path: InsidePath) -> Result<(u64, Handle), FsError> {
        let Some(inside) = self.inside(&path).await? else {
            return Err(FsError::new(Errno::STALE, format!("cannot open `{path}`: it is no dataset")));
        };
        let folder = self.options.spool.clone();
        let exported = Self::block(move || inside.export(&path, &folder)).await?;
        Ok((exported.size(), Handle::Exported(Arc::new(exported))))
    }

    async fn open_query(&self, path: RingPath) -> Result<(u64, Handle), FsError> {
        let (rings, folder) = (self.rings.clone(), self.options.spool.clone());
        let rows = Self::block(move || rings.query(&path, &folder)).await?;
        Ok((rows.size(), Handle::Exported(Arc::new(rows))))
    }

    async fn open_ring(&self, file: RingFile) -> Result<(u64, Handle), FsError> {
        let (rings, folder) = (self.rings.clone(), self.options.spool.clone());
        if file.span == Span::Live {
            let live = Arc::new(Self::block(move || rings.follow(&file, &folder)).await?);
            return Ok((live.refresh().await?, Handle::Live(live)));
        }
        let exported = Self::block(move || rings.export(&file, &folder)).await?;
        Ok((exported.size(), Handle::Exported(Arc::new(exported))))
    }
}

fn attributes(ino: u64, made: &MadeEntry) -> Attributes {
    let kind = if made.path.is_directory() { FileKind::Directory } else { FileKind::File };
    let modified = match &made.path {
        MadePath::Inside(_, _, modified) => *modified,
        MadePath::Ring(RingPath::File(file)) => match file.span {
            Span::Minute(minute) => {
                let minutes = u64::try_from(minute + 1).unwrap_or(0);
                SystemTime::UNIX_EPOCH + Duration::from_secs(60 * minutes)
            }
            Span::Live => SystemTime::now(),
            Span::Hold(_) => SystemTime::UNIX_EPOCH,
        },
        MadePath::Ring(RingPath::Query(..)) => SystemTime::now(),
        MadePath::Ring(_) => SystemTime::UNIX_EPOCH,
    };
    Attributes { ino, kind, size: made.size, modified }
}
