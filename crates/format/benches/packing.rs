//! What packing costs: nanoseconds an element and MiB/s for four sizes, beside a bare copy with checksums, and
//! reading the rows back. `cargo bench -p holdfast-format`; in a test run it does a tiny amount and asserts nothing.
#![allow(missing_docs, clippy::unwrap_used)]

use holdfast_base::{Age, CHECK_BLOCK, Epoch, Ordinal, RingId, Sequence, SlotNo, Timestamp};
use holdfast_format::{
    Builder, Chunk, Entry, Key, Name, PartHeader, Row, SectionKind, SlotFlags, SlotId, Summary, crc32c,
    decode_directory,
};
use std::hint::black_box;
use std::time::{Duration, Instant};

struct World {
    builder: Builder,
    buffer: Vec<u8>,
    entries: Vec<Entry>,
    sequence: u64,
    ordinal: u64,
    now: i64,
    sealing: Duration,
}

impl World {
    fn new(slot_bytes: u64) -> Self {
        let name = Name::new("bench").unwrap();
        Self {
            builder: Builder::new(slot_bytes, 4),
            buffer: vec![1; slot_bytes as usize],
            entries: vec![Entry { name, ..Entry::default() }; 2],
            sequence: 0,
            ordinal: 0,
            now: 1_790_000_000_000_000_000,
            sealing: Duration::ZERO,
        }
    }

    fn open(&mut self) {
        self.sequence += 1;
        let id = SlotId {
            ring: RingId([1; 16]),
            group: RingId([1; 16]),
            sequence: Sequence(self.sequence),
            epoch: Epoch(1),
            age: Age(self.sequence),
            ..SlotId::default()
        };
        self.builder.open(&mut self.buffer, id, Timestamp(self.now), &self.entries).unwrap();
    }

    fn seal(&mut self) {
        let start = Instant::now();
        let sealed =
            self.builder.seal(&mut self.buffer, &Key([3; 32]), SlotNo(1), Timestamp(0), SlotFlags::default());
        self.sealing += start.elapsed();
        black_box(sealed);
    }

    /// Packs `bytes` of elements of `size`; returns how many they were.
    fn pack(&mut self, size: usize, bytes: usize) -> u64 {
        let element = vec![7u8; size];
        let elements = (bytes / size).max(1) as u64;
        self.open();
        for number in 0..elements {
            if self.builder.room() < size {
                self.seal();
                self.open();
            }
            self.now += 180 + (number as i64 & 63);
            self.builder.write(&mut self.buffer, black_box(&element));
            let row = Row {
                stream: (number & 1) as u16,
                len: size as u32,
                ordinal: Ordinal(self.ordinal + number / 2),
                arrival: Timestamp(self.now),
                ..Row::default()
            };
            self.builder.row(&mut self.buffer, &row);
        }
        self.ordinal += elements;
        self.seal();
        elements
    }

    /// Reads all rows of the slot that was sealed last; returns how many.
    fn read(&self) -> u64 {
        let (key, ring) = (Key([3; 32]), RingId([1; 16]));
        let header = PartHeader::decode(&self.buffer, &key, ring).unwrap();
        let summary = Summary::decode(&header, &self.buffer[4096..]).unwrap();
        let directory = summary.section(SectionKind::ChunkDirectory).unwrap();
        let chunks = summary.section(SectionKind::Chunks).unwrap();
        let mut rows = 0;
        for entry in decode_directory(&self.buffer[directory.range()], directory.crc).unwrap() {
            let bytes = &self.buffer[chunks.range()][entry.offset as usize..];
            let chunk = Chunk::decode_at(&entry, header.sequence, bytes).unwrap();
            rows += chunk.rows().fold(0, |rows, row| rows + u64::from(black_box(row).0.len > 0));
        }
        rows
    }
}

/// The bare minimum: elements copied one after the other, and a checksum every 64 KiB.
fn bare(buffer: &mut [u8], size: usize, bytes: usize) -> u64 {
    let element = vec![7u8; size];
    let elements = (bytes / size).max(1);
    let (mut at, mut checked) = (0, 0);
    for _ in 0..elements {
        if at + size > buffer.len() {
            (at, checked) = (0, 0);
        }
        buffer[at..at + size].copy_from_slice(black_box(&element));
        at += size;
        while at - checked >= CHECK_BLOCK {
            black_box(crc32c(&buffer[checked..checked + CHECK_BLOCK]));
            checked += CHECK_BLOCK;
        }
    }
    elements as u64
}

fn best(runs: usize, mut work: impl FnMut() -> u64) -> (f64, u64) {
    let mut fastest = f64::MAX;
    let mut count = 0;
    for _ in 0..runs {
        let start = Instant::now();
        count = work();
        fastest = fastest.min(start.elapsed().as_secs_f64());
    }
    (fastest * 1e9 / count as f64, count)
}

fn main() {
    let real = std::env::args().any(|argument| argument == "--bench");
    let (runs, bytes, slot_bytes) = if real { (9, 96 << 20, 8 << 20) } else { (1, 1 << 20, 1 << 20) };
    println!(
        "{:>8} {:>10} {:>10} {:>10} {:>10} {:>9}",
        "element", "bare ns", "packed ns", "MiB/s", "M/s", "seal ns"
    );
    for size in [20, 64, 1500, 100 << 10] {
        let mut world = World::new(slot_bytes);
        let (bare_ns, _) = best(runs, || bare(&mut world.buffer, size, bytes));
        let (packed_ns, count) = best(runs, || world.pack(size, bytes));
        let mib = size as f64 / packed_ns * 1e9 / 1_048_576.0;
        let sealing = world.sealing.as_nanos() as f64 / runs as f64 / count as f64;
        println!(
            "{size:>8} {bare_ns:>10.1} {packed_ns:>10.1} {mib:>10.0} {:>10.2} {sealing:>9.1}",
            1e3 / packed_ns
        );
    }
    let mut world = World::new(slot_bytes);
    world.pack(20, slot_bytes as usize / 3);
    let (ns, rows) = best(runs, || world.read());
    println!("reading rows: {ns:.1} ns each, {rows} of them");
}
