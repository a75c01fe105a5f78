//! Watch of a folder tree: sightings from inotify, and rescans at the start, after losses and at an interval.
//!
//! The watch works on when the root does not exist yet or disappears. It never scans by itself: a `Rescan` asks the receiver to.
//! Here belong watches and their times. Not here: joining of sightings (`sighting`) and reading of directories (`folder_scan`).

use crate::path_filter::PathFilter;
use crate::sighting::{Sighting, SightingKind, SightingQueue, watch_reason};
use notify::{Config, Event, INotifyWatcher, RecursiveMode, Watcher as _};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// Options of a watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WatchOptions {
    /// Interval of rescans and of attempts to watch an absent root.
    pub rescan: Duration,
    /// Greatest number of waiting sightings; more become one rescan.
    pub capacity: usize,
}

impl Default for WatchOptions {
    /// A rescan each minute bounds the delay of lost events; 65536 paths need a few megabytes.
    fn default() -> Self {
        Self { rescan: Duration::from_mins(1), capacity: 1 << 16 }
    }
}

/// Queue of the sightings, and the signal that it is not empty.
#[derive(Debug)]
struct Shared {
    queue: Mutex<SightingQueue>,
    filled: Notify,
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, SightingQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Watch of one folder tree. Dropping it ends the watch.
#[derive(Debug)]
pub struct FolderWatch {
    root: Arc<Mutex<WatchedRoot>>,
    shared: Arc<Shared>,
    options: WatchOptions,
    next_rescan: Instant,
}

/// Root of the tree with its watcher.
#[derive(Debug)]
struct WatchedRoot {
    path: PathBuf,
    /// Watcher, and the device and inode of the folder that it watches.
    watcher: Option<(INotifyWatcher, (u64, u64))>,
    /// Last warning, which is not repeated.
    warned: Option<String>,
}

impl FolderWatch {
    /// Makes the watch of a tree. The first call of [`next`](Self::next) starts it.
    pub fn new(root: &Path, filter: PathFilter, options: WatchOptions) -> io::Result<Self> {
        let root = std::path::absolute(root)?;
        let queue = SightingQueue::new(root.clone(), filter, options.capacity);
        let shared = Arc::new(Shared { queue: Mutex::new(queue), filled: Notify::new() });
        let root = WatchedRoot { path: root, watcher: None, warned: None };
        Ok(Self { root: Arc::new(Mutex::new(root)), shared, options, next_rescan: Instant::now() })
    }

    /// Waits for the next sighting. Cancellation loses none.
    pub async fn next(&mut self) -> Sighting {
        loop {
            if Instant::now() >= self.next_rescan || self.shared.queue().is_root_lost() {
                self.next_rescan = Instant::now() + self.options.rescan;
                self.with_root(WatchedRoot::renew).await;
            }
            if self.shared.queue().has_new_folders() {
                self.with_root(WatchedRoot::watch_new_folders).await;
            }
            if let Some(sighting) = self.shared.queue().pop() {
                return sighting;
            }
            tokio::select! {
                () = self.shared.filled.notified() => {}
                () = tokio::time::sleep_until(self.next_rescan) => {}
            }
        }
    }

    /// Does blocking work on the root.
    async fn with_root(&self, work: fn(&mut WatchedRoot, &Arc<Shared>)) {
        let (root, shared) = (Arc::clone(&self.root), Arc::clone(&self.shared));
        let work = move || work(&mut root.lock().unwrap_or_else(PoisonError::into_inner), &shared);
        // The runtime stops if this fails, and nobody receives sightings any more.
        let _ = tokio::task::spawn_blocking(work).await;
    }
}

impl WatchedRoot {
    /// Watches the root if it is another folder than before, or made anew, and asks for a rescan.
    fn renew(&mut self, shared: &Arc<Shared>) {
        let is_lost = {
            let mut queue = shared.queue();
            queue.end_move();
            queue.take_root_lost()
        };
        if is_lost {
            self.watcher = None;
        }
        let identity = match self.path.metadata() {
            Ok(metadata) if metadata.is_dir() => (metadata.dev(), metadata.ino()),
            other => {
                self.watcher = None;
                let reason = other.map_or_else(|error| error.to_string(), |_| "it is no folder".to_owned());
                return self.warn(shared, format!("{reason}; make the folder, or correct its path"));
            }
        };
        if self.watcher.as_ref().is_none_or(|(_, watched)| *watched != identity) {
            self.watcher = None;
            if let Err(error) = self.watch(shared, identity) {
                self.warn(shared, watch_reason(&error));
            } else {
                self.warned = None;
            }
        }
        shared.queue().push(self.path.clone(), SightingKind::Rescan);
    }

    /// Starts the watcher. It stays when only a part of the tree can be watched.
    fn watch(&mut self, shared: &Arc<Shared>, identity: (u64, u64)) -> notify::Result<()> {
        let events = Arc::clone(shared);
        let is_folder = |path: &Path| path.symlink_metadata().is_ok_and(|metadata| metadata.is_dir());
        let handler = move |event: notify::Result<Event>| {
            match event {
                Ok(mut event) => {
                    // The watched path ends with a dot, which must not stay within the paths.
                    event.paths.iter_mut().for_each(|path| *path = path.components().collect());
                    events.queue().apply(event, is_folder);
                }
                Err(error) => events.queue().warn(&watch_reason(&error)),
            }
            events.filled.notify_one();
        };
        let watcher = INotifyWatcher::new(handler, Config::default().with_follow_symlinks(false))?;
        let (watcher, _) = self.watcher.insert((watcher, identity));
        // The dot lets the root itself be a symbolic link.
        watcher.watch(&self.path.join("."), RecursiveMode::Recursive)
    }

    fn warn(&mut self, shared: &Arc<Shared>, reason: String) {
        if self.warned.as_ref() != Some(&reason) {
            shared.queue().warn(&reason);
            self.warned = Some(reason);
        }
    }

    /// Watches new folders, and then asks for their rescan: files that appear later are sighted.
    fn watch_new_folders(&mut self, shared: &Arc<Shared>) {
        // The lock must not be held while the watcher's thread is asked: it needs the lock for events.
        let folders = shared.queue().take_new_folders();
        for folder in folders {
            let Some((watcher, _)) = &mut self.watcher else { return };
            let result = watcher.watch(&folder, RecursiveMode::Recursive);
            let mut queue = shared.queue();
            if let Err(error) = result
                && folder.exists()
            {
                queue.warn(&watch_reason(&error));
            }
            queue.push(folder, SightingKind::Rescan);
        }
    }
}
