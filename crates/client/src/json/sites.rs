//! Sites: uploads, downloads, entries of the catalog, tokens, and the start of a server.

use serde::Serialize;
use std::path::Path;

/// Server that accepts connections.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct StartedServer<'a> {
    pub event: &'a str,
    pub url: &'a str,
    pub fingerprint: Option<String>,
    pub data: &'a Path,
    pub vaults: Vec<String>,
    pub tokens: usize,
}

/// File system that is mounted.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct MountEvent<'a> {
    pub event: &'a str,
    pub path: &'a Path,
    pub site: &'a str,
}

/// Ways in which `holdfast shell` shows files: that which is taken, and those that the system refuses.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct ShellWays {
    pub way: &'static str,
    pub refused: Vec<RefusedWay>,
}

/// Way that the system refuses.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct RefusedWay {
    pub way: &'static str,
    pub reason: String,
}

/// Token of a site. Only a new one has its secret.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct SiteToken<'a> {
    pub id: String,
    pub name: &'a str,
    pub scopes: Vec<&'a str>,
    pub project: Option<&'a str>,
    pub account: Option<&'a str>,
    pub created: String,
    pub expires: Option<String>,
    pub revoked: Option<String>,
    pub last_use: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<&'a str>,
}

/// Token that was revoked.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct RevokedToken<'a> {
    pub revoked: &'a str,
}

/// File that a site has stored.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct SentFile<'a> {
    pub file: &'a str,
    pub path: &'a str,
    pub version: Option<&'a str>,
    pub bytes: u64,
    pub blake3: &'a str,
    pub resumed_bytes: u64,
}

/// Lines of a file of metadata that a site has imported together.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct ImportedLines {
    pub first_line: u64,
    pub last_line: u64,
    pub entries: u64,
    pub changed: u64,
}

/// Object that was written to a file.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct ReceivedFile<'a> {
    pub path: &'a str,
    pub file: &'a str,
    pub version: Option<&'a str>,
    pub bytes: u64,
    pub blake3: &'a str,
    pub verified: bool,
}

/// Version of an object.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct SiteVersion<'a> {
    pub version: &'a str,
    pub bytes: u64,
    pub blake3: &'a str,
    pub stored: String,
}

/// Entry of a listing or a search.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct SiteEntryLine<'a> {
    pub path: &'a str,
    pub id: &'a str,
    pub kind: &'a str,
    pub version: Option<&'a str>,
    pub bytes: Option<u64>,
    pub blake3: Option<&'a str>,
    pub stored: Option<String>,
}

/// Upload that the site has not stored yet.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct SiteUpload<'a> {
    pub path: &'a str,
    pub upload: &'a str,
    pub state: &'a str,
    pub bytes: u64,
    pub length: Option<u64>,
}

/// Replica of a version in a vault.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct SiteReplica<'a> {
    pub version: &'a str,
    pub site: &'a str,
    pub site_name: &'a str,
    pub vault: &'a str,
    pub key: &'a str,
    pub state: &'a str,
}

/// Attribute of an entry.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct SiteAttribute<'a, V: Serialize> {
    pub name: &'a str,
    pub r#type: &'a str,
    pub value: V,
    pub unit: Option<&'a str>,
}

/// Properties of an entry, with the uploads that grow there.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct SiteStat<'a, V: Serialize> {
    pub path: &'a str,
    pub id: Option<&'a str>,
    pub kind: &'a str,
    pub current: Option<&'a str>,
    pub versions: Vec<SiteVersion<'a>>,
    pub replicas: Vec<SiteReplica<'a>>,
    pub attributes: Vec<SiteAttribute<'a, V>>,
    pub growing: Vec<SiteUpload<'a>>,
}
