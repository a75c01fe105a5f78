//! Naive reference model: the state as a function of the set of operations, computed anew each time.
//!
//! Nothing here is shared with `merge`: each rule is written down as its definition, whatever it costs. Tests compare
//! the state machine and the stores with it.

use crate::dispute::{ConflictId, Dispute, DisputeKind, Settlement, Write};
use crate::fact::Fact;
use crate::grant::Grant;
use crate::hlc::Hlc;
use crate::ids::{ObjectId, OpId, Tag};
use crate::name::{Name, numbered};
use crate::operation::{Change, Operation, ReplicaPlace};
use crate::record::{
    Annotation, Current, Deletion, Kind, Move, Node, Record, Replica, SiteProgress, TaggedAttribute, Version,
};
use crate::vector::VersionVector;
use std::collections::{BTreeMap, BTreeSet};

/// Set of operations, from which the state is computed.
#[derive(Clone, Debug, Default)]
pub struct Reference {
    ops: BTreeMap<OpId, Operation>,
}

/// Placements and moves in the order of their stamps, with their effect.
type Moves = Vec<Move>;

impl Reference {
    /// Adds an operation. A known one changes nothing.
    pub fn add(&mut self, op: Operation) {
        self.ops.insert(op.id, op);
    }

    /// All records of the state, sorted.
    pub fn records(&self) -> Vec<Record> {
        let deletions = self.deletions();
        let (mut nodes, moves) = self.nodes();
        for node in nodes.values_mut() {
            node.trashed = deletions.iter().any(|deletion| deletion.object == node.id);
            if node.kind != Kind::Collection && deletions.iter().any(|all| all.purge && all.object == node.id)
            {
                node.current = None;
            }
        }
        show_names(&mut nodes);
        let collections = moves.into_iter().filter(|step| nodes[&step.object].kind == Kind::Collection);
        let mut records: Vec<Record> = collections.map(Record::Move).collect();
        records.extend(nodes.into_values().map(Record::Node));
        records.extend(deletions.into_iter().map(Record::Deletion));
        records.extend(self.rows());
        records.extend(self.replicas());
        records.extend(self.sites());
        records.extend(self.disputes());
        records.extend(self.grants());
        records.extend(self.facts());
        records.sort();
        records
    }

    /// Changes with their operations and tags, in the order of stamps.
    fn changes(&self) -> Vec<(&Operation, Tag, &Change)> {
        let mut ops: Vec<&Operation> = self.ops.values().collect();
        ops.sort_by_key(|op| op.stamp());
        ops.into_iter()
            .flat_map(|op| op.changes.iter().enumerate().map(move |(at, change)| (op, op.tag(at), change)))
            .collect()
    }

    /// Nodes with their registers; moves are replayed in order, and those that make a cycle are skipped.
    fn nodes(&self) -> (BTreeMap<ObjectId, Node>, Moves) {
        let mut nodes: BTreeMap<ObjectId, Node> = BTreeMap::new();
        let mut placements: Vec<(Hlc, ObjectId, ObjectId, Name, bool)> = Vec::new();
        for (op, _, change) in self.changes() {
            let stamp = op.stamp();
            match change {
                Change::MakeCollection { object, parent, name }
                | Change::MakeObject { object, parent, name }
                | Change::MakeLink { object, parent, name, .. } => {
                    // The earlier one of two sites that made a collection counts.
                    if nodes.contains_key(object) {
                        continue;
                    }
                    let (kind, target) = match change {
                        Change::MakeCollection { .. } => (Kind::Collection, None),
                        Change::MakeLink { target, .. } => (Kind::Link, Some(*target)),
                        _ => (Kind::Object, None),
                    };
                    let (id, parent, shown) = (*object, *parent, name.to_string());
                    let (made, named, trashed, current) = (stamp, stamp, false, None);
                    let name = name.clone();
                    let node = Node { id, kind, made, parent, name, named, shown, trashed, current, target };
                    nodes.insert(id, node);
                    placements.push((stamp, id, parent, nodes[&id].name.clone(), true));
                }
                Change::SetName { object, parent, name, .. } => {
                    placements.push((stamp, *object, *parent, name.clone(), false));
                }
                _ => {}
            }
        }
        for (op, _, change) in self.changes() {
            if let Change::SetCurrent { object, version, .. } = change
                && let Some(node) = nodes.get_mut(object)
                && node.current.is_none_or(|current| current.set < op.stamp())
            {
                node.current = Some(Current { version: *version, set: op.stamp() });
            }
        }
        placements.sort_by_key(|(stamp, object, ..)| (*stamp, *object));
        let mut moves = Vec::new();
        let mut parents: BTreeMap<ObjectId, ObjectId> = BTreeMap::new();
        for (stamp, object, parent, name, placement) in placements {
            let effective = !is_above(&parents, object, parent);
            if effective && let Some(node) = nodes.get_mut(&object) {
                parents.insert(object, parent);
                (node.parent, node.name, node.named) = (parent, name.clone(), stamp);
            }
            moves.push(Move { stamp, object, parent, name, placement, effective });
        }
        (nodes, moves)
    }

    /// Purges of each kind of entry, each with the operations that its site had applied.
    fn purges(&self, is_collection: bool) -> Vec<(ObjectId, &Operation, VersionVector)> {
        let (mut all, mut seen) = (Vec::new(), self.seen());
        let collections: BTreeSet<ObjectId> = self
            .changes()
            .into_iter()
            .filter(|(_, _, change)| matches!(change, Change::MakeCollection { .. }))
            .map(|(_, _, change)| change.object())
            .collect();
        for (op, _, change) in self.changes() {
            if let Change::Purge { object } = change
                && collections.contains(object) == is_collection
            {
                all.push((*object, op, seen.entry(op.id).or_default().clone()));
            }
        }
        all
    }

    /// Deletions for which no rescuing operation exists that their site had not seen.
    fn deletions(&self) -> Vec<Deletion> {
        let mut all = Vec::new();
        for op in self.ops.values() {
            for change in &op.changes {
                let Change::Trash { object, saw, moved } = change.clone() else { continue };
                let mut unseen = self.ops.values().filter(|other| !saw.contains(other.id));
                let concerns = |id: &ObjectId| *id == object || moved.contains(id);
                if !unseen.any(|other| other.rescued().iter().any(concerns)) {
                    all.push(Deletion { object, op: op.id, stamp: op.stamp(), saw, moved, purge: false });
                }
            }
        }
        let (moved, purge) = (Vec::new(), true);
        for (object, op, saw) in self.purges(true) {
            let mut unseen = self.ops.values().filter(|other| !saw.contains(other.id));
            if !unseen.any(|other| other.rescued().contains(&object)) {
                all.push(Deletion { object, op: op.id, stamp: op.stamp(), saw, moved: moved.clone(), purge });
            }
        }
        for (object, op, _) in self.purges(false) {
            let (saw, moved) = (VersionVector::default(), moved.clone());
            all.push(Deletion { object, op: op.id, stamp: op.stamp(), saw, moved, purge });
        }
        all
    }

    /// Versions, and attributes and annotations whose tags no operation removed.
    fn rows(&self) -> Vec<Record> {
        let mut removed: BTreeSet<Tag> = BTreeSet::new();
        for (_, _, change) in self.changes() {
            if let Change::RemoveAttributes { tags, .. } | Change::RemoveAnnotations { tags, .. } = change {
                removed.extend(tags);
            }
        }
        let (purged, emptied) = (self.purges(false), self.purges(true));
        let is_purged = |tag: &Tag, change: &Change| {
            purged.iter().any(|(object, ..)| *object == change.object())
                || emptied.iter().any(|(object, _, saw)| *object == change.object() && saw.contains(tag.op))
        };
        let changes = self.changes().into_iter();
        let kept = changes.filter(|(_, tag, change)| !removed.contains(tag) && !is_purged(tag, change));
        kept.filter_map(|(op, tag, change)| match change.clone() {
            Change::AddVersion { object, size, hash, time, home } => {
                Some(Record::Version(Version { object, tag, size, hash, time, home }))
            }
            Change::AddAttribute { object, attribute } => {
                Some(Record::Attribute(TaggedAttribute { object, tag, attribute }))
            }
            Change::AddAnnotation { object, author, text } => {
                Some(Record::Annotation(Annotation { object, tag, stamp: op.stamp(), author, text }))
            }
            _ => None,
        })
        .collect()
    }

    /// Registers of replicas: the last writer wins.
    fn replicas(&self) -> Vec<Record> {
        let mut replicas: BTreeMap<(ObjectId, ReplicaPlace), Replica> = BTreeMap::new();
        for (op, _, change) in self.changes() {
            let (object, place, content) = match change.clone() {
                Change::SetReplica { object, place, version, state } => {
                    (object, place, Some((version, state)))
                }
                Change::RemoveReplica { object, place } => (object, place, None),
                _ => continue,
            };
            let replica = Replica { object, place: place.clone(), content, set: op.stamp() };
            let held = replicas.entry((object, place)).or_insert_with(|| replica.clone());
            if replica.set > held.set {
                *held = replica;
            }
        }
        let purged = self.purges(false);
        replicas.retain(|(id, _), _| purged.iter().all(|(object, ..)| object != id));
        replicas.into_values().map(Record::Replica).collect()
    }

    /// Operations that the origin of each operation had applied, that operation included.
    fn seen(&self) -> BTreeMap<OpId, VersionVector> {
        let mut seen: BTreeMap<OpId, VersionVector> = BTreeMap::new();
        let mut last = VersionVector::default();
        // The operations of one site follow each other in the order of ids.
        for op in self.ops.values() {
            if op.id.seq == 1 {
                last = VersionVector::default();
            }
            last.merge(&op.after);
            last.raise(op.id.site, op.id.seq);
            seen.insert(op.id, last.clone());
        }
        seen
    }

    /// Lost writes: each with the earliest later write of its register whose site had not seen it.
    fn disputes(&self) -> Vec<Record> {
        let seen = self.seen();
        let mut writes: BTreeMap<(DisputeKind, ObjectId), Vec<Write>> = BTreeMap::new();
        let mut settled: BTreeMap<ConflictId, Settlement> = BTreeMap::new();
        for (op, _, change) in self.changes() {
            let (kind, object) = match *change {
                Change::SetName { object, .. } => (DisputeKind::Name, object),
                Change::SetCurrent { object, .. } => (DisputeKind::Contents, object),
                Change::Settle { object, kind, lost, choice } => {
                    settled.insert(ConflictId { kind, object, lost }, Settlement { set: op.stamp(), choice });
                    continue;
                }
                _ => continue,
            };
            writes.entry((kind, object)).or_default().push(Write::of(op));
        }
        let mut records = Vec::new();
        for ((kind, object), writes) in writes {
            for (place, lost) in writes.iter().enumerate() {
                let mut later = writes[place + 1..].iter();
                let Some(won) = later.find(|later| !seen[&later.op()].contains(lost.op())) else { continue };
                let settled = settled.get(&ConflictId { kind, object, lost: lost.stamp }).copied();
                records.push(Record::Dispute(Dispute { kind, object, lost: *lost, won: *won, settled }));
            }
        }
        records
    }

    /// Registers of grants: the last writer wins.
    fn grants(&self) -> Vec<Record> {
        let mut grants: BTreeMap<(ObjectId, String), Grant> = BTreeMap::new();
        for (op, _, change) in self.changes() {
            if let Change::SetGrant { object, subject, right } = change.clone() {
                let grant = Grant { object, subject: subject.clone(), right, set: op.stamp() };
                grants.insert((object, subject), grant);
            }
        }
        grants.into_values().map(Record::Grant).collect()
    }

    /// Registers of facts: the last writer wins.
    fn facts(&self) -> Vec<Record> {
        let mut facts = BTreeMap::new();
        for (op, _, change) in self.changes() {
            if let Change::SetFact { kind, key, body } = change.clone() {
                facts.insert((kind, key.clone()), Fact { kind, key, body, set: op.stamp() });
            }
        }
        facts.into_values().map(Record::Fact).collect()
    }

    fn sites(&self) -> Vec<Record> {
        let mut sites: BTreeMap<_, SiteProgress> = BTreeMap::new();
        for op in self.ops.values() {
            let (site, seen) = (op.id.site, VersionVector::default());
            let progress = sites.entry(site).or_insert(SiteProgress { site, applied: 0, seen });
            progress.applied = progress.applied.max(op.id.seq);
            progress.seen.merge(&op.after);
        }
        sites.into_values().map(Record::Site).collect()
    }
}

/// True if `above` is `node` or lies on its way to the root.
fn is_above(parents: &BTreeMap<ObjectId, ObjectId>, above: ObjectId, node: ObjectId) -> bool {
    let mut at = Some(node);
    while let Some(here) = at {
        if here == above {
            return true;
        }
        at = parents.get(&here).copied();
    }
    false
}

/// Gives every visible node its shown name, from all its siblings.
fn show_names(nodes: &mut BTreeMap<ObjectId, Node>) {
    let visible: Vec<Node> = nodes.values().filter(|node| !node.trashed).cloned().collect();
    let given: BTreeSet<(ObjectId, String)> =
        visible.iter().map(|node| (node.parent, node.name.to_string())).collect();
    for node in nodes.values_mut() {
        node.shown = node.name.to_string();
        let earlier = |other: &&Node| {
            (other.parent, &other.name) == (node.parent, &node.name)
                && (other.named, other.id) < (node.named, node.id)
        };
        let before = visible.iter().filter(earlier).count();
        if !node.trashed && before > 0 {
            let numbers = (1..).map(|number| numbered(node.name.as_str(), number));
            let mut free = numbers.filter(|shown| !given.contains(&(node.parent, shown.clone())));
            node.shown = free.nth(before - 1).unwrap_or_default();
        }
    }
}
