//! Writer threads of a file: each does one write at a time, from beginning to end, and fetches the next by itself.

use super::sync::{Condvar, Mutex, MutexGuard, PoisonError, Signal};
use crate::InflightLimiter;
use crate::disk::{Completion, DiskError, Op, Request};
use std::collections::VecDeque;

/// What all of them share with the disk.
pub(super) struct WriterPool {
    state: Mutex<State>,
    /// Rung when a write is there, or no more will come.
    work: Condvar,
    /// Readable when something is done.
    signal: Signal,
}

struct State {
    waiting: VecDeque<Request>,
    done: VecDeque<Completion>,
    limiter: InflightLimiter,
    over: bool,
}

impl WriterPool {
    /// For at most `depth` writes at once.
    pub(super) fn new(depth: usize) -> std::io::Result<Self> {
        let state = State {
            waiting: VecDeque::with_capacity(depth),
            done: VecDeque::with_capacity(depth),
            limiter: InflightLimiter::default(),
            over: false,
        };
        Ok(Self { state: Mutex::new(state), work: Condvar::new(), signal: Signal::new()? })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Readable when something is done.
    pub(super) fn signal(&self) -> &Signal {
        &self.signal
    }

    /// Says which writes take turns.
    pub(super) fn limit_inflight(&self, limiter: InflightLimiter) {
        self.state().limiter = limiter;
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

    pub(super) fn next(&self) -> Option<Request> {
        let mut state = self.state();
        loop {
            let State { waiting, limiter, over, .. } = &mut *state;
            // Whoever ends a turn comes here next: nobody need be woken for the one that follows.
            let first = waiting.iter().position(|request| limiter.begin(request.tag));
            if let Some(request) = first.and_then(|at| waiting.remove(at)) {
                return Some(request);
            }
            if *over {
                return None;
            }
            state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    pub(super) fn done(&self, done: Completion) {
        let mut state = self.state();
        state.limiter.end(done.tag);
        state.done.push_back(done);
        drop(state);
        self.signal.ring();
    }

    /// What one of the threads does; `write` does a write, from beginning to end.
    pub(super) fn work(&self, write: impl Fn(&Op) -> Result<(), DiskError>) {
        while let Some(request) = self.next() {
            let result = write(&request.op);
            self.done(Completion { tag: request.tag, buffer: request.op.into_buffer(), result });
        }
    }
}
