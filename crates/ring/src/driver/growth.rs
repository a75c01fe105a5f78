//! Growth of a lane: the longer lane is measured and recorded in the superblocks. The ring decides when the
//! growth is durable.

use super::{Driver, MEASURE, SUPERBLOCK};
use crate::event::Event;
use crate::{Order, OrderTag, Outcome, Refusal};
use holdfast_base::{ByteSize, Timestamp};
use holdfast_format::{Geometry, Superblock};
use holdfast_media::{Disk, DiskError, Fault, Op, Request};

impl<D: Disk> Driver<D> {
    /// A lane is made longer by whoever gives the order, before it is given: that may take long, and here nothing may
    /// wait. What is left to do is to see that it is that long by now.
    pub(super) fn grow(&mut self, id: OrderTag, bytes: ByteSize) {
        let possible =
            if self.growing.is_some() { Err(Refusal::Busy("growth")) } else { self.ring.grown(bytes) };
        match possible {
            Ok(_) => {
                self.growing = Some((id, bytes));
                self.queue.push_back(Request { tag: MEASURE, op: Op::Measure });
                self.pump();
            }
            Err(why) => self.replies.push_back((id, Outcome::Refused(why))),
        }
    }

    pub(super) fn measured(&mut self, result: Result<(), DiskError>, now: Timestamp) {
        let Some((id, bytes)) = self.growing.take() else {
            return;
        };
        let info = self.disk.info();
        let why = match result {
            Ok(()) if info.bytes >= bytes.0 => {
                self.ring.step(Event::Order(id, Box::new(Order::Grow(bytes)), None), now, &mut self.actions);
                return;
            }
            Ok(()) => format!("{} has {} only: make it longer first", info.name, ByteSize(info.bytes)),
            Err(error) => error.to_string(),
        };
        self.replies.push_back((id, Outcome::Refused(Refusal::Geometry(why))));
    }

    pub(super) fn write_superblocks(&mut self, geometry: Geometry) {
        self.superblock.version = Superblock::VERSION;
        self.superblock.geometry = geometry;
        self.superblock.generation += 1;
        self.superblocks = Some((self.superblock.encode(), 0));
    }

    /// Whether a copy waits to be written.
    pub(super) fn superblock_waits(&self) -> bool {
        self.superblocks.is_some() && self.superblock_buffer.is_some()
    }

    /// Begins the next copy.
    pub(super) fn begin_superblock(&mut self) {
        let Some((bytes, copy)) = &self.superblocks else {
            return;
        };
        let Some(mut buffer) = self.superblock_buffer.take() else {
            return;
        };
        buffer[..bytes.len()].copy_from_slice(bytes);
        let op = Op::Write { offset: Superblock::OFFSETS[*copy], buffer, len: bytes.len(), durable: true };
        self.queue.push_back(Request { tag: SUPERBLOCK, op });
    }

    pub(super) fn superblock_written(&mut self, result: Result<(), Fault>, now: Timestamp) {
        let Some((_, copy)) = &mut self.superblocks else {
            return;
        };
        *copy += 1;
        if result.is_ok() && *copy < Superblock::OFFSETS.len() {
            return;
        }
        self.superblocks = None;
        self.ring.step(Event::SuperblockWritten(result), now, &mut self.actions);
    }
}
