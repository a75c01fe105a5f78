//! Objects: putting versions, and choosing the current one. Contents are never overwritten.

use super::Catalog;
use super::batch::Batch;
use super::links::resolve_object;
use super::lookup::Resolved;
use crate::error::{CatalogError, Result};
use crate::ids::{ContentHash, Nanos, ObjectId, Tag};
use crate::name::{CatalogPath, Name};
use crate::operation::{Change, ReplicaPlace, ReplicaState};
use crate::record::Kind;
use crate::store::row::RowReader;
use crate::store::{CatalogStore, SqlValue, optional};
use crate::value::Attribute;

/// Contents of a new version.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewVersion {
    /// Length of the contents in bytes.
    pub size: u64,
    /// Hash of the contents.
    pub hash: ContentHash,
    /// Time at which the contents were made.
    pub time: Nanos,
}

/// Copy of the contents of a new version in a vault of this site.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewReplica {
    /// Name of the vault.
    pub vault: String,
    /// Key of the bytes in the vault.
    pub key: String,
    /// State of the replica.
    pub state: ReplicaState,
}

/// Request to add a version to an object, which is made if it is missing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Put {
    /// Path of the object; its collection must exist.
    pub path: CatalogPath,
    /// Contents of the version.
    pub version: NewVersion,
    /// Copies of the contents.
    pub replicas: Vec<NewReplica>,
    /// Attributes to add to the object.
    pub attributes: Vec<Attribute>,
}

/// Effect of a put: one operation with all its parts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stored {
    /// Object that has the version.
    pub object: ObjectId,
    /// Identity of the version.
    pub version: Tag,
    /// True if the object was made by this put.
    pub is_new: bool,
}

impl<S: CatalogStore> Catalog<S> {
    /// Adds a version to an object and makes it current.
    pub fn put(&mut self, put: &Put) -> Result<Stored> {
        self.write(|writer| writer.batch(|batch| batch.put(put)))
    }

    /// Adds a version like [`put`](Self::put), and makes missing collections above it in the same transaction.
    pub fn put_with_collections(&mut self, put: &Put) -> Result<Stored> {
        self.write(|writer| {
            if let Some((above, _)) = put.path.split_last() {
                writer.make_collection(&above, true)?;
            }
            writer.batch(|batch| batch.put(put))
        })
    }

    /// Puts several versions in one transaction, with an operation for each: all or none.
    pub fn put_all(&mut self, puts: &[Put]) -> Result<Vec<Stored>> {
        self.write(|writer| writer.batch(|batch| puts.iter().map(|put| batch.put(put)).collect()))
    }

    /// Makes an older version of an object the current one again.
    pub fn set_current(&mut self, path: &CatalogPath, version: Tag) -> Result<()> {
        const VERB: &str = "set the current version of";
        self.write(|writer| {
            let (node, above) = resolve_object(writer.store, VERB, path)?.not_root(VERB)?;
            let sql = "SELECT 1 FROM versions WHERE object = ?1 AND site = ?2 AND seq = ?3 AND position = ?4";
            let index = SqlValue::Integer(i64::from(version.index));
            let values = [node.id.into(), version.op.site.into(), version.op.seq.into(), index];
            if optional(writer.store, sql, &values, RowReader::integer)?.is_none() {
                let remedy = "choose one of the versions that stat lists";
                return Err(CatalogError::unsuitable(VERB, path, "it has no such version", remedy));
            }
            let replaces = node.current.map(|current| current.set);
            writer.submit(vec![Change::SetCurrent { object: node.id, version, replaces }], above)?;
            Ok(())
        })
    }
}

impl<S: CatalogStore> Batch<'_, S> {
    fn put(&mut self, put: &Put) -> Result<Stored> {
        const VERB: &str = "put";
        let Some((above, shown)) = put.path.split_last() else {
            let remedy = "name an object below it";
            return Err(CatalogError::unsuitable(VERB, &put.path, "it is the root", remedy));
        };
        let collection = self.collection(VERB, &above)?;
        let mut under = collection.above_children();
        let existing = match self.child(&collection, shown)? {
            Some(node) => {
                let found = self.follow(VERB, &put.path, Resolved { above: under, node: Some(node) })?;
                under = found.above;
                found.node
            }
            None => None,
        };
        let mut changes = Vec::with_capacity(3 + put.replicas.len() + put.attributes.len());
        let (object, replaces) = match &existing {
            Some(node) if node.kind == Kind::Collection => {
                let remedy = "choose another name, or put below it";
                return Err(CatalogError::unsuitable(VERB, &put.path, "it is a collection", remedy));
            }
            Some(node) => (node.id, node.current.map(|current| current.set)),
            None => {
                let (object, parent) = (self.fresh_id(), collection.id());
                changes.push(Change::MakeObject { object, parent, name: Name::new(shown)? });
                (object, None)
            }
        };
        let version = self.next_tag(changes.len());
        let (NewVersion { size, hash, time }, home) = (put.version.clone(), version.op.site);
        changes.push(Change::AddVersion { object, size, hash, time, home });
        changes.push(Change::SetCurrent { object, version, replaces });
        changes.extend(put.replicas.iter().cloned().map(|NewReplica { vault, key, state }| {
            Change::SetReplica { object, place: ReplicaPlace { site: home, vault, key }, version, state }
        }));
        let attributes = put.attributes.iter().cloned();
        changes.extend(attributes.map(|attribute| Change::AddAttribute { object, attribute }));
        self.submit(changes, under)?;
        Ok(Stored { object, version, is_new: existing.is_none() })
    }
}
