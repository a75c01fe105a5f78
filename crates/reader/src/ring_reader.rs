//! Entry of the reader: opens a ring, answers questions about it, and gives the items of a plan.

use super::access::Access;
use super::assembler::Assembler;
use super::direct::Direct;
use super::interrupt::{Interrupt, flow};
use super::live::Live;
use super::output::Output;
use super::read_ahead::ReadAhead;
use super::read_queue::ReadQueue;
use super::row_filter::RowFilter;
use super::session::{ReadState, Session};
use super::slot_head::{SlotBounds, SlotHead};
use super::slot_lookup;
use super::slot_lookup::LookupError;
use crate::ReaderError;
use crate::{IndexDrive, Item, Missing, OpenSlots, Plan, PlannedSlot, ReadReport, RecoveryCache};
use holdfast_base::{Sequence, StreamId};
use holdfast_format::Superblock;
use holdfast_media::Disk;
use holdfast_protocol::Pins;
use holdfast_protocol::RingLocation;
use holdfast_protocol::client::Connection;
use holdfast_protocol::wire::{OpenSlotProjection, Purpose, Status};
use holdfast_ring::{ActKind, ActNumbers, ActStatus, HoldStatus, SlotStatus, StreamStatus};
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::path::Path;

/// Slots whose bounds are remembered between plans.
const MOST_BRIEFS: usize = 4096;

/// Reads a ring: through its recorder where one runs, otherwise straight from its lane, read-only.
#[derive(Debug)]
pub struct RingReader {
    /// Where the ring was found; unknown for a disk that was given.
    pub(crate) place: Option<RingLocation>,
    pub(crate) superblock: Superblock,
    pub(crate) queue: ReadQueue,
    pub(crate) briefs: HashMap<Sequence, SlotBounds>,
    /// Where copies of indexes may be.
    pub(crate) drive: Option<IndexDrive>,
}

impl RingReader {
    /// Opens the ring whose lane is at `path`: through its recorder when one answers on the ring's socket.
    pub fn open(path: &Path) -> Result<Self, ReaderError> {
        Self::open_with_cache(path, &RecoveryCache::default())
    }

    /// The same beside others of one search, which may just have read what has to be known of a ring that nobody records to.
    pub fn open_with_cache(path: &Path, others: &RecoveryCache) -> Result<Self, ReaderError> {
        let place = holdfast_protocol::locate(path)?;
        let access = match holdfast_protocol::find_recorder(&place)? {
            Some(connection) => Access::Live(Box::new(Live::new(connection)?)),
            None => Access::Direct(Box::new(Direct::open(path, others)?)),
        };
        Ok(Self::new(access, Some(place)))
    }

    /// Reads through the recorder that listens at `socket`.
    pub fn connect(socket: &Path) -> Result<Self, ReaderError> {
        let live = Live::new(Connection::connect(socket)?)?;
        Ok(Self::new(Access::Live(Box::new(live)), None))
    }

    /// Reads a lane that is open already and that nobody writes to.
    pub fn over(disk: Box<dyn Disk>) -> Result<Self, ReaderError> {
        Ok(Self::new(Access::Direct(Box::new(Direct::over(disk)?)), None))
    }

    fn new(access: Access, place: Option<RingLocation>) -> Self {
        let superblock = match &access {
            Access::Live(live) => live.superblock().clone(),
            Access::Direct(direct) => direct.superblock().clone(),
        };
        Self { place, superblock, queue: ReadQueue::new(access), briefs: HashMap::new(), drive: None }
    }

    /// Searches look for copies of indexes in that folder of an index drive before they read them.
    #[must_use]
    pub fn with_index(mut self, folder: Option<&Path>) -> Self {
        self.drive = folder.map(|folder| IndexDrive::new(folder, self.superblock.ring));
        self
    }

    /// What is known of the open slot is shared with other readers of this ring, so that what each of them asks for is what
    /// came since the last has.
    #[must_use]
    pub fn sharing(mut self, open: &OpenSlots) -> Self {
        if let Access::Live(live) = &mut self.queue.access {
            live.known = open.clone();
        }
        self
    }

    /// Whether a recorder answers.
    pub fn is_live(&self) -> bool {
        matches!(self.queue.access, Access::Live(_))
    }

    /// Whether the last run of a recorder was cut off, and none has started since: what that lost is not on record yet.
    pub fn was_cut_off(&self) -> bool {
        match &self.queue.access {
            Access::Live(_) => false,
            Access::Direct(direct) => direct.recovered().after_crash(),
        }
    }

    /// Says what reads are for from here on: a recorder gives each purpose its share. What it was before comes back.
    pub fn reads_for(&mut self, purpose: Purpose) -> Purpose {
        match &mut self.queue.access {
            Access::Live(live) => std::mem::replace(&mut live.purpose, purpose),
            Access::Direct(_) => Purpose::default(),
        }
    }

    /// The recorder's process.
    pub fn pid(&self) -> Option<u32> {
        match &self.queue.access {
            Access::Live(live) => Some(live.pid()),
            Access::Direct(_) => None,
        }
    }

    /// The ring's superblock.
    pub fn superblock(&self) -> &Superblock {
        &self.superblock
    }

    /// The connection to the recorder, for orders.
    pub fn connection(&mut self) -> Option<&mut Connection> {
        match &mut self.queue.access {
            Access::Live(live) => Some(live.connection()),
            Access::Direct(_) => None,
        }
    }

    /// Ends reading, and keeps what leads to the recorder for pins.
    pub fn into_pins(mut self) -> Pins {
        let drained = self.queue.drain();
        match self.queue.access {
            Access::Live(live) if drained.is_ok() => Pins::over(live.into_connection()),
            _ => Pins::default(),
        }
    }

    /// How the ring does.
    pub fn status(&mut self) -> Result<Status, ReaderError> {
        let mut ring = match &mut self.queue.access {
            Access::Live(live) => return Ok(live.connection().status()?),
            Access::Direct(direct) => {
                let name = direct.name().to_owned();
                direct.current().status(&name)
            }
        };
        let candidates = self.candidates()?;
        // A slot at either end may have no element, such as one that only notes a step of the clock.
        if let Some((first, _)) = self.first_times(candidates.iter())? {
            ring.oldest = Some(first);
        }
        if let Some((_, last)) = self.first_times(candidates.iter().rev())? {
            ring.newest = Some(last);
        }
        // Who asks how far back one can go looks at the slots next.
        self.learn_oldest_live()?;
        Ok(Status { ring, recorder: None })
    }

    /// Its streams, in the order of their ids.
    pub fn streams(&mut self) -> Result<Vec<StreamStatus>, ReaderError> {
        let mut streams = match &mut self.queue.access {
            Access::Live(live) => live.connection().streams()?,
            Access::Direct(direct) => direct.recovered().stream_looks().collect(),
        };
        streams.sort_by_key(|stream| stream.id);
        Ok(streams)
    }

    /// Its slots, by place. Without a recorder their times are known only after [`RingReader::learn_times`], and of
    /// the oldest that no hold keeps after [`RingReader::status`].
    pub fn slots(&mut self) -> Result<Vec<SlotStatus>, ReaderError> {
        match &mut self.queue.access {
            Access::Live(live) => Ok(live.connection().slots()?),
            Access::Direct(direct) => Ok(direct.current().slot_looks().collect()),
        }
    }

    /// Its holds.
    pub fn holds(&mut self) -> Result<Vec<HoldStatus>, ReaderError> {
        match &mut self.queue.access {
            Access::Live(live) => Ok(live.connection().holds()?),
            Access::Direct(direct) => Ok(direct.current().hold_looks().collect()),
        }
    }

    /// Its audit log behind these numbers, and how much of all has been dropped.
    pub fn acts(&mut self, after: ActNumbers) -> Result<(Vec<ActStatus>, ActNumbers), ReaderError> {
        match &mut self.queue.access {
            Access::Live(live) => Ok(live.connection().acts(after)?),
            Access::Direct(direct) => {
                let recovered = direct.recovered();
                let is_new = |act: &ActStatus| {
                    let after = if act.kind == ActKind::Purge { after.purges } else { after.others };
                    act.number > after
                };
                Ok((recovered.act_looks().filter(is_new).collect(), recovered.acts_dropped()))
            }
        }
    }

    /// A preamble; `None` when there is no such version (any more).
    pub fn preamble(&mut self, stream: StreamId, version: u32) -> Result<Option<Vec<u8>>, ReaderError> {
        preamble(&mut self.queue.access, stream, version)
    }

    /// The schema of a stream as text, an attribute a line; empty for none, and for a stream that is not there.
    pub fn schema(&mut self, stream: StreamId) -> Result<String, ReaderError> {
        match &mut self.queue.access {
            Access::Live(live) => Ok(live.connection().schema(stream)?),
            Access::Direct(direct) => Ok(direct.recovered().schema(stream).to_owned()),
        }
    }

    /// Every slot with data that has not expired, oldest first; those that are not on the medium yet come last.
    pub(crate) fn candidates(&mut self) -> Result<Vec<PlannedSlot>, ReaderError> {
        let bytes = self.superblock.geometry.slot_bytes;
        // Asked for before the slots, so that one that is placed in between is seen twice rather than never.
        let open: Vec<Sequence> = match &mut self.queue.access {
            Access::Live(live) => live.connection().open_slots()?.iter().map(|open| open.sequence).collect(),
            Access::Direct(direct) => {
                direct.recovered().rebuilt.iter().map(|slot| slot.sealed.sequence).collect()
            }
        };
        let mut all: Vec<PlannedSlot> = Vec::new();
        for slot in self.slots()?.iter().filter(|slot| slot.has_data()) {
            all.push(PlannedSlot::at(slot, bytes));
        }
        all.sort_by_key(|slot| (slot.age, slot.sequence));
        let mut known: Vec<Sequence> = all.iter().map(|slot| slot.sequence).collect();
        known.sort_unstable();
        for sequence in open {
            if known.binary_search(&sequence).is_err() {
                let age = holdfast_base::Age(sequence.0);
                let (slot, first, last, held) = (None, None, None, false);
                all.push(PlannedSlot { sequence, slot, age, first, last, held, bytes });
            }
        }
        all.sort_by_key(|slot| (slot.age, slot.sequence));
        Ok(all)
    }

    /// A slot that had no place when it was planned, as it is by now: with its place, once a recorder has written it.
    pub fn placed(&mut self, planned: &PlannedSlot) -> Result<PlannedSlot, ReaderError> {
        let is_new_there = match &mut self.queue.access {
            Access::Live(live) if planned.slot.is_none() => live.is_written(planned.sequence)?,
            _ => false,
        };
        if !is_new_there {
            return Ok(*planned);
        }
        let slots = self.slots()?;
        let found = slots.iter().find(|slot| slot.has_data() && slot.sequence == planned.sequence);
        Ok(found.map_or(*planned, |slot| PlannedSlot::at(slot, planned.bytes)))
    }

    /// The bounds of a slot, where they can be had.
    pub(crate) fn brief(&mut self, slot: &PlannedSlot) -> Result<Option<&SlotBounds>, ReaderError> {
        if slot.slot.is_none() && self.is_live() {
            // It grows: what was known of it may be too little.
            self.briefs.remove(&slot.sequence);
            self.take_open(slot, &OpenSlotProjection::SUMMARY)?;
        }
        if !self.briefs.contains_key(&slot.sequence) {
            match slot_lookup::head(&mut self.queue, &self.superblock, slot) {
                Ok(head) => self.remember(slot.sequence, &head),
                Err(LookupError::Failed(error)) => return Err(error),
                Err(LookupError::Expired | LookupError::Defect(_)) => return Ok(None),
            }
        }
        Ok(self.briefs.get(&slot.sequence))
    }

    pub(crate) fn remember(&mut self, sequence: Sequence, head: &SlotHead) {
        if self.briefs.len() >= MOST_BRIEFS {
            self.briefs.clear();
        }
        self.briefs.insert(sequence, SlotBounds::of(head));
    }

    /// Takes what an open slot has of what is wanted, so that it can be read.
    pub(crate) fn take_open(
        &mut self,
        slot: &PlannedSlot,
        wanted: &OpenSlotProjection,
    ) -> Result<(), ReaderError> {
        if let Access::Live(live) = &mut self.queue.access {
            live.take_open(slot.sequence, wanted)?;
        }
        Ok(())
    }

    /// Gives everything that a plan leads to: slot by slot in the order of their ages, so that the elements of a stream
    /// come in the order of their ordinals. Damage, losses and what has expired are items like any other.
    pub fn read(
        &mut self,
        plan: &Plan,
        sink: &mut dyn FnMut(Item<'_>) -> ControlFlow<()>,
    ) -> Result<ReadReport, ReaderError> {
        let mut state = ReadState {
            out: Output::new(sink),
            assembler: Assembler::default(),
            filter: RowFilter::new(&plan.selection.range),
            preambles: HashMap::new(),
            damage: false,
            expired: None,
            confirmed: None,
            suspicious: !self.is_live() && self.place.is_some(),
            done: 0,
        };
        let candidates = self.candidates()?;
        let (mut base, mut skip) = (0, 0);
        loop {
            let taken = self.watch();
            let planned = &plan.slots[base..];
            let read_ahead =
                ReadAhead::new(&mut self.queue, &self.superblock, &plan.selection, planned, skip);
            let mut session = Session { state: &mut state, read_ahead, candidates: &candidates, base, skip };
            let result = session.run(&mut preamble, &*taken);
            drop(session);
            match result {
                Ok(()) => break,
                Err(Interrupt::Enough) => {
                    self.queue.drain()?;
                    return Ok(state.out.report);
                }
                Err(Interrupt::Failed(error)) => return Err(error),
                Err(Interrupt::Suspect(at, row)) => {
                    self.queue.drain()?;
                    if self.is_damage(&plan.slots[at])? {
                        state.confirmed = Some(at);
                    } else {
                        state.suspicious = false;
                    }
                    (base, skip) = (at, row);
                }
            }
        }
        self.queue.drain()?;
        match self.finish(plan, &candidates, &mut state) {
            Ok(()) | Err(Interrupt::Enough | Interrupt::Suspect(..)) => Ok(state.out.report),
            Err(Interrupt::Failed(error)) => Err(error),
        }
    }

    /// Tells of what is left over at the end.
    fn finish(
        &self,
        plan: &Plan,
        candidates: &[PlannedSlot],
        state: &mut ReadState<'_>,
    ) -> Result<(), Interrupt> {
        flow(state.out.tell_expired())?;
        let newest = candidates.last().map_or_else(Default::default, |slot| slot.age);
        for open in state.assembler.finish() {
            let hole = state.hole(candidates, open.age, newest);
            let why = match (open.spoiled, hole) {
                (Some(why), _) => why,
                // Its last byte came after the range.
                (None, _) if !plan.to_end && plan.selection.range.is_timed() => continue,
                // A hold keeps its beginning only.
                (None, Some(Missing::Expired)) => Missing::Expired,
                // A recorder is still at it.
                (None, _) if self.is_live() || !plan.to_end => continue,
                (None, hole) => hole.unwrap_or(Missing::Unfinished),
            };
            if state.filter.whole(&open) {
                flow(state.out.partial(open.stream, open.ordinal, why))?;
            }
        }
        Ok(())
    }
}

fn preamble(access: &mut Access, stream: StreamId, version: u32) -> Result<Option<Vec<u8>>, ReaderError> {
    match access {
        Access::Live(live) => Ok(live.connection().preamble(stream, version)?),
        Access::Direct(direct) => Ok(direct.recovered().preamble(stream, version).map(<[u8]>::to_vec)),
    }
}
