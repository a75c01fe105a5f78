//! Codec of a recorder's status and of streams. Figures have theirs from their tables (`figures`).

use crate::wire::bytes::{Get, Put, WireError};
use crate::wire::figures::WireFigures as _;
use crate::wire::ring::{get_ring, get_span, put_ring, put_span};
use crate::wire::status::{
    AwayStatus, BufferStatus, DeviceState, DeviceStatus, Dropped, LATENCY_BUCKETS, LaneStatus, Latency,
    MarginStatus, RecentSource, RecentStatus, RecorderStatus, SourceState, SourceStatus, Status, ViewStatus,
};
use holdfast_base::{Ordinal, StreamId};
use holdfast_format::{Cause, Counters, StreamKind};
use holdfast_ring::StreamStatus;

/// Bytes of a stream's status at least.
pub(crate) const STREAM_LEAST: usize = 84;

/// Bytes of a source's status at least.
const SOURCE_LEAST: usize = 123;

/// Bytes of a lane's status at least.
const LANE_LEAST: usize = 50 + 2 * 8 * (LATENCY_BUCKETS + 2);

/// Takes the value with a number from a list in the order of the numbers.
fn pick<T: Copy>(get: &mut Get<'_>, what: &'static str, all: &[T]) -> Result<T, WireError> {
    let number = get.u8(what)?;
    all.get(usize::from(number)).copied().ok_or_else(|| get.unknown(what, u64::from(number)))
}

const STREAM_KINDS: [StreamKind; 2] = [StreamKind::Bytes, StreamKind::Packets];

const DEVICE_STATES: [DeviceState; 3] = [DeviceState::Ok, DeviceState::Retrying, DeviceState::Absent];

const SOURCE_STATES: [SourceState; 3] = [SourceState::Running, SourceState::Ended, SourceState::Failed];

/// The number of `value` in its list.
fn number<T: PartialEq>(all: &[T], value: &T) -> u8 {
    all.iter().position(|one| one == value).unwrap_or_default() as u8
}

fn put_counters(put: &mut Put, counters: &Counters) {
    put.u64(counters.received).u64(counters.received_bytes).u64(counters.lost).u64(counters.lost_bytes);
    put.u64(counters.next_ordinal.0).u64(counters.gaps).u64(counters.unknown_gaps);
}

fn get_counters(get: &mut Get<'_>) -> Result<Counters, WireError> {
    Ok(Counters {
        received: get.u64("elements received")?,
        received_bytes: get.u64("bytes received")?,
        lost: get.u64("elements lost")?,
        lost_bytes: get.u64("bytes lost")?,
        next_ordinal: Ordinal(get.u64("next ordinal")?),
        gaps: get.u64("gaps")?,
        unknown_gaps: get.u64("gaps of unknown size")?,
    })
}

pub(crate) fn put_stream(put: &mut Put, stream: &StreamStatus) {
    put.u32(stream.id.0)
        .u8(number(&STREAM_KINDS, &stream.kind))
        .u32(stream.preamble)
        .u32(stream.preamble_bytes)
        .u32(stream.schema);
    put.time(stream.created);
    put_counters(put, &stream.counters);
    put.text(&stream.name).text(&stream.framing);
}

pub(crate) fn get_stream(get: &mut Get<'_>) -> Result<StreamStatus, WireError> {
    Ok(StreamStatus {
        id: StreamId(get.u32("stream")?),
        kind: pick(get, "kind of stream", &STREAM_KINDS)?,
        preamble: get.u32("preamble")?,
        preamble_bytes: get.u32("bytes of the preamble")?,
        schema: get.u32("schema")?,
        created: get.time("created")?,
        counters: get_counters(get)?,
        name: get.text("name")?,
        framing: get.text("framing")?,
    })
}

pub(crate) fn put_status(put: &mut Put, status: &Status) {
    put_ring(put, &status.ring);
    put.option(status.recorder.as_ref(), put_recorder);
}

pub(crate) fn get_status(get: &mut Get<'_>) -> Result<Status, WireError> {
    Ok(Status { ring: get_ring(get)?, recorder: get.option("recorder", get_recorder)? })
}

fn put_recorder(put: &mut Put, recorder: &RecorderStatus) {
    put.u32(recorder.pid).time(recorder.since).time(recorder.now);
    put_span(put, recorder.uptime);
    let device = &recorder.device;
    put.u8(number(&DEVICE_STATES, &device.state)).time(device.since).text(&device.error);
    put.list(&recorder.sources, put_source).list(&recorder.lanes, put_lane);
    recorder.buffers.put_figures(put);
    recorder.away.put_figures(put);
    put.list(&recorder.warnings, |put, text| {
        put.text(text);
    });
    put.option(recorder.margin.as_ref(), |put, margin| margin.put_figures(put));
    put.option(recorder.view.as_ref(), |put, view| view.put_figures(put));
    // Figures of later versions are behind all that earlier clients know.
    put.list(&recorder.sources, |put, source| {
        put.u64(source.perhaps_lost);
    });
    put.option(recorder.recent.as_ref(), put_recent);
}

fn put_recent(put: &mut Put, recent: &RecentStatus) {
    put_span(put, recent.span);
    put.u64(recent.slot_bytes).u64(recent.journal_bytes);
    put.list(&recent.sources, |put, source| {
        put.u64(source.elements).u64(source.bytes).u64(source.lost).u64(source.unknown_losses);
        put.option(source.last_lost, |put, at| {
            put.time(at);
        });
    });
}

fn get_recent(get: &mut Get<'_>) -> Result<RecentStatus, WireError> {
    Ok(RecentStatus {
        span: get_span(get, "recent span")?,
        slot_bytes: get.u64("recent bytes of slots")?,
        journal_bytes: get.u64("recent bytes of journal")?,
        sources: get.list("recent sources", 33, |get| {
            Ok(RecentSource {
                elements: get.u64("recent elements")?,
                bytes: get.u64("recent bytes")?,
                lost: get.u64("recent losses")?,
                unknown_losses: get.u64("recent unknown losses")?,
                last_lost: get.option("last loss", |get| get.time("last loss"))?,
            })
        })?,
    })
}

fn get_recorder(get: &mut Get<'_>) -> Result<RecorderStatus, WireError> {
    let mut recorder = RecorderStatus {
        pid: get.u32("pid")?,
        since: get.time("since")?,
        now: get.time("now")?,
        uptime: get_span(get, "uptime")?,
        device: DeviceStatus {
            state: pick(get, "state of the device", &DEVICE_STATES)?,
            since: get.time("since")?,
            error: get.text("error")?,
        },
        sources: get.list("sources", SOURCE_LEAST, get_source)?,
        lanes: get.list("lanes", LANE_LEAST, get_lane)?,
        buffers: BufferStatus::get_figures(get)?,
        away: AwayStatus::get_figures(get)?,
        warnings: get.list("warnings", 2, |get| get.text("warning"))?,
        margin: get.option("margin", MarginStatus::get_figures)?,
        view: get.option("bird's-eye view", ViewStatus::get_figures)?,
        recent: None,
    };
    // A recorder from before this was told ends here.
    if get.is_at_end() {
        return Ok(recorder);
    }
    let perhaps_lost = get.list("frames perhaps lost", 8, |get| get.u64("frames perhaps lost"))?;
    for (source, frames) in recorder.sources.iter_mut().zip(perhaps_lost) {
        source.perhaps_lost = frames;
    }
    if !get.is_at_end() {
        recorder.recent = get.option("recent past", get_recent)?;
    }
    Ok(recorder)
}

fn put_source(put: &mut Put, source: &SourceStatus) {
    put.u32(source.stream.0).u8(number(&SOURCE_STATES, &source.state));
    source.put_figures(put);
    put.list(&source.dropped, |put, dropped| {
        put.u8(dropped.cause as u8).u64(dropped.elements).u64(dropped.bytes);
    });
    put.text(&source.name).text(&source.spec).text(&source.error);
}

fn get_source(get: &mut Get<'_>) -> Result<SourceStatus, WireError> {
    let stream = StreamId(get.u32("stream")?);
    let state = pick(get, "state of a source", &SOURCE_STATES)?;
    let figures = SourceStatus::get_figures(get)?;
    Ok(SourceStatus {
        stream,
        state,
        dropped: get.list("causes", 17, get_dropped)?,
        name: get.text("name")?,
        spec: get.text("spec")?,
        error: get.text("error")?,
        ..figures
    })
}

fn get_dropped(get: &mut Get<'_>) -> Result<Dropped, WireError> {
    let cause = get.u8("cause")?;
    let cause = Cause::from_byte(cause).ok_or_else(|| get.unknown("cause", u64::from(cause)))?;
    Ok(Dropped { cause, elements: get.u64("elements")?, bytes: get.u64("bytes")? })
}

fn put_lane(put: &mut Put, lane: &LaneStatus) {
    put.text(&lane.path);
    lane.put_figures(put);
    put_latency(put, &lane.write_latency);
    put_latency(put, &lane.read_latency);
}

fn get_lane(get: &mut Get<'_>) -> Result<LaneStatus, WireError> {
    let path = get.text("path")?;
    let figures = LaneStatus::get_figures(get)?;
    Ok(LaneStatus { path, write_latency: get_latency(get)?, read_latency: get_latency(get)?, ..figures })
}

fn put_latency(put: &mut Put, latency: &Latency) {
    put_span(put, latency.worst);
    put_span(put, latency.total);
    for bucket in latency.buckets {
        put.u64(bucket);
    }
}

fn get_latency(get: &mut Get<'_>) -> Result<Latency, WireError> {
    let (worst, total) = (get_span(get, "worst")?, get_span(get, "total")?);
    let mut buckets = [0; LATENCY_BUCKETS];
    for bucket in &mut buckets {
        *bucket = get.u64("bucket")?;
    }
    Ok(Latency { buckets, worst, total })
}

#[cfg(test)]
mod tests {
    use super::*;

    // The wire is promised: a table's order is the order of bytes, and the figure that came later is not among them.
    #[test]
    fn figures_of_a_source_stand_in_the_order_of_the_protocol() {
        let source = SourceStatus {
            stream: StreamId(1),
            state: SourceState::Ended,
            elements: 2,
            bytes: 3,
            packed_elements: 4,
            packed_bytes: 5,
            unknown_losses: 6,
            kernel_drops: 7,
            interface_drops: 8,
            perhaps_lost: 99,
            waiting: 9,
            beyond_elements: 10,
            beyond_bytes: 11,
            undecodable: 12,
            too_long: 13,
            connections: 14,
            refused: 15,
            dropped: Vec::new(),
            name: "n".to_owned(),
            spec: "s".to_owned(),
            error: "e".to_owned(),
        };
        let mut put = Put::default();
        put_source(&mut put, &source);
        let mut wanted = Put::default();
        wanted.u32(1).u8(1);
        for figure in 2..=13 {
            wanted.u64(figure);
        }
        wanted.u32(14).u64(15).u32(0).text("n").text("s").text("e");
        assert_eq!(put.into_bytes(), wanted.into_bytes());
    }
}
