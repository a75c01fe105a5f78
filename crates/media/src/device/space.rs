//! Space for the file of a ring: reserved, and written in advance where that was asked for or where nothing else makes sure.

use super::bytes::fill;
use super::{CreateError, Prefill};
use crate::disk::{DiskError, DiskInfo, Fault};
use rustix::fs::{FallocateFlags, StatVfs};
use rustix::io::Errno;
use std::fs::File;
use std::path::Path;

/// Bytes that a file system has free.
pub(super) fn free(stat: &StatVfs) -> u64 {
    // ramfs and some others do not count.
    if stat.f_blocks == 0 { u64::MAX } else { stat.f_bavail.saturating_mul(stat.f_frsize) }
}

/// A file, and what it is to get.
#[derive(Clone, Copy)]
pub(super) struct Space<'a> {
    pub(super) file: &'a File,
    pub(super) path: &'a Path,
    /// Its length.
    pub(super) has: u64,
    /// What it is to be.
    pub(super) bytes: u64,
}

impl Space<'_> {
    /// Why it could not be had.
    pub(super) fn failed(&self, what: &'static str, cause: Errno) -> CreateError {
        let path = self.path.to_owned();
        match cause {
            Errno::NOSPC | Errno::DQUOT => {
                let free = rustix::fs::fstatvfs(self.file).map_or(0, |stat| free(&stat));
                CreateError::NoSpace { path, bytes: self.bytes - self.has, free }
            }
            Errno::FBIG => CreateError::TooLarge { path, bytes: self.bytes },
            cause => CreateError::System { path, what, cause: cause.into() },
        }
    }

    /// Reserves it; false where the file system (ext2, some of a network) knows no reservation: only writing makes sure
    /// there.
    pub(super) fn reserve(&self, flags: FallocateFlags) -> Result<bool, CreateError> {
        match rustix::fs::fallocate(self.file, flags, self.has, self.bytes - self.has) {
            Ok(()) => Ok(true),
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(false),
            Err(cause) => Err(self.failed("reserve its space", cause)),
        }
    }

    /// Writes all of it to `file`, the same in whatever way it is open, if it has to be.
    pub(super) fn write(
        &self,
        file: &File,
        info: &DiskInfo,
        prefill: Prefill<'_>,
        reserved: bool,
    ) -> Result<(), CreateError> {
        let mut silent = |_| {};
        let told: &mut dyn FnMut(u64) = match prefill {
            Prefill::Yes(told) => told,
            Prefill::No if reserved => return Ok(()),
            Prefill::No => &mut silent,
        };
        match fill(file, info, self.has, self.bytes, &mut |end| told(end - self.has)) {
            Err(DiskError { fault: Fault::NoSpace, .. }) => Err(self.failed("write it", Errno::NOSPC)),
            other => Ok(other?),
        }
    }
}
