//! Serialisation of the ledger: single items as they happen, and all items as a snapshot that is written part
//! by part over several commits. It copies and allocates nothing: items name what the ledger holds.

use crate::PlacedCopy;
use crate::ledger::{ClockStep, KnownRelease, Ledger};
use holdfast_base::{HoldId, OrderId, Sequence, SlotNo, StreamId, Timestamp};
use holdfast_format::{CommitWriter, CopyRecord, Record};

/// Bytes that a record of the slot table takes beside its entries, and one entry.
const TABLE_HEAD: usize = 16;
const TABLE_ENTRY: usize = 16;

/// Bytes that a preamble's record takes beside the piece of it.
const PREAMBLE_HEAD: usize = 64;

/// One thing to be recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Item {
    Geometry,
    Stream(StreamId),
    Preamble {
        stream: StreamId,
        version: u32,
        offset: u32,
    },
    Hold(HoldId),
    Release(HoldId, Timestamp, Option<OrderId>),
    Bad(SlotNo),
    ClockStep(ClockStep),
    /// The audit of the purge that began then.
    Purged(Timestamp),
    /// The act of that number.
    Act(u32),
    /// Copies count from here on, if there are any, and the originals are free.
    Replaced {
        originals: Vec<Sequence>,
        copies: Vec<PlacedCopy>,
    },
    Runway,
    /// The run that begins behind what the one before it left in the journal, with its first runway.
    Epoch,
    CleanEnd(Timestamp),
}

/// What a runway record says at the moment it is written.
pub(crate) struct Runway<'a> {
    /// No slot below this sequence is still to be written there.
    pub(crate) naming: Sequence,
    /// The slots, in the order they will be written.
    pub(crate) slots: &'a [SlotNo],
    /// Sequences below this one may be used once it is durable.
    pub(crate) until: Sequence,
    /// Whether the places of the list before it tell the sequences of its slots.
    pub(crate) tells: bool,
}

/// How far a snapshot has come: the next thing to be written. What is added behind it meanwhile is taken along; what
/// changes before it is recorded by items of its own, which follow the snapshot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Walk {
    #[default]
    Recovery,
    Epoch,
    Next,
    Geometry,
    /// Before the table: a slot that reaches the medium while the snapshot is written is in one or both.
    Runway,
    Table {
        from: u32,
    },
    /// Streams only ever grow in number.
    Streams {
        at: usize,
    },
    /// Preambles are dropped only just before a snapshot begins.
    Preambles {
        at: usize,
        offset: u32,
    },
    /// Holds come and go: those with higher numbers than this.
    Holds {
        after: HoldId,
    },
    /// Releases by number, as the oldest may be dropped.
    Releases {
        number: u64,
    },
    /// Clock steps by number, too: the oldest may be dropped.
    ClockSteps {
        number: u64,
    },
    Purges {
        number: u64,
    },
    /// Acts by number, too: the oldest may be dropped.
    Acts {
        number: u32,
    },
    /// All has been written; the open slot comes behind.
    Whole,
}

impl Ledger {
    /// Writes one item; `false` when the writer has no room for it. An item that takes several records moves on
    /// as far as there is room.
    pub(crate) fn emit(&self, item: &mut Item, runway: &Runway<'_>, writer: &mut CommitWriter<'_>) -> bool {
        match item {
            Item::Geometry => self.emit_geometry(writer),
            Item::Stream(id) => self.stream(*id).is_none_or(|s| writer.push_stream(s)),
            Item::Preamble { stream, version, offset } => {
                self.emit_preamble(*stream, *version, offset, writer)
            }
            Item::Hold(id) => match self.hold(*id) {
                Some(hold) => writer.push_hold(hold),
                // It has ended before it was recorded; its number is not given again.
                None => self.emit_next(writer),
            },
            Item::Release(hold, at, order) => {
                writer.push(&Record::Release { hold: *hold, at: *at, order: *order })
            }
            Item::Bad(slot) => writer.push(&Record::BadSlot { slot: *slot }),
            Item::ClockStep(step) => emit_clock_step(step, writer),
            Item::Purged(at) => {
                self.purges.iter().find(|p| p.at == *at).is_none_or(|p| writer.push_purged(p))
            }
            Item::Act(number) => match self.acts.binary_search_by_key(number, |act| act.number) {
                Ok(at) => writer.push_act(&self.acts[at]),
                // It has given way already; its number is not given again.
                Err(_) => self.emit_next(writer),
            },
            Item::Replaced { originals, copies } if copies.is_empty() => writer.push_freed(originals),
            Item::Replaced { originals, copies } => {
                let copy = |c: &PlacedCopy| CopyRecord { slot: c.slot, sequence: c.sequence, age: c.age };
                writer.push_replaced(originals, copies.iter().map(copy))
            }
            Item::Runway => self.emit_runway(runway, writer),
            Item::Epoch => self.emit_epoch(writer) && self.emit_runway(runway, writer),
            Item::CleanEnd(at) => writer.push(&Record::CleanEnd { arrival: *at }),
        }
    }

    /// Writes the next part of a snapshot; `false` when the writer has no room for all of it.
    pub(crate) fn emit_part(
        &self,
        walk: &mut Walk,
        runway: &Runway<'_>,
        writer: &mut CommitWriter<'_>,
    ) -> bool {
        let (done, next) = match walk {
            Walk::Recovery => (writer.push(&Record::Recovery(&self.recovery)), Walk::Epoch),
            Walk::Epoch => (self.emit_epoch(writer), Walk::Next),
            Walk::Next => (self.emit_next(writer), Walk::Geometry),
            Walk::Geometry => (self.emit_geometry(writer), Walk::Runway),
            Walk::Runway => (self.emit_runway(runway, writer), Walk::Table { from: 0 }),
            Walk::Table { from } => (self.emit_table(from, writer), Walk::Streams { at: 0 }),
            Walk::Streams { at } => {
                (each(&self.streams, at, |s| writer.push_stream(s)), Walk::Preambles { at: 0, offset: 0 })
            }
            Walk::Preambles { at, offset } => {
                (self.emit_preambles(at, offset, writer), Walk::Holds { after: HoldId(0) })
            }
            Walk::Holds { after } => (self.emit_holds(after, writer), Walk::Releases { number: 0 }),
            Walk::Releases { number } => {
                let mut at = number.saturating_sub(self.dropped_releases) as usize;
                let done = each(&self.releases, &mut at, |release| {
                    let KnownRelease { hold, at, order } = *release;
                    writer.push(&Record::Release { hold, at, order: Some(order) })
                });
                *number = self.dropped_releases + at as u64;
                (done, Walk::ClockSteps { number: 0 })
            }
            Walk::ClockSteps { number } => {
                let mut at = number.saturating_sub(self.dropped_steps) as usize;
                let done = each(&self.clock_steps, &mut at, |step| emit_clock_step(step, writer));
                *number = self.dropped_steps + at as u64;
                (done, Walk::Purges { number: 0 })
            }
            Walk::Purges { number } => {
                let mut at = number.saturating_sub(self.dropped_purges) as usize;
                let done = each(&self.purges, &mut at, |p| writer.push_purged(p));
                *number = self.dropped_purges + at as u64;
                (done, Walk::Acts { number: 0 })
            }
            Walk::Acts { number } => {
                let mut at = self.acts.partition_point(|act| act.number < *number);
                let done = each(&self.acts, &mut at, |act| writer.push_act(act));
                *number = self.acts.get(at).map_or(u32::MAX, |act| act.number);
                (done, Walk::Whole)
            }
            Walk::Whole => (true, Walk::Whole),
        };
        if done {
            *walk = next;
        }
        done
    }

    fn emit_epoch(&self, writer: &mut CommitWriter<'_>) -> bool {
        writer.push(&Record::Epoch {
            epoch: self.epoch.epoch,
            arrival: self.epoch.arrival,
            wall: self.epoch.wall,
            clean: self.epoch.clean,
        })
    }

    fn emit_next(&self, writer: &mut CommitWriter<'_>) -> bool {
        self.emit_next_from(self.next, writer)
    }

    fn emit_next_from(&self, sequence: Sequence, writer: &mut CommitWriter<'_>) -> bool {
        let (hold, stream, acts) = (self.next_hold, self.next_stream, self.last_act);
        writer.push(&Record::Next { sequence, hold, stream, acts })
    }

    /// The list, behind the end of the reservation where that is not the list's; and behind a replacement of nothing by
    /// nothing where copies have taken sequences or slots out of turn.
    fn emit_runway(&self, runway: &Runway<'_>, writer: &mut CommitWriter<'_>) -> bool {
        let told = runway.naming.0 + runway.slots.len() as u64 + 1;
        (runway.tells || writer.push_replaced(&[], std::iter::empty()))
            && (runway.until.0 <= told || self.emit_next_from(runway.until, writer))
            && writer.push_runway(runway.naming, runway.slots)
    }

    fn emit_geometry(&self, writer: &mut CommitWriter<'_>) -> bool {
        writer.push(&Record::Geometry { lane_bytes: self.geometry.lane_bytes, slots: self.geometry.slots })
    }

    fn emit_table(&self, from: &mut u32, writer: &mut CommitWriter<'_>) -> bool {
        while *from < self.table.len() {
            let fit = writer.room().saturating_sub(TABLE_HEAD) / TABLE_ENTRY;
            let fit = fit.min((self.table.len() - *from) as usize);
            let entries = (0..fit).map(|at| self.table.entry(SlotNo(*from + at as u32)));
            if fit == 0 || !writer.push_table(SlotNo(*from), entries) {
                return false;
            }
            *from += fit as u32;
        }
        true
    }

    fn emit_preambles(&self, at: &mut usize, offset: &mut u32, writer: &mut CommitWriter<'_>) -> bool {
        while let Some(preamble) = self.preambles.get(*at) {
            if !self.emit_preamble(preamble.stream, preamble.version, offset, writer) {
                return false;
            }
            (*at, *offset) = (*at + 1, 0);
        }
        true
    }

    fn emit_preamble(
        &self,
        stream: StreamId,
        version: u32,
        offset: &mut u32,
        writer: &mut CommitWriter<'_>,
    ) -> bool {
        let Some(preamble) = self.preamble(stream, version) else {
            return true;
        };
        let total = preamble.bytes.len();
        loop {
            let rest = &preamble.bytes[(*offset as usize).min(total)..];
            let fit = rest.len().min(writer.room().saturating_sub(PREAMBLE_HEAD));
            if fit == 0 && !rest.is_empty() {
                return false;
            }
            let pushed = writer.push(&Record::Preamble {
                stream,
                version,
                total: total as u32,
                offset: *offset,
                last: preamble.last_used,
                bytes: &rest[..fit],
            });
            if !pushed {
                return false;
            }
            *offset += fit as u32;
            if *offset as usize >= total {
                return true;
            }
        }
    }

    fn emit_holds(&self, after: &mut HoldId, writer: &mut CommitWriter<'_>) -> bool {
        let first = self.holds.partition_point(|h| h.id <= *after);
        for hold in &self.holds[first..] {
            if !writer.push_hold(hold) {
                return false;
            }
            *after = hold.id;
        }
        true
    }
}

fn emit_clock_step(step: &ClockStep, writer: &mut CommitWriter<'_>) -> bool {
    writer.push(&Record::ClockStep {
        epoch: step.epoch,
        arrival: step.arrival,
        before: step.before,
        after: step.after,
    })
}

/// Writes everything from `at` on, as far as there is room.
fn each<T>(all: &[T], at: &mut usize, mut write: impl FnMut(&T) -> bool) -> bool {
    while let Some(one) = all.get(*at) {
        if !write(one) {
            return false;
        }
        *at += 1;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::{EpochStart, Preamble};
    use holdfast_base::{Epoch, Ordinal, RingId};
    use holdfast_format::{
        ActRecord, CommitHead, ConditionHold, Geometry, HoldRecord, Key, PurgeRecord, StreamRecord,
        read_commit,
    };
    use proptest::prelude::*;

    /// What may happen between two commits of a snapshot.
    #[derive(Clone, Debug)]
    enum Change {
        Hold(u8),
        Release(u8),
        Extend(u8),
        Stream,
        Counters(u8),
        ClockStep,
        Purge(u8),
        Act(u8),
    }

    fn change() -> impl Strategy<Value = Change> {
        prop_oneof![
            any::<u8>().prop_map(Change::Hold),
            any::<u8>().prop_map(Change::Release),
            any::<u8>().prop_map(Change::Extend),
            Just(Change::Stream),
            any::<u8>().prop_map(Change::Counters),
            Just(Change::ClockStep),
            any::<u8>().prop_map(Change::Purge),
            any::<u8>().prop_map(Change::Act),
        ]
    }

    /// Carries a change out as the ring does; what records it.
    fn apply(ledger: &mut Ledger, change: &Change, tick: i64) -> Vec<Item> {
        let at = |which: u8, count: usize| (count > 0).then(|| usize::from(which) % count);
        match change {
            Change::Hold(length) => {
                let id = ledger.next_hold;
                ledger.next_hold = HoldId(id.0 + 1);
                let reason = "r".repeat(usize::from(*length) * 4);
                let condition_hold = (length % 2 == 0).then(ConditionHold::default);
                let order = (length % 3 > 0).then_some(OrderId([tick as u8; 16]));
                ledger.holds.push(HoldRecord { id, reason, condition_hold, order, ..HoldRecord::default() });
                vec![Item::Hold(id)]
            }
            Change::Release(which) => at(*which, ledger.holds.len()).map_or(Vec::new(), |at| {
                let (hold, now) = (ledger.holds.remove(at).id, Timestamp(tick));
                let order = (which % 3 > 0).then_some(OrderId([tick as u8; 16]));
                if let Some(order) = order {
                    ledger.note_release(hold, now, order);
                    ledger.make_room();
                }
                vec![Item::Release(hold, now, order)]
            }),
            Change::Extend(which) => at(*which, ledger.holds.len()).map_or(Vec::new(), |at| {
                ledger.holds[at].sequences.push((Sequence(tick as u64), Sequence(tick as u64)));
                if let Some(condition_hold) = &mut ledger.holds[at].condition_hold {
                    condition_hold.watermarks = vec![(StreamId(1), Ordinal(tick as u64))];
                }
                vec![Item::Hold(ledger.holds[at].id)]
            }),
            Change::Stream => {
                let id = ledger.next_stream;
                ledger.next_stream = StreamId(id.0 + 1);
                ledger.streams.push(StreamRecord { id, preamble: 1, ..StreamRecord::default() });
                let bytes = vec![tick as u8; 5000];
                ledger.preambles.push(Preamble { stream: id, version: 1, last_used: Sequence(0), bytes });
                vec![Item::Preamble { stream: id, version: 1, offset: 0 }, Item::Stream(id)]
            }
            Change::Counters(which) => at(*which, ledger.streams.len()).map_or(Vec::new(), |at| {
                ledger.streams[at].counters.received += 1;
                vec![Item::Stream(ledger.streams[at].id)]
            }),
            Change::ClockStep => {
                let now = Timestamp(tick);
                let step = ClockStep { epoch: Epoch(1), arrival: now, before: now, after: now };
                ledger.note_clock_step(step);
                vec![Item::ClockStep(step)]
            }
            Change::Purge(which) => {
                let at = Timestamp(i64::from(*which % 8));
                ledger.note_purge(PurgeRecord { at, elements: tick as u64, ..PurgeRecord::default() });
                vec![Item::Purged(at)]
            }
            Change::Act(length) => {
                let reason = "r".repeat(usize::from(*length) * 4);
                vec![Item::Act(ledger.note_act(ActRecord {
                    at: Timestamp(tick),
                    reason,
                    ..ActRecord::default()
                }))]
            }
        }
    }

    /// One commit: what `fill` puts there, applied to `copy`.
    fn commit(copy: &mut Ledger, fill: impl FnOnce(&mut CommitWriter<'_>)) {
        let (key, ring) = (Key([1; 32]), RingId([2; 16]));
        let mut bytes = vec![0; 4096];
        let mut writer = CommitWriter::new(&mut bytes);
        fill(&mut writer);
        writer.finish(&key, &CommitHead { ring, ..CommitHead::default() });
        let (_, records, _) = read_commit(&bytes, &key, ring).unwrap();
        records.for_each(|record| copy.apply(&record.unwrap()));
    }

    proptest! {
        #[test]
        fn a_snapshot_and_what_is_recorded_behind_it_say_all_that_changed_meanwhile(
            before in proptest::collection::vec(change(), 0..100),
            meanwhile in proptest::collection::vec(proptest::collection::vec(change(), 0..12), 0..12),
        ) {
            let geometry = Geometry::for_lane((1 << 20) + (300 + 4) * (64 << 10), 64 << 10, Vec::new()).unwrap();
            let mut ledger = Ledger::empty(geometry.clone());
            let start = Timestamp(1);
            ledger.epoch = EpochStart { epoch: Epoch(1), arrival: start, wall: start, clean: true };
            let mut tick = 0;
            // So many that the oldest are dropped soon.
            for change in std::iter::repeat_n(&Change::ClockStep, 60).chain(&before) {
                tick += 1;
                apply(&mut ledger, change, tick);
            }
            let mut copy = Ledger::empty(geometry);
            let runway = Runway { naming: Sequence(1), slots: &[], until: Sequence(2), tells: true };
            let (mut walk, mut queue) = (Walk::default(), Vec::new());
            let mut meanwhile = meanwhile.iter();
            while walk != Walk::Whole {
                commit(&mut copy, |writer| {
                    while walk != Walk::Whole && ledger.emit_part(&mut walk, &runway, writer) {}
                });
                for change in meanwhile.next().into_iter().flatten() {
                    tick += 1;
                    queue.extend(apply(&mut ledger, change, tick));
                }
            }
            for mut item in queue {
                let mut done = false;
                while !done {
                    commit(&mut copy, |writer| done = ledger.emit(&mut item, &runway, writer));
                }
            }
            prop_assert_eq!(copy.holds, ledger.holds);
            prop_assert!(ledger.releases.iter().all(|release| copy.releases.contains(release)));
            prop_assert_eq!(copy.streams, ledger.streams);
            prop_assert_eq!(copy.preambles, ledger.preambles);
            prop_assert_eq!(copy.clock_steps, ledger.clock_steps);
            prop_assert_eq!(copy.purges.len(), ledger.purges.len());
            prop_assert!(ledger.purges.iter().all(|p| copy.purges.contains(p)));
            prop_assert_eq!(copy.last_act, ledger.last_act);
            prop_assert!(ledger.acts.iter().all(|act| copy.acts.contains(act)));
            prop_assert_eq!((copy.next_hold, copy.epoch), (ledger.next_hold, ledger.epoch));
        }
    }
}
