//! Test of promise 1: after the start, moving bytes through a lane allocates nothing.
#![allow(clippy::unwrap_used)] // helpers of tests are tests too

use holdfast_media::{
    BufferPool, Disk, InflightLimiter, Lane, LaneOptions, Lock, Op, Prefill, RealDisk, Request, create_file,
};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

struct Counting;

static WATCHED: AtomicBool = AtomicBool::new(false);
static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: everything is handed to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if WATCHED.load(Ordering::Relaxed) {
            ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        }
        // SAFETY: as the caller promised us.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as the caller promised us.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn a_lane_moves_bytes_without_allocating() {
    const LEN: usize = 256 << 10;
    let folder = tempfile::tempdir().unwrap();
    let device = create_file(&folder.path().join("ring"), 8 << 20, Prefill::No).unwrap();
    let mut pool = BufferPool::new(4, LEN, Lock::Prefault).unwrap();
    let mut disk = RealDisk::new(device, &[pool.region()], 8);
    disk.limit_inflight(InflightLimiter::new(|tag| tag % 2 == 0, 1));
    let owner = std::thread::current();
    let notify = Box::new(move || owner.unpark());
    let mut lane = Lane::spawn(disk, "quiet", LaneOptions::default(), notify).unwrap();
    let mut round = |rounds: u64| {
        for number in 0..rounds {
            while let Some(buffer) = pool.take() {
                let offset = (number * 4 + pool.free() as u64) % 32 * LEN as u64;
                let op = match pool.free() {
                    0 => Op::Read { offset, buffer, len: LEN },
                    free => Op::Write { offset, buffer, len: LEN, durable: free == 1 },
                };
                lane.submit(Request { tag: number, op }).unwrap();
            }
            lane.submit(Request { tag: number, op: Op::Flush }).unwrap();
            for _ in 0..5 {
                let done = lane.complete(Duration::from_mins(1)).unwrap();
                assert!(done.result.is_ok());
                if let Some(buffer) = done.buffer {
                    pool.give(buffer).unwrap();
                }
            }
        }
    };
    round(4);
    WATCHED.store(true, Ordering::SeqCst);
    round(100);
    WATCHED.store(false, Ordering::SeqCst);
    assert_eq!(ALLOCATIONS.load(Ordering::SeqCst), 0);
}
