//! Interruption of a command by a signal.

use holdfast_base::failure::{Failure, Result};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A flag that the first signal sets which asks for an end; a second signal ends the process at once.
pub(crate) fn interruption() -> Result<Arc<AtomicBool>> {
    let end = Arc::new(AtomicBool::new(false));
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&end))
            .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&end)))
            .map_err(|error| Failure::failed(format_args!("cannot wait for signals: {error}")))?;
    }
    Ok(end)
}
