//! Catalog in memory: the merge rules as a state machine without I/O, for simulation and for comparison with stores.

mod tables;

use crate::digest::StateDigest;
use crate::dispute::Dispute;
use crate::error::Result;
use crate::hlc::{HlcTime, Millis, is_ahead};
use crate::ids::{ObjectId, OpId, SiteId};
use crate::ledger::{Delivery, Ledger};
use crate::merge::{Conflict, RecentOperations};
use crate::operation::{Change, Operation};
use crate::record::{Node, Record, TaggedAttribute, Version};
use crate::vector::VersionVector;
use std::collections::BTreeMap;
use tables::MemoryTables;

/// Most operations that wait for earlier ones: bounds memory; later ones are dropped, and sent again by their site.
pub(crate) const MAX_WAITING: usize = 100_000;

/// Catalog of one site in memory.
#[derive(Clone, Debug)]
pub struct CatalogState {
    ledger: Ledger,
    tables: MemoryTables,
    waiting: BTreeMap<OpId, Operation>,
    /// Next operation of each site whose stamp is too far ahead.
    quarantine: BTreeMap<SiteId, Operation>,
}

/// Effect of the delivery of an operation.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Received {
    /// Operations that were applied: the given one, and those that waited for it.
    pub applied: Vec<OpId>,
    /// Conflicts that they met.
    pub conflicts: Vec<Conflict>,
    /// Operations whose stamps are too far ahead; they are kept until their time has come.
    pub quarantined: Vec<OpId>,
}

impl CatalogState {
    /// Empty catalog of a site.
    pub fn new(site: SiteId) -> Self {
        let ledger = Ledger::new(site, HlcTime::default(), VersionVector::default());
        Self {
            ledger,
            tables: MemoryTables::default(),
            waiting: BTreeMap::new(),
            quarantine: BTreeMap::new(),
        }
    }

    /// Operations that are applied.
    pub fn vector(&self) -> &VersionVector {
        self.ledger.applied()
    }

    /// Id that the next local operation gets; tags of its changes are built from it.
    pub fn next_op(&self) -> OpId {
        self.ledger.next_op()
    }

    /// Makes a local operation and applies it. Nothing changes if it is invalid.
    pub fn local(&mut self, changes: Vec<Change>, under: Vec<ObjectId>, now: Millis) -> Result<Operation> {
        self.ledger.local(&mut self.tables, changes, under, now).map(|(op, _)| op)
    }

    /// Change that moves an entry to the trash, with everything that this site knows.
    pub fn deletion(&mut self, object: ObjectId) -> Result<Change> {
        self.ledger.deletion(&mut self.tables, object)
    }

    /// Takes a remote operation, in any order and any number of times, and applies it once its turn comes.
    pub fn receive(&mut self, op: Operation, now: Millis) -> Result<Received> {
        let mut received = Received::default();
        let mut recent = RecentOperations::default();
        for due in self.due(op.id, now) {
            self.deliver(due, now, &mut recent, &mut received)?;
        }
        self.deliver(op, now, &mut recent, &mut received)?;
        loop {
            let ready = self.waiting.keys().copied().find(|id| {
                let op = &self.waiting[id];
                !matches!(crate::readiness(op, self.ledger.applied()), crate::Readiness::Waiting(_))
            });
            let Some(op) = ready.and_then(|id| self.waiting.remove(&id)) else {
                return Ok(received);
            };
            self.deliver(op, now, &mut recent, &mut received)?;
        }
    }

    /// Takes operations out of quarantine whose time has come, and those that another operation replaces.
    fn due(&mut self, arrived: OpId, now: Millis) -> Vec<Operation> {
        let applied = self.ledger.applied();
        let is_due = |_: &SiteId, op: &mut Operation| !is_ahead(op.stamp(), now) || applied.contains(op.id);
        let due: Vec<Operation> = self.quarantine.extract_if(.., is_due).map(|(_, op)| op).collect();
        due.into_iter().filter(|op| op.id != arrived && !applied.contains(op.id)).collect()
    }

    fn deliver(
        &mut self,
        op: Operation,
        now: Millis,
        recent: &mut RecentOperations,
        received: &mut Received,
    ) -> Result<()> {
        match self.ledger.remote(&mut self.tables, &op, recent, now)? {
            Delivery::Applied(conflicts) => {
                received.applied.push(op.id);
                received.conflicts.extend(conflicts);
            }
            Delivery::Ahead => {
                received.quarantined.push(op.id);
                self.quarantine.insert(op.id.site, op);
            }
            Delivery::Waiting(_) if self.waiting.len() < MAX_WAITING => {
                self.waiting.insert(op.id, op);
            }
            Delivery::Waiting(_) | Delivery::Duplicate => {}
        }
        Ok(())
    }

    /// Applied operations that a peer with the given vector lacks, in causal order, at most `limit`.
    pub fn operations_beyond(&self, vector: &VersionVector, limit: usize) -> Vec<Operation> {
        let mut missing: Vec<&Operation> = self.tables.log().filter(|op| !vector.contains(op.id)).collect();
        missing.sort_by_key(|op| op.stamp());
        missing.into_iter().take(limit).cloned().collect()
    }

    /// Object or collection with an id.
    pub fn node(&self, id: ObjectId) -> Option<&Node> {
        self.tables.nodes().get(&id)
    }

    /// All objects and collections, trashed ones included, in the order of ids.
    pub fn nodes(&self) -> impl Iterator<Item = &Node> {
        self.tables.nodes().values()
    }

    /// Versions of an object, in the order of their tags.
    pub fn versions(&self, object: ObjectId) -> impl Iterator<Item = &Version> {
        self.tables.versions(object)
    }

    /// Attributes of an object or a collection, in the order of their tags.
    pub fn attributes(&self, object: ObjectId) -> impl Iterator<Item = &TaggedAttribute> {
        self.tables.attributes(object)
    }

    /// Recorded conflicts between concurrent writes.
    pub fn disputes(&self) -> impl Iterator<Item = &Dispute> {
        self.tables.disputes()
    }

    /// Operations in quarantine, at most one of each site.
    pub fn quarantined(&self) -> impl Iterator<Item = &Operation> {
        self.quarantine.values()
    }

    /// Collections above a node, the nearest first, without the root.
    pub fn above(&self, id: ObjectId) -> Vec<ObjectId> {
        let mut above = Vec::new();
        let mut at = self.node(id).map(|node| node.parent);
        while let Some(node) = at.and_then(|parent| self.node(parent)) {
            above.push(node.id);
            at = Some(node.parent);
        }
        above
    }

    /// All records in sorted order.
    pub fn records(&self) -> Vec<Record> {
        let mut records: Vec<Record> = self.tables.records().collect();
        records.sort();
        records
    }

    /// Digest of all records.
    pub fn digest(&self) -> StateDigest {
        let mut digest = StateDigest::default();
        self.tables.records().for_each(|record| digest.add(&record));
        digest
    }
}
