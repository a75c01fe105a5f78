//! The slots that a search goes through, handed out one by one to the threads that carry it out; what they read and what
//! comes next is pinned, as far as it goes, so that it does not expire before its turn. To pass over a slot of which enough is known
//! takes no pin.

use holdfast_base::Sequence;
use holdfast_protocol::wire::MAX_PINS;
use holdfast_protocol::{LinkError, Pins};
use holdfast_reader::PlannedSlot;
use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Slots that are kept at most behind one that is searched, for elements that began there.
const MOST_BEHIND: usize = 64;

/// The slots of a search.
#[derive(Debug, Default)]
pub(super) struct SlotList {
    /// In the order of their ages: those in front expire first.
    slots: Vec<PlannedSlot>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    pins: Pins,
    /// The first place that nobody has taken.
    next: usize,
    /// Places that are being searched.
    at_work: BTreeSet<usize>,
    /// How many slots elements were seen to reach back.
    behind: usize,
    /// Whoever reads at this place or behind it renews the pins.
    renew: usize,
    /// Pins are to be had, and nobody has opened the way to them.
    lacks_pins: bool,
}

impl SlotList {
    pub(super) fn new(slots: Vec<PlannedSlot>, pins: Pins) -> Self {
        let mut state = State { pins, behind: 1, ..State::default() };
        if slots.is_empty() {
            state.release();
        }
        state.pin(&slots);
        Self { slots, state: Mutex::new(state) }
    }

    /// The same slots for a search that goes through all of them once more.
    pub(super) fn again(&self) -> Self {
        let state = State { behind: 1, lacks_pins: true, ..State::default() };
        Self { slots: self.slots.clone(), state: Mutex::new(state) }
    }

    /// Opens pins, where that is still to be done.
    pub(super) fn open_pins(&self, open: impl FnOnce() -> Result<Pins, LinkError>) -> Result<(), LinkError> {
        let mut state = self.state();
        if std::mem::take(&mut state.lacks_pins) {
            state.pins = open()?;
            state.pin(&self.slots);
        }
        Ok(())
    }

    /// All of them.
    pub(super) fn slots(&self) -> &[PlannedSlot] {
        &self.slots
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next one, and its place.
    pub(super) fn take(&self) -> Option<(usize, &PlannedSlot)> {
        self.take_ahead(1)
    }

    /// The next one for a thread that is still at work on another, if there are enough for all of so many threads.
    pub(super) fn take_ahead(&self, threads: usize) -> Option<(usize, &PlannedSlot)> {
        let mut state = self.state();
        let place = state.next;
        let slot = self.slots.get(place).filter(|_| self.slots.len() - place >= threads)?;
        state.next += 1;
        state.at_work.insert(place);
        Some((place, slot))
    }

    /// The slot at a place that was taken is going to be read.
    pub(super) fn keep(&self, place: usize) {
        let mut state = self.state();
        if place >= state.renew {
            state.pin(&self.slots);
        }
    }

    /// A place has been searched, where elements reached back so many ages at most.
    pub(super) fn done(&self, place: usize, back: u64) {
        let mut state = self.state();
        state.at_work.remove(&place);
        let back = usize::try_from(back).unwrap_or(MOST_BEHIND).min(MOST_BEHIND);
        state.behind = state.behind.max(back);
        if state.next == self.slots.len() && state.at_work.is_empty() {
            state.release();
        }
    }

    /// Nobody wants more.
    pub(super) fn stop(&self) {
        self.state().release();
    }
}

impl State {
    fn release(&mut self) {
        self.pins = Pins::default();
    }

    /// Pins what is needed now and next.
    fn pin(&mut self, slots: &[PlannedSlot]) {
        if !self.pins.is_open() {
            self.renew = usize::MAX;
            return;
        }
        let (wanted, now) = self.wanted(slots);
        let granted = self.pins.keep(wanted);
        // When half of what comes next has been taken.
        self.renew = self.next + (granted.saturating_sub(now) / 2).max(1);
    }

    /// What is to be pinned: first what is needed now, so many, with those behind it; then what comes next. What a hold keeps
    /// needs no pin.
    fn wanted(&self, slots: &[PlannedSlot]) -> (Vec<Sequence>, usize) {
        let first = |place: usize| place.saturating_sub(self.behind);
        let mut places: Vec<usize> = self.at_work.iter().flat_map(|at| first(*at)..=*at).collect();
        places.extend(first(self.next)..self.next);
        places.sort_unstable();
        places.dedup();
        let sequence = |place: usize| slots.get(place).filter(|slot| !slot.held).map(|slot| slot.sequence);
        let mut wanted: Vec<Sequence> = places.into_iter().filter_map(sequence).collect();
        let now = wanted.len();
        wanted.extend((self.next..slots.len()).filter_map(sequence).take(MAX_PINS.saturating_sub(now)));
        wanted.truncate(MAX_PINS);
        (wanted, now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_base::{Age, SlotNo};

    fn slots(count: u64) -> Vec<PlannedSlot> {
        let slot = |number: u64| PlannedSlot {
            sequence: Sequence(number),
            slot: Some(SlotNo(number as u32)),
            age: Age(number),
            first: None,
            last: None,
            held: number % 10 == 3,
            bytes: 1,
        };
        (0..count).map(slot).collect()
    }

    fn wanted(list: &SlotList) -> (Vec<u64>, Vec<u64>) {
        let (wanted, now) = list.state().wanted(&list.slots);
        let mut wanted: Vec<u64> = wanted.iter().map(|sequence| sequence.0).collect();
        let next = wanted.split_off(now);
        (wanted, next)
    }

    #[test]
    fn none_is_taken_ahead_that_another_thread_could_begin_with() {
        let list = SlotList::new(slots(5), Pins::default());
        assert_eq!(list.take_ahead(2).map(|(place, _)| place), Some(0));
        assert_eq!(list.take_ahead(5).map(|(place, _)| place), None);
        assert_eq!(list.take_ahead(4).map(|(place, _)| place), Some(1));
        while list.take().is_some() {}
        assert!(list.take_ahead(0).is_none());
    }

    // Promise 3: pinned are the slots that are needed, and no others.
    #[test]
    fn what_is_at_work_and_what_comes_next_is_wanted_with_what_elements_may_have_begun_in() {
        let list = SlotList::new(slots(16), Pins::default());
        assert_eq!(wanted(&list), (vec![], (0..16).filter(|n| n % 10 != 3).collect()));
        for place in 0..8 {
            assert_eq!(list.take().map(|(at, slot)| (at, slot.sequence.0)), Some((place, place as u64)));
        }
        for place in [0, 1, 3, 4, 5, 7] {
            list.done(place, 1);
        }
        // A thread is still at work on the third, another on the seventh.
        assert_eq!(wanted(&list), (vec![1, 2, 5, 6, 7], vec![8, 9, 10, 11, 12, 14, 15]));
        list.done(6, 3);
        assert_eq!(wanted(&list).0, [0, 1, 2, 5, 6, 7], "what reached back three slots may come again");
        list.done(2, u64::MAX);
        assert_eq!(list.state().behind, MOST_BEHIND);
        while list.take().is_some() {}
        assert!(wanted(&list).1.is_empty());
    }
}
