//! Direct access to a lane, read-only: large direct reads, several at once, and slots that only the journal has.

use super::item::PlannedSlot;
use super::read_request::{ReadOutcome, ReadRequest};
use super::recovery_cache::RecoveryCache;
use crate::ReaderError;
use holdfast_base::{BLOCK, Clock, Sequence, SlotNo, SystemClock};
use holdfast_format::{Geometry, Superblock};
use holdfast_media::{Access, Buffer, BufferPool, Device, Disk, Lock, Op, RealDisk, Request};
use holdfast_ring::{Recovered, recover};
use std::collections::VecDeque;
use std::ops::Range;
use std::path::Path;
use std::time::{Duration, Instant};

/// Bytes of one read: one huge page, with which direct reads are about twice as fast as with small ones.
pub(crate) const QUANTUM: usize = 2 << 20;

/// Reads at once: what it takes to keep a fast device busy.
pub(crate) const AT_ONCE: usize = 8;

/// Buffers: some devices, virtual ones above all, answer everything that was asked for at once, and would then have
/// nothing to do until the first piece has been looked through. Not twice as many: before the first read all of them are
/// filled with zeros, which takes a twentieth of the time of a large read already.
pub(crate) const BUFFERS: usize = AT_ONCE * 3 / 2;

/// Small reads that may come on top, for the heads of the next slots.
const SMALL: usize = 24;

/// A lane, as a way to slots.
pub(crate) struct Direct {
    disk: Box<dyn Disk>,
    recovered: Recovered,
    geometry: Geometry,
    pool: BufferPool,
    in_flight: usize,
    /// What the disk had no room for.
    queue: VecDeque<Request>,
    done: VecDeque<(u64, ReadOutcome)>,
}

impl std::fmt::Debug for Direct {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Direct({}, {} reads under way)", self.disk.info().name, self.in_flight)
    }
}

impl Direct {
    /// Opens the lane at `path` for reading, beside whoever owns it, and beside those who have just done the same.
    pub(crate) fn open(path: &Path, beside: &RecoveryCache) -> Result<Self, ReaderError> {
        let device = Device::open(path, Access::Look)?;
        let mut disk: Box<dyn Disk> = Box::new(RealDisk::new(device, &[], BUFFERS + SMALL));
        let recovered = if let Some(known) = beside.known() {
            known
        } else {
            let since = Instant::now();
            let recovered = recover(&mut *disk)?;
            beside.learn(since, &recovered);
            recovered
        };
        Self::new(disk, recovered)
    }

    /// Reads a disk that is open already.
    pub(crate) fn over(mut disk: Box<dyn Disk>) -> Result<Self, ReaderError> {
        let recovered = recover(&mut *disk)?;
        Self::new(disk, recovered)
    }

    fn new(disk: Box<dyn Disk>, recovered: Recovered) -> Result<Self, ReaderError> {
        let pool = BufferPool::new(BUFFERS, QUANTUM, Lock::No)?;
        let slots = recovered.slot_looks().count() as u32;
        let mut geometry = recovered.superblock.geometry.clone();
        if slots > geometry.slots {
            // A growth that has reached the journal and not yet the superblock.
            let lane = recovered.status("").lane_bytes;
            geometry = geometry.grown(lane.0).unwrap_or(geometry);
        }
        let (queue, done) = (VecDeque::new(), VecDeque::new());
        Ok(Self { disk, recovered, geometry, pool, in_flight: 0, queue, done })
    }

    pub(crate) fn recovered(&self) -> &Recovered {
        &self.recovered
    }

    /// What holds and slots are by now: without a recorder nobody else ends the holds whose time has come.
    pub(crate) fn current(&mut self) -> &Recovered {
        self.recovered.end_holds(SystemClock::new().now());
        &self.recovered
    }

    pub(crate) fn recovered_mut(&mut self) -> &mut Recovered {
        &mut self.recovered
    }

    pub(crate) fn superblock(&self) -> &Superblock {
        &self.recovered.superblock
    }

    /// What a person calls the lane.
    pub(crate) fn name(&self) -> &str {
        &self.disk.info().name
    }

    pub(crate) fn pool(&mut self) -> &mut BufferPool {
        &mut self.pool
    }

    /// Whether only the journal has this slot.
    pub(crate) fn is_rebuilt(&self, sequence: Sequence) -> bool {
        self.rebuilt(sequence).is_some()
    }

    fn rebuilt(&self, sequence: Sequence) -> Option<&[u8]> {
        let slot = self.recovered.rebuilt.iter().find(|slot| slot.sealed.sequence == sequence)?;
        Some(&slot.image[..slot.sealed.bytes])
    }

    pub(crate) fn at_hand(&self, planned: &PlannedSlot, range: Range<usize>) -> Option<Vec<u8>> {
        Some(cut(self.rebuilt(planned.sequence)?, range))
    }

    pub(crate) fn submit(&mut self, tag: u64, want: ReadRequest, mut buffer: Buffer) {
        if let Some(image) = self.rebuilt(want.sequence) {
            copy(image, want.offset, &mut buffer[..want.len]);
            self.done.push_back((tag, ReadOutcome::Bytes(buffer)));
            return;
        }
        let Some(slot) = want.slot else {
            self.done.push_back((tag, ReadOutcome::Expired));
            return;
        };
        let offset = self.place(slot, want.offset);
        self.queue.push_back(Request { tag, op: Op::Read { offset, buffer, len: want.len } });
        self.push();
    }

    fn place(&self, slot: SlotNo, offset: usize) -> u64 {
        debug_assert!(offset.is_multiple_of(BLOCK));
        self.geometry.slot_offset(slot) + offset as u64
    }

    /// Hands over what the disk has room for.
    fn push(&mut self) {
        while let Some(request) = self.queue.pop_front() {
            match self.disk.submit(request) {
                Ok(()) => self.in_flight += 1,
                Err(request) => {
                    self.queue.push_front(request);
                    return;
                }
            }
        }
    }

    pub(crate) fn complete(&mut self, wait: bool) -> Option<(u64, ReadOutcome)> {
        loop {
            if let Some(done) = self.done.pop_front() {
                return Some(done);
            }
            self.push();
            if self.in_flight == 0 {
                return None;
            }
            let patience = if wait { Duration::from_secs(1) } else { Duration::ZERO };
            match self.disk.complete(patience) {
                Some(completion) => {
                    self.in_flight -= 1;
                    let got = match (completion.result, completion.buffer) {
                        (Ok(()), Some(buffer)) => ReadOutcome::Bytes(buffer),
                        (Ok(()), None) => ReadOutcome::Unreadable("the disk gave no bytes".to_owned()),
                        (Err(error), buffer) => {
                            let _ = buffer.map(|buffer| self.pool.give(buffer));
                            ReadOutcome::Unreadable(error.to_string())
                        }
                    };
                    self.done.push_back((completion.tag, got));
                }
                None if wait => {}
                None => return None,
            }
        }
    }
}

impl Drop for Direct {
    /// Buffers that the kernel writes to must come back before their memory goes.
    fn drop(&mut self) {
        self.queue.clear();
        while self.in_flight > 0 {
            if self.disk.complete(Duration::from_secs(1)).is_some() {
                self.in_flight -= 1;
            }
        }
    }
}

/// What an image has in a range, and zeros beyond its end.
fn cut(image: &[u8], range: Range<usize>) -> Vec<u8> {
    let there = image.get(range.start..range.end.min(image.len())).unwrap_or_default();
    let mut bytes = Vec::with_capacity(range.len());
    bytes.extend_from_slice(there);
    bytes.resize(range.len(), 0);
    bytes
}

/// Copies what an image has at `offset`, and zeros beyond its end.
fn copy(image: &[u8], offset: usize, into: &mut [u8]) {
    let from = image.get(offset..).unwrap_or_default();
    let len = from.len().min(into.len());
    into[..len].copy_from_slice(&from[..len]);
    into[len..].fill(0);
}
