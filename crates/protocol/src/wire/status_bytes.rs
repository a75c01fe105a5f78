//! Codec of a recorder's status and of streams.

use crate::wire::bytes::{Get, Put, WireError};
use crate::wire::ring::{get_ring, get_span, put_ring, put_span};
use crate::wire::status::{
    AwayStatus, BufferStatus, DeviceState, DeviceStatus, Dropped, LATENCY_BUCKETS, LaneStatus, Latency,
    MarginStatus, RecentSource, RecentStatus, RecorderStatus, SourceState, SourceStatus, Status, ViewStatus,
};
use holdfast_base::{ByteSize, Ordinal, Rate, StreamId};
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
    let buffers = &recorder.buffers;
    put.u32(buffers.count).u32(buffers.in_use).u32(buffers.most_in_use).time(buffers.most_at);
    put_span(put, recorder.away.longest);
    put.time(recorder.away.since);
    put.list(&recorder.warnings, |put, text| {
        put.text(text);
    });
    put.option(recorder.margin.as_ref(), |put, margin| {
        put.u64(margin.rate.0);
        put_span(put, margin.kept);
        put_span(put, margin.least);
        put.time(margin.since);
        put_span(put, margin.eldest);
    });
    put.option(recorder.view.as_ref(), |put, view| {
        put.u64(view.bytes.0).u64(view.place.0).u32(view.slots);
    });
    // What came later is behind all that clients knew by then.
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
        buffers: BufferStatus {
            count: get.u32("buffers")?,
            in_use: get.u32("buffers in use")?,
            most_in_use: get.u32("most buffers in use")?,
            most_at: get.time("when they were")?,
        },
        away: AwayStatus { longest: get_span(get, "longest absence")?, since: get.time("since")? },
        warnings: get.list("warnings", 2, |get| get.text("warning"))?,
        margin: get.option("margin", |get| {
            Ok(MarginStatus {
                rate: Rate(get.u64("promised rate")?),
                kept: get_span(get, "slack that is kept")?,
                least: get_span(get, "least slack")?,
                since: get.time("since")?,
                eldest: get_span(get, "greatest age")?,
            })
        })?,
        view: get.option("bird's-eye view", |get| {
            let (bytes, place) = (get.u64("bytes of the view")?, get.u64("bytes of a place")?);
            Ok(ViewStatus { bytes: ByteSize(bytes), place: ByteSize(place), slots: get.u32("slots told")? })
        })?,
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
    put.u64(source.elements).u64(source.bytes).u64(source.packed_elements).u64(source.packed_bytes);
    put.u64(source.unknown_losses).u64(source.kernel_drops).u64(source.interface_drops).u64(source.waiting);
    put.u64(source.beyond_elements).u64(source.beyond_bytes).u64(source.undecodable).u64(source.too_long);
    put.u32(source.connections).u64(source.refused);
    put.list(&source.dropped, |put, dropped| {
        put.u8(dropped.cause as u8).u64(dropped.elements).u64(dropped.bytes);
    });
    put.text(&source.name).text(&source.spec).text(&source.error);
}

fn get_source(get: &mut Get<'_>) -> Result<SourceStatus, WireError> {
    Ok(SourceStatus {
        stream: StreamId(get.u32("stream")?),
        state: pick(get, "state of a source", &SOURCE_STATES)?,
        elements: get.u64("elements")?,
        bytes: get.u64("bytes")?,
        packed_elements: get.u64("packed elements")?,
        packed_bytes: get.u64("packed bytes")?,
        unknown_losses: get.u64("unknown losses")?,
        kernel_drops: get.u64("kernel drops")?,
        interface_drops: get.u64("interface drops")?,
        perhaps_lost: 0,
        waiting: get.u64("waiting")?,
        beyond_elements: get.u64("elements beyond the rate")?,
        beyond_bytes: get.u64("bytes beyond the rate")?,
        undecodable: get.u64("undecodable elements")?,
        too_long: get.u64("texts that are too long")?,
        connections: get.u32("connections")?,
        refused: get.u64("producers refused")?,
        dropped: get.list("causes", 17, get_dropped)?,
        name: get.text("name")?,
        spec: get.text("spec")?,
        error: get.text("error")?,
    })
}

fn get_dropped(get: &mut Get<'_>) -> Result<Dropped, WireError> {
    let cause = get.u8("cause")?;
    let cause = Cause::from_byte(cause).ok_or_else(|| get.unknown("cause", u64::from(cause)))?;
    Ok(Dropped { cause, elements: get.u64("elements")?, bytes: get.u64("bytes")? })
}

fn put_lane(put: &mut Put, lane: &LaneStatus) {
    put.text(&lane.path).u64(lane.slot_bytes).u64(lane.journal_bytes).u64(lane.writes);
    put.u64(lane.read_bytes).u64(lane.reads).u64(lane.errors);
    put_latency(put, &lane.write_latency);
    put_latency(put, &lane.read_latency);
}

fn get_lane(get: &mut Get<'_>) -> Result<LaneStatus, WireError> {
    Ok(LaneStatus {
        path: get.text("path")?,
        slot_bytes: get.u64("bytes of slots")?,
        journal_bytes: get.u64("bytes of journal")?,
        writes: get.u64("writes")?,
        read_bytes: get.u64("bytes read")?,
        reads: get.u64("reads")?,
        errors: get.u64("errors")?,
        write_latency: get_latency(get)?,
        read_latency: get_latency(get)?,
    })
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
