//! Senders whose elements are mixed in one stream: a bounded number; beyond it, silent ones are forgotten.

use super::PendingLosses;
use super::flow::{Flow, Mark};
use holdfast_attributes::{Count, Cycle};
use holdfast_base::Timestamp;
use std::collections::HashMap;

/// Senders that are told apart: some hundred are what a telescope or a switchboard has; a stranger can invent any number.
pub(super) const MOST: usize = 256;

#[derive(Debug)]
pub(super) struct Flows {
    /// Where each is.
    places: HashMap<u64, usize>,
    senders: Vec<Flow>,
    /// The one of the last element: most often the next one's, too.
    last: usize,
    /// Where it is looked next for one to forget.
    hand: usize,
}

impl Flows {
    pub(super) fn new() -> Self {
        // With so much room to spare, a table that always loses as many as it gains never has to grow.
        let places = HashMap::with_capacity(4 * MOST);
        Self { places, senders: Vec::with_capacity(MOST), last: 0, hand: 0 }
    }

    /// An element came. Whether its sender has holes that may still be filled.
    pub(super) fn count(
        &mut self,
        cycle: Cycle,
        count: &Count,
        at: Timestamp,
        told: &mut PendingLosses,
    ) -> bool {
        let mark = Mark { second: count.second, number: count.number };
        let same = self.senders.get(self.last).is_some_and(|flow| flow.key == count.flow);
        let known = same.then_some(self.last).or_else(|| self.places.get(&count.flow).copied());
        self.last = known.unwrap_or_else(|| self.begin(Flow::new(count.flow, mark, at), told));
        let Some(flow) = self.senders.get_mut(self.last) else { return false };
        flow.spoke |= known.is_some();
        flow.count(cycle, mark, count.alone, at, told);
        flow.has_holes()
    }

    /// A place for a sender that is new; another's, if there is none.
    fn begin(&mut self, flow: Flow, told: &mut PendingLosses) -> usize {
        let place = if self.senders.len() < MOST {
            self.senders.push(flow);
            self.senders.len() - 1
        } else {
            // Whoever spoke again since the hand came by last is passed over once.
            while std::mem::take(&mut self.senders[self.hand].spoke) {
                self.hand = (self.hand + 1) % MOST;
            }
            let place = self.hand;
            self.hand = (place + 1) % MOST;
            self.senders[place].give_up(told);
            self.places.remove(&self.senders[place].key);
            self.senders[place] = flow;
            place
        };
        self.places.insert(self.senders[place].key, place);
        place
    }

    /// Gives up on what has not come, and forgets all.
    pub(super) fn forget(&mut self, told: &mut PendingLosses) {
        self.senders.iter_mut().for_each(|flow| flow.give_up(told));
        self.senders.clear();
        self.places.clear();
        (self.last, self.hand) = (0, 0);
    }

    /// Gives up on what did not come in time. Whether there are holes that may still be filled.
    pub(super) fn rest(&mut self, now: Timestamp, told: &mut PendingLosses) -> bool {
        self.senders.iter_mut().fold(false, |waits, flow| flow.rest(now, told) | waits)
    }
}
