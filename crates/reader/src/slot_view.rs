//! View of one slot for searches: its head, sections, rows and single elements, all verified.

use super::RingReader;
use super::access::Access;
use super::birds_eye_cache::CachedSlot;
use super::item::{Element, Item, PlannedSlot, Selection};
use super::read_queue::ReadQueue;
use super::slot_head::{SlotDefect, SlotHead, head_bytes};
use super::slot_lookup::{self, IndexedSlot, LookupError, PiecewiseRead};
use crate::ReaderError;
use crate::index_drive::{StoredCopy, image};
use holdfast_base::{Ordinal, Sequence, StreamId};
use holdfast_format::{
    BlockBounds, Blocks, Chunk, DirectoryEntry, FormatError, OpenImage, OpenOutline, Outline, PartHeader,
    Section, SectionKind, Summary, crc32c,
};
use holdfast_protocol::wire::{OpenSlotProjection, Purpose};
use holdfast_ring::{Bounds, Range as Selected};
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

/// Why something of a slot cannot be had.
#[derive(Debug)]
pub enum SlotError {
    /// The slot has expired.
    Expired,
    /// It did not pass a check: where and what.
    Damaged(String),
    /// The way to the ring is gone.
    Failed(ReaderError),
}

impl From<LookupError> for SlotError {
    fn from(miss: LookupError) -> Self {
        match miss {
            // What holds another sequence has been overwritten since.
            LookupError::Expired | LookupError::Defect(SlotDefect::OtherSequence(_)) => Self::Expired,
            LookupError::Defect(SlotDefect::Damaged(place)) => Self::Damaged(place),
            LookupError::Failed(error) => Self::Failed(error),
        }
    }
}

impl From<ReaderError> for SlotError {
    fn from(error: ReaderError) -> Self {
        Self::Failed(error)
    }
}

/// What an index drive has of a slot.
#[derive(Debug)]
enum CopyLookup {
    /// Nobody has looked.
    NotSearched,
    Absent,
    Found(StoredCopy),
}

/// A slot that is looked into.
#[derive(Debug)]
pub struct SlotView<'a> {
    pub(super) reader: &'a mut RingReader,
    pub(super) planned: PlannedSlot,
    head: SlotHead,
    /// What the bird's-eye view has of it.
    seen: Option<CachedSlot>,
    copy: CopyLookup,
    /// Bytes that came from there.
    copied: u64,
    /// Its directory, once that is needed.
    looked: Option<IndexedSlot>,
    before: Purpose,
}

impl Drop for SlotView<'_> {
    fn drop(&mut self) {
        self.reader.reads_for(self.before);
        // Who asks again wants what has come by then.
        self.reader.swap_open(None);
    }
}

impl RingReader {
    /// Looks into a slot. What it takes to read is a search's.
    pub fn look_into(&mut self, planned: &PlannedSlot) -> Result<SlotView<'_>, SlotError> {
        self.look_into_for(planned, &OpenSlotProjection::ROWS)
    }

    /// The same for who wants no more than that of it, if it is open.
    pub fn look_into_for(
        &mut self,
        planned: &PlannedSlot,
        wanted: &OpenSlotProjection,
    ) -> Result<SlotView<'_>, SlotError> {
        let before = self.reads_for(Purpose::Search);
        let seen = CachedSlot::of(&self.queue.access, &self.superblock, planned);
        let (mut copy, mut copied) = (CopyLookup::NotSearched, 0);
        let mut head = seen.as_ref().map(|seen| seen.head.clone());
        if head.is_none()
            && let Some((there, found)) = self.copied(planned)
        {
            (copy, copied) = (CopyLookup::Found(there), found.header.payload_offset.into());
            head = Some(found);
        }
        match head.map_or_else(|| self.head_of(planned, wanted), Ok) {
            Ok(head) => {
                let planned = *planned;
                Ok(SlotView { reader: self, planned, head, seen, copy, copied, looked: None, before })
            }
            Err(miss) => {
                self.reads_for(before);
                Err(miss.into())
            }
        }
    }

    /// Looks into a slot whose turn is next, to ask ahead for what will be read of it; nothing where that takes a read, or where an
    /// index drive may have it.
    pub fn foresee(&mut self, planned: &PlannedSlot) -> Option<SlotView<'_>> {
        let seen =
            CachedSlot::of(&self.queue.access, &self.superblock, planned).filter(|_| self.drive.is_none())?;
        let (head, before) = (seen.head.clone(), self.reads_for(Purpose::Search));
        let (seen, copy) = (Some(seen), CopyLookup::Absent);
        Some(SlotView { reader: self, planned: *planned, head, seen, copy, copied: 0, looked: None, before })
    }

    /// What a slot that is open has of an attribute of a stream so far, and whether one of the values that have these
    /// [hashes](holdfast_format::Cell::hash) may be among it; `None`: nothing is told of it.
    pub fn open_outline(
        &mut self,
        planned: &PlannedSlot,
        stream: StreamId,
        attribute: u16,
        values: Vec<u64>,
    ) -> Result<Option<OpenOutline>, ReaderError> {
        match &mut self.queue.access {
            Access::Live(live) if planned.slot.is_none() => {
                Ok(live.connection().open_outline(planned.sequence, stream, attribute, values)?)
            }
            _ => Ok(None),
        }
    }

    /// Nothing more of what was asked for ahead of a slot is wanted.
    pub fn forget_ahead(&mut self, sequence: Sequence) {
        self.queue.forget_ahead(sequence);
    }

    /// What an index drive has of a slot that is on the medium: of what is there now, as is known by its header.
    fn copy_of(&self, header: &PartHeader) -> Option<StoredCopy> {
        self.drive.as_ref()?.open(header.sequence).filter(|copy| copy.is_of(header))
    }

    /// The same with its head where only its times are known. Without them the head has to be read: a ring that was put back to what it
    /// was before gives its sequences again, to something else.
    fn copied(&self, planned: &PlannedSlot) -> Option<(StoredCopy, SlotHead)> {
        let times = planned.first.zip(planned.last)?;
        let copy = self.drive.as_ref()?.open(planned.sequence)?;
        let bytes = copy.read(&(0..copy.head_bytes()))?;
        let head = SlotHead::decode(&bytes, &self.superblock, Some(planned.slot?), planned.sequence).ok()?;
        let Bounds { first, last, .. } = Bounds::of(head.summary.entries.iter().copied());
        (times == (first, last)).then_some((copy, head))
    }

    /// The head of a slot, where an index drive has it.
    pub(crate) fn copied_head(&self, planned: &PlannedSlot) -> Option<SlotHead> {
        self.copied(planned).map(|(_, head)| head)
    }

    /// What was taken of an open slot; another is put in its place.
    fn swap_open(&mut self, open: Option<Arc<OpenImage>>) -> Option<Arc<OpenImage>> {
        match &mut self.queue.access {
            Access::Live(live) => live.swap_open(open),
            Access::Direct(_) => None,
        }
    }

    fn head_of(
        &mut self,
        planned: &PlannedSlot,
        wanted: &OpenSlotProjection,
    ) -> Result<SlotHead, LookupError> {
        if planned.slot.is_none() {
            self.take_open(planned, wanted)?;
        }
        slot_lookup::read_head(&mut self.queue, &self.superblock, planned)
    }
}

impl SlotView<'_> {
    /// Bytes of its place on the medium.
    pub fn slot_bytes(&self) -> u64 {
        self.reader.superblock.geometry.slot_bytes
    }

    /// Its header.
    pub fn header(&self) -> &PartHeader {
        &self.head.header
    }

    /// What it holds.
    pub fn summary(&self) -> &Summary {
        &self.head.summary
    }

    /// Bytes that were read from the ring to know that much: none where the recorder's bird's-eye view tells of it, or an
    /// index drive.
    pub fn head_bytes(&self) -> u64 {
        let is_read =
            self.seen.is_none() && self.planned.slot.is_some() && !matches!(self.copy, CopyLookup::Found(_));
        if is_read { head_bytes(&self.reader.superblock.geometry) as u64 } else { 0 }
    }

    /// What of a filter section is there without reading: all of it, or one in its place that has no filter, only bounds.
    pub fn seen(&self, section: &Section) -> Option<(Section, Vec<u8>)> {
        self.seen.as_ref()?.section(&self.reader.queue.access, section)
    }

    /// Bytes that were asked for so far by whoever reads the ring.
    pub fn asked(&self) -> u64 {
        self.reader.queue.asked
    }

    /// Bytes that came from an index drive so far.
    pub fn copied(&self) -> u64 {
        self.copied
    }

    fn look_for_copy(&mut self) {
        if matches!(self.copy, CopyLookup::NotSearched) {
            let there = self.planned.slot.and_then(|_| self.reader.copy_of(&self.head.header));
            self.copy = there.map_or(CopyLookup::Absent, CopyLookup::Found);
        }
    }

    /// A range of the slot outside its payload.
    fn index(&mut self, range: Range<usize>) -> Result<Vec<u8>, SlotError> {
        self.look_for_copy();
        if let CopyLookup::Found(copy) = &self.copy
            && let Some(bytes) = copy.read(&range)
        {
            self.copied += bytes.len() as u64;
            return Ok(bytes);
        }
        Ok(slot_lookup::bytes(&mut self.reader.queue, &self.planned, range.start, range.end)?)
    }

    /// Reads a section; its checksum is checked where it has one.
    pub fn section(&mut self, section: &Section) -> Result<Vec<u8>, SlotError> {
        let bytes = self.index(section.range())?;
        if section.crc != 0 && crc32c(&bytes) != section.crc {
            let place = format!("section at {}: the checksum does not hold", section.offset);
            return Err(SlotError::Damaged(place));
        }
        Ok(bytes)
    }

    /// Reads a section that has no checksum as a whole piece by piece, each given to `take` while the next ones are on their way,
    /// until that says that it has enough.
    pub fn pieces<E: From<SlotError>>(
        &mut self,
        section: &Section,
        mut take: impl FnMut(&mut Self, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let range = section.range();
        self.look_for_copy();
        let queue = &mut self.reader.queue;
        if !matches!(self.copy, CopyLookup::Absent) || queue.access.is_at_hand(&self.planned) {
            let bytes = self.index(range)?;
            return take(self, &bytes);
        }
        let mut coming = PiecewiseRead::new(queue, &self.planned, range);
        loop {
            let next = coming.next(&mut self.reader.queue).map_err(SlotError::from)?;
            let Some((piece, held)) = next else { return Ok(()) };
            let taken = take(self, held.bytes().get(piece).unwrap_or_default());
            held.release(&mut self.reader.queue);
            if taken.is_err() {
                coming.forget(&mut self.reader.queue);
                return taken;
            }
        }
    }

    /// Reads a part of a section, where its checksum, if it has one, does not tell.
    pub fn part(&mut self, section: &Section, part: Range<usize>) -> Result<Vec<u8>, SlotError> {
        let whole = section.range();
        if part.start > part.end || part.end > whole.len() {
            return Err(SlotError::Damaged(format!(
                "section at {}: a part of it is outside",
                section.offset
            )));
        }
        self.index(whole.start + part.start..whole.start + part.end)
    }

    /// Asks a recorder for a section that is going to be read, now or when the slot is looked into again.
    pub fn ahead(&mut self, section: &Section) -> Result<(), SlotError> {
        self.range_ahead(section.range())
    }

    /// The same for a part of one.
    pub fn part_ahead(&mut self, section: &Section, part: Range<usize>) -> Result<(), SlotError> {
        let start = section.range().start;
        self.range_ahead(start + part.start..start + part.end)
    }

    /// The same for its directory.
    pub fn directory_ahead(&mut self) -> Result<(), SlotError> {
        let range = self.head.directory_range().map_err(LookupError::Defect)?;
        self.range_ahead(range)
    }

    fn range_ahead(&mut self, range: Range<usize>) -> Result<(), SlotError> {
        // Without a recorder nobody else has turns, and what an index drive has is not to be read.
        if self.reader.is_live() && self.reader.drive.is_none() {
            slot_lookup::ahead(&mut self.reader.queue, &self.planned, range)?;
        }
        Ok(())
    }

    /// Its chunks, in the order of their rows.
    pub fn directory(&mut self) -> Result<&[DirectoryEntry], SlotError> {
        Ok(&self.looked()?.1.index.directory)
    }

    /// Appends a range of the payload to `into`.
    pub fn payload(&mut self, start: usize, end: usize, into: &mut Vec<u8>) -> Result<(), SlotError> {
        let (queue, looked) = self.looked()?;
        Ok(looked.payload(queue, start, end, into)?)
    }

    /// Gives an element to `take`, wherever its fragments are. `false`: some of them are not there any more.
    pub fn element(
        &mut self,
        stream: StreamId,
        ordinal: Ordinal,
        take: &mut dyn FnMut(&Element<'_>),
    ) -> Result<bool, SlotError> {
        // What is read on the way may be the open slot, too, as it is by then.
        let open = self.reader.swap_open(None);
        let found = self.look_for(stream, ordinal, take);
        self.reader.swap_open(open);
        found
    }

    fn look_for(
        &mut self,
        stream: StreamId,
        ordinal: Ordinal,
        take: &mut dyn FnMut(&Element<'_>),
    ) -> Result<bool, SlotError> {
        let ordinals = Some((ordinal, Ordinal(ordinal.0.saturating_add(1))));
        let range = Selected { ordinals, ..Selected::ALL };
        let plan = self.reader.plan(&Selection { streams: vec![stream], range })?;
        let mut found = false;
        self.reader.read(&plan, &mut |item| {
            if let Item::Element(element) = item
                && element.ordinal == ordinal
            {
                take(&element);
                found = true;
            }
            if found { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        Ok(found)
    }

    pub(super) fn looked(&mut self) -> Result<(&mut ReadQueue, &mut IndexedSlot), SlotError> {
        let looked = if let Some(looked) = self.looked.take() {
            looked
        } else {
            let range = self.head.directory_range().map_err(LookupError::Defect)?;
            let bytes = self.index(range.clone())?;
            IndexedSlot::at(self.planned, self.head.clone(), &bytes, range.start)?
        };
        Ok((&mut self.reader.queue, self.looked.insert(looked)))
    }

    /// All of it but its payload, checked, as an index drive keeps it.
    pub fn index_copy(&mut self) -> Result<Vec<u8>, SlotError> {
        let header = self.head.header.clone();
        let (head, index) = (header.payload_offset as usize, header.index_offset as usize);
        let queue = &mut self.reader.queue;
        let mut bytes = slot_lookup::bytes(queue, &self.planned, 0, head)?;
        SlotHead::decode(&bytes, &self.reader.superblock, self.planned.slot, self.planned.sequence)
            .map_err(LookupError::Defect)?;
        bytes.extend(slot_lookup::bytes(queue, &self.planned, index, index + header.index_bytes as usize)?);
        for section in &self.head.summary.sections.clone() {
            let range = section.range();
            let part = bytes.get(head + range.start - index..head + range.end - index).unwrap_or_default();
            let checked = self.check(section, part);
            checked.map_err(|why| SlotError::Damaged(format!("section at {}: {why}", section.offset)))?;
        }
        Ok(image(&header, &bytes))
    }

    fn check(&mut self, section: &Section, bytes: &[u8]) -> Result<(), String> {
        let sequence = self.head.header.sequence;
        let said = |error: FormatError| error.to_string();
        match section.kind {
            SectionKind::Attribute => {
                Blocks::new(section, bytes, sequence).try_for_each(|block| block.map(|_| ())).map_err(said)
            }
            SectionKind::Filter => Outline::decode(bytes, section).map(|_| ()).map_err(said),
            SectionKind::Bounds => {
                let column = self.head.summary.column(section.entry, section.column).unwrap_or(section);
                BlockBounds::decode(bytes, section, column).map(|_| ()).map_err(said)
            }
            SectionKind::Chunks => {
                let directory = self.directory().map_err(|_| "without its directory".to_owned())?;
                directory.iter().try_for_each(|entry| {
                    let (from, len) = (entry.offset as usize, entry.bytes as usize);
                    let chunk = bytes.get(from..from + len).unwrap_or_default();
                    Chunk::decode_at(entry, sequence, chunk).map(|_| ()).map_err(said)
                })
            }
            _ if section.crc == 0 || crc32c(bytes) == section.crc => Ok(()),
            _ => Err("the checksum does not hold".to_owned()),
        }
    }
}
