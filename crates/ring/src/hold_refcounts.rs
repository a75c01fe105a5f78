//! Hold reference counts of slots, kept up to date: only the slots that a hold touches are counted when it
//! begins and ends. `orders` decides which slots a hold takes.

use crate::ledger::Ledger;
use crate::orders::keeps;
use crate::state::Ring;
use crate::table::State;
use holdfast_base::{HoldId, Sequence};
use holdfast_format::HoldRecord;

/// Most holds of a ring: all of them may keep the same slot, which counts them in 16 bits.
pub(crate) const MAX_HOLDS: usize = u16::MAX as usize;

/// Makes a hold keep one more sequence.
pub(crate) fn extend(hold: &mut HoldRecord, more: Sequence) {
    if keeps(hold, more) {
        return;
    }
    let ranges = &mut hold.sequences;
    let at = ranges.partition_point(|(_, last)| *last < more);
    let follows = at > 0 && ranges[at - 1].1.next() == more;
    let precedes = ranges.get(at).is_some_and(|(first, _)| more.next() == *first);
    match (follows, precedes) {
        (true, true) => ranges[at - 1].1 = ranges.remove(at).1,
        (true, false) => ranges[at - 1].1 = more,
        (false, true) => ranges[at].0 = more,
        (false, false) => ranges.insert(at, (more, more)),
    }
}

/// The sequences that holds keep and that are not on the medium yet (open, or on their way), and how many holds each.
#[derive(Debug, Default)]
pub(crate) struct UnwrittenRefcounts(Vec<(Sequence, u16)>);

impl UnwrittenRefcounts {
    pub(crate) fn with_capacity(count: usize) -> Self {
        Self(Vec::with_capacity(count))
    }

    /// How many such sequences there are.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// How many holds keep that one.
    pub(crate) fn held(&self, sequence: Sequence) -> u16 {
        self.0.iter().find(|(s, _)| *s == sequence).map_or(0, |(_, held)| *held)
    }

    /// So many more holds keep that one.
    pub(crate) fn add(&mut self, sequence: Sequence, more: u16) {
        match self.0.iter_mut().find(|(s, _)| *s == sequence) {
            Some((_, held)) => *held += more,
            None if more > 0 => self.0.push((sequence, more)),
            None => {}
        }
    }

    /// It is on the medium: by how many holds it is kept there.
    pub(crate) fn take(&mut self, sequence: Sequence) -> u16 {
        let at = self.0.iter().position(|(s, _)| *s == sequence);
        at.map_or(0, |at| self.0.swap_remove(at).1)
    }

    fn end(&mut self, hold: &HoldRecord) {
        for (_, held) in self.0.iter_mut().filter(|(sequence, _)| keeps(hold, *sequence)) {
            *held = held.saturating_sub(1);
        }
        self.0.retain(|(_, held)| *held > 0);
    }
}

impl Ledger {
    /// Counts every hold at the slots that it keeps, none of which counts any yet.
    pub(crate) fn count_holds(&mut self) {
        for hold in &self.holds {
            self.table.count_hold(&hold.sequences, true);
        }
    }
}

impl Ring {
    /// Counts the hold that was added last; these of its sequences are not on the medium yet.
    pub(crate) fn count_new_hold(&mut self, unwritten: impl Iterator<Item = Sequence> + Clone) {
        if let Some(hold) = self.ledger.holds.last() {
            self.ledger.table.count_hold(&hold.sequences, true);
            self.promises.extend(self.ledger.promise(hold, unwritten.clone()));
        }
        for sequence in unwritten {
            self.unwritten_refcounts.add(sequence, 1);
        }
    }

    /// The end of a hold is durable; how many slots nothing holds any longer.
    pub(crate) fn count_ended_hold(&mut self, id: HoldId) -> u32 {
        let Some(at) = self.releasing.iter().position(|h| h.id == id) else {
            return 0;
        };
        let hold = self.releasing.remove(at);
        self.promises.retain(|promise| promise.hold != id);
        let before = self.held_slots();
        self.ledger.table.count_hold(&hold.sequences, false);
        self.unwritten_refcounts.end(&hold);
        before - self.held_slots()
    }

    /// Takes originals out of a hold's record that are there no more, where they stand at the ends of runs: a run may go on
    /// telling of what is not there, for no sequence is given twice. Whether the record has changed.
    pub(crate) fn thin(&mut self, id: HoldId, originals: &[Sequence]) -> bool {
        let (table, coming) = (&self.ledger.table, &self.unwritten_refcounts);
        let mut gone = originals.to_vec();
        gone.sort_unstable();
        let touched = |(first, last): (Sequence, Sequence)| {
            gone.get(gone.partition_point(|s| *s < first)).is_some_and(|s| *s <= last)
        };
        let left = |(first, last): (Sequence, Sequence)| {
            let on_medium = table.among(&[(first, last)]).into_iter().map(|no| table.get(no).sequence);
            let unwritten = coming.0.iter().map(|(s, _)| *s).filter(|s| first <= *s && *s <= last);
            on_medium.chain(unwritten).fold(None, |ends: Option<(Sequence, Sequence)>, s| {
                Some(ends.map_or((s, s), |(least, greatest)| (least.min(s), greatest.max(s))))
            })
        };
        let Some(hold) = self.ledger.holds.iter_mut().find(|hold| hold.id == id) else { return false };
        let before = hold.sequences.clone();
        hold.sequences.retain_mut(|run| {
            if !touched(*run) {
                return true;
            }
            let left = left(*run);
            *run = left.unwrap_or(*run);
            left.is_some()
        });
        hold.sequences != before
    }

    /// Slots that holds keep, those included that are not on the medium yet.
    fn held_slots(&self) -> u32 {
        self.ledger.table.counts().held + self.unwritten_refcounts.len() as u32
    }

    /// How many holds keep a sequence, from the holds themselves.
    pub(crate) fn holds_of(&self, sequence: Sequence) -> u16 {
        self.ledger.holds.iter().chain(&self.releasing).filter(|h| keeps(h, sequence)).count() as u16
    }

    /// What is kept up to date and differs from what a look at everything finds: nothing, unless there is a bug. For tests.
    pub fn miscounts(&self) -> Option<String> {
        let table = &self.ledger.table;
        let mut counts = crate::SlotCounts { total: table.len(), ..crate::SlotCounts::default() };
        for (no, slot) in table.iter() {
            match slot.state {
                State::Free => counts.free += 1,
                State::Runway => counts.runway += 1,
                State::Writing => counts.writing += 1,
                State::Locked => counts.pinned += 1,
                State::Data if slot.held > 0 => counts.held += 1,
                State::Data if slot.is_kept() => counts.pinned += 1,
                State::Data => counts.live += 1,
                State::Bad => counts.bad += 1,
            }
            counts.damaged += u32::from(slot.damaged && slot.state == State::Data);
            counts.unwritten += u32::from(!slot.written && slot.state != State::Bad);
            let data = slot.state == State::Data;
            let held = if data { self.holds_of(slot.sequence) } else { 0 };
            let locked = data && self.jobs.locked.contains(&no);
            if slot.held != held || slot.locked != locked {
                return Some(format!("slot {no}: {held} holds, locked {locked}, but {slot:?}"));
            }
            if data && table.find(slot.sequence) != Some(no) {
                return Some(format!("slot {no}: {} is found elsewhere", slot.sequence));
            }
        }
        if counts != table.counts() {
            return Some(format!("{counts:?}, but {:?}", table.counts()));
        }
        if let Some(miscounted) = self.pins.miscount(table) {
            return Some(miscounted);
        }
        let unwritten = || self.unwritten();
        let holds = self.ledger.holds.iter().chain(&self.releasing);
        let mut promises: Vec<_> = holds.filter_map(|hold| self.ledger.promise(hold, unwritten())).collect();
        promises.sort_unstable_by_key(|promise| promise.hold);
        let mut counted = self.promises.clone();
        counted.sort_unstable_by_key(|promise| promise.hold);
        if promises != counted {
            return Some(format!("{promises:?}, but {counted:?}"));
        }
        let wrong = unwritten().find(|s| self.holds_of(*s) != self.unwritten_refcounts.held(*s));
        let lost =
            self.unwritten_refcounts.0.iter().find(|(sequence, _)| unwritten().all(|s| s != *sequence));
        wrong.or(lost.map(|(sequence, _)| *sequence)).map(|s| format!("holds on {s} that is on its way"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn a_hold_keeps_every_sequence_that_it_was_extended_by(all in proptest::collection::vec(0..40u64, 0..40)) {
            let mut hold = HoldRecord::default();
            let mut set = BTreeSet::new();
            for sequence in all {
                extend(&mut hold, Sequence(sequence));
                set.insert(sequence);
                let kept = hold.sequences.iter().flat_map(|(first, last)| first.0..=last.0);
                prop_assert!(kept.eq(set.iter().copied()), "{:?}", hold.sequences);
                let apart = hold.sequences.windows(2).all(|two| two[0].1.next() < two[1].0);
                prop_assert!(apart, "{:?}", hold.sequences);
            }
        }
    }
}
