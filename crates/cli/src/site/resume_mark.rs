//! Mark of an unfinished upload, in the user's folder of state: a later run of the same command continues it.

use crate::folders;
use holdfast_remote::UploadAddress;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// File with the address of an upload. Its name stands for the site, the object, and the file as it is now.
#[derive(Debug)]
pub(super) struct ResumeMark(PathBuf);

impl ResumeMark {
    /// Mark of a file that is sent to a path of a site.
    pub(super) fn of(site: &str, path: &str, file: &Path, found: &fs::Metadata) -> Self {
        let file = fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
        let (length, seconds, nanos) = (found.len(), found.mtime(), found.mtime_nsec());
        let text = format!("{site}\0{path}\0{}\0{length}\0{seconds}.{nanos}", file.display());
        let name = blake3::hash(text.as_bytes()).to_hex().to_string();
        Self(folders::state().join("uploads").join(name))
    }

    /// Address of the unfinished upload, if there is one.
    pub(super) fn read(&self) -> Option<UploadAddress> {
        fs::read_to_string(&self.0).ok()?.trim().parse().ok()
    }

    /// Notes the address. Without it the upload is only not resumed, so that an error is no failure.
    pub(super) fn write(&self, address: &UploadAddress) {
        let folder = self.0.parent().map_or(Ok(()), fs::create_dir_all);
        let _ = folder.and_then(|()| fs::write(&self.0, address.to_string()));
    }

    /// Removes the mark of an upload that is complete or gone.
    pub(super) fn remove(&self) {
        let _ = fs::remove_file(&self.0);
    }
}
