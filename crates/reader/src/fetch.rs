//! Small reads of one slot, one after the other: for what is looked up rather than read through.

use super::access::{Got, Want};
use super::birds_eye_cache::Seen;
use super::item::PlannedSlot;
use super::pump::Pump;
use super::slot::{Head, Index, Wrong, head_bytes};
use super::window::Held;
use holdfast_base::{BLOCK, CHECK_BLOCK};
use holdfast_format::{Chunk, SectionKind, Superblock};
use holdfast_protocol::LinkError;
use std::collections::VecDeque;
use std::ops::Range;

/// Why something could not be looked up.
#[derive(Debug)]
pub(crate) enum Miss {
    /// The slot has expired.
    Expired,
    /// It is not what it should be.
    Wrong(Wrong),
    /// The way to the ring is gone.
    Failed(LinkError),
}

impl From<Wrong> for Miss {
    fn from(wrong: Wrong) -> Self {
        Self::Wrong(wrong)
    }
}

impl From<LinkError> for Miss {
    fn from(error: LinkError) -> Self {
        Self::Failed(error)
    }
}

/// A slot whose head has been looked at.
#[derive(Debug)]
pub(crate) struct Looked {
    planned: PlannedSlot,
    pub(crate) head: Head,
    pub(crate) index: Index,
    /// The last check block that was read, and where it begins in the payload.
    block: Option<(usize, Vec<u8>)>,
}

/// Reads a range of a slot, several pieces at once; rounding to blocks is done here.
pub(crate) fn bytes(
    pump: &mut Pump,
    planned: &PlannedSlot,
    start: usize,
    end: usize,
) -> Result<Vec<u8>, Miss> {
    if let Some(bytes) = pump.access.at_hand(planned, start..end) {
        return Ok(bytes);
    }
    let mut all = holdfast_media::vector(end.saturating_sub(start));
    let mut coming = Coming::new(pump, planned, start..end);
    while let Some((piece, held)) = coming.next(pump)? {
        all.extend_from_slice(held.bytes().get(piece).unwrap_or_default());
        held.release(pump);
    }
    Ok(all)
}

/// A range of a slot that comes in pieces, in their order; several are under way at once.
#[derive(Debug)]
pub(crate) struct Coming {
    range: Range<usize>,
    wants: VecDeque<Want>,
    under_way: VecDeque<(Want, u64)>,
}

impl Coming {
    pub(crate) fn new(pump: &Pump, planned: &PlannedSlot, range: Range<usize>) -> Self {
        let wants = pieces(pump, planned, range.clone()).collect();
        Self { range, wants, under_way: VecDeque::new() }
    }

    /// The next piece, and where in what is held it lies; after an error there is no more.
    pub(crate) fn next(&mut self, pump: &mut Pump) -> Result<Option<(Range<usize>, Held)>, Miss> {
        while (self.under_way.is_empty() || !pump.is_busy())
            && let Some(want) = self.wants.pop_front()
        {
            self.under_way.push_back((want, pump.submit(want)?));
        }
        let Some((want, tag)) = self.under_way.pop_front() else { return Ok(None) };
        let miss = match pump.wait(tag)? {
            Got::Bytes(buffer) => {
                let from = self.range.start.saturating_sub(want.offset);
                let end = want.len.min(self.range.end - want.offset);
                return Ok(Some((from..end, Held::Buffer(buffer))));
            }
            Got::Expired => Miss::Expired,
            Got::Unreadable(text) => Miss::Wrong(Wrong::Damaged(text)),
        };
        self.forget(pump);
        Err(miss)
    }

    /// Nobody wants the rest.
    pub(crate) fn forget(&mut self, pump: &mut Pump) {
        self.wants.clear();
        for (_, tag) in self.under_way.drain(..) {
            pump.forget(tag);
        }
    }
}

/// Asks for as much of a range as may be asked for ahead: [`bytes`] of the same range takes it.
pub(crate) fn ahead(pump: &mut Pump, planned: &PlannedSlot, range: Range<usize>) -> Result<(), LinkError> {
    if pump.access.is_at_hand(planned) {
        return Ok(());
    }
    for want in pieces(pump, planned, range) {
        if !pump.ahead(want)? {
            break;
        }
    }
    Ok(())
}

/// The reads that a range takes.
fn pieces(pump: &Pump, planned: &PlannedSlot, range: Range<usize>) -> impl Iterator<Item = Want> + use<> {
    let (planned, quantum) = (*planned, pump.access.quantum());
    let starts = (range.start / BLOCK * BLOCK..range.end).step_by(quantum);
    starts.map(move |at| planned.want(at, (range.end - at).next_multiple_of(BLOCK).min(quantum)))
}

/// The head of a slot, read where the bird's-eye view does not have it.
pub(crate) fn head(pump: &mut Pump, superblock: &Superblock, planned: &PlannedSlot) -> Result<Head, Miss> {
    match Seen::of(&pump.access, superblock, planned) {
        Some(seen) => Ok(seen.head),
        None => read_head(pump, superblock, planned),
    }
}

/// Reads the head of a slot.
pub(crate) fn read_head(
    pump: &mut Pump,
    superblock: &Superblock,
    planned: &PlannedSlot,
) -> Result<Head, Miss> {
    let bytes = match pump.access.head_at_hand(planned) {
        Some(bytes) => bytes,
        None => bytes(pump, planned, 0, head_bytes(&superblock.geometry))?,
    };
    Ok(Head::decode(&bytes, superblock, planned.slot, planned.sequence)?)
}

impl Looked {
    /// Reads the directory behind a head.
    pub(crate) fn new(pump: &mut Pump, planned: PlannedSlot, head: Head) -> Result<Self, Miss> {
        let range = head.directory_range()?;
        let bytes = bytes(pump, &planned, range.start, range.end)?;
        Self::at(planned, head, &bytes, range.start)
    }

    /// The same where the bytes that have the directory, from `start` of the slot, are there already.
    pub(crate) fn at(planned: PlannedSlot, head: Head, bytes: &[u8], start: usize) -> Result<Self, Miss> {
        let index = head.index(bytes, start)?;
        Ok(Self { planned, head, index, block: None })
    }

    /// Reads a chunk.
    pub(crate) fn chunk(&self, pump: &mut Pump, number: usize) -> Result<Chunk, Miss> {
        let outside = || Wrong::Damaged(format!("chunk {number}: there is none"));
        let entry = *self.index.directory.get(number).ok_or_else(outside)?;
        let start = self.head.section(SectionKind::Chunks)?.offset as usize + entry.offset as usize;
        let bytes = bytes(pump, &self.planned, start, start + entry.bytes as usize)?;
        let damaged = |error| Wrong::Damaged(format!("chunk {number}: {error}"));
        Ok(Chunk::decode_at(&entry, self.planned.sequence, &bytes).map_err(damaged)?)
    }

    /// Reads a range of the payload, verified.
    pub(crate) fn payload(
        &mut self,
        pump: &mut Pump,
        start: usize,
        end: usize,
        into: &mut Vec<u8>,
    ) -> Result<(), Miss> {
        let (at, whole) = (self.head.header.payload_offset as usize, self.head.header.payload_bytes as usize);
        if end > whole || start > end {
            return Err(Miss::Wrong(Wrong::Damaged("a row: its payload reaches outside".to_owned())));
        }
        let quantum = (pump.access.quantum() / CHECK_BLOCK * CHECK_BLOCK).max(CHECK_BLOCK);
        let mut from = start;
        while from < end {
            let block = from / CHECK_BLOCK * CHECK_BLOCK;
            let stop = end.next_multiple_of(CHECK_BLOCK).min(block + quantum).min(whole);
            let known = self.block.as_ref().is_some_and(|(at, bytes)| *at <= from && from < at + bytes.len());
            if !known {
                let bytes = bytes(pump, &self.planned, at + block, at + stop)?;
                let mut bad = Vec::new();
                self.index.verify(block, &bytes, &mut bad);
                if let Some(bad) = bad.iter().find(|bad| bad.start < end && start < bad.end) {
                    let text =
                        format!("payload: bytes {} to {} do not match their checksum", bad.start, bad.end);
                    return Err(Miss::Wrong(Wrong::Damaged(text)));
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
