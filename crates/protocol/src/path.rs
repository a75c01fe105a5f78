//! Where the socket of a ring is. Every ring has one name, from its UUID; who runs the recorder settles the directory.

use crate::LinkError;
use crate::wire::LaneFile;
use holdfast_base::{BLOCK, RingId};
use holdfast_format::Superblock;
use rustix::fs::{FileType, Stat};
use std::fs::{DirBuilder, File};
use std::io::{self, ErrorKind};
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Names the directory of the sockets when the usual one will not do.
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

/// The directory where a recorder of this user puts its socket; it need not exist yet.
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
pub fn make_run_directory() -> Result<PathBuf, LinkError> {
    let path = run_directory();
    let wrong = |text: String| LinkError::RunDirectory { path: path.clone(), text };
    match DirBuilder::new().recursive(true).mode(0o700).create(&path) {
        Err(cause) if cause.kind() != ErrorKind::AlreadyExists => Err(wrong(format!(
            "cannot make the directory of the sockets ({cause}): set {RUN_VARIABLE} to one that you own"
        ))),
        _ => trusted(&path, &[uid()]).map_err(wrong).map(|()| path.clone()),
    }
}

/// Whether only `owners` and root can put anything into a directory.
fn trusted(path: &Path, owners: &[u32]) -> Result<(), String> {
    let about = path.symlink_metadata().map_err(|cause| format!("cannot look at it: {cause}"))?;
    if !about.is_dir() {
        return Err("not a directory: remove it, or set HOLDFAST_RUN".to_owned());
    }
    if about.uid() != 0 && !owners.contains(&about.uid()) {
        return Err(format!("belongs to user {}: remove it, or set {RUN_VARIABLE}", about.uid()));
    }
    if about.mode() & 0o022 != 0 {
        return Err(format!(
            "others may write to it: set {RUN_VARIABLE} to a directory of your own, or make this one so (chmod 700)"
        ));
    }
    Ok(())
}

/// Where the socket of `ring` may be, likeliest first, when the ring's file or device belongs to `owner`.
pub fn candidates(ring: RingId, owner: u32) -> Vec<PathBuf> {
    directories(owner).iter().map(|directory| socket_in(directory, ring)).collect()
}

/// Where sockets of recorders may be, likeliest first. Directories that strangers may write to are left out.
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

/// A ring, as it was found at its path.
#[derive(Clone, Debug)]
pub struct Place {
    /// The path.
    pub path: PathBuf,
    /// The newest superblock.
    pub superblock: Superblock,
    /// Which file or device it is.
    pub file: LaneFile,
    /// The user to whom that belongs.
    pub owner: u32,
}

/// Which file or device is open here.
pub fn lane_file(open: impl AsFd) -> io::Result<LaneFile> {
    Ok(file_of(&rustix::fs::fstat(open)?))
}

/// Which file or device a path leads to, and to whom it belongs.
pub(crate) fn lane_file_at(path: &Path) -> io::Result<(LaneFile, u32)> {
    let stat = rustix::fs::stat(path)?;
    Ok((file_of(&stat), stat.st_uid))
}

fn file_of(stat: &Stat) -> LaneFile {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::BlockDevice | FileType::CharacterDevice => LaneFile { device: stat.st_rdev, inode: 0 },
        _ => LaneFile { device: stat.st_dev, inode: stat.st_ino },
    }
}

/// Reads the superblock of the ring at `path`, and which file or device that is.
pub fn find(path: &Path) -> Result<Place, LinkError> {
    let open = |cause: io::Error| LinkError::Open { path: path.to_owned(), cause };
    let file = File::open(path).map_err(open)?;
    let owner = file.metadata().map_err(open)?.uid();
    let lane = lane_file(&file).map_err(open)?;
    let mut copies = Vec::new();
    let mut failed = None;
    for offset in Superblock::OFFSETS {
        let mut block = [0; BLOCK];
        match file.read_exact_at(&mut block, offset) {
            Ok(()) => copies.push(Superblock::decode(&block)),
            // One unreadable copy is what the others are for; a file that ends early is no ring.
            Err(cause) if cause.kind() == ErrorKind::UnexpectedEof => copies.push(Superblock::decode(&[])),
            Err(cause) => failed = Some(cause),
        }
    }
    match (Superblock::newest(&copies), failed) {
        (Ok(newest), _) => Ok(Place { path: path.to_owned(), superblock: newest.clone(), file: lane, owner }),
        (Err(_), Some(cause)) => Err(open(cause)),
        (Err(cause), None) => Err(LinkError::NotARing { path: path.to_owned(), cause }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{Permissions, set_permissions};
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

    #[test]
    fn what_is_no_ring_is_told_so() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("short");
        std::fs::write(&path, b"hello").unwrap();
        assert!(matches!(find(&path), Err(LinkError::NotARing { .. })));
        std::fs::write(&path, vec![0; 1 << 20]).unwrap();
        let said = find(&path).unwrap_err().to_string();
        assert!(said.contains("short") && said.contains("magic"), "{said}");
        assert!(matches!(find(&directory.path().join("none")), Err(LinkError::Open { .. })));
    }
}
