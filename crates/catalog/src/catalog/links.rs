//! Links: second names of objects. Reading and writing through a link reach its target; renaming and deleting do not.

use super::Catalog;
use super::collections::{ENTRY_COLUMNS, Entry, JOIN_CURRENT, read_entry};
use super::lookup::{Resolved, WayFinder, child, node, path_of, resolve, resolve_collection, resolve_part};
use crate::error::{CatalogError, Result};
use crate::ids::ObjectId;
use crate::name::{CatalogPath, Name};
use crate::operation::Change;
use crate::record::Kind;
use crate::store::row::NODE;
use crate::store::{CatalogStore, optional};

/// Object that a link stands for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LinkTarget {
    /// Id of the object.
    pub id: ObjectId,
    /// Path of the object; nothing if it lies in the trash.
    pub path: Option<CatalogPath>,
}

impl<S: CatalogStore> Catalog<S> {
    /// Gives an object a second name, which must be free, and returns the id of the link.
    ///
    /// The object keeps its own name. If the path names a link, its target gets another one.
    pub fn link(&mut self, path: &CatalogPath, new_path: &CatalogPath) -> Result<ObjectId> {
        const VERB: &str = "link";
        self.write(|writer| {
            let (found, _) = resolve_object(writer.store, VERB, path)?.not_root(VERB)?;
            if found.kind != Kind::Object {
                let remedy = "link the objects in it";
                return Err(CatalogError::unsuitable(VERB, path, "it is a collection", remedy));
            }
            let Some((above, shown)) = new_path.split_last() else {
                let remedy = "give the path of the link";
                return Err(CatalogError::unsuitable(VERB, new_path, "it is the root", remedy));
            };
            let collection = resolve_collection(writer.store, VERB, &above)?;
            if child(writer.store, collection.id(), shown)?.is_some() {
                return Err(CatalogError::exists(VERB, new_path, "choose another name"));
            }
            let (object, target) = (writer.host.object_id(), found.id);
            let (parent, name) = (collection.id(), Name::new(shown)?);
            let change = Change::MakeLink { object, parent, name, target };
            writer.submit(vec![change], collection.above_children())?;
            Ok(object)
        })
    }
}

impl<S: CatalogStore> Catalog<S> {
    /// Finds the path of the target of the link at a path; nothing for another entry, or if the target is in the trash.
    pub fn link_target(&mut self, path: &CatalogPath) -> Result<Option<CatalogPath>> {
        self.read(|store| {
            let (found, missing) = resolve_part(store, path)?;
            let target = found.node.as_ref().and_then(|node| node.target).filter(|_| missing == 0);
            let path = target.map(|id| path_of(store, &mut WayFinder::default(), id)).transpose()?;
            Ok(path.flatten())
        })
    }
}

/// Entry that a path names, or the target of the link that it names.
pub(super) fn resolve_object<S: CatalogStore>(
    store: &mut S,
    verb: &'static str,
    path: &CatalogPath,
) -> Result<Resolved> {
    let found = resolve(store, verb, path)?;
    follow(store, verb, path, found)
}

/// Target of an entry that is a link, and any other entry itself.
pub(super) fn follow<S: CatalogStore>(
    store: &mut S,
    verb: &'static str,
    path: &CatalogPath,
    found: Resolved,
) -> Result<Resolved> {
    if !found.is_link() {
        return Ok(found);
    }
    let target = target_of(store, &mut WayFinder::default(), &found)?;
    let remedy = "restore that object, or delete the link";
    target
        .ok_or_else(|| CatalogError::unsuitable(verb, path, "the target of the link is in the trash", remedy))
}

/// Visible target of a link; nothing if it is in the trash, or for another entry.
pub(super) fn target_of<S: CatalogStore>(
    store: &mut S,
    finder: &mut WayFinder,
    found: &Resolved,
) -> Result<Option<Resolved>> {
    let Some(id) = found.node.as_ref().and_then(|node| node.target) else { return Ok(None) };
    let Some(target) = node(store, id)?.filter(|node| !node.trashed) else { return Ok(None) };
    let way = finder.way(store, target.parent)?;
    Ok(way.map(|way| Resolved { above: way.ids.clone(), node: Some(target) }))
}

/// Gives the entry of a link the version of its target. Returns false if the target is in the trash.
pub(super) fn follow_entry<S: CatalogStore>(
    store: &mut S,
    finder: &mut WayFinder,
    entry: &mut Entry,
) -> Result<bool> {
    let Some(id) = entry.node.target else { return Ok(true) };
    let sql = format!(
        "SELECT {NODE}, {ENTRY_COLUMNS} FROM nodes n {JOIN_CURRENT} WHERE n.id = ?1 AND n.trashed = 0"
    );
    let Some(target) = optional(store, &sql, &[id.into()], read_entry)? else { return Ok(false) };
    if finder.way(store, target.node.parent)?.is_none() {
        return Ok(false);
    }
    (entry.node.current, entry.version) = (target.node.current, target.version);
    Ok(true)
}
