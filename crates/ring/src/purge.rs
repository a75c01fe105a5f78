//! Destroying a range on purpose: what is destroyed, in which order, so that at every instant what stays is whole.
//!
//! The job runs beside capture and never in it: it asks for one small step at a time ([`Chore`]), and does the thinking
//! in between. In order: the intent is recorded; what is open goes to the medium; expired remains that may have the
//! range are overwritten; from every slot that has some of it the rest is copied to new slots, one record puts the copies
//! in the original's place, and the original is overwritten; then both journal extents are given up and overwritten; last,
//! the audit is recorded.

use crate::check::{Damage, Depth, SlotCheck};
use crate::chore::{Chore, ChoreReply, ChoreSlot};
use crate::distil::{self, Cut};
use crate::{Outcome, PurgeRequest, Refusal};
use holdfast_base::{BLOCK, HoldId, MAX_REASON, Sequence, SlotNo, Timestamp};
use holdfast_format::{PartHeader, PurgeRecord, Superblock};
use holdfast_media::{Buffer, DiskError, PoolError};

/// Bytes that one step reads or overwrites: small, so that capture waits for no more than that.
pub(crate) const STEP: usize = 1 << 20;

/// Tries of a step that cannot be done at once: half a minute, at a pause of 20 ms.
const PATIENCE: u32 = 1500;

/// Asks for a step and waits for its answer. `None`: the ring is being closed.
pub type Port<'a> = dyn FnMut(Chore) -> Option<ChoreReply> + 'a;

/// Why a purge stopped. What was destroyed until then is destroyed; given again, it goes on from there.
#[derive(Debug, thiserror::Error)]
pub enum PurgeError {
    /// The disk said no.
    #[error("{0}: the purge is not complete; give it again when the device is well")]
    Disk(#[from] DiskError),
    /// A slot that may have some of the range cannot be read.
    #[error("slot {slot} is damaged and may have some of the range ({why}): the purge is not complete")]
    Damaged {
        /// The slot.
        slot: SlotNo,
        /// What is wrong with it.
        why: String,
    },
    /// No memory.
    #[error(transparent)]
    Memory(#[from] PoolError),
    /// No slot or buffer came free for what is to be kept.
    #[error(
        "no slot or buffer came free for what is to be kept: release a hold, or purge while less is recorded"
    )]
    NoRoom,
    /// What is kept of held data is held on, and that hold can keep no more runs of slots.
    #[error(
        "hold {0} keeps so many separate runs of slots that the copies of what is to stay do not fit into its record: \
         the purge is not complete; release that hold, hold the same in several parts, and give the purge again"
    )]
    NoRoomIn(HoldId),
    /// The recorder ended.
    #[error("the recorder ended: the purge is not complete; give it again")]
    Closed,
}

/// A purge at work.
pub(crate) struct Job<'a, 'p> {
    pub(crate) superblock: &'a Superblock,
    pub(crate) port: &'a mut Port<'p>,
    pub(crate) window: Option<Buffer>,
    zeros: Option<Buffer>,
    /// Earliest arrival of what was found.
    oldest: Option<Timestamp>,
}

/// A slot that has some of the range.
struct Affected {
    slot: SlotNo,
    sequence: Sequence,
    cut: Cut,
}

/// Carries a purge out, step by step. The superblock must be the one in force.
pub fn purge(
    request: &PurgeRequest,
    superblock: &Superblock,
    now: Timestamp,
    port: &mut Port<'_>,
) -> Result<Outcome, PurgeError> {
    if request.reason.is_empty() || request.reason.len() > MAX_REASON || request.owner.len() > MAX_REASON {
        let why = format!("a purge needs a reason, and reason and owner have at most {MAX_REASON} bytes");
        return Ok(Outcome::Refused(Refusal::Wrong(why)));
    }
    let mut record = audit(request, now);
    let mut job = Job {
        superblock,
        port,
        window: Some(Buffer::aligned(STEP + 2 * BLOCK)?),
        zeros: Some(Buffer::aligned(STEP)?),
        oldest: None,
    };
    job.done(Chore::Begin(record.clone()))?;
    let result = job.run(request, &mut record);
    // Holds must be possible again whatever came of it, and what was destroyed until then is on record.
    let complete = matches!(result, Ok(Outcome::Purged { .. }));
    let ended = job.done(Chore::End { record, complete });
    let outcome = result?;
    ended?;
    Ok(outcome)
}

fn audit(request: &PurgeRequest, now: Timestamp) -> PurgeRecord {
    let range = &request.range;
    PurgeRecord {
        at: now,
        stream: match request.streams.as_slice() {
            [one] => Some(*one),
            _ => None,
        },
        by_time: range.is_timed(),
        by_ordinal: range.ordinals.is_some(),
        by_event: range.by_event,
        from: range.from,
        to: range.to,
        first_ordinal: range.ordinals.map(|o| o.0).unwrap_or_default(),
        end_ordinal: range.ordinals.map(|o| o.1).unwrap_or_default(),
        elements: 0,
        bytes: 0,
        dropped: 0,
        reason: request.reason.clone(),
        owner: request.owner.clone(),
    }
}

impl Job<'_, '_> {
    fn ask(&mut self, chore: Chore) -> Result<ChoreReply, PurgeError> {
        match (self.port)(chore).ok_or(PurgeError::Closed)? {
            ChoreReply::Failed(error, _) => Err(PurgeError::Disk(error)),
            ChoreReply::NoRoomIn(hold) => Err(PurgeError::NoRoomIn(hold)),
            reply => Ok(reply),
        }
    }

    fn done(&mut self, chore: Chore) -> Result<(), PurgeError> {
        self.ask(chore).map(|_| ())
    }

    /// Reads into the window.
    pub(crate) fn read(&mut self, offset: u64, len: usize) -> Result<&[u8], PurgeError> {
        let buffer = self.window.take().ok_or(PurgeError::Closed)?;
        let len = len.min(buffer.len());
        if let ChoreReply::Buffer(buffer) = self.ask(Chore::Read { offset, len, buffer })? {
            self.window = Some(buffer);
        }
        Ok(self.window.as_ref().map_or(&[], |b| &b[..len]))
    }

    fn overwrite(&mut self, mut offset: u64, end: u64) -> Result<(), PurgeError> {
        while offset < end {
            let buffer = self.zeros.take().ok_or(PurgeError::Closed)?;
            let len = (end - offset).min(buffer.len() as u64) as usize;
            if let ChoreReply::Buffer(buffer) = self.ask(Chore::Write { offset, len, buffer })? {
                self.zeros = Some(buffer);
            }
            offset += len as u64;
        }
        Ok(())
    }

    fn is_blank(&mut self, mut offset: u64, end: u64) -> Result<bool, PurgeError> {
        while offset < end {
            let len = (end - offset).min(STEP as u64) as usize;
            if self.read(offset, len)?.iter().any(|b| *b != 0) {
                return Ok(false);
            }
            offset += len as u64;
        }
        Ok(true)
    }

    fn look(&mut self, slot: SlotNo) -> Result<ChoreSlot, PurgeError> {
        match self.ask(Chore::Look(slot))? {
            ChoreReply::Slot(look) => Ok(look),
            _ => Ok(ChoreSlot::Other),
        }
    }

    fn pin(&mut self, slot: SlotNo) -> Result<bool, PurgeError> {
        Ok(matches!(self.ask(Chore::Pin(slot))?, ChoreReply::Done))
    }

    /// Reads a slot's header and summary; `None` when they are not sound.
    fn brief(&mut self, slot: SlotNo) -> Result<Result<SlotCheck, Damage>, PurgeError> {
        let (key, ring) = (self.superblock.key.clone(), self.superblock.ring);
        let mut check = SlotCheck::new(slot, self.superblock.geometry.slot_offset(slot), Depth::Brief);
        while let Some((offset, len)) = check.next_read() {
            let bytes = self.read(offset, len)?;
            if let Err(damage) = check.feed(bytes, &key, ring) {
                return Ok(Err(damage));
            }
        }
        Ok(Ok(check))
    }

    fn run(&mut self, request: &PurgeRequest, record: &mut PurgeRecord) -> Result<Outcome, PurgeError> {
        self.done(Chore::Settle)?;
        let affected = match self.find(request)? {
            Ok(affected) => affected,
            Err(hold) => return Ok(Outcome::Refused(Refusal::Held(hold))),
        };
        let mut slots = 0;
        for one in &affected {
            if self.destroy(request, one)? {
                record.elements += one.cut.elements;
                record.bytes += one.cut.bytes;
                slots += 1;
            }
        }
        // Last: what expired meanwhile is among it.
        slots += self.overwrite_remains(request)?;
        if slots == 0 {
            return Ok(Outcome::Refused(Refusal::Nothing { oldest: self.oldest }));
        }
        // The journal may have had some of it while its slot was open: both extents, one after the other.
        for _ in 0..2 {
            if let ChoreReply::Extent(offset, bytes) = self.ask(Chore::SwitchJournal)? {
                self.overwrite(offset, offset + bytes)?;
            }
        }
        Ok(Outcome::Purged { elements: record.elements, bytes: record.bytes, slots })
    }

    /// The slots of data that have some of the range; or a hold that forbids it. None is kept from expiring longer
    /// than it is looked at.
    fn find(&mut self, request: &PurgeRequest) -> Result<Result<Vec<Affected>, HoldId>, PurgeError> {
        let mut affected = Vec::new();
        for no in (0..self.superblock.geometry.slots).map(SlotNo) {
            let ChoreSlot::Data { sequence, held } = self.look(no)? else {
                continue;
            };
            if !self.pin(no)? {
                continue;
            }
            let check = match self.brief(no)? {
                Ok(check) => check,
                Err(why) => return Err(PurgeError::Damaged { slot: no, why: why.to_string() }),
            };
            let first =
                check.sound().map(|(.., bounds)| bounds).filter(|b| b.first <= b.last).map(|b| b.first);
            self.oldest = self.oldest.into_iter().chain(first).min();
            let touches =
                check.sound().is_some_and(|(.., bounds)| bounds.touches(&request.streams, &request.range));
            let cut = if touches { distil::measure(self, no, &check, request)? } else { Cut::default() };
            self.done(Chore::Unpin(no))?;
            if cut.rows == 0 {
                continue;
            }
            if let Some(hold) = held.filter(|_| !request.held) {
                return Ok(Err(hold));
            }
            affected.push(Affected { slot: no, sequence, cut });
        }
        Ok(Ok(affected))
    }

    /// Overwrites what has expired but is still there, where it may have some of the range: whole slots, and behind slots
    /// that were sealed short what an older lap left. Returns how many whole slots.
    fn overwrite_remains(&mut self, request: &PurgeRequest) -> Result<u32, PurgeError> {
        let geometry = self.superblock.geometry.clone();
        let mut count = 0;
        for no in (0..geometry.slots).map(SlotNo) {
            if !self.pin_patiently(no)? {
                continue;
            }
            let (offset, end) = (geometry.slot_offset(no), geometry.slot_offset(no) + geometry.slot_bytes);
            let is_data = matches!(self.look(no)?, ChoreSlot::Data { .. });
            let check = self.brief(no)?;
            match check.as_ref().ok().and_then(SlotCheck::sound) {
                Some((header, _, bounds)) if is_data || !bounds.touches(&request.streams, &request.range) => {
                    self.overwrite(offset + header.bytes() as u64, end)?;
                }
                // Torn or half overwritten: nobody can say what is left there. A place never written is empty.
                None if is_data || self.is_blank(offset, end)? => {}
                _ => {
                    self.overwrite(offset, end)?;
                    count += 1;
                }
            }
            self.done(Chore::Unpin(no))?;
        }
        Ok(count)
    }

    /// Pins a slot that has data or is expired; one that is just being named can be pinned a little later. False for one
    /// that is being written: what was there is being overwritten.
    fn pin_patiently(&mut self, no: SlotNo) -> Result<bool, PurgeError> {
        for _ in 0..PATIENCE {
            if self.look(no)? == ChoreSlot::Other {
                return Ok(false);
            }
            if self.pin(no)? {
                return Ok(true);
            }
            self.done(Chore::Pause)?;
        }
        Err(PurgeError::NoRoom)
    }

    /// Copies what is kept of a slot, puts the copies in its place and overwrites it; false if it has expired by now.
    fn destroy(&mut self, request: &PurgeRequest, one: &Affected) -> Result<bool, PurgeError> {
        if !self.pin(one.slot)? {
            return Ok(false);
        }
        if !matches!(self.look(one.slot)?, ChoreSlot::Data { sequence, .. } if sequence == one.sequence) {
            self.done(Chore::Unpin(one.slot))?;
            return Ok(false);
        }
        let check = match self.brief(one.slot)? {
            Ok(check) => check,
            Err(why) => return Err(PurgeError::Damaged { slot: one.slot, why: why.to_string() }),
        };
        let copies = distil::copy(self, one.slot, &check, request, &one.cut)?;
        self.done(Chore::Replace { original: one.slot, sequence: one.sequence, copies })?;
        let offset = self.superblock.geometry.slot_offset(one.slot);
        self.overwrite(offset, offset + self.superblock.geometry.slot_bytes)?;
        self.done(Chore::Unpin(one.slot))?;
        Ok(true)
    }

    /// Asks for a buffer and a sequence for a copy, for a while.
    pub(crate) fn new_copy(&mut self) -> Result<(Sequence, Buffer), PurgeError> {
        for _ in 0..PATIENCE {
            if let ChoreReply::Copy { sequence, buffer } = self.ask(Chore::NewCopy)? {
                return Ok((sequence, buffer));
            }
            self.done(Chore::Pause)?;
        }
        Err(PurgeError::NoRoom)
    }

    /// Writes a copy to the next slot of the runway, once there is one.
    pub(crate) fn place(&mut self, mut buffer: Buffer, len: usize) -> Result<SlotNo, PurgeError> {
        for _ in 0..PATIENCE {
            match (self.port)(Chore::PlaceCopy { buffer, len }).ok_or(PurgeError::Closed)? {
                ChoreReply::Placed(slot, buffer) => {
                    self.give_back(buffer)?;
                    return Ok(slot);
                }
                ChoreReply::Failed(error, back) => {
                    if let Some(back) = back {
                        self.give_back(back)?;
                    }
                    return Err(PurgeError::Disk(error));
                }
                ChoreReply::Later(Some(back)) => buffer = back,
                _ => return Err(PurgeError::Closed),
            }
            self.done(Chore::Pause)?;
        }
        self.give_back(buffer)?;
        Err(PurgeError::NoRoom)
    }

    /// Gives the buffer of a copy back unused.
    pub(crate) fn give_back(&mut self, buffer: Buffer) -> Result<(), PurgeError> {
        self.done(Chore::GiveBack(buffer))
    }

    /// Reads a range of a slot that need not be aligned.
    pub(crate) fn read_slot(
        &mut self,
        header: &PartHeader,
        at: usize,
        len: usize,
    ) -> Result<&[u8], PurgeError> {
        let start = at / BLOCK * BLOCK;
        let blocks = (at + len).next_multiple_of(BLOCK) - start;
        let offset = self.superblock.geometry.slot_offset(header.slot) + start as u64;
        let bytes = self.read(offset, blocks)?;
        Ok(bytes.get(at - start..at - start + len).unwrap_or(&[]))
    }
}
