//! Thread of a source. However it ends (normally, by an error or by a panic), the ring is told.

use super::{Source, SourceError, StopFlag};
use crate::Cause;
use crate::producer::Producer;
use std::any::Any;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::{Builder, JoinHandle};

/// How the names of sources' threads begin, and no others.
const THREAD: &str = "src ";

/// Whether a thread of this name is one that [`spawn`] started: what it panics of ends that source, and nothing else.
pub fn is_source_thread(name: &str) -> bool {
    name.starts_with(THREAD)
}

/// Why a source ended without an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceEnd {
    /// Its input is over.
    Ended,
    /// It was told to stop.
    Stopped,
    /// The capture thread is gone.
    CaptureGone,
}

/// A source's thread.
#[derive(Debug)]
pub struct Running {
    thread: JoinHandle<Result<SourceEnd, SourceError>>,
    name: String,
}

impl Running {
    /// Whether the thread is done.
    pub fn is_finished(&self) -> bool {
        self.thread.is_finished()
    }

    /// Waits for the end of the thread.
    pub fn join(self) -> Result<SourceEnd, SourceError> {
        self.thread
            .join()
            .unwrap_or_else(|panic| Err(SourceError::Panicked { name: self.name, message: message(&*panic) }))
    }
}

/// Runs `source` on a thread of its own, which first calls `at_start` (to pin itself to a core, for example). When
/// the source ends, by a panic too, what was lost by that is counted and all that is left is sent.
pub fn spawn(
    name: &str,
    source: Box<dyn Source>,
    mut out: Producer,
    stop: StopFlag,
    at_start: impl FnOnce() + Send + 'static,
) -> io::Result<Running> {
    let owner = name.to_owned();
    let source_name = owner.clone();
    let thread = Builder::new().name(format!("{THREAD}{name}")).spawn(move || {
        at_start();
        let end = catch_unwind(AssertUnwindSafe(|| source.run(&mut out, &stop))).unwrap_or_else(|panic| {
            Err(SourceError::Panicked { name: source_name, message: message(&*panic) })
        });
        if let Err(error) = &end
            && !error.is_accounted_for()
        {
            out.abort_element(Cause::SourceFailed);
            // From when something arrived last: what came since is what may be missing.
            let since = out.now();
            let now = out.stamp();
            out.unknown_loss(Cause::SourceFailed, since, now);
        }
        // Without a capture thread there is nobody left to tell.
        let _ = out.finish();
        end
    })?;
    Ok(Running { thread, name: owner })
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
}
