//! Catalog of a site: properties of entries, lists of collections, searches, and changes of attributes.

use crate::error::RemoteError;
use crate::send::Call;
use crate::site::Site;
use bytes::Bytes;
use reqwest::Method;
use reqwest::header::CONTENT_TYPE;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Most entries of one request that changes several.
pub const MOST_BATCH_ENTRIES: usize = 1000;

/// Most attributes and removed names of one request that changes several entries.
pub const MOST_BATCH_ATTRIBUTES: usize = 20_000;

/// Kind of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CatalogKind {
    /// Entry with versions of contents.
    Object,
    /// Entry that contains other entries.
    Collection,
    /// Second name of an object, whose versions it shows.
    Link,
}

/// Version of an object.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct CatalogVersion {
    /// Identity of the version.
    pub version: String,
    /// Size of the contents in bytes.
    pub size: u64,
    /// BLAKE3 of the contents in hexadecimal digits.
    pub blake3: String,
    /// Time at which the version was stored, in milliseconds since 1970.
    pub stored: i64,
}

/// Replica of a version in a vault.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct CatalogReplica {
    /// Identity of the version.
    pub version: String,
    /// Site of the vault, in hexadecimal digits.
    pub site: String,
    /// Name of the site; empty from a server that tells none.
    #[serde(default)]
    pub site_name: String,
    /// Name of the vault at its site.
    pub vault: String,
    /// Key of the bytes in the vault.
    pub key: String,
    /// State: pending, verified, damaged or missing.
    pub state: String,
}

/// Typed value of an attribute.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "type", content = "value", rename_all = "lowercase")]
pub enum AttributeValue {
    /// Text of any language.
    Text(String),
    /// Integer of 64 bits.
    Integer(i64),
    /// Finite number in double precision.
    Float(f64),
    /// Time as a text of RFC 3339.
    Time(String),
}

/// Attribute of an entry.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct CatalogAttribute {
    /// Name of the attribute; several attributes may share it.
    pub name: String,
    /// Value with its type.
    #[serde(flatten)]
    pub value: AttributeValue,
    /// Unit of the value.
    pub unit: Option<String>,
}

/// Properties of an entry.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct CatalogStat {
    /// Path of the entry, `/PROJECT/PATH`.
    pub path: String,
    /// Identity of the entry; `None` for the root.
    pub id: Option<String>,
    /// Kind of the entry.
    pub kind: CatalogKind,
    /// Identity of the current version of an object.
    pub current: Option<String>,
    /// Versions from the oldest to the newest.
    pub versions: Vec<CatalogVersion>,
    /// Replicas of all versions.
    pub replicas: Vec<CatalogReplica>,
    /// Attributes in the order of their names.
    pub attributes: Vec<CatalogAttribute>,
}

/// Entry of a collection.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct CatalogEntry {
    /// Name of the entry in its collection.
    pub name: String,
    /// Identity of the entry.
    pub id: String,
    /// Kind of the entry.
    pub kind: CatalogKind,
    /// Current version of an object.
    pub version: Option<CatalogVersion>,
}

/// Rights of the token at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct PathRights {
    /// True if it may upload and change an entry at the path.
    pub write: bool,
    /// True if the answer is the same for all paths.
    pub everywhere: bool,
}

/// Entry that a search has found.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct FoundEntry {
    /// Path of the entry, `/PROJECT/PATH`.
    pub path: String,
    /// Identity of the entry.
    pub id: String,
    /// Kind of the entry.
    pub kind: CatalogKind,
    /// Current version of an object.
    pub version: Option<CatalogVersion>,
}

/// Page of entries, with its successor.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct CatalogPage<T> {
    /// Entries in the order of their names, or of their identities for a search.
    pub entries: Vec<T>,
    /// Value of `after` for the next page; `None` on the last page.
    pub next: Option<String>,
}

/// Search for entries. A missing part does not restrict the search.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FindRequest {
    /// Collection below which entries are searched, `/PROJECT/PATH`.
    pub under: Option<String>,
    /// Condition over attributes in the language of the catalog.
    pub condition: Option<String>,
    /// Pattern of the entry's name with `*`, `?` and `[abc]`.
    pub name: Option<String>,
    /// Value of `next` of the page before.
    pub after: Option<String>,
}

/// Attribute that is to be added.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NewAttribute {
    /// Name of the attribute.
    pub name: String,
    /// Value: a string, a number or a boolean.
    pub value: serde_json::Value,
    /// Unit of the value.
    pub unit: Option<String>,
}

/// Change of the attributes of an entry, done wholly or not at all.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct AttributeChange {
    /// Attributes that are added.
    pub add: Vec<NewAttribute>,
    /// Names whose attributes are removed before.
    pub remove: Vec<String>,
}

/// Change of the attributes of one entry among several.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EntryChange {
    /// Path of the entry, `/PROJECT/PATH`.
    pub path: String,
    /// Change of its attributes.
    #[serde(flatten)]
    pub change: AttributeChange,
}

/// Body of a request that changes several entries.
#[derive(Serialize)]
struct Batch<'a> {
    entries: &'a [EntryChange],
}

/// Effect of changes of several entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct ChangedEntries {
    /// Number of changes that were asked for.
    pub entries: u64,
    /// Number of those that changed something: the other entries had the attributes already.
    pub changed: u64,
}

impl Site {
    /// Reads the properties of the entry at `/PROJECT/PATH`.
    pub async fn catalog_stat(&self, path: &str) -> Result<CatalogStat, RemoteError> {
        self.catalog_get("stat", &[("path", path)]).await
    }

    /// Reads the rights of the token at `/PROJECT/PATH`, where no entry need be. Older sites do not know them.
    pub async fn catalog_rights(&self, path: &str) -> Result<PathRights, RemoteError> {
        self.catalog_get("rights", &[("path", path)]).await
    }

    /// Lists the entries of a collection, one page behind the name `after`.
    pub async fn catalog_list(
        &self,
        path: &str,
        after: Option<&str>,
    ) -> Result<CatalogPage<CatalogEntry>, RemoteError> {
        self.catalog_get("list", &[("path", Some(path)), ("after", after)]).await
    }

    /// Searches for entries and returns one page of them.
    pub async fn catalog_find(&self, find: &FindRequest) -> Result<CatalogPage<FoundEntry>, RemoteError> {
        self.catalog_get("find", find).await
    }

    /// Changes the attributes of the entry at `/PROJECT/PATH` and returns its properties.
    pub async fn catalog_attributes(
        &self,
        path: &str,
        change: &AttributeChange,
    ) -> Result<CatalogStat, RemoteError> {
        let action = "change the attributes by";
        let url = &self.address(["catalog", "attributes"])?;
        let body = serde_json::to_vec(change);
        let body = body.map_err(|error| RemoteError::nonsense(action, url, error))?.into();
        let request = self.request(Method::POST, url).query(&[("path", path)]);
        let request = request.header(CONTENT_TYPE, "application/json");
        self.send_json(Call { action, url, request, body, patience: Duration::ZERO }).await
    }

    /// Changes the attributes of up to [`MOST_BATCH_ENTRIES`] entries, all or none. The error of one has its place.
    pub async fn catalog_attributes_all(
        &self,
        entries: &[EntryChange],
    ) -> Result<ChangedEntries, RemoteError> {
        let action = "change the attributes by";
        let url = &self.address(["catalog", "attributes", "batch"])?;
        let body = serde_json::to_vec(&Batch { entries });
        let body = body.map_err(|error| RemoteError::nonsense(action, url, error))?.into();
        let request = self.request(Method::POST, url).header(CONTENT_TYPE, "application/json");
        self.send_json(Call { action, url, request, body, patience: Duration::ZERO }).await
    }

    async fn catalog_get<T: DeserializeOwned>(
        &self,
        name: &str,
        query: &(impl Serialize + ?Sized),
    ) -> Result<T, RemoteError> {
        let url = &self.address(["catalog", name])?;
        let request = self.request(Method::GET, url).query(query);
        let call =
            Call { action: "ask the catalog", url, request, body: Bytes::new(), patience: Duration::ZERO };
        self.send_json(call).await
    }
}
