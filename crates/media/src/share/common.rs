//! Memory that other processes write, too. Its contents may change at any time, so nothing ever refers into
//! it: words are read and written whole, all else is copied out.

use super::copy_out;
use crate::arena::Arena;
use crate::buffer::PoolError;
use rustix::fs::{FallocateFlags, SealFlags};
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::AtomicU64;

/// A memory file, mapped here and by whoever gets its descriptor. Nobody can resize it: who shrank it would end us by SIGBUS.
pub struct CommonMemory {
    arena: Arena,
}

impl std::fmt::Debug for CommonMemory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "CommonMemory({} bytes)", self.bytes())
    }
}

impl CommonMemory {
    /// Zeros, all of them in memory already.
    pub fn new(bytes: usize) -> io::Result<Self> {
        let made = Arena::shared(bytes, SealFlags::empty())
            .and_then(|arena| arena.prefault().map(|()| Self { arena }));
        made.map_err(|error| match error {
            PoolError::Map { cause, .. } => cause,
            size @ PoolError::Size { .. } => io::Error::other(size),
        })
    }

    /// Bytes of it.
    pub fn bytes(&self) -> usize {
        self.arena.bytes()
    }

    /// What others map it by.
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.arena.fd()
    }

    /// The word at `at`; none where that is not inside, or not a multiple of 8.
    pub fn word(&self, at: usize) -> Option<&AtomicU64> {
        let inside = at.is_multiple_of(8) && at.checked_add(8).is_some_and(|end| end <= self.bytes());
        // SAFETY: the word is inside the mapping, which lives as long as `self`, and aligned, for the mapping begins with a
        // page. No reference to its bytes is ever made but such ones.
        inside.then(|| unsafe { AtomicU64::from_ptr(self.arena.at(at).as_ptr().cast()) })
    }

    /// Copies what stands at `at` now; `false`, and nothing copied, when that is not all inside. What was copied may be a
    /// mixture of old and new.
    #[must_use]
    pub fn copy(&self, at: usize, into: &mut [u8]) -> bool {
        let inside = at.checked_add(into.len()).is_some_and(|end| end <= self.bytes());
        if inside && !into.is_empty() {
            // SAFETY: the range was checked to lie inside the mapping.
            unsafe { copy_out(self.arena.at(at).as_ptr(), into) };
        }
        inside
    }

    /// Gives back the memory behind the first `keep` bytes, whoever still maps it: it is zeros from here on, and who writes
    /// there again takes memory of its own.
    pub fn empty_behind(&self, keep: usize) {
        if let Some(fd) = self.fd() {
            let behind = self.bytes().saturating_sub(keep) as u64;
            let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            // Where that is not possible, it stays until the last of them goes.
            let _ = rustix::fs::fallocate(fd, flags, keep as u64, behind);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::io::Errno;
    use std::sync::atomic::Ordering;

    // Promise 8: whatever a stranger does with it, the memory stays where it is.
    #[test]
    fn others_write_to_it_and_cannot_resize_it() {
        let memory = CommonMemory::new(8192).unwrap();
        let fd = memory.fd().unwrap();
        assert_eq!(rustix::fs::ftruncate(fd, 4096), Err(Errno::PERM));
        assert_eq!(rustix::fs::ftruncate(fd, 16384), Err(Errno::PERM));
        assert_eq!(rustix::fs::fcntl_add_seals(fd, SealFlags::WRITE), Err(Errno::PERM));
        rustix::io::pwrite(fd, &7u64.to_ne_bytes(), 128).unwrap();
        rustix::io::pwrite(fd, b"seen", 4095).unwrap();
        assert_eq!(memory.word(128).unwrap().load(Ordering::Acquire), 7);
        let mut seen = [0; 4];
        assert!(memory.copy(4095, &mut seen));
        assert_eq!(&seen, b"seen");
        memory.word(128).unwrap().store(9, Ordering::Release);
        memory.empty_behind(4096);
        assert!(memory.copy(4095, &mut seen));
        assert_eq!((&seen, memory.word(128).unwrap().load(Ordering::Acquire)), (b"s\0\0\0", 9));
    }

    #[test]
    fn nothing_outside_is_touched() {
        let memory = CommonMemory::new(4096).unwrap();
        for at in [4, 4089, 4096, usize::MAX, usize::MAX - 7] {
            assert!(memory.word(at).is_none(), "{at}");
            assert!(!memory.copy(at, &mut [0; 4093]), "{at}");
        }
        assert!(memory.copy(4096, &mut []));
    }
}
