//! Pins: slots that queries are going to read, which expire after all others. A pin is revocable: all pins
//! share one budget, capture takes what it needs, and a client learns that it lost a pin by reading. The
//! journal does not record pins. Slots that a background job must keep are locked by `job_step`.

use crate::state::Ring;
use crate::table::{Slot, Table};
use holdfast_base::Sequence;

/// Of so many slots one may be pinned, of a ring with fewer one: the others expire that much earlier.
const SHARE: u32 = 20;

/// Who can have pins at once: as many clients as a recorder has, and as many who have left a moment ago.
const PIN_OWNERS: usize = 64;

/// What somebody pins.
#[derive(Debug)]
struct PinOwner {
    client: u64,
    /// What is needed first comes first. Those that have expired all the same stay until it pins anew.
    slots: Vec<Sequence>,
}

/// All pins.
#[derive(Debug)]
pub(crate) struct Pins {
    all: Vec<PinOwner>,
}

impl Pins {
    pub(crate) fn new() -> Self {
        Self { all: Vec::with_capacity(PIN_OWNERS) }
    }

    /// Slots that may be pinned at once.
    fn budget(table: &Table) -> u32 {
        (table.len() / SHARE).max(1)
    }

    /// Puts `wanted` in the place of all that a client pins. How many of them it has got, and memory that nobody uses any more.
    ///
    /// Whoever comes gets as many as the budget has for each: those who have most give way, with what they need last.
    fn replace(&mut self, client: u64, mut wanted: Vec<Sequence>, table: &mut Table) -> (u32, Vec<Sequence>) {
        let before = self.release(client, table);
        if wanted.is_empty() {
            return (0, before);
        }
        if self.all.len() == PIN_OWNERS {
            return (0, wanted);
        }
        let (budget, mut got) = (Self::budget(table), 0);
        wanted.retain(|sequence| {
            let Some(no) = table.find(*sequence) else { return false };
            let fits =
                table.get(no).pins > 0 || table.pinned() < budget || self.someone_gives_way(got, table);
            if fits {
                let mut slot = table.get_mut(no);
                slot.pins = slot.pins.saturating_add(1);
                got += 1;
            }
            fits
        });
        self.all.push(PinOwner { client, slots: wanted });
        (got as u32, before)
    }

    /// Takes a slot from those who have more than somebody will who has `got` so many and one more.
    fn someone_gives_way(&mut self, got: usize, table: &mut Table) -> bool {
        let before = table.pinned();
        while table.pinned() == before {
            let most = self.all.iter_mut().max_by_key(|other| other.slots.len());
            let Some(most) = most.filter(|most| most.slots.len() > got + 1) else { return false };
            if let Some(sequence) = most.slots.pop() {
                let_go(sequence, table);
            }
        }
        true
    }

    /// A client pins nothing any more; the memory of its list.
    fn release(&mut self, client: u64, table: &mut Table) -> Vec<Sequence> {
        let Some(at) = self.all.iter().position(|owner| owner.client == client) else {
            return Vec::new();
        };
        let mut slots = self.all.swap_remove(at).slots;
        slots.drain(..).for_each(|sequence| let_go(sequence, table));
        slots
    }

    /// What a table counts and a look at all pins does not find. For tests.
    pub(crate) fn miscount(&self, table: &Table) -> Option<String> {
        let pinned = |slot: &Slot| self.all.iter().filter(|c| c.slots.contains(&slot.sequence)).count();
        let mut counted = 0;
        for (no, slot) in table.iter().filter(|(_, slot)| slot.pins > 0) {
            counted += 1;
            if pinned(&slot) < usize::from(slot.pins) {
                return Some(format!("slot {no}: {} pins, but {slot:?}", pinned(&slot)));
            }
        }
        let (all, budget) = (table.pinned(), Self::budget(table));
        (counted != all || all > budget).then(|| format!("{counted} pinned, but {all} of {budget}"))
    }
}

/// One pin less on what holds a sequence, if that is still there.
fn let_go(sequence: Sequence, table: &mut Table) {
    if let Some(no) = table.find(sequence) {
        let mut slot = table.get_mut(no);
        slot.pins = slot.pins.saturating_sub(1);
    }
}

impl Ring {
    /// Slots with these sequences, in the place of all that a client pinned before, expire after all others for as long as the
    /// budget has room for them; none are none. How many of them it has got. It allocates nothing: the list stays here, and what
    /// comes back is memory that is not needed any more.
    pub fn pin(&mut self, client: u64, sequences: Vec<Sequence>) -> (u32, Vec<Sequence>) {
        self.pins.replace(client, sequences, &mut self.ledger.table)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::orders::tests::alternating;
    use crate::table::State;
    use holdfast_base::{Age, SlotNo};
    use proptest::prelude::*;
    use std::collections::{BTreeMap, BTreeSet};

    /// What can happen.
    #[derive(Clone, Debug)]
    enum Step {
        /// A client pins slots: from the oldest on, leaving out so many, so many.
        Pin { client: u64, skip: usize, count: usize },
        /// It goes.
        Leave(u64),
        /// So many slots are to be overwritten, and then are.
        Write(usize),
        /// A hold comes or goes: on so many, from the oldest on.
        Hold { count: usize, more: bool },
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => (0..6u64, 0..30usize, 1..40usize)
                .prop_map(|(client, skip, count)| Step::Pin { client, skip, count }),
            1 => (0..6u64).prop_map(Step::Leave),
            4 => (1..30usize).prop_map(Step::Write),
            1 => (1..150usize, any::<bool>()).prop_map(|(count, more)| Step::Hold { count, more }),
        ]
    }

    /// A ring that is full, and what is said of it by going through everything.
    struct World {
        table: Table,
        pins: Pins,
        next: u64,
        /// What each client was granted.
        granted: BTreeMap<u64, BTreeSet<Sequence>>,
    }

    impl World {
        fn new(slots: u32) -> Self {
            let (table, pins) = (Table::new(slots), Pins::new());
            let mut world = Self { table, pins, next: 1, granted: BTreeMap::new() };
            (0..slots).for_each(|no| world.fill(SlotNo(no)));
            world
        }

        fn fill(&mut self, no: SlotNo) {
            let (sequence, age) = (Sequence(self.next), Age(self.next));
            *self.table.get_mut(no) = Slot { sequence, age, state: State::Data, ..Slot::FREE };
            self.next += 1;
        }

        fn oldest_first(&self) -> Vec<(SlotNo, Slot)> {
            let mut all: Vec<_> = self.table.iter().filter(|(_, slot)| slot.state == State::Data).collect();
            all.sort_unstable_by_key(|(no, slot)| (slot.age, *no));
            all
        }

        fn pin(&mut self, client: u64, skip: usize, count: usize) {
            let all = self.oldest_first();
            let mut wanted: Vec<_> =
                all.iter().skip(skip).take(count).map(|(_, slot)| slot.sequence).collect();
            let there = wanted.len();
            wanted.extend([Sequence(0), Sequence(self.next + 7)]);
            let (got, memory) = self.pins.replace(client, wanted, &mut self.table);
            assert!(memory.is_empty());
            let mine = self.pins.all.iter().find(|owner| owner.client == client).unwrap();
            assert_eq!(mine.slots.len(), got as usize);
            let all = self.pins.all.len();
            let fair = Pins::budget(&self.table) as usize / all;
            assert!(got as usize >= there.min(fair), "{got} of {there} for one of {all}, {fair} for each");
            self.granted.insert(client, mine.slots.iter().copied().collect());
        }

        fn write(&mut self, count: usize) {
            let before = self.oldest_first();
            // As many as it would be without pins.
            let (kept, free): (Vec<_>, Vec<_>) =
                before.into_iter().filter(|(_, slot)| slot.held == 0).partition(|(_, slot)| slot.pins > 0);
            let expected: Vec<SlotNo> = free.into_iter().chain(kept).map(|(no, _)| no).take(count).collect();
            let mut victims = Vec::new();
            self.table.victims(count, &mut victims);
            assert_eq!(victims, expected);
            for no in victims {
                self.table.name(no);
                self.fill(no);
            }
        }

        fn check(&self) {
            assert_eq!(self.pins.miscount(&self.table), None);
            for (_, slot) in self.table.iter().filter(|(_, slot)| slot.pins > 0) {
                let by = self.granted.values().filter(|all| all.contains(&slot.sequence)).count();
                assert!(by >= usize::from(slot.pins), "{slot:?} is pinned by {by}");
            }
        }
    }

    proptest! {
        // Promises 1 and 3: as many slots can be overwritten as without pins, whatever is pinned, and none that is pinned
        // while there are others; nobody is granted less than there is for each.
        #[test]
        fn capture_has_as_many_slots_and_takes_pinned_ones_last(
            slots in 1..140u32,
            steps in proptest::collection::vec(step(), 1..60),
        ) {
            let mut world = World::new(slots);
            for step in steps {
                match step {
                    Step::Pin { client, skip, count } => world.pin(client, skip, count),
                    Step::Leave(client) => {
                        let (got, memory) = world.pins.replace(client, Vec::new(), &mut world.table);
                        assert!(got == 0 && memory.is_empty());
                        world.granted.remove(&client);
                    }
                    Step::Write(count) => world.write(count),
                    Step::Hold { count, more } => {
                        for (no, _) in world.oldest_first().into_iter().take(count) {
                            world.table.get_mut(no).held = u16::from(more);
                        }
                    }
                }
                world.check();
            }
            for client in 0..6 {
                world.pins.replace(client, Vec::new(), &mut world.table);
            }
            prop_assert_eq!((world.table.pinned(), world.table.counts().pinned), (0, 0));
        }
    }

    // Promise 1: a client can ask for anything, as often as it likes.
    #[test]
    fn pins_of_the_same_slot_over_and_over_and_of_too_many_clients_do_no_harm() {
        let mut world = World::new(100);
        let same = vec![Sequence(3); 1000];
        assert_eq!(world.pins.replace(1, same, &mut world.table).0, 1000);
        assert_eq!(world.table.pinned(), 1);
        assert_eq!(world.pins.replace(1, Vec::new(), &mut world.table).0, 0);
        assert_eq!(world.table.pinned(), 0);
        for client in 0..PIN_OWNERS as u64 {
            assert_eq!(world.pins.replace(client, vec![Sequence(5)], &mut world.table).0, 1);
        }
        let (got, memory) = world.pins.replace(99, vec![Sequence(5)], &mut world.table);
        assert_eq!((got, memory.len()), (0, 1), "it is given back unread");
        assert_eq!(world.pins.replace(7, vec![Sequence(6)], &mut world.table).0, 1);
        assert_eq!(world.table.pinned(), 2);
    }

    // Promise 3, of a place that is not named: after a crash it is looked for in the order of ages, and nobody knows of pins then.
    #[test]
    fn what_is_taken_unnamed_goes_in_the_order_in_which_a_restart_looks() {
        let mut ring = alternating(100);
        for no in 200..1200 {
            let (sequence, age) = (Sequence(1000 + u64::from(no)), Age(1000 + u64::from(no)));
            *ring.ledger.table.get_mut(SlotNo(no)) = Slot { sequence, age, state: State::Data, ..Slot::FREE };
        }
        ring.naming.clear();
        ring.runway.clear();
        let oldest: Vec<Sequence> = (1..=30).map(Sequence).collect();
        assert_eq!(ring.pin(1, oldest).0, 30);
        ring.name_victims();
        let named = ring.naming.clone();
        assert_eq!(named.first(), Some(&SlotNo(30)), "{named:?}");
        assert_eq!(ring.pin(1, vec![Sequence(1), Sequence(2), Sequence(60)]).0, 3);
        ring.take_unnamed(4);
        let taken: Vec<SlotNo> = ring.runway.iter().copied().collect();
        assert_eq!(taken, [SlotNo(0), SlotNo(1), SlotNo(30), SlotNo(31)]);
        assert_eq!((&ring.naming[..], ring.ledger.table.pinned()), (&named[2..], 1));
        assert_eq!(ring.ledger.table.get(SlotNo(0)).state, State::Runway);
    }
}
