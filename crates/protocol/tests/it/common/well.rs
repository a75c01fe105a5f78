//! The status of a recorder that does well, and of which nothing else is to be told.
#![allow(unreachable_pub, reason = "used by several tests")]

use holdfast_base::{ByteSize, Epoch, RingId, Sequence, Timestamp};
use holdfast_protocol::wire::{AwayStatus, BufferStatus, DeviceStatus, RecorderStatus, Status};
use holdfast_ring::{RingStatus, SlotCounts};
use std::time::Duration;

pub fn well() -> Status {
    let ring = RingStatus {
        ring: RingId::default(),
        name: "test".to_owned(),
        lane: "memory".to_owned(),
        lane_bytes: ByteSize(1 << 20),
        slot_bytes: ByteSize(1 << 16),
        epoch: Epoch(1),
        sequence: Sequence(1),
        slots: SlotCounts::default(),
        oldest: None,
        newest: None,
        holds: 0,
        scanned: true,
        durable_after: Duration::from_secs(1),
    };
    let recorder = RecorderStatus {
        pid: std::process::id(),
        since: Timestamp(0),
        now: Timestamp(1),
        uptime: Duration::from_nanos(1),
        device: DeviceStatus::default(),
        sources: Vec::new(),
        lanes: Vec::new(),
        buffers: BufferStatus::default(),
        away: AwayStatus::default(),
        warnings: vec!["this is a test".to_owned()],
        margin: None,
        view: None,
        lately: None,
    };
    Status { ring, recorder: Some(recorder) }
}
