//! Archive: the store of finished uploads, behind a trait. The implementation is `site`; tests have others.

use crate::clock::Timestamp;
use crate::database::DatabaseError;
use crate::object_path::{ObjectPath, ProjectName};
use crate::upload_id::UploadId;
use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;

/// Identity of one version of an object, chosen by the archive.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VersionId(String);

impl VersionId {
    /// Version of the given text: letters, digits and `-`, so that it fits in an address and a file name.
    pub fn parse(text: &str) -> Option<Self> {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
        (!text.is_empty() && text.len() <= 128 && text.chars().all(plain)).then(|| Self(text.to_owned()))
    }

    /// Version of a site's number, the number of its operation and the place in that.
    pub(crate) fn of_parts(site: u64, operation: u64, place: u16) -> Self {
        Self(format!("{site:x}-{operation}-{place}"))
    }

    /// Text of the version.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for VersionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Upload that is complete, durable and verified.
#[derive(Clone, Debug)]
pub struct FinishedUpload {
    /// Identity of the upload.
    pub id: UploadId,
    /// Project of the object.
    pub project: ProjectName,
    /// Path of the object in its project.
    pub path: ObjectPath,
    /// Size of the contents in bytes.
    pub size: u64,
    /// BLAKE3 of the contents.
    pub blake3: blake3::Hash,
    /// Pairs of the header `Upload-Metadata`, decoded.
    pub metadata: Vec<(String, Vec<u8>)>,
    /// File with the contents: the archive may link or copy it, but must not change, move or remove it.
    pub file: PathBuf,
}

/// Version of an object in an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredVersion {
    /// Path of the object in its project.
    pub path: ObjectPath,
    /// Identity of the version.
    pub version: VersionId,
    /// Size of the contents in bytes.
    pub size: u64,
    /// BLAKE3 of the contents.
    pub blake3: blake3::Hash,
    /// Time at which the version was stored.
    pub stored: Timestamp,
}

/// Error of an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchiveError {
    message: String,
    is_refusal: bool,
}

impl ArchiveError {
    /// Error after which the server tries again, with a message of the form "cannot VERB OBJECT: REASON; REMEDY".
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), is_refusal: false }
    }

    /// Error that no further attempt avoids, with a message of the same form.
    pub fn refusal(message: impl Into<String>) -> Self {
        Self { message: message.into(), is_refusal: true }
    }

    /// True if no further attempt avoids the error.
    pub fn is_refusal(&self) -> bool {
        self.is_refusal
    }
}

impl fmt::Display for ArchiveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ArchiveError {}

impl From<DatabaseError> for ArchiveError {
    fn from(error: DatabaseError) -> Self {
        Self::new(format!(
            "cannot use the journal of the archive: {error}; check the file site.db in the data folder"
        ))
    }
}

/// Bytes that can be read at any offset.
pub trait ReadAt: Send + Sync {
    /// Reads at `offset` into `buffer`; zero only at the end of the contents.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;
}

impl ReadAt for File {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        std::os::unix::fs::FileExt::read_at(self, buffer, offset)
    }
}

/// Reads exactly the length of `buffer` at `offset`.
pub(crate) fn read_exact_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<()> {
    file.read_exact_at(buffer, offset)
}

/// Version that is open for reading.
pub struct OpenVersion {
    /// Properties of the version.
    pub stored: StoredVersion,
    /// Contents of the version.
    pub contents: Box<dyn ReadAt>,
}

/// Store of finished uploads as versions of objects. Methods block, and are called on blocking threads.
pub trait Archive: Send + Sync {
    /// Stores an upload durably. Nothing is overwritten: other contents become a new version. After a crash the server calls
    /// this again for the same upload, so contents equal to the current version must return that version.
    fn store(&self, finished: &FinishedUpload) -> Result<StoredVersion, ArchiveError>;

    /// Opens a version of an object, the current one if `version` is `None`; `None` if it does not exist.
    fn open(
        &self,
        project: &ProjectName,
        path: &ObjectPath,
        version: Option<&VersionId>,
    ) -> Result<Option<OpenVersion>, ArchiveError>;

    /// Current versions of the objects of a project in the order of their paths: those behind `after`, at most `most`.
    fn list(
        &self,
        project: &ProjectName,
        after: Option<&ObjectPath>,
        most: usize,
    ) -> Result<Vec<StoredVersion>, ArchiveError>;

    /// All versions of an object, oldest first.
    fn versions(&self, project: &ProjectName, path: &ObjectPath) -> Result<Vec<StoredVersion>, ArchiveError>;
}
