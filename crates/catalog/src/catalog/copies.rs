//! Copies of objects and collections: new objects with the contents, attributes and replica places of others.
//!
//! No bytes move: a copy names the same keys of the same vaults. Later versions of one do not touch the other.

use super::collections::{ENTRY_COLUMNS, Entry, JOIN_CURRENT, VersionInfo, children, read_entry};
use super::lookup::{Resolved, child, node, resolve, resolve_collection};
use super::replicas::replicas_of;
use super::stat::attributes_of;
use super::{Catalog, MAX_PAGE, Writer};
use crate::error::{CatalogError, Result};
use crate::ids::ObjectId;
use crate::name::{CatalogPath, Name};
use crate::operation::Change;
use crate::record::Kind;
use crate::store::row::NODE;
use crate::store::{CatalogStore, optional};

const VERB: &str = "copy";

/// Changes of one operation at most, so that it fits the longest operation whatever attributes it has.
const MAX_COPIED_CHANGES: usize = 1000;

/// Part of a copy, done in one transaction.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CopyBatch {
    /// Number of objects that were made.
    pub objects: u64,
    /// Number of collections that were made.
    pub collections: u64,
    /// Bytes of the contents of these objects.
    pub bytes: u64,
    /// Names from the collection to the last copied entry, with which the next batch goes on; nothing at the end.
    pub next: Option<Vec<String>>,
}

/// Collections of a walk, and the name behind which it goes on.
struct Place {
    from: CatalogPath,
    to: CatalogPath,
    behind: Option<String>,
}

/// Gathers changes into operations of one transaction.
struct Copier<'a, 'b, S> {
    writer: &'a mut Writer<'b, S>,
    changes: Vec<Change>,
    /// Collections above the copies that are being made.
    under: Vec<ObjectId>,
    batch: CopyBatch,
}

impl<S: CatalogStore> Catalog<S> {
    /// Copies an object to a new path: its current version, the replicas of that, and its attributes.
    pub fn copy(&mut self, from: &CatalogPath, to: &CatalogPath) -> Result<CopyBatch> {
        self.write(|writer| {
            let (node, _) = resolve(writer.store, VERB, from)?.not_root(VERB)?;
            if node.kind == Kind::Collection {
                let remedy = "copy it recursively";
                return Err(CatalogError::unsuitable(VERB, from, "it is a collection", remedy));
            }
            writer.copy_object(node.target.unwrap_or(node.id), from, to)
        })
    }

    /// Copies an object, or a batch of the entries below a collection: those behind `after`, about `limit` of them.
    ///
    /// The first batch of a collection makes the new collection, whose path must be free.
    pub fn copy_recursively(
        &mut self,
        from: &CatalogPath,
        to: &CatalogPath,
        after: &[String],
        limit: usize,
    ) -> Result<CopyBatch> {
        let limit = limit.clamp(1, MAX_PAGE);
        self.write(|writer| {
            let (node, _) = resolve(writer.store, VERB, from)?.not_root(VERB)?;
            if node.kind != Kind::Collection {
                return writer.copy_object(node.target.unwrap_or(node.id), from, to);
            }
            if from.holds(to) {
                let (reason, remedy) = ("it lies in the collection itself", "choose a place outside of it");
                return Err(CatalogError::unsuitable("copy to", to, reason, remedy));
            }
            let mut copier = Copier::new(writer);
            if after.is_empty() {
                let (above, name) = free_place(copier.writer.store, to)?;
                copier.under = above.above_children();
                copier.collection(above.id(), name)?;
            }
            copier.walk(from, to, after, limit)
        })
    }
}

/// Collection of a new path, and the name there, which must be free.
fn free_place<S: CatalogStore>(store: &mut S, to: &CatalogPath) -> Result<(Resolved, Name)> {
    let Some((above, shown)) = to.split_last() else {
        return Err(CatalogError::exists("copy to", to, "give a path below it"));
    };
    let above = resolve_collection(store, "copy to", &above)?;
    if child(store, above.id(), shown)?.is_some() {
        return Err(CatalogError::exists("copy to", to, "choose another name"));
    }
    Ok((above, Name::new(shown)?))
}

impl<S: CatalogStore> Writer<'_, S> {
    fn copy_object(&mut self, id: ObjectId, from: &CatalogPath, to: &CatalogPath) -> Result<CopyBatch> {
        let (above, name) = free_place(self.store, to)?;
        let sql = format!("SELECT {NODE}, {ENTRY_COLUMNS} FROM nodes n {JOIN_CURRENT} WHERE n.id = ?1");
        let entry = optional(self.store, &sql, &[id.into()], read_entry)?;
        let Some(Entry { node, version: Some(version) }) = entry else {
            let remedy = "put a version first";
            return Err(CatalogError::unsuitable(VERB, from, "it has no contents", remedy));
        };
        let mut copier = Copier::new(self);
        copier.under = above.above_children();
        copier.object(&Entry { node, version: None }, &version, above.id(), name)?;
        copier.flush()?;
        Ok(copier.batch)
    }
}

impl<'a, 'b, S: CatalogStore> Copier<'a, 'b, S> {
    fn new(writer: &'a mut Writer<'b, S>) -> Self {
        Self { writer, changes: Vec::new(), under: Vec::new(), batch: CopyBatch::default() }
    }

    fn add(&mut self, change: Change) -> Result<()> {
        self.changes.push(change);
        if self.changes.len() < MAX_COPIED_CHANGES { Ok(()) } else { self.flush() }
    }

    /// Makes an operation of the gathered changes.
    fn flush(&mut self) -> Result<()> {
        if !self.changes.is_empty() {
            self.writer.submit(std::mem::take(&mut self.changes), self.under.clone())?;
        }
        Ok(())
    }

    fn collection(&mut self, parent: ObjectId, name: Name) -> Result<()> {
        let object = self.writer.host.object_id();
        self.add(Change::MakeCollection { object, parent, name })?;
        self.batch.collections += 1;
        self.flush()
    }

    fn object(&mut self, source: &Entry, current: &VersionInfo, parent: ObjectId, name: Name) -> Result<()> {
        let object = self.writer.host.object_id();
        self.add(Change::MakeObject { object, parent, name })?;
        let version = self.writer.next_tag(self.changes.len());
        let VersionInfo { size, hash, time, tag } = *current;
        self.add(Change::AddVersion { object, size, hash, time, home: version.op.site })?;
        self.add(Change::SetCurrent { object, version, replaces: None })?;
        let holder = match source.node.target {
            // The copy of a link is an object.
            Some(target) => node(self.writer.store, target)?.unwrap_or_else(|| source.node.clone()),
            None => source.node.clone(),
        };
        for replica in replicas_of(self.writer.store, holder.id)? {
            if let Some((_, state)) = replica.content.filter(|(of, _)| *of == tag) {
                self.add(Change::SetReplica { object, place: replica.place, version, state })?;
            }
        }
        for tagged in attributes_of(self.writer.store, holder.id)? {
            self.add(Change::AddAttribute { object, attribute: tagged.attribute })?;
        }
        self.batch.objects += 1;
        self.batch.bytes += size;
        Ok(())
    }

    /// Copies the entries below a collection depth first, in the order of their names.
    fn walk(
        mut self,
        from: &CatalogPath,
        to: &CatalogPath,
        after: &[String],
        limit: usize,
    ) -> Result<CopyBatch> {
        let mut places = places(from, to, after)?;
        let mut left = limit;
        while let Some(Place { from: source_path, to: target_path, behind }) = places.pop() {
            let source = match resolve_collection(self.writer.store, VERB, &source_path) {
                // The last entry of the batch before was an object, or somebody has removed the collection since.
                Err(CatalogError::NotFound { .. } | CatalogError::Unsuitable { .. }) => continue,
                source => source?,
            };
            let target = resolve_collection(self.writer.store, "copy to", &target_path)?;
            self.under = target.above_children();
            let listing = children(self.writer.store, source.id(), behind.as_deref(), left)?;
            let (mut next, mut last) = (listing.next, source_path.clone());
            for entry in listing.entries {
                left -= 1;
                let shown = entry.node.shown.as_str();
                last = source_path.child(shown)?;
                let name = Name::new(shown)?;
                if child(self.writer.store, target.id(), shown)?.is_some() {
                    let taken = target_path.child(shown)?;
                    return Err(CatalogError::exists("copy to", &taken, "move that entry first"));
                }
                if entry.node.kind == Kind::Collection {
                    self.collection(target.id(), name)?;
                    let behind = Some(shown.to_owned());
                    let inside = target_path.child(shown)?;
                    places.push(Place { from: source_path.clone(), to: target_path.clone(), behind });
                    places.push(Place { from: last.clone(), to: inside, behind: None });
                    next = None;
                    break;
                }
                if let Some(version) = &entry.version {
                    self.object(&entry, version, target.id(), name)?;
                }
            }
            self.flush()?;
            if next.is_some() {
                places.push(Place { from: source_path, to: target_path, behind: next });
            }
            if left == 0 && !places.is_empty() {
                self.batch.next = Some(last.components()[from.components().len()..].to_vec());
                break;
            }
        }
        Ok(self.batch)
    }
}

/// Collections from the copied one down to the last entry of the batch before, each with the name behind which to go on.
fn places(from: &CatalogPath, to: &CatalogPath, after: &[String]) -> Result<Vec<Place>> {
    let (mut places, mut from, mut to) = (Vec::with_capacity(after.len() + 1), from.clone(), to.clone());
    for name in after {
        let inside = (from.child(name)?, to.child(name)?);
        places.push(Place { from, to, behind: Some(name.clone()) });
        (from, to) = inside;
    }
    places.push(Place { from, to, behind: None });
    Ok(places)
}
