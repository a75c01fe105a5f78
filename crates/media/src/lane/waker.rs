//! Waker of a thread that waits for work and for its disk at the same time.

use rustix::event::{EventfdFlags, PollFd, PollFlags};
use std::os::fd::{BorrowedFd, OwnedFd};

/// An event counter of the kernel: a wake-up between "nothing to do" and falling asleep is not lost.
#[derive(Debug)]
pub(super) struct Waker(OwnedFd);

impl Waker {
    pub(super) fn new() -> std::io::Result<Self> {
        Ok(Self(rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?))
    }

    /// Wakes the sleeper, or keeps it from falling asleep once.
    pub(super) fn wake(&self) {
        // It fails only where the counter is full: a wake-up is pending then.
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }

    /// Sleeps until somebody wakes it or `ready` is readable. May return without either.
    pub(super) fn wait(&self, ready: Option<BorrowedFd<'_>>) {
        let waker = PollFd::new(&self.0, PollFlags::IN);
        let _ = match &ready {
            Some(ready) => rustix::event::poll(&mut [waker, PollFd::new(ready, PollFlags::IN)], None),
            None => rustix::event::poll(&mut [waker], None),
        };
        // Taken back before the caller looks for work: what is put there later wakes it anew.
        let _ = rustix::io::read(&self.0, &mut [0u8; 8]);
    }
}
