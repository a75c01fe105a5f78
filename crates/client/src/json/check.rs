//! Verification of a ring.

use super::Guarantee;
use serde::Serialize;
use std::path::Path;

/// Damaged place of a ring.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct DamagedPlace {
    pub damage: String,
    pub slot: Option<u32>,
    pub sequence: Option<u64>,
}

/// Ring that was verified.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct CheckedRing {
    pub slots: u64,
    pub bytes: u64,
    pub elements: Option<u64>,
    pub damaged: u64,
    pub expired: u64,
    pub holds: u32,
    pub guarantee: Option<Guarantee>,
}

/// Ring whose superblock was rebuilt.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct RebuiltRing<'a> {
    pub path: &'a Path,
    pub ring: String,
    pub name: &'a str,
    pub slots: u32,
    pub rebuilt: bool,
}
