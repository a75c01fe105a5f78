//! Result of a measurement, as JSON.

use crate::plan::RegionPromise;
use serde::Serialize;
use std::path::Path;

/// Result of a measurement: the files, and what the device can be relied on for.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct ProfileResult<'a> {
    pub profile: &'a Path,
    pub picture: &'a Path,
    pub device_bytes: u64,
    pub zones: usize,
    pub worst_write_bytes_per_second: u64,
    pub worst_read_bytes_per_second: u64,
    pub worst_reposition_seconds: f64,
    pub commit_seconds: f64,
    pub read_error_seconds: f64,
    pub stall_seconds: f64,
    pub stalled_share: f64,
    pub write_cache: Option<bool>,
    pub packer_elements_per_second: u64,
    pub packer_cells_per_second: u64,
    pub by_region: Vec<RegionPromise>,
    pub notes: Vec<String>,
}
