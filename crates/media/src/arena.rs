//! Memory maps: one stretch of address space that buffers are cut from, and large vectors on pages as large.
//! All `unsafe` of the buffers' memory is here. `buffer` and `share` decide who owns which piece.
#![allow(unsafe_code)]

use crate::buffer::PoolError;
use rustix::fs::{MemfdFlags, SealFlags};
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags};
use std::ffi::c_void;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;

/// Huge pages start at multiples of this: they make direct I/O about twice as fast, for fewer pages are pinned.
const HUGE: usize = 2 << 20;

/// A mapping that lives until the last buffer cut from it is gone.
pub(crate) struct Arena {
    base: NonNull<u8>,
    bytes: usize,
    fd: Option<OwnedFd>,
}

// SAFETY: the mapping is plain memory, valid in every thread until `drop`; who may touch which bytes is settled
// by `Buffer`, of which there is exactly one for each piece.
unsafe impl Send for Arena {}
// SAFETY: as above; a shared `Arena` gives out pointers and numbers only.
unsafe impl Sync for Arena {}

impl Arena {
    /// Maps `bytes` of private zeros.
    pub(crate) fn private(bytes: usize) -> Result<Self, PoolError> {
        Self::map(bytes, None).map_err(|cause| PoolError::Map { bytes, cause: cause.into() })
    }

    /// Maps `bytes` of a new memory file that nobody can resize from here on, nor do what else is forbidden.
    pub(crate) fn shared(bytes: usize, forbidden: SealFlags) -> Result<Self, PoolError> {
        let shared = || -> Result<Self, Errno> {
            let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
            let fd = rustix::fs::memfd_create("holdfast-buffers", flags)?;
            rustix::fs::ftruncate(&fd, bytes as u64)?;
            let arena = Self::map(bytes, Some(fd))?;
            let fd = arena.fd.as_ref().ok_or(Errno::BADF)?;
            // Who could shrink it would kill us by SIGBUS.
            let seals = SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL | forbidden;
            rustix::fs::fcntl_add_seals(fd, seals)?;
            Ok(arena)
        };
        shared().map_err(|cause| PoolError::Map { bytes, cause: cause.into() })
    }

    fn map(bytes: usize, fd: Option<OwnedFd>) -> Result<Self, Errno> {
        let align = if bytes < HUGE { rustix::param::page_size() } else { HUGE };
        let whole = bytes.checked_add(align).ok_or(Errno::NOMEM)?;
        let none = std::ptr::null_mut();
        let both = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at a place of the kernel's choice touches nothing that exists.
        let start =
            unsafe { rustix::mm::mmap_anonymous(none, whole, ProtFlags::empty(), MapFlags::PRIVATE)? };
        let front = start.align_offset(align);
        let base = start.wrapping_byte_add(front);
        let end = base.wrapping_byte_add(bytes.next_multiple_of(rustix::param::page_size()));
        let back = start as usize + whole.next_multiple_of(rustix::param::page_size()) - end as usize;
        // SAFETY: both pieces lie inside the range reserved above, which nobody else knows of yet.
        unsafe {
            if front > 0 {
                rustix::mm::munmap(start, front)?;
            }
            if back > 0 {
                rustix::mm::munmap(end, back)?;
            }
        }
        // SAFETY: MAP_FIXED replaces exactly the part of our own reservation that was kept.
        let mapped = unsafe {
            match &fd {
                Some(fd) => rustix::mm::mmap(base, bytes, both, MapFlags::SHARED | MapFlags::FIXED, fd, 0),
                None => rustix::mm::mmap_anonymous(base, bytes, both, MapFlags::PRIVATE | MapFlags::FIXED),
            }
        };
        let base = NonNull::new(base.cast::<u8>()).ok_or(Errno::NOMEM)?;
        let arena = Self { base, bytes, fd };
        mapped?;
        if bytes >= HUGE {
            // SAFETY: advice about our own mapping; where huge pages are not to be had, small ones serve.
            let _ = unsafe { rustix::mm::madvise(arena.start(), bytes, Advice::LinuxHugepage) };
        }
        Ok(arena)
    }

    /// Brings every page into memory now, so that none is missing later.
    pub(crate) fn prefault(&self) -> Result<(), PoolError> {
        // SAFETY: populating pages of our own mapping changes no content.
        match unsafe { rustix::mm::madvise(self.start(), self.bytes, Advice::LinuxPopulateWrite) } {
            Ok(()) => Ok(()),
            Err(Errno::INVAL) => {
                // A kernel before 5.14. The arena is fresh: its bytes are zero and no buffer exists yet.
                for at in (0..self.bytes).step_by(rustix::param::page_size()) {
                    // SAFETY: inside the mapping, and nobody else refers to it yet.
                    unsafe { self.base.add(at).write_volatile(0) };
                }
                Ok(())
            }
            Err(cause) => Err(PoolError::Map { bytes: self.bytes, cause: cause.into() }),
        }
    }

    /// Keeps the mapping in memory.
    pub(crate) fn lock(&self) -> std::io::Result<()> {
        // SAFETY: locking pages of our own mapping changes no content.
        Ok(unsafe { rustix::mm::mlock(self.start(), self.bytes) }?)
    }

    /// Bytes of it.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The address of byte `at`.
    pub(crate) fn at(&self, at: usize) -> NonNull<u8> {
        debug_assert!(at < self.bytes);
        // SAFETY: callers stay inside the mapping, whose size fits an `isize`.
        unsafe { self.base.add(at) }
    }

    /// The memory file behind it.
    pub(crate) fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.fd.as_ref().map(AsFd::as_fd)
    }

    fn start(&self) -> *mut c_void {
        self.base.as_ptr().cast()
    }
}

/// A vector with room for so many bytes, where it is large on huge pages as far as these are to be had: what fills it once waits for
/// few pages.
pub fn vector(bytes: usize) -> Vec<u8> {
    if bytes < 2 * HUGE {
        return Vec::with_capacity(bytes);
    }
    // The last page is a huge one, too.
    let mut vector = Vec::<u8>::with_capacity(bytes + HUGE);
    let room = vector.spare_capacity_mut();
    let (from, len) = (room.as_mut_ptr(), room.len());
    let front = from.align_offset(HUGE);
    let whole = len.saturating_sub(front) / HUGE * HUGE;
    if whole > 0 {
        // SAFETY: advice about whole pages inside of what the vector alone has changes no content.
        let _ = unsafe { rustix::mm::madvise(from.wrapping_add(front).cast(), whole, Advice::LinuxHugepage) };
    }
    vector
}

impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and every buffer holds the arena: none is left.
        let _ = unsafe { rustix::mm::munmap(self.start(), self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vector_has_the_room_that_was_asked_for_and_nothing_in_it() {
        for bytes in [0, 1, HUGE, 2 * HUGE - 1, 2 * HUGE, 5 * HUGE + 7] {
            let mut vector = vector(bytes);
            assert!(vector.is_empty() && vector.capacity() >= bytes);
            vector.resize(bytes, 7);
            assert!(vector.iter().all(|byte| *byte == 7));
        }
    }
}
