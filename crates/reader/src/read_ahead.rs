//! Read-ahead over planned slots: heads, directories and bodies, requested in the order of their use, as many at once as the
//! access allows.

use super::access::Access;
use super::item::{PlannedSlot, Selection};
use super::read_queue::ReadQueue;
use super::read_request::{ReadOutcome, ReadRequest};
use super::row_filter::RowFilter;
use super::slot_head::{SlotDefect, SlotHead, SlotIndex, head_bytes};
use super::slot_read::{SlotPart, SlotRead};
use super::window::PieceBytes;
use crate::ReaderError;
use holdfast_base::{BLOCK, CHECK_BLOCK};
use holdfast_format::{Chunk, Superblock};
use holdfast_media::Buffer;
use std::collections::VecDeque;
use std::ops::Range;

/// Large slots whose heads are read ahead.
const AHEAD: usize = 3;

/// A slot on its way.
#[derive(Debug)]
enum JobStage {
    AwaitHead { tag: u64, whole: bool },
    AwaitIndex { tag: u64, head: Box<SlotHead>, range: Range<usize> },
    Prepared(PreparedSlot),
}

/// What became of a slot's head.
#[derive(Debug)]
pub(crate) enum PreparedSlot {
    /// It can be read.
    Ready(Box<SlotRead>),
    /// It has expired.
    Expired,
    /// It is not what it should be.
    Defective(SlotDefect),
}

#[derive(Debug)]
struct SlotJob {
    planned: PlannedSlot,
    stage: JobStage,
}

impl SlotJob {
    fn buffers(&self) -> usize {
        match &self.stage {
            JobStage::AwaitHead { whole, .. } => usize::from(*whole),
            JobStage::Prepared(PreparedSlot::Ready(work)) => work.buffers(),
            JobStage::AwaitIndex { .. } | JobStage::Prepared(_) => 0,
        }
    }
}

/// Why a slot's body stops coming.
#[derive(Debug)]
pub(crate) enum BodyError {
    /// It expired meanwhile.
    Expired,
    /// The way to the ring is gone.
    Failed(ReaderError),
}

impl From<ReaderError> for BodyError {
    fn from(error: ReaderError) -> Self {
        Self::Failed(error)
    }
}

/// The read-ahead over some planned slots.
pub(crate) struct ReadAhead<'a> {
    pub(crate) queue: &'a mut ReadQueue,
    pub(crate) superblock: &'a Superblock,
    selection: &'a Selection,
    planned: &'a [PlannedSlot],
    next: usize,
    jobs: VecDeque<SlotJob>,
    /// The slot that is being looked at.
    pub(crate) work: Option<Box<SlotRead>>,
    whole: bool,
    /// Rows of the first slot that have been dealt with.
    skip: u32,
}

impl<'a> ReadAhead<'a> {
    /// Begins with the first of `planned`, behind its first `skip` rows.
    pub(crate) fn new(
        queue: &'a mut ReadQueue,
        superblock: &'a Superblock,
        selection: &'a Selection,
        planned: &'a [PlannedSlot],
        skip: u32,
    ) -> Self {
        let whole = superblock.geometry.slot_bytes as usize <= queue.access.quantum();
        let jobs = VecDeque::new();
        Self { queue, superblock, selection, planned, next: 0, jobs, work: None, whole, skip }
    }

    /// Whether there is another slot behind the one that is being looked at.
    pub(crate) fn has_more(&self) -> bool {
        !self.jobs.is_empty() || self.next < self.planned.len()
    }

    /// The next slot, once its head has been looked at: a sound one is `work` from now on.
    pub(crate) fn next_slot(&mut self) -> Result<Option<(PlannedSlot, Option<PreparedSlot>)>, ReaderError> {
        self.end_slot();
        loop {
            self.fill()?;
            let Some(job) = self.jobs.front() else { return Ok(None) };
            match &job.stage {
                JobStage::AwaitHead { tag, .. } | JobStage::AwaitIndex { tag, .. } => {
                    self.queue.settle(*tag)?;
                }
                JobStage::Prepared(_) => break,
            }
        }
        let Some(SlotJob { planned, stage: JobStage::Prepared(settled) }) = self.jobs.pop_front() else {
            return Ok(None);
        };
        if let PreparedSlot::Ready(work) = settled {
            self.work = Some(work);
            return Ok(Some((planned, None)));
        }
        Ok(Some((planned, Some(settled))))
    }

    /// Lets go of the slot that is being looked at.
    pub(crate) fn end_slot(&mut self) {
        if let Some(mut work) = self.work.take() {
            work.chunk_window.clear(self.queue);
            work.payload_window.clear(self.queue);
            for (tag, _) in work.sent.drain(..) {
                self.queue.forget(tag);
            }
        }
    }

    /// Asks for whatever there is room for.
    fn fill(&mut self) -> Result<(), ReaderError> {
        self.queue.poll()?;
        let depth = self.queue.access.depth();
        let mut used = self.work.as_ref().map_or(0, |work| work.buffers());
        used += self.jobs.iter().map(SlotJob::buffers).sum::<usize>();
        if let Some(work) = &mut self.work
            && !send(work, self.queue, &mut used, depth)?
        {
            return Ok(());
        }
        let (mut all_sent, mut waiting) = (true, false);
        for at in 0..self.jobs.len() {
            self.advance(at)?;
            match &mut self.jobs[at].stage {
                JobStage::Prepared(PreparedSlot::Ready(work)) => {
                    // Only the slot that is being looked at has to have a read under way.
                    all_sent = all_sent && !self.queue.is_busy() && send(work, self.queue, &mut used, depth)?;
                    waiting |= !work.units.is_empty();
                }
                JobStage::Prepared(_) => {}
                // What comes behind must wait for its reads.
                JobStage::AwaitHead { .. } | JobStage::AwaitIndex { .. } => all_sent = false,
            }
        }
        // Heads lie apart. A recorder's drive may have to go there and back for each: it is asked for some together, when
        // nothing that lies in a row waits for its turn. Straight from a lane no device is to be idle meanwhile.
        let later = waiting && matches!(self.queue.access, Access::Live(_));
        let ahead = if self.whole { depth } else { AHEAD };
        while !later && self.next < self.planned.len() && self.jobs.len() < ahead {
            if self.whole && (used >= depth || (!self.jobs.is_empty() && self.queue.is_busy())) {
                break;
            }
            let planned = self.planned[self.next];
            if planned.slot.is_none()
                && let Access::Live(live) = &mut self.queue.access
            {
                // What an open slot has is taken as late as possible, and kept in memory once. By then it may long have been
                // written: so that it is read ahead like any other, this is asked before it is needed.
                if self.work.is_none() && self.jobs.is_empty() {
                    live.take_open(planned.sequence, &self.selection.of_open())?;
                } else if !live.is_written(planned.sequence)? {
                    break;
                }
            }
            self.next += 1;
            if let Some(head) = self.queue.access.head_at_hand(&planned).filter(|_| !self.whole) {
                let stage = match SlotHead::decode(&head, self.superblock, planned.slot, planned.sequence) {
                    Ok(head) => {
                        let range = head.index_range();
                        self.ask_directory(planned, Box::new(head), range)?
                    }
                    Err(wrong) => JobStage::Prepared(PreparedSlot::Defective(wrong)),
                };
                self.jobs.push_back(SlotJob { planned, stage });
                continue;
            }
            let geometry = &self.superblock.geometry;
            let len = if self.whole { geometry.slot_bytes as usize } else { head_bytes(geometry) };
            let tag = self.queue.submit(planned.want(0, len))?;
            self.jobs.push_back(SlotJob { planned, stage: JobStage::AwaitHead { tag, whole: self.whole } });
            used += usize::from(self.whole);
        }
        Ok(())
    }

    /// Takes a slot further, as far as its answers are there.
    fn advance(&mut self, at: usize) -> Result<(), ReaderError> {
        loop {
            let job = &mut self.jobs[at];
            let (JobStage::AwaitHead { tag, .. } | JobStage::AwaitIndex { tag, .. }) = &job.stage else {
                return Ok(());
            };
            if !self.queue.is_ready(*tag) {
                return Ok(());
            }
            let got = self.queue.wait(*tag)?;
            let planned = job.planned;
            let stage = std::mem::replace(&mut job.stage, JobStage::Prepared(PreparedSlot::Expired));
            let next = match (got, stage) {
                (ReadOutcome::Bytes(buffer), JobStage::AwaitHead { whole, .. }) => {
                    let head = SlotHead::decode(&buffer, self.superblock, planned.slot, planned.sequence);
                    match head {
                        Ok(head) if whole => self.settle_whole(planned, head, buffer),
                        Ok(head) => {
                            self.queue.give(buffer);
                            let range = head.index_range();
                            self.ask_directory(planned, Box::new(head), range)?
                        }
                        Err(wrong) => {
                            self.queue.give(buffer);
                            JobStage::Prepared(PreparedSlot::Defective(wrong))
                        }
                    }
                }
                (ReadOutcome::Bytes(buffer), JobStage::AwaitIndex { head, range, .. }) => {
                    let bytes = buffer.get(..range.len()).unwrap_or_default();
                    let settled = head
                        .index(bytes, range.start)
                        .and_then(|index| self.settle(planned, *head, index, bytes, range.start));
                    self.queue.give(buffer);
                    JobStage::Prepared(
                        settled
                            .map_or_else(PreparedSlot::Defective, |work| PreparedSlot::Ready(Box::new(work))),
                    )
                }
                (ReadOutcome::Expired, _) => JobStage::Prepared(PreparedSlot::Expired),
                // What cannot be read may be a chunk, and concern nobody.
                (ReadOutcome::Unreadable(_), JobStage::AwaitIndex { head, range, .. })
                    if head.directory_range().is_ok_and(|alone| alone != range) =>
                {
                    let alone = head.directory_range();
                    self.ask_directory(planned, head, alone)?
                }
                // Nor need it be what tells of the slot: then the rest is asked for piece by piece.
                (ReadOutcome::Unreadable(text), JobStage::AwaitHead { .. }) => {
                    self.salvage_head(planned, text)?
                }
                (ReadOutcome::Unreadable(text), _) => {
                    JobStage::Prepared(PreparedSlot::Defective(SlotDefect::Damaged(text)))
                }
                (ReadOutcome::Bytes(buffer), stage @ JobStage::Prepared(_)) => {
                    self.queue.give(buffer);
                    stage
                }
            };
            self.jobs[at].stage = next;
        }
    }

    /// Goes on with a slot of which not all that was asked for first could be read, if its head can.
    fn salvage_head(&mut self, planned: PlannedSlot, text: String) -> Result<JobStage, ReaderError> {
        let want = planned.want(0, head_bytes(&self.superblock.geometry));
        let bytes = match salvage(self.queue, want, BLOCK) {
            Ok(bytes) => bytes,
            Err(BodyError::Expired) => return Ok(JobStage::Prepared(PreparedSlot::Expired)),
            Err(BodyError::Failed(error)) => return Err(error),
        };
        match SlotHead::decode(&bytes, self.superblock, planned.slot, planned.sequence) {
            Ok(head) => {
                let range = head.index_range();
                self.ask_directory(planned, Box::new(head), range)
            }
            Err(SlotDefect::Damaged(_)) => {
                Ok(JobStage::Prepared(PreparedSlot::Defective(SlotDefect::Damaged(text))))
            }
            Err(wrong) => Ok(JobStage::Prepared(PreparedSlot::Defective(wrong))),
        }
    }

    fn ask_directory(
        &mut self,
        planned: PlannedSlot,
        head: Box<SlotHead>,
        range: Result<Range<usize>, SlotDefect>,
    ) -> Result<JobStage, ReaderError> {
        match range {
            Ok(range) => {
                let tag = self.queue.submit(planned.want(range.start, range.len()))?;
                Ok(JobStage::AwaitIndex { tag, head, range })
            }
            Err(wrong) => Ok(JobStage::Prepared(PreparedSlot::Defective(wrong))),
        }
    }

    /// A slot whose index has come, with `bytes` that begin at `start` in it.
    fn settle(
        &self,
        planned: PlannedSlot,
        head: SlotHead,
        index: SlotIndex,
        bytes: &[u8],
        start: usize,
    ) -> Result<SlotRead, SlotDefect> {
        let mut work = SlotRead::new(planned, head, index, self.selection)?;
        self.skip_rows(&mut work);
        work.schedule(self.queue.access.quantum());
        work.take_chunks(bytes, start);
        let filter = RowFilter::new(&self.selection.range);
        if !work.is_inside(&self.selection.range) {
            work.leave_out(|row| filter.payload(row));
        }
        Ok(work)
    }

    fn skip_rows(&self, work: &mut SlotRead) {
        if self.skip > 0 && self.planned.first().is_some_and(|first| first.sequence == work.planned.sequence)
        {
            work.skip_rows(self.skip);
        }
    }

    /// A slot that came in one piece.
    fn settle_whole(&mut self, planned: PlannedSlot, head: SlotHead, buffer: Buffer) -> JobStage {
        let work =
            head.index(&buffer, 0).and_then(|index| SlotRead::new(planned, head, index, self.selection));
        let settled = work.and_then(|mut work| {
            self.skip_rows(&mut work);
            let from = work.chunks_at()?;
            let end = work.chunks.iter().map(|number| work.chunk_range(*number).end).max().unwrap_or(from);
            work.chunk_window.push_copies(from);
            work.chunk_window.extend(buffer.get(from..end).unwrap_or_default());
            let header = &work.head.header;
            let (at, len) = (header.payload_offset as usize, header.payload_bytes as usize);
            Ok((work, at, len))
        });
        JobStage::Prepared(match settled {
            Ok((mut work, at, len)) => {
                work.payload_window.push(0, len, at, PieceBytes::Buffer(buffer));
                PreparedSlot::Ready(Box::new(work))
            }
            Err(wrong) => {
                self.queue.give(buffer);
                PreparedSlot::Defective(wrong)
            }
        })
    }

    /// Takes in the next read of the slot that is being looked at, or all those of a group of chunks. `false`: there is none.
    fn take_in(&mut self) -> Result<bool, BodyError> {
        let mut begun = false;
        self.fill()?;
        loop {
            let Some(work) = &mut self.work else { return Ok(false) };
            let Some((tag, unit)) = work.sent.pop_front() else { return Ok(false) };
            let held = match self.queue.wait(tag)? {
                ReadOutcome::Bytes(buffer) => PieceBytes::Buffer(buffer),
                ReadOutcome::Expired => return Err(BodyError::Expired),
                ReadOutcome::Unreadable(_) => PieceBytes::Copy(salvage(self.queue, unit.want, CHECK_BLOCK)?),
            };
            match unit.part {
                SlotPart::Chunks => {
                    // They are used from the last to the first, and many: no buffer waits for that.
                    if !std::mem::replace(&mut begun, true) {
                        work.chunk_window.push_copies(unit.start);
                    }
                    work.chunk_window.extend(&held.bytes()[..unit.len]);
                    held.release(self.queue);
                }
                SlotPart::Payload => work.payload_window.push(unit.start, unit.len, 0, held),
            }
            // The device goes on while this piece is looked at: often all that was asked for has come at once.
            self.fill()?;
            if let Some(work) = &mut self.work {
                // Payload whose rows were not wanted must not keep chunks behind it from being sent.
                work.payload_window.pass(work.payload_from, self.queue);
            }
            if !unit.more {
                return Ok(true);
            }
        }
    }

    /// A chunk of the slot that is being looked at: its rows, or what is wrong with it.
    pub(crate) fn chunk(&mut self, number: usize) -> Result<Result<Chunk, String>, BodyError> {
        let Some(work) = &mut self.work else { return Ok(Err("no slot".to_owned())) };
        let range = work.chunk_range(number);
        work.chunk_window.seek(range.start, self.queue);
        // Payload of chunks before this one is not wanted any more, and must not keep its reads from being sent.
        work.payload_from = work.index.directory[number].payload_offset as usize;
        work.payload_window.pass(work.payload_from, self.queue);
        if !work.chunk_window.has(range.start, range.end) {
            work.chunk_window.begin(range.start);
            while let Some(work) = &mut self.work {
                if work.chunk_window.gather(range.end, self.queue) || !self.take_in()? {
                    break;
                }
            }
        }
        let Some(work) = &self.work else { return Ok(Err("no slot".to_owned())) };
        let bytes = work.chunk_window.view(range.start, range.end);
        let chunk = Chunk::decode_at(&work.index.directory[number], work.planned.sequence, bytes);
        Ok(chunk.map_err(|error| error.to_string()))
    }

    /// Makes a range of the payload one that [`super::window::Window::view`] can show.
    pub(crate) fn reach(&mut self, start: usize, end: usize) -> Result<(), BodyError> {
        loop {
            let Some(work) = &mut self.work else { return Ok(()) };
            work.pass(start, self.queue);
            work.check(end);
            if start == end || work.payload_window.has(start, end) {
                return Ok(());
            }
            if work.payload_window.pieces() > 0 {
                work.payload_window.begin(start);
                break;
            }
            if !self.take_payload()? {
                return Ok(());
            }
        }
        loop {
            let Some(work) = &mut self.work else { return Ok(()) };
            work.check(end);
            if work.payload_window.gather(end, self.queue) || !self.take_payload()? {
                return Ok(());
            }
        }
    }

    /// Takes in reads until one of the payload has come. `false`: there is none.
    fn take_payload(&mut self) -> Result<bool, BodyError> {
        loop {
            let before = self.work.as_ref().map_or(0, |work| work.payload_window.pieces());
            if !self.take_in()? {
                return Ok(false);
            }
            if self.work.as_ref().map_or(0, |work| work.payload_window.pieces()) > before {
                return Ok(true);
            }
        }
    }

    /// Appends a range of the payload to `into`, however long.
    pub(crate) fn append(&mut self, start: usize, end: usize, into: &mut Vec<u8>) -> Result<(), BodyError> {
        if let Some(work) = &mut self.work {
            work.pass(start, self.queue);
        }
        let mut at = start;
        loop {
            let Some(work) = &mut self.work else { return Ok(()) };
            at = work.take_into(at, end, into, self.queue);
            if at >= end || !self.take_payload()? {
                return Ok(());
            }
        }
    }
}

/// Asks for the reads of a slot; whether all have been asked for. At least one is always under way or waiting to be used.
fn send(
    work: &mut SlotRead,
    queue: &mut ReadQueue,
    used: &mut usize,
    depth: usize,
) -> Result<bool, ReaderError> {
    while *used < depth && (work.sent.is_empty() || !queue.is_busy()) {
        let Some(unit) = work.units.pop_front() else { return Ok(true) };
        let tag = queue.submit(unit.want)?;
        work.sent.push_back((tag, unit));
        *used += 1;
    }
    Ok(work.units.is_empty())
}

/// What can be read of a piece that could not be read as a whole; zeros where nothing can, which pass no check.
fn salvage(queue: &mut ReadQueue, whole: ReadRequest, piece: usize) -> Result<Vec<u8>, BodyError> {
    let mut bytes = vec![0; whole.len];
    for at in (0..whole.len).step_by(piece) {
        let len = piece.min(whole.len - at).next_multiple_of(BLOCK);
        match queue.fetch(ReadRequest { offset: whole.offset + at, len, ..whole })? {
            ReadOutcome::Bytes(buffer) => {
                bytes[at..at + len].copy_from_slice(&buffer[..len]);
                queue.give(buffer);
            }
            ReadOutcome::Expired => return Err(BodyError::Expired),
            ReadOutcome::Unreadable(_) => {}
        }
    }
    Ok(bytes)
}
