//! Shipper: its happenings, plans and reports. Its status is a shape of crate `ship`.

use serde::Serialize;
use std::path::Path;

/// Happening of a shipper.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Default, Serialize)]
pub struct ShipEvent<'a> {
    pub event: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blake3: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verified: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cut: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outage: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Report that was written.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct WrittenReport<'a> {
    pub report: &'a Path,
    pub bytes: u64,
    pub days: u16,
}

/// Limits of the production rate.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct PlannedArchive<'a> {
    pub rate_bits: f64,
    pub general_bits: f64,
    pub hours: f64,
    pub maximum_bits: f64,
    pub outage_hours: f64,
    pub outage_bytes: u64,
    pub catch_up_hours: Option<f64>,
    pub schedule: Option<PlannedSchedule<'a>>,
}

/// Judgement of a schedule.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct PlannedSchedule<'a> {
    pub verdict: &'a str,
    pub peak_bytes: u64,
    pub peak_hours: f64,
    pub full_hours: Option<f64>,
    pub caught_up_hours: f64,
    pub longest_backlog_hours: f64,
    pub projects: Vec<PlannedProject<'a>>,
}

/// Judgement of a project.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct PlannedProject<'a> {
    pub name: String,
    pub rate_bits: f64,
    pub maximum_bits: f64,
    pub limit: &'a str,
}
