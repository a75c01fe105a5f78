//! The packer against a naive model (promises 2 and 5): whatever mix of streams, sizes, pieces, aborts, cuts and
//! seals, what the slots hold, read back through the format's reader, is exactly what was pushed.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use crate::common;

use common::cells::{alone, buffers};
use holdfast_attributes::{Element, Extractor, MAX_DATA, Schema};
use holdfast_base::{Age, ByteSize, Epoch, Ordinal, RingId, Sequence, SlotNo, StreamId, Timestamp};
use holdfast_format::{
    Blocks, Cause, Chunk, Classes, Entry, Flags, Gap, Key, Kind, Name, SectionKind, SlotFlags, SlotId,
    StreamKind, check_image, decode_directory,
};
use holdfast_ingest::{
    Batch, BatchPosition, BatchRow, Content, Extraction, Packer, Progress, SourceCounters,
};
use proptest::prelude::*;

const SLOT: usize = 64 << 10;
const LIMIT: usize = SLOT / 8;
/// What is known of the elements of the first stream; of the second, nothing is.
const SCHEMA: [&str; 3] = ["first:uint=at:0:u8", "some:binary=at:1:bytes30", "address:ip=at:40:ipv6"];

const RING: RingId = RingId(*b"ring of the test");

/// What a stream is expected to hold, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Held {
    Element {
        ordinal: u64,
        meta: Vec<u8>,
        data: Vec<u8>,
        event: Option<i64>,
        tag: u16,
        first: i64,
        last: i64,
    },
    Aborted {
        ordinal: u64,
        data: Vec<u8>,
    },
    Gap {
        ordinal: u64,
        bytes: Vec<u8>,
    },
    Note {
        bytes: Vec<u8>,
    },
}

/// One thing that happens to a stream.
#[derive(Clone, Debug)]
enum Act {
    Element {
        meta: usize,
        size: usize,
        event: bool,
    },
    /// In pieces of these sizes; the capture side does the second thing after each.
    Pieces {
        sizes: Vec<(usize, Pause)>,
        known: bool,
        meta: usize,
        abort: bool,
    },
    /// Pieces of both streams in turn.
    Woven(Vec<usize>, Vec<usize>),
    Gap(u64),
    Note(usize),
    Cut,
    Seal,
}

#[derive(Clone, Copy, Debug)]
enum Pause {
    No,
    Cut,
    Seal,
    /// Another stream's element comes between.
    Other,
}

fn size() -> impl Strategy<Value = usize> {
    prop_oneof![
        2 => Just(0usize),
        8 => 1usize..64,
        4 => 64usize..2000,
        2 => (LIMIT - 2)..(LIMIT + 3),
        2 => 1usize..(3 * SLOT / 2),
    ]
}

fn act() -> impl Strategy<Value = Act> {
    let pause = prop_oneof![6 => Just(Pause::No), 2 => Just(Pause::Cut), 1 => Just(Pause::Seal), 2 => Just(Pause::Other)];
    let meta = || prop_oneof![3 => Just(0usize), 1 => 1usize..200];
    prop_oneof![
        10 => (meta(), size(), any::<bool>()).prop_map(|(meta, size, event)| Act::Element { meta, size, event }),
        4 => (prop::collection::vec((size(), pause), 1..5), any::<bool>(), meta(), prop::bool::weighted(0.2))
            .prop_map(|(sizes, known, meta, abort)| Act::Pieces { sizes, known, meta, abort }),
        2 => (prop::collection::vec(size(), 2..5), prop::collection::vec(size(), 2..5))
            .prop_map(|(a, b)| Act::Woven(a, b)),
        1 => (1u64..100).prop_map(Act::Gap),
        1 => (0usize..100).prop_map(Act::Note),
        1 => Just(Act::Cut),
        1 => Just(Act::Seal),
    ]
}

/// Pushes as the capture thread does, and keeps the sealed images.
struct Capture {
    packer: Packer<Vec<u8>>,
    key: Key,
    sequence: u64,
    images: Vec<Vec<u8>>,
    spare: Vec<u8>,
    next: [u64; 2],
    schema: Schema,
    extraction: Extraction,
}

fn entries(next: [u64; 2], schema: &Schema) -> Vec<Entry> {
    let entry = |n: usize| Entry {
        stream: StreamId(n as u32 + 1),
        kind: StreamKind::Bytes,
        name: Name::new(if n == 0 { "a" } else { "b" }).unwrap(),
        classes: if n == 0 { schema.classes() } else { Classes::default() },
        counters: holdfast_format::Counters { next_ordinal: Ordinal(next[n]), ..Default::default() },
        ..Entry::default()
    };
    vec![entry(0), entry(1)]
}

impl Capture {
    fn new() -> Self {
        let schema = Schema::typed(SCHEMA).unwrap();
        let mut capture = Self {
            packer: Packer::new(SLOT as u64, 2),
            extraction: Extraction::new(&schema, Vec::new()),
            schema,
            key: Key([7; 32]),
            sequence: 0,
            images: Vec::new(),
            spare: Vec::new(),
            next: [0; 2],
        };
        capture.packer.prepare(&entries([0; 2], &capture.schema)).unwrap();
        capture.open();
        capture
    }

    fn open(&mut self) {
        self.sequence += 1;
        let id = SlotId {
            ring: RING,
            group: RING,
            sequence: Sequence(self.sequence),
            epoch: Epoch(1),
            age: Age(self.sequence),
            ..SlotId::default()
        };
        let buffer = if self.spare.is_empty() { vec![0xee; SLOT] } else { std::mem::take(&mut self.spare) };
        self.packer.open(buffer, id, Timestamp(0), &entries(self.next, &self.schema)).unwrap();
    }

    fn seal(&mut self) {
        let (buffer, sealed) =
            self.packer.seal(&self.key, SlotNo(3), Timestamp(1), SlotFlags::default()).unwrap();
        for entry in 0..2 {
            self.next[entry] = self.packer.slot().counters(entry as u16).next_ordinal.0;
        }
        self.images.push(buffer[..sealed.bytes].to_vec());
        self.spare = buffer;
        self.open();
    }

    fn push(&mut self, entry: u16, mut batch: Batch) {
        if entry == 0 {
            batch = batch.with_columns(self.schema.classes());
            self.extraction.fill(&mut batch, &SourceCounters::default());
        }
        let mut place = BatchPosition::default();
        let mut slots = 0;
        while let Progress::Full(at) = self.packer.push(entry, &batch, place) {
            assert!(at != place || slots < 2, "an empty slot takes something");
            slots = if at == place { slots + 1 } else { 0 };
            place = at;
            self.seal();
        }
    }
}

struct World {
    capture: Capture,
    streams: [Stream; 2],
    now: i64,
}

#[derive(Default)]
struct Stream {
    held: Vec<Held>,
    next: u64,
    seed: u8,
}

fn fill(seed: &mut u8, size: usize) -> Vec<u8> {
    *seed = seed.wrapping_add(41);
    (0..size).map(|at| (at as u8).wrapping_mul(3).wrapping_add(*seed)).collect()
}

/// A batch of one row.
fn batch(row: BatchRow, meta: &[u8], data: &[u8]) -> Batch {
    let mut batch = Batch::new(ByteSize::mib(1), 16);
    // Bytes of nobody first, as framing leaves them.
    batch.fill(3);
    batch.free()[..meta.len()].copy_from_slice(meta);
    batch.fill(meta.len());
    batch.free()[..data.len()].copy_from_slice(data);
    batch.fill(data.len());
    assert!(batch.push(BatchRow { at: 3, meta: meta.len() as u16, len: data.len() as u32, ..row }));
    batch
}

impl World {
    fn row(&self, content: Content, ordinal: u64) -> BatchRow {
        BatchRow {
            content,
            flags: Flags::default(),
            meta: 0,
            tag: 0,
            at: 0,
            len: 0,
            extra: 0,
            ordinal: Ordinal(ordinal),
            arrival: Timestamp(self.now),
            span: 0,
            event: Timestamp(0),
        }
    }

    fn act(&mut self, stream: usize, act: &Act) {
        self.now += 10;
        let entry = stream as u16;
        match act {
            Act::Cut => self.capture.packer.cut(),
            Act::Seal => self.capture.seal(),
            Act::Element { meta, size, event } => {
                let s = &mut self.streams[stream];
                let (meta, data) = (fill(&mut s.seed, *meta), fill(&mut s.seed, *size));
                let ordinal = s.next;
                s.next += 1;
                let (event, tag) = (event.then_some(self.now * 100), ordinal as u16);
                s.held.push(Held::Element {
                    ordinal,
                    meta: meta.clone(),
                    data: data.clone(),
                    event,
                    tag,
                    first: self.now - 5,
                    last: self.now,
                });
                let mut row = BatchRow { tag, span: 5, ..self.row(Content::Whole, ordinal) };
                if let Some(event) = event {
                    row.flags = Flags::EVENT;
                    row.event = Timestamp(event);
                }
                if !meta.is_empty() {
                    row.flags = row.flags.with(Flags::PCAPNG_OPTIONS);
                }
                self.capture.push(entry, batch(row, &meta, &data));
            }
            Act::Gap(count) => {
                let s = &mut self.streams[stream];
                let ordinal = s.next;
                s.next += count;
                let gap = Gap {
                    ordinals: *count,
                    elements: Some(*count),
                    bytes: None,
                    first: Timestamp(self.now),
                    last: Timestamp(self.now),
                    cause: Cause::NoBuffer,
                    note: 0,
                };
                let bytes = gap.encode().to_vec();
                s.held.push(Held::Gap { ordinal, bytes: bytes.clone() });
                let row = self.row(Content::Gap, ordinal);
                self.capture.push(entry, batch(row, &[], &bytes));
            }
            Act::Note(size) => {
                let s = &mut self.streams[stream];
                let bytes = fill(&mut s.seed, *size);
                s.held.push(Held::Note { bytes: bytes.clone() });
                let row = self.row(Content::Note, s_next(&self.streams[stream]));
                self.capture.push(entry, batch(row, &[], &bytes));
            }
            Act::Woven(a, b) => self.woven([a, b]),
            Act::Pieces { sizes, known, meta, abort } => self.pieces(stream, sizes, *known, *meta, *abort),
        }
    }

    fn woven(&mut self, sizes: [&[usize]; 2]) {
        let mut times = [(0, 0); 2];
        let data =
            [0, 1].map(|stream: usize| fill(&mut self.streams[stream].seed, sizes[stream].iter().sum()));
        let mut rest = [&data[0][..], &data[1][..]];
        for n in 0..sizes[0].len().max(sizes[1].len()) {
            for stream in 0..2 {
                let Some(size) = sizes[stream].get(n) else { continue };
                self.now += 10;
                let content = match n {
                    0 => Content::First { total: None },
                    _ if n + 1 == sizes[stream].len() => Content::Last,
                    _ => Content::Middle,
                };
                if n == 0 {
                    times[stream].0 = self.now;
                }
                times[stream].1 = self.now;
                let (piece, after) = rest[stream].split_at(*size);
                rest[stream] = after;
                let span = (self.now - times[stream].0) as u64;
                let row = BatchRow { span, ..self.row(content, self.streams[stream].next) };
                self.capture.push(stream as u16, batch(row, &[], piece));
            }
        }
        for (stream, data) in data.into_iter().enumerate() {
            let s = &mut self.streams[stream];
            let (first, last) = times[stream];
            let (ordinal, meta, event, tag) = (s.next, Vec::new(), None, 0);
            s.held.push(Held::Element { ordinal, meta, data, event, tag, first, last });
            s.next += 1;
        }
    }

    fn pieces(&mut self, stream: usize, sizes: &[(usize, Pause)], known: bool, meta: usize, abort: bool) {
        let entry = stream as u16;
        let s = &mut self.streams[stream];
        let ordinal = s.next;
        s.next += 1;
        let meta = fill(&mut s.seed, meta);
        let total: usize = sizes.iter().map(|(size, _)| size).sum();
        let data = fill(&mut s.seed, total);
        let first = self.now;
        let mut rest = &data[..];
        let mut other = Vec::new();
        for (n, (size, pause)) in sizes.iter().enumerate() {
            self.now += 10;
            let (piece, after) = rest.split_at(*size);
            rest = after;
            let content = match n {
                0 => Content::First { total: known.then_some(total as u64) },
                _ if n + 1 == sizes.len() && !abort => Content::Last,
                _ => Content::Middle,
            };
            let mut row = self.row(content, ordinal);
            row.span = (self.now - first) as u64;
            row.tag = n as u16;
            // Where the first piece has no data, the metadata may come in two.
            let split = if sizes.len() > 1 && sizes[0].0 == 0 { meta.len().div_ceil(3) } else { meta.len() };
            let of_meta = match n {
                0 => &meta[..split],
                1 => &meta[split..],
                _ => &[],
            };
            if !of_meta.is_empty() {
                row.flags = Flags::PCAPNG_OPTIONS;
            }
            self.capture.push(entry, batch(row, of_meta, piece));
            match pause {
                Pause::No => {}
                Pause::Cut => self.capture.packer.cut(),
                Pause::Seal => self.capture.seal(),
                Pause::Other => {
                    other.push(n);
                    self.act(1 - stream, &Act::Element { meta: 0, size: 9 + n, event: false });
                }
            }
        }
        self.now += 10;
        let last = self.now;
        let row = BatchRow { span: (last - first) as u64, tag: 77, ..self.row(Content::Last, ordinal) };
        if abort {
            self.capture.push(entry, batch(BatchRow { content: Content::Abort, ..row }, &[], &[]));
            self.streams[stream].held.push(Held::Aborted { ordinal, data });
        } else {
            let (tag, last) = if sizes.len() == 1 {
                self.capture.push(entry, batch(row, &[], &[]));
                (77, last)
            } else {
                let others_later = if other.contains(&(sizes.len() - 1)) { 10 } else { 0 };
                (sizes.len() as u16 - 1, last - 10 - others_later)
            };
            self.streams[stream].held.push(Held::Element {
                ordinal,
                meta,
                data,
                event: None,
                tag,
                first,
                last,
            });
        }
    }
}

fn s_next(stream: &Stream) -> u64 {
    stream.next
}

/// Reads slots back, and puts elements together.
fn read_back(images: &[Vec<u8>], key: &Key) -> [Vec<Held>; 2] {
    let mut found: [Vec<Held>; 2] = [Vec::new(), Vec::new()];
    let mut open: [Option<(u32, Held)>; 2] = [None, None];
    for image in images {
        let (header, summary) = check_image(image, key, RING).unwrap();
        let section = |kind| {
            let section = summary.section(kind).unwrap();
            (&image[section.offset as usize..(section.offset + section.bytes) as usize], section.crc)
        };
        let (directory, crc) = section(SectionKind::ChunkDirectory);
        let (chunks, _) = section(SectionKind::Chunks);
        for chunk in decode_directory(directory, crc).unwrap() {
            let chunk = Chunk::decode_at(&chunk, header.sequence, &chunks[chunk.offset as usize..]).unwrap();
            for (row, at) in chunk.rows() {
                let start = header.payload_offset as usize + at as usize;
                let (meta, data) = image[start..start + row.payload()].split_at(usize::from(row.meta));
                assert!(row.len as usize <= LIMIT, "no row is over C/8");
                let stream = usize::from(row.stream);
                let element = || Held::Element {
                    ordinal: row.ordinal.0,
                    meta: meta.to_vec(),
                    data: data.to_vec(),
                    event: row.flags.has(Flags::EVENT).then_some(row.event.0),
                    tag: row.tag,
                    first: row.first_arrival().0,
                    last: row.arrival.0,
                };
                assert_eq!(row.flags.has(Flags::PCAPNG_OPTIONS), row.meta > 0);
                match row.kind {
                    Kind::Element => {
                        assert!(open[stream].is_none(), "no element inside another of its stream");
                        found[stream].push(element());
                    }
                    Kind::Fragment => {
                        let (number, held) = open[stream].get_or_insert_with(|| {
                            let mut empty = element();
                            if let Held::Element { data, .. } = &mut empty {
                                data.clear();
                            }
                            (0, empty)
                        });
                        let Held::Element { ordinal, data: all, tag, last, meta: held_meta, .. } = held
                        else {
                            unreachable!()
                        };
                        assert_eq!((row.number, row.offset), (*number, all.len() as u64));
                        assert_eq!(row.ordinal.0, *ordinal);
                        assert!(row.first_arrival().0 >= *last || row.number == 0);
                        all.extend_from_slice(data);
                        if row.number > 0 {
                            held_meta.extend_from_slice(meta);
                        }
                        *tag = row.tag;
                        *last = row.arrival.0;
                        *number += 1;
                        if row.flags.has(Flags::LAST) {
                            found[stream].extend(open[stream].take().map(|(_, held)| held));
                        }
                    }
                    Kind::Abort => {
                        let data = match open[stream].take() {
                            Some((_, Held::Element { data, ordinal, .. })) => {
                                assert_eq!(ordinal, row.ordinal.0);
                                data
                            }
                            _ => Vec::new(),
                        };
                        found[stream].push(Held::Aborted { ordinal: row.ordinal.0, data });
                    }
                    Kind::Gap => {
                        found[stream].push(Held::Gap { ordinal: row.ordinal.0, bytes: data.to_vec() });
                    }
                    Kind::Note => found[stream].push(Held::Note { bytes: data.to_vec() }),
                }
            }
        }
    }
    assert_eq!(open, [None, None], "nothing is left open");
    found
}

/// The cells of the first stream's elements, in the order in which they were completed.
fn cells(images: &[Vec<u8>], key: &Key) -> Vec<Vec<String>> {
    let mut all: [Vec<String>; SCHEMA.len()] = Default::default();
    for image in images {
        let (header, summary) = check_image(image, key, RING).unwrap();
        for (number, cells) in all.iter_mut().enumerate() {
            let Some(section) = summary.column(0, number as u16) else { continue };
            for block in Blocks::new(section, &image[section.range()], header.sequence) {
                let column = block.unwrap().decode().unwrap();
                let shown = column.iter().map(|cell| cell.map_or("-".to_owned(), |cell| format!("{cell:?}")));
                cells.extend(shown);
            }
        }
    }
    let count = all[0].len();
    assert!(all.iter().all(|cells| cells.len() == count), "a cell an element");
    (0..count).map(|at| all.iter().map(|cells| cells[at].clone()).collect()).collect()
}

/// Those that its elements have, each alone.
fn cells_of(held: &[Held], schema: &Schema) -> Vec<Vec<String>> {
    let mut extractor = Extractor::new(schema);
    let mut all = Vec::new();
    for one in held {
        let Held::Element { data, .. } = one else { continue };
        let mut cells = buffers(schema);
        let size = data.len() as u64;
        let data = &data[..data.len().min(MAX_DATA)];
        extractor
            .extract(&Element { data, size, original_size: size, link_type: None, header: None }, &mut cells);
        all.push(alone(&cells));
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 120, ..ProptestConfig::default() })]

    #[test]
    fn slots_hold_exactly_what_was_pushed(acts in prop::collection::vec((0usize..2, act()), 1..60)) {
        let mut world = World { capture: Capture::new(), streams: Default::default(), now: 1000 };
        for (stream, act) in &acts {
            world.act(*stream, act);
        }
        world.capture.seal();
        let found = read_back(&world.capture.images, &world.capture.key);
        for (found, stream) in found.iter().zip(&world.streams) {
            for (found, held) in found.iter().zip(&stream.held) {
                prop_assert_eq!(found, held);
            }
            prop_assert_eq!(found.len(), stream.held.len());
        }
        let wanted = cells_of(&world.streams[0].held, &world.capture.schema);
        prop_assert_eq!(cells(&world.capture.images, &world.capture.key), wanted);
        for (entry, stream) in world.streams.iter().enumerate() {
            prop_assert_eq!(world.capture.next[entry], stream.next, "the counters follow the ordinals");
        }
    }
}

#[test]
fn pieces_that_follow_each_other_are_one_row() {
    let mut world = World { capture: Capture::new(), streams: Default::default(), now: 1000 };
    let pieces = vec![(100, Pause::No), (200, Pause::No), (0, Pause::No)];
    world.act(0, &Act::Pieces { sizes: pieces, known: false, meta: 0, abort: false });
    assert_eq!(world.capture.packer.slot().rows(), 1);
    let pieces = vec![(100, Pause::Other), (200, Pause::Cut), (0, Pause::No)];
    world.act(0, &Act::Pieces { sizes: pieces, known: false, meta: 0, abort: false });
    assert_eq!(world.capture.packer.slot().rows(), 1 + 4);
}
