//! Interruption of a command by a signal.

use holdfast_base::failure::{Failure, Result};
use holdfast_base::{Interrupt, Interrupts, ignores_hang_ups};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Builder;
use std::time::Instant;

/// Exit code of a second signal, as shells have it for SIGINT.
const AT_ONCE: i32 = 130;

/// A flag that the first of SIGHUP, SIGINT and SIGTERM sets; a second one ends the process at once. A SIGHUP that the program
/// was started to ignore (`nohup`) stays ignored.
pub(crate) fn interruption() -> Result<Arc<AtomicBool>> {
    interruption_by(&[SIGHUP, SIGINT, SIGTERM])
}

/// A flag for a server or a proof: the first of SIGINT and SIGTERM sets it. SIGHUP is ignored: they outlive their terminal.
pub(crate) fn server_interruption() -> Result<Arc<AtomicBool>> {
    ignore_hang_ups()?;
    interruption_by(&[SIGINT, SIGTERM])
}

/// Ignores SIGHUP: a handler takes the place of its default action, which ends the process.
pub(crate) fn ignore_hang_ups() -> Result<()> {
    let failed = |error| Failure::failed(format_args!("cannot ignore SIGHUP: {error}"));
    signal_hook::flag::register(SIGHUP, Arc::default()).map(drop).map_err(failed)
}

/// Signals of a list that the program handles: all, but a SIGHUP that it was started to ignore.
pub(crate) fn handled(signals: &[i32]) -> Vec<i32> {
    let is_ignored = ignores_hang_ups(&fs::read_to_string("/proc/self/status").unwrap_or_default());
    signals.iter().copied().filter(|signal| !(is_ignored && *signal == SIGHUP)).collect()
}

/// The same for these signals.
fn interruption_by(signals: &[i32]) -> Result<Arc<AtomicBool>> {
    let failed = |error| Failure::failed(format_args!("cannot wait for signals: {error}"));
    let end = Arc::new(AtomicBool::new(false));
    let mut signals = Signals::new(handled(signals)).map_err(failed)?;
    let ends = Arc::clone(&end);
    let handle = move || {
        let mut interrupts = Interrupts::default();
        for _ in signals.forever() {
            match interrupts.count(Instant::now()) {
                Interrupt::First => ends.store(true, Ordering::Relaxed),
                Interrupt::Repeated => {}
                Interrupt::Second => low_level::exit(AT_ONCE),
            }
        }
    };
    Builder::new().name("signals".to_owned()).spawn(handle).map_err(failed)?;
    Ok(end)
}
