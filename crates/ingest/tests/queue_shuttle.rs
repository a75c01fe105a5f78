//! The exchange between source and capture thread under a scheduler that tries interleavings (promise 2: nothing
//! is lost silently, and promise 1: nobody sleeps through what it waits for).
//!
//! `queue.rs` is compiled here a second time, against shuttle's primitives. A lost wake-up shows as a deadlock.

#[allow(unreachable_pub, dead_code, missing_docs)]
#[path = "../src/queue.rs"]
mod queue;

mod sync {
    pub(crate) use shuttle::sync::atomic::{AtomicBool, Ordering};
    pub(crate) use shuttle::sync::{Arc, Condvar, Mutex, MutexGuard};
}

use queue::{Parker, exchange};
use shuttle::thread;

const RUNS: usize = 1000;

fn check(body: impl Fn() + Send + Sync + Clone + 'static) {
    shuttle::check_random(body.clone(), RUNS);
    shuttle::check_pct(body, RUNS, 3);
}

#[test]
fn everything_sent_is_taken_once_and_in_order_by_a_thread_that_parks() {
    check(|| {
        let mut parker = Parker::new();
        let mut inlets = Vec::new();
        let mut threads = Vec::new();
        for source in 0..2u32 {
            let (mut end, inlet) = exchange(vec![0u32; 2], parker.waker());
            inlets.push((inlet, Vec::new()));
            threads.push(thread::spawn(move || {
                for n in 0..4 {
                    let mut item = end.wait_empty().unwrap();
                    item = item.wrapping_mul(0) + source * 100 + n;
                    end.send(item).unwrap();
                }
            }));
        }
        loop {
            let mut any = false;
            for (inlet, seen) in &mut inlets {
                while let Some(item) = inlet.take() {
                    seen.push(item);
                    inlet.give_back(item);
                    any = true;
                }
            }
            if inlets.iter().all(|(inlet, _)| inlet.is_finished()) {
                break;
            }
            if !any {
                parker.wait(None);
            }
        }
        for (source, (inlet, seen)) in inlets.iter().enumerate() {
            let source = source as u32;
            assert_eq!(*seen, (0..4).map(|n| source * 100 + n).collect::<Vec<_>>());
            assert_eq!(inlet.waiting(), 0);
        }
        for thread in threads {
            thread.join().unwrap();
        }
    });
}

#[test]
fn a_source_that_waits_learns_that_the_capture_thread_is_gone() {
    check(|| {
        let parker = Parker::new();
        let (mut end, mut inlet) = exchange(vec![(); 1], parker.waker());
        let source = thread::spawn(move || {
            let mut sent = 0;
            while let Ok(item) = end.wait_empty() {
                if end.send(item).is_err() {
                    break;
                }
                sent += 1;
            }
            sent
        });
        if let Some(item) = inlet.take() {
            inlet.give_back(item);
        }
        drop(inlet);
        assert!(source.join().unwrap() <= 2);
    });
}

#[test]
fn what_was_sent_before_the_source_went_is_still_taken() {
    check(|| {
        let mut parker = Parker::new();
        let (mut end, mut inlet) = exchange(vec![1u8, 2], parker.waker());
        let source = thread::spawn(move || {
            for _ in 0..2 {
                let item = end.wait_empty().unwrap();
                end.send(item).unwrap();
            }
        });
        let mut seen = Vec::new();
        loop {
            // Asked first: what is sent between the two questions must not be forgotten.
            let finished = inlet.is_finished();
            seen.extend(inlet.take());
            if finished {
                break;
            }
            if inlet.waiting() == 0 && !inlet.is_finished() {
                parker.wait(None);
            }
        }
        assert_eq!(seen, [1, 2]);
        source.join().unwrap();
    });
}

#[test]
fn a_wake_up_before_the_wait_is_not_lost_and_many_may_call() {
    check(|| {
        let mut parker = Parker::new();
        let callers: Vec<_> = (0..3)
            .map(|_| {
                let waker = parker.waker();
                thread::spawn(move || waker.wake())
            })
            .collect();
        assert!(parker.wait(None));
        for caller in callers {
            caller.join().unwrap();
        }
    });
}
