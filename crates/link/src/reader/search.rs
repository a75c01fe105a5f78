//! Looking into slots one by one, for searches: what is in a slot, its index, single elements. Everything that is handed out
//! has been checked.

use super::RingReader;
use super::fetch::{self, Looked, Miss};
use super::item::{Item, PlannedSlot, Selection};
use super::plan::missing_between;
use super::pump::Pump;
use super::seen::Seen;
use super::slot::{Head, Wrong, head_bytes};
use crate::LinkError;
use crate::wire::Purpose;
use holdfast_base::{Age, Ordinal, StreamId};
use holdfast_format::{DirectoryEntry, PartHeader, Section, Summary, crc32c};
use holdfast_ring::Range;
use std::ops::ControlFlow;

/// Why something of a slot cannot be had.
#[derive(Debug)]
pub enum NotThere {
    /// The slot has expired.
    Expired,
    /// It did not pass a check: where and what.
    Damaged(String),
    /// The way to the ring is gone.
    Failed(LinkError),
}

impl From<Miss> for NotThere {
    fn from(miss: Miss) -> Self {
        match miss {
            // What holds another sequence has been overwritten since.
            Miss::Expired | Miss::Wrong(Wrong::Other(_)) => Self::Expired,
            Miss::Wrong(Wrong::Damaged(place)) => Self::Damaged(place),
            Miss::Failed(error) => Self::Failed(error),
        }
    }
}

impl From<LinkError> for NotThere {
    fn from(error: LinkError) -> Self {
        Self::Failed(error)
    }
}

/// A slot that is looked into.
#[derive(Debug)]
pub struct SlotView<'a> {
    reader: &'a mut RingReader,
    planned: PlannedSlot,
    head: Head,
    /// What the bird's-eye view has of it.
    seen: Option<Seen>,
    /// Its directory, once that is needed.
    looked: Option<Looked>,
    before: Purpose,
}

impl Drop for SlotView<'_> {
    fn drop(&mut self) {
        self.reader.reads_for(self.before);
    }
}

impl RingReader {
    /// Looks into a slot. What it takes to read is a search's.
    pub fn look_into(&mut self, planned: &PlannedSlot) -> Result<SlotView<'_>, NotThere> {
        let before = self.reads_for(Purpose::Search);
        let seen = Seen::of(&self.pump.access, &self.superblock, planned);
        let head = match &seen {
            Some(seen) => Ok(seen.head.clone()),
            None => self.head_of(planned),
        };
        match head {
            Ok(head) => Ok(SlotView { reader: self, planned: *planned, head, seen, looked: None, before }),
            Err(miss) => {
                self.reads_for(before);
                Err(miss.into())
            }
        }
    }

    fn head_of(&mut self, planned: &PlannedSlot) -> Result<Head, Miss> {
        if planned.slot.is_none() && self.is_live() {
            self.take_open(planned)?;
        }
        fetch::read_head(&mut self.pump, &self.superblock, planned)
    }
}

impl SlotView<'_> {
    /// Its header.
    pub fn header(&self) -> &PartHeader {
        &self.head.header
    }

    /// What it holds.
    pub fn summary(&self) -> &Summary {
        &self.head.summary
    }

    /// Bytes that were read to know that much: none where the recorder's bird's-eye view tells of it.
    pub fn head_bytes(&self) -> u64 {
        let slot_bytes = self.reader.superblock.geometry.slot_bytes as usize;
        let is_read = self.seen.is_none() && self.planned.slot.is_some();
        if is_read { head_bytes(slot_bytes) as u64 } else { 0 }
    }

    /// What of a filter section is there without reading: all of it, or one in its place that has no filter, only bounds.
    pub fn seen(&self, section: &Section) -> Option<(Section, Vec<u8>)> {
        self.seen.as_ref()?.section(&self.reader.pump.access, section)
    }

    /// Reads a section; its checksum is checked where it has one.
    pub fn section(&mut self, section: &Section) -> Result<Vec<u8>, NotThere> {
        let range = section.range();
        let bytes = fetch::bytes(&mut self.reader.pump, &self.planned, range.start, range.end)?;
        if section.crc != 0 && crc32c(&bytes) != section.crc {
            let place = format!("section at {}: the checksum does not hold", section.offset);
            return Err(NotThere::Damaged(place));
        }
        Ok(bytes)
    }

    /// Its chunks, in the order of their rows.
    pub fn directory(&mut self) -> Result<&[DirectoryEntry], NotThere> {
        Ok(&self.looked()?.1.index.directory)
    }

    /// Appends a range of the payload to `into`.
    pub fn payload(&mut self, start: usize, end: usize, into: &mut Vec<u8>) -> Result<(), NotThere> {
        let (pump, looked) = self.looked()?;
        Ok(looked.payload(pump, start, end, into)?)
    }

    /// Appends all bytes of an element to `into`, wherever its fragments are. `false`: some of them are not there any more.
    pub fn element(
        &mut self,
        stream: StreamId,
        ordinal: Ordinal,
        into: &mut Vec<u8>,
    ) -> Result<bool, NotThere> {
        let range = Range { ordinals: Some((ordinal, Ordinal(ordinal.0.saturating_add(1)))), ..Range::ALL };
        let plan = self.reader.plan(&Selection { streams: vec![stream], range })?;
        let mut found = false;
        self.reader.read(&plan, &mut |item| {
            if let Item::Element(element) = item
                && element.ordinal == ordinal
            {
                into.extend_from_slice(element.data);
                found = true;
            }
            if found { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        Ok(found)
    }

    /// Whether what began so many ages before this slot's ([`EntrySummary::back`](holdfast_format::EntrySummary::back)) is there
    /// from its beginning: no slot since then is missing.
    pub fn reaches_back(&mut self, back: u64) -> Result<bool, NotThere> {
        let age = self.planned.age;
        let before = Age(age.0.saturating_sub(back).saturating_sub(1));
        let candidates = self.reader.candidates()?;
        Ok(!missing_between(&candidates, before, age))
    }

    fn looked(&mut self) -> Result<(&mut Pump, &mut Looked), NotThere> {
        let pump = &mut self.reader.pump;
        let looked = match self.looked.take() {
            Some(looked) => looked,
            None => Looked::new(pump, self.planned, self.head.clone())?,
        };
        Ok((pump, self.looked.insert(looked)))
    }
}
