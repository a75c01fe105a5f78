//! Local file with the contents of a version: that of a store, or a temporary copy.

use crate::archive::{ArchiveError, ReadAt};
use crate::error::reason;
use crate::site::SiteArchive;
use holdfast_catalog::{Stat, Version};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// Piece in which contents are copied.
const PIECE: usize = 1 << 20;

/// File of a version, which stays as long as this value.
pub(crate) enum LocalFile {
    /// File of a store, which must not be changed.
    Stored(PathBuf),
    /// Copy that is removed at the end.
    Copy(NamedTempFile),
}

impl LocalFile {
    /// Finds a file with the contents of a version, or copies them into `folder`. Blocks.
    pub(crate) fn open(
        site: &SiteArchive,
        stat: &Stat,
        version: &Version,
        folder: &Path,
    ) -> Result<Self, ArchiveError> {
        let mut files = site.replicas(stat, version.tag).filter_map(|(store, key)| store.store.file(key));
        if let Some(file) = files.find(|file| file.is_file()) {
            return Ok(Self::Stored(file));
        }
        let contents = site.open_replica(stat, version)?;
        let copied = copy(contents.as_ref(), version, folder);
        copied.map(Self::Copy).map_err(|error| {
            let why = reason(&error);
            ArchiveError::new(format!(
                "cannot copy a version to {}: {why}; make room there",
                folder.display()
            ))
        })
    }

    /// Path of the file.
    pub(crate) fn path(&self) -> &Path {
        match self {
            Self::Stored(path) => path,
            Self::Copy(file) => file.path(),
        }
    }

    /// True for a copy that is removed at the end.
    pub(crate) fn is_temporary(&self) -> bool {
        matches!(self, Self::Copy(_))
    }
}

/// Copies the contents of a version into a temporary file, and compares their hash.
pub(crate) fn copy(contents: &dyn ReadAt, version: &Version, folder: &Path) -> io::Result<NamedTempFile> {
    let mut file = NamedTempFile::new_in(folder)?;
    let mut hasher = blake3::Hasher::new();
    let mut piece = vec![0; PIECE];
    let mut at = 0;
    loop {
        let length = contents.read_at(&mut piece, at)?;
        if length == 0 {
            break;
        }
        hasher.update(&piece[..length]);
        file.write_all(&piece[..length])?;
        at += length as u64;
    }
    if hasher.finalize() != blake3::Hash::from_bytes(version.hash.0) {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the stored bytes are damaged"));
    }
    Ok(file)
}
