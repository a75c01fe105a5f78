//! Stop flag of sources, and waits for input that the flag interrupts.

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

#[derive(Debug)]
struct StopState {
    raised: AtomicBool,
    event: OwnedFd,
}

/// Once raised, every source that shares it ends soon, also one that waits for input. Clones share it.
#[derive(Clone, Debug)]
pub struct StopFlag {
    shared: Arc<StopState>,
}

impl StopFlag {
    /// A flag that is down.
    pub fn new() -> io::Result<Self> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self { shared: Arc::new(StopState { raised: AtomicBool::new(false), event }) })
    }

    /// Raises it; it stays up.
    pub fn stop(&self) {
        self.shared.raised.store(true, Ordering::SeqCst);
        // The counter cannot overflow by as many calls as a program makes, and nothing else can go wrong.
        let _ = rustix::io::write(&self.shared.event, &1u64.to_ne_bytes());
    }

    /// Whether it is up.
    pub fn is_stopped(&self) -> bool {
        self.shared.raised.load(Ordering::SeqCst)
    }
}

impl AsFd for StopFlag {
    /// Readable once the flag is up.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.shared.event.as_fd()
    }
}

/// What ended a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Woken {
    /// There is input, or an end or error to be read.
    Ready,
    Stopped,
    TimedOut,
}

/// Waits until `input` is readable, the flag is raised or the time is over.
pub(crate) fn wait(input: impl AsFd, stop: &StopFlag, at_most: Option<Duration>) -> io::Result<Woken> {
    let input = input.as_fd();
    let mut fds = [PollFd::new(&input, PollFlags::IN), PollFd::new(stop, PollFlags::IN)];
    match poll(&mut fds, at_most.map(timespec).as_ref()) {
        // A signal: the caller looks around and comes back.
        Ok(0) | Err(Errno::INTR) => Ok(Woken::TimedOut),
        Ok(_) if !fds[1].revents().is_empty() => Ok(Woken::Stopped),
        Ok(_) => Ok(Woken::Ready),
        Err(error) => Err(error.into()),
    }
}

/// Whether `input` has bytes, or a connection, that are taken without waiting, whatever the flag says. An end alone is
/// neither.
pub(crate) fn has_input(input: impl AsFd) -> io::Result<bool> {
    let input = input.as_fd();
    let mut fds = [PollFd::new(&input, PollFlags::IN)];
    loop {
        match poll(&mut fds, Some(&timespec(Duration::ZERO))) {
            Ok(_) => return Ok(fds[0].revents().contains(PollFlags::IN)),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

pub(crate) fn timespec(span: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(span.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: span.subsec_nanos().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_raised_flag_ends_a_wait_for_input_that_never_comes() {
        let (silent, _writer) = rustix::pipe::pipe().unwrap();
        let stop = StopFlag::new().unwrap();
        let waiter = {
            let stop = stop.clone();
            std::thread::spawn(move || wait(&silent, &stop, None).unwrap())
        };
        stop.stop();
        assert_eq!(waiter.join().unwrap(), Woken::Stopped);
        assert!(stop.is_stopped());
    }
}
