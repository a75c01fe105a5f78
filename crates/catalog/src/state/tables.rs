//! Tables in memory: one sorted map for each kind of record.

use crate::dispute::{Dispute, DisputeKind};
use crate::error::Result;
use crate::fact::{Fact, FactKind};
use crate::grant::Grant;
use crate::hlc::{Hlc, HlcTime};
use crate::ids::{ObjectId, OpId, SiteId, Tag};
use crate::merge::{MoveKey, Tables};
use crate::operation::{Operation, ReplicaPlace};
use crate::record::{
    Annotation, Deletion, Move, Node, Record, RecordKey, Replica, SiteProgress, TaggedAttribute, Version,
};
use crate::vector::VersionVector;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound::{Excluded, Unbounded};

/// Records of a catalog and its log.
#[derive(Clone, Debug, Default)]
pub(super) struct MemoryTables {
    nodes: BTreeMap<ObjectId, Node>,
    /// Visible nodes by parent and given name.
    names: BTreeSet<(ObjectId, String, ObjectId)>,
    moves: BTreeMap<MoveKey, Move>,
    deletions: BTreeMap<(ObjectId, OpId), Deletion>,
    versions: BTreeMap<(ObjectId, Tag), Version>,
    replicas: BTreeMap<(ObjectId, ReplicaPlace), Replica>,
    attributes: BTreeMap<(ObjectId, Tag), TaggedAttribute>,
    annotations: BTreeMap<(ObjectId, Tag), Annotation>,
    sites: BTreeMap<SiteId, SiteProgress>,
    disputes: BTreeMap<(DisputeKind, ObjectId, Hlc), Dispute>,
    grants: BTreeMap<(ObjectId, String), Grant>,
    facts: BTreeMap<(FactKind, String), Fact>,
    log: BTreeMap<OpId, Operation>,
    compacted: VersionVector,
}

impl MemoryTables {
    pub(super) fn nodes(&self) -> &BTreeMap<ObjectId, Node> {
        &self.nodes
    }

    pub(super) fn log(&self) -> impl Iterator<Item = &Operation> {
        self.log.values()
    }

    pub(super) fn disputes(&self) -> impl Iterator<Item = &Dispute> {
        self.disputes.values()
    }

    pub(super) fn versions(&self, object: ObjectId) -> impl Iterator<Item = &Version> {
        rows(&self.versions, object)
    }

    pub(super) fn attributes(&self, object: ObjectId) -> impl Iterator<Item = &TaggedAttribute> {
        rows(&self.attributes, object)
    }

    pub(super) fn records(&self) -> impl Iterator<Item = Record> {
        let nodes = self.nodes.values().cloned().map(Record::Node);
        let moves = self.moves.values().cloned().map(Record::Move);
        let deletions = self.deletions.values().cloned().map(Record::Deletion);
        let versions = self.versions.values().cloned().map(Record::Version);
        let replicas = self.replicas.values().cloned().map(Record::Replica);
        let attributes = self.attributes.values().cloned().map(Record::Attribute);
        let annotations = self.annotations.values().cloned().map(Record::Annotation);
        let sites = self.sites.values().cloned().map(Record::Site);
        nodes
            .chain(moves)
            .chain(deletions)
            .chain(versions)
            .chain(replicas)
            .chain(attributes)
            .chain(annotations)
            .chain(sites)
            .chain(self.disputes.values().copied().map(Record::Dispute))
            .chain(self.grants.values().cloned().map(Record::Grant))
            .chain(self.facts.values().cloned().map(Record::Fact))
    }

    /// Removes operations from the log that `known` counts and that are older than a time, and returns their number.
    pub(super) fn compact(&mut self, known: &VersionVector, end: HlcTime) -> usize {
        let named: BTreeSet<OpId> =
            self.disputes.values().flat_map(|dispute| [dispute.lost.op(), dispute.won.op()]).collect();
        let is_old = |op: &Operation| known.contains(op.id) && op.time < end;
        for op in self.log.values().filter(|op| is_old(op)) {
            self.compacted.raise(op.id.site, op.id.seq);
        }
        self.log.extract_if(.., |id, op| is_old(op) && !named.contains(id)).count()
    }

    /// Notes operations that a snapshot does not hold.
    pub(super) fn set_compacted(&mut self, compacted: VersionVector) {
        self.compacted = compacted;
    }

    fn put_node(&mut self, node: Node) {
        let key = |node: &Node| (node.parent, node.name.to_string(), node.id);
        if let Some(before) = self.nodes.get(&node.id) {
            self.names.remove(&key(before));
        }
        if !node.trashed {
            self.names.insert(key(&node));
        }
        self.nodes.insert(node.id, node);
    }
}

/// Rows of one object, in the order of their tags.
fn rows<V>(map: &BTreeMap<(ObjectId, Tag), V>, object: ObjectId) -> impl Iterator<Item = &V> {
    let from = map.range((object, Tag::MIN)..);
    from.take_while(move |((at, _), _)| *at == object).map(|(_, row)| row)
}

impl Tables for MemoryTables {
    fn node(&mut self, id: ObjectId) -> Result<Option<Node>> {
        Ok(self.nodes.get(&id).cloned())
    }

    fn named(&mut self, parent: ObjectId, name: &str) -> Result<Vec<Node>> {
        let from = (parent, name.to_owned(), ObjectId::ROOT);
        let family = self.names.range(from..).take_while(|(at, given, _)| *at == parent && given == name);
        Ok(family.map(|(_, _, id)| self.nodes[id].clone()).collect())
    }

    fn is_below(&mut self, node: ObjectId, above: ObjectId) -> Result<bool> {
        let mut at = node;
        while at != above {
            match self.nodes.get(&at) {
                Some(node) => at = node.parent,
                None => return Ok(false),
            }
        }
        Ok(true)
    }

    fn replica(&mut self, object: ObjectId, place: &ReplicaPlace) -> Result<Option<Replica>> {
        Ok(self.replicas.get(&(object, place.clone())).cloned())
    }

    fn grant(&mut self, object: ObjectId, subject: &str) -> Result<Option<Grant>> {
        Ok(self.grants.get(&(object, subject.to_owned())).cloned())
    }

    fn fact(&mut self, kind: FactKind, key: &str) -> Result<Option<Fact>> {
        Ok(self.facts.get(&(kind, key.to_owned())).cloned())
    }

    fn moves_after(&mut self, key: MoveKey) -> Result<Vec<Move>> {
        let later = self.moves.range((Excluded(key), Unbounded)).map(|(_, step)| step);
        Ok(later.filter(|step| !step.placement).cloned().collect())
    }

    fn place_before(&mut self, object: ObjectId, key: MoveKey) -> Result<Option<Move>> {
        let mut own = self.moves.iter().rev().filter(|(_, step)| step.object == object && step.effective);
        Ok(own.find(|(at, step)| **at < key || step.placement).map(|(_, step)| step.clone()))
    }

    fn last_move(&mut self, object: ObjectId) -> Result<Option<Hlc>> {
        let mut own = self.moves.keys().rev().filter(|(_, moved)| *moved == object);
        Ok(own.next().map(|(stamp, _)| *stamp))
    }

    fn dispute(&mut self, kind: DisputeKind, object: ObjectId, lost: Hlc) -> Result<Option<Dispute>> {
        Ok(self.disputes.get(&(kind, object, lost)).copied())
    }

    fn deletions(&mut self, objects: &[ObjectId]) -> Result<Vec<Deletion>> {
        let concerns = |deletion: &&Deletion| {
            objects.contains(&deletion.object) || deletion.moved.iter().any(|entry| objects.contains(entry))
        };
        Ok(self.deletions.values().filter(concerns).cloned().collect())
    }

    fn tagged(&mut self, object: ObjectId) -> Result<Vec<RecordKey>> {
        let attributes = rows(&self.attributes, object).map(|row| RecordKey::Attribute(object, row.tag));
        let annotations = rows(&self.annotations, object).map(|row| RecordKey::Annotation(object, row.tag));
        Ok(attributes.chain(annotations).collect())
    }

    fn erase(&mut self, object: ObjectId) -> Result<()> {
        self.versions.retain(|(id, _), _| *id != object);
        self.attributes.retain(|(id, _), _| *id != object);
        self.annotations.retain(|(id, _), _| *id != object);
        self.replicas.retain(|(id, _), _| *id != object);
        Ok(())
    }

    fn log_beyond(&mut self, saw: &VersionVector) -> Result<Vec<Operation>> {
        Ok(self.log.values().filter(|op| !saw.contains(op.id)).cloned().collect())
    }

    fn compacted(&mut self) -> Result<VersionVector> {
        Ok(self.compacted.clone())
    }

    fn logged(&mut self, id: OpId) -> Result<Option<Operation>> {
        Ok(self.log.get(&id).cloned())
    }

    fn progress(&mut self, site: SiteId) -> Result<Option<SiteProgress>> {
        Ok(self.sites.get(&site).cloned())
    }

    fn append(&mut self, op: &Operation, _: Vec<u8>) -> Result<()> {
        self.log.insert(op.id, op.clone());
        Ok(())
    }

    fn put(&mut self, record: Record) -> Result<()> {
        match record {
            Record::Node(node) => self.put_node(node),
            Record::Move(step) => drop(self.moves.insert((step.stamp, step.object), step)),
            Record::Deletion(row) => drop(self.deletions.insert((row.object, row.op), row)),
            Record::Version(row) => drop(self.versions.insert((row.object, row.tag), row)),
            Record::Replica(row) => drop(self.replicas.insert((row.object, row.place.clone()), row)),
            Record::Attribute(row) => drop(self.attributes.insert((row.object, row.tag), row)),
            Record::Annotation(row) => drop(self.annotations.insert((row.object, row.tag), row)),
            Record::Site(row) => drop(self.sites.insert(row.site, row)),
            Record::Grant(row) => drop(self.grants.insert((row.object, row.subject.clone()), row)),
            Record::Fact(row) => drop(self.facts.insert((row.kind, row.key.clone()), row)),
            Record::Dispute(row) => drop(self.disputes.insert((row.kind, row.object, row.lost.stamp), row)),
        }
        Ok(())
    }

    fn remove(&mut self, key: RecordKey) -> Result<()> {
        match key {
            RecordKey::Deletion(object, op) => drop(self.deletions.remove(&(object, op))),
            RecordKey::Attribute(object, tag) => drop(self.attributes.remove(&(object, tag))),
            RecordKey::Annotation(object, tag) => drop(self.annotations.remove(&(object, tag))),
            RecordKey::Placement(object, stamp) => drop(self.moves.remove(&(stamp, object))),
        }
        Ok(())
    }
}
