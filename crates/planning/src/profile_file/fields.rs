//! The fields of the profile's file, version 1: a mirror of what `holdfast_media::Profile` has, with the units in the
//! names, and the limits of what can be relied on.

use super::{FORMAT, VERSION};
use holdfast_base::{ByteSize, Rate};
use holdfast_client::times::{self, When};
use holdfast_media::{BySize, Identity, Profile, ReadError, Reposition, Stalls, Zone};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Zones at most: a grain of a thousandth of a device is finer than any rate is known.
const MOST_ZONES: usize = 4096;

/// Rows of the smaller tables, and remarks.
const MOST_ROWS: usize = 256;

/// Characters of a text: a path may have 4096 bytes.
const MOST_TEXT: usize = 4096;

/// No span in a profile is longer: a day.
const LONGEST: f64 = 86_400.0;

/// As much as every version has.
#[derive(Deserialize)]
pub(super) struct Head {
    pub(super) format: String,
    pub(super) version: u32,
}

/// Version 1.
#[derive(Serialize, Deserialize)]
pub(super) struct ProfileV1 {
    format: String,
    version: u32,
    measured_at: String,
    device: Device,
    zones: Vec<ZoneFields>,
    reposition: RepositionFields,
    commit_seconds: f64,
    read_error: ReadErrorFields,
    stalls: StallsFields,
    by_block: Vec<SizeFields>,
    by_depth: Vec<Depth>,
    parallel: u16,
    write_beside_reads_bytes_per_s: u64,
    write_cache: Option<bool>,
    discard: bool,
    preconditioned: bool,
    packer_elements_per_s: u64,
    /// Not in the first files of this version.
    #[serde(default)]
    packer_cells_per_s: u64,
    packer_bytes_per_s: u64,
    remarks: Vec<String>,
}

#[derive(Serialize, Deserialize)]
struct Device {
    path: String,
    model: String,
    serial: String,
    medium: String,
    bytes: u64,
    rotational: Option<bool>,
}

#[derive(Serialize, Deserialize)]
struct ZoneFields {
    offset: u64,
    bytes: u64,
    write_worst_bytes_per_s: u64,
    write_mean_bytes_per_s: u64,
    read_worst_bytes_per_s: u64,
    read_mean_bytes_per_s: u64,
}

#[derive(Serialize, Deserialize)]
#[expect(clippy::struct_field_names, reason = "the unit is in the name")]
struct RepositionFields {
    near_seconds: f64,
    mean_seconds: f64,
    worst_seconds: f64,
    turnaround_seconds: f64,
}

#[derive(Serialize, Deserialize)]
struct ReadErrorFields {
    limit_seconds: f64,
    /// Whether the drive did not say so itself.
    assumed: bool,
}

#[derive(Serialize, Deserialize)]
struct StallsFields {
    sigma_seconds: f64,
    rho_ppm: u32,
    count: u32,
    watched_seconds: f64,
}

#[derive(Serialize, Deserialize)]
struct SizeFields {
    block_bytes: u64,
    write_bytes_per_s: u64,
    /// Not in the first files of this version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    write_at_end_bytes_per_s: Option<u64>,
}

#[derive(Serialize, Deserialize)]
struct Depth {
    requests: u16,
    write_bytes_per_s: u64,
    read_bytes_per_s: u64,
}

fn cut(text: &str) -> String {
    text.chars().take(MOST_TEXT).collect()
}

impl ProfileV1 {
    /// What there is to write. Remarks beyond their limit are cut off.
    pub(super) fn of(profile: &Profile) -> Self {
        let Profile { device, reposition, stalls, .. } = profile;
        let limit_seconds = profile.read_error.limit().as_secs_f64();
        let assumed = matches!(profile.read_error, ReadError::Assumed(_));
        let zone = |zone: &Zone| ZoneFields {
            offset: zone.offset,
            bytes: zone.bytes,
            write_worst_bytes_per_s: zone.write_worst.0,
            write_mean_bytes_per_s: zone.write_mean.0,
            read_worst_bytes_per_s: zone.read_worst.0,
            read_mean_bytes_per_s: zone.read_mean.0,
        };
        let block = |size: &BySize| SizeFields {
            block_bytes: size.bytes.0,
            write_bytes_per_s: size.write.0,
            write_at_end_bytes_per_s: size.write_at_end.map(|rate| rate.0),
        };
        let depth = |(depth, write, read): &(u16, Rate, Rate)| Depth {
            requests: *depth,
            write_bytes_per_s: write.0,
            read_bytes_per_s: read.0,
        };
        Self {
            format: FORMAT.to_owned(),
            version: VERSION,
            measured_at: times::rfc3339(profile.at),
            device: Device {
                path: cut(&device.path),
                model: cut(&device.model),
                serial: cut(&device.serial),
                medium: cut(&device.medium),
                bytes: device.bytes.0,
                rotational: device.rotational,
            },
            zones: profile.zones.iter().map(zone).collect(),
            reposition: RepositionFields {
                near_seconds: reposition.near.as_secs_f64(),
                mean_seconds: reposition.mean.as_secs_f64(),
                worst_seconds: reposition.worst.as_secs_f64(),
                turnaround_seconds: reposition.turnaround.as_secs_f64(),
            },
            commit_seconds: profile.commit.as_secs_f64(),
            read_error: ReadErrorFields { limit_seconds, assumed },
            stalls: StallsFields {
                sigma_seconds: stalls.sigma.as_secs_f64(),
                rho_ppm: stalls.rho,
                count: stalls.count,
                watched_seconds: stalls.watched.as_secs_f64(),
            },
            by_block: profile.by_block.iter().map(block).collect(),
            by_depth: profile.by_depth.iter().map(depth).collect(),
            parallel: profile.parallel,
            write_beside_reads_bytes_per_s: profile.write_beside_reads.0,
            write_cache: profile.write_cache,
            discard: profile.discard,
            preconditioned: profile.preconditioned,
            packer_elements_per_s: profile.packer_elements,
            packer_cells_per_s: profile.packer_cells,
            packer_bytes_per_s: profile.packer_bytes.0,
            remarks: profile.remarks.iter().take(MOST_ROWS).map(|remark| cut(remark)).collect(),
        }
    }

    /// Whether a guarantee can rest on it; otherwise what is wrong.
    pub(super) fn check(&self) -> Result<(), String> {
        self.check_zones()?;
        for (name, span) in self.spans() {
            if !(0.0..=LONGEST).contains(&span) {
                return Err(format!("{name} is {span:?}, and it can be 0 to {LONGEST} only"));
            }
        }
        for (name, number) in [
            ("parallel", u64::from(self.parallel)),
            ("packer_elements_per_s", self.packer_elements_per_s),
            ("packer_bytes_per_s", self.packer_bytes_per_s),
            ("write_beside_reads_bytes_per_s", self.write_beside_reads_bytes_per_s),
            ("device.bytes", self.device.bytes),
        ] {
            if number == 0 {
                return Err(format!("{name} is 0"));
            }
        }
        if self.stalls.rho_ppm >= 1_000_000 {
            return Err(format!(
                "stalls.rho_ppm is {}, and a device that stands still all the time writes nothing",
                self.stalls.rho_ppm
            ));
        }
        for (name, rows) in [
            ("by_block", self.by_block.len()),
            ("by_depth", self.by_depth.len()),
            ("remarks", self.remarks.len()),
        ] {
            if rows > MOST_ROWS {
                return Err(format!("{name} has {rows} rows, {MOST_ROWS} at most are taken"));
            }
        }
        Ok(())
    }

    fn check_zones(&self) -> Result<(), String> {
        if self.zones.is_empty() {
            return Err("it has no zones".to_owned());
        }
        if self.zones.len() > MOST_ZONES {
            return Err(format!("it has {} zones, {MOST_ZONES} at most are taken", self.zones.len()));
        }
        let mut end = 0u64;
        for (number, zone) in self.zones.iter().enumerate() {
            if zone.offset != end {
                return Err(format!(
                    "zone {number} begins at byte {}, and the one before it ends at {end}",
                    zone.offset
                ));
            }
            if zone.bytes == 0 || zone.write_worst_bytes_per_s == 0 || zone.read_worst_bytes_per_s == 0 {
                return Err(format!("zone {number} at byte {end} has a length or a rate of 0"));
            }
            end = end.saturating_add(zone.bytes);
        }
        if end > self.device.bytes {
            return Err(format!("its zones end at byte {end}, and the device at {}", self.device.bytes));
        }
        Ok(())
    }

    fn spans(&self) -> [(&'static str, f64); 8] {
        let Self { reposition, stalls, read_error, .. } = self;
        [
            ("reposition.near_seconds", reposition.near_seconds),
            ("reposition.mean_seconds", reposition.mean_seconds),
            ("reposition.worst_seconds", reposition.worst_seconds),
            ("reposition.turnaround_seconds", reposition.turnaround_seconds),
            ("commit_seconds", self.commit_seconds),
            ("read_error.limit_seconds", read_error.limit_seconds),
            ("stalls.sigma_seconds", stalls.sigma_seconds),
            ("stalls.watched_seconds", stalls.watched_seconds),
        ]
    }

    /// The profile, of fields that were checked.
    pub(super) fn into_profile(self) -> Result<Profile, String> {
        let Ok(When::At(at)) = times::when(&self.measured_at) else {
            return Err(format!("measured_at is `{}`, which is no time in RFC 3339", cut(&self.measured_at)));
        };
        let span = Duration::from_secs_f64;
        let zone = |zone: ZoneFields| Zone {
            offset: zone.offset,
            bytes: zone.bytes,
            write_worst: Rate(zone.write_worst_bytes_per_s),
            write_mean: Rate(zone.write_mean_bytes_per_s),
            read_worst: Rate(zone.read_worst_bytes_per_s),
            read_mean: Rate(zone.read_mean_bytes_per_s),
        };
        let limit = span(self.read_error.limit_seconds);
        let block = |row: SizeFields| BySize {
            bytes: ByteSize(row.block_bytes),
            write: Rate(row.write_bytes_per_s),
            write_at_end: row.write_at_end_bytes_per_s.map(Rate),
        };
        let depth = |row: Depth| (row.requests, Rate(row.write_bytes_per_s), Rate(row.read_bytes_per_s));
        Ok(Profile {
            device: Identity {
                path: self.device.path,
                model: self.device.model,
                serial: self.device.serial,
                medium: self.device.medium,
                bytes: ByteSize(self.device.bytes),
                rotational: self.device.rotational,
            },
            at,
            zones: self.zones.into_iter().map(zone).collect(),
            reposition: Reposition {
                near: span(self.reposition.near_seconds),
                mean: span(self.reposition.mean_seconds),
                worst: span(self.reposition.worst_seconds),
                turnaround: span(self.reposition.turnaround_seconds),
            },
            commit: span(self.commit_seconds),
            read_error: if self.read_error.assumed {
                ReadError::Assumed(limit)
            } else {
                ReadError::Limited(limit)
            },
            stalls: Stalls {
                sigma: span(self.stalls.sigma_seconds),
                rho: self.stalls.rho_ppm,
                count: self.stalls.count,
                watched: span(self.stalls.watched_seconds),
            },
            by_block: self.by_block.into_iter().map(block).collect(),
            by_depth: self.by_depth.into_iter().map(depth).collect(),
            parallel: self.parallel,
            write_beside_reads: Rate(self.write_beside_reads_bytes_per_s),
            write_cache: self.write_cache,
            discard: self.discard,
            preconditioned: self.preconditioned,
            packer_elements: self.packer_elements_per_s,
            packer_cells: self.packer_cells_per_s,
            packer_bytes: Rate(self.packer_bytes_per_s),
            remarks: self.remarks,
        })
    }
}
