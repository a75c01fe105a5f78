//! Files that a shipper could not send, with the reasons.

use super::Engine;
use crate::shipper::UnsentFile;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Files that are listed at most; the counts of the status have all.
const MOST_LISTED: usize = 1000;

/// File that is listed.
#[derive(Debug)]
struct Entry {
    /// Path and reason as they are shown.
    file: UnsentFile,
    /// True if the file was deleted before the archive had it.
    is_lost: bool,
    /// Greater than those of older entries.
    number: u64,
}

/// Files that never became transfers, and files that are gone, by their absolute paths.
#[derive(Debug, Default)]
pub(super) struct Unsent {
    entries: BTreeMap<PathBuf, Entry>,
    last: u64,
}

impl Unsent {
    /// Adds a file that is there and cannot be sent.
    pub(super) fn add(&mut self, path: PathBuf, shown: &str, reason: &str) {
        self.insert(path, UnsentFile::new(shown, reason), false);
    }

    /// Adds a file that was deleted too early.
    pub(super) fn add_lost(&mut self, path: PathBuf, shown: &str) {
        self.insert(path, UnsentFile::new(shown, "it was deleted before the archive had it"), true);
    }

    fn insert(&mut self, path: PathBuf, file: UnsentFile, is_lost: bool) {
        self.last += 1;
        self.entries.insert(path, Entry { file, is_lost, number: self.last });
        if self.entries.len() > MOST_LISTED {
            let oldest = self.entries.iter().min_by_key(|(_, entry)| entry.number);
            if let Some(oldest) = oldest.map(|(path, _)| path.clone()) {
                self.entries.remove(&oldest);
            }
        }
    }

    /// Removes a file that can be sent, and its folder, which can be read.
    pub(super) fn sighted(&mut self, path: &Path) {
        if self.entries.is_empty() {
            return;
        }
        self.entries.remove(path);
        if let Some(folder) = path.parent() {
            self.entries.remove(folder);
        }
    }

    /// Removes files that could not be sent and are gone. Lost files stay.
    pub(super) fn drop_gone(&mut self) {
        let is_gone =
            |path: &Path| path.symlink_metadata().is_err_and(|error| error.kind() == ErrorKind::NotFound);
        self.entries.retain(|path, entry| entry.is_lost || !is_gone(path));
    }
}

impl Engine {
    /// Files that cannot be sent; at the end of a shipper also those that still wait.
    pub(super) fn unsent_files(&self, is_end: bool) -> Vec<UnsentFile> {
        let known = self.unsent.entries.values().map(|entry| entry.file.clone());
        let open = self.fleet.transfers().filter_map(|(key, transfer)| {
            let file = self.files.get(key)?;
            let is_listed =
                transfer.is_refused() || file.is_unreadable() || (is_end && !transfer.is_settled());
            let reason = file.message.as_deref().unwrap_or("it was not sent before the shipper ended");
            is_listed.then(|| UnsentFile::new(&file.relative, reason))
        });
        let mut files: Vec<UnsentFile> = known.chain(open).collect();
        files.sort();
        files.truncate(MOST_LISTED);
        files
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(unsent: &Unsent) -> Vec<&str> {
        unsent.entries.values().map(|entry| entry.file.path.as_str()).collect()
    }

    #[test]
    fn files_that_are_sighted_or_gone_are_listed_no_longer() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("there"), "").unwrap();
        let mut unsent = Unsent::default();
        for name in ["there", "gone", "read"] {
            unsent.add(path(name), name, "it cannot be read; give access");
        }
        unsent.add_lost(path("lost"), "lost");
        unsent.sighted(&path("read"));
        assert_eq!(shown(&unsent), ["gone", "lost", "there"]);
        unsent.drop_gone();
        assert_eq!(shown(&unsent), ["lost", "there"]);
        unsent.sighted(&path("lost"));
        assert_eq!(shown(&unsent), ["there"]);
    }

    #[test]
    fn the_oldest_file_gives_its_place_to_a_new_one() {
        let mut unsent = Unsent::default();
        for number in (0..=MOST_LISTED).rev() {
            let name = format!("/{number:04}");
            unsent.add(PathBuf::from(&name), &name, "its name is odd; rename it");
        }
        assert_eq!(unsent.entries.len(), MOST_LISTED);
        assert!(shown(&unsent).contains(&"/0000") && !shown(&unsent).contains(&"/1000"));
    }
}
