//! Cost of the slot format itself: nanoseconds an element and MiB/s for packing elements of four sizes, beside a bare
//! copy with checksums, and for reading rows and the cells of attributes back. All of it in memory, on one core.
#![allow(clippy::unwrap_used, clippy::missing_panics_doc, reason = "the bytes are the bench's own")]

use crate::{BenchError, Scale};
use holdfast_base::{Age, CHECK_BLOCK, Epoch, Ordinal, RingId, Sequence, SlotNo, Timestamp};
use holdfast_format::{
    Blocks, Builder, CellBuffer, CellsAt, Chunk, Class, Entry, Key, Name, PartHeader, Row, Section,
    SectionKind, SlotFlags, SlotId, Summary, crc32c, decode_directory,
};
use std::hint::black_box;
use std::time::{Duration, Instant};

struct SlotPacker {
    builder: Builder,
    buffer: Vec<u8>,
    entries: Vec<Entry>,
    sequence: u64,
    ordinal: u64,
    now: i64,
    sealing: Duration,
}

impl SlotPacker {
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

/// The image of a slot with so many words of that shape, and where they are.
fn column(count: u64, shape: &dyn Fn(u64) -> u64) -> (Vec<u8>, Section) {
    let classes = [Class::Word].into_iter().collect();
    let entries = [Entry { classes, ..Entry::default() }];
    let (mut builder, mut image) = (Builder::new(64 << 20, 1), vec![0; 64 << 20]);
    builder.prepare(&entries).unwrap();
    let id = SlotId { sequence: Sequence(1), ..SlotId::default() };
    builder.open(&mut image, id, Timestamp(0), &entries).unwrap();
    let mut cells = [CellBuffer::new(Class::Word, count as usize, 0)];
    (0..count).for_each(|n| cells[0].word(shape(n)));
    for first in (0..count).step_by(256) {
        let rows: Vec<Row> =
            (first..first + 256).map(|n| Row { ordinal: Ordinal(n), ..Row::default() }).collect();
        let cells = CellsAt { columns: &cells, first: first as usize };
        builder.elements(&mut image, &rows, |row| *row, cells);
    }
    builder.seal(&mut image, &Key([3; 32]), SlotNo(1), Timestamp(0), SlotFlags::default());
    let header = PartHeader::decode(&image, &Key([3; 32]), RingId::default()).unwrap();
    let summary = Summary::decode(&header, &image[4096..]).unwrap();
    let section = *summary.column(0, 0).unwrap();
    (image, section)
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

/// Packs and reads back; a real run prints the figures.
pub fn bench(scale: Scale) -> Result<(), BenchError> {
    let (runs, bytes, slot_bytes) = scale.pick((1, 1 << 20, 1 << 20), (9, 96 << 20, 8 << 20));
    let mut lines = vec![format!(
        "{:>8} {:>10} {:>10} {:>10} {:>10} {:>9}",
        "element", "bare ns", "packed ns", "MiB/s", "M/s", "seal ns"
    )];
    for size in [20, 64, 1500, 100 << 10] {
        let mut world = SlotPacker::new(slot_bytes);
        let (bare_ns, _) = best(runs, || bare(&mut world.buffer, size, bytes));
        let (packed_ns, count) = best(runs, || world.pack(size, bytes));
        let mib = size as f64 / packed_ns * 1e9 / 1_048_576.0;
        let sealing = world.sealing.as_nanos() as f64 / runs as f64 / count as f64;
        lines.push(format!(
            "{size:>8} {bare_ns:>10.1} {packed_ns:>10.1} {mib:>10.0} {:>10.2} {sealing:>9.1}",
            1e3 / packed_ns
        ));
    }
    let mut world = SlotPacker::new(slot_bytes);
    world.pack(20, slot_bytes as usize / 3);
    let (ns, rows) = best(runs, || world.read());
    lines.push(format!("reading rows: {ns:.1} ns each, {rows} of them"));
    // Of 0, 1, 2, 4 and 8 bytes, and a dictionary.
    let shapes: [fn(u64) -> u64; 6] = [
        |_| 7,
        |n| n % 200,
        |n| n * 7919 % 60_000,
        |n| n * 7919 % 4_000_000_000,
        |n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15),
        |n| n * n % 50 * 1_000_000,
    ];
    for (shape, name) in
        shapes.iter().zip(["0 bytes", "1 byte", "2 bytes", "4 bytes", "8 bytes", "dictionary"])
    {
        let (image, section) = column(scale.pick(1 << 12, 1 << 20), shape);
        let (ns, cells) = best(runs, || {
            let blocks = Blocks::new(&section, &image[section.range()], Sequence(1));
            blocks.map(|block| black_box(block.unwrap().decode().unwrap()).cells.lent().len() as u64).sum()
        });
        lines.push(format!("reading words of {name}: {ns:.2} ns each, {cells} of them"));
    }
    match scale {
        Scale::Tiny => println!("packing: works"),
        Scale::Real => println!("{}", lines.join("\n")),
    }
    Ok(())
}
