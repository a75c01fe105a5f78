//! Catalog in memory: the merge rules as a state machine without I/O, for simulation and for comparison with stores.

mod tables;

use crate::digest::StateDigest;
use crate::dispute::Dispute;
use crate::encoding::{decode, encode};
use crate::error::{CatalogError, Result};
use crate::hlc::{HlcTime, Millis, is_ahead, oldest_within};
use crate::ids::{ObjectId, OpId, SiteId};
use crate::ledger::{Delivery, Ledger};
use crate::merge::{Conflict, RecentOperations, Tables, removable};
use crate::operation::{Change, Operation};
use crate::record::{Node, Record, TaggedAttribute, Version};
use crate::snapshot::{Head, Item, SnapshotReader, SnapshotWriter};
use crate::vector::VersionVector;
use std::collections::BTreeMap;
use std::io::Read;
use std::time::Duration;
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

    /// Makes an operation without changes, if the site owes one to others for the operations that it has applied.
    pub fn acknowledge(&mut self, now: Millis) -> Result<Option<Operation>> {
        if !self.ledger.owes_acknowledgement(&mut self.tables)? {
            return Ok(None);
        }
        self.local(Vec::new(), Vec::new(), now).map(Some)
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
    pub fn operations_beyond(&mut self, vector: &VersionVector, limit: usize) -> Result<Vec<Operation>> {
        if let Some((site, removed)) = self.tables.compacted()?.beyond(vector).iter().next() {
            return Err(CatalogError::Compacted { site, after: vector.get(site), removed });
        }
        let mut missing: Vec<&Operation> = self.log().filter(|op| !vector.contains(op.id)).collect();
        missing.sort_by_key(|op| op.stamp());
        Ok(missing.into_iter().take(limit).cloned().collect())
    }

    /// Operations that are in the log, by site and number.
    pub fn log(&self) -> impl Iterator<Item = &Operation> {
        self.tables.log()
    }

    /// Removes operations from the log that all known sites have acknowledged and that are older than `age`. While no other
    /// site is known, all stay.
    pub fn compact(&mut self, age: Duration, now: Millis) -> Result<usize> {
        let own = self.next_op().site;
        let known = removable(&mut self.tables, own, self.ledger.applied())?;
        Ok(self.tables.compact(&known, oldest_within(age, now)))
    }

    /// Passes a snapshot to `visit` piece by piece.
    pub fn export_snapshot(&mut self, visit: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let (site, clock) = (self.next_op().site, self.ledger.last_time());
        let (applied, compacted) = (self.ledger.applied().clone(), self.tables.compacted()?);
        let mut writer = SnapshotWriter::new(visit, Head { site, clock, applied, compacted })?;
        self.tables.records().try_for_each(|record| writer.record(record))?;
        self.log().try_for_each(|op| writer.operation(encode(op)?))?;
        writer.finish()
    }

    /// Replaces this state by a snapshot. Nothing changes if it fails.
    ///
    /// The state may have no operations of its own that the snapshot lacks. Those of other sites are applied again.
    pub fn import_snapshot(&mut self, snapshot: &mut dyn Read, now: Millis) -> Result<()> {
        let reader = SnapshotReader::new(snapshot)?;
        let mut imported = self.clone();
        imported.ledger.import(reader.head(), &self.tables.compacted()?, now)?;
        let newer = self.tables.log_beyond(&reader.head().applied)?;
        imported.tables = MemoryTables::default();
        imported.tables.set_compacted(reader.head().compacted.clone());
        reader.read(&mut |item| match item {
            Item::Record(record) => imported.tables.put(record),
            Item::Operation(bytes) => {
                let op = decode(&bytes)?;
                imported.tables.append(&op, bytes)
            }
            Item::Head(_) | Item::End(..) => Ok(()),
        })?;
        for op in newer {
            imported.receive(op, now)?;
        }
        *self = imported;
        Ok(())
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
