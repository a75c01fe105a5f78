//! Collections: making them, and listing them page by page.

use super::links::follow_entry;
use super::lookup::{WayFinder, node, resolve_collection, resolve_part};
use super::{Catalog, MAX_PAGE, Writer};
use crate::error::{CatalogError, Result};
use crate::ids::{ContentHash, Nanos, ObjectId, Tag};
use crate::name::{CatalogPath, Name};
use crate::operation::Change;
use crate::record::Node;
use crate::store::row::{NODE, RowReader};
use crate::store::{CatalogStore, SqlValue, collect};

/// Current version of an object, as lists show it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VersionInfo {
    /// Identity of the version.
    pub tag: Tag,
    /// Length of the contents in bytes.
    pub size: u64,
    /// Hash of the contents.
    pub hash: ContentHash,
    /// Time at which the contents were made.
    pub time: Nanos,
}

/// Entry of a collection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// Record of the entry; `shown` is its name in lists. A link has the current version of its target.
    pub node: Node,
    /// Current version of an object, or of the target of a link unless that is in the trash.
    pub version: Option<VersionInfo>,
}

/// Page of a list, in the order of the bytes of shown names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Listing {
    /// Entries of this page.
    pub entries: Vec<Entry>,
    /// Name after which the next page begins; nothing after the last page.
    pub next: Option<String>,
}

/// Columns of an entry, from `nodes n` and `versions v`.
pub(super) const ENTRY_COLUMNS: &str = "v.size, v.hash, v.time";

/// Join of a node with its current version.
pub(super) const JOIN_CURRENT: &str = "LEFT JOIN versions v ON v.object = n.id AND v.site = n.current_site
    AND v.seq = n.current_seq AND v.position = n.current_position";

/// Reads the columns of a node followed by [`ENTRY_COLUMNS`].
pub(super) fn read_entry(row: &mut RowReader) -> Result<Entry> {
    let node = row.node()?;
    let size = row.optional_integer()?;
    let version = match (node.current, size) {
        (Some(current), Some(size)) => {
            let hash: [u8; 32] =
                row.blob()?.try_into().map_err(|_| CatalogError::Damaged("a hash is short".into()))?;
            let (hash, time) = (ContentHash(hash), Nanos(row.integer()?));
            Some(VersionInfo { tag: current.version, size: size.unsigned_abs(), hash, time })
        }
        _ => None,
    };
    Ok(Entry { node, version })
}

/// Visible entries of a collection after a shown name, at most `limit`.
pub(super) fn children<S: CatalogStore>(
    store: &mut S,
    parent: ObjectId,
    after: Option<&str>,
    limit: usize,
) -> Result<Listing> {
    // No name is empty, so the empty text is before all.
    let sql = format!(
        "SELECT {NODE}, {ENTRY_COLUMNS} FROM nodes n {JOIN_CURRENT}
            WHERE n.parent = ?1 AND n.trashed = 0 AND n.shown > ?2 ORDER BY n.shown LIMIT ?3"
    );
    let values = [parent.into(), after.unwrap_or_default().into(), SqlValue::from(limit as u64 + 1)];
    let mut entries = collect(store, &sql, &values, read_entry)?;
    let has_more = entries.len() > limit;
    entries.truncate(limit);
    let mut finder = WayFinder::default();
    for entry in &mut entries {
        follow_entry(store, &mut finder, entry)?;
    }
    let last = entries.last().filter(|_| has_more);
    let next = last.map(|entry| entry.node.shown.clone());
    Ok(Listing { entries, next })
}

impl<S: CatalogStore> Catalog<S> {
    /// Makes a collection. With `parents` it makes missing collections above it too, and accepts an existing one.
    pub fn make_collection(&mut self, path: &CatalogPath, parents: bool) -> Result<ObjectId> {
        self.write(|writer| writer.make_collection(path, parents))
    }

    /// Lists the visible entries of a collection in the order of shown names, after one of them, at most `limit` and at most [`MAX_PAGE`].
    pub fn list(&mut self, path: &CatalogPath, after: Option<&str>, limit: usize) -> Result<Listing> {
        let limit = limit.clamp(1, MAX_PAGE);
        self.read(|store| {
            let parent = resolve_collection(store, "list", path)?.id();
            children(store, parent, after, limit)
        })
    }
}

impl<S: CatalogStore> Writer<'_, S> {
    /// Makes a collection within this transaction, as an operation of its own.
    pub(super) fn make_collection(&mut self, path: &CatalogPath, parents: bool) -> Result<ObjectId> {
        const VERB: &str = "make collection";
        let (found, missing) = resolve_part(self.store, path)?;
        let refuse = |reason, remedy| Err(CatalogError::unsuitable(VERB, path, reason, remedy));
        match missing {
            0 if parents && found.is_collection() => return Ok(found.id()),
            0 if !parents => return Err(CatalogError::exists(VERB, path, "choose another name")),
            _ if !found.is_collection() => {
                return refuse("an object is in its way", "choose another name for one of its parts");
            }
            2.. if !parents => {
                return refuse("the collection above it is missing", "make that first, or ask for parents");
            }
            _ => {}
        }
        let (mut parent, mut changes) = (found.id(), Vec::with_capacity(missing));
        let names = &path.components()[path.components().len() - missing..];
        for name in names {
            let name = Name::new(name.as_str())?;
            // Another site that makes the same collection gives it the same id. One that was renamed or deleted keeps it.
            let same = ObjectId::of_collection(parent, &name);
            let object = if node(self.store, same)?.is_some() { self.host.object_id() } else { same };
            changes.push(Change::MakeCollection { object, parent, name });
            parent = object;
        }
        self.submit(changes, found.above_children())?;
        Ok(parent)
    }
}
