//! Profiles that nobody measured, for tests of what is promised.
#![allow(dead_code, missing_docs, unreachable_pub, clippy::unwrap_used)]

use serde_json::{Value, json};
use std::fs;
use std::path::Path;

const MIB: u64 = 1 << 20;

/// A profile in eight zones, from 400 MiB/s down by 20 each.
pub fn profile(file: &Path, zone: u64, device: &Value) {
    let zones: Vec<Value> = (0..8)
        .map(|number| {
            json!({
                "offset": number * zone, "bytes": zone,
                "write_worst_bytes_per_s": (400 - 20 * number) * MIB, "write_mean_bytes_per_s": 450 * MIB,
                "read_worst_bytes_per_s": 600 * MIB, "read_mean_bytes_per_s": 700 * MIB,
            })
        })
        .collect();
    let text = json!({
        "format": "holdfast profile", "version": 1, "measured_at": "2026-11-20T10:05:00Z",
        "device": device, "zones": zones,
        "reposition": {
            "near_seconds": 0.0001, "mean_seconds": 0.0001, "worst_seconds": 0.0001, "turnaround_seconds": 0.0,
        },
        "commit_seconds": 0.0005,
        "read_error": { "limit_seconds": 0.1, "assumed": true },
        "stalls": { "sigma_seconds": 0.05, "rho_ppm": 1000, "count": 1, "watched_seconds": 60.0 },
        "by_block": [], "by_depth": [], "parallel": 1, "write_beside_reads_bytes_per_s": 300 * MIB,
        "write_cache": true, "discard": false, "preconditioned": false,
        "packer_elements_per_s": 5_000_000, "packer_bytes_per_s": 2000 * MIB, "remarks": ["made by hand"],
    });
    fs::write(file, text.to_string()).unwrap();
}

pub fn of_file(folder: &Path) {
    let device = json!({
        "path": "/data/x", "model": "", "serial": "", "medium": "file", "bytes": 1024 * MIB, "rotational": null,
    });
    profile(&folder.join("p.json"), 128 * MIB, &device);
}

/// Whether the file system of the test's folder is one on which something can be promised.
pub fn promising(folder: &Path) -> bool {
    holdfast_media::Footing::of(folder).doubt.is_none()
}
