//! Jobs: orders that take many steps. A job runs beside capture, requests one small step at a time
//! ([`JobStep`]) and computes in between. The jobs are in `purge` and `distil`, the copying of slots in
//! `copies`.

use crate::check::{Damage, Depth, SlotCheck};
use crate::job_step::{JobStep, StepReply};
use crate::{DistilRequest, Order, Outcome, PurgeRequest, distil, purge};
use holdfast_base::{BLOCK, HoldId, Sequence, SlotNo, Timestamp};
use holdfast_format::{PartHeader, Superblock};
use holdfast_media::{Buffer, DiskError, PoolError};

/// Bytes that one step reads or overwrites: small, so that capture waits for no more than that.
pub(crate) const STEP: usize = 1 << 20;

/// Tries of a step that cannot be done at once: half a minute, at a pause of 20 ms.
pub(crate) const PATIENCE: u32 = 1500;

/// Asks for a step and waits for its answer. `None`: the ring is being closed.
pub type Port<'a> = dyn FnMut(JobStep) -> Option<StepReply> + 'a;

/// Why a job stopped. What was done until then is done; given again, it goes on from there.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    /// The disk said no.
    #[error("{0}: not all was done; give the order again when the device is well")]
    Disk(#[from] DiskError),
    /// A slot that may have some of what is wanted cannot be read.
    #[error("slot {slot} is damaged and may have some of what the order is about ({why}): not all was done")]
    Damaged {
        /// The slot.
        slot: SlotNo,
        /// What is wrong with it.
        why: String,
    },
    /// A copy does not read back as it was written: it does not count.
    #[error(
        "slot {slot} does not read back as it was written ({why}): not all was done, and what was to be copied there is \
         where it was; see what ails the device, and give the order again"
    )]
    Unsound {
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
        "no slot or buffer came free for what is to be kept: release a hold, give the recorder more --memory, or give the order again while less is recorded"
    )]
    NoRoom,
    /// What is kept of held data is held on, and that hold can keep no more runs of slots.
    #[error(
        "hold {0} keeps so many separate runs of slots that the copies of what is to stay do not fit into its record: \
         not all was done; release that hold, hold the same in several parts, and give the order again"
    )]
    NoRoomIn(HoldId),
    /// The recorder ended.
    #[error("the recorder ended: not all was done; give the order again")]
    Closed,
}

/// An order that is carried out step by step, never as one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Work {
    /// Destroy a range.
    Purge(PurgeRequest),
    /// Copy what is wanted of held slots together.
    Distil(DistilRequest),
}

impl Work {
    /// The work that an order is; `None` for one that is carried out at once.
    pub fn of(order: &Order) -> Option<Self> {
        match order {
            Order::Purge(request) => Some(Self::Purge(request.clone())),
            Order::Distil(request) => Some(Self::Distil(request.clone())),
            Order::Hold(_) | Order::Extend(_) | Order::Release(_) | Order::Grow(_) | Order::Export(_) => None,
        }
    }

    /// What others are told is at work.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Purge(_) => "purge",
            Self::Distil(_) => "distilling",
        }
    }

    /// Carries it out. The superblock must be the one in force. `enough` says whether something more urgent waits: what can
    /// stop early then does.
    pub fn run(
        &self,
        superblock: &Superblock,
        now: Timestamp,
        port: &mut Port<'_>,
        enough: &dyn Fn() -> bool,
    ) -> Result<Outcome, JobError> {
        let job = &mut Job { superblock, port, window: Some(Buffer::aligned(STEP + 2 * BLOCK)?) };
        match self {
            Self::Purge(request) => purge::purge(job, request, now),
            Self::Distil(request) => distil::distil(job, request, enough),
        }
    }
}

/// A job at work.
pub(crate) struct Job<'a, 'p> {
    pub(crate) superblock: &'a Superblock,
    port: &'a mut Port<'p>,
    window: Option<Buffer>,
}

impl Job<'_, '_> {
    pub(crate) fn ask(&mut self, step: JobStep) -> Result<StepReply, JobError> {
        match (self.port)(step).ok_or(JobError::Closed)? {
            StepReply::Failed(error, _) => Err(JobError::Disk(error)),
            StepReply::NoRoomIn(hold) => Err(JobError::NoRoomIn(hold)),
            reply => Ok(reply),
        }
    }

    pub(crate) fn done(&mut self, step: JobStep) -> Result<(), JobError> {
        self.ask(step).map(|_| ())
    }

    /// Reads into the window.
    pub(crate) fn read(&mut self, offset: u64, len: usize) -> Result<&[u8], JobError> {
        let buffer = self.window.take().ok_or(JobError::Closed)?;
        let len = len.min(buffer.len());
        if let StepReply::Buffer(buffer) = self.ask(JobStep::Read { offset, len, buffer })? {
            self.window = Some(buffer);
        }
        Ok(self.window.as_ref().map_or(&[], |b| &b[..len]))
    }

    /// Reads a range of a slot that need not be aligned.
    pub(crate) fn read_slot(
        &mut self,
        header: &PartHeader,
        at: usize,
        len: usize,
    ) -> Result<&[u8], JobError> {
        if len == 0 {
            return Ok(&[]);
        }
        let start = at / BLOCK * BLOCK;
        let blocks = (at + len).next_multiple_of(BLOCK) - start;
        let offset = self.superblock.geometry.slot_offset(header.slot) + start as u64;
        let bytes = self.read(offset, blocks)?;
        Ok(bytes.get(at - start..at - start + len).unwrap_or(&[]))
    }

    /// Reads a slot as far as `depth` says; why, where it is not sound.
    fn check(&mut self, slot: SlotNo, depth: Depth) -> Result<Result<SlotCheck, Damage>, JobError> {
        let (key, ring) = (self.superblock.key.clone(), self.superblock.ring);
        let mut check = SlotCheck::new(slot, self.superblock.geometry.slot_offset(slot), depth);
        while let Some((offset, len)) = check.next_read() {
            let bytes = self.read(offset, len)?;
            if let Err(damage) = check.feed(bytes, &key, ring) {
                return Ok(Err(damage));
            }
        }
        Ok(Ok(check))
    }

    /// Reads a slot's header and summary.
    pub(crate) fn brief(&mut self, slot: SlotNo) -> Result<Result<SlotCheck, Damage>, JobError> {
        self.check(slot, Depth::Brief)
    }

    /// Asks for a buffer and a sequence for a copy, for a while.
    pub(crate) fn new_copy(&mut self) -> Result<(Sequence, Buffer), JobError> {
        for _ in 0..PATIENCE {
            if let StepReply::Copy { sequence, buffer } = self.ask(JobStep::NewCopy)? {
                return Ok((sequence, buffer));
            }
            self.done(JobStep::Pause)?;
        }
        Err(JobError::NoRoom)
    }

    /// Writes a copy to the next slot of the runway, once there is one, and reads all of it back.
    pub(crate) fn place(
        &mut self,
        sequence: Sequence,
        mut buffer: Buffer,
        len: usize,
    ) -> Result<SlotNo, JobError> {
        for _ in 0..PATIENCE {
            match (self.port)(JobStep::PlaceCopy { buffer, len }).ok_or(JobError::Closed)? {
                StepReply::Placed(slot, buffer) => {
                    self.give_back(buffer)?;
                    return self.verified(slot, sequence);
                }
                StepReply::Failed(error, back) => {
                    if let Some(back) = back {
                        self.give_back(back)?;
                    }
                    return Err(JobError::Disk(error));
                }
                StepReply::Later(Some(back)) => buffer = back,
                _ => return Err(JobError::Closed),
            }
            self.done(JobStep::Pause)?;
        }
        self.give_back(buffer)?;
        Err(JobError::NoRoom)
    }

    fn verified(&mut self, slot: SlotNo, sequence: Sequence) -> Result<SlotNo, JobError> {
        let why = match self.check(slot, Depth::Full)? {
            Ok(check) if check.sound().is_some_and(|(header, ..)| header.sequence == sequence) => {
                return Ok(slot);
            }
            Ok(_) => "it holds another slot".to_owned(),
            Err(why) => why.to_string(),
        };
        Err(JobError::Unsound { slot, why })
    }

    /// Gives the buffer of a copy back unused.
    pub(crate) fn give_back(&mut self, buffer: Buffer) -> Result<(), JobError> {
        self.done(JobStep::GiveBack(buffer))
    }
}
