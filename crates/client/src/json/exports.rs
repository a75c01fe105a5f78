//! Exports of ranges and of query hits.

use super::time_if;
use holdfast_base::Timestamp;
use serde::Serialize;
use std::path::Path;

/// Export of a range.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct RangeExport<'a> {
    pub output: Option<&'a Path>,
    pub format: &'static str,
    pub bytes: u64,
    pub blake3: &'a str,
    pub elements: u64,
    pub payload_bytes: u64,
    pub gaps: u64,
    pub partial: u64,
    pub damaged: u64,
    pub expired_slots: u64,
    #[serde(serialize_with = "time_if")]
    pub expired_before: Option<Timestamp>,
    pub expired_ordinals: Vec<(u64, u64)>,
}

/// Export of query hits.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct HitsExport<'a> {
    pub output: Option<&'a Path>,
    pub format: &'static str,
    pub bytes: u64,
    pub blake3: &'a str,
    pub elements: u64,
    pub payload_bytes: u64,
    pub gone: u64,
    pub partial: u64,
    pub damaged: u64,
}
