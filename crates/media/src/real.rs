//! The disk of a real device or file, by the best means that the system allows.

use crate::device::Device;
use crate::disk::{Completion, Disk, DiskInfo, Request};
use crate::file::FileDisk;
use crate::plain::PlainDisk;
use crate::priority::LaneOptions;
use crate::uring::UringDisk;
use crate::{InflightLimiter, Region};
use std::os::fd::BorrowedFd;
use std::time::Duration;

/// A device or file: under `io_uring`, or by plain calls where that is forbidden.
#[derive(Debug)]
pub enum RealDisk {
    /// Devices, and whatever is only looked at.
    Uring(Box<UringDisk>),
    /// Files that are written.
    File(Box<FileDisk>),
    /// The fallback.
    Plain(PlainDisk),
}

impl RealDisk {
    /// Runs `device` with at most `depth` requests in flight; buffers of `regions` are registered with the kernel
    /// where it lets us.
    pub fn new(device: Device, regions: &[Region], depth: usize) -> Self {
        match UringDisk::new(device, regions, depth) {
            Ok(disk) => match FileDisk::over(Box::new(disk)) {
                Ok(disk) => Self::File(Box::new(disk)),
                Err(disk) => Self::Uring(disk),
            },
            Err((device, cause)) => {
                let mut disk = PlainDisk::new(device, depth);
                let text = format!(
                    "{}: io_uring cannot be used ({cause}): requests are done one after the other, and no rate is guaranteed; see kernel.io_uring_disabled and the container's seccomp profile",
                    disk.info().name
                );
                disk.warn(text);
                Self::Plain(disk)
            }
        }
    }

    /// What a person should know before relying on it.
    pub fn warnings(&self) -> &[String] {
        match self {
            Self::Uring(disk) => disk.warnings(),
            Self::File(disk) => disk.warnings(),
            Self::Plain(disk) => disk.warnings(),
        }
    }

    /// Of the requests that take turns, as many as `turns` says are with the kernel at once; those beyond them wait here,
    /// and all others pass them. To be said while nothing is in flight. Without `io_uring` there is one at a time anyway.
    pub fn limit_inflight(&mut self, limiter: InflightLimiter) {
        match self {
            Self::Uring(disk) => disk.limit_inflight(limiter),
            Self::File(disk) => disk.limit_inflight(limiter),
            Self::Plain(_) => {}
        }
    }

    /// Takes note of how the thread runs that it belongs to: so do those that it needs besides.
    pub(crate) fn begin(&mut self, options: LaneOptions) {
        if let Self::File(disk) = self {
            disk.begin(options);
        }
    }

    /// Readable when a completion is there. `None` where requests complete while they are submitted.
    pub fn ready(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::Uring(disk) => Some(disk.ready()),
            Self::File(disk) => Some(disk.ready()),
            Self::Plain(_) => None,
        }
    }
}

impl Disk for RealDisk {
    fn info(&self) -> &DiskInfo {
        match self {
            Self::Uring(disk) => disk.info(),
            Self::File(disk) => disk.info(),
            Self::Plain(disk) => disk.info(),
        }
    }

    fn submit(&mut self, request: Request) -> Result<(), Request> {
        match self {
            Self::Uring(disk) => disk.submit(request),
            Self::File(disk) => disk.submit(request),
            Self::Plain(disk) => disk.submit(request),
        }
    }

    fn complete(&mut self, wait: Duration) -> Option<Completion> {
        match self {
            Self::Uring(disk) => disk.complete(wait),
            Self::File(disk) => disk.complete(wait),
            Self::Plain(disk) => disk.complete(wait),
        }
    }
}
