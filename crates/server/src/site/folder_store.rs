//! Object store in a folder: every key is a file. Files on the same file system are linked, not copied.

use super::object_store::{ObjectStore, OpenObject, Source};
use crate::archive::ArchiveError;
use crate::durable::{make_folders, remove_file, sync_folder};
use crate::error::reason;
use std::ffi::OsString;
use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind, Read as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Component, Path, PathBuf};

/// Piece in which files are copied between file systems.
const PIECE: usize = 1 << 20;

/// Suffix of an unfinished copy; no key of the site ends so.
const UNFINISHED: &str = ".copying";

/// Store of objects in a folder of this machine.
#[derive(Clone, Debug)]
pub struct FolderStore {
    root: PathBuf,
}

impl FolderStore {
    /// Store in `root`, which is made if it is missing.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// File of a key, which must not lead out of the folder.
    fn target(&self, key: &str) -> io::Result<PathBuf> {
        let is_plain = Path::new(key).components().all(|part| matches!(part, Component::Normal(_)));
        if key.is_empty() || !is_plain {
            return Err(io::Error::new(ErrorKind::InvalidInput, "the key is no relative path"));
        }
        Ok(self.root.join(key))
    }

    fn put_file(&self, key: &str, source: &Source<'_>) -> io::Result<()> {
        let target = self.target(key)?;
        let folder = target.parent().unwrap_or(&self.root);
        DirBuilder::new().recursive(true).mode(0o700).create(&self.root)?;
        make_folders(&self.root, folder)?;
        if source.is_temporary {
            match fs::hard_link(source.file, &target) {
                Err(error) if matches!(error.kind(), ErrorKind::CrossesDevices | ErrorKind::Unsupported) => {
                    copy(source, &target)?;
                }
                Err(error) if error.kind() == ErrorKind::AlreadyExists => compare(source, &target)?,
                linked => linked?,
            }
        } else {
            copy(source, &target)?;
        }
        sync_folder(folder)
    }

    fn open_file(&self, key: &str) -> io::Result<OpenObject> {
        let file = File::open(self.target(key)?)?;
        Ok(OpenObject { size: file.metadata()?.len(), contents: Box::new(file) })
    }

    fn remove_key(&self, key: &str) -> io::Result<()> {
        let target = self.target(key)?;
        remove_file(&unfinished(&target))?;
        remove_file(&target)?;
        let folders = target.ancestors().skip(1).take_while(|folder| *folder != self.root);
        for folder in folders {
            // A folder with other entries stays, and with it those above.
            match fs::remove_dir(folder) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(_) => return sync_folder(folder),
            }
        }
        Ok(())
    }
}

impl ObjectStore for FolderStore {
    fn put(&self, key: &str, source: &Source<'_>) -> Result<(), ArchiveError> {
        self.put_file(key, source).map_err(|error| failed("store", key, &error))
    }

    fn open(&self, key: &str) -> Result<OpenObject, ArchiveError> {
        self.open_file(key).map_err(|error| failed("open", key, &error))
    }

    fn file(&self, key: &str) -> Option<PathBuf> {
        self.target(key).ok()
    }

    fn remove(&self, key: &str) -> Result<(), ArchiveError> {
        self.remove_key(key).map_err(|error| failed("remove", key, &error))
    }
}

fn failed(verb: &str, key: &str, error: &io::Error) -> ArchiveError {
    let remedy = match error.kind() {
        ErrorKind::StorageFull => "make room in the archive",
        _ => "check the archive's folder",
    };
    ArchiveError::new(format!("cannot {verb} the file {key}: {}; {remedy}", reason(error)))
}

fn unfinished(target: &Path) -> PathBuf {
    let mut name: OsString = target.as_os_str().to_owned();
    name.push(UNFINISHED);
    name.into()
}

/// Copies a file under a name that is no key, and links the copy.
fn copy(source: &Source<'_>, target: &Path) -> io::Result<()> {
    if target.exists() {
        return compare(source, target);
    }
    let unfinished = unfinished(target);
    remove_file(&unfinished)?;
    let mut copy = File::options().write(true).create_new(true).mode(0o600).open(&unfinished)?;
    let copied = hash_into(source.file, &mut copy).and_then(|hash| {
        copy.sync_all()?;
        if hash != source.blake3 {
            return Err(io::Error::new(ErrorKind::InvalidData, "the file changed while it was copied"));
        }
        fs::hard_link(&unfinished, target)
    });
    remove_file(&unfinished)?;
    copied
}

/// Accepts a file that is there already if its bytes are those of the source.
fn compare(source: &Source<'_>, target: &Path) -> io::Result<()> {
    let (known, found) = (fs::metadata(source.file)?, fs::metadata(target)?);
    let is_same_file = (known.dev(), known.ino()) == (found.dev(), found.ino());
    if is_same_file || found.len() == source.size && hash_into(target, &mut io::sink())? == source.blake3 {
        return Ok(());
    }
    Err(io::Error::new(ErrorKind::AlreadyExists, "a file with other contents is there"))
}

/// Writes the bytes of a file to `sink`, and returns their hash.
fn hash_into(file: &Path, sink: &mut impl io::Write) -> io::Result<blake3::Hash> {
    let mut file = File::open(file)?;
    let mut hasher = blake3::Hasher::new();
    let mut piece = vec![0; PIECE];
    loop {
        let length = file.read(&mut piece)?;
        if length == 0 {
            return Ok(hasher.finalize());
        }
        hasher.update(&piece[..length]);
        sink.write_all(&piece[..length])?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_kept_once_and_never_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let store = FolderStore::new(folder.path().join("store"));
        for is_temporary in [true, false] {
            let key = format!("p/a/{is_temporary}");
            let put = |text: &str| {
                let file = folder.path().join(format!("{text}-{is_temporary}"));
                fs::write(&file, text).unwrap();
                let (size, blake3) = (text.len() as u64, blake3::hash(text.as_bytes()));
                store.put(&key, &Source { file: &file, size, blake3, is_temporary })
            };
            put("one").unwrap();
            put("one").unwrap();
            let error = put("two").unwrap_err().to_string();
            assert!(error.contains("a file with other contents is there; check"), "{error}");
            assert_eq!(fs::read(store.file(&key).unwrap()).unwrap(), b"one");
            let links = fs::metadata(store.file(&key).unwrap()).unwrap().nlink();
            assert_eq!(links, if is_temporary { 2 } else { 1 });
            assert_eq!(store.open(&key).unwrap().size, 3);
        }
        store.remove("p/a/true").unwrap();
        store.remove("p/a/true").unwrap();
        assert!(folder.path().join("store/p/a/false").exists());
        fs::write(folder.path().join("store/p/a/false.copying"), "half").unwrap();
        store.remove("p/a/false").unwrap();
        assert_eq!(fs::read_dir(folder.path().join("store")).unwrap().count(), 0);
    }

    #[test]
    fn keys_do_not_lead_out_of_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        let store = FolderStore::new(folder.path().join("store"));
        for key in ["", "../x", "/x", "a/../x"] {
            assert!(store.file(key).is_none() && store.remove(key).is_err(), "{key}");
        }
    }
}
