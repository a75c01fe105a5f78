//! Destroying a range on purpose: what is destroyed, in which order, so that at every instant what stays is whole.
//!
//! The job runs beside capture and never in it: it asks for one small step at a time ([`Chore`]), and does the thinking
//! in between. In order: the intent is recorded; what is open goes to the medium; expired remains that may have the
//! range are overwritten; from every slot that has some of it the rest is copied to a new slot, one record puts the copy
//! in the original's place, and the original is overwritten; then both journal extents are given up and overwritten; last,
//! the audit is recorded.

use crate::check::{Damage, Depth, SlotCheck};
use crate::chore::{Chore, ChoreReply, ChoreSlot, PlacedCopy};
use crate::distil::{self, Cut};
use crate::{Outcome, PurgeRequest, Refusal};
use holdfast_base::{BLOCK, HoldId, MAX_REASON, Sequence, SlotNo, Timestamp};
use holdfast_format::{PartHeader, PurgeRecord, Superblock};
use holdfast_media::{Buffer, DiskError, PoolError};

/// Bytes that one step reads or overwrites: small, so that capture waits for no more than that.
pub(crate) const STEP: usize = 1 << 20;

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
    /// No slot or buffer for what is to be kept.
    #[error(
        "no slot or buffer is free for what is to be kept: release a hold, or purge while less is recorded"
    )]
    NoRoom,
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
    };
    job.done(Chore::Begin(record.clone()))?;
    let result = job.run(request, &mut record);
    // Holds must be possible again whatever came of it.
    let ended = match &result {
        Ok(Outcome::Purged { .. }) => job.done(Chore::End(Some(record))),
        _ => job.done(Chore::End(None)),
    };
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
        reason: request.reason.clone(),
        owner: request.owner.clone(),
    }
}

impl Job<'_, '_> {
    fn ask(&mut self, chore: Chore) -> Result<ChoreReply, PurgeError> {
        match (self.port)(chore).ok_or(PurgeError::Closed)? {
            ChoreReply::Failed(error, _) => Err(PurgeError::Disk(error)),
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
        let remains = self.overwrite_remains(request)?;
        if affected.is_empty() && remains == 0 {
            return Ok(Outcome::Refused(Refusal::Nothing { oldest: None }));
        }
        for one in &affected {
            self.destroy(request, one)?;
            record.elements += one.cut.elements;
            record.bytes += one.cut.bytes;
        }
        // The journal may have had some of it while its slot was open: both extents, one after the other.
        for _ in 0..2 {
            if let ChoreReply::Extent(offset, bytes) = self.ask(Chore::SwitchJournal)? {
                self.overwrite(offset, offset + bytes)?;
            }
        }
        let slots = affected.len() as u32 + remains;
        Ok(Outcome::Purged { elements: record.elements, bytes: record.bytes, slots })
    }

    /// The slots of data that have some of the range; or a hold that forbids it.
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
            let touches =
                check.sound().is_some_and(|(.., bounds)| bounds.touches(&request.streams, &request.range));
            let cut = if touches { distil::measure(self, no, &check, request)? } else { Cut::default() };
            if let Some((header, ..)) = check.sound() {
                // Behind a slot that was sealed short lies what an older lap left there.
                let tail = self.superblock.geometry.slot_offset(no) + header.bytes() as u64;
                let end = self.superblock.geometry.slot_offset(no) + self.superblock.geometry.slot_bytes;
                self.overwrite(tail, end)?;
            }
            if cut.rows == 0 {
                self.done(Chore::Unpin(no))?;
                continue;
            }
            if let Some(hold) = held.filter(|_| !request.held) {
                self.done(Chore::Unpin(no))?;
                for one in &affected {
                    let Affected { slot, .. } = one;
                    self.done(Chore::Unpin(*slot))?;
                }
                return Ok(Err(hold));
            }
            affected.push(Affected { slot: no, sequence, cut });
        }
        Ok(Ok(affected))
    }

    /// Overwrites what has expired but is still there, where it may have some of the range. Returns how many slots.
    fn overwrite_remains(&mut self, request: &PurgeRequest) -> Result<u32, PurgeError> {
        let geometry = self.superblock.geometry.clone();
        let mut count = 0;
        for no in (0..geometry.slots).map(SlotNo) {
            if self.look(no)? != ChoreSlot::Expired || !self.pin(no)? {
                continue;
            }
            let offset = geometry.slot_offset(no);
            let has = match self.brief(no)? {
                Ok(check) => {
                    check.sound().is_some_and(|(.., bounds)| bounds.touches(&request.streams, &request.range))
                }
                // Torn or half overwritten: nobody can say what is left there. A place that was never written is empty.
                Err(_) => !self.is_blank(offset, offset + geometry.slot_bytes)?,
            };
            if has {
                self.overwrite(offset, offset + geometry.slot_bytes)?;
                count += 1;
            }
            self.done(Chore::Unpin(no))?;
        }
        Ok(count)
    }

    /// Copies what is kept of a slot, puts the copy in its place and overwrites it.
    fn destroy(&mut self, request: &PurgeRequest, one: &Affected) -> Result<(), PurgeError> {
        let check = match self.brief(one.slot)? {
            Ok(check) => check,
            Err(why) => return Err(PurgeError::Damaged { slot: one.slot, why: why.to_string() }),
        };
        let copy = if one.cut.kept > 0 { Some(self.copy(request, one, &check)?) } else { None };
        self.done(Chore::Replace { original: one.slot, sequence: one.sequence, copy })?;
        let offset = self.superblock.geometry.slot_offset(one.slot);
        self.overwrite(offset, offset + self.superblock.geometry.slot_bytes)?;
        self.done(Chore::Unpin(one.slot))
    }

    fn copy(
        &mut self,
        request: &PurgeRequest,
        one: &Affected,
        check: &SlotCheck,
    ) -> Result<PlacedCopy, PurgeError> {
        let ChoreReply::Copy { sequence, mut buffer } = self.ask(Chore::NewCopy)? else {
            return Err(PurgeError::NoRoom);
        };
        let built = distil::build(self, one.slot, check, request, sequence, &one.cut, &mut buffer);
        let (len, bounds, age) = match built {
            Ok(built) => built,
            Err(error) => {
                self.done(Chore::GiveBack(buffer))?;
                return Err(error);
            }
        };
        match (self.port)(Chore::PlaceCopy { sequence, buffer, len }).ok_or(PurgeError::Closed)? {
            ChoreReply::Placed(slot, buffer) => {
                self.done(Chore::GiveBack(buffer))?;
                Ok(PlacedCopy { slot, sequence, age, bounds })
            }
            ChoreReply::Failed(error, buffer) => {
                if let Some(buffer) = buffer {
                    self.done(Chore::GiveBack(buffer))?;
                }
                Err(PurgeError::Disk(error))
            }
            _ => Err(PurgeError::NoRoom),
        }
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
