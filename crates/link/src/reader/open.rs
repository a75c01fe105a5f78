//! An open slot as a reader sees it: made from the journal records that its recorder sends, then read like a whole one. What is
//! asked for again and again is kept, so that each time only what was gained meanwhile has to come.

use crate::LinkError;
use crate::client::Connection;
use crate::wire::{Reply, WireError};
use holdfast_base::{Sequence, SlotNo, Timestamp};
use holdfast_format::{
    Builder, Classes, Entry, Name, OpenSlot as OpenRecord, Rebuild, Record, Records, SlotFlags, SlotId,
    Superblock,
};
use holdfast_media::Buffer;
use holdfast_ring::StreamStatus;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// What several readers of a ring, one after the other or at once, know of its open slot.
#[derive(Clone, Debug, Default)]
pub struct OpenSlots(Arc<Mutex<Asked>>);

/// To keep what is known costs a copy of it: who asks for the first time may not ask again.
#[derive(Debug, Default)]
enum Asked {
    #[default]
    Never,
    Once,
    Again(Box<OpenSlot>),
}

impl OpenSlots {
    /// For who is going to ask again: what is known is kept from the first time on.
    pub fn kept() -> Self {
        Self(Arc::new(Mutex::new(Asked::Once)))
    }

    /// What the open slot has by now, to be read like any other; `None`: it is not open.
    pub(crate) fn take(
        &self,
        connection: &mut Connection,
        superblock: &Superblock,
        streams: &[StreamStatus],
        sequence: Sequence,
    ) -> Result<Option<Arc<OpenImage>>, LinkError> {
        let mut asked = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let open = match std::mem::replace(&mut *asked, Asked::Once) {
            Asked::Never => return take_once(connection, superblock, streams, sequence),
            Asked::Again(open) if open.id.sequence == sequence => *open,
            Asked::Once | Asked::Again(_) => OpenSlot::new(superblock, sequence)?,
        };
        let Some(mut open) = open.grow(connection, superblock, streams)? else { return Ok(None) };
        let image = open.image(superblock)?;
        *asked = Asked::Again(Box::new(open));
        Ok(image)
    }
}

/// The same for one who asks once.
pub(crate) fn take_once(
    connection: &mut Connection,
    superblock: &Superblock,
    streams: &[StreamStatus],
    sequence: Sequence,
) -> Result<Option<Arc<OpenImage>>, LinkError> {
    let open = OpenSlot::new(superblock, sequence)?.grow(connection, superblock, streams)?;
    Ok(open.and_then(|open| open.seal(superblock)).map(Arc::new))
}

/// A slot that is sealed in our memory only.
#[derive(Debug)]
pub(crate) struct OpenImage {
    sequence: Sequence,
    image: Buffer,
    bytes: usize,
    payload: usize,
}

impl OpenImage {
    pub(crate) fn sequence(&self) -> Sequence {
        self.sequence
    }

    /// Its bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.image[..self.bytes]
    }
}

/// What is known of an open slot so far.
#[derive(Debug)]
struct OpenSlot {
    id: SlotId,
    cursor: u64,
    buffer: Buffer,
    rebuild: Option<Rebuild>,
    /// As it was when it was last looked at.
    image: Option<Arc<OpenImage>>,
}

impl OpenSlot {
    fn new(superblock: &Superblock, sequence: Sequence) -> Result<Self, LinkError> {
        let buffer = Buffer::aligned(superblock.geometry.slot_bytes as usize)?;
        let (ring, group, lane) = (superblock.ring, superblock.group, superblock.lane);
        let id = SlotId { ring, group, lane, sequence, ..SlotId::default() };
        Ok(Self { id, cursor: 0, buffer, rebuild: None, image: None })
    }

    /// With what it has gained; `None`: it is not open any more, and what is known of it is too little.
    fn grow(
        mut self,
        connection: &mut Connection,
        superblock: &Superblock,
        streams: &[StreamStatus],
    ) -> Result<Option<Self>, LinkError> {
        while let Reply::Gains { cursor, end, records } =
            connection.open_gains(self.id.sequence, self.cursor)?
        {
            let ended = end || (cursor == self.cursor && records.is_empty());
            self.apply(&records, superblock, streams, connection.path())?;
            self.cursor = cursor;
            if ended {
                return Ok(Some(self));
            }
        }
        Ok(None)
    }

    /// Takes the records of one reply.
    fn apply(
        &mut self,
        records: &[u8],
        superblock: &Superblock,
        streams: &[StreamStatus],
        path: &Path,
    ) -> Result<(), LinkError> {
        let wrong = || LinkError::Protocol {
            path: path.to_owned(),
            wire: WireError::Short { message: "gains", at: 0, what: "a journal record" },
        };
        for record in Records::new(records) {
            let record = record.map_err(|_| wrong())?;
            match (&record, &mut self.rebuild) {
                (Record::OpenSlot(open), None) if open.sequence == self.id.sequence => {
                    self.open(open, superblock, streams).ok_or_else(wrong)?;
                }
                (_, Some(rebuild)) => {
                    rebuild.apply(&mut self.buffer, &record).map_err(|_| wrong())?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn open(
        &mut self,
        open: &OpenRecord<'_>,
        superblock: &Superblock,
        streams: &[StreamStatus],
    ) -> Option<()> {
        let entry = |entry: holdfast_format::OpenEntry| {
            let known = streams.iter().find(|stream| stream.id == entry.stream);
            let name = known.and_then(|stream| Name::new(&stream.name).ok()).unwrap_or_default();
            let kind = known.map(|stream| stream.kind).unwrap_or_default();
            let (stream, preamble, counters) = (entry.stream, entry.preamble, entry.counters);
            let (began, classes) = (entry.began(open.age), Classes::default());
            Entry { stream, kind, name, preamble, classes, counters, began }
        };
        let entries: Vec<Entry> = open.entries.iter().map(entry).collect();
        self.id = SlotId { epoch: open.epoch, age: open.age, ..self.id };
        let builder = Builder::new(superblock.geometry.slot_bytes, entries.len());
        let rebuild = Rebuild::open(builder, &mut self.buffer, self.id, open.opened, &entries).ok()?;
        self.rebuild = Some(rebuild);
        Some(())
    }

    /// As it is now, in memory that it keeps for that as long as nobody else does. `None`: nothing came of it.
    fn image(&mut self, superblock: &Superblock) -> Result<Option<Arc<OpenImage>>, LinkError> {
        let Some(rebuild) = &mut self.rebuild else { return Ok(None) };
        let mut last = match self.image.take().and_then(Arc::into_inner) {
            Some(last) => last,
            None => OpenImage {
                sequence: self.id.sequence,
                image: Buffer::aligned(superblock.geometry.slot_bytes as usize)?,
                bytes: 0,
                payload: 0,
            },
        };
        let builder = rebuild.settle(&mut self.buffer);
        let sealed = builder.seal_copy(&self.buffer, &mut last.image, last.payload, &superblock.key);
        (last.bytes, last.payload) = (sealed.bytes, sealed.payload_bytes);
        Ok(Some(Arc::clone(self.image.insert(Arc::new(last)))))
    }

    /// The same, where nothing more is wanted of it.
    fn seal(mut self, superblock: &Superblock) -> Option<OpenImage> {
        let mut builder = self.rebuild.take()?.finish(&mut self.buffer);
        let (key, flags) = (&superblock.key, SlotFlags::SHORT);
        let sealed = builder.seal(&mut self.buffer, key, SlotNo(0), Timestamp(0), flags);
        let (sequence, payload) = (self.id.sequence, sealed.payload_bytes);
        Some(OpenImage { sequence, image: self.buffer, bytes: sealed.bytes, payload })
    }
}

/// What an image has in a range, and zeros beyond its end.
pub(crate) fn cut(image: &[u8], range: Range<usize>) -> Vec<u8> {
    let there = image.get(range.start..range.end.min(image.len())).unwrap_or_default();
    let mut bytes = Vec::with_capacity(range.len());
    bytes.extend_from_slice(there);
    bytes.resize(range.len(), 0);
    bytes
}

/// Copies what an image has at `offset`, and zeros beyond its end.
pub(crate) fn copy(image: &[u8], offset: usize, into: &mut [u8]) {
    let from = image.get(offset..).unwrap_or_default();
    let len = from.len().min(into.len());
    into[..len].copy_from_slice(&from[..len]);
    into[len..].fill(0);
}
