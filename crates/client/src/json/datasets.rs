//! Datasets and vaults: evacuations, archives, packed folders, verifications, scrubs.

use serde::Serialize;
use std::path::Path;

/// Hold that was evacuated.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct EvacuatedHold<'a> {
    pub id: u64,
    pub dataset: &'a str,
    pub output: &'a Path,
    pub bytes: u64,
    pub elements: u64,
    pub payload_bytes: u64,
    pub chunks: u64,
    pub partial: u64,
    pub damaged: u64,
    pub released_slots: Option<u32>,
}

/// Dataset and its manifest.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct DatasetInfo<'a, M: Serialize> {
    pub path: &'a Path,
    pub dataset: &'a str,
    pub bytes: u64,
    pub manifest: M,
}

/// MCAP file without a manifest.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct McapInfo<'a> {
    pub path: &'a Path,
    pub dataset: Option<&'a str>,
    pub bytes: u64,
    pub chunks: u64,
    pub compressions: &'a [String],
    pub messages: u64,
    pub first_ns: Option<u64>,
    pub last_ns: Option<u64>,
    pub scanned: bool,
    pub topics: Vec<TopicInfo<'a>>,
}

/// Channel of an MCAP file.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct TopicInfo<'a> {
    pub topic: &'a str,
    pub encoding: &'a str,
    pub schema: &'a str,
    pub messages: u64,
}

/// Dataset that was verified.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct VerifiedDataset<'a> {
    pub path: &'a Path,
    pub dataset: &'a str,
    pub bytes: u64,
    pub chunks: u64,
    pub damaged: Vec<DamagedPart<'a>>,
}

/// Part of a dataset that did not pass its check.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct DamagedPart<'a> {
    pub place: &'a str,
    pub cause: &'a str,
}

/// Dataset that `archive` published.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct ArchivedDataset<'a> {
    pub output: &'a str,
    pub dataset: &'a str,
    pub stream: &'a str,
    pub bytes: u64,
    pub elements: u64,
    pub payload_bytes: u64,
    pub first_ordinal: u64,
    pub next_ordinal: u64,
    pub expired_ordinals: u64,
    pub partial: u64,
    pub damaged: u64,
}

/// Vault of the configuration file.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct VaultLine<'a> {
    pub name: &'a str,
    pub url: &'a str,
    pub endpoint: Option<&'a str>,
}

/// Object of a vault.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct VaultObjectLine<'a> {
    pub path: &'a str,
    pub bytes: u64,
    pub modified: String,
}

/// Vaults that were synchronised.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct SyncedVaults<'a> {
    pub from: &'a str,
    pub to: &'a str,
    pub copied: u64,
    pub copied_bytes: u64,
    pub present: u64,
    pub different: &'a [String],
}

/// Vault that was scrubbed.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct ScrubbedVault<'a> {
    pub vault: &'a str,
    pub datasets: u64,
    pub bytes: u64,
    pub others: u64,
    pub damaged: Vec<DamagedDataset<'a>>,
}

/// Dataset that did not pass a scrub.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct DamagedDataset<'a> {
    pub path: &'a str,
    pub parts: Vec<DamagedPart<'a>>,
    pub repaired_from: Option<&'a str>,
}

/// Vault that was tried.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct CheckedVault<'a> {
    pub vault: &'a str,
}

/// Object that was removed from a vault.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct RemovedObject<'a> {
    pub removed: &'a str,
}

/// Folder that was packed to a dataset.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct PackedFolder<'a> {
    pub path: &'a Path,
    pub dataset: &'a str,
    pub output: &'a Path,
    pub bytes: u64,
    pub chunks: u64,
    pub files: u64,
    pub hard_links: u64,
    pub directories: u64,
    pub symlinks: u64,
    pub series: u64,
    pub content_bytes: u64,
    pub stored_bytes: u64,
    pub left_out: u64,
    pub changed: u64,
    pub listed: Vec<ListedEntry>,
}

/// Folder that was unpacked from a dataset.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct UnpackedFolder<'a> {
    pub path: &'a Path,
    pub output: &'a Path,
    pub entries: u64,
    pub content_bytes: u64,
    pub damaged_files: u64,
    pub listed: Vec<ListedEntry>,
}

/// Entry of a folder that was left out, or changed, or is damaged.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct ListedEntry {
    pub path: String,
    pub reason: String,
}

/// File that was converted.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct ConvertedFile<'a> {
    pub path: &'a Path,
    pub output: &'a Path,
    pub bytes: u64,
    pub channels: u64,
    pub messages: u64,
    pub damage: Option<FileDamage<'a>>,
}

/// File that was recovered.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct RecoveredFile<'a> {
    pub path: &'a Path,
    pub output: &'a Path,
    pub dataset: Option<&'a str>,
    pub bytes: u64,
    pub chunks: u64,
    pub channels: u64,
    pub messages: u64,
    pub damage: Option<FileDamage<'a>>,
}

/// First damage of a file of which the rest was saved.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct FileDamage<'a> {
    pub at_byte: u64,
    pub cause: &'a str,
    pub lost_chunks: u64,
}
