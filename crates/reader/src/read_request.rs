//! Request for a range of a slot's bytes, and its outcome.

use crate::ReaderError;
use holdfast_base::{CHECK_BLOCK, Sequence, SlotNo};
use holdfast_media::{Buffer, BufferPool};

/// A request for a range of a slot; offset and length are whole blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReadRequest {
    pub(crate) sequence: Sequence,
    /// The slot's place; `None` if it is not on the medium.
    pub(crate) slot: Option<SlotNo>,
    pub(crate) offset: usize,
    pub(crate) len: usize,
}

/// The outcome of a read.
#[derive(Debug)]
pub(crate) enum ReadOutcome {
    /// The bytes, at the buffer's start.
    Bytes(Buffer),
    /// The slot has expired.
    Expired,
    /// The device could not read there.
    Unreadable(String),
}

/// A buffer of at least `len` bytes.
pub(crate) fn buffer_of(pool: &mut BufferPool, len: usize) -> Result<Buffer, ReaderError> {
    // Small ones are not worth a whole quantum.
    if len > CHECK_BLOCK * 4
        && len <= pool.stride()
        && let Some(buffer) = pool.take()
    {
        return Ok(buffer);
    }
    Ok(Buffer::aligned(len)?)
}
