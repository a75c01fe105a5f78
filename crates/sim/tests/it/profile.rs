//! Tests of the profiler on emulated drives, in virtual time: it must find the model's own figures, and what
//! is admitted with them must be what a perfect profile would admit (promise 1).
#![allow(missing_docs, clippy::unwrap_used)]

use holdfast_base::{ByteSize, Clock as _, ManualClock, Rate, Timestamp};
use holdfast_media::drive::{AccessKind, Curve, Drive, DriveAccess, DriveKind, Payload};
use holdfast_media::{
    Completion, Disk, DiskInfo, DriveModel, EmulatedDisk, Identity, Profile, ProfileBuffers, ProfileError,
    ReadError, Request, Seed, Stall, Subject, profile,
};
use holdfast_ring::{Load, Shape, figures, measured};
use holdfast_sim::{Places, Scene, play};
use std::ops::Range;
use std::time::Duration;

fn subject(bytes: u64) -> Subject {
    Subject {
        device: Identity { bytes: ByteSize(bytes), ..Identity::default() },
        read_error: ReadError::Assumed(Duration::from_secs(7)),
        write_cache: Some(false),
        discard: false,
        writable: vec![Range { start: 0, end: bytes }],
        slots: 0..bytes,
        zones: 32,
        lasts: Duration::from_mins(10),
        precondition: false,
        preconditioned: false,
        packer_elements: 100_000_000,
        packer_cells: 100_000_000,
        packer_bytes: Rate(1 << 30),
        remarks: Vec::new(),
    }
}

fn of(model: &DriveModel, subject: &Subject, seed: u64) -> Result<Profile, ProfileError> {
    let clock = ManualClock::new(Timestamp(1_000_000_000));
    let mut disk = EmulatedDisk::new(model.clone(), Payload::Dropped, seed, clock.clone());
    profile(&mut disk, &clock, ProfileBuffers::new().unwrap(), subject, &mut |_| {})
}

/// A disk on a machine that takes a moment for each request, as machines do.
struct Machine {
    disk: EmulatedDisk,
    clock: ManualClock,
}

impl Disk for Machine {
    fn info(&self) -> &DiskInfo {
        self.disk.info()
    }

    fn submit(&mut self, request: Request) -> Result<(), Request> {
        self.clock.set(self.clock.now() + Duration::from_micros(20));
        self.disk.submit(request)
    }

    fn complete(&mut self, wait: Duration) -> Option<Completion> {
        self.disk.complete(wait)
    }
}

fn near(found: f64, wanted: f64, percent: f64) -> bool {
    (found - wanted).abs() <= wanted * percent / 100.0
}

/// The share of ways from one end to the other, over random angles, that take no longer.
fn longest_ways(model: &DriveModel) -> Vec<Duration> {
    let mut drive = Drive::new(model.clone(), 99);
    let mut seed = Seed::new(7);
    let (end, mut now) = (model.bytes / 512, Timestamp(0));
    let mut place = |inner: bool| {
        let at = seed.below(end) / 4096 * 4096;
        if inner { model.bytes - end + at } else { at }
    };
    let mut ways: Vec<Duration> = (0..4000)
        .map(|n| {
            let kind = if n % 2 == 0 { AccessKind::Read } else { AccessKind::Write };
            let served = drive.serve(DriveAccess { kind, offset: place(n % 2 == 0), len: 4096 }, now);
            let took = served.done.since(now);
            now = served.done;
            took
        })
        .collect();
    ways.sort_unstable();
    ways
}

/// Curve, repositioning, and what is admitted with them.
fn is_found(model: &DriveModel, seed: u64) -> Profile {
    let found = of(model, &subject(model.bytes), seed).unwrap();
    let end = found.zones.iter().fold(0, |end, zone| {
        assert_eq!(zone.offset, end, "no holes");
        zone.offset + zone.bytes
    });
    assert_eq!(end, model.bytes / 4096 * 4096);
    for zone in &found.zones {
        let share = |at: u64| at as f64 / model.bytes as f64;
        let region = share(zone.offset)..share(zone.offset + zone.bytes);
        for (what, found, wanted) in [
            ("write", zone.write_worst, model.least_write(region.clone())),
            ("read", zone.read_worst, model.least_read(region.clone())),
        ] {
            assert!(near(found.0 as f64, wanted.0 as f64, 2.0), "{what} in {region:?}: {found}, {wanted}");
        }
        let middle = f64::midpoint(region.start, region.end);
        let write = model.least_write(middle..middle);
        assert!(near(zone.write_mean.0 as f64, write.0 as f64, 2.0), "mean in {region:?}: {zone:?}");
    }
    let worst = model.worst_reposition();
    assert!(near(found.reposition.worst.as_secs_f64(), worst.as_secs_f64(), 10.0), "{:?}", found.reposition);
    let ways = longest_ways(model);
    assert!(found.reposition.worst >= ways[ways.len() * 95 / 100], "{:?}", found.reposition);
    let Profile { reposition, .. } = &found;
    assert!(reposition.near <= reposition.mean && reposition.mean <= reposition.worst, "{reposition:?}");
    // A place comes by again after a revolution for both ways, or two where turning took too long for one of them.
    let mechanics = model.mechanics().unwrap();
    let turning = 2 * model.overhead + mechanics.to_write + mechanics.to_read;
    let turnaround = (mechanics.revolution + turning) / 2;
    assert!(near(reposition.turnaround.as_secs_f64(), turnaround.as_secs_f64(), 12.0), "{reposition:?}");
    // In virtual time the next request is there at once: whatever its size, none comes too late.
    sizes_and_numbers(&found, model, Duration::ZERO, Duration::ZERO);
    found
}

/// Rates by size and by number of requests: of single ones each takes so much longer than its bytes, of several together
/// none does.
fn sizes_and_numbers(found: &Profile, model: &DriveModel, write: Duration, read: Duration) {
    let (first, last) = (0.0..0.0, 1.0..1.0);
    let is = |found: Rate, bytes: u64, model: Rate, beyond: Duration| {
        let bytes = bytes as f64;
        near(found.0 as f64, bytes / (bytes / model.0 as f64 + beyond.as_secs_f64()), 2.0)
    };
    let sizes: Vec<u64> = found.by_block.iter().map(|size| size.bytes.0 >> 10).collect();
    assert_eq!(sizes, [64, 256, 1024, 4096, 8192]);
    for size in &found.by_block {
        assert!(is(size.write, size.bytes.0, model.least_write(first.clone()), write), "{size:?}");
        let end = size.write_at_end.unwrap();
        assert!(is(end, size.bytes.0, model.least_write(last.clone()), write), "{size:?}");
    }
    let depths: Vec<u16> = found.by_depth.iter().map(|depth| depth.0).collect();
    assert_eq!(depths, [1, 2, 4, 8]);
    for depth in &found.by_depth {
        let bytes = 256 << 10;
        let (write, read) = if depth.0 == 1 { (write, read) } else { <(Duration, Duration)>::default() };
        assert!(is(depth.1, bytes, model.least_write(first.clone()), write), "{depth:?}");
        assert!(is(depth.2, bytes, model.least_read(first.clone()), read), "{depth:?}");
    }
}

/// What is admitted with it is what a perfect profile would admit.
fn admits(found: &Profile, model: &DriveModel, perfect: impl Fn(&mut holdfast_format::Measured)) {
    let shape = Shape {
        slot: ByteSize::mib(128),
        flush: Duration::from_secs(1),
        gather: 4,
        quantum: 8 << 20,
        buffers: u32::MAX,
    };
    let load = Load { rate: Rate(1 << 20), elements: 1000, cells: 0, burst: ByteSize(0) };
    for percent in [50, 80, 100] {
        let found = measured(found, model.bytes / 4096 * 4096 / 100 * percent).unwrap();
        let mut wanted = Scene::profiled(model, &(0.0..percent as f64 / 100.0), shape.slot.0, shape.quantum);
        perfect(&mut wanted);
        let [found, wanted] = [found, wanted].map(|m| figures(&m, &load, &shape).with_reads.0 as f64);
        assert!(near(found, wanted, 3.0), "first {percent} %: {found} instead of {wanted}");
    }
}

#[test]
fn the_paper_s_drive_is_found() {
    for seed in [1, 2] {
        let model = DriveModel::paper();
        let found = is_found(&model, seed);
        assert_eq!((found.parallel, found.stalls.count), (1, 0), "{found:?}");
        assert_eq!(found.commit, Duration::ZERO, "the cache is off");
        // There and back again for each MiB: two ways, and the bytes of either.
        let zone = found.zones[0];
        let bytes = |rate: Rate| f64::from(1 << 20) / rate.0 as f64;
        let both = 2.0 * found.reposition.mean.as_secs_f64() + bytes(zone.write_mean) + bytes(zone.read_mean);
        let beside = found.write_beside_reads.0 as f64;
        assert!(near(beside, f64::from(1 << 20) / both, 15.0), "{} of {both}", found.write_beside_reads);
        admits(&found, &model, |_| {});
    }
}

// Between two writes a machine takes a moment, and a drive with its cache off has to wait for its platter to come round
// again: small writes cost most, and what waits in the queue costs nothing. Reads it has gone on with by itself.
#[test]
fn a_write_that_comes_too_late_costs_a_revolution() {
    for model in [DriveModel::paper(), DriveModel::rpm7200()] {
        let clock = ManualClock::new(Timestamp(1_000_000_000));
        let disk = EmulatedDisk::new(model.clone(), Payload::Dropped, 2, clock.clone());
        let mut machine = Machine { disk, clock: clock.clone() };
        let subject = subject(model.bytes);
        let found = profile(&mut machine, &clock, ProfileBuffers::new().unwrap(), &subject, &mut |_| {});
        let found = found.unwrap();
        let revolution = model.mechanics().unwrap().revolution;
        sizes_and_numbers(&found, &model, revolution, Duration::ZERO);
        assert!(near(found.commit.as_secs_f64(), revolution.as_secs_f64(), 2.0), "{:?}", found.commit);
    }
}

// Whoever has no time is told what that costs.
#[test]
fn writes_that_are_small_for_want_of_time_are_told() {
    let model = DriveModel::paper();
    let hurried = Subject { lasts: Duration::from_secs(30), ..subject(model.bytes) };
    let found = of(&model, &hurried, 1).unwrap();
    assert!(found.remarks.iter().any(|remark| remark.contains("at once only")), "{:?}", found.remarks);
    let fewer = Subject { zones: 2, ..hurried };
    let found = of(&model, &fewer, 1).unwrap();
    assert!(!found.remarks.iter().any(|remark| remark.contains("at once only")), "{:?}", found.remarks);
}

#[test]
fn a_part_and_a_small_copy_of_a_faster_drive_are_found() {
    let whole = DriveModel::rpm7200();
    for model in [whole.clone(), whole.squeezed(64 << 30), whole.part(0.4, 200 << 30)] {
        let found = is_found(&model, 3);
        assert_eq!(found.stalls.count, 0, "{:?}", found.stalls);
        admits(&found, &model, |_| {});
    }
}

#[test]
fn flash_is_found_with_its_pauses() {
    let model = DriveModel::flash().squeezed(32 << 30);
    let found = of(&model, &Subject { precondition: true, ..subject(model.bytes) }, 4).unwrap();
    let zone = found.zones[0];
    assert!(near(zone.write_worst.0 as f64, model.least_write(0.0..1.0).0 as f64, 2.0), "{zone:?}");
    assert!(near(zone.read_worst.0 as f64, model.least_read(0.0..1.0).0 as f64, 2.0), "{zone:?}");
    assert_eq!((found.parallel, found.zones.len(), found.preconditioned), (4, 32, true), "{found:?}");
    // 250 ms after each 4 GiB at 460 MiB/s.
    assert!(near(found.stalls.sigma.as_secs_f64(), 0.25, 5.0), "{:?}", found.stalls);
    assert!(
        near(f64::from(found.stalls.rho), 1e6 * 0.25 / (4096.0 / 460.0 + 0.25), 5.0),
        "{:?}",
        found.stalls
    );
    let DriveKind::Flash(flash) = &model.kind else { unreachable!() };
    let [write, read] = [flash.write_latency, flash.read_latency].map(|latency| model.overhead + latency);
    sizes_and_numbers(&found, &model, write, read);
    // A cable that is shared evenly carries so much of either; the scene says half of the writing rate alone.
    let shared = 1.0 / (1.0 / 460.0 + 1.0 / 520.0) * 1_048_576.0;
    admits(&found, &model, |perfect| perfect.write = Rate(shared as u64));
}

#[test]
fn stalls_are_found_again_and_do_not_make_zones_look_slow() {
    let seconds = Duration::from_secs;
    let every = Stall { first: seconds(3), length: Duration::from_millis(500), every: Some(seconds(20)) };
    let model = DriveModel::paper().stalling(every);
    let found = is_found(&model, 5);
    assert!(near(found.stalls.sigma.as_secs_f64(), 0.5, 5.0), "{:?}", found.stalls);
    assert!(near(f64::from(found.stalls.rho), 25_000.0, 10.0), "{:?}", found.stalls);
    admits(&found, &model, |_| {});
    let once = Stall { first: seconds(400), length: seconds(3), every: None };
    let found = is_found(&DriveModel::paper().stalling(once), 6);
    assert_eq!(found.stalls.count, 1);
    assert!(near(found.stalls.sigma.as_secs_f64(), 3.0, 2.0), "{:?}", found.stalls);
}

/// A drive that hides its zones streams like any other what is written in order, and rewrites whole zones for what is not,
/// once its media cache is full. A profile sees that of a small cache only, and even then what follows from it is not
/// safe: so it is said of all that turns that no measurement can tell, and loudly where one does.
#[test]
fn a_drive_that_hides_overlapping_tracks_is_not_told_by_its_profile() {
    let small = DriveModel::shingled().squeezed(64 << 30);
    let found = of(&small, &subject(small.bytes), 7).unwrap();
    assert!(found.remarks.iter().any(|remark| remark.contains("shingled")), "{found:?}");
    let scene = |places| {
        let steady = Scene::steady(small.clone(), 0.8, ByteSize::mib(128), 4, Rate(1));
        let measured = measured(&found, small.bytes / 5 * 4 / 4096 * 4096).unwrap();
        let scene = Scene { measured, ..steady };
        let rate = scene.admitted();
        Scene { places, ..scene.at(rate) }
    };
    assert!(play(&scene(Places::All)).lost <= 0.0, "in order");
    assert!(play(&scene(Places::Torn)).lost > 0.0, "from both ends in turn");
    let whole = DriveModel::shingled();
    let found = of(&whole, &subject(whole.bytes), 7).unwrap();
    assert!(found.stalls.sigma < Duration::from_secs(1) && found.remarks.is_empty(), "{:?}", found.stalls);
    let plain = of(&DriveModel::paper(), &subject(DriveModel::paper().bytes), 7).unwrap();
    assert!(plain.remarks.is_empty(), "{:?}", plain.remarks);
}

// Promise 3, 5: nothing is written but what may be.
#[test]
fn only_places_that_may_be_written_are() {
    let model = DriveModel::paper().squeezed(1 << 30);
    let slot = 4 << 20;
    let writable: Vec<_> = (0..256).step_by(3).map(|n| n * slot + 4096..(n + 1) * slot - 4096).collect();
    let clock = ManualClock::new(Timestamp(1_000_000_000));
    let mut image = holdfast_media::Image::new(0);
    image.grow(model.bytes);
    let mut disk = EmulatedDisk::new(model.clone(), Payload::Kept(image), 8, clock.clone());
    let subject =
        Subject { writable: writable.clone(), lasts: Duration::from_mins(2), ..subject(model.bytes) };
    let found = profile(&mut disk, &clock, ProfileBuffers::new().unwrap(), &subject, &mut |_| {}).unwrap();
    assert!(near(found.zones[0].write_worst.0 as f64, model.least_write(0.0..1.0 / 32.0).0 as f64, 4.0));
    let mut block = vec![0; 4096];
    let mut written = 0;
    for at in (0..model.bytes).step_by(4096) {
        disk.image().unwrap().read(at, &mut block);
        if block.iter().any(|byte| *byte != 0) {
            assert!(writable.iter().any(|range| range.contains(&at)), "{at} was not to be written");
            written += 1;
        }
    }
    assert!(written > 10_000, "{written}");
}

// Data fills a ring from its beginning. A drive that turns is faster there than behind; of one that is not, reading tells.
#[test]
fn in_front_of_what_may_be_written_it_is_taken_to_be_no_faster_than_there() {
    let paper = DriveModel::paper();
    // Its slow end first.
    let turned = DriveModel {
        write: Curve::through(&[(0.0, 50.0), (0.2, 65.0), (1.0, 70.0)]),
        read: Curve::through(&[(0.0, 50.0), (0.2, 70.0), (1.0, 115.0)]),
        ..paper.clone()
    };
    for (model, slower) in [(paper, false), (turned, true)] {
        let (half, end) = (model.bytes / 2 / 4096 * 4096, model.bytes / 4096 * 4096);
        let only = Range { start: half, end };
        let found = of(&model, &Subject { writable: vec![only], ..subject(model.bytes) }, 9).unwrap();
        assert!(found.remarks.iter().any(|remark| remark.contains("in front of")), "{:?}", found.remarks);
        let at = |bytes: u64| {
            let zone = found.zones.iter().find(|zone| zone.offset + zone.bytes > bytes).unwrap();
            zone.write_worst.0 as f64
        };
        let (first, known) = (at(0), at(half));
        assert_eq!(first < 0.9 * known, slower, "{first} {known}");
        let truth = model.least_write(0.0..0.03).0 as f64;
        assert!(first <= truth * 1.03, "{first} of {truth}");
    }
}

// Promise 8
#[test]
fn writable_places_at_one_end_only_are_refused() {
    let model = DriveModel::paper();
    let subject = Subject { writable: vec![0..1 << 30, 1 << 30..model.bytes / 2], ..subject(model.bytes) };
    let refused = of(&model, &subject, 9).unwrap_err();
    assert!(refused.to_string().contains("in 16 of 32 zones only"), "{refused}");
}
