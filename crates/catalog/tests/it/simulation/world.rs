//! World of one history: sites with volatile and durable state, and a network that loses and reorders messages.

use super::changes::random_changes;
use crate::random::Random;
use holdfast_catalog::{
    CatalogError, CatalogState, Change, Conflict, Kind, Millis, Name, ObjectId, OpId, Operation, Record,
    Reference, SiteId, VersionVector, decode, encode,
};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Skew of a broken clock, in milliseconds.
const BROKEN_MS: u64 = 600_000;

/// Steps of one history before the network heals.
const STEPS: usize = 160;

/// Steps of the other histories: three of four.
const FEW_STEPS: usize = 50;

struct Site {
    id: SiteId,
    /// State after the last flush; only its operations are acknowledged and sent.
    durable: CatalogState,
    live: CatalogState,
    /// Offset of the wall clock from the true time, in milliseconds.
    skew: u64,
    /// Part of the network that the site can reach.
    part: usize,
}

pub struct World {
    random: Random,
    millis: u64,
    sites: Vec<Site>,
    /// Messages under way: receiver and encoded operation.
    network: Vec<(usize, Vec<u8>)>,
    acknowledged: BTreeMap<OpId, Operation>,
    conflicts: Conflicts,
    steps: usize,
}

/// Numbers of equal names, double renames, double versions, avoided cycles, rescues, quarantined operations, imported
/// snapshots and operations that are removed from logs.
pub type Conflicts = [usize; 8];

/// Most sites of one history.
const SITES: usize = 6;

impl World {
    pub fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let number = 3 + random.below(3);
        let sites = (0..number).map(|place| new_site(place, &mut random)).collect();
        let (network, acknowledged, conflicts) = (Vec::new(), BTreeMap::new(), Conflicts::default());
        let steps = if seed.is_multiple_of(4) { STEPS } else { FEW_STEPS };
        Self { random, millis: 1_800_000_000_000, sites, network, acknowledged, conflicts, steps }
    }

    /// Each site joins with an operation that all others get.
    fn join(&mut self) {
        for place in 0..self.sites.len() {
            let (object, now) = (self.random.id(self.millis), self.now(place));
            let name = Name::new("home").unwrap();
            let change = Change::MakeCollection { object, parent: ObjectId::ROOT, name };
            self.sites[place].live.local(vec![change], vec![], now).unwrap();
        }
        self.heal();
    }

    /// Runs the history, checks its end, and returns the number of conflicts of each kind.
    pub fn history(mut self) -> Conflicts {
        self.join();
        for _ in 0..self.steps {
            self.millis += self.random.next() % 50;
            let place = self.random.below(self.sites.len());
            match self.random.below(100) {
                0..45 => self.change(place),
                45..60 => self.flush(place),
                60..75 => self.send(place),
                75..88 => self.deliver(),
                88..90 => self.compact(place),
                90..92 => self.snapshot(place),
                92..95 => self.crash(place),
                _ => self.partition(),
            }
        }
        self.sites.iter().for_each(|site| compare_with_reference(&site.live, &self.acknowledged));
        self.heal();
        self.check();
        self.check_snapshot();
        self.conflicts
    }

    fn now(&self, place: usize) -> Millis {
        Millis(self.millis + self.sites[place].skew)
    }

    fn change(&mut self, place: usize) {
        let (now, site) = (self.now(place), &mut self.sites[place]);
        if self.random.chance(8) {
            site.live.acknowledge(now).unwrap();
        } else if let Some((changes, under)) = random_changes(&site.live, &mut self.random, site.id, now.0) {
            site.live.local(changes, under, now).unwrap();
        }
    }

    /// Makes everything durable; from now on the operations of this site are acknowledged.
    fn flush(&mut self, place: usize) {
        let site = &mut self.sites[place];
        for op in site.live.log().filter(|op| op.id.site == site.id) {
            self.acknowledged.entry(op.id).or_insert_with(|| op.clone());
        }
        site.durable = site.live.clone();
    }

    /// Sends some operations to a site of the same part of the network.
    fn send(&mut self, from: usize) {
        let to = self.random.below(self.sites.len());
        if to == from || self.sites[to].part != self.sites[from].part {
            return;
        }
        // Sometimes the sender knows the receiver's vector, sometimes it sends again from the start.
        let known = self.sites[to].durable.vector().clone();
        let asked = if self.random.chance(70) { known.clone() } else { VersionVector::default() };
        let limit = 1 + self.random.below(12);
        let sender = &mut self.sites[from].durable;
        let sent = match sender.operations_beyond(&asked, limit) {
            Err(CatalogError::Compacted { .. }) => sender.operations_beyond(&known, limit),
            sent => sent,
        };
        for op in sent.unwrap() {
            self.network.push((to, encode(&op).unwrap()));
        }
    }

    /// Removes old operations from a log. The age of these is longer than a new site takes to be known everywhere.
    fn compact(&mut self, place: usize) {
        let (now, age) = (self.now(place), Duration::from_millis(self.random.next() % 500));
        if self.sites[place].live.vector().len() == self.sites.len() {
            self.conflicts[7] += self.sites[place].live.compact(age, now).unwrap();
        }
    }

    /// Brings a new site, or one that was absent, to the state of another by a snapshot.
    fn snapshot(&mut self, from: usize) {
        let to = self.random.below(SITES.min(self.sites.len() + 1));
        if to < self.sites.len() {
            if self.sites[to].part != self.sites[from].part {
                return;
            }
        } else {
            self.sites.push(new_site(to, &mut self.random));
        }
        let (now, snapshot) = (self.now(to), exported(&mut self.sites[from].durable));
        let is_new = self.sites[to].live.vector().is_empty();
        let imported = self.sites[to].live.import_snapshot(&mut snapshot.as_slice(), now);
        match imported {
            Ok(()) => self.conflicts[6] += 1,
            // The exporter's clock is far ahead, or the receiver has operations that the exporter lacks.
            Err(CatalogError::Clock(_) | CatalogError::Snapshot(_)) if is_new => drop(self.sites.pop()),
            Err(CatalogError::Clock(_) | CatalogError::Snapshot(_)) => return,
            Err(error) => panic!("{error}"),
        }
        if imported.is_ok() && is_new {
            assert!(self.sites[to].live.acknowledge(now).unwrap().is_some());
            self.flush(to);
        } else if imported.is_ok() && self.sites[to].live.vector() == self.sites[from].durable.vector() {
            assert_eq!(self.sites[to].live.digest(), self.sites[from].durable.digest());
        }
    }

    fn deliver(&mut self) {
        for _ in 0..self.random.below(12) {
            if self.network.is_empty() {
                return;
            }
            let at = self.random.below(self.network.len());
            let (to, bytes) = self.network[at].clone();
            if !self.random.chance(15) {
                self.network.swap_remove(at);
            }
            if !self.random.chance(10) {
                self.receive(to, &bytes);
            }
        }
    }

    fn receive(&mut self, to: usize, bytes: &[u8]) {
        let now = self.now(to);
        let received = self.sites[to].live.receive(decode(bytes).unwrap(), now).unwrap();
        self.conflicts[5] += received.quarantined.len();
        for conflict in received.conflicts {
            self.conflicts[match conflict {
                Conflict::SameName { .. } => 0,
                Conflict::Renamed { .. } => 1,
                Conflict::Versions { .. } => 2,
                Conflict::CycleAvoided { .. } => 3,
                Conflict::Rescued { .. } => 4,
            }] += 1;
        }
    }

    fn crash(&mut self, place: usize) {
        let site = &mut self.sites[place];
        site.live = site.durable.clone();
    }

    fn partition(&mut self) {
        let parts = 1 + self.random.below(3);
        for site in &mut self.sites {
            site.part = self.random.below(parts);
        }
        // Messages under way are lost in half of the cases.
        if self.random.chance(50) {
            self.network.clear();
        }
    }

    /// Joins all parts, and exchanges operations until no site lacks any.
    fn heal(&mut self) {
        // The time of all operations has come by then.
        self.millis += BROKEN_MS;
        (0..self.sites.len()).for_each(|place| self.flush(place));
        for from in (0..self.sites.len()).chain(0..self.sites.len()) {
            for to in 0..self.sites.len() {
                let known = self.sites[to].live.vector().clone();
                for op in self.sites[from].live.operations_beyond(&known, usize::MAX).unwrap() {
                    self.receive(to, &encode(&op).unwrap());
                }
            }
        }
        (0..self.sites.len()).for_each(|place| self.flush(place));
    }

    /// Once all have acknowledged everything, a log has little left, and a new site still gets the same state.
    fn check_snapshot(&mut self) {
        for place in 0..self.sites.len() {
            let now = self.now(place);
            self.sites[place].live.acknowledge(now).unwrap();
        }
        self.heal();
        let now = Millis(self.millis + BROKEN_MS);
        let first = &mut self.sites[0].live;
        first.compact(Duration::ZERO, now).unwrap();
        let named = 2 * first.disputes().count();
        let left = first.log().filter(|op| !op.is_acknowledgement()).count();
        assert!(left <= named, "{left} operations are left, and conflicts name {named}");
        let mut new = CatalogState::new(SiteId::new(100).unwrap());
        new.import_snapshot(&mut exported(first).as_slice(), now).unwrap();
        assert_eq!((new.digest(), new.vector()), (first.digest(), first.vector()));
    }

    fn check(&self) {
        let first = &self.sites[0].durable;
        for op in self.acknowledged.values() {
            assert!(first.vector().contains(op.id), "the acknowledged operation {} is lost", op.id);
        }
        let log: Vec<Operation> = self.acknowledged.values().cloned().collect();
        assert_eq!(first.vector().iter().map(|(_, seq)| seq as usize).sum::<usize>(), log.len());
        assert!(first.log().all(|op| self.acknowledged.get(&op.id) == Some(op)), "an operation is altered");
        for site in &self.sites {
            assert_eq!(site.durable.records(), first.records(), "site {} differs", site.id);
            assert_eq!(site.durable.digest(), first.digest());
        }
        compare_with_reference(first, &self.acknowledged);
        check_tree(first, &log);
        // Replaying the past of each deletion takes as long as all the rest: it is done for every third history.
        if self.millis.is_multiple_of(3) {
            check_deletions(first, &log);
        }
    }
}

fn new_site(place: usize, random: &mut Random) -> Site {
    let id = SiteId::new(place as u64 + 1).unwrap();
    let state = CatalogState::new(id);
    // Few clocks are so far ahead that their operations are not accepted at once.
    let skew = if random.chance(8) { BROKEN_MS } else { random.next() % 120_000 };
    Site { id, durable: state.clone(), live: state, skew, part: 0 }
}

pub fn exported(state: &mut CatalogState) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut collect = |piece: &[u8]| {
        bytes.extend_from_slice(piece);
        Ok(())
    };
    state.export_snapshot(&mut collect).unwrap();
    bytes
}

/// No deletion in force hides an entry that was changed by an operation which the deleting site had not seen.
///
/// The entry lay below the deleted one in the tree that the deleting site knew. A tree that no site knew, made by moves
/// which lost their effect at the deleting site and regain it later, is not covered.
fn check_deletions(state: &CatalogState, log: &[Operation]) {
    for record in state.records() {
        let Record::Deletion(deletion) = record else { continue };
        // Sites purge only what all have seen deleted; these histories purge at any time.
        if deletion.purge {
            continue;
        }
        let mut known = Reference::default();
        log.iter().filter(|op| deletion.saw.contains(op.id)).for_each(|op| known.add(op.clone()));
        let nodes = known.records().into_iter().filter_map(|record| match record {
            Record::Node(node) => Some((node.id, node.parent)),
            _ => None,
        });
        let parents: BTreeMap<ObjectId, ObjectId> = nodes.collect();
        for op in log.iter().filter(|op| !deletion.saw.contains(op.id)) {
            for changed in op.changes.iter().filter(|change| change.rescues()).map(Change::object) {
                let mut at = changed;
                while let Some(parent) = parents.get(&at).filter(|_| at != deletion.object) {
                    at = *parent;
                }
                let is_hidden = changed == deletion.object || state.above(changed).contains(&deletion.object);
                assert!(
                    at != deletion.object || !is_hidden,
                    "{changed} is deleted, with a change by {}",
                    op.id
                );
            }
        }
    }
}

/// Compares a state with the model of its operations: acknowledged ones, and those that are in its log only.
fn compare_with_reference(state: &CatalogState, acknowledged: &BTreeMap<OpId, Operation>) {
    let mut reference = Reference::default();
    let known = acknowledged.values().filter(|op| state.vector().contains(op.id));
    known.chain(state.log()).for_each(|op| reference.add(op.clone()));
    let differs =
        |a: &[Record], b: &[Record]| a.iter().filter(|r| !b.contains(r)).cloned().collect::<Vec<_>>();
    let (found, expected) = (state.records(), reference.records());
    assert_eq!(differs(&found, &expected), differs(&expected, &found), "the state differs from the model");
}

/// Every made entry is there, has a way to the root, and is shown under a name of its own.
fn check_tree(state: &CatalogState, log: &[Operation]) {
    let mut shown = BTreeSet::new();
    let number = state.nodes().count();
    for change in log.iter().flat_map(|op| &op.changes) {
        if let Change::MakeCollection { object, .. }
        | Change::MakeObject { object, .. }
        | Change::MakeLink { object, .. } = change
        {
            assert!(state.node(*object).is_some(), "{object} is lost");
        }
    }
    for change in log.iter().flat_map(|op| &op.changes) {
        let Change::Purge { object } = change else { continue };
        let node = state.node(*object).unwrap();
        let is_empty = node.current.is_none()
            && state.versions(*object).next().is_none()
            && state.attributes(*object).next().is_none();
        assert!(node.kind == Kind::Collection || (node.trashed && is_empty), "{object} has returned");
    }
    for node in state.nodes() {
        let (mut at, mut steps) = (node.id, 0);
        while let Some(node) = state.node(at) {
            (at, steps) = (node.parent, steps + 1);
            assert!(steps <= number, "{} lies on a cycle", node.id);
        }
        assert_eq!(at, ObjectId::ROOT, "{} has no way to the root", node.id);
        if !node.trashed {
            assert!(shown.insert((node.parent, node.shown.clone())), "`{}` is shown twice", node.shown);
        }
    }
}
