//! Buffers for direct I/O: aligned, allocated once, owned by one party at a time. `arena` maps the memory.
#![allow(unsafe_code)]

use crate::arena::Arena;
use crate::share::copy_out;
use holdfast_base::{BLOCK, ByteSize};
use rustix::fs::SealFlags;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::os::fd::BorrowedFd;
use std::sync::Arc;

/// Why buffers could not be had.
#[derive(Debug, thiserror::Error)]
pub enum PoolError {
    /// The number or size asked for makes no sense.
    #[error("{count} buffers of {bytes} bytes cannot be had: give at least one of each, and less than {} in all", ByteSize(LARGEST as u64))]
    Size {
        /// Buffers asked for.
        count: usize,
        /// Bytes of each.
        bytes: usize,
    },
    /// The system refused the memory.
    #[error("{} of memory for buffers cannot be had ({cause}): give a smaller memory bound, or free memory", ByteSize(*bytes as u64))]
    Map {
        /// Bytes in all.
        bytes: usize,
        /// What the system said.
        cause: std::io::Error,
    },
}

/// Bytes of one pool: far above any machine's memory, far below what an address can tell.
const LARGEST: usize = 1 << 44;

/// Whether the memory of a pool is made present and kept so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Lock {
    /// Pages come when they are touched.
    #[default]
    No,
    /// All pages are there from the start.
    Prefault,
    /// As `Prefault`, and locked; a warning, not an error, where the limit forbids locking.
    Wanted,
}

/// A fixed number of equal buffers in one mapping.
///
/// Buffers that are taken and dropped do not come back: [`BufferPool::give`] them back.
#[derive(Debug)]
pub struct BufferPool {
    region: Region,
    free: Vec<Buffer>,
    warning: Option<String>,
}

/// The memory of a whole pool, as it is registered with a disk. It owns no bytes, but keeps them mapped.
#[derive(Clone)]
pub struct Region {
    arena: Arc<Arena>,
    count: usize,
    stride: usize,
}

/// One aligned piece of memory. There is never a second handle to the same bytes that could write to them ([`Peek`] can copy).
pub struct Buffer {
    arena: Arc<Arena>,
    index: u32,
    bytes: usize,
}

/// What a buffer has, for whoever wants to read it while the disk writes from it.
#[derive(Clone)]
pub struct Peek {
    arena: Arc<Arena>,
    at: usize,
    bytes: usize,
}

/// What `count` buffers of at least `bytes` take: bytes of each, bytes of all.
fn sizes(count: usize, bytes: usize) -> Result<(usize, usize), PoolError> {
    let wrong = PoolError::Size { count, bytes };
    let stride = bytes.checked_next_multiple_of(BLOCK);
    match stride.and_then(|stride| Some((stride, stride.checked_mul(count)?))) {
        Some((stride, all)) if all > 0 && all <= LARGEST && u32::try_from(count).is_ok() => Ok((stride, all)),
        _ => Err(wrong),
    }
}

impl BufferPool {
    /// `count` buffers of `bytes` each (rounded up to whole blocks), zeroed, in private memory.
    pub fn new(count: usize, bytes: usize, lock: Lock) -> Result<Self, PoolError> {
        let (stride, all) = sizes(count, bytes)?;
        Self::cut(Arena::private(all)?, count, stride, lock)
    }

    /// As [`BufferPool::new`], over a memory file that others may map, only for reading: see [`BufferPool::fd`].
    pub fn shared(count: usize, bytes: usize, lock: Lock) -> Result<Self, PoolError> {
        let (stride, all) = sizes(count, bytes)?;
        // A client that could write would break promise 1.
        Self::cut(Arena::shared(all, SealFlags::FUTURE_WRITE)?, count, stride, lock)
    }

    fn cut(arena: Arena, count: usize, stride: usize, lock: Lock) -> Result<Self, PoolError> {
        if lock != Lock::No {
            arena.prefault()?;
        }
        let mut warning = None;
        if lock == Lock::Wanted
            && let Err(cause) = arena.lock()
        {
            warning = Some(format!(
                "{} of buffers are not locked in memory ({cause}): under memory pressure capture may stall; raise the memory-lock limit (ulimit -l, or LimitMEMLOCK= of systemd)",
                ByteSize((stride * count) as u64)
            ));
        }
        let arena = Arc::new(arena);
        // Given out from the end, so that the first taken is number 0.
        let free = (0..count)
            .rev()
            .map(|index| Buffer { arena: Arc::clone(&arena), index: index as u32, bytes: stride })
            .collect();
        Ok(Self { region: Region { arena, count, stride }, free, warning })
    }

    /// A buffer that nobody uses.
    pub fn take(&mut self) -> Option<Buffer> {
        self.free.pop()
    }

    /// Takes a buffer back; one of another pool is returned.
    pub fn give(&mut self, buffer: Buffer) -> Result<(), Buffer> {
        if Arc::ptr_eq(&buffer.arena, &self.region.arena) {
            self.free.push(buffer);
            Ok(())
        } else {
            Err(buffer)
        }
    }

    /// Buffers that can be taken now.
    pub fn free(&self) -> usize {
        self.free.len()
    }

    /// Buffers in all.
    pub fn count(&self) -> usize {
        self.region.count
    }

    /// Bytes of each buffer.
    pub fn stride(&self) -> usize {
        self.region.stride
    }

    /// The memory of all its buffers, to be registered with disks.
    pub fn region(&self) -> Region {
        self.region.clone()
    }

    /// What a person should know, such as that the memory could not be locked.
    pub fn warning(&self) -> Option<&str> {
        self.warning.as_deref()
    }

    /// The memory file of a shared pool; nobody who gets it can resize it or map it for writing.
    /// Buffer `n` starts at [`Buffer::position`].
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.region.arena.fd()
    }
}

impl Region {
    /// Start and length of every buffer, in the order of their indices. Only addresses: reading or writing there
    /// is up to who owns the buffers.
    pub(crate) fn pieces(&self) -> impl Iterator<Item = (*mut u8, usize)> {
        (0..self.count).map(|index| (self.arena.at(index * self.stride).as_ptr(), self.stride))
    }

    /// How many buffers it holds.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Whether `buffer` was cut from here.
    pub fn holds(&self, buffer: &Buffer) -> bool {
        Arc::ptr_eq(&self.arena, &buffer.arena)
    }
}

impl fmt::Debug for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Region({} × {} bytes)", self.count, self.stride)
    }
}

impl Buffer {
    /// One buffer of at least `bytes` (rounded up to whole blocks), zeroed, in a mapping of its own.
    pub fn aligned(bytes: usize) -> Result<Self, PoolError> {
        let (stride, _) = sizes(1, bytes)?;
        Ok(Self { arena: Arc::new(Arena::private(stride)?), index: 0, bytes: stride })
    }

    /// Its number in its pool, from 0.
    pub fn index(&self) -> usize {
        self.index as usize
    }

    /// Where it starts in its pool's memory (and memory file).
    pub fn position(&self) -> usize {
        self.index as usize * self.bytes
    }

    /// A way to what it has, that stays when the buffer goes.
    pub fn peek(&self) -> Peek {
        Peek { arena: Arc::clone(&self.arena), at: self.position(), bytes: self.bytes }
    }

    /// Its address, for the kernel.
    pub(crate) fn address(&self) -> *mut u8 {
        self.arena.at(self.position()).as_ptr()
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the piece lies inside the arena that `self` keeps, and nobody else writes to it.
        unsafe { std::slice::from_raw_parts(self.address(), self.bytes) }
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and `self` is borrowed alone.
        unsafe { std::slice::from_raw_parts_mut(self.address(), self.bytes) }
    }
}

impl Peek {
    /// Copies what the buffer has now from `offset` on; `false`: not all of that is inside. To be called where nobody writes to the
    /// buffer meanwhile, as while the disk has it: the copy would be a mixture of old and new.
    #[must_use]
    pub fn copy(&self, offset: usize, into: &mut [u8]) -> bool {
        let inside = offset.checked_add(into.len()).is_some_and(|end| end <= self.bytes);
        if inside && !into.is_empty() {
            // SAFETY: all of it lies inside the arena that `self` keeps, which is mapped for reading; volatile, as what other processes
            // write to is read.
            unsafe { copy_out(self.arena.at(self.at + offset).as_ptr(), into) };
        }
        inside
    }
}

impl fmt::Debug for Peek {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Peek({} bytes at {})", self.bytes, self.at)
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer({}, {} bytes)", self.index, self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::io::Errno;

    #[test]
    fn buffers_are_zeroed_aligned_and_apart() {
        let mut pool = BufferPool::new(3, 3 << 20, Lock::Prefault).unwrap();
        let mut taken: Vec<Buffer> = std::iter::from_fn(|| pool.take()).collect();
        assert_eq!((taken.len(), pool.free()), (3, 0));
        assert_eq!(taken[0].address() as usize % (2 << 20), 0);
        for (at, buffer) in taken.iter_mut().enumerate() {
            assert_eq!((buffer.index(), buffer.len(), buffer.position()), (at, 3 << 20, at * (3 << 20)));
            assert!(buffer.iter().all(|b| *b == 0));
            buffer.fill(at as u8 + 1);
        }
        drop(pool);
        for (at, buffer) in taken.iter().enumerate() {
            assert!(buffer.iter().all(|b| *b == at as u8 + 1), "the arena outlives its pool");
        }
    }

    #[test]
    fn what_a_buffer_has_is_seen_wherever_it_goes() {
        let mut pool = BufferPool::new(2, 8192, Lock::No).unwrap();
        let mut second = pool.take().and_then(|_| pool.take()).unwrap();
        let peek = second.peek();
        second[8000..].fill(7);
        let away = std::thread::spawn(move || second).join().unwrap();
        drop(pool);
        let mut seen = [9; 192];
        assert!(peek.copy(8000, &mut seen) && seen == [7; 192]);
        assert!(peek.copy(7999, &mut seen[..2]) && seen[..2] == [0, 7]);
        assert!(peek.copy(8192, &mut []) && !peek.copy(8001, &mut seen) && !peek.copy(usize::MAX, &mut seen));
        drop(away);
        assert!(peek.copy(8191, &mut seen[..1]) && seen[0] == 7, "the memory outlives its buffer");
    }

    #[test]
    fn a_pool_takes_back_only_its_own() {
        let mut pool = BufferPool::new(1, BLOCK, Lock::No).unwrap();
        let own = pool.take().unwrap();
        assert!(pool.region().holds(&own));
        let stranger = pool.give(Buffer::aligned(1).unwrap()).unwrap_err();
        assert_eq!(stranger.len(), BLOCK);
        pool.give(own).unwrap();
        assert_eq!(pool.free(), 1);
    }

    #[test]
    fn nonsense_sizes_are_refused() {
        for (count, bytes) in [(0, 1), (1, 0), (usize::MAX, 4096), (2, usize::MAX), (1 << 40, 4096)] {
            assert!(matches!(BufferPool::new(count, bytes, Lock::No), Err(PoolError::Size { .. })));
        }
    }

    #[test]
    fn a_shared_pool_shows_its_bytes_and_lets_nobody_write_or_resize() {
        let mut pool = BufferPool::shared(2, 8192, Lock::No).unwrap();
        let mut second = pool.take().and_then(|_| pool.take()).unwrap();
        second[..4].copy_from_slice(b"seen");
        let fd = pool.fd().unwrap();
        let mut seen = [0; 4];
        rustix::io::pread(fd, &mut seen, second.position() as u64).unwrap();
        assert_eq!(&seen, b"seen");
        assert_eq!(rustix::io::pwrite(fd, b"x", 0), Err(Errno::PERM));
        assert_eq!(rustix::fs::ftruncate(fd, 0), Err(Errno::PERM));
        assert_eq!(rustix::fs::ftruncate(fd, 1 << 20), Err(Errno::PERM));
        second[..4].copy_from_slice(b"more");
        rustix::io::pread(fd, &mut seen, second.position() as u64).unwrap();
        assert_eq!(&seen, b"more", "we still may write");
    }
}
