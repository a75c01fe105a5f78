//! Batches of many rows against batches of one row each (promises 2 and 5): the packer takes runs of small elements at
//! once, and the sealed slots must not tell the difference.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use holdfast_attributes::Schema;
use holdfast_base::{Age, ByteSize, Epoch, Ordinal, Sequence, SlotNo, Timestamp};
use holdfast_format::{Entry, Flags, Gap, Key, SlotFlags, SlotId};
use holdfast_ingest::{
    Batch, BatchPosition, BatchRow, Content, Extraction, Packer, Progress, SourceCounters,
};
use proptest::prelude::*;

/// A row of a batch, what stands in front of its bytes and belongs to nobody, and its bytes.
type Piece = (BatchRow, usize, Vec<u8>);

/// What a strategy chooses of a row.
#[derive(Clone, Debug)]
struct Choice {
    kind: u8,
    meta: u16,
    size: usize,
    between: usize,
    jump: u64,
    step: i64,
    span: u64,
    event: Option<i64>,
    odd: Option<(u16, u32)>,
}

/// Rows of one stream that are much alike, with odd ones among them.
fn choices() -> impl Strategy<Value = (u16, Vec<Choice>)> {
    let sizes = prop_oneof![Just(0..1usize), Just(20..21), Just(0..200), Just(1400..1600), Just(0..20_000)];
    let metas = prop_oneof![Just(0..1u16), Just(44..45), Just(0..60)];
    (0..2u16, sizes, 0..2usize, any::<bool>(), metas).prop_flat_map(|(stream, size, between, events, meta)| {
        let choice = (
            prop_oneof![60 => Just(0u8), 1 => 1..6u8],
            prop_oneof![40 => meta, 1 => 1..100u16],
            size,
            prop_oneof![20 => Just(between), 1 => 0..9usize],
            prop_oneof![30 => Just(0u64), 1 => any::<u64>()],
            prop_oneof![30 => 0..5000i64, 1 => any::<i64>()],
            prop_oneof![9 => Just(0u64), 1 => any::<u64>()],
            prop_oneof![1 => Just(None), 1 => any::<i64>().prop_map(move |event| events.then_some(event))],
            proptest::option::weighted(0.05, any::<(u16, u32)>()),
        );
        let choice = choice.prop_map(|(kind, meta, size, between, jump, step, span, event, odd)| Choice {
            kind,
            meta,
            size,
            between,
            jump,
            step,
            span,
            event,
            odd,
        });
        (Just(stream), prop::collection::vec(choice, 1..400))
    })
}

/// The rows that choices make; pieces are of one element each, so that any order of them makes sense.
fn pieces(choices: &[Choice], next: &mut u64, now: &mut i64) -> Vec<Piece> {
    let mut pieces = Vec::new();
    for choice in choices {
        *now = now.wrapping_add(choice.step);
        *next = next.wrapping_add(choice.jump);
        let mut row = BatchRow {
            content: Content::Whole,
            flags: Flags::default(),
            meta: 0,
            tag: choice.odd.map_or(0, |(tag, _)| tag),
            at: 0,
            len: choice.size as u32,
            extra: choice.odd.map_or(0, |(_, extra)| extra),
            ordinal: Ordinal(*next),
            arrival: Timestamp(*now),
            span: choice.span,
            event: Timestamp(choice.event.unwrap_or(0)),
        };
        if choice.event.is_some() {
            row.flags = Flags::EVENT;
        }
        let mut bytes = vec![*next as u8; choice.size];
        match choice.kind {
            1 => {
                let gap = Gap { ordinals: choice.jump % 7, ..Gap::decode(&[1; Gap::BYTES]).unwrap() };
                row.content = Content::Gap;
                bytes = gap.encode().to_vec();
            }
            2 => row.content = Content::Note,
            3 | 4 => {
                let first = BatchRow { content: Content::First { total: None }, ..row };
                pieces.push((first, choice.between, bytes.clone()));
                row.content = if choice.kind == 3 { Content::Last } else { Content::Abort };
                bytes.truncate(if choice.kind == 3 { bytes.len() } else { 0 });
            }
            _ => row.meta = choice.meta,
        }
        row.len = bytes.len() as u32;
        let meta = vec![0xaa; usize::from(row.meta)];
        *next = next.wrapping_add(u64::from(!matches!(row.content, Content::Gap | Content::Note)));
        pieces.push((row, choice.between, [meta, bytes].concat()));
    }
    pieces
}

/// Adds a piece to a batch, if it fits.
fn add(batch: &mut Batch, (row, between, bytes): &Piece) -> bool {
    if batch.room() < between + bytes.len() || batch.rows_left() == 0 {
        return false;
    }
    let at = (batch.capacity() - batch.room() + between) as u32;
    batch.free()[*between..between + bytes.len()].copy_from_slice(bytes);
    batch.fill(between + bytes.len());
    batch.push(BatchRow { at, ..*row })
}

/// Packs what it is given, and keeps the sealed images.
struct Capture {
    packer: Packer<Vec<u8>>,
    slot_bytes: u64,
    entries: [Entry; 2],
    images: Vec<Vec<u8>>,
    extraction: Extraction,
}

impl Capture {
    fn new(slot_bytes: u64) -> Self {
        // The first stream has attributes, in columns of every class.
        let schema = ["n:uint=at:0:u8", "b:binary=at:0:bytes20", "a:ip=at:4:ipv4"];
        let extraction = Extraction::new(&Schema::typed(schema).unwrap(), Vec::new());
        let mut packer = Packer::new(slot_bytes, 2);
        let mut entries = [Entry::default(); 2];
        entries[0].classes = extraction.classes();
        packer.prepare(&entries).unwrap();
        let mut capture = Self { packer, slot_bytes, entries, images: Vec::new(), extraction };
        capture.open();
        capture
    }

    fn open(&mut self) {
        let sequence = Sequence(self.images.len() as u64 + 1);
        let id = SlotId { sequence, epoch: Epoch(1), age: Age(sequence.0), ..SlotId::default() };
        let buffer = vec![0xee; self.slot_bytes as usize];
        self.packer.open(buffer, id, Timestamp(0), &self.entries).unwrap();
    }

    fn seal(&mut self) {
        let sealed = self.packer.seal(&Key([7; 32]), SlotNo(3), Timestamp(1), SlotFlags::default());
        for (number, entry) in self.entries.iter_mut().enumerate() {
            entry.counters = self.packer.slot().counters(number as u16);
        }
        self.images.push(sealed.unwrap().0);
        self.open();
    }

    fn push(&mut self, entry: u16, batch: &mut Batch) {
        if entry == 0 {
            self.extraction.fill(batch, &SourceCounters::default());
        }
        let mut place = BatchPosition::default();
        while let Progress::Full(from) = self.packer.push(entry, batch, place) {
            place = from;
            self.seal();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn batches_of_many_rows_make_the_same_slots_as_batches_of_one(
        parts in prop::collection::vec(choices(), 1..12),
        log2 in 16..19u32,
    ) {
        let [mut one, mut many] = [(), ()].map(|()| Capture::new(1 << log2));
        let (mut next, mut now) = ([0, 1 << 40], 1_000_000);
        let mut batch = Batch::new(ByteSize::mib(1), 1024).with_columns(one.extraction.classes());
        for (stream, choices) in &parts {
            let pieces = pieces(choices, &mut next[usize::from(*stream)], &mut now);
            for piece in &pieces {
                batch.clear();
                prop_assert!(add(&mut batch, piece));
                one.push(*stream, &mut batch);
            }
            batch.clear();
            for piece in &pieces {
                if !add(&mut batch, piece) {
                    many.push(*stream, &mut batch);
                    batch.clear();
                    prop_assert!(add(&mut batch, piece));
                }
            }
            many.push(*stream, &mut batch);
        }
        one.seal();
        many.seal();
        prop_assert_eq!(one.images.len(), many.images.len());
        for (one, many) in one.images.iter().zip(&many.images) {
            prop_assert!(one == many);
        }
        prop_assert_eq!(one.entries, many.entries);
    }
}
