//! Everything that the catalog knows of one entry.

use super::Catalog;
use super::links::{LinkTarget, target_of};
use super::lookup::{WayFinder, node, path_of, resolve};
use super::purge::is_purged;
use super::replicas::replicas_of;
use super::tree::former_path;
use crate::error::Result;
use crate::ids::ObjectId;
use crate::name::CatalogPath;
use crate::record::{Annotation, Node, Replica, TaggedAttribute, Version};
use crate::store::row::{ANNOTATION, ATTRIBUTE, RowReader, VERSION};
use crate::store::{CatalogStore, collect};

/// Entry with its versions, replicas, attributes and annotations.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stat {
    /// Record of the entry; nothing for the root. A link has the current version of its target.
    pub node: Option<Node>,
    /// Target of a link, whose versions, replicas, attributes and annotations are given.
    pub target: Option<LinkTarget>,
    /// Versions, the oldest tag first.
    pub versions: Vec<Version>,
    /// Replicas without tombstones, by site, vault and key.
    pub replicas: Vec<Replica>,
    /// Attributes by name, each tag once.
    pub attributes: Vec<TaggedAttribute>,
    /// Annotations, the oldest first.
    pub annotations: Vec<Annotation>,
}

/// Object that was found by its id.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StatById {
    /// Path of the object, and behind it that of the link that has the id. In the trash it is the former one.
    pub paths: Vec<CatalogPath>,
    /// Object with its versions.
    pub stat: Stat,
}

impl<S: CatalogStore> Catalog<S> {
    /// Finds the path of an object or collection by its id; nothing if it lies in the trash or does not exist.
    pub fn path_of(&mut self, id: ObjectId) -> Result<Option<CatalogPath>> {
        self.read(|store| path_of(store, &mut WayFinder::default(), id))
    }

    /// Reads all that is known of the entry at a path.
    pub fn stat(&mut self, path: &CatalogPath) -> Result<Stat> {
        self.read(|store| {
            let found = resolve(store, "stat", path)?;
            let mut finder = WayFinder::default();
            let target = target_of(store, &mut finder, &found)?;
            let (versions, replicas, attributes, annotations) = Default::default();
            let mut stat =
                Stat { node: found.node, target: None, versions, replicas, attributes, annotations };
            let Some(node) = &mut stat.node else { return Ok(stat) };
            let mut holder = node.clone();
            if let Some(id) = node.target {
                stat.target = Some(LinkTarget { id, path: path_of(store, &mut finder, id)? });
                let Some(target) = target.and_then(|target| target.node) else { return Ok(stat) };
                node.current = target.current;
                holder = target;
            }
            stat.read_facts(store, holder.id)?;
            Ok(stat)
        })
    }

    /// Reads all that is known of an object by its id, wherever it is by now, also in the trash; nothing if it is purged or
    /// does not exist. A link stands for its target.
    pub fn stat_of(&mut self, id: ObjectId) -> Result<Option<StatById>> {
        self.read(|store| {
            let Some(named) = node(store, id)? else { return Ok(None) };
            let holder = match named.target {
                Some(target) => node(store, target)?,
                None => Some(named.clone()),
            };
            let Some(holder) = holder else { return Ok(None) };
            if is_purged(store, named.id)? || is_purged(store, holder.id)? {
                return Ok(None);
            }
            let mut finder = WayFinder::default();
            let mut place = |store: &mut S, node: &Node| -> Result<CatalogPath> {
                match path_of(store, &mut finder, node.id)? {
                    Some(path) => Ok(path),
                    None => former_path(store, node),
                }
            };
            let mut paths = vec![place(store, &holder)?];
            if named.id != holder.id {
                paths.push(place(store, &named)?);
            }
            let (versions, replicas, attributes, annotations) = Default::default();
            let (target, id) = (None, holder.id);
            let mut stat = Stat { node: Some(holder), target, versions, replicas, attributes, annotations };
            stat.read_facts(store, id)?;
            Ok(Some(StatById { paths, stat }))
        })
    }
}

impl Stat {
    /// Reads versions, replicas, attributes and annotations of an object.
    fn read_facts<S: CatalogStore>(&mut self, store: &mut S, id: ObjectId) -> Result<()> {
        let object = [id.into()];
        let versions =
            format!("SELECT {VERSION} FROM versions WHERE object = ?1 ORDER BY site, seq, position");
        self.versions = collect(store, &versions, &object, RowReader::version)?;
        self.replicas = replicas_of(store, id)?;
        self.attributes = attributes_of(store, id)?;
        let annotations = format!(
            "SELECT {ANNOTATION} FROM annotations WHERE object = ?1 ORDER BY time, site, seq, position"
        );
        self.annotations = collect(store, &annotations, &object, RowReader::annotation)?;
        Ok(())
    }
}

/// Attributes of a node by name and tag.
pub(super) fn attributes_of<S: CatalogStore>(
    store: &mut S,
    object: ObjectId,
) -> Result<Vec<TaggedAttribute>> {
    let sql =
        format!("SELECT {ATTRIBUTE} FROM attributes WHERE object = ?1 ORDER BY name, site, seq, position");
    collect(store, &sql, &[object.into()], RowReader::attribute)
}
