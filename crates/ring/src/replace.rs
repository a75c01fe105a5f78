//! Replacement of original slots by their copies: which originals may go, and what changes in table, holds
//! and preambles. `copies` makes the copies.

use crate::driver::Driver;
use crate::hold_refcounts::extend;
use crate::job_step::{Due, PendingStep, PlacedCopy, StepReply};
use crate::ledger::{Ledger, RUN_BYTES};
use crate::orders::keeps;
use crate::snapshot::Item;
use crate::state::Ring;
use crate::table::{Slot, State};
use holdfast_base::{HoldId, MAX_HOLD_RUNS, Sequence, SlotNo};
use holdfast_format::HoldRecord;
use holdfast_media::Disk;

/// Whether a hold kept an original of which there is something in a copy.
pub(crate) fn gets(hold: &HoldRecord, copy: &PlacedCopy) -> bool {
    copy.of.iter().any(|original| keeps(hold, *original))
}

impl Ring {
    /// Of `wanted` those that are due but for the holds that are named with them, in the order of their ages.
    pub(crate) fn due(&self, wanted: &[(Sequence, Vec<HoldId>)]) -> Vec<Due> {
        let table = &self.ledger.table;
        let data = || table.iter().filter(|(_, slot)| slot.state == State::Data);
        // Where a slot is left that was never written nothing has expired yet.
        let all_given = table.iter().all(|(_, slot)| slot.state != State::Free || slot.written);
        // What queries pin stays longer than its turn: nobody waits for them.
        let may_go = |slot: &Slot| slot.held == 0 && slot.pins == 0;
        let next = data().filter(|(_, slot)| may_go(slot)).map(|(_, slot)| slot.age).min();
        let named = |holds: &[HoldId], sequence| {
            let named = self.ledger.holds.iter().filter(|hold| holds.contains(&hold.id));
            named.filter(|hold| keeps(hold, sequence)).count()
        };
        let is_due = |slot: &Slot, holds: &[HoldId]| {
            let turn = all_given && next.is_none_or(|next| slot.age < next);
            let held = usize::from(slot.held);
            turn && held > 0 && !slot.damaged && named(holds, slot.sequence) == held
        };
        let found = wanted.iter().filter_map(|(sequence, holds)| Some((table.find(*sequence)?, holds)));
        let mut due: Vec<Due> = found
            .map(|(no, holds)| (no, table.get(no), holds))
            .filter(|(_, slot, holds)| is_due(slot, holds))
            .map(|(no, slot, _)| Due {
                slot: no,
                sequence: slot.sequence,
                age: slot.age,
                follows: true,
                tied: false,
            })
            .collect();
        let key = |due: &Due| (due.age, due.sequence);
        due.sort_unstable_by_key(key);
        due.dedup();
        for (_, slot) in data() {
            let at = due.partition_point(|due| key(due) < (slot.age, slot.sequence));
            if let Some(behind) = due.get_mut(at) {
                behind.follows &= behind.sequence == slot.sequence;
            }
            if let Some(before) = at.checked_sub(1).and_then(|before| due.get_mut(before)) {
                before.tied |= before.age == slot.age;
            }
        }
        if let Some(first) = due.first_mut() {
            first.follows = false;
        }
        due
    }

    /// Whether all of these are due but for the holds of each, next to each other.
    fn are_due(&self, originals: &[(SlotNo, Sequence)], held_by: Vec<Vec<HoldId>>) -> bool {
        let wanted: Vec<_> = originals.iter().map(|(_, sequence)| *sequence).zip(held_by).collect();
        let due = self.due(&wanted);
        due.len() == originals.len() && due.iter().skip(1).all(|due| due.follows)
    }

    /// Whether a hold would come to keep more slots with the copies in it than its quota lets it, and those that it shares.
    pub(crate) fn is_beyond_quota(&self, originals: &[(SlotNo, Sequence)], copies: &[PlacedCopy]) -> bool {
        self.holds_that_kept(originals).any(|hold| {
            let gone = originals.iter().filter(|(_, sequence)| keeps(hold, *sequence)).count() as u32;
            let come = copies.iter().filter(|copy| gets(hold, copy)).count() as u32;
            come > gone && self.left_of(hold.id).is_some_and(|left| come - gone > left)
        })
    }

    /// The holds that kept originals.
    fn holds_that_kept<'r>(
        &'r self,
        originals: &'r [(SlotNo, Sequence)],
    ) -> impl Iterator<Item = &'r HoldRecord> {
        let kept = |hold: &&HoldRecord| originals.iter().any(|(_, sequence)| keeps(hold, *sequence));
        self.ledger.holds.iter().filter(kept)
    }

    /// A hold that kept originals and whose record, or all records together, would be too large with the copies in it.
    pub(crate) fn too_many_runs(
        &self,
        originals: &[(SlotNo, Sequence)],
        copies: &[PlacedCopy],
    ) -> Option<HoldId> {
        let (mut last, mut added) = (None, 0);
        for hold in self.holds_that_kept(originals) {
            let more = copies.iter().filter(|copy| gets(hold, copy)).count();
            if hold.sequences.len() + more > MAX_HOLD_RUNS {
                return Some(hold.id);
            }
            (last, added) = (Some(hold.id), added + RUN_BYTES * more as u64);
        }
        let fits = self.ledger.lasting_bytes() + added <= self.ledger.geometry.control_budget();
        last.filter(|_| !fits)
    }

    /// Puts the copies in the originals' place, in the table and in every hold that kept one of those they are of.
    pub(crate) fn replace(&mut self, originals: &[(SlotNo, Sequence)], copies: &[PlacedCopy]) {
        for (original, _) in originals {
            *self.ledger.table.get_mut(*original) = Slot { state: State::Locked, purged: true, ..Slot::FREE };
            if !self.jobs.locked.contains(original) {
                self.jobs.freeing.push(*original);
            }
        }
        // The originals leave them once that is durable: until then whoever restarts must find all held.
        let holds: Vec<HoldId> = self.holds_that_kept(originals).map(|hold| hold.id).collect();
        let mut holders = vec![0; copies.len()];
        for id in &holds {
            let Some(hold) = self.ledger.holds.iter_mut().find(|hold| hold.id == *id) else { continue };
            let mut grows = false;
            for (copy, holders) in copies.iter().zip(&mut holders) {
                if gets(hold, copy) {
                    extend(hold, copy.sequence);
                    (*holders, grows) = (*holders + 1, true);
                }
            }
            if grows {
                self.journal.push(Item::Hold(*id), None);
            }
        }
        self.note_replaced(originals, copies);
        self.jobs.thinning = holds;
        self.jobs.runway_order.moved();
        self.keep_preambles(copies);
        for (copy, held) in copies.iter().zip(holders) {
            self.jobs.copying.retain(|no| *no != copy.slot);
            self.failed_writes.passed(copy.slot);
            *self.ledger.table.get_mut(copy.slot) = Slot {
                sequence: copy.sequence,
                age: copy.age,
                bounds: copy.bounds,
                held,
                state: State::Data,
                ..Slot::FREE
            };
        }
    }

    /// Preambles that are not in force any more are kept for the slots that need them: the copies are among these now.
    fn keep_preambles(&mut self, copies: &[PlacedCopy]) {
        let Ledger { preambles, streams, .. } = &mut self.ledger;
        for copy in copies {
            for (stream, version) in &copy.preambles {
                let in_force = streams.iter().any(|s| s.id == *stream && s.preamble == *version);
                let known = preambles.iter_mut().find(|p| p.stream == *stream && p.version == *version);
                if let Some(known) = known.filter(|known| !in_force && known.last_used < copy.sequence) {
                    known.last_used = copy.sequence;
                    let (stream, version, offset) = (*stream, *version, known.bytes.len() as u32);
                    self.journal.push(Item::Preamble { stream, version, offset }, None);
                }
            }
        }
    }

    /// The record of a replacement is durable: the originals are free, and leave the holds that kept them.
    pub(crate) fn replaced(&mut self, originals: &[Sequence]) {
        for no in std::mem::take(&mut self.jobs.freeing) {
            *self.ledger.table.get_mut(no) = Slot { purged: true, ..Slot::FREE };
        }
        for hold in std::mem::take(&mut self.jobs.thinning) {
            if self.thin(hold, originals) {
                self.journal.push(Item::Hold(hold), None);
            }
        }
    }
}

impl<D: Disk> Driver<D> {
    /// Puts copies in the place of originals, where that is still right: on record when it is answered.
    pub(crate) fn replace(
        &mut self,
        originals: &[(SlotNo, Sequence)],
        copies: Vec<PlacedCopy>,
        held_by: Option<Vec<Vec<HoldId>>>,
    ) -> Option<StepReply> {
        let ring = &mut self.ring;
        if let Some(held_by) = held_by
            && (!ring.are_due(originals, held_by) || ring.is_beyond_quota(originals, &copies))
        {
            return Some(StepReply::Later(None));
        }
        if let Some(full) = ring.too_many_runs(originals, &copies) {
            return Some(StepReply::NoRoomIn(full));
        }
        ring.replace(originals, &copies);
        let originals = originals.iter().map(|(_, sequence)| *sequence).collect();
        ring.await_item(Item::Replaced { originals, copies });
        self.step = Some(PendingStep::Recorded);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job_step::JobStep;
    use crate::journal::Snapshot;
    use crate::{Config, NewRing, create, recover};
    use holdfast_base::{RingId, Timestamp};
    use holdfast_format::{Geometry, Key};
    use holdfast_media::MemoryDisk;
    use std::time::Duration;

    const NOW: Timestamp = Timestamp(10);

    /// Promise 4: a snapshot of a large table takes several commits, and tells of originals or of copies, not of neither.
    #[test]
    fn nothing_is_replaced_while_a_snapshot_is_being_written() {
        let mut disk = MemoryDisk::new((1 << 20) + 24 * (64 << 10));
        let geometry = Geometry::for_lane(disk.info().bytes, 64 << 10, Vec::new()).unwrap();
        create(&mut disk, NewRing::plain(RingId([1; 16]), Key([2; 32]), "r", geometry), NOW).unwrap();
        let recovered = recover(&mut disk).unwrap();
        let config = Config { buffers: 3, flush: Duration::from_secs(1), writes: 1 };
        let mut driver = Driver::start(disk, recovered, Vec::new(), config, NOW, NOW).unwrap();
        let original = SlotNo(3);
        *driver.ring.ledger.table.get_mut(original) =
            Slot { sequence: Sequence(1), state: State::Data, ..Slot::FREE };
        driver.ring.journal.snapshot = Some(Snapshot::default());
        let originals = vec![(original, Sequence(1))];
        driver.step(JobStep::Replace { originals, copies: Vec::new(), held_by: None }, NOW);
        assert_eq!(driver.ring.ledger.table.get(original).state, State::Data);
        driver.ring.journal.snapshot = None;
        driver.advance_step(NOW);
        assert_eq!(driver.ring.ledger.table.get(original).state, State::Locked);
    }
}
