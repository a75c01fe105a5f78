//! Work of sites for each other: policies of collections, jobs, staging, and ordered holds.

use serde::Serialize;

/// Policy of a collection.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct PolicyLine<'a> {
    pub path: &'a str,
    pub copies: u64,
    pub sites: &'a [String],
    pub priority: i32,
}

/// Policy that was removed.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct RemovedPolicy<'a> {
    pub removed: &'a str,
}

/// Job of a site.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct JobLine<'a> {
    pub path: &'a str,
    pub object: &'a str,
    pub version: &'a str,
    pub reason: &'a str,
    pub state: &'a str,
    pub attempts: u32,
    pub changed: String,
    pub due: Option<String>,
    pub error: Option<&'a str>,
}

/// Versions that are staged.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct StagedVersions<'a> {
    pub path: &'a str,
    pub fetching: u64,
}

/// Entry of the trash that is gone for ever.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct PurgedEntry<'a> {
    pub purged: &'a str,
}

/// Order to hold a range of a ring of a site.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct HoldOrderLine<'a> {
    pub order: &'a str,
    pub site: &'a str,
    pub ring: &'a str,
    pub streams: &'a [String],
    pub from: Option<String>,
    pub to: Option<String>,
    pub reason: &'a str,
    pub owner: &'a str,
    pub by: &'a str,
    pub ordered: String,
    pub state: &'a str,
    pub changed: Option<String>,
    pub hold: Option<u64>,
    pub slots: Option<u64>,
    pub bytes: Option<u64>,
    pub message: Option<&'a str>,
}
