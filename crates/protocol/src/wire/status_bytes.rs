//! Codec of a recorder's status and of streams. Figures have theirs from their tables (`figures`).

use crate::wire::figures::WireFigures as _;
use crate::wire::frame::Writer;
use crate::wire::ring::{get_ring, get_span, put_ring, put_span};
use crate::wire::status::{
    AwayStatus, BufferStatus, DeviceState, DeviceStatus, Dropped, LATENCY_BUCKETS, LaneStatus, Latency,
    MarginStatus, RecentSource, RecentStatus, RecorderStatus, SourceState, SourceStatus, Status, ViewStatus,
};
use holdfast_base::{Ordinal, StreamId};
use holdfast_format::{Cause, Counters, StreamKind};
use holdfast_format::{FieldReader, FormatError};
use holdfast_ring::StreamStatus;

/// Bytes of a stream's status at least.
pub(crate) const STREAM_LEAST: usize = 84;

/// Bytes of a source's status at least.
const SOURCE_LEAST: usize = 123;

/// Bytes of a lane's status at least.
const LANE_LEAST: usize = 50 + 2 * 8 * (LATENCY_BUCKETS + 2);

/// Takes the value with a number from a list in the order of the numbers.
fn pick<T: Copy>(get: &mut FieldReader<'_>, what: &'static str, all: &[T]) -> Result<T, FormatError> {
    let number = get.named(what).u8()?;
    all.get(usize::from(number)).copied().ok_or_else(|| get.named(what).unknown(u64::from(number)))
}

const STREAM_KINDS: [StreamKind; 2] = [StreamKind::Bytes, StreamKind::Packets];

const DEVICE_STATES: [DeviceState; 3] = [DeviceState::Ok, DeviceState::Retrying, DeviceState::Absent];

const SOURCE_STATES: [SourceState; 3] = [SourceState::Running, SourceState::Ended, SourceState::Failed];

/// The number of `value` in its list.
fn number<T: PartialEq>(all: &[T], value: &T) -> u8 {
    all.iter().position(|one| one == value).unwrap_or_default() as u8
}

fn put_counters(put: &mut Writer, counters: &Counters) {
    put.u64(counters.received).u64(counters.received_bytes).u64(counters.lost).u64(counters.lost_bytes);
    put.u64(counters.next_ordinal.0).u64(counters.gaps).u64(counters.unknown_gaps);
}

fn get_counters(get: &mut FieldReader<'_>) -> Result<Counters, FormatError> {
    Ok(Counters {
        received: get.named("elements received").u64()?,
        received_bytes: get.named("bytes received").u64()?,
        lost: get.named("elements lost").u64()?,
        lost_bytes: get.named("bytes lost").u64()?,
        next_ordinal: Ordinal(get.named("next ordinal").u64()?),
        gaps: get.named("gaps").u64()?,
        unknown_gaps: get.named("gaps of unknown size").u64()?,
    })
}

pub(crate) fn put_stream(put: &mut Writer, stream: &StreamStatus) {
    put.u32(stream.id.0)
        .u8(number(&STREAM_KINDS, &stream.kind))
        .u32(stream.preamble)
        .u32(stream.preamble_bytes)
        .u32(stream.schema);
    put.time(stream.created);
    put_counters(put, &stream.counters);
    put.cut_string(&stream.name).cut_string(&stream.framing);
}

pub(crate) fn get_stream(get: &mut FieldReader<'_>) -> Result<StreamStatus, FormatError> {
    Ok(StreamStatus {
        id: StreamId(get.named("stream").u32()?),
        kind: pick(get, "kind of stream", &STREAM_KINDS)?,
        preamble: get.named("preamble").u32()?,
        preamble_bytes: get.named("bytes of the preamble").u32()?,
        schema: get.named("schema").u32()?,
        created: get.named("created").time()?,
        counters: get_counters(get)?,
        name: get.named("name").string()?,
        framing: get.named("framing").string()?,
    })
}

pub(crate) fn put_status(put: &mut Writer, status: &Status) {
    put_ring(put, &status.ring);
    put.option(status.recorder.as_ref(), put_recorder);
}

pub(crate) fn get_status(get: &mut FieldReader<'_>) -> Result<Status, FormatError> {
    Ok(Status { ring: get_ring(get)?, recorder: get.named("recorder").option(get_recorder)? })
}

fn put_recorder(put: &mut Writer, recorder: &RecorderStatus) {
    put.u32(recorder.pid).time(recorder.since).time(recorder.now);
    put_span(put, recorder.uptime);
    let device = &recorder.device;
    put.u8(number(&DEVICE_STATES, &device.state)).time(device.since).cut_string(&device.error);
    put.list(&recorder.sources, put_source).list(&recorder.lanes, put_lane);
    recorder.buffers.put_figures(put);
    recorder.away.put_figures(put);
    put.list(&recorder.warnings, |put, text| {
        put.cut_string(text);
    });
    put.option(recorder.margin.as_ref(), |put, margin| margin.put_figures(put));
    put.option(recorder.view.as_ref(), |put, view| view.put_figures(put));
    // Figures of later versions are behind all that earlier clients know.
    put.list(&recorder.sources, |put, source| {
        put.u64(source.perhaps_lost);
    });
    put.option(recorder.recent.as_ref(), put_recent);
}

fn put_recent(put: &mut Writer, recent: &RecentStatus) {
    put_span(put, recent.span);
    put.u64(recent.slot_bytes).u64(recent.journal_bytes);
    put.list(&recent.sources, |put, source| {
        put.u64(source.elements).u64(source.bytes).u64(source.lost).u64(source.unknown_losses);
        put.option(source.last_lost, |put, at| {
            put.time(at);
        });
    });
}

fn get_recent(get: &mut FieldReader<'_>) -> Result<RecentStatus, FormatError> {
    Ok(RecentStatus {
        span: get_span(get, "recent span")?,
        slot_bytes: get.named("recent bytes of slots").u64()?,
        journal_bytes: get.named("recent bytes of journal").u64()?,
        sources: get.named("recent sources").list(33, |get| {
            Ok(RecentSource {
                elements: get.named("recent elements").u64()?,
                bytes: get.named("recent bytes").u64()?,
                lost: get.named("recent losses").u64()?,
                unknown_losses: get.named("recent unknown losses").u64()?,
                last_lost: get.named("last loss").option(|get| get.named("last loss").time())?,
            })
        })?,
    })
}

fn get_recorder(get: &mut FieldReader<'_>) -> Result<RecorderStatus, FormatError> {
    let mut recorder = RecorderStatus {
        pid: get.named("pid").u32()?,
        since: get.named("since").time()?,
        now: get.named("now").time()?,
        uptime: get_span(get, "uptime")?,
        device: DeviceStatus {
            state: pick(get, "state of the device", &DEVICE_STATES)?,
            since: get.named("since").time()?,
            error: get.named("error").string()?,
        },
        sources: get.named("sources").list(SOURCE_LEAST, get_source)?,
        lanes: get.named("lanes").list(LANE_LEAST, get_lane)?,
        buffers: BufferStatus::get_figures(get)?,
        away: AwayStatus::get_figures(get)?,
        warnings: get.named("warnings").list(2, |get| get.named("warning").string())?,
        margin: get.named("margin").option(MarginStatus::get_figures)?,
        view: get.named("bird's-eye view").option(ViewStatus::get_figures)?,
        recent: None,
    };
    // A recorder from before this was told ends here.
    if !get.is_more() {
        return Ok(recorder);
    }
    let perhaps_lost =
        get.named("frames perhaps lost").list(8, |get| get.named("frames perhaps lost").u64())?;
    for (source, frames) in recorder.sources.iter_mut().zip(perhaps_lost) {
        source.perhaps_lost = frames;
    }
    if get.is_more() {
        recorder.recent = get.named("recent past").option(get_recent)?;
    }
    Ok(recorder)
}

fn put_source(put: &mut Writer, source: &SourceStatus) {
    put.u32(source.stream.0).u8(number(&SOURCE_STATES, &source.state));
    source.put_figures(put);
    put.list(&source.dropped, |put, dropped| {
        put.u8(dropped.cause as u8).u64(dropped.elements).u64(dropped.bytes);
    });
    put.cut_string(&source.name).cut_string(&source.spec).cut_string(&source.error);
}

fn get_source(get: &mut FieldReader<'_>) -> Result<SourceStatus, FormatError> {
    let stream = StreamId(get.named("stream").u32()?);
    let state = pick(get, "state of a source", &SOURCE_STATES)?;
    let figures = SourceStatus::get_figures(get)?;
    Ok(SourceStatus {
        stream,
        state,
        dropped: get.named("causes").list(17, get_dropped)?,
        name: get.named("name").string()?,
        spec: get.named("spec").string()?,
        error: get.named("error").string()?,
        ..figures
    })
}

fn get_dropped(get: &mut FieldReader<'_>) -> Result<Dropped, FormatError> {
    let cause = get.named("cause").u8()?;
    let cause = Cause::from_byte(cause).ok_or_else(|| get.named("cause").unknown(u64::from(cause)))?;
    Ok(Dropped { cause, elements: get.named("elements").u64()?, bytes: get.named("bytes").u64()? })
}

fn put_lane(put: &mut Writer, lane: &LaneStatus) {
    put.cut_string(&lane.path);
    lane.put_figures(put);
    put_latency(put, &lane.write_latency);
    put_latency(put, &lane.read_latency);
}

fn get_lane(get: &mut FieldReader<'_>) -> Result<LaneStatus, FormatError> {
    let path = get.named("path").string()?;
    let figures = LaneStatus::get_figures(get)?;
    Ok(LaneStatus { path, write_latency: get_latency(get)?, read_latency: get_latency(get)?, ..figures })
}

fn put_latency(put: &mut Writer, latency: &Latency) {
    put_span(put, latency.worst);
    put_span(put, latency.total);
    for bucket in latency.buckets {
        put.u64(bucket);
    }
}

fn get_latency(get: &mut FieldReader<'_>) -> Result<Latency, FormatError> {
    let (worst, total) = (get_span(get, "worst")?, get_span(get, "total")?);
    let mut buckets = [0; LATENCY_BUCKETS];
    for bucket in &mut buckets {
        *bucket = get.named("bucket").u64()?;
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
        let mut put = Writer::new(Vec::new());
        put_source(&mut put, &source);
        let mut wanted = Writer::new(Vec::new());
        wanted.u32(1).u8(1);
        for figure in 2..=13 {
            wanted.u64(figure);
        }
        wanted.u32(14).u64(15).u32(0).cut_string("n").cut_string("s").cut_string("e");
        assert_eq!(put.into_buffer(), wanted.into_buffer());
    }
}
