//! Completion signal for a thread that polls several sources.

use rustix::event::{EventfdFlags, eventfd};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// An event counter of the kernel: readable from a ring until it is hushed, whoever looks in between.
#[derive(Debug)]
pub(super) struct Signal(OwnedFd);

impl Signal {
    pub(super) fn new() -> std::io::Result<Self> {
        Ok(Self(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?))
    }

    /// Makes it readable.
    pub(super) fn ring(&self) {
        // It fails only where the counter is full: then it is readable already.
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }

    /// Takes that back. To be called before looking at what is done: what is done later rings anew.
    pub(super) fn hush(&self) {
        let _ = rustix::io::read(&self.0, &mut [0u8; 8]);
    }
}

impl AsFd for Signal {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
