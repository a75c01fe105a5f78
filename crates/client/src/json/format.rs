//! Ring that was made.

use super::Guarantee;
use serde::Serialize;
use std::path::Path;

/// Ring that was made.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct FormattedRing<'a> {
    pub path: &'a Path,
    pub name: &'a str,
    pub ring: String,
    pub lane_bytes: u64,
    pub slot_bytes: u64,
    pub slots: u32,
    pub reserve: u32,
    pub prefilled: bool,
    pub recovery: String,
    pub warnings: &'a [String],
    pub guarantee: Option<&'a Guarantee>,
}
