//! Tests of restart time after a crash, on the emulated drive of Bigelow, Brandt, Bent and Chen ("Mahanaxar",
//! §VII), in virtual time: below five seconds with slots of any size, on the largest ring that such slots
//! make there, wherever the run was cut off. Promise 6.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use holdfast_base::{Clock, ManualClock, Ordinal, RingId, Timestamp};
use holdfast_format::{Geometry, Key, Kind, Row, SlotFlags, StreamKind};
use holdfast_media::drive::{AccessKind, Drive, DriveAccess, DriveModel};
use holdfast_media::{Completion, Disk, DiskInfo, Op, Request};
use holdfast_ring::{Config, NewRing, NewStream, create, recover_for_capture};
use holdfast_sim::{Recorder, SparseDisk};
use std::collections::VecDeque;
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);
const MIB: u64 = 1 << 20;

/// What may pass until capture begins.
const LIMIT: Duration = Duration::from_secs(5);

/// A disk that keeps writes of slots back while it is told to.
struct Held {
    disk: SparseDisk,
    first_slot: u64,
    holds: bool,
    back: Vec<Request>,
}

impl Held {
    fn release(&mut self) {
        self.holds = false;
        for request in self.back.drain(..) {
            assert!(self.disk.submit(request).is_ok());
        }
    }
}

impl Disk for Held {
    fn info(&self) -> &DiskInfo {
        self.disk.info()
    }

    fn submit(&mut self, request: Request) -> Result<(), Request> {
        match request.op {
            Op::Write { offset, .. } if self.holds && offset >= self.first_slot => self.back.push(request),
            _ => return self.disk.submit(request),
        }
        Ok(())
    }

    fn complete(&mut self, wait: Duration) -> Option<Completion> {
        self.disk.complete(wait)
    }
}

/// A disk that takes as long as a drive does.
struct Timed {
    disk: SparseDisk,
    drive: Drive,
    clock: ManualClock,
    due: VecDeque<Timestamp>,
}

impl Disk for Timed {
    fn info(&self) -> &DiskInfo {
        self.disk.info()
    }

    fn submit(&mut self, request: Request) -> Result<(), Request> {
        let (kind, offset, len) = match &request.op {
            Op::Write { offset, len, .. } => (AccessKind::Write, *offset, *len),
            Op::Read { offset, len, .. } => (AccessKind::Read, *offset, *len),
            Op::Flush | Op::Measure => (AccessKind::Flush, 0, 0),
        };
        let served = self.drive.serve(DriveAccess { kind, offset, len: len as u64 }, self.clock.now());
        self.due.push_back(served.done);
        self.disk.submit(request)
    }

    fn complete(&mut self, wait: Duration) -> Option<Completion> {
        let (now, due) = (self.clock.now(), self.due.front().copied());
        let Some(due) = due.filter(|due| *due <= now + wait) else {
            self.clock.set(now + wait);
            return None;
        };
        self.due.pop_front();
        self.clock.set(now.max(due));
        self.disk.complete(wait)
    }
}

fn config(buffers: u32) -> Config {
    Config { buffers, flush: Duration::from_secs(1), writes: 2 }
}

struct Run {
    recorder: Recorder<Held>,
    clock: ManualClock,
    next: u64,
    slot_bytes: u64,
    buffers: u32,
    /// The longest time until capture began, and after which cut.
    worst: (Duration, String),
}

impl Run {
    /// The largest ring with such slots on the drive.
    fn start(slot_bytes: u64, buffers: u32) -> Self {
        let most = MIB + (4 + slot_bytes / 64) * slot_bytes;
        let bytes = DriveModel::paper().bytes.min(most);
        let mut disk = SparseDisk::new(bytes);
        let geometry = Geometry::for_lane(bytes, slot_bytes, Vec::new()).unwrap();
        let first_slot = geometry.first_slot();
        let new = NewRing::plain(RingId([7; 16]), Key([9; 32]), "r", geometry);
        create(&mut disk, new, Timestamp(1)).unwrap();
        let mut disk = Held { disk, first_slot, holds: false, back: Vec::new() };
        let clock = ManualClock::new(Timestamp(1_000_000_000));
        let recovered = recover_for_capture(&mut disk).unwrap();
        let mut recorder = Recorder::start(disk, recovered, config(buffers), &clock);
        recorder.add_stream(&stream()).unwrap();
        let worst = (Duration::ZERO, String::new());
        let mut run = Self { recorder, clock, next: 0, slot_bytes, buffers, worst };
        while run.recorder.driver.is_starting() {
            run.pass(MS);
        }
        run
    }

    fn pass(&mut self, span: Duration) {
        self.clock.set(self.clock.now() + span);
        self.recorder.poll();
    }

    /// A piece of a slot, which the journal has soon.
    fn piece(&mut self) {
        let len = (self.slot_bytes / 32).min(MIB) as usize;
        if self.recorder.driver.ring().wants_seal() || self.recorder.room() < len {
            self.recorder.seal(SlotFlags::default());
        }
        for _ in 0..20 {
            if self.recorder.open().is_none() && self.recorder.open_slot().is_none() {
                self.pass(MS);
            }
        }
        if self.recorder.open().is_none() {
            // No buffer is free while writes are kept back.
            return;
        }
        let row = Row {
            kind: Kind::Element,
            len: len as u32,
            ordinal: Ordinal(self.next),
            arrival: self.clock.now(),
            ..Row::default()
        };
        self.next += 1;
        self.recorder.push(&row, &vec![0; len]);
        for _ in 0..3 {
            self.pass(600 * MS);
        }
    }

    /// The power goes now: how long until capture would begin again.
    fn cut(&mut self, at: &str) {
        let mut worst = (Duration::ZERO, String::new());
        for seed in 0..2 {
            let clock = ManualClock::new(self.clock.now());
            let disk = self.recorder.driver.disk().disk.copy();
            let drive = Drive::starting(DriveModel::paper(), seed, clock.now());
            let mut disk = Timed { disk, drive, clock: clock.clone(), due: VecDeque::new() };
            let recovered = recover_for_capture(&mut disk).unwrap();
            let rebuilt = recovered.rebuilt.len();
            let mut recorder = Recorder::start(disk, recovered, config(self.buffers), &clock);
            recorder.add_stream(&stream()).unwrap();
            let mut polls = 0;
            while recorder.driver.is_starting() {
                clock.set(clock.now() + MS);
                recorder.poll();
                polls += 1;
                assert!(polls < 10_000, "{at}: no start");
            }
            assert!(recorder.open_slot().is_some(), "{at}: nothing can be opened");
            let took = clock.now().since(self.clock.now());
            worst = worst.max((took, format!("{at}, {rebuilt} rebuilt")));
        }
        self.worst = self.worst.clone().max(worst);
    }

    fn written(&self) -> u64 {
        self.recorder.driver.counts().writes
    }

    /// Slots that fill slowly, cut off again and again, as a write keeps a place while `gained` pieces come meanwhile.
    fn slow(&mut self, gained: u64) {
        for lap in 0..2 {
            while self.recorder.open().is_none() || self.recorder.room() > (self.slot_bytes / 16) as usize {
                self.piece();
            }
            self.cut(&format!("lap {lap}, nearly full"));
            self.recorder.driver.disk_mut().holds = true;
            self.recorder.seal(SlotFlags::default());
            for number in 0..gained {
                self.piece();
                if number == gained / 2 || number + 1 == gained {
                    self.cut(&format!("lap {lap}, sealed, and {number} pieces more"));
                }
            }
            // The slots land, and nobody knows yet.
            self.recorder.driver.disk_mut().release();
            self.cut(&format!("lap {lap}, written"));
            for number in 0..80 {
                // In steps of one commit: through the snapshot, if one is made.
                self.pass(MS);
                if [1, 2, 20, 40, 60, 79].contains(&number) {
                    self.cut(&format!("lap {lap}, {number} commits on"));
                }
            }
        }
    }

    /// Slots that fill so fast that the journal has nothing of them, until half of a runway is used.
    fn fast(&mut self) {
        for _ in 0..4 * self.buffers {
            while self.recorder.open().is_none() && self.recorder.open_slot().is_none() {
                self.pass(MS);
            }
            let row = Row { kind: Kind::Element, len: 8, ordinal: Ordinal(self.next), ..Row::default() };
            self.next += 1;
            self.recorder.push(&row, &[7; 8]);
            self.recorder.seal(SlotFlags::default());
            self.pass(MS);
            if self.written() % u64::from(self.buffers) < 2 {
                self.cut("fast");
            }
        }
    }
}

fn stream() -> NewStream<'static> {
    NewStream { name: "s", kind: StreamKind::Bytes, framing: "", preamble: Some(b"preamble"), schema: None }
}

fn begins_in_time(size: u64, buffers: u32, what: impl FnOnce(&mut Run)) {
    let mut run = Run::start(size * MIB, buffers);
    what(&mut run);
    let (took, at) = &run.worst;
    println!("{size} MiB, {buffers} buffers: {took:?} ({at})");
    assert!(*took < LIMIT, "slots of {size} MiB: {took:?} ({at})");
}

#[test]
fn with_slots_of_1_mib_capture_begins_within_five_seconds() {
    begins_in_time(1, 4, |run| run.slow(40));
}

#[test]
fn with_slots_of_64_mib_capture_begins_within_five_seconds() {
    begins_in_time(64, 4, |run| run.slow(40));
}

#[test]
fn with_slots_of_128_mib_capture_begins_within_five_seconds() {
    begins_in_time(128, 4, |run| run.slow(150));
}

#[test]
fn with_slots_of_256_mib_that_fill_slowly_capture_begins_within_five_seconds() {
    begins_in_time(256, 4, |run| run.slow(2));
}

#[test]
fn with_slots_of_256_mib_capture_begins_within_five_seconds() {
    begins_in_time(256, 4, |run| run.slow(150));
}

#[test]
fn behind_the_longest_runway_capture_begins_within_five_seconds() {
    begins_in_time(1, 64, Run::fast);
    begins_in_time(8, 64, Run::fast);
}
