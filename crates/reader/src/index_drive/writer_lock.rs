//! Writer lock of an index drive: one process at a time writes copies of a ring's indexes.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// This process's right to write copies of a ring's index, until it is dropped.
#[derive(Debug)]
pub struct WriterLock {
    /// The file that carries the lock.
    pub(super) file: File,
    /// Where the file system of a folder is mounted.
    pub(super) mount: Option<PathBuf>,
}

impl WriterLock {
    /// Whether the file at a path is the one that is locked.
    pub(super) fn is(&self, path: &Path) -> bool {
        let known = self.file.metadata().and_then(|ours| Ok((ours, fs::metadata(path)?)));
        known.is_ok_and(|(ours, there)| (ours.dev(), ours.ino()) == (there.dev(), there.ino()))
    }
}

/// Where the file system is mounted that has a path, or what there is of its folders.
pub(super) fn mount_of(path: &Path) -> io::Result<PathBuf> {
    let path = std::path::absolute(path)?;
    let there = path.ancestors().find_map(|folder| folder.canonicalize().ok());
    let there = there.ok_or(io::ErrorKind::NotFound)?;
    let device = there.metadata()?.dev();
    let same = |folder: &&Path| folder.metadata().is_ok_and(|found| found.dev() == device);
    Ok(there.ancestors().take_while(same).last().unwrap_or(&there).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_would_be_on_the_file_system_of_what_is() {
        let folder = std::env::temp_dir();
        let mount = mount_of(&folder).unwrap();
        assert_eq!(mount_of(&folder.join("no/such/folder")).unwrap(), mount);
        assert!(folder.canonicalize().unwrap().starts_with(&mount));
        // It is one: what is above it is on another, if anything is.
        let device = |path: &Path| path.metadata().unwrap().dev();
        assert!(mount.parent().is_none_or(|above| device(above) != device(&mount)));
        assert_ne!(mount_of(Path::new("/proc")).unwrap(), mount);
    }
}
