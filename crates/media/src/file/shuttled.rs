//! Shuttle tests of the hand-over between the disk of a file and its writers: the code is compiled once more
//! over shuttle's locks and threads, and every run tries another order. A write that is forgotten, or done
//! and not reported, shows as a deadlock.

mod sync {
    //! Shuttle's stand-ins, and a signal of the same promise as the kernel's counter.

    pub(super) use shuttle::sync::{Condvar, Mutex, MutexGuard};
    pub(super) use std::sync::PoisonError;

    pub(super) struct Signal(Mutex<bool>, Condvar);

    impl Signal {
        #[allow(clippy::unnecessary_wraps, reason = "as the other")]
        pub(super) fn new() -> std::io::Result<Self> {
            Ok(Self(Mutex::new(false), Condvar::new()))
        }

        pub(super) fn ring(&self) {
            *self.0.lock().unwrap() = true;
            self.1.notify_one();
        }

        pub(super) fn hush(&self) {
            *self.0.lock().unwrap() = false;
        }

        /// As a poll: it stays rung.
        pub(super) fn wait(&self) {
            let mut rung = self.0.lock().unwrap();
            while !*rung {
                rung = self.1.wait(rung).unwrap();
            }
        }
    }
}

#[allow(clippy::duplicate_mod, reason = "the point: the same source over other primitives")]
#[path = "writer_pool.rs"]
mod writer_pool;

use crate::InflightLimiter;
use crate::disk::{Op, Request};
use shuttle::sync::Arc;
use shuttle::sync::atomic::{AtomicUsize, Ordering};
use shuttle::thread;
use writer_pool::WriterPool;

const RUNS: usize = 1000;

/// Slots, which take turns, have tags below this; commits have others.
const SLOTS: u64 = 10;

/// The disk gives slots and commits, fetches what is done as `FileDisk` does, and ends with writes still waiting.
fn handed_over(writers: usize, most: usize) {
    let writer_pool = Arc::new(WriterPool::new(8).unwrap());
    writer_pool.limit_inflight(InflightLimiter::new(|tag| tag < SLOTS, most));
    let at_work = Arc::new(AtomicUsize::new(0));
    let threads: Vec<_> = (0..writers)
        .map(|_| {
            let (writer_pool, at_work) = (Arc::clone(&writer_pool), Arc::clone(&at_work));
            thread::spawn(move || {
                writer_pool.work(|op| {
                    let slot = usize::from(matches!(op, Op::Flush));
                    let before = at_work.fetch_add(slot, Ordering::SeqCst);
                    assert!(slot == 0 || before < most, "{before} have their turn already");
                    thread::yield_now();
                    at_work.fetch_sub(slot, Ordering::SeqCst);
                    Ok(())
                });
            })
        })
        .collect();
    let tags = [1, 2, 3, SLOTS, 4, SLOTS + 1];
    let (mut given, mut flying) = (0, 0);
    let mut done: Vec<u64> = Vec::new();
    while done.len() < tags.len() {
        while given < tags.len() && flying < 4 {
            let op = if tags[given] < SLOTS { Op::Flush } else { Op::Measure };
            writer_pool.give(Request { tag: tags[given], op });
            (given, flying) = (given + 1, flying + 1);
            if given == tags.len() {
                writer_pool.end();
            }
        }
        writer_pool.signal().hush();
        match writer_pool.take() {
            Some(one) => {
                done.push(one.tag);
                flying -= 1;
            }
            None => writer_pool.signal().wait(),
        }
    }
    for thread in threads {
        thread.join().unwrap();
    }
    done.sort_unstable();
    assert_eq!(done, [1, 2, 3, 4, SLOTS, SLOTS + 1]);
}

// Promises 1 and 6: every write that was given is done and told, whoever has a turn.
#[test]
fn no_write_is_forgotten_between_the_disk_and_its_writers() {
    for (writers, most) in [(1, 1), (2, 1), (3, 2)] {
        shuttle::check_random(move || handed_over(writers, most), RUNS);
        shuttle::check_pct(move || handed_over(writers, most), RUNS, 3);
    }
}
