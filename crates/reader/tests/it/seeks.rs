//! Arm movements of a rotating drive under a reader of everything, whatever the size of elements. In virtual time: the
//! figures are the same everywhere.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use holdfast_base::{Clock, ManualClock, Ordinal, Timestamp};
use holdfast_media::drive::{AccessKind, Drive, DriveModel, EmulatedDisk, Payload};
use holdfast_media::{Completion, Disk, DiskInfo, Image, Op, Request, Seed};
use holdfast_reader::{RingReader, Selection};
use holdfast_sim::fixture::{TestRing, bytes};
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const SLOT: u64 = 32 << 20;
const SLOTS: u64 = 3;

/// What is read, where and how much, and how often nothing else was under way then.
#[derive(Default)]
struct Reads {
    all: Vec<(u64, u64)>,
    under_way: usize,
    rounds: usize,
}

/// A disk that notes it.
struct Noted {
    disk: EmulatedDisk,
    reads: Arc<Mutex<Reads>>,
}

impl Disk for Noted {
    fn info(&self) -> &DiskInfo {
        self.disk.info()
    }

    fn submit(&mut self, request: Request) -> Result<(), Request> {
        let read = match &request.op {
            Op::Read { offset, len, .. } => Some((*offset, *len as u64)),
            _ => None,
        };
        self.disk.submit(request)?;
        let mut reads = self.reads.lock().unwrap();
        reads.all.extend(read);
        reads.rounds += usize::from(reads.under_way == 0);
        reads.under_way += 1;
        Ok(())
    }

    fn complete(&mut self, wait: Duration) -> Option<Completion> {
        let completion = self.disk.complete(wait)?;
        self.reads.lock().unwrap().under_way -= 1;
        Some(completion)
    }
}

/// A ring of full slots with elements of `size` bytes, as they come; how many there are.
fn ring(size: usize) -> (Image, u64) {
    let mut test_ring = TestRing::new(SLOT, SLOTS + 2, 1);
    let data = bytes(1, size);
    let (mut elements, mut arrival, mut seed) = (0, 0, Seed::new(1));
    while test_ring.sequence <= SLOTS {
        arrival += seed.below(100_000) as i64;
        test_ring.element(0, arrival, None, b"", &data, 1);
        test_ring.recorded.clear();
        elements += 1;
    }
    (test_ring.lane(), elements)
}

/// How often the arm goes elsewhere while everything is read, the time, and how many elements came.
fn read(image: Image) -> (usize, Duration, u64) {
    let model = DriveModel::paper().part(0.3, image.bytes());
    let clock = ManualClock::new(Timestamp(0));
    let disk = EmulatedDisk::new(model, Payload::Kept(image), 1, clock.clone());
    let reads = Arc::default();
    let mut reader = RingReader::over(Box::new(Noted { disk, reads: Arc::clone(&reads) })).unwrap();
    let plan = reader.plan(&Selection::ALL).unwrap();
    reads.lock().unwrap().all.clear();
    let before = clock.now();
    let report = reader.read(&plan, &mut |_| ControlFlow::Continue(())).unwrap();
    assert_eq!((report.damaged, report.partial), (0, 0));
    let reads = &reads.lock().unwrap().all;
    let moves = reads.windows(2).filter(|pair| pair[0].0 + pair[0].1 != pair[1].0).count();
    (moves, clock.now().since(before), report.elements)
}

#[test]
fn the_arm_does_not_go_back_and_forth_for_what_describes_small_elements() {
    for size in [20, 64 << 10] {
        let (image, elements) = ring(size);
        let drive = Drive::new(DriveModel::paper().part(0.3, image.bytes()), 1);
        let stream = drive.stream_time(AccessKind::Read, 0, SLOT * SLOTS);
        let (moves, time, read) = read(image);
        assert_eq!(read, elements);
        assert!(moves <= 6 * SLOTS as usize, "{size}: the arm moved {moves} times");
        let share = stream.as_secs_f64() / time.as_secs_f64();
        assert!(share >= 0.85, "{size}: {share} of what the drive streams");
    }
}

// Beside a recorder that has much to write each answer may take as long as a turn of writing.
#[test]
fn a_plan_by_ordinals_waits_for_few_answers() {
    let (slot, slots) = (64 << 10, 200);
    let mut test_ring = TestRing::new(slot, slots, 1);
    let data = bytes(1, 1000);
    while test_ring.sequence <= slots {
        test_ring.element(0, 0, None, b"", &data, 1);
    }
    let (image, all) = (test_ring.lane(), test_ring.counters(0).next_ordinal.0);
    for (first, end) in [(all / 3, all / 2), (0, 1), (all / 2, all), (all - 1, all)] {
        let model = DriveModel::paper().part(0.3, image.bytes());
        let clock = ManualClock::new(Timestamp(0));
        let disk = EmulatedDisk::new(model, Payload::Kept(image.clone()), 1, clock);
        let reads: Arc<Mutex<Reads>> = Arc::default();
        let mut reader = RingReader::over(Box::new(Noted { disk, reads: Arc::clone(&reads) })).unwrap();
        let before = reads.lock().unwrap().rounds;
        let mut selection = Selection::ALL;
        selection.range.ordinals = Some((Ordinal(first), Ordinal(end)));
        let plan = reader.plan(&selection).unwrap();
        let rounds = reads.lock().unwrap().rounds - before;
        assert!(rounds <= 4, "{first} to {end}: {rounds} rounds");
        assert!(plan.slots.len() as u64 <= (end - first) * slots / all + 3, "{} slots", plan.slots.len());
    }
}
