//! Generated statuses of recorders.

use holdfast_base::{ByteSize, Epoch, Rate, RingId, Sequence, StreamId, Timestamp};
use holdfast_format::Cause;
use holdfast_protocol::wire::{
    AwayStatus, BufferStatus, DeviceState, DeviceStatus, Dropped, LATENCY_BUCKETS, LaneStatus, Latency,
    MarginStatus, RecentSource, RecentStatus, RecorderStatus, Reply, SourceState, SourceStatus, ViewStatus,
};
use holdfast_ring::{RingStatus, SlotCounts};
use proptest::prelude::*;
use std::time::Duration;

pub(crate) fn time() -> impl Strategy<Value = Timestamp> {
    any::<i64>().prop_map(Timestamp)
}

pub(crate) fn text() -> impl Strategy<Value = String> {
    prop_oneof![Just(String::new()), ".{0,40}", Just("ä".repeat(500))]
}

fn nanos() -> impl Strategy<Value = Duration> {
    any::<u64>().prop_map(Duration::from_nanos)
}

fn latency() -> impl Strategy<Value = Latency> {
    (any::<[u64; LATENCY_BUCKETS]>(), nanos(), nanos()).prop_map(|(buckets, worst, total)| Latency {
        buckets,
        worst,
        total,
    })
}

fn source() -> impl Strategy<Value = SourceStatus> {
    let cause = (1u8..=9).prop_map(|byte| Cause::from_byte(byte).unwrap());
    let dropped = (cause, any::<u64>(), any::<u64>());
    let dropped = dropped.prop_map(|(cause, elements, bytes)| Dropped { cause, elements, bytes });
    let states = prop::sample::select(vec![SourceState::Running, SourceState::Ended, SourceState::Failed]);
    let texts = (text(), text(), text());
    (any::<u32>(), texts, any::<[u64; 14]>(), prop::collection::vec(dropped, 0..4), any::<u32>(), states)
        .prop_map(
            |(
                id,
                (name, spec, error),
                [a, b, c, d, e, f, g, h, i, j, k, l, m, n],
                dropped,
                connections,
                state,
            )| {
                SourceStatus {
                    stream: StreamId(id),
                    name,
                    spec,
                    elements: a,
                    bytes: b,
                    packed_elements: c,
                    packed_bytes: d,
                    dropped,
                    kernel_drops: e,
                    interface_drops: f,
                    perhaps_lost: n,
                    waiting: g,
                    beyond_elements: h,
                    beyond_bytes: i,
                    unknown_losses: j,
                    undecodable: k,
                    too_long: l,
                    connections,
                    refused: m,
                    state,
                    error,
                }
            },
        )
}

fn lane() -> impl Strategy<Value = LaneStatus> {
    (text(), any::<[u64; 6]>(), latency(), latency()).prop_map(
        |(path, [a, b, c, d, e, f], write_latency, read_latency)| LaneStatus {
            path,
            slot_bytes: a,
            journal_bytes: b,
            writes: c,
            read_bytes: d,
            reads: e,
            errors: f,
            write_latency,
            read_latency,
        },
    )
}

pub(crate) fn ring() -> impl Strategy<Value = RingStatus> {
    let times = (prop::option::of(time()), prop::option::of(time()), nanos());
    (any::<[u8; 16]>(), text(), text(), any::<[u64; 4]>(), any::<[u32; 13]>(), times, any::<bool>()).prop_map(
        |(id, name, lane, [a, b, c, d], counts, (oldest, newest, durable_after), scanned)| RingStatus {
            ring: RingId(id),
            name,
            lane,
            lane_bytes: ByteSize(a),
            slot_bytes: ByteSize(b),
            epoch: Epoch(c),
            sequence: Sequence(d),
            slots: SlotCounts {
                total: counts[0],
                free: counts[1],
                live: counts[2],
                held: counts[3],
                runway: counts[4],
                writing: counts[5],
                damaged: counts[6],
                bad: counts[7],
                holdable: counts[8],
                pinned: counts[10],
                unwritten: counts[11],
                promised: counts[12],
            },
            oldest,
            newest,
            holds: counts[9],
            scanned,
            durable_after,
        },
    )
}

pub(crate) fn recorder() -> impl Strategy<Value = RecorderStatus> {
    let states = prop::sample::select(vec![DeviceState::Ok, DeviceState::Retrying, DeviceState::Absent]);
    let device =
        (states, time(), text()).prop_map(|(state, since, error)| DeviceStatus { state, since, error });
    let lists = (
        prop::collection::vec(source(), 0..3),
        prop::collection::vec(lane(), 0..2),
        prop::collection::vec(text(), 0..3),
    );
    (any::<[u32; 4]>(), time(), time(), nanos(), device, lists).prop_map(
        |([pid, count, in_use, most_in_use], since, now, uptime, device, (sources, lanes, warnings))| {
            RecorderStatus {
                pid,
                since,
                now,
                uptime,
                device,
                sources,
                lanes,
                buffers: BufferStatus { count, in_use, most_in_use, most_at: since },
                away: AwayStatus { longest: uptime / 5, since },
                warnings,
                margin: pid.is_multiple_of(2).then_some(MarginStatus {
                    rate: Rate(u64::from(count) << 20),
                    kept: uptime,
                    least: uptime / 2,
                    since: now,
                    eldest: uptime / 3,
                }),
                view: pid.is_multiple_of(3).then_some(ViewStatus {
                    bytes: ByteSize(u64::from(count) << 20),
                    place: ByteSize(u64::from(in_use)),
                    slots: most_in_use,
                }),
                recent: pid.is_multiple_of(5).then(|| RecentStatus {
                    span: uptime,
                    slot_bytes: u64::from(count) << 20,
                    journal_bytes: u64::from(in_use),
                    sources: vec![
                        RecentSource::default(),
                        RecentSource {
                            elements: 1,
                            bytes: u64::from(pid),
                            lost: 3,
                            unknown_losses: 4,
                            last_lost: Some(now),
                        },
                    ],
                }),
            }
        },
    )
}

/// Whether a status is what a recorder would have told that did not know the last of its parts yet.
pub(crate) fn is_older(cut: &Reply, whole: &Reply) -> bool {
    let (Reply::Status(cut), Reply::Status(whole)) = (cut, whole) else { return false };
    let mut older = whole.clone();
    let Some(recorder) = &mut older.recorder else { return false };
    recorder.recent = None;
    if *cut == older {
        return true;
    }
    for source in older.recorder.iter_mut().flat_map(|recorder| &mut recorder.sources) {
        source.perhaps_lost = 0;
    }
    *cut == older
}
