//! A recorder in miniature: elements that are in memory already go through the packer, the ring and a lane with its
//! own thread to a real file or device. The same parts as the real one, without sources, socket and shared memory.

use crate::BenchError;
use holdfast_base::{Age, Clock, Epoch, LaneNo, Ordinal, RingId, SlotNo, SystemClock, Timestamp};
use holdfast_format::{Classes, Cursor, Entry, Flags, Geometry, Key, Sealed, SlotFlags, SlotId, StreamKind};
use holdfast_ingest::{Batch, BatchRow, Content, Packer, Progress};
use holdfast_media::{
    Access, Buffer, BufferPool, Device, Disk, InflightLimiter, Lane, LaneOptions, Lock, RealDisk,
};
use holdfast_ring::{
    Bounds, Config, Driver, DriverCounts, NewRing, NewStream, OpenBrief, SealedSlot, create, is_slot_write,
    recover,
};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::ops::DerefMut;
use std::path::Path;
use std::time::Duration;

/// What slots are made for where there is no ring.
const NO_RING: RingId = RingId(*b"holdfast-bench-0");

/// Bytes that no other ring has: old slots of the same place must not look as if they were this one's.
fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    for piece in bytes.chunks_mut(8) {
        let word = RandomState::new().build_hasher().finish().to_le_bytes();
        piece.copy_from_slice(&word[..piece.len()]);
    }
    bytes
}

/// How it runs.
#[derive(Clone, Copy, Debug)]
pub struct MiniatureSetup {
    /// Slot size.
    pub slot_bytes: u64,
    /// Slot buffers.
    pub buffers: usize,
    /// Slot writes at once; over a lane one more waits its turn, as in the real one.
    pub writes: usize,
}

/// Makes a ring that takes all of a file or device, whatever is there; its space must be reserved.
pub fn make(path: &Path, slot_bytes: u64) -> Result<Geometry, BenchError> {
    let device = Device::open(path, Access::Own).map_err(BenchError::during("opening the lane"))?;
    let mut disk = RealDisk::new(device, &[], 8);
    let geometry = Geometry::for_lane(disk.info().bytes, slot_bytes, Vec::new());
    let geometry = geometry.map_err(BenchError::during("dividing the lane"))?;
    let plain = NewRing::plain(RingId(random()), Key(random()), "bench", geometry.clone());
    let new = NewRing { prefilled: true, ..plain };
    create(&mut disk, new, SystemClock::new().wall()).map_err(BenchError::during("making the ring"))?;
    Ok(geometry)
}

/// The recorder: one stream of elements.
#[derive(Debug)]
pub struct MiniatureRecorder<D: Disk> {
    driver: Driver<D>,
    packer: Packer<Buffer>,
    entries: Vec<Entry>,
    clock: SystemClock,
}

impl MiniatureRecorder<Lane> {
    /// Begins a run on the ring at `path`.
    pub fn start(path: &Path, setup: MiniatureSetup) -> Result<Self, BenchError> {
        let device = Device::open(path, Access::Own).map_err(BenchError::during("opening the lane"))?;
        let pool = BufferPool::new(setup.buffers, setup.slot_bytes as usize, Lock::Prefault);
        let mut pool = pool.map_err(BenchError::during("getting buffers"))?;
        let mut disk = RealDisk::new(device, &[pool.region()], setup.writes + 8);
        disk.limit_inflight(InflightLimiter::new(is_slot_write, setup.writes));
        let owner = std::thread::current();
        let notify = Box::new(move || owner.unpark());
        let lane = Lane::spawn(disk, "lane", LaneOptions::default(), notify);
        let lane = lane.map_err(BenchError::during("starting the lane's thread"))?;
        let buffers = std::iter::from_fn(|| pool.take()).collect();
        Self::over(lane, buffers, MiniatureSetup { writes: setup.writes + 1, ..setup })
    }
}

impl<D: Disk> MiniatureRecorder<D> {
    /// Begins a run on a disk with a ring on it.
    pub fn over(mut disk: D, buffers: Vec<Buffer>, setup: MiniatureSetup) -> Result<Self, BenchError> {
        let clock = SystemClock::new();
        let recovered = recover(&mut disk).map_err(BenchError::during("recovering the ring"))?;
        let flush = Duration::from_secs(1);
        let config = Config { buffers: setup.buffers as u32, flush, writes: setup.writes };
        let driver = Driver::start(disk, recovered, buffers, config, clock.now(), clock.wall());
        let mut driver = driver.map_err(BenchError::during("starting the ring"))?;
        let new = NewStream {
            name: "bench",
            kind: StreamKind::Bytes,
            framing: "blocks:1MiB",
            preamble: None,
            schema: None,
        };
        let entry = driver
            .ring_mut()
            .add_stream(&new, clock.now())
            .map_err(BenchError::during("adding the stream"))?;
        let packer = Packer::new(setup.slot_bytes, 4);
        let mut recorder = Self { driver, packer, entries: vec![entry], clock };
        while recorder.driver.is_starting() {
            recorder.poll(Duration::from_millis(20));
        }
        Ok(recorder)
    }

    /// The ordinal that comes next.
    pub fn next_ordinal(&self) -> Ordinal {
        self.entries[0].counters.next_ordinal
    }

    /// What is below.
    pub fn driver(&mut self) -> &mut Driver<D> {
        &mut self.driver
    }

    fn brief(&self) -> Option<OpenBrief> {
        let slot = self.packer.is_open().then(|| self.packer.slot())?;
        Some(OpenBrief {
            sequence: slot.sequence(),
            bounds: self.bounds(),
            end: slot.cursor(),
            room: slot.room() as u64,
        })
    }

    fn bounds(&self) -> Bounds {
        Bounds::of(self.packer.slot().summaries())
    }

    /// Lets the ring do what is due.
    pub fn poll(&mut self, wait: Duration) {
        let brief = self.brief();
        let packer = &self.packer;
        self.driver.poll(self.clock.now(), wait, brief, &mut |from, writer| {
            if !packer.is_open() {
                return (from, true);
            }
            if from == Cursor::default() && !writer.push(&packer.slot().open_record()) {
                return (from, false);
            }
            packer.journal_delta(from, writer)
        });
    }

    /// Takes the rows of a batch, waiting where a real source would be made to wait.
    pub fn take(&mut self, batch: &Batch) -> Result<(), BenchError> {
        let mut place = holdfast_ingest::BatchPosition::default();
        loop {
            if !self.packer.is_open() {
                self.open()?;
            }
            match self.packer.push(0, batch, place) {
                Progress::Done => break,
                Progress::Full(from) => place = from,
            }
            self.seal(SlotFlags::default());
        }
        self.poll(Duration::ZERO);
        Ok(())
    }

    fn open(&mut self) -> Result<(), BenchError> {
        let patience = Duration::from_millis(20);
        let buffer = loop {
            // What is in memory can wait, like a file that is replayed, or a pipe.
            if self.driver.has_buffer(true)
                && let Some(buffer) = self.driver.take_buffer()
            {
                break buffer;
            }
            self.poll(patience);
        };
        let sequence = loop {
            match self.driver.ring_mut().open_next(self.clock.now()) {
                Some(sequence) => break sequence,
                None => self.poll(patience),
            }
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
        let opened = self.packer.open(buffer, id, self.clock.now(), &self.entries);
        opened.map_err(|(_, error)| BenchError::during("opening a slot")(error.to_string()))
    }

    /// Ends the open slot, short as it may be.
    pub fn seal(&mut self, flags: SlotFlags) {
        let key = self.driver.key().clone();
        let bounds = if self.packer.is_open() { self.bounds() } else { Bounds::NONE };
        let Some((buffer, sealed)) = self.packer.seal(&key, SlotNo(0), self.clock.now(), flags) else {
            return;
        };
        let Sealed { sequence, bytes, .. } = sealed;
        let entry = &mut self.entries[0];
        (entry.counters, entry.began) = (self.packer.slot().counters(0), self.packer.slot().began(0));
        let streams = [(entry.stream, entry.preamble, entry.counters)];
        let slot = SealedSlot { sequence, age: Age(sequence.0), bytes, bounds };
        self.driver.sealed(buffer, slot, &streams, self.clock.now());
    }

    /// Seals what is open and waits until everything is on the medium.
    pub fn settle(&mut self) {
        self.seal(SlotFlags::SHORT);
        self.poll(Duration::ZERO);
        while !self.driver.is_idle() {
            self.poll(Duration::from_millis(20));
        }
    }

    /// Ends the run well; what passed through.
    pub fn end(mut self) -> (DriverCounts, D) {
        self.settle();
        self.driver.ring_mut().end(self.clock.now());
        self.settle();
        (*self.driver.counts(), self.driver.into_disk())
    }
}

/// Elements that lie in memory: a few batches that are given again and again, with new ordinals and times.
#[derive(Debug)]
pub struct MemoryElements {
    batches: Vec<Batch>,
    size: u64,
    /// Bytes of the element under way that have been given.
    given: u64,
    ordinal: u64,
    turn: usize,
}

impl MemoryElements {
    /// Elements of `size` bytes; `batches` should be more than a cache holds where that matters.
    pub fn new(size: u64, mut batches: Vec<Batch>, first: Ordinal) -> Self {
        for (number, batch) in batches.iter_mut().enumerate() {
            let mut state = number as u32 | 1;
            for byte in batch.free() {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                *byte = (state >> 24) as u8;
            }
        }
        Self { batches, size, given: 0, ordinal: first.0, turn: 0 }
    }

    /// Elements that have been given whole.
    pub fn ordinal(&self) -> Ordinal {
        Ordinal(self.ordinal)
    }

    /// The next batch: as full as it gets, the last element cut where it ends if it is larger than a batch.
    pub fn next(&mut self, now: Timestamp, most: u64) -> &Batch {
        self.turn = (self.turn + 1) % self.batches.len();
        let batch = &mut self.batches[self.turn];
        batch.clear();
        let end = self.ordinal.saturating_add(most);
        let mut at = 0usize;
        while batch.rows_left() > 0 && self.ordinal < end {
            let left = self.size - self.given;
            let len = left.min(batch.room() as u64);
            let cut = len < left;
            if len == 0 || (cut && self.size <= batch.capacity() as u64) {
                break;
            }
            batch.fill(len as usize);
            let content = match (self.given == 0, cut) {
                (true, false) => Content::Whole,
                (true, true) => Content::First { total: Some(self.size) },
                (false, true) => Content::Middle,
                (false, false) => Content::Last,
            };
            let pushed = batch.push(BatchRow {
                content,
                flags: Flags::default(),
                meta: 0,
                tag: 0,
                at: at as u32,
                len: len as u32,
                extra: 0,
                ordinal: Ordinal(self.ordinal),
                arrival: Timestamp(now.0 + at as i64),
                span: 0,
                event: Timestamp(0),
            });
            debug_assert!(pushed);
            at += len as usize;
            self.given += len;
            if !cut {
                self.given = 0;
                self.ordinal += 1;
            }
        }
        batch
    }
}

/// Packs into one buffer without a ring: sealed slots are thrown away.
#[derive(Debug)]
pub struct BarePacker<B> {
    packer: Packer<B>,
    spare: Option<B>,
    entries: Vec<Entry>,
    sequence: u64,
    /// Slots sealed.
    pub slots: u64,
    /// Bytes of them.
    pub slot_bytes: u64,
    /// Bytes of payload in them.
    pub payload_bytes: u64,
}

impl<B: DerefMut<Target = [u8]>> BarePacker<B> {
    /// Into slots of `slot_bytes`.
    pub fn new(buffer: B, slot_bytes: u64) -> Self {
        Self {
            packer: Packer::new(slot_bytes, 4),
            spare: Some(buffer),
            entries: vec![Entry::default()],
            sequence: 0,
            slots: 0,
            slot_bytes: 0,
            payload_bytes: 0,
        }
    }

    /// The same, of elements with such columns.
    pub fn with_columns(buffer: B, slot_bytes: u64, classes: Classes) -> Result<Self, BenchError> {
        let mut bare = Self::new(buffer, slot_bytes);
        bare.entries[0].classes = classes;
        bare.packer.prepare(&bare.entries).map_err(BenchError::during("preparing columns"))?;
        Ok(bare)
    }

    /// Packs a batch.
    pub fn take(&mut self, batch: &Batch, now: Timestamp) -> Result<(), BenchError> {
        let mut place = holdfast_ingest::BatchPosition::default();
        loop {
            if let Some(buffer) = self.spare.take() {
                self.sequence += 1;
                let sequence = holdfast_base::Sequence(self.sequence);
                let age = Age(self.sequence);
                let id =
                    SlotId { ring: NO_RING, group: NO_RING, lane: LaneNo(0), sequence, epoch: Epoch(1), age };
                let opened = self.packer.open(buffer, id, now, &self.entries);
                opened.map_err(|(_, error)| BenchError::during("opening a slot")(error.to_string()))?;
            }
            match self.packer.push(0, batch, place) {
                Progress::Done => return Ok(()),
                Progress::Full(from) => place = from,
            }
            self.seal(now);
        }
    }

    /// Ends the slot.
    pub fn seal(&mut self, now: Timestamp) {
        let sealed = self.packer.seal(&Key([7; 32]), SlotNo(1), now, SlotFlags::default());
        if let Some((buffer, sealed)) = sealed {
            self.spare = Some(buffer);
            self.entries[0].counters = self.packer.slot().counters(0);
            self.slots += 1;
            self.slot_bytes += sealed.bytes as u64;
            self.payload_bytes += sealed.payload_bytes as u64;
        }
    }

    /// The buffer, once the last slot is sealed.
    pub fn into_buffer(self) -> Option<B> {
        self.spare
    }

    /// What the stream has come to.
    pub fn received(&self) -> holdfast_format::Counters {
        self.entries[0].counters
    }
}
