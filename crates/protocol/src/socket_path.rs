//! Socket paths: the directory of a user's sockets, and the socket of a ring in it, named after the ring's UUID.

use crate::ProtocolError;
use holdfast_base::RingId;
use std::fs::DirBuilder;
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Environment variable that names the directory of the sockets.
pub const RUN_VARIABLE: &str = "HOLDFAST_RUN";

/// The socket of `ring` inside `directory`.
pub fn socket_in(directory: &Path, ring: RingId) -> PathBuf {
    directory.join(format!("{ring}.sock"))
}

fn uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// The directory in which a recorder of this user creates its socket; it need not exist yet.
pub fn run_directory() -> PathBuf {
    if let Some(directory) = variable(RUN_VARIABLE) {
        return directory;
    }
    match uid() {
        0 => PathBuf::from("/run/holdfast"),
        uid => variable("XDG_RUNTIME_DIR").map_or_else(
            || PathBuf::from(format!("/tmp/holdfast-{uid}")),
            |runtime| runtime.join("holdfast"),
        ),
    }
}

/// The same directory, made (0700) where it is missing, and checked: in a directory that others may change, somebody
/// else's socket could stand in for ours.
pub fn make_run_directory() -> Result<PathBuf, ProtocolError> {
    let path = run_directory();
    let wrong = |text: String| ProtocolError::RunDirectory { path: path.clone(), text };
    match DirBuilder::new().recursive(true).mode(0o700).create(&path) {
        Err(cause) if cause.kind() != ErrorKind::AlreadyExists => {
            Err(wrong(format!("{cause}; set {RUN_VARIABLE} to a directory of your own")))
        }
        _ => trusted(&path, &[uid()]).map_err(wrong).map(|()| path.clone()),
    }
}

/// Checks that only `owners` and root can create files in a directory.
fn trusted(path: &Path, owners: &[u32]) -> Result<(), String> {
    let about = path.symlink_metadata().map_err(|cause| cause.to_string())?;
    if !about.is_dir() {
        return Err("it is not a directory; remove it, or set HOLDFAST_RUN".to_owned());
    }
    if about.uid() != 0 && !owners.contains(&about.uid()) {
        return Err(format!("it belongs to user {}; remove it, or set {RUN_VARIABLE}", about.uid()));
    }
    if about.mode() & 0o022 != 0 {
        return Err(format!(
            "other users may write to it; set {RUN_VARIABLE} to a directory of your own, or run `chmod 700` on this one"
        ));
    }
    Ok(())
}

/// Possible socket paths of `ring`, likeliest first, when the ring's file or device belongs to user `owner`.
pub fn candidates(ring: RingId, owner: u32) -> Vec<PathBuf> {
    directories(owner).iter().map(|directory| socket_in(directory, ring)).collect()
}

/// Directories of recorders' sockets, likeliest first. Directories that other users may write to are left out.
pub(crate) fn directories(owner: u32) -> Vec<PathBuf> {
    let mut directories = vec![run_directory()];
    if variable(RUN_VARIABLE).is_none() {
        directories.push(PathBuf::from("/run/holdfast"));
        for uid in [uid(), owner] {
            directories.push(PathBuf::from(format!("/run/user/{uid}/holdfast")));
            directories.push(PathBuf::from(format!("/tmp/holdfast-{uid}")));
        }
    }
    let mut found: Vec<PathBuf> = Vec::new();
    for directory in directories {
        if !found.contains(&directory) && trusted(&directory, &[uid(), owner]).is_ok() {
            found.push(directory);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{File, Permissions, set_permissions};
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_directory_that_strangers_may_write_to_is_not_trusted() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        set_permissions(path, Permissions::from_mode(0o700)).unwrap();
        assert_eq!(trusted(path, &[uid()]), Ok(()));
        set_permissions(path, Permissions::from_mode(0o777)).unwrap();
        assert!(trusted(path, &[uid()]).unwrap_err().contains("set HOLDFAST_RUN to a directory of your own"));
        assert!(trusted(&path.join("none"), &[]).is_err());
        File::create(path.join("file")).unwrap();
        assert!(trusted(&path.join("file"), &[uid()]).unwrap_err().contains("not a directory"));
    }

    #[test]
    fn the_socket_is_named_after_the_ring() {
        let path = socket_in(Path::new("/run/holdfast"), RingId(*b"0123456789abcdef"));
        assert_eq!(path, Path::new("/run/holdfast/30313233-3435-3637-3839-616263646566.sock"));
    }
}
