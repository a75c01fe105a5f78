//! Interrupts of a read, and of one slot in it.

use super::read_ahead::BodyError;
use crate::ReaderError;
use std::ops::ControlFlow;

/// The reason to interrupt a read.
#[derive(Debug)]
pub(crate) enum Interrupt {
    /// The sink stopped the read.
    Enough,
    /// Suspected damage in the slot at this place of the plan, after so many delivered rows. A recorder may have taken over the
    /// ring; otherwise it is damage.
    Suspect(usize, u32),
    /// The ring cannot be reached.
    Failed(ReaderError),
}

impl From<ReaderError> for Interrupt {
    fn from(error: ReaderError) -> Self {
        Self::Failed(error)
    }
}

/// Converts the sink's answer: an interrupt if it stops the read.
pub(crate) fn flow(flow: ControlFlow<()>) -> Result<(), Interrupt> {
    match flow {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(Interrupt::Enough),
    }
}

/// The reason to interrupt one slot.
#[derive(Debug)]
pub(crate) enum SlotInterrupt {
    /// The slot has expired.
    Expired,
    /// The whole read is interrupted.
    Stop(Interrupt),
}

impl From<BodyError> for SlotInterrupt {
    fn from(stop: BodyError) -> Self {
        match stop {
            BodyError::Expired => Self::Expired,
            BodyError::Failed(error) => Self::Stop(Interrupt::Failed(error)),
        }
    }
}

/// Converts the sink's answer inside a slot.
#[inline]
pub(crate) fn enough(done: ControlFlow<()>) -> Result<(), SlotInterrupt> {
    match done {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(SlotInterrupt::Stop(Interrupt::Enough)),
    }
}
