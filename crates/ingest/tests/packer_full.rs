//! Full slots against what admission counts on (promise 1): whatever mix of sizes comes, slots hold as much of it as
//! `on_medium` says.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use holdfast_attributes::Schema;
use holdfast_base::{Age, ByteSize, Epoch, Ordinal, Sequence, SlotNo, Timestamp};
use holdfast_format::{CellLoad, Classes, Coming, Entry, Flags, Key, SlotFlags, SlotId, on_medium};
use holdfast_ingest::{
    Batch, BatchRow, Content, Extraction, MIN_BATCH_BYTES, Packer, Place, Progress, SourceCounters,
};
use proptest::prelude::*;

const STREAMS: usize = 2;

/// An element: of which stream, how many bytes of metadata and of data it has, and in how many pieces it comes.
#[derive(Clone, Copy, Debug)]
struct Item {
    stream: u16,
    meta: u16,
    size: usize,
    pieces: usize,
}

/// Elements of one kind of size, or of two; those that are large come in pieces.
fn items(slot: usize) -> impl Strategy<Value = Vec<Item>> {
    let size = move || {
        prop_oneof![
            Just(0..100usize),
            Just(1000..2000),
            Just(slot / 1024 - 40..slot / 1024 + 40),
            Just(slot / 64..slot / 9),
            Just(slot / 8 - 40..slot / 8 + 40),
            Just(slot / 3..2 * slot),
        ]
    };
    let item = move |size: std::ops::Range<usize>| {
        let meta = prop_oneof![5 => Just(0u16), 1 => 1..300u16];
        (0..STREAMS as u16, meta, size, 1..4usize).prop_map(move |(stream, meta, size, pieces)| {
            let pieces = if size > slot / 8 { pieces } else { 1 };
            Item { stream, meta, size, pieces }
        })
    };
    (size(), size()).prop_flat_map(move |(one, other)| {
        prop::collection::vec(prop_oneof![4 => item(one), 1 => item(other)], 1..100)
    })
}

/// A stream's batch with what fills its columns.
struct Extracted {
    batch: Batch,
    extraction: Extraction,
}

/// Some attributes of every class.
fn attributes() -> impl Strategy<Value = Vec<String>> {
    let one = |at: usize| {
        prop_oneof![
            Just(format!("n{at}:uint=at:0:u64le")),
            Just(format!("n{at}:ipv6=at:{at}:ipv6")),
            Just(format!("n{at}:binary=at:{at}:bytes40")),
            Just(format!("n{at}:binary=at:0:bytes1024")),
        ]
    };
    (0..6usize).prop_flat_map(move |count| (0..count).map(one).collect::<Vec<_>>())
}

/// Packs, and counts the slots that were full.
struct Capture {
    packer: Packer<Vec<u8>>,
    entries: [Entry; STREAMS],
    slot: usize,
    full: u64,
}

impl Capture {
    fn new(slot: usize, classes: [Classes; STREAMS]) -> Self {
        let mut packer = Packer::new(slot as u64, STREAMS);
        let entries = classes.map(|classes| Entry { classes, ..Entry::default() });
        packer.prepare(&entries).unwrap();
        let mut capture = Self { packer, entries, slot, full: 0 };
        capture.open();
        capture
    }

    fn open(&mut self) {
        let sequence = Sequence(self.full + 1);
        let id = SlotId { sequence, epoch: Epoch(1), age: Age(sequence.0), ..SlotId::default() };
        self.packer.open(vec![0; self.slot], id, Timestamp(0), &self.entries).unwrap();
    }

    fn push(&mut self, entry: u16, batch: &Batch) {
        let mut place = Place::default();
        while let Progress::Full(at) = self.packer.push(entry, batch, place) {
            place = at;
            self.packer.seal(&Key([7; 32]), SlotNo(0), Timestamp(1), SlotFlags::default()).unwrap();
            self.full += 1;
            self.open();
        }
    }

    /// Pushes an element; `noise` makes its row as wide as rows get, and its cells as different.
    fn element(&mut self, item: &Item, noise: u64, batches: &mut [Extracted; STREAMS]) {
        let Extracted { batch, extraction } = &mut batches[usize::from(item.stream)];
        let mut left = item.size;
        for piece in 0..item.pieces {
            let size = if piece + 1 == item.pieces { left } else { item.size / item.pieces };
            left -= size;
            let meta = if piece == 0 { item.meta } else { 0 };
            let content = match piece {
                _ if item.pieces == 1 => Content::Whole,
                0 => Content::First { total: None },
                _ if piece + 1 == item.pieces => Content::Last,
                _ => Content::Middle,
            };
            batch.clear();
            for (place, byte) in batch.free()[..usize::from(meta) + size].iter_mut().take(2048).enumerate() {
                *byte = (noise.rotate_left(11 * (place / 8) as u32) >> (place % 8 * 8)) as u8;
            }
            batch.fill(usize::from(meta) + size);
            assert!(batch.push(BatchRow {
                content,
                flags: Flags::EVENT,
                meta,
                tag: noise as u16,
                at: 0,
                len: size as u32,
                extra: noise as u32,
                ordinal: Ordinal(noise),
                arrival: Timestamp(noise as i64),
                span: noise.rotate_left(8),
                event: Timestamp(noise.rotate_left(16) as i64),
            }));
            extraction.fill(batch, &SourceCounters::default());
            self.push(item.stream, batch);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn full_slots_hold_what_admission_counts_on(
        (slot, items) in (17..20u32).prop_flat_map(|log2| (Just(1usize << log2), items(1 << log2))),
        wild in any::<bool>(),
        attributes in prop::array::uniform2(attributes()),
    ) {
        let schemas = attributes.map(|attributes| Schema::typed(attributes).unwrap());
        let widest = |schema: &Schema| 100 * schema.len() + 1100 * usize::from(schema.load().texts);
        // More is refused before anything is captured.
        let schemas = schemas.map(|schema| if widest(&schema) * 8 > slot { Schema::default() } else { schema });
        let mut capture = Capture::new(slot, schemas.each_ref().map(Schema::classes));
        let mut batches = schemas.each_ref().map(|schema| Extracted {
            batch: Batch::new(ByteSize(3 * slot as u64).max(MIN_BATCH_BYTES), 1).with_columns(schema.classes()),
            extraction: Extraction::new(schema, Vec::new()),
        });
        let mut coming = schemas.each_ref().map(|schema| Coming { payload: 0.0, elements: 0.0, cells: schema.load() });
        let mut elements = 0_u64;
        for item in items.iter().cycle() {
            elements += 1;
            let of = &mut coming[usize::from(item.stream)];
            of.elements += 1.0;
            of.payload += (usize::from(item.meta) + item.size) as f64;
            let noise = if wild { elements.wrapping_mul(0x9e37_79b9_7f4a_7c15) } else { elements };
            capture.element(item, noise, &mut batches);
            if capture.full >= 8 {
                break;
            }
        }
        // What is in the open slot was counted with one that can have it; it is in none that is full.
        coming[0].payload -= capture.packer.slot().payload_bytes() as f64;
        for of in &mut coming {
            of.cells = of.cells.of_size((of.payload.max(0.0) / of.elements.max(1.0)).ceil() as u64);
        }
        let counted = on_medium(slot as u64, &coming);
        let written = (capture.full * slot as u64) as f64;
        prop_assert!(counted >= written, "{counted} of {written}: {elements} elements, {coming:?}");
    }
}

// Promise 1: where columns are most of a slot, or filters are.
#[test]
fn columns_of_small_elements_are_counted() {
    let of =
        |text: &str, count: usize| (0..count).map(|n| text.replace('#', &n.to_string())).collect::<Vec<_>>();
    let numbers = |count| of("n#:uint=at:#:u64le", count);
    for (attributes, size) in [
        (numbers(1), 8),
        (numbers(4), 20),
        (numbers(4), 1500),
        (of("w#:ipv6=at:#:ipv6", 40), 56),
        (of("t#:binary=at:#:bytes100", 3), 120),
    ] {
        let schema = Schema::typed(&attributes).unwrap();
        let (with, coming) = slots_of(&schema, size, u64::MAX);
        let (without, plain) = slots_of(&Schema::default(), size, coming[0].elements as u64);
        let counted = (on_medium(SLOT as u64, &coming) - on_medium(SLOT as u64, &plain)) / SLOT as f64;
        let share = counted / (with - without);
        let all = on_medium(SLOT as u64, &coming) / SLOT as f64 / with;
        assert!(
            share > 0.97 && all < 1.6,
            "{share}, {all} for {size} bytes with {} attributes",
            schema.len()
        );
    }
}

const SLOT: usize = 2 << 20;

/// How many slots so many elements fill, or as many as fill a dozen.
fn slots_of(schema: &Schema, size: usize, most: u64) -> (f64, [Coming; STREAMS]) {
    let mut capture = Capture::new(SLOT, [schema.classes(), Classes::default()]);
    let batch = |schema: &Schema| Extracted {
        batch: Batch::new(MIN_BATCH_BYTES, 1).with_columns(schema.classes()),
        extraction: Extraction::new(schema, Vec::new()),
    };
    let mut batches = [batch(schema), batch(&Schema::default())];
    let item = Item { stream: 0, meta: 0, size, pieces: 1 };
    let (mut elements, mut whole) = (0, 0);
    while elements < most && capture.full < 12 {
        elements += 1;
        let before = capture.full;
        capture.element(&item, elements.wrapping_mul(0x9e37_79b9_7f4a_7c15), &mut batches);
        whole += if capture.full > before { elements - whole } else { 0 };
    }
    let slots = capture.full as f64 * elements as f64 / whole.max(1) as f64;
    let cells = schema.load().of_size(size as u64);
    let coming = Coming { payload: elements as f64 * size as f64, elements: elements as f64, cells };
    (slots, [coming, Coming { payload: 0.0, elements: 0.0, cells: CellLoad::NONE }])
}
