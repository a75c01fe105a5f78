//! Scans: hits, digests, statistics, and the report of a scan.

use serde::Serialize;

/// Name of an item.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct ScannedItem<'a> {
    pub source: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_bytes: Option<String>,
    pub stream: Option<&'a str>,
    pub ordinal: Option<u64>,
    pub arrival_ns: Option<i64>,
}

/// Line that has matches of a search.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct FoundLine<'a> {
    #[serde(flatten)]
    pub item: ScannedItem<'a>,
    pub offset: u64,
    pub line: Option<u64>,
    pub text_offset: u64,
    pub text: &'a str,
    pub matches: &'a [(u64, u64)],
}

/// Item that has matches of a search.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct FoundItem<'a> {
    #[serde(flatten)]
    pub item: ScannedItem<'a>,
    pub lines: u64,
}

/// Match of an approximate search.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct FoundMatch<'a> {
    #[serde(flatten)]
    pub item: ScannedItem<'a>,
    pub record: Option<&'a str>,
    pub strand: Option<&'a str>,
    pub pattern: usize,
    pub start: u64,
    pub end: u64,
    pub distance: u32,
    pub text: &'a str,
}

/// Digests of an item.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct ItemHashes<'a> {
    #[serde(flatten)]
    pub item: ScannedItem<'a>,
    pub bytes: u64,
    pub hashes: Vec<(&'a str, &'a str)>,
}

/// File that was compared with its digest in a list.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct CheckedItem<'a> {
    pub source: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_bytes: Option<String>,
    pub check: &'a str,
}

/// Statistics of a file or stream.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct ItemStatistics<'a> {
    pub source: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_bytes: Option<String>,
    pub stream: Option<&'a str>,
    pub items: u64,
    pub bytes: u64,
    pub entropy: f64,
    pub kind: Option<&'a str>,
    pub histogram: &'a [u64],
}

/// File or object that was encrypted or decrypted.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct CryptedItem<'a> {
    pub source: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_bytes: Option<String>,
    pub output: &'a str,
    pub bytes: u64,
}

/// Result of a module in WebAssembly.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct ModuleResult<'a> {
    #[serde(flatten)]
    pub item: ScannedItem<'a>,
    pub offset: Option<u64>,
    pub text: &'a str,
}

/// Total of a module in WebAssembly.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct ModuleTotal<'a> {
    pub total: &'a str,
}

/// Report of a scan.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct ScanReport<R: Serialize, B: Serialize> {
    pub explain: R,
    pub bottleneck: B,
}
