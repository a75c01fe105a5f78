//! Status of a shipper: a JSON file in its state folder, written every second, and the same as Prometheus metrics.

use super::ShipError;
use super::alarm::AlarmReport;
use super::meter::Totals;
use crate::link::Outage;
use crate::planning::{BitRate, ByteSize, CatchUp, disk_alarm};
use crate::settings::Settings;
use crate::statistics::{Balance, MinuteRow};
use crate::transfer::Transfer;
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

/// Name of the status file in the state folder.
pub const STATUS_FILE: &str = "status.json";

/// Name of the file with Prometheus metrics in the state folder, for a collector of text files.
const METRICS_FILE: &str = "metrics.prom";

/// Minutes over which the current rates are averaged.
pub const RECENT_MINUTES: i64 = 60;

/// Numbers of files by their state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Files that the archive has as they are.
    pub delivered: u64,
    /// Files that are being sent or wait.
    pub open: u64,
    /// Files that the archive refuses.
    pub refused: u64,
    /// Bytes that the archive does not have.
    pub backlog_bytes: u64,
}

impl Counts {
    pub(super) fn add<A: Clone>(&mut self, transfer: &Transfer<A>) {
        if transfer.is_refused() {
            self.refused += 1;
        } else if transfer.delivery().is_some() {
            self.delivered += 1;
        } else if !transfer.is_settled() {
            self.open += 1;
            self.backlog_bytes += transfer.backlog();
        }
    }
}

/// File that a shipper could not send.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct UnsentFile {
    /// Path of the file in its tree.
    pub path: String,
    /// Reason of it, and the remedy.
    pub reason: String,
}

impl UnsentFile {
    pub(super) fn new(path: &str, reason: &str) -> Self {
        Self { path: path.to_owned(), reason: reason.to_owned() }
    }
}

/// Outage that goes on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OutageStatus {
    /// Reason in a few words.
    pub reason: String,
    /// Seconds since its begin.
    pub seconds: f64,
}

/// Status of a shipper.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// Time in milliseconds since 1970.
    pub time_ms: i64,
    /// Process of the shipper.
    pub process: u32,
    /// Address of the archive.
    pub archive: String,
    /// Project at the archive.
    pub project: String,
    /// Numbers of files by state.
    #[serde(flatten)]
    pub counts: Counts,
    /// Totals since the start of the process.
    pub totals: Totals,
    /// Outage that goes on.
    pub outage: Option<OutageStatus>,
    /// Segments of one file that are sent together.
    pub window: usize,
    /// Mean production of the last hour in bits per second.
    pub production_bits: f64,
    /// Mean rate of a block in the last hour in bits per second; absent without blocks.
    pub archive_bits: Option<f64>,
    /// Seconds until the backlog is gone at these rates; absent if it never will be, or if no rate is known.
    pub catch_up_seconds: Option<f64>,
    /// Free bytes of the fullest file system.
    pub free_bytes: Option<u64>,
    /// Alarm about the local disk.
    pub alarm: AlarmReport,
    /// Files that could not be sent; at most 1000 are listed.
    #[serde(default)]
    pub unsent: Vec<UnsentFile>,
}

/// Inputs of a status that are measured at its time.
pub(super) struct Measured<'a> {
    pub(super) time_ms: i64,
    pub(super) counts: Counts,
    pub(super) totals: Totals,
    pub(super) outage: Option<(Outage, Duration)>,
    pub(super) window: usize,
    /// Rows of the last hour.
    pub(super) recent: &'a [MinuteRow],
    pub(super) free: Option<u64>,
}

impl Status {
    pub(super) fn new(settings: &Settings, measured: &Measured<'_>) -> Self {
        let Measured { time_ms, counts, totals, outage, window, recent, free } = *measured;
        let first = recent.first().map_or(0, |row| row.minute);
        let minutes = (time_ms.div_euclid(60_000) - first + 1).clamp(1, RECENT_MINUTES + 1);
        let produced: u64 = recent.iter().map(|row| row.produced_bytes).sum();
        let production = BitRate::from_bytes(produced, minutes as f64 * 60.0);
        let blocks: u64 = recent.iter().map(|row| row.blocks).sum();
        let rates: f64 = recent.iter().map(|row| row.rate_sum).sum();
        let archive = (blocks > 0).then(|| BitRate::from_bits(rates / blocks as f64));
        let backlog = ByteSize(counts.backlog_bytes);
        let balance = archive.map(|archive| Balance::new(production, archive, backlog));
        let catch_up = balance.and_then(|balance| match balance.catch_up {
            CatchUp::After(hours) => Some(hours.get() * 3600.0),
            CatchUp::Never => None,
        });
        let reserve = settings.disk.reserve;
        let alarm = match (free, archive) {
            (Some(free), Some(archive)) => {
                let room = ByteSize(free.saturating_sub(reserve));
                let archive = if outage.is_some() { BitRate::from_bits(0.0) } else { archive };
                AlarmReport::of(disk_alarm(room, production, archive, backlog), free < reserve)
            }
            (Some(free), None) if free < reserve => AlarmReport::Alarm { full_in_hours: 0.0 },
            _ => AlarmReport::Ok,
        };
        Self {
            time_ms,
            process: std::process::id(),
            archive: settings.archive.url.clone(),
            project: settings.archive.project.clone(),
            counts,
            totals,
            outage: outage.map(|(outage, since)| OutageStatus {
                reason: outage.name().to_owned(),
                seconds: since.as_secs_f64(),
            }),
            window,
            production_bits: production.bits(),
            archive_bits: archive.map(BitRate::bits),
            catch_up_seconds: catch_up,
            free_bytes: free,
            alarm,
            unsent: Vec::new(),
        }
    }

    /// Replaces the status file and the metrics file of a state folder.
    pub(super) fn write(&self, folder: &Path) -> Result<(), ShipError> {
        let failed = |error: &dyn std::fmt::Display| {
            ShipError(format!("cannot write the status to {}: {error}; make room", folder.display()))
        };
        let json = serde_json::to_vec_pretty(self).map_err(|error| failed(&error))?;
        for (name, bytes) in [(STATUS_FILE, json), (METRICS_FILE, self.metrics().into_bytes())] {
            let new = folder.join(format!("{name}.new"));
            std::fs::write(&new, bytes).map_err(|error| failed(&error))?;
            std::fs::rename(&new, folder.join(name)).map_err(|error| failed(&error))?;
        }
        Ok(())
    }

    /// Reads the status file of a state folder.
    pub fn read(folder: &Path) -> Result<Self, ShipError> {
        let file = folder.join(STATUS_FILE);
        let failed = |error: &dyn std::fmt::Display| {
            let file = file.display();
            ShipError(format!("cannot read {file}: {error}; name the state folder of a shipper that has run"))
        };
        let bytes = std::fs::read(&file).map_err(|error| failed(&error))?;
        serde_json::from_slice(&bytes).map_err(|error| failed(&error))
    }

    /// Status in the exposition format of Prometheus.
    pub fn metrics(&self) -> String {
        let mut text = String::new();
        let mut add = |name: &str, kind: &str, help: &str, value: f64| {
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "# HELP holdfast_ship_{name} {help}\n# TYPE holdfast_ship_{name} {kind}\nholdfast_ship_{name} {value}"
            );
        };
        let (counts, totals) = (&self.counts, &self.totals);
        add("backlog_bytes", "gauge", "Bytes that the archive does not have.", counts.backlog_bytes as f64);
        add("files_delivered", "gauge", "Files that the archive has as they are.", counts.delivered as f64);
        add("files_open", "gauge", "Files that are being sent or wait.", counts.open as f64);
        add("files_refused", "gauge", "Files that the archive refuses.", counts.refused as f64);
        add("delivered_files_total", "counter", "Files that were delivered.", totals.files as f64);
        add("delivered_bytes_total", "counter", "Bytes of delivered files.", totals.bytes as f64);
        add("sent_bytes_total", "counter", "Bytes of contents that were sent.", totals.sent_bytes as f64);
        add("wire_bytes_total", "counter", "Bytes of bodies on the network.", totals.wire_bytes as f64);
        add("resent_bytes_total", "counter", "Bytes that were sent again.", totals.resent_bytes as f64);
        add("damaged_blocks_total", "counter", "Blocks that arrived damaged.", totals.damaged_blocks as f64);
        add(
            "unverified_files_total",
            "counter",
            "Files without a verifiable copy.",
            totals.unverified as f64,
        );
        add("production_bits", "gauge", "Production of the last hour in bit/s.", self.production_bits);
        if let Some(archive) = self.archive_bits {
            add("archive_bits", "gauge", "Archive rate of the last hour in bit/s.", archive.round());
        }
        if let Some(seconds) = self.catch_up_seconds {
            add("catch_up_seconds", "gauge", "Time until the backlog is gone.", seconds);
        }
        if let Some(free) = self.free_bytes {
            add("free_bytes", "gauge", "Free bytes of the fullest file system.", free as f64);
        }
        let outage = self.outage.as_ref().map_or(0.0, |outage| outage.seconds);
        add("outage_seconds", "gauge", "Length of the outage that goes on.", outage);
        let alarm = f64::from(u8::from(self.alarm.is_alarm()));
        add("disk_alarm", "gauge", "1 while the disk fills before the archive catches up.", alarm);
        add("status_time_seconds", "gauge", "Time of this status.", self.time_ms as f64 / 1000.0);
        text
    }
}
