//! Tree of a site: new, moved, copied and deleted entries, sums of collections, and places of replicas.

use serde::Serialize;

/// Entry by its path and its identity.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct SiteEntryId<'a> {
    pub path: &'a str,
    pub id: &'a str,
}

/// Entry with a new path.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct MovedEntry<'a> {
    pub from: &'a str,
    pub to: &'a str,
}

/// Entry with its copy.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct CopiedEntry<'a> {
    pub from: &'a str,
    pub to: &'a str,
    pub objects: u64,
    pub collections: u64,
    pub bytes: u64,
}

/// Deleted entry that can be restored.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct TrashLine<'a> {
    pub path: &'a str,
    pub id: &'a str,
    pub kind: &'a str,
    pub deleted: String,
}

/// Object that exists, and was made empty if it did not.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct TouchedObject<'a> {
    pub path: &'a str,
    pub made: bool,
    pub version: Option<&'a str>,
}

/// Object that was edited.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct EditedObject<'a> {
    pub path: &'a str,
    pub changed: bool,
    pub version: Option<&'a str>,
    pub bytes: u64,
}

/// Sum of the current versions at and below a place.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct PlaceUsage<'a> {
    pub path: &'a str,
    pub objects: u64,
    pub bytes: u64,
}

/// Replica of a version with its object.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct ReplicaLine<'a> {
    pub path: Option<&'a str>,
    pub id: &'a str,
    pub version: &'a str,
    pub site: &'a str,
    pub site_name: &'a str,
    pub vault: &'a str,
    pub key: &'a str,
    pub state: &'a str,
}
