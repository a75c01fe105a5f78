//! Entry of the bird's-eye view: a slot's pruning statistics in memory. docs/protocol.md draws it.
//!
//! The bytes are the slot's own, as many as have room, so that whoever copies them out checks them as if they came from the
//! medium. They may change while they are copied: a mixture does not pass. Whose memory it is, and when a place is filled, is
//! not known here.

use crate::bytes::{u32_at, u64_at};
use crate::column::OUTLINE_BYTES;
use crate::crc32c;
use crate::slot::{HEADER_FIELDS, HEADER_SEQUENCE, HEADER_TAG, Section, filter_sections, summary_bytes};
use holdfast_base::{BLOCK, MAX_STREAMS, Sequence};
use std::ops::Range;

/// Sequence, length and checksum.
const FRONT: usize = 16;

/// Behind them the fields of the part header and its tag; what lies between these two is zero.
const SUMMARY: usize = FRONT + HEADER_FIELDS + HEADER_TAG.end - HEADER_TAG.start;

/// Stretches that are nearer to each other are read in one go.
const NEAR: usize = 64 << 10;

/// A place with less than that has room for no slot.
pub const LEAST_PLACE: usize = 512;

/// How much of a slot a place tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlaceState {
    /// Nothing.
    Nothing,
    /// Nothing yet: it is being filled.
    Begun(Sequence),
    /// As much as it has room for.
    All(Sequence),
    /// Nothing of this one: it has no room for its summary, or there was none to be had.
    Never(Sequence),
}

/// A slot's place, for who fills it.
#[derive(Debug)]
pub struct ViewPlace<'a>(&'a mut [u8]);

impl<'a> ViewPlace<'a> {
    /// Bytes of a place that has room for all there can be to tell of a slot with so many streams and columns of theirs.
    pub fn most(slot_bytes: u64, streams: usize, columns: usize) -> u64 {
        // The builder gives all filters of a slot so much.
        let filters = if columns == 0 { 0 } else { slot_bytes / 16 };
        (SUMMARY + summary_bytes(streams, columns) + columns * OUTLINE_BYTES) as u64 + filters
    }

    /// Those bytes; at least [`LEAST_PLACE`] of them.
    pub fn new(bytes: &'a mut [u8]) -> Option<Self> {
        (bytes.len() >= LEAST_PLACE).then_some(Self(bytes))
    }

    /// What it tells.
    pub fn told(&self) -> PlaceState {
        let sequence = Sequence(u64_at(self.0, 0));
        match (u32_at(self.0, 8), u32_at(self.0, 12)) {
            (0, 0) => PlaceState::Nothing,
            (0, 1) => PlaceState::Begun(sequence),
            (0, _) => PlaceState::Never(sequence),
            _ => PlaceState::All(sequence),
        }
    }

    fn front(&mut self, sequence: Sequence, bytes: u32, check: u32) {
        self.0[..8].copy_from_slice(&sequence.0.to_le_bytes());
        self.0[8..12].copy_from_slice(&bytes.to_le_bytes());
        self.0[12..FRONT].copy_from_slice(&check.to_le_bytes());
    }

    /// Leaves nothing of what it told.
    pub fn wipe(&mut self) {
        self.0.fill(0);
    }

    /// Tells nothing of this slot, as long as it is there.
    pub fn give_up(&mut self, sequence: Sequence) {
        self.wipe();
        self.front(sequence, 0, 2);
    }

    /// Begins with a slot; `bytes` are its first ones, with all of the summary. `false`: it has no room for these.
    pub fn begin(&mut self, sequence: Sequence, bytes: &[u8]) -> bool {
        let parts = bytes.get(..BLOCK).and_then(|header| {
            let summary = bytes.get(BLOCK..BLOCK + u32_at(header, 112) as usize)?;
            let plain = header[HEADER_FIELDS..HEADER_TAG.start].iter().all(|byte| *byte == 0);
            let own = plain && u64_at(header, HEADER_SEQUENCE) == sequence.0;
            (own && SUMMARY + summary.len() <= self.0.len()).then_some((header, summary))
        });
        let Some((header, summary)) = parts else {
            self.give_up(sequence);
            return false;
        };
        self.front(sequence, 0, 1);
        let (fields, tag) = self.0[FRONT..SUMMARY].split_at_mut(HEADER_FIELDS);
        fields.copy_from_slice(&header[..HEADER_FIELDS]);
        tag.copy_from_slice(&header[HEADER_TAG]);
        self.0[SUMMARY..SUMMARY + summary.len()].copy_from_slice(summary);
        true
    }

    /// Which stretch of the slot, from `from` on, it wants next, once it has begun.
    pub fn wants(&self, from: usize) -> Option<Range<usize>> {
        let room = PlaceRoom::of(self.0, self.0.len())?;
        let wanted = || room.pieces(self.0).map(|piece| piece.wanted()).filter(|range| range.end > from);
        let first = wanted().min_by_key(|range| range.start)?;
        let mut end = first.end;
        while let Some(further) = wanted().find(|range| range.start <= end + NEAR && range.end > end) {
            end = further.end;
        }
        Some(first.start.max(from)..end)
    }

    /// Takes what it wants of these bytes of the slot, which lie there from `offset` on.
    pub fn take(&mut self, offset: usize, bytes: &[u8]) {
        let Some(room) = PlaceRoom::of(self.0, self.0.len()) else { return };
        let (head, rest) = self.0.split_at_mut(room.outlines);
        let mut put = |range: Range<usize>, at: usize| {
            let (start, end) = (range.start.max(offset), range.end.min(offset + bytes.len()));
            if start < end {
                let to = at - room.outlines + (start - range.start);
                rest[to..to + (end - start)].copy_from_slice(&bytes[start - offset..end - offset]);
            }
        };
        for StoredOutline { start, size, outline, filter } in room.pieces(head) {
            put(start..start + OUTLINE_BYTES, outline);
            if let Some(filter) = filter {
                put(start + OUTLINE_BYTES..start + OUTLINE_BYTES + size, filter);
            }
        }
    }

    /// It has all that it wants: from here on it counts. Nothing is left of what it told before.
    pub fn publish(&mut self) {
        if let (PlaceState::Begun(sequence), Some(room)) = (self.told(), PlaceRoom::of(self.0, self.0.len()))
        {
            let ends = room.pieces(self.0).filter_map(|piece| Some(piece.filter? + piece.size));
            let end = ends.max().unwrap_or(room.filters());
            self.0[end..].fill(0);
            let head = &self.0[FRONT..room.filters()];
            let (bytes, check) = (head.len() as u32, crc32c(head));
            self.front(sequence, bytes, check);
        }
    }
}

/// What of a slot's outlines and filters a place has room for: the outlines, and of the filters the smallest.
#[derive(Clone, Copy, Debug)]
struct PlaceRoom {
    /// Where outlines begin.
    outlines: usize,
    /// How many there are: of all columns, or of none.
    count: usize,
    /// All filters of so many bytes, and smaller ones, are there.
    all: usize,
    /// Of the next larger ones so many, the first ones.
    some: (usize, usize),
}

/// What becomes of a column's outline and filter.
#[derive(Clone, Copy, Debug)]
struct StoredOutline {
    /// Where they begin in the slot.
    start: usize,
    /// Bytes of the filter.
    size: usize,
    /// Where the outline is in the place.
    outline: usize,
    /// Where the filter is, if it is there.
    filter: Option<usize>,
}

impl StoredOutline {
    fn wanted(&self) -> Range<usize> {
        let filter = if self.filter.is_some() { self.size } else { 0 };
        self.start..self.start + OUTLINE_BYTES + filter
    }
}

/// Bytes of a column's filter.
fn size(section: &Section) -> usize {
    (section.bytes as usize).saturating_sub(OUTLINE_BYTES)
}

impl PlaceRoom {
    /// Of a place of `place` bytes that begins with these, of which the summary is there.
    fn of(bytes: &[u8], place: usize) -> Option<Self> {
        let outlines = SUMMARY.checked_add(u32_at(bytes.get(FRONT..SUMMARY)?, 112) as usize)?;
        let filters = filter_sections(bytes.get(SUMMARY..outlines)?);
        let count = filters.clone().count();
        let fits = outlines + count * OUTLINE_BYTES <= place
            && count <= MAX_STREAMS
            && filters.clone().all(|section| section.bytes as usize >= OUTLINE_BYTES);
        let mut room = Self { outlines, count: if fits { count } else { 0 }, all: 0, some: (0, 0) };
        let mut left = place.saturating_sub(room.filters());
        let filters = filters.take(room.count);
        while let Some(next) = filters.clone().map(|s| size(&s)).filter(|size| *size > room.all).min() {
            let alike = filters.clone().filter(|section| size(section) == next).count();
            if alike * next > left {
                room.some = (next, left / next);
                break;
            }
            left -= alike * next;
            room.all = next;
        }
        Some(room)
    }

    /// Where filters begin.
    fn filters(&self) -> usize {
        self.outlines + self.count * OUTLINE_BYTES
    }

    /// Where everything goes, by the summary that these bytes of a place have.
    fn pieces(self, bytes: &[u8]) -> impl Iterator<Item = StoredOutline> {
        let (mut outline, mut filter, mut some) = (self.outlines, self.filters(), self.some.1);
        filter_sections(&bytes[SUMMARY..self.outlines]).take(self.count).map(move |section| {
            let size = size(&section);
            let is_of_some = size == self.some.0 && some > 0;
            some -= usize::from(is_of_some);
            let has = size <= self.all || is_of_some;
            let piece = StoredOutline {
                start: section.offset as usize,
                size,
                outline,
                filter: has.then_some(filter),
            };
            outline += OUTLINE_BYTES;
            filter += if has { size } else { 0 };
            piece
        })
    }
}

/// What was copied out of a place, all but filters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Glance {
    /// From the place's start.
    bytes: Vec<u8>,
    /// Bytes of the place.
    place: usize,
}

impl Glance {
    /// Bytes that say how many there are to be copied.
    pub const FRONT: usize = FRONT;

    /// How many bytes are to be copied from the start of a place of `place` bytes that begins with these; `None`: it tells nothing
    /// of this sequence.
    pub fn bytes(front: &[u8; FRONT], sequence: Sequence, place: usize) -> Option<usize> {
        let bytes = FRONT + u32_at(front, 8) as usize;
        (u64_at(front, 0) == sequence.0 && bytes > SUMMARY && bytes <= place).then_some(bytes)
    }

    /// So many bytes; `None`: they do not belong together.
    pub fn new(bytes: Vec<u8>, place: usize) -> Option<Self> {
        let head = bytes.get(FRONT..)?;
        let right = u32_at(&bytes, 8) as usize == head.len()
            && crc32c(head) == u32_at(&bytes, 12)
            && u64_at(head, HEADER_SEQUENCE) == u64_at(&bytes, 0);
        let whole = PlaceRoom::of(&bytes, place).is_some_and(|room| room.filters() == bytes.len());
        (right && whole).then_some(Self { bytes, place })
    }

    /// The slot's first bytes, header and summary, as they are on the medium.
    pub fn head(&self) -> Vec<u8> {
        let (header, rest) = self.bytes[FRONT..].split_at(HEADER_FIELDS);
        let (tag, summary) = rest.split_at(HEADER_TAG.len());
        let mut head = vec![0; BLOCK];
        head[..HEADER_FIELDS].copy_from_slice(header);
        head[HEADER_TAG].copy_from_slice(tag);
        head.extend_from_slice(&summary[..u32_at(header, 112) as usize]);
        head
    }

    /// What there is of a filter section: all of it, or a section in its place without the filter, with bounds alone.
    /// `copy` copies what stands at an offset of the place now.
    pub fn section(
        &self,
        section: &Section,
        mut copy: impl FnMut(usize, &mut [u8]) -> bool,
    ) -> Option<(Section, Vec<u8>)> {
        let room = PlaceRoom::of(&self.bytes, self.place)?;
        let sections = filter_sections(&self.bytes[SUMMARY..room.outlines]);
        let (_, piece) = sections.zip(room.pieces(&self.bytes)).find(|(other, _)| other == section)?;
        let mut bytes = self.bytes.get(piece.outline..piece.outline + OUTLINE_BYTES)?.to_vec();
        if let Some(filter) = piece.filter {
            bytes.resize(OUTLINE_BYTES + piece.size, 0);
            let there = piece.size == 0 || copy(filter, &mut bytes[OUTLINE_BYTES..]);
            if there && crc32c(&bytes) == section.crc {
                return Some((*section, bytes));
            }
            bytes.truncate(OUTLINE_BYTES);
        }
        let alone = Section { bytes: OUTLINE_BYTES as u32, count: 0, crc: crc32c(&bytes), ..*section };
        Some((alone, bytes))
    }
}
