//! Fairness of reads: bytes that others are served while one reader waits, against the most that the schedule
//! allows. Counted in bytes, so that it does not matter how long writing, stalls and bad places make a read
//! take.

use super::readers::Reader;
use holdfast_ring::{Class, ReadRequest};

/// What classes are served in a round of turns, in half visits.
fn weight(class: Class) -> u64 {
    match class {
        Class::Rebuild => 4,
        Class::Evacuation | Class::Search | Class::Export => 2,
        Class::Scrub => 1,
    }
}

/// A reader who may be waiting.
#[derive(Clone, Copy, Debug)]
struct WaitingReader {
    client: u64,
    /// The most that others may be served before it is.
    most: u64,
    waiting: u32,
    /// What all had been served when it began to wait, or was served last.
    since: u64,
}

/// Who waits, and for how much of what others read.
#[derive(Clone, Debug)]
pub(super) struct ReaderFairness {
    readers: Vec<WaitingReader>,
    served: u64,
    /// The largest share of what others may be served.
    longest: f64,
}

impl ReaderFairness {
    /// Of readers whose reads have `quantum` bytes at most, and whose visits last for `visit`.
    pub(super) fn new(readers: &[Reader], visit: u64, quantum: u64) -> Self {
        let turn = |reader: &Reader| WaitingReader {
            client: reader.client,
            most: most(readers, reader.class, visit, quantum),
            waiting: 0,
            since: 0,
        };
        Self { readers: readers.iter().map(turn).collect(), served: 0, longest: 0.0 }
    }

    fn of(&mut self, wanted: &ReadRequest) -> Option<&mut WaitingReader> {
        self.readers.iter_mut().find(|turn| turn.client == wanted.client)
    }

    /// A read is asked for.
    pub(super) fn asks(&mut self, wanted: &ReadRequest) {
        let served = self.served;
        if let Some(turn) = self.of(wanted) {
            if turn.waiting == 0 {
                turn.since = served;
            }
            turn.waiting += 1;
        }
    }

    /// A read is begun.
    pub(super) fn begins(&mut self, wanted: &ReadRequest) {
        let (before, after) = (self.served, self.served + u64::from(wanted.bytes));
        self.served = after;
        if let Some(turn) = self.of(wanted) {
            let share = (before - turn.since) as f64 / turn.most as f64;
            (turn.waiting, turn.since) = (turn.waiting - 1, after);
            self.longest = self.longest.max(share);
        }
    }

    /// The largest share of what others may be served while one waits, those included who wait now.
    pub(super) fn longest(&self) -> f64 {
        let waiting = self.readers.iter().filter(|turn| turn.waiting > 0);
        waiting.map(|turn| (self.served - turn.since) as f64 / turn.most as f64).fold(self.longest, f64::max)
    }
}

/// The most that others are served while somebody of a class waits.
///
/// Of its own class each other client has two visits before it has credit and its turn, and each ends with a read that
/// may go beyond it. Its class is served that in so many rounds as its weight takes; and in each the other classes have
/// theirs, with one round's worth that they had left, and a read that goes beyond.
fn most(readers: &[Reader], class: Class, visit: u64, quantum: u64) -> u64 {
    let round = |class: Class| (weight(class) * visit).div_ceil(2);
    let peers = readers.iter().filter(|reader| reader.class == class).count() as u64 - 1;
    let own = 2 * peers * (visit + quantum);
    let rounds = (own + quantum).div_ceil(round(class)) + 1;
    let all = [Class::Rebuild, Class::Evacuation, Class::Search, Class::Export, Class::Scrub];
    let others = all.into_iter().filter(|other| *other != class);
    let others = others.filter(|other| readers.iter().any(|reader| reader.class == *other));
    own + quantum + others.map(|other| (rounds + 2) * round(other) + quantum).sum::<u64>()
}
