//! Full slots against what admission counts on (promise 1): whatever mix of sizes comes, slots hold as much of it as
//! `on_medium` says.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use holdfast_base::{Age, ByteSize, Epoch, Ordinal, Sequence, SlotNo, Timestamp};
use holdfast_format::{Entry, Flags, Key, SlotFlags, SlotId, on_medium};
use holdfast_ingest::{Batch, BatchRow, Content, MIN_BATCH_BYTES, Packer, Place, Progress};
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

/// Packs, and counts the slots that were full.
struct Capture {
    packer: Packer<Vec<u8>>,
    slot: usize,
    full: u64,
}

impl Capture {
    fn new(slot: usize) -> Self {
        let mut capture = Self { packer: Packer::new(slot as u64, STREAMS), slot, full: 0 };
        capture.open();
        capture
    }

    fn open(&mut self) {
        let sequence = Sequence(self.full + 1);
        let id = SlotId { sequence, epoch: Epoch(1), age: Age(sequence.0), ..SlotId::default() };
        self.packer.open(vec![0; self.slot], id, Timestamp(0), &[Entry::default(); STREAMS]).unwrap();
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

    /// Pushes an element; `noise` makes its row as wide as rows get.
    fn element(&mut self, item: &Item, noise: u64, batch: &mut Batch) {
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
    ) {
        let mut capture = Capture::new(slot);
        let mut batch = Batch::new(ByteSize(3 * slot as u64).max(MIN_BATCH_BYTES), 1);
        let (mut payload, mut elements) = (0, 0_u64);
        for item in items.iter().cycle() {
            elements += 1;
            payload += usize::from(item.meta) + item.size;
            let noise = if wild { elements.wrapping_mul(0x9e37_79b9_7f4a_7c15) } else { elements };
            capture.element(item, noise, &mut batch);
            if capture.full >= 8 {
                break;
            }
        }
        payload -= capture.packer.slot().payload_bytes();
        let counted = on_medium(slot as u64, payload as f64, elements as f64, STREAMS);
        let written = (capture.full * slot as u64) as f64;
        prop_assert!(counted >= written, "{counted} of {written}: {payload} bytes of {elements} elements");
    }
}
