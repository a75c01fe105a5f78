//! The purge job: destroys a range of elements, in an order that keeps everything else whole at every
//! instant.
//!
//! The job runs beside capture and never in it: it asks for one small step at a time ([`JobStep`]), and does the thinking
//! in between. In order: the intent is recorded; what is open goes to the medium; expired remains that may have the
//! range are overwritten; from every slot that has some of it the rest is copied to new slots, one record puts the copies
//! in the original's place, and the original is overwritten; then both journal extents are given up and overwritten; last,
//! the audit is recorded.

use crate::check::SlotCheck;
use crate::job::{Job, JobError, PATIENCE, STEP};
use crate::job_step::{JobStep, StepReply, StepSlot};
use crate::redact::{self, Redaction};
use crate::{Outcome, PurgeRequest, Refusal};
use holdfast_base::{HoldId, MAX_REASON, Sequence, SlotNo, Timestamp};
use holdfast_format::PurgeRecord;
use holdfast_media::Buffer;

/// A purge at work.
struct Purge<'j, 'a, 'p> {
    job: &'j mut Job<'a, 'p>,
    zeros: Option<Buffer>,
    /// Earliest arrival of what was found.
    oldest: Option<Timestamp>,
    /// Slots that were overwritten.
    slots: u32,
}

/// A slot that has some of the range.
struct Affected {
    slot: SlotNo,
    sequence: Sequence,
    redaction: Redaction,
}

/// Carries a purge out, step by step.
pub(crate) fn purge(
    job: &mut Job<'_, '_>,
    request: &PurgeRequest,
    now: Timestamp,
) -> Result<Outcome, JobError> {
    if request.reason.is_empty() || request.reason.len() > MAX_REASON || request.owner.len() > MAX_REASON {
        let why = format!("a purge needs a reason, and reason and owner have at most {MAX_REASON} bytes");
        return Ok(Outcome::Refused(Refusal::Wrong(why)));
    }
    let mut record = audit(request, now);
    let zeros = Some(Buffer::aligned(STEP)?);
    job.done(JobStep::Begin(record.clone()))?;
    let mut purge = Purge { job, zeros, oldest: None, slots: 0 };
    let result = purge.run(request, &mut record);
    let slots = purge.slots;
    if slots > 0 && matches!(result, Err(JobError::Closed)) {
        // It gives way. Whoever goes on may find nothing more on the ring, and looks no further then. Where the ring is
        // being closed, this does nothing.
        let _ = purge.overwrite_journal();
    }
    // Holds must be possible again whatever came of it, and what was destroyed until then is on record.
    let complete = matches!(result, Ok(Outcome::Purged { .. }));
    let ended = job.done(JobStep::End { record, slots, complete });
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

impl Purge<'_, '_, '_> {
    /// Whether all of it was: not where the journal has come back to its extent.
    fn overwrite(&mut self, mut offset: u64, end: u64) -> Result<bool, JobError> {
        while offset < end {
            let buffer = self.zeros.take().ok_or(JobError::Closed)?;
            let len = (end - offset).min(buffer.len() as u64) as usize;
            match self.job.ask(JobStep::Write { offset, len, buffer })? {
                StepReply::Buffer(buffer) => self.zeros = Some(buffer),
                StepReply::Later(buffer) => {
                    self.zeros = buffer;
                    return Ok(false);
                }
                _ => {}
            }
            offset += len as u64;
        }
        Ok(true)
    }

    /// Gives up both journal extents, one after the other, and overwrites them. Capture goes on meanwhile: where the journal
    /// goes back to one before all of it is overwritten, that is given up again.
    fn overwrite_journal(&mut self) -> Result<(), JobError> {
        let mut done: Option<u64> = None;
        for _ in 0..PATIENCE {
            let StepReply::Extent(offset, bytes) = self.job.ask(JobStep::SwitchJournal)? else { continue };
            if done == Some(offset) || !self.overwrite(offset, offset + bytes)? {
                continue;
            }
            if done.is_some() {
                return Ok(());
            }
            done = Some(offset);
        }
        Err(JobError::NoRoom)
    }

    fn is_blank(&mut self, mut offset: u64, end: u64) -> Result<bool, JobError> {
        while offset < end {
            let len = (end - offset).min(STEP as u64) as usize;
            if self.job.read(offset, len)?.iter().any(|b| *b != 0) {
                return Ok(false);
            }
            offset += len as u64;
        }
        Ok(true)
    }

    fn look(&mut self, slot: SlotNo) -> Result<StepSlot, JobError> {
        match self.job.ask(JobStep::Look(slot))? {
            StepReply::Slot(look) => Ok(look),
            _ => Ok(StepSlot::Other),
        }
    }

    fn lock(&mut self, slot: SlotNo) -> Result<bool, JobError> {
        Ok(matches!(self.job.ask(JobStep::Lock(slot))?, StepReply::Done))
    }

    fn run(&mut self, request: &PurgeRequest, record: &mut PurgeRecord) -> Result<Outcome, JobError> {
        self.job.done(JobStep::Settle)?;
        let affected = match self.find(request)? {
            Ok(affected) => affected,
            Err(hold) => return Ok(Outcome::Refused(Refusal::Held(hold))),
        };
        for one in &affected {
            if self.destroy(request, one)? {
                record.elements += one.redaction.elements;
                record.bytes += one.redaction.bytes;
                self.slots += 1;
            }
        }
        // Last: what expired meanwhile is among it.
        self.overwrite_remains(request)?;
        if self.slots == 0 {
            return Ok(Outcome::Refused(Refusal::Nothing { oldest: self.oldest }));
        }
        // The journal may have had some of it while its slot was open.
        self.overwrite_journal()?;
        Ok(Outcome::Purged { elements: record.elements, bytes: record.bytes, slots: self.slots })
    }

    /// The slots of data that have some of the range; or a hold that forbids it. None is kept from expiring longer
    /// than it is looked at.
    fn find(&mut self, request: &PurgeRequest) -> Result<Result<Vec<Affected>, HoldId>, JobError> {
        let mut affected = Vec::new();
        for no in (0..self.job.superblock.geometry.slots).map(SlotNo) {
            let StepSlot::Data { sequence, held } = self.look(no)? else {
                continue;
            };
            if !self.lock(no)? {
                continue;
            }
            let check = match self.job.brief(no)? {
                Ok(check) => check,
                Err(why) => return Err(JobError::Damaged { slot: no, why: why.to_string() }),
            };
            let first =
                check.sound().map(|(.., bounds)| bounds).filter(|b| b.first <= b.last).map(|b| b.first);
            self.oldest = self.oldest.into_iter().chain(first).min();
            let touches =
                check.sound().is_some_and(|(.., bounds)| bounds.touches(&request.streams, &request.range));
            let redaction =
                if touches { redact::measure(self.job, &check, request)? } else { Redaction::default() };
            self.job.done(JobStep::Unlock(no))?;
            if redaction.rows == 0 {
                continue;
            }
            if let Some(hold) = held.filter(|_| !request.held) {
                return Ok(Err(hold));
            }
            affected.push(Affected { slot: no, sequence, redaction });
        }
        Ok(Ok(affected))
    }

    /// Overwrites what has expired but is still there, where it may have some of the range: whole slots, and behind slots
    /// that were sealed short what an older lap left.
    fn overwrite_remains(&mut self, request: &PurgeRequest) -> Result<(), JobError> {
        let geometry = self.job.superblock.geometry.clone();
        for no in (0..geometry.slots).map(SlotNo) {
            if !self.pin_patiently(no)? {
                continue;
            }
            let (offset, end) = (geometry.slot_offset(no), geometry.slot_offset(no) + geometry.slot_bytes);
            let is_data = matches!(self.look(no)?, StepSlot::Data { .. });
            let check = self.job.brief(no)?;
            match check.as_ref().ok().and_then(SlotCheck::sound) {
                Some((header, _, bounds)) if is_data || !bounds.touches(&request.streams, &request.range) => {
                    self.overwrite(offset + header.bytes() as u64, end)?;
                }
                // Torn or half overwritten: nobody can say what is left there. A place never written is empty.
                None if is_data || self.is_blank(offset, end)? => {}
                _ => {
                    self.overwrite(offset, end)?;
                    self.slots += 1;
                }
            }
            self.job.done(JobStep::Unlock(no))?;
        }
        Ok(())
    }

    /// Locks a slot that has data or is expired; one that is just being named can be locked a little later. False for one
    /// that is being written: what was there is being overwritten.
    fn pin_patiently(&mut self, no: SlotNo) -> Result<bool, JobError> {
        for _ in 0..PATIENCE {
            if self.look(no)? == StepSlot::Other {
                return Ok(false);
            }
            if self.lock(no)? {
                return Ok(true);
            }
            self.job.done(JobStep::Pause)?;
        }
        Err(JobError::NoRoom)
    }

    /// Copies what is kept of a slot, puts the copies in its place and overwrites it; false if it has expired by now.
    fn destroy(&mut self, request: &PurgeRequest, one: &Affected) -> Result<bool, JobError> {
        if !self.lock(one.slot)? {
            return Ok(false);
        }
        if !matches!(self.look(one.slot)?, StepSlot::Data { sequence, .. } if sequence == one.sequence) {
            self.job.done(JobStep::Unlock(one.slot))?;
            return Ok(false);
        }
        let check = match self.job.brief(one.slot)? {
            Ok(check) => check,
            Err(why) => return Err(JobError::Damaged { slot: one.slot, why: why.to_string() }),
        };
        let copies = redact::copy(self.job, one.slot, &check, request, &one.redaction)?;
        let originals = vec![(one.slot, one.sequence)];
        self.job.done(JobStep::Replace { originals, copies, held_by: None })?;
        let offset = self.job.superblock.geometry.slot_offset(one.slot);
        self.overwrite(offset, offset + self.job.superblock.geometry.slot_bytes)?;
        self.job.done(JobStep::Unlock(one.slot))?;
        Ok(true)
    }
}
