//! Extension of a ring's file, whoever owns the ring: the owner notices it later, by a measurement.

use super::bytes::length;
use super::space::Space;
use super::{CreateError, Prefill};
use crate::disk::{DiskInfo, Medium};
use holdfast_base::BLOCK;
use rustix::fs::{FallocateFlags, FileType, FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use std::fs::File;
use std::path::Path;

/// Makes the file at `path` at least `bytes` long, its space reserved, so that no write finds the file system full later;
/// a device is left as it is. May take long. When it fails the file has its former length.
///
/// What is written in advance is written from the former end on, and the file is never longer than that has come:
/// whoever owns the ring may take what there is into use at any time.
pub fn extend_file(path: &Path, bytes: u64, prefill: Prefill<'_>) -> Result<(), CreateError> {
    let failed = |what: &'static str| {
        move |cause: Errno| CreateError::System { path: path.to_owned(), what, cause: cause.into() }
    };
    let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOCTTY;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty()).map_err(failed("open it"))?);
    let stat = rustix::fs::fstat(&file).map_err(failed("look at it"))?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Ok(());
    }
    // Two at once would write over what the ring has taken into use between them. It is not the lock of the ring's owner.
    match rustix::fs::fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(Errno::AGAIN | Errno::ACCESS) => return Err(CreateError::Busy { path: path.to_owned() }),
        Err(cause) => return Err(failed("lock it")(cause)),
    }
    let has = length(&file).map_err(failed("measure it"))?;
    if has >= bytes {
        return Ok(());
    }
    let extended = extend(&file, path, has, bytes, prefill);
    if extended.is_err() {
        // What was reserved so far is given back.
        let _ = rustix::fs::ftruncate(&file, has);
    }
    extended
}

fn extend(file: &File, path: &Path, has: u64, bytes: u64, prefill: Prefill<'_>) -> Result<(), CreateError> {
    let flags = match prefill {
        Prefill::Yes(_) => FallocateFlags::KEEP_SIZE,
        Prefill::No => FallocateFlags::empty(),
    };
    let space = Space { file, path, has, bytes };
    let reserved = space.reserve(flags)?;
    let name = path.display().to_string();
    let info = DiskInfo { name, medium: Medium::File, bytes, block: BLOCK, depth: 1, direct: false };
    space.write(file, &info, prefill, reserved)?;
    rustix::fs::fsync(file).map_err(|cause| space.failed("bring it to the medium", cause))
}
