//! Memory that the kernel shares with a packet socket: blocks that change owner by their status word.

use super::PacketSocket;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::io;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicU32, Ordering};

/// Where a block's status word stands (`tpacket_block_desc.hdr.bh1.block_status`).
const STATUS: usize = 8;

/// The mapped ring of one socket, and the block that is next.
#[derive(Debug)]
pub(in super::super) struct Ring {
    base: NonNull<u8>,
    block_bytes: usize,
    blocks: usize,
    current: usize,
}

// SAFETY: the mapping belongs to this value alone, and the kernel does not care which thread touches it.
unsafe impl Send for Ring {}

impl Ring {
    /// Maps the ring that `PACKET_RX_RING` has made with these measures, which must be the same.
    pub(in super::super) fn map(
        socket: &PacketSocket,
        block_bytes: usize,
        blocks: usize,
    ) -> io::Result<Self> {
        let len = block_bytes.checked_mul(blocks).ok_or(io::ErrorKind::InvalidInput)?;
        // SAFETY: a new mapping at a place of the kernel's choice; the kernel refuses a length that is not the ring's.
        let base = unsafe {
            mmap(null_mut(), len, ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED, socket, 0)?
        };
        let base = NonNull::new(base.cast::<u8>()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { base, block_bytes, blocks, current: 0 })
    }

    fn status_of(&self, block: usize) -> &AtomicU32 {
        let block = block % self.blocks;
        // SAFETY: `block` is below `blocks`, so the word is inside the mapping, and it is aligned since blocks start
        // at pages. It lives as long as `self`, and both sides access it as a whole word.
        unsafe { AtomicU32::from_ptr(self.base.add(block * self.block_bytes + STATUS).as_ptr().cast()) }
    }

    fn status(&self) -> &AtomicU32 {
        self.status_of(self.current)
    }

    /// Blocks that are ours, and all of them.
    pub(in super::super) fn waiting(&self) -> (usize, usize) {
        let ours = |block: &usize| self.status_of(*block).load(Ordering::Acquire) & libc::TP_STATUS_USER != 0;
        ((self.current..self.current + self.blocks).take_while(ours).count(), self.blocks)
    }

    /// Whether the next block is ours.
    pub(in super::super) fn ready(&self) -> bool {
        self.status().load(Ordering::Acquire) & libc::TP_STATUS_USER != 0
    }

    /// The next block, if it is ours.
    pub(in super::super) fn block(&mut self) -> Option<&mut [u8]> {
        if !self.ready() {
            return None;
        }
        // SAFETY: the block is inside the mapping and initialised. Its status says that the kernel is done with it, and
        // the kernel writes to it again only after `release`, which needs `&mut self` and thus the end of this borrow.
        Some(unsafe {
            std::slice::from_raw_parts_mut(
                self.base.add(self.current * self.block_bytes).as_ptr(),
                self.block_bytes,
            )
        })
    }

    /// Gives the next block back to the kernel and goes on to the one behind it; nothing if it is not ours.
    pub(in super::super) fn release(&mut self) {
        if !self.ready() {
            return;
        }
        self.status().store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.current = (self.current + 1) % self.blocks;
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping was made in `map` with this length, and no borrow of it is left.
        // What could be done about a failure? The mapping then stays until the process ends.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.block_bytes * self.blocks) };
    }
}
