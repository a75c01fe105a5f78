//! Answers of a site as the JSON shapes of commands.

use holdfast_base::Timestamp;
use holdfast_client::json::{SiteAttribute, SiteEntryLine, SiteReplica, SiteStat, SiteUpload, SiteVersion};
use holdfast_client::times;
use holdfast_remote::{
    AttributeValue, CatalogAttribute, CatalogKind, CatalogStat, CatalogVersion, GrowingObject, UploadState,
};
use serde_json::Value;

/// Entry of the name space, of a listing or a search.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EntryView<'a> {
    /// Path of the entry, `/PROJECT/PATH`.
    pub(crate) path: &'a str,
    /// Identity of the entry.
    pub(crate) id: &'a str,
    /// Kind of the entry.
    pub(crate) kind: CatalogKind,
    /// Current version of an object.
    pub(crate) version: Option<&'a CatalogVersion>,
}

impl<'a> EntryView<'a> {
    /// Shape of the entry for programs.
    pub(crate) fn json(&self) -> SiteEntryLine<'a> {
        let version = self.version;
        SiteEntryLine {
            path: self.path,
            id: self.id,
            kind: kind_name(self.kind),
            version: version.map(|version| version.version.as_str()),
            bytes: version.map(|version| version.size),
            blake3: version.map(|version| version.blake3.as_str()),
            stored: version.map(|version| stored(version.stored)),
        }
    }
}

/// Time of a site, in milliseconds since 1970, as text.
pub(crate) fn stored(milliseconds: i64) -> String {
    times::rfc3339(Timestamp(milliseconds.saturating_mul(1_000_000)))
}

/// Name of a site; its identity from a server that tells no name.
pub(crate) fn site_name<'a>(site: &'a str, name: &'a str) -> &'a str {
    if name.is_empty() { site } else { name }
}

/// Name of the kind of an entry.
pub(crate) fn kind_name(kind: CatalogKind) -> &'static str {
    match kind {
        CatalogKind::Object => "object",
        CatalogKind::Collection => "collection",
        CatalogKind::Link => "link",
    }
}

/// Shape of an upload at a path, `/PROJECT/PATH`.
pub(crate) fn upload<'a>(path: &'a str, growing: &'a GrowingObject) -> SiteUpload<'a> {
    let state = match growing.state {
        UploadState::Receiving => "receiving",
        UploadState::Assembling => "assembling",
        UploadState::Complete => "complete",
        UploadState::Stored => "stored",
        UploadState::Failed => "failed",
    };
    SiteUpload { path, upload: &growing.upload, state, bytes: growing.offset, length: growing.length }
}

/// Shape of an attribute of an entry.
pub(crate) fn attribute(attribute: &CatalogAttribute) -> SiteAttribute<'_, Value> {
    let (r#type, value) = match &attribute.value {
        AttributeValue::Text(text) => ("text", text.as_str().into()),
        AttributeValue::Integer(number) => ("integer", (*number).into()),
        AttributeValue::Float(number) => ("float", (*number).into()),
        AttributeValue::Time(time) => ("time", time.as_str().into()),
    };
    SiteAttribute { name: &attribute.name, r#type, value, unit: attribute.unit.as_deref() }
}

/// Shape of the properties of an entry.
pub(crate) fn stat<'a>(stat: &'a CatalogStat, growing: &'a [GrowingObject]) -> SiteStat<'a, Value> {
    let versions = stat.versions.iter().map(|version| SiteVersion {
        version: &version.version,
        bytes: version.size,
        blake3: &version.blake3,
        stored: stored(version.stored),
    });
    let replicas = stat.replicas.iter().map(|replica| SiteReplica {
        version: &replica.version,
        site: &replica.site,
        site_name: site_name(&replica.site, &replica.site_name),
        vault: &replica.vault,
        key: &replica.key,
        state: &replica.state,
    });
    SiteStat {
        path: &stat.path,
        id: stat.id.as_deref(),
        kind: kind_name(stat.kind),
        current: stat.current.as_deref(),
        versions: versions.collect(),
        replicas: replicas.collect(),
        attributes: stat.attributes.iter().map(attribute).collect(),
        growing: growing.iter().map(|growing| upload(&stat.path, growing)).collect(),
    }
}
