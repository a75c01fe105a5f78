//! Merge rules: the effect of one operation on the tables of a catalog.
//!
//! The same code serves the state in memory and both databases, through [`Tables`]. Operations arrive in causal order
//! (`delivery`); concurrent ones may arrive in any order, and the resulting records are the same. Writing the log and
//! the progress of sites is the caller's part.

mod deletions;
mod disputes;
mod moves;
mod shown_names;

use crate::dispute::{Dispute, DisputeKind};
use crate::error::{CatalogError, Result};
use crate::fact::{Fact, FactKind};
use crate::grant::Grant;
use crate::hlc::Hlc;
use crate::ids::{ObjectId, OpId, SiteId};
use crate::name::Name;
use crate::operation::{Change, InvalidOperation, Operation, ReplicaPlace};
use crate::record::{
    Annotation, Current, Deletion, Kind, Move, Node, Record, RecordKey, Replica, SiteProgress,
    TaggedAttribute, Version,
};
use crate::vector::VersionVector;
use std::collections::{BTreeMap, BTreeSet};

pub(crate) use deletions::{RecentOperations, acknowledged, deletion, removable};

/// Order in which moves of collections are replayed.
pub(crate) type MoveKey = (Hlc, ObjectId);

/// Tables of one catalog, within one transaction.
pub(crate) trait Tables {
    /// Reads an object or a collection. The root has no record.
    fn node(&mut self, id: ObjectId) -> Result<Option<Node>>;
    /// Reads the children of `parent` that are not in the trash and whose given name is `name`.
    fn named(&mut self, parent: ObjectId, name: &str) -> Result<Vec<Node>>;
    /// True if `node` is `above` or lies anywhere below it.
    fn is_below(&mut self, node: ObjectId, above: ObjectId) -> Result<bool>;
    /// Reads the register of a replica.
    fn replica(&mut self, object: ObjectId, place: &ReplicaPlace) -> Result<Option<Replica>>;
    /// Reads the register of the right of a subject on an entry.
    fn grant(&mut self, object: ObjectId, subject: &str) -> Result<Option<Grant>>;
    /// Reads the register of a fact.
    fn fact(&mut self, kind: FactKind, key: &str) -> Result<Option<Fact>>;
    /// Reads the moves after `key`, in their order, without placements.
    fn moves_after(&mut self, key: MoveKey) -> Result<Vec<Move>>;
    /// Reads the last effective move of a collection before `key`, or else its placement, even a later one.
    fn place_before(&mut self, object: ObjectId, key: MoveKey) -> Result<Option<Move>>;
    /// Reads the stamp of the last move or placement of a collection, an effective one or not.
    fn last_move(&mut self, object: ObjectId) -> Result<Option<Hlc>>;
    /// Reads the conflict in which a write of an object lost.
    fn dispute(&mut self, kind: DisputeKind, object: ObjectId, lost: Hlc) -> Result<Option<Dispute>>;
    /// Reads the deletions in force that concern some objects: by their object or by their moved entries.
    fn deletions(&mut self, objects: &[ObjectId]) -> Result<Vec<Deletion>>;
    /// Reads the identities of the attributes and annotations of an entry.
    fn tagged(&mut self, object: ObjectId) -> Result<Vec<RecordKey>>;
    /// Removes the versions, attributes, annotations and replicas of a purged object.
    fn erase(&mut self, object: ObjectId) -> Result<()>;
    /// Reads the applied operations that `saw` does not count.
    fn log_beyond(&mut self, saw: &VersionVector) -> Result<Vec<Operation>>;
    /// Reads the operations that are removed from the log, but for some that recorded conflicts name.
    fn compacted(&mut self) -> Result<VersionVector>;
    /// Reads one applied operation that is still in the log.
    fn logged(&mut self, id: OpId) -> Result<Option<Operation>>;
    /// Reads the progress of a site.
    fn progress(&mut self, site: SiteId) -> Result<Option<SiteProgress>>;
    /// Appends an operation and its encoded form to the log.
    fn append(&mut self, op: &Operation, bytes: Vec<u8>) -> Result<()>;
    /// Writes a record in the place of the one with the same identity.
    fn put(&mut self, record: Record) -> Result<()>;
    /// Removes a record; a missing one is no error.
    fn remove(&mut self, key: RecordKey) -> Result<()>;
}

/// Conflict that merging resolved by rule. It tells people; the state does not depend on it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Conflict {
    /// Entry shown under another name, because an earlier one has its name.
    SameName {
        /// Entry that is shown under another name.
        object: ObjectId,
        /// Name under which it is shown.
        shown: String,
    },
    /// Two sites set the same name register; the later stamp stays.
    Renamed {
        /// Entry that was renamed or moved twice.
        object: ObjectId,
        /// Operation that arrived later.
        op: OpId,
    },
    /// Two sites set the current version; the later stamp stays.
    Versions {
        /// Object with two new versions.
        object: ObjectId,
        /// Operation that arrived later.
        op: OpId,
    },
    /// Move without effect, because it would have made a cycle.
    CycleAvoided {
        /// Collection that stays in its place.
        object: ObjectId,
    },
    /// Deletion without effect, because another site changed the object.
    Rescued {
        /// Object or collection that stays out of the trash.
        object: ObjectId,
    },
}

/// Merging of one operation.
struct Merge<'a, T> {
    tables: &'a mut T,
    op: &'a Operation,
    /// Operations that the origin had applied, this one included.
    saw: &'a VersionVector,
    /// Nodes that were read or changed; `true` marks unwritten ones.
    nodes: BTreeMap<ObjectId, (Node, bool)>,
    /// Parents and names whose shown names may have changed.
    families: BTreeSet<(ObjectId, String)>,
    conflicts: Vec<Conflict>,
}

/// Applies an operation that is next in causal order. An invalid one changes nothing.
pub(crate) fn apply<T: Tables>(
    tables: &mut T,
    op: &Operation,
    saw: &VersionVector,
    recent: &mut RecentOperations,
) -> Result<Vec<Conflict>> {
    let (nodes, families, conflicts) = (BTreeMap::new(), BTreeSet::new(), Vec::new());
    let mut merge = Merge { tables, op, saw, nodes, families, conflicts };
    merge.check_references()?;
    for (place, change) in op.changes.iter().enumerate() {
        merge.change(place, change, recent)?;
    }
    merge.rescue()?;
    merge.erase_purged()?;
    merge.flush()?;
    merge.refresh_shown_names()?;
    recent.note(op);
    Ok(merge.conflicts)
}

impl<T: Tables> Merge<'_, T> {
    /// Checks that everything the operation refers to is there, before anything is changed.
    fn check_references(&mut self) -> Result<()> {
        let mut made = BTreeMap::new();
        let op = self.op;
        op.check()?;
        for change in &op.changes {
            let object = change.object();
            let kind = self.kind(object, &made)?;
            let reason = match (change, kind) {
                (Change::MakeCollection { object, parent, name }, Some(Kind::Collection))
                    if *object == ObjectId::of_collection(*parent, name) =>
                {
                    ""
                }
                (
                    Change::MakeCollection { .. } | Change::MakeObject { .. } | Change::MakeLink { .. },
                    found,
                ) => found.map_or("", |_| "exists already"),
                (Change::SetGrant { .. } | Change::SetFact { .. }, None) if object.is_root() => "",
                (_, None) => "was never made",
                (
                    Change::AddVersion { .. } | Change::SetCurrent { .. } | Change::SetReplica { .. },
                    Some(Kind::Collection | Kind::Link),
                ) => "is no object",
                _ => "",
            };
            if !reason.is_empty() {
                return Err(self.invalid(object, reason));
            }
            if let Change::Settle { kind, lost, .. } = change
                && self.tables.dispute(*kind, object, *lost)?.is_none()
            {
                return Err(self.invalid(object, "has no such conflict"));
            }
            if let Change::MakeCollection { parent, .. }
            | Change::MakeObject { parent, .. }
            | Change::MakeLink { parent, .. }
            | Change::SetName { parent, .. } = change
                && !parent.is_root()
                && self.kind(*parent, &made)? != Some(Kind::Collection)
            {
                return Err(self.invalid(*parent, "is no collection"));
            }
            if let Change::MakeLink { target, .. } = change
                && self.kind(*target, &made)? != Some(Kind::Object)
            {
                return Err(self.invalid(*target, "is no object"));
            }
            match change {
                Change::MakeCollection { .. } => made.insert(object, Kind::Collection),
                Change::MakeObject { .. } => made.insert(object, Kind::Object),
                Change::MakeLink { .. } => made.insert(object, Kind::Link),
                _ => None,
            };
        }
        Ok(())
    }

    fn kind(&mut self, id: ObjectId, made: &BTreeMap<ObjectId, Kind>) -> Result<Option<Kind>> {
        match made.get(&id) {
            Some(kind) => Ok(Some(*kind)),
            None => Ok(self.find(id)?.map(|node| node.kind)),
        }
    }

    fn invalid(&self, object: ObjectId, reason: &str) -> CatalogError {
        InvalidOperation { id: self.op.id, reason: format!("{object} {reason}") }.into()
    }

    /// Reads a node once.
    fn find(&mut self, id: ObjectId) -> Result<Option<Node>> {
        if let Some((node, _)) = self.nodes.get(&id) {
            return Ok(Some(node.clone()));
        }
        let node = self.tables.node(id)?;
        if let Some(node) = &node {
            self.nodes.insert(id, (node.clone(), false));
        }
        Ok(node)
    }

    /// Reads a node that `check_references` has found.
    fn existing(&mut self, id: ObjectId) -> Result<Node> {
        self.find(id)?.ok_or_else(|| self.invalid(id, "was never made"))
    }

    /// Keeps a changed node until the next `flush`.
    fn keep(&mut self, node: Node) {
        self.nodes.insert(node.id, (node, true));
    }

    /// Writes changed nodes, so that searches of the tables find them.
    fn flush(&mut self) -> Result<()> {
        for (node, is_changed) in self.nodes.values_mut() {
            if std::mem::take(is_changed) {
                self.tables.put(Record::Node(node.clone()))?;
            }
        }
        Ok(())
    }

    fn change(&mut self, place: usize, change: &Change, recent: &mut RecentOperations) -> Result<()> {
        let (stamp, tag) = (self.op.stamp(), self.op.tag(place));
        match change.clone() {
            Change::MakeCollection { object, parent, name } => {
                self.make(object, Kind::Collection, parent, name, None)
            }
            Change::MakeObject { object, parent, name } => {
                self.make(object, Kind::Object, parent, name, None)
            }
            Change::MakeLink { object, parent, name, target } => {
                self.make(object, Kind::Link, parent, name, Some(target))
            }
            Change::SetName { object, parent, name, replaces } => {
                self.dispute_name(object, replaces, recent)?;
                self.set_name(object, parent, name, replaces)
            }
            Change::AddVersion { object, size, hash, time, home } => {
                self.tables.put(Record::Version(Version { object, tag, size, hash, time, home }))
            }
            Change::SetCurrent { object, version, replaces } => {
                let mut node = self.existing(object)?;
                let held = node.current.map(|current| current.set);
                let is_purged = self.is_purged(&node)?;
                if held != replaces || is_purged {
                    self.dispute(DisputeKind::Contents, object, recent)?;
                    self.conflicts.push(Conflict::Versions { object, op: self.op.id });
                }
                if !is_purged && held.is_none_or(|held| stamp > held) {
                    node.current = Some(Current { version, set: stamp });
                    self.keep(node);
                }
                Ok(())
            }
            Change::SetReplica { object, place, version, state } => {
                self.set_replica(Replica { object, place, content: Some((version, state)), set: stamp })
            }
            Change::RemoveReplica { object, place } => {
                self.set_replica(Replica { object, place, content: None, set: stamp })
            }
            Change::AddAttribute { object, attribute } => {
                self.tables.put(Record::Attribute(TaggedAttribute { object, tag, attribute }))
            }
            Change::RemoveAttributes { object, tags } => {
                tags.iter().try_for_each(|tag| self.tables.remove(RecordKey::Attribute(object, *tag)))
            }
            Change::AddAnnotation { object, author, text } => {
                self.tables.put(Record::Annotation(Annotation { object, tag, stamp, author, text }))
            }
            Change::RemoveAnnotations { object, tags } => {
                tags.iter().try_for_each(|tag| self.tables.remove(RecordKey::Annotation(object, *tag)))
            }
            Change::Trash { object, saw, moved } => self.trash(object, saw, moved, recent),
            Change::Purge { object } => self.purge(object, recent),
            Change::SetGrant { object, subject, right } => {
                self.set_grant(Grant { object, subject, right, set: stamp })
            }
            Change::SetFact { kind, key, body } => self.set_fact(Fact { kind, key, body, set: stamp }),
            Change::Restore { .. } => Ok(()),
            Change::Settle { object, kind, lost, choice } => self.settle(kind, object, lost, choice),
        }
    }

    fn make(
        &mut self,
        id: ObjectId,
        kind: Kind,
        parent: ObjectId,
        name: Name,
        target: Option<ObjectId>,
    ) -> Result<()> {
        let stamp = self.op.stamp();
        if let Some(node) = self.find(id)? {
            return self.make_again(node, parent, name);
        }
        if kind == Kind::Collection {
            let name = name.clone();
            let placement = Move { stamp, object: id, parent, name, placement: true, effective: true };
            self.tables.put(Record::Move(placement))?;
        }
        self.families.insert((parent, name.to_string()));
        let (shown, trashed, current) = (name.to_string(), false, None);
        self.keep(Node {
            id,
            kind,
            made: stamp,
            parent,
            name,
            named: stamp,
            shown,
            trashed,
            current,
            target,
        });
        Ok(())
    }

    /// Makes a collection that another site has made under the same name. The earliest placement counts, whichever comes first.
    fn make_again(&mut self, mut node: Node, parent: ObjectId, name: Name) -> Result<()> {
        let (object, stamp, placed) = (node.id, self.op.stamp(), node.made);
        if stamp >= placed {
            return Ok(());
        }
        self.tables.remove(RecordKey::Placement(object, placed))?;
        let placement = Move { stamp, object, parent, name, placement: true, effective: true };
        self.tables.put(Record::Move(placement))?;
        if node.named == placed {
            self.families.insert((node.parent, node.name.to_string()));
            node.shown = node.name.to_string();
            node.named = stamp;
        }
        node.made = stamp;
        self.keep(node);
        Ok(())
    }

    /// Last writer wins, revocation included.
    fn set_grant(&mut self, grant: Grant) -> Result<()> {
        let held = self.tables.grant(grant.object, &grant.subject)?;
        if held.is_none_or(|held| grant.set >= held.set) {
            self.tables.put(Record::Grant(grant))?;
        }
        Ok(())
    }

    /// Last writer wins, removal included.
    fn set_fact(&mut self, fact: Fact) -> Result<()> {
        let held = self.tables.fact(fact.kind, &fact.key)?;
        if held.is_none_or(|held| fact.set >= held.set) {
            self.tables.put(Record::Fact(fact))?;
        }
        Ok(())
    }

    /// Last writer wins, removal included.
    fn set_replica(&mut self, replica: Replica) -> Result<()> {
        let held = self.tables.replica(replica.object, &replica.place)?;
        if held.is_none_or(|held| replica.set > held.set) {
            self.tables.put(Record::Replica(replica))?;
        }
        Ok(())
    }
}
