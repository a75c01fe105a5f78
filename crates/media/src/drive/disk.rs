//! An emulated drive as a [`Disk`], in virtual time: it moves a clock of its own, and completes requests when
//! the model says so. It has no faults but the model's.

use super::{AccessKind, Drive, DriveAccess, DriveModel, Served};
use crate::disk::{Completion, Disk, DiskInfo, Medium, Op, Request};
use crate::{Fault, Image};
use holdfast_base::{BLOCK, Clock, ManualClock, Timestamp};
use std::time::Duration;

/// What becomes of the bytes.
#[derive(Clone, Debug)]
pub enum Payload {
    /// They are kept; places never written read as zeros.
    Kept(Image),
    /// They are dropped, and every read gives zeros: for hours of drive time in little memory.
    Dropped,
}

/// A disk that takes its time, in virtual time.
///
/// A write takes effect when its completion is fetched. [`Disk::complete`] moves the clock to the next completion, but
/// never past `wait`; completions come in the order in which they are done.
#[derive(Debug)]
pub struct EmulatedDisk {
    info: DiskInfo,
    drive: Drive,
    clock: ManualClock,
    payload: Payload,
    flying: Vec<EmulatedRequest>,
}

/// A request under way.
#[derive(Debug)]
struct EmulatedRequest {
    request: Request,
    due: Timestamp,
    fault: Option<Fault>,
}

impl EmulatedDisk {
    /// A drive that is switched on now. An image that is shorter than the drive is made as long.
    pub fn new(model: DriveModel, payload: Payload, seed: u64, clock: ManualClock) -> Self {
        let info = DiskInfo {
            name: format!("emulated drive `{}` (seed {seed})", model.name),
            medium: Medium::Memory,
            bytes: model.bytes - model.bytes % BLOCK as u64,
            block: BLOCK,
            depth: model.depth.max(1),
            direct: true,
        };
        let mut payload = payload;
        if let Payload::Kept(image) = &mut payload {
            image.grow(info.bytes);
        }
        let drive = Drive::starting(model, seed, clock.now());
        let flying = Vec::with_capacity(info.depth);
        Self { info, drive, clock, payload, flying }
    }

    /// What does the work.
    pub fn drive(&self) -> &Drive {
        &self.drive
    }

    /// What it holds; `None` when bytes are dropped.
    pub fn image(&self) -> Option<&Image> {
        match &self.payload {
            Payload::Kept(image) => Some(image),
            Payload::Dropped => None,
        }
    }

    /// When the next request will be done.
    pub fn next_event(&self) -> Option<Timestamp> {
        self.flying.iter().map(|flight| flight.due).min()
    }

    fn finish(&mut self, flight: EmulatedRequest) -> Completion {
        let EmulatedRequest { mut request, fault, .. } = flight;
        let (what, offset, len) = request.op.place();
        let result = self.info.check(&request.op).and_then(|()| match fault {
            Some(fault) => Err(self.info.error(what, offset, len, fault)),
            None => Ok(()),
        });
        if result.is_ok() {
            match (&mut request.op, &mut self.payload) {
                (Op::Write { buffer, len, .. }, Payload::Kept(image)) => image.write(offset, &buffer[..*len]),
                (Op::Read { buffer, len, .. }, Payload::Kept(image)) => {
                    image.read(offset, &mut buffer[..*len]);
                }
                (Op::Read { buffer, len, .. }, Payload::Dropped) => buffer[..*len].fill(0),
                _ => {}
            }
        }
        Completion { tag: request.tag, buffer: request.op.into_buffer(), result }
    }
}

impl Disk for EmulatedDisk {
    fn info(&self) -> &DiskInfo {
        &self.info
    }

    fn submit(&mut self, request: Request) -> Result<(), Request> {
        if self.flying.len() >= self.info.depth {
            return Err(request);
        }
        let (_, offset, len) = request.op.place();
        let kind = match &request.op {
            Op::Write { .. } => Some(AccessKind::Write),
            Op::Read { .. } => Some(AccessKind::Read),
            Op::Flush => Some(AccessKind::Flush),
            Op::Measure => None,
        };
        let now = self.clock.now();
        let Served { done, fault, .. } = match kind.filter(|_| self.info.check(&request.op).is_ok()) {
            Some(kind) => self.drive.serve(DriveAccess { kind, offset, len }, now),
            None => Served { began: now, done: now, fault: None },
        };
        self.flying.push(EmulatedRequest { request, due: done, fault });
        Ok(())
    }

    fn complete(&mut self, wait: Duration) -> Option<Completion> {
        let now = self.clock.now();
        let deadline = now + wait;
        // The first of the earliest: they stand in the order of submission.
        let next = (0..self.flying.len()).min_by_key(|at| self.flying[*at].due);
        let next = next.filter(|at| self.flying[*at].due <= deadline);
        let Some(next) = next else {
            self.clock.set(deadline);
            return None;
        };
        let flight = self.flying.remove(next);
        self.clock.set(flight.due.max(now));
        Some(self.finish(flight))
    }
}
