//! Entries that are made of rings: lookup, lists and opening.

use super::{Attributes, Directory, DirectoryEntry, FileKind, FileSystem, Handle, ROOT, lock};
use crate::error::FsError;
use crate::inode_table::number;
use crate::rings::{RINGS, RingPath, Span};
use rustix::io::Errno;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// Entry below the directory of rings.
#[derive(Clone, Debug)]
pub(super) struct MadeEntry {
    pub(super) path: RingPath,
    /// Size that the file had when it was opened last.
    size: u64,
    /// Reason for which it could not be opened.
    error: Option<String>,
}

fn ino(path: &RingPath) -> u64 {
    number(&format!("/{RINGS}/{path}"))
}

impl FileSystem {
    /// Entry of a ring with a number.
    pub(super) fn made(&self, ino: u64) -> Option<MadeEntry> {
        lock(&self.made).get(&ino).cloned()
    }

    /// True for an entry made of a ring, whose size is known once it is open, and may grow.
    pub fn is_made(&self, ino: u64) -> bool {
        lock(&self.made).contains_key(&ino)
    }

    /// Message of the last error of an entry made of a ring.
    pub(super) fn made_error(&self, ino: u64) -> Option<String> {
        self.made(ino).and_then(|made| made.error)
    }

    /// Path of a child that is made of a ring; nothing for other entries.
    pub(super) fn made_child(&self, parent: u64, name: &str) -> Option<Result<RingPath, FsError>> {
        if parent == ROOT && name == RINGS && self.shows_rings() {
            return Some(Ok(RingPath::Root));
        }
        let above = self.made(parent)?.path;
        let missing =
            || FsError::new(Errno::NOENT, format!("cannot find `{name}`: no such file is made of a ring"));
        Some(above.child(name).ok_or_else(missing))
    }

    pub(super) fn shows_rings(&self) -> bool {
        self.options.root == "/" && !self.rings.is_empty()
    }

    /// Attributes of an entry, which is kept.
    pub(super) fn keep_made(&self, path: RingPath) -> Attributes {
        let number = ino(&path);
        let mut made = lock(&self.made);
        let entry = made.entry(number).or_insert(MadeEntry { path, size: 0, error: None });
        attributes(number, entry)
    }

    /// Runs blocking work on rings.
    async fn block<T: Send + 'static>(
        work: impl FnOnce() -> Result<T, FsError> + Send + 'static,
    ) -> Result<T, FsError> {
        let ended = |_| FsError::new(Errno::IO, "cannot read the ring: the work was stopped; try again");
        tokio::task::spawn_blocking(work).await.map_err(ended)?
    }

    /// Finds an entry of a ring.
    pub(super) async fn lookup_made(&self, path: RingPath) -> Result<Attributes, FsError> {
        let (rings, wanted) = (self.rings.clone(), path.clone());
        Self::block(move || rings.check(&wanted)).await?;
        Ok(self.keep_made(path))
    }

    /// Attributes of a known entry of a ring.
    pub(super) fn made_attributes(&self, ino: u64) -> Option<Attributes> {
        self.made(ino).map(|made| attributes(ino, &made))
    }

    /// Reads the entries of a directory of rings.
    pub(super) async fn list_made(&self, path: &RingPath, directory: &mut Directory) -> Result<(), FsError> {
        let (rings, wanted) = (self.rings.clone(), path.clone());
        let names = Self::block(move || rings.list(&wanted)).await?;
        for (name, _) in names {
            // Names that a path cannot have do not come from streams.
            let Some(child) = path.child(&name) else { continue };
            let attributes = self.keep_made(child);
            directory.entries.push(DirectoryEntry { name, attributes, version: None });
        }
        directory.is_complete = true;
        Ok(())
    }

    /// Opens a file of a ring: makes it, or begins to.
    pub(super) async fn open_made(&self, ino: u64, made: MadeEntry) -> Result<Handle, FsError> {
        let RingPath::File(file) = made.path else {
            let message = format!("cannot open `/{RINGS}/{}`: it is a directory", made.path);
            return Err(FsError::new(Errno::ISDIR, message));
        };
        let (rings, folder) = (self.rings.clone(), self.options.spool.clone());
        let opened = if file.span == Span::Live {
            let live = Self::block(move || rings.follow(&file, &folder)).await;
            match live {
                Ok(live) => {
                    let live = Arc::new(live);
                    live.refresh().await.map(|size| (size, Handle::Live(live)))
                }
                Err(error) => Err(error),
            }
        } else {
            let exported = Self::block(move || rings.export(&file, &folder)).await;
            exported.map(|exported| (exported.size(), Handle::Exported(Arc::new(exported))))
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
}

fn attributes(ino: u64, made: &MadeEntry) -> Attributes {
    let kind = if made.path.is_directory() { FileKind::Directory } else { FileKind::File };
    let modified = match &made.path {
        RingPath::File(file) => match file.span {
            Span::Minute(minute) => {
                let minutes = u64::try_from(minute + 1).unwrap_or(0);
                SystemTime::UNIX_EPOCH + Duration::from_secs(60 * minutes)
            }
            Span::Live => SystemTime::now(),
            Span::Hold(_) => SystemTime::UNIX_EPOCH,
        },
        _ => SystemTime::UNIX_EPOCH,
    };
    Attributes { ino, kind, size: made.size, modified }
}
