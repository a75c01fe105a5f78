//! Names: lookup, attributes, lists, and changes of the tree.

use super::{
    Attributes, Directory, DirectoryEntry, FileKind, FileSystem, MadePath, ROOT, facts, facts_of, lock, split,
};
use crate::error::FsError;
use crate::fetch::persist;
use crate::inode_table::Facts;
use crate::rings::{RINGS, RingPath};
use holdfast_remote::{CatalogKind, RemoteError};
use rustix::io::Errno;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::SystemTime;

/// Error of a change of the tree: a refusal gets the number that programs expect.
fn refused(errno: Errno) -> impl Fn(FsError) -> FsError {
    move |error| if error.errno == Errno::INVAL { FsError { errno, ..error } } else { error }
}

impl FileSystem {
    /// Makes a request to the site, again and again while it is away.
    pub(super) async fn ask<T, F: Future<Output = Result<T, RemoteError>>>(
        &self,
        request: impl Fn() -> F,
    ) -> Result<T, FsError> {
        persist(self.options.patience, request).await
    }

    /// Facts of an entry as the site has them now.
    pub(super) async fn read_facts(&self, path: &str) -> Result<Facts, FsError> {
        let stat = self.ask(|| self.site.catalog_stat(path)).await?;
        let version = stat.versions.iter().find(|version| Some(&version.version) == stat.current.as_ref());
        let id = stat.id.unwrap_or_default();
        Ok(facts(&id, stat.kind, version))
    }

    /// Facts of an entry, from the cache or from the site.
    pub(super) async fn known(&self, ino: u64) -> Result<Facts, FsError> {
        if ino == ROOT {
            let (kind, modified) = (FileKind::Directory, SystemTime::UNIX_EPOCH);
            return Ok(Facts { attributes: Attributes { ino, kind, size: 0, modified }, version: None });
        }
        let (fresh, place) = {
            let inodes = lock(&self.inodes);
            let fresh = inodes.facts(ino).filter(|(_, at)| at.elapsed() < self.options.cache);
            (fresh.map(|(facts, _)| facts.clone()), inodes.place(ino))
        };
        if let Some(facts) = fresh {
            return Ok(facts);
        }
        let path = self.path(ino)?;
        let found = match self.read_facts(&path).await {
            Ok(found) => found,
            // A file that is not stored yet is known here only.
            Err(error) if error.errno == Errno::NOENT && self.spool(ino).is_some() => {
                let modified = SystemTime::now();
                let attributes = Attributes { ino, kind: FileKind::File, size: 0, modified };
                return Ok(Facts { attributes, version: None });
            }
            Err(error) => return Err(error),
        };
        let Some((parent, name)) = place else { return Ok(found) };
        let learnt = lock(&self.inodes).learn(parent, &name, found);
        if learnt.attributes.ino != ino {
            let message = format!("cannot read the attributes of `{path}`: another entry has its place now");
            return Err(FsError::new(Errno::STALE, message));
        }
        Ok(learnt)
    }

    /// Finds an entry by its name, and counts a reference of the caller.
    pub async fn lookup(&self, parent: u64, name: &str) -> Result<Attributes, FsError> {
        if let Some(made) = self.made_child(parent, name).await {
            return made;
        }
        let path = self.child(parent, name)?;
        let known = lock(&self.inodes).at(parent, name);
        if let Some(ino) = known
            && (self.spool(ino).is_some() || self.is_fresh(ino))
        {
            let facts = self.known(ino).await?;
            lock(&self.inodes).refer(ino);
            return Ok(self.current(facts.attributes));
        }
        let found = match self.read_facts(&path).await {
            Ok(found) => found,
            Err(error) if error.errno == Errno::NOENT => {
                return self.lookup_inside(&path).await.ok_or(error);
            }
            Err(error) => return Err(error),
        };
        let mut inodes = lock(&self.inodes);
        let learnt = inodes.learn(parent, name, found);
        inodes.refer(learnt.attributes.ino);
        drop(inodes);
        Ok(self.current(learnt.attributes))
    }

    fn is_fresh(&self, ino: u64) -> bool {
        lock(&self.inodes).facts(ino).is_some_and(|(_, at)| at.elapsed() < self.options.cache)
    }

    /// Attributes of an entry.
    pub async fn attributes(&self, ino: u64) -> Result<Attributes, FsError> {
        if let Some(made) = self.made_attributes(ino) {
            return Ok(made);
        }
        match self.known(ino).await {
            Ok(known) => Ok(self.current(known.attributes)),
            // An open file is there without a name, or while another has its name.
            Err(error) if matches!(error.errno, Errno::NOENT | Errno::STALE) => {
                self.open_attributes(ino).ok_or(error)
            }
            Err(error) => Err(error),
        }
    }

    /// Counts a reference of the caller to an entry that it knows.
    pub(crate) fn hold(&self, ino: u64) {
        lock(&self.inodes).refer(ino);
    }

    /// Takes references of the caller back.
    pub fn forget(&self, ino: u64, lookups: u64) {
        lock(&self.inodes).forget(ino, lookups);
    }

    /// Opens a directory for listing.
    pub fn open_directory(&self, ino: u64) -> Result<u64, FsError> {
        let directory = match self.made(ino) {
            Some(made) => Directory { made: Some(made.path), ..Directory::default() },
            None => Directory { path: self.path(ino)?, ..Directory::default() },
        };
        let handle = self.last_handle.fetch_add(1, Ordering::Relaxed) + 1;
        lock(&self.directories).insert(handle, Arc::new(tokio::sync::Mutex::new(directory)));
        Ok(handle)
    }

    /// Closes an open directory.
    pub fn release_directory(&self, handle: u64) {
        lock(&self.directories).remove(&handle);
    }

    /// Entries of an open directory from some position on: a part of them, none at the end.
    pub async fn list(&self, ino: u64, handle: u64, from: usize) -> Result<Vec<DirectoryEntry>, FsError> {
        let directory = lock(&self.directories).get(&handle).map(Arc::clone);
        let Some(directory) = directory else {
            return Err(FsError::new(Errno::BADF, "cannot list: the directory is not open"));
        };
        let mut directory = directory.lock().await;
        if from == 0 {
            // A directory that is read from its beginning again shows its entries as they are now.
            let (path, made) = (directory.path.clone(), directory.made.clone());
            *directory = Directory { path, made, ..Directory::default() };
        }
        while from >= directory.entries.len() && !directory.is_complete {
            self.read_page(ino, &mut directory).await?;
        }
        Ok(directory.entries.get(from..).unwrap_or_default().to_vec())
    }

    async fn read_page(&self, ino: u64, directory: &mut Directory) -> Result<(), FsError> {
        if let Some(path) = directory.made.clone() {
            return self.list_made(&path, directory).await;
        }
        let (path, after) = (directory.path.clone(), directory.next.clone());
        let page = self.ask(|| self.site.catalog_list(&path, after.as_deref())).await?;
        for entry in &page.entries {
            let learnt = lock(&self.inodes).refresh(ino, &entry.name, facts_of(entry));
            let attributes = self.current(learnt.attributes);
            let (name, version) = (entry.name.clone(), learnt.version);
            directory.entries.push(DirectoryEntry { name, attributes, version });
        }
        directory.next = page.next;
        directory.is_complete = directory.next.is_none();
        if directory.is_complete {
            if ino == ROOT && self.shows_rings() {
                let (name, attributes) =
                    (RINGS.to_owned(), self.keep_made(MadePath::Ring(RingPath::Root), 0));
                directory.entries.push(DirectoryEntry { name, attributes, version: None });
            }
            for (name, attributes) in self.unsaved_children(ino) {
                if directory.entries.iter().all(|entry| entry.name != name) {
                    directory.entries.push(DirectoryEntry { name, attributes, version: None });
                }
            }
        }
        Ok(())
    }

    /// Files of a directory that are not stored yet.
    fn unsaved_children(&self, parent: u64) -> Vec<(String, Attributes)> {
        let writing: Vec<u64> = lock(&self.writing).keys().copied().collect();
        let inodes = lock(&self.inodes);
        let child = |ino: u64| {
            let (above, name) = inodes.place(ino).filter(|(above, _)| *above == parent)?;
            // A deleted file has no place any more.
            (inodes.at(above, &name) == Some(ino)).then_some((name, ino))
        };
        let children: Vec<(String, u64)> = writing.into_iter().filter_map(child).collect();
        drop(inodes);
        let attributes = |ino| Attributes { ino, kind: FileKind::File, size: 0, modified: SystemTime::now() };
        children.into_iter().map(|(name, ino)| (name, self.current(attributes(ino)))).collect()
    }

    /// Keeps the facts of a listed entry, and counts a reference of the caller.
    pub fn refer(&self, parent: u64, entry: &DirectoryEntry) {
        if self.is_made(entry.attributes.ino) {
            return;
        }
        let facts = Facts { attributes: entry.attributes, version: entry.version.clone() };
        let mut inodes = lock(&self.inodes);
        inodes.learn(parent, &entry.name, facts);
        inodes.refer(entry.attributes.ino);
    }

    /// Makes a directory: a collection.
    pub async fn make_directory(&self, parent: u64, name: &str) -> Result<Attributes, FsError> {
        let path = self.new_child(parent, name)?;
        self.changeable("make", &path)?;
        let made = self.ask(|| self.site.make_collection(&path, false, None)).await;
        let made = made?;
        let found = facts(&made.id, CatalogKind::Collection, None);
        let mut inodes = lock(&self.inodes);
        let learnt = inodes.learn(parent, name, found);
        inodes.refer(learnt.attributes.ino);
        Ok(learnt.attributes)
    }

    /// Deletes a file: it goes to the trash of the site.
    pub async fn unlink(&self, parent: u64, name: &str) -> Result<(), FsError> {
        let path = self.child(parent, name)?;
        self.changeable("delete", &path)?;
        let unsaved = lock(&self.inodes).at(parent, name).filter(|ino| self.spool(*ino).is_some());
        let deleted = self.ask(|| self.site.delete_entry(&path, false)).await;
        match deleted {
            Ok(_) => {}
            Err(error) if error.errno == Errno::NOENT && unsaved.is_some() => {}
            Err(error) => return Err(refused(Errno::ISDIR)(error)),
        }
        lock(&self.inodes).remove(parent, name);
        if let Some(spool) = unsaved.and_then(|ino| self.spool(ino)) {
            spool.end_sending();
        }
        Ok(())
    }

    /// Deletes an empty directory.
    pub async fn remove_directory(&self, parent: u64, name: &str) -> Result<(), FsError> {
        let path = self.child(parent, name)?;
        self.changeable("delete", &path)?;
        if self.read_facts(&path).await?.attributes.kind != FileKind::Directory {
            return Err(FsError::new(Errno::NOTDIR, format!("cannot delete `{path}`: it is no directory")));
        }
        let page = self.ask(|| self.site.catalog_list(&path, None)).await?;
        let known = lock(&self.inodes).at(parent, name);
        let is_used = known.is_some_and(|ino| !self.unsaved_children(ino).is_empty());
        if is_used || !page.entries.is_empty() {
            return Err(FsError::new(Errno::NOTEMPTY, format!("cannot delete `{path}`: it is not empty")));
        }
        // An entry that comes meanwhile goes to the trash with it, and can be restored.
        let deleted = self.ask(|| self.site.delete_entry(&path, true)).await;
        deleted.map_err(refused(Errno::NOTEMPTY))?;
        lock(&self.inodes).remove(parent, name);
        Ok(())
    }

    /// Error of a rename, with the number that programs expect where the kinds of the entries do not fit.
    async fn rename_error(&self, error: FsError, old: &str, new: &str) -> FsError {
        if error.errno != Errno::INVAL {
            return error;
        }
        let kind = async |path: &str| self.read_facts(path).await.ok().map(|facts| facts.attributes.kind);
        let errno = match (kind(old).await, kind(new).await) {
            (Some(FileKind::Directory), Some(FileKind::File)) => Errno::NOTDIR,
            (Some(FileKind::File), Some(FileKind::Directory)) => Errno::ISDIR,
            (_, Some(FileKind::Directory)) => Errno::EXIST,
            // Files lie in projects.
            (Some(FileKind::File), None) if split(new).1.is_empty() => Errno::PERM,
            _ => Errno::INVAL,
        };
        FsError { errno, ..error }
    }

    /// Moves or renames an entry. It replaces a file that has the new name, unless `keep` is given.
    pub async fn rename(&self, from: (u64, &str), to: (u64, &str), keep: bool) -> Result<(), FsError> {
        let (old, new) = (self.child(from.0, from.1)?, self.new_child(to.0, to.1)?);
        self.changeable("rename", &old)?;
        if old == new {
            return self.lookup(from.0, from.1).await.map(|found| self.forget(found.ino, 1));
        }
        let known = lock(&self.inodes).at(from.0, from.1);
        if let Some(ino) = known.filter(|ino| self.spool(*ino).is_some()) {
            // The site knows the file under its first name before it can be renamed.
            self.store(ino).await?;
        }
        let moved = self.ask(|| self.site.replace_entry(&old, &new, !keep)).await;
        if let Err(error) = moved {
            return Err(self.rename_error(error, &old, &new).await);
        }
        let mut inodes = lock(&self.inodes);
        inodes.rename(from, to);
        if let Some(ino) = inodes.at(to.0, to.1) {
            inodes.doubt(ino);
        }
        Ok(())
    }
}
