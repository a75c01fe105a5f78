//! Tests of the builder against a naive list: what is packed is read back (promise 5), and sealing never
//! fails (promise 1).

use crate::world::{Item, RING, STREAMS, Slot, classes, entries, items, key, read_items, slot_id};
use holdfast_base::{Ordinal, SlotNo, Timestamp};
use holdfast_format::{
    Builder, Cause, Cell, CellBuffer, CellsAt, Class, Classes, Coming, ElementLoad, Entry, Flags,
    FormatError, Gap, Kind, Row, SectionKind, SlotFlags, check_image, check_payload_block, on_medium,
    restamp,
};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn a_slot_holds_exactly_what_was_packed(items in items(400, 9000), classes in classes()) {
        let mut slot = Slot::open_with(64 << 10, 9, classes);
        for item in &items {
            slot.pack(item);
        }
        slot.seal_and_compare()?;
    }

    #[test]
    fn a_builder_is_as_good_as_new_after_every_slot(
        first in items(300, 3000),
        second in items(300, 3000),
        classes in classes(),
    ) {
        let mut slot = Slot::open_with(64 << 10, 9, classes);
        for items in [first, second] {
            slot.reopen(10);
            for item in &items {
                slot.pack(item);
            }
            slot.seal_and_compare()?;
        }
    }

    #[test]
    fn room_is_honest_to_the_last_byte(
        sizes in proptest::collection::vec((0..4u8, any::<u32>()), 2000),
        wild in any::<bool>(),
        log2 in 16..20u32,
        classes in classes(),
    ) {
        let mut slot = Slot::open_with(1 << log2, 4, classes);
        let mut expected: Vec<u64> = entries().iter().map(|entry| entry.counters.next_ordinal.0).collect();
        for (number, (shape, random)) in sizes.iter().enumerate() {
            let room = slot.builder.room();
            if room == 0 {
                break;
            }
            let size = match shape {
                0 => 0,
                1 => random % 64,
                2 => random % 3000,
                _ => random % (1 << (log2 - 3)),
            };
            let size = (size as usize).min(room);
            // At its widest every value of every column differs in its highest bit.
            let noise = if wild { u64::from(*random).wrapping_mul(0x9e37_79b9_7f4a_7c15) } else { 0 };
            let stream = number % STREAMS;
            let row = Row {
                stream: stream as u16,
                len: size as u32,
                ordinal: Ordinal(expected[stream].wrapping_add(noise)),
                arrival: Timestamp(noise as i64),
                span: noise.rotate_left(8),
                offset: noise.rotate_left(16),
                flags: if wild { Flags::EVENT } else { Flags(0) },
                event: Timestamp(if wild { noise.rotate_left(24) as i64 } else { 0 }),
                tag: noise as u16,
                extra: noise as u32,
                number: noise as u32,
                ..Row::default()
            };
            expected[stream] = row.ordinal.0.wrapping_add(1);
            let packed = slot.pack(&Item { row, bytes: vec![number as u8; size] });
            prop_assert!(packed);
        }
        slot.seal_and_compare()?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    // Promise 1: admission never counts on more room in a slot than there is, however wild the rows.
    #[test]
    fn a_slot_takes_at_least_what_admission_counts_on(items in items(3000, 300), log2 in 18..21u32) {
        let mut slot = Slot::open(1 << log2, 4);
        let (mut payload, mut rows) = (0.0, 0.0);
        // The one that fits no more counts too: a packer fills the rest with a fragment.
        for item in items.iter().cycle() {
            payload += item.bytes.len() as f64;
            rows += 1.0;
            if !slot.pack(item) || items.len() < 50 {
                break;
            }
        }
        let none = Coming { payload: 0.0, elements: 0.0, each: ElementLoad::NONE };
        let mut coming = vec![none; entries().len()];
        coming[0] = Coming { payload, elements: rows, ..none };
        let counted = on_medium(1 << log2, &coming);
        prop_assert!(items.len() < 50 || counted >= f64::from(1u32 << log2), "{counted} of {}", 1u32 << log2);
    }

    // The same where elements have cells: all of them different or few, texts as long as was said, elements alike or not.
    #[test]
    fn a_slot_with_columns_takes_at_least_what_admission_counts_on(
        kinds in proptest::collection::vec(0..3usize, 1..9),
        size in prop_oneof![0..40usize, 40..2000usize],
        log2 in 18..21u32,
        alike in any::<bool>(),
        spread in any::<bool>(),
        text in 0..100usize,
    ) {
        let (counted, rows) = counted_on(1 << log2, &kinds, (size, text), alike, spread);
        prop_assert!(counted >= f64::from(1u32 << log2), "{counted} of {}: {rows} rows", 1u32 << log2);
    }
}

/// What admission counts for as many elements as a slot takes, and how many those are: of such a size, with columns of such kinds and
/// texts of such a length.
fn counted_on(
    slot_bytes: u64,
    kinds: &[usize],
    (size, text): (usize, usize),
    alike: bool,
    spread: bool,
) -> (f64, u64) {
    let classes: Classes = kinds.iter().map(|kind| [Class::Word, Class::Wide, Class::Bytes][*kind]).collect();
    let mut each = classes.iter().fold(ElementLoad::NONE, |load, class| load.with(class, text));
    each.frame = alike.then_some(size as u32);
    let entries = [Entry { classes, ..Entry::default() }];
    let (mut builder, mut buffer) = (Builder::new(slot_bytes, 1), vec![0; slot_bytes as usize]);
    builder.prepare(&entries).unwrap();
    builder.open(&mut buffer, slot_id(4), Timestamp(0), &entries).unwrap();
    let (data, mut rows) = (vec![7; size], 0u64);
    while builder.room() > 0 {
        let len = builder.room().min(size);
        builder.write(&mut buffer, &data[..len]);
        let noise = |at: u64| Cell::Word(rows << 8 | at).hash();
        let mut cells: Vec<_> = classes.iter().map(|class| CellBuffer::new(class, 1, text)).collect();
        for ((column, kind), at) in cells.iter_mut().zip(kinds).zip(0..) {
            let value = if spread { noise(at) } else { rows % 7 };
            match kind {
                _ if !alike && rows % 11 == 5 => column.null(),
                0 => column.word(value),
                1 => column.wide(u128::from(value) << 64 | u128::from(value)),
                _ => column.bytes(&value.to_le_bytes().repeat(13)[..text]),
            }
        }
        let mut row = Row {
            ordinal: Ordinal(rows),
            len: len as u32,
            arrival: Timestamp(rows as i64 * 9),
            ..Row::default()
        };
        if !alike {
            row.arrival = Timestamp(noise(90) as i64);
            row.span = noise(91);
            row.tag = noise(92) as u16;
        }
        builder.row_with(&mut buffer, &row, CellsAt { columns: &cells, first: 0 });
        rows += 1;
    }
    // The one that fits no more counts too.
    let coming = Coming { payload: (rows * size as u64) as f64, elements: rows as f64, each };
    (on_medium(slot_bytes, &[coming]), rows)
}

// Where nothing else of a column leaves room: places of rare values are told of as many as may be.
#[test]
fn a_large_slot_of_values_that_are_all_rare_takes_what_admission_counts_on() {
    let (counted, rows) = counted_on(64 << 20, &[0; 4], (4096, 0), true, true);
    assert!(counted >= f64::from(64 << 20), "{counted} of {}: {rows} rows", 64 << 20);
}

/// Elements of one size until the slot is full; how much of the slot is used then.
fn fill(slot_bytes: u64, size: usize) -> (usize, u32) {
    let mut slot = Slot::open(slot_bytes, 4);
    let element = vec![1; size];
    let mut now = 0;
    while slot.builder.room() > 0 {
        let piece = slot.builder.room().min(size);
        now += 1000;
        slot.builder.write(&mut slot.buffer, &element[..piece]);
        let ordinal = Ordinal(u64::from(slot.builder.rows()));
        let row = Row { len: piece as u32, ordinal, arrival: Timestamp(now), ..Row::default() };
        slot.builder.row(&mut slot.buffer, &row);
    }
    let sealed = slot.seal();
    check_image(&slot.buffer[..sealed.bytes], &key(), RING).unwrap();
    (sealed.bytes, sealed.rows)
}

#[test]
fn a_full_slot_wastes_less_than_a_hundredth_and_three_blocks() {
    for slot_bytes in [64 << 10, 1 << 20, 8 << 20] {
        for size in [1, 20, 1500, 60_000] {
            let (used, rows) = fill(slot_bytes, size);
            let spare = slot_bytes as usize - used;
            assert!(
                spare <= slot_bytes as usize / 100 + 3 * 4096,
                "{slot_bytes} {size}: {spare} left, {rows} rows"
            );
        }
    }
}

#[test]
fn a_slot_of_alike_empty_elements_ends_with_its_directory() {
    let (_, rows) = fill(64 << 10, 0);
    assert!(rows > 4000, "{rows}");
}

#[test]
fn the_largest_dictionary_leaves_room_for_an_eighth_of_the_slot() {
    for log2 in 16..=20 {
        let slot_bytes = 1u64 << log2;
        let mut builder = Builder::new(slot_bytes, usize::MAX);
        let most = if log2 < 19 { slot_bytes as usize / 2048 } else { 256 };
        let mut buffer = vec![0; slot_bytes as usize];
        let many = vec![entries()[0]; most + 1];
        let refused = builder.open(&mut buffer, slot_id(1), Timestamp(0), &many);
        assert!(matches!(refused, Err(FormatError::TooMany { .. })), "{refused:?}");
        builder.open(&mut buffer, slot_id(1), Timestamp(0), &many[..most]).unwrap();
        assert!(builder.room() >= slot_bytes as usize / 8);
    }
}

#[test]
fn a_buffer_that_is_too_short_is_refused() {
    let mut builder = Builder::new(64 << 10, 4);
    let refused = builder.open(&mut [0; 4096], slot_id(1), Timestamp(0), &entries());
    assert!(matches!(refused, Err(FormatError::OutOfBounds { .. })));
}

#[test]
fn bytes_without_a_row_are_left_out_when_the_slot_is_sealed() {
    let mut slot = Slot::open(1 << 20, 4);
    let row = Row { len: 70_000, ..Row::default() };
    assert!(slot.pack(&Item { row, bytes: vec![3; 70_000] }));
    slot.builder.write(&mut slot.buffer, &vec![4; 200_000]);
    assert_eq!(slot.builder.uncommitted(), 200_000);
    let sealed = slot.seal();
    assert_eq!(sealed.payload_bytes, 70_000);
    let (header, summary) = check_image(&slot.buffer[..sealed.bytes], &key(), RING).unwrap();
    assert_eq!(read_items(&header, &summary, &slot.buffer), slot.packed);
}

#[test]
fn a_source_may_read_straight_into_the_slot() {
    let mut slot = Slot::open(1 << 20, 4);
    let spare = slot.builder.spare(&mut slot.buffer);
    assert_eq!(spare.len(), slot.builder.room());
    spare[..150_000].fill(9);
    slot.builder.advance(&slot.buffer, 150_000);
    let row = Row { len: 150_000, ..Row::default() };
    slot.builder.row(&mut slot.buffer, &row);
    slot.packed.push(Item { row, bytes: vec![9; 150_000] });
    let sealed = slot.seal();
    let (header, summary) = check_image(&slot.buffer[..sealed.bytes], &key(), RING).unwrap();
    assert_eq!(read_items(&header, &summary, &slot.buffer), slot.packed);
}

#[test]
fn a_slot_is_restamped_for_another_place_without_another_change() {
    let mut slot = Slot::open(64 << 10, 4);
    slot.pack(&Item { row: Row { len: 5, ..Row::default() }, bytes: b"hello".to_vec() });
    let sealed = slot.seal();
    let image = &mut slot.buffer[..sealed.bytes];
    let (before, summary) = check_image(image, &key(), RING).unwrap();
    restamp(image, &key(), SlotNo(77)).unwrap();
    let (mut after, again) = check_image(image, &key(), RING).unwrap();
    assert_eq!((after.slot, &again), (SlotNo(77), &summary));
    assert_ne!(after.tag, before.tag);
    (after.slot, after.tag) = (before.slot, before.tag);
    assert_eq!(after, before);
    assert!(restamp(&mut [0; 8192], &key(), SlotNo(1)).is_err());
    assert!(restamp(&mut image[..8192], &key(), SlotNo(1)).is_err());
}

#[test]
fn every_block_of_the_payload_is_checked_by_itself() {
    let mut slot = Slot::open(1 << 20, 4);
    let bytes: Vec<u8> = (0..200_000u32).map(|at| at as u8).collect();
    slot.pack(&Item { row: Row { len: 200_000, ..Row::default() }, bytes: bytes.clone() });
    let sealed = slot.seal();
    let (_, summary) = check_image(&slot.buffer[..sealed.bytes], &key(), RING).unwrap();
    let checks = &slot.buffer[summary.section(SectionKind::PayloadChecks).unwrap().range()];
    assert_eq!(checks.len(), 4 * 4);
    for (number, block) in bytes.chunks(64 << 10).enumerate() {
        check_payload_block(checks, number, block).unwrap();
        let mut damaged = block.to_vec();
        damaged[number] ^= 1;
        let error = check_payload_block(checks, number, &damaged);
        assert_eq!(error, Err(FormatError::BadChecksum { structure: "payload", at: number as u64 * 65_536 }));
    }
    assert!(check_payload_block(checks, 4, &[]).is_err());
    assert!(check_payload_block(checks, usize::MAX, &[]).is_err());
}

#[test]
fn an_empty_slot_is_sound() {
    let mut slot = Slot::open(64 << 10, 4);
    assert!(slot.builder.is_empty());
    let sealed = slot.builder.seal(&mut slot.buffer, &key(), SlotNo(0), Timestamp(0), SlotFlags::default());
    let (header, summary) = check_image(&slot.buffer[..sealed.bytes], &key(), RING).unwrap();
    assert_eq!((header.rows, header.payload_bytes, summary.entries.len()), (0, 0, STREAMS));
}

#[test]
#[should_panic(expected = "a row must describe what was written")]
fn a_row_that_describes_more_than_was_written_is_an_error_in_the_program() {
    let mut slot = Slot::open(64 << 10, 4);
    slot.builder.write(&mut slot.buffer, b"hello");
    slot.builder.row(&mut slot.buffer, &Row { len: 6, kind: Kind::Element, ..Row::default() });
}

#[test]
fn rows_may_follow_their_bytes_later_and_a_gap_among_them_is_read_where_it_is() {
    let mut slot = Slot::open(64 << 10, 4);
    let gap = Gap {
        ordinals: 5,
        elements: Some(5),
        bytes: Some(50),
        first: Timestamp(1),
        last: Timestamp(2),
        cause: Cause::NoBuffer,
        note: 0,
    };
    slot.builder.write(&mut slot.buffer, b"one");
    slot.builder.write(&mut slot.buffer, &gap.encode());
    slot.builder.write(&mut slot.buffer, b"three");
    let row = |kind, len, ordinal| Row { kind, len, ordinal: Ordinal(ordinal), ..Row::default() };
    slot.builder.row(&mut slot.buffer, &row(Kind::Element, 3, 0));
    slot.builder.row(&mut slot.buffer, &row(Kind::Gap, Gap::BYTES as u32, 1));
    assert_eq!(slot.builder.counters(0).lost, 5);
    assert_eq!(slot.builder.uncommitted(), 5);
    slot.builder.row(&mut slot.buffer, &row(Kind::Element, 5, 6));
    let sealed = slot.builder.seal(&mut slot.buffer, &key(), SlotNo(0), Timestamp(0), SlotFlags::default());
    let (header, _) = check_image(&slot.buffer[..sealed.bytes], &key(), RING).unwrap();
    assert_eq!((header.rows, header.payload_bytes as usize), (3, 8 + Gap::BYTES));
}
