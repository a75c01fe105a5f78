//! Changes of the tree: renaming and moving, the trash, and restoring from it.

use super::lookup::{WayFinder, child, node, resolve, resolve_collection};
use super::purge::is_purged;
use super::{Catalog, MAX_PAGE, Writer};
use crate::error::{CatalogError, Result};
use crate::hlc::Hlc;
use crate::ids::ObjectId;
use crate::name::{CatalogPath, Name};
use crate::operation::{Change, MAX_MOVED};
use crate::record::{Kind, Node};
use crate::store::row::{DELETION, RowReader};
use crate::store::tables::SqlTables;
use crate::store::{CatalogStore, SqlValue, collect};

/// Entry of the trash.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Trashed {
    /// Record of the object or collection, with its former place.
    pub node: Node,
    /// Path at which a restored entry would appear, if the collections above it are restored too.
    pub path: CatalogPath,
    /// Stamp of the latest deletion.
    pub deleted: Hlc,
}

impl<S: CatalogStore> Catalog<S> {
    /// Moves or renames an entry. The new path must be free.
    pub fn rename(&mut self, from: &CatalogPath, to: &CatalogPath) -> Result<()> {
        self.rename_over(from, to, false)
    }

    /// Moves or renames an object like [`rename`](Self::rename). With `replace` an object at the new path goes to the trash in
    /// the same transaction.
    pub fn rename_over(&mut self, from: &CatalogPath, to: &CatalogPath, replace: bool) -> Result<()> {
        const VERB: &str = "rename";
        self.write(|writer| {
            let (node, _) = resolve(writer.store, VERB, from)?.not_root(VERB)?;
            let refuse = |reason, remedy| Err(CatalogError::unsuitable(VERB, to, reason, remedy));
            let Some((above, shown)) = to.split_last() else {
                return refuse("it is the root", "give the new path of the entry");
            };
            if from.holds(to) && from != to {
                return refuse("it lies below the entry itself", "choose a place outside of it");
            }
            let collection = resolve_collection(writer.store, VERB, &above)?;
            match child(writer.store, collection.id(), shown)? {
                Some(found) if found.id == node.id && node.name.as_str() == shown => return Ok(()),
                Some(found) if found.id != node.id && replace => {
                    if found.kind == Kind::Collection || node.kind == Kind::Collection {
                        return refuse("a collection is not replaced", "delete it first");
                    }
                    writer.trash(VERB, to, found.id)?;
                }
                Some(found) if found.id != node.id => {
                    let remedy = "choose another name, or move that entry first";
                    return Err(CatalogError::exists(VERB, to, remedy));
                }
                _ => {}
            }
            let (object, parent, name) = (node.id, collection.id(), Name::new(shown)?);
            let change = Change::SetName { object, parent, name, replaces: node.named };
            writer.submit(vec![change], collection.above_children())?;
            Ok(())
        })
    }

    /// Moves an entry, with all below it, to the trash. It stays there until it is restored.
    pub fn trash(&mut self, path: &CatalogPath) -> Result<ObjectId> {
        self.trash_if(path, |_| true)
    }

    /// Moves an object or a link to the trash, and refuses a collection.
    pub fn trash_object(&mut self, path: &CatalogPath) -> Result<ObjectId> {
        self.trash_if(path, |kind| kind != Kind::Collection)
    }

    fn trash_if(&mut self, path: &CatalogPath, is_meant: impl Fn(Kind) -> bool) -> Result<ObjectId> {
        const VERB: &str = "delete";
        self.write(|writer| {
            let (node, _) = resolve(writer.store, VERB, path)?.not_root(VERB)?;
            if !is_meant(node.kind) {
                let remedy = "delete it recursively";
                return Err(CatalogError::unsuitable(VERB, path, "it is a collection", remedy));
            }
            writer.trash(VERB, path, node.id)?;
            Ok(node.id)
        })
    }

    /// Lists the trash after an id, at most `limit` and at most [`MAX_PAGE`] entries.
    pub fn list_trash(&mut self, after: Option<ObjectId>, limit: usize) -> Result<Vec<Trashed>> {
        let limit = limit.clamp(1, MAX_PAGE) as u64;
        self.read(|store| {
            let sql = "SELECT DISTINCT object FROM deletions d WHERE object > ?1 AND NOT EXISTS
                (SELECT 1 FROM deletions p WHERE p.object = d.object AND p.purge = 1) ORDER BY object LIMIT ?2";
            let values = [after.unwrap_or(ObjectId::ROOT).into(), SqlValue::from(limit)];
            let objects = collect(store, sql, &values, RowReader::object)?;
            objects.into_iter().map(|object| trashed(store, object)).collect()
        })
    }

    /// Finds an entry of the trash by its id; nothing if it is not there.
    pub fn trashed(&mut self, id: ObjectId) -> Result<Option<Trashed>> {
        self.read(|store| {
            let is_trashed = node(store, id)?.is_some_and(|node| node.trashed) && !is_purged(store, id)?;
            is_trashed.then(|| trashed(store, id)).transpose()
        })
    }

    /// Takes an entry out of the trash, to its former place or to a new path. Returns its path.
    ///
    /// At its former place another entry may have its name by now; then it is shown under a numbered one.
    pub fn restore(&mut self, id: ObjectId, to: Option<&CatalogPath>) -> Result<CatalogPath> {
        const VERB: &str = "restore";
        self.write(|writer| {
            let refuse = |reason, remedy| Err(CatalogError::unsuitable_id(VERB, id, reason, remedy));
            let Some(found) = node(writer.store, id)?.filter(|node| node.trashed) else {
                return refuse("it is not in the trash", "list the trash to see what is");
            };
            if is_purged(writer.store, id)? {
                return refuse("it is purged", "put it again");
            }
            let (parent, name, under, is_moved) = if let Some(to) = to {
                let Some((above, shown)) = to.split_last() else {
                    return refuse("its new path is the root", "give a path below it");
                };
                let collection = resolve_collection(writer.store, VERB, &above)?;
                if child(writer.store, collection.id(), shown)?.is_some() {
                    return Err(CatalogError::exists(VERB, to, "choose another path"));
                }
                (collection.id(), Name::new(shown)?, collection.above_children(), true)
            } else {
                let mut finder = WayFinder::default();
                let Some(way) = finder.way(writer.store, found.parent)? else {
                    let remedy = "restore that first, or give a new path";
                    return refuse("the collection above it is in the trash", remedy);
                };
                let under = way.ids.clone();
                // A fresh stamp makes it the later of two equal names, so that the other keeps its own.
                let is_taken = child(writer.store, found.parent, found.name.as_str())?.is_some();
                (found.parent, found.name.clone(), under, is_taken)
            };
            let mut changes = vec![Change::Restore { object: id }];
            if is_moved {
                changes.push(Change::SetName { object: id, parent, name, replaces: found.named });
            }
            writer.submit(changes, under)?;
            let Some(restored) = node(writer.store, id)? else {
                return Err(CatalogError::Damaged(format!("{id} has no record")));
            };
            let mut finder = WayFinder::default();
            let above = finder.way(writer.store, restored.parent)?;
            let above = above.ok_or_else(|| CatalogError::Damaged(format!("{id} has no path")))?;
            Ok(above.path.child(&restored.shown)?)
        })
    }
}

/// Entry of the trash with its latest deletion.
fn trashed<S: CatalogStore>(store: &mut S, object: ObjectId) -> Result<Trashed> {
    let deletions = format!("SELECT {DELETION} FROM deletions WHERE object = ?1");
    let deletions = collect(store, &deletions, &[object.into()], RowReader::deletion)?;
    let deleted = deletions.iter().map(|deletion| deletion.stamp).max();
    let Some((node, deleted)) = node(store, object)?.zip(deleted) else {
        return Err(CatalogError::Damaged(format!("deletion of {object} without its record")));
    };
    let path = former_path(store, &node)?;
    Ok(Trashed { node, path, deleted })
}

/// Path of an entry with its collections, also of those in the trash.
pub(super) fn former_path<S: CatalogStore>(store: &mut S, entry: &Node) -> Result<CatalogPath> {
    let (mut names, mut at) = (vec![entry.name.as_str().to_owned()], entry.parent);
    while !at.is_root() {
        let Some(above) = node(store, at)? else {
            return Err(CatalogError::Damaged(format!("collection {at} has no record")));
        };
        names.push(above.shown);
        at = above.parent;
    }
    Ok(names.iter().rev().try_fold(CatalogPath::root(), |path, name| path.child(name))?)
}

impl<S: CatalogStore> Writer<'_, S> {
    fn trash(&mut self, verb: &'static str, path: &CatalogPath, object: ObjectId) -> Result<()> {
        let deletion = self.ledger.deletion(&mut SqlTables::new(self.store), object)?;
        if matches!(&deletion, Change::Trash { moved, .. } if moved.len() > MAX_MOVED) {
            let reason = "more than 4096 entries were moved into it that other sites have not seen";
            let remedy = "exchange operations with the other sites first";
            return Err(CatalogError::unsuitable(verb, path, reason, remedy));
        }
        self.submit(vec![deletion], Vec::new())?;
        Ok(())
    }
}
