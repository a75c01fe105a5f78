//! Sample status of a ring and its recorder, made by hand, for tests of what is shown of them.

use holdfast_base::{Age, ByteSize, Epoch, Rate, RingId, Sequence, SlotNo, StreamId, Timestamp};
use holdfast_format::{Cause, Counters, StreamKind};
use holdfast_protocol::wire::{
    AwayStatus, BufferStatus, DeviceStatus, Dropped, LaneStatus, Latency, MarginStatus, RecentSource,
    RecentStatus, RecorderStatus, SourceStatus, Status, ViewStatus,
};
use holdfast_ring::{RingStatus, SlotCounts, SlotLook, SlotStatus, StreamStatus};
use std::time::Duration;

/// 2026-11-20T10:05:00Z.
pub const NOW: Timestamp = Timestamp(1_795_169_100_000_000_000);

const MARGIN: MarginStatus = MarginStatus {
    rate: Rate(60 << 20),
    kept: Duration::from_secs(9),
    least: Duration::from_millis(4200),
    since: NOW,
    eldest: Duration::from_millis(8300),
};

/// Ten minutes of recording: 1 MiB/s into 1 MiB slots.
pub fn status() -> Status {
    let uptime = Duration::from_mins(10);
    let mut write_latency = Latency::default();
    for _ in 0..99 {
        write_latency.add(Duration::from_micros(900));
    }
    write_latency.add(Duration::from_millis(70));
    let dropped = vec![Dropped { cause: Cause::Kernel, elements: 1234, bytes: 0 }];
    Status {
        ring: RingStatus {
            ring: RingId(*b"0123456789abcdef"),
            name: "lab \"one\"".to_owned(),
            lane: "/data/lab.hf".to_owned(),
            lane_bytes: ByteSize::gib(1),
            slot_bytes: ByteSize::mib(1),
            epoch: Epoch(3),
            sequence: Sequence(1601),
            slots: SlotCounts {
                total: 1019,
                free: 300,
                live: 600,
                held: 100,
                pinned: 0,
                runway: 16,
                writing: 2,
                damaged: 1,
                bad: 1,
                holdable: 500,
                promised: 40,
                unwritten: 0,
            },
            oldest: Some(NOW - uptime),
            newest: Some(NOW),
            holds: 2,
            scanned: true,
            durable_after: Duration::from_millis(1500),
        },
        recorder: Some(RecorderStatus {
            pid: 4711,
            since: NOW - uptime,
            now: NOW,
            uptime,
            device: DeviceStatus::default(),
            sources: vec![
                SourceStatus {
                    stream: StreamId(1),
                    name: "eth0".to_owned(),
                    spec: "iface:eth0".to_owned(),
                    elements: 600_000,
                    bytes: 600 << 19,
                    packed_elements: 598_766,
                    packed_bytes: 600 << 19,
                    dropped,
                    kernel_drops: 1234,
                    interface_drops: 7,
                    perhaps_lost: 50,
                    ..SourceStatus::default()
                },
                SourceStatus {
                    stream: StreamId(2),
                    name: "adc".to_owned(),
                    spec: "file:/run/adc".to_owned(),
                    elements: 6000,
                    bytes: 600 << 19,
                    packed_elements: 6000,
                    packed_bytes: 600 << 19,
                    beyond_elements: 60,
                    beyond_bytes: 3 << 20,
                    unknown_losses: 1,
                    undecodable: 17,
                    too_long: 2,
                    refused: 3,
                    ..SourceStatus::default()
                },
            ],
            lanes: vec![LaneStatus {
                path: "/data/lab.hf".to_owned(),
                slot_bytes: 600 << 20,
                journal_bytes: 30 << 20,
                writes: 1200,
                read_bytes: 5 << 20,
                reads: 10,
                errors: 0,
                write_latency,
                read_latency: Latency::default(),
            }],
            buffers: BufferStatus {
                count: 8,
                in_use: 2,
                most_in_use: 5,
                most_at: NOW - Duration::from_mins(5),
            },
            away: AwayStatus { longest: Duration::from_millis(310), since: NOW },
            warnings: vec!["memory could not be locked".to_owned()],
            margin: Some(MARGIN),
            view: Some(ViewStatus { bytes: ByteSize::mib(64), place: ByteSize::kib(64), slots: 600 }),
            recent: Some(lately()),
        }),
    }
}

/// The last minute of it, which was as the others were; eth0 lost something in it.
fn lately() -> RecentStatus {
    let eth0 = RecentSource {
        elements: 60_000,
        bytes: 60 << 19,
        lost: 12,
        unknown_losses: 0,
        last_lost: Some(NOW - Duration::from_secs(3)),
    };
    let adc = RecentSource {
        elements: 600,
        bytes: 60 << 19,
        last_lost: Some(NOW - Duration::from_mins(5)),
        ..RecentSource::default()
    };
    let (span, slot_bytes, journal_bytes) = (Duration::from_mins(1), 60 << 20, 3 << 20);
    RecentStatus { span, slot_bytes, journal_bytes, sources: vec![eth0, adc] }
}

/// Its streams.
pub fn streams() -> Vec<StreamStatus> {
    let stream = |id, name: &str, kind, framing: &str, gaps| StreamStatus {
        id: StreamId(id),
        name: name.to_owned(),
        kind,
        framing: framing.to_owned(),
        created: NOW - Duration::from_mins(10),
        counters: Counters {
            lost: gaps * 10,
            gaps,
            unknown_gaps: u64::from(gaps > 1),
            ..Counters::default()
        },
        preamble: 1,
        preamble_bytes: 64,
        schema: 3,
    };
    vec![
        stream(1, "eth0", StreamKind::Packets, "whole", 3),
        stream(2, "adc", StreamKind::Bytes, "fixed:4096", 0),
    ]
}

/// Its slots.
pub fn slots() -> Vec<SlotStatus> {
    let looks = [
        (SlotLook::Live, 600),
        (SlotLook::Held, 100),
        (SlotLook::Runway, 16),
        (SlotLook::Writing, 2),
        (SlotLook::Damaged, 1),
        (SlotLook::Bad, 1),
        (SlotLook::Free, 299),
    ];
    let looks = looks.into_iter().flat_map(|(look, count)| std::iter::repeat_n(look, count));
    let slot = |(at, look)| SlotStatus {
        slot: SlotNo(at as u32),
        look,
        sequence: Sequence(at as u64 + 1),
        age: Age(at as u64 + 1),
        // A second a slot, the oldest first.
        first: (at < 600).then(|| NOW - Duration::from_secs(600 - at as u64)),
        last: None,
    };
    looks.enumerate().map(slot).collect()
}
