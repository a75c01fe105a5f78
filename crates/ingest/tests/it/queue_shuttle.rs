//! Tests of the exchange between source and capture thread under a scheduler that tries interleavings (promise 2:
//! nothing is lost silently, and promise 1: no lost wake-up).
//!
//! `queue.rs` is compiled here a second time, against shuttle's primitives. A lost wake-up shows as a deadlock.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[allow(unreachable_pub, dead_code, missing_docs)]
#[path = "../../src/queue.rs"]
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
        let (mut end, mut inlet) = exchange(vec![0u8; 2], parker.waker());
        let source = thread::spawn(move || {
            for number in [1, 2] {
                end.wait_empty().unwrap();
                end.send(number).unwrap();
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

/// The capture thread as it is: takes what goes ahead, answers it a while later, and behind that takes the items.
fn offers(word: Result<(), String>) {
    let mut parker = Parker::new();
    let (mut end, mut inlet) = exchange(vec![0u8; 1], parker.waker());
    let (wanted, accepted) = (word.clone(), word.is_ok());
    let source = thread::spawn(move || {
        // What comes of an item that is given back meanwhile must not be taken for the word, nor hide it.
        let item = end.wait_empty().unwrap();
        assert_eq!(end.offer(b"ahead".to_vec()), Ok(wanted.clone()));
        if wanted.is_ok() {
            end.send(item + 7).unwrap();
            assert_eq!(end.wait_empty(), Ok(7));
        }
    });
    let (mut ahead, mut word, mut seen) = (None, Some(word), Vec::new());
    loop {
        if let Some(offer) = inlet.take_offer() {
            assert!(ahead.replace(offer).is_none(), "once");
            // Recording it takes some rounds.
            thread::yield_now();
        } else if ahead.is_some()
            && let Some(word) = word.take()
        {
            inlet.answer(word);
        }
        while let Some(item) = inlet.take() {
            assert!(word.is_none(), "no item goes ahead of the word");
            seen.push(item);
            inlet.give_back(item);
        }
        if inlet.is_finished() {
            break;
        }
        if ahead.is_none() || word.is_none() {
            parker.wait(None);
        }
    }
    assert_eq!(ahead.as_deref(), Some(&b"ahead"[..]));
    assert_eq!(seen, if accepted { vec![7] } else { vec![] });
    source.join().unwrap();
}

#[test]
fn what_goes_ahead_is_answered_before_anything_follows_it() {
    check(|| offers(Ok(())));
    check(|| offers(Err("it does not fit".to_owned())));
}

#[test]
fn a_source_that_waits_for_the_word_learns_that_the_capture_thread_is_gone() {
    for taken in [false, true] {
        check(move || {
            let parker = Parker::new();
            let (mut end, mut inlet) = exchange(vec![(); 1], parker.waker());
            let source = thread::spawn(move || end.offer(b"ahead".to_vec()));
            if taken {
                drop(inlet.take_offer());
            }
            drop(inlet);
            assert!(source.join().unwrap().is_err());
        });
    }
}
