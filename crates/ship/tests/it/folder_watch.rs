//! Watch of real folders: growing files, moves, new folders, an absent root, names that cannot be sent.

use holdfast_ship::{FolderWatch, PathFilter, Sighting, SightingKind, WatchOptions};
use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

/// Interval of rescans that no test reaches.
const NEVER: Duration = Duration::from_hours(1);

fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let test = async { tokio::time::timeout(Duration::from_mins(2), test).await };
    runtime.block_on(test).expect("a sighting did not come")
}

fn watch(root: &Path, rescan: Duration, capacity: usize) -> FolderWatch {
    let filter = PathFilter::new(&[], &["*.part".to_owned()], None).unwrap();
    FolderWatch::new(root, filter, WatchOptions { rescan, capacity }).unwrap()
}

/// Folder whose watch has begun.
async fn started() -> (TempDir, PathBuf, FolderWatch) {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().to_owned();
    let mut watch = watch(&root, NEVER, 1000);
    assert_eq!(watch.next().await, Sighting { path: root.clone(), kind: SightingKind::Rescan });
    (folder, root, watch)
}

/// Waits for the first sighting of this kind of a path; others may come before.
async fn until(watch: &mut FolderWatch, path: &Path, kind: &SightingKind) {
    loop {
        let sighting = watch.next().await;
        if sighting.path == path && sighting.kind == *kind {
            assert_eq!(sighting.path.as_os_str(), path.as_os_str());
            return;
        }
    }
}

#[test]
fn a_growing_file_is_changed_and_then_closed() {
    run(async {
        let (_folder, root, mut watch) = started().await;
        let path = root.join("file");
        let mut file = File::create(&path).unwrap();
        until(&mut watch, &path, &SightingKind::Changed).await;
        for _ in 0..3 {
            file.write_all(b"more").unwrap();
            until(&mut watch, &path, &SightingKind::Changed).await;
        }
        drop(file);
        until(&mut watch, &path, &SightingKind::Closed).await;
        fs::remove_file(&path).unwrap();
        until(&mut watch, &path, &SightingKind::Removed).await;
    });
}

#[test]
fn moves_are_seen_within_into_and_out_of_the_tree() {
    run(async {
        let (folder, root, _) = started().await;
        let elsewhere = tempfile::tempdir_in(folder.path().parent().unwrap()).unwrap();
        let mut watch = watch(&root, Duration::from_millis(20), 1000);
        let (first, second) = (root.join("first"), root.join("second"));
        fs::write(&first, "x").unwrap();
        until(&mut watch, &root, &SightingKind::Rescan).await;
        fs::rename(&first, &second).unwrap();
        until(&mut watch, &second, &SightingKind::Renamed { from: first.clone() }).await;
        let outside = elsewhere.path().join("outside");
        fs::rename(&second, &outside).unwrap();
        // The target of a move is known to lie outside at the next rescan.
        until(&mut watch, &second, &SightingKind::Removed).await;
        fs::rename(&outside, &first).unwrap();
        until(&mut watch, &first, &SightingKind::Closed).await;
        let part = root.join("x.part");
        fs::write(&part, "x").unwrap();
        fs::rename(&part, root.join("x")).unwrap();
        until(&mut watch, &root.join("x"), &SightingKind::Closed).await;
    });
}

#[test]
fn new_and_moved_folders_are_scanned_after_they_are_watched() {
    run(async {
        let (_folder, root, mut watch) = started().await;
        let deep = root.join("a/b");
        fs::create_dir_all(&deep).unwrap();
        until(&mut watch, &root.join("a"), &SightingKind::Rescan).await;
        // Watches below the new folder exist now, so this file cannot be missed.
        fs::write(deep.join("file"), "x").unwrap();
        until(&mut watch, &deep.join("file"), &SightingKind::Closed).await;
        let moved = root.join("moved");
        fs::rename(root.join("a"), &moved).unwrap();
        until(&mut watch, &moved, &SightingKind::Rescan).await;
        fs::write(moved.join("b/late"), "x").unwrap();
        until(&mut watch, &moved.join("b/late"), &SightingKind::Closed).await;
    });
}

#[test]
fn an_absent_root_is_reported_once_and_watched_when_it_appears() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("root");
        let mut watch = watch(&root, Duration::from_millis(5), 1000);
        for has_file in [true, false] {
            // The warning comes once, and then nothing until the folder is there.
            let warning = loop {
                if let SightingKind::Warning(text) = watch.next().await.kind {
                    break text;
                }
            };
            let start = format!("cannot watch the folder {}: ", root.display());
            assert!(warning.starts_with(&start) && warning.contains("; "), "{warning}");
            fs::create_dir(&root).unwrap();
            let scan = Sighting { path: root.clone(), kind: SightingKind::Rescan };
            assert_eq!(watch.next().await, scan);
            if has_file {
                fs::write(root.join("file"), "x").unwrap();
                until(&mut watch, &root.join("file"), &SightingKind::Closed).await;
            }
            fs::remove_dir_all(&root).unwrap();
        }
    });
}

#[test]
fn a_root_that_is_made_anew_is_watched_at_once() {
    run(async {
        let (_folder, root, mut watch) = started().await;
        for name in ["first", "second"] {
            fs::remove_dir_all(&root).unwrap();
            fs::create_dir(&root).unwrap();
            // The new folder may have the inode of the old one.
            until(&mut watch, &root, &SightingKind::Rescan).await;
            let path = root.join(name);
            fs::write(&path, "x").unwrap();
            until(&mut watch, &path, &SightingKind::Closed).await;
        }
    });
}

#[test]
fn a_tiny_queue_loses_no_file_without_a_rescan() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().to_owned();
        let mut watch = watch(&root, NEVER, 2);
        watch.next().await;
        let mut missing: HashSet<_> = (0..100).map(|number| root.join(number.to_string())).collect();
        for path in &missing {
            fs::write(path, "x").unwrap();
        }
        while !missing.is_empty() {
            let sighting = watch.next().await;
            match sighting.kind {
                SightingKind::Rescan => return,
                SightingKind::Closed => drop(missing.remove(&sighting.path)),
                _ => {}
            }
        }
    });
}

#[test]
fn the_root_may_be_a_link() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let (real, root) = (folder.path().join("real"), folder.path().join("link"));
        fs::create_dir(&real).unwrap();
        std::os::unix::fs::symlink(&real, &root).unwrap();
        let mut watch = watch(&root, NEVER, 1000);
        assert_eq!(watch.next().await.kind, SightingKind::Rescan);
        fs::create_dir(real.join("a")).unwrap();
        until(&mut watch, &root.join("a"), &SightingKind::Rescan).await;
        for path in ["file", "a/file"] {
            fs::write(real.join(path), "x").unwrap();
            until(&mut watch, &root.join(path), &SightingKind::Closed).await;
        }
    });
}

#[test]
fn links_are_not_followed_and_bad_names_are_reported() {
    run(async {
        let (_folder, root, mut watch) = started().await;
        let elsewhere = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), root.join("link")).unwrap();
        fs::write(elsewhere.path().join("file"), "x").unwrap();
        let bad = root.join(OsStr::from_bytes(b"bad\xff"));
        fs::write(&bad, "x").unwrap();
        let reason = "its name is not UTF-8; rename it".to_owned();
        loop {
            let sighting = watch.next().await;
            assert!(!sighting.path.starts_with(root.join("link/file")), "{sighting:?}");
            if sighting == (Sighting { path: bad.clone(), kind: SightingKind::Unshippable(reason.clone()) }) {
                return;
            }
        }
    });
}
