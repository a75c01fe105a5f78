//! Vault: a named store with paths of its own.

use crate::object::VaultObject;
use crate::objects::{Objects, Parts};
use crate::settings;
use crate::store::{Entry, HIDDEN, Store, UploadMode};
use crate::upload::Upload;
use glob::{MatchOptions, Pattern};
use holdfast_base::failure::{Failure, Result, reason};
use holdfast_client::config::{self, VaultEntry};
use holdfast_dataset::{Dataset, DatasetError, RangeRead as _, SourceAccess};
use object_store::ObjectStore;
use object_store::multipart::MultipartStore;
use std::io::{self, ErrorKind, Write as _};
use std::path::Path;
use std::sync::{Arc, Once};
use std::time::Duration;

/// Characters that make a glob of a path.
const GLOB: [char; 3] = ['*', '?', '['];

/// Operations on an object that must be there.
const OPENING: &str = "cannot open the object";
const REMOVING: &str = "cannot remove the object";

/// Bytes of the longest path: the limit of S3, less what locks add.
const MOST_PATH: usize = 900;

/// Vault that is open.
#[derive(Debug)]
pub struct Vault {
    name: String,
    store: Store,
    cleaned: Once,
}

impl Vault {
    /// Opens the vault of this name in the configuration file.
    pub fn named(name: &str) -> Result<Arc<Self>> {
        Self::open(&config::vault(name)?)
    }

    /// Opens a vault by its settings.
    pub fn open(entry: &VaultEntry) -> Result<Arc<Self>> {
        let store = settings::store(entry)?;
        Ok(Arc::new(Self { name: entry.name.clone(), store, cleaned: Once::new() }))
    }

    /// Opens a vault over any object store: with `parts`, objects are written in place, in parts; else they are renamed.
    pub fn over(
        name: &str,
        store: Arc<dyn ObjectStore>,
        parts: Option<Arc<dyn MultipartStore>>,
        root: &str,
    ) -> Arc<Self> {
        let objects = Objects::new(store, parts.map(Parts), root);
        Arc::new(Self {
            name: name.to_owned(),
            store: Store::Objects(Arc::new(objects)),
            cleaned: Once::new(),
        })
    }

    /// Name of the vault.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    /// Notation of a path in this vault.
    pub fn place(&self, path: &str) -> String {
        format!("{}:{path}", self.name)
    }

    pub(crate) fn failure(&self, doing: &str, path: &str, error: &io::Error) -> Failure {
        let place = self.place(path);
        match error.kind() {
            ErrorKind::NotFound if doing == OPENING || doing == REMOVING => {
                let failure = Failure::nothing("there is no such object in the vault").at(place);
                failure.advice(format_args!("`holdfast vault ls {}:` lists all", self.name))
            }
            ErrorKind::AlreadyExists => Failure::failed(match error.get_ref() {
                Some(said) => said.to_string(),
                None => "there is an object of that name".to_owned(),
            })
            .at(place)
            .advice("choose another name: objects of a vault are never overwritten"),
            _ => Failure::failed(format_args!("{doing}: {}", reason(error)))
                .at(place)
                .advice(format_args!("`holdfast vault check {}` tries the vault", self.name)),
        }
    }

    /// Checks a path: relative, of names without `.` and `..`, outside the hidden folder.
    pub fn checked(&self, path: &str) -> Result<()> {
        let wrong = |what: &str| {
            Err(Failure::usage(what)
                .at(self.place(path))
                .advice("take names with / between them, as a/b.mcap"))
        };
        if path.is_empty() {
            return wrong("the path in the vault is empty");
        }
        if path.len() > MOST_PATH {
            return wrong("the path is longer than 900 bytes");
        }
        if path.split('/').any(|name| matches!(name, "" | "." | "..")) || path.chars().any(char::is_control) {
            return wrong("the path is not made of names");
        }
        if path.split('/').next() == Some(HIDDEN) {
            return wrong("the folder .holdfast belongs to the vault");
        }
        Ok(())
    }

    /// Objects whose path is a prefix, lies below it, or matches it as a glob, ordered by path.
    pub fn list(&self, prefix: &str) -> Result<Vec<Entry>> {
        let failed = |error: io::Error| self.failure("cannot list the vault", prefix, &error);
        let Some(first) = prefix.find(GLOB) else {
            return self.store.list(prefix.trim_end_matches('/')).map_err(failed);
        };
        let pattern = Pattern::new(prefix).map_err(|error| {
            Failure::usage(format_args!("cannot understand the pattern: {}", error.msg))
                .at(self.place(prefix))
        })?;
        let below = prefix[..first].rsplit_once('/').map_or("", |(folder, _)| folder);
        let mut entries = self.store.list(below).map_err(failed)?;
        let options = MatchOptions { require_literal_separator: true, ..MatchOptions::new() };
        entries.retain(|entry| pattern.matches_with(&entry.path, options));
        Ok(entries)
    }

    /// Opens an object for reading.
    pub fn object(self: &Arc<Self>, path: &str) -> Result<VaultObject> {
        self.checked(path)?;
        let object = VaultObject::open(self, path, &self.place(path));
        object.map_err(|error| self.failure(OPENING, path, &error))
    }

    /// Access to an object, by which its copies and exports are bounded.
    pub fn access(&self, path: &str) -> SourceAccess {
        self.store.access(path)
    }

    /// Opens a dataset for reading.
    pub fn dataset(self: &Arc<Self>, path: &str) -> Result<Dataset> {
        let object = self.object(path)?;
        Dataset::open(Arc::new(object)).map_err(|error| self.dataset_failure(&error, path))
    }

    /// Failure of a dataset in this vault.
    pub fn dataset_failure(&self, error: &DatasetError, path: &str) -> Failure {
        match error {
            DatasetError::Io(error) => self.failure("cannot read the dataset", path, error),
            other => Failure::failed(other).at(self.place(path)),
        }
    }

    /// Begins an upload to a free name.
    pub fn upload(self: &Arc<Self>, path: &str) -> Result<Upload> {
        self.begin(path, UploadMode::Creates)
    }

    /// Begins an upload to a free name whose bytes a folder keeps if its process is killed.
    pub(crate) fn kept_upload(self: &Arc<Self>, path: &str) -> Result<Upload> {
        self.begin(path, UploadMode::IsKept)
    }

    /// Bytes of kept uploads whose process has ended: their paths in the store, the files, and their ages. One that another
    /// process removes meanwhile is left out.
    pub(crate) fn left_uploads(self: &Arc<Self>) -> Result<Vec<(String, VaultObject, Duration)>> {
        let failed = |error: io::Error| self.failure("cannot read an unfinished upload", "", &error);
        let mut left = Vec::new();
        for (path, age) in self.store.left().map_err(failed)? {
            match VaultObject::open(self, &path, &self.place(&path)) {
                Ok(object) => left.push((path, object, age)),
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(failed(error)),
            }
        }
        Ok(left)
    }

    /// Removes the bytes of a kept upload, unless another process has removed them.
    pub(crate) fn remove_left(&self, path: &str) -> Result<()> {
        match self.store.remove(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            removed => {
                removed.map_err(|error| self.failure("cannot remove an unfinished upload", path, &error))
            }
        }
    }

    /// Renames a damaged kept upload, which nothing looks at any more, and returns its new path. `None`: it is gone.
    pub(crate) fn set_aside(&self, path: &str) -> Result<Option<String>> {
        match self.store.set_aside(path) {
            Ok(aside) => Ok(Some(aside)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.failure("cannot rename a damaged upload", path, &error)),
        }
    }

    /// Begins an upload that replaces a damaged object.
    pub(crate) fn replace(self: &Arc<Self>, path: &str) -> Result<Upload> {
        self.begin(path, UploadMode::Replaces)
    }

    fn begin(self: &Arc<Self>, path: &str, mode: UploadMode) -> Result<Upload> {
        self.checked(path)?;
        self.remove_abandoned()?;
        let writing = self.store.upload(path, mode);
        let writing = writing.map_err(|error| self.failure("cannot store the object", path, &error))?;
        Ok(Upload::new(Arc::clone(self), path, writing))
    }

    /// Removes what killed processes have left, once.
    fn remove_abandoned(&self) -> Result<()> {
        let mut result = Ok(0);
        self.cleaned.call_once(|| result = self.store.remove_abandoned());
        result.map(drop).map_err(|error| self.failure("cannot remove abandoned uploads", "", &error))
    }

    /// Removes an object for ever.
    pub fn remove(&self, path: &str) -> Result<()> {
        self.checked(path)?;
        self.store.remove(path).map_err(|error| self.failure(REMOVING, path, &error))
    }

    /// Tries the vault: writes, reads back, lists and removes an object.
    pub fn check(self: &Arc<Self>) -> Result<()> {
        let abandoned = self.store.remove_abandoned();
        abandoned.map_err(|error| self.failure("cannot remove abandoned uploads", "", &error))?;
        let path = format!("holdfast-check-{}", crate::owner::Owner::new());
        let failed = |doing: &'static str, error: &io::Error| self.failure(doing, &path, error);
        let mut upload = self.upload(&path)?;
        let text = b"written by `holdfast vault check`".repeat(4096);
        upload.write_all(&text).map_err(|error| failed("cannot write an object", &error))?;
        upload.verify()?;
        upload.publish()?;
        let checked = self.probed(&path, &text);
        let removed = self.store.remove(&path).map_err(|error| failed("cannot remove an object", &error));
        checked.and(removed)
    }

    fn probed(self: &Arc<Self>, path: &str, text: &[u8]) -> Result<()> {
        let bytes = self.store.read(path, 100, text.len() - 100);
        let bytes = bytes.map_err(|error| self.failure("cannot read a range of an object", path, &error))?;
        let size = self.object(path)?.size();
        if bytes[..] != text[100..] || size != text.len() as u64 {
            return Err(Failure::failed("the vault gives other bytes than were written").at(self.place(path)));
        }
        if self.store.upload(path, UploadMode::Creates).map(|mut upload| upload.abort()).is_ok() {
            return Err(Failure::failed("the vault lets an object be overwritten").at(self.place(path)));
        }
        if !self.list("")?.iter().any(|entry| entry.path == path) {
            return Err(Failure::failed("the vault does not list what was written").at(self.place(path)));
        }
        Ok(())
    }
}

/// True if a path is a glob.
pub(crate) fn has_glob(path: &str) -> bool {
    path.contains(GLOB)
}

/// Splits `VAULT:PATH`. `None`: it is a path of this machine.
pub(crate) fn split(place: &Path) -> Option<(&str, &str)> {
    let (vault, path) = place.to_str()?.split_once(':')?;
    (!vault.is_empty() && !vault.contains('/') && !path.starts_with("//")).then_some((vault, path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_left_upload_that_another_process_takes_is_no_failure() {
        let folder = tempfile::tempdir().unwrap();
        let vault = Vault::open(&VaultEntry::folder(folder.path().to_str().unwrap())).unwrap();
        assert!(vault.left_uploads().unwrap().is_empty());
        let gone = format!("{HIDDEN}/uploads/elsewhere-1-1-0.kept");
        vault.remove_left(&gone).unwrap();
        assert_eq!(vault.set_aside(&gone).unwrap(), None);
    }
}
