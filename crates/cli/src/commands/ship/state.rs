//! `holdfast ship status` and `report`: the state of a shipper, from its state folder.

use crate::out::Out;
use holdfast_base::failure::{Failure, Result};
use holdfast_base::{ByteSize, clean};
use holdfast_client::json::WrittenReport;
use holdfast_client::times;
use holdfast_ship::history::History;
use holdfast_ship::ledger::Ledger;
use holdfast_ship::planning::BitRate;
use holdfast_ship::settings::Settings;
use holdfast_ship::shipper::Status;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Age of a status after which its shipper is not running.
const STALE: Duration = Duration::from_secs(10);

/// Minutes of a day.
const DAY: i64 = 24 * 60;

/// State folder of a configuration file, or the folder itself.
pub(super) fn folder(source: &Path) -> Result<PathBuf> {
    if source.is_dir() {
        return Ok(source.to_owned());
    }
    let settings = Settings::read(source).map_err(|error| Failure::usage(error).at_path(source))?;
    Ok(settings.state.folder)
}

/// Current time in milliseconds since 1970.
pub(super) fn now_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
}

pub(super) fn status(source: &Path, prometheus: bool, out: &mut Out) -> Result<()> {
    let status = Status::read(&folder(source)?).map_err(Failure::failed)?;
    if prometheus {
        out.bytes(status.metrics().as_bytes())?;
    } else if out.is_json() {
        out.object(&status)?;
    } else {
        show(&status, out)?;
    }
    if status.alarm.is_alarm() {
        return Err(Failure::failed(status.alarm.text()).advice("see `holdfast ship report`"));
    }
    Ok(())
}

fn show(status: &Status, out: &mut Out) -> Result<()> {
    let rate = |bits: f64| BitRate::from_bits(bits).to_string();
    let age = Duration::from_millis((now_ms() - status.time_ms).max(0) as u64);
    let running = if age > STALE {
        format!("not running since {}", times::spoken(age))
    } else {
        format!("running as process {}", status.process)
    };
    let counts = &status.counts;
    out.line(format_args!("archive     {}, project {}", clean(&status.archive), clean(&status.project)))?;
    out.line(format_args!("shipper     {running}"))?;
    out.line(format_args!(
        "files       {} delivered, {} open, {} refused",
        counts.delivered, counts.open, counts.refused
    ))?;
    out.line(format_args!("backlog     {}", ByteSize(counts.backlog_bytes)))?;
    out.line(format_args!("production  {}", rate(status.production_bits)))?;
    if let Some(bits) = status.archive_bits {
        out.line(format_args!("archiving   {}", rate(bits)))?;
    }
    let caught_up = match status.catch_up_seconds {
        Some(seconds) => format!("in {}", times::spoken(Duration::from_secs_f64(seconds.min(1e9)))),
        None if status.archive_bits.is_none() => "unknown, nothing was sent in the last hour".to_owned(),
        None => "never at these rates".to_owned(),
    };
    out.line(format_args!("caught up   {caught_up}"))?;
    if let Some(outage) = &status.outage {
        let since = times::spoken(Duration::from_secs_f64(outage.seconds));
        out.line(format_args!("outage      {} since {since}", outage.reason))?;
    }
    let totals = &status.totals;
    out.line(format_args!(
        "sent        {} of contents, {} of it again; {} damaged",
        ByteSize(totals.sent_bytes),
        ByteSize(totals.resent_bytes),
        holdfast_base::counted(totals.damaged_blocks, "block")
    ))?;
    if let Some(free) = status.free_bytes {
        out.line(format_args!("disk        {} free, {}", ByteSize(free), status.alarm.text()))?;
    }
    Ok(())
}

/// Ledger of a shipper, with its rows of some days.
pub(super) fn history(source: &Path, days: u16) -> Result<History> {
    let ledger = Ledger::read(&folder(source)?).map_err(Failure::failed)?;
    let to = now_ms().div_euclid(60_000) + 1;
    History::read(&ledger, to - i64::from(days.max(1)) * DAY, to).map_err(Failure::failed)
}

pub(super) fn report(
    source: &Path,
    output: &Path,
    days: u16,
    instrument: Option<&str>,
    general: Option<BitRate>,
    out: &mut Out,
) -> Result<()> {
    let history = history(source, days)?;
    let project = Status::read(&folder(source)?).map(|status| status.project).unwrap_or_default();
    let instrument = instrument.unwrap_or(&project);
    let page = history.report(instrument, now_ms().div_euclid(60_000), general);
    std::fs::write(output, &page).map_err(|error| Failure::io("cannot write the report", output, &error))?;
    if out.is_json() {
        return out.object(&WrittenReport { report: output, bytes: page.len() as u64, days });
    }
    out.line(format_args!("{}: report of {days} days", output.display()))
}
