//! An open slot as a reader sees it: made from the journal records that its recorder sends, then read like a whole one.

use crate::LinkError;
use crate::wire::WireError;
use holdfast_base::{Sequence, SlotNo, Timestamp};
use holdfast_format::{
    Builder, Classes, Entry, Name, Rebuild, Record, Records, SlotFlags, SlotId, Superblock,
};
use holdfast_media::Buffer;
use holdfast_ring::StreamStatus;
use std::path::Path;

/// What is known of an open slot so far, or all of it once it is sealed in our memory.
#[derive(Debug)]
pub(crate) struct OpenImage {
    sequence: Sequence,
    image: Buffer,
    bytes: usize,
    rebuild: Option<Rebuild>,
    streams: Vec<StreamStatus>,
    slot_bytes: u64,
    id: SlotId,
}

impl OpenImage {
    pub(crate) fn new(
        superblock: &Superblock,
        streams: &[StreamStatus],
        sequence: Sequence,
    ) -> Result<Self, LinkError> {
        let slot_bytes = superblock.geometry.slot_bytes;
        let image = Buffer::aligned(slot_bytes as usize)?;
        let (ring, group, lane) = (superblock.ring, superblock.group, superblock.lane);
        let id = SlotId { ring, group, lane, sequence, ..SlotId::default() };
        Ok(Self { sequence, image, bytes: 0, rebuild: None, streams: streams.to_vec(), slot_bytes, id })
    }

    pub(crate) fn sequence(&self) -> Sequence {
        self.sequence
    }

    /// Takes the records of one reply.
    pub(crate) fn apply(&mut self, records: &[u8], path: &Path) -> Result<(), LinkError> {
        let wrong = || LinkError::Protocol {
            path: path.to_owned(),
            wire: WireError::Short { message: "gains", at: 0, what: "a journal record" },
        };
        for record in Records::new(records) {
            let record = record.map_err(|_| wrong())?;
            if let Record::OpenSlot(open) = &record
                && open.sequence == self.sequence
                && self.rebuild.is_none()
            {
                let entries: Vec<Entry> = open
                    .entries
                    .iter()
                    .map(|entry| {
                        let known = self.streams.iter().find(|stream| stream.id == entry.stream);
                        let name = known.and_then(|stream| Name::new(&stream.name).ok()).unwrap_or_default();
                        let kind = known.map(|stream| stream.kind).unwrap_or_default();
                        let (stream, preamble, counters) = (entry.stream, entry.preamble, entry.counters);
                        let began = entry.began(open.age);
                        let classes = Classes::default();
                        Entry { stream, kind, name, preamble, classes, counters, began }
                    })
                    .collect();
                let id = SlotId { epoch: open.epoch, age: open.age, ..self.id };
                let builder = Builder::new(self.slot_bytes, entries.len());
                let rebuild = Rebuild::open(builder, &mut self.image, id, open.opened, &entries);
                self.rebuild = Some(rebuild.map_err(|_| wrong())?);
            } else if let Some(rebuild) = &mut self.rebuild {
                rebuild.apply(&mut self.image, &record).map_err(|_| wrong())?;
            }
        }
        Ok(())
    }

    /// Makes it a slot that can be read, in our memory only. `None`: nothing came of it.
    pub(crate) fn seal(mut self, superblock: &Superblock) -> Option<Self> {
        let mut builder = self.rebuild.take()?.finish(&mut self.image);
        let sealed =
            builder.seal(&mut self.image, &superblock.key, SlotNo(0), Timestamp(0), SlotFlags::SHORT);
        self.bytes = sealed.bytes;
        Some(self)
    }

    /// Copies a piece of the sealed image; zeros beyond its end.
    pub(crate) fn copy(&self, offset: usize, into: &mut [u8]) {
        copy(&self.image[..self.bytes], offset, into);
    }
}

/// Copies what an image has at `offset`, and zeros beyond its end.
pub(crate) fn copy(image: &[u8], offset: usize, into: &mut [u8]) {
    let from = image.get(offset..).unwrap_or_default();
    let len = from.len().min(into.len());
    into[..len].copy_from_slice(&from[..len]);
    into[len..].fill(0);
}
