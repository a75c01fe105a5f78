//! Rings with known contents, made without a recorder process: what is on them is the same in every run.
#![allow(dead_code, missing_docs, unreachable_pub, clippy::unwrap_used)]

use holdfast_base::{ManualClock, Ordinal, Timestamp};
use holdfast_format::{Cause, Direction, Flags, Gap, Kind, Row, SlotFlags, StreamKind};
use holdfast_ingest::packet::{LinkType, LiveInterface, Preamble};
use holdfast_media::{Access, Device, RealDisk};
use holdfast_ring::{Config, NewStream, recover};
use holdfast_sim::Recorder;
use std::path::Path;
use std::time::Duration;

/// 2026-11-20T10:05:00Z: when the recording began.
pub const START: i64 = 1_795_169_100_000_000_000;
/// From one element to the next.
pub const STEP: i64 = 10_000_000;
/// What the log's file begins with.
pub const HEAD: &[u8] = b"# log 1\n";

/// A run of a recorder on the ring at a path, with a stream of lines (`log`) and one of packets (`eth0`).
pub struct Filler {
    recorder: Recorder<RealDisk>,
    clock: ManualClock,
    next: [u64; 2],
}

/// The text of a line.
pub fn line(ordinal: u64) -> String {
    format!("line {ordinal} {}", "x".repeat((ordinal % 977) as usize))
}

/// The bytes of a packet: an IPv4 UDP datagram with its number.
pub fn packet(ordinal: u64) -> Vec<u8> {
    let mut bytes = b"\xff\xff\xff\xff\xff\xff\x02\0\0\0\0\x01\x08\0E\0\0\x24\0\0\0\0\x40\x11\x66\xa7\x0a\0\0\x01\x0a\0\0\x02\0\x09\0\x09\0\x10\0\0".to_vec();
    bytes.extend_from_slice(&ordinal.to_be_bytes());
    bytes
}

impl Filler {
    /// Begins at `START` on a ring that `holdfast format` has made.
    pub fn open(path: &Path) -> Self {
        Self::open_at(path, Timestamp(START))
    }

    /// The same at another time.
    pub fn open_at(path: &Path, start: Timestamp) -> Self {
        let clock = ManualClock::new(start);
        let mut disk = RealDisk::new(Device::open(path, Access::Own).unwrap(), &[], 16);
        let recovered = recover(&mut disk).unwrap();
        let config = Config { buffers: 4, flush: Duration::from_secs(1), writes: 2 };
        let mut recorder = Recorder::start(disk, recovered, config, &clock);
        let eth0 = LiveInterface {
            name: "eth0",
            link_type: LinkType::ETHERNET,
            snaplen: 0,
            filter: None,
            mac: None,
            speed: None,
        };
        let blocks = Preamble::live(&[eth0]).unwrap();
        for (name, kind, framing, preamble) in [
            ("log", StreamKind::Bytes, "lines", HEAD),
            ("eth0", StreamKind::Packets, "whole", blocks.as_bytes()),
        ] {
            let entry = recorder
                .add_stream(&NewStream { name, kind, framing, preamble: Some(preamble), schema: None })
                .unwrap();
            assert!(entry < 2);
        }
        let mut filler = Self { recorder, clock, next: [0; 2] };
        while filler.recorder.driver.is_starting() {
            filler.recorder.poll();
        }
        filler
    }

    /// Goes on with this line.
    pub fn goes_on_at(mut self, line: u64) -> Self {
        self.next[0] = line;
        self
    }

    fn tick(&mut self) -> Timestamp {
        use holdfast_base::Clock;
        let now = Timestamp(self.clock.now().0 + STEP);
        self.clock.set(now);
        now
    }

    fn push(&mut self, row: &Row, bytes: &[u8]) {
        if self.recorder.open().is_some() && self.recorder.room() < bytes.len() + 1 {
            self.recorder.seal(SlotFlags::default());
        }
        while self.recorder.open().is_none() {
            self.recorder.open_slot();
            self.recorder.poll();
        }
        self.recorder.push(row, bytes);
        self.recorder.poll();
    }

    fn row(&mut self, stream: u16, kind: Kind, len: usize) -> Row {
        let arrival = self.tick();
        let ordinal = Ordinal(self.next[usize::from(stream)]);
        Row { stream, kind, len: len as u32, ordinal, arrival, ..Row::default() }
    }

    /// Records lines.
    pub fn lines(&mut self, count: u64) -> &mut Self {
        for _ in 0..count {
            let text = line(self.next[0]);
            let row = self.row(0, Kind::Element, text.len());
            self.push(&row, text.as_bytes());
            self.next[0] += 1;
        }
        self
    }

    /// Records packets that came in, cut from 100 bytes more; their event time is a second before they arrived.
    pub fn packets(&mut self, count: u64) -> &mut Self {
        for _ in 0..count {
            let bytes = packet(self.next[1]);
            let mut row = self.row(1, Kind::Element, bytes.len());
            row.flags = Flags::EVENT.with_direction(Direction::In);
            row.event = Timestamp(row.arrival.0 - 1_000_000_000);
            row.extra = 100;
            self.push(&row, &bytes);
            self.next[1] += 1;
        }
        self
    }

    /// Lets time pass.
    pub fn pass(&mut self, span: Duration) -> &mut Self {
        use holdfast_base::Clock;
        self.clock.set(self.clock.now() + span);
        self
    }

    /// Loses lines.
    pub fn lose(&mut self, count: u64) -> &mut Self {
        self.lose_of(0, count)
    }

    /// Loses lines (0) or packets (1).
    pub fn lose_of(&mut self, stream: u16, count: u64) -> &mut Self {
        let row = self.row(stream, Kind::Gap, Gap::BYTES);
        let (first, last) = (Timestamp(row.arrival.0 - STEP), row.arrival);
        let gap = Gap {
            ordinals: count,
            elements: Some(count),
            bytes: None,
            first,
            last,
            cause: Cause::Kernel,
            note: 0,
        };
        self.push(&row, &gap.encode());
        self.next[usize::from(stream)] += count;
        self
    }

    /// Ends the run tidily.
    pub fn close(mut self) {
        self.recorder.seal(SlotFlags::SHORT);
        while !self.recorder.driver.is_idle() {
            self.recorder.poll();
        }
        let now = self.tick();
        self.recorder.driver.ring_mut().end(now);
        self.recorder.poll();
        while !self.recorder.driver.is_idle() {
            self.recorder.poll();
        }
    }
}
