//! The ring as a state machine: events in, actions out.
//!
//! It knows neither buffers nor bytes: a slot on its way to the medium goes by its sequence. One instance belongs to one
//! thread; nothing here blocks, reads a clock or touches a disk.

use crate::condition_hold::SlotQuota;
use crate::event::{Action, Config, DeviceState, Event, OpenBrief, SealedSlot};
use crate::failed_writes::FailedWrites;
use crate::flush::{Filled, Filling, Waits};
use crate::hold_refcounts::UnwrittenRefcounts;
use crate::job_step::JobState;
use crate::journal::{Entry, Journal};
use crate::ledger::{ClockStep, EpochStart, Ledger};
use crate::orders::Waiting;
use crate::pins::Pins;
use crate::runway::Names;
use crate::snapshot::Item;
use crate::table::{Bounds, Slot, State};
use crate::{Order, OrderTag, Recovered};
use holdfast_base::{Epoch, Sequence, SlotNo, StreamId, Timestamp};
use holdfast_format::{Cause, Counters, Cursor, Geometry, HoldRecord, Superblock};
use holdfast_media::Fault;
use std::collections::VecDeque;
use std::time::Duration;

/// How often a device that does not answer is tried again.
const RETRY: Duration = Duration::from_secs(1);

/// Slots that a runway record can list without more memory: that many may overtake one write that takes long.
const LISTED: usize = 1024;

/// A sealed slot that has a place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flying {
    pub(crate) sealed: SealedSlot,
    pub(crate) slot: SlotNo,
    pub(crate) tries: u8,
    /// Which of all writes it is.
    pub(crate) begun: u64,
    /// The device did not answer: to be written again at the next retry.
    parked: bool,
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
    pub(crate) journaled: Vec<Sequence>,
    pub(crate) runway: VecDeque<SlotNo>,
    /// Named in memory, not yet durably.
    pub(crate) naming: Vec<SlotNo>,
    pub(crate) failed_writes: FailedWrites,
    /// Sequences below this one may be used.
    pub(crate) reserved: Sequence,
    /// Orders that are recorded and wait for data to reach the medium.
    pub(crate) waiting: Vec<Waiting>,
    /// Orders that wait until all slots have been looked at.
    pub(crate) deferred: Vec<(OrderTag, Order, Option<OpenBrief>)>,
    pub(crate) flush_wanted: bool,
    pub(crate) device: DeviceState,
    pub(crate) retry_at: Timestamp,
    /// The failed commit in flight is to be written again now.
    pub(crate) retry_commit: bool,
    pub(crate) unscanned: u32,
    /// The run that is to begin; `None` once it has.
    pub(crate) starting: Option<EpochStart>,
    /// How it begins where the journal alone has something.
    pub(crate) appending: Appending,
    /// Streams that were added before that was known.
    pub(crate) joining: VecDeque<Entry>,
    /// Slots with header and footer of which the journal has a part, until they have been looked at in full.
    pub(crate) doubted: Vec<(Sequence, SlotNo)>,
    pub(crate) slots_scratch: Vec<SlotNo>,
    pub(crate) order_scratch: Vec<(Sequence, SlotNo)>,
    /// The time of the last tick.
    pub(crate) ticked: Timestamp,
    /// Slots on the medium whose sequence is above one that is not.
    pub(crate) landed: Vec<(Sequence, SlotNo)>,
    pub(crate) worst_write: Duration,
    /// How long what is under way now has taken already.
    pub(crate) pending: Duration,
    pub(crate) growing: Option<Growing>,
    /// Holds whose release is not durable yet: their slots stay.
    pub(crate) releasing: Vec<HoldRecord>,
    /// Held sequences that are not on the medium yet.
    pub(crate) unwritten_refcounts: UnwrittenRefcounts,
    /// The slots of holds by condition, also of those whose release is not durable yet.
    pub(crate) promises: Vec<SlotQuota>,
    pub(crate) jobs: JobState,
    pub(crate) pins: Pins,
    /// What was promised, if anything was.
    pub(crate) pledge: Option<Pledge>,
}

/// Whether a run begins behind what the one before it left in the journal: then that is written to its place behind
/// capture. Else capture waits for it, and the run begins with a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Appending {
    /// Not looked at yet.
    Unknown,
    /// The record that it begins is queued or in flight.
    Yes,
    /// There is no room for that, or the place is bad.
    No,
}

/// What a guarantee comes to, for the ring.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pledge {
    /// A slot that will be full within this skips the journal.
    pub(crate) soon: Duration,
    /// What arrived waits for no longer until it is to be made durable.
    pub(crate) hard: Duration,
    /// Where more bytes of the open slot than this are that old, the slot ends.
    pub(crate) row: u64,
    /// As published.
    pub(crate) durable_after: Duration,
    /// Slot buffers: so many full slots may have their places and wait.
    pub(crate) buffers: u32,
    /// Names that are to be there.
    pub(crate) names: Names,
}

/// A growth under way.
#[derive(Clone, Debug)]
pub(crate) struct Growing {
    pub(crate) order: Option<OrderTag>,
    pub(crate) geometry: Geometry,
    /// The superblocks could not be written: again when the device answers.
    pub(crate) retry: bool,
}

/// The open slot as the ring sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Open {
    pub(crate) sequence: Sequence,
    pub(crate) filling: Filling,
    /// Whether the journal has a part of it.
    pub(crate) journaled: bool,
    /// Whether it is to end, because so much of it is to be made durable now that its own write does it sooner.
    pub(crate) overdue: bool,
}

impl Ring {
    /// Begins a run on what recovery found: the next epoch. Until that is durable no slot can be opened. Slots that were
    /// rebuilt from the journal ([`Ring::adopt`]) go to the medium first; their extent is kept until they are there.
    pub fn start(recovered: Recovered, config: Config, now: Timestamp, wall: Timestamp) -> Self {
        let Recovered { superblock, ledger, runway, journal, .. } = recovered;
        let clean = !ledger.unclean;
        let outdated = superblock.version < Superblock::VERSION;
        let rewrite = outdated || ledger.geometry.slots > superblock.geometry.slots;
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
            failed_writes: FailedWrites::default(),
            reserved,
            waiting: Vec::new(),
            deferred: Vec::new(),
            flush_wanted: false,
            device: DeviceState::Well,
            retry_at: Timestamp::MIN,
            retry_commit: false,
            unscanned,
            starting: Some(epoch),
            appending: Appending::Unknown,
            joining: VecDeque::new(),
            doubted: Vec::new(),
            slots_scratch: Vec::with_capacity(LISTED),
            order_scratch: Vec::with_capacity(LISTED),
            landed: Vec::with_capacity(LISTED),
            ticked: now,
            worst_write: Duration::ZERO,
            pending: Duration::ZERO,
            // The journal knows the geometry before the superblocks do: a crash may have come between. And a ring of an older
            // format version is written on in the newest one.
            growing: rewrite.then(|| Growing { order: None, geometry: ledger.geometry.clone(), retry: true }),
            releasing: Vec::new(),
            unwritten_refcounts: UnwrittenRefcounts::with_capacity(config.buffers as usize + 4),
            promises: ledger
                .holds
                .iter()
                .filter_map(|hold| ledger.promise(hold, std::iter::empty()))
                .collect(),
            jobs: JobState::default(),
            pins: Pins::new(),
            pledge: None,
            config,
            journal: Journal::new(&ledger.geometry, &journal),
            ledger,
        };
        ring.ledger.recovery = ring.superblock.to_recovery_string();
        ring.name_victims();
        ring
    }

    /// Sequences that were rebuilt from the journal go to the medium first, under their own number.
    pub fn adopt(&mut self, sealed: SealedSlot, out: &mut Vec<Action>) {
        self.journaled.push(sealed.sequence);
        self.unwritten_refcounts.add(sealed.sequence, self.holds_of(sealed.sequence));
        self.note_rebuilt(sealed.sequence);
        // The oldest that is not on the medium goes first.
        let place = self.unplaced.partition_point(|other| other.sequence < sealed.sequence);
        self.unplaced.insert(place, sealed);
        self.place(out);
    }

    /// What looks whole and may be torn: the journal keeps what it has of it until that is known.
    pub(crate) fn doubt(&mut self, sequence: Sequence, slot: SlotNo) {
        self.journaled.push(sequence);
        self.doubted.push((sequence, slot));
    }

    /// A slot that was doubted has been looked at in full: it is as it should be, or `instead` is written.
    pub(crate) fn settle_doubt(
        &mut self,
        (sequence, slot): (Sequence, SlotNo),
        instead: Option<SealedSlot>,
        out: &mut Vec<Action>,
    ) {
        if self.doubted.contains(&(sequence, slot)) {
            self.doubted.retain(|doubt| *doubt != (sequence, slot));
            self.journaled.retain(|s| *s != sequence);
            if let Some(sealed) = instead {
                // As a write that failed: once more at the same place, which the runway's record still names.
                self.journaled.push(sequence);
                self.unwritten_refcounts.add(sequence, self.holds_of(sequence));
                *self.ledger.table.get_mut(slot) = Slot::FREE;
                self.launch(sealed, slot, out);
            }
        }
    }

    /// Whether a slot is still doubted: it may have expired before it was looked at.
    pub fn is_doubted(&self, sequence: Sequence) -> bool {
        self.doubted.iter().any(|(doubted, _)| *doubted == sequence)
    }

    /// Nothing is to be known any more of slots that have expired.
    fn forget_doubts(&mut self) {
        let (table, journaled) = (&self.ledger.table, &mut self.journaled);
        self.doubted.retain(|(sequence, slot)| {
            let here = table.get(*slot);
            let still = here.state == State::Data && here.sequence == *sequence;
            if !still {
                journaled.retain(|s| s != sequence);
            }
            still
        });
    }

    /// Takes note of what is on the medium though something older is not: a runway record tells of both.
    pub(crate) fn note_landed(&mut self) {
        let lowest = self.lowest_unwritten();
        let data = self.ledger.table.iter().filter(|(_, s)| s.state == State::Data && s.sequence > lowest);
        // A list that names a copy would take back that it counts.
        let data = data.filter(|(_, slot)| slot.age.0 == slot.sequence.0);
        self.landed.extend(data.map(|(no, slot)| (slot.sequence, no)));
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
        self.open = Some(Open { sequence, filling: Filling::opened(now), journaled: false, overdue: false });
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
            DeviceState::Well => {
                let none = self.runway.is_empty() && self.naming.is_empty() && self.failed_writes() == 0;
                none.then_some(Cause::NoSlot)
            }
        }
    }

    /// What a stream has come to with a slot that was sealed.
    pub fn note_counters(&mut self, stream: StreamId, preamble: u32, counters: Counters, sequence: Sequence) {
        // A slot that was rebuilt from the journal may be older than one that was written.
        if let Some(known) = self.ledger.stream_mut(stream)
            && known.counters.next_ordinal <= counters.next_ordinal
        {
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

    /// From here on the ring goes by a guarantee.
    pub(crate) fn pledge(&mut self, pledge: Pledge) {
        self.pledge = Some(pledge);
        // Which of them are written when is the schedule's to say.
        self.config.writes = self.config.writes.max(pledge.buffers as usize);
        self.flying.reserve(self.config.writes + 4);
    }

    /// Since when the open slot has had what the journal has not.
    pub(crate) fn gaining_since(&self) -> Option<Timestamp> {
        self.open.as_ref()?.filling.gaining_since()
    }

    /// Whether the open slot is to end, because so much of it is to be made durable now that its own write does it sooner.
    pub(crate) fn is_overdue(&self) -> bool {
        self.open.is_some_and(|open| open.overdue)
    }

    /// Asks for a commit of what the open slot gained, whatever its age.
    pub(crate) fn want_flush(&mut self, wanted: bool) {
        self.flush_wanted |= wanted;
    }

    /// How long a write took; feeds what is published as *durable after*.
    pub fn note_write_time(&mut self, took: Duration) {
        self.worst_write = self.worst_write.max(took);
    }

    /// Since when the oldest of what is sealed or being committed has been under way: a disk that stalls makes nothing
    /// durable, and the published bound says so meanwhile.
    pub fn note_pending(&mut self, pending: Duration) {
        self.pending = pending;
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
            Event::Order(id, order, open) => self.order(id, *order, open, now, out),
            Event::Scanned { slot, sequence, bounds } => self.scanned(slot, sequence, bounds, now, out),
            Event::AllScanned => self.all_scanned(now, out),
            Event::Tick(open) => self.tick(open, now, out),
        }
        self.name_victims();
        if !self.doubted.is_empty() {
            self.forget_doubts();
        }
        self.place(out);
        self.settle(out);
    }

    fn tick(&mut self, open: Option<OpenBrief>, now: Timestamp, out: &mut Vec<Action>) {
        self.ticked = now;
        self.expire_holds(now);
        if let (Some(brief), Some(known)) = (open, self.open.as_mut())
            && known.sequence == brief.sequence
        {
            let journaled = brief.end == self.journal.open;
            let left = brief.end.payload - self.journal.open.whole.min(brief.end.payload);
            let filled = Filled { payload: brief.end.payload, room: brief.room, journaled };
            let flush = self.config.flush;
            let waits = self.pledge.map_or(Waits::plain(flush), |pledge| Waits {
                flush,
                soon: pledge.soon,
                hard: pledge.hard,
            });
            let due = known.filling.due(filled, waits, now);
            known.overdue = self.pledge.is_some_and(|pledge| {
                let old = known.filling.gaining_since().is_some_and(|since| now.since(since) >= pledge.hard);
                // Nothing that is gained goes to the journal before a snapshot is whole.
                let kept_out = self.journal.snapshot.is_some() && pledge.row < u64::MAX;
                old && u64::from(left) > if kept_out { 0 } else { pledge.row }
            });
            // Until it may end the journal takes what it can.
            self.flush_wanted |= due;
        }
        // Whatever failed is tried again, also when something else has been written since.
        if now >= self.retry_at {
            self.retry_at = now + RETRY;
            if self.is_absent() {
                self.probe(out);
            }
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
                flying.begun = self.failed_writes.begin();
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
                self.succeeded(flying.begun);
                self.failed_writes.passed(flying.slot);
                self.flying.remove(at);
                self.journaled.retain(|s| *s != sequence);
                let sealed = flying.sealed;
                let held = self.unwritten_refcounts.take(sequence);
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
            Err(Fault::Io) => self.write_failed(at, now, out),
            Err(fault) => {
                self.flying[at].parked = true;
                self.absent(fault, now);
            }
        }
    }

    pub(crate) fn absent(&mut self, fault: Fault, now: Timestamp) {
        self.failed_writes.acquit();
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
        if self.starting.is_some() && self.appending != Appending::No {
            // What was rebuilt is durable in the journal: capture does not wait for its writes.
            return;
        }
        while self.flying.len() < self.config.writes.max(1) && !self.unplaced.is_empty() {
            let Some(slot) = self.runway.pop_front() else {
                return;
            };
            let Some(sealed) = self.unplaced.pop_front() else {
                return;
            };
            self.launch(sealed, slot, out);
        }
    }

    /// Writes a sealed slot to its place.
    pub(crate) fn launch(&mut self, sealed: SealedSlot, slot: SlotNo, out: &mut Vec<Action>) {
        self.ledger.table.get_mut(slot).state = State::Writing;
        let begun = self.failed_writes.begin();
        self.flying.push(Flying { sealed, slot, tries: 0, begun, parked: false });
        let offset = self.ledger.geometry.slot_offset(slot);
        out.push(Action::Write { sequence: sealed.sequence, slot, offset });
    }

    fn scanned(
        &mut self,
        no: SlotNo,
        sequence: Sequence,
        bounds: Option<Bounds>,
        now: Timestamp,
        out: &mut Vec<Action>,
    ) {
        let mut slot = self.ledger.table.get_mut(no);
        self.unscanned = self.unscanned.saturating_sub(1);
        if slot.state == State::Data && slot.sequence == sequence {
            slot.known = true;
            match bounds {
                Some(bounds) => slot.bounds = bounds,
                None => slot.damaged = true,
            }
        }
        drop(slot);
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
            && !self.journal.is_due()
            && self.journal.snapshot.is_none()
            && self.waiting.is_empty()
            && self.growing.is_none()
            && self.doubted.is_empty()
            && self.starting.is_none()
    }
}
