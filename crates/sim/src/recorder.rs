//! A recorder in miniature: one open slot over a driver, with the same steps in the same order as the real
//! one. Its callers decide what is recorded, and what must come of it.

use crate::attributes;
use holdfast_base::{Age, Clock, LaneNo, ManualClock, Sequence, SlotNo, StreamId};
use holdfast_format::{Builder, CellsAt, Counters, Cursor, Entry, Row, SlotFlags, SlotId};
use holdfast_media::{Buffer, Disk};
use holdfast_ring::{Bounds, Config, Driver, NewStream, OpenBrief, Recovered, Refusal, SealedSlot};
use std::time::Duration;

/// A run of a recorder.
#[derive(Debug)]
pub struct Recorder<D: Disk> {
    /// The ring on its disk.
    pub driver: Driver<D>,
    /// The dictionary of every slot.
    pub entries: Vec<Entry>,
    builder: Builder,
    open: Option<Buffer>,
    clock: ManualClock,
}

impl<D: Disk> Recorder<D> {
    /// Begins a run on what recovery found. [`Recorder::poll`] it until [`Driver::is_starting`] is false.
    ///
    /// # Panics
    ///
    /// When there is no memory for its buffers.
    #[expect(clippy::expect_used, reason = "a test without memory cannot go on")]
    pub fn start(disk: D, recovered: Recovered, config: Config, clock: &ManualClock) -> Self {
        let slot = recovered.superblock.geometry.slot_bytes;
        let buffer = |_| Buffer::aligned(slot as usize).expect("memory for a slot");
        let buffers = (0..config.buffers).map(buffer).collect();
        let driver = Driver::start(disk, recovered, buffers, config, clock.now(), clock.wall())
            .expect("memory for the driver");
        Self {
            driver,
            entries: Vec::new(),
            builder: Builder::new(slot, 16),
            open: None,
            clock: clock.clone(),
        }
    }

    /// Adds a stream; the place of its dictionary entry.
    pub fn add_stream(&mut self, new: &NewStream<'_>) -> Result<u16, Refusal> {
        let entry = self.driver.ring_mut().add_stream(new, self.clock.now())?;
        self.entries.push(entry);
        // The builder has room for more columns than any test has.
        let _ = self.builder.prepare(&self.entries);
        Ok(self.entries.len() as u16 - 1)
    }

    /// The open slot's sequence.
    pub fn open(&self) -> Option<Sequence> {
        self.open.is_some().then(|| self.builder.sequence())
    }

    /// Bytes of payload that the open slot can still take.
    pub fn room(&self) -> usize {
        if self.open.is_some() { self.builder.room() } else { 0 }
    }

    /// What the ring must know of the open slot.
    pub fn brief(&self) -> Option<OpenBrief> {
        let sequence = self.open()?;
        let (bounds, end) = (self.bounds(), self.builder.cursor());
        Some(OpenBrief { sequence, bounds, end, room: self.builder.room() as u64 })
    }

    fn bounds(&self) -> Bounds {
        Bounds::of(self.builder.summaries())
    }

    /// Lets the driver work for a moment.
    pub fn poll(&mut self) {
        let brief = self.brief();
        let (builder, open) = (&self.builder, &self.open);
        self.driver.poll(self.clock.now(), Duration::ZERO, brief, &mut |from, writer| {
            let Some(buffer) = open else { return (from, true) };
            if from == Cursor::default() && !writer.push(&builder.open_record()) {
                return (from, false);
            }
            builder.journal_delta(buffer, from, writer)
        });
    }

    /// Opens a slot, if a buffer and a sequence are there.
    pub fn open_slot(&mut self) -> Option<Sequence> {
        let mut buffer = self.driver.take_buffer()?;
        let now = self.clock.now();
        let Some(sequence) = self.driver.ring_mut().open_next(now) else {
            self.driver.give_buffer(buffer);
            return None;
        };
        let superblock = self.driver.superblock();
        let id = SlotId {
            ring: superblock.ring,
            group: superblock.group,
            lane: LaneNo(0),
            sequence,
            epoch: self.driver.ring().epoch(),
            age: Age(sequence.0),
        };
        // The builder has room for more streams than any test has.
        let _ = self.builder.open(&mut buffer, id, now, &self.entries);
        self.open = Some(buffer);
        Some(sequence)
    }

    /// Puts a row into the open slot, which has room for it; with its attributes, where its stream has some.
    pub fn push(&mut self, row: &Row, bytes: &[u8]) {
        if let Some(buffer) = &mut self.open {
            self.builder.write(buffer, bytes);
            let cells = attributes::of_row(&self.entries[usize::from(row.stream)], row);
            self.builder.row_with(buffer, row, CellsAt { columns: &cells, first: 0 });
            let entry = &mut self.entries[usize::from(row.stream)];
            (entry.counters, entry.began) =
                (self.builder.counters(row.stream), self.builder.began(row.stream));
        }
    }

    /// Seals the open slot and gives it to the driver.
    pub fn seal(&mut self, flags: SlotFlags) -> Option<Sequence> {
        let mut buffer = self.open.take()?;
        let (key, now) = (self.driver.key().clone(), self.clock.now());
        let bounds = self.bounds();
        let sealed = self.builder.seal(&mut buffer, &key, SlotNo(0), now, flags);
        let streams: Vec<(StreamId, u32, Counters)> =
            self.builder.summaries().map(|e| (e.stream, e.preamble, e.counters)).collect();
        let sequence = sealed.sequence;
        let slot = SealedSlot { sequence, age: Age(sequence.0), bytes: sealed.bytes, bounds };
        self.driver.sealed(buffer, slot, &streams, now);
        Some(sequence)
    }

    /// Ends the run where it stands.
    pub fn into_disk(self) -> D {
        self.driver.into_disk()
    }
}
