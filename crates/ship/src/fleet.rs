//! Transfers of all files to one archive: their order, the number of actions at the same time, and the state of the link.
//!
//! Pure like `transfer`: events come in, actions go out. Keys of files are the driver's.

use crate::link::{Link, Outage, Request};
use crate::transfer::{Action, Event, Rules, Transfer};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Number of a file in its driver.
pub type FileKey = u64;

/// Place of a file in the order of work: priority, then age.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank {
    priority: Reverse<i32>,
    age: i128,
}

impl Rank {
    /// Rank of a file that was modified at `modified` (nanoseconds since 1970); greater priorities come first.
    pub fn new(priority: i32, modified: i64, newest_first: bool) -> Self {
        let modified = i128::from(modified);
        Self { priority: Reverse(priority), age: if newest_first { -modified } else { modified } }
    }
}

struct Member<A> {
    transfer: Transfer<A>,
    rules: Rules,
    rank: Rank,
    is_ready: bool,
    wakes_at: Option<Duration>,
}

/// Transfers to one archive.
pub struct Fleet<A> {
    members: BTreeMap<FileKey, Member<A>>,
    ready: BTreeSet<(Rank, FileKey)>,
    wakes: BTreeSet<(Duration, FileKey)>,
    link: Link,
    in_flight: usize,
    most: usize,
}

impl<A: Clone> Fleet<A> {
    /// Fleet with at most `most` actions at the same time.
    pub fn new(most: usize) -> Self {
        Self {
            members: BTreeMap::new(),
            ready: BTreeSet::new(),
            wakes: BTreeSet::new(),
            link: Link::default(),
            in_flight: 0,
            most: most.max(1),
        }
    }

    /// Adds a file, or replaces its transfer.
    pub fn insert(&mut self, key: FileKey, transfer: Transfer<A>, rules: Rules, rank: Rank) {
        self.remove(key);
        self.members.insert(key, Member { transfer, rules, rank, is_ready: false, wakes_at: None });
        self.touch(key);
    }

    /// Removes a file from the fleet.
    pub fn remove(&mut self, key: FileKey) {
        if let Some(member) = self.members.remove(&key) {
            self.ready.remove(&(member.rank, key));
            if let Some(at) = member.wakes_at {
                self.wakes.remove(&(at, key));
            }
        }
    }

    /// Transfer of one file of the fleet.
    pub fn get(&self, key: FileKey) -> Option<&Transfer<A>> {
        self.members.get(&key).map(|member| &member.transfer)
    }

    /// Transfers of all files.
    pub fn transfers(&self) -> impl Iterator<Item = (FileKey, &Transfer<A>)> {
        self.members.iter().map(|(key, member)| (*key, &member.transfer))
    }

    /// State of the link.
    pub fn link(&self) -> &Link {
        &self.link
    }

    /// Number of actions without an answer.
    pub fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Changes the rules of all files.
    pub fn set_rules(&mut self, rules: Rules) {
        for member in self.members.values_mut() {
            member.rules = rules;
        }
    }

    /// Gives a file another place in the order.
    pub fn set_rank(&mut self, key: FileKey, rank: Rank) {
        if let Some(member) = self.members.get_mut(&key)
            && member.rank != rank
        {
            if member.is_ready {
                self.ready.remove(&(member.rank, key));
                self.ready.insert((rank, key));
            }
            member.rank = rank;
        }
    }

    /// Takes an observation of a file, which answers no action.
    pub fn observe(&mut self, now: Duration, key: FileKey, event: Event<A>) {
        if let Some(member) = self.members.get_mut(&key) {
            member.transfer.take(now, event);
            self.touch(key);
        }
    }

    /// Takes the answer to an action; `None` when a rename has succeeded.
    pub fn answer(&mut self, now: Duration, key: FileKey, event: Option<Event<A>>) {
        self.in_flight = self.in_flight.saturating_sub(1);
        if self.in_flight == 0 {
            // A probe may have ended without reaching the link.
            self.link.decline();
        }
        if let Some(member) = self.members.get_mut(&key) {
            match event {
                Some(event) => member.transfer.take(now, event),
                None => member.transfer.renamed(),
            }
            self.touch(key);
        }
    }

    /// Counts an answer of the archive; returns the outage that it ends and its begin.
    pub fn link_succeeded(&mut self, request: Request) -> Option<(Outage, Duration)> {
        self.link.succeed(request)
    }

    /// Counts a failure that concerns all files.
    pub fn link_failed(&mut self, now: Duration, outage: Outage, request: Request, pause: Option<Duration>) {
        self.link.fail(now, outage, request, pause);
    }

    fn touch(&mut self, key: FileKey) {
        let Some(member) = self.members.get_mut(&key) else { return };
        if !std::mem::replace(&mut member.is_ready, true) {
            self.ready.insert((member.rank, key));
        }
    }

    fn sleep(&mut self, now: Duration, key: FileKey) {
        let Some(member) = self.members.get_mut(&key) else { return };
        if std::mem::replace(&mut member.is_ready, false) {
            self.ready.remove(&(member.rank, key));
        }
        let wakes_at = member.transfer.wakes_at(now, &member.rules);
        if member.wakes_at != wakes_at {
            if let Some(old) = member.wakes_at {
                self.wakes.remove(&(old, key));
            }
            if let Some(at) = wakes_at {
                self.wakes.insert((at, key));
            }
            member.wakes_at = wakes_at;
        }
    }

    /// Next action, or `None` until the next event or the time of `wakes_at`.
    pub fn next(&mut self, now: Duration) -> Option<(FileKey, Action<A>)> {
        if self.in_flight >= self.most {
            return None;
        }
        while let Some(&(at, key)) = self.wakes.first().filter(|(at, _)| *at <= now) {
            self.wakes.remove(&(at, key));
            if let Some(member) = self.members.get_mut(&key) {
                member.wakes_at = None;
            }
            self.touch(key);
        }
        if self.ready.is_empty() || !self.link.admit(now) {
            return None;
        }
        while let Some(&(_, key)) = self.ready.first() {
            let action = match self.members.get_mut(&key) {
                Some(member) => member.transfer.next(now, &member.rules),
                None => None,
            };
            if let Some(action) = action {
                self.in_flight += 1;
                if action.is_local() {
                    self.link.decline();
                }
                return Some((key, action));
            }
            self.sleep(now, key);
        }
        self.link.decline();
        None
    }

    /// Time at which `next` may have an action although nothing happens.
    pub fn wakes_at(&self) -> Option<Duration> {
        if self.in_flight >= self.most {
            return None;
        }
        let wake = self.wakes.first().map(|(at, _)| *at);
        let probe = self.link.probe_at();
        match (wake, probe) {
            (Some(wake), Some(probe)) if self.ready.is_empty() => Some(wake.max(probe)),
            (_, Some(probe)) if !self.ready.is_empty() => Some(probe),
            (wake, _) => wake,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transfer::{FileIdentity, Observation};

    const RULES: Rules = Rules { block: 100, lag: Duration::from_millis(500), window: 2, can_defer: true };

    fn at(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn seen(size: u64) -> Event<u8> {
        let identity = FileIdentity { device: 1, inode: 1 };
        Event::Observed(Observation { identity, size, modified: size as i64, changed: size as i64 })
    }

    /// Fleet whose only file fills its window.
    fn busy(most: usize) -> Fleet<u8> {
        let mut fleet = Fleet::new(most);
        fleet.insert(1, Transfer::new(), RULES, Rank::new(0, 0, false));
        fleet.observe(at(0), 1, seen(1000));
        assert!(matches!(fleet.next(at(0)), Some((1, Action::Create { length: None }))));
        fleet.answer(at(10), 1, Some(Event::Created(7)));
        while fleet.next(at(10)).is_some() {}
        fleet
    }

    #[test]
    fn nothing_wakes_a_fleet_that_waits_for_answers() {
        for most in [1, 8] {
            let mut fleet = busy(most);
            // The age of the unsent bytes passes while the window is full.
            assert!(fleet.next(at(600)).is_none());
            let wake = fleet.wakes_at();
            assert!(wake.is_none_or(|wake| wake > at(600)), "{wake:?} with {most} connections");
        }
    }

    #[test]
    fn segments_that_fail_together_cost_one_pause() {
        let mut fleet = Fleet::new(8);
        fleet.insert(1, Transfer::new(), Rules { window: 8, ..RULES }, Rank::new(0, 0, false));
        fleet.observe(at(0), 1, seen(1000));
        assert!(fleet.next(at(0)).is_some());
        fleet.answer(at(0), 1, Some(Event::Created(7)));
        let sent: Vec<_> = std::iter::from_fn(|| fleet.next(at(0))).collect();
        assert_eq!(sent.len(), 8);
        for (key, action) in sent {
            let Action::Send { generation, segment, .. } = action else { panic!("{action:?}") };
            let failure = crate::transfer::Failure::Transient;
            fleet.answer(
                at(1),
                key,
                Some(Event::SegmentFailed { generation, start: segment.start, failure }),
            );
        }
        assert!(fleet.next(at(1)).is_none());
        assert_eq!(fleet.wakes_at(), Some(at(101)));
        assert!(fleet.next(at(101)).is_some());
    }

    #[test]
    fn archives_that_need_the_length_get_files_after_their_end() {
        let rules = Rules { can_defer: false, ..RULES };
        let mut fleet: Fleet<u8> = Fleet::new(8);
        fleet.insert(1, Transfer::new(), rules, Rank::new(0, 0, false));
        fleet.observe(at(0), 1, seen(250));
        assert!(fleet.next(at(900)).is_none());
        fleet.observe(at(900), 1, Event::Ended);
        assert!(matches!(fleet.next(at(900)), Some((1, Action::Create { length: Some(250) }))));
        fleet.answer(at(900), 1, Some(Event::Created(7)));
        // The file grows after all: the upload gets no more than its length, and is then removed.
        fleet.observe(at(900), 1, seen(400));
        let mut sent = 0;
        while let Some((key, action)) = fleet.next(at(900)) {
            let event = match action {
                Action::Send { generation, segment, .. } => {
                    sent += segment.length;
                    Event::Acknowledged { generation, start: segment.start }
                }
                Action::Compare { size } => {
                    assert_eq!((size, sent), (250, 250));
                    let Event::Observed(grown) = seen(400) else { unreachable!() };
                    Event::Compared(crate::transfer::Comparison::Grown(grown))
                }
                Action::Retire { .. } => return,
                other => panic!("{other:?}"),
            };
            fleet.answer(at(900), key, Some(event));
        }
        panic!("the upload stays");
    }

    #[test]
    fn files_are_taken_by_priority_and_age() {
        let mut fleet: Fleet<u8> = Fleet::new(9);
        let ranks = [(1, 0, 50, false), (2, 0, 40, false), (3, 5, 60, true), (4, 5, 70, true)];
        for (key, priority, modified, is_newest) in ranks {
            fleet.insert(key, Transfer::new(), RULES, Rank::new(priority, modified, is_newest));
            fleet.observe(at(0), key, seen(100));
        }
        let order: Vec<_> = std::iter::from_fn(|| fleet.next(at(0))).map(|(key, _)| key).collect();
        assert_eq!(order, [4, 3, 2, 1]);
    }
}
