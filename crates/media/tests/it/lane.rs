//! Tests of a lane: it does what its disk does, from another thread, and wakes its owner.
#![allow(clippy::unwrap_used)] // helpers of tests are tests too

use crate::common;

use common::{LONG, bytes_at, fault, run, write};
use holdfast_base::{BLOCK, ManualClock};
use holdfast_media::{
    Buffer, Disk, Fault, FaultPlan, FaultyDisk, Image, Lane, LaneOptions, MemoryDisk, Op, Prefill, RealDisk,
    Request, create_file, extend_file,
};
use std::time::Duration;

const MIB: u64 = 1 << 20;

fn waker() -> Box<dyn Fn() + Send> {
    let owner = std::thread::current();
    Box::new(move || owner.unpark())
}

fn memory() -> Lane {
    Lane::spawn_simulated(MemoryDisk::new(MIB), "memory", LaneOptions::default(), waker()).unwrap()
}

#[test]
fn a_lane_over_a_file_writes_reads_and_grows() {
    let folder = tempfile::tempdir().unwrap();
    let device = create_file(&folder.path().join("ring"), 4 * MIB, Prefill::No).unwrap();
    let disk = RealDisk::new(device, &[], 8);
    let mut lane = Lane::spawn(disk, "lane-0", LaneOptions::default(), waker()).unwrap();
    for round in 0..20u64 {
        let mut flying = 0;
        for at in 0..4u64 {
            lane.submit(write(at, at * MIB, 1 << 20, (round * 4 + at) as u8, at % 2 == 0)).unwrap();
            flying += 1;
        }
        while flying > 0 {
            assert_eq!(lane.complete(LONG).unwrap().result, Ok(()));
            flying -= 1;
        }
        assert_eq!(fault(&mut lane, Request { tag: 1, op: Op::Flush }), None);
        assert_eq!(bytes_at(&mut lane, 3 * MIB, BLOCK), vec![(round * 4 + 3) as u8; BLOCK]);
    }
    extend_file(&folder.path().join("ring"), 6 * MIB, Prefill::No).unwrap();
    assert_eq!(lane.info().bytes, 4 * MIB, "nobody has looked");
    assert_eq!(fault(&mut lane, Request { tag: 1, op: Op::Measure }), None);
    assert_eq!(lane.info().bytes, 6 * MIB);
    assert_eq!(fault(&mut lane, write(1, 5 * MIB, BLOCK, 1, true)), None);
    assert_eq!(fault(&mut lane, write(1, 6 * MIB, BLOCK, 1, true)), Some(Fault::Misplaced));
}

#[test]
fn a_lane_takes_as_many_requests_as_its_disk() {
    let mut lane = memory();
    let depth = lane.info().depth as u64;
    for tag in 0..depth {
        lane.submit(Request { tag, op: Op::Flush }).unwrap();
    }
    assert_eq!(lane.submit(write(99, 0, BLOCK, 1, true)).unwrap_err().tag, 99);
    for tag in 0..depth {
        assert_eq!(lane.complete(LONG).unwrap().tag, tag);
    }
    assert!(lane.complete(LONG).is_none());
    run(&mut lane, write(99, 0, BLOCK, 1, true));
}

#[test]
fn a_slow_disk_in_virtual_time_is_waited_for() {
    let plan = FaultPlan { latency: Duration::from_millis(5), reorder: true, ..FaultPlan::default() };
    let disk = FaultyDisk::new(Image::new(MIB), plan, 1, ManualClock::default());
    let mut lane = Lane::spawn_simulated(disk, "slow", LaneOptions::default(), waker()).unwrap();
    for tag in 0..8 {
        lane.submit(write(tag, tag * BLOCK as u64, BLOCK, tag as u8, true)).unwrap();
    }
    let mut tags: Vec<u64> = (0..8).map(|_| lane.complete(LONG).unwrap().tag).collect();
    tags.sort_unstable();
    assert_eq!(tags, (0..8).collect::<Vec<_>>());
}

#[test]
fn what_the_system_forbids_is_a_warning() {
    let options = LaneOptions { cpu: Some(1023), ..LaneOptions::default() };
    let mut lane = Lane::spawn_simulated(MemoryDisk::new(MIB), "far", options, waker()).unwrap();
    assert!(
        lane.warnings()[0].starts_with("far: its I/O thread cannot be kept on core 1023"),
        "{:?}",
        lane.warnings()
    );
    run(&mut lane, write(1, 0, BLOCK, 1, true));
    let options = LaneOptions { cpu: Some(0), realtime: true, ..LaneOptions::default() };
    let lane = Lane::spawn_simulated(MemoryDisk::new(MIB), "first", options, waker()).unwrap();
    assert!(
        lane.warnings().iter().all(|text| text.contains("real-time")),
        "core 0 is there: {:?}",
        lane.warnings()
    );
    assert!(!common::root() || lane.warnings().is_empty(), "root may: {:?}", lane.warnings());
}

#[test]
fn a_panic_in_its_thread_shows() {
    let notify = Box::new(|| panic!("on purpose"));
    let mut lane =
        Lane::spawn_simulated(MemoryDisk::new(MIB), "frail", LaneOptions::default(), notify).unwrap();
    assert!(lane.alive());
    lane.submit(Request { tag: 1, op: Op::Flush }).unwrap();
    while lane.alive() {
        std::thread::yield_now();
    }
    assert_eq!(lane.complete(LONG).unwrap().tag, 1);
    lane.submit(Request { tag: 2, op: Op::Flush }).unwrap();
    assert!(lane.complete(LONG).is_none());
}

#[test]
fn a_lane_dropped_with_requests_under_way_ends() {
    let mut lane = memory();
    for tag in 0..32 {
        let buffer = Buffer::aligned(BLOCK).unwrap();
        lane.submit(Request { tag, op: Op::Read { offset: 0, buffer, len: BLOCK } }).unwrap();
    }
    drop(lane);
}
