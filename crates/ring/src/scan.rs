//! The check behind capture: after a restart it verifies every data slot. Slots that may have been in flight
//! come first, one at a time and in full; the others follow by header and summary. It reads one piece at a
//! time while capture writes, and several while capture is idle.

use crate::CHECK_QUANTUM;
use crate::check::{Depth, SlotCheck, most_of_a_head};
use crate::crash_gaps;
use crate::driver::{Driver, SCAN};
use crate::event::Event;
use crate::rebuild::Doubt;
use crate::table::State;
use holdfast_base::{BLOCK, Sequence, SlotNo, Timestamp};
use holdfast_format::Geometry;
use holdfast_media::{Buffer, Disk, DiskError, Fault, Op, PoolError, Request};
use std::time::Duration;

/// How long the check behind capture waits when the device did not answer.
pub(crate) const SCAN_PAUSE: Duration = Duration::from_secs(1);

/// Reads at once while nothing is to be written: a drive can choose the order of so many, and a slot that is sealed then
/// does not wait for more.
pub const SCAN_READS: usize = 4;

/// Slots at hand: one more, so that a read is under way for each while one is being verified.
const LOOKS: usize = SCAN_READS + 1;

/// How far the check is.
#[derive(Debug)]
pub(crate) struct Scan {
    /// The first one's buffer takes a quantum, the others' any slot's head.
    looks: [SlotScan; LOOKS],
    /// Reads with the disk.
    in_flight: usize,
    /// Reads that may still be asked for before capture has its turn again, however fast the disk is.
    turn: usize,
    next: u32,
    /// Not before this time: the device did not answer.
    after: Timestamp,
    /// To be checked in full, first.
    suspects: Vec<SlotNo>,
}

/// One slot at a time, piece by piece.
#[derive(Debug)]
struct SlotScan {
    /// The slot at hand, and the sequence it should have.
    check: Option<SlotCheck>,
    sequence: Sequence,
    /// With the disk, or being verified, while `None`.
    buffer: Option<Buffer>,
}

impl SlotScan {
    fn new(bytes: usize) -> Result<Self, PoolError> {
        Ok(Self { check: None, sequence: Sequence(0), buffer: Some(Buffer::aligned(bytes)?) })
    }
}

impl Scan {
    pub(crate) fn new(suspects: Vec<SlotNo>, geometry: &Geometry) -> Result<Self, PoolError> {
        let head = || SlotScan::new(most_of_a_head(geometry));
        let looks = [SlotScan::new(CHECK_QUANTUM + 2 * BLOCK)?, head()?, head()?, head()?, head()?];
        Ok(Self { looks, in_flight: 0, turn: 0, next: 0, after: Timestamp::MIN, suspects })
    }

    /// The large buffer, for whoever reads once all has been checked; it is to be given back.
    pub(crate) fn lend(&mut self) -> Option<Buffer> {
        self.looks[0].buffer.take()
    }

    pub(crate) fn give_back(&mut self, buffer: Option<Buffer>) {
        self.looks[0].buffer = buffer;
    }

    /// Whether no slot is being looked at.
    fn is_idle(&self) -> bool {
        self.looks.iter().all(|look| look.check.is_none())
    }

    /// Whether one is at work that reads large pieces.
    fn is_thorough(&self) -> bool {
        self.looks.iter().filter_map(|look| look.check.as_ref()).any(|check| check.depth() == Depth::Full)
    }
}

impl<D: Disk> Driver<D> {
    /// Reads on in the check behind capture, a piece of each slot at hand.
    pub(crate) fn look_on(&mut self, now: Timestamp) {
        let nothing = self.ring.unscanned == 0 && self.scan.suspects.is_empty();
        let too_early = self.ring.is_starting() && !self.ring.start_waits_for_doubts();
        if too_early || self.needs_no_check() || now < self.scan.after || (nothing && self.scan.is_idle()) {
            return;
        }
        let ring = &self.ring;
        self.doubts.retain(|doubt| ring.is_doubted(doubt.rebuilt.sealed.sequence));
        self.scan.turn = LOOKS;
        self.look_at_more(now);
        if self.scan.is_idle() {
            self.ring.step(Event::AllScanned, now, &mut self.actions);
            self.act(now);
        }
    }

    /// As many reads as there may be.
    fn look_at_more(&mut self, now: Timestamp) {
        let most = if now < self.scan.after || self.needs_no_check() {
            0
        } else if self.writes_nothing() {
            SCAN_READS
        } else {
            1
        };
        // What was begun goes first: it must not wait for a time without writes.
        for begun in [true, false] {
            for number in 0..LOOKS {
                let may = self.scan.in_flight < most && self.scan.turn > 0;
                if may && self.scan.looks[number].check.is_some() == begun {
                    self.look(number, now);
                }
            }
        }
    }

    /// Asks for the next piece of a slot, of another one if none is at hand.
    fn look(&mut self, number: usize, now: Timestamp) {
        if self.scan.looks[number].buffer.is_none() || !self.has_slot(number) {
            return;
        }
        let look = &mut self.scan.looks[number];
        let Some((offset, len)) = look.check.as_ref().and_then(SlotCheck::next_read) else {
            return;
        };
        let Some(buffer) = look.buffer.take() else {
            return;
        };
        let len = len.min(buffer.len());
        self.scan.in_flight += 1;
        self.scan.turn -= 1;
        self.push_request(Request { tag: SCAN | number as u64, op: Op::Read { offset, buffer, len } }, now);
    }

    /// Whether a look has a slot at hand, which it is given if there is one for it.
    fn has_slot(&mut self, number: usize) -> bool {
        while self.scan.looks[number].check.is_none() {
            // Suspects take the large buffer, and the disk's time for themselves.
            if self.scan.is_thorough() || (number > 0 && !self.scan.suspects.is_empty()) {
                return false;
            }
            let Some((slot, depth)) = self.next_to_scan() else {
                return false;
            };
            let here = self.ring.ledger.table.get(slot);
            if here.state == State::Data && !(here.known && depth == Depth::Head) {
                let look = &mut self.scan.looks[number];
                look.sequence = here.sequence;
                let offset = self.ring.ledger.geometry.slot_offset(slot);
                look.check = Some(SlotCheck::new(slot, offset, depth));
            }
        }
        true
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

    /// A slot has been looked at: where the journal has a part of it and it is torn, that takes its place.
    fn settle_doubt(&mut self, slot: SlotNo, sequence: Sequence, whole: bool, now: Timestamp) {
        let is = |doubt: &Doubt| doubt.slot == slot && doubt.rebuilt.sealed.sequence == sequence;
        let Some(at) = self.doubts.iter().position(is) else {
            return;
        };
        let Doubt { rebuilt, spans, .. } = self.doubts.swap_remove(at);
        let torn = !whole && self.ring.is_doubted(sequence);
        if torn {
            self.crash_gaps.extend(crash_gaps::rest(&spans, &rebuilt.spans));
        }
        let instead = torn.then_some(rebuilt.sealed);
        if torn {
            self.take_rebuilt(rebuilt, now);
        }
        self.ring.settle_doubt((sequence, slot), instead, &mut self.actions);
    }

    /// Takes what look `number` asked for.
    pub(crate) fn scan_read(
        &mut self,
        number: usize,
        buffer: Option<Buffer>,
        result: Result<(), DiskError>,
        now: Timestamp,
    ) {
        self.scan.in_flight -= 1;
        if result.as_ref().is_err_and(|error| !matches!(error.fault, Fault::Io | Fault::Misplaced)) {
            // That says nothing of the slot: again when the device may answer.
            self.scan.after = now + SCAN_PAUSE;
            self.scan.looks[number].buffer = buffer;
            return;
        }
        // The disk need not wait until this one is verified.
        self.look_at_more(now);
        let look = &mut self.scan.looks[number];
        let read = look.check.as_ref().and_then(SlotCheck::next_read);
        let fed = match (&mut look.check, read, &buffer, result) {
            (Some(check), Some((_, len)), Some(buffer), Ok(())) => check
                .feed(&buffer[..len.min(buffer.len())], &self.superblock.key, self.superblock.ring)
                .is_ok(),
            _ => false,
        };
        let sequence = look.sequence;
        let ended = look.check.take_if(|check| !fed || check.next_read().is_none());
        if let Some(check) = ended {
            let found = check.sound().filter(|(header, ..)| fed && header.sequence == sequence);
            let bounds = found.map(|(.., bounds)| bounds);
            let slot = check.slot();
            if let (Some((offset, len)), Some(bytes), Some(_)) = (read, &buffer, bounds) {
                self.see_head((slot, sequence), offset, &bytes[..len.min(bytes.len())]);
            }
            self.scan.looks[number].buffer = buffer;
            self.settle_doubt(slot, sequence, bounds.is_some(), now);
            self.ring.step(Event::Scanned { slot, sequence, bounds }, now, &mut self.actions);
        } else {
            look.buffer = buffer;
        }
    }
}
