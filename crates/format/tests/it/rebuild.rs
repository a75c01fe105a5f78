//! Tests of rebuilding: the journal's records of an open slot suffice to make it again, from wherever it was
//! cut off (promise 6).

use crate::world::{RING, STREAMS, Slot, classes, entries, items, key, slot_id};
use holdfast_base::{Age, Epoch, SlotNo, Timestamp};
use holdfast_format::{
    Builder, CommitHead, CommitWriter, Counters, Cursor, Entry, Flags, FormatError, Kind, Rebuild, Record,
    Row, SlotFlags, check_image, read_commit,
};
use proptest::prelude::*;

const SLOT: u64 = 64 << 10;

/// Writes what the slot gained since `from` as commits of at most `bytes`, each with the cursor behind it.
fn journal(slot: &Slot, from: &mut Cursor, bytes: usize, commits: &mut Vec<(Vec<u8>, Cursor)>) {
    loop {
        let mut buffer = vec![0x5a; bytes];
        let mut commit = CommitWriter::new(&mut buffer);
        let (next, all) = slot.builder.journal_delta(&slot.buffer, *from, &mut commit);
        assert!(next.payload >= from.payload && next.rows >= from.rows);
        assert!(all || next != *from, "an empty commit has room for something");
        let empty = commit.is_empty();
        let head =
            CommitHead { ring: RING, number: commits.len() as u64, epoch: Epoch(3), ..CommitHead::default() };
        let padded = commit.finish(&key(), &head);
        buffer.truncate(padded);
        *from = next;
        if !empty {
            commits.push((buffer, next));
        }
        if all {
            assert_eq!(next, slot.builder.cursor());
            return;
        }
    }
}

const OPENED: Timestamp = Timestamp(1_795_000_000_000_000_000);

fn rebuild<'a>(commits: impl Iterator<Item = &'a Vec<u8>>, entries: &[Entry]) -> Slot {
    let mut buffer = vec![0x3c; SLOT as usize];
    let builder = Builder::new(SLOT, STREAMS);
    let mut rebuild = Rebuild::open(builder, &mut buffer, slot_id(9), OPENED, entries).unwrap();
    for commit in commits {
        let (_, records, padded) = read_commit(commit, &key(), RING).unwrap();
        assert_eq!(padded, commit.len());
        for record in records {
            assert!(rebuild.apply(&mut buffer, &record.unwrap()).unwrap());
        }
    }
    let builder = rebuild.finish(&mut buffer);
    Slot::around(builder, buffer, Vec::new())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_slot_is_rebuilt_as_far_as_it_was_journaled(
        items in items(400, 9000),
        every in 1..150usize,
        blocks in 2..16usize,
        cut in any::<prop::sample::Index>(),
        lost in any::<prop::sample::Index>(),
        backwards in any::<bool>(),
        classes in classes(),
    ) {
        // What is made again has no columns, and says so.
        let mut slot = Slot::open_with(SLOT, 9, classes);
        let mut commits = Vec::new();
        let mut cursor = Cursor::default();
        for (number, item) in items.iter().enumerate() {
            slot.pack(item);
            if number % every == 0 {
                // What no row describes yet is not the journal's.
                let loose = slot.builder.room().min(10);
                slot.builder.write(&mut slot.buffer, &vec![1; loose]);
                journal(&slot, &mut cursor, blocks * 4096, &mut commits);
                if loose > 0 {
                    let next = Row {
                        len: loose as u32,
                        kind: Kind::Fragment,
                        flags: Flags::default(),
                        ordinal: slot.builder.counters(0).next_ordinal,
                        ..Row::default()
                    };
                    slot.builder.row(&mut slot.buffer, &next);
                    slot.note_down(crate::world::Item { row: next, bytes: vec![1; loose] });
                }
            }
        }
        journal(&slot, &mut cursor, blocks * 4096, &mut commits);

        // The journal ends at some commit; its pieces may be applied in any order.
        let kept = cut.index(commits.len() + 1);
        let rows = kept.checked_sub(1).map_or(0, |last| commits[last].1.rows as usize);
        let mut images: Vec<&Vec<u8>> = commits[..kept].iter().map(|commit| &commit.0).collect();
        if backwards {
            images.reverse();
        }
        let mut again = rebuild(images.iter().copied().chain(images.first().copied()), &slot.entries);
        prop_assert_eq!(again.builder.rows() as usize, rows);
        again.packed = slot.packed[..rows].to_vec();
        again.seal_and_compare()?;

        // With a commit missing it ends there at the latest, never in wrong data.
        if kept > 0 {
            let missing = lost.index(kept);
            let left = images.iter().enumerate().filter(|(at, _)| *at != missing).map(|(_, image)| *image);
            let mut again = rebuild(left, &slot.entries);
            prop_assert!(again.builder.rows() as usize <= rows);
            again.packed = slot.packed[..again.builder.rows() as usize].to_vec();
            again.seal_and_compare()?;
        }
    }
}

#[test]
fn the_open_record_says_what_the_slot_is() {
    let slot = Slot::open(SLOT, 9);
    let record = slot.builder.open_record();
    let Record::OpenSlot(open) = &record else { panic!("{record:?}") };
    assert_eq!(
        (open.sequence, open.epoch, open.age),
        (slot_id(9).sequence, slot_id(9).epoch, slot_id(9).age)
    );
    let said: Vec<_> =
        open.entries.iter().map(|entry| (entry.stream, entry.preamble, entry.counters)).collect();
    let put: Vec<_> = entries().iter().map(|entry| (entry.stream, entry.preamble, entry.counters)).collect();
    assert_eq!(said, put);
    assert_ne!(put[1].2, Counters::default());
}

#[test]
fn pieces_of_another_slot_and_beyond_the_slot_are_refused() {
    let mut buffer = vec![0; SLOT as usize];
    let builder = Builder::new(SLOT, STREAMS);
    let mut rebuild = Rebuild::open(builder, &mut buffer, slot_id(9), Timestamp(0), &entries()).unwrap();
    for (offset, len) in [(u32::MAX, 1), (SLOT as u32, 0), (0, SLOT as usize), (60_000, 1)] {
        let refused = rebuild.payload(&mut buffer, offset, &vec![0; len]);
        assert!(matches!(refused, Err(FormatError::OutOfBounds { .. })), "{offset} {len}");
    }
    let mut other = Slot::open(SLOT, 10);
    other.pack(&crate::world::Item { row: Row::default(), bytes: Vec::new() });
    let mut commit = vec![0; 8192];
    let mut writer = CommitWriter::new(&mut commit);
    assert!(other.builder.journal_delta(&other.buffer, Cursor::default(), &mut writer).1);
    writer.finish(&key(), &CommitHead { ring: RING, ..CommitHead::default() });
    let (_, mut records, _) = read_commit(&commit, &key(), RING).unwrap();
    let record = records.next().unwrap().unwrap();
    assert_eq!(rebuild.apply(&mut buffer, &record), Ok(false));
    let Record::OpenRows { chunk, .. } = record else { panic!("{record:?}") };
    assert!(rebuild.rows(chunk).is_err());
    assert_eq!(rebuild.finish(&mut buffer).rows(), 0);
}

/// How far back the elements began that end in a slot is known of it, and of what its journal makes of it (promise 4).
#[test]
fn a_slot_knows_where_the_elements_began_that_end_in_it() {
    let id = slot_id(9);
    let mut streams = entries();
    streams[0].began = Some(Age(id.age.0 - 3));
    let mut buffer = vec![0; SLOT as usize];
    let mut builder = Builder::new(SLOT, STREAMS);
    builder.open(&mut buffer, id, Timestamp(0), &streams).unwrap();
    let fragment = |stream, number, last| {
        let flags = if last { Flags::LAST } else { Flags::default() };
        Row { kind: Kind::Fragment, stream, number, flags, ..Row::default() }
    };
    // Of the first stream one ends, and another begins; of the second one begins and ends.
    for row in [fragment(0, 2, true), fragment(1, 0, false), fragment(0, 0, false), fragment(1, 1, true)] {
        builder.row(&mut buffer, &row);
    }
    assert_eq!((builder.began(0), builder.began(1)), (Some(id.age), None));
    let mut commit = vec![0; 32 << 10];
    let mut writer = CommitWriter::new(&mut commit);
    assert!(writer.push(&builder.open_record()));
    assert!(builder.journal_delta(&buffer, Cursor::default(), &mut writer).1);
    writer.finish(&key(), &CommitHead { ring: RING, ..CommitHead::default() });

    let mut again = None;
    let mut image = vec![0; SLOT as usize];
    for record in read_commit(&commit, &key(), RING).unwrap().1.flatten() {
        if let Record::OpenSlot(open) = &record {
            let known = open.entries.iter().zip(entries());
            let streams: Vec<_> = known
                .map(|(open_entry, entry)| Entry { began: open_entry.began(open.age), ..entry })
                .collect();
            let builder = Builder::new(SLOT, STREAMS);
            again = Some(Rebuild::open(builder, &mut image, id, Timestamp(0), &streams).unwrap());
        } else {
            assert!(again.as_mut().unwrap().apply(&mut image, &record).unwrap());
        }
    }
    let again = again.unwrap().finish(&mut image);
    for builder in [&builder, &again] {
        assert_eq!(builder.summaries().map(|entry| entry.back).collect::<Vec<_>>(), [3, 0, 0]);
    }
    let sealed = builder.seal(&mut buffer, &key(), SlotNo(0), Timestamp(1), SlotFlags::default());
    let (_, summary) = check_image(&buffer[..sealed.bytes], &key(), RING).unwrap();
    assert_eq!(summary.entries.iter().map(|entry| entry.back).collect::<Vec<_>>(), [3, 0, 0]);
}
