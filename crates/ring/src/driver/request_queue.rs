//! Requests that wait for the lane: full slots, the commit, superblocks, reads. The schedule chooses the next
//! one; this module starts it.

use super::drain::is_client_read;
use super::{COMMIT, Driver, JournalDelta, WRITE};
use crate::event::OpenBrief;
use crate::guarantee::{Guarantee, Load, Refused, Shape, admit, soon};
use crate::rates::Spare;
use crate::runway::Names;
use crate::schedule::{Class, Next, Policy, ReadRequest, Reads, Schedule, View, visit};
use crate::state::Pledge;
use holdfast_base::{ByteSize, Sequence, SlotNo, Timestamp};
use holdfast_format::{CommitWriter, Measured};
use holdfast_media::{Disk, Op, Request};
use std::time::Duration;

/// Reads that may wait: more than anybody lends buffers for.
const READS: usize = 64;

/// A client's turn where nothing is known of the lane.
const VISIT: u64 = 8 << 20;

/// A full slot that has a place.
#[derive(Clone, Copy, Debug)]
struct Placed {
    sequence: Sequence,
    slot: SlotNo,
    offset: u64,
    /// Since when it has had what the journal has not.
    oldest: Timestamp,
}

/// What waits, and how much is under way.
#[derive(Debug)]
pub(super) struct RequestQueue {
    schedule: Schedule,
    reads: Reads,
    /// What the waiting reads ask for, by their numbers.
    requests: Vec<(u64, Request)>,
    next: u64,
    /// The oldest first.
    placed: Vec<Placed>,
    /// A commit waits.
    commit: bool,
    /// Where a commit that failed is to be written again.
    again: Option<u64>,
    pub(super) writing: u32,
    pub(super) committing: u32,
    pub(super) reading: u32,
    /// What the open slot still takes.
    room: u64,
    /// Until when the schedule rests.
    rest: Option<Timestamp>,
    pub(super) granted: Option<Guarantee>,
    /// The run ends: no read of a client is begun.
    pub(super) draining: bool,
}

impl RequestQueue {
    pub(super) fn new(slot: u64, buffers: usize) -> Self {
        let shape = Shape {
            slot: ByteSize(slot),
            flush: Duration::ZERO,
            gather: 1,
            quantum: 0,
            buffers: buffers as u32,
        };
        Self {
            schedule: Schedule::new(Policy::new(None, &shape)),
            reads: Reads::new(READS, VISIT),
            requests: Vec::with_capacity(READS),
            next: 0,
            placed: Vec::with_capacity(buffers + 8),
            commit: false,
            again: None,
            writing: 0,
            committing: 0,
            reading: 0,
            room: 0,
            rest: None,
            granted: None,
            draining: false,
        }
    }

    pub(super) fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    pub(super) fn spare(&self, now: Timestamp, free: u32, room: Option<u64>) -> Spare {
        self.schedule.spare(now, free, room, self.reading)
    }

    /// Until when nothing is begun, if nothing ends or arrives.
    pub(super) fn rest(&self) -> Option<Timestamp> {
        self.rest
    }

    /// Whether no read waits. Slots and commits that wait are the ring's to know.
    pub(super) fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    fn promises(&self) -> bool {
        self.granted.is_some()
    }

    /// Puts a read in; gives it back when there is no room.
    pub(super) fn push(&mut self, class: Class, client: u64, request: Request) -> Result<(), Request> {
        let (offset, bytes) = match &request.op {
            Op::Read { offset, len, .. } | Op::Write { offset, len, .. } => (*offset, *len as u32),
            Op::Flush | Op::Measure => (0, 0),
        };
        let wanted = ReadRequest { id: self.next, class, client, offset, bytes };
        if self.reads.push(wanted).is_err() {
            return Err(request);
        }
        self.requests.push((self.next, request));
        self.next += 1;
        Ok(())
    }

    fn pick(&mut self) -> Option<Request> {
        let picked = self.reads.pick()?;
        let at = self.requests.iter().position(|(id, _)| *id == picked.id)?;
        Some(self.requests.swap_remove(at).1)
    }

    /// Takes out a read of a client, if one waits.
    pub(super) fn drop_read(&mut self) -> Option<Request> {
        let at = self.requests.iter().position(|(_, request)| is_client_read(request.tag))?;
        let (id, request) = self.requests.swap_remove(at);
        self.reads.remove(id);
        Some(request)
    }

    pub(super) fn note_open(&mut self, open: Option<OpenBrief>) {
        self.room = open.map_or(0, |open| open.room);
    }
}

impl<D: Disk> Driver<D> {
    /// From here on the ring goes by what is promised, if that can be: `load` on a lane of which that was `measured`.
    pub fn promise(&mut self, measured: &Measured, load: &Load, shape: &Shape) -> Result<Guarantee, Refused> {
        let granted = admit(measured, load, shape)?;
        self.requests.schedule = Schedule::new(Policy::new(Some((measured, load)), shape));
        self.requests.reads.set_visit(visit(measured, shape.quantum));
        self.requests.granted = Some(granted);
        let slots = self.superblock().geometry.slots;
        self.ring.pledge(Pledge {
            soon: Duration::from_secs_f64(soon(measured, shape.slot)).max(shape.flush * 2),
            hard: granted.forced,
            row: self.requests.schedule.policy().promise.map_or(u64::MAX, |promise| promise.row),
            durable_after: granted.durable_after,
            buffers: shape.buffers,
            names: Names::on(slots, &granted, shape.buffers, shape.gather),
        });
        Ok(granted)
    }

    /// Whether the open slot should be sealed now: for the ring's sake, or because so much of it has waited for long enough that
    /// its own write makes it durable sooner than the journal would.
    pub fn wants_seal(&self, now: Timestamp) -> bool {
        let may_end = || self.requests.schedule.may_end_slot(&self.view(now, false));
        self.ring.wants_seal() || (self.ring.is_overdue() && may_end())
    }

    /// A full slot has got its place.
    pub(super) fn place(&mut self, sequence: Sequence, slot: SlotNo, offset: u64) {
        let oldest = self.moving.iter().find(|moving| moving.sequence == sequence).map(|m| m.oldest);
        if let Some(oldest) = oldest {
            let at = self.requests.placed.partition_point(|placed| placed.sequence < sequence);
            self.requests.placed.insert(at, Placed { sequence, slot, offset, oldest });
        }
    }

    /// Whether the ring has something for its journal.
    pub(super) fn look_for_commit(&mut self) {
        self.requests.commit = self.commit.is_some() && {
            self.requests.again = self.requests.again.or(self.ring.retry_commit());
            self.requests.again.is_some() || self.ring.plan_commit().is_some()
        };
    }

    /// Where nothing is promised, what is full is written at once, whatever the journal has to say.
    pub(super) fn begin_at_once(&mut self, now: Timestamp) {
        if !self.requests.promises() {
            self.begin(now, None);
        }
    }

    /// Begins what the schedule says. A commit can be begun only with what the open slot `gains`.
    pub(super) fn begin(&mut self, now: Timestamp, mut gains: Option<&mut JournalDelta<'_>>) {
        loop {
            let superblock = self.superblock_waits();
            let view = self.view(now, superblock || (self.requests.commit && gains.is_some()));
            match self.requests.schedule.next(&view) {
                Next::Rest(until) => {
                    self.requests.rest = until;
                    break;
                }
                Next::Write => self.begin_write(now),
                Next::Commit { .. } if superblock => {
                    self.requests.committing += 1;
                    self.begin_superblock();
                }
                Next::Commit { most } => {
                    self.requests.commit = false;
                    if let Some(gains) = gains.as_deref_mut() {
                        self.begin_commit(most, gains, now);
                    }
                }
                Next::Read => {
                    if let Some(request) = self.requests.pick() {
                        self.read_begins(request.tag, now);
                        self.requests.reading += 1;
                        self.queue.push_back(request);
                    }
                }
            }
        }
        self.pump();
    }

    fn view(&self, now: Timestamp, commit: bool) -> View {
        let queue = &self.requests;
        let waiting = queue.placed.iter().map(|placed| placed.oldest).chain(self.ring.gaining_since());
        View {
            now,
            full: queue.placed.len() as u32,
            oldest: queue.schedule.waiting_since(waiting, queue.writing).unwrap_or(now),
            free: self.free.len() as u32,
            room: queue.room,
            writing: queue.writing,
            committing: queue.committing > 0,
            commit,
            reading: queue.reading,
            reads: !queue.reads.is_empty(),
            away: queue.reads.is_away(),
            starved: self.ring.starved().is_some(),
            draining: queue.draining,
        }
    }

    fn begin_write(&mut self, now: Timestamp) {
        if self.requests.placed.is_empty() {
            return;
        }
        let Placed { sequence, slot, offset, .. } = self.requests.placed.remove(0);
        let Some(moving) = self.moving.iter_mut().find(|m| m.sequence == sequence) else {
            return;
        };
        let Some(buffer) = moving.buffer.take() else {
            return;
        };
        moving.since = now;
        let len = moving.bytes;
        // The image was sealed before its place was known.
        let buffer = self.stamped(buffer, slot);
        let op = Op::Write { offset, buffer, len, durable: true };
        self.requests.writing += 1;
        self.queue.push_back(Request { tag: WRITE | sequence.0, op });
    }

    fn begin_commit(&mut self, most: u64, gains: &mut JournalDelta<'_>, now: Timestamp) {
        let offset = if let Some(offset) = self.requests.again.take() {
            offset
        } else if let Some((offset, room)) = self.ring.plan_commit() {
            let Some(buffer) = &mut self.commit else {
                return;
            };
            let most = usize::try_from(most).unwrap_or(usize::MAX);
            let mut writer = CommitWriter::within(&mut buffer[..room], most);
            let head = self.ring.fill(&mut writer, gains);
            self.commit_bytes = writer.finish(&self.superblock.key, &head);
            self.ring.filled(self.commit_bytes);
            self.committing = Some(now);
            offset
        } else {
            return;
        };
        if let Some(buffer) = self.commit.take() {
            let op = Op::Write { offset, buffer, len: self.commit_bytes, durable: true };
            self.requests.committing += 1;
            self.queue.push_back(Request { tag: COMMIT, op });
        }
    }
}
