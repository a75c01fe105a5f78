//! Batch of local operations in one transaction, which finds their collection once.

use super::Writer;
use super::host::Host;
use super::links::{follow, resolve_object};
use super::lookup::{Resolved, resolve_collection};
use super::stat::attributes_of;
use crate::error::{CatalogError, Result};
use crate::ids::{ObjectId, Tag};
use crate::ledger::Ledger;
use crate::merge::Conflict;
use crate::name::CatalogPath;
use crate::operation::Change;
use crate::record::{Node, TaggedAttribute};
use crate::store::CatalogStore;
use crate::store::tables::SqlTables;

/// Batch of operations that put objects or change attributes.
pub(super) struct Batch<'a, S> {
    tables: SqlTables<'a, S>,
    host: &'a mut dyn Host,
    ledger: &'a mut Ledger,
    /// Collection that was found last. No operation of a batch moves one, but a new object may change its shown name.
    collection: Option<(CatalogPath, Resolved)>,
}

impl<S: CatalogStore> Writer<'_, S> {
    /// Makes several operations, and writes their rows together.
    pub(super) fn batch<T>(&mut self, work: impl FnOnce(&mut Batch<'_, S>) -> Result<T>) -> Result<T> {
        let tables = SqlTables::new(self.store);
        let mut batch = Batch { tables, host: self.host, ledger: &mut self.ledger, collection: None };
        let done = work(&mut batch)?;
        batch.tables.flush()?;
        Ok(done)
    }
}

impl<S: CatalogStore> Batch<'_, S> {
    /// Collection that a path names.
    pub(super) fn collection(&mut self, verb: &'static str, path: &CatalogPath) -> Result<Resolved> {
        if let Some((known, found)) = &self.collection
            && known == path
        {
            return Ok(found.clone());
        }
        let found = resolve_collection(self.tables.settled()?, verb, path)?;
        self.collection = Some((path.clone(), found.clone()));
        Ok(found)
    }

    /// Visible child of a collection with a shown name.
    pub(super) fn child(&mut self, collection: &Resolved, shown: &str) -> Result<Option<Node>> {
        self.tables.child(collection.id(), shown)
    }

    /// Entry that a path names, or the target of the link that it names.
    pub(super) fn entry(&mut self, verb: &'static str, path: &CatalogPath) -> Result<Resolved> {
        if let Some((above, shown)) = path.split_last() {
            let collection = match self.collection(verb, &above) {
                Ok(collection) => Some(collection),
                Err(CatalogError::NotFound { .. } | CatalogError::Unsuitable { .. }) => None,
                Err(error) => return Err(error),
            };
            if let Some(collection) = collection
                && let Some(node) = self.tables.child(collection.id(), shown)?
            {
                return self.follow(
                    verb,
                    path,
                    Resolved { above: collection.above_children(), node: Some(node) },
                );
            }
        }
        resolve_object(self.tables.settled()?, verb, path)
    }

    /// Target of an entry that is a link, and any other entry itself.
    pub(super) fn follow(
        &mut self,
        verb: &'static str,
        path: &CatalogPath,
        found: Resolved,
    ) -> Result<Resolved> {
        if found.is_link() { follow(self.tables.settled()?, verb, path, found) } else { Ok(found) }
    }

    /// Attributes of an entry.
    pub(super) fn attributes(&mut self, object: ObjectId) -> Result<Vec<TaggedAttribute>> {
        attributes_of(self.tables.settled_attributes(object)?, object)
    }

    /// Makes an id that nothing has yet.
    pub(super) fn fresh_id(&mut self) -> ObjectId {
        let id = self.host.object_id();
        self.tables.note_fresh(id);
        id
    }

    /// Tag of a change of the next operation.
    pub(super) fn next_tag(&self, place: usize) -> Tag {
        Tag { op: self.ledger.next_op(), index: place as u16 }
    }

    /// Makes one operation of the changes, applies it and logs it.
    pub(super) fn submit(&mut self, changes: Vec<Change>, under: Vec<ObjectId>) -> Result<Vec<Conflict>> {
        let now = self.host.now();
        let (_, conflicts) = self.ledger.local(&mut self.tables, changes, under, now)?;
        if !conflicts.is_empty() {
            self.collection = None;
        }
        Ok(conflicts)
    }
}
