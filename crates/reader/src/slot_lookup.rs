//! Look-ups in one slot: small reads of its head, index, chunks and payload, one after the other.

use super::birds_eye_cache::CachedSlot;
use super::item::PlannedSlot;
use super::read_queue::ReadQueue;
use super::read_request::{ReadOutcome, ReadRequest};
use super::slot_head::{SlotDefect, SlotHead, SlotIndex, head_bytes};
use super::window::PieceBytes;
use crate::ReaderError;
use holdfast_base::{BLOCK, CHECK_BLOCK};
use holdfast_format::{Chunk, SectionKind, Superblock};
use std::collections::VecDeque;
use std::ops::Range;

/// Why something could not be looked up.
#[derive(Debug)]
pub(crate) enum LookupError {
    /// The slot has expired.
    Expired,
    /// It is not what it should be.
    Defect(SlotDefect),
    /// The way to the ring is gone.
    Failed(ReaderError),
}

impl From<SlotDefect> for LookupError {
    fn from(wrong: SlotDefect) -> Self {
        Self::Defect(wrong)
    }
}

impl From<ReaderError> for LookupError {
    fn from(error: ReaderError) -> Self {
        Self::Failed(error)
    }
}

/// A slot whose head has been looked at.
#[derive(Debug)]
pub(crate) struct IndexedSlot {
    planned: PlannedSlot,
    pub(crate) head: SlotHead,
    pub(crate) index: SlotIndex,
    /// The last check block that was read, and where it begins in the payload.
    block: Option<(usize, Vec<u8>)>,
}

/// Reads a range of a slot, several pieces at once; rounding to blocks is done here.
pub(crate) fn bytes(
    queue: &mut ReadQueue,
    planned: &PlannedSlot,
    start: usize,
    end: usize,
) -> Result<Vec<u8>, LookupError> {
    if let Some(bytes) = queue.access.at_hand(planned, start..end) {
        return Ok(bytes);
    }
    let mut all = holdfast_media::vector(end.saturating_sub(start));
    let mut coming = PiecewiseRead::new(queue, planned, start..end);
    while let Some((piece, held)) = coming.next(queue)? {
        all.extend_from_slice(held.bytes().get(piece).unwrap_or_default());
        held.release(queue);
    }
    Ok(all)
}

/// A range of a slot that comes in pieces, in their order; several are under way at once.
#[derive(Debug)]
pub(crate) struct PiecewiseRead {
    range: Range<usize>,
    wants: VecDeque<ReadRequest>,
    under_way: VecDeque<(ReadRequest, u64)>,
}

impl PiecewiseRead {
    pub(crate) fn new(queue: &ReadQueue, planned: &PlannedSlot, range: Range<usize>) -> Self {
        let wants = pieces(queue, planned, range.clone()).collect();
        Self { range, wants, under_way: VecDeque::new() }
    }

    /// The next piece, and where in what is held it lies; after an error there is no more.
    pub(crate) fn next(
        &mut self,
        queue: &mut ReadQueue,
    ) -> Result<Option<(Range<usize>, PieceBytes)>, LookupError> {
        while (self.under_way.is_empty() || !queue.is_busy())
            && let Some(want) = self.wants.pop_front()
        {
            self.under_way.push_back((want, queue.submit(want)?));
        }
        let Some((want, tag)) = self.under_way.pop_front() else { return Ok(None) };
        let miss = match queue.wait(tag)? {
            ReadOutcome::Bytes(buffer) => {
                let from = self.range.start.saturating_sub(want.offset);
                let end = want.len.min(self.range.end - want.offset);
                return Ok(Some((from..end, PieceBytes::Buffer(buffer))));
            }
            ReadOutcome::Expired => LookupError::Expired,
            ReadOutcome::Unreadable(text) => LookupError::Defect(SlotDefect::Damaged(text)),
        };
        self.forget(queue);
        Err(miss)
    }

    /// Nobody wants the rest.
    pub(crate) fn forget(&mut self, queue: &mut ReadQueue) {
        self.wants.clear();
        for (_, tag) in self.under_way.drain(..) {
            queue.forget(tag);
        }
    }
}

/// Asks for as much of a range as may be asked for ahead: [`bytes`] of the same range takes it.
pub(crate) fn ahead(
    queue: &mut ReadQueue,
    planned: &PlannedSlot,
    range: Range<usize>,
) -> Result<(), ReaderError> {
    if queue.access.is_at_hand(planned) {
        return Ok(());
    }
    for want in pieces(queue, planned, range) {
        if !queue.ahead(want)? {
            break;
        }
    }
    Ok(())
}

/// The reads that a range takes.
fn pieces(
    queue: &ReadQueue,
    planned: &PlannedSlot,
    range: Range<usize>,
) -> impl Iterator<Item = ReadRequest> + use<> {
    let (planned, quantum) = (*planned, queue.access.quantum());
    let starts = (range.start / BLOCK * BLOCK..range.end).step_by(quantum);
    starts.map(move |at| planned.want(at, (range.end - at).next_multiple_of(BLOCK).min(quantum)))
}

/// The head of a slot, read where the bird's-eye view does not have it.
pub(crate) fn head(
    queue: &mut ReadQueue,
    superblock: &Superblock,
    planned: &PlannedSlot,
) -> Result<SlotHead, LookupError> {
    match CachedSlot::of(&queue.access, superblock, planned) {
        Some(seen) => Ok(seen.head),
        None => read_head(queue, superblock, planned),
    }
}

/// Reads the head of a slot.
pub(crate) fn read_head(
    queue: &mut ReadQueue,
    superblock: &Superblock,
    planned: &PlannedSlot,
) -> Result<SlotHead, LookupError> {
    let bytes = match queue.access.head_at_hand(planned) {
        Some(bytes) => bytes,
        None => bytes(queue, planned, 0, head_bytes(&superblock.geometry))?,
    };
    Ok(SlotHead::decode(&bytes, superblock, planned.slot, planned.sequence)?)
}

impl IndexedSlot {
    /// Reads the directory behind a head.
    pub(crate) fn new(
        queue: &mut ReadQueue,
        planned: PlannedSlot,
        head: SlotHead,
    ) -> Result<Self, LookupError> {
        let range = head.directory_range()?;
        let bytes = bytes(queue, &planned, range.start, range.end)?;
        Self::at(planned, head, &bytes, range.start)
    }

    /// The same where the bytes that have the directory, from `start` of the slot, are there already.
    pub(crate) fn at(
        planned: PlannedSlot,
        head: SlotHead,
        bytes: &[u8],
        start: usize,
    ) -> Result<Self, LookupError> {
        let index = head.index(bytes, start)?;
        Ok(Self { planned, head, index, block: None })
    }

    /// Reads a chunk.
    pub(crate) fn chunk(&self, queue: &mut ReadQueue, number: usize) -> Result<Chunk, LookupError> {
        let outside = || SlotDefect::Damaged(format!("chunk {number}: there is none"));
        let entry = *self.index.directory.get(number).ok_or_else(outside)?;
        let start = self.head.section(SectionKind::Chunks)?.offset as usize + entry.offset as usize;
        let bytes = bytes(queue, &self.planned, start, start + entry.bytes as usize)?;
        let damaged = |error| SlotDefect::Damaged(format!("chunk {number}: {error}"));
        Ok(Chunk::decode_at(&entry, self.planned.sequence, &bytes).map_err(damaged)?)
    }

    /// Reads a range of the payload, verified.
    pub(crate) fn payload(
        &mut self,
        queue: &mut ReadQueue,
        start: usize,
        end: usize,
        into: &mut Vec<u8>,
    ) -> Result<(), LookupError> {
        let (at, whole) = (self.head.header.payload_offset as usize, self.head.header.payload_bytes as usize);
        if end > whole || start > end {
            return Err(LookupError::Defect(SlotDefect::Damaged(
                "a row: its payload reaches outside".to_owned(),
            )));
        }
        let quantum = (queue.access.quantum() / CHECK_BLOCK * CHECK_BLOCK).max(CHECK_BLOCK);
        let mut from = start;
        while from < end {
            let block = from / CHECK_BLOCK * CHECK_BLOCK;
            let stop = end.next_multiple_of(CHECK_BLOCK).min(block + quantum).min(whole);
            let known = self.block.as_ref().is_some_and(|(at, bytes)| *at <= from && from < at + bytes.len());
            if !known {
                let bytes = bytes(queue, &self.planned, at + block, at + stop)?;
                let mut bad = Vec::new();
                self.index.verify(block, &bytes, &mut bad);
                if let Some(bad) = bad.iter().find(|bad| bad.start < end && start < bad.end) {
                    let text =
                        format!("payload: bytes {} to {} do not match their checksum", bad.start, bad.end);
                    return Err(LookupError::Defect(SlotDefect::Damaged(text)));
                }
                if bad.is_empty() {
                    self.block = Some((block, bytes));
                } else {
                    let rest = end.min(block + bytes.len()) - block;
                    into.extend_from_slice(&bytes[from - block..rest]);
                    from = block + rest;
                    continue;
                }
            }
            let Some((block, bytes)) = &self.block else { return Ok(()) };
            let rest = (end - block).min(bytes.len());
            into.extend_from_slice(&bytes[from - block..rest]);
            from = block + rest;
        }
        Ok(())
    }
}
