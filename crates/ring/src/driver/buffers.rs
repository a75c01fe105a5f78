//! Pool of slot buffers, last in first out: the buffer used last may still be in a processor's cache.

use super::Driver;
use holdfast_media::{Buffer, Disk};

impl<D: Disk> Driver<D> {
    /// Slot buffers: all, free now, and the fewest that were ever free.
    pub fn buffers(&self) -> (usize, usize, usize) {
        (self.buffers, self.free.len(), self.fewest_free)
    }

    /// Whether there is a buffer for one more slot. A source that can wait may be told that there is none while there are some: where
    /// nothing is promised, one that was faster than the disk for long has no more of them than the disk has use for.
    pub fn has_buffer(&self, can_wait: bool) -> bool {
        !self.free.is_empty()
            && (!can_wait || self.guarantee().is_some() || self.backpressure.may_open(self.full()))
    }

    /// Buffers that are away; a step may have given back one more than it took.
    fn full(&self) -> usize {
        self.buffers.saturating_sub(self.free.len())
    }

    /// Takes a free slot buffer.
    pub fn take_buffer(&mut self) -> Option<Buffer> {
        self.backpressure.opened(self.full());
        let buffer = self.free.pop();
        self.fewest_free = self.fewest_free.min(self.free.len());
        buffer
    }

    /// Gives a slot buffer back unused.
    pub fn give_buffer(&mut self, buffer: Buffer) {
        self.free.push(buffer);
    }
}
