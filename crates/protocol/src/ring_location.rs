//! Location of a ring: the file or device at a path, identified, with the newest superblock on it.

use crate::ProtocolError;
use crate::wire::LaneFile;
use holdfast_base::BLOCK;
use holdfast_format::Superblock;
use rustix::fs::{FileType, Stat};
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

/// The location of a ring: its path, its superblock, and the identity of its file or device.
#[derive(Clone, Debug)]
pub struct RingLocation {
    /// The path.
    pub path: PathBuf,
    /// The newest superblock.
    pub superblock: Superblock,
    /// The identity of the file or device.
    pub file: LaneFile,
    /// The user that owns the file or device.
    pub owner: u32,
}

impl RingLocation {
    /// Reads the superblock of the ring at `path` and the identity of its file or device.
    pub fn read(path: &Path) -> Result<Self, ProtocolError> {
        let open = |cause: io::Error| ProtocolError::Open { path: path.to_owned(), cause };
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
                Err(cause) if cause.kind() == ErrorKind::UnexpectedEof => {
                    copies.push(Superblock::decode(&[]));
                }
                Err(cause) => failed = Some(cause),
            }
        }
        match (Superblock::newest(&copies), failed) {
            (Ok(newest), _) => {
                Ok(Self { path: path.to_owned(), superblock: newest.clone(), file: lane, owner })
            }
            (Err(_), Some(cause)) => Err(open(cause)),
            (Err(cause), None) => Err(ProtocolError::NotARing { path: path.to_owned(), cause }),
        }
    }
}

/// Identity of an open file or device.
pub fn lane_file(open: impl AsFd) -> io::Result<LaneFile> {
    Ok(file_of(&rustix::fs::fstat(open)?))
}

/// Identity of the file or device at `path`, and the user that owns it.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_ring_is_told_so() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("short");
        std::fs::write(&path, b"hello").unwrap();
        assert!(matches!(RingLocation::read(&path), Err(ProtocolError::NotARing { .. })));
        std::fs::write(&path, vec![0; 1 << 20]).unwrap();
        let said = RingLocation::read(&path).unwrap_err().to_string();
        assert!(said.contains("short") && said.contains("magic"), "{said}");
        assert!(matches!(
            RingLocation::read(&directory.path().join("none")),
            Err(ProtocolError::Open { .. })
        ));
    }
}
