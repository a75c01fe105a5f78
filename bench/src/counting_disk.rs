//! Disks with something added: one that counts its reads, and one that is in no hurry to be durable.

use holdfast_media::{Completion, Disk, DiskInfo, Op, Request};
use std::time::Duration;

/// What was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadCounts {
    /// Requests.
    pub count: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Counts reads, and can leave durability out, where a bench only prepares something.
#[derive(Debug)]
pub struct CountingDisk<D> {
    disk: D,
    reads: ReadCounts,
    hasty: bool,
}

impl<D: Disk> CountingDisk<D> {
    /// Passes all on, and counts reads.
    pub fn counting(disk: D) -> Self {
        Self { disk, reads: ReadCounts::default(), hasty: false }
    }

    /// Says that writes are durable when they are only written.
    pub fn hasty(disk: D) -> Self {
        Self { disk, reads: ReadCounts::default(), hasty: true }
    }

    /// The reads until now.
    pub fn reads(&self) -> ReadCounts {
        self.reads
    }
}

impl<D: Disk> Disk for CountingDisk<D> {
    fn info(&self) -> &DiskInfo {
        self.disk.info()
    }

    fn submit(&mut self, mut request: Request) -> Result<(), Request> {
        let read = match &mut request.op {
            Op::Read { len, .. } => Some(*len as u64),
            Op::Write { durable, .. } => {
                *durable &= !self.hasty;
                None
            }
            Op::Flush | Op::Measure => None,
        };
        self.disk.submit(request)?;
        if let Some(len) = read {
            self.reads.count += 1;
            self.reads.bytes += len;
        }
        Ok(())
    }

    fn complete(&mut self, wait: Duration) -> Option<Completion> {
        self.disk.complete(wait)
    }
}
