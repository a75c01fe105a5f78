//! Data folder: private to the user of the server, and locked against a second server.
//!
//! The databases have tokens of other sites, and the uploads what their senders keep private. So nobody else may enter the
//! folder, and new files are private whatever the umask is.

use crate::error::ServerError;
use rustix::fs::FlockOperation;
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

/// File whose lock keeps a second server out of a data folder.
const LOCK_FILE: &str = "lock";

/// Permissions of others than the owner.
const OTHERS: u32 = 0o077;

/// Makes the data folder, or makes the present one private, and locks it.
pub(crate) fn lock_data_folder(data: &Path) -> Result<File, ServerError> {
    let failed = |error: io::Error| ServerError::io("open the data folder", data, &error);
    DirBuilder::new().recursive(true).mode(0o700).create(data).map_err(failed)?;
    check_owner(data, &fs::metadata(data).map_err(failed)?)?;
    let private = private_file(&data.join(LOCK_FILE)).map_err(failed)?;
    match rustix::fs::flock(&private, FlockOperation::NonBlockingLockExclusive) {
        Err(rustix::io::Errno::WOULDBLOCK) => Err(ServerError::failed(
            format_args!("use the data folder {}", data.display()),
            "another server uses it",
            "stop that server, or choose another folder",
        )),
        Err(error) => Err(failed(error.into())),
        Ok(()) => {
            make_private(data).map_err(failed)?;
            Ok(private)
        }
    }
}

/// Refuses a folder of another user, who could read all of it whatever its mode is.
fn check_owner(data: &Path, found: &Metadata) -> Result<(), ServerError> {
    let own = rustix::process::geteuid().as_raw();
    if found.uid() == own {
        return Ok(());
    }
    Err(ServerError::failed(
        format_args!("use the data folder {}", data.display()),
        format_args!(
            "it belongs to the user {} and not to {own}, who could read the tokens in it",
            found.uid()
        ),
        "start the server as that user, give the folder to this one with chown -R, or choose another folder",
    ))
}

/// Takes the access of others from the folder and what lies in it. What lies deeper cannot be reached by them any more.
fn make_private(data: &Path) -> io::Result<()> {
    narrow(data, &fs::metadata(data)?)?;
    for entry in fs::read_dir(data)? {
        let entry = entry?;
        // Not followed: a link leads to what belongs to others.
        match entry.metadata() {
            Ok(found) if found.is_symlink() => {}
            Ok(found) => narrow(&entry.path(), &found)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn narrow(path: &Path, found: &Metadata) -> io::Result<()> {
    if found.mode() & OTHERS == 0 {
        return Ok(());
    }
    fs::set_permissions(path, Permissions::from_mode(found.mode() & 0o7777 & !OTHERS))
}

/// Opens a file for writing; a new one is readable by its owner only, whatever the umask is.
fn private_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(path)
}

/// Makes an empty file that only its owner can read, unless it is there. One that is there is not opened: to close a database
/// would drop the locks of this process's connections to it.
pub(crate) fn make_private_file(path: &Path) -> io::Result<()> {
    match OpenOptions::new().create_new(true).write(true).mode(0o600).open(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::symlink_metadata(path).unwrap().mode() & 0o7777
    }

    #[test]
    fn a_data_folder_belongs_to_one_server() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("new/data");
        let lock = lock_data_folder(&data).unwrap();
        let error = lock_data_folder(&data).unwrap_err().to_string();
        assert!(error.contains("another server uses it; stop that server"), "{error}");
        drop(lock);
        lock_data_folder(&data).unwrap();
    }

    #[test]
    fn a_folder_that_others_may_read_becomes_private_with_what_lies_in_it() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        fs::create_dir_all(data.join("archive")).unwrap();
        fs::write(data.join("catalog.db"), "tokens of peers").unwrap();
        fs::write(folder.path().join("other"), "of others").unwrap();
        std::os::unix::fs::symlink(folder.path().join("other"), data.join("link")).unwrap();
        for (path, mode) in
            [("data", 0o755), ("data/archive", 0o777), ("data/catalog.db", 0o664), ("other", 0o644)]
        {
            fs::set_permissions(folder.path().join(path), Permissions::from_mode(mode)).unwrap();
        }
        let _lock = lock_data_folder(&data).unwrap();
        for (path, wanted) in [("", 0o700), ("archive", 0o700), ("catalog.db", 0o600), ("lock", 0o600)] {
            assert_eq!(mode(&data.join(path)), wanted, "{path}");
        }
        assert_eq!(mode(&folder.path().join("other")), 0o644);
    }

    #[test]
    fn a_folder_of_another_user_is_refused_with_the_remedy() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        std::os::unix::fs::chown(folder.path(), Some(65_534), None).unwrap();
        let error = lock_data_folder(folder.path()).unwrap_err().to_string();
        assert!(error.contains("it belongs to the user 65534") && error.contains("chown -R"), "{error}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
