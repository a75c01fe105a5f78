//! Tests of attribute columns in a slot: what its summary says of them, what filters are worth, and what is
//! refused. The tests of slots show that columns hold what was given.

use crate::world::{Item, RING, STREAMS, Slot, entries_with, key, read_column, slot_id};
use holdfast_base::{Ordinal, SlotNo, Timestamp};
use holdfast_format::{
    BlockBounds, Builder, Cell, CellBuffer, CellsAt, Class, Classes, Entry, Flags, FormatError, Kind,
    MAX_TEXT, OpenOutline, Outline, Row, Section, SectionKind, SlotFlags, check_image, crc32c,
};
use std::iter::repeat_n;

fn some(classes: &[Class]) -> Classes {
    classes.iter().copied().collect()
}

fn item(stream: u16, kind: Kind, flags: Flags, ordinal: u64) -> Item {
    let row = Row { stream, kind, flags, ordinal: Ordinal(ordinal), len: 3, ..Row::default() };
    Item { row, bytes: vec![7; 3] }
}

#[test]
fn a_summary_tells_what_has_no_cells_from_what_has_no_columns() {
    let words = some(&[Class::Word, Class::Bytes]);
    let mut slot = Slot::open_with(64 << 10, 9, [words, words, Classes::default()]);
    for ordinal in 0..100 {
        slot.pack(&item(0, Kind::Element, Flags::default(), ordinal));
        slot.pack(&item(1, Kind::Fragment, Flags::default(), 1000 + ordinal));
        slot.pack(&item(1, Kind::Abort, Flags::default(), 1000 + ordinal));
        slot.pack(&item(2, Kind::Element, Flags::default(), ordinal));
    }
    let sealed = slot.seal_and_compare().unwrap();
    let (header, summary) = check_image(&slot.buffer[..sealed.bytes], &key(), RING).unwrap();
    assert_eq!(summary.entries.iter().map(|entry| entry.schema).collect::<Vec<_>>(), [2, 2, 0]);
    for entry in 0..3 {
        for column in 0..3 {
            let there = entry == 0 && column < 2;
            assert_eq!(summary.filter(entry, column).is_some(), there, "{entry} {column}");
            assert_eq!(summary.column(entry, column).is_some(), there, "{entry} {column}");
        }
    }
    // First all filters in one piece, from the start of the index; then columns; then what payload is read by.
    let kinds: Vec<_> = summary.sections.iter().map(|section| (section.kind, section.column)).collect();
    let all = [
        (SectionKind::PayloadChecks, 0),
        (SectionKind::ChunkDirectory, 0),
        (SectionKind::Chunks, 0),
        (SectionKind::Filter, 0),
        (SectionKind::Filter, 1),
        (SectionKind::Attribute, 0),
        (SectionKind::Attribute, 1),
    ];
    assert_eq!(kinds, all);
    let mut at = header.index_offset as usize;
    for which in [3, 4, 5, 6, 0, 1, 2] {
        let range = summary.sections[which].range();
        assert_eq!(range.start, at);
        at = range.end;
    }
    assert_eq!(header.index_offset + header.index_bytes, at as u32);
}

/// Elements of one stream, with words `cell` of each in its one column; the image of the slot.
pub(crate) fn filled(slot_bytes: u64, count: u64, cell: impl Fn(u64) -> u64) -> (Vec<u8>, u32) {
    let classes = some(&[Class::Word]);
    let entries = [Entry { classes, ..Entry::default() }];
    let (mut builder, mut buffer) = (Builder::new(slot_bytes, 1), vec![0; slot_bytes as usize]);
    builder.prepare(&entries).unwrap();
    builder.open(&mut buffer, slot_id(4), Timestamp(0), &entries).unwrap();
    for number in 0..count {
        if builder.room() == 0 {
            break;
        }
        let mut cells = [CellBuffer::new(Class::Word, 1, 0)];
        cells[0].word(cell(number));
        let row = Row { ordinal: Ordinal(number), ..Row::default() };
        builder.row_with(&mut buffer, &row, CellsAt { columns: &cells, first: 0 });
    }
    let sealed = builder.seal(&mut buffer, &key(), SlotNo(0), Timestamp(0), SlotFlags::default());
    buffer.truncate(sealed.bytes);
    (buffer, sealed.rows)
}

/// Forty values everywhere, and some others that are in one place.
pub(crate) fn common_but_some(n: u64) -> u64 {
    if SOME.contains(&n) { 77 + n } else { n * 7919 % 40 * 50 }
}

const SOME: [u64; 5] = [700, 1500, 1501, 2999, 3003];

fn outline(image: &[u8]) -> Outline<'_> {
    let (_, summary) = check_image(image, &key(), RING).unwrap();
    let section = *summary.filter(0, 0).unwrap();
    Outline::decode(&image[section.range()], &section).unwrap()
}

#[test]
fn filters_let_most_searches_pass_over_a_slot_and_never_over_what_is_there() {
    let spread = |n: u64| n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let (image, rows) = filled(4 << 20, 50_000, spread);
    assert_eq!(rows, 50_000);
    let outline = outline(&image);
    assert_eq!((outline.cells, outline.nulls), (50_000, 0));
    assert!((0..50_000).all(|n| outline.may_have(Cell::Word(spread(n)))));
    let seem = (1 << 40..(1 << 40) + 20_000).filter(|n| outline.may_have(Cell::Word(spread(*n)))).count();
    // A byte or two a value: three hundredths at most.
    assert!((50_000..100_000).contains(&outline.filter_bytes()), "{}", outline.filter_bytes());
    assert!(seem < 700, "{seem} of 20000 seem to be there");
    assert!(!outline.may_have(Cell::Wide(0)) && !outline.may_have(Cell::Bytes(b"")), "of another class");
}

/// What is told of the blocks of the one column of a slot, and where that is.
fn bounds(image: &[u8]) -> Option<(BlockBounds, Section)> {
    let (_, summary) = check_image(image, &key(), RING).unwrap();
    let section = *summary.bounds(0, 0)?;
    let column = summary.column(0, 0).unwrap();
    Some((BlockBounds::decode(&image[section.range()], &section, column).unwrap(), section))
}

// That it is so of every slot is checked by `check_image`.
#[test]
fn blocks_are_told_of_where_that_leaves_most_of_them_out() {
    // One of a million, and numbers that rise.
    let odd = |n: u64| if n == 1500 { u64::MAX } else { n * 7919 % 1000 };
    for (cell, width, found) in [
        (&odd as &dyn Fn(u64) -> u64, 8, vec![1]),
        (&|n| 5_000_000 + n, 2, vec![4]),
        (&|n| n / 1024, 1, vec![]),
    ] {
        let (image, rows) = filled(1 << 20, 10_000, cell);
        let (told, section) = bounds(&image).unwrap();
        assert_eq!((told.count(), rows, section.encoding), (10, 10_000, width));
        assert_eq!(section.bytes, 16 + 10 * (4 + 2 * u32::from(width)));
        let wanted = |n: u64| {
            let within = |at: usize| {
                told.bounds(at).flatten().is_some_and(|(low, high)| (low..=high).contains(&n.into()))
            };
            (0..told.count()).filter(|at| within(*at)).collect::<Vec<_>>()
        };
        let sought = if width == 8 { u64::MAX } else { 5_000_000 + 4 * 1024 };
        assert_eq!(wanted(sought), found);
        assert_eq!(told.range(3).unwrap().end, told.range(4).unwrap().start);
        assert_eq!((told.range(10), told.bounds(10)), (None, None));
    }
    // Of few blocks, and where most of them have anything, nothing is.
    for (cell, count) in
        [(&(|n: u64| n * 0x9e37 % 1000) as &dyn Fn(u64) -> u64, 10_000), (&|_| 7, 10_000), (&|n| n, 3000)]
    {
        assert_eq!(bounds(&filled(1 << 20, count, cell).0), None);
    }
}

#[test]
fn values_in_one_place_are_told_of_and_all_others_may_be_anywhere() {
    let (image, rows) = filled(128 << 10, 6000, common_but_some);
    let (told, section) = bounds(&image).unwrap();
    assert!(BlockBounds::has_values(&section) && !BlockBounds::has_bounds(&section));
    // Chunks are of 128 rows, and eight of them are told of together.
    assert!(rows >= 4000 && told.count() as u32 == rows.div_ceil(128), "{rows}");
    let places = |word: u64| -> Vec<usize> {
        (0..told.count()).filter(|block| told.may_have(*block, Cell::Word(word))).collect()
    };
    for n in SOME {
        let first = n as usize / 128 / 8 * 8;
        assert_eq!(
            places(common_but_some(n)),
            (first..(first + 8).min(told.count())).collect::<Vec<_>>(),
            "{n}"
        );
    }
    assert!((0..40).all(|n| places(n * 50).len() == told.count()));
    assert_eq!(told.bounds(3), None);
    // Of few blocks, of values that are all alike everywhere or all different, it is told of none.
    for (count, cell) in [
        (2000, &common_but_some as &dyn Fn(u64) -> u64),
        (6000, &|n| n * 7919 % 40 * 50),
        (6000, &|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15)),
    ] {
        assert_eq!(bounds(&filled(128 << 10, count, cell).0), None);
    }
}

#[test]
fn places_of_values_that_cannot_be_are_refused() {
    let (image, _) = filled(128 << 10, 6000, common_but_some);
    let (_, summary) = check_image(&image, &key(), RING).unwrap();
    let (section, column) = (*summary.bounds(0, 0).unwrap(), *summary.column(0, 0).unwrap());
    let good = image[section.range()].to_vec();
    let values = 16 + 4 * section.count as usize;
    let count = (good.len() - values) / 6;
    let refused = |change: &dyn Fn(&mut Vec<u8>, &mut Section)| {
        let (mut bytes, mut section) = (good.clone(), section);
        change(&mut bytes, &mut section);
        section.crc = crc32c(&bytes);
        BlockBounds::decode(&bytes, &section, &column).is_err()
    };
    assert!(count >= SOME.len() && !refused(&|_, _| ()));
    assert!(refused(&|_, section| section.encoding = 0));
    assert!(refused(&|_, section| section.encoding = 1 << 8), "fewer buckets than are told of");
    assert!(refused(&|_, section| section.encoding = 33 << 8));
    assert!(refused(&|bytes, _| bytes.truncate(values)));
    assert!(refused(&|bytes, _| bytes.truncate(values + 5)));
    assert!(refused(&|bytes, _| bytes.copy_within(values..values + 4, values + 4)), "a bucket twice");
    assert!(refused(&|bytes, _| bytes[values + 4 * count..].fill(0xff)), "blocks that are not there");
    assert!(refused(&|bytes, _| bytes[0] = 1), "a base without bounds");
}

#[test]
fn bounds_of_blocks_that_cannot_be_are_refused() {
    let (image, _) = filled(1 << 20, 10_000, |n| n);
    let (_, summary) = check_image(&image, &key(), RING).unwrap();
    let (section, column) = (*summary.bounds(0, 0).unwrap(), *summary.column(0, 0).unwrap());
    let good = image[section.range()].to_vec();
    let refused = |change: &dyn Fn(&mut Vec<u8>, &mut Section, &mut Section)| {
        let (mut bytes, mut section, mut column) = (good.clone(), section, column);
        change(&mut bytes, &mut section, &mut column);
        section.crc = crc32c(&bytes);
        BlockBounds::decode(&bytes, &section, &column).is_err()
    };
    assert!(!refused(&|_, _, _| ()));
    assert!(refused(&|_, section, _| section.encoding = 3));
    assert!(refused(&|_, section, _| section.encoding = 0));
    assert!(refused(&|_, section, _| section.encoding |= 10 << 8));
    assert!(refused(&|_, section, _| section.count += 1));
    assert!(refused(&|_, _, column| column.count += 1));
    assert!(refused(&|_, _, column| column.bytes += 8));
    assert!(refused(&|bytes, _, _| bytes.truncate(10)));
    assert!(refused(&|bytes, _, _| bytes.extend([0; 8])));
    assert!(refused(&|bytes, _, _| bytes[16..20].fill(0)), "a block without bytes");
    assert!(
        refused(&|bytes, _, _| bytes[16..20].copy_from_slice(&0xffff_fff8u32.to_le_bytes())),
        "far behind"
    );
    assert!(refused(&|bytes, _, _| bytes[..16].fill(0xff)), "bounds beyond all numbers");
    assert!(BlockBounds::decode(&good, &Section { crc: 1, ..section }, &column).is_err());
}

#[test]
fn what_is_always_the_same_needs_no_filter_and_few_values_a_small_one() {
    let (image, _) = filled(1 << 20, 5000, |_| 7);
    let same = outline(&image);
    assert_eq!((same.filter_bytes(), same.bounds()), (0, Some((7, 7))));
    assert!(same.may_have(Cell::Word(7)) && !same.may_have(Cell::Word(8)));
    let (image, _) = filled(1 << 20, 5000, |n| n % 20 * 1_000_000);
    let few = outline(&image);
    assert_eq!(few.filter_bytes(), 32);
    assert_eq!((0..20_000_000).step_by(1_000_000).filter(|n| few.may_have(Cell::Word(*n))).count(), 20);
    assert!((0..19_000_000).step_by(1000).filter(|n| few.may_have(Cell::Word(*n))).count() < 600);
}

#[test]
fn an_open_slot_tells_of_its_columns_what_is_in_blocks_and_what_is_not() {
    let classes = some(&[Class::Word, Class::Wide, Class::Bytes]);
    let entries = [Entry { classes, ..Entry::default() }, Entry::default()];
    let (mut builder, mut buffer) = (Builder::new(256 << 10, 2), vec![0; 256 << 10]);
    builder.prepare(&entries).unwrap();
    let spread = |n: u64| n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 8;
    let text = |n: u64| spread(n).to_string();
    // A slot behind another one has nothing of it.
    for first in [0, 1 << 40] {
        builder.open(&mut buffer, slot_id(4), Timestamp(0), &entries).unwrap();
        let empty = OpenOutline { cells: 0, nulls: 0, bounds: None, may_have: false };
        assert_eq!(builder.outline(0, 0, &[Cell::Word(spread(first)).hash()]), Some(empty));
        // Chunks are of 256 rows.
        for number in first..first + 700 {
            let mut cells = classes.iter().map(|class| CellBuffer::new(class, 1, 99)).collect::<Vec<_>>();
            cells[0].word(spread(number));
            if number % 7 == 0 {
                cells[1].null();
            } else {
                cells[1].wide(u128::from(spread(number)) << 50);
            }
            cells[2].bytes(text(number).as_bytes());
            let row = Row { ordinal: Ordinal(number), ..Row::default() };
            builder.row_with(&mut buffer, &row, CellsAt { columns: &cells, first: 0 });
            if (number - first) % 37 != 0 && number != first + 699 {
                continue;
            }
            let count = (number - first + 1) as u32;
            let (mut words, mut nulls) = ((u64::MAX, 0), 0);
            for there in first..=number {
                words = (words.0.min(spread(there)), words.1.max(spread(there)));
                nulls += u32::from(there % 7 == 0);
                let may_have =
                    |column, cell: Cell<'_>| builder.outline(0, column, &[7, cell.hash()]).unwrap().may_have;
                assert!(may_have(0, Cell::Word(spread(there))));
                assert_eq!(may_have(1, Cell::Wide(u128::from(spread(there)) << 50)), there % 7 != 0);
                assert!(may_have(2, Cell::Bytes(text(there).as_bytes())));
            }
            let word = builder.outline(0, 0, &[]).unwrap();
            let bounds = Some((words.0.into(), words.1.into()));
            assert_eq!(word, OpenOutline { cells: count, nulls: 0, bounds, may_have: false });
            let wide =
                builder.outline(0, 1, &[Cell::Wide(7).hash(), Cell::Word(spread(first)).hash()]).unwrap();
            assert_eq!((wide.cells, wide.nulls, wide.may_have), (count, nulls, false));
        }
    }
    for (entry, column) in [(0, 3), (1, 0), (2, 0)] {
        assert_eq!(builder.outline(entry, column, &[7]), None);
    }
}

/// Blocks lie in half a slot's memory while it is open, so that a slot may be full of them before it is full.
#[test]
fn a_slot_ends_where_its_cells_find_no_more_room() {
    let classes: Classes = repeat_n(Class::Word, 8).collect();
    let entries = [Entry { classes, ..Entry::default() }];
    let (mut builder, mut buffer) = (Builder::new(1 << 20, 1), vec![0; 1 << 20]);
    builder.prepare(&entries).unwrap();
    builder.open(&mut buffer, slot_id(4), Timestamp(0), &entries).unwrap();
    let mut rows = 0u64;
    while builder.room() > 0 {
        let mut cells: Vec<_> = classes.iter().map(|class| CellBuffer::new(class, 1, 0)).collect();
        for (at, column) in cells.iter_mut().enumerate() {
            column.word(Cell::Word(8 * rows + at as u64).hash());
        }
        let row = Row { ordinal: Ordinal(rows), ..Row::default() };
        builder.row_with(&mut buffer, &row, CellsAt { columns: &cells, first: 0 });
        rows += 1;
    }
    let sealed = builder.seal(&mut buffer, &key(), SlotNo(0), Timestamp(0), SlotFlags::default());
    let (_, summary) = check_image(&buffer[..sealed.bytes], &key(), RING).unwrap();
    let blocks: u32 = (0..8).map(|column| summary.column(0, column).unwrap().bytes).sum();
    let half = 1 << 19;
    assert!((half - half / 50..=half).contains(&blocks), "{blocks} bytes of {half}");
    assert!(rows * 64 > u64::from(half - half / 25));
}

#[test]
fn a_full_slot_with_columns_wastes_less_than_a_fiftieth() {
    for (slot_bytes, words) in [(1 << 20, 1), (1 << 20, 4), (8 << 20, 4)] {
        let classes: Classes = repeat_n(Class::Word, words).collect();
        let entries = [Entry { classes, ..Entry::default() }];
        let (mut builder, mut buffer) = (Builder::new(slot_bytes, 1), vec![0; slot_bytes as usize]);
        builder.prepare(&entries).unwrap();
        builder.open(&mut buffer, slot_id(4), Timestamp(0), &entries).unwrap();
        let mut rows = 0u64;
        while builder.room() > 0 {
            let len = builder.room().min(100);
            builder.write(&mut buffer, &vec![1; len]);
            let mut cells: Vec<_> = classes.iter().map(|class| CellBuffer::new(class, 1, 0)).collect();
            for (at, column) in cells.iter_mut().enumerate() {
                column.word(if at % 2 == 0 { Cell::Word(rows).hash() } else { rows % 300 * 1000 });
            }
            let row = Row { ordinal: Ordinal(rows), len: len as u32, ..Row::default() };
            builder.row_with(&mut buffer, &row, CellsAt { columns: &cells, first: 0 });
            rows += 1;
        }
        let sealed = builder.seal(&mut buffer, &key(), SlotNo(0), Timestamp(0), SlotFlags::default());
        check_image(&buffer[..sealed.bytes], &key(), RING).unwrap();
        let spare = slot_bytes as usize - sealed.bytes;
        assert!(spare <= slot_bytes as usize / 50 + 3 * 4096, "{slot_bytes} {words}: {spare} left");
    }
}

#[test]
fn a_chunk_ends_where_texts_find_no_more_room() {
    let mut slot =
        Slot::open_with(1 << 20, 9, [some(&[Class::Bytes]), Classes::default(), Classes::default()]);
    let mut cells = [CellBuffer::new(Class::Bytes, 500, 500 * MAX_TEXT)];
    (0..500u32).for_each(|n| cells[0].bytes(&n.to_le_bytes().repeat(MAX_TEXT / 4)));
    let rows: Vec<Row> = (0..500).map(|n| Row { ordinal: Ordinal(n), ..Row::default() }).collect();
    // As many as 64 KiB hold, each of which needs a place before it is known how long it is.
    for run in rows.chunks(50) {
        let cells = CellsAt { columns: &cells, first: run[0].ordinal.0 as usize };
        slot.builder.elements(&mut slot.buffer, run, |row| *row, cells);
    }
    let sealed = slot.seal();
    let (header, summary) = check_image(&slot.buffer[..sealed.bytes], &key(), RING).unwrap();
    assert_eq!(summary.column(0, 0).unwrap().count, 500_u32.div_ceil(64));
    let read = read_column(&header, &summary, &slot.buffer, 0, 0);
    assert_eq!(read.len(), 500);
}

#[test]
fn columns_that_are_too_many_too_wide_or_not_prepared_are_refused() {
    let prepare = |slot_bytes: u64, classes: &[Classes]| {
        let entries: Vec<_> =
            classes.iter().map(|classes| Entry { classes: *classes, ..Entry::default() }).collect();
        let memory = Builder::column_memory(slot_bytes, classes);
        let prepared = Builder::new(slot_bytes, 32).prepare(&entries);
        assert_eq!(prepared.as_ref().err(), memory.as_ref().err());
        prepared
    };
    let words = |count| repeat_n(Class::Word, count).collect::<Classes>();
    assert_eq!(prepare(64 << 10, &[words(30), words(2)]), Ok(()));
    let refused = prepare(64 << 10, &[words(30), words(3)]);
    assert_eq!(
        refused,
        Err(FormatError::TooMany { what: "attributes in slots of this size", count: 33, limit: 32 })
    );
    assert_eq!(prepare(1 << 20, &[words(64), words(64), words(64), words(64)]), Ok(()));
    let texts = |count| repeat_n(Class::Bytes, count).collect::<Classes>();
    assert_eq!(prepare(64 << 10, &[texts(7), texts(7)]), Ok(()));
    assert!(matches!(prepare(64 << 10, &[texts(8)]), Err(FormatError::TooMany { .. })));
    assert_eq!(prepare(1 << 20, &[texts(64)]), Ok(()));

    let mut slot = Slot::open(64 << 10, 9);
    let unprepared = entries_with([words(1); STREAMS]);
    let refused = slot.builder.open(&mut slot.buffer, slot_id(1), Timestamp(0), &unprepared);
    assert!(matches!(refused, Err(FormatError::Malformed { .. })), "{refused:?}");
    slot.builder.prepare(&unprepared).unwrap();
    assert_eq!(slot.builder.open(&mut slot.buffer, slot_id(1), Timestamp(0), &unprepared), Ok(()));
    // A slot may be without those that were prepared.
    let without = entries_with([words(1), Classes::default(), words(1)]);
    assert_eq!(slot.builder.open(&mut slot.buffer, slot_id(1), Timestamp(0), &without), Ok(()));
    let others = entries_with([words(1), words(2), words(1)]);
    assert!(slot.builder.open(&mut slot.buffer, slot_id(1), Timestamp(0), &others).is_err());
}

#[test]
#[should_panic(expected = "come with their cells")]
fn an_element_without_the_cells_of_its_stream_is_an_error_in_the_program() {
    let mut slot = Slot::open_with(64 << 10, 9, [some(&[Class::Word]); STREAMS]);
    slot.builder.row(&mut slot.buffer, &Row::default());
}

#[test]
#[should_panic(expected = "come with their cells")]
fn fewer_cells_than_elements_are_an_error_in_the_program() {
    let mut slot = Slot::open_with(64 << 10, 9, [some(&[Class::Word]); STREAMS]);
    let mut cells = [CellBuffer::new(Class::Word, 9, 0)];
    cells[0].word(1);
    let rows = [Row::default(), Row { ordinal: Ordinal(1), ..Row::default() }];
    slot.builder.elements(&mut slot.buffer, &rows, |row| *row, CellsAt { columns: &cells, first: 0 });
}
