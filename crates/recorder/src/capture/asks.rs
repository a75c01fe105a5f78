//! Requests of clients to the capture thread, sent through the control thread. Every request brings the memory of its
//! answer, so that answering allocates nothing; large answers are requested in pieces.
//!
//! The exceptions are orders, holds and the audit log: what they leave in the ring, and the texts in lists of them, are bounded by
//! the ring's budget of control records.

use super::{Away, Capture};
use holdfast_base::{BLOCK, ByteSize, HoldId, Sequence, SlotNo, StreamId, Timestamp};
use holdfast_format::{Counters, OpenOutline, OpenSlotQuery};
use holdfast_media::{Buffer, Disk, DiskError};
use holdfast_protocol::wire::{OpenSlot, OpenSlotProjection};
use holdfast_ring::{
    ActNumbers, ActStatus, Class, DeviceState, DriverCounts, Excess, HoldStatus, JobStep, Margin, Order,
    OrderTag, Outcome, RingStatus, SlotRead, SlotStatus, StepReply,
};
use std::time::Duration;

/// How long an order waits for sources that have something and do not hand it over.
const HANDING_OVER: Duration = Duration::from_secs(1);

/// Looks at slots that one step may take for a list of holds.
const HOLD_LOOKS: usize = 200_000;

/// Entries of the audit log that one step takes: their texts have at most 2 KiB.
const ACTS: usize = 32;

/// A read's number: the ask's in the lower bits, above them its length in blocks, which are 2¹⁶ at most.
const READ_ID_BITS: u32 = 38;
const READ_ID: u64 = (1 << READ_ID_BITS) - 1;

/// Bytes of slots on their way, and room for answers about the open slot, that readers get between two steps, and one read: then
/// capture has its turn.
const MOST_COPIED: usize = 1 << 20;

/// Figures of a moment. Made once and sent to and fro.
#[derive(Debug)]
pub struct Stats {
    /// The ring's.
    pub ring: RingStatus,
    /// What passed through the driver.
    pub counts: DriverCounts,
    /// Slot buffers: all, free now, and the fewest that were ever free.
    pub buffers: (usize, usize, usize),
    /// When the fewest were.
    pub fewest_at: Timestamp,
    /// Whether the device answers.
    pub device: DeviceState,
    /// How near it came to breaking its promise, if it gave one.
    pub margin: Option<Margin>,
    /// Bytes of the bird's-eye view, and how many slots of data it tells of.
    pub view: Option<(ByteSize, u32)>,
    /// The greatest age of data that was not durable yet.
    pub eldest: Duration,
    /// How long the capture thread was away.
    pub away: Away,
    /// The disk's last error, cut to the room there is.
    pub last_error: String,
    /// By source: what its stream had come to when the run began, and now; what passed beyond its rate in this run.
    pub feeds: Vec<(Counters, Counters, Excess)>,
    /// By stream.
    pub counters: Vec<(StreamId, Counters)>,
    /// By stream: the version of the preamble in force, and its bytes.
    pub preambles: Vec<(StreamId, u32, u32)>,
    /// The superblock in force, and its generation.
    pub superblock: (u64, Vec<u8>),
    /// When this was.
    pub now: Timestamp,
    /// Slots sealed in this run.
    pub slots_sealed: u64,
}

/// One thing asked. The vectors are empty and have the capacity that the answer may take, if not said otherwise.
#[derive(Debug)]
pub enum Ask {
    /// The figures.
    Figures(Box<Stats>),
    /// Slots from one on, as many as the vector has room for.
    Slots(SlotNo, Vec<SlotStatus>),
    /// Holds with higher numbers.
    Holds(HoldId),
    /// The audit log behind these numbers.
    Acts(ActNumbers),
    /// A piece of a preamble, from a byte on.
    Preamble(StreamId, u32, u32, Vec<u8>),
    /// An order.
    Order(Order),
    /// A step of a job in the background.
    JobStep(JobStep),
    /// Part of a slot: sequence, offset and length; and for whom.
    Read(Sequence, u32, u32, Buffer, ReadOrigin),
    /// What is not on the medium yet.
    OpenSlots(Vec<OpenSlot>),
    /// The index of the open slot beyond a cursor, in the place of what the vector has.
    Index(Sequence, u64, OpenSlotProjection, Vec<u8>),
    /// What the open slot has of a stream's attribute so far; whether one of the values with these hashes may be among it.
    Outline(Sequence, StreamId, u16, Vec<u64>),
    /// These slots are to expire after others for a client's sake, and no longer those that it named before.
    Pin(u64, Vec<Sequence>),
}

/// Who reads, as the schedule tells readers apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadOrigin {
    /// What for.
    pub class: Class,
    /// Whose.
    pub client: u64,
}

/// What came of it.
#[derive(Debug)]
pub enum Answer {
    /// The figures.
    Figures(Box<Stats>),
    /// How many slots there are, and some of them.
    Slots(u32, Vec<SlotStatus>),
    /// Whether there are more, and these.
    Holds(bool, Vec<HoldStatus>),
    /// Whether there are more, how many were dropped, and these.
    Acts(bool, ActNumbers, Vec<ActStatus>),
    /// How long the preamble is, if there is one, and a piece.
    Preamble(Option<u32>, Vec<u8>),
    /// What came of an order.
    Outcome(Outcome),
    /// What came of a step.
    JobStep(StepReply),
    /// The buffer, filled with as many bytes as were asked for, or why not.
    Read(Buffer, u32, Result<(), NotRead>),
    /// Those.
    OpenSlots(Vec<OpenSlot>),
    /// The next cursor, and whether this was all, or why not; and memory that is not needed any more.
    Index(Result<(u64, bool), NotRead>, Vec<u8>, OpenSlotProjection),
    /// That, if it can be told; and memory that is not needed any more.
    Outline(Option<OpenOutline>, Vec<u64>),
    /// How many of them do, and memory that is not needed any more.
    Pinned(u32, Vec<Sequence>),
    /// The order, or the step of a job, is refused: the run ends.
    Ending,
}

/// Why something was not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotRead {
    /// It has expired, or never was.
    Expired,
    /// It is on its way to the medium, and is not shown yet.
    Pending,
    /// The disk failed.
    Failed(DiskError),
    /// The run is ending.
    Ending,
}

/// An order that waits for what arrived before it.
#[derive(Debug)]
pub(super) struct WaitingOrder {
    id: u64,
    order: Order,
    /// What arrived until then belongs to it.
    until: Timestamp,
    /// It waits no longer than that.
    deadline: Timestamp,
}

impl WaitingOrder {
    fn new(id: u64, order: Order, now: Timestamp) -> Self {
        let until = match &order {
            // What was found is named, and here.
            Order::Hold(hold) if hold.condition_hold.is_some() => Timestamp::MIN,
            Order::Hold(hold) if hold.range.by_event => now,
            Order::Hold(hold) => hold.range.to.min(now),
            _ => Timestamp::MIN,
        };
        Self { id, order, until, deadline: now + HANDING_OVER }
    }
}

impl<D: Disk> Capture<D> {
    /// Gives the orders whose time has come, in their order: sources have handed over what arrived before.
    pub(super) fn give_orders(&mut self, now: Timestamp) {
        while let Some(first) = self.orders.front() {
            let until = first.until;
            let here =
                self.feeds.iter().all(|feed| feed.inlet.has_all_until(until) && !feed.holds_back(until));
            if !here && now < first.deadline {
                return;
            }
            let Some(WaitingOrder { id, order, .. }) = self.orders.pop_front() else { return };
            // It is meant for what has not been packed yet, too, and for what has no row.
            self.feed_waiting(now);
            self.packer.cut();
            let brief = self.brief();
            self.driver.order(OrderTag(id), order, brief, now);
        }
    }

    /// Takes an ask; most are answered at once. The answers of orders, job steps and reads come by [`Capture::answer`].
    pub fn ask(&mut self, id: u64, ask: Ask, now: Timestamp) -> Option<Answer> {
        match ask {
            Ask::Figures(mut stats) => {
                self.fill_sheet(&mut stats, now);
                Some(Answer::Figures(stats))
            }
            Ask::Slots(from, mut out) => {
                let room = out.capacity() as u32;
                out.extend(self.driver.ring().slot_looks(from, room));
                Some(Answer::Slots(self.driver.superblock().geometry.slots, out))
            }
            Ask::Holds(after) => Some(self.holds(after)),
            Ask::Acts(after) => Some(self.acts(after)),
            Ask::Preamble(stream, version, from, mut out) => {
                let found = self.driver.ring().preamble(stream, version);
                let rest = found.and_then(|bytes| bytes.get(from as usize..)).unwrap_or_default();
                out.extend_from_slice(&rest[..rest.len().min(out.capacity())]);
                Some(Answer::Preamble(found.map(|bytes| bytes.len() as u32), out))
            }
            Ask::Order(_) if self.ending => Some(Answer::Ending),
            Ask::JobStep(_) if self.ending => {
                // Its buffers go with it: the job is at its end.
                self.job_refused = true;
                None
            }
            Ask::Read(.., buffer, _) if self.ending => Some(Answer::Read(buffer, 0, Err(NotRead::Ending))),
            Ask::Order(order) => {
                self.orders.push_back(WaitingOrder::new(id, order, now));
                self.give_orders(now);
                None
            }
            Ask::JobStep(step) => {
                self.driver.step(step, now);
                None
            }
            Ask::Read(sequence, offset, len, buffer, reader) => {
                self.read(id, (sequence, offset, len), buffer, reader, now)
            }
            Ask::OpenSlots(mut out) => {
                let room = out.capacity();
                let sealed = self.driver.on_the_way().map(|sequence| OpenSlot { sequence, sealed: true });
                out.extend(sealed.take(room.saturating_sub(1)));
                if self.packer.is_open() {
                    out.push(OpenSlot { sequence: self.packer.slot().sequence(), sealed: false });
                }
                out.sort_unstable_by_key(|open| open.sequence);
                Some(Answer::OpenSlots(out))
            }
            Ask::Index(sequence, cursor, wanted, out) => Some(self.open_index(sequence, cursor, wanted, out)),
            Ask::Outline(sequence, stream, attribute, values) => {
                let entry = self.entries.iter().position(|entry| entry.stream == stream);
                let outline = match entry {
                    _ if !self.shows(sequence) => None,
                    Some(at) => self.packer.slot().outline(at as u16, attribute, &values),
                    // Nothing of a stream that this run does not record is in it.
                    None => Some(OpenOutline::EMPTY),
                };
                Some(Answer::Outline(outline, values))
            }
            Ask::Pin(client, sequences) => {
                let (granted, memory) = self.driver.ring_mut().pin(client, sequences);
                Some(Answer::Pinned(granted, memory))
            }
        }
    }

    /// The next answer that took a while.
    pub fn answer(&mut self) -> Option<(Option<u64>, Answer)> {
        if let Some((OrderTag(id), outcome)) = self.driver.reply() {
            return Some((Some(id), Answer::Outcome(outcome)));
        }
        if let Some(done) = self.driver.read_done() {
            let result = match done.result {
                None if self.ending => Err(NotRead::Ending),
                None => Err(NotRead::Expired),
                Some(Err(error)) => Err(NotRead::Failed(error)),
                Some(Ok(())) => Ok(()),
            };
            let (id, len) = (done.id & READ_ID, (done.id >> READ_ID_BITS) as u32 * BLOCK as u32);
            return Some((Some(id), Answer::Read(done.buffer, len, result)));
        }
        if std::mem::take(&mut self.job_refused) {
            return Some((None, Answer::Ending));
        }
        // There is one job at a time: its steps need no number.
        self.driver.step_reply().map(|reply| (None, Answer::JobStep(reply)))
    }

    fn fill_sheet(&mut self, stats: &mut Stats, now: Timestamp) {
        self.driver.ring().refresh(&mut stats.ring);
        if self.packer.is_open() {
            let bounds = self.bounds();
            if bounds.first <= bounds.last {
                stats.ring.newest = stats.ring.newest.max(Some(bounds.last));
                stats.ring.oldest =
                    Some(stats.ring.oldest.map_or(bounds.first, |first| first.min(bounds.first)));
            }
        }
        let superblock = self.driver.superblock();
        if stats.superblock.0 != superblock.generation {
            // Once, and whenever the ring has grown.
            stats.superblock = (superblock.generation, superblock.encode());
        }
        stats.counts = *self.driver.counts();
        stats.buffers = self.driver.buffers();
        stats.fewest_at = self.driver.schedule().most_buffers().1;
        stats.device = self.driver.ring().device();
        stats.margin = self.driver.schedule().margin();
        stats.view = self.driver.birds_eye();
        stats.eldest = self.driver.eldest();
        stats.away = self.away();
        stats.now = now;
        stats.slots_sealed = self.slots_sealed;
        stats.last_error.clear();
        let error = self.driver.last_error().unwrap_or_default();
        stats.last_error.push_str(&error[..error.floor_char_boundary(stats.last_error.capacity())]);
        stats.feeds.clear();
        for (at, feed) in self.feeds.iter().enumerate().take(stats.feeds.capacity()) {
            stats.feeds.push((feed.began, self.counters(at), self.excess(at)));
        }
        stats.counters.clear();
        stats.counters.extend(self.driver.ring().stream_counters().take(stats.counters.capacity()));
        stats.preambles.clear();
        stats.preambles.extend(self.driver.ring().stream_preambles().take(stats.preambles.capacity()));
        for (at, entry) in self.entries.iter().enumerate() {
            if let Some(known) = stats.counters.iter_mut().find(|(stream, _)| *stream == entry.stream) {
                known.1 = self.counters(at);
            }
        }
    }

    fn holds(&self, after: HoldId) -> Answer {
        let slots = self.driver.superblock().geometry.slots as usize;
        let count = (HOLD_LOOKS / slots.max(1)).clamp(1, 32);
        // One more than is sent says whether there are more.
        let mut holds: Vec<HoldStatus> = self.driver.ring().hold_looks_after(after, count + 1).collect();
        let more = holds.len() > count;
        holds.truncate(count);
        Answer::Holds(more, holds)
    }

    fn acts(&self, after: ActNumbers) -> Answer {
        let ring = self.driver.ring();
        let mut acts: Vec<ActStatus> = ring.act_looks(after).take(ACTS + 1).collect();
        let more = acts.len() > ACTS;
        acts.truncate(ACTS);
        Answer::Acts(more, ring.acts_dropped(), acts)
    }

    fn read(
        &mut self,
        id: u64,
        (sequence, offset, len): (Sequence, u32, u32),
        buffer: Buffer,
        ReadOrigin { class, client }: ReadOrigin,
        now: Timestamp,
    ) -> Option<Answer> {
        let len = (len as usize).min(buffer.len()) / BLOCK * BLOCK;
        // The length comes back with the number: nothing has to be remembered.
        let number = id & READ_ID | ((len / BLOCK) as u64) << READ_ID_BITS;
        let wanted = SlotRead { id: number, class, client, sequence, offset: u64::from(offset), len };
        let mut buffer = match self.driver.read(&wanted, buffer, now) {
            Ok(()) => return None,
            Err(buffer) => buffer,
        };
        // What is being written is in our memory still; whoever wants more of it than may be copied at once asks again.
        if self.copied < MOST_COPIED
            && self.is_settled()
            && (self.driver.peek(sequence, offset as usize, &mut buffer[..len])
                || self.packer.slot().sequence() == sequence
                    && self.packer.copy_payload(offset as usize, &mut buffer[..len]))
        {
            self.copied += len;
            return Some(Answer::Read(buffer, len as u32, Ok(())));
        }
        Some(Answer::Read(buffer, len as u32, Err(self.not_there(sequence))))
    }

    /// What is said of a sequence that is not on the medium.
    fn not_there(&self, sequence: Sequence) -> NotRead {
        let open = self.packer.is_open() && self.packer.slot().sequence() == sequence;
        if open || self.driver.on_the_way().any(|moving| moving == sequence) {
            NotRead::Pending
        } else {
            NotRead::Expired
        }
    }

    /// Whether a slot is open, and may be shown.
    fn shows(&mut self, sequence: Sequence) -> bool {
        self.packer.is_open() && self.packer.slot().sequence() == sequence && self.is_settled()
    }

    /// Whether what is not durable may be shown: what the run began with is.
    fn is_settled(&mut self) -> bool {
        let rows = self.driver.ring().journaled().rows;
        let written = self.first.is_some_and(|first| self.driver.on_the_way().all(|moving| moving != first));
        self.opening.is_settled(self.first.is_none().then_some(rows), written)
    }

    fn open_index(
        &mut self,
        sequence: Sequence,
        cursor: u64,
        wanted: OpenSlotProjection,
        mut out: Vec<u8>,
    ) -> Answer {
        if !self.shows(sequence) {
            let why = match self.not_there(sequence) {
                // Sealed and written: it is read like any other.
                NotRead::Expired if self.driver.ring().holds_sequence(sequence) => NotRead::Pending,
                why => why,
            };
            return Answer::Index(Err(why), out, wanted);
        }
        // Whatever comes of it takes time, also where it is little.
        if self.copied >= MOST_COPIED {
            out.clear();
            return Answer::Index(Ok((cursor, false)), out, wanted);
        }
        self.copied += out.len();
        let of = |stream: StreamId| {
            let place = self.entries.iter().position(|entry| entry.stream == stream);
            // Nothing of a stream that this run does not record is in it.
            place.map_or(u16::MAX, |place| place as u16)
        };
        let entry = wanted.stream.map(of);
        let ask = OpenSlotQuery { entry, rows: wanted.rows, columns: &wanted.columns };
        let told = self.packer.write_open_slot(cursor.into(), &ask, &mut out);
        out.truncate(told.bytes);
        Answer::Index(Ok((told.cursor.into(), told.end)), out, wanted)
    }
}
