//! The threads that write: each does one write at a time, from beginning to end, and fetches the next by itself.

use crate::disk::{Completion, DiskError, DiskInfo, Fault, Op, Request};
use crate::{Turns, device, fault};
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::{Errno, IoSlice, ReadWriteFlags};
use std::collections::VecDeque;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Times a write is continued without having moved on, before it counts as failed.
const STUCK: u32 = 16;

/// What all of them share with the disk.
pub(super) struct Crew {
    state: Mutex<State>,
    /// Rung when a write is there, or no more will come.
    work: Condvar,
    /// Readable when something is done.
    signal: OwnedFd,
}

struct State {
    waiting: VecDeque<Request>,
    done: VecDeque<Completion>,
    turns: Turns,
    over: bool,
}

/// Where they write.
pub(super) struct Target {
    pub(super) file: File,
    pub(super) info: DiskInfo,
    /// The file system knows no durable writes: a sync follows the write.
    pub(super) syncs_apart: AtomicBool,
}

impl Crew {
    /// For at most `depth` writes at once.
    pub(super) fn new(depth: usize) -> std::io::Result<Self> {
        let state = State {
            waiting: VecDeque::with_capacity(depth),
            done: VecDeque::with_capacity(depth),
            turns: Turns::default(),
            over: false,
        };
        let signal = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self { state: Mutex::new(state), work: Condvar::new(), signal })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Readable when something is done.
    pub(super) fn signal(&self) -> BorrowedFd<'_> {
        self.signal.as_fd()
    }

    /// Takes the signal back.
    pub(super) fn hush(&self) {
        let _ = rustix::io::read(&self.signal, &mut [0u8; 8]);
    }

    /// Says which writes take turns.
    pub(super) fn take_turns(&self, turns: Turns) {
        self.state().turns = turns;
    }

    /// Gives a write to whoever is free first.
    pub(super) fn give(&self, request: Request) {
        self.state().waiting.push_back(request);
        self.work.notify_one();
    }

    /// One that is done.
    pub(super) fn take(&self) -> Option<Completion> {
        self.state().done.pop_front()
    }

    /// Tells them to end once nothing waits.
    pub(super) fn end(&self) {
        self.state().over = true;
        self.work.notify_all();
    }

    fn next(&self) -> Option<Request> {
        let mut state = self.state();
        loop {
            let State { waiting, turns, over, .. } = &mut *state;
            // Whoever ends a turn comes here next: nobody need be woken for the one that follows.
            let first = waiting.iter().position(|request| turns.begin(request.tag));
            if let Some(request) = first.and_then(|at| waiting.remove(at)) {
                return Some(request);
            }
            if *over {
                return None;
            }
            state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn done(&self, done: Completion) {
        let mut state = self.state();
        state.turns.end(done.tag);
        state.done.push_back(done);
        drop(state);
        // It fails only where the counter is full: then it is readable already.
        let _ = rustix::io::write(&self.signal, &1u64.to_ne_bytes());
    }

    /// What one of the threads does.
    pub(super) fn work(&self, target: &Target) {
        while let Some(request) = self.next() {
            let result = target.run(&request.op);
            self.done(Completion { tag: request.tag, buffer: request.op.into_buffer(), result });
        }
    }
}

impl Target {
    fn run(&self, op: &Op) -> Result<(), DiskError> {
        let Op::Write { offset, buffer, len, durable } = op else { return Ok(()) };
        self.write(*offset, &buffer[..*len], *durable).map_err(|fault| {
            let (what, offset, len) = op.place();
            self.info.error(what, offset, len, fault)
        })
    }

    fn write(&self, offset: u64, bytes: &[u8], durable: bool) -> Result<(), Fault> {
        let (mut done, mut stuck) = (0, 0);
        while done < bytes.len() {
            let apart = self.syncs_apart.load(Ordering::Relaxed);
            let flags = if durable && !apart { ReadWriteFlags::DSYNC } else { ReadWriteFlags::empty() };
            let rest = [IoSlice::new(&bytes[done..])];
            let more = match rustix::io::pwritev2(&self.file, &rest, offset + done as u64, flags) {
                Ok(0) => return Err(Fault::Io),
                Ok(more) if done + more >= bytes.len() => break,
                // Direct I/O goes on at a block's border only.
                Ok(more) => more - more % self.info.block,
                Err(Errno::INTR | Errno::AGAIN) => 0,
                Err(Errno::OPNOTSUPP | Errno::INVAL) if !flags.is_empty() => {
                    self.syncs_apart.store(true, Ordering::Relaxed);
                    continue;
                }
                Err(cause) => return Err(fault::of(cause)),
            };
            done += more;
            stuck = if more > 0 { 0 } else { stuck + 1 };
            if stuck > STUCK {
                return Err(Fault::Io);
            }
        }
        if durable && self.syncs_apart.load(Ordering::Relaxed) {
            device::sync(&self.file, &self.info).map_err(|error| error.fault)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Promise 1: a commit waits for no slot that has no turn yet; promise 6: what waits at the end is written.
    #[test]
    fn those_without_a_turn_wait_and_others_pass_them() {
        let crew = Crew::new(8).unwrap();
        crew.take_turns(Turns::new(|tag| tag < 10, 2));
        for tag in [1, 2, 3, 4, 10, 5] {
            crew.give(Request { tag, op: Op::Flush });
        }
        // So that nobody sleeps here.
        crew.end();
        let next = || crew.next().map(|request| request.tag);
        assert_eq!([next(), next(), next(), next()], [Some(1), Some(2), Some(10), None]);
        let end = |tag| crew.done(Completion { tag, buffer: None, result: Ok(()) });
        end(10);
        assert_eq!(next(), None, "that was nobody's turn");
        end(2);
        assert_eq!([next(), next()], [Some(3), None]);
        end(3);
        end(1);
        assert_eq!([next(), next(), next()], [Some(4), Some(5), None]);
        let done: Vec<u64> = std::iter::from_fn(|| crew.take()).map(|done| done.tag).collect();
        assert_eq!(done, [10, 2, 3, 1]);
    }
}
