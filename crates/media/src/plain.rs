//! Plain disk for places where `io_uring` is forbidden: each request is done while it is submitted. Slow, and
//! correct.

use crate::device::{self, Device, DeviceLock, Parts};
use crate::disk::{Completion, Disk, DiskError, DiskInfo, Op, Request};
use std::collections::VecDeque;
use std::fs::File;
use std::time::Duration;

/// A device or file through plain system calls.
#[derive(Debug)]
pub struct PlainDisk {
    file: File,
    _claim: Option<DeviceLock>,
    info: DiskInfo,
    done: VecDeque<Completion>,
    warnings: Vec<String>,
}

impl PlainDisk {
    /// Runs `device` with at most `depth` completions waiting to be fetched.
    pub fn new(device: Device, depth: usize) -> Self {
        let Parts { file, claim, mut info, warnings } = device.parts();
        info.depth = depth.clamp(1, crate::uring::MAX_DEPTH);
        let done = VecDeque::with_capacity(info.depth);
        Self { file, _claim: claim, info, done, warnings }
    }

    /// What a person should know before relying on it.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    pub(crate) fn warn(&mut self, text: String) {
        self.warnings.push(text);
    }

    fn run(&mut self, op: &mut Op) -> Result<(), DiskError> {
        self.info.check(op)?;
        match op {
            Op::Write { offset, buffer, len, durable } => {
                device::write_at(&self.file, &self.info, *offset, &buffer[..*len])?;
                if *durable { device::sync(&self.file, &self.info) } else { Ok(()) }
            }
            Op::Read { offset, buffer, len } => {
                device::read_at(&self.file, &self.info, *offset, &mut buffer[..*len])
            }
            Op::Flush => device::sync(&self.file, &self.info),
            Op::Measure => device::measure(&self.file, &mut self.info),
        }
    }
}

impl Disk for PlainDisk {
    fn info(&self) -> &DiskInfo {
        &self.info
    }

    fn submit(&mut self, mut request: Request) -> Result<(), Request> {
        if self.done.len() >= self.info.depth {
            return Err(request);
        }
        let result = self.run(&mut request.op);
        self.done.push_back(Completion { tag: request.tag, buffer: request.op.into_buffer(), result });
        Ok(())
    }

    fn complete(&mut self, _wait: Duration) -> Option<Completion> {
        self.done.pop_front()
    }
}
