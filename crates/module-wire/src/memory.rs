//! Memory file that carries blocks from a scan to one module process.
//!
//! Both sides use positioned reads and writes, which copy as often as a mapping would: once in and once out.
//! A scan can also fill the file without a copy of its own, by `sendfile`, or map it by other means.

use rustix::fs::{MemfdFlags, SealFlags};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;

/// Memory file of a fixed size, which neither side can change.
#[derive(Debug)]
pub struct SharedMemory {
    file: File,
    bytes: u64,
}

impl SharedMemory {
    /// Creates a memory file of `bytes` zeros.
    pub fn new(bytes: u64) -> io::Result<Self> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = File::from(rustix::fs::memfd_create("holdfast-module", flags)?);
        file.set_len(bytes)?;
        rustix::fs::fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        Ok(Self { file, bytes })
    }

    /// Size of the file in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Copies `bytes` to position `at`; a range outside of the file is an error.
    pub fn write(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        if at.checked_add(bytes.len() as u64).is_none_or(|end| end > self.bytes) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "the range is outside of the shared memory",
            ));
        }
        self.file.write_all_at(bytes, at)
    }

    /// Another handle of the same file, for the process that reads it.
    pub(crate) fn duplicate(&self) -> io::Result<File> {
        self.file.try_clone()
    }
}

impl AsFd for SharedMemory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_resizes_it_and_nothing_outside_is_written() {
        let memory = SharedMemory::new(100).unwrap();
        assert!(memory.write(98, b"abc").is_err());
        assert!(memory.write(u64::MAX, b"abc").is_err());
        memory.write(97, b"abc").unwrap();
        let other = memory.duplicate().unwrap();
        assert!(other.set_len(50).is_err() && other.set_len(200).is_err());
        let mut seen = [0; 4];
        other.read_exact_at(&mut seen, 96).unwrap();
        assert_eq!(&seen, b"\0abc");
    }
}
