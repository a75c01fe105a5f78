//! Plain system calls that move bytes and measure files: for all that is not capture.

use crate::disk::{DiskError, DiskInfo, Fault};
use crate::{Buffer, fault};
use holdfast_base::BLOCK;
use rustix::fs::SeekFrom;
use rustix::io::Errno;
use std::fs::File;

/// Length in whole blocks. Seeking to the end measures files and block devices alike.
pub(super) fn length(file: &File) -> Result<u64, Errno> {
    let bytes = rustix::fs::seek(file, SeekFrom::End(0))?;
    Ok(bytes - bytes % BLOCK as u64)
}

/// Takes note of how long the medium is by now. It may have become longer; a shorter one shows by its errors.
pub(crate) fn measure(file: &File, info: &mut DiskInfo) -> Result<(), DiskError> {
    let now = length(file).map_err(|cause| info.error("measurement", 0, 0, fault::of(cause)))?;
    info.bytes = info.bytes.max(now);
    Ok(())
}

/// Writes zeros from `start` to `end`, and tells how far it is.
pub(super) fn fill(
    file: &File,
    info: &DiskInfo,
    start: u64,
    end: u64,
    progress: &mut dyn FnMut(u64),
) -> Result<(), DiskError> {
    const PIECE: u64 = 8 << 20;
    let room = DiskInfo { bytes: end, ..info.clone() };
    let zeros =
        Buffer::aligned(PIECE as usize).map_err(|_| info.error("write", start, PIECE, Fault::Os(12)))?;
    let mut at = start;
    while at < end {
        let len = PIECE.min(end - at);
        write_at(file, &room, at, &zeros[..len as usize])?;
        at += len;
        progress(at);
    }
    Ok(())
}

pub(crate) fn read_at(file: &File, info: &DiskInfo, offset: u64, target: &mut [u8]) -> Result<(), DiskError> {
    let mut done = 0;
    while done < target.len() {
        match rustix::io::pread(file, &mut target[done..], offset + done as u64) {
            Ok(0) => return Err(info.error("read", offset, target.len() as u64, Fault::Io)),
            Ok(more) => done += more,
            Err(Errno::INTR) => {}
            Err(cause) => return Err(info.error("read", offset, target.len() as u64, fault::of(cause))),
        }
    }
    Ok(())
}

pub(crate) fn write_at(file: &File, info: &DiskInfo, offset: u64, source: &[u8]) -> Result<(), DiskError> {
    let mut done = 0;
    while done < source.len() {
        match rustix::io::pwrite(file, &source[done..], offset + done as u64) {
            Ok(0) => return Err(info.error("write", offset, source.len() as u64, Fault::Io)),
            Ok(more) => done += more,
            Err(Errno::INTR) => {}
            Err(cause) => return Err(info.error("write", offset, source.len() as u64, fault::of(cause))),
        }
    }
    Ok(())
}

pub(crate) fn sync(file: &File, info: &DiskInfo) -> Result<(), DiskError> {
    loop {
        match rustix::fs::fdatasync(file) {
            Ok(()) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(cause) => return Err(info.error("flush", 0, 0, fault::of(cause))),
        }
    }
}
