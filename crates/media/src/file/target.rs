//! A write to a file, from beginning to end, in the calling thread. `writer_pool` decides who calls, and
//! when.

use crate::disk::{DiskError, DiskInfo, Fault, Op};
use crate::{device, fault};
use rustix::io::{Errno, IoSlice, ReadWriteFlags};
use std::fs::File;
use std::sync::atomic::{AtomicBool, Ordering};

/// Times a write is continued without having moved on, before it counts as failed.
const STUCK: u32 = 16;

/// Where they write.
pub(super) struct Target {
    pub(super) file: File,
    pub(super) info: DiskInfo,
    /// The file system knows no durable writes: a sync follows the write.
    pub(super) syncs_apart: AtomicBool,
}

impl Target {
    /// Does a write, from beginning to end.
    pub(super) fn run(&self, op: &Op) -> Result<(), DiskError> {
        let Op::Write { offset, buffer, len, durable } = op else { return Ok(()) };
        self.write(*offset, &buffer[..*len], *durable).map_err(|fault| {
            let (what, offset, len) = op.place();
            self.info.error(what, offset, len, fault)
        })
    }

    fn write(&self, offset: u64, bytes: &[u8], durable: bool) -> Result<(), Fault> {
        let (mut done, mut stuck) = (0, 0);
        while done < bytes.len() {
            let apart = self.syncs_apart.load(Ordering::Relaxed);
            let flags = if durable && !apart { ReadWriteFlags::DSYNC } else { ReadWriteFlags::empty() };
            let rest = [IoSlice::new(&bytes[done..])];
            let more = match rustix::io::pwritev2(&self.file, &rest, offset + done as u64, flags) {
                Ok(0) => return Err(Fault::Io),
                Ok(more) if done + more >= bytes.len() => break,
                // Direct I/O goes on at a block's border only.
                Ok(more) => more - more % self.info.block,
                Err(Errno::INTR | Errno::AGAIN) => 0,
                Err(Errno::OPNOTSUPP | Errno::INVAL) if !flags.is_empty() => {
                    self.syncs_apart.store(true, Ordering::Relaxed);
                    continue;
                }
                Err(cause) => return Err(fault::of(cause)),
            };
            done += more;
            stuck = if more > 0 { 0 } else { stuck + 1 };
            if stuck > STUCK {
                return Err(Fault::Io);
            }
        }
        if durable && self.syncs_apart.load(Ordering::Relaxed) {
            device::sync(&self.file, &self.info).map_err(|error| error.fault)?;
        }
        Ok(())
    }
}
