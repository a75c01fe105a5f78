//! The threads that write: each does one write at a time, from beginning to end, and fetches the next by itself.

use crate::disk::{Completion, DiskError, DiskInfo, Fault, Op, Request};
use crate::{device, fault};
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
            if let Some(request) = state.waiting.pop_front() {
                return Some(request);
            }
            if state.over {
                return None;
            }
            state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// What one of the threads does.
    pub(super) fn work(&self, target: &Target) {
        while let Some(request) = self.next() {
            let result = target.run(&request.op);
            let done = Completion { tag: request.tag, buffer: request.op.into_buffer(), result };
            self.state().done.push_back(done);
            // It fails only where the counter is full: then it is readable already.
            let _ = rustix::io::write(&self.signal, &1u64.to_ne_bytes());
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
