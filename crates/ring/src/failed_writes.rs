//! Slots whose writes failed, and the verdict on each: a bad place, or an absent device. Later successes
//! decide.
//!
//! A slot that has failed twice is set aside. If a write that begins later succeeds elsewhere, it is in doubt: the device may
//! have been away for just so long. It is tried once more, and if it fails again and what follows succeeds again, it is
//! bad. If the next one fails, too, the device counts as absent, and nothing is held against either: once it answers, those
//! aside are tried again one by one, each followed by a place that has not failed. They stay in the runway's records all
//! the time. A trial that fails says nothing of the device, for bad places are tried often.

use crate::event::Action;
use crate::journal::Entry;
use crate::snapshot::Item;
use crate::state::{Flying, Ring};
use crate::table::{Slot, State};
use holdfast_base::{Sequence, SlotNo, Timestamp};
use holdfast_media::Fault;
use std::collections::VecDeque;

/// Slots that are aside at most; beyond it the first of them is a free slot like any other.
const MOST: usize = 64;

/// A slot that is set aside.
#[derive(Clone, Copy, Debug)]
struct FailedWrite {
    slot: SlotNo,
    /// What was to be written there, and may stand there after all.
    sequence: Sequence,
    /// Writes begun when it failed; `None` once it failed like everything else, or is in doubt.
    failed: Option<u64>,
    /// It has failed before while what followed succeeded.
    doubted: bool,
}

/// The slots that are set aside.
#[derive(Debug, Default)]
pub(crate) struct FailedWrites {
    /// Writes begun so far: tells whether one that succeeds was begun after another had failed.
    begun: u64,
    aside: VecDeque<FailedWrite>,
    /// The one that was put back into the runway to be tried again, and whether it is in doubt.
    trial: Option<(SlotNo, bool)>,
}

impl FailedWrites {
    /// The number of a write that begins now.
    pub(crate) fn begin(&mut self) -> u64 {
        self.begun += 1;
        self.begun
    }

    /// All that are aside, in the order in which they are tried again.
    pub(crate) fn slots(&self) -> impl Iterator<Item = SlotNo> {
        self.aside.iter().map(|s| s.slot)
    }

    /// The next to be tried if there is no other place.
    pub(crate) fn take(&mut self) -> Option<SlotNo> {
        self.aside.pop_front().map(|s| s.slot)
    }

    /// Takes one out; `false` if it is not there.
    pub(crate) fn leave(&mut self, slot: SlotNo) -> bool {
        let here = self.aside.len();
        self.aside.retain(|s| s.slot != slot);
        self.aside.len() < here
    }

    /// Nothing is held against those that failed when nothing succeeded.
    pub(crate) fn acquit(&mut self) {
        for suspect in &mut self.aside {
            (suspect.failed, suspect.doubted) = (None, false);
        }
    }

    /// Something was written to a slot: nothing is held against it any more.
    pub(crate) fn passed(&mut self, slot: SlotNo) {
        self.trial = self.trial.filter(|(on_trial, _)| *on_trial != slot);
    }

    /// Whether this slot is being tried once more before it is bad.
    fn is_doubted(&self, slot: SlotNo) -> bool {
        self.trial == Some((slot, true))
    }

    fn waits_for_verdict(&self) -> bool {
        self.aside.iter().any(|s| s.failed.is_some())
    }

    /// What one that is in doubt did on its trial proves nothing where others fail, too: it is tried yet again.
    fn postpone(&mut self) {
        self.aside.iter_mut().filter(|s| s.doubted).for_each(|s| s.failed = None);
    }
}

impl Ring {
    /// Slots that failed and may be good: they are neither used nor given up until more is known.
    pub fn failed_writes(&self) -> usize {
        self.failed_writes.aside.len()
    }

    /// The write of a slot failed: once more at the same place, unless that was its last chance, then at another.
    pub(crate) fn write_failed(&mut self, at: usize, now: Timestamp, out: &mut Vec<Action>) {
        let again = !self.is_absent() && !self.failed_writes.is_doubted(self.flying[at].slot);
        let flying = &mut self.flying[at];
        if flying.tries == 0 && again {
            flying.tries = 1;
            flying.begun = self.failed_writes.begin();
            let (sequence, slot) = (flying.sealed.sequence, flying.slot);
            out.push(Action::Write { sequence, slot, offset: self.ledger.geometry.slot_offset(slot) });
            return;
        }
        let Flying { sealed, slot, .. } = self.flying.remove(at);
        // The oldest that is not on the medium goes first.
        let place = self.unplaced.partition_point(|other| other.sequence < sealed.sequence);
        self.unplaced.insert(place, sealed);
        self.set_aside(slot, sealed.sequence, now);
    }

    /// Sets a slot aside whose write failed, and tells whether it is the device.
    pub(crate) fn set_aside(&mut self, slot: SlotNo, sequence: Sequence, now: Timestamp) {
        self.ledger.table.get_mut(slot).state = State::Runway;
        let (absent, doubted) = (self.is_absent(), self.failed_writes.is_doubted(slot));
        self.failed_writes.postpone();
        let again = self.failed_writes.waits_for_verdict();
        let failed = (!absent && !again).then_some(self.failed_writes.begun);
        self.failed_writes.aside.push_back(FailedWrite { slot, sequence, failed, doubted });
        // Where a place is bad, its trial often fails: that says nothing of the device.
        if again && !absent && !doubted {
            self.absent(Fault::Io, now);
        }
        if self.failed_writes.aside.len() > MOST
            && let Some(free) = self.failed_writes.take()
        {
            *self.ledger.table.get_mut(free) = Slot::FREE;
        }
        self.list_again();
        if !self.is_absent() && self.runway.is_empty() {
            // There is no other place: the journal's tells whether the device answers.
            self.journal.push(Item::Runway, None);
        }
    }

    /// A snapshot under way tells the runway's order as it is now.
    pub(crate) fn list_again(&mut self) {
        if let Some(snapshot) = &mut self.journal.snapshot {
            snapshot.list_again = true;
        }
    }

    /// A write that was the `begun`-th has succeeded: what failed before it began is in doubt, and bad the second time.
    pub(crate) fn succeeded(&mut self, begun: u64) {
        let (table, journal) = (&mut self.ledger.table, &mut self.journal);
        self.failed_writes.aside.retain_mut(|suspect| {
            let alone = suspect.failed.is_some_and(|failed| failed < begun);
            let bad = alone && suspect.doubted;
            if alone {
                (suspect.failed, suspect.doubted) = (None, true);
            }
            if bad {
                *table.get_mut(suspect.slot) = Slot { state: State::Bad, ..Slot::FREE };
                // Before a runway that follows it.
                let item = Item::Bad(suspect.slot);
                journal.queue.push_front(Entry::new(item));
            }
            !bad
        });
    }

    /// The slot that is to be tried again now, if any: one at a time, so that what follows it has not failed.
    pub(crate) fn next_trial(&mut self) -> Option<SlotNo> {
        let on_trial = self.failed_writes.trial.is_some_and(|(slot, _)| {
            self.runway.contains(&slot)
                || self.naming.contains(&slot)
                || self.jobs.copying.contains(&slot)
                || self.flying.iter().any(|f| f.slot == slot)
        });
        // What failed there has a place by then, so that a restart does not take the one for the other.
        let lowest = self.lowest_unwritten();
        let settled = self.failed_writes.aside.front().is_some_and(|s| s.sequence < lowest);
        if on_trial || !settled || self.is_absent() || self.failed_writes.waits_for_verdict() {
            return None;
        }
        self.failed_writes.trial = self.failed_writes.aside.pop_front().map(|s| (s.slot, s.doubted));
        self.failed_writes.trial.map(|(slot, _)| slot)
    }

    /// Whether a device that was absent answers again is tried with the oldest slot that waits, at the next place.
    pub(crate) fn probe(&mut self, out: &mut Vec<Action>) {
        if !self.flying.is_empty() || self.unplaced.is_empty() {
            return;
        }
        if let Some(slot) = self.runway.pop_front().or_else(|| self.failed_writes.take())
            && let Some(sealed) = self.unplaced.pop_front()
        {
            self.launch(sealed, slot, out);
        }
    }
}
