//! Record of an open slot: its future header and dictionary, kept as bytes so that making it allocates
//! nothing.

use crate::FormatError;
use crate::bytes::{FieldReader, SliceWriter};
use crate::slot::Counters;
use holdfast_base::{Age, Epoch, Sequence, StreamId, Timestamp};

/// An open slot as the journal names it before anything that the slot gains.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OpenSlot<'a> {
    /// Its sequence.
    pub sequence: Sequence,
    /// The run that opened it.
    pub epoch: Epoch,
    /// When it will expire.
    pub age: Age,
    /// When it was opened.
    pub opened: Timestamp,
    /// Where in the slot the payload begins.
    pub payload_offset: u32,
    /// Its dictionary.
    pub entries: OpenEntries<'a>,
}

/// One dictionary entry of an open slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct OpenEntry {
    /// The stream.
    pub stream: StreamId,
    /// Version of its preamble in force.
    pub preamble: u32,
    /// What it had received and lost when the slot was opened.
    pub counters: Counters,
    /// How many ages before this slot's an element began of which only fragments had come by then; 0: there is none.
    pub back: u64,
}

/// The dictionary of an open slot, as bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct OpenEntries<'a>(&'a [u8]);

impl<'a> OpenEntries<'a> {
    pub(crate) const BYTES: usize = 16 + Counters::BYTES;

    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.0.len() / Self::BYTES
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The entries in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = OpenEntry> + use<'a> {
        self.0.chunks_exact(Self::BYTES).map(|bytes| OpenEntry::read(bytes).unwrap_or_default())
    }
}

impl OpenEntry {
    /// The age of the slot that the element began in, for an open slot of that age.
    pub fn began(&self, age: Age) -> Option<Age> {
        (self.back > 0).then_some(Age(age.0.saturating_sub(self.back)))
    }

    pub(crate) fn put(&self, put: &mut SliceWriter<'_>) {
        put.u32(self.stream.0).u32(self.preamble);
        self.counters.put(put);
        put.u64(self.back);
    }

    fn read(bytes: &[u8]) -> Result<Self, FormatError> {
        let mut get = FieldReader::new("open slot", bytes);
        let (stream, preamble) = (StreamId(get.u32()?), get.u32()?);
        Ok(Self { stream, preamble, counters: Counters::read(&mut get)?, back: get.u64()? })
    }
}

impl<'a> OpenSlot<'a> {
    pub(super) fn put(&self, put: &mut SliceWriter<'_>) {
        put.u64(self.sequence.0).u64(self.epoch.0).u64(self.age.0).time(self.opened).u32(self.payload_offset);
        put.u16(self.entries.len() as u16).u16(0).bytes(self.entries.0);
    }

    pub(super) fn read(get: &mut FieldReader<'a>) -> Result<Self, FormatError> {
        let (sequence, epoch, age) = (Sequence(get.u64()?), Epoch(get.u64()?), Age(get.u64()?));
        let (opened, payload_offset) = (get.time()?, get.u32()?);
        let count = usize::from(get.u16()?);
        get.take(2)?;
        let entries = OpenEntries(get.take(count * OpenEntries::BYTES)?);
        Ok(Self { sequence, epoch, age, opened, payload_offset, entries })
    }
}
