//! A recorder in miniature on a memory disk, and helpers that read the disk behind it.

#![allow(dead_code, reason = "each test takes what it needs")]
#![allow(clippy::unwrap_used, clippy::expect_used)]

use holdfast_base::{
    Clock as _, LaneNo, ManualClock, Ordinal, RingId, Sequence, SlotNo, StreamId, Timestamp,
};
use holdfast_format::{
    Builder, Chunk, Counters, Cursor, Entry, Geometry, Key, Kind, Row, SectionKind, SlotFlags, SlotId,
    StreamKind, Superblock, check_image, decode_directory,
};
use holdfast_media::{Buffer, Disk as _, MemoryDisk};
use holdfast_ring::{
    Bounds, Config, Driver, HoldRequest, NewRing, NewStream, OpenBrief, Order, OrderTag, Outcome,
    PurgeRequest, Range, SealedSlot, create, recover,
};
use std::time::Duration;

pub(crate) const SLOT: u64 = 64 << 10;
pub(crate) const SLOTS: u64 = 24;

/// A recorder in miniature: one stream, one element after the other.
pub(crate) struct Recorder {
    pub(crate) driver: Driver<MemoryDisk>,
    pub(crate) entries: Vec<Entry>,
    pub(crate) builder: Builder,
    pub(crate) open: Option<Buffer>,
    pub(crate) clock: ManualClock,
    pub(crate) next: u64,
}

pub(crate) fn made() -> MemoryDisk {
    let mut disk = MemoryDisk::new((1 << 20) + 4 * SLOT + SLOTS * SLOT);
    let superblock = make(&mut disk, 7, SLOT);
    assert_eq!(u64::from(superblock.geometry.slots), SLOTS);
    disk
}

/// A new ring on all of a disk, whatever was there.
pub(crate) fn make(disk: &mut MemoryDisk, id: u8, slot_bytes: u64) -> Superblock {
    let geometry = Geometry::for_lane(disk.info().bytes, slot_bytes, Vec::new()).unwrap();
    let (ring, key) = (RingId([id; 16]), Key([9; 32]));
    let new = NewRing::plain(ring, key, "r", geometry);
    create(disk, new, Timestamp(1)).unwrap()
}

impl Recorder {
    pub(crate) fn start(mut disk: MemoryDisk, clock: &ManualClock) -> Self {
        let recovered = recover(&mut disk).unwrap();
        let buffers = (0..3).map(|_| Buffer::aligned(SLOT as usize).unwrap()).collect();
        let config = Config { buffers: 3, flush: Duration::from_secs(1), writes: 1 };
        let mut driver = Driver::start(disk, recovered, buffers, config, clock.now(), clock.wall()).unwrap();
        let new = NewStream {
            name: "s",
            kind: StreamKind::Bytes,
            framing: "fixed:1000",
            preamble: Some(b"head"),
            schema: None,
        };
        let entry = driver.ring_mut().add_stream(&new, clock.now()).unwrap();
        let next = entry.counters.next_ordinal.0;
        let mut recorder = Self {
            driver,
            entries: vec![entry],
            builder: Builder::new(SLOT, 4),
            open: None,
            clock: clock.clone(),
            next,
        };
        for _ in 0..50 {
            recorder.poll();
        }
        assert!(!recorder.driver.is_starting());
        recorder
    }

    pub(crate) fn brief(&self) -> Option<OpenBrief> {
        self.open.as_ref()?;
        let mut bounds = Bounds::NONE;
        for summary in self.builder.summaries() {
            if let Some((first, last)) = summary.arrivals {
                bounds.add(summary.stream, first, last, None);
            }
        }
        let end = self.builder.cursor();
        Some(OpenBrief { sequence: self.builder.sequence(), bounds, end, room: self.builder.room() as u64 })
    }

    pub(crate) fn poll(&mut self) {
        let brief = self.brief();
        let (builder, open) = (&self.builder, &self.open);
        self.driver.poll(self.clock.now(), Duration::ZERO, brief, &mut |from, writer| {
            let Some(buffer) = open else { return (from, true) };
            if from == Cursor::default() && !writer.push(&builder.open_record()) {
                return (from, false);
            }
            builder.journal_delta(buffer, from, writer)
        });
        assert_eq!(self.driver.ring().miscounts(), None);
    }

    /// Records one element of 1000 bytes that repeat its ordinal.
    pub(crate) fn element(&mut self) {
        let payload = self.next.to_le_bytes().repeat(125);
        self.row(Row { kind: Kind::Element, ordinal: Ordinal(self.next), ..Row::default() }, &payload);
        self.next += 1;
    }

    /// Records a row of such data.
    pub(crate) fn row(&mut self, row: Row, data: &[u8]) {
        self.clock.set(self.clock.now() + Duration::from_millis(1));
        if self.open.is_some() && self.builder.room() < data.len().max(1) {
            self.seal(SlotFlags::default());
        }
        if self.open.is_none() {
            let sequence = loop {
                if let Some(sequence) = self.driver.ring_mut().open_next(self.clock.now()) {
                    break sequence;
                }
                self.poll();
            };
            let mut buffer = loop {
                if let Some(buffer) = self.driver.take_buffer() {
                    break buffer;
                }
                self.poll();
            };
            let superblock = self.driver.superblock();
            let id = SlotId {
                ring: superblock.ring,
                group: superblock.group,
                lane: LaneNo(0),
                sequence,
                epoch: self.driver.ring().epoch(),
                age: holdfast_base::Age(sequence.0),
            };
            self.builder.open(&mut buffer, id, self.clock.now(), &self.entries).unwrap();
            self.open = Some(buffer);
        }
        let buffer = self.open.as_mut().unwrap();
        self.builder.write(buffer, data);
        self.builder.row(buffer, &Row { len: data.len() as u32, arrival: self.clock.now(), ..row });
        self.poll();
    }

    pub(crate) fn seal(&mut self, flags: SlotFlags) {
        let Some(mut buffer) = self.open.take() else { return };
        let bounds = {
            let mut bounds = Bounds::NONE;
            for summary in self.builder.summaries() {
                let (first, last) = summary.arrivals.unwrap();
                bounds.add(summary.stream, first, last, None);
            }
            bounds
        };
        let key = self.driver.key().clone();
        let sealed = self.builder.seal(&mut buffer, &key, SlotNo(0), self.clock.now(), flags);
        let counters = self.builder.counters(0);
        self.entries[0].counters = counters;
        let sequence = sealed.sequence;
        let slot = SealedSlot { sequence, age: holdfast_base::Age(sequence.0), bytes: sealed.bytes, bounds };
        let streams: [(StreamId, u32, Counters); 1] =
            [(self.entries[0].stream, self.entries[0].preamble, counters)];
        self.driver.sealed(buffer, slot, &streams, self.clock.now());
    }

    pub(crate) fn order(&mut self, order: Order) -> Outcome {
        let brief = self.brief();
        self.driver.order(OrderTag(1), order, brief, self.clock.now());
        for _ in 0..1000 {
            if let Some((_, outcome)) = self.driver.reply() {
                return outcome;
            }
            self.poll();
        }
        panic!("no reply");
    }

    pub(crate) fn stop(mut self) -> MemoryDisk {
        self.seal(SlotFlags::SHORT);
        while !self.driver.is_idle() {
            self.poll();
        }
        self.driver.ring_mut().end(self.clock.now());
        self.poll();
        while !self.driver.is_idle() {
            self.poll();
        }
        self.driver.into_disk()
    }
}

/// Ordinals that are on the disk, slot by slot in order of age; every byte checked.
pub(crate) fn ordinals(disk: &MemoryDisk) -> Vec<u64> {
    let mut copy = MemoryDisk::from_image(disk.snapshot());
    let recovered = recover(&mut copy).unwrap();
    let image = disk.snapshot();
    let mut found = Vec::new();
    let mut slots: Vec<_> = recovered.data().map(|(no, sequence, age)| (age, sequence, no)).collect();
    slots.sort_unstable();
    let mut images: Vec<(Sequence, Vec<u8>)> = slots
        .iter()
        .map(|(_, sequence, no)| {
            let at = recovered.superblock.geometry.slot_offset(*no);
            (*sequence, image.range(at, SLOT as usize))
        })
        .collect();
    images.extend(recovered.rebuilt.iter().map(|r| (r.sealed.sequence, r.image.to_vec())));
    for (sequence, bytes) in images {
        let (header, summary) =
            check_image(&bytes, &recovered.superblock.key, recovered.superblock.ring).unwrap();
        assert_eq!(header.sequence, sequence);
        let (first, last) = summary.entries[0].ordinals.unwrap();
        let payload = &bytes[header.payload_offset as usize..][..header.payload_bytes as usize];
        for (element, ordinal) in payload.chunks(1000).zip(first.0..=last.0) {
            assert_eq!(element, ordinal.to_le_bytes().repeat(125));
            found.push(ordinal);
        }
    }
    found
}

pub(crate) fn hold_last(clock: &ManualClock, span: Duration) -> Order {
    Order::Hold(HoldRequest {
        streams: Vec::new(),
        range: Range { from: clock.now() - span, to: clock.now(), by_event: false, ordinals: None },
        sequences: None,
        reason: "test".into(),
        owner: "me".into(),
        until: Timestamp::MAX,
        condition_hold: None,
        order: None,
    })
}

/// Ordinals of the elements that are on the disk, read row by row, gaps left out.
pub(crate) fn payloads(disk: &MemoryDisk) -> Vec<u64> {
    let elements = rows(disk).into_iter().filter(|(row, _)| row.kind == Kind::Element);
    elements
        .map(|(row, data)| {
            assert_eq!(data, row.ordinal.0.to_le_bytes().repeat(125));
            row.ordinal.0
        })
        .collect()
}

/// The rows that are on the disk, with their data, slot by slot in order of age.
pub(crate) fn rows(disk: &MemoryDisk) -> Vec<(Row, Vec<u8>)> {
    let mut copy = MemoryDisk::from_image(disk.snapshot());
    let recovered = recover(&mut copy).unwrap();
    let image = disk.snapshot();
    let mut slots: Vec<_> = recovered.data().map(|(no, _, age)| (age, no)).collect();
    slots.sort_unstable();
    let mut found = Vec::new();
    for (_, no) in slots {
        let bytes = image.range(recovered.superblock.geometry.slot_offset(no), SLOT as usize);
        let (header, summary) =
            check_image(&bytes, &recovered.superblock.key, recovered.superblock.ring).unwrap();
        let directory = summary.section(SectionKind::ChunkDirectory).unwrap();
        let base = summary.section(SectionKind::Chunks).unwrap().range().start;
        for entry in decode_directory(&bytes[directory.range()], directory.crc).unwrap() {
            let chunk = &bytes[base + entry.offset as usize..][..entry.bytes as usize];
            for (row, at) in Chunk::decode(chunk).unwrap().rows() {
                let at = header.payload_offset as usize + at as usize;
                found.push((row, bytes[at..at + row.len as usize].to_vec()));
            }
        }
    }
    found
}

/// Ordinals of which any trace of the payload is left anywhere on the medium.
pub(crate) fn traces(disk: &MemoryDisk) -> Vec<u64> {
    let image = disk.snapshot();
    let bytes = image.range(0, image.bytes() as usize);
    let mut found = std::collections::BTreeSet::new();
    let words: Vec<u64> = bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
    for window in words.windows(3).filter(|w| w[0] == w[1] && w[1] == w[2]) {
        if (1..1 << 20).contains(&window[0]) {
            found.insert(window[0]);
        }
    }
    found.into_iter().collect()
}

pub(crate) fn purge(first: u64, end: u64, held: bool) -> Order {
    let range = Range { ordinals: Some((Ordinal(first), Ordinal(end))), ..Range::ALL };
    Order::Purge(PurgeRequest { streams: Vec::new(), range, held, reason: "law".into(), owner: "me".into() })
}
