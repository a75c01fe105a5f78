//! Look-up of paths and of the paths of ids.

use crate::error::{CatalogError, Result};
use crate::ids::ObjectId;
use crate::name::CatalogPath;
use crate::record::{Kind, Node};
use crate::store::row::{NODE, RowReader};
use crate::store::{CatalogStore, optional};
use std::collections::HashMap;

/// Visible entry that a path names, with the collections above it.
#[derive(Clone, Debug)]
pub(super) struct Resolved {
    /// Record of the entry; nothing for the root.
    pub(super) node: Option<Node>,
    /// Collections above the entry, the highest first, without the root.
    pub(super) above: Vec<ObjectId>,
}

impl Resolved {
    pub(super) fn id(&self) -> ObjectId {
        self.node.as_ref().map_or(ObjectId::ROOT, |node| node.id)
    }

    pub(super) fn is_collection(&self) -> bool {
        self.node.as_ref().is_none_or(|node| node.kind == Kind::Collection)
    }

    pub(super) fn is_link(&self) -> bool {
        self.node.as_ref().is_some_and(|node| node.kind == Kind::Link)
    }

    /// Collections above a child of this collection.
    pub(super) fn above_children(&self) -> Vec<ObjectId> {
        self.above.iter().copied().chain(self.node.as_ref().map(|node| node.id)).collect()
    }

    /// Record of the entry, which must not be the root.
    pub(super) fn not_root(self, verb: &'static str) -> Result<(Node, Vec<ObjectId>)> {
        let root = CatalogPath::root();
        let refused = || CatalogError::unsuitable(verb, &root, "it is the root", "name an entry below it");
        self.node.map(|node| (node, self.above)).ok_or_else(refused)
    }
}

/// Visible child of a collection with a shown name.
pub(super) fn child<S: CatalogStore>(store: &mut S, parent: ObjectId, shown: &str) -> Result<Option<Node>> {
    let sql = format!("SELECT {NODE} FROM nodes n WHERE n.parent = ?1 AND n.shown = ?2 AND n.trashed = 0");
    optional(store, &sql, &[parent.into(), shown.into()], RowReader::node)
}

/// Longest visible part of a path, and the number of components that it leaves.
pub(super) fn resolve_part<S: CatalogStore>(store: &mut S, path: &CatalogPath) -> Result<(Resolved, usize)> {
    let mut at = Resolved { node: None, above: Vec::new() };
    for (place, shown) in path.components().iter().enumerate() {
        match child(store, at.id(), shown)? {
            Some(node) => at = Resolved { above: at.above_children(), node: Some(node) },
            None => return Ok((at, path.components().len() - place)),
        }
    }
    Ok((at, 0))
}

/// Entry that a path names.
pub(super) fn resolve<S: CatalogStore>(
    store: &mut S,
    verb: &'static str,
    path: &CatalogPath,
) -> Result<Resolved> {
    let (found, missing) = resolve_part(store, path)?;
    if missing == 0 {
        return Ok(found);
    }
    let end = path.components().len() - missing + 1;
    let missing =
        path.components()[..end].iter().try_fold(CatalogPath::root(), |path, shown| path.child(shown))?;
    Err(CatalogError::NotFound { verb, path: path.clone(), missing })
}

/// Collection that a path names.
pub(super) fn resolve_collection<S: CatalogStore>(
    store: &mut S,
    verb: &'static str,
    path: &CatalogPath,
) -> Result<Resolved> {
    let found = resolve(store, verb, path)?;
    if found.is_collection() {
        return Ok(found);
    }
    Err(CatalogError::unsuitable(verb, path, "it is an object", "name a collection"))
}

/// Node with an id, in the trash or not.
pub(super) fn node<S: CatalogStore>(store: &mut S, id: ObjectId) -> Result<Option<Node>> {
    let sql = format!("SELECT {NODE} FROM nodes n WHERE n.id = ?1");
    optional(store, &sql, &[id.into()], RowReader::node)
}

/// Visible path of an object or collection; nothing if it lies in the trash or does not exist.
pub(super) fn path_of<S: CatalogStore>(
    store: &mut S,
    finder: &mut WayFinder,
    id: ObjectId,
) -> Result<Option<CatalogPath>> {
    let Some(node) = node(store, id)?.filter(|node| !node.trashed) else { return Ok(None) };
    let above = finder.way(store, node.parent)?;
    Ok(above.map(|above| above.path.child(&node.shown)).transpose()?)
}

/// Collection on the way from an entry to the root: its visible path, if it has one, and the ids above and of it.
#[derive(Clone, Debug)]
pub(super) struct Way {
    pub(super) path: CatalogPath,
    pub(super) ids: Vec<ObjectId>,
}

/// Finder of the paths of ids. It remembers each collection on its way, for one transaction.
#[derive(Debug, Default)]
pub(super) struct WayFinder {
    known: HashMap<ObjectId, Option<Way>>,
}

impl WayFinder {
    /// Way to a collection; nothing if it or one above it is in the trash.
    pub(super) fn way<S: CatalogStore>(
        &mut self,
        store: &mut S,
        collection: ObjectId,
    ) -> Result<Option<&Way>> {
        let mut climbed = Vec::new();
        let mut at = collection;
        while !at.is_root() && !self.known.contains_key(&at) {
            let Some(found) = node(store, at)? else {
                return Err(CatalogError::Damaged(format!("collection {at} has no record")));
            };
            at = found.parent;
            climbed.push(found);
        }
        let root = Way { path: CatalogPath::root(), ids: Vec::new() };
        self.known.entry(ObjectId::ROOT).or_insert(Some(root));
        for node in climbed.into_iter().rev() {
            let above = self.known.get(&node.parent).and_then(Option::as_ref).filter(|_| !node.trashed);
            let way = match above {
                Some(above) => {
                    let ids = above.ids.iter().copied().chain([node.id]).collect();
                    Some(Way { path: above.path.child(&node.shown)?, ids })
                }
                None => None,
            };
            self.known.insert(node.id, way);
        }
        Ok(self.known.get(&collection).and_then(Option::as_ref))
    }
}
