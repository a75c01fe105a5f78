//! Queue of the slots of a scan, shared by its threads. It pins the slots that threads read and, as far as
//! pins go, those that come next, so that they do not expire before their turn. A slot that statistics
//! exclude takes no pin.

use holdfast_base::Sequence;
use holdfast_protocol::Pins;
use holdfast_protocol::wire::MAX_PINS;
use holdfast_reader::PlannedSlot;
use holdfast_reader::ReaderError;
use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Slots that are kept at most behind one that is searched, for elements that began there.
const MOST_BEHIND: usize = 64;

/// The slots of a search.
#[derive(Debug, Default)]
pub(super) struct SlotQueue {
    /// In the order of their ages: those in front expire first.
    slots: Vec<PlannedSlot>,
    state: Mutex<QueueState>,
}

#[derive(Debug, Default)]
struct QueueState {
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

impl SlotQueue {
    pub(super) fn new(slots: Vec<PlannedSlot>, pins: Pins) -> Self {
        let mut state = QueueState { pins, behind: 1, ..QueueState::default() };
        if slots.is_empty() {
            state.release();
        }
        state.pin(&slots);
        Self { slots, state: Mutex::new(state) }
    }

    /// The same slots for a search that goes through all of them once more.
    pub(super) fn again(&self) -> Self {
        let state = QueueState { behind: 1, lacks_pins: true, ..QueueState::default() };
        Self { slots: self.slots.clone(), state: Mutex::new(state) }
    }

    /// Opens pins, where that is still to be done.
    pub(super) fn open_pins(
        &self,
        open: impl FnOnce() -> Result<Pins, ReaderError>,
    ) -> Result<(), ReaderError> {
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

    fn state(&self) -> MutexGuard<'_, QueueState> {
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

impl QueueState {
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

    fn wanted(queue: &SlotQueue) -> (Vec<u64>, Vec<u64>) {
        let (wanted, now) = queue.state().wanted(&queue.slots);
        let mut wanted: Vec<u64> = wanted.iter().map(|sequence| sequence.0).collect();
        let next = wanted.split_off(now);
        (wanted, next)
    }

    #[test]
    fn none_is_taken_ahead_that_another_thread_could_begin_with() {
        let queue = SlotQueue::new(slots(5), Pins::default());
        assert_eq!(queue.take_ahead(2).map(|(place, _)| place), Some(0));
        assert_eq!(queue.take_ahead(5).map(|(place, _)| place), None);
        assert_eq!(queue.take_ahead(4).map(|(place, _)| place), Some(1));
        while queue.take().is_some() {}
        assert!(queue.take_ahead(0).is_none());
    }

    // Promise 3: pinned are the slots that are needed, and no others.
    #[test]
    fn what_is_at_work_and_what_comes_next_is_wanted_with_what_elements_may_have_begun_in() {
        let queue = SlotQueue::new(slots(16), Pins::default());
        assert_eq!(wanted(&queue), (vec![], (0..16).filter(|n| n % 10 != 3).collect()));
        for place in 0..8 {
            assert_eq!(queue.take().map(|(at, slot)| (at, slot.sequence.0)), Some((place, place as u64)));
        }
        for place in [0, 1, 3, 4, 5, 7] {
            queue.done(place, 1);
        }
        // A thread is still at work on the third, another on the seventh.
        assert_eq!(wanted(&queue), (vec![1, 2, 5, 6, 7], vec![8, 9, 10, 11, 12, 14, 15]));
        queue.done(6, 3);
        assert_eq!(wanted(&queue).0, [0, 1, 2, 5, 6, 7], "what reached back three slots may come again");
        queue.done(2, u64::MAX);
        assert_eq!(queue.state().behind, MOST_BEHIND);
        while queue.take().is_some() {}
        assert!(wanted(&queue).1.is_empty());
    }
}
