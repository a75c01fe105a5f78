//! Datasets: evacuations and verifications.

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
