//! Object store: the bytes of objects under keys, behind a trait. The implementation in a folder is `folder_store`.
//!
//! Stores know neither versions nor names of objects: the catalog does.

use crate::archive::{ArchiveError, ReadAt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// File whose bytes an object store takes.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// Path of the file, which nobody changes meanwhile.
    pub file: &'a Path,
    /// Size of the file in bytes.
    pub size: u64,
    /// BLAKE3 of the file.
    pub blake3: blake3::Hash,
    /// True if the caller removes the file later, so that a hard link is as good as a copy.
    pub is_temporary: bool,
}

/// Object that is open for reading.
pub struct OpenObject {
    /// Size of the object in bytes.
    pub size: u64,
    /// Contents of the object.
    pub contents: Box<dyn ReadAt>,
}

/// Store of bytes under keys: relative paths of names separated by `/`. Methods block, and are called on blocking threads.
pub trait ObjectStore: Send + Sync {
    /// Puts a file under a key and returns after its bytes are durable and verified. After a crash this is called again, so
    /// equal bytes under the key are no error; other bytes are never overwritten.
    fn put(&self, key: &str, source: &Source<'_>) -> Result<(), ArchiveError>;

    /// Opens the object under a key.
    fn open(&self, key: &str) -> Result<OpenObject, ArchiveError>;

    /// Path of a local file with the object under a key, if the store keeps objects in such files.
    fn file(&self, key: &str) -> Option<PathBuf>;

    /// Removes the object under a key, and all that an interrupted `put` has left; a missing object is no error.
    fn remove(&self, key: &str) -> Result<(), ArchiveError>;
}

/// Object store with the name under which the catalog knows it.
#[derive(Clone)]
pub struct NamedStore {
    /// Name of the vault in the catalog, never changed once replicas are there.
    pub name: String,
    /// Store of the vault's bytes.
    pub store: Arc<dyn ObjectStore>,
}
