//! Wall time of calls: a thread that advances the engine's epoch, and ends the process when the scan is gone.

use rustix::event::{PollFd, PollFlags, Timespec};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;
use wasmtime::Engine;

/// Shortest period between two epochs: a shorter one costs more time than it saves.
const LEAST_TICK: Duration = Duration::from_millis(1);
/// Longest period between two epochs, by which a deadline can be missed.
const MOST_TICK: Duration = Duration::from_millis(50);

/// Conversion of wall time to epochs of the engine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    tick: Duration,
}

impl Clock {
    /// Chooses a period of a twentieth of the shortest time that is limited.
    pub(crate) fn for_time(shortest: Duration) -> Self {
        Self { tick: (shortest / 20).clamp(LEAST_TICK, MOST_TICK) }
    }

    /// Number of epochs that last at least `time`.
    pub(crate) fn ticks(self, time: Duration) -> u64 {
        let ticks = time.as_nanos().div_ceil(self.tick.as_nanos().max(1));
        // The current epoch may be about to end.
        u64::try_from(ticks).unwrap_or(u64::MAX / 2).saturating_add(1)
    }

    /// Advances the epoch of `engine` for ever; exits the process when the other end of `socket` closes.
    pub(crate) fn run(self, engine: Engine, socket: Option<OwnedFd>) -> std::io::Result<()> {
        let thread = std::thread::Builder::new().name("epochs".to_owned()).stack_size(256 << 10);
        let (begun, started) = std::sync::mpsc::channel();
        thread.spawn(move || {
            // The receiver waits for this.
            let _ = begun.send(());
            loop {
                self.wait(socket.as_ref());
                engine.increment_epoch();
            }
        })?;
        // The first steps of a thread need system calls that are forbidden later.
        started.recv().map_err(std::io::Error::other)
    }

    fn wait(self, socket: Option<&OwnedFd>) {
        let Some(socket) = socket else { return std::thread::sleep(self.tick) };
        let mut events = [PollFd::from_borrowed_fd(socket.as_fd(), PollFlags::RDHUP)];
        let time = Timespec::try_from(self.tick).ok();
        match rustix::event::poll(&mut events, time.as_ref()) {
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            // The scan is gone: nobody reads an answer.
            Ok(_) => std::process::exit(0),
            Err(_) => std::thread::sleep(self.tick),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn epochs_last_at_least_the_time() {
        for millis in [1, 7, 50, 1000, 3_600_000] {
            let time = Duration::from_millis(millis);
            let clock = Clock::for_time(time);
            assert!(clock.tick * u32::try_from(clock.ticks(time) - 1).unwrap() >= time, "{millis}");
        }
        assert_eq!(Clock::for_time(Duration::from_secs(10)).ticks(Duration::from_secs(1)), 21);
    }
}
