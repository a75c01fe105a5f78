//! Observer of a condition hold: it hears what happens to the hold, and asks for its end.

use holdfast_base::ByteSize;
use holdfast_base::failure::Result;
use holdfast_client::json::{DistilledSlots, HoldProgress, UnseenElements};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Event of a condition hold.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// The hold was given.
    Held {
        /// Slots that it keeps.
        progress: HoldProgress,
        /// Bytes of these slots.
        bytes: ByteSize,
    },
    /// The hold has searched more, or keeps more, and this would survive a crash.
    Extended(HoldProgress),
    /// Elements expired before they were searched. People are told by a notice, too.
    Unseen(UnseenElements<'a>),
    /// Slots of the hold were distilled.
    Distilled(DistilledSlots),
    /// The hold was interrupted, and can be resumed.
    Left {
        /// Number of the hold.
        id: u64,
        /// Path of the ring.
        ring: &'a Path,
    },
}

/// Observer of a condition hold.
pub trait Observer {
    /// Takes an event; an error ends the hold's evaluation.
    fn event(&mut self, event: &Event<'_>) -> Result<()>;

    /// Passes on what was taken so far; an error ends the hold's evaluation.
    fn flush(&mut self) -> Result<()>;

    /// The flag that asks for an end. It is asked for once, when the hold has been given.
    fn interruption(&mut self) -> Result<Arc<AtomicBool>>;
}

/// Observer without interest in events, which never asks for an end.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unobserved;

impl Observer for Unobserved {
    fn event(&mut self, _: &Event<'_>) -> Result<()> {
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }

    fn interruption(&mut self) -> Result<Arc<AtomicBool>> {
        Ok(Arc::default())
    }
}
