//! SIGINT, SIGTERM and SIGHUP: the first ends the recording well, the second ends the process.

use crate::desk::Bell;
use holdfast_ingest::StopFlag;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::{flag, low_level};
use std::io::{self, Read as _};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread::Builder;

/// Exit code of a second signal, as shells have it for SIGINT.
const AT_ONCE: i32 = 130;

/// Raises `stop` at the first signal and rings `bell`.
pub(crate) fn heed(stop: StopFlag, bell: Bell) -> io::Result<()> {
    let seen = Arc::new(AtomicBool::new(false));
    let (mut read, write) = UnixStream::pair()?;
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // In this order: the first signal finds the flag down.
        flag::register_conditional_shutdown(signal, AT_ONCE, Arc::clone(&seen))?;
        flag::register(signal, Arc::clone(&seen))?;
        low_level::pipe::register(signal, write.try_clone()?)?;
    }
    Builder::new().name("holdfast-signal".to_owned()).stack_size(64 << 10).spawn(move || {
        let mut byte = [0];
        let mut first = true;
        while read.read(&mut byte).is_ok_and(|count| count > 0) {
            // Two signals at the same instant may both have found the flag down.
            if !std::mem::take(&mut first) {
                low_level::exit(AT_ONCE);
            }
            stop.stop();
            bell.ring();
        }
    })?;
    Ok(())
}
