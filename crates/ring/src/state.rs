//! The ring as a state machine: what happened goes in, what is to be done comes out.
//!
//! It knows neither buffers nor bytes: a slot on its way to the medium goes by its sequence. One instance belongs to one
//! thread; nothing here blocks, reads a clock or touches a disk.

use crate::chore::Chores;
use crate::flush::{self, Filling};
use crate::journal::{Flight, Journal};
use crate::ledger::{ClockStep, EpochStart, Item, Ledger, Runway};
use crate::orders::Waiting;
use crate::table::{Bounds, Slot, State};
use crate::{Order, OrderId, Outcome, Recovered};
use holdfast_base::{Age, Epoch, Sequence, SlotNo, StreamId, Timestamp};
use holdfast_format::{Cause, CommitHead, CommitWriter, Counters, Cursor, Geometry, HoldRecord, Superblock};
use holdfast_media::Fault;
use std::collections::VecDeque;
use std::time::Duration;

/// How often a device that does not answer is tried again.
const RETRY: Duration = Duration::from_secs(1);

/// Slots named at once, whatever the number of buffers: renewing costs a commit.
const RUNWAY: u32 = 16;

/// What a run decides for itself.
#[derive(Clone, Debug)]
pub struct Config {
    /// Slot buffers.
    pub buffers: u32,
    /// Longest time between commits of what the open slot gained.
    pub flush: Duration,
    /// Slot writes that may be in flight at once.
    pub writes: usize,
}

/// A sealed slot on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SealedSlot {
    /// Its sequence.
    pub sequence: Sequence,
    /// Its age.
    pub age: Age,
    /// Bytes to write.
    pub bytes: usize,
    /// What it covers.
    pub bounds: Bounds,
}

/// What the ring must know of the open slot to decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenBrief {
    /// Its sequence.
    pub sequence: Sequence,
    /// What it covers by now.
    pub bounds: Bounds,
    /// How far it is.
    pub end: Cursor,
    /// Bytes of payload it could still take.
    pub room: u64,
}

/// What happened.
#[derive(Debug)]
pub enum Event {
    /// The open slot was sealed and waits for its place.
    Sealed(SealedSlot),
    /// The write of a slot ended.
    Wrote {
        /// Which.
        sequence: Sequence,
        /// How.
        result: Result<(), Fault>,
    },
    /// The commit in flight ended.
    Committed(Result<(), Fault>),
    /// The superblocks that [`Action::Superblock`] asked for were written.
    SuperblockWritten(Result<(), Fault>),
    /// Somebody wants something.
    Order(OrderId, Order, Option<OpenBrief>),
    /// What the header and summary of a slot say, read behind capture: `None` if they are damaged.
    Scanned {
        /// The slot.
        slot: SlotNo,
        /// What the table said was in it.
        sequence: Sequence,
        /// What it covers.
        bounds: Option<Bounds>,
    },
    /// Every slot has been looked at.
    AllScanned,
    /// Time has passed.
    Tick(Option<OpenBrief>),
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Write the sealed slot to this place, durably.
    Write {
        /// Which.
        sequence: Sequence,
        /// The place: its number goes into the header.
        slot: SlotNo,
        /// Where that is.
        offset: u64,
    },
    /// Write the superblocks anew with this geometry.
    Superblock(Geometry),
    /// An order has been carried out, durably, or was refused.
    Reply(OrderId, Outcome),
}

/// A sealed slot that has a place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flying {
    pub(crate) sealed: SealedSlot,
    pub(crate) slot: SlotNo,
    tries: u8,
    /// The device did not answer: to be written again at the next retry.
    parked: bool,
}

/// Whether the device answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceState {
    /// It does.
    Well,
    /// It does not.
    Absent {
        /// Since when.
        since: Timestamp,
        /// What it last said.
        fault: Fault,
    },
}

/// One ring.
#[derive(Debug)]
pub struct Ring {
    pub(crate) superblock: Superblock,
    pub(crate) config: Config,
    pub(crate) ledger: Ledger,
    pub(crate) journal: Journal,
    /// The open slot, and since when its gains have not been journaled.
    pub(crate) open: Option<Open>,
    pub(crate) unplaced: VecDeque<SealedSlot>,
    pub(crate) flying: Vec<Flying>,
    /// Sealed slots that are not on the medium and of which the journal has a part.
    journaled: Vec<Sequence>,
    runway: VecDeque<SlotNo>,
    /// Named in memory, not yet durably.
    naming: Vec<SlotNo>,
    /// Sequences below this one may be used.
    reserved: Sequence,
    /// Orders that are recorded and wait for data to reach the medium.
    pub(crate) waiting: Vec<Waiting>,
    /// Orders that wait until all slots have been looked at.
    pub(crate) deferred: Vec<(OrderId, Order, Option<OpenBrief>)>,
    flush_wanted: bool,
    pub(crate) device: DeviceState,
    retry_at: Timestamp,
    /// The failed commit in flight is to be written again now.
    retry_commit: bool,
    pub(crate) unscanned: u32,
    /// The run that begins once all that the journal alone had is on the medium; `None` once it has begun.
    starting: Option<EpochStart>,
    slots_scratch: Vec<SlotNo>,
    order_scratch: Vec<(Sequence, SlotNo)>,
    /// Slots on the medium whose sequence is above one that is not.
    landed: Vec<(Sequence, SlotNo)>,
    pub(crate) worst_write: Duration,
    pub(crate) growing: Option<Growing>,
    /// Holds whose release is not durable yet: their slots stay.
    pub(crate) releasing: Vec<HoldRecord>,
    pub(crate) chores: Chores,
}

/// A growth under way.
#[derive(Clone, Debug)]
pub(crate) struct Growing {
    pub(crate) order: OrderId,
    pub(crate) geometry: Geometry,
    /// The superblocks could not be written: again when the device answers.
    pub(crate) retry: bool,
}

/// The open slot as the ring sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Open {
    pub(crate) sequence: Sequence,
    /// Since when there are gains that the journal has not.
    gaining_since: Option<Timestamp>,
    /// Whether the journal has a part of it.
    journaled: bool,
    /// When gains were last looked at, and how much payload there was.
    looked: (Timestamp, u32),
}

impl Ring {
    /// Begins a run on what recovery found: the next epoch. Until its first snapshot is durable no slot can be
    /// opened; slots that were rebuilt from the journal ([`Ring::adopt`]) go to the medium before that.
    pub fn start(recovered: Recovered, config: Config, now: Timestamp, wall: Timestamp) -> Self {
        let Recovered { superblock, ledger, runway, journal, .. } = recovered;
        let clean = !ledger.unclean;
        let epoch = EpochStart { epoch: ledger.epoch.epoch.next(), arrival: now, wall, clean };
        let reserved = ledger.next;
        let unscanned = ledger.table.iter().filter(|(_, s)| !s.known).count() as u32;
        let mut ring = Self {
            superblock,
            open: None,
            unplaced: VecDeque::with_capacity(config.buffers as usize + 4),
            flying: Vec::with_capacity(config.writes.max(1) + 4),
            journaled: Vec::with_capacity(config.buffers as usize + 4),
            runway: runway.into(),
            naming: Vec::with_capacity(64),
            reserved,
            waiting: Vec::new(),
            deferred: Vec::new(),
            flush_wanted: false,
            device: DeviceState::Well,
            retry_at: Timestamp::MIN,
            retry_commit: false,
            unscanned,
            starting: Some(epoch),
            slots_scratch: Vec::with_capacity(64),
            order_scratch: Vec::with_capacity(2 * config.writes.max(1) + 8),
            landed: Vec::with_capacity(config.writes.max(1) + 4),
            worst_write: Duration::ZERO,
            growing: None,
            releasing: Vec::new(),
            chores: Chores::default(),
            config,
            journal: Journal::new(&ledger.geometry, &journal),
            ledger,
        };
        ring.count_holds();
        ring.name_victims();
        ring
    }

    /// Sequences that were rebuilt from the journal go to the medium first, under their own number.
    pub fn adopt(&mut self, sealed: SealedSlot, out: &mut Vec<Action>) {
        self.journaled.push(sealed.sequence);
        self.unplaced.push_back(sealed);
        self.place(out);
    }

    /// The run.
    pub fn epoch(&self) -> Epoch {
        self.ledger.epoch.epoch
    }

    /// Whether the run before this one was cut off.
    pub fn after_crash(&self) -> bool {
        self.starting.as_ref().map_or(!self.ledger.epoch.clean, |e| !e.clean)
    }

    /// Whether the device does not answer.
    pub fn is_absent(&self) -> bool {
        matches!(self.device, DeviceState::Absent { .. })
    }

    /// Whether the device answers.
    pub fn device(&self) -> DeviceState {
        self.device
    }

    /// Takes the next sequence for a slot to be opened; `None` while none is reserved durably.
    pub fn open_next(&mut self, now: Timestamp) -> Option<Sequence> {
        if self.open.is_some() || self.ledger.next >= self.reserved || self.is_starting() {
            return None;
        }
        let sequence = self.ledger.next;
        self.ledger.next = sequence.next();
        self.journal.open = Cursor::default();
        if let Some(snapshot) = &mut self.journal.snapshot {
            snapshot.open = Cursor::default();
        }
        self.open = Some(Open { sequence, gaining_since: None, journaled: false, looked: (now, 0) });
        Some(sequence)
    }

    /// Whether this run's first snapshot is not durable yet.
    pub fn is_starting(&self) -> bool {
        self.starting.is_some()
    }

    /// Why no slot can be opened or written, if so.
    pub fn starved(&self) -> Option<Cause> {
        match self.device {
            DeviceState::Absent { .. } => Some(Cause::DeviceAbsent),
            DeviceState::Well if self.runway.is_empty() && self.naming.is_empty() => Some(Cause::NoSlot),
            DeviceState::Well => None,
        }
    }

    /// What a stream has come to with a slot that was sealed.
    pub fn note_counters(&mut self, stream: StreamId, preamble: u32, counters: Counters, sequence: Sequence) {
        if let Some(known) = self.ledger.stream_mut(stream) {
            known.counters = counters;
        }
        for known in &mut self.ledger.preambles {
            if known.stream == stream && known.version == preamble {
                known.last_used = known.last_used.max(sequence);
            }
        }
    }

    /// Records that the wall clock stepped.
    pub fn note_clock_step(&mut self, arrival: Timestamp, before: Timestamp, after: Timestamp) {
        let step = ClockStep { epoch: self.epoch(), arrival, before, after };
        self.ledger.note_clock_step(step);
        self.journal.push(Item::ClockStep(step), None);
    }

    /// Asks for a commit of what the open slot gained, whatever its age.
    pub(crate) fn want_flush(&mut self, wanted: bool) {
        self.flush_wanted |= wanted;
    }

    /// How long a slot's write took; feeds what is published as *durable after*.
    pub fn note_write_time(&mut self, took: Duration) {
        self.worst_write = self.worst_write.max(took);
    }

    /// The machine: one event in, actions appended to `out`.
    pub fn step(&mut self, event: Event, now: Timestamp, out: &mut Vec<Action>) {
        match event {
            Event::Sealed(sealed) => {
                if self.open.take().is_some_and(|o| o.journaled) {
                    self.journaled.push(sealed.sequence);
                }
                self.unplaced.push_back(sealed);
            }
            Event::Wrote { sequence, result } => self.wrote(sequence, result, now, out),
            Event::Committed(result) => self.committed(result, now, out),
            Event::SuperblockWritten(result) => self.superblock_written(result, now, out),
            Event::Order(id, order, open) => self.order(id, order, open, now, out),
            Event::Scanned { slot, sequence, bounds } => self.scanned(slot, sequence, bounds, now, out),
            Event::AllScanned => self.all_scanned(now, out),
            Event::Tick(open) => self.tick(open, now, out),
        }
        self.name_victims();
        self.place(out);
        self.settle(out);
    }

    fn tick(&mut self, open: Option<OpenBrief>, now: Timestamp, out: &mut Vec<Action>) {
        self.expire_holds(now);
        if let (Some(brief), Some(known)) = (open, self.open.as_mut())
            && known.sequence == brief.sequence
        {
            let gained = u64::from(brief.end.payload - self.journal.open.payload.min(brief.end.payload));
            if brief.end == self.journal.open {
                known.gaining_since = None;
            } else {
                let since = *known.gaining_since.get_or_insert(now);
                let filling = Filling {
                    room: brief.room,
                    gained: gained.max(1),
                    oldest: now.since(since),
                    lately: (now.since(known.looked.0), u64::from(brief.end.payload - known.looked.1)),
                };
                self.flush_wanted |= flush::due(&filling, self.config.flush);
            }
            if now.since(known.looked.0) >= self.config.flush / 2 {
                known.looked = (now, brief.end.payload);
            }
        }
        // Whatever failed is tried again, also when something else has been written since.
        if now >= self.retry_at {
            self.retry_at = now + RETRY;
            if self.journal.flight.is_none() && self.flying.is_empty() {
                self.device = DeviceState::Well;
            }
            self.retry_commit |= self.journal.flight.as_ref().is_some_and(|f| f.failed);
            if let Some(growing) = self.growing.as_mut().filter(|g| g.retry) {
                growing.retry = false;
                out.push(Action::Superblock(growing.geometry.clone()));
            }
            let geometry = &self.ledger.geometry;
            for flying in self.flying.iter_mut().filter(|f| f.parked) {
                flying.parked = false;
                let offset = geometry.slot_offset(flying.slot);
                out.push(Action::Write { sequence: flying.sealed.sequence, slot: flying.slot, offset });
            }
        }
    }

    fn wrote(
        &mut self,
        sequence: Sequence,
        result: Result<(), Fault>,
        now: Timestamp,
        out: &mut Vec<Action>,
    ) {
        let Some(at) = self.flying.iter().position(|f| f.sealed.sequence == sequence) else {
            return;
        };
        let flying = self.flying[at];
        match result {
            Ok(()) => {
                self.device = DeviceState::Well;
                self.flying.remove(at);
                self.journaled.retain(|s| *s != sequence);
                let sealed = flying.sealed;
                let held = self.holds_of(sequence);
                *self.ledger.table.get_mut(flying.slot) = Slot {
                    sequence,
                    age: sealed.age,
                    bounds: sealed.bounds,
                    held,
                    state: State::Data,
                    ..Slot::FREE
                };
                self.landed.push((sequence, flying.slot));
                let lowest = self.lowest_unwritten();
                self.landed.retain(|(sequence, _)| *sequence > lowest);
            }
            Err(Fault::Io) if flying.tries == 0 => {
                self.flying[at].tries = 1;
                let offset = self.ledger.geometry.slot_offset(flying.slot);
                out.push(Action::Write { sequence, slot: flying.slot, offset });
            }
            Err(Fault::Io) => {
                self.flying.remove(at);
                *self.ledger.table.get_mut(flying.slot) = Slot { state: State::Bad, ..Slot::FREE };
                self.journal.push(Item::Bad(flying.slot), None);
                // It goes first again: its data is the oldest that is not on the medium.
                self.unplaced.push_front(flying.sealed);
            }
            Err(fault) => {
                self.flying[at].parked = true;
                self.absent(fault, now);
            }
        }
    }

    pub(crate) fn absent(&mut self, fault: Fault, now: Timestamp) {
        match &mut self.device {
            DeviceState::Absent { fault: last, .. } => *last = fault,
            well @ DeviceState::Well => {
                *well = DeviceState::Absent { since: now, fault };
                self.retry_at = now + RETRY;
            }
        }
    }

    /// Gives sealed slots their places, oldest first.
    fn place(&mut self, out: &mut Vec<Action>) {
        if matches!(self.device, DeviceState::Absent { .. }) {
            return;
        }
        while self.flying.len() < self.config.writes.max(1) && !self.unplaced.is_empty() {
            let Some(slot) = self.runway.pop_front() else {
                return;
            };
            let Some(sealed) = self.unplaced.pop_front() else {
                return;
            };
            self.ledger.table.get_mut(slot).state = State::Writing;
            self.flying.push(Flying { sealed, slot, tries: 0, parked: false });
            let offset = self.ledger.geometry.slot_offset(slot);
            out.push(Action::Write { sequence: sealed.sequence, slot, offset });
        }
    }

    /// The next slot of the runway, for a copy: it stays in the runway's records until the copy counts.
    pub(crate) fn take_runway(&mut self) -> Option<SlotNo> {
        let slot = self.runway.pop_front()?;
        self.ledger.table.get_mut(slot).state = State::Writing;
        self.chores.copying.push(slot);
        Some(slot)
    }

    /// Takes a slot out of the durable runway; `false` if it is not there.
    pub(crate) fn leave_runway(&mut self, slot: SlotNo) -> bool {
        let here = self.runway.len();
        self.runway.retain(|no| *no != slot);
        self.runway.len() < here
    }

    /// A sequence for a copy.
    pub(crate) fn take_sequence(&mut self) -> Option<Sequence> {
        if self.ledger.next >= self.reserved || self.is_starting() {
            return None;
        }
        let sequence = self.ledger.next;
        self.ledger.next = sequence.next();
        Some(sequence)
    }

    /// Length of a full runway.
    pub(crate) fn runway_target(&self) -> u32 {
        let slots = self.ledger.table.len();
        (2 * self.config.buffers).max(RUNWAY).min(slots / 4).max(2)
    }

    /// Names the next victims when half of the runway is used: from now on their data counts as expired.
    fn name_victims(&mut self) {
        let target = self.runway_target() as usize;
        if !self.naming.is_empty() || self.runway.len() > target / 2 {
            return;
        }
        let mut victims = std::mem::take(&mut self.slots_scratch);
        self.ledger.table.victims(target - self.runway.len(), &mut victims);
        for no in &victims {
            *self.ledger.table.get_mut(*no) = Slot { state: State::Runway, ..Slot::FREE };
        }
        self.naming.extend_from_slice(&victims);
        self.slots_scratch = victims;
        if !self.naming.is_empty() {
            // Behind what is queued: a bad slot must not become known after the runway that follows it.
            self.journal.push(Item::Runway, None);
        }
    }

    /// The lowest sequence that is not on the medium.
    fn lowest_unwritten(&self) -> Sequence {
        let flying = self.flying.iter().map(|f| f.sealed.sequence);
        let unplaced = self.unplaced.iter().map(|s| s.sequence);
        let open = self.open.iter().map(|o| o.sequence);
        flying.chain(unplaced).chain(open).min().unwrap_or(self.ledger.next)
    }

    /// Whether a commit should be made now: where it goes and how large it may be. The caller fills it with
    /// [`Ring::fill`] and submits it.
    pub fn plan_commit(&mut self) -> Option<(u64, usize)> {
        if self.journal.flight.is_some() {
            return None;
        }
        if matches!(self.device, DeviceState::Absent { .. }) {
            return None;
        }
        if let Some(snapshot) = &self.journal.snapshot {
            // Its end waits for what the journal alone has of sealed slots.
            let waits = snapshot.items.is_empty() && snapshot.whole && !self.may_end_snapshot();
            return (!waits).then(|| self.journal.place());
        }
        // Should the journal have no room left to name a slot for it, what it alone has goes to the medium later.
        let stuck = self.runway.is_empty() && self.flying.is_empty() && self.journal.is_out_of_room();
        if self.starting.is_some() && (self.journaled.is_empty() || stuck) {
            self.switch_extent();
            return Some(self.journal.place());
        }
        if self.chores.switching && self.journaled.is_empty() && self.runway.len() > 1 {
            self.switch_extent();
            self.chores.switching = false;
            return Some(self.journal.place());
        }
        let gains = self.flush_wanted && self.starting.is_none();
        if self.journal.queue.is_empty() && !gains {
            return None;
        }
        if self.journal.is_full() && self.starting.is_none() {
            let out_of_room = self.journal.is_out_of_room();
            if (self.journaled.is_empty() && self.runway.len() > 1) || out_of_room {
                self.switch_extent();
            } else if self.journal.queue.is_empty() {
                return None;
            }
        }
        Some(self.journal.place())
    }

    /// Whether nothing would be lost if the extent in use were given up.
    fn may_end_snapshot(&self) -> bool {
        self.journaled.is_empty() || self.starved().is_some()
    }

    pub(crate) fn switch_extent(&mut self) {
        let oldest =
            self.ledger.table.iter().filter(|(_, s)| s.state == State::Data).map(|(_, s)| s.sequence).min();
        self.ledger.forget_preambles(oldest.unwrap_or(self.ledger.next).min(self.lowest_unwritten()));
        if let Some(epoch) = self.starting {
            self.ledger.epoch = epoch;
            self.ledger.unclean = true;
        }
        self.superblock.geometry = self.ledger.geometry.clone();
        self.ledger.recovery = self.superblock.to_recovery_string();
        self.journal.switch(self.ledger.items());
    }

    /// The slots that the sequences from the lowest unwritten one on have got, in the order of the sequences: also those
    /// whose write overtook an older one, so that a slot's place in the list tells its sequence.
    fn list_flying(&mut self, slots: &mut Vec<SlotNo>) {
        let table = &self.ledger.table;
        self.landed.retain(|(sequence, no)| {
            table.get(*no).state == State::Data && table.get(*no).sequence == *sequence
        });
        let landed = self.landed.iter().copied();
        self.order_scratch.clear();
        self.order_scratch.extend(self.flying.iter().map(|f| (f.sealed.sequence, f.slot)).chain(landed));
        self.order_scratch.sort_unstable();
        slots.extend(self.order_scratch.iter().map(|(_, no)| *no));
    }

    /// Fills the planned commit. `gains` appends what the open slot has from a cursor on, as far as there is room,
    /// and tells how far it came and whether that was all.
    pub fn fill(
        &mut self,
        writer: &mut CommitWriter<'_>,
        gains: &mut dyn FnMut(Cursor, &mut CommitWriter<'_>) -> (Cursor, bool),
    ) -> CommitHead {
        let (offset, _) = self.journal.place();
        let naming = self.lowest_unwritten();
        let mut slots = std::mem::take(&mut self.slots_scratch);
        slots.clear();
        slots.extend(&self.chores.copying);
        self.list_flying(&mut slots);
        slots.extend(&self.runway);
        slots.extend(&self.naming);
        let runway = Runway { naming, slots: &slots };
        let mut flight = Flight {
            offset,
            bytes: 0,
            failed: false,
            retried: false,
            entries: Vec::new(),
            open: None,
            ends: false,
            named: None,
        };
        let mut head = CommitHead {
            ring: self.superblock.ring,
            generation: self.journal.generation,
            number: self.journal.number + 1,
            epoch: self.ledger.epoch.epoch,
            begins: false,
            part: false,
            ends: false,
        };
        let open_of = self.open.map(|o| o.sequence);
        let may_end = self.may_end_snapshot();
        let may_gain = !self.journal.is_full() && self.starting.is_none();
        if let Some(snapshot) = &mut self.journal.snapshot {
            head.begins = !snapshot.begun;
            head.part = true;
            snapshot.begun = true;
            while let Some(item) = snapshot.items.front_mut() {
                if !self.ledger.emit(item, &runway, writer) {
                    break;
                }
                if *item == Item::Runway {
                    snapshot.named = Some((naming, slots.len(), self.naming.len()));
                }
                snapshot.items.pop_front();
            }
            if snapshot.items.is_empty() {
                let all = match open_of {
                    Some(_) => {
                        let (open, all) = gains(snapshot.open, writer);
                        snapshot.open = open;
                        all
                    }
                    None => true,
                };
                snapshot.whole = all;
                head.ends = all && may_end;
                flight.ends = head.ends;
                flight.open = open_of.filter(|_| head.ends).map(|of| (of, snapshot.open));
                flight.named = snapshot.named.filter(|_| head.ends);
            }
        } else {
            while let Some(entry) = self.journal.queue.front_mut() {
                if !self.ledger.emit(&mut entry.item, &runway, writer) {
                    break;
                }
                if entry.item == Item::Runway {
                    flight.named = Some((naming, slots.len(), self.naming.len()));
                }
                flight.entries.extend(self.journal.queue.pop_front());
            }
            if self.flush_wanted && may_gain && self.journal.queue.is_empty() {
                let mut all = true;
                if let Some(of) = open_of {
                    let (open, whole) = gains(self.journal.open, writer);
                    flight.open = Some((of, open));
                    all = whole;
                }
                self.flush_wanted = !all;
            }
        }
        self.slots_scratch = slots;
        if let (Some(open), true) = (&mut self.open, flight.open.is_some() || head.part) {
            open.journaled = true;
        }
        self.journal.flight = Some(flight);
        head
    }

    /// Takes note of the filled commit's length; it is in flight from here on.
    pub fn filled(&mut self, bytes: usize) {
        if let Some(flight) = &mut self.journal.flight {
            flight.bytes = bytes;
        }
        self.journal.advance(bytes);
    }

    fn committed(&mut self, result: Result<(), Fault>, now: Timestamp, out: &mut Vec<Action>) {
        let Some(flight) = self.journal.flight.take() else {
            return;
        };
        if let Err(fault) = result {
            // The driver keeps the commit's bytes and writes them again where they belong: at once the first time.
            if fault == Fault::Io && !flight.retried {
                self.retry_commit = true;
            } else {
                self.absent(fault, now);
            }
            self.journal.flight = Some(Flight { failed: true, retried: true, ..flight });
            return;
        }
        self.device = DeviceState::Well;
        self.journal.written += flight.bytes as u64;
        if let Some((naming, count, fresh)) = flight.named {
            self.runway.extend(self.naming.drain(..fresh.min(self.naming.len())));
            self.reserved = self.reserved.max(Sequence(naming.0 + count as u64 + 1));
        }
        if let (Some(open), Some((of, cursor))) = (&mut self.open, flight.open)
            && open.sequence == of
        {
            self.journal.open = cursor;
            open.gaining_since = None;
        }
        if flight.ends {
            self.journal.snapshot = None;
            self.starting = None;
        }
        for entry in &flight.entries {
            self.recorded(entry, out);
        }
    }

    /// Where the commit in flight is to be written again, if its write failed and the device may answer again.
    pub fn retry_commit(&mut self) -> Option<u64> {
        if !std::mem::take(&mut self.retry_commit) {
            return None;
        }
        let flight = self.journal.flight.as_mut().filter(|f| f.failed)?;
        flight.failed = false;
        Some(flight.offset)
    }

    fn scanned(
        &mut self,
        no: SlotNo,
        sequence: Sequence,
        bounds: Option<Bounds>,
        now: Timestamp,
        out: &mut Vec<Action>,
    ) {
        let slot = self.ledger.table.get_mut(no);
        self.unscanned = self.unscanned.saturating_sub(1);
        if slot.state == State::Data && slot.sequence == sequence {
            slot.known = true;
            match bounds {
                Some(bounds) => slot.bounds = bounds,
                None => slot.damaged = true,
            }
        }
        if self.unscanned == 0 {
            self.all_scanned(now, out);
        }
    }

    fn all_scanned(&mut self, now: Timestamp, out: &mut Vec<Action>) {
        self.unscanned = 0;
        for (id, order, open) in std::mem::take(&mut self.deferred) {
            self.order(id, order, open, now, out);
        }
    }

    /// Queues the record that everything is sealed and written; the last thing of a run.
    pub fn end(&mut self, now: Timestamp) {
        self.journal.push(Item::CleanEnd(now), None);
    }

    /// Whether nothing is on its way: no slot, no commit, no order.
    pub fn is_idle(&self) -> bool {
        self.unplaced.is_empty()
            && self.flying.is_empty()
            && self.journal.flight.is_none()
            && self.journal.queue.is_empty()
            && self.journal.snapshot.is_none()
            && self.waiting.is_empty()
            && self.growing.is_none()
            && self.starting.is_none()
    }
}
