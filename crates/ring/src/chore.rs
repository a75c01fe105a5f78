//! The small steps of work in the background (a purge, a distilling): each is asked for by its number and answered when it is
//! durable.
//!
//! The sequence of steps is the job's (`purge`, `distil`); here the driver carries single steps out between capture's writes, so that
//! no job ever holds the capture thread.

use crate::driver::{CHORE, Driver};

use crate::job::STEP;
use crate::journal::Entry;

use crate::orders::keeps;
use crate::snapshot::Item;
use crate::state::Ring;
use crate::table::{Bounds, Slot, State};
use crate::turns::Turns;
use holdfast_base::{Age, BLOCK, HoldId, Sequence, SlotNo, StreamId, Timestamp};
use holdfast_format::PurgeRecord;
use holdfast_media::{Buffer, Disk, DiskError, Fault, Op, Request};
use std::time::Duration;

/// How long a job waits for what it cannot have at once.
const PAUSE: Duration = Duration::from_millis(20);

/// What a step asks for.
#[derive(Debug)]
pub enum Chore {
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
    Pin(SlotNo),
    /// Undo that.
    Unpin(SlotNo),
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
    /// From here on the copies count, and the originals are free: those that are pinned once they are let go, others at once.
    Replace {
        /// The slots of the originals, and their sequences.
        originals: Vec<(SlotNo, Sequence)>,
        /// Where the copies are, in order; none if nothing was kept.
        copies: Vec<PlacedCopy>,
        /// Only if all of them are still [due](Chore::Due) but for these holds of each, next to each other.
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
pub enum ChoreSlot {
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
pub enum ChoreReply {
    /// Done, and durable if it was to change something.
    Done,
    /// What the slot is.
    Slot(ChoreSlot),
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
pub(crate) struct Chores {
    /// A purge is at work.
    pub(crate) purging: bool,
    /// The open slot is to be sealed.
    pub(crate) settling: Option<Sequence>,
    /// Slots that are kept as they are, data or not.
    pub(crate) pinned: Vec<SlotNo>,
    /// Slots that hold copies which no record names yet.
    pub(crate) copying: Vec<SlotNo>,
    /// Slots of originals that are free when the record under way is durable, and the holds that kept them.
    pub(crate) freeing: Vec<SlotNo>,
    pub(crate) thinning: Vec<HoldId>,
    pub(crate) turns: Turns,
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
        let settles = self.chores.settling.zip(open).is_some_and(|(until, open)| open < until);
        settles || self.is_too_large_for_snapshot()
    }

    fn chore_slot(&self, no: SlotNo) -> ChoreSlot {
        if no.0 >= self.ledger.table.len() {
            return ChoreSlot::Other;
        }
        let slot = self.ledger.table.get(no);
        match slot.state {
            State::Free | State::Runway => ChoreSlot::Expired,
            State::Data if slot.held == 0 => ChoreSlot::Data { sequence: slot.sequence, held: None },
            State::Data => {
                let keeping = self.ledger.holds.iter().find(|h| keeps(h, slot.sequence));
                ChoreSlot::Data { sequence: slot.sequence, held: keeping.map(|h| h.id) }
            }
            State::Pinned | State::Writing | State::Bad => ChoreSlot::Other,
        }
    }

    fn pin(&mut self, no: SlotNo) -> bool {
        match self.ledger.table.get(no).state {
            State::Data => self.ledger.table.get_mut(no).pinned = true,
            State::Free => self.ledger.table.get_mut(no).state = State::Pinned,
            State::Runway => {
                if !self.leave_runway(no) {
                    return false;
                }
                self.ledger.table.get_mut(no).state = State::Pinned;
            }
            State::Pinned | State::Writing | State::Bad => return false,
        }
        self.chores.pinned.push(no);
        true
    }

    /// Lets a slot go; one that was to be overwritten counts as free.
    fn unpin(&mut self, no: SlotNo) {
        self.chores.pinned.retain(|p| *p != no);
        let mut slot = self.ledger.table.get_mut(no);
        slot.pinned = false;
        if slot.state == State::Pinned {
            *slot = Slot { purged: slot.purged, ..Slot::FREE };
        }
    }

    /// A copy could not be written: its place is a suspect, or goes back to the runway.
    fn give_up_copy(&mut self, slot: SlotNo, fault: Fault) {
        self.chores.copying.retain(|no| *no != slot);
        self.chores.turns.moved();
        if fault == Fault::Io {
            self.suspect(slot, Sequence(0), self.ticked);
        } else {
            self.ledger.table.get_mut(slot).state = State::Runway;
            self.runway.push_front(slot);
        }
    }

    /// Nothing is kept back for a job any more, however it ended. A slot that was to be overwritten counts as free.
    fn end_job(&mut self) {
        self.chores.purging = false;
        self.chores.settling = None;
        while let Some(no) = self.chores.pinned.last().copied() {
            self.unpin(no);
        }
        self.give_up_copies();
    }

    fn give_up_copies(&mut self) {
        for slot in std::mem::take(&mut self.chores.copying) {
            self.chores.turns.moved();
            self.ledger.table.get_mut(slot).state = State::Runway;
            self.runway.push_front(slot);
        }
    }

    /// An entry is durable: the step that waited for it can be answered.
    pub(crate) fn note_recorded(&mut self, entry: &Entry) {
        self.chores.recorded = self.chores.recorded.max(entry.step.unwrap_or(0));
    }

    pub(crate) fn await_item(&mut self, item: Item) {
        self.chores.asked += 1;
        self.journal.queue.push_back(Entry { step: Some(self.chores.asked), ..Entry::new(item) });
    }

    fn await_audit(&mut self, record: PurgeRecord) {
        let at = record.at;
        self.ledger.note_purge(record);
        self.await_item(Item::Purged(at));
    }
}

/// A step under way that takes time.
#[derive(Debug)]
pub(crate) enum Pending {
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
    CutCopy(Cut),
    /// Until no snapshot is being written: one that had a part of the table as it was would tell of neither or of both.
    Replace {
        originals: Vec<(SlotNo, Sequence)>,
        copies: Vec<PlacedCopy>,
        held_by: Option<Vec<Vec<HoldId>>>,
    },
}

/// A copy that is written in pieces, its header last: no read may take longer than a piece does.
#[derive(Debug)]
pub(crate) struct Cut {
    slot: SlotNo,
    offset: u64,
    image: Buffer,
    len: usize,
    /// What is to be written next; the header's place is 0.
    next: Option<usize>,
}

impl Cut {
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
    /// Begins a step; its answer comes through [`Driver::chore_reply`]. One step at a time.
    pub fn chore(&mut self, chore: Chore, now: Timestamp) {
        let ring = &mut self.ring;
        let reply = match chore {
            Chore::Begin(record) => {
                ring.chores.purging = true;
                ring.await_audit(record);
                self.chore = Some(Pending::Recorded);
                None
            }
            Chore::Settle => {
                ring.chores.settling = Some(ring.ledger.next);
                self.chore = Some(Pending::Settle);
                None
            }
            Chore::Look(no) => Some(ChoreReply::Slot(ring.chore_slot(no))),
            Chore::Due { hold, originals } => Some(match ring.ledger.hold(hold) {
                Some(_) => ChoreReply::Due(ring.due(&originals)),
                None => ChoreReply::NoSuchHold,
            }),
            Chore::Pin(no) => Some(if ring.pin(no) { ChoreReply::Done } else { ChoreReply::Later(None) }),
            Chore::Unpin(no) => {
                ring.unpin(no);
                self.unsee(no);
                Some(ChoreReply::Done)
            }
            Chore::Read { offset, len, buffer } => {
                self.chore = Some(Pending::Read);
                self.submit_chore(Op::Read { offset, buffer, len }, now);
                None
            }
            // The journal came back to it by itself.
            Chore::Write { offset, buffer, .. }
                if ring.journal.extent_of(offset) == Some(ring.journal.extent().0) =>
            {
                Some(ChoreReply::Later(Some(buffer)))
            }
            Chore::Write { offset, len, buffer } => {
                ring.chores.erasing = ring.journal.extent_of(offset);
                self.chore = Some(Pending::Write);
                self.submit_chore(Op::Write { offset, buffer, len, durable: true }, now);
                None
            }
            Chore::Pause => {
                self.chore = Some(Pending::Pause { until: now + PAUSE });
                None
            }
            Chore::NewCopy => Some(self.new_copy()),
            Chore::GiveBack(buffer) => {
                self.give_buffer(buffer);
                Some(ChoreReply::Done)
            }
            Chore::PlaceCopy { buffer, len } => match ring.take_runway() {
                None => Some(ChoreReply::Later(Some(buffer))),
                Some(slot) => {
                    let offset = self.ring.ledger.geometry.slot_offset(slot);
                    let buffer = self.stamped(buffer, slot);
                    self.write_copy(slot, offset, buffer, len, now)
                }
            },
            Chore::Replace { originals, copies, held_by } => {
                self.chore = Some(Pending::Replace { originals, copies, held_by });
                None
            }
            Chore::GiveUp => {
                ring.give_up_copies();
                Some(ChoreReply::Done)
            }
            Chore::SwitchJournal => {
                ring.chores.switching = true;
                self.chore = Some(Pending::Switch);
                None
            }
            Chore::End { record, complete } => {
                let pinned = ring.chores.pinned.clone();
                ring.end_job();
                ring.await_audit(record);
                for no in pinned {
                    self.unsee(no);
                }
                self.chore = complete.then_some(Pending::Recorded);
                (!complete).then_some(ChoreReply::Done)
            }
        };
        self.chore_reply = reply;
        self.advance_chore(now);
    }

    /// The answer to the step under way, once it is there.
    pub fn chore_reply(&mut self) -> Option<ChoreReply> {
        self.chore_reply.take()
    }

    fn new_copy(&mut self) -> ChoreReply {
        // Capture keeps one buffer at least beside the open one, and all that are promised.
        let (all, free, _) = self.buffers();
        let promised = self.guarantee().is_some_and(|granted| all <= granted.buffers as usize);
        if promised || (free < 2 && all > 0) {
            return ChoreReply::Later(None);
        }
        let Some(sequence) = self.ring.take_sequence() else {
            return ChoreReply::Later(None);
        };
        let buffer = match self.take_buffer() {
            Some(buffer) => buffer,
            // No capture runs on this driver: it may allocate.
            None => match Buffer::aligned(self.superblock().geometry.slot_bytes as usize) {
                Ok(buffer) => buffer,
                Err(_) => return ChoreReply::Later(None),
            },
        };
        ChoreReply::Copy { sequence, buffer }
    }

    fn submit_chore(&mut self, op: Op, now: Timestamp) {
        self.push_request(Request { tag: CHORE, op }, now);
    }

    /// Writes a copy to its place: whole, or in pieces where a guarantee says how long the lane may be kept.
    fn write_copy(
        &mut self,
        slot: SlotNo,
        offset: u64,
        image: Buffer,
        len: usize,
        now: Timestamp,
    ) -> Option<ChoreReply> {
        if self.guarantee().is_none() {
            self.chore = Some(Pending::Copy { slot });
            self.submit_chore(Op::Write { offset, buffer: image, len, durable: true }, now);
            return None;
        }
        let Ok(window) = Buffer::aligned(STEP) else {
            self.ring.give_up_copy(slot, Fault::NoSpace);
            return Some(ChoreReply::Later(Some(image)));
        };
        self.write_on(Cut { slot, offset, image, len, next: Some(BLOCK) }, window, now)
    }

    fn write_on(&mut self, mut cut: Cut, mut window: Buffer, now: Timestamp) -> Option<ChoreReply> {
        let Some((offset, len)) = cut.piece(&mut window) else {
            return Some(ChoreReply::Placed(cut.slot, cut.image));
        };
        self.chore = Some(Pending::CutCopy(cut));
        self.submit_chore(Op::Write { offset, buffer: window, len, durable: true }, now);
        None
    }

    /// A step's request has ended.
    pub(crate) fn chore_io(&mut self, buffer: Option<Buffer>, result: Result<(), DiskError>, now: Timestamp) {
        let pending = self.chore.take();
        self.ring.chores.erasing = None;
        let reply = match (pending, result) {
            (Some(Pending::CutCopy(cut)), Err(error)) => {
                self.ring.give_up_copy(cut.slot, error.fault);
                ChoreReply::Failed(error, Some(cut.image))
            }
            (Some(Pending::CutCopy(cut)), Ok(())) => {
                let written = buffer.and_then(|window| self.write_on(cut, window, now));
                let Some(reply) = written else {
                    return;
                };
                reply
            }
            (Some(Pending::Copy { slot }), Err(error)) => {
                self.ring.give_up_copy(slot, error.fault);
                ChoreReply::Failed(error, buffer)
            }
            (_, Err(error)) => ChoreReply::Failed(error, buffer),
            (Some(Pending::Copy { slot }), Ok(())) => match buffer {
                Some(buffer) => ChoreReply::Placed(slot, buffer),
                None => ChoreReply::Done,
            },
            (_, Ok(())) => buffer.map_or(ChoreReply::Done, ChoreReply::Buffer),
        };
        self.chore_reply = Some(reply);
    }

    /// Looks whether what the step waits for has come.
    pub(crate) fn advance_chore(&mut self, now: Timestamp) {
        let between_snapshots = self.ring.journal.snapshot.is_none();
        if let Some(Pending::Replace { originals, copies, held_by }) =
            self.chore.take_if(|step| between_snapshots && matches!(step, Pending::Replace { .. }))
        {
            self.chore_reply = self.replace(&originals, copies, held_by);
        }
        let ring = &self.ring;
        let reply = match &self.chore {
            Some(Pending::Settle) => {
                let until = ring.chores.settling.unwrap_or_default();
                let open = ring.open.is_some_and(|o| o.sequence < until);
                let moving = ring
                    .unplaced
                    .iter()
                    .map(|s| s.sequence)
                    .chain(ring.flying.iter().map(|f| f.sealed.sequence));
                let doubted = ring.doubted.iter().map(|(sequence, _)| *sequence);
                let moving = moving.chain(doubted);
                let waits = open || moving.min().is_some_and(|lowest| lowest < until) || ring.unscanned > 0;
                (!waits).then_some(ChoreReply::Done)
            }
            Some(Pending::Pause { until }) => (now >= *until).then_some(ChoreReply::Done),
            Some(Pending::Recorded) => {
                (ring.chores.recorded == ring.chores.asked).then_some(ChoreReply::Done)
            }
            Some(Pending::Switch) => {
                let whole = !ring.chores.switching && ring.journal.snapshot.is_none();
                let (offset, bytes) = ring.journal.spare_extent();
                whole.then_some(ChoreReply::Extent(offset, bytes))
            }
            Some(
                Pending::Read
                | Pending::Write
                | Pending::Copy { .. }
                | Pending::CutCopy(_)
                | Pending::Replace { .. },
            )
            | None => None,
        };
        if reply.is_some() {
            self.chore = None;
            self.chore_reply = reply;
        }
    }
}
