//! Batch: one buffer of a silo with several whole items, or with a part of one.

use crate::item::{Container, Item};
use crate::module::{Block, Piece};
use holdfast_media::Buffer;
use std::ops::{Deref, DerefMut, Range};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Ordinal and arrival of an element.
pub(crate) type Stamp = Option<(u64, i64)>;

/// Buffer of a batch.
#[derive(Debug)]
pub(crate) enum Held {
    /// Buffer of a silo.
    Pooled(Buffer),
    /// Buffer of a long line, taken from the reserve.
    Long(Vec<u8>),
}

impl Deref for Held {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Pooled(buffer) => buffer,
            Self::Long(bytes) => bytes,
        }
    }
}

impl DerefMut for Held {
    fn deref_mut(&mut self) -> &mut [u8] {
        match self {
            Self::Pooled(buffer) => buffer,
            Self::Long(bytes) => bytes,
        }
    }
}

/// Item that a batch holds whole.
#[derive(Clone, Debug)]
pub(crate) struct Span {
    pub(crate) container: Arc<Container>,
    pub(crate) stamp: Stamp,
    pub(crate) bytes: Range<usize>,
}

/// Part of an item that exceeds a buffer.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) container: Arc<Container>,
    pub(crate) stamp: Stamp,
    pub(crate) bytes: Range<usize>,
    /// Offset of the first of these bytes in the item.
    pub(crate) offset: u64,
    /// Bytes that this part answers for, as a range of the buffer.
    pub(crate) own: Range<usize>,
    pub(crate) first: bool,
    pub(crate) last: bool,
    /// Piece of one long line that the part is.
    pub(crate) piece: Option<Piece>,
    /// Reason why the rest of the item cannot be read.
    pub(crate) failed: Option<String>,
}

/// Contents of a batch.
#[derive(Debug)]
pub(crate) enum Contents {
    Whole(Vec<Span>),
    Part(Part),
}

/// Order of a batch among those of one lane.
#[derive(Clone, Debug)]
pub(crate) struct Ticket {
    pub(crate) lane: Arc<LaneId>,
    pub(crate) number: u64,
}

/// Sequence of batches whose results keep their order.
#[derive(Debug)]
pub(crate) struct LaneId {
    pub(crate) id: u64,
    /// True if the lane has one item, false if it has all of a stream.
    pub(crate) is_single: bool,
    /// True once a module has seen enough of the lane's only item.
    skip: AtomicBool,
}

impl LaneId {
    pub(crate) fn new(id: u64, is_single: bool) -> Self {
        Self { id, is_single, skip: AtomicBool::new(false) }
    }

    pub(crate) fn skip(&self) {
        self.skip.store(self.is_single, Ordering::Relaxed);
    }

    pub(crate) fn is_skipped(&self) -> bool {
        self.skip.load(Ordering::Relaxed)
    }
}

/// Filled buffer on its way to a worker.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) silo: usize,
    pub(crate) buffer: Held,
    pub(crate) contents: Contents,
    /// `None`: its results need no order.
    pub(crate) ticket: Option<Ticket>,
}

pub(crate) fn item(container: &Arc<Container>, stamp: Stamp) -> Item<'_> {
    Item {
        container,
        ordinal: stamp.map(|(ordinal, _)| ordinal),
        arrival_ns: stamp.map(|(_, arrival)| arrival),
    }
}

impl Span {
    pub(crate) fn block<'a>(&'a self, buffer: &'a [u8]) -> Block<'a> {
        let bytes = &buffer[self.bytes.clone()];
        Block {
            item: item(&self.container, self.stamp),
            bytes,
            offset: 0,
            own: 0..bytes.len(),
            first: true,
            last: true,
            piece: None,
        }
    }
}

impl Part {
    pub(crate) fn block<'a>(&'a self, buffer: &'a [u8]) -> Block<'a> {
        let start = self.bytes.start;
        Block {
            item: item(&self.container, self.stamp),
            bytes: &buffer[self.bytes.clone()],
            offset: self.offset,
            own: self.own.start - start..self.own.end - start,
            first: self.first,
            last: self.last,
            piece: self.piece,
        }
    }
}
