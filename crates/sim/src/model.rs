//! The reference model of a ring: everything that was ever pushed, in plain collections, with the rules of
//! the design written out. It never asks the ring how it decides.

use crate::content::Content;
use crate::view::SeenRow;
use holdfast_base::{SlotNo, StreamId, Timestamp};
use holdfast_format::{ConditionHold, Kind};
use holdfast_ring::Range;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A row as it was pushed.
#[derive(Clone, Debug)]
pub struct Pushed {
    /// Whose.
    pub stream: StreamId,
    /// What.
    pub kind: Kind,
    /// Whether it ends a fragmented element.
    pub last: bool,
    /// Of which element.
    pub ordinal: u64,
    /// Which fragment.
    pub number: u32,
    /// Where it begins in its element.
    pub offset: u64,
    /// How long.
    pub len: usize,
    /// When.
    pub arrival: Timestamp,
    /// Event time, if it has one.
    pub event: Option<Timestamp>,
    /// The element's bytes.
    pub content: Content,
}

impl Pushed {
    /// Whether this is what was read.
    pub fn is(&self, seen: &SeenRow) -> bool {
        let same = self.stream == seen.stream
            && self.kind == seen.kind
            && self.last == seen.last
            && self.ordinal == seen.ordinal
            && self.number == seen.number
            && self.offset == seen.offset
            && self.arrival == seen.arrival
            && self.event == seen.event
            && self.len == seen.bytes.len();
        same && self.content.range(self.offset, self.len) == seen.bytes
    }
}

/// Where a slot stands, as far as one can tell from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Being filled.
    Open,
    /// Sealed, and not known to be on the medium.
    Moving,
    /// On the medium.
    Written(SlotNo),
    /// Expired; a crash may bring it back as long as nothing was written over it.
    Expired(Option<SlotNo>),
}

/// Preambles by stream and version.
pub type Preambles = BTreeMap<(u32, u32), Vec<u8>>;

/// One slot.
#[derive(Clone, Debug)]
pub struct ModelSlot {
    /// What was pushed into it.
    pub rows: Vec<Pushed>,
    /// Where it stands.
    pub stage: Stage,
    /// Its age.
    pub age: u64,
    /// Rows that must survive any crash from now on.
    pub floor: usize,
    /// The preambles that its streams had.
    pub preambles: Arc<Preambles>,
    /// It may be damaged: it was under way when the power went, or a test broke it.
    pub damaged: bool,
}

impl ModelSlot {
    fn names(&self, streams: &[StreamId]) -> bool {
        streams.is_empty() || self.rows.iter().any(|r| streams.iter().any(|s| s.0 % 64 == r.stream.0 % 64))
    }

    fn touches(&self, streams: &[StreamId], range: &Range) -> bool {
        let times: Vec<Timestamp> = if range.by_event {
            self.rows.iter().filter_map(|r| r.event).collect()
        } else {
            self.rows.iter().map(|r| r.arrival).collect()
        };
        let (Some(first), Some(last)) = (times.iter().min(), times.iter().max()) else {
            return false;
        };
        self.names(streams) && *first <= range.to && range.from <= *last
    }
}

/// A hold.
#[derive(Clone, Debug)]
pub struct ModelHold {
    /// The order that made it.
    pub order: u64,
    /// First and last sequences.
    pub ranges: Vec<(u64, u64)>,
    /// Whether it was acknowledged.
    pub acked: bool,
    /// What it had when it was.
    pub covered: Vec<u64>,
    /// Whether its release was ordered.
    pub releasing: bool,
    /// When it ends.
    pub until: Timestamp,
    /// What it looks for, if it is one by condition.
    pub condition_hold: Option<ConditionHold>,
    /// What it was before each order to grow that is not acknowledged yet: a crash may bring that back.
    pub before: Vec<Before>,
}

/// A hold before it was ordered to grow.
#[derive(Clone, Debug)]
pub struct Before {
    /// The order.
    pub order: u64,
    /// First and last sequences.
    pub ranges: Vec<(u64, u64)>,
    /// What it looked for, with its watermarks then.
    pub condition_hold: Option<ConditionHold>,
}

impl ModelHold {
    /// Takes over what it has grown to by an order that is not acknowledged.
    pub fn grow(&mut self, order: u64, ranges: Vec<(u64, u64)>, condition_hold: Option<ConditionHold>) {
        let ranges = std::mem::replace(&mut self.ranges, ranges);
        let condition_hold = std::mem::replace(&mut self.condition_hold, condition_hold);
        self.before.push(Before { order, ranges, condition_hold });
    }

    /// Whether this is what a crash may leave of it: as it is, or as it was before an order that is not acknowledged, whole.
    pub fn may_be(&self, ranges: &[(u64, u64)], condition_hold: Option<&ConditionHold>) -> bool {
        let now = std::iter::once((&self.ranges, &self.condition_hold));
        let all = now.chain(self.before.iter().map(|before| (&before.ranges, &before.condition_hold)));
        all.into_iter().any(|(r, f)| *r == ranges && f.as_ref() == condition_hold)
    }

    /// Slots that are promised to it beside what it keeps.
    pub fn promised(&self, kept: u32) -> u32 {
        self.condition_hold.as_ref().map_or(0, |condition_hold| condition_hold.quota.saturating_sub(kept))
    }

    /// Whether it keeps a sequence.
    pub fn keeps(&self, sequence: u64) -> bool {
        self.ranges.iter().any(|(first, last)| *first <= sequence && sequence <= *last)
    }
}

/// All that was ever pushed, and what must have become of it.
#[derive(Clone, Debug, Default)]
pub struct Model {
    /// Slots by sequence; those that are certainly gone are not kept.
    pub slots: BTreeMap<u64, ModelSlot>,
    /// Holds that stand or may stand, by id.
    pub holds: BTreeMap<u64, ModelHold>,
    /// Holds that have ended, while a slot may still be counted for them.
    pub ended: Vec<ModelHold>,
    /// Every hold id that was ever seen.
    pub hold_ids: BTreeSet<u64>,
    /// What must be on record: holds that were acknowledged, and (`true`) their releases.
    pub acts: BTreeSet<(bool, u64)>,
    /// Highest sequence that was ever given to a slot.
    pub newest: u64,
    /// Highest epoch under which something was recorded.
    pub epoch: u64,
    /// Slots of the ring.
    pub total: u32,
    /// Slots that it will have when a growth is done that was ordered.
    pub growing: Option<u32>,
    /// Slots that were bad when looked at last.
    pub bad: u32,
    /// What holds kept when looked at last.
    pub kept: BTreeSet<u64>,
    /// The same, with holds that were being released.
    pub may_be: BTreeSet<u64>,
    /// What clients named when they pinned slots last; how much of it they have got is the ring's to say, within its budget.
    pub pins: BTreeMap<u64, BTreeSet<u64>>,
    /// What was pinned when looked at last.
    pub pinned: BTreeSet<u64>,
    /// Preambles in force.
    pub preambles: Arc<Preambles>,
    /// Whether the device fails whole and returns. A write that was reported failed may have landed, so that its slot is
    /// there twice, and either is good. And a snapshot may wait for a slot, which then takes a place that is not named:
    /// what stood there had expired, and may be torn.
    pub outages: bool,
    /// The highest ordinal pushed, by stream.
    pub ordinals: BTreeMap<u32, u64>,
    /// The age of the slot in which each element began, by stream and ordinal.
    pub begun: BTreeMap<(u32, u64), u64>,
    /// What a purge has put in the place of what: what it does now, or did when it stopped in the middle.
    pub swaps: Vec<Swap>,
    /// What a purge keeps from expiring at this moment.
    pub locked: BTreeSet<u64>,
    /// Purges that were acknowledged, by their reasons: they must be on record.
    pub purges: BTreeSet<String>,
}

/// A slot whose rest a purge has copied. Until that is on record a crash brings either the original or the copies.
#[derive(Clone, Debug)]
pub struct Swap {
    /// Its sequence.
    pub original: u64,
    /// Those of the copies; none where nothing stays.
    pub copies: Vec<u64>,
    /// The copies that are still to be taken in.
    pub slots: BTreeMap<u64, ModelSlot>,
    /// Holds that kept the original, and keep the copies.
    pub kept_by: BTreeSet<u64>,
    /// Elements and bytes that go.
    pub gone: (u64, u64),
    /// It is on record.
    pub durable: bool,
}

impl Model {
    /// Begins a slot.
    pub fn open(&mut self, sequence: u64) -> Result<(), String> {
        if sequence <= self.newest {
            return Err(format!("sequence {sequence} was given again (the newest was {})", self.newest));
        }
        self.newest = sequence;
        let preambles = Arc::clone(&self.preambles);
        let (rows, stage) = (Vec::new(), Stage::Open);
        let slot = ModelSlot { rows, stage, age: sequence, floor: 0, preambles, damaged: false };
        self.slots.insert(sequence, slot);
        Ok(())
    }

    /// Takes a row into the open slot.
    pub fn push(&mut self, sequence: u64, row: Pushed) {
        let highest = self.ordinals.entry(row.stream.0).or_default();
        *highest = (*highest).max(row.ordinal);
        if row.number == 0 {
            self.begun.insert((row.stream.0, row.ordinal), sequence);
        }
        if let Some(slot) = self.slots.get_mut(&sequence) {
            slot.rows.push(row);
        }
    }

    /// The slot is sealed.
    pub fn seal(&mut self, sequence: u64) {
        if let Some(slot) = self.slots.get_mut(&sequence) {
            slot.stage = Stage::Moving;
        }
    }

    /// Whether a hold that nobody has released keeps `sequence`.
    pub fn is_kept(&self, sequence: u64) -> bool {
        self.holds.values().any(|h| !h.releasing && h.keeps(sequence))
    }

    /// Whether a hold keeps `sequence`, or one that ended a moment ago.
    pub fn may_be_kept(&self, sequence: u64) -> bool {
        self.holds.values().chain(&self.ended).any(|h| h.keeps(sequence))
    }

    /// How many slots of those there are a hold keeps.
    pub fn kept_by(&self, hold: &ModelHold) -> u32 {
        self.alive().filter(|(sequence, _)| hold.keeps(*sequence)).count() as u32
    }

    /// Slots that are promised to holds by condition: least and most, as one that ends may be counted either way.
    pub fn promised(&self) -> (u32, u32) {
        let of = |hold: &ModelHold| hold.promised(self.kept_by(hold));
        let least = self.holds.values().filter(|hold| !hold.releasing).map(of).sum();
        (least, self.holds.values().chain(&self.ended).map(of).sum())
    }

    /// Everything that is there and not expired.
    pub fn alive(&self) -> impl Iterator<Item = (u64, &ModelSlot)> {
        let alive = |slot: &&ModelSlot| !matches!(slot.stage, Stage::Expired(_));
        self.slots.iter().map(|(sequence, slot)| (*sequence, slot)).filter(move |(_, slot)| alive(slot))
    }

    /// Damaged slots: a hold may take them or not, as nobody knows what they cover.
    pub fn damaged(&self) -> u32 {
        self.alive().filter(|(_, slot)| slot.damaged).count() as u32
    }

    /// What a hold for a range takes now: sequences, and how many rows each has.
    pub fn candidates(&self, streams: &[StreamId], range: &Range) -> Vec<(u64, usize)> {
        // Nobody knows what a damaged slot covers.
        let known = || self.alive().filter(|(_, slot)| !slot.rows.is_empty() && !slot.damaged);
        // All back to where the first element began that ends in a slot of the range. Copies are as old as their originals.
        let mut wanted = BTreeSet::new();
        for (_, slot) in known().filter(|(_, slot)| slot.touches(streams, range)) {
            let ends = slot.rows.iter().filter(|row| row.last);
            let began = ends.filter_map(|row| self.begun.get(&(row.stream.0, row.ordinal))).min();
            wanted.extend(began.copied().unwrap_or(slot.age)..=slot.age);
        }
        let all = known().filter(|(_, slot)| wanted.contains(&slot.age) && slot.names(streams));
        all.map(|(sequence, slot)| (sequence, slot.rows.len())).collect()
    }

    /// What a hold for these sequences takes now.
    pub fn named(&self, ranges: &[(u64, u64)]) -> Vec<(u64, usize)> {
        let asked = |sequence: u64| ranges.iter().any(|(a, b)| *a <= sequence && sequence <= *b);
        let all = self.alive().filter(|(sequence, slot)| asked(*sequence) && !slot.damaged);
        all.map(|(sequence, slot)| (sequence, slot.rows.len())).collect()
    }

    /// Sequences that have rows of a stream between two ordinals.
    pub fn with_ordinals(&self, stream: StreamId, first: u64, end: u64) -> Vec<u64> {
        let has = |slot: &ModelSlot| {
            slot.rows.iter().any(|r| r.stream == stream && first <= r.ordinal && r.ordinal < end)
        };
        self.alive().filter(|(_, slot)| has(slot)).map(|(sequence, _)| sequence).collect()
    }

    /// The highest ordinal of a stream whose element is there to its end.
    pub fn last_whole(&self, stream: StreamId) -> Option<u64> {
        let undamaged = self.alive().filter(|(_, slot)| !slot.damaged);
        let rows = undamaged.flat_map(|(_, slot)| &slot.rows);
        let ends = |row: &&Pushed| row.stream == stream && (row.kind == Kind::Element || row.last);
        rows.filter(ends).map(|row| row.ordinal).max()
    }

    /// The highest ordinal of a stream that is there.
    pub fn last_ordinal(&self, stream: StreamId) -> Option<u64> {
        let rows = self.alive().flat_map(|(_, slot)| &slot.rows);
        rows.filter(|r| r.stream == stream).map(|r| r.ordinal).max()
    }
}
