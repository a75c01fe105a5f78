//! Tests of the emulated drive against its own numbers. The guarantee (promise 1) is shown on it, so it must
//! itself be known to be right: all in virtual time.
#![allow(clippy::unwrap_used)] // helpers of tests are tests too

use holdfast_base::{BLOCK, Clock, ManualClock, Rate, Timestamp};
use holdfast_media::drive::{
    AccessKind, Curve, Damage, Drive, DriveAccess, DriveKind, DriveModel, EmulatedDisk, Flaw, Payload, Served,
};
use holdfast_media::{Buffer, Disk, Fault, Image, Op, Request, Seed, Stall};
use proptest::prelude::*;
use std::time::Duration;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

fn read(offset: u64, len: u64) -> DriveAccess {
    DriveAccess { kind: AccessKind::Read, offset, len }
}

fn write(offset: u64, len: u64) -> DriveAccess {
    DriveAccess { kind: AccessKind::Write, offset, len }
}

fn at(seconds: f64) -> Timestamp {
    Timestamp((seconds * 1e9) as i64)
}

/// Serves what arrives when the one before is done.
fn next(drive: &mut Drive, access: DriveAccess) -> Served {
    let now = drive.free();
    drive.serve(access, now)
}

/// How long an access takes that arrives `gap` after all is done.
fn after(drive: &mut Drive, gap: Duration, access: DriveAccess) -> Duration {
    let now = drive.free() + gap;
    drive.serve(access, now).done.since(now)
}

fn millis(span: Duration) -> f64 {
    span.as_secs_f64() * 1e3
}

fn revolution(model: &DriveModel) -> Duration {
    model.mechanics().unwrap().revolution
}

#[test]
fn streams_follow_the_curve_over_the_whole_drive() {
    for model in [DriveModel::paper().squeezed(4 * GIB), DriveModel::rpm7200().squeezed(4 * GIB)] {
        for kind in [AccessKind::Read, AccessKind::Write] {
            let curve = if kind == AccessKind::Read { &model.read } else { &model.write };
            let mut drive = Drive::new(model.clone(), 1);
            let first = next(&mut drive, DriveAccess { kind, offset: 0, len: MIB });
            let mut last = first.done;
            for offset in (MIB..4 * GIB).step_by(32 * MIB as usize) {
                let stretch = (32 * MIB).min(4 * GIB - offset);
                for at in (offset..offset + stretch).step_by(MIB as usize) {
                    next(&mut drive, DriveAccess { kind, offset: at, len: MIB });
                }
                let rate = stretch as f64 / drive.free().since(last).as_secs_f64();
                let wanted = curve.at((offset + stretch / 2) as f64 / (4 * GIB) as f64);
                assert!(
                    (rate / wanted - 1.0).abs() < 0.01,
                    "{} {kind:?} {offset}: {rate} {wanted}",
                    model.name
                );
                last = drive.free();
            }
            let all = drive.free().since(first.done).as_secs_f64();
            let limit = drive.stream_time(kind, MIB, 4 * GIB - MIB).as_secs_f64();
            assert!((all / limit - 1.0).abs() < 1e-4, "{all} {limit}");
        }
    }
}

/// The paper's figures: §IV.A and §VII.
#[test]
fn the_papers_drive_has_the_papers_rates() {
    let model = DriveModel::paper();
    let mib = |rate: Rate| rate.0 as f64 / MIB as f64;
    assert!((mib(model.least_write(0.0..0.25)) - 68.0).abs() < 0.5);
    assert!((mib(model.least_write(0.0..0.8)) - 65.0).abs() < 0.1);
    assert!((mib(model.least_write(0.0..1.0)) - 50.0).abs() < 0.1);
    assert!((mib(model.least_read(0.0..0.8)) - 70.0).abs() < 0.1);
    assert!((mib(Rate(model.read.at(0.0) as u64)) - 115.0).abs() < 0.1);
    // A partition is a stretch of it.
    let part = model.part(0.8, 2 * GIB);
    assert!((mib(part.least_write(0.0..1.0)) - 65.0).abs() < 0.2);
    let drive = Drive::new(part, 0);
    let took = drive.stream_time(AccessKind::Write, 0, 65 * MIB).as_secs_f64();
    assert!((took - 1.0).abs() < 0.003, "{took}");
}

fn random_reads(model: DriveModel, seed: u64) -> f64 {
    let blocks = model.bytes / BLOCK as u64;
    let (mut drive, mut places) = (Drive::new(model, seed), Seed::new(seed));
    let count = 20_000;
    for _ in 0..count {
        let offset = places.below(blocks) * BLOCK as u64;
        // The one who asks thinks for a moment.
        let now = drive.free() + Duration::from_nanos(places.below(50_000));
        drive.serve(read(offset, BLOCK as u64), now);
    }
    f64::from(count) / drive.free().since(Timestamp(0)).as_secs_f64()
}

#[test]
fn random_reads_are_seventy_a_second_over_all_of_the_papers_drive() {
    for model in [DriveModel::paper(), DriveModel::paper().squeezed(2 * GIB)] {
        let rate = random_reads(model, 3);
        assert!((66.5..73.5).contains(&rate), "{rate}");
    }
    // Within a small partition the arm hardly moves.
    let near = random_reads(DriveModel::paper().part(0.1, 2 * GIB), 3);
    assert!((100.0..150.0).contains(&near), "{near}");
    let faster = random_reads(DriveModel::rpm7200(), 3);
    assert!((80.0..100.0).contains(&faster), "{faster}");
}

#[test]
fn the_worst_repositioning_is_thirty_milliseconds() {
    for model in [DriveModel::paper(), DriveModel::rpm7200(), DriveModel::shingled()] {
        let worst = model.worst_reposition();
        assert!(worst <= Duration::from_millis(30), "{worst:?}");
        let mut seen = Duration::ZERO;
        let (end, block) = (model.bytes - BLOCK as u64, BLOCK as u64);
        let mut drive = Drive::new(model, 5);
        for round in 0..2000u64 {
            let place = if round % 2 == 0 { round / 2 * block } else { end - round / 2 * block };
            // A shingled drive appends only at its zones' starts.
            let place = place - if round % 4 < 2 { 0 } else { place % (256 * MIB) };
            let access = if round % 4 < 2 { read(place, block) } else { write(place, block) };
            let gap = Duration::from_micros(round * 7);
            let stream = drive.stream_time(access.kind, place, block);
            let took = after(&mut drive, gap, access).saturating_sub(stream);
            assert!(took <= worst + Duration::from_nanos(2), "{took:?} {worst:?}");
            seen = seen.max(took);
        }
        assert!(seen.as_secs_f64() > worst.as_secs_f64() * 0.98, "{seen:?} {worst:?}");
    }
}

#[test]
fn a_sequential_write_with_a_gap_loses_a_revolution_and_one_in_the_queue_does_not() {
    let model = DriveModel::paper().part(0.3, 2 * GIB);
    let (turn, mut drive) = (revolution(&model), Drive::new(model, 9));
    next(&mut drive, write(0, MIB));
    let pure = drive.stream_time(AccessKind::Write, MIB, MIB);
    // It came while its predecessor was being written.
    let free = drive.free();
    let queued = drive.serve(write(MIB, MIB), free - Duration::from_millis(1));
    assert_eq!(queued.began, free);
    assert!(queued.done.since(free).abs_diff(pure) < Duration::from_nanos(3));
    // It came a little late.
    for (n, gap) in [(2, 10), (3, 50_000), (4, 5_000_000)] {
        let (free, gap) = (drive.free(), Duration::from_nanos(gap));
        let done = drive.serve(write(n * MIB, MIB), free + gap).done;
        let lost = done.since(free).saturating_sub(pure);
        assert!(lost.abs_diff(turn) < Duration::from_micros(10), "{lost:?}");
    }
}

#[test]
fn a_place_written_again_comes_by_once_a_revolution() {
    let model = DriveModel::paper();
    let (turn, mut drive) = (revolution(&model), Drive::new(model, 2));
    next(&mut drive, write(GIB, 4096));
    let first = drive.free();
    for n in 1..20 {
        next(&mut drive, write(GIB, 4096));
        assert!(drive.free().since(first).abs_diff(turn * n) < Duration::from_nanos(50 * u64::from(n)));
    }
}

#[test]
fn a_reader_that_is_a_little_late_finds_its_data_read_ahead() {
    let mut model = DriveModel::paper().part(0.3, 2 * GIB);
    model.bus = Rate(4 * GIB);
    let ahead = model.mechanics().unwrap().look_ahead;
    let mut drive = Drive::new(model, 9);
    next(&mut drive, read(0, MIB));
    let begin = drive.free();
    let mut place = MIB;
    // Asked for with gaps, yet the head never stops.
    for gap in [1, 5, 9, 2, 7] {
        after(&mut drive, Duration::from_millis(gap), read(place, MIB));
        place += MIB;
    }
    let pure = drive.stream_time(AccessKind::Read, MIB, place - MIB);
    assert!(drive.free().since(begin).abs_diff(pure) < Duration::from_micros(1), "no revolution is lost");
    // After a long pause what was read ahead comes at the cable's rate; what lies behind it needs the platter.
    let pause = Duration::from_secs(1);
    let mut cached = drive.clone();
    let cable = after(&mut cached, pause, read(place, ahead));
    assert!((millis(cable) - 4.0 / 4.096 - 0.1).abs() < 0.001, "{cable:?}");
    let more = after(&mut drive.clone(), pause, read(place, ahead + MIB));
    let turn = revolution(drive.model());
    let platter = drive.stream_time(AccessKind::Read, place + ahead, MIB);
    assert!(more > platter && more < turn + platter, "{more:?} {platter:?}");
    // A place further on than a revolution is not waited for.
    let jump = after(&mut drive, Duration::ZERO, read(place + 3 * MIB, 4096));
    assert!(jump < Duration::from_millis(25), "{jump:?}");
}

#[test]
fn turning_from_writing_to_reading_and_back_is_paid_for() {
    let free = |model: &DriveModel| {
        let mut model = model.clone();
        if let DriveKind::Rotating(mechanics) = &mut model.kind {
            (mechanics.to_read, mechanics.to_write) = (Duration::ZERO, Duration::ZERO);
        }
        model
    };
    let model = DriveModel::paper();
    let alternate = |model: DriveModel, alternate: bool| {
        let (mut drive, mut seed) = (Drive::new(model, 4), Seed::new(8));
        for n in 0..4000 {
            let place = seed.below(300_000_000) * BLOCK as u64;
            let access = if alternate && n % 2 == 0 { write(place, 4096) } else { read(place, 4096) };
            next(&mut drive, access);
        }
        drive.free().since(Timestamp(0)).as_secs_f64() / 4000.0 * 1e3
    };
    let (paid, unpaid) = (alternate(model.clone(), true), alternate(free(&model), true));
    let mean = 0.6;
    assert!((paid - unpaid - mean).abs() < 0.2, "{paid} {unpaid}");
    assert!((alternate(model.clone(), false) - alternate(free(&model), false)).abs() < 1e-9);
}

#[test]
fn a_flush_waits_for_what_came_before_and_costs_a_command() {
    let mut drive = Drive::new(DriveModel::paper(), 1);
    let done = drive.serve(write(0, 8 * MIB), at(1.0)).done;
    let flush = DriveAccess { kind: AccessKind::Flush, offset: 0, len: 0 };
    assert_eq!(drive.serve(flush, at(1.001)).done, done);
    let later = done + Duration::from_secs(1);
    assert_eq!(drive.serve(flush, later).done, later + drive.model().overhead);
    assert_eq!(drive.estimate(flush, later), drive.model().overhead);
}

#[test]
fn stalls_take_what_they_say_and_no_more() {
    let length = Duration::from_millis(500);
    let plain = DriveModel::paper().part(0.0, 2 * GIB);
    let stall = Stall { first: Duration::from_secs(2), length, every: Some(Duration::from_secs(20)) };
    let run = |model: DriveModel| {
        let mut drive = Drive::starting(model, 6, at(100.0));
        let mut longest = Duration::ZERO;
        drive.serve(write(0, MIB), at(100.0));
        for offset in (MIB..2 * GIB).step_by(MIB as usize) {
            let before = drive.free();
            next(&mut drive, write(offset, MIB));
            longest = longest.max(drive.free().since(before));
        }
        (drive.free().since(at(100.0)), longest)
    };
    let ((calm, usual), (stalled, longest)) = (run(plain.clone()), run(plain.clone().stalling(stall)));
    // 2 GiB take 29.3 s: two stalls.
    assert_eq!(stalled, calm + length * 2);
    assert!(longest.abs_diff(usual + length) < Duration::from_micros(100), "{longest:?}");
    // What arrives meanwhile waits.
    let mut drive = Drive::new(plain.stalling(Stall { every: None, ..stall }), 6);
    let served = drive.serve(read(0, 4096), at(2.1));
    assert!(served.done > at(2.5) && served.done < at(2.53));
    assert_eq!(served.began, at(2.1));
    // Or all of a sudden.
    let mut drive = Drive::new(DriveModel::paper(), 6);
    let due = drive.serve(read(0, MIB), at(1.0)).done;
    drive.stall(at(1.001), length);
    assert_eq!(drive.free(), due + length);
    drive.stall(at(9.0), length);
    let done = drive.serve(read(GIB, MIB), at(9.1)).done;
    assert!(done > at(9.5) && done < at(9.55), "{done:?}");
    assert!(drive.serve(read(2 * GIB, MIB), at(20.0)).done < at(20.05));
}

#[test]
fn flaws_cost_what_they_say() {
    let block = BLOCK as u64;
    let flawed = |flaw| {
        let mut model = DriveModel::paper();
        model.damage = vec![Damage { offset: GIB + 17, flaw }, Damage { offset: 700 * GIB, flaw }];
        Drive::new(model, 1)
    };
    let mut sound = Drive::new(DriveModel::paper(), 1);
    let base = sound.serve(read(GIB, block), at(1.0)).done.since(at(1.0));
    let turn = revolution(sound.model());

    let mut weak = flawed(Flaw::Weak { revolutions: 3 });
    let took = weak.serve(read(GIB, block), at(1.0)).done.since(at(1.0));
    assert!(took.abs_diff(base + turn * 3) < Duration::from_nanos(5));
    assert_eq!(weak.estimate(read(GIB + block, block), at(2.0)), {
        sound.estimate(read(GIB + block, block), at(2.0))
    });

    let mut remapped = flawed(Flaw::Remapped);
    let took = remapped.serve(read(GIB, block), at(1.0)).done.since(at(1.0));
    let way = remapped.model().mechanics().unwrap().seek.time(1.0);
    let least = base + way * 2;
    assert!(took + Duration::from_millis(1) > least && took < least + turn * 2, "{took:?}");

    let mut gone = flawed(Flaw::Unreadable);
    let before = gone.serve(read(GIB - block, 2 * block), at(1.0));
    assert_eq!(before.fault, Some(Fault::Io));
    let limit = gone.model().read_error_limit;
    assert!(before.done.since(at(1.0)) > limit && before.done.since(at(1.0)) < limit + turn * 4);
    // Written again it is well, though elsewhere.
    assert_eq!(next(&mut gone, write(GIB, block)).fault, None);
    assert_eq!(next(&mut gone, read(GIB, block)).fault, None);
    assert_eq!(next(&mut gone, read(700 * GIB, block)).fault, Some(Fault::Io));

    let drawn = DriveModel::paper().damaged(Flaw::Remapped, 10, 3);
    assert_eq!(drawn.damage.len(), 10);
    assert_eq!(drawn, DriveModel::paper().damaged(Flaw::Remapped, 10, 3));
}

/// Every second zone's first slot, then the places that the drive does not like.
#[test]
fn a_shingled_drive_appends_at_speed_and_pays_for_everything_else() {
    let zone = 256 * MIB;
    let mut model = DriveModel::shingled().part(0.0, 8 * GIB);
    if let DriveKind::Shingled(_, shingles) = &mut model.kind {
        shingles.cache = 64 * MIB;
    }
    let mut drive = Drive::new(model.clone(), 1);
    // Twice around in order: at the curve's rate.
    for lap in 0..2 {
        let begin = drive.free();
        for offset in (0..8 * GIB).step_by(MIB as usize) {
            next(&mut drive, write(offset, MIB));
        }
        let (took, pure) = (drive.free().since(begin), drive.stream_time(AccessKind::Write, 0, 8 * GIB));
        assert!(took < pure + Duration::from_millis(60), "lap {lap}: {took:?} {pure:?}");
    }
    // Behind the pointer: at first the media cache takes it …
    let slot = |n: u64| write(n * zone + 64 * MIB, 32 * MIB);
    let quick = after(&mut drive, Duration::from_millis(1), slot(1));
    assert!(quick < Duration::from_millis(250), "{quick:?}");
    let quick = after(&mut drive, Duration::from_millis(1), slot(2));
    assert!(quick < Duration::from_millis(250), "{quick:?}");
    // … until it is full, and a zone is read and rewritten for it …
    let whole = drive.stream_time(AccessKind::Read, 0, zone) + drive.stream_time(AccessKind::Write, 0, zone);
    let rewriting = after(&mut drive, Duration::from_millis(1), slot(3));
    assert!(rewriting > whole && rewriting < whole + Duration::from_millis(350), "{rewriting:?} {whole:?}");
    // … or the drive had time to clean up.
    let quick = after(&mut drive, Duration::from_secs(30), slot(4));
    assert!(quick < Duration::from_millis(250), "{quick:?}");
    // More than the cache holds goes to its zone at once.
    let direct = after(&mut drive, Duration::from_millis(1), write(9 * zone + MIB, 128 * MIB));
    assert!(direct > whole && direct < whole + Duration::from_millis(350), "{direct:?}");
    // A zone that is begun anew costs nothing.
    let pure = drive.stream_time(AccessKind::Write, 5 * zone, zone);
    let anew = after(&mut drive, Duration::from_millis(1), write(5 * zone, zone));
    assert!(anew < pure + Duration::from_millis(30), "{anew:?}");
}

#[test]
fn flash_serves_side_by_side_and_pauses_when_it_had_no_time_to_tidy_up() {
    let model = DriveModel::flash();
    let DriveKind::Flash(flash) = model.kind.clone() else { panic!("{model:?}") };
    let mut drive = Drive::new(model.clone(), 1);
    let alone = drive.serve(read(GIB, 4096), at(1.0)).done.since(at(1.0));
    assert!((100.0..110.0).contains(&(millis(alone) * 1e3)), "{alone:?}");
    // Eight at once take little longer than one, sixteen twice as long.
    let many = |drive: &mut Drive, count: u64, begin: Timestamp| {
        let done = (0..count).map(|n| drive.serve(read(n * GIB, 4096), begin).done).max().unwrap();
        done.since(begin)
    };
    let (eight, sixteen) = (many(&mut drive, 8, at(2.0)), many(&mut drive, 16, at(3.0)));
    assert!(eight < alone * 2 && sixteen > alone * 2 && sixteen < alone * 3, "{eight:?} {sixteen:?}");

    // 16 GiB in one go: a pause after every 4 GiB.
    let begin = drive.free();
    let mut longest = Duration::ZERO;
    for offset in (0..16 * GIB).step_by(MIB as usize) {
        let before = drive.free();
        next(&mut drive, write(offset, MIB));
        longest = longest.max(drive.free().since(before));
    }
    let took = drive.free().since(begin).as_secs_f64();
    let wanted = 16.0 * 1024.0 / 460.0 + 4.0 * flash.pause.as_secs_f64();
    assert!((took - wanted).abs() < 0.1 * 16.0, "{took} {wanted}");
    assert!(longest > flash.pause && longest < flash.pause + Duration::from_millis(10));
    // With time between there is none.
    for offset in (0..16 * GIB).step_by(MIB as usize) {
        let took = after(&mut drive, Duration::from_millis(6), write(offset, MIB));
        assert!(took < Duration::from_millis(10), "{took:?}");
    }
}

fn buffer(len: usize, byte: u8) -> Buffer {
    let mut buffer = Buffer::aligned(len).unwrap();
    buffer.fill(byte);
    buffer
}

fn put(tag: u64, offset: u64, byte: u8) -> Request {
    Request { tag, op: Op::Write { offset, buffer: buffer(BLOCK, byte), len: BLOCK, durable: true } }
}

fn get(tag: u64, offset: u64) -> Request {
    Request { tag, op: Op::Read { offset, buffer: buffer(BLOCK, 0xee), len: BLOCK } }
}

#[test]
fn as_a_disk_it_keeps_bytes_and_moves_its_clock() {
    let clock = ManualClock::new(at(5.0));
    let model = DriveModel::paper().part(0.5, GIB);
    let mut disk = EmulatedDisk::new(model.clone(), Payload::Kept(Image::default()), 1, clock.clone());
    assert_eq!((disk.info().bytes, disk.info().depth), (GIB, 32));
    let wanted = disk.drive().estimate(write(MIB, BLOCK as u64), at(5.0));
    disk.submit(put(1, MIB, 7)).unwrap();
    disk.submit(get(2, MIB)).unwrap();
    disk.submit(get(3, GIB)).unwrap();
    disk.submit(Request { tag: 4, op: Op::Flush }).unwrap();
    // The misplaced one costs nothing.
    let misplaced = disk.complete(Duration::ZERO).unwrap();
    assert_eq!((misplaced.tag, misplaced.result.unwrap_err().fault), (3, Fault::Misplaced));
    assert!(disk.complete(wanted.saturating_sub(Duration::from_nanos(1))).is_none());
    assert_eq!(disk.complete(Duration::from_nanos(1)).unwrap().tag, 1);
    assert_eq!(clock.now(), at(5.0) + wanted);
    let seen = disk.complete(Duration::from_secs(1)).unwrap();
    assert!(seen.tag == 2 && seen.buffer.unwrap()[..BLOCK].iter().all(|byte| *byte == 7));
    assert_eq!(disk.complete(Duration::from_secs(1)).unwrap().tag, 4);
    let now = clock.now();
    assert!(now < at(5.1) && disk.complete(Duration::from_secs(1)).is_none());
    assert_eq!(clock.now(), now + Duration::from_secs(1));
    assert_eq!(disk.image().unwrap().range(MIB, 1), [7]);

    let mut broken = model;
    broken.damage.push(Damage { offset: MIB, flaw: Flaw::Unreadable });
    let mut disk = EmulatedDisk::new(broken, Payload::Dropped, 1, clock.clone());
    disk.submit(get(1, MIB)).unwrap();
    let failed = disk.complete(Duration::from_mins(1)).unwrap();
    assert_eq!(failed.result.unwrap_err().fault, Fault::Io);
    disk.submit(put(2, MIB, 7)).unwrap();
    disk.submit(get(3, MIB)).unwrap();
    assert_eq!(disk.complete(Duration::from_mins(1)).unwrap().result, Ok(()));
    let zeros = disk.complete(Duration::from_mins(1)).unwrap();
    assert!(zeros.result.is_ok() && zeros.buffer.unwrap()[..BLOCK].iter().all(|byte| *byte == 0));
    for tag in 0..32 {
        disk.submit(get(tag, 0)).unwrap();
    }
    assert_eq!(disk.submit(get(99, 0)).unwrap_err().tag, 99);
}

fn models() -> impl Strategy<Value = DriveModel> {
    let stalls = prop::option::of((0u64..2000, 1u64..800, prop::option::of(1u64..3000)));
    let kinds = (0usize..4, 0.0f64..1.0, any::<bool>(), 0usize..40);
    (kinds, stalls, 1u64..64).prop_map(|((kind, begin, squeezed, flaws), stall, mib)| {
        let whole = [DriveModel::paper(), DriveModel::rpm7200(), DriveModel::shingled(), DriveModel::flash()];
        let whole = whole[kind].clone();
        let mut model = if squeezed { whole.squeezed(mib * MIB) } else { whole.part(begin, mib * MIB) };
        let millis = Duration::from_millis;
        if let Some((first, length, every)) = stall {
            let (first, length, every) = (millis(first), millis(length), every.map(millis));
            model = model.stalling(Stall { first, length, every });
        }
        for (n, flaw) in [Flaw::Remapped, Flaw::Weak { revolutions: 2 }, Flaw::Unreadable].iter().enumerate()
        {
            model = model.damaged(*flaw, flaws / 3, n as u64);
        }
        model
    })
}

fn accesses() -> impl Strategy<Value = Vec<(u8, u64, u64, u64)>> {
    // Kind, place (or the next), length and gap; beyond the end at times.
    prop::collection::vec((0u8..5, 0u64..17_000, 0u64..600, 0u64..40_000_000), 1..80)
}

/// The accesses with their places: every other one goes on where its predecessor ended.
fn placed(steps: &[(u8, u64, u64, u64)]) -> impl Iterator<Item = (DriveAccess, Duration)> {
    let mut end = 0;
    steps.iter().map(move |(kind, place, blocks, gap)| {
        let offset = if place % 2 == 0 { end } else { place * BLOCK as u64 };
        let len = blocks * BLOCK as u64;
        end = offset + len;
        let kind =
            [AccessKind::Read, AccessKind::Write, AccessKind::Flush, AccessKind::Read, AccessKind::Write]
                [usize::from(*kind)];
        let gap = if gap % 3 == 0 { Duration::ZERO } else { Duration::from_nanos(*gap) };
        (DriveAccess { kind, offset, len }, gap)
    })
}

proptest! {
    #[test]
    fn time_never_goes_backwards_and_a_seed_tells_all(
        model in models(), steps in accesses(), seed: u64,
    ) {
        let (mut drive, mut twin) = (Drive::new(model.clone(), seed), Drive::new(model.clone(), seed));
        let (mut now, mut last, mut streamed) = (Timestamp(0), Timestamp(0), Duration::ZERO);
        for (access, gap) in placed(&steps) {
            now = now + gap;
            let estimate = drive.estimate(access, now);
            let served = drive.serve(access, now);
            prop_assert_eq!(served, twin.serve(access, now));
            prop_assert_eq!(served.done, now + estimate);
            prop_assert!(served.began >= now && served.done >= served.began, "{:?}", served);
            // What moves nothing waits beside the queue.
            let works = access.kind != AccessKind::Flush && access.len > 0 && access.offset < model.bytes;
            prop_assert!(served.done <= drive.free() || !works);
            if works && model.mechanics().is_some() {
                prop_assert!(served.done >= last, "one at a time");
                last = served.done;
            }
            if access.kind == AccessKind::Write {
                streamed += drive.stream_time(AccessKind::Write, access.offset, access.len);
            }
        }
        // No byte is written faster than the curve says, whatever else happens. In the media cache all are as fast
        // as at the outer edge.
        if !matches!(model.kind, DriveKind::Shingled(..)) {
            prop_assert!(drive.free().since(Timestamp(0)) + Duration::from_micros(1) >= streamed);
        }
    }

    #[test]
    fn more_bytes_take_no_less_time(
        model in models(), steps in accesses(), place in 0u64..17_000, blocks in (0u64..2000, 0u64..2000), go_on: bool,
        kind in prop::sample::select(vec![AccessKind::Read, AccessKind::Write]),
    ) {
        let mut model = model;
        if let DriveKind::Shingled(_, shingles) = &mut model.kind {
            // It may have more to clean for less that fits in than for more that does not.
            shingles.cache = 0;
        }
        let mut drive = Drive::new(model, 1);
        let (mut now, mut end) = (Timestamp(0), 0);
        for (access, gap) in placed(&steps) {
            now = now + gap;
            drive.serve(access, now);
            end = access.offset + access.len;
        }
        let offset = if go_on { end } else { place * BLOCK as u64 };
        let (short, long) = (blocks.0.min(blocks.1) * BLOCK as u64, blocks.0.max(blocks.1) * BLOCK as u64);
        let time = |len| drive.estimate(DriveAccess { kind, offset, len }, now);
        prop_assert!(time(short) <= time(long), "{:?} {:?}", time(short), time(long));
    }
}

#[test]
fn curves_are_taken_as_they_are_given() {
    let curve = Curve::through(&[(0.8, 65.0), (0.0, 70.0), (1.0, 50.0)]);
    assert_eq!(curve, DriveModel::paper().write);
    assert!((curve.at(0.9) / MIB as f64 - 57.5).abs() < 0.01);
    let flat = Curve::through(&[]);
    assert!((flat.at(0.5) / MIB as f64 - 1.0).abs() < 1e-9);
}
