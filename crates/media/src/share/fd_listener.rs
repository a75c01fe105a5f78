//! Listening Unix socket at a path, through which a process hands file descriptors to its clients.

use std::fs::Permissions;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// A listening socket, without blocking, open to its user only; its path goes with it.
#[derive(Debug)]
pub struct FdListener {
    socket: UnixListener,
    path: PathBuf,
    /// Device and inode of the socket, so that only our own is removed at the end.
    node: (u64, u64),
}

/// Reasons why a path cannot be listened at.
#[derive(Debug, thiserror::Error)]
pub enum FdListenerError {
    /// Somebody answers there: a connection to them.
    #[error("somebody else answers there")]
    InUse(UnixStream),
    /// It is not ours to replace.
    #[error("something is there that is no socket")]
    Occupied,
    /// The system does not let us.
    #[error("cannot {what}: {cause}")]
    Failed {
        /// What was tried.
        what: &'static str,
        /// What the system said.
        cause: io::Error,
    },
}

impl FdListener {
    /// Opens one at `path`. A dead socket there is replaced; whatever else is there stays.
    pub fn open(path: PathBuf) -> Result<Self, FdListenerError> {
        let failed = |what, cause| FdListenerError::Failed { what, cause };
        match path.symlink_metadata() {
            Ok(about) if !about.file_type().is_socket() => return Err(FdListenerError::Occupied),
            _ => {}
        }
        match UnixStream::connect(&path) {
            Ok(other) => return Err(FdListenerError::InUse(other)),
            Err(cause) if matches!(cause.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) => {}
            Err(cause) => return Err(failed("look who listens there", cause)),
        }
        // Made under another name, so that it is never there without its mode; `rename` takes a dead one's place.
        let mut fresh = path.clone().into_os_string();
        fresh.push(".new");
        let fresh = PathBuf::from(fresh);
        let _ = std::fs::remove_file(&fresh);
        let socket = UnixListener::bind(&fresh).map_err(|cause| failed("listen there", cause))?;
        let settle = || -> io::Result<(u64, u64)> {
            std::fs::set_permissions(&fresh, Permissions::from_mode(0o600))?;
            let about = fresh.symlink_metadata()?;
            socket.set_nonblocking(true)?;
            std::fs::rename(&fresh, &path)?;
            Ok((about.dev(), about.ino()))
        };
        match settle() {
            Ok(node) => Ok(Self { socket, path, node }),
            Err(cause) => {
                let _ = std::fs::remove_file(&fresh);
                Err(failed("listen there", cause))
            }
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl AsFd for FdListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for FdListener {
    fn drop(&mut self) {
        let ours = self.path.symlink_metadata().is_ok_and(|about| (about.dev(), about.ino()) == self.node);
        if ours {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Promise 8: what is not ours is told of, and left alone.
    #[test]
    fn only_a_dead_socket_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("listener");
        let listener = FdListener::open(path.clone()).unwrap();
        assert_eq!(path.symlink_metadata().unwrap().mode() & 0o777, 0o600);
        assert!(matches!(FdListener::open(path.clone()), Err(FdListenerError::InUse(_))));
        drop(listener);
        assert!(path.symlink_metadata().is_err(), "it goes with its owner");

        // As a process that was killed leaves it.
        drop(UnixListener::bind(&path).unwrap());
        let listener = FdListener::open(path.clone()).unwrap();
        // Somebody put another in its place: that is not ours to remove.
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, b"theirs").unwrap();
        drop(listener);
        assert_eq!(std::fs::read(&path).unwrap(), b"theirs");
        assert!(matches!(FdListener::open(path.clone()), Err(FdListenerError::Occupied)));

        let link = folder.path().join("link");
        std::os::unix::fs::symlink(folder.path().join("nowhere"), &link).unwrap();
        assert!(matches!(FdListener::open(link), Err(FdListenerError::Occupied)));
        let nowhere = folder.path().join("no/such/folder");
        assert!(matches!(FdListener::open(nowhere), Err(FdListenerError::Failed { .. })));
    }
}
