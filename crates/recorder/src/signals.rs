//! Handlers of SIGINT, SIGTERM and SIGHUP: the first signal ends the recording well, the second ends the process.

use crate::control::ControlWaker;
use holdfast_ingest::StopFlag;
use holdfast_media::drop_privileges;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level;
use std::io;
use std::thread::Builder;
use std::time::{Duration, Instant};

/// Exit code of a second signal, as shells have it for SIGINT.
const AT_ONCE: i32 = 130;
/// The same signal again within this is the same order: `timeout`, `sudo` and shells send theirs to the process and to
/// its group. No person is that quick.
const ECHO: Duration = Duration::from_millis(250);

/// What a signal means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SignalAction {
    End,
    /// The one before, once more.
    Echo,
    AtOnce,
}

/// The first signal, once there was one.
#[derive(Debug, Default)]
struct SignalState(Option<(i32, Instant)>);

impl SignalState {
    fn take(&mut self, signal: i32, now: Instant) -> SignalAction {
        match self.0 {
            None => {
                self.0 = Some((signal, now));
                SignalAction::End
            }
            Some((first, at)) if first == signal && now.duration_since(at) < ECHO => SignalAction::Echo,
            Some(_) => SignalAction::AtOnce,
        }
    }
}

/// Raises `stop` at the first signal and wakes the control thread.
pub(crate) fn install_handlers(stop: StopFlag, waker: ControlWaker) -> io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    Builder::new().name("holdfast-signal".to_owned()).stack_size(64 << 10).spawn(move || {
        // It was started before the others: what it cannot give up they cannot either, and that is told.
        let _ = drop_privileges();
        let mut heard = SignalState::default();
        for signal in signals.forever() {
            match heard.take(signal, Instant::now()) {
                SignalAction::End => {
                    stop.stop();
                    waker.wake();
                }
                SignalAction::Echo => {}
                SignalAction::AtOnce => low_level::exit(AT_ONCE),
            }
        }
    })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_signal_at_the_same_instant_is_one_order_and_any_other_one_is_the_second() {
        let mut heard = SignalState::default();
        let now = Instant::now();
        assert_eq!(heard.take(SIGINT, now), SignalAction::End);
        assert_eq!(heard.take(SIGINT, now), SignalAction::Echo, "to the process and to its group");
        assert_eq!(heard.take(SIGINT, now + Duration::from_millis(249)), SignalAction::Echo);
        assert_eq!(heard.take(SIGTERM, now), SignalAction::AtOnce);
        assert_eq!(heard.take(SIGINT, now + ECHO), SignalAction::AtOnce, "counted from the first one");
    }
}
