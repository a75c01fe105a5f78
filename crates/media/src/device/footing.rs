//! Footing of a ring: the properties of its file or device that a guarantee depends on, reported by the
//! system without opening anything.

use super::{busy, caution};
use rustix::fs::FileType;
use std::path::Path;

/// What a ring stands on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Footing {
    /// A file: what of it was never written has no place on the device yet, and gets one while it is written.
    pub file: bool,
    /// Why nothing can be promised there, whatever was measured.
    pub doubt: Option<String>,
}

impl Footing {
    /// Of what is at a path, as it is now.
    pub fn of(path: &Path) -> Self {
        let kind = rustix::fs::stat(path).map(|stat| FileType::from_raw_mode(stat.st_mode));
        if kind == Ok(FileType::BlockDevice) {
            let shared = busy::shared_with(path);
            let doubt = shared.map(|who| format!("the disk is shared with other writers: {who}"));
            return Self { file: false, doubt };
        }
        let doubt = rustix::fs::statfs(path).ok().and_then(|stat| caution::no_guarantee(&stat));
        Self { file: kind == Ok(FileType::RegularFile), doubt }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Promise 1: nothing is promised on a file system that is not known to keep it, wherever a link to the file lies.
    #[test]
    fn a_file_stands_on_the_file_system_that_it_is_in() {
        let memory = Path::new("/dev/shm");
        let doubted = rustix::fs::statfs(memory).is_ok_and(|stat| caution::no_guarantee(&stat).is_some());
        if !doubted {
            println!("skipped: there is no file system in memory");
            return;
        }
        let folder = tempfile::tempdir_in(memory).unwrap();
        let (file, elsewhere) = (folder.path().join("r.hf"), tempfile::tempdir().unwrap());
        let link = elsewhere.path().join("link.hf");
        std::fs::write(&file, "").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        let footing = Footing::of(&link);
        assert!(footing.file && footing.doubt.is_some_and(|why| why.contains("tmpfs")));
        assert!(!Footing::of(folder.path()).file);
    }
}
