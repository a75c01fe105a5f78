//! JSON bodies of the catalog's routes.

use crate::replication::SiteNames;
use crate::site::{timestamp, version_of};
use holdfast_catalog::{
    CatalogPath, Found, Kind, Replica, ReplicaState, Stat, TaggedAttribute, Value, VersionInfo,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Version of an object.
#[derive(Serialize, ToSchema)]
pub(crate) struct VersionBody {
    /// Identity of the version.
    version: String,
    /// Size of the contents in bytes.
    size: u64,
    /// BLAKE3 of the contents in hexadecimal digits.
    blake3: String,
    /// Time at which the version was stored, in milliseconds since 1970.
    stored: i64,
}

/// Entry by its path and its identity.
#[derive(Serialize, ToSchema)]
pub(crate) struct EntryId {
    /// Path of the entry; for a deleted one its former path.
    pub(super) path: String,
    /// Identity of the entry.
    pub(super) id: String,
}

/// Replica of a version in a vault.
#[derive(Serialize, ToSchema)]
pub(crate) struct ReplicaBody {
    /// Identity of the version.
    version: String,
    /// Site of the vault, in hexadecimal digits.
    site: String,
    /// Name of the site, or else its identity.
    site_name: String,
    /// Name of the vault at its site.
    vault: String,
    /// Key of the bytes in the vault.
    key: String,
    /// State: pending, verified, damaged or missing.
    state: &'static str,
}

/// Attribute of an object or collection.
#[derive(Serialize, ToSchema)]
pub(crate) struct AttributeBody {
    /// Name of the attribute; several attributes may share it.
    name: String,
    /// Type of the value: text, integer, float or time.
    r#type: &'static str,
    /// Value: a string or a number; times are strings of RFC 3339.
    #[schema(value_type = Object)]
    value: serde_json::Value,
    /// Unit of the value, null if it has none.
    unit: Option<String>,
}

/// Properties of an object or collection.
#[derive(Serialize, ToSchema)]
pub(crate) struct StatBody {
    /// Path of the entry.
    path: String,
    /// Identity of the entry, null for the root.
    id: Option<String>,
    /// Kind: object or collection.
    kind: &'static str,
    /// Identity of the current version, null for a collection.
    current: Option<String>,
    /// Versions from the oldest to the newest.
    versions: Vec<VersionBody>,
    /// Replicas of all versions.
    replicas: Vec<ReplicaBody>,
    /// Attributes in the order of their names.
    attributes: Vec<AttributeBody>,
}

/// Entry of a collection.
#[derive(Serialize, ToSchema)]
pub(crate) struct Entry {
    /// Name of the entry in its collection.
    name: String,
    /// Identity of the entry.
    id: String,
    /// Kind: object or collection.
    kind: &'static str,
    /// Current version of an object, null for a collection.
    version: Option<VersionBody>,
}

/// Entries of a collection.
#[derive(Serialize, ToSchema)]
pub(crate) struct ListPage {
    /// Entries in the order of their names.
    pub(super) entries: Vec<Entry>,
    /// Value of `after` for the next answer, null if there is none.
    pub(super) next: Option<String>,
}

/// Entry that a search has found.
#[derive(Serialize, ToSchema)]
pub(crate) struct FoundEntry {
    /// Path of the entry.
    path: String,
    /// Identity of the entry.
    id: String,
    /// Kind: object or collection.
    kind: &'static str,
    /// Current version of an object, null for a collection.
    version: Option<VersionBody>,
}

/// Results of a search.
#[derive(Serialize, ToSchema)]
pub(crate) struct FoundPage {
    /// Entries in the order of their identities.
    pub(super) entries: Vec<FoundEntry>,
    /// Value of `after` for the next answer, null if there is none.
    pub(super) next: Option<String>,
}

/// Attribute that is to be added.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewAttribute {
    /// Name of the attribute.
    pub(super) name: String,
    /// Value: a string, a number or a boolean; a string that is a time of RFC 3339 becomes a time.
    #[schema(value_type = Object)]
    pub(super) value: serde_json::Value,
    /// Unit of the value, such as `s` or `MiB`.
    pub(super) unit: Option<String>,
}

/// Change of the attributes of an entry.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AttributeChanges {
    /// Attributes that are added.
    #[serde(default)]
    pub(super) add: Vec<NewAttribute>,
    /// Names whose attributes are removed.
    #[serde(default)]
    pub(super) remove: Vec<String>,
}

/// Change of the attributes of one entry among several.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct EntryChanges {
    /// Path of the entry: `/PROJECT/PATH`.
    pub(super) path: String,
    /// Attributes that are added.
    #[serde(default)]
    pub(super) add: Vec<NewAttribute>,
    /// Names whose attributes are removed before.
    #[serde(default)]
    pub(super) remove: Vec<String>,
}

/// Changes of the attributes of several entries.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AttributeBatch {
    /// Changes in their order, up to 1000; an entry may have several.
    pub(super) entries: Vec<EntryChanges>,
}

/// Effect of changes of several entries.
#[derive(Serialize, ToSchema)]
pub(crate) struct BatchBody {
    /// Number of changes of the request.
    pub(super) entries: u64,
    /// Number of those that changed something: the other entries had the attributes already.
    pub(super) changed: u64,
}

pub(super) fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Object => "object",
        Kind::Link => "link",
        Kind::Collection => "collection",
    }
}

impl ReplicaBody {
    /// Replica as its site knows it; nothing if it was removed.
    pub(super) fn new(names: &SiteNames, replica: Replica) -> Option<Self> {
        let (version, state) = replica.content?;
        let state = match state {
            ReplicaState::Pending => "pending",
            ReplicaState::Verified => "verified",
            ReplicaState::Damaged => "damaged",
            ReplicaState::Missing => "missing",
        };
        let (site, site_name) = (replica.place.site.to_string(), names.of(replica.place.site));
        let version = version_of(version).to_string();
        Some(Self { version, site, site_name, vault: replica.place.vault, key: replica.place.key, state })
    }
}

impl From<VersionInfo> for VersionBody {
    fn from(info: VersionInfo) -> Self {
        Self {
            version: version_of(info.tag).to_string(),
            size: info.size,
            blake3: info.hash.to_string(),
            stored: timestamp(info.time).milliseconds(),
        }
    }
}

impl From<TaggedAttribute> for AttributeBody {
    fn from(tagged: TaggedAttribute) -> Self {
        let attribute = tagged.attribute;
        let (r#type, value) = match attribute.value {
            Value::Text(text) => ("text", text.into()),
            Value::Integer(number) => ("integer", number.into()),
            Value::Float(number) => ("float", number.get().into()),
            time @ Value::Time(_) => ("time", time.to_string().into()),
        };
        Self { name: attribute.name, r#type, value, unit: attribute.unit }
    }
}

impl From<holdfast_catalog::Entry> for Entry {
    fn from(entry: holdfast_catalog::Entry) -> Self {
        Self {
            name: entry.node.shown,
            id: entry.node.id.to_string(),
            kind: kind_name(entry.node.kind),
            version: entry.version.map(VersionBody::from),
        }
    }
}

impl From<Found> for FoundEntry {
    fn from(found: Found) -> Self {
        let Entry { id, kind, version, .. } = found.entry.into();
        Self { path: found.path.to_string(), id, kind, version }
    }
}

impl StatBody {
    /// Properties of the entry at a path.
    pub(super) fn new(names: &SiteNames, path: &CatalogPath, stat: Stat) -> Self {
        let mut versions = stat.versions;
        versions.sort_by_key(|version| (version.time, version.tag));
        let versions = versions.into_iter().map(|version| {
            let (tag, size, hash, time) = (version.tag, version.size, version.hash, version.time);
            VersionBody::from(VersionInfo { tag, size, hash, time })
        });
        let replicas = stat.replicas.into_iter().filter_map(|replica| ReplicaBody::new(names, replica));
        let node = stat.node;
        let current = node.as_ref().and_then(|node| node.current);
        Self {
            path: path.to_string(),
            id: node.as_ref().map(|node| node.id.to_string()),
            kind: kind_name(node.as_ref().map_or(Kind::Collection, |node| node.kind)),
            current: current.map(|current| version_of(current.version).to_string()),
            versions: versions.collect(),
            replicas: replicas.collect(),
            attributes: stat.attributes.into_iter().map(AttributeBody::from).collect(),
        }
    }
}
