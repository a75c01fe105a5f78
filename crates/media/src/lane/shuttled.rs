//! Shuttle tests of the queue and the I/O thread's loop: the code is compiled once more over shuttle's locks,
//! counters and threads, and every run tries another order. A lost wake-up shows as a deadlock.

mod sync {
    //! Shuttle's stand-ins, and a waker of the same promise as the kernel's counter.

    pub(super) use shuttle::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    pub(super) use shuttle::sync::{Arc, Condvar, Mutex};
    pub(super) use std::sync::PoisonError;

    pub(super) struct Waker(Mutex<bool>, Condvar);

    impl Waker {
        pub(super) fn new() -> Self {
            Self(Mutex::new(false), Condvar::new())
        }

        pub(super) fn wake(&self) {
            *self.0.lock().unwrap() = true;
            self.1.notify_one();
        }

        pub(super) fn wait(&self, _ready: Option<std::os::fd::BorrowedFd<'_>>) {
            let mut rung = self.0.lock().unwrap();
            while !*rung {
                rung = self.1.wait(rung).unwrap();
            }
            *rung = false;
        }
    }
}

#[allow(clippy::duplicate_mod, reason = "the point: the same source over other primitives")]
#[path = "queue.rs"]
mod queue;
#[allow(clippy::duplicate_mod, reason = "as above")]
#[path = "serve.rs"]
mod serve;

use crate::disk::{Disk, Op, Request};
use crate::memory::MemoryDisk;
use queue::queue;
use serve::{Answer, Ports, serve};
use shuttle::thread;
use std::time::Duration;
use sync::{Arc, AtomicBool, Ordering, Waker};

const RUNS: usize = 2000;

#[test]
fn all_items_arrive_once_and_in_order_through_a_small_queue() {
    shuttle::check_pct(
        || {
            let (mut into, mut out) = queue::<Box<u32>>(2);
            let sender = thread::spawn(move || {
                for number in 0..6 {
                    let mut item = Box::new(number);
                    while let Err(back) = into.push(item) {
                        item = back;
                        thread::yield_now();
                    }
                }
            });
            let mut wanted = 0;
            while wanted < 6 {
                match out.pop() {
                    Some(item) => {
                        assert_eq!(*item, wanted);
                        wanted += 1;
                    }
                    None => thread::yield_now(),
                }
            }
            assert!(out.pop().is_none());
            sender.join().unwrap();
        },
        RUNS,
        3,
    );
}

/// The owner submits, parks until notified, fetches, and stops the thread, as `Lane` does.
fn round_trips() {
    let (mut orders, orders_out) = queue(2);
    let (answers_in, mut answers) = queue(2);
    let (waker, stop) = (Arc::new(Waker::new()), Arc::new(AtomicBool::new(false)));
    let owner = thread::current();
    let mut ports = Ports {
        orders: orders_out,
        answers: answers_in,
        waker: waker.clone(),
        stop: stop.clone(),
        notify: Box::new(move || owner.unpark()),
    };
    let mut disk = MemoryDisk::new(1 << 20);
    disk.lengthen(2 << 20);
    let io = thread::spawn(move || serve(&mut disk, |_| None, &mut ports));
    let (mut sent, mut flying) = (0u64, 0);
    let mut fetched = Vec::new();
    while fetched.len() < 5 {
        while sent < 5 && flying < 2 {
            let op = if sent == 3 { Op::Measure } else { Op::Flush };
            orders.push(Request { tag: sent, op }).ok().unwrap();
            waker.wake();
            (sent, flying) = (sent + 1, flying + 1);
        }
        match answers.pop() {
            Some(Answer { done, bytes }) => {
                assert!(bytes == if done.tag < 3 { 1 << 20 } else { 2 << 20 } || done.tag == 2);
                fetched.push(done.tag);
                flying -= 1;
            }
            None => thread::park(),
        }
    }
    assert_eq!(fetched, [0, 1, 2, 3, 4]);
    stop.store(true, Ordering::Release);
    waker.wake();
    io.join().unwrap();
}

#[test]
fn no_wake_up_is_lost_between_the_owner_and_the_io_thread() {
    shuttle::check_random(round_trips, RUNS);
    shuttle::check_pct(round_trips, RUNS, 3);
}

#[test]
fn a_memory_disk_never_makes_its_thread_wait() {
    let mut disk = MemoryDisk::new(4096);
    disk.submit(Request { tag: 1, op: Op::Flush }).unwrap();
    assert!(disk.complete(Duration::MAX).is_some());
    assert!(disk.complete(Duration::MAX).is_none());
}
