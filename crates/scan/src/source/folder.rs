//! Folders: walked by several threads, the entries of a directory in the order of their inodes.

use crate::source::router::Router;
use holdfast_base::failure::Result;
use std::fs::DirEntry;
use std::os::unix::fs::DirEntryExt;
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Threads that look up names and sizes.
const WALKERS: usize = 4;

/// Directories that wait for a walker.
#[derive(Default)]
struct Waiting {
    directories: Vec<PathBuf>,
    /// Walkers that are in a directory, and may find more.
    busy: usize,
}

/// Directories of a walk, shared by its threads.
#[derive(Default)]
struct Walk {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

impl Walk {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a directory. `None`: the walk is at its end.
    fn take(&self) -> Option<PathBuf> {
        let mut waiting = self.waiting();
        loop {
            if let Some(directory) = waiting.directories.pop() {
                waiting.busy += 1;
                return Some(directory);
            }
            if waiting.busy == 0 {
                self.changed.notify_all();
                return None;
            }
            waiting = self.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn done(&self, mut found: Vec<PathBuf>) {
        let mut waiting = self.waiting();
        waiting.busy -= 1;
        // The last is taken first.
        found.reverse();
        waiting.directories.append(&mut found);
        drop(waiting);
        self.changed.notify_all();
    }
}

/// Routes all files below a folder. Symbolic links are not followed.
pub(crate) fn walk(folder: &Path, router: &Router<'_, '_, '_>) -> Result<()> {
    let walk = Walk::default();
    walk.waiting().directories.push(folder.to_owned());
    std::thread::scope(|scope| {
        let walkers: Vec<_> = (0..WALKERS).map(|_| scope.spawn(|| walker(&walk, folder, router))).collect();
        let mut result = Ok(());
        for walker in walkers {
            result = result.and(walker.join().unwrap_or(Ok(())));
        }
        result
    })
}

fn walker(walk: &Walk, root: &Path, router: &Router<'_, '_, '_>) -> Result<()> {
    let mut result = Ok(());
    while let Some(directory) = walk.take() {
        let mut found = Vec::new();
        if result.is_ok() && !router.is_stopped() {
            result = enter(&directory, root, router, &mut found);
        }
        walk.done(found);
    }
    result
}

/// Routes the entries of a directory below the folder `root`; directories are found.
fn enter(directory: &Path, root: &Path, router: &Router<'_, '_, '_>, found: &mut Vec<PathBuf>) -> Result<()> {
    let entries = std::fs::read_dir(directory).and_then(Iterator::collect::<std::io::Result<Vec<DirEntry>>>);
    let mut entries = match entries {
        Ok(entries) => entries,
        Err(error) => {
            router.trouble(directory, &error);
            return Ok(());
        }
    };
    // File systems place inodes, and often data, in this order.
    entries.sort_by_key(DirEntryExt::ino);
    for entry in entries {
        let path = entry.path();
        match entry.file_type() {
            Ok(kind) if !router.admits(&path, root, kind.is_dir()) => {}
            Ok(kind) if kind.is_dir() => found.push(path),
            Ok(kind) if kind.is_file() => match entry.metadata() {
                Ok(metadata) => router.found(path, &metadata)?,
                Err(error) => router.trouble(&path, &error),
            },
            Ok(_) => router.pass_over(),
            Err(error) => router.trouble(&path, &error),
        }
    }
    Ok(())
}
