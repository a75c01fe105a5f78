//! Files that a shipper knows: their names, runs and desks, and the keys by which the fleet knows them.

use super::courier::SharedDesk;
use crate::fleet::FileKey;
use crate::path_filter::PathFilter;
use crate::run_end::{RunEnd, RunFacts};
use crate::settings::{FolderEnd, FolderOrder, FolderSettings};
use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::time::Duration;

/// Folder tree that is shipped.
pub(super) struct Folder {
    pub(super) root: PathBuf,
    /// Name of the tree in the ledger, where trees with the same root have different names.
    pub(super) name: String,
    pub(super) filter: PathFilter,
    pub(super) end: RunEnd,
    pub(super) quiet: Duration,
    pub(super) priority: i32,
    pub(super) newest_first: bool,
    pub(super) into: String,
    /// True to remove files that are delivered.
    pub(super) removes: bool,
    /// True after the first scan.
    pub(super) is_scanned: bool,
}

impl Folder {
    pub(super) fn new(settings: &FolderSettings) -> Result<Self, String> {
        let root = std::path::absolute(&settings.path).map_err(|error| error.to_string())?;
        Ok(Self {
            name: root.to_string_lossy().into_owned(),
            root,
            filter: settings.filter()?,
            end: match settings.end {
                FolderEnd::Close => RunEnd::Close,
                FolderEnd::Quiet => RunEnd::Quiet,
                FolderEnd::Marker => RunEnd::Marker,
            },
            quiet: settings.quiet,
            priority: settings.priority,
            newest_first: settings.order == FolderOrder::Newest,
            into: settings.into.trim_matches('/').to_owned(),
            removes: settings.removes,
            is_scanned: false,
        })
    }

    /// Path in the project of the file at a path in the tree.
    pub(super) fn object(&self, relative: &str) -> String {
        if self.into.is_empty() { relative.to_owned() } else { format!("{}/{relative}", self.into) }
    }
}

/// File that is shipped.
pub(super) struct Tracked {
    pub(super) folder: usize,
    pub(super) relative: String,
    pub(super) facts: RunFacts,
    pub(super) desk: SharedDesk,
    /// Upload in the ledger, with the path that it was made for.
    pub(super) recorded: Option<(String, String)>,
    /// Message of the last failure.
    pub(super) message: Option<String>,
    /// Failures to read the file since it was observed or read last.
    pub(super) unread: u32,
    /// Time at which the run ends by quiet.
    pub(super) quiet_at: Option<Duration>,
    /// Size that was observed last, in bytes.
    pub(super) size: u64,
}

/// Failures in a row after which a file counts as unreadable.
const MOST_UNREAD: u32 = 3;

impl Tracked {
    /// True if the file is there and could not be read several times.
    pub(super) fn is_unreadable(&self) -> bool {
        self.unread >= MOST_UNREAD
    }
}

/// All files of a shipper.
#[derive(Default)]
pub(super) struct Files {
    known: HashMap<FileKey, Tracked>,
    names: HashMap<(usize, String), FileKey>,
    /// Keys of files by the time at which their runs end.
    quiet: BTreeSet<(Duration, FileKey)>,
    last: FileKey,
}

impl Files {
    pub(super) fn key(&self, folder: usize, relative: &str) -> Option<FileKey> {
        self.names.get(&(folder, relative.to_owned())).copied()
    }

    pub(super) fn get(&self, key: FileKey) -> Option<&Tracked> {
        self.known.get(&key)
    }

    pub(super) fn get_mut(&mut self, key: FileKey) -> Option<&mut Tracked> {
        self.known.get_mut(&key)
    }

    pub(super) fn insert(&mut self, tracked: Tracked) -> FileKey {
        self.last += 1;
        self.names.insert((tracked.folder, tracked.relative.clone()), self.last);
        self.known.insert(self.last, tracked);
        self.last
    }

    pub(super) fn remove(&mut self, key: FileKey) -> Option<Tracked> {
        let tracked = self.known.remove(&key)?;
        if let Some(at) = tracked.quiet_at {
            self.quiet.remove(&(at, key));
        }
        let name = (tracked.folder, tracked.relative.clone());
        if self.names.get(&name) == Some(&key) {
            self.names.remove(&name);
        }
        Some(tracked)
    }

    /// Gives a file another path in its tree.
    pub(super) fn rename(&mut self, key: FileKey, to: &str) {
        if let Some(tracked) = self.known.get_mut(&key) {
            self.names.remove(&(tracked.folder, std::mem::replace(&mut tracked.relative, to.to_owned())));
            self.names.insert((tracked.folder, to.to_owned()), key);
        }
    }

    /// Keys of the files of a folder below a path; all with an empty path.
    pub(super) fn below(&self, folder: usize, path: &str) -> Vec<FileKey> {
        let is_below = |relative: &str| {
            path.is_empty() || relative.strip_prefix(path).is_some_and(|rest| rest.starts_with('/'))
        };
        let files = self.known.iter().filter(|(_, file)| file.folder == folder && is_below(&file.relative));
        files.map(|(key, _)| *key).collect()
    }

    /// Sets the time at which the run of a file ends by quiet.
    pub(super) fn set_quiet(&mut self, key: FileKey, at: Option<Duration>) {
        let Some(tracked) = self.known.get_mut(&key) else { return };
        if let Some(old) = tracked.quiet_at.take() {
            self.quiet.remove(&(old, key));
        }
        tracked.quiet_at = at;
        if let Some(at) = at {
            self.quiet.insert((at, key));
        }
    }

    /// Next file whose run ends by quiet, with the time.
    pub(super) fn first_quiet(&self) -> Option<(Duration, FileKey)> {
        self.quiet.first().copied()
    }
}
