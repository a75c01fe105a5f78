//! Handlers of SIGINT, SIGTERM and SIGHUP: the first signal ends the recording well, the second ends the process.

use crate::control::ControlWaker;
use holdfast_base::{Interrupt, Interrupts, ignores_hang_ups};
use holdfast_ingest::StopFlag;
use holdfast_media::drop_privileges;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level;
use std::fs;
use std::io;
use std::thread::Builder;
use std::time::Instant;

/// Exit code of a second signal, as shells have it for SIGINT.
const AT_ONCE: i32 = 130;

/// Raises `stop` at the first signal and wakes the control thread. A SIGHUP that the recorder was started to ignore (`nohup`)
/// stays ignored.
pub(crate) fn install_handlers(stop: StopFlag, waker: ControlWaker) -> io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    if !ignores_hang_ups(&fs::read_to_string("/proc/self/status").unwrap_or_default()) {
        signals.add_signal(SIGHUP)?;
    }
    Builder::new().name("holdfast-signal".to_owned()).stack_size(64 << 10).spawn(move || {
        // It was started before the others: what it cannot give up they cannot either, and that is told.
        let _ = drop_privileges();
        let mut interrupts = Interrupts::default();
        for _ in signals.forever() {
            match interrupts.count(Instant::now()) {
                Interrupt::First => {
                    stop.stop();
                    waker.wake();
                }
                Interrupt::Repeated => {}
                Interrupt::Second => low_level::exit(AT_ONCE),
            }
        }
    })?;
    Ok(())
}
