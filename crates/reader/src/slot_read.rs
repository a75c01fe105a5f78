//! Read of one slot: the chunks that a selection needs, the reads for them in the order of their use, and the bytes received.

use super::item::{PlannedSlot, Selection};
use super::read_queue::ReadQueue;
use super::read_request::ReadRequest;
use super::slot_head::{SlotDefect, SlotHead, SlotIndex, chunk_may_have, may_have};
use super::window::Window;
use holdfast_base::{BLOCK, CHECK_BLOCK, StreamId};
use holdfast_format::{Chunk, DirectoryEntry, Row, SectionKind};
use std::collections::VecDeque;
use std::ops::Range;

/// Bytes of chunks that are read in one go and kept: they lie behind the payload that they tell of, and a drive with a
/// head goes there and back once for so many.
const GATHERED: usize = 16 << 20;

/// Which part of a slot a read belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SlotPart {
    /// Chunks; counted from the slot's start.
    Chunks,
    /// Payload; counted from the payload's start.
    Payload,
}

/// A read: where it belongs, and its bytes without what rounding added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PieceRead {
    pub(crate) part: SlotPart,
    pub(crate) start: usize,
    pub(crate) len: usize,
    pub(crate) want: ReadRequest,
    /// Whether the next one belongs to the same group of chunks.
    pub(crate) more: bool,
}

/// A slot that is being read.
#[derive(Debug)]
pub(crate) struct SlotRead {
    pub(crate) planned: PlannedSlot,
    pub(crate) head: SlotHead,
    pub(crate) index: SlotIndex,
    /// The stream of each dictionary entry that is wanted.
    pub(crate) wanted: Vec<Option<StreamId>>,
    /// The chunks to look at, by their place in the directory.
    pub(crate) chunks: Vec<usize>,
    /// Reads that have not been asked for.
    pub(crate) units: VecDeque<PieceRead>,
    /// Reads that have.
    pub(crate) sent: VecDeque<(u64, PieceRead)>,
    pub(crate) chunk_window: Window,
    pub(crate) payload_window: Window,
    /// Payload before this is not wanted any more.
    pub(crate) payload_from: usize,
    /// Damaged stretches of the payload, as far as it has come.
    pub(crate) bad: Vec<Range<usize>>,
    /// How many of them have been told.
    pub(crate) told: usize,
}

impl SlotRead {
    /// Decides what to look at, and which reads that takes.
    pub(crate) fn new(
        planned: PlannedSlot,
        head: SlotHead,
        index: SlotIndex,
        selection: &Selection,
    ) -> Result<Self, SlotDefect> {
        let wanted: Vec<Option<StreamId>> = head
            .summary
            .entries
            .iter()
            .map(|entry| may_have(entry, selection).then_some(entry.stream))
            .collect();
        let gaps = head.summary.entries.iter().any(|entry| entry.gaps > 0 && selection.wants(entry.stream));
        let touches = |entry: &DirectoryEntry| {
            wanted
                .iter()
                .enumerate()
                .any(|(number, stream)| stream.is_some() && entry.may_have(number as u16))
        };
        let chunks = index.directory.iter().enumerate();
        let chunks = chunks.filter(|(_, entry)| touches(entry) && chunk_may_have(entry, selection, gaps));
        let chunks = chunks.map(|(number, _)| number).collect();
        let (units, sent) = (VecDeque::new(), VecDeque::new());
        let (chunk_window, payload_window) = (Window::default(), Window::default());
        let work = Self {
            planned,
            head,
            index,
            wanted,
            chunks,
            units,
            sent,
            chunk_window,
            payload_window,
            payload_from: 0,
            bad: Vec::new(),
            told: 0,
        };
        work.chunks_at()?;
        Ok(work)
    }

    /// Where the chunks section begins in the slot.
    pub(crate) fn chunks_at(&self) -> Result<usize, SlotDefect> {
        Ok(self.head.section(SectionKind::Chunks)?.offset as usize)
    }

    /// Where a chunk is in the slot.
    pub(crate) fn chunk_range(&self, number: usize) -> Range<usize> {
        let at = self.chunks_at().unwrap_or(0);
        self.index.directory.get(number).map_or(0..0, |entry| {
            let start = at + entry.offset as usize;
            start..start + entry.bytes as usize
        })
    }

    /// Leaves out the chunks that end at or before row `first`: they have been dealt with.
    pub(crate) fn skip_rows(&mut self, first: u32) {
        let directory = &self.index.directory;
        self.chunks.retain(|number| directory[*number].first_row + directory[*number].rows > first);
    }

    /// Takes the chunks out of `bytes`, which begin at `start` in the slot, if all that are wanted are there; their reads
    /// need not be asked for then.
    pub(crate) fn take_chunks(&mut self, bytes: &[u8], start: usize) {
        let ranges = self.chunks.iter().map(|number| self.chunk_range(*number));
        let Some(all) = ranges.reduce(|all, one| all.start.min(one.start)..all.end.max(one.end)) else {
            return;
        };
        let there = all.start.checked_sub(start).and_then(|from| bytes.get(from..all.end - start));
        if let Some(there) = there {
            self.chunk_window.push_copies(all.start);
            self.chunk_window.extend(there);
            self.units.retain(|unit| unit.part == SlotPart::Payload);
        }
    }

    /// Whether all that the slot has is in a range, as far as its dictionary can tell.
    pub(crate) fn is_inside(&self, range: &holdfast_ring::Range) -> bool {
        self.head.summary.entries.iter().zip(&self.wanted).all(|(entry, wanted)| {
            let times = if range.by_event { entry.events } else { entry.arrivals };
            let in_time = times.is_some_and(|(first, last)| range.from <= first && last <= range.to);
            let by_ordinal = range.ordinals.is_none_or(|(first, end)| {
                entry.ordinals.is_some_and(|(least, greatest)| first <= least && greatest < end)
            });
            entry.rows == 0 || (wanted.is_some() && by_ordinal && (in_time || !range.is_timed()))
        })
    }

    /// Leaves out reads of payload in which no row lies that `is_wanted`, where all chunks are there: what comes before and
    /// behind a range in its first and last slot, and other streams'.
    pub(crate) fn leave_out(&mut self, is_wanted: impl Fn(&Row) -> bool) {
        let mut spans: Vec<Range<usize>> = Vec::new();
        for number in &self.chunks {
            let range = self.chunk_range(*number);
            if !self.chunk_window.has(range.start, range.end) {
                return;
            }
            let bytes = self.chunk_window.view(range.start, range.end);
            // What is wrong with it is told when it is its turn.
            let entry = &self.index.directory[*number];
            let Ok(chunk) = Chunk::decode_at(entry, self.planned.sequence, bytes) else { return };
            for (row, place) in chunk.rows() {
                let stream = self.wanted.get(usize::from(row.stream)).copied().flatten();
                if stream.is_none() || !is_wanted(&row) {
                    continue;
                }
                let (start, end) = (place as usize, place as usize + row.payload());
                match spans.last_mut() {
                    Some(last) if last.start <= start && start <= last.end => last.end = last.end.max(end),
                    _ => spans.push(start..end),
                }
            }
        }
        let touches = |unit: &PieceRead| {
            spans.iter().any(|span| span.start < unit.start + unit.len && unit.start < span.end)
        };
        self.units.retain(|unit| unit.part == SlotPart::Chunks || touches(unit));
    }

    /// Lists the reads, in the order in which their bytes are used: chunks just before the payload they tell of.
    pub(crate) fn schedule(&mut self, quantum: usize) {
        let quantum = (quantum / CHECK_BLOCK * CHECK_BLOCK).max(CHECK_BLOCK);
        let payload_at = self.head.header.payload_offset as usize;
        let payload_bytes = self.head.header.payload_bytes as usize;
        let mut payload_to = 0;
        let (mut run_end, mut group_end) = (0, 0);
        self.units.clear();
        for (at, number) in self.chunks.iter().enumerate() {
            let entry = &self.index.directory[*number];
            if at >= run_end {
                // The chunks from here on that lie side by side are read together.
                let side_by_side = |pair: &&[usize]| pair[1] == pair[0] + 1;
                run_end = at + 1 + self.chunks[at..].windows(2).take_while(side_by_side).count();
            }
            let last = &self.index.directory[self.chunks[run_end - 1]];
            if at >= group_end {
                let range;
                (group_end, range) = self.group(at, run_end, quantum.max(GATHERED));
                let mut from = range.start;
                while from < range.end {
                    let len = quantum.min(range.end - from);
                    let more = from + len < range.end;
                    self.units
                        .push_back(PieceRead { more, ..self.planned.unit(SlotPart::Chunks, from, len, 0) });
                    from += len;
                }
            }
            let payload_end = ((last.payload_offset + last.payload_bytes) as usize)
                .next_multiple_of(CHECK_BLOCK)
                .min(payload_bytes);
            let (start, end) =
                (entry.payload_offset as usize, (entry.payload_offset + entry.payload_bytes) as usize);
            payload_to = payload_to.max(start / CHECK_BLOCK * CHECK_BLOCK);
            while payload_to < end {
                let len = quantum.min(payload_end - payload_to);
                self.units.push_back(self.planned.unit(SlotPart::Payload, payload_to, len, payload_at));
                payload_to += len;
            }
        }
    }

    /// The chunks from `at` on, up to `run_end`, whose places fit in `most` bytes, in whichever order they lie: where they
    /// end, and those bytes.
    fn group(&self, at: usize, run_end: usize, most: usize) -> (usize, Range<usize>) {
        let blocks = |range: &Range<usize>| range.start / BLOCK * BLOCK..range.end.next_multiple_of(BLOCK);
        let mut range = self.chunk_range(self.chunks[at]);
        let mut end = at + 1;
        while end < run_end {
            let next = self.chunk_range(self.chunks[end]);
            let grown = range.start.min(next.start)..range.end.max(next.end);
            if blocks(&grown).len() > most {
                break;
            }
            range = grown;
            end += 1;
        }
        (end, blocks(&range))
    }

    /// Payload before `start` is not wanted any more; nor are reads of it that have not been asked for.
    pub(crate) fn pass(&mut self, start: usize, queue: &mut ReadQueue) {
        self.payload_window.pass(start, queue);
        let is_past = |unit: &PieceRead| unit.part == SlotPart::Payload && unit.start + unit.len <= start;
        while self.units.front().is_some_and(is_past) {
            self.units.pop_front();
        }
    }

    /// Buffers that it keeps busy.
    pub(crate) fn buffers(&self) -> usize {
        self.sent.len() + self.chunk_window.buffers() + self.payload_window.buffers()
    }

    /// Checks what has come of the payload up to `end`.
    pub(crate) fn check(&mut self, end: usize) {
        let Self { index, payload_window, bad, .. } = self;
        payload_window.check(end, CHECK_BLOCK, |start, bytes| index.verify(start, bytes, bad));
    }

    /// Appends to `into` what has come of the payload from `at` up to `end`, each block checked just before; says how far
    /// that came.
    pub(crate) fn take_into(
        &mut self,
        at: usize,
        end: usize,
        into: &mut Vec<u8>,
        queue: &mut ReadQueue,
    ) -> usize {
        let mut at = at;
        while at < end {
            let stop = (at + 1).next_multiple_of(CHECK_BLOCK).min(end);
            self.check(stop);
            let came = self.payload_window.take_into(at, stop, into, queue);
            if came < stop {
                return came;
            }
            at = stop;
        }
        at
    }

    /// The damaged stretch that a range of the payload touches, if there is one.
    pub(crate) fn damage_in(&self, start: usize, end: usize) -> Option<&Range<usize>> {
        self.bad.iter().find(|bad| bad.start < end && start < bad.end)
    }
}

impl PlannedSlot {
    fn unit(&self, part: SlotPart, start: usize, len: usize, base: usize) -> PieceRead {
        let want = self.want(base + start, len.next_multiple_of(BLOCK));
        PieceRead { part, start, len, want, more: false }
    }

    /// A piece of the slot.
    pub(crate) fn want(&self, offset: usize, len: usize) -> ReadRequest {
        ReadRequest { sequence: self.sequence, slot: self.slot, offset, len }
    }
}
