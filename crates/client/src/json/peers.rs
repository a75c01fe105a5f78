//! Exchange between sites: peers, and conflicts.

use serde::Serialize;

/// Peer of a site with the state of the exchange.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct PeerLine<'a> {
    pub name: &'a str,
    pub url: &'a str,
    pub fingerprint: Option<&'a str>,
    pub interval_seconds: f64,
    pub state: &'a str,
    pub site: Option<&'a str>,
    pub contact: Option<String>,
    pub latency_seconds: Option<f64>,
    pub queue: u64,
    pub lag_seconds: f64,
    pub pushed: u64,
    pub pulled: u64,
    pub failed_since: Option<String>,
    pub error: Option<&'a str>,
}

/// Peer that was removed.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct RemovedPeer<'a> {
    pub removed: &'a str,
}

/// Digest of a site's catalog.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct DigestLine<'a> {
    pub site: &'a str,
    pub name: &'a str,
    pub digest: &'a str,
    pub vector: &'a str,
}

/// Write of a conflict.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct ConflictWriteLine<'a> {
    pub site: &'a str,
    pub site_name: &'a str,
    pub time: String,
    pub value: Option<&'a str>,
}

/// Conflict between changes of several sites.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct ConflictLine<'a> {
    pub id: &'a str,
    pub kind: &'a str,
    pub object: &'a str,
    pub path: Option<&'a str>,
    pub state: &'a str,
    pub lost: ConflictWriteLine<'a>,
    pub won: Option<ConflictWriteLine<'a>>,
    pub noted: Option<String>,
    pub until: Option<String>,
    pub choice: Option<&'a str>,
}

/// Conflict that was settled.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct SettledConflict<'a> {
    pub settled: &'a str,
    pub choice: &'a str,
}
