//! Shared test world: a key, a ring, elements to pack, and a naive model of what a slot then holds.

use holdfast_base::{Age, Epoch, LaneNo, Ordinal, RingId, Sequence, SlotNo, StreamId, Timestamp};
use holdfast_format::{
    Block, Blocks, BlocksComing, Builder, Cause, Cell, CellBuffer, CellsAt, Chunk, Class, Classes, Counters,
    Entry, EntrySummary, Flags, FormatError, Gap, Key, Kind, MAX_TEXT, Name, PartHeader, Row, Sealed,
    SectionKind, SlotFlags, SlotId, StreamKind, Summary, check_image, decode_directory,
};
use proptest::prelude::*;

pub(crate) const RING: RingId = RingId(*b"ring of the test");
pub(crate) const STREAMS: usize = 3;
const NOW: i64 = 1_795_000_000_000_000_000;

pub(crate) fn key() -> Key {
    Key(*b"senders of packets don't know it")
}

pub(crate) fn slot_id(sequence: u64) -> SlotId {
    SlotId {
        ring: RING,
        group: RING,
        lane: LaneNo(0),
        sequence: Sequence(sequence),
        epoch: Epoch(3),
        age: Age(sequence - 1),
    }
}

pub(crate) fn entries() -> Vec<Entry> {
    entries_with([Classes::default(); STREAMS])
}

/// The same streams with columns.
pub(crate) fn entries_with(classes: [Classes; STREAMS]) -> Vec<Entry> {
    (0..STREAMS as u32)
        .map(|id| Entry {
            stream: StreamId(id + 10),
            kind: if id == 1 { StreamKind::Packets } else { StreamKind::Bytes },
            name: Name::new(&format!("stream {id} \u{e4}")).unwrap(),
            preamble: id,
            classes: classes[id as usize],
            began: None,
            counters: Counters {
                next_ordinal: Ordinal(u64::from(id) * 1000),
                received: 7,
                ..Counters::default()
            },
        })
        .collect()
}

/// A row and the bytes that it describes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Item {
    pub(crate) row: Row,
    pub(crate) bytes: Vec<u8>,
}

/// What a strategy chooses; ordinals and times are made from it in order.
#[derive(Clone, Debug)]
struct Choice {
    stream: u16,
    kind: u8,
    size: u32,
    meta: u16,
    jump: i64,
    step: i64,
    wild: Option<(u64, u64, u32, u32, u16)>,
    event: Option<i64>,
    flags: u8,
    seed: u8,
}

fn choice(largest: u32) -> impl Strategy<Value = Choice> {
    let jump = prop_oneof![8 => Just(0i64), 1 => 1..1000i64, 1 => -1000..0i64, 1 => any::<i64>()];
    let step = prop_oneof![8 => 0..100_000i64, 1 => -50_000..0i64, 1 => any::<i64>()];
    let size = prop_oneof![2 => Just(0u32), 6 => 0..200u32, 2 => 0..=largest];
    let meta = prop_oneof![6 => Just(0u16), 1 => 0..40u16];
    let event = prop_oneof![2 => Just(None), 1 => any::<i64>().prop_map(Some)];
    let shape = (0..STREAMS as u16, 0..10u8, size, meta);
    (
        shape,
        jump,
        step,
        proptest::option::weighted(0.2, any::<(u64, u64, u32, u32, u16)>()),
        event,
        any::<(u8, u8)>(),
    )
        .prop_map(|((stream, kind, size, meta), jump, step, wild, event, (flags, seed))| Choice {
            stream,
            kind,
            size,
            meta,
            jump,
            step,
            wild,
            event,
            flags,
            seed,
        })
}

fn gap(choice: &Choice) -> Gap {
    let cause = Cause::from_byte(choice.seed % 9 + 1).unwrap();
    let known = |bit: u8| (choice.flags >> bit & 1 == 0).then_some(u64::from(choice.size));
    Gap {
        ordinals: u64::from(choice.seed),
        elements: known(0),
        bytes: known(1),
        first: Timestamp(NOW),
        last: Timestamp(NOW + 5),
        cause,
        note: choice.jump as u64,
    }
}

/// The items that `choices` make, one after the other.
fn items_of(choices: Vec<Choice>) -> Vec<Item> {
    let mut expected: Vec<u64> = entries().iter().map(|entry| entry.counters.next_ordinal.0).collect();
    let mut now = NOW;
    let mut items = Vec::new();
    for choice in choices {
        now = now.wrapping_add(choice.step);
        let kind = [Kind::Element, Kind::Fragment, Kind::Abort, Kind::Gap, Kind::Note]
            [usize::from(choice.kind.saturating_sub(5))];
        let next = &mut expected[usize::from(choice.stream)];
        let ordinal = next.wrapping_add_signed(choice.jump);
        let mut flags = Flags(choice.flags & 0b1_1110);
        if choice.event.is_some() {
            flags = flags | Flags::EVENT;
        }
        let data = match kind {
            Kind::Gap => gap(&choice).encode().to_vec(),
            Kind::Abort | Kind::Note => Vec::new(),
            _ => (0..choice.size).map(|at| (at as u8).wrapping_mul(31) ^ choice.seed).collect(),
        };
        let (span, offset, extra, number, tag) = choice.wild.unwrap_or_default();
        let row = Row {
            stream: choice.stream,
            kind,
            flags,
            tag,
            meta: choice.meta,
            len: data.len() as u32,
            extra,
            number,
            ordinal: Ordinal(ordinal),
            arrival: Timestamp(now),
            span,
            event: Timestamp(choice.event.unwrap_or(0)),
            offset,
        };
        if kind != Kind::Note {
            *next = ordinal.wrapping_add(u64::from(row.ends_element()));
        }
        let mut bytes = vec![choice.seed; usize::from(choice.meta)];
        bytes.extend(data);
        items.push(Item { row, bytes });
    }
    items
}

/// Up to `count` rows of every kind, with the odd ones among them: empty, backwards, with jumps, with wild values.
pub(crate) fn items(count: usize, largest: u32) -> impl Strategy<Value = Vec<Item>> {
    proptest::collection::vec(choice(largest), 0..count).prop_map(items_of)
}

/// Columns of the streams; in half of all cases none has any.
pub(crate) fn classes() -> impl Strategy<Value = [Classes; STREAMS]> {
    let class = prop_oneof![2 => Just(Class::Word), 1 => Just(Class::Wide), 1 => Just(Class::Bytes)];
    let some = proptest::collection::vec(class, 0..5).prop_map(Classes::from_iter);
    prop_oneof![
        Just([Classes::default(); STREAMS]),
        proptest::collection::vec(some, STREAMS).prop_map(|all| std::array::from_fn(|at| all[at]))
    ]
}

/// A cell that a column has or should have.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Word(u64),
    Wide(u128),
    Bytes(Vec<u8>),
}

impl Value {
    pub(crate) fn of(cell: Cell<'_>) -> Self {
        match cell {
            Cell::Word(word) => Self::Word(word),
            Cell::Wide(wide) => Self::Wide(wide),
            Cell::Bytes(bytes) => Self::Bytes(bytes.to_vec()),
        }
    }
}

/// What an element has in a column: something that differs from element to element, one of a few, nearly always nothing, or
/// something of a small range.
fn value(item: &Item, column: usize, class: Class) -> Option<Value> {
    let row = &item.row;
    let seed = [row.ordinal.0, row.arrival.0 as u64, u64::from(row.len), u64::from(row.stream)];
    let n = seed.iter().fold(column as u64, |hash, part| Cell::Word(hash ^ part).hash());
    let n = match (column + usize::from(row.stream)) % 4 {
        0 => n,
        1 => (n % 5) << 40,
        2 if n % 50 > 0 => return None,
        _ => (1 << 33) | (n % 1000),
    };
    if n % 9 == 3 {
        return None;
    }
    Some(match class {
        Class::Word => Value::Word(n),
        Class::Wide => Value::Wide(u128::from(n) << (n % 64)),
        Class::Bytes => {
            let long = if n % 40 == 0 { MAX_TEXT } else { n as usize % 30 };
            Value::Bytes(n.to_string().into_bytes().into_iter().cycle().take(long).collect())
        }
    })
}

/// The cells of a row.
pub(crate) fn values(item: &Item, classes: Classes) -> Vec<Option<Value>> {
    classes.iter().enumerate().map(|(column, class)| value(item, column, class)).collect()
}

/// The cells of those rows that complete an element, as a source would give them, behind some of others.
pub(crate) fn buffers(items: &[Item], classes: Classes, before: usize) -> Vec<CellBuffer> {
    let whole: Vec<&Item> = items.iter().filter(|item| item.row.completes_element()).collect();
    let column = |(column, class)| {
        let cells = before + whole.len();
        let mut buffer = CellBuffer::new(class, cells, (cells + 1) * MAX_TEXT);
        for number in 0..before {
            match class {
                Class::Word => buffer.word(77),
                Class::Wide => buffer.wide(77),
                Class::Bytes => buffer.bytes(&b"of another"[number % 5..]),
            }
        }
        for item in &whole {
            match value(item, column, class) {
                None => buffer.null(),
                Some(Value::Word(word)) => buffer.word(word),
                Some(Value::Wide(wide)) => buffer.wide(wide),
                Some(Value::Bytes(bytes)) => buffer.bytes(&bytes),
            }
        }
        buffer
    };
    classes.iter().enumerate().map(column).collect()
}

/// A builder, its buffer, and what was put into it.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) builder: Builder,
    pub(crate) buffer: Vec<u8>,
    pub(crate) packed: Vec<Item>,
    pub(crate) entries: Vec<Entry>,
    /// The ordinal that each stream's next element is expected to get: what a note is read back with.
    expected: Vec<u64>,
}

impl Slot {
    pub(crate) fn open(slot_bytes: u64, sequence: u64) -> Self {
        Self::open_with(slot_bytes, sequence, [Classes::default(); STREAMS])
    }

    /// The same of streams with columns.
    pub(crate) fn open_with(slot_bytes: u64, sequence: u64, classes: [Classes; STREAMS]) -> Self {
        let entries = entries_with(classes);
        let mut builder = Builder::new(slot_bytes, STREAMS);
        let mut buffer = vec![0xa5; slot_bytes as usize];
        builder.prepare(&entries).unwrap();
        builder.open(&mut buffer, slot_id(sequence), Timestamp(NOW), &entries).unwrap();
        Self { entries, ..Self::around(builder, buffer, Vec::new()) }
    }

    /// A builder that already holds `packed`.
    pub(crate) fn around(builder: Builder, buffer: Vec<u8>, packed: Vec<Item>) -> Self {
        let entries = entries();
        let expected = entries.iter().map(|entry| entry.counters.next_ordinal.0).collect();
        Self { builder, buffer, packed, entries, expected }
    }

    /// Opens the next slot.
    pub(crate) fn reopen(&mut self, sequence: u64) {
        self.builder.open(&mut self.buffer, slot_id(sequence), Timestamp(NOW), &self.entries).unwrap();
        self.packed.clear();
        self.expected = entries().iter().map(|entry| entry.counters.next_ordinal.0).collect();
    }

    /// Takes down what was packed.
    pub(crate) fn note_down(&mut self, mut item: Item) {
        let expected = &mut self.expected[usize::from(item.row.stream)];
        if item.row.kind == Kind::Note {
            item.row.ordinal = Ordinal(*expected);
        }
        *expected = item.row.ordinal.0.wrapping_add(u64::from(item.row.ends_element()));
        self.packed.push(item);
    }

    /// Packs an item if there is room; says whether there was.
    pub(crate) fn pack(&mut self, item: &Item) -> bool {
        let room = self.builder.room();
        if room == 0 || room < item.bytes.len() {
            return false;
        }
        let (meta, data) = item.bytes.split_at(usize::from(item.row.meta));
        self.builder.write(&mut self.buffer, meta);
        self.builder.write(&mut self.buffer, data);
        self.row(item);
        self.note_down(item.clone());
        true
    }

    /// What its stream has as columns.
    pub(crate) fn classes(&self, stream: u16) -> Classes {
        self.entries[usize::from(stream)].classes
    }

    /// Describes what was written, with the cells where there are any.
    pub(crate) fn row(&mut self, item: &Item) {
        let buffers = buffers(std::slice::from_ref(item), self.classes(item.row.stream), 3);
        self.builder.row_with(&mut self.buffer, &item.row, CellsAt { columns: &buffers, first: 3 });
    }

    pub(crate) fn seal(&mut self) -> Sealed {
        self.builder.seal(&mut self.buffer, &key(), SlotNo(5), Timestamp(NOW + 1), SlotFlags::SHORT)
    }

    /// Seals, and checks that the image says exactly what was packed.
    pub(crate) fn seal_and_compare(&mut self) -> Result<Sealed, TestCaseError> {
        let sealed = self.seal();
        prop_assert!(sealed.bytes <= self.buffer.len());
        let (header, summary) =
            check_image(&self.buffer[..sealed.bytes], &key(), RING).expect("a sealed slot is sound");
        prop_assert_eq!(header.bytes(), sealed.bytes);
        let found = read_items(&header, &summary, &self.buffer);
        prop_assert_eq!(found.len(), self.packed.len());
        for (found, packed) in found.iter().zip(&self.packed) {
            prop_assert_eq!(found, packed);
        }
        prop_assert_eq!(&summary.entries, &model(&self.packed, &self.entries));
        for (entry, number) in self.entries.iter().zip(0..) {
            let mine =
                self.packed.iter().filter(|item| item.row.stream == number && item.row.completes_element());
            let cells: Vec<_> = mine.map(|item| values(item, entry.classes)).collect();
            for column in 0..entry.classes.len() {
                let wanted: Vec<_> = cells.iter().map(|cells| cells[column].clone()).collect();
                prop_assert_eq!(read_column(&header, &summary, &self.buffer, number, column as u16), wanted);
            }
        }
        Ok(sealed)
    }
}

/// All that a sealed slot holds, by way of directory and chunks.
pub(crate) fn read_items(header: &PartHeader, summary: &Summary, image: &[u8]) -> Vec<Item> {
    let directory = summary.section(SectionKind::ChunkDirectory).unwrap();
    let chunks = summary.section(SectionKind::Chunks).unwrap();
    let mut items = Vec::new();
    for entry in decode_directory(&image[directory.range()], directory.crc).unwrap() {
        let bytes = &image[chunks.range()][entry.offset as usize..][..entry.bytes as usize];
        let chunk = Chunk::decode_at(&entry, header.sequence, bytes).unwrap();
        for number in 0..=summary.entries.len() as u16 {
            assert!(chunk.rows_of(number).eq(chunk.rows().filter(|(row, _)| row.stream == number)));
        }
        for (row, at) in chunk.rows() {
            assert!(entry.may_have(row.stream));
            let at = header.payload_offset as usize + at as usize;
            items.push(Item { row, bytes: image[at..at + row.payload()].to_vec() });
        }
    }
    items
}

/// The same of one dictionary entry, by way of those chunks that may have some of it.
pub(crate) fn read_items_of(header: &PartHeader, summary: &Summary, image: &[u8], entry: u16) -> Vec<Item> {
    let place = |at: u32| header.payload_offset as usize + at as usize;
    let item =
        |(row, at): (Row, u32)| Item { row, bytes: image[place(at)..place(at) + row.payload()].to_vec() };
    chunks_of(header, summary, image, entry)
        .flat_map(|chunk| chunk.map_or_else(Vec::new, |chunk| chunk.rows_of(entry).map(item).collect()))
        .collect()
}

/// How many elements of a dictionary entry each chunk completes.
pub(crate) fn elements_of(header: &PartHeader, summary: &Summary, image: &[u8], entry: u16) -> Vec<usize> {
    let whole = |chunk: Chunk| chunk.rows_of(entry).filter(|(row, _)| row.completes_element()).count();
    chunks_of(header, summary, image, entry).map(|chunk| chunk.map_or(0, whole)).collect()
}

/// The chunks, as far as they may have some of a dictionary entry.
fn chunks_of<'a>(
    header: &'a PartHeader,
    summary: &Summary,
    image: &'a [u8],
    entry: u16,
) -> impl Iterator<Item = Option<Chunk>> + use<'a> {
    let directory = summary.section(SectionKind::ChunkDirectory).unwrap();
    let chunks = &image[summary.section(SectionKind::Chunks).unwrap().range()];
    let all = decode_directory(&image[directory.range()], directory.crc).unwrap();
    all.into_iter().map(move |told| {
        let bytes = chunks.get(told.offset as usize..)?.get(..told.bytes as usize)?;
        told.may_have(entry).then(|| Chunk::decode_at(&told, header.sequence, bytes).unwrap())
    })
}

/// All that a sealed slot holds in a column.
pub(crate) fn read_column(
    header: &PartHeader,
    summary: &Summary,
    image: &[u8],
    entry: u16,
    column: u16,
) -> Vec<Option<Value>> {
    let Some(section) = summary.column(entry, column) else { return Vec::new() };
    let bytes = &image[section.range()];
    let blocks = Blocks::new(section, bytes, header.sequence);
    let columns: Vec<_> = blocks.map(|block| block.unwrap().decode().unwrap()).collect();
    // In pieces it is the same; what is cut off is noticed.
    for len in [1, 7, 71, 5000] {
        let mut coming = BlocksComing::new(section, header.sequence);
        let mut found = Vec::new();
        let mut take = |block: Block<'_>| {
            found.push(block.decode()?);
            Ok::<_, FormatError>(())
        };
        let (last, before) = bytes.split_last().unwrap();
        before.chunks(len).for_each(|piece| coming.piece(piece, &mut take).unwrap());
        assert!(coming.end().is_err());
        coming.piece(&[*last], &mut take).unwrap();
        assert!(coming.end().is_ok() && coming.piece(&bytes[..63], |_| Ok::<_, FormatError>(())).is_ok());
        assert!(coming.end().is_err(), "of what comes behind the last one");
        assert_eq!(found, columns);
    }
    columns.iter().flat_map(|column| column.iter().map(|cell| cell.map(Value::of))).collect()
}

/// Whether an element ends among these that did not begin there.
fn has_tail(items: &[&Item]) -> bool {
    let mut under_way = None;
    items.iter().any(|item| match item.row.kind {
        Kind::Fragment if item.row.flags.has(Flags::LAST) => {
            under_way.take() != Some(item.row.ordinal) && item.row.number > 0
        }
        Kind::Fragment if item.row.number == 0 => {
            under_way = Some(item.row.ordinal);
            false
        }
        Kind::Abort => {
            under_way = None;
            false
        }
        _ => false,
    })
}

/// What the dictionary of a slot with these items must say, counted the simple way.
pub(crate) fn model(items: &[Item], entries: &[Entry]) -> Vec<EntrySummary> {
    let count = |entry: (usize, &Entry)| {
        let mine: Vec<&Item> = items.iter().filter(|item| usize::from(item.row.stream) == entry.0).collect();
        let gap = |item: &&Item| {
            let data = &item.bytes[usize::from(item.row.meta)..];
            (item.row.kind == Kind::Gap).then(|| Gap::decode(data).unwrap())
        };
        let gaps: Vec<Gap> = mine.iter().filter_map(gap).collect();
        let told = mine.iter().filter(|item| item.row.kind != Kind::Note);
        let first = told.clone().map(|item| item.row.ordinal.0).min();
        let last = told.map(|item| {
            let lost = gap(item).map_or(0, |gap| gap.ordinals.saturating_sub(1));
            item.row.ordinal.0.saturating_add(lost)
        });
        let last = last.max();
        let earliest = mine.iter().map(|item| item.row.first_arrival()).min();
        let events = mine.iter().filter(|item| item.row.flags.has(Flags::EVENT)).map(|item| item.row.event);
        let arrived = |item: &&&Item| matches!(item.row.kind, Kind::Element | Kind::Fragment);
        let whole = |item: &&&Item| arrived(item) && item.row.ends_element();
        let mut counters = entry.1.counters;
        counters.received += mine.iter().filter(whole).count() as u64;
        // An element's bytes count when its end is there.
        for item in mine.iter().filter(whole) {
            let before = if item.row.kind == Kind::Fragment { item.row.offset } else { 0 };
            let bytes = before.wrapping_add(item.row.len.into());
            counters.received_bytes = counters.received_bytes.wrapping_add(bytes);
        }
        // What was purged was received, and stays counted as that.
        let losses: Vec<&Gap> = gaps.iter().filter(|gap| gap.cause != Cause::Purged).collect();
        counters.lost += losses.iter().filter_map(|gap| gap.elements).sum::<u64>();
        counters.lost_bytes += losses.iter().filter_map(|gap| gap.bytes).sum::<u64>();
        counters.gaps += losses.len() as u64;
        counters.unknown_gaps += losses.iter().filter(|gap| gap.elements.is_none()).count() as u64;
        // A gap may tell of what was lost before others came.
        counters.next_ordinal = mine.iter().fold(counters.next_ordinal, |next, item| match gap(item) {
            Some(gap) => next.max(Ordinal(item.row.ordinal.0.wrapping_add(gap.ordinals))),
            None if item.row.ends_element() => Ordinal(item.row.ordinal.0.wrapping_add(1)),
            None => next,
        });
        EntrySummary {
            stream: entry.1.stream,
            preamble: entry.1.preamble,
            schema: entry.1.classes.len() as u32,
            kind: entry.1.kind,
            name: entry.1.name,
            ordinals: first.zip(last).map(|(first, last)| (Ordinal(first), Ordinal(last))),
            rows: mine.len() as u64,
            payload_bytes: mine.iter().map(|item| item.bytes.len() as u64).sum(),
            arrivals: earliest.zip(mine.iter().map(|item| item.row.arrival).max()),
            events: events.clone().min().zip(events.max()),
            gaps: gaps.len() as u64,
            counters,
            back: u64::from(has_tail(&mine)),
        }
    };
    entries.iter().enumerate().map(count).collect()
}
