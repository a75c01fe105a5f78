//! Full slots against what admission counts on (promise 1): whatever mix of sizes comes, slots hold as much of it as
//! `on_medium` says.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use holdfast_attributes::Schema;
use holdfast_base::{Age, ByteSize, Epoch, Ordinal, Sequence, SlotNo, Timestamp};
use holdfast_format::{
    Cause, Classes, Coming, ElementLoad, Entry, Flags, Gap, Key, SlotFlags, SlotId, on_medium,
};
use holdfast_ingest::{
    Batch, BatchPosition, BatchRow, Content, Extraction, MIN_BATCH_BYTES, Packer, Progress, SourceCounters,
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
        let mut place = BatchPosition::default();
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
        let widest = |schema: &Schema| 100 * schema.len() + 1100 * usize::from(schema.load(None).texts);
        // More is refused before anything is captured.
        let schemas = schemas.map(|schema| if widest(&schema) * 8 > slot { Schema::default() } else { schema });
        let mut capture = Capture::new(slot, schemas.each_ref().map(Schema::classes));
        let mut batches = schemas.each_ref().map(|schema| Extracted {
            batch: Batch::new(ByteSize(3 * slot as u64).max(MIN_BATCH_BYTES), 1).with_columns(schema.classes()),
            extraction: Extraction::new(schema, Vec::new()),
        });
        let mut coming = schemas.each_ref().map(|schema| Coming { payload: 0.0, elements: 0.0, each: schema.load(None) });
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
            of.each = of.each.of_size((of.payload.max(0.0) / of.elements.max(1.0)).ceil() as u64);
        }
        let counted = on_medium(slot as u64, &coming);
        let written = (capture.full * slot as u64) as f64;
        prop_assert!(counted >= written, "{counted} of {written}: {elements} elements, {coming:?}");
    }
}

/// Numbers at places that elements of so many bytes have, and perhaps a text.
fn numbers_in(frame: usize) -> impl Strategy<Value = Vec<String>> {
    let layouts = [
        "u8",
        "u16be",
        "u32le",
        "u64le",
        "i8",
        "i16le",
        "i32be",
        "f64le",
        "ipv4",
        "ipv6",
        "mac",
        "u32be:bits3..20",
    ];
    let layouts: Vec<_> = layouts
        .into_iter()
        .filter_map(|layout| {
            let kind = match layout {
                "ipv4" | "ipv6" => "ip",
                "mac" => "mac",
                "f64le" => "float",
                _ if layout.starts_with('i') => "int",
                _ => "uint",
            };
            let width = frame.min(16);
            let load = |at: usize| {
                Schema::typed([format!("n:{kind}=at:{at}:{layout}")]).unwrap().load(Some(frame as u32))
            };
            // One that may be null takes more than it would if it may not.
            (load(0).bytes < load(frame).bytes).then(|| (kind, layout, frame - width))
        })
        .collect();
    let texts = prop_oneof![4 => Just(0usize), 1 => 1..3usize];
    (prop::collection::vec((prop::sample::select(layouts), 0..=8usize), 0..6), texts).prop_map(
        |(some, texts)| {
            let numbers = some.into_iter().enumerate().map(|(number, ((kind, layout, most), at))| {
                format!("n{number}:{kind}=at:{}:{layout}", at.min(most))
            });
            numbers.chain((0..texts).map(|number| format!("t{number}:binary=at:0:bytes3"))).collect()
        },
    )
}

/// Elements of one size, as they come: how many a second, how evenly, and with a loss in how many slots of ten.
#[derive(Clone, Copy, Debug)]
struct Alike {
    frame: usize,
    a_second: f64,
    uneven: f64,
    lost: u64,
}

fn alike() -> impl Strategy<Value = (Alike, Vec<String>)> {
    let frame = prop_oneof![4 => 4..60usize, 1 => 60..1024usize];
    let a_second = prop_oneof![Just(10.0), Just(900.0), Just(1e4), Just(3e6)];
    let uneven = prop_oneof![Just(0.0), Just(0.9), Just(300.0)];
    (frame, a_second, uneven, 0..=10u64).prop_flat_map(|(frame, a_second, uneven, lost)| {
        (Just(Alike { frame, a_second, uneven, lost }), numbers_in(frame))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    // The same of the only stream of a ring whose elements are all of one size, of which much less is counted.
    #[test]
    fn full_slots_hold_what_admission_counts_on_of_elements_that_are_alike(
        (alike, attributes) in alike(),
        wild in any::<bool>(),
    ) {
        let (counted, written) = alike.packed(&Schema::typed(attributes).unwrap(), wild);
        prop_assert!(counted >= written, "{counted} of {written}");
    }
}

// Where there is nothing else, a chunk that a loss makes wide is more than what stays empty at the end of a slot.
#[test]
fn a_loss_in_every_slot_is_counted() {
    let alike = Alike { frame: 20, a_second: 1e4, uneven: 0.0, lost: 10 };
    let (counted, written) = alike.packed(&Schema::default(), false);
    assert!(counted >= written && counted < 1.1 * written, "{counted} of {written}");
}

impl Alike {
    /// What of such elements is counted until some slots are full, and how many bytes these have.
    fn packed(&self, schema: &Schema, wild: bool) -> (f64, f64) {
        let Self { frame, a_second, uneven, lost } = *self;
        let slot = 1 << 20;
        let mut capture = Capture::new(slot, [schema.classes(), Classes::default()]);
        let mut batch = Batch::new(MIN_BATCH_BYTES, 1).with_columns(schema.classes());
        let mut extraction = Extraction::new(schema, Vec::new());
        let (mut elements, mut bytes, mut seconds, mut lost_in) = (0_u64, 0_usize, 0.0, 0);
        while capture.full < 8 {
            let noise = elements.wrapping_mul(if wild { 0x9e37_79b9_7f4a_7c15 } else { 1 });
            // The first bytes of most came with the last of the one before.
            let span = (1.0 + uneven * (noise % 1000) as f64 / 1000.0) / a_second;
            seconds += span;
            batch.clear();
            let gap = capture.full > lost_in && capture.full * 7 % 10 < lost;
            let row = BatchRow {
                content: Content::Whole,
                flags: Flags::default(),
                meta: 0,
                tag: 0,
                at: 0,
                len: frame as u32,
                extra: 0,
                ordinal: Ordinal(elements),
                arrival: Timestamp((seconds * 1e9) as i64),
                span: if noise % 3 == 0 { (span * 1e9) as u64 } else { 0 },
                event: Timestamp(0),
            };
            if gap {
                lost_in = capture.full;
                let (first, last) = (Timestamp(0), row.arrival);
                let (ordinals, cause) = (1 << 40, Cause::NoBuffer);
                let gap = Gap { ordinals, elements: None, bytes: None, first, last, cause, note: 0 };
                batch.free()[..Gap::BYTES].copy_from_slice(&gap.encode());
                batch.fill(Gap::BYTES);
                let (len, extra, span) = (Gap::BYTES as u32, u32::MAX, u64::MAX);
                assert!(batch.push(BatchRow { content: Content::Gap, tag: 999, len, extra, span, ..row }));
                elements += gap.ordinals;
                capture.push(0, &batch);
                continue;
            }
            for (place, byte) in batch.free()[..frame].iter_mut().enumerate() {
                *byte = (noise.rotate_left(11 * (place / 8) as u32) >> (place % 8 * 8)) as u8;
            }
            batch.fill(frame);
            assert!(batch.push(row));
            extraction.fill(&mut batch, &SourceCounters::default());
            capture.push(0, &batch);
            (elements, bytes) = (elements + 1, bytes + frame);
        }
        let each = schema.load(Some(frame as u32)).of_size(frame as u64);
        // In the slot that is open there is some more.
        bytes -= capture.packer.slot().payload_bytes() / frame * frame;
        let (payload, elements) = (bytes as f64 / seconds, bytes as f64 / frame as f64 / seconds);
        let counted = on_medium(slot as u64, &[Coming { payload, elements, each }]) * seconds;
        let written = (capture.full * slot as u64) as f64;
        (counted, written)
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
    let each = schema.load(None).of_size(size as u64);
    let coming = Coming { payload: elements as f64 * size as f64, elements: elements as f64, each };
    (slots, [coming, Coming { payload: 0.0, elements: 0.0, each: ElementLoad::NONE }])
}
