//! Driver of a ring: carries the ring's actions out on a disk, in the order of the schedule. It moves buffers
//! and keeps tags, and decides nothing. Waiting requests are in `request_queue`, a lane that grows in
//! `growth`, slot buffers in `buffers`, the end of a run in `drain`.
//!
//! Used by the recorder (over a lane with a thread of its own), by commands on a ring that nobody records to, and by the
//! simulator (over a faulty disk in virtual time).

mod buffers;
mod counts;
mod drain;
mod growth;
mod request_queue;

pub use counts::{DriverCounts, Took};

use crate::backpressure::Backpressure;
use crate::birds_eye::BirdsEye;
use crate::crash_gaps::CrashGap;
use crate::event::{Action, Config, Event, OpenBrief, SealedSlot};
use crate::guarantee::Guarantee;
use crate::job_step::{PendingStep, StepReply};
use crate::rates::Spare;
use crate::rebuild::{Doubt, Rebuilt};
use crate::scan::Scan;
use crate::schedule::{Class, Schedule};
use crate::state::Ring;
use crate::table::State;
use crate::{Order, OrderTag, Outcome, Recovered};
use drain::is_client_read;
use holdfast_base::{BLOCK, ByteSize, Sequence, SlotNo, StreamId, Timestamp};
use holdfast_format::{CommitWriter, Counters, Cursor, Key, Superblock, restamp};
use holdfast_media::{Buffer, Completion, Disk, DiskError, Fault, Op, Peek, PoolError, Request};
use request_queue::RequestQueue;
use std::collections::VecDeque;
use std::time::Duration;

/// What a request was for; kept in the upper byte of its tag.
const WRITE: u64 = 1 << 56;
const COMMIT: u64 = 2 << 56;
const SUPERBLOCK: u64 = 3 << 56;
pub(crate) const SCAN: u64 = 4 << 56;
const READ: u64 = 5 << 56;
pub(crate) const JOB_STEP: u64 = 6 << 56;
const MEASURE: u64 = 7 << 56;
pub(crate) const EYE: u64 = 8 << 56;
const KIND: u64 = 0xff << 56;

/// Clients of our own.
const SCANNER: u64 = u64::MAX;
const WORKER: u64 = u64::MAX - 1;

/// Whether a request of a driver with this tag writes a slot: those may take turns ([`holdfast_media::InflightLimiter`]).
pub fn is_slot_write(tag: u64) -> bool {
    tag & KIND == WRITE
}

/// Appends to a commit what the open slot has from a cursor on; tells how far it came and whether that was all.
pub type JournalDelta<'a> = dyn FnMut(Cursor, &mut CommitWriter<'_>) -> (Cursor, bool) + 'a;

/// A sealed slot's buffer on its way.
#[derive(Debug)]
struct Moving {
    sequence: Sequence,
    bytes: usize,
    /// With the disk when `None`.
    buffer: Option<Buffer>,
    /// What it has, wherever it is.
    peek: Peek,
    since: Timestamp,
    /// When it was sealed.
    sealed: Timestamp,
    /// Since when it has had what the journal has not.
    oldest: Timestamp,
    /// Not part of the pool: given back to nobody.
    extra: bool,
}

/// A piece of a slot that somebody wants to read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SlotRead {
    /// The caller's number.
    pub id: u64,
    /// What for.
    pub class: Class,
    /// Whose.
    pub client: u64,
    /// Which slot.
    pub sequence: Sequence,
    /// From which byte of it on.
    pub offset: u64,
    /// How much.
    pub len: usize,
}

/// A read for somebody else that waits or is under way.
#[derive(Clone, Copy, Debug)]
struct Read {
    id: u64,
    slot: SlotNo,
    sequence: Sequence,
    bytes: usize,
    since: Timestamp,
}

/// A read for somebody else, carried out between writes.
#[derive(Debug)]
pub struct ReadDone {
    /// The caller's number.
    pub id: u64,
    /// Its buffer.
    pub buffer: Buffer,
    /// How it went; `None` when the slot no longer holds that sequence.
    pub result: Option<Result<(), DiskError>>,
}

/// A ring on a disk.
#[derive(Debug)]
pub struct Driver<D: Disk> {
    pub(crate) ring: Ring,
    disk: D,
    pub(crate) superblock: Superblock,
    free: Vec<Buffer>,
    buffers: usize,
    moving: Vec<Moving>,
    commit: Option<Buffer>,
    commit_bytes: usize,
    /// Since when the commit that is not durable yet has been under way.
    committing: Option<Timestamp>,
    /// The greatest age that anything had reached that was neither in a slot on the medium nor in the journal.
    eldest: Duration,
    /// Bytes and next copy of superblocks being written, with the window they pass through.
    superblocks: Option<(Vec<u8>, usize)>,
    superblock_buffer: Option<Buffer>,
    pub(crate) scan: Scan,
    /// What takes the place of slots that the check behind capture may find torn.
    pub(crate) doubts: Vec<Doubt>,
    /// What a crash has taken out of the middle, and nobody has been told.
    pub(crate) crash_gaps: Vec<CrashGap>,
    reads: Vec<Read>,
    reads_done: VecDeque<ReadDone>,
    requests: RequestQueue,
    /// What has had its turn, and the disk had no room for.
    queue: VecDeque<Request>,
    in_flight: usize,
    pub(crate) actions: Vec<Action>,
    replies: VecDeque<(OrderTag, Outcome)>,
    counts: DriverCounts,
    last_error: Option<String>,
    fewest_free: usize,
    backpressure: Backpressure,
    /// The growth that waits for the lane to be measured.
    growing: Option<(OrderTag, ByteSize)>,
    pub(crate) step: Option<PendingStep>,
    pub(crate) step_reply: Option<StepReply>,
    pub(crate) view: Option<BirdsEye>,
}

impl<D: Disk> Driver<D> {
    /// Begins a run: `buffers` are the slot buffers, each of one slot. Capture may begin when
    /// [`Driver::is_starting`] has become false.
    pub fn start(
        disk: D,
        mut recovered: Recovered,
        buffers: Vec<Buffer>,
        config: Config,
        now: Timestamp,
        wall: Timestamp,
    ) -> Result<Self, PoolError> {
        let superblock = recovered.superblock.clone();
        let rebuilt = std::mem::take(&mut recovered.rebuilt);
        let suspects = std::mem::take(&mut recovered.suspects);
        let doubts = std::mem::take(&mut recovered.doubts);
        let crash_gaps = std::mem::take(&mut recovered.crash_gaps);
        let count = buffers.len();
        let (requests, at_hand) = (RequestQueue::new(superblock.geometry.slot_bytes, count), config.writes);
        let mut driver = Self {
            ring: Ring::start(recovered, config, now, wall),
            disk,
            commit: Some(Buffer::aligned(superblock.geometry.commit_bytes())?),
            superblock_buffer: Some(Buffer::aligned(BLOCK)?),
            scan: Scan::new(suspects, &superblock.geometry)?,
            doubts: Vec::new(),
            crash_gaps,
            superblock,
            free: buffers,
            buffers: count,
            moving: Vec::with_capacity(count + rebuilt.len() + doubts.len()),
            commit_bytes: 0,
            committing: None,
            eldest: Duration::ZERO,
            superblocks: None,
            reads: Vec::with_capacity(64),
            reads_done: VecDeque::with_capacity(64),
            requests,
            queue: VecDeque::with_capacity(64),
            in_flight: 0,
            actions: Vec::with_capacity(64),
            replies: VecDeque::with_capacity(64),
            counts: DriverCounts::default(),
            last_error: None,
            fewest_free: count,
            backpressure: Backpressure::new(count, at_hand),
            growing: None,
            step: None,
            step_reply: None,
            view: None,
        };
        for doubt in &doubts {
            driver.ring.doubt(doubt.rebuilt.sealed.sequence, doubt.slot);
        }
        driver.doubts = doubts;
        for slot in rebuilt {
            let sealed = slot.sealed;
            driver.take_rebuilt(slot, now);
            driver.ring.adopt(sealed, &mut driver.actions);
        }
        driver.ring.note_landed();
        driver.act(now);
        Ok(driver)
    }

    /// A slot that was rebuilt is to be written, from a buffer that is not of the pool.
    pub(crate) fn take_rebuilt(&mut self, slot: Rebuilt, now: Timestamp) {
        for (stream, preamble, counters) in slot.counters {
            self.ring.note_counters(stream, preamble, counters, slot.sealed.sequence);
        }
        self.moving.push(Moving {
            sequence: slot.sealed.sequence,
            bytes: slot.sealed.bytes,
            peek: slot.image.peek(),
            buffer: Some(slot.image),
            since: now,
            sealed: now,
            oldest: now,
            extra: true,
        });
    }

    /// The ring.
    pub fn ring(&self) -> &Ring {
        &self.ring
    }

    /// The ring, to add streams before capture begins.
    pub fn ring_mut(&mut self) -> &mut Ring {
        &mut self.ring
    }

    /// The disk.
    pub fn disk(&self) -> &D {
        &self.disk
    }

    /// The disk, for tests that break it.
    pub fn disk_mut(&mut self) -> &mut D {
        &mut self.disk
    }

    /// Ends the driver where it stands and gives the disk back.
    pub fn into_disk(self) -> D {
        self.disk
    }

    /// The superblock in force.
    pub fn superblock(&self) -> &Superblock {
        &self.superblock
    }

    /// The key under which slots are sealed.
    pub fn key(&self) -> &Key {
        &self.superblock.key
    }

    /// What passed through.
    pub fn counts(&self) -> &DriverCounts {
        &self.counts
    }

    /// The last error of the disk, as text.
    pub fn last_error(&self) -> Option<&str> {
        self.last_error.as_deref()
    }

    /// Whether the run's first snapshot is not durable yet.
    pub fn is_starting(&self) -> bool {
        self.ring.is_starting()
    }

    /// The guarantee that the ring goes by; `None` for one that does its best.
    pub fn guarantee(&self) -> Option<&Guarantee> {
        self.requests.granted.as_ref()
    }

    /// The schedule, for its margin.
    pub fn schedule(&self) -> &Schedule {
        self.requests.schedule()
    }

    /// The greatest age of data that was not durable yet: what a crash could have cost at worst.
    pub fn eldest(&self) -> Duration {
        self.eldest
    }

    /// What may be packed beyond what was declared; the open slot, if there is one, takes `room` more.
    pub fn spare(&self, room: Option<u64>, now: Timestamp) -> Spare {
        self.requests.spare(now, self.free.len() as u32, room)
    }

    /// When the driver wants to be polled next, though nothing should end or arrive until then.
    pub fn rests_until(&self) -> Option<Timestamp> {
        self.requests.rest()
    }

    /// Whether nothing is on its way, neither in the ring nor at the disk.
    pub fn is_idle(&self) -> bool {
        self.ring.is_idle() && self.in_flight == 0 && self.queue.is_empty() && self.requests.is_empty()
    }

    /// Whether neither a slot nor a commit is to be written.
    pub(crate) fn writes_nothing(&self) -> bool {
        self.moving.is_empty() && self.committing.is_none()
    }

    /// Sequences that are sealed and not on the medium yet, in no order.
    pub fn on_the_way(&self) -> impl Iterator<Item = Sequence> {
        self.moving.iter().map(|moving| moving.sequence)
    }

    /// Copies a piece of a slot of this run that is sealed and not on the medium yet, from `offset` of it on, with zeros behind its end;
    /// `false`: there is no such slot. Its buffer is written to in this thread alone, and not while the disk has it.
    #[must_use]
    pub fn peek(&self, sequence: Sequence, offset: usize, into: &mut [u8]) -> bool {
        // What was rebuilt may be known by its place already, and does not say so itself before it is written.
        let is_it = |moving: &&Moving| moving.sequence == sequence && !moving.extra;
        let Some(moving) = self.moving.iter().find(is_it) else { return false };
        // What the buffer has behind its slot is none of it.
        let there = moving.bytes.saturating_sub(offset).min(into.len());
        let (there, behind) = into.split_at_mut(there);
        behind.fill(0);
        moving.peek.copy(offset.min(moving.bytes), there)
    }

    /// What a crash has taken out of the middle, as far as that is known by now; once each.
    pub fn take_crash_gap(&mut self) -> Option<CrashGap> {
        self.crash_gaps.pop()
    }

    /// Whether more of that may come to light.
    pub fn may_find_holes(&self) -> bool {
        !self.crash_gaps.is_empty() || !self.doubts.is_empty()
    }

    /// Takes a sealed slot; it is written as soon as it has a place.
    pub fn sealed(
        &mut self,
        buffer: Buffer,
        slot: SealedSlot,
        streams: &[(StreamId, u32, Counters)],
        now: Timestamp,
    ) {
        for (stream, preamble, counters) in streams {
            self.ring.note_counters(*stream, *preamble, *counters, slot.sequence);
        }
        let moving = Moving {
            sequence: slot.sequence,
            bytes: slot.bytes,
            peek: buffer.peek(),
            buffer: Some(buffer),
            since: now,
            sealed: now,
            oldest: self.ring.gaining_since().unwrap_or(now),
            extra: false,
        };
        self.moving.push(moving);
        self.ring.step(Event::Sealed(slot), now, &mut self.actions);
        self.act(now);
    }

    /// Gives an order; its outcome comes through [`Driver::reply`].
    pub fn order(&mut self, id: OrderTag, order: Order, open: Option<OpenBrief>, now: Timestamp) {
        if let Order::Grow(bytes) = &order {
            self.grow(id, *bytes);
            return;
        }
        self.ring.step(Event::Order(id, Box::new(order), open), now, &mut self.actions);
        self.act(now);
    }

    /// The next outcome of an order.
    pub fn reply(&mut self) -> Option<(OrderTag, Outcome)> {
        self.replies.pop_front()
    }

    /// Reads a piece of a slot into `buffer`, when the schedule says; the buffer comes back at once if no slot has that
    /// sequence.
    pub fn read(&mut self, wanted: &SlotRead, buffer: Buffer, now: Timestamp) -> Result<(), Buffer> {
        let SlotRead { id, class, client, sequence, offset, len } = *wanted;
        let Some(slot) = self.ring.ledger.table.find(sequence) else {
            return Err(buffer);
        };
        let offset = self.ring.ledger.geometry.slot_offset(slot) + offset;
        let request = Request { tag: READ | id, op: Op::Read { offset, buffer, len } };
        match self.requests.push(class, client, request) {
            Ok(()) => {
                self.reads.push(Read { id, slot, sequence, bytes: len, since: now });
                self.begin_at_once(now);
                Ok(())
            }
            Err(Request { op: Op::Read { buffer, .. }, .. }) => Err(buffer),
            Err(_) => Ok(()),
        }
    }

    /// The next read that ended.
    pub fn read_done(&mut self) -> Option<ReadDone> {
        self.reads_done.pop_front()
    }

    /// Lets the ring know the time, carries out what is due, and takes in what the disk has done, waiting for that at
    /// most `wait`. `open` tells of the open slot, `gains` exports from it.
    pub fn poll(
        &mut self,
        now: Timestamp,
        wait: Duration,
        open: Option<OpenBrief>,
        gains: &mut JournalDelta<'_>,
    ) {
        let mut wait = if self.in_flight == 0 { Duration::ZERO } else { wait };
        if let Some(until) = self.requests.rest() {
            wait = wait.min(until.since(now));
        }
        while let Some(done) = self.disk.complete(wait) {
            wait = Duration::ZERO;
            self.in_flight -= 1;
            self.done(done, now);
        }
        self.requests.note_open(open);
        self.ring.step(Event::Tick(open), now, &mut self.actions);
        self.act(now);
        let pledged = self.requests.granted.is_some();
        let since = |m: &Moving| if pledged { m.oldest } else { m.sealed };
        let oldest = self.moving.iter().map(since).chain(self.committing).min();
        self.ring.note_pending(oldest.map_or(Duration::ZERO, |since| now.since(since)));
        let unsafe_since =
            self.moving.iter().map(|moving| moving.oldest).chain(self.ring.gaining_since()).min();
        self.eldest = self.eldest.max(unsafe_since.map_or(Duration::ZERO, |since| now.since(since)));
        self.look_on(now);
        self.look_over(now);
        self.advance_step(now);
        self.look_for_commit();
        self.begin(now, Some(gains));
    }

    fn done(&mut self, done: Completion, now: Timestamp) {
        let Completion { tag, buffer, result } = done;
        if let Err(error) = &result {
            self.counts.errors += 1;
            self.last_error = Some(error.to_string());
        } else if !is_client_read(tag) {
            self.counts.answers += 1;
        }
        let fault = result.as_ref().map_err(|e| e.fault).copied();
        let requests = &mut self.requests;
        match tag & KIND {
            WRITE => requests.writing -= 1,
            COMMIT | SUPERBLOCK => requests.committing -= 1,
            SCAN | JOB_STEP | READ | EYE => requests.reading -= 1,
            _ => {}
        }
        match tag & KIND {
            WRITE => self.slot_written(Sequence(tag & !KIND), buffer, fault, now),
            COMMIT => {
                self.commit = buffer;
                if fault.is_ok() {
                    self.counts.journal_bytes += self.commit_bytes as u64;
                    self.committing = None;
                }
                self.ring.step(Event::Committed(fault), now, &mut self.actions);
            }
            SUPERBLOCK => {
                self.superblock_buffer = buffer;
                self.superblock_written(fault, now);
            }
            SCAN => self.scan_read((tag & !KIND) as usize, buffer, result.clone(), now),
            JOB_STEP => self.step_io(buffer, result.clone(), now),
            EYE => self.view_read(buffer, result.clone(), now),
            MEASURE => self.measured(result, now),
            READ => self.read_ended(tag & !KIND, buffer, result, now),
            _ => {}
        }
        self.act(now);
    }

    fn slot_written(
        &mut self,
        sequence: Sequence,
        buffer: Option<Buffer>,
        result: Result<(), Fault>,
        now: Timestamp,
    ) {
        let Some(at) = self.moving.iter().position(|m| m.sequence == sequence) else {
            return;
        };
        self.moving[at].buffer = buffer;
        let mut written = None;
        if result.is_ok() {
            let moving = self.moving.remove(at);
            let took = now.since(moving.since);
            self.counts.writes += 1;
            self.counts.write_bytes += moving.bytes as u64;
            self.counts.writing.add(took);
            self.ring.note_write_time(took);
            written = moving.buffer.map(|buffer| (buffer, moving.bytes, moving.extra));
        }
        self.ring.step(Event::Wrote { sequence, result }, now, &mut self.actions);
        if let Some((buffer, bytes, extra)) = written {
            self.see_written(sequence, &buffer[..bytes]);
            if !extra {
                self.free.push(buffer);
            }
        }
    }

    /// What a read takes is counted from here: before, it waited for its turn, which says nothing of the device.
    fn read_begins(&mut self, tag: u64, now: Timestamp) {
        if is_client_read(tag)
            && let Some(read) = self.reads.iter_mut().find(|read| read.id == tag & !KIND)
        {
            read.since = now;
        }
    }

    fn read_ended(&mut self, id: u64, buffer: Option<Buffer>, result: Result<(), DiskError>, now: Timestamp) {
        let Some(at) = self.reads.iter().position(|read| read.id == id) else {
            return;
        };
        let Read { slot, sequence, bytes, since, .. } = self.reads.remove(at);
        self.counts.reading.add(now.since(since));
        if result.is_ok() {
            self.counts.read_bytes += bytes as u64;
        }
        let here = self.ring.ledger.table.get(slot);
        let still = here.state == State::Data && here.sequence == sequence;
        if let Some(buffer) = buffer {
            self.counts.reads += 1;
            self.reads_done.push_back(ReadDone { id, buffer, result: still.then_some(result) });
        }
    }

    pub(crate) fn act(&mut self, now: Timestamp) {
        let mut actions = std::mem::take(&mut self.actions);
        for action in actions.drain(..) {
            match action {
                Action::Write { sequence, slot, offset } => self.place(sequence, slot, offset),
                Action::Superblock(geometry) => self.write_superblocks(geometry),
                Action::Reply(id, outcome) => self.replies.push_back((id, outcome)),
            }
        }
        self.actions = actions;
        self.begin_at_once(now);
    }

    /// An image stamped for a slot.
    pub(crate) fn stamped(&mut self, mut buffer: Buffer, slot: SlotNo) -> Buffer {
        if let Err(error) = restamp(&mut buffer, &self.superblock.key, slot) {
            self.last_error = Some(error.to_string());
        }
        buffer
    }

    /// Puts in a read of our own, or a write that is as little urgent.
    pub(crate) fn push_request(&mut self, request: Request, now: Timestamp) {
        let client = if request.tag & KIND == SCAN { SCANNER } else { WORKER };
        // They are few, and clients are lent fewer buffers than there is room for.
        if let Err(request) = self.requests.push(Class::Scrub, client, request) {
            self.requests.reading += 1;
            self.queue.push_back(request);
        }
        self.begin_at_once(now);
    }

    fn pump(&mut self) {
        while let Some(request) = self.queue.pop_front() {
            if let Err(request) = self.disk.submit(request) {
                self.queue.push_front(request);
                return;
            }
            self.in_flight += 1;
        }
    }
}
