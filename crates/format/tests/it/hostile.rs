//! Tests of damage and forgery: never wrong data, never a panic (promises 5 and 8).

use crate::lanes::superblock;
use crate::world::{Item, RING, STREAMS, Slot, items, key, read_items};
use holdfast_base::{Epoch, Ordinal, SlotNo, Timestamp};
use holdfast_format::{
    Block, Blocks, Cell, Cells, Chunk, Class, Classes, CommitHead, CommitWriter, DirectoryEntry, Flags,
    FormatError, Gap, Geometry, Key, Kind, Outline, PartHeader, Record, Records, Row, Section, SectionKind,
    SlotFlags, Summary, Superblock, check_image, check_payload_block, commit_len, crc32c, decode_directory,
    footer_binds, read_commit, restamp,
};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

/// Columns of every class.
fn classes() -> [Classes; STREAMS] {
    let some = |classes: [Class; 4]| Classes::from_iter(classes);
    let words = some([Class::Word, Class::Word, Class::Wide, Class::Word]);
    [words, Classes::default(), some([Class::Bytes, Class::Wide, Class::Bytes, Class::Bytes])]
}

/// A slot of many rows of every kind, always the same.
fn sample() -> (Slot, usize) {
    let mut runner = TestRunner::deterministic();
    let mut slot = Slot::open_with(64 << 10, 9, classes());
    while slot.packed.len() < 150 {
        for item in items(200, 500).new_tree(&mut runner).unwrap().current() {
            slot.pack(&item);
        }
    }
    let sealed = slot.seal();
    (slot, sealed.bytes)
}

/// Every bit of `bytes` is turned once; `check` says whether the damage was found or is harmless.
fn turn_every_bit(bytes: &mut [u8], check: impl Fn(&[u8]) -> bool) {
    for at in 0..bytes.len() * 8 {
        bytes[at / 8] ^= 1 << (at % 8);
        assert!(check(bytes), "bit {} of byte {}", at % 8, at / 8);
        bytes[at / 8] ^= 1 << (at % 8);
    }
}

#[test]
fn a_turned_bit_in_a_superblock_is_found() {
    let geometry = Geometry::for_lane(64 << 20, 1 << 20, vec![]).unwrap();
    let mut bytes = superblock(geometry).encode();
    turn_every_bit(&mut bytes, |bytes| Superblock::decode(bytes).is_err());
}

#[test]
fn a_turned_bit_in_a_commit_is_found_or_harmless() {
    let mut buffer = vec![0; 4096];
    let mut writer = CommitWriter::new(&mut buffer);
    writer.push(&Record::BadSlot { slot: SlotNo(7) });
    writer.push(&Record::Release { hold: holdfast_base::HoldId(3), at: Timestamp(4), order: None });
    let head = CommitHead { ring: RING, generation: 2, number: 9, epoch: Epoch(1), ..CommitHead::default() };
    writer.finish(&key(), &head);
    let read = |bytes: &[u8]| {
        let (head, records, len) = read_commit(bytes, &key(), RING).ok()?;
        Some((head, records.map(|record| format!("{record:?}")).collect::<Vec<_>>(), len))
    };
    let right = read(&buffer);
    assert!(right.is_some());
    turn_every_bit(&mut buffer, |bytes| read(bytes).is_none_or(|found| Some(found) == right));
}

#[test]
fn a_turned_bit_in_header_summary_or_footer_is_found() {
    let (mut slot, len) = sample();
    let header = PartHeader::decode(&slot.buffer, &key(), RING).unwrap();
    let image = &mut slot.buffer[..len];
    let footer_at = header.footer_offset as usize;
    turn_every_bit(&mut image[..4096], |bytes| PartHeader::decode(bytes, &key(), RING).is_err());
    turn_every_bit(&mut image[footer_at..], |bytes| footer_binds(&header, bytes, &key()).is_err());
    let summary = 4096..4096 + header.summary_bytes as usize;
    turn_every_bit(&mut image[summary], |bytes| Summary::decode(&header, bytes).is_err());
}

#[test]
fn a_turned_bit_in_the_index_is_found() {
    let (mut slot, len) = sample();
    let (header, summary) = check_image(&slot.buffer[..len], &key(), RING).unwrap();
    let directory = summary.section(SectionKind::ChunkDirectory).unwrap();
    let chunks = summary.section(SectionKind::Chunks).unwrap();
    let entries = decode_directory(&slot.buffer[directory.range()], directory.crc).unwrap();
    let bytes = &mut slot.buffer[directory.range()];
    turn_every_bit(bytes, |bytes| decode_directory(bytes, directory.crc).is_err());
    let entry = entries[1];
    let bytes = &mut slot.buffer[chunks.range()][entry.offset as usize..][..entry.bytes as usize];
    turn_every_bit(bytes, |bytes| Chunk::decode_at(&entry, header.sequence, bytes).is_err());
    let outline = summary.filter(2, 1).unwrap();
    turn_every_bit(&mut slot.buffer[outline.range()], |bytes| Outline::decode(bytes, outline).is_err());
    let column = summary.column(2, 2).unwrap();
    turn_every_bit(&mut slot.buffer[column.range()], |bytes| {
        Blocks::new(column, bytes, header.sequence).any(|block| block.is_err())
    });
}

#[test]
fn a_turned_bit_anywhere_in_a_slot_is_found_or_harmless() {
    let (mut slot, len) = sample();
    let right = check_image(&slot.buffer[..len], &key(), RING).unwrap();
    // A bit of every 13th byte: all parts of the slot, and all bits.
    for at in (0..len).step_by(13) {
        slot.buffer[at] ^= 1 << (at % 8);
        if let Ok((header, summary)) = check_image(&slot.buffer[..len], &key(), RING) {
            assert_eq!((&header, &summary), (&right.0, &right.1));
            assert_eq!(read_items(&header, &summary, &slot.buffer), slot.packed, "byte {at}");
            assert!(is_padding(&header, &summary, at), "byte {at}");
        }
        slot.buffer[at] ^= 1 << (at % 8);
    }
}

/// Whether a byte of a slot is of nothing in it.
fn is_padding(header: &PartHeader, summary: &Summary, at: usize) -> bool {
    let payload = header.payload_offset as usize..(header.payload_offset + header.payload_bytes) as usize;
    let between = 4096 + header.summary_bytes as usize..header.footer_offset as usize;
    let mut parts = summary.sections.iter().map(Section::range).chain([payload]);
    between.contains(&at) && !parts.any(|part| part.contains(&at))
}

#[test]
fn a_slot_that_was_not_written_to_its_end_is_found() {
    let (mut old, old_len) = sample();
    let header = PartHeader::decode(&old.buffer, &key(), RING).unwrap();
    // The same in another lap: same layout, other sequence. A write that stopped at any block is a mixture.
    let mut young = Slot::open_with(64 << 10, 10, classes());
    old.packed.iter().for_each(|item| {
        young.pack(item);
    });
    let len = young.seal().bytes;
    assert_eq!(len, old_len);
    for cut in (4096..len).step_by(4096) {
        let mut image = young.buffer[..cut].to_vec();
        image.extend(&old.buffer[cut..len]);
        assert!(check_image(&image, &key(), RING).is_err(), "{cut}");
        let young_header = PartHeader::decode(&image, &key(), RING).unwrap();
        assert_eq!(young_header.sequence.0, 10);
        let footer = &image[header.footer_offset as usize..];
        assert!(footer_binds(&young_header, footer, &key()).is_err(), "{cut}");
        assert!(check_image(&image[..cut], &key(), RING).is_err(), "{cut}");
    }
    old.buffer[..len].fill(0);
    assert_eq!(
        check_image(&old.buffer, &key(), RING).unwrap_err(),
        FormatError::BadMagic { structure: "part header" }
    );
}

#[test]
fn a_footer_of_the_same_slot_in_another_place_does_not_bind() {
    let (slot, len) = sample();
    let mut moved = slot.buffer[..len].to_vec();
    restamp(&mut moved, &key(), SlotNo(6)).unwrap();
    let header = PartHeader::decode(&moved, &key(), RING).unwrap();
    assert_eq!(footer_binds(&header, &moved[len - 4096..], &key()), Ok(()));
    let error = footer_binds(&header, &slot.buffer[len - 4096..len], &key()).unwrap_err();
    assert!(matches!(error, FormatError::Malformed { structure: "footer", .. }), "{error}");
}

#[test]
fn a_chunk_of_an_older_lap_at_the_same_place_is_found() {
    let pack = |sequence| {
        let mut slot = Slot::open(64 << 10, sequence);
        slot.pack(&Item { row: Row { len: 3, ..Row::default() }, bytes: vec![1; 3] });
        let len = slot.seal().bytes;
        let (header, summary) = check_image(&slot.buffer[..len], &key(), RING).unwrap();
        let range = summary.section(SectionKind::Chunks).unwrap().range();
        let directory = summary.section(SectionKind::ChunkDirectory).unwrap();
        let entry = decode_directory(&slot.buffer[directory.range()], directory.crc).unwrap()[0];
        (header, entry, slot.buffer[range].to_vec())
    };
    let ((_, _, old), (header, entry, young)) = (pack(4), pack(5));
    assert!(Chunk::decode_at(&entry, header.sequence, &young).is_ok());
    let error = Chunk::decode_at(&entry, header.sequence, &old).unwrap_err();
    assert!(matches!(error, FormatError::Malformed { .. }), "{error}");
}

#[test]
fn recorded_bytes_that_look_like_a_slot_are_not_believed() {
    // Somebody sends what would be a whole slot of this ring, made under a key of their own.
    let mut forged = Slot::open(64 << 10, 99);
    forged.pack(&Item { row: Row { len: 4, ..Row::default() }, bytes: b"evil".to_vec() });
    let theirs = Key([0x66; 32]);
    let sealed =
        forged.builder.seal(&mut forged.buffer, &theirs, SlotNo(5), Timestamp(0), SlotFlags::default());
    assert!(check_image(&forged.buffer[..sealed.bytes], &theirs, RING).is_ok());

    let mut slot = Slot::open(64 << 10, 9);
    let bytes = forged.buffer[..sealed.bytes].to_vec();
    assert!(slot.pack(&Item { row: Row { len: bytes.len() as u32, ..Row::default() }, bytes }));
    let len = slot.seal().bytes;
    let (header, _) = check_image(&slot.buffer[..len], &key(), RING).unwrap();
    let payload = &slot.buffer[header.payload_offset as usize..];
    let error = PartHeader::decode(payload, &key(), RING).unwrap_err();
    assert_eq!(error, FormatError::BadTag { structure: "part header", at: 4080 });
    let footer = &payload[sealed.bytes - 4096..];
    assert_eq!(
        footer_binds(&header, footer, &key()),
        Err(FormatError::BadTag { structure: "footer", at: 4080 })
    );
}

/// A chunk of one row with the u32 at `at` replaced and the checksum made to fit.
fn forged_chunk(at: usize, value: u32) -> Vec<u8> {
    let mut slot = Slot::open(64 << 10, 9);
    slot.pack(&Item { row: Row { ordinal: Ordinal(5), len: 3, ..Row::default() }, bytes: vec![1; 3] });
    let len = slot.seal().bytes;
    let (_, summary) = check_image(&slot.buffer[..len], &key(), RING).unwrap();
    let mut chunk = slot.buffer[summary.section(SectionKind::Chunks).unwrap().range()].to_vec();
    chunk[at..at + 4].copy_from_slice(&value.to_le_bytes());
    let crc = crc32c(&chunk[4..]);
    chunk[..4].copy_from_slice(&crc.to_le_bytes());
    chunk
}

#[test]
fn a_chunk_that_claims_what_it_cannot_have_is_refused() {
    assert!(Chunk::decode(&forged_chunk(28, 9)).is_ok(), "the forgery itself is sound");
    for value in [0, 2, 4096, 4097, 1 << 20, u32::MAX] {
        assert!(Chunk::decode(&forged_chunk(12, value)).is_err(), "{value} rows");
    }
    for value in [0, 8, 24, 1 << 30, u32::MAX - 7, u32::MAX] {
        assert!(Chunk::decode(&forged_chunk(4, value)).is_err(), "{value} bytes");
    }
    for value in [0, 2, 4, u32::MAX] {
        assert!(Chunk::decode(&forged_chunk(20, value)).is_err(), "{value} bytes of payload");
    }
    assert!(Chunk::decode(&forged_chunk(8, u32::MAX)).is_err(), "first row");
    assert!(Chunk::decode(&forged_chunk(16, u32::MAX)).is_err(), "payload offset");
    for value in [0, 13 << 16, 12 << 16 | 1, 13 << 16 | 2, u32::MAX] {
        assert!(Chunk::decode(&forged_chunk(24, value)).is_err(), "{value:x} streams and columns");
    }
    assert!(Chunk::decode(&forged_chunk(32, 1)).is_err(), "a stream that has no rows");
    assert!(Chunk::decode(&forged_chunk(32, 256)).is_err(), "a stream that cannot be");
    for width in [3, 8, 16, 255] {
        assert!(Chunk::decode(&forged_chunk(48, width)).is_err(), "width {width}");
    }
    assert!(Chunk::decode(&forged_chunk(48 + 16 + 8, 5)).is_err(), "a kind that does not exist");
    assert!(Chunk::decode(&forged_chunk(48 + 2 * 16 + 8, 256)).is_err(), "flags beyond a byte");
}

/// The greatest value that a chunk of two rows can say of the second one in a column that has one for each, and that chunk.
fn greatest(column: usize) -> (u64, Vec<u8>) {
    let mut slot = Slot::open(64 << 10, 9);
    let both = Flags::PCAPNG_OPTIONS.with(Flags::HEADER);
    let rows = [(Kind::Element, Flags::PCAPNG_OPTIONS, 1, 1), (Kind::Note, both, 300, 70_000)];
    for (kind, flags, tag, extra) in rows {
        let row = Row { kind, flags, tag, extra, len: 3, ..Row::default() };
        assert!(slot.pack(&Item { row, bytes: vec![1; 3] }));
    }
    let len = slot.seal().bytes;
    let (_, summary) = check_image(&slot.buffer[..len], &key(), RING).unwrap();
    let mut chunk = slot.buffer[summary.section(SectionKind::Chunks).unwrap().range()].to_vec();
    let table = |column: usize| 48 + 16 * column;
    let width = |column: usize| usize::from(chunk[table(column)]);
    let cell = (0..column).map(|column| (2 * width(column)).next_multiple_of(8)).sum::<usize>();
    let (at, width) = (table(13) + cell + width(column), width(column));
    assert!(width > 0, "column {column} has a value for each");
    chunk[at..at + width].fill(0xff);
    let base = u64::from_le_bytes(chunk[table(column) + 8..][..8].try_into().unwrap());
    let crc = crc32c(&chunk[4..]);
    chunk[..4].copy_from_slice(&crc.to_le_bytes());
    (base + (u64::MAX >> (64 - 8 * width)), chunk)
}

#[test]
fn a_value_that_its_column_cannot_have_is_refused_in_any_row() {
    for (column, most) in [(1, 4), (2, 0xff), (9, 0xffff), (10, 0xffff_ffff)] {
        let (value, chunk) = greatest(column);
        assert!(value > most && Chunk::decode(&chunk).is_err(), "column {column} says {value:x}");
    }
}

#[test]
fn a_directory_with_holes_is_refused() {
    let directory = |second_row: u32, second_payload: u32| {
        let mut bytes = [0; 2 * DirectoryEntry::BYTES];
        for (at, value) in [(12, 10), (20, 30), (72, second_row), (76, 5), (80, second_payload)] {
            bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
        }
        decode_directory(&bytes, crc32c(&bytes))
    };
    assert_eq!(directory(10, 30).unwrap().len(), 2);
    for (row, payload) in [(9, 30), (11, 30), (10, 29), (10, 31), (u32::MAX, 30)] {
        assert!(directory(row, payload).is_err(), "{row} {payload}");
    }
    assert!(decode_directory(&[0; 65], crc32c(&[0; 65])).is_err());
}

#[test]
fn a_directory_whose_bounds_are_not_those_of_its_rows_is_found() {
    let (slot, len) = sample();
    let (_, summary) = check_image(&slot.buffer[..len], &key(), RING).unwrap();
    let directory = summary.section(SectionKind::ChunkDirectory).unwrap().range();
    let forge = |at: usize, turned: u8| {
        let mut image = slot.buffer[..len].to_vec();
        image[directory.start + at] ^= turned;
        // Put right the checks of directory, summary, header and footer.
        let crc = crc32c(&image[directory.clone()]);
        let section = 4096 + 64 + 32;
        image[section + 20..section + 24].copy_from_slice(&crc.to_le_bytes());
        let summary_bytes = PartHeader::decode(&image, &key(), RING).unwrap().summary_bytes as usize;
        let crc = crc32c(&image[4096..4096 + summary_bytes]);
        image[116..120].copy_from_slice(&crc.to_le_bytes());
        restamp(&mut image, &key(), SlotNo(5)).unwrap();
        check_image(&image, &key(), RING)
    };
    assert!(forge(24, 0).is_ok(), "the forgery itself is sound");
    for at in [24, 32, 40, 48, 56] {
        let error = forge(at, 1).unwrap_err();
        assert!(
            matches!(error, FormatError::Malformed { structure: "chunk directory", .. }),
            "{at}: {error}"
        );
    }
}

/// Puts right all checks of a slot's columns, its summary and its head.
fn mend(image: &mut [u8], summary: &Summary) {
    for (at, section) in summary.sections.iter().enumerate() {
        let range = section.range();
        match section.kind {
            SectionKind::Attribute => {
                let mut at = range.start;
                while at < range.end {
                    let len = u32::from_le_bytes(image[at + 4..at + 8].try_into().unwrap()) as usize;
                    let Some(block) = image.get(at + 4..at + len) else { break };
                    let crc = crc32c(block);
                    image[at..at + 4].copy_from_slice(&crc.to_le_bytes());
                    at += len;
                }
            }
            SectionKind::Filter | SectionKind::Bounds => {
                let crc = crc32c(&image[range]);
                let section = 4096 + 64 + 32 * at;
                image[section + 20..section + 24].copy_from_slice(&crc.to_le_bytes());
            }
            _ => {}
        }
    }
    let summary_bytes = PartHeader::decode(image, &key(), RING).unwrap().summary_bytes as usize;
    let crc = crc32c(&image[4096..4096 + summary_bytes]);
    image[116..120].copy_from_slice(&crc.to_le_bytes());
    restamp(image, &key(), SlotNo(5)).unwrap();
}

#[test]
fn columns_that_are_not_those_of_the_rows_are_found() {
    let (slot, len) = sample();
    let (_, summary) = check_image(&slot.buffer[..len], &key(), RING).unwrap();
    let forged = |change: &dyn Fn(&mut [u8])| {
        let mut image = slot.buffer[..len].to_vec();
        change(&mut image);
        mend(&mut image, &summary);
        check_image(&image, &key(), RING)
    };
    assert!(forged(&|_| ()).is_ok(), "the forgery itself is sound");
    let found = |what: &str, change: &dyn Fn(&mut [u8])| {
        let error = forged(change).expect_err(what);
        let of_columns = matches!(
            error,
            FormatError::Malformed {
                structure: "attribute column" | "attribute filter" | "bounds of blocks",
                ..
            } | FormatError::OutOfBounds { structure: "attribute column", .. }
        );
        assert!(of_columns, "{what}: {error}");
    };
    for (entry, column) in [(0, 0), (0, 1), (0, 2), (2, 0), (2, 1), (2, 2)] {
        let (outline, blocks) =
            (summary.filter(entry, column).unwrap(), summary.column(entry, column).unwrap());
        let (told, block) = (outline.range().start, blocks.range().start);
        for (what, at) in [("cells", 0), ("nulls", 4), ("class", 8), ("least", 16), ("greatest", 32)] {
            found(what, &|image| image[told + at] ^= 1);
        }
        if outline.count > 0 {
            found("an empty filter", &|image| image[told + 48..outline.range().end].fill(0));
        }
        let head =
            [("sequence", 8), ("chunk", 12), ("entry", 16), ("column", 18), ("class", 20), ("encoding", 21)];
        for (what, at) in
            head.into_iter().chain([("cells", 24), ("nulls", 26), ("least", 32), ("greatest", 48)])
        {
            found(what, &|image| image[block + at] ^= 1);
        }
        let mut last = block;
        while last < blocks.range().end {
            let len = Block::read(&slot.buffer[last..]).unwrap().bytes();
            if last + len == blocks.range().end {
                break;
            }
            last += len;
        }
        found("a block of a chunk that is not there", &|image| image[last + 12] += 1);
        found("no block", &|image| image[block + 4..block + 8].fill(0));
        found("a width that is not there", &|image| image[block + 22] = 3);
        found("more blocks than told", &|image| {
            let at = summary.sections.iter().position(|section| section == blocks).unwrap();
            image[4096 + 64 + 32 * at + 16] -= 1;
        });
    }
    let told: Vec<Section> =
        summary.sections.iter().filter(|section| section.kind == SectionKind::Bounds).copied().collect();
    assert!(!told.is_empty());
    for section in told {
        let (start, width, count) = (section.range().start, section.encoding & 0xff, section.count);
        let lists = start + 16 + 4 * count as usize;
        found("a base that is another", &|image| image[start] ^= 1);
        found("a block that ends elsewhere", &|image| image[start + 16] ^= 8);
        if width > 0 {
            found("a bound that is another", &|image| image[lists] ^= 1);
            found("another bound", &|image| {
                image[lists + (2 * count as usize - 1) * usize::from(width)] ^= 1;
            });
        }
        found("bounds of a column that is not there", &|image| {
            let at = summary.sections.iter().position(|other| *other == section).unwrap();
            image[4096 + 64 + 32 * at + 2] = 60;
        });
    }
    let schema = |entry: usize| 4096 + 64 + 32 * summary.sections.len() + 256 * entry + 8;
    found("fewer attributes than columns", &|image| image[schema(0)] -= 1);
    found("more attributes than columns", &|image| image[schema(0)] += 1);
    found("columns of a stream without", &|image| image[schema(2)] = 0);
    found("more attributes than there may be", &|image| image[schema(2)] = 65);
    found("a column twice", &|image| {
        let at = summary.sections.iter().position(|section| section.kind == SectionKind::Filter).unwrap();
        let (one, other) = (4096 + 64 + 32 * at, 4096 + 64 + 32 * (at + 1));
        image.copy_within(one..one + 32, other);
    });
}

/// Gives `bytes` to every decoder; whatever they say, they return.
fn decode_all(bytes: &[u8]) {
    let _ = Superblock::decode(bytes);
    let _ = commit_len(bytes, &key(), RING);
    let _ = read_commit(bytes, &key(), RING).map(|(_, records, _)| records.count());
    let _ = Records::new(bytes).count();
    for kind in 0..20 {
        let _ = Record::read(kind, bytes);
    }
    let _ = PartHeader::decode(bytes, &key(), RING);
    let _ = check_image(bytes, &key(), RING);
    let _ = decode_directory(bytes, crc32c(bytes));
    let _ = Chunk::decode(bytes).map(|chunk| (chunk.rows().count(), chunk.rows_of(0).count()));
    let _ = Gap::decode(bytes);
    if let Ok(column) = Block::read(bytes).and_then(|block| block.decode()) {
        // Nothing that is decoded is more than a block may be.
        let text = match column.cells.lent() {
            Cells::Bytes(_, text) => text.len(),
            Cells::Words(_) | Cells::Wide(_) => 0,
        };
        assert!(column.iter().count() <= 4096 && text <= bytes.len().max(1 << 20));
    }
    for count in [0, 1, 4] {
        let section = Section { count, crc: crc32c(bytes), ..any_section() };
        if let Ok(outline) = Outline::decode(bytes, &section) {
            let _ = outline.may_have(Cell::Word(5)) | outline.may_have(Cell::Bytes(b"text"));
        }
    }
    let _ = check_payload_block(bytes, bytes.len() / 2, bytes);
    let len = bytes.len() as u32;
    let header = PartHeader {
        summary_bytes: len,
        summary_crc: crc32c(bytes),
        footer_offset: u32::MAX,
        ..PartHeader::default()
    };
    let _ = Summary::decode(&header, bytes);
    let _ = footer_binds(&header, bytes, &key());
    let _ = restamp(&mut bytes.to_vec(), &key(), SlotNo(0));
    let _ = Superblock::from_recovery_string(&String::from_utf8_lossy(bytes));
    let line: String = bytes.iter().map(|byte| char::from(b'a' + byte % 26)).collect();
    let _ = Superblock::from_recovery_string(&format!("holdfast1:{line}"));
}

/// Puts right whatever checks the structure at the start of `bytes` has, so that damage reaches the code behind them.
fn put_right(bytes: &mut [u8]) {
    let put = |bytes: &mut [u8], at: usize, check: &[u8]| {
        if let Some(place) = bytes.get_mut(at..at + check.len()) {
            place.copy_from_slice(check);
        }
    };
    match bytes.get(..8) {
        Some(b"HFSUPER1") if bytes.len() >= 4096 => put(bytes, 4092, &crc32c(&bytes[..4092]).to_le_bytes()),
        Some(b"HFJRNL01") if bytes.len() >= 128 => {
            let len = u32::from_le_bytes([bytes[56], bytes[57], bytes[58], bytes[59]]) as usize;
            if let Some(records) = bytes[128..].get(..len) {
                put(bytes, 60, &crc32c(records).to_le_bytes());
            }
            put(bytes, 96, &key().tag(&bytes[..96]));
        }
        Some(b"HFSLOT01") if bytes.len() >= 4096 => put(bytes, 4080, &key().tag(&bytes[..4080])),
        Some(_) => {
            let len = u32::from_le_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]) as usize;
            if let Some(chunk) = bytes.get(4..len) {
                put(bytes, 0, &crc32c(chunk).to_le_bytes());
            }
        }
        None => {}
    }
}

fn any_section() -> Section {
    Section {
        kind: SectionKind::Filter,
        column: 0,
        entry: 0,
        encoding: 0,
        offset: 0,
        bytes: 0,
        count: 0,
        crc: 0,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn decoders_take_any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..6000)) {
        decode_all(&bytes);
    }

    #[test]
    fn decoders_take_damaged_structures_whose_checks_were_put_right(
        which in 0..12usize,
        damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>(), any::<bool>()), 1..6),
        cut in proptest::option::of(any::<prop::sample::Index>()),
    ) {
        let mut bytes = structures().swap_remove(which);
        for (at, value, near) in damage {
            // Most fields that steer a decoder are near the beginning.
            let len = if near { bytes.len().min(200) } else { bytes.len() };
            bytes[at.index(len - 8) + 8] = value;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        put_right(&mut bytes);
        decode_all(&bytes);
    }
}

/// A superblock, a commit, a slot, a chunk, and the first block of every column.
fn structures() -> Vec<Vec<u8>> {
    let geometry = Geometry::for_lane(64 << 20, 1 << 20, vec![]).unwrap();
    let (slot, len) = sample();
    let (_, summary) = check_image(&slot.buffer[..len], &key(), RING).unwrap();
    let chunk = slot.buffer[summary.section(SectionKind::Chunks).unwrap().range()].to_vec();
    let mut commit = vec![0; 8192];
    let mut writer = CommitWriter::new(&mut commit);
    writer.push(&slot.builder.open_record());
    writer.push(&Record::Freed { sequences: vec![holdfast_base::Sequence(3)] });
    writer.push(&Record::OpenRows {
        sequence: holdfast_base::Sequence(9),
        first_row: 0,
        chunk: &chunk[..512],
    });
    writer.finish(&key(), &CommitHead { ring: RING, ..CommitHead::default() });
    let columns = summary.sections.iter().filter(|section| section.kind == SectionKind::Attribute);
    let blocks = columns.map(|section| {
        let bytes = &slot.buffer[section.range()];
        bytes[..Block::read(bytes).unwrap().bytes()].to_vec()
    });
    let mut all = vec![superblock(geometry).encode(), commit, slot.buffer[..len].to_vec(), chunk];
    all.extend(blocks);
    all
}
