//! Stores below vaults: a folder of this machine, or an object store.

use crate::folder::{Folder, FolderUpload};
use crate::objects::{ObjectUpload, Objects};
use crate::runtime::wait;
use bytes::Bytes;
use holdfast_dataset::SourceAccess;
use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// Folder of a vault that has its unfinished uploads; nothing in it is listed.
pub(crate) const HIDDEN: &str = ".holdfast";

/// Object of a vault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Path inside the vault.
    pub path: String,
    /// Size of the object in bytes.
    pub bytes: u64,
    /// Time of the last change.
    pub modified: SystemTime,
}

/// Treatment of the name of an upload, and of its bytes when its process ends early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UploadMode {
    /// The name must be free; unfinished bytes are removed.
    Creates,
    /// As `Creates`, but a folder keeps the bytes of a killed process for the next one.
    IsKept,
    /// The upload replaces an object.
    Replaces,
}

/// Store below a vault.
#[derive(Clone, Debug)]
pub(crate) enum Store {
    Folder(Arc<Folder>),
    Objects(Arc<Objects>),
}

/// Upload that is being written.
pub(crate) enum Writing {
    Folder(FolderUpload),
    Objects(ObjectUpload),
}

impl Store {
    /// The last `most` bytes of an object, and its size.
    pub(crate) fn tail(&self, path: &str, most: u64) -> io::Result<(Bytes, u64)> {
        match self {
            Self::Folder(folder) => folder.tail(path, most),
            Self::Objects(objects) => {
                let (objects, path) = (Arc::clone(objects), path.to_owned());
                wait(async move { objects.tail(&path, most).await })
            }
        }
    }

    /// Bytes of an object from `offset` on.
    pub(crate) fn read(&self, path: &str, offset: u64, length: usize) -> io::Result<Bytes> {
        match self {
            Self::Folder(folder) => folder.read(path, offset, length),
            Self::Objects(objects) => {
                let (objects, path) = (Arc::clone(objects), path.to_owned());
                wait(async move { objects.read(&path, offset, length).await })
            }
        }
    }

    /// Objects whose path is `prefix` or lies below it, in the order of their paths. Unfinished uploads are left out.
    pub(crate) fn list(&self, prefix: &str) -> io::Result<Vec<Entry>> {
        let mut entries = match self {
            Self::Folder(folder) => folder.list(prefix)?,
            Self::Objects(objects) => {
                let (objects, prefix) = (Arc::clone(objects), prefix.to_owned());
                wait(async move { objects.list(&prefix).await })?
            }
        };
        entries.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(entries)
    }

    /// Access to an object in a folder; no bound in an object store, which has its own rules of access.
    pub(crate) fn access(&self, path: &str) -> SourceAccess {
        match self {
            Self::Folder(folder) => folder.access(path),
            Self::Objects(_) => SourceAccess::default(),
        }
    }

    /// Removes an object; one that is not there is an error.
    pub(crate) fn remove(&self, path: &str) -> io::Result<()> {
        match self {
            Self::Folder(folder) => folder.remove(path),
            Self::Objects(objects) => {
                let (objects, path) = (Arc::clone(objects), path.to_owned());
                wait(async move { objects.remove(&path).await })
            }
        }
    }

    /// Begins an upload to a path.
    pub(crate) fn upload(&self, path: &str, mode: UploadMode) -> io::Result<Writing> {
        match self {
            Self::Folder(folder) => folder.upload(path, mode).map(Writing::Folder),
            Self::Objects(objects) => {
                objects.upload(path, mode == UploadMode::Replaces).map(Writing::Objects)
            }
        }
    }

    /// Paths and ages of kept uploads whose process has ended. Object stores cannot read unfinished uploads.
    pub(crate) fn left(&self) -> io::Result<Vec<(String, Duration)>> {
        match self {
            Self::Folder(folder) => folder.left(),
            Self::Objects(_) => Ok(Vec::new()),
        }
    }

    /// Renames a kept upload that is damaged, and returns its new path. Object stores have none.
    pub(crate) fn set_aside(&self, path: &str) -> io::Result<String> {
        match self {
            Self::Folder(folder) => folder.set_aside(path),
            Self::Objects(_) => Ok(path.to_owned()),
        }
    }

    /// Removes uploads of processes that have ended, and returns their number.
    pub(crate) fn remove_abandoned(&self) -> io::Result<usize> {
        match self {
            Self::Folder(folder) => folder.remove_abandoned(),
            Self::Objects(objects) => {
                let objects = Arc::clone(objects);
                wait(async move { objects.remove_abandoned().await })
            }
        }
    }
}

impl Writing {
    /// Appends bytes to the upload.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Folder(upload) => upload.write(bytes),
            Self::Objects(upload) => upload.write(bytes),
        }
    }

    /// Notes access to a source of the bytes. Object stores have their own rules of access.
    pub(crate) fn narrow(&mut self, access: SourceAccess) {
        if let Self::Folder(upload) = self {
            upload.narrow(access);
        }
    }

    /// Makes all bytes durable, and has them outlive this process. `false`: the store cannot read unfinished uploads.
    pub(crate) fn keep(&mut self) -> io::Result<bool> {
        match self {
            Self::Folder(upload) => upload.keep().map(|()| true),
            Self::Objects(_) => Ok(false),
        }
    }

    /// Makes all bytes durable, and returns the path inside the store where they can be read back.
    pub(crate) fn complete(&mut self) -> io::Result<String> {
        match self {
            Self::Folder(upload) => upload.complete(),
            Self::Objects(upload) => upload.complete(),
        }
    }

    /// Makes the object visible under its name.
    pub(crate) fn publish(&mut self) -> io::Result<()> {
        match self {
            Self::Folder(upload) => upload.publish(),
            Self::Objects(upload) => upload.publish(),
        }
    }

    /// Gives the upload up, and removes what it has written.
    pub(crate) fn abort(&mut self) {
        match self {
            Self::Folder(upload) => upload.abort(),
            Self::Objects(upload) => upload.abort(),
        }
    }
}
