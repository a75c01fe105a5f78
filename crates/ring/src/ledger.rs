//! The ledger: everything that the journal records of a ring, applied record by record after a restart.
//! `snapshot` writes it.
//!
//! Applying is idempotent, so that a snapshot taken over several commits may overlap what is recorded meanwhile.

use crate::table::{State, Table};
use holdfast_base::{Epoch, HoldId, MAX_RELEASES, OrderId, Sequence, SlotNo, StreamId, Timestamp};
use holdfast_format::{
    ActRecord, Geometry, HoldRecord, PurgeRecord, Record, SlotState, StreamRecord, TableEntry,
};

/// Clock steps that are kept; older ones concern data that has long expired.
const MAX_CLOCK_STEPS: usize = 64;

/// Audits of purges that are kept, and the part of all control records that they may take: holds need room as well, and
/// nobody can give them up to make some.
pub(crate) const MAX_AUDITS: usize = 256;
const AUDIT_SHARE: u64 = 4;

/// Acts that are kept, and the part of all control records that they may take. They give way to what must be kept.
pub(crate) const MAX_ACTS: usize = 256;
const ACT_SHARE: u64 = 8;

/// Bytes of a remembered release in a snapshot, and the part of all control records that they may take: they give way to
/// what must be kept.
const RELEASE_BYTES: u64 = 40;
const RELEASE_SHARE: u64 = 16;

/// Bytes that a record takes beside its body, and its padding.
const RECORD_COST: u64 = 16;

/// Bytes that a run of slots takes in the record of a hold.
pub(crate) const RUN_BYTES: u64 = 16;

/// Bytes that an audit takes in a snapshot.
fn audit_bytes(purge: &PurgeRecord) -> u64 {
    96 + RECORD_COST + (purge.reason.len() + purge.owner.len()) as u64 + 4
}

/// Bytes that an act takes in a snapshot.
fn act_bytes(act: &ActRecord) -> u64 {
    64 + RECORD_COST + (act.reason.len() + act.owner.len()) as u64 + 4
}

/// The start of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EpochStart {
    /// The run.
    pub epoch: Epoch,
    /// Arrival time at its start.
    pub arrival: Timestamp,
    /// What the wall clock said then.
    pub wall: Timestamp,
    /// Whether the run before ended cleanly.
    pub clean: bool,
}

/// A step of the wall clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockStep {
    /// The run.
    pub epoch: Epoch,
    /// Arrival time when it was seen.
    pub arrival: Timestamp,
    /// Wall clock that was expected.
    pub before: Timestamp,
    /// Wall clock that was found.
    pub after: Timestamp,
}

/// A version of a stream's preamble.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preamble {
    /// Whose.
    pub stream: StreamId,
    /// Which.
    pub version: u32,
    /// The last slot that needs it.
    pub last_used: Sequence,
    /// The bytes.
    pub bytes: Vec<u8>,
}

/// A release order that was carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KnownRelease {
    pub(crate) hold: HoldId,
    pub(crate) at: Timestamp,
    pub(crate) order: OrderId,
}

/// All that the journal knows.
#[derive(Clone, Debug)]
pub(crate) struct Ledger {
    /// What the superblock says, as the string that can bring it back.
    pub(crate) recovery: String,
    pub(crate) geometry: Geometry,
    pub(crate) epoch: EpochStart,
    pub(crate) table: Table,
    pub(crate) next: Sequence,
    pub(crate) next_hold: HoldId,
    pub(crate) next_stream: StreamId,
    /// By number.
    pub(crate) holds: Vec<HoldRecord>,
    /// The newest releases that had a UUID, the oldest first.
    pub(crate) releases: Vec<KnownRelease>,
    /// Releases that came before those, and were dropped: every one keeps its number while a snapshot is written.
    pub(crate) dropped_releases: u64,
    pub(crate) streams: Vec<StreamRecord>,
    pub(crate) preambles: Vec<Preamble>,
    pub(crate) clock_steps: Vec<ClockStep>,
    /// Clock steps that came before those, and were dropped: every one keeps its number while a snapshot is written.
    pub(crate) dropped_steps: u64,
    pub(crate) purges: Vec<PurgeRecord>,
    /// Audits that came before those, and were dropped.
    pub(crate) dropped_purges: u64,
    /// The newest, in the order of their numbers.
    pub(crate) acts: Vec<ActRecord>,
    /// The number of the newest there ever was.
    pub(crate) last_act: u32,
    /// Whether the last run has not ended cleanly (or is under way).
    pub(crate) unclean: bool,
}

impl Ledger {
    /// A ring that has never been written.
    pub(crate) fn empty(geometry: Geometry) -> Self {
        Self {
            recovery: String::new(),
            table: Table::new(geometry.slots),
            geometry,
            epoch: EpochStart { epoch: Epoch(0), arrival: Timestamp(0), wall: Timestamp(0), clean: true },
            next: Sequence(1),
            next_hold: HoldId(1),
            next_stream: StreamId(1),
            holds: Vec::new(),
            releases: Vec::new(),
            dropped_releases: 0,
            streams: Vec::new(),
            preambles: Vec::new(),
            clock_steps: Vec::with_capacity(MAX_CLOCK_STEPS),
            dropped_steps: 0,
            purges: Vec::new(),
            dropped_purges: 0,
            acts: Vec::new(),
            last_act: 0,
            unclean: false,
        }
    }

    pub(crate) fn stream(&self, id: StreamId) -> Option<&StreamRecord> {
        self.streams.iter().find(|s| s.id == id)
    }

    pub(crate) fn stream_mut(&mut self, id: StreamId) -> Option<&mut StreamRecord> {
        self.streams.iter_mut().find(|s| s.id == id)
    }

    pub(crate) fn hold(&self, id: HoldId) -> Option<&HoldRecord> {
        self.holds.binary_search_by_key(&id, |h| h.id).ok().map(|at| &self.holds[at])
    }

    pub(crate) fn preamble(&self, stream: StreamId, version: u32) -> Option<&Preamble> {
        self.preambles.iter().find(|p| p.stream == stream && p.version == version)
    }

    /// Drops preambles that no slot needs any more: not in force, and last used before `oldest`.
    pub(crate) fn forget_preambles(&mut self, oldest: Sequence) {
        let streams = &self.streams;
        self.preambles.retain(|p| {
            p.last_used >= oldest || streams.iter().any(|s| s.id == p.stream && s.preamble == p.version)
        });
    }

    /// Bytes that the control records take in a snapshot, the table aside.
    pub(crate) fn control_bytes(&self) -> u64 {
        self.lasting_bytes() + self.release_bytes() + self.acts.iter().map(act_bytes).sum::<u64>()
    }

    fn release_bytes(&self) -> u64 {
        self.releases.len() as u64 * RELEASE_BYTES
    }

    /// The same without those that give way to others: acts and remembered releases.
    pub(crate) fn lasting_bytes(&self) -> u64 {
        let text = |s: &str| s.len() as u64 + 2;
        let holds = self.holds.iter().map(|h| {
            96 + RECORD_COST
                + 4 * h.streams.len() as u64
                + RUN_BYTES * h.sequences.len() as u64
                + text(&h.reason)
                + text(&h.owner)
                + h.condition_hold.as_ref().map_or(0, |condition_hold| condition_hold.bytes() as u64)
                + h.order.map_or(0, |order| order.0.len() as u64 + 1)
        });
        let streams = self
            .streams
            .iter()
            .map(|s| 112 + RECORD_COST + text(&s.name) + text(&s.framing) + s.schema_text.len() as u64);
        let preambles = self.preambles.iter().map(|p| p.bytes.len() as u64 + 4 * RECORD_COST);
        let purges = self.purges.iter().map(audit_bytes);
        holds.chain(streams).chain(preambles).chain(purges).sum::<u64>()
            + self.clock_steps.len() as u64 * (32 + RECORD_COST)
    }

    pub(crate) fn note_clock_step(&mut self, step: ClockStep) {
        if self.clock_steps.contains(&step) {
            return;
        }
        if self.clock_steps.len() == MAX_CLOCK_STEPS {
            self.clock_steps.remove(0);
            self.dropped_steps += 1;
        }
        self.clock_steps.push(step);
    }

    /// Keeps the audit of a purge; the last word on one that began at the same time counts. It tells how many older ones
    /// had to go.
    pub(crate) fn note_purge(&mut self, purge: PurgeRecord) {
        let at = purge.at;
        self.dropped_purges += self.keep_purge(purge);
        let dropped = self.dropped_purges.min(u64::from(PurgeRecord::MOST_DROPPED)) as u32;
        if let Some(purge) = self.purges.iter_mut().find(|p| p.at == at) {
            purge.dropped = dropped;
        }
        self.make_room();
    }

    /// Keeps an audit, and of all as many of the newest as may be kept; how many older ones went.
    fn keep_purge(&mut self, purge: PurgeRecord) -> u64 {
        match self.purges.iter_mut().find(|p| p.at == purge.at) {
            Some(known) => *known = purge,
            None => self.purges.push(purge),
        }
        let most = self.geometry.control_budget() / AUDIT_SHARE;
        let mut bytes: u64 = self.purges.iter().map(audit_bytes).sum();
        let mut gone = 0;
        while self.purges.len() > MAX_AUDITS || (bytes > most && self.purges.len() > 1) {
            bytes -= audit_bytes(&self.purges.remove(0));
            gone += 1;
        }
        gone
    }

    /// Keeps what somebody did, under the next number.
    pub(crate) fn note_act(&mut self, act: ActRecord) -> u32 {
        self.last_act = self.last_act.saturating_add(1);
        self.acts.push(ActRecord { number: self.last_act, ..act });
        self.make_room();
        self.last_act
    }

    /// The hold that an order with this UUID has given, if it stands.
    pub(crate) fn hold_of(&self, order: OrderId) -> Option<&HoldRecord> {
        self.holds.iter().find(|hold| hold.order == Some(order))
    }

    /// The release that an order with this UUID has carried out, if it is remembered.
    pub(crate) fn release_of(&self, order: OrderId) -> Option<KnownRelease> {
        self.releases.iter().rev().find(|release| release.order == order).copied()
    }

    /// Remembers a release, once.
    pub(crate) fn note_release(&mut self, hold: HoldId, at: Timestamp, order: OrderId) {
        if self.release_of(order).is_none() {
            self.drop_releases((self.releases.len() + 1).saturating_sub(MAX_RELEASES));
            self.releases.push(KnownRelease { hold, at, order });
        }
    }

    fn drop_releases(&mut self, count: usize) {
        self.releases.drain(..count);
        self.dropped_releases += count as u64;
    }

    /// Lets the oldest releases and acts go where there are too many, or no room for them beside what lasts.
    pub(crate) fn make_room(&mut self) {
        let budget = self.geometry.control_budget();
        let left = budget.saturating_sub(self.lasting_bytes());
        let most = (left.min(budget / RELEASE_SHARE) / RELEASE_BYTES) as usize;
        self.drop_releases(self.releases.len().saturating_sub(most));
        let room = (left - self.release_bytes()).min(budget / ACT_SHARE);
        let mut bytes: u64 = self.acts.iter().map(act_bytes).sum();
        let mut gone = 0;
        while bytes > room || self.acts.len() - gone > MAX_ACTS {
            bytes -= act_bytes(&self.acts[gone]);
            gone += 1;
        }
        self.acts.drain(..gone);
    }

    /// How many acts have been dropped.
    pub(crate) fn dropped_acts(&self) -> u64 {
        u64::from(self.last_act) - self.acts.len() as u64
    }

    /// Takes over an act, once. Whether there is room for it is known when all has been taken over.
    fn apply_act(&mut self, act: &ActRecord) {
        if self.acts.last().is_none_or(|last| last.number < act.number) {
            if self.acts.len() == MAX_ACTS {
                self.acts.remove(0);
            }
            self.acts.push(act.clone());
            self.last_act = self.last_act.max(act.number);
        }
    }

    /// Takes over a growth, as far as the format allows one: memory is taken for every slot.
    fn set_geometry(&mut self, lane_bytes: u64, slots: u32) {
        let possible = self.geometry.grown(lane_bytes).is_ok_and(|grown| slots <= grown.slots);
        if possible && slots > self.table.len() {
            self.geometry.lane_bytes = lane_bytes;
            self.geometry.slots = slots;
            self.table.grow(slots);
        }
    }

    fn free(&mut self, sequence: Sequence, purged: bool) {
        if let Some(no) = self.table.find(sequence) {
            *self.table.get_mut(no) = crate::table::Slot { purged, ..crate::table::Slot::FREE };
        }
    }

    /// Takes over one record. Open slot records are not the ledger's.
    pub(crate) fn apply(&mut self, record: &Record<'_>) {
        match record {
            Record::Epoch { epoch, arrival, wall, clean } => {
                self.epoch = EpochStart { epoch: *epoch, arrival: *arrival, wall: *wall, clean: *clean };
                self.unclean = true;
            }
            Record::Table { first, entries } => {
                for (at, entry) in entries.iter().enumerate() {
                    let no = SlotNo(first.0 + at as u32);
                    if no.0 < self.table.len() {
                        self.table.set_entry(no, entry);
                    }
                }
            }
            Record::Stream(stream) => match self.stream_mut(stream.id) {
                Some(known) => *known = stream.clone(),
                None => self.streams.push(stream.clone()),
            },
            Record::Preamble { stream, version, total, offset, last, bytes } => {
                self.apply_preamble(*stream, *version, *total, *offset, *last, bytes);
            }
            Record::Hold(hold) => {
                match self.holds.binary_search_by_key(&hold.id, |h| h.id) {
                    Ok(at) => self.holds[at] = hold.clone(),
                    Err(at) => self.holds.insert(at, hold.clone()),
                }
                self.next_hold = self.next_hold.max(HoldId(hold.id.0 + 1));
            }
            Record::Release { hold, at, order } => {
                self.holds.retain(|h| h.id != *hold);
                if let Some(order) = order {
                    self.note_release(*hold, *at, *order);
                }
            }
            Record::BadSlot { slot } => {
                if slot.0 < self.table.len() {
                    *self.table.get_mut(*slot) =
                        crate::table::Slot { state: State::Bad, ..crate::table::Slot::FREE };
                }
            }
            Record::ClockStep { epoch, arrival, before, after } => self.note_clock_step(ClockStep {
                epoch: *epoch,
                arrival: *arrival,
                before: *before,
                after: *after,
            }),
            Record::Geometry { lane_bytes, slots } => self.set_geometry(*lane_bytes, *slots),
            Record::Replaced { originals, copies } => {
                for sequence in originals {
                    self.free(*sequence, true);
                }
                for copy in copies {
                    let entry = TableEntry {
                        sequence: copy.sequence,
                        age: copy.age,
                        state: SlotState::Data,
                        damaged: false,
                        purged: false,
                    };
                    if copy.slot.0 < self.table.len() {
                        self.table.set_entry(copy.slot, &entry);
                    }
                }
            }
            Record::Freed { sequences } => {
                for sequence in sequences {
                    self.free(*sequence, true);
                }
            }
            Record::Next { sequence, hold, stream, acts } => {
                self.last_act = self.last_act.max(*acts);
                self.next = self.next.max(*sequence);
                self.next_hold = self.next_hold.max(*hold);
                self.next_stream = self.next_stream.max(*stream);
            }
            Record::Purged(purge) => {
                self.keep_purge(purge.clone());
                // What went here is in the count of the record that took its place.
                self.dropped_purges = self.dropped_purges.max(purge.dropped.into());
            }
            Record::Act(act) => self.apply_act(act),
            Record::CleanEnd { .. } => self.unclean = false,
            Record::Runway { .. }
            | Record::OpenSlot(_)
            | Record::OpenPayload { .. }
            | Record::OpenRows { .. }
            | Record::Recovery(_)
            | Record::Unknown(_) => {}
        }
    }

    fn apply_preamble(
        &mut self,
        stream: StreamId,
        version: u32,
        total: u32,
        offset: u32,
        last: Sequence,
        bytes: &[u8],
    ) {
        if self.preamble(stream, version).is_none() {
            self.preambles.push(Preamble { stream, version, last_used: last, bytes: Vec::new() });
        }
        let Some(known) = self.preambles.iter_mut().find(|p| p.stream == stream && p.version == version)
        else {
            return;
        };
        known.last_used = known.last_used.max(last);
        // Parts come in order; one that is there already (a snapshot over a record) is not appended again.
        if known.bytes.len() == offset as usize && known.bytes.len() + bytes.len() <= total as usize {
            known.bytes.extend_from_slice(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ledger(slot: u64) -> Ledger {
        Ledger::empty(Geometry::for_lane((1 << 20) + (20 + 4) * slot, slot, Vec::new()).unwrap())
    }

    proptest! {
        #[test]
        fn audits_are_kept_from_the_newest_on_and_the_others_counted(
            large in any::<bool>(),
            reasons in proptest::collection::vec(0..40usize, 0..600),
        ) {
            let slot = if large { 16 << 20 } else { 64 << 10 };
            let (mut live, mut replayed) = (ledger(slot), ledger(slot));
            let mut all: Vec<Timestamp> = Vec::new();
            for (number, length) in reasons.into_iter().enumerate() {
                let at = Timestamp(number as i64);
                all.push(at);
                // As it begins, and as it ends.
                for elements in [0, 9] {
                    let reason = "r".repeat(length * length);
                    live.note_purge(PurgeRecord { at, elements, reason, ..PurgeRecord::default() });
                    replayed.apply(&Record::Purged(live.purges.last().unwrap().clone()));
                }
                let kept: Vec<Timestamp> = live.purges.iter().map(|p| p.at).collect();
                prop_assert_eq!(&kept, &all[all.len() - kept.len()..]);
                prop_assert_eq!(live.dropped_purges, (all.len() - kept.len()) as u64);
                prop_assert_eq!((&replayed.purges, replayed.dropped_purges), (&live.purges, live.dropped_purges));
                let bytes: u64 = live.purges.iter().map(audit_bytes).sum();
                prop_assert!(kept.len() <= MAX_AUDITS && bytes <= live.geometry.control_budget() / AUDIT_SHARE);
            }
        }
    }

    #[test]
    fn audits_never_keep_a_hold_from_being_given() {
        let mut ledger = ledger(64 << 10);
        for at in 0..1000 {
            let (reason, owner) = ("r".repeat(1024), "o".repeat(1024));
            ledger.note_purge(PurgeRecord { at: Timestamp(at), reason, owner, ..PurgeRecord::default() });
        }
        assert!(ledger.control_bytes() <= ledger.geometry.control_budget() / AUDIT_SHARE);
        assert!(!ledger.purges.is_empty());
    }

    proptest! {
        // What somebody did is kept as far as there is room, numbered without a hole; and the snapshot's bound holds whatever
        // is kept beside it.
        #[test]
        fn acts_are_kept_from_the_newest_on_and_give_way_to_what_lasts(
            steps in proptest::collection::vec((0..40usize, any::<bool>()), 0..400),
        ) {
            let (mut live, mut replayed) = (ledger(64 << 10), ledger(64 << 10));
            let budget = live.geometry.control_budget();
            let (mut given, mut holds) = (0u32, 0);
            for (length, is_hold) in steps {
                let reason = "r".repeat(length * length);
                if is_hold {
                    let hold = HoldRecord { id: HoldId(holds + 1), reason, ..HoldRecord::default() };
                    live.holds.push(hold.clone());
                    if live.lasting_bytes() > budget {
                        live.holds.pop();
                    } else {
                        holds += 1;
                        live.make_room();
                        replayed.apply(&Record::Hold(hold));
                    }
                } else {
                    given += 1;
                    let number = live.note_act(ActRecord { at: Timestamp(given.into()), reason, ..ActRecord::default() });
                    prop_assert_eq!(number, given);
                    // It may be gone at once; that it was there is known all the same.
                    let (sequence, hold, stream) = (Sequence(1), HoldId(1), StreamId(1));
                    let next = Record::Next { sequence, hold, stream, acts: live.last_act };
                    replayed.apply(&live.acts.last().map_or(next, |act| Record::Act(act.clone())));
                }
                prop_assert!(live.control_bytes() <= budget && live.acts.len() <= MAX_ACTS);
                let numbers: Vec<u32> = live.acts.iter().map(|act| act.number).collect();
                prop_assert!(numbers.iter().copied().eq(given + 1 - numbers.len() as u32..=given), "{numbers:?}");
                prop_assert_eq!(live.dropped_acts(), u64::from(given) - numbers.len() as u64);
                // What gave way is not taken back: a restart may know some of it still.
                prop_assert_eq!(replayed.last_act, live.last_act);
                prop_assert!(live.acts.iter().all(|act| replayed.acts.contains(act)));
                prop_assert_eq!(replayed.dropped_acts(), u64::from(given) - replayed.acts.len() as u64);
            }
            replayed.make_room();
            prop_assert!(replayed.control_bytes() <= budget && replayed.acts.len() <= MAX_ACTS);
        }
    }
}
