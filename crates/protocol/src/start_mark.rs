//! Mark of a recorder that starts: a locked file beside the ring's socket. Whoever takes a ring for an order looks for it and
//! gives way, so that a recorder never loses a ring to a command. A mark left by a recorder that died is not locked, and means
//! nothing.

use crate::RingLocation;
use crate::socket_path::{candidates, make_run_directory, socket_in};
use holdfast_base::RingId;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs::File;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Number and distance of tries for a mark that somebody has: who looks for it locks it for a moment.
const TRIES: (u32, Duration) = (50, Duration::from_millis(10));

/// The mark of a recorder that starts, until it is dropped.
#[derive(Debug)]
pub struct StartMark {
    path: PathBuf,
    _locked: File,
}

impl StartMark {
    /// Sets the mark for `ring`. `None` if no file can be locked there: then nobody gives way.
    pub fn set(ring: RingId) -> Option<Self> {
        Self::set_at(mark_beside(&socket_in(&make_run_directory().ok()?, ring)))
    }

    fn set_at(path: PathBuf) -> Option<Self> {
        for _ in 0..TRIES.0 {
            let file =
                File::options().create(true).truncate(false).write(true).mode(0o600).open(&path).ok()?;
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) if is_at(&file, &path) => return Some(Self { path, _locked: file }),
                // The one who had it took it away meanwhile.
                Ok(()) | Err(Errno::INTR) => {}
                Err(Errno::WOULDBLOCK) => std::thread::sleep(TRIES.1),
                Err(_) => return None,
            }
        }
        None
    }
}

impl Drop for StartMark {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Returns true while a recorder of the ring at `place` starts: it has the ring next.
pub fn recorder_starts(place: &RingLocation) -> bool {
    let sockets = candidates(place.superblock.ring, place.owner);
    sockets.iter().any(|socket| is_set(&mark_beside(socket)))
}

fn is_set(mark: &Path) -> bool {
    matches!(holdfast_media::owner(mark), Ok(Some(_)))
}

fn mark_beside(socket: &Path) -> PathBuf {
    socket.with_extension("starting")
}

fn is_at(file: &File, path: &Path) -> bool {
    let identity = |about: std::fs::Metadata| (about.dev(), about.ino());
    let (open, there) = (file.metadata().map(identity), path.symlink_metadata().map(identity));
    matches!((open, there), (Ok(open), Ok(there)) if open == there)
}

#[cfg(test)]
mod tests {
    use super::*;

    // Promise 1: whoever wants to give way sees a recorder for as long as it starts, and none that is gone.
    #[test]
    fn a_mark_is_seen_until_it_is_dropped_and_a_dead_one_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = mark_beside(&folder.path().join("a.sock"));
        assert!(!is_set(&path));
        let mark = StartMark::set_at(path.clone()).unwrap();
        assert!(is_set(&path));
        assert!(StartMark::set_at(path.clone()).is_none(), "another recorder starts");
        assert!(is_set(&path), "and whoever tried leaves it");
        drop(mark);
        assert!(!is_set(&path) && !path.exists());
        // One that was killed left the file.
        File::create(&path).unwrap();
        assert!(!is_set(&path));
        drop(StartMark::set_at(path.clone()).unwrap());
        assert!(StartMark::set_at(folder.path().join("none/a.starting")).is_none());
    }
}
