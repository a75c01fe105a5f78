//! Tests of an open slot's index: assembled by a reader, it equals that of the slot sealed at that moment,
//! however it was transferred and whatever comes meanwhile (promise 5).

use crate::world::{
    Item, RING, STREAMS, Slot, classes, items, key, model, read_column, read_items, slot_id, values,
};
use holdfast_base::CHECK_BLOCK;
use holdfast_format::{
    Blocks, Classes, OpenCursor, OpenImage, OpenIndex, OpenSlotQuery, PartHeader, SectionKind, Summary,
    check_payload_block,
};
use proptest::prelude::*;

const SLOT: u64 = 256 << 10;

/// Asks until all has been told; between two replies some of `more` is packed.
fn look(
    slot: &mut Slot,
    index: OpenIndex,
    ask: &OpenSlotQuery<'_>,
    reply: usize,
    more: &mut &[Item],
) -> OpenImage {
    let mut index = index;
    let mut cursor = index.begin();
    loop {
        let mut out = vec![0x5a; reply];
        let told = slot.builder.write_open_slot(&slot.buffer, cursor, ask, &mut out);
        index.take(&out[..told.bytes]).unwrap();
        if told.end {
            return index.image(slot_id(9), &key()).unwrap();
        }
        assert!(told.cursor != cursor || told.bytes > 0, "each reply gets on");
        // As a number, as it is sent.
        cursor = OpenCursor::from(u64::from(told.cursor));
        let (now, later) = more.split_at(more.len().min(3));
        for item in now {
            slot.pack(item);
        }
        *more = later;
    }
}

/// All of the slot: its payload is where it was.
fn whole(slot: &Slot, image: &OpenImage) -> Vec<u8> {
    let mut bytes = vec![0xc3; slot.buffer.len()];
    image.copy(0, &mut bytes);
    let payload = image.payload();
    assert!(bytes[payload.clone()].iter().all(|byte| *byte == 0));
    bytes[payload.clone()].copy_from_slice(&slot.buffer[payload]);
    bytes
}

fn compare(slot: &Slot, image: &OpenImage, ask: &OpenSlotQuery<'_>) -> Result<bool, TestCaseError> {
    let bytes = whole(slot, image);
    // Piece by piece it is the same.
    let mut pieces = Vec::new();
    (0..bytes.len()).step_by(4096).for_each(|at| image.append(at..at + 4096, &mut pieces));
    let payload = image.payload();
    prop_assert!(
        pieces[..payload.start] == bytes[..payload.start] && pieces[payload.end..] == bytes[payload.end..]
    );

    let header = PartHeader::decode(&bytes, &key(), RING).unwrap();
    let summary = Summary::decode(&header, &bytes[PartHeader::SUMMARY_AT as usize..]).unwrap();
    let (checks, payload) =
        (summary.section(SectionKind::PayloadChecks).unwrap(), header.payload_offset as usize);
    let payload = &bytes[payload..payload + header.payload_bytes as usize];
    for (number, block) in payload.chunks(CHECK_BLOCK).enumerate() {
        check_payload_block(&bytes[checks.range()], number, block).unwrap();
    }
    prop_assert_eq!(checks.count as usize, payload.len().div_ceil(CHECK_BLOCK));

    let complete = summary
        .entries
        .iter()
        .zip(&slot.entries)
        .all(|(told, entry)| told.schema as usize == entry.classes.len());
    let mut expected = model(&slot.packed, &slot.entries);
    if !complete {
        for entry in &mut expected {
            entry.schema = 0;
        }
    }
    prop_assert_eq!(&summary.entries, &expected);
    prop_assert_eq!(header.rows as usize, slot.packed.len());
    let wanted = |item: &&Item| ask.entry.is_none_or(|entry| item.row.stream == entry);
    if ask.rows {
        let found = match ask.entry {
            None => read_items(&header, &summary, &bytes),
            Some(entry) => crate::world::read_items_of(&header, &summary, &bytes, entry),
        };
        prop_assert!(found.iter().eq(slot.packed.iter().filter(wanted)));
    } else {
        prop_assert_eq!(summary.section(SectionKind::Chunks).unwrap().bytes, 0);
    }
    let Some(entry) = ask.entry.filter(|_| complete) else { return Ok(complete) };
    let classes = slot.entries[usize::from(entry)].classes;
    let elements = slot.packed.iter().filter(wanted).filter(|item| item.row.completes_element());
    let cells: Vec<_> = elements.map(|item| values(item, classes)).collect();
    for number in 0..classes.len() as u16 {
        let found = read_column(&header, &summary, &bytes, entry, number);
        if ask.columns.contains(&number) {
            let column: Vec<_> = cells.iter().map(|cells| cells[usize::from(number)].clone()).collect();
            prop_assert_eq!(found, column);
            if ask.rows
                && let Some(section) = summary.column(entry, number)
            {
                // Chunk by chunk there is a cell for each element.
                let counts = crate::world::elements_of(&header, &summary, &bytes, entry);
                for block in Blocks::new(section, &bytes[section.range()], header.sequence) {
                    let block = block.unwrap();
                    prop_assert_eq!(block.cells(), counts[block.chunk() as usize]);
                }
            }
        } else {
            prop_assert!(found.is_empty());
        }
    }
    Ok(complete)
}

fn question() -> impl Strategy<Value = (Option<u16>, bool, Vec<u16>)> {
    let entry = prop_oneof![1 => Just(None), 4 => (0..STREAMS as u16).prop_map(Some)];
    (entry, any::<bool>(), proptest::collection::vec(0..6u16, 0..4))
        .prop_map(|(entry, rows, columns)| (entry, rows, if entry.is_some() { columns } else { Vec::new() }))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn what_is_told_of_an_open_slot_is_the_slot(
        items in items(900, 3000),
        every in 1..300usize,
        reply in prop_oneof![4300..9000usize, 9000..120_000usize],
        question in question(),
        classes in classes(),
        kept in any::<bool>(),
    ) {
        let mut slot = Slot::open_with(SLOT, 9, classes);
        let (entry, rows, columns) = question;
        let ask = OpenSlotQuery { entry, rows, columns: &columns };
        let new = || OpenIndex::new(SLOT, &columns);
        let (mut index, mut left) = (new(), &items[..]);
        while !left.is_empty() {
            let (now, later) = left.split_at(left.len().min(every));
            for item in now {
                slot.pack(item);
        }
            left = later;
            let image = look(&mut slot, index, &ask, reply, &mut left);
            compare(&slot, &image, &ask)?;
            index = if kept { image.into_index() } else { new() };
        }
        // Where a reply has room for all that is pending, no column is missing.
        let image = look(&mut slot, index, &ask, 2 * SLOT as usize, &mut left);
        let all = compare(&slot, &image, &ask)?;
        prop_assert!(all);
    }

    #[test]
    fn whatever_is_told_does_no_harm(
        items in items(100, 300),
        classes in classes(),
        question in question(),
        spoilt in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let mut slot = Slot::open_with(SLOT, 9, classes);
        for item in &items {
            slot.pack(item);
        }
        let (entry, rows, columns) = question;
        let mut out = vec![0; SLOT as usize];
        let ask = OpenSlotQuery { entry, rows, columns: &columns };
        let told = slot.builder.write_open_slot(&slot.buffer, OpenCursor::default(), &ask, &mut out);
        out.truncate(told.bytes);
        for (at, byte) in spoilt {
            let at = at.index(out.len());
            out[at] = byte;
        }
        let mut index = OpenIndex::new(SLOT, &columns);
        if index.take(&out).is_ok() && let Ok(image) = index.image(slot_id(9), &key()) {
            let mut bytes = vec![0; SLOT as usize];
            image.copy(0, &mut bytes);
        }
    }
}

#[test]
fn any_cursor_and_any_question_is_answered() {
    let mut slot = Slot::open_with(SLOT, 9, [Classes::default(); STREAMS]);
    for cursor in [0, 1, u64::MAX, u64::from(u32::MAX), 7 << 32 | 9] {
        let ask = OpenSlotQuery { entry: Some(u16::MAX), rows: true, columns: &[3, u16::MAX] };
        let mut out = vec![0; 8192];
        let told = slot.builder.write_open_slot(&slot.buffer, OpenCursor::from(cursor), &ask, &mut out);
        assert!(told.end && told.cursor == OpenCursor::default());
    }
}
