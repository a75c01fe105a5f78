//! Tests of promise 1: the capture core over an emulated drive in virtual time, at the rate that the drive was admitted
//! for, with greedy readers: nothing is lost, and the lane follows the schedule. `crates/sim` (`hours`) tries the
//! schedule alone on many more drives.
#![allow(clippy::unwrap_used)] // helpers of tests are tests too

use crate::slow_drive;

use holdfast_base::{Clock, ManualClock, Ordinal, Rate, RingId, SlotNo, Timestamp};
use holdfast_format::{Geometry, Key, Measured, StreamKind};
use holdfast_ingest::{Marks, Overload, Parker, Pressure, Producer, ProducerSettings, channel};
use holdfast_media::drive::Payload;
use holdfast_media::{
    Buffer, Completion, Disk, DiskInfo, DriveModel, EmulatedDisk, Image, MemoryDisk, Op, Request, Seed, Stall,
};
use holdfast_recorder::capture::{Answer, Ask, Capture, NotRead, ReadOrigin, Stream};
use holdfast_ring::{
    Class, Config, Declared, Driver, Guarantee, Load, NewRing, NewStream, Range, Shape, admit, create,
    figures, is_slot_write, least_slots, load, recover,
};
use slow_drive::{QUANTUM, SLOT, ask, drive, measured};
use std::sync::Arc;
use std::time::Duration;

const SLOTS: u64 = 40;
const ELEMENT: usize = 64 << 10;
/// Elements of a lap.
const LAP: u64 = SLOTS * SLOT.0 / ELEMENT as u64;
const FLUSH: Duration = Duration::from_secs(1);

/// What the lane was asked to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Did {
    Slot,
    Commit,
    Read,
}

/// A disk that remembers what it was asked, and what was under way then.
struct Logged {
    disk: EmulatedDisk,
    log: Vec<(Did, Vec<Did>)>,
    flying: Vec<(u64, Did)>,
}

impl Disk for Logged {
    fn info(&self) -> &DiskInfo {
        self.disk.info()
    }

    fn submit(&mut self, request: Request) -> Result<(), Request> {
        let (tag, did) = match &request.op {
            Op::Write { .. } if is_slot_write(request.tag) => (request.tag, Did::Slot),
            Op::Write { .. } => (request.tag, Did::Commit),
            _ => (request.tag, Did::Read),
        };
        self.disk.submit(request)?;
        self.log.push((did, self.flying.iter().map(|(_, did)| *did).collect()));
        self.flying.push((tag, did));
        Ok(())
    }

    fn complete(&mut self, wait: Duration) -> Option<Completion> {
        let done = self.disk.complete(wait)?;
        let at = self.flying.iter().position(|(tag, _)| *tag == done.tag).unwrap();
        self.flying.remove(at);
        Some(done)
    }
}

/// A recorder without threads at its guarantee: a source of one rate, and readers without measure.
struct Rig {
    capture: Capture<Logged>,
    producer: Producer,
    clock: ManualClock,
    granted: Guarantee,
    /// Between two elements.
    pace: Duration,
    next: Timestamp,
    sent: u64,
    seed: Seed,
    readers: Vec<Buffer>,
    read: u64,
    failed: u64,
}

/// A load at the highest rate that is admitted, and the rate of payload that it stands for.
fn fastest(measured: &Measured) -> (u64, Load) {
    let declared =
        |rate: u64| Declared { rate: Rate(rate), elements: rate / ELEMENT as u64 + 1, ..Declared::NOTHING };
    let most = figures(measured, &load(&[declared(1 << 20)], SLOT), &shape(u32::MAX)).with_reads.0;
    let rate = (0..most).rev().step_by(4096).find(|rate| load(&[declared(*rate)], SLOT).rate.0 <= most);
    let rate = rate.unwrap();
    (rate, load(&[declared(rate)], SLOT))
}

fn shape(buffers: u32) -> Shape {
    Shape { slot: SLOT, flush: FLUSH, gather: 4, quantum: QUANTUM as u32, buffers }
}

impl Rig {
    fn start(readers: usize) -> Self {
        let drive = drive(SLOTS);
        Self::start_on(&drive, &measured(&drive), readers)
    }

    fn start_on(drive: &DriveModel, measured: &Measured, readers: usize) -> Self {
        let clock = ManualClock::new(Timestamp(1_000_000_000));
        let mut disk =
            EmulatedDisk::new(drive.clone(), Payload::Kept(Image::new(drive.bytes)), 1, clock.clone());
        let geometry = Geometry::for_lane(disk.info().bytes, SLOT.0, Vec::new()).unwrap();
        create(&mut disk, NewRing::plain(RingId([7; 16]), Key([9; 32]), "r", geometry), clock.now()).unwrap();
        let recovered = recover(&mut disk).unwrap();

        // As fast as is admitted.
        let (rate, load) = fastest(measured);
        // And in no more memory than it takes.
        let buffers = admit(measured, &load, &shape(u32::MAX)).unwrap().buffers;
        let pool = (0..buffers).map(|_| Buffer::aligned(SLOT.0 as usize).unwrap()).collect();
        let config = Config { buffers, flush: FLUSH, writes: 3 };
        let disk = Logged { disk, log: Vec::new(), flying: Vec::new() };
        let mut driver = Driver::start(disk, recovered, pool, config, clock.now(), clock.wall()).unwrap();
        let granted = driver.promise(measured, &load, &shape(buffers)).unwrap();

        let new =
            NewStream { name: "s", kind: StreamKind::Bytes, framing: "whole", preamble: None, schema: None };
        let entry = driver.ring_mut().add_stream(&new, clock.now()).unwrap();
        let pressure = Arc::new(Pressure::default());
        let settings = ProducerSettings::new(Overload::DropNewest, Ordinal(0));
        let (producer, inlet) =
            channel(&settings, Arc::new(clock.clone()), Arc::clone(&pressure), Parker::new().waker());
        let stream = Stream { entry, lost_since: None };
        let capture = Capture::start(driver, &[stream], vec![inlet], pressure, FLUSH, &clock).unwrap();
        let mut rig = Self {
            capture,
            producer,
            next: clock.now(),
            clock,
            granted,
            pace: Duration::from_secs_f64(ELEMENT as f64 / rate as f64),
            sent: 0,
            seed: Seed::new(3),
            readers: (0..readers).map(|_| Buffer::aligned(QUANTUM).unwrap()).collect(),
            read: 0,
            failed: 0,
        };
        while rig.capture.driver().is_starting() {
            rig.capture.step(rig.clock.now(), Duration::from_millis(10));
        }
        rig.next = rig.clock.now();
        rig
    }

    /// Until then the lane works and is read from.
    fn rest(&mut self, until: Timestamp) {
        loop {
            let now = self.clock.now();
            ask(&mut self.capture, &mut self.readers, &mut self.seed, now);
            let wait = until.since(now);
            if wait.is_zero() {
                break;
            }
            self.capture.step(now, wait);
            // Where nothing is under way the lane may rest for a moment all the same: whose turn it is to read may come back.
            let driver = self.capture.driver();
            let rests = driver.rests_until().filter(|_| driver.disk().flying.is_empty());
            if rests.is_some() || !self.capture.awaits_disk() {
                self.clock.set(self.clock.now().max(rests.map_or(until, |rests| rests.min(until))));
            }
            while let Some((_, answer)) = self.capture.answer() {
                let Answer::Read(buffer, len, result) = answer else { panic!("{answer:?}") };
                self.read += if result.is_ok() { u64::from(len) } else { 0 };
                self.failed += u64::from(result.is_err());
                self.readers.push(buffer);
            }
        }
    }

    /// The next element, when it is time for it.
    fn go(&mut self) {
        self.rest(self.next);
        self.producer.stamp();
        let mut data = vec![0; ELEMENT];
        Seed::new(self.sent).fill(&mut data);
        self.producer.element(&[], &data, Marks::default()).unwrap();
        self.producer.idle().unwrap();
        self.sent += 1;
        self.next = self.next + self.pace;
        self.capture.step(self.clock.now(), Duration::ZERO);
    }
}

impl Rig {
    /// Ends the source, and goes on until the run has ended, with readers that ask again whatever they are told. The time
    /// that it took, and the reads that were refused.
    fn end(self) -> (Duration, u64) {
        let Self { mut capture, mut producer, clock, granted, mut readers, .. } = self;
        producer.finish().unwrap();
        drop(producer);
        let (began, mut refused) = (clock.now(), 0);
        let sequence = capture.driver().ring().slot_looks(SlotNo(0), 1).next().unwrap().sequence;
        let reader = ReadOrigin { class: Class::Export, client: 1 };
        loop {
            let now = clock.now();
            assert!(now.since(began) <= granted.durable_after, "{:?}", granted.durable_after);
            let mut told = Vec::new();
            for buffer in readers.drain(..) {
                let ask = Ask::Read(sequence, 0, QUANTUM as u32, buffer, reader);
                told.extend(capture.ask(1, ask, now));
            }
            let done = capture.step(now, Duration::from_millis(10)).done;
            told.extend(std::iter::from_fn(|| capture.answer().map(|(_, answer)| answer)));
            for answer in told {
                let Answer::Read(buffer, _, result) = answer else { panic!("{answer:?}") };
                refused += u64::from(result == Err(NotRead::Ending));
                readers.push(buffer);
            }
            if done {
                return (now.since(began), refused);
            }
            if clock.now() == now {
                clock.set(now + Duration::from_millis(1));
            }
        }
    }
}

/// Promises 1 and 6: the end comes as soon as is published, wherever the open slot is, though readers never stop.
#[test]
fn a_run_ends_as_soon_as_is_published_while_readers_go_on() {
    let elements = SLOT.0 / ELEMENT as u64;
    for third in 0..7 {
        let mut rig = Rig::start(6);
        while rig.sent < 6 * elements + third * elements / 3 {
            rig.go();
        }
        let granted = rig.granted.durable_after;
        let (took, refused) = rig.end();
        assert!(took <= granted && refused > 6, "{took:?} of {granted:?}, {refused} reads refused");
    }
}

#[test]
fn at_its_guarantee_a_recorder_loses_nothing_whoever_reads() {
    let mut rig = Rig::start(6);
    let began = rig.clock.now();
    // Two laps.
    while rig.sent < 2 * LAP {
        rig.go();
    }
    let took = rig.clock.now().since(began).as_secs_f64();
    let counters = rig.capture.counters(0);
    assert_eq!((counters.lost, counters.gaps), (0, 0), "of {}", rig.sent);
    assert!(counters.received + 64 > rig.sent, "{counters:?}, {} sent", rig.sent);
    assert!(rig.failed > 0, "some places were to be unreadable");
    let left = rig.read as f64 / took / f64::from(1 << 20);
    assert!(left > 0.02, "readers got {left:.3} MiB/s");
    let schedule = rig.capture.driver().schedule();
    let margin = schedule.margin().unwrap();
    assert!(!margin.least.is_zero() && margin.least < margin.kept * 2, "{margin:?}");
    assert!(schedule.most_buffers().0 <= rig.granted.buffers);
    assert_eq!(rig.capture.driver().ring().status("r").durable_after, rig.granted.durable_after);
    let eldest = rig.capture.driver().eldest();
    assert!(!eldest.is_zero() && eldest <= rig.granted.durable_after, "{eldest:?}");
    let image = rig.capture.into_disk().disk.image().unwrap().clone();
    let mut reader = holdfast_reader::RingReader::over(Box::new(MemoryDisk::from_image(image))).unwrap();
    let plan = reader.plan(&holdfast_reader::Selection::ALL).unwrap();
    let mut seen = 0;
    reader
        .read(&plan, &mut |item| {
            if let holdfast_reader::Item::Element(element) = item {
                let mut data = vec![0; ELEMENT];
                Seed::new(element.ordinal.0).fill(&mut data);
                assert_eq!(element.data, data, "element {}", element.ordinal);
                seen += 1;
            }
            std::ops::ControlFlow::Continue(())
        })
        .unwrap();
    assert!(seen > 1000, "{seen} are still there");
}

#[test]
fn slots_are_written_in_goes_and_nothing_is_begun_beside_a_read() {
    let mut rig = Rig::start(6);
    while rig.sent < LAP {
        rig.go();
    }
    let log = rig.capture.into_disk().log;
    let reads = log.iter().filter(|(did, _)| *did == Did::Read).count();
    assert!(reads > 10, "{reads} reads");
    for (did, beside) in &log {
        // One slot may wait behind another; all else has the drive for itself.
        let may = beside.is_empty() || (*did == Did::Slot && *beside == [Did::Slot]);
        assert!(may, "{did:?} was begun beside {beside:?}");
    }
    // From the first read on, commits aside.
    let order: Vec<Did> = log.iter().map(|(did, _)| *did).filter(|did| *did != Did::Commit).collect();
    let first = order.iter().position(|did| *did == Did::Read).unwrap();
    let goes: Vec<usize> =
        order[first..].chunk_by(|a, b| a == b).filter(|go| go[0] == Did::Slot).map(<[Did]>::len).collect();
    let whole = goes.iter().filter(|go| **go >= 4).count();
    assert!(whole * 10 >= goes.len() * 7, "{goes:?}");
    let commits = log.iter().filter(|(did, _)| *did == Did::Commit).count() as u64;
    assert!(commits < SLOTS, "{commits} commits for {SLOTS} slots");
}

/// While a drive stands still no slot can be named, so that all names that the wait takes have to be there before: on a
/// small ring, too.
#[test]
fn a_stall_that_was_admitted_costs_nothing_on_the_smallest_ring_that_is() {
    let (length, every) = (Duration::from_secs(15), Duration::from_secs(150));
    let measured = Measured { stall: length, stalled: 100_000, ..measured(&drive(SLOTS)) };
    let granted = admit(&measured, &fastest(&measured).1, &shape(u32::MAX)).unwrap();
    let slots = least_slots(&granted, 4);
    assert!(u64::from(slots) > SLOTS, "{slots}");
    for phase in [0, 700, 2500, 3900] {
        let first = Duration::from_millis(20_000 + phase);
        let drive = drive(slots.into()).stalling(Stall { first, length, every: Some(every) });
        let mut rig = Rig::start_on(&drive, &measured, 4);
        // Two stalls, the second on a ring that is full.
        while rig.clock.now() < Timestamp(0) + first + every + length * 3 {
            rig.go();
        }
        let counters = rig.capture.counters(0);
        assert_eq!((counters.lost, counters.gaps), (0, 0), "of {}, phase {phase}", rig.sent);
        let margin = rig.capture.driver().schedule().margin().unwrap();
        assert!(margin.least < length, "{margin:?}: it was to stand still");
    }
}

/// Elements and when they came, against what a crash at this moment would leave.
struct Account {
    came: Vec<Timestamp>,
    /// So many of them were found on the medium.
    durable: usize,
    looked: Timestamp,
    /// The greatest age of one that was not there.
    eldest: Duration,
}

impl Account {
    /// Looks at the medium a few times a second: whatever the recorder thinks of it.
    fn look(&mut self, rig: &Rig) {
        let now = rig.clock.now();
        if now.since(self.looked) < Duration::from_millis(250) {
            return;
        }
        self.looked = now;
        let image = rig.capture.driver().disk().disk.image().unwrap().clone();
        let mut reader = holdfast_reader::RingReader::over(Box::new(MemoryDisk::from_image(image))).unwrap();
        let ordinals = Some((Ordinal(self.durable as u64), Ordinal(u64::MAX)));
        let range = Range { ordinals, ..Range::ALL };
        let selection = holdfast_reader::Selection { streams: Vec::new(), range };
        let plan = reader.plan(&selection).unwrap();
        let mut found = vec![false; self.came.len() - self.durable];
        reader
            .read(&plan, &mut |item| {
                if let holdfast_reader::Item::Element(element) = item {
                    found[element.ordinal.0 as usize - self.durable] = true;
                }
                std::ops::ControlFlow::Continue(())
            })
            .unwrap();
        let missing = found.iter().position(|found| !found);
        self.durable += missing.unwrap_or(found.len());
        let age = self.came.get(self.durable).map_or(Duration::ZERO, |came| now.since(*came));
        self.eldest = self.eldest.max(age);
        let published = rig.granted.durable_after;
        assert!(age <= published, "element {} is not there after {age:?}, of {published:?}", self.durable);
    }
}

/// Promise 6: as soon as is published a crash costs nothing of what came, also where a stream comes by less than it declared, in
/// pieces of every size and with silence between them; and the recorder knows what it would cost.
#[test]
fn a_stream_that_pauses_is_durable_as_soon_as_is_published() {
    let mut rig = Rig::start(6);
    let mut seed = Seed::new(5);
    let start = rig.clock.now();
    let mut account = Account { came: Vec::new(), durable: 0, looked: start, eldest: Duration::ZERO };
    let elements = SLOT.0 / ELEMENT as u64;
    for _ in 0..60 {
        let most = [4, elements / 2, elements, 3 * elements][seed.below(4) as usize];
        for _ in 0..=seed.below(most) {
            rig.go();
            account.came.push(rig.clock.now());
            account.look(&rig);
        }
        let silence = rig.granted.durable_after.mul_f64(seed.below(130) as f64 / 100.0);
        let until = rig.clock.now() + silence;
        while rig.clock.now() < until {
            rig.rest(until.min(rig.clock.now() + Duration::from_millis(250)));
            account.look(&rig);
        }
        rig.next = rig.next.max(rig.clock.now());
    }
    let counters = rig.capture.counters(0);
    assert_eq!((counters.lost, counters.gaps), (0, 0), "of {}", rig.sent);
    let told = rig.capture.driver().eldest();
    // An eighth of D is as near as it remembers when what came.
    let (forced, eldest) = (rig.granted.forced, account.eldest);
    assert!(eldest > forced / 2, "{eldest:?}: nothing waited");
    assert!(
        told + Duration::from_millis(250) >= eldest && told <= rig.granted.durable_after,
        "{told:?}, {eldest:?}"
    );
}
