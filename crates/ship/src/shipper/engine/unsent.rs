//! Files that a shipper could not send, with the reasons.

use super::Engine;
use crate::shipper::UnsentFile;
use std::collections::BTreeMap;

/// Files that are listed at most; the counts of the status have all.
const MOST_LISTED: usize = 1000;

/// Files that never became transfers, and files that are gone.
#[derive(Debug, Default)]
pub(super) struct Unsent(BTreeMap<String, String>);

impl Unsent {
    /// Adds a file with the reason.
    pub(super) fn add(&mut self, path: &str, reason: &str) {
        if self.0.len() < MOST_LISTED {
            self.0.insert(path.to_owned(), reason.to_owned());
        }
    }
}

impl Engine {
    /// Files that cannot be sent; at the end of a shipper also those that still wait.
    pub(super) fn unsent_files(&self, is_end: bool) -> Vec<UnsentFile> {
        let known = self.unsent.0.iter().map(|(path, reason)| UnsentFile::new(path, reason));
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
