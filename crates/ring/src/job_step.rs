//! Steps of background jobs (purge, distilling): a job requests one step by number and is answered when that
//! step is durable.
//!
//! The sequence of steps is the job's (`purge`, `distil`); here the driver carries single steps out between capture's writes, so that
//! no job ever holds the capture thread.

use crate::driver::{Driver, JOB_STEP};

use crate::job::STEP;
use crate::journal::Entry;

use crate::orders::keeps;
use crate::runway_order::RunwayOrder;
use crate::snapshot::Item;
use crate::state::Ring;
use crate::table::{Bounds, Slot, State};
use holdfast_base::{Age, BLOCK, HoldId, Sequence, SlotNo, StreamId, Timestamp};
use holdfast_format::PurgeRecord;
use holdfast_media::{Buffer, Disk, DiskError, Fault, Op, Request};
use std::time::Duration;

/// How long a job waits for what it cannot have at once.
const PAUSE: Duration = Duration::from_millis(20);

/// What a step asks for.
#[derive(Debug)]
pub enum JobStep {
    /// Record that a purge begins; from here on holds are refused until it ends.
    Begin(PurgeRecord),
    /// Answered when every slot that is open or on its way now is on the medium; the open one is to be sealed.
    Settle,
    /// Say what a slot is.
    Look(SlotNo),
    /// Say which of these would have expired by now but for the holds that are named with them, and are kept by no other: see
    /// [`Due`].
    Due {
        /// The hold for whose sake it is asked, which must be there.
        hold: HoldId,
        /// Their sequences, and the holds.
        originals: Vec<(Sequence, Vec<HoldId>)>,
    },
    /// Keep a slot as it is: data from expiring, a free or named slot from being written.
    Lock(SlotNo),
    /// Undo that.
    Unlock(SlotNo),
    /// Read into the buffer.
    Read {
        /// Where on the lane.
        offset: u64,
        /// How much.
        len: usize,
        /// Into what.
        buffer: Buffer,
    },
    /// Write the start of the buffer, durably; later, if the journal is in use there.
    Write {
        /// Where on the lane.
        offset: u64,
        /// How much.
        len: usize,
        /// From what.
        buffer: Buffer,
    },
    /// Answered a little later: what could not be done may be possible then.
    Pause,
    /// A sequence and a slot buffer for a copy, if one can be spared.
    NewCopy,
    /// Give such a buffer back.
    GiveBack(Buffer),
    /// Write the copy to the next slot of the runway.
    PlaceCopy {
        /// Its image.
        buffer: Buffer,
        /// Bytes of it.
        len: usize,
    },
    /// From here on the copies count, and the originals are free: those that are locked once they are let go, others at once.
    Replace {
        /// The slots of the originals, and their sequences.
        originals: Vec<(SlotNo, Sequence)>,
        /// Where the copies are, in order; none if nothing was kept.
        copies: Vec<PlacedCopy>,
        /// Only if all of them are still [due](JobStep::Due) but for these holds of each, next to each other.
        held_by: Option<Vec<Vec<HoldId>>>,
    },
    /// Copies that were placed and put in nothing's place are not wanted: their slots go back.
    GiveUp,
    /// Begin a new journal extent with a snapshot; answered with where the other is, in which nothing counts any more until
    /// the journal comes back to it.
    SwitchJournal,
    /// Record what the purge has done, and let holds be given again.
    End {
        /// The audit.
        record: PurgeRecord,
        /// Slots that were overwritten.
        slots: u32,
        /// Whether all was done: answered when that is durable, and at once otherwise (the device may not answer).
        complete: bool,
    },
}

/// A copy on the medium.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedCopy {
    /// Its place.
    pub slot: SlotNo,
    /// Its sequence.
    pub sequence: Sequence,
    /// Its age: the original's, that of the youngest if there is something of several.
    pub age: Age,
    /// The sequences of those of which there is something in it.
    pub of: Vec<Sequence>,
    /// What it covers.
    pub bounds: Bounds,
    /// The preambles that it needs: streams and versions.
    pub preambles: Vec<(StreamId, u32)>,
}

/// A slot that would have expired by now but for the holds that are named with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    /// Its place.
    pub slot: SlotNo,
    /// Its sequence.
    pub sequence: Sequence,
    /// Its age.
    pub age: Age,
    /// Whether nothing on the ring is of an age between it and the one that comes before it in the answer.
    pub follows: bool,
    /// Whether another slot of the same age comes behind it.
    pub tied: bool,
}

/// What a slot is, as a job must know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepSlot {
    /// Free, or named to be overwritten: what is in it has expired.
    Expired,
    /// Data.
    Data {
        /// Its sequence.
        sequence: Sequence,
        /// A hold that keeps it.
        held: Option<HoldId>,
    },
    /// Being written, bad, or beyond the end.
    Other,
}

/// The answer to a step.
#[derive(Debug)]
pub enum StepReply {
    /// Done, and durable if it was to change something.
    Done,
    /// What the slot is.
    Slot(StepSlot),
    /// Those that are due, in the order of their ages.
    Due(Vec<Due>),
    /// There is no such hold.
    NoSuchHold,
    /// What was read, or the buffer of a write.
    Buffer(Buffer),
    /// For a copy.
    Copy {
        /// Its sequence.
        sequence: Sequence,
        /// Where to build it.
        buffer: Buffer,
    },
    /// Where the copy went.
    Placed(SlotNo, Buffer),
    /// The journal extent that was given up: offset and bytes.
    Extent(u64, u64),
    /// It cannot be done now; after a pause, perhaps. A buffer that came with the step comes back.
    Later(Option<Buffer>),
    /// The record of this hold has no room for the copies; nothing was done.
    NoRoomIn(HoldId),
    /// The disk said no; the step's buffer comes back.
    Failed(DiskError, Option<Buffer>),
}

/// Work in the background on a ring.
#[derive(Debug, Default)]
pub(crate) struct JobState {
    /// A purge is at work.
    pub(crate) purging: bool,
    /// The open slot is to be sealed.
    pub(crate) settling: Option<Sequence>,
    /// Slots that are kept as they are, data or not.
    pub(crate) locked: Vec<SlotNo>,
    /// Slots that hold copies which no record names yet.
    pub(crate) copying: Vec<SlotNo>,
    /// Slots of originals that are free when the record under way is durable, and the holds that kept them.
    pub(crate) freeing: Vec<SlotNo>,
    pub(crate) thinning: Vec<HoldId>,
    pub(crate) runway_order: RunwayOrder,
    /// Steps whose records were asked for, and the last of them whose record is durable.
    asked: u64,
    recorded: u64,
    pub(crate) switching: bool,
    /// The journal extent that a step is overwriting.
    pub(crate) erasing: Option<u64>,
}

impl Ring {
    /// Whether the open slot should be sealed now: for work in the background, or because the journal has so much of it that
    /// a restart would take too long.
    pub fn wants_seal(&self) -> bool {
        let open = self.open.map(|o| o.sequence);
        let settles = self.jobs.settling.zip(open).is_some_and(|(until, open)| open < until);
        settles || self.is_too_large_for_snapshot()
    }

    fn step_slot(&self, no: SlotNo) -> StepSlot {
        if no.0 >= self.ledger.table.len() {
            return StepSlot::Other;
        }
        let slot = self.ledger.table.get(no);
        match slot.state {
            State::Free | State::Runway => StepSlot::Expired,
            State::Data if slot.held == 0 => StepSlot::Data { sequence: slot.sequence, held: None },
            State::Data => {
                let keeping = self.ledger.holds.iter().find(|h| keeps(h, slot.sequence));
                StepSlot::Data { sequence: slot.sequence, held: keeping.map(|h| h.id) }
            }
            State::Locked | State::Writing | State::Bad => StepSlot::Other,
        }
    }

    fn lock(&mut self, no: SlotNo) -> bool {
        match self.ledger.table.get(no).state {
            State::Data => self.ledger.table.get_mut(no).locked = true,
            State::Free => self.ledger.table.get_mut(no).state = State::Locked,
            State::Runway => {
                if !self.leave_runway(no) {
                    return false;
                }
                self.ledger.table.get_mut(no).state = State::Locked;
            }
            State::Locked | State::Writing | State::Bad => return false,
        }
        self.jobs.locked.push(no);
        true
    }

    /// Lets a slot go; one that was to be overwritten counts as free.
    fn unlock(&mut self, no: SlotNo) {
        self.jobs.locked.retain(|p| *p != no);
        let mut slot = self.ledger.table.get_mut(no);
        slot.locked = false;
        if slot.state == State::Locked {
            *slot = Slot { purged: slot.purged, ..Slot::FREE };
        }
    }

    /// A copy could not be written: its place is a suspect, or goes back to the runway.
    fn give_up_copy(&mut self, slot: SlotNo, fault: Fault) {
        self.jobs.copying.retain(|no| *no != slot);
        self.jobs.runway_order.moved();
        if fault == Fault::Io {
            self.set_aside(slot, Sequence(0), self.ticked);
        } else {
            self.ledger.table.get_mut(slot).state = State::Runway;
            self.runway.push_front(slot);
        }
    }

    /// Nothing is kept back for a job any more, however it ended. A slot that was to be overwritten counts as free.
    fn end_job(&mut self) {
        self.jobs.purging = false;
        self.jobs.settling = None;
        while let Some(no) = self.jobs.locked.last().copied() {
            self.unlock(no);
        }
        self.give_up_copies();
    }

    fn give_up_copies(&mut self) {
        for slot in std::mem::take(&mut self.jobs.copying) {
            self.jobs.runway_order.moved();
            self.ledger.table.get_mut(slot).state = State::Runway;
            self.runway.push_front(slot);
        }
    }

    /// An entry is durable: the step that waited for it can be answered.
    pub(crate) fn note_recorded(&mut self, entry: &Entry) {
        self.jobs.recorded = self.jobs.recorded.max(entry.step.unwrap_or(0));
    }

    pub(crate) fn await_item(&mut self, item: Item) {
        self.jobs.asked += 1;
        self.journal.queue.push_back(Entry { step: Some(self.jobs.asked), ..Entry::new(item) });
    }

    fn await_audit(&mut self, record: PurgeRecord) {
        let at = record.at;
        self.ledger.note_purge(record);
        self.await_item(Item::Purged(at));
    }
}

/// A step under way that takes time.
#[derive(Debug)]
pub(crate) enum PendingStep {
    Settle,
    Recorded,
    Pause {
        until: Timestamp,
    },
    Switch,
    Read,
    Write,
    Copy {
        slot: SlotNo,
    },
    PieceCopy(PieceCopy),
    /// Until no snapshot is being written: one that had a part of the table as it was would tell of neither or of both.
    Replace {
        originals: Vec<(SlotNo, Sequence)>,
        copies: Vec<PlacedCopy>,
        held_by: Option<Vec<Vec<HoldId>>>,
    },
}

/// A copy that is written in pieces, its header last: no read may take longer than a piece does.
#[derive(Debug)]
pub(crate) struct PieceCopy {
    slot: SlotNo,
    offset: u64,
    image: Buffer,
    len: usize,
    /// What is to be written next; the header's place is 0.
    next: Option<usize>,
}

impl PieceCopy {
    /// Puts the next piece into `window`: where it goes, and its length. `None` once all has been written.
    fn piece(&mut self, window: &mut Buffer) -> Option<(u64, usize)> {
        let at = self.next?;
        let (at, len) = if at < self.len { (at, (self.len - at).min(STEP)) } else { (0, BLOCK) };
        window[..len].copy_from_slice(&self.image[at..at + len]);
        self.next = (at > 0).then_some(at + len);
        Some((self.offset + at as u64, len))
    }
}

impl<D: Disk> Driver<D> {
    /// Begins a step; its answer comes through [`Driver::step_reply`]. One step at a time.
    pub fn step(&mut self, step: JobStep, now: Timestamp) {
        let ring = &mut self.ring;
        let reply = match step {
            JobStep::Begin(record) => {
                ring.jobs.purging = true;
                ring.await_audit(record);
                self.step = Some(PendingStep::Recorded);
                None
            }
            JobStep::Settle => {
                ring.jobs.settling = Some(ring.ledger.next);
                self.step = Some(PendingStep::Settle);
                None
            }
            JobStep::Look(no) => Some(StepReply::Slot(ring.step_slot(no))),
            JobStep::Due { hold, originals } => Some(match ring.ledger.hold(hold) {
                Some(_) => StepReply::Due(ring.due(&originals)),
                None => StepReply::NoSuchHold,
            }),
            JobStep::Lock(no) => Some(if ring.lock(no) { StepReply::Done } else { StepReply::Later(None) }),
            JobStep::Unlock(no) => {
                ring.unlock(no);
                self.unsee(no);
                Some(StepReply::Done)
            }
            JobStep::Read { offset, len, buffer } => {
                self.step = Some(PendingStep::Read);
                self.submit_step(Op::Read { offset, buffer, len }, now);
                None
            }
            // The journal came back to it by itself.
            JobStep::Write { offset, buffer, .. }
                if ring.journal.extent_of(offset) == Some(ring.journal.extent().0) =>
            {
                Some(StepReply::Later(Some(buffer)))
            }
            JobStep::Write { offset, len, buffer } => {
                ring.jobs.erasing = ring.journal.extent_of(offset);
                self.step = Some(PendingStep::Write);
                self.submit_step(Op::Write { offset, buffer, len, durable: true }, now);
                None
            }
            JobStep::Pause => {
                self.step = Some(PendingStep::Pause { until: now + PAUSE });
                None
            }
            JobStep::NewCopy => Some(self.new_copy()),
            JobStep::GiveBack(buffer) => {
                self.give_buffer(buffer);
                Some(StepReply::Done)
            }
            JobStep::PlaceCopy { buffer, len } => match ring.take_runway() {
                None => Some(StepReply::Later(Some(buffer))),
                Some(slot) => {
                    let offset = self.ring.ledger.geometry.slot_offset(slot);
                    let buffer = self.stamped(buffer, slot);
                    self.write_copy(slot, offset, buffer, len, now)
                }
            },
            JobStep::Replace { originals, copies, held_by } => {
                self.step = Some(PendingStep::Replace { originals, copies, held_by });
                None
            }
            JobStep::GiveUp => {
                ring.give_up_copies();
                Some(StepReply::Done)
            }
            JobStep::SwitchJournal => {
                ring.jobs.switching = true;
                self.step = Some(PendingStep::Switch);
                None
            }
            JobStep::End { record, complete, .. } => {
                let locked = ring.jobs.locked.clone();
                ring.end_job();
                ring.await_audit(record);
                for no in locked {
                    self.unsee(no);
                }
                self.step = complete.then_some(PendingStep::Recorded);
                (!complete).then_some(StepReply::Done)
            }
        };
        self.step_reply = reply;
        self.advance_step(now);
    }

    /// The answer to the step under way, once it is there.
    pub fn step_reply(&mut self) -> Option<StepReply> {
        self.step_reply.take()
    }

    fn new_copy(&mut self) -> StepReply {
        // Capture keeps one buffer at least beside the open one, and all that are promised.
        let (all, free, _) = self.buffers();
        let promised = self.guarantee().is_some_and(|granted| all <= granted.buffers as usize);
        if promised || (free < 2 && all > 0) {
            return StepReply::Later(None);
        }
        let Some(sequence) = self.ring.take_sequence() else {
            return StepReply::Later(None);
        };
        let buffer = match self.take_buffer() {
            Some(buffer) => buffer,
            // No capture runs on this driver: it may allocate.
            None => match Buffer::aligned(self.superblock().geometry.slot_bytes as usize) {
                Ok(buffer) => buffer,
                Err(_) => return StepReply::Later(None),
            },
        };
        StepReply::Copy { sequence, buffer }
    }

    fn submit_step(&mut self, op: Op, now: Timestamp) {
        self.push_request(Request { tag: JOB_STEP, op }, now);
    }

    /// Writes a copy to its place: whole, or in pieces where a guarantee says how long the lane may be kept.
    fn write_copy(
        &mut self,
        slot: SlotNo,
        offset: u64,
        image: Buffer,
        len: usize,
        now: Timestamp,
    ) -> Option<StepReply> {
        if self.guarantee().is_none() {
            self.step = Some(PendingStep::Copy { slot });
            self.submit_step(Op::Write { offset, buffer: image, len, durable: true }, now);
            return None;
        }
        let Ok(window) = Buffer::aligned(STEP) else {
            self.ring.give_up_copy(slot, Fault::NoSpace);
            return Some(StepReply::Later(Some(image)));
        };
        self.write_on(PieceCopy { slot, offset, image, len, next: Some(BLOCK) }, window, now)
    }

    fn write_on(&mut self, mut copy: PieceCopy, mut window: Buffer, now: Timestamp) -> Option<StepReply> {
        let Some((offset, len)) = copy.piece(&mut window) else {
            return Some(StepReply::Placed(copy.slot, copy.image));
        };
        self.step = Some(PendingStep::PieceCopy(copy));
        self.submit_step(Op::Write { offset, buffer: window, len, durable: true }, now);
        None
    }

    /// A step's request has ended.
    pub(crate) fn step_io(&mut self, buffer: Option<Buffer>, result: Result<(), DiskError>, now: Timestamp) {
        let pending = self.step.take();
        self.ring.jobs.erasing = None;
        let reply = match (pending, result) {
            (Some(PendingStep::PieceCopy(copy)), Err(error)) => {
                self.ring.give_up_copy(copy.slot, error.fault);
                StepReply::Failed(error, Some(copy.image))
            }
            (Some(PendingStep::PieceCopy(copy)), Ok(())) => {
                let written = buffer.and_then(|window| self.write_on(copy, window, now));
                let Some(reply) = written else {
                    return;
                };
                reply
            }
            (Some(PendingStep::Copy { slot }), Err(error)) => {
                self.ring.give_up_copy(slot, error.fault);
                StepReply::Failed(error, buffer)
            }
            (_, Err(error)) => StepReply::Failed(error, buffer),
            (Some(PendingStep::Copy { slot }), Ok(())) => match buffer {
                Some(buffer) => StepReply::Placed(slot, buffer),
                None => StepReply::Done,
            },
            (_, Ok(())) => buffer.map_or(StepReply::Done, StepReply::Buffer),
        };
        self.step_reply = Some(reply);
    }

    /// Looks whether what the step waits for has come.
    pub(crate) fn advance_step(&mut self, now: Timestamp) {
        let between_snapshots = self.ring.journal.snapshot.is_none();
        if let Some(PendingStep::Replace { originals, copies, held_by }) =
            self.step.take_if(|step| between_snapshots && matches!(step, PendingStep::Replace { .. }))
        {
            self.step_reply = self.replace(&originals, copies, held_by);
        }
        let ring = &self.ring;
        let reply = match &self.step {
            Some(PendingStep::Settle) => {
                let until = ring.jobs.settling.unwrap_or_default();
                let open = ring.open.is_some_and(|o| o.sequence < until);
                let moving = ring
                    .unplaced
                    .iter()
                    .map(|s| s.sequence)
                    .chain(ring.flying.iter().map(|f| f.sealed.sequence));
                let doubted = ring.doubted.iter().map(|(sequence, _)| *sequence);
                let moving = moving.chain(doubted);
                let waits = open || moving.min().is_some_and(|lowest| lowest < until) || ring.unscanned > 0;
                (!waits).then_some(StepReply::Done)
            }
            Some(PendingStep::Pause { until }) => (now >= *until).then_some(StepReply::Done),
            Some(PendingStep::Recorded) => (ring.jobs.recorded == ring.jobs.asked).then_some(StepReply::Done),
            Some(PendingStep::Switch) => {
                let whole = !ring.jobs.switching && ring.journal.snapshot.is_none();
                let (offset, bytes) = ring.journal.spare_extent();
                whole.then_some(StepReply::Extent(offset, bytes))
            }
            Some(
                PendingStep::Read
                | PendingStep::Write
                | PendingStep::Copy { .. }
                | PendingStep::PieceCopy(_)
                | PendingStep::Replace { .. },
            )
            | None => None,
        };
        if reply.is_some() {
            self.step = None;
            self.step_reply = reply;
        }
    }
}
