//! Vaults of the configuration file as object stores of a server. Vaults themselves are in the crate `vault`.

use bytes::Bytes;
use holdfast_base::failure::{Failure, Kind, Result};
use holdfast_client::config;
use holdfast_dataset::RangeRead as _;
use holdfast_server::{ArchiveError, FolderStore, NamedStore, ObjectStore, OpenObject, ReadAt, Source};
use holdfast_vault::{Vault, VaultObject};
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes that are read from a vault at once: each read of an object store is a request.
const PIECE: usize = 4 << 20;

/// Name of the server's own folder in its data folder, as the catalog has it.
const ARCHIVE: &str = "archive";

/// Stores of a server: the vault of new versions, the folder in the data folder, and the vaults of copies. Each vault is tried.
/// The folder takes new versions where no vault does, and else is kept while it has versions.
pub(crate) fn stores(data: &Path, vault: Option<&str>, copies: &[String]) -> Result<Vec<NamedStore>> {
    let folder = data.join(ARCHIVE);
    let named = |name: &str| {
        if name == ARCHIVE && folder.is_dir() {
            let what = "the name stands for the folder in the data folder already";
            return Err(Failure::usage(what)
                .at(format_args!("vault `{name}`"))
                .advice("give the vault another name in the configuration file"));
        }
        let store: Arc<dyn ObjectStore> = Arc::new(VaultStore::open(name)?);
        Ok(NamedStore { name: name.to_owned(), store })
    };
    let mut stores: Vec<NamedStore> = vault.map(named).into_iter().collect::<Result<_>>()?;
    if folder.is_dir() || vault.is_none() {
        stores
            .push(NamedStore { name: ARCHIVE.to_owned(), store: Arc::new(FolderStore::new(folder.clone())) });
    }
    for name in copies {
        stores.push(named(name)?);
    }
    Ok(stores)
}

/// Vault as an object store of a server.
struct VaultStore {
    vault: Arc<Vault>,
    /// Folder of the vault, if it is one of this machine.
    folder: Option<PathBuf>,
}

impl VaultStore {
    /// Opens a vault of the configuration file and tries it, which also removes the uploads of killed processes.
    fn open(name: &str) -> Result<Self> {
        let entry = config::vault(name)?;
        let vault = Vault::open(&entry)?;
        vault.check()?;
        let folder = entry.url.strip_prefix("file://").unwrap_or(&entry.url);
        let folder = folder.starts_with('/').then(|| PathBuf::from(folder));
        Ok(Self { vault, folder })
    }

    fn store(&self, key: &str, source: &Source<'_>) -> Result<()> {
        let mut upload = match self.vault.upload(key) {
            Ok(upload) => upload,
            // An object whose upload was not published is not in the list.
            Err(failure) => {
                let entries = self.vault.list(key)?;
                return match entries.iter().find(|entry| entry.path == key) {
                    Some(_) => self.compare(key, source),
                    None => Err(failure),
                };
            }
        };
        let mut file = File::open(source.file)
            .map_err(|error| Failure::io("cannot read the upload", source.file, &error))?;
        io::copy(&mut io::BufReader::with_capacity(PIECE, &mut file), &mut upload)
            .and_then(|_| upload.flush())
            .map_err(|error| Failure::io("cannot store the upload", source.file, &error))?;
        let (_, stored) = upload.verify()?;
        if stored.blake3 != source.blake3.to_hex().as_str() {
            return Err(Failure::failed("the file changed while it was copied").at_path(source.file));
        }
        upload.publish()
    }

    /// Accepts an object that is there already if its bytes are those of the source.
    fn compare(&self, key: &str, source: &Source<'_>) -> Result<()> {
        let object = self.vault.object(key)?;
        let is_same = object.size() == source.size && hash(&object).is_ok_and(|hash| hash == source.blake3);
        if is_same {
            return Ok(());
        }
        Err(Failure::failed("another object is there").at(self.vault.place(key)))
    }
}

fn hash(object: &VaultObject) -> io::Result<blake3::Hash> {
    let mut hasher = blake3::Hasher::new();
    let mut at = 0;
    while at < object.size() {
        let piece = object.read(at, (object.size() - at).min(PIECE as u64) as usize)?;
        hasher.update(&piece);
        at += piece.len() as u64;
    }
    Ok(hasher.finalize())
}

impl ObjectStore for VaultStore {
    fn put(&self, key: &str, source: &Source<'_>) -> Result<(), ArchiveError> {
        self.store(key, source).map_err(|failure| refused(&failure))
    }

    fn open(&self, key: &str) -> Result<OpenObject, ArchiveError> {
        let object = self.vault.object(key).map_err(|failure| refused(&failure))?;
        let size = object.size();
        Ok(OpenObject { size, contents: Box::new(Contents { object, piece: Mutex::default() }) })
    }

    fn file(&self, key: &str) -> Option<PathBuf> {
        self.vault.checked(key).ok()?;
        Some(self.folder.as_ref()?.join(key))
    }

    fn remove(&self, key: &str) -> Result<(), ArchiveError> {
        match self.vault.remove(key) {
            Err(failure) if failure.number() != Kind::Nothing as u8 => Err(refused(&failure)),
            _ => Ok(()),
        }
    }
}

/// Error of the archive; a key that the vault cannot have is refused for ever.
fn refused(failure: &Failure) -> ArchiveError {
    if failure.number() == Kind::Usage as u8 {
        return ArchiveError::refusal(failure.to_string());
    }
    ArchiveError::new(failure.to_string())
}

/// Contents of an object, read in large pieces.
struct Contents {
    object: VaultObject,
    /// Last piece, with its offset.
    piece: Mutex<(u64, Bytes)>,
}

impl ReadAt for Contents {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let size = self.object.size();
        if offset >= size || buffer.is_empty() {
            return Ok(0);
        }
        let mut piece = self.piece.lock().unwrap_or_else(PoisonError::into_inner);
        let is_inside = (piece.0..piece.0 + piece.1.len() as u64).contains(&offset);
        if !is_inside {
            let length = (size - offset).min(PIECE as u64) as usize;
            *piece = (offset, self.object.read(offset, length)?);
        }
        let from = (offset - piece.0) as usize;
        (&piece.1[from..]).read(buffer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_client::config::VaultEntry;
    use std::fs;

    #[test]
    fn equal_bytes_are_stored_once_and_others_never() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("vault");
        fs::create_dir(&root).unwrap();
        let vault = Vault::open(&VaultEntry::folder(root.to_str().unwrap())).unwrap();
        let store = VaultStore { vault, folder: Some(root.clone()) };
        let bytes = vec![7; PIECE + 10];
        let file = folder.path().join("file");
        let put = |key: &str, bytes: &[u8]| {
            fs::write(&file, bytes).unwrap();
            let (size, blake3) = (bytes.len() as u64, blake3::hash(bytes));
            store.put(key, &Source { file: &file, size, blake3, is_temporary: true })
        };
        put("lab/a/1", &bytes).unwrap();
        put("lab/a/1", &bytes).unwrap();
        assert!(!put("lab/a/1", b"other").unwrap_err().is_refusal());
        assert!(put("../a", &bytes).unwrap_err().is_refusal());
        let object = store.open("lab/a/1").unwrap();
        let mut read = Vec::new();
        let mut piece = vec![0; 1000];
        while read.len() < object.size as usize {
            let length = object.contents.read_at(&mut piece, read.len() as u64).unwrap();
            assert!(length > 0);
            read.extend_from_slice(&piece[..length]);
        }
        assert!(read == bytes && object.contents.read_at(&mut piece, object.size).unwrap() == 0);
        assert_eq!(store.file("lab/a/1"), Some(root.join("lab/a/1")));
        store.remove("lab/a/1").unwrap();
        store.remove("lab/a/1").unwrap();
        assert!(store.open("lab/a/1").is_err());
    }
}
