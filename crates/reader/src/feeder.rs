//! Read-ahead: heads, directories and bodies of the planned slots, asked for in the order in which they will be used,
//! as many at once as the access allows.

use super::access::{Access, Got, Want};
use super::item::{PlannedSlot, Selection};
use super::output::Filter;
use super::pump::Pump;
use super::slot::{Head, Index, Wrong, head_bytes};
use super::window::Held;
use super::work::{Part, Work};
use holdfast_base::{BLOCK, CHECK_BLOCK};
use holdfast_format::{Chunk, Superblock};
use holdfast_media::Buffer;
use holdfast_protocol::LinkError;
use std::collections::VecDeque;
use std::ops::Range;

/// Large slots whose heads are read ahead.
const AHEAD: usize = 3;

/// A slot on its way.
#[derive(Debug)]
enum Stage {
    Head { tag: u64, whole: bool },
    Directory { tag: u64, head: Box<Head>, range: Range<usize> },
    Settled(Settled),
}

/// What became of a slot's head.
#[derive(Debug)]
pub(crate) enum Settled {
    /// It can be read.
    Ready(Box<Work>),
    /// It has expired.
    Expired,
    /// It is not what it should be.
    Wrong(Wrong),
}

#[derive(Debug)]
struct Job {
    planned: PlannedSlot,
    stage: Stage,
}

impl Job {
    fn buffers(&self) -> usize {
        match &self.stage {
            Stage::Head { whole, .. } => usize::from(*whole),
            Stage::Settled(Settled::Ready(work)) => work.buffers(),
            Stage::Directory { .. } | Stage::Settled(_) => 0,
        }
    }
}

/// Why a slot's body stops coming.
#[derive(Debug)]
pub(crate) enum Stop {
    /// It expired meanwhile.
    Expired,
    /// The way to the ring is gone.
    Failed(LinkError),
}

impl From<LinkError> for Stop {
    fn from(error: LinkError) -> Self {
        Self::Failed(error)
    }
}

/// The read-ahead over some planned slots.
pub(crate) struct Feeder<'a> {
    pub(crate) pump: &'a mut Pump,
    pub(crate) superblock: &'a Superblock,
    selection: &'a Selection,
    planned: &'a [PlannedSlot],
    next: usize,
    jobs: VecDeque<Job>,
    /// The slot that is being looked at.
    pub(crate) work: Option<Box<Work>>,
    whole: bool,
    /// Rows of the first slot that have been dealt with.
    skip: u32,
}

impl<'a> Feeder<'a> {
    /// Begins with the first of `planned`, behind its first `skip` rows.
    pub(crate) fn new(
        pump: &'a mut Pump,
        superblock: &'a Superblock,
        selection: &'a Selection,
        planned: &'a [PlannedSlot],
        skip: u32,
    ) -> Self {
        let whole = superblock.geometry.slot_bytes as usize <= pump.access.quantum();
        let jobs = VecDeque::new();
        Self { pump, superblock, selection, planned, next: 0, jobs, work: None, whole, skip }
    }

    /// Whether there is another slot behind the one that is being looked at.
    pub(crate) fn has_more(&self) -> bool {
        !self.jobs.is_empty() || self.next < self.planned.len()
    }

    /// The next slot, once its head has been looked at: a sound one is `work` from now on.
    pub(crate) fn next_slot(&mut self) -> Result<Option<(PlannedSlot, Option<Settled>)>, LinkError> {
        self.end_slot();
        loop {
            self.fill()?;
            let Some(job) = self.jobs.front() else { return Ok(None) };
            match &job.stage {
                Stage::Head { tag, .. } | Stage::Directory { tag, .. } => self.pump.settle(*tag)?,
                Stage::Settled(_) => break,
            }
        }
        let Some(Job { planned, stage: Stage::Settled(settled) }) = self.jobs.pop_front() else {
            return Ok(None);
        };
        if let Settled::Ready(work) = settled {
            self.work = Some(work);
            return Ok(Some((planned, None)));
        }
        Ok(Some((planned, Some(settled))))
    }

    /// Lets go of the slot that is being looked at.
    pub(crate) fn end_slot(&mut self) {
        if let Some(mut work) = self.work.take() {
            work.chunk_window.clear(self.pump);
            work.payload_window.clear(self.pump);
            for (tag, _) in work.sent.drain(..) {
                self.pump.forget(tag);
            }
        }
    }

    /// Asks for whatever there is room for.
    fn fill(&mut self) -> Result<(), LinkError> {
        self.pump.poll()?;
        let depth = self.pump.access.depth();
        let mut used = self.work.as_ref().map_or(0, |work| work.buffers());
        used += self.jobs.iter().map(Job::buffers).sum::<usize>();
        if let Some(work) = &mut self.work
            && !send(work, self.pump, &mut used, depth)?
        {
            return Ok(());
        }
        let (mut all_sent, mut waiting) = (true, false);
        for at in 0..self.jobs.len() {
            self.advance(at)?;
            match &mut self.jobs[at].stage {
                Stage::Settled(Settled::Ready(work)) => {
                    // Only the slot that is being looked at has to have a read under way.
                    all_sent = all_sent && !self.pump.is_busy() && send(work, self.pump, &mut used, depth)?;
                    waiting |= !work.units.is_empty();
                }
                Stage::Settled(_) => {}
                // What comes behind must wait for its reads.
                Stage::Head { .. } | Stage::Directory { .. } => all_sent = false,
            }
        }
        // Heads lie apart. A recorder's drive may have to go there and back for each: it is asked for some together, when
        // nothing that lies in a row waits for its turn. Straight from a lane no device is to be idle meanwhile.
        let later = waiting && matches!(self.pump.access, Access::Live(_));
        let ahead = if self.whole { depth } else { AHEAD };
        while !later && self.next < self.planned.len() && self.jobs.len() < ahead {
            if self.whole && (used >= depth || (!self.jobs.is_empty() && self.pump.is_busy())) {
                break;
            }
            let planned = self.planned[self.next];
            if planned.slot.is_none()
                && let Access::Live(live) = &mut self.pump.access
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
            if let Some(head) = self.pump.access.head_at_hand(&planned).filter(|_| !self.whole) {
                let stage = match Head::decode(&head, self.superblock, planned.slot, planned.sequence) {
                    Ok(head) => {
                        let range = head.index_range();
                        self.ask_directory(planned, Box::new(head), range)?
                    }
                    Err(wrong) => Stage::Settled(Settled::Wrong(wrong)),
                };
                self.jobs.push_back(Job { planned, stage });
                continue;
            }
            let geometry = &self.superblock.geometry;
            let len = if self.whole { geometry.slot_bytes as usize } else { head_bytes(geometry) };
            let tag = self.pump.submit(planned.want(0, len))?;
            self.jobs.push_back(Job { planned, stage: Stage::Head { tag, whole: self.whole } });
            used += usize::from(self.whole);
        }
        Ok(())
    }

    /// Takes a slot further, as far as its answers are there.
    fn advance(&mut self, at: usize) -> Result<(), LinkError> {
        loop {
            let job = &mut self.jobs[at];
            let (Stage::Head { tag, .. } | Stage::Directory { tag, .. }) = &job.stage else { return Ok(()) };
            if !self.pump.is_ready(*tag) {
                return Ok(());
            }
            let got = self.pump.wait(*tag)?;
            let planned = job.planned;
            let stage = std::mem::replace(&mut job.stage, Stage::Settled(Settled::Expired));
            let next = match (got, stage) {
                (Got::Bytes(buffer), Stage::Head { whole, .. }) => {
                    let head = Head::decode(&buffer, self.superblock, planned.slot, planned.sequence);
                    match head {
                        Ok(head) if whole => self.settle_whole(planned, head, buffer),
                        Ok(head) => {
                            self.pump.give(buffer);
                            let range = head.index_range();
                            self.ask_directory(planned, Box::new(head), range)?
                        }
                        Err(wrong) => {
                            self.pump.give(buffer);
                            Stage::Settled(Settled::Wrong(wrong))
                        }
                    }
                }
                (Got::Bytes(buffer), Stage::Directory { head, range, .. }) => {
                    let bytes = buffer.get(..range.len()).unwrap_or_default();
                    let settled = head
                        .index(bytes, range.start)
                        .and_then(|index| self.settle(planned, *head, index, bytes, range.start));
                    self.pump.give(buffer);
                    Stage::Settled(settled.map_or_else(Settled::Wrong, |work| Settled::Ready(Box::new(work))))
                }
                (Got::Expired, _) => Stage::Settled(Settled::Expired),
                // What cannot be read may be a chunk, and concern nobody.
                (Got::Unreadable(_), Stage::Directory { head, range, .. })
                    if head.directory_range().is_ok_and(|alone| alone != range) =>
                {
                    let alone = head.directory_range();
                    self.ask_directory(planned, head, alone)?
                }
                // Nor need it be what tells of the slot: then the rest is asked for piece by piece.
                (Got::Unreadable(text), Stage::Head { .. }) => self.salvage_head(planned, text)?,
                (Got::Unreadable(text), _) => Stage::Settled(Settled::Wrong(Wrong::Damaged(text))),
                (Got::Bytes(buffer), stage @ Stage::Settled(_)) => {
                    self.pump.give(buffer);
                    stage
                }
            };
            self.jobs[at].stage = next;
        }
    }

    /// Goes on with a slot of which not all that was asked for first could be read, if its head can.
    fn salvage_head(&mut self, planned: PlannedSlot, text: String) -> Result<Stage, LinkError> {
        let want = planned.want(0, head_bytes(&self.superblock.geometry));
        let bytes = match salvage(self.pump, want, BLOCK) {
            Ok(bytes) => bytes,
            Err(Stop::Expired) => return Ok(Stage::Settled(Settled::Expired)),
            Err(Stop::Failed(error)) => return Err(error),
        };
        match Head::decode(&bytes, self.superblock, planned.slot, planned.sequence) {
            Ok(head) => {
                let range = head.index_range();
                self.ask_directory(planned, Box::new(head), range)
            }
            Err(Wrong::Damaged(_)) => Ok(Stage::Settled(Settled::Wrong(Wrong::Damaged(text)))),
            Err(wrong) => Ok(Stage::Settled(Settled::Wrong(wrong))),
        }
    }

    fn ask_directory(
        &mut self,
        planned: PlannedSlot,
        head: Box<Head>,
        range: Result<Range<usize>, Wrong>,
    ) -> Result<Stage, LinkError> {
        match range {
            Ok(range) => {
                let tag = self.pump.submit(planned.want(range.start, range.len()))?;
                Ok(Stage::Directory { tag, head, range })
            }
            Err(wrong) => Ok(Stage::Settled(Settled::Wrong(wrong))),
        }
    }

    /// A slot whose index has come, with `bytes` that begin at `start` in it.
    fn settle(
        &self,
        planned: PlannedSlot,
        head: Head,
        index: Index,
        bytes: &[u8],
        start: usize,
    ) -> Result<Work, Wrong> {
        let mut work = Work::new(planned, head, index, self.selection)?;
        self.skip_rows(&mut work);
        work.schedule(self.pump.access.quantum());
        work.take_chunks(bytes, start);
        let filter = Filter::new(&self.selection.range);
        if !work.is_inside(&self.selection.range) {
            work.leave_out(|row| filter.payload(row));
        }
        Ok(work)
    }

    fn skip_rows(&self, work: &mut Work) {
        if self.skip > 0 && self.planned.first().is_some_and(|first| first.sequence == work.planned.sequence)
        {
            work.skip_rows(self.skip);
        }
    }

    /// A slot that came in one piece.
    fn settle_whole(&mut self, planned: PlannedSlot, head: Head, buffer: Buffer) -> Stage {
        let work = head.index(&buffer, 0).and_then(|index| Work::new(planned, head, index, self.selection));
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
        Stage::Settled(match settled {
            Ok((mut work, at, len)) => {
                work.payload_window.push(0, len, at, Held::Buffer(buffer));
                Settled::Ready(Box::new(work))
            }
            Err(wrong) => {
                self.pump.give(buffer);
                Settled::Wrong(wrong)
            }
        })
    }

    /// Takes in the next read of the slot that is being looked at, or all those of a group of chunks. `false`: there is none.
    fn take_in(&mut self) -> Result<bool, Stop> {
        let mut begun = false;
        self.fill()?;
        loop {
            let Some(work) = &mut self.work else { return Ok(false) };
            let Some((tag, unit)) = work.sent.pop_front() else { return Ok(false) };
            let held = match self.pump.wait(tag)? {
                Got::Bytes(buffer) => Held::Buffer(buffer),
                Got::Expired => return Err(Stop::Expired),
                Got::Unreadable(_) => Held::Copy(salvage(self.pump, unit.want, CHECK_BLOCK)?),
            };
            match unit.part {
                Part::Chunks => {
                    // They are used from the last to the first, and many: no buffer waits for that.
                    if !std::mem::replace(&mut begun, true) {
                        work.chunk_window.push_copies(unit.start);
                    }
                    work.chunk_window.extend(&held.bytes()[..unit.len]);
                    held.release(self.pump);
                }
                Part::Payload => work.payload_window.push(unit.start, unit.len, 0, held),
            }
            // The device goes on while this piece is looked at: often all that was asked for has come at once.
            self.fill()?;
            if let Some(work) = &mut self.work {
                // Payload whose rows were not wanted must not keep chunks behind it from being sent.
                work.payload_window.pass(work.payload_from, self.pump);
            }
            if !unit.more {
                return Ok(true);
            }
        }
    }

    /// A chunk of the slot that is being looked at: its rows, or what is wrong with it.
    pub(crate) fn chunk(&mut self, number: usize) -> Result<Result<Chunk, String>, Stop> {
        let Some(work) = &mut self.work else { return Ok(Err("no slot".to_owned())) };
        let range = work.chunk_range(number);
        work.chunk_window.seek(range.start, self.pump);
        // Payload of chunks before this one is not wanted any more, and must not keep its reads from being sent.
        work.payload_from = work.index.directory[number].payload_offset as usize;
        work.payload_window.pass(work.payload_from, self.pump);
        if !work.chunk_window.has(range.start, range.end) {
            work.chunk_window.begin(range.start);
            while let Some(work) = &mut self.work {
                if work.chunk_window.gather(range.end, self.pump) || !self.take_in()? {
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
    pub(crate) fn reach(&mut self, start: usize, end: usize) -> Result<(), Stop> {
        loop {
            let Some(work) = &mut self.work else { return Ok(()) };
            work.pass(start, self.pump);
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
            if work.payload_window.gather(end, self.pump) || !self.take_payload()? {
                return Ok(());
            }
        }
    }

    /// Takes in reads until one of the payload has come. `false`: there is none.
    fn take_payload(&mut self) -> Result<bool, Stop> {
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
    pub(crate) fn append(&mut self, start: usize, end: usize, into: &mut Vec<u8>) -> Result<(), Stop> {
        if let Some(work) = &mut self.work {
            work.pass(start, self.pump);
        }
        let mut at = start;
        loop {
            let Some(work) = &mut self.work else { return Ok(()) };
            at = work.take_into(at, end, into, self.pump);
            if at >= end || !self.take_payload()? {
                return Ok(());
            }
        }
    }
}

/// Asks for the reads of a slot; whether all have been asked for. At least one is always under way or waiting to be used.
fn send(work: &mut Work, pump: &mut Pump, used: &mut usize, depth: usize) -> Result<bool, LinkError> {
    while *used < depth && (work.sent.is_empty() || !pump.is_busy()) {
        let Some(unit) = work.units.pop_front() else { return Ok(true) };
        let tag = pump.submit(unit.want)?;
        work.sent.push_back((tag, unit));
        *used += 1;
    }
    Ok(work.units.is_empty())
}

/// What can be read of a piece that could not be read as a whole; zeros where nothing can, which pass no check.
fn salvage(pump: &mut Pump, whole: Want, piece: usize) -> Result<Vec<u8>, Stop> {
    let mut bytes = vec![0; whole.len];
    for at in (0..whole.len).step_by(piece) {
        let len = piece.min(whole.len - at).next_multiple_of(BLOCK);
        match pump.fetch(Want { offset: whole.offset + at, len, ..whole })? {
            Got::Bytes(buffer) => {
                bytes[at..at + len].copy_from_slice(&buffer[..len]);
                pump.give(buffer);
            }
            Got::Expired => return Err(Stop::Expired),
            Got::Unreadable(_) => {}
        }
    }
    Ok(bytes)
}
