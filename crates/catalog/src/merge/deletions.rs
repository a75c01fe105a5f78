//! Deletions and rescues: a change that the deleting site had not seen takes the object out of the trash.
//!
//! A deletion names the operations that its site had applied. It is in force as long as every applied operation that
//! rescues its object is among them. Operations only ever arrive, so a deletion that lost its force never regains it.
//! A change below a collection rescues the collection too: the operation lists the collections above its objects.
//! A purge is a deletion that also removes contents. Nothing rescues a purged object.

use super::{Conflict, Merge, Tables};
use crate::dispute::{DisputeKind, Write};
use crate::error::{CatalogError, Result};
use crate::ids::{ObjectId, OpId, SiteId};
use crate::operation::{Change, Operation};
use crate::record::{Deletion, Kind, Node, Record, RecordKey};
use crate::vector::VersionVector;
use std::collections::{BTreeSet, HashMap};

/// Index of recent operations by the objects that they rescue or write, kept while a batch is applied.
///
/// It is read from the log when the first remote deletion or conflict arrives, and holds only operations that the deleting site had
/// not seen.
#[derive(Debug, Default)]
pub(crate) struct RecentOperations {
    /// Operations from which the index starts; nothing before it is read.
    from: Option<VersionVector>,
    /// Operations that the log no longer has.
    compacted: Option<VersionVector>,
    /// Last rescuing operation of each site, by object.
    rescues: HashMap<ObjectId, VersionVector>,
    /// Writes of the registers of each object.
    writes: HashMap<(DisputeKind, ObjectId), Vec<Write>>,
}

impl RecentOperations {
    /// Adds an operation that was applied.
    pub(super) fn note(&mut self, op: &Operation) {
        if self.from.is_some() {
            self.add(op);
        }
    }

    fn add(&mut self, op: &Operation) {
        for object in op.rescued() {
            self.rescues.entry(object).or_default().raise(op.id.site, op.id.seq);
        }
        for change in &op.changes {
            let kind = match change {
                Change::SetName { .. } => DisputeKind::Name,
                Change::SetCurrent { .. } => DisputeKind::Contents,
                _ => continue,
            };
            self.writes.entry((kind, change.object())).or_default().push(Write::of(op));
        }
    }

    /// Reads the index from the log, unless it holds all operations that `saw` does not count.
    fn load<T: Tables>(&mut self, tables: &mut T, saw: &VersionVector) -> Result<()> {
        if self.from.as_ref().is_some_and(|from| saw.includes(from)) {
            return Ok(());
        }
        let mut from = saw.clone();
        if let Some(before) = &self.from {
            from.meet(before);
        }
        let log = tables.log_beyond(&from)?;
        *self = Self { from: Some(from), compacted: self.compacted.take(), ..Self::default() };
        for op in &log {
            self.add(op);
        }
        Ok(())
    }

    /// Refuses an operation if the log no longer has changes of the object that its origin had not seen.
    ///
    /// The origin of each known site has seen all operations that are removed. A site that starts on its own, and then
    /// joins, has seen none. If it made the object, no removed operation changes that.
    fn check_kept<T: Tables>(
        &mut self,
        tables: &mut T,
        op: OpId,
        object: ObjectId,
        saw: &VersionVector,
    ) -> Result<()> {
        let compacted = match &mut self.compacted {
            Some(known) => known,
            unknown => unknown.insert(tables.compacted()?),
        };
        if saw.includes(compacted) {
            return Ok(());
        }
        match tables.node(object)? {
            Some(node) if compacted.get(node.made.site) > 0 => Err(CatalogError::Stale { id: op }),
            _ => Ok(()),
        }
    }

    /// Applied writes of a register that `saw`, the operations known to the origin of `op`, does not count.
    pub(super) fn unseen_writes<T: Tables>(
        &mut self,
        tables: &mut T,
        op: OpId,
        (kind, object): (DisputeKind, ObjectId),
        saw: &VersionVector,
    ) -> Result<Vec<Write>> {
        self.check_kept(tables, op, object, saw)?;
        self.load(tables, saw)?;
        let writes = self.writes.get(&(kind, object)).into_iter().flatten();
        Ok(writes.filter(|write| !saw.contains(write.op())).copied().collect())
    }

    /// True if an applied operation that `saw`, the operations known to the origin of `op`, does not count rescues the
    /// object.
    fn is_rescued<T: Tables>(
        &mut self,
        tables: &mut T,
        op: OpId,
        object: ObjectId,
        saw: &VersionVector,
    ) -> Result<bool> {
        self.check_kept(tables, op, object, saw)?;
        self.load(tables, saw)?;
        Ok(self.rescues.get(&object).is_some_and(|last| !saw.includes(last)))
    }
}

/// Operations that every known site had applied when it made the last of its operations that are applied here.
pub(crate) fn acknowledged<T: Tables>(
    tables: &mut T,
    own: SiteId,
    applied: &VersionVector,
) -> Result<VersionVector> {
    let mut seen_by_all = applied.clone();
    for (site, seq) in applied.iter().filter(|(site, _)| *site != own) {
        let mut seen = tables.progress(site)?.map(|progress| progress.seen).unwrap_or_default();
        seen.raise(site, seq);
        seen_by_all.meet(&seen);
    }
    Ok(seen_by_all)
}

/// Operations that need not stay in the log of a site. A site that knows no other keeps all: a site that it joins later may
/// have removed its own ones, and then neither could take the snapshot of the other.
pub(crate) fn removable<T: Tables>(
    tables: &mut T,
    own: SiteId,
    applied: &VersionVector,
) -> Result<VersionVector> {
    if applied.iter().all(|(site, _)| site == own) {
        return Ok(VersionVector::default());
    }
    acknowledged(tables, own, applied)
}

/// Change that moves an entry to the trash, as a site makes it.
///
/// Another site lists the collections above the entries that it changes, as it knows them. An entry may lie below this
/// one without that site's knowledge, if it has not seen the move that brought it there. Such entries are listed.
///
/// A tree that no site knew is not covered: moves without effect at the deleting site may regain their effect later.
pub(crate) fn deletion<T: Tables>(
    tables: &mut T,
    own: SiteId,
    applied: &VersionVector,
    object: ObjectId,
) -> Result<Change> {
    let mut seen_by_all = acknowledged(tables, own, applied)?;
    // A site that has just joined may have seen less than the log still has.
    seen_by_all.merge(&tables.compacted()?);
    let mut candidates = BTreeSet::new();
    for op in tables.log_beyond(&seen_by_all)? {
        let moves = op.changes.iter().filter(|change| matches!(change, Change::SetName { .. }));
        candidates.extend(moves.map(Change::object));
    }
    candidates.remove(&object);
    let mut moved = Vec::new();
    for entry in candidates {
        if tables.is_below(entry, object)? {
            moved.push(entry);
        }
    }
    Ok(Change::Trash { object, saw: applied.clone(), moved })
}

impl<T: Tables> Merge<'_, T> {
    pub(super) fn trash(
        &mut self,
        object: ObjectId,
        saw: VersionVector,
        moved: Vec<ObjectId>,
        recent: &mut RecentOperations,
    ) -> Result<()> {
        for entry in [object].iter().chain(&moved) {
            if recent.is_rescued(self.tables, self.op.id, *entry, &saw)? {
                self.conflicts.push(Conflict::Rescued { object });
                return Ok(());
            }
        }
        let (op, stamp) = (self.op.id, self.op.stamp());
        self.tables.put(Record::Deletion(Deletion { object, op, stamp, saw, moved, purge: false }))?;
        self.set_trashed(object, true)
    }

    /// Removes a collection's attributes and annotations that the origin saw, and hides the entry.
    pub(super) fn purge(&mut self, object: ObjectId, recent: &mut RecentOperations) -> Result<()> {
        let (op, stamp, mut saw) = (self.op.id, self.op.stamp(), VersionVector::default());
        if self.existing(object)?.kind == Kind::Collection {
            saw.clone_from(self.saw);
            for key in self.tables.tagged(object)? {
                if key.op().is_some_and(|op| saw.contains(op)) {
                    self.tables.remove(key)?;
                }
            }
            if recent.is_rescued(self.tables, op, object, &saw)? {
                self.conflicts.push(Conflict::Rescued { object });
                return Ok(());
            }
        }
        let purge = Deletion { object, op, stamp, saw, moved: Vec::new(), purge: true };
        self.tables.put(Record::Deletion(purge))?;
        self.set_trashed(object, true)
    }

    /// True for an entry with a purge in force, which is always in the trash.
    pub(super) fn is_purged(&mut self, node: &Node) -> Result<bool> {
        if !node.trashed {
            return Ok(false);
        }
        let deletions = self.tables.deletions(&[node.id])?;
        Ok(deletions.iter().any(|deletion| deletion.purge && deletion.object == node.id))
    }

    /// Removes the contents of purged objects that the operation has changed, whichever came first.
    pub(super) fn erase_purged(&mut self) -> Result<()> {
        let objects: BTreeSet<ObjectId> = self.op.changes.iter().map(Change::object).collect();
        for object in objects {
            let Some(mut node) = self.find(object)? else { continue };
            if node.kind != Kind::Collection && self.is_purged(&node)? {
                self.tables.erase(object)?;
                if node.current.take().is_some() {
                    self.keep(node);
                }
            }
        }
        Ok(())
    }

    /// Ends the deletions that had not seen this operation, for all objects that it rescues.
    pub(super) fn rescue(&mut self) -> Result<()> {
        let rescued = self.op.rescued();
        if rescued.is_empty() {
            return Ok(());
        }
        for deletion in self.tables.deletions(&rescued)? {
            if deletion.saw.contains(self.op.id) {
                continue;
            }
            let object = deletion.object;
            if deletion.purge && self.existing(object)?.kind != Kind::Collection {
                continue;
            }
            self.tables.remove(RecordKey::Deletion(object, deletion.op))?;
            if !self.op.changes.contains(&Change::Restore { object }) {
                self.conflicts.push(Conflict::Rescued { object });
            }
            let left = self.tables.deletions(&[object])?;
            if left.iter().all(|other| other.object != object) {
                self.set_trashed(object, false)?;
            }
        }
        Ok(())
    }

    fn set_trashed(&mut self, object: ObjectId, trashed: bool) -> Result<()> {
        let mut node = self.existing(object)?;
        if node.trashed != trashed {
            self.families.insert((node.parent, node.name.to_string()));
            node.shown = node.name.to_string();
            node.trashed = trashed;
            self.keep(node);
        }
        Ok(())
    }
}
