//! Data folder: private to the user of the server, and locked against a second server.
//!
//! The databases have tokens of other sites, and the uploads what their senders keep private. So nobody else may enter the
//! folder, and new files are private whatever the umask is.

use crate::error::ServerError;
use rustix::fs::FlockOperation;
use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

/// File whose lock keeps a second server out of a data folder.
const LOCK_FILE: &str = "lock";

/// Databases of a server: a folder with one of them is the data folder of a server, whatever else lies in it.
const DATABASES: [&str; 4] = ["catalog.db", "site.db", "tokens.db", "uploads.db"];

/// Other entries of a data folder.
const OTHER_ENTRIES: [&str; 7] =
    ["archive", "certificate.pem", "key.pem", LOCK_FILE, "staged", "temporary", "uploads"];

/// Ends of the names of files that lie beside a database, or become another file.
const COMPANIONS: [&str; 4] = ["-journal", "-shm", "-wal", ".new"];

/// Folder that is in every new file system of ext4.
const LOST_AND_FOUND: &str = "lost+found";

/// Permissions of others than the owner.
const OTHERS: u32 = 0o077;

/// Makes the data folder, or makes the present one private, and locks it.
pub(crate) fn lock_data_folder(data: &Path) -> Result<File, ServerError> {
    let failed = |error: io::Error| ServerError::io("open the data folder", data, &error);
    DirBuilder::new().recursive(true).mode(0o700).create(data).map_err(failed)?;
    check_owner(data, &fs::metadata(data).map_err(failed)?)?;
    check_entries(data, &entries(data).map_err(failed)?)?;
    let lock = data.join(LOCK_FILE);
    let private = private_file(&lock)
        .map_err(|error| ServerError::io("open the lock of the data folder", &lock, &error))?;
    match rustix::fs::flock(&private, FlockOperation::NonBlockingLockExclusive) {
        Err(rustix::io::Errno::WOULDBLOCK) => Err(ServerError::failed(
            format_args!("use the data folder {}", data.display()),
            "another server uses it",
            "stop that server, or choose another folder",
        )),
        Err(error) => Err(failed(error.into())),
        Ok(()) => {
            make_private(data)?;
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
        format_args!(
            "give it to this user with chown -R, start the server as its owner, or choose a new folder inside it, \
             such as {}",
            data.join("site").display()
        ),
    ))
}

/// Names of the entries of a folder.
fn entries(folder: &Path) -> io::Result<Vec<OsString>> {
    fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.file_name())).collect()
}

/// Refuses a folder of other files, such as a home folder: users of these files would lose access to them.
fn check_entries(data: &Path, entries: &[OsString]) -> Result<(), ServerError> {
    let foreign = entries.iter().find(|name| !is_own(name) && *name != LOST_AND_FOUND);
    match foreign {
        Some(foreign) if !entries.iter().any(|name| DATABASES.iter().any(|own| name == own)) => {
            Err(ServerError::failed(
                format_args!("use the data folder {}", data.display()),
                format_args!("it has other files, such as '{}'", foreign.display()),
                "choose an empty or a new folder, which becomes private to the server",
            ))
        }
        _ => Ok(()),
    }
}

/// True for the name of an entry that a server makes in its data folder.
fn is_own(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else { return false };
    let base = COMPANIONS.iter().find_map(|end| name.strip_suffix(*end)).unwrap_or(name);
    DATABASES.contains(&base) || OTHER_ENTRIES.contains(&base)
}

/// Takes the access of others from the folder and from the server's entries. Nothing else in the folder can be reached by others
/// any more.
fn make_private(data: &Path) -> Result<(), ServerError> {
    let failed =
        |error: io::Error| ServerError::io("narrow the permissions of the data folder", data, &error);
    narrow(data, &fs::metadata(data).map_err(failed)?).map_err(failed)?;
    for name in entries(data).map_err(failed)?.iter().filter(|name| is_own(name)) {
        let path = data.join(name);
        // Not followed: a link leads to a file of others.
        let narrowed = fs::symlink_metadata(&path)
            .and_then(|found| if found.is_symlink() { Ok(()) } else { narrow(&path, &found) });
        check_narrowed(&path, narrowed)?;
    }
    Ok(())
}

/// Fails if an entry of the private folder could not be made private, unless it belongs to another user, such as a key that root
/// has installed, or is gone.
fn check_narrowed(path: &Path, narrowed: io::Result<()>) -> Result<(), ServerError> {
    match narrowed {
        Err(error) if !matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::NotFound) => {
            Err(ServerError::io("narrow the permissions of", path, &error))
        }
        _ => Ok(()),
    }
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
        std::os::unix::fs::symlink(folder.path().join("other"), data.join("staged")).unwrap();
        fs::write(data.join("notes"), "of the administrator").unwrap();
        for (path, mode) in [
            ("data", 0o755),
            ("data/archive", 0o777),
            ("data/catalog.db", 0o664),
            ("data/notes", 0o640),
            ("other", 0o644),
        ] {
            fs::set_permissions(folder.path().join(path), Permissions::from_mode(mode)).unwrap();
        }
        let _lock = lock_data_folder(&data).unwrap();
        for (path, wanted) in
            [("", 0o700), ("archive", 0o700), ("catalog.db", 0o600), ("lock", 0o600), ("notes", 0o640)]
        {
            assert_eq!(mode(&data.join(path)), wanted, "{path}");
        }
        assert_eq!(mode(&folder.path().join("other")), 0o644);
    }

    #[test]
    fn a_folder_of_other_files_is_refused_and_left_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
        fs::create_dir(folder.path().join("archive")).unwrap();
        fs::write(folder.path().join("thesis"), "of a user").unwrap();
        let error = lock_data_folder(folder.path()).unwrap_err().to_string();
        assert!(error.contains("such as 'thesis'; choose an empty or a new folder"), "{error}");
        assert!(!folder.path().join(LOCK_FILE).exists());
        assert_eq!(mode(folder.path()), 0o755);
        fs::rename(folder.path().join("thesis"), folder.path().join(LOST_AND_FOUND)).unwrap();
        fs::write(folder.path().join("tokens.db-wal"), "").unwrap();
        lock_data_folder(folder.path()).unwrap();
    }

    #[test]
    fn an_entry_of_another_user_is_left_and_other_errors_name_it() {
        let path = Path::new("/data/key.pem");
        for own in [Ok(()), Err(io::Error::from_raw_os_error(1)), Err(io::Error::from_raw_os_error(2))] {
            check_narrowed(path, own).unwrap();
        }
        let error = check_narrowed(path, Err(io::Error::from_raw_os_error(30))).unwrap_err().to_string();
        assert!(error.starts_with("cannot narrow the permissions of /data/key.pem: read-only"), "{error}");
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
