//! Replay of runway lists: which slots that the journal named were written since, and with which sequences.
//! Each list is followed while the journal is read; the headers of the last list settle the rest.
//!
//! Sequences go to the slots of a list in its order. Where the next list begins with just what that leaves, the slots that
//! were used up need not be read; where it does not (a write failed, a sequence was never used), or nothing
//! was left, they are.

use crate::ledger::Ledger;
use crate::recover::Headers;
use crate::table::{Slot, State};
use holdfast_base::{Age, Sequence, SlotNo};
use holdfast_format::{PartHeader, Record, SlotFlags};

/// Slots that may have been written without being named, at most: as many as wait for a place at once.
const UNNAMED: usize = 64;

/// They are taken in the order in which they expire: after so many that were not there are no more.
const UNNAMED_IN_A_ROW: usize = 8;

/// What the journal says of the slots that were named since its snapshot.
#[derive(Default)]
pub(crate) struct RunwayReplay {
    /// The list in force.
    pub(crate) last: Vec<SlotNo>,
    /// No slot below this sequence was still to be written when it was made.
    pub(crate) naming: Sequence,
    /// Slots of earlier lists whose sequence the lists do not tell, and the naming sequence of theirs.
    unsure: Vec<(SlotNo, Sequence)>,
    /// A purge was at work: its copies take slots out of the order of the lists.
    purging: bool,
    /// Copies have taken sequences or slots out of turn since the list in force was made.
    broken: bool,
    /// Sequences that no longer count.
    freed: Vec<Sequence>,
}

impl RunwayReplay {
    /// Sequences that no longer count.
    pub(crate) fn freed(&self) -> &[Sequence] {
        &self.freed
    }

    /// Takes note of a record, after the ledger has applied it.
    pub(crate) fn note(&mut self, record: &Record<'_>, in_snapshot: bool, ledger: &mut Ledger) {
        match record {
            Record::Runway { naming, slots } => {
                let all = ledger.table.len();
                let slots: Vec<SlotNo> = slots.iter().copied().filter(|no| no.0 < all).collect();
                self.leave_list(*naming, &slots, ledger);
                self.unsure.retain(|(no, _)| !slots.contains(no));
                for no in &slots {
                    *ledger.table.get_mut(*no) = Slot::FREE;
                }
                (self.last, self.naming, self.broken) = (slots, *naming, false);
            }
            // Where nothing is replaced by nothing, it says just that.
            Record::Replaced { originals, .. } => {
                self.freed.extend(originals);
                self.broken = true;
            }
            Record::Freed { sequences } => self.freed.extend(sequences),
            Record::Purged(_) => self.purging |= !in_snapshot,
            _ => {}
        }
    }

    /// The list in force gives way to `next`: what is not in that was used.
    fn leave_list(&mut self, naming: Sequence, next: &[SlotNo], ledger: &mut Ledger) {
        let used = naming.0.saturating_sub(self.naming.0) as usize;
        let rest = self.last.get(used..).filter(|rest| !rest.is_empty());
        let rest = rest.filter(|rest| !self.purging && !self.broken && next.starts_with(rest));
        let in_order = rest.is_some();
        for (at, no) in self.last.iter().enumerate().filter(|(_, no)| !next.contains(no)) {
            if in_order {
                let sequence = Sequence(self.naming.0 + at as u64);
                put(ledger, *no, sequence, Age(sequence.0), &self.freed);
            } else {
                self.unsure.push((*no, self.naming));
            }
        }
    }

    /// Reads the headers that the lists leave open. Those slots that were written come back, oldest first: any of them may
    /// have been in flight when the run was cut off.
    pub(crate) fn settle(
        &self,
        headers: &mut Headers<'_, '_>,
        ledger: &mut Ledger,
    ) -> Vec<(SlotNo, PartHeader)> {
        let mut written: Vec<(SlotNo, PartHeader)> = Vec::new();
        let unsure = self.unsure.iter().map(|(no, naming)| (*no, *naming, None::<usize>));
        let last = self.last.iter().enumerate().map(|(at, no)| (*no, self.naming, Some(at)));
        for (no, naming, at) in unsure.chain(last) {
            if ledger.table.get(no).state != State::Free {
                // Bad since, or known to the snapshot or to a record that names a copy.
                continue;
            }
            let Ok(header) = headers.read(&ledger.geometry, no) else {
                self.keep_unreadable(ledger, no, at);
                continue;
            };
            let counts = |h: &PartHeader| h.sequence >= naming && !h.flags.has(SlotFlags::DISTILLED);
            // Whatever is there, the slot was written once.
            ledger.table.get_mut(no).written |= header.is_some();
            let Some(header) = header.filter(counts) else {
                continue;
            };
            // A write that was reported failed may have landed after all, and its slot again at the next place.
            if let Some(other) = ledger.table.find(header.sequence) {
                if !headers.is_whole(no, header.sequence) && headers.is_whole(other, header.sequence) {
                    continue;
                }
                *ledger.table.get_mut(other) = Slot::FREE;
                written.retain(|(no, _)| *no != other);
            }
            put(ledger, no, header.sequence, header.age, &self.freed);
            if ledger.table.get(no).state == State::Data {
                written.push((no, header));
            }
        }
        written.sort_unstable_by_key(|(_, header)| header.sequence);
        written
    }

    /// While a snapshot waits, what the journal alone had may go to places that are not named (see `Ring::unblock`): the
    /// next victims. What stood in one that was written then was the oldest, and has expired. Those that come back still
    /// hold what they should, and a write to them may have been cut off.
    pub(crate) fn settle_unnamed(
        &self,
        headers: &mut Headers<'_, '_>,
        ledger: &mut Ledger,
        written: &mut Vec<(SlotNo, PartHeader)>,
    ) -> Vec<SlotNo> {
        let mut held = ledger.table.clone();
        for hold in &ledger.holds {
            held.count_hold(&hold.sequences, true);
        }
        let mut victims = Vec::new();
        held.victims(UNNAMED + self.last.len(), &mut victims);
        victims.retain(|no| !self.last.contains(no));
        let (mut torn, mut as_they_were) = (Vec::new(), 0);
        for no in victims {
            let before = ledger.table.get(no);
            let header = headers.read(&ledger.geometry, no).ok().flatten();
            let newer = header.filter(|h| h.sequence >= self.naming && !h.flags.has(SlotFlags::DISTILLED));
            let Some(header) = newer.filter(|h| before.state == State::Free || h.sequence > before.sequence)
            else {
                torn.extend((before.state == State::Data).then_some(no));
                as_they_were += 1;
                if as_they_were == UNNAMED_IN_A_ROW {
                    break;
                }
                continue;
            };
            as_they_were = 0;
            *ledger.table.get_mut(no) = Slot::FREE;
            if headers.is_whole(no, header.sequence) {
                // It was tried last.
                if let Some(other) = ledger.table.find(header.sequence) {
                    *ledger.table.get_mut(other) = Slot::FREE;
                }
                put(ledger, no, header.sequence, header.age, &self.freed);
                written.push((no, header));
            }
        }
        written.retain(|(no, _)| ledger.table.get(*no).state == State::Data);
        written.sort_unstable_by_key(|(_, header)| header.sequence);
        torn
    }

    /// A slot of the last list that cannot be read now: if a hold keeps what it must have got, it stays.
    fn keep_unreadable(&self, ledger: &mut Ledger, no: SlotNo, at: Option<usize>) {
        let sequence = Sequence(self.naming.0 + at.unwrap_or(0) as u64);
        let held = ledger.holds.iter().any(|hold| crate::orders::keeps(hold, sequence));
        if at.is_some() && held && ledger.table.find(sequence).is_none() {
            put(ledger, no, sequence, Age(sequence.0), &self.freed);
            ledger.table.get_mut(no).damaged = true;
        }
    }
}

/// Enters what a slot holds, unless it is known better.
fn put(ledger: &mut Ledger, no: SlotNo, sequence: Sequence, age: Age, freed: &[Sequence]) {
    let mut slot = ledger.table.get_mut(no);
    if slot.state == State::Free && !freed.contains(&sequence) {
        *slot = Slot { sequence, age, state: State::Data, known: false, ..Slot::FREE };
    }
}
