//! Access to the bytes of slots, through a recorder or directly: requests by tag, answers in any order.

use super::direct::Direct;
use super::item::PlannedSlot;
use super::live::Live;
use super::read_request::{ReadOutcome, ReadRequest, buffer_of};
use crate::ReaderError;
use holdfast_media::Buffer;
use holdfast_protocol::SharedArea;
use std::ops::Range;

/// The way to the bytes of a ring.
#[derive(Debug)]
pub(crate) enum Access {
    /// Tickets of the ring's recorder.
    Live(Box<Live>),
    /// Straight from its lane.
    Direct(Box<Direct>),
}

impl Access {
    /// The recorder's bird's-eye view, and bytes of each slot's place in it.
    pub(crate) fn view(&self) -> Option<(&SharedArea, usize)> {
        match self {
            Self::Live(live) => live.view(),
            Self::Direct(_) => None,
        }
    }

    /// Most bytes of one read, whole check blocks.
    pub(crate) fn quantum(&self) -> usize {
        match self {
            Self::Live(live) => live.quantum(),
            Self::Direct(_) => super::direct::QUANTUM,
        }
    }

    /// Limit of outstanding reads.
    pub(crate) fn at_once(&self) -> usize {
        match self {
            Self::Live(live) => live.at_once(),
            Self::Direct(_) => super::direct::AT_ONCE,
        }
    }

    /// Limit of reads that are outstanding or not used yet.
    pub(crate) fn depth(&self) -> usize {
        match self {
            Self::Live(live) => live.depth(),
            Self::Direct(_) => super::direct::BUFFERS,
        }
    }

    /// Takes a buffer back.
    pub(crate) fn give(&mut self, buffer: Buffer) {
        let pool = match self {
            Self::Live(live) => live.pool(),
            Self::Direct(direct) => direct.pool(),
        };
        // One of its own goes with its memory.
        let _ = pool.give(buffer);
    }

    /// Whether a slot is in this process' memory, all but its payload at least.
    pub(crate) fn is_at_hand(&self, planned: &PlannedSlot) -> bool {
        match self {
            Self::Live(live) => live.is_taken(planned),
            Self::Direct(direct) => direct.at_hand(planned, 0..0).is_some(),
        }
    }

    /// Header and summary of an open slot that was taken.
    pub(crate) fn head_at_hand(&self, planned: &PlannedSlot) -> Option<Vec<u8>> {
        match self {
            Self::Live(live) => live.head_at_hand(planned),
            Self::Direct(_) => None,
        }
    }

    /// A range of a slot that is in this process' memory, with zeros behind its end.
    pub(crate) fn at_hand(&self, planned: &PlannedSlot, range: Range<usize>) -> Option<Vec<u8>> {
        match self {
            Self::Live(live) => live.at_hand(planned, range),
            Self::Direct(direct) => direct.at_hand(planned, range),
        }
    }

    pub(crate) fn submit(&mut self, tag: u64, want: ReadRequest) -> Result<(), ReaderError> {
        match self {
            Self::Live(live) => live.submit(tag, want),
            Self::Direct(direct) => {
                let buffer = buffer_of(direct.pool(), want.len)?;
                direct.submit(tag, want, buffer);
                Ok(())
            }
        }
    }

    /// The next answer; waits for one only if `wait`.
    pub(crate) fn complete(&mut self, wait: bool) -> Result<Option<(u64, ReadOutcome)>, ReaderError> {
        match self {
            Self::Live(live) => live.complete(wait),
            Self::Direct(direct) => Ok(direct.complete(wait)),
        }
    }
}
