//! The runway: the slots that are named to be overwritten, their order, and who takes them.

use crate::guarantee::{Guarantee, Shape};
use crate::snapshot::Item;
use crate::state::Ring;
use crate::table::State;
use holdfast_base::{Sequence, SlotNo};

/// Slots named at once, whatever the number of buffers: renewing costs a commit.
const RUNWAY: u32 = 16;

/// Length of a full runway on a ring of so many slots.
pub(crate) fn runway_of(slots: u32, buffers: u32) -> u32 {
    (2 * buffers).max(RUNWAY).min(slots / 4).max(2)
}

/// Names that a guarantee takes, in slots.
///
/// Nothing is named while the lane is kept from commits, but slots fill: each takes a name, and there are as many as fill in
/// the longest wait. Before it so many may have been taken as lie between two commits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Names {
    /// When no more are left, it is time for new ones.
    pub(crate) ahead: u32,
    /// Length of a runway that has them at any time.
    pub(crate) length: u32,
}

impl Names {
    fn of(buffers: u32, gather: u16) -> Self {
        let between = u32::from(gather.max(4));
        // What is left of the buffers beside the open slot and those that are gathered.
        let waiting = buffers.saturating_sub(u32::from(gather) + 1);
        let ahead = waiting.saturating_add(between);
        Self { ahead, length: ahead.saturating_add(between) }
    }

    /// For a ring of so many slots: for the buffers that are there beyond what was granted, too, which ride out bursts that
    /// nobody declared, as far as that leaves half of the ring.
    pub(crate) fn on(slots: u32, granted: &Guarantee, buffers: u32, gather: u16) -> Self {
        let (least, most) = (Self::of(granted.buffers, gather), Self::of(buffers, gather));
        let spare = most.length.min(slots / 2).saturating_sub(least.length);
        Self { ahead: least.ahead + spare, length: least.length + spare }
    }
}

/// Slots that a ring must have for a guarantee: half of its runway has to last from one commit to the next, which may come
/// only after so many slots; and at most half of the ring is runway.
pub fn least_slots(granted: &Guarantee, gather: u16) -> u32 {
    fewest_slots(gather).max(Names::of(granted.buffers, gather).length.saturating_mul(2))
}

/// Slot buffers that a guarantee may count on in a ring of so many slots: for more, the next ones could not be named in
/// time.
fn most_buffers(slots: u32, gather: u16) -> u32 {
    let between = u32::from(gather.max(4));
    (slots / 2 + u32::from(gather) + 1).saturating_sub(2 * between)
}

impl Shape {
    /// The same with no more buffers than a ring of so many slots can count on.
    #[must_use]
    pub fn among(self, slots: u32) -> Self {
        Self { buffers: self.buffers.min(most_buffers(slots, self.gather)), ..self }
    }
}

/// Slots that are named to be overwritten, at least, where that is promised.
pub fn least_named(granted: &Guarantee, gather: u16) -> u32 {
    Names::of(granted.buffers, gather).length
}

/// As [`least_slots`] before it is known how long anything has to wait: with fewer there is no guarantee at all.
pub fn fewest_slots(gather: u16) -> u32 {
    8 * (u32::from(gather.max(4)) + 1)
}

impl Ring {
    /// The next slot of the runway, for a copy: it stays in the runway's records until the copy counts.
    pub(crate) fn take_runway(&mut self) -> Option<SlotNo> {
        let slot = self.runway.pop_front()?;
        self.ledger.table.get_mut(slot).state = State::Writing;
        self.jobs.copying.push(slot);
        self.jobs.runway_order.moved();
        Some(slot)
    }

    /// Takes a slot out of the durable runway; `false` if it is not there.
    pub(crate) fn leave_runway(&mut self, slot: SlotNo) -> bool {
        let here = self.runway.len();
        self.runway.retain(|no| *no != slot);
        self.runway.len() < here || self.failed_writes.leave(slot)
    }

    /// A sequence for a copy.
    pub(crate) fn take_sequence(&mut self) -> Option<Sequence> {
        if self.ledger.next >= self.reserved || self.is_starting() {
            return None;
        }
        let sequence = self.ledger.next;
        self.ledger.next = sequence.next();
        self.jobs.runway_order.take(sequence);
        Some(sequence)
    }

    /// Length of a full runway.
    pub(crate) fn runway_target(&self) -> u32 {
        let least = self.pledge.map_or(0, |pledge| pledge.names.length);
        runway_of(self.ledger.table.len(), self.config.buffers).max(least)
    }

    /// Names the next victims when half of the runway is used, or earlier where that is too late for what is promised: from
    /// now on their data counts as expired.
    pub(crate) fn name_victims(&mut self) {
        let target = self.runway_target() as usize;
        let ahead = self.pledge.map_or(0, |pledge| pledge.names.ahead as usize);
        let half_used = self.runway.len() <= ahead.max(target / 2);
        let short = !half_used && self.runs_short_of_sequences((target / 4).max(ahead) as u64);
        if !self.naming.is_empty() {
            return;
        }
        if half_used || short {
            let mut victims = std::mem::take(&mut self.slots_scratch);
            self.ledger.table.victims(target.saturating_sub(self.runway.len()), &mut victims);
            for no in &victims {
                self.ledger.table.name(*no);
            }
            self.naming.extend_from_slice(&victims);
            self.slots_scratch = victims;
        }
        let trial = self.next_trial();
        self.naming.extend(trial);
        if !self.naming.is_empty() || short {
            // Behind what is queued: a bad slot must not become known after the runway that follows it.
            self.journal.push(Item::Runway, None);
        }
    }

    /// The end of what could be reserved now: a sequence for every slot that is named and has none.
    pub(crate) fn could_reserve(&self) -> Sequence {
        let placeless = self.unplaced.len() + usize::from(self.open.is_some());
        let places = self.runway.len() + self.naming.len();
        Sequence((self.ledger.next.0 + places as u64 + 1).saturating_sub(placeless as u64))
    }

    /// Whether sequences run out before slots do, and naming the runway anew would help.
    fn runs_short_of_sequences(&self, least: u64) -> bool {
        let under_way = self.journal.queue.iter().any(|entry| entry.item == Item::Runway)
            || self.journal.flight.as_ref().is_some_and(|flight| flight.named.is_some());
        let nearly_used = self.ledger.next.0 + least >= self.reserved.0;
        nearly_used && self.could_reserve() > self.reserved && !under_way && !self.is_starting()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guarantee::admit;
    use crate::guarantee::tests::{drive, load, shape};

    // Promise 1: what fills while nothing can be named has names.
    #[test]
    fn there_are_names_for_the_whole_wait_and_for_more_buffers_if_the_ring_is_large() {
        let granted = admit(&drive(), &load(60), &shape()).unwrap();
        // Ten, of which five are for the wait: five names, four until a commit comes, and four that are used up then.
        let (names, least) = (Names::on(40, &granted, 10, 4), least_slots(&granted, 4));
        assert_eq!((granted.buffers, names, least), (10, Names { ahead: 9, length: 13 }, 40));
        assert_eq!(Names::on(400, &granted, 30, 4), Names { ahead: 29, length: 33 });
        assert_eq!(Names::on(40, &granted, 30, 4), Names { ahead: 16, length: 20 });
        assert_eq!(Names::on(12, &granted, 30, 4), names, "what is promised is not a matter of room");
    }

    #[test]
    fn a_ring_of_so_many_slots_has_names_for_so_many_buffers_and_no_more() {
        let granted = admit(&drive(), &load(60), &shape()).unwrap();
        for gather in [1, 2, 4, 8, 64] {
            for slots in fewest_slots(gather)..fewest_slots(gather) + 99 {
                let least = |buffers| least_slots(&Guarantee { buffers, ..granted }, gather);
                let most = most_buffers(slots, gather);
                assert!(
                    least(most) <= slots && slots < least(most + 1),
                    "{slots} slots, {gather} at once: {most}"
                );
            }
        }
        assert_eq!(
            least_slots(&Guarantee { buffers: u32::MAX, ..granted }, 4),
            u32::MAX,
            "and not a few for too many"
        );
    }
}
