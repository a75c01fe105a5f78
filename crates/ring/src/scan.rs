//! The check behind capture: after a restart every slot of data is looked at, one piece at a time between capture's writes;
//! those that may have been in flight in full, all others by header and summary.

use crate::CHECK_QUANTUM;
use crate::check::{Depth, SlotCheck};
use crate::driver::{Driver, SCAN};
use crate::event::Event;
use crate::table::State;
use holdfast_base::{BLOCK, Sequence, SlotNo, Timestamp};
use holdfast_media::{Buffer, Disk, DiskError, Fault, Op, PoolError, Request};
use std::time::Duration;

/// How long the check behind capture waits when the device did not answer.
const SCAN_PAUSE: Duration = Duration::from_secs(1);

/// How far the check is.
#[derive(Debug)]
pub(crate) struct Scan {
    /// The slot at hand, and the sequence it should have.
    check: Option<SlotCheck>,
    sequence: Sequence,
    /// With the disk while `None`.
    pub(crate) buffer: Option<Buffer>,
    next: u32,
    /// Not before this time: the device did not answer.
    after: Timestamp,
    /// To be checked in full, first.
    suspects: Vec<SlotNo>,
}

impl Scan {
    pub(crate) fn new(suspects: Vec<SlotNo>) -> Result<Self, PoolError> {
        let buffer = Some(Buffer::aligned(CHECK_QUANTUM + 2 * BLOCK)?);
        Ok(Self { check: None, sequence: Sequence(0), buffer, next: 0, after: Timestamp::MIN, suspects })
    }
}

impl<D: Disk> Driver<D> {
    /// Reads on in the check behind capture, one piece at a time.
    pub(crate) fn look_on(&mut self, now: Timestamp) {
        let nothing = self.ring.unscanned == 0 && self.scan.suspects.is_empty();
        if self.ring.is_starting() || now < self.scan.after || (nothing && self.scan.check.is_none()) {
            return;
        }
        let Some(buffer) = self.scan.buffer.take() else {
            return;
        };
        while self.scan.check.is_none() {
            let Some((slot, depth)) = self.next_to_scan() else {
                self.scan.buffer = Some(buffer);
                self.ring.step(Event::AllScanned, now, &mut self.actions);
                self.act(now);
                return;
            };
            let here = self.ring.ledger.table.get(slot);
            if here.state == State::Data && !(here.known && depth == Depth::Head) {
                self.scan.sequence = here.sequence;
                let offset = self.ring.ledger.geometry.slot_offset(slot);
                self.scan.check = Some(SlotCheck::new(slot, offset, depth));
            }
        }
        let Some((offset, len)) = self.scan.check.as_ref().and_then(SlotCheck::next_read) else {
            self.scan.buffer = Some(buffer);
            return;
        };
        let len = len.min(buffer.len());
        self.push_request(Request { tag: SCAN, op: Op::Read { offset, buffer, len } });
    }

    fn next_to_scan(&mut self) -> Option<(SlotNo, Depth)> {
        if let Some(suspect) = self.scan.suspects.pop() {
            return Some((suspect, Depth::Full));
        }
        if self.scan.next >= self.ring.ledger.table.len() {
            return None;
        }
        self.scan.next += 1;
        Some((SlotNo(self.scan.next - 1), Depth::Head))
    }

    pub(crate) fn scan_read(&mut self, result: Result<(), DiskError>, now: Timestamp) {
        let Some(mut check) = self.scan.check.take() else {
            return;
        };
        let Some((_, len)) = check.next_read() else {
            return;
        };
        if result.as_ref().is_err_and(|error| !matches!(error.fault, Fault::Io | Fault::Misplaced)) {
            // That says nothing of the slot: again when the device may answer.
            self.scan.check = Some(check);
            self.scan.after = now + SCAN_PAUSE;
            return;
        }
        let fed = match (&self.scan.buffer, result) {
            (Some(buffer), Ok(())) => check
                .feed(&buffer[..len.min(buffer.len())], &self.superblock.key, self.superblock.ring)
                .is_ok(),
            _ => false,
        };
        if fed && check.next_read().is_some() {
            self.scan.check = Some(check);
            return;
        }
        let found = check.sound().filter(|_| fed);
        let found = found.filter(|(header, ..)| header.sequence == self.scan.sequence);
        let bounds = found.map(|(.., bounds)| bounds);
        let event = Event::Scanned { slot: check.slot(), sequence: self.scan.sequence, bounds };
        self.ring.step(event, now, &mut self.actions);
    }
}
