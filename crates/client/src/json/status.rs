//! Status of a ring and of its recorder.

use super::{FiguresJson, Guarantee, time, time_if};
use crate::losses::{losing, losing_now};
use crate::rates::{self, Rates, Reach};
use crate::words;
use holdfast_base::Timestamp;
use holdfast_protocol::wire::{
    AwayStatus, BufferStatus, LaneStatus, MarginStatus, RecorderStatus, SourceStatus, Status, ViewStatus,
};
use holdfast_ring::{SlotCounts, SlotStatus, StreamStatus};
use serde::Serialize;
use std::path::Path;
use std::time::Duration;

/// Status of a ring.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct RingStatus<'a> {
    pub path: &'a Path,
    pub name: &'a str,
    pub ring: String,
    pub lane_bytes: u64,
    pub slot_bytes: u64,
    pub epoch: u64,
    pub sequence: u64,
    #[serde(serialize_with = "time_if")]
    pub oldest: Option<Timestamp>,
    #[serde(serialize_with = "time_if")]
    pub newest: Option<Timestamp>,
    #[serde(serialize_with = "time_if")]
    pub oldest_live: Option<Timestamp>,
    pub reaches_back_seconds: Option<f64>,
    pub oldest_expires_in_seconds: Option<f64>,
    pub reaches_back_when_full_seconds: Option<f64>,
    pub losing: bool,
    pub losing_now: bool,
    pub lost_elements: u64,
    pub lost_unknown: u64,
    pub durable_after_seconds: f64,
    pub holds: u32,
    pub table_complete: bool,
    pub slots: FiguresJson<'a, SlotCounts>,
    pub guarantee: Option<Guarantee>,
    pub recorder: Option<Recorder<'a>>,
}

/// Status of a recorder.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct Recorder<'a> {
    pub pid: u32,
    #[serde(serialize_with = "time")]
    pub since: Timestamp,
    pub uptime_seconds: f64,
    pub device: &'static str,
    pub device_error: &'a str,
    pub payload_bytes_per_second: u64,
    pub elements_per_second: u64,
    pub disk_bytes_per_second: u64,
    pub recent_seconds: f64,
    pub recent_payload_bytes_per_second: u64,
    pub recent_elements_per_second: u64,
    pub recent_disk_bytes_per_second: u64,
    #[serde(flatten)]
    pub buffers: FiguresJson<'a, BufferStatus>,
    #[serde(flatten)]
    pub away: FiguresJson<'a, AwayStatus>,
    pub margin: Option<FiguresJson<'a, MarginStatus>>,
    pub birds_eye: Option<FiguresJson<'a, ViewStatus>>,
    pub sources: Vec<Source<'a>>,
    pub lanes: Vec<Lane<'a>>,
    pub warnings: &'a [String],
}

/// Source of a recorder.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct Source<'a> {
    pub stream: &'a str,
    pub spec: &'a str,
    pub state: &'static str,
    pub error: &'a str,
    #[serde(flatten)]
    pub figures: FiguresJson<'a, SourceStatus>,
    pub recent_lost_elements: u64,
    pub recent_unknown_losses: u64,
    #[serde(serialize_with = "time_if")]
    pub last_lost_at: Option<Timestamp>,
    pub dropped: Vec<DroppedElements>,
}

/// Elements that a source lost by a cause.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct DroppedElements {
    pub cause: &'static str,
    pub elements: u64,
    pub bytes: u64,
}

/// Lane of a ring.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct Lane<'a> {
    pub path: &'a str,
    #[serde(flatten)]
    pub figures: FiguresJson<'a, LaneStatus>,
    pub worst_write_seconds: f64,
    pub worst_read_seconds: f64,
}

impl<'a> RingStatus<'a> {
    /// The shape of a ring's status; its guarantee is not known here.
    pub fn new(path: &'a Path, status: &'a Status, streams: &[StreamStatus], slots: &[SlotStatus]) -> Self {
        let ring = &status.ring;
        let rates = rates::lately(status);
        let oldest_live = rates::oldest_live(status, slots);
        let reach = rates::reach(
            status,
            oldest_live,
            rates.as_ref().map_or_else(Default::default, |rates| rates.slots),
        );
        let seconds = |span: fn(&Reach) -> Option<Duration>| {
            reach.as_ref().and_then(span).map(|span| span.as_secs_f64())
        };
        Self {
            path,
            name: &ring.name,
            ring: ring.ring.to_string(),
            lane_bytes: ring.lane_bytes.0,
            slot_bytes: ring.slot_bytes.0,
            epoch: ring.epoch.0,
            sequence: ring.sequence.0,
            oldest: ring.oldest,
            newest: ring.newest,
            oldest_live,
            reaches_back_seconds: seconds(|reach| Some(reach.back)),
            oldest_expires_in_seconds: seconds(|reach| reach.expires_in),
            reaches_back_when_full_seconds: seconds(|reach| reach.when_full),
            losing: losing(status),
            losing_now: losing_now(status),
            lost_elements: streams.iter().map(|stream| stream.counters.lost).sum(),
            lost_unknown: streams.iter().map(|stream| stream.counters.unknown_gaps).sum(),
            durable_after_seconds: ring.durable_after.as_secs_f64(),
            holds: ring.holds,
            table_complete: ring.scanned,
            slots: FiguresJson(&ring.slots),
            guarantee: None,
            recorder: status
                .recorder
                .as_ref()
                .zip(rates::average(status).zip(rates))
                .map(|(recorder, (average, recent))| Recorder::new(recorder, &average, &recent)),
        }
    }

    /// The same with the guarantee of the ring.
    #[must_use]
    pub fn promising(self, guarantee: Option<Guarantee>) -> Self {
        Self { guarantee, ..self }
    }
}

impl<'a> Recorder<'a> {
    fn new(recorder: &'a RecorderStatus, average: &Rates, recent: &Rates) -> Self {
        let lately = |at: usize| {
            let told = recorder.recent.as_ref().and_then(|lately| lately.sources.get(at));
            told.copied().unwrap_or_default()
        };
        Self {
            pid: recorder.pid,
            since: recorder.since,
            uptime_seconds: recorder.uptime.as_secs_f64(),
            device: words::device_state(recorder.device.state),
            device_error: &recorder.device.error,
            payload_bytes_per_second: average.payload.0,
            elements_per_second: average.elements,
            disk_bytes_per_second: average.disk.0,
            recent_seconds: recent.span.as_secs_f64(),
            recent_payload_bytes_per_second: recent.payload.0,
            recent_elements_per_second: recent.elements,
            recent_disk_bytes_per_second: recent.disk.0,
            buffers: FiguresJson(&recorder.buffers),
            away: FiguresJson(&recorder.away),
            margin: recorder.margin.as_ref().map(FiguresJson),
            birds_eye: recorder.view.as_ref().map(FiguresJson),
            sources: recorder
                .sources
                .iter()
                .enumerate()
                .map(|(at, source)| Source {
                    stream: &source.name,
                    spec: &source.spec,
                    state: words::source_state(source.state),
                    error: &source.error,
                    figures: FiguresJson(source),
                    recent_lost_elements: lately(at).lost,
                    recent_unknown_losses: lately(at).unknown_losses,
                    last_lost_at: lately(at).last_lost,
                    dropped: source
                        .dropped
                        .iter()
                        .map(|dropped| DroppedElements {
                            cause: dropped.cause.name(),
                            elements: dropped.elements,
                            bytes: dropped.bytes,
                        })
                        .collect(),
                })
                .collect(),
            lanes: recorder
                .lanes
                .iter()
                .map(|lane| Lane {
                    path: &lane.path,
                    figures: FiguresJson(lane),
                    worst_write_seconds: lane.write_latency.worst.as_secs_f64(),
                    worst_read_seconds: lane.read_latency.worst.as_secs_f64(),
                })
                .collect(),
            warnings: &recorder.warnings,
        }
    }
}
