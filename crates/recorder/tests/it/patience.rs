//! Test of promise 1: a blocking source that is permanently faster than the disk leaves buffers to one beside it that
//! cannot block. The capture core over an emulated drive, in virtual time.
#![allow(clippy::unwrap_used)] // helpers of tests are tests too

// Of which this needs the drive alone.
#[allow(dead_code)]
use crate::slow_drive;

use holdfast_base::{Clock, ManualClock, Ordinal, RingId, Timestamp};
use holdfast_format::{Geometry, Key, StreamKind};
use holdfast_ingest::{Marks, Overload, Parker, Pressure, Producer, ProducerSettings, channel};
use holdfast_media::drive::Payload;
use holdfast_media::{Buffer, Disk, EmulatedDisk, Image};
use holdfast_recorder::capture::{Capture, Stream};
use holdfast_ring::{Config, Driver, NewRing, NewStream, create, recover};
use slow_drive::{SLOT, drive};
use std::sync::Arc;
use std::time::Duration;

const BUFFERS: usize = 12;
/// Slots that are written, or wait beside the disk.
const AT_HAND: usize = 3;
const ELEMENT: usize = 4096;

struct Rig {
    capture: Capture<EmulatedDisk>,
    /// One that can wait, and one that cannot.
    patient: Producer,
    urgent: Producer,
    clock: ManualClock,
}

impl Rig {
    fn start() -> Self {
        let drive = drive(400);
        let clock = ManualClock::new(Timestamp(1_000_000_000));
        let kept = Payload::Kept(Image::new(drive.bytes));
        let mut disk = EmulatedDisk::new(drive, kept, 1, clock.clone());
        let geometry = Geometry::for_lane(disk.info().bytes, SLOT.0, Vec::new()).unwrap();
        create(&mut disk, NewRing::plain(RingId([7; 16]), Key([9; 32]), "r", geometry), clock.now()).unwrap();
        let recovered = recover(&mut disk).unwrap();
        let pool = (0..BUFFERS).map(|_| Buffer::aligned(SLOT.0 as usize).unwrap()).collect();
        let flush = Duration::from_secs(1);
        let config = Config { buffers: BUFFERS as u32, flush, writes: AT_HAND };
        let mut driver = Driver::start(disk, recovered, pool, config, clock.now(), clock.wall()).unwrap();
        let pressure = Arc::new(Pressure::default());
        let (mut streams, mut inlets, mut producers) = (Vec::new(), Vec::new(), Vec::new());
        for (name, overload) in [("patient", Overload::Block), ("urgent", Overload::DropNewest)] {
            let kind = StreamKind::Bytes;
            let new = NewStream { name, kind, framing: "whole", preamble: None, schema: None };
            let entry = driver.ring_mut().add_stream(&new, clock.now()).unwrap();
            streams.push(Stream { entry, lost_since: None });
            let settings = ProducerSettings::new(overload, Ordinal(0));
            let (producer, inlet) =
                channel(&settings, Arc::new(clock.clone()), Arc::clone(&pressure), Parker::new().waker());
            inlets.push(inlet);
            producers.push(producer);
        }
        let mut capture = Capture::start(driver, &streams, inlets, pressure, flush, &clock).unwrap();
        while capture.driver().is_starting() {
            capture.step(clock.now(), Duration::from_millis(10));
        }
        let (urgent, patient) = (producers.pop().unwrap(), producers.pop().unwrap());
        Self { capture, patient, urgent, clock }
    }

    /// The patient one brings all that is taken, while so many slots are sealed.
    fn flood(&mut self, slots: u64) {
        let end = self.capture.slots_sealed() + slots;
        while self.capture.slots_sealed() < end {
            while self.patient.await_room(ELEMENT, Duration::ZERO).unwrap() {
                self.patient.stamp();
                self.patient.element(&[], &[7; ELEMENT], Marks::default()).unwrap();
            }
            let now = self.clock.now();
            if !self.capture.step(now, Duration::ZERO).busy {
                self.capture.step(now, Duration::from_millis(20));
                self.clock.set(self.clock.now().max(now + Duration::from_millis(1)));
            }
        }
    }

    /// The other one brings so many slots at once; elements of it that were dropped.
    fn burst(&mut self, slots: u64) -> u64 {
        for _ in 0..slots * SLOT.0 / ELEMENT as u64 {
            self.urgent.stamp();
            self.urgent.element(&[], &[8; ELEMENT], Marks::default()).unwrap();
            self.urgent.idle().unwrap();
            self.capture.step(self.clock.now(), Duration::ZERO);
        }
        self.urgent.counters().all_dropped()
    }

    fn free(&self) -> usize {
        self.capture.driver().buffers().1
    }
}

#[test]
fn who_can_wait_leaves_buffers_to_who_cannot() {
    let mut rig = Rig::start();
    rig.flood(2 * BUFFERS as u64);
    assert!(rig.free() <= 2, "a burst may have all of them, and {} are free", rig.free());
    // They have gone round some times.
    rig.flood(10 * BUFFERS as u64);
    assert!(rig.free() + AT_HAND + 2 >= BUFFERS, "{} are free", rig.free());
    assert_eq!(rig.burst(5), 0, "a burst of one that cannot wait");
}
