//! Tests of a ring that grows while it records: however long the device takes, capture goes on; and a refused
//! growth changes nothing. Promises 1 and 8.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use holdfast_base::{ByteSize, Clock, ManualClock, Ordinal, RingId, Timestamp};
use holdfast_format::{Geometry, Key, Kind, Row, SlotFlags, StreamKind};
use holdfast_media::{Completion, Disk, DiskInfo, MemoryDisk, Op, Request};
use holdfast_ring::{Config, NewRing, NewStream, Order, OrderTag, Outcome, Refusal, create, recover};
use holdfast_sim::Recorder;
use std::time::Duration;

const SLOT: u64 = 64 << 10;
const SLOTS: u64 = 20;
const MS: Duration = Duration::from_millis(1);

/// A disk that takes as long as it is told to for looking at its own length.
struct Slow {
    disk: MemoryDisk,
    /// What waits for that, while it is slow.
    held: Option<Vec<Request>>,
    measured: u32,
}

impl Disk for Slow {
    fn info(&self) -> &DiskInfo {
        self.disk.info()
    }

    fn submit(&mut self, request: Request) -> Result<(), Request> {
        self.measured += u32::from(matches!(request.op, Op::Measure));
        match &mut self.held {
            Some(held) if matches!(request.op, Op::Measure) => {
                held.push(request);
                Ok(())
            }
            _ => self.disk.submit(request),
        }
    }

    fn complete(&mut self, wait: Duration) -> Option<Completion> {
        self.disk.complete(wait)
    }
}

fn lane(slots: u64) -> u64 {
    (1 << 20) + (4 + slots) * SLOT
}

struct Run {
    recorder: Recorder<Slow>,
    clock: ManualClock,
}

impl Run {
    fn start() -> Self {
        let clock = ManualClock::new(Timestamp(1_000_000_000));
        let mut disk = MemoryDisk::new(lane(SLOTS));
        let geometry = Geometry::for_lane(lane(SLOTS), SLOT, Vec::new()).unwrap();
        let (ring, key) = (RingId([7; 16]), Key([9; 32]));
        let new = NewRing::plain(ring, key, "r", geometry);
        create(&mut disk, new, Timestamp(1)).unwrap();
        let recovered = recover(&mut disk).unwrap();
        let config = Config { buffers: 3, flush: Duration::from_secs(1), writes: 2 };
        let disk = Slow { disk, held: None, measured: 0 };
        let mut recorder = Recorder::start(disk, recovered, config, &clock);
        let new = NewStream { name: "s", kind: StreamKind::Bytes, framing: "", preamble: None, schema: None };
        recorder.add_stream(&new).unwrap();
        let mut run = Self { recorder, clock };
        (0..20).for_each(|_| run.poll());
        run
    }

    fn poll(&mut self) {
        self.clock.set(self.clock.now() + MS);
        self.recorder.poll();
    }

    /// Records so many slots; how many were written meanwhile, none of them waiting for more than a few milliseconds.
    fn slots(&mut self, count: u64) -> u64 {
        let before = self.recorder.driver.counts().writes;
        for _ in 0..count {
            let mut tries = 0;
            while self.recorder.open_slot().is_none() {
                self.poll();
                tries += 1;
                assert!(tries < 20, "capture waits");
            }
            let row = Row {
                kind: Kind::Element,
                len: 8,
                ordinal: Ordinal(0),
                arrival: self.clock.now(),
                ..Row::default()
            };
            self.recorder.push(&row, &[1; 8]);
            self.recorder.seal(SlotFlags::SHORT);
            self.poll();
        }
        self.recorder.driver.counts().writes - before
    }

    fn grow(&mut self, bytes: u64) {
        let now = self.clock.now();
        self.recorder.driver.order(OrderTag(1), Order::Grow(ByteSize(bytes)), None, now);
    }

    fn disk(&mut self) -> &mut Slow {
        self.recorder.driver.disk_mut()
    }

    fn outcome(&mut self) -> Option<Outcome> {
        (0..20).for_each(|_| self.poll());
        self.recorder.driver.reply().map(|(_, outcome)| outcome)
    }

    fn total(&self) -> u32 {
        self.recorder.driver.ring().status("").slots.total
    }
}

#[test]
fn capture_goes_on_while_a_growth_takes_its_time() {
    let mut run = Run::start();
    run.disk().held = Some(Vec::new());
    run.disk().disk.lengthen(lane(SLOTS + 10));
    run.grow(lane(SLOTS + 10));
    assert_eq!(run.slots(3 * SLOTS), 3 * SLOTS, "three laps");
    assert_eq!((run.outcome(), run.total()), (None, SLOTS as u32));
    run.grow(lane(SLOTS + 20));
    assert_eq!(run.outcome(), Some(Outcome::Refused(Refusal::Busy("growth"))));
    for request in run.disk().held.take().unwrap() {
        run.disk().submit(request).unwrap();
    }
    assert_eq!(run.outcome(), Some(Outcome::Grown { slots: SLOTS as u32 + 10 }));
    assert_eq!(run.slots(3 * SLOTS), 3 * SLOTS);
    let grown = recover(&mut run.recorder.into_disk().disk).unwrap();
    assert_eq!(u64::from(grown.superblock.geometry.slots), SLOTS + 10);
}

#[test]
fn a_growth_that_is_refused_touches_nothing() {
    let mut run = Run::start();
    // No further slot, a lane that is shorter, and more slots than the format allows: seen without the disk.
    for bytes in [lane(SLOTS) + SLOT - 4096, lane(SLOTS) - 4096, 1 << 50] {
        run.grow(bytes);
        let outcome = run.outcome();
        assert!(matches!(outcome, Some(Outcome::Refused(Refusal::Geometry(_)))), "{outcome:?}");
        assert_eq!(run.disk().measured, 0);
    }
    // The lane is not that long: nobody makes it longer here.
    run.grow(lane(SLOTS + 1));
    let outcome = run.outcome();
    let told = |why: &str| why.contains("make it longer first");
    assert!(matches!(&outcome, Some(Outcome::Refused(Refusal::Geometry(why))) if told(why)), "{outcome:?}");
    assert_eq!((run.disk().measured, run.total()), (1, SLOTS as u32));
    assert_eq!(run.disk().disk.snapshot().bytes(), lane(SLOTS));
}
