//! Crash tests: a crash after every single write of a run, with every kind of tearing, and again while the
//! ring recovers from it. Promises 4, 5 and 6.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use holdfast_base::SlotNo;
use holdfast_format::read_commit;
use holdfast_media::{FaultPlan, Image, Survival};
use holdfast_ring::{Config, SlotLook};
use holdfast_sim::{Op, Setup, World};
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);

fn setup() -> Setup {
    Setup {
        slots: 12,
        config: Config { buffers: 3, flush: Duration::from_secs(1), writes: 2 },
        plan: FaultPlan { latency: 2 * MS, jitter: 20 * MS, reorder: true, ..FaultPlan::default() },
        preamble: 2_480,
        ..Setup::plain()
    }
}

fn write(stream: u8, count: u16, bytes: u32, every: Duration) -> Op {
    Op::Write { stream, count, bytes, every, event: stream == 1 }
}

fn hold(back: Duration, span: Duration) -> Op {
    Op::Hold { stream: None, back, span, by_event: false, lasts: None, wait: true }
}

fn find(quota: u8, count: u16) -> Op {
    Op::Find { stream: 1, back: 40, count, quota, lasts: None }
}

/// The last of the newest elements of a stream, some of which are not on the medium.
fn extend(which: u8, stream: u8, back: u16, wait: bool) -> Op {
    Op::Extend { which, stream, back, count: back, wait, durable: true }
}

/// The same, answered at once.
fn take(which: u8, stream: u8, back: u16) -> Op {
    Op::Extend { which, stream, back, count: back, wait: true, durable: false }
}

/// Slow enough for the journal, fast enough to skip it, holds, a growth, a restart, and several extents full.
fn script() -> Vec<Op> {
    vec![
        write(0, 12, 1_000, 700 * MS),
        write(1, 60, 3_000, Duration::ZERO),
        hold(2_000 * MS, 1_000 * MS),
        Op::Restart,
        write(2, 14, 9_000, 600 * MS),
        hold(500 * MS, 1_000 * MS),
        write(0, 90, 4_000, MS),
        find(3, 0),
        extend(0, 0, 1, false),
        write(1, 24, 5_500, 900 * MS),
        extend(0, 1, 1, true),
        Op::Release(0),
        Op::Grow(2),
        write(2, 3, 70_000, 300 * MS),
        Op::ClockStep(77),
        Op::Restart,
        // Little in many commits, then much: the next snapshot has a nearly full slot to take along.
        write(0, 19, 40, 1_200 * MS),
        write(1, 23, 2_060, 5 * MS),
        // The rest of the extent has room for the hold, and not for all that it covers.
        hold(1_000 * MS, 1_000 * MS),
        Op::Pass(4_000 * MS),
        write(0, 3, 40, 1_200 * MS),
        write(0, 16, 2_600, 800 * MS),
        Op::Seal,
        hold(3_000 * MS, 9_000 * MS),
        take(0, 0, 2),
        write(1, 60, 4_000, MS),
        Op::Release(1),
        write(0, 26, 5_000, 700 * MS),
        write(2, 100, 40, 30 * MS),
        Op::Pass(3_000 * MS),
    ]
}

/// What happens after a recovery: it must be a ring like any other.
fn afterwards() -> Vec<Op> {
    vec![
        write(0, 3, 2_000, 600 * MS),
        hold(1_000 * MS, 2_000 * MS),
        write(1, 60, 4_000, MS),
        find(2, 9),
        write(2, 4, 100, 800 * MS),
        extend(0, 2, 1, true),
        Op::Release(0),
    ]
}

fn carry_out(world: &mut World, steps: &[Op]) -> Result<(), String> {
    for (at, step) in steps.iter().enumerate() {
        world.run(step).map_err(|e| format!("step {at}, {step:?}: {e}"))?;
    }
    Ok(())
}

/// The world at the moment when the power goes with the `n`-th write.
fn cut_at(n: u64) -> World {
    let mut world = World::new(setup()).unwrap();
    world.disk().unwrap().cut_after(n);
    carry_out(&mut world, &script()).expect("the run");
    assert!(world.is_dead(), "the run has fewer than {n} writes");
    world
}

fn writes_of_the_run() -> u64 {
    let mut world = World::new(setup()).unwrap();
    let before = world.disk().unwrap().submissions();
    carry_out(&mut world, &script()).unwrap();
    world.disk().unwrap().submissions() - before
}

/// Outcomes of the crash: nothing and everything survived, and chance, torn at 512 and at 4096 bytes.
fn outcomes(world: &mut World, chances: usize) -> Vec<(String, Image)> {
    let disk = world.disk().unwrap();
    let mut all = vec![
        ("nothing survives".to_owned(), disk.crash_with(Survival::Nothing)),
        ("everything survives".to_owned(), disk.crash_with(Survival::Everything)),
    ];
    for sector in [512, 4096] {
        disk.plan_mut().sector = sector;
        for draw in 0..chances {
            all.push((format!("draw {draw}, torn at {sector}"), disk.crash()));
        }
    }
    all
}

#[test]
fn the_run_of_these_tests_does_all_that_it_is_for() {
    let mut world = World::new(setup()).unwrap();
    let (mut generations, mut commits_of_snapshots, mut most_held, mut journaled) = (0, 0, 0, 0);
    for step in &script() {
        world.run(step).unwrap();
        let superblock = world.superblock().clone();
        let image = world.disk().unwrap().seen();
        for extent in 0..2 {
            let (mut at, mut parts) = (0, 0);
            let bytes = image.range(
                superblock.geometry.extent_offset(extent),
                superblock.geometry.extent_bytes() as usize,
            );
            while let Ok((head, _, len)) = read_commit(&bytes[at..], &superblock.key, superblock.ring) {
                generations = generations.max(head.generation);
                parts += u64::from(head.part);
                journaled += u64::from(!head.part && len > 4096);
                at += len;
            }
            commits_of_snapshots = commits_of_snapshots.max(parts);
        }
        let looks = world.recorder().unwrap().driver.ring().slot_looks(SlotNo(0), 99);
        most_held = most_held.max(looks.filter(|s| s.look == SlotLook::Held).count());
    }
    assert!(generations >= 6, "the journal wraps several times: {generations}");
    assert!(commits_of_snapshots > 1, "a snapshot takes several commits");
    assert!(most_held >= 2 && journaled > 10, "{most_held} held, {journaled} commits of gains");
    assert!(world.extended >= 3, "{} grew", world.extended);
}

#[test]
fn a_crash_after_every_write_loses_nothing_but_what_is_too_young() {
    for n in 1..=writes_of_the_run() {
        let mut world = cut_at(n);
        let bound = world.mourn().expect("a look at the ring");
        for (which, (what, image)) in outcomes(&mut world, 5).into_iter().enumerate() {
            let at = format!("crash at write {n}, {what}");
            world.inspect(&image, bound).expect(&at);
            if which as u64 % 6 == n % 6 {
                let mut next = world.fork(image, bound, None).expect(&at);
                carry_out(&mut next, &afterwards()).and_then(|()| next.finish()).expect(&at);
            }
        }
    }
}

#[test]
fn a_crash_while_the_ring_recovers_from_a_crash_loses_nothing_more() {
    for n in (1..=writes_of_the_run()).step_by(2) {
        let mut world = cut_at(n);
        let bound = world.mourn().unwrap();
        let images = outcomes(&mut world, 1);
        let (what, image) = &images[n as usize / 2 % images.len()];
        for cut in 1..=8 {
            let at = format!("crash at write {n}, {what}, and at write {cut} of the next start");
            let mut next = world.fork(image.clone(), bound, Some(cut)).expect(&at);
            if !next.is_dead() {
                break;
            }
            let bound = next.mourn().expect(&at);
            for (again, (what, image)) in outcomes(&mut next, 1).into_iter().enumerate() {
                let at = format!("crash at write {n}, then at write {cut} of the next start, {what}");
                next.inspect(&image, bound).expect(&at);
                if again as u64 == n / 2 % 4 {
                    let mut third = next.fork(image, bound, None).expect(&at);
                    carry_out(&mut third, &afterwards()).and_then(|()| third.finish()).expect(&at);
                }
            }
        }
    }
}
