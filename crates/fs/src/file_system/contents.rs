//! Contents: opening, reading and writing files, and storing what was written.

use super::{Attributes, FileKind, FileSystem, Handle, OpenMode, Opened, Writing, lock, storable};
use crate::error::FsError;
use crate::inode_table::Facts;
use crate::reader::Reader;
use crate::spool::Spool;
use bytes::Bytes;
use rustix::io::Errno;
use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::SystemTime;

impl FileSystem {
    fn keep_handle(&self, handle: Handle) -> u64 {
        let number = self.last_handle.fetch_add(1, Ordering::Relaxed) + 1;
        lock(&self.handles).insert(number, handle);
        number
    }

    fn closed() -> FsError {
        FsError::new(Errno::BADF, "cannot use the file: it is not open; open it again")
    }

    /// Opens a file. A reader sees the version that is current now, or the bytes that are being written here.
    pub async fn open(&self, ino: u64, mode: OpenMode) -> Result<u64, FsError> {
        if let Some(made) = self.made(ino).filter(|_| !mode.write) {
            let handle = self.open_made(ino, made).await?;
            return Ok(self.keep_handle(handle));
        }
        let path = self.path(ino)?;
        if mode.write {
            storable(&path)?;
            self.changeable("write", &path)?;
            self.check_right("write", &path).await?;
            let spool = self.writer(ino, mode.truncate).await?;
            self.send_ahead(ino, &path);
            return Ok(self.keep_handle(Handle::Write(ino, spool)));
        }
        if let Some(spool) = self.spool(ino) {
            return Ok(self.keep_handle(Handle::Spool(spool)));
        }
        let Facts { attributes, version } = self.known(ino).await?;
        if attributes.kind == FileKind::Directory {
            return Err(FsError::new(Errno::ISDIR, format!("cannot open `{path}`: it is a directory")));
        }
        // A link whose target is deleted has none, and reads as empty.
        let shown = version.unwrap_or_default();
        let source = self.source(&path, &shown);
        let reader = Reader::open(source, shown.size, self.options.buffer, &self.memory);
        let attributes = Attributes { size: shown.size, ..attributes };
        Ok(self.keep_handle(Handle::Read(Arc::new(Opened { attributes, reader }))))
    }

    /// Spool of a file with one more handle.
    async fn writer(&self, ino: u64, truncate: bool) -> Result<Arc<Spool>, FsError> {
        if let Some(spool) = self.join_writers(ino) {
            if truncate {
                spool.set_size(0)?;
            }
            return Ok(spool);
        }
        let folder = &self.options.spool;
        let version = if ino >> 63 == 1 && truncate {
            None
        } else {
            let Facts { attributes, version } = self.known(ino).await?;
            if attributes.kind == FileKind::Directory {
                let path = self.path(ino)?;
                return Err(FsError::new(Errno::ISDIR, format!("cannot write `{path}`: it is a directory")));
            }
            version.filter(|_| !truncate)
        };
        let made = match version {
            Some(shown) => {
                let source = self.source(&self.path(ino)?, &shown);
                Spool::of(folder, &source, shown.size).await?
            }
            None => Spool::new(folder)?,
        };
        // Another open of the same file may have been faster.
        let mut writing = lock(&self.writing);
        let entry = writing.entry(ino).or_insert_with(|| Writing { spool: made, handles: 0, is_sent: false });
        entry.handles += 1;
        Ok(Arc::clone(&entry.spool))
    }

    /// Starts to send contiguous writes of a file while it is open.
    fn send_ahead(&self, ino: u64, path: &str) {
        let mut writing = lock(&self.writing);
        let Some(found) = writing.get_mut(&ino).filter(|found| !found.is_sent) else { return };
        found.is_sent = true;
        tokio::spawn(Spool::send_ahead(Arc::downgrade(&found.spool), self.target(path)));
    }

    fn join_writers(&self, ino: u64) -> Option<Arc<Spool>> {
        let mut writing = lock(&self.writing);
        let found = writing.get_mut(&ino)?;
        found.handles += 1;
        Some(Arc::clone(&found.spool))
    }

    /// Makes an empty file and opens it. The site gets it when it is closed.
    pub async fn create(&self, parent: u64, name: &str) -> Result<(Attributes, u64), FsError> {
        let path = self.new_child(parent, name)?;
        self.changeable("make", &path)?;
        if path.trim_matches('/').split('/').count() < 2 {
            let message = format!("cannot make `{path}`: files lie in projects; make a directory first");
            return Err(FsError::new(Errno::PERM, message));
        }
        self.check_right("make", &path).await?;
        let known = lock(&self.inodes).at(parent, name).filter(|ino| self.spool(*ino).is_some());
        let ino = match known {
            Some(ino) => ino,
            None => match self.lookup(parent, name).await {
                Ok(found) => found.ino,
                Err(error) if error.errno == Errno::NOENT => {
                    let mut inodes = lock(&self.inodes);
                    // Others deleted the file that had the name before.
                    inodes.remove(parent, name);
                    inodes.unsaved()
                }
                Err(error) => return Err(error),
            },
        };
        let spool = self.writer(ino, true).await?;
        let modified = SystemTime::now();
        let attributes = Attributes { ino, kind: FileKind::File, size: 0, modified };
        let mut inodes = lock(&self.inodes);
        inodes.learn(parent, name, Facts { attributes, version: None });
        inodes.refer(ino);
        drop(inodes);
        self.send_ahead(ino, &path);
        Ok((attributes, self.keep_handle(Handle::Write(ino, spool))))
    }

    /// Reads some bytes of an open file: all that were asked for, but at its end.
    pub async fn read(&self, handle: u64, offset: u64, length: u64) -> Result<Bytes, FsError> {
        let handle = lock(&self.handles).get(&handle).cloned().ok_or_else(Self::closed)?;
        match handle {
            Handle::Read(opened) => opened.reader.read(offset, length).await,
            Handle::Spool(spool) | Handle::Write(_, spool) => spool.read(offset, length),
            Handle::Exported(exported) => exported.read(offset, length),
            Handle::Live(live) => live.read(offset, length).await,
        }
    }

    /// Writes some bytes into an open file. They are on this machine only, until the file is closed or synchronised.
    pub fn write(&self, handle: u64, offset: u64, bytes: &[u8]) -> Result<(), FsError> {
        let spool = match lock(&self.handles).get(&handle) {
            Some(Handle::Write(_, spool)) => Arc::clone(spool),
            _ => return Err(Self::closed()),
        };
        spool.write(offset, bytes)
    }

    /// Stores the bytes of an open file at the site. It returns when the site has them.
    pub async fn sync(&self, handle: u64) -> Result<(), FsError> {
        let ino = match lock(&self.handles).get(&handle) {
            Some(Handle::Write(ino, _)) => *ino,
            Some(_) => return Ok(()),
            None => return Err(Self::closed()),
        };
        self.store(ino).await
    }

    /// Attributes of an entry that is open, although its name leads to it no more.
    pub(super) fn open_attributes(&self, ino: u64) -> Option<Attributes> {
        if self.spool(ino).is_some() {
            let modified = SystemTime::now();
            return Some(self.current(Attributes { ino, kind: FileKind::File, size: 0, modified }));
        }
        lock(&self.handles).values().find_map(|handle| match handle {
            Handle::Read(opened) if opened.attributes.ino == ino => Some(opened.attributes),
            _ => None,
        })
    }

    fn handle_spool(&self, handle: u64) -> Option<Arc<Spool>> {
        match lock(&self.handles).get(&handle)? {
            Handle::Spool(spool) | Handle::Write(_, spool) => Some(Arc::clone(spool)),
            Handle::Read(_) | Handle::Exported(_) | Handle::Live(_) => None,
        }
    }

    /// Local file that is the contents of an open file, if it is being written here. Whoever gets it may write it: the next close
    /// or synchronisation stores that.
    pub(crate) fn local_file(&self, handle: u64) -> Result<Option<File>, FsError> {
        self.handle_spool(handle).map(|spool| spool.share()).transpose()
    }

    /// True if a handle may write.
    pub(crate) fn is_written(&self, handle: u64) -> bool {
        matches!(lock(&self.handles).get(&handle), Some(Handle::Write(..)))
    }

    /// Notes that the local file of a handle was changed through a mapping of memory.
    pub(crate) fn touch(&self, handle: u64) {
        if let Some(spool) = self.handle_spool(handle) {
            spool.touch();
        }
    }

    /// Stores a file that is being written.
    pub(super) async fn store(&self, ino: u64) -> Result<(), FsError> {
        let Some(spool) = self.spool(ino) else { return Ok(()) };
        // A deleted file lives as long as it is open. One that others replaced gets a version in the object of theirs.
        let Some(path) = self.kept_path(ino) else {
            spool.abandon(&self.site, self.options.patience).await;
            return Ok(());
        };
        if spool.store(&self.target(&path)).await? {
            lock(&self.inodes).stored(ino);
        }
        Ok(())
    }

    /// Path of an entry, unless it was deleted here.
    fn kept_path(&self, ino: u64) -> Option<String> {
        let is_deleted = lock(&self.inodes).is_deleted(ino);
        self.path(ino).ok().filter(|_| !is_deleted)
    }

    /// Closes an open file. Bytes that the site did not take stay in a file here.
    pub fn release(&self, handle: u64) {
        let Some(Handle::Write(ino, spool)) = lock(&self.handles).remove(&handle) else { return };
        self.releasing.fetch_add(1, Ordering::SeqCst);
        self.release_writer(ino, &spool);
        self.releasing.fetch_sub(1, Ordering::SeqCst);
    }

    fn release_writer(&self, ino: u64, spool: &Spool) {
        let mut writing = lock(&self.writing);
        let is_last = writing.get_mut(&ino).is_some_and(|found| {
            found.handles -= 1;
            found.handles == 0
        });
        if is_last {
            writing.remove(&ino);
        }
        drop(writing);
        if is_last && spool.is_unstored() {
            self.keep_unstored(ino, spool);
        }
    }

    fn keep_unstored(&self, ino: u64, spool: &Spool) {
        let Some(path) = self.kept_path(ino) else { return };
        let place = spool.keep().map_or_else(|| "nowhere".to_owned(), |file| file.display().to_string());
        lock(&self.unwritten)
            .push(format!("cannot write `{path}`: its bytes are kept in {place}; put them again"));
        // The tree shows what the site has.
        let mut inodes = lock(&self.inodes);
        inodes.doubt(ino);
        if let Some((parent, name)) = inodes.place(ino).filter(|_| ino >> 63 == 1)
            && inodes.at(parent, &name) == Some(ino)
        {
            inodes.remove(parent, &name);
        }
    }

    /// Changes the size of a file.
    pub async fn set_size(&self, ino: u64, size: u64) -> Result<Attributes, FsError> {
        let path = self.path(ino)?;
        storable(&path)?;
        self.changeable("change the size of", &path)?;
        self.check_right("change the size of", &path).await?;
        let is_open = self.spool(ino).is_some();
        let spool = self.writer(ino, size == 0).await?;
        let handle = self.keep_handle(Handle::Write(ino, Arc::clone(&spool)));
        let changed = spool.set_size(size);
        // An open file is stored when it is closed.
        let stored = if is_open { Ok(()) } else { self.store(ino).await };
        self.release(handle);
        changed.and(stored)?;
        self.attributes(ino).await
    }

    /// Stores all files that are open for writing. Returns messages about those that the site did not take.
    pub async fn finish(&self) -> Vec<String> {
        let writing: Vec<u64> = lock(&self.writing).keys().copied().collect();
        for ino in writing {
            let Some(spool) = self.spool(ino) else { continue };
            if self.store(ino).await.is_err() {
                self.keep_unstored(ino, &spool);
            }
        }
        // A file that is being closed is in neither list for a moment.
        while self.releasing.load(Ordering::SeqCst) > 0 {
            tokio::task::yield_now().await;
        }
        self.unwritten()
    }
}
