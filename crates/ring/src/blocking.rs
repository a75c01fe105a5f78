//! Blocking I/O: one request at a time over a disk. Used before capture starts, and by readers without a
//! recorder.

use holdfast_base::BLOCK;
use holdfast_media::{Buffer, Disk, DiskError, Fault, Op, PoolError, Request};
use std::time::Duration;

/// Longest wait for one completion before looking again; only a bound on how long a poll sleeps.
const PATIENCE: Duration = Duration::from_secs(1);

/// A window over a disk that reads and writes one range at a time.
pub struct Blocking<'d> {
    disk: &'d mut dyn Disk,
    buffer: Option<Buffer>,
    size: usize,
}

impl<'d> Blocking<'d> {
    /// A window of `bytes`, rounded up to whole blocks.
    pub fn new(disk: &'d mut dyn Disk, bytes: usize) -> Result<Self, PoolError> {
        let size = bytes.next_multiple_of(BLOCK);
        Ok(Self { disk, buffer: Some(Buffer::aligned(size)?), size })
    }

    /// Bytes that one call can move.
    pub fn size(&self) -> usize {
        self.size
    }

    /// The disk.
    pub fn disk(&mut self) -> &mut dyn Disk {
        self.disk
    }

    fn run(
        &mut self,
        what: &'static str,
        offset: u64,
        len: usize,
        op: impl FnOnce(Buffer) -> Op,
    ) -> Result<(), DiskError> {
        let failed = |disk: &dyn Disk, fault| DiskError {
            disk: disk.info().name.clone(),
            what,
            offset,
            len: len as u64,
            fault,
        };
        let Some(buffer) = self.buffer.take() else {
            return Err(failed(self.disk, Fault::Gone));
        };
        if let Err(request) = self.disk.submit(Request { tag: 0, op: op(buffer) }) {
            if let Op::Read { buffer, .. } | Op::Write { buffer, .. } = request.op {
                self.buffer = Some(buffer);
            }
            return Err(failed(self.disk, Fault::Misplaced));
        }
        loop {
            if let Some(done) = self.disk.complete(PATIENCE) {
                self.buffer = done.buffer;
                return done.result;
            }
        }
    }

    /// Reads `len` bytes (at most [`Blocking::size`]) at `offset`.
    pub fn read(&mut self, offset: u64, len: usize) -> Result<&[u8], DiskError> {
        let len = len.min(self.size);
        self.run("read", offset, len, |buffer| Op::Read { offset, buffer, len })?;
        Ok(self.buffer.as_ref().map_or(&[], |b| &b[..len]))
    }

    /// Writes what `fill` puts into the window, durably: it returns how many bytes.
    pub fn write(&mut self, offset: u64, fill: impl FnOnce(&mut [u8]) -> usize) -> Result<(), DiskError> {
        let len = self.buffer.as_mut().map_or(0, |b| fill(b));
        self.run("write", offset, len, |buffer| Op::Write { offset, buffer, len, durable: true })
    }
}
