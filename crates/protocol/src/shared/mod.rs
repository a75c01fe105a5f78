//! Read-only mapping of memory that a recorder shares: the ticket area and the bird's-eye view.
//!
//! The recorder may change bytes during a copy. Therefore no reference ever points into the mapping: callers copy bytes out and
//! verify them afterwards.
#![allow(unsafe_code)]

use crate::ProtocolError;
use holdfast_media::copy_out;
use rustix::fs::SealFlags;
use rustix::mm::{MapFlags, ProtFlags};
use std::os::fd::OwnedFd;
use std::ptr::NonNull;

/// Largest area that is mapped: far more than a recorder ever gives out.
const LARGEST: u64 = 16 << 30;

/// A mapping of memory that a recorder hands out.
pub struct SharedArea {
    base: NonNull<u64>,
    bytes: usize,
}

// SAFETY: the mapping is read-only memory that stays valid until `drop`; copies may be made from any thread.
unsafe impl Send for SharedArea {}
// SAFETY: as above: there is nothing in it that a thread could change.
unsafe impl Sync for SharedArea {}

impl std::fmt::Debug for SharedArea {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SharedArea({} bytes)", self.bytes)
    }
}

impl SharedArea {
    /// Maps a memory file that can no longer shrink.
    pub fn whole(fd: &OwnedFd) -> Result<Self, ProtocolError> {
        Self::map(fd, size(fd)?)
    }

    /// Maps the first `bytes` of one.
    pub fn map(fd: &OwnedFd, bytes: u64) -> Result<Self, ProtocolError> {
        let wrong = |text: &str| ProtocolError::Area(text.to_owned());
        let size = size(fd)?;
        if bytes == 0 || bytes > LARGEST || size < bytes {
            return Err(wrong(&format!("{bytes} bytes announced, {size} in the file")));
        }
        // A file that shrank under us would end us by SIGBUS.
        let sealed = rustix::fs::fcntl_get_seals(fd).is_ok_and(|seals| seals.contains(SealFlags::SHRINK));
        if !sealed {
            return Err(wrong("the file is not sealed against shrinking"));
        }
        let bytes = usize::try_from(bytes).map_err(|_| wrong("it exceeds the address space"))?;
        // SAFETY: a new mapping at a place of the kernel's choice touches nothing that exists.
        let base = unsafe {
            rustix::mm::mmap(std::ptr::null_mut(), bytes, ProtFlags::READ, MapFlags::SHARED, fd, 0)
        };
        let base = base.map_err(|cause| wrong(&cause.to_string()))?;
        let base =
            NonNull::new(base.cast::<u64>()).ok_or_else(|| wrong("the system returned a null mapping"))?;
        Ok(Self { base, bytes })
    }

    /// Bytes of the area.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Copies what stands at `offset` now; `false`, and nothing copied, when that is not all inside, or `offset` is not
    /// a multiple of 8. What was copied may be a mixture of old and new: check it.
    #[must_use]
    pub fn copy(&self, offset: u64, into: &mut [u8]) -> bool {
        let inside = usize::try_from(offset)
            .ok()
            .filter(|start| start.is_multiple_of(8))
            .filter(|start| start.checked_add(into.len()).is_some_and(|end| end <= self.bytes));
        let Some(start) = inside else { return false };
        // SAFETY: the range was checked to lie inside the mapping.
        unsafe { copy_out(self.base.as_ptr().add(start / 8).cast(), into) };
        true
    }
}

fn size(fd: &OwnedFd) -> Result<u64, ProtocolError> {
    let about = rustix::fs::fstat(fd).map_err(|cause| ProtocolError::Area(cause.to_string()))?;
    Ok(u64::try_from(about.st_size).unwrap_or(0))
}

impl Drop for SharedArea {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and nothing refers into it.
        let _ = unsafe { rustix::mm::munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_media::{BufferPool, Lock};
    use rustix::fs::MemfdFlags;

    #[test]
    fn copies_show_what_the_recorder_wrote_last() {
        let mut pool = BufferPool::shared(2, 8192, Lock::No).unwrap();
        let fd = pool.fd().unwrap().try_clone_to_owned().unwrap();
        let area = SharedArea::map(&fd, 16384).unwrap();
        let mut second = pool.take().and_then(|_| pool.take()).unwrap();
        second[..11].copy_from_slice(b"hello world");
        let mut seen = [0; 11];
        assert!(area.copy(second.position() as u64, &mut seen));
        assert_eq!(&seen, b"hello world");
        second[..5].copy_from_slice(b"later");
        assert!(area.copy(8192, &mut seen));
        assert_eq!(&seen, b"later world");
    }

    #[test]
    fn nothing_outside_is_copied() {
        let pool = BufferPool::shared(1, 8192, Lock::No).unwrap();
        let fd = pool.fd().unwrap().try_clone_to_owned().unwrap();
        let area = SharedArea::map(&fd, 8192).unwrap();
        let mut seen = [7; 16];
        for offset in [8184, 8192, 4, u64::MAX, u64::MAX - 7] {
            assert!(!area.copy(offset, &mut seen), "{offset}");
        }
        assert_eq!(seen, [7; 16]);
        assert!(area.copy(8176, &mut seen));
        for bytes in [0, 8193, u64::MAX] {
            assert!(SharedArea::map(&fd, bytes).is_err(), "{bytes}");
        }
    }

    // Promise 5: a client's mapping is for looking.
    #[test]
    fn nobody_can_map_it_for_writing() {
        let pool = BufferPool::shared(1, 8192, Lock::No).unwrap();
        let fd = pool.fd().unwrap().try_clone_to_owned().unwrap();
        let write = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at a place of the kernel's choice touches nothing that exists.
        let mapped = unsafe { rustix::mm::mmap(std::ptr::null_mut(), 8192, write, MapFlags::SHARED, &fd, 0) };
        assert_eq!(mapped.map(|_| ()), Err(rustix::io::Errno::PERM));
    }

    #[test]
    fn a_file_that_may_shrink_is_refused() {
        let fd = rustix::fs::memfd_create("test", MemfdFlags::ALLOW_SEALING).unwrap();
        rustix::fs::ftruncate(&fd, 8192).unwrap();
        let said = SharedArea::map(&fd, 8192).unwrap_err().to_string();
        assert!(said.contains("sealed"), "{said}");
    }
}
