//! Structures of the kernel's interface as bytes: stat(2), statx(2), statfs(2) and getdents64(2).

use std::os::unix::fs::MetadataExt as _;
use std::time::{SystemTime, UNIX_EPOCH};

/// Device of all entries of the tree.
const DEVICE: u64 = 0x4846;

/// Best size of a read.
const BLOCK: u64 = 1 << 20;

const TYPE_FOLDER: u8 = 4;
const TYPE_FILE: u8 = 8;

/// Fields of an entry's status.
#[derive(Clone, Copy, Debug)]
pub(super) struct Status {
    pub(super) device: u64,
    pub(super) ino: u64,
    pub(super) mode: u32,
    pub(super) links: u64,
    pub(super) owner: (u32, u32),
    pub(super) size: u64,
    /// Seconds and nanoseconds of the last change.
    pub(super) modified: (i64, u32),
}

impl Status {
    /// Status of an entry of the tree.
    pub(super) fn of(ino: u64, is_folder: bool, size: u64, modified: SystemTime, is_read_only: bool) -> Self {
        let kind = if is_folder { libc::S_IFDIR } else { libc::S_IFREG };
        let rights = if is_read_only { 0o555 } else { 0o755 };
        let age = modified.duration_since(UNIX_EPOCH).unwrap_or_default();
        let owner = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        let modified = (age.as_secs() as i64, age.subsec_nanos());
        Self { device: DEVICE, ino, mode: kind | rights, links: 1, owner, size, modified }
    }

    /// Status of a real entry.
    pub(super) fn real(found: &std::fs::Metadata) -> Self {
        Self {
            device: found.dev(),
            ino: found.ino(),
            mode: found.mode(),
            links: found.nlink(),
            owner: (found.uid(), found.gid()),
            size: found.len(),
            modified: (found.mtime(), found.mtime_nsec() as u32),
        }
    }

    fn blocks(&self) -> u64 {
        self.size.div_ceil(512)
    }

    /// Bytes of `struct stat`.
    pub(super) fn stat(&self) -> Vec<u8> {
        let mut out = Fields::default();
        out.u64(self.device).u64(self.ino);
        if cfg!(target_arch = "x86_64") {
            out.u64(self.links).u32(self.mode).u32(self.owner.0).u32(self.owner.1).u32(0).u64(0);
            out.u64(self.size).u64(BLOCK);
        } else {
            out.u32(self.mode).u32(self.links as u32).u32(self.owner.0).u32(self.owner.1).u64(0).u64(0);
            out.u64(self.size).u32(BLOCK as u32).u32(0);
        }
        out.u64(self.blocks());
        for _ in ["access", "modification", "change"] {
            out.u64(self.modified.0 as u64).u64(u64::from(self.modified.1));
        }
        let rest = if cfg!(target_arch = "x86_64") { 24 } else { 8 };
        out.zeros(rest);
        out.0
    }

    /// Bytes of `struct statx`.
    pub(super) fn statx(&self) -> Vec<u8> {
        let mut out = Fields::default();
        out.u32(libc::STATX_BASIC_STATS | libc::STATX_BTIME).u32(BLOCK as u32).u64(0);
        out.u32(self.links as u32).u32(self.owner.0).u32(self.owner.1).u32(self.mode);
        out.u64(self.ino).u64(self.size).u64(self.blocks()).u64(0);
        for _ in ["access", "birth", "change", "modification"] {
            out.u64(self.modified.0 as u64).u32(self.modified.1).u32(0);
        }
        let (major, minor) = (rustix::fs::major(self.device), rustix::fs::minor(self.device));
        out.u32(0).u32(0).u32(major).u32(minor);
        out.zeros(256 - out.0.len());
        out.0
    }
}

/// Bytes of `struct statfs` of the tree, which tells no space.
pub(super) fn space() -> Vec<u8> {
    let mut out = Fields::default();
    let blocks = 1 << 40;
    out.u64(DEVICE).u64(4096).u64(blocks).u64(blocks).u64(blocks).u64(blocks).u64(blocks);
    out.u64(0).u64(255).u64(4096);
    out.zeros(120 - out.0.len());
    out.0
}

/// Bytes of one entry of a folder. `next` is the position after it.
pub(super) fn folder_entry(ino: u64, next: u64, is_folder: bool, name: &str) -> Vec<u8> {
    let length = (19 + name.len() + 1).next_multiple_of(8);
    let mut out = Fields::default();
    out.u64(ino).u64(next);
    out.0.extend((length as u16).to_ne_bytes());
    out.0.push(if is_folder { TYPE_FOLDER } else { TYPE_FILE });
    out.0.extend(name.as_bytes());
    out.zeros(length - out.0.len());
    out.0
}

/// Fields of a structure, one after the other.
#[derive(Default)]
struct Fields(Vec<u8>);

impl Fields {
    fn u32(&mut self, value: u32) -> &mut Self {
        self.0.extend(value.to_ne_bytes());
        self
    }

    fn u64(&mut self, value: u64) -> &mut Self {
        self.0.extend(value.to_ne_bytes());
        self
    }

    fn zeros(&mut self, count: usize) {
        self.0.resize(self.0.len() + count, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structures_have_the_sizes_of_the_kernel() {
        let status = Status::of(7, false, 1000, UNIX_EPOCH, false);
        assert_eq!(status.stat().len(), size_of::<libc::stat>());
        assert_eq!(status.statx().len(), size_of::<libc::statx>());
        assert_eq!(space().len(), size_of::<libc::statfs>());
    }

    #[test]
    fn entries_of_folders_are_aligned() {
        for name in ["a", "abcd", "abcde", "a name that is somewhat longer"] {
            let entry = folder_entry(1, 2, false, name);
            assert_eq!(entry.len() % 8, 0);
            assert_eq!(usize::from(u16::from_ne_bytes([entry[16], entry[17]])), entry.len());
            assert_eq!(entry[19 + name.len()], 0);
        }
    }
}
