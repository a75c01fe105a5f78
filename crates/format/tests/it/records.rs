//! Tests of the journal's records and commits: what is written is read back, what does not fit is not half
//! written.

use crate::world::{RING, Slot, key};
use holdfast_base::{
    Age, Epoch, HoldId, MAX_CONDITION, MAX_STREAMS, OrderId, Ordinal, RingId, Sequence, SlotNo, StreamId,
    Timestamp,
};
use holdfast_format::{
    Act, ActRecord, CommitHead, CommitWriter, ConditionHold, CopyRecord, Counters, FormatError, HoldRecord,
    MAX_COMMIT, PurgeRecord, Record, Records, SlotState, StreamKind, StreamRecord, TableEntry, commit_len,
    read_commit,
};
use proptest::prelude::*;

fn time() -> impl Strategy<Value = Timestamp> {
    any::<i64>().prop_map(Timestamp)
}

fn sequences() -> impl Strategy<Value = Vec<Sequence>> {
    proptest::collection::vec(any::<u64>().prop_map(Sequence), 0..20)
}

fn table_entry() -> impl Strategy<Value = TableEntry> {
    (any::<u64>(), 0..1u64 << 48, 0..3usize, any::<(bool, bool)>()).prop_map(
        |(sequence, younger, state, flags)| TableEntry {
            sequence: Sequence(sequence),
            age: Age(sequence.saturating_sub(younger)),
            state: [SlotState::Free, SlotState::Data, SlotState::Bad][state],
            damaged: flags.0,
            purged: flags.1,
        },
    )
}

fn counters() -> impl Strategy<Value = Counters> {
    any::<[u64; 7]>().prop_map(|[received, received_bytes, lost, lost_bytes, next, gaps, unknown_gaps]| {
        Counters {
            received,
            received_bytes,
            lost,
            lost_bytes,
            next_ordinal: Ordinal(next),
            gaps,
            unknown_gaps,
        }
    })
}

fn condition_hold() -> impl Strategy<Value = ConditionHold> {
    let watermark = any::<(u32, u64)>().prop_map(|(stream, ordinal)| (StreamId(stream), Ordinal(ordinal)));
    let watermarks = proptest::collection::vec(watermark, 0..9);
    let when = proptest::option::of((".{0,40}", any::<u64>()));
    (".{0,40}", any::<(u64, u64, bool, bool, Option<(u64, u64)>, u32)>(), when, watermarks).prop_map(
        |(condition, (before, after, standing, distil, sample, quota), when, watermarks)| ConditionHold {
            condition,
            before,
            after,
            standing,
            distil,
            sample,
            when,
            quota,
            watermarks,
        },
    )
}

fn hold() -> impl Strategy<Value = HoldRecord> {
    let streams = proptest::collection::vec(any::<u32>().prop_map(StreamId), 0..9);
    let ranges =
        proptest::collection::vec(any::<(u64, u64)>().prop_map(|(a, b)| (Sequence(a), Sequence(b))), 0..9);
    let optional = (proptest::option::of(condition_hold()), order());
    (any::<([i64; 4], [u64; 3], [bool; 3])>(), streams, ranges, ".{0,40}", ".{0,40}", optional).prop_map(
        |((times, numbers, which), streams, sequences, reason, owner, (condition_hold, order))| HoldRecord {
            id: HoldId(numbers[0]),
            created: Timestamp(times[0]),
            until: Timestamp(times[1]),
            from: Timestamp(times[2]),
            to: Timestamp(times[3]),
            first_ordinal: Ordinal(numbers[1]),
            end_ordinal: Ordinal(numbers[2]),
            by_time: which[0],
            by_ordinal: which[1],
            by_event: which[2],
            streams,
            sequences,
            reason,
            owner,
            condition_hold,
            order,
        },
    )
}

/// The UUID of an order, or none.
fn order() -> impl Strategy<Value = Option<OrderId>> {
    proptest::option::of((any::<u128>()).prop_map(|id| OrderId((id | 1).to_le_bytes())))
}

fn purge() -> impl Strategy<Value = PurgeRecord> {
    (hold(), proptest::option::of(0..u32::MAX), any::<(u64, u64)>()).prop_map(|(hold, stream, counts)| {
        PurgeRecord {
            at: hold.created,
            stream: stream.map(StreamId),
            by_time: hold.by_time,
            by_ordinal: hold.by_ordinal,
            by_event: hold.by_event,
            from: hold.from,
            to: hold.to,
            first_ordinal: hold.first_ordinal,
            end_ordinal: hold.end_ordinal,
            elements: counts.0,
            bytes: counts.1,
            dropped: (counts.0 % (1 << 24)) as u32,
            reason: hold.reason,
            owner: hold.owner,
        }
    })
}

fn act() -> impl Strategy<Value = ActRecord> {
    (hold(), proptest::option::of(0..u32::MAX), any::<(u32, u32)>(), 0..5u8).prop_map(
        |(hold, stream, (number, slots), act)| ActRecord {
            number,
            act: Act::from_byte(act),
            at: hold.created,
            hold: hold.id,
            stream: stream.map(StreamId),
            slots,
            by_time: hold.by_time,
            by_ordinal: hold.by_ordinal,
            by_event: hold.by_event,
            from: hold.from,
            to: hold.to,
            first_ordinal: hold.first_ordinal,
            end_ordinal: hold.end_ordinal,
            reason: hold.reason,
            owner: hold.owner,
        },
    )
}

fn stream() -> impl Strategy<Value = StreamRecord> {
    let schema_text = prop_oneof![Just(String::new()), ".{1,40}"];
    (any::<(u32, bool, u32, u32, i64)>(), counters(), ".{0,20}", ".{0,20}", schema_text).prop_map(
        |((id, packets, preamble, schema, created), counters, name, framing, schema_text)| StreamRecord {
            id: StreamId(id),
            kind: if packets { StreamKind::Packets } else { StreamKind::Bytes },
            preamble,
            schema,
            created: Timestamp(created),
            counters,
            name,
            framing,
            schema_text,
        },
    )
}

/// Any record that owns its bytes.
fn record() -> impl Strategy<Value = Record<'static>> {
    let slots = proptest::collection::vec(any::<u32>().prop_map(SlotNo), 0..20);
    let copies = proptest::collection::vec(
        any::<(u32, u64, u64)>().prop_map(|(slot, sequence, age)| CopyRecord {
            slot: SlotNo(slot),
            sequence: Sequence(sequence),
            age: Age(age),
        }),
        0..9,
    );
    prop_oneof![
        (any::<u64>(), time(), time(), any::<bool>()).prop_map(|(epoch, arrival, wall, clean)| {
            Record::Epoch { epoch: Epoch(epoch), arrival, wall, clean }
        }),
        (any::<u32>(), proptest::collection::vec(table_entry(), 0..40))
            .prop_map(|(first, entries)| Record::Table { first: SlotNo(first), entries }),
        stream().prop_map(Record::Stream),
        hold().prop_map(Record::Hold),
        (any::<u64>(), time(), order()).prop_map(|(hold, at, order)| Record::Release {
            hold: HoldId(hold),
            at,
            order
        }),
        (any::<u64>(), slots).prop_map(|(naming, slots)| Record::Runway { naming: Sequence(naming), slots }),
        any::<u32>().prop_map(|slot| Record::BadSlot { slot: SlotNo(slot) }),
        (any::<u64>(), time(), time(), time()).prop_map(|(epoch, arrival, before, after)| {
            Record::ClockStep { epoch: Epoch(epoch), arrival, before, after }
        }),
        any::<(u64, u32)>().prop_map(|(lane_bytes, slots)| Record::Geometry { lane_bytes, slots }),
        (sequences(), copies).prop_map(|(originals, copies)| Record::Replaced { originals, copies }),
        sequences().prop_map(|sequences| Record::Freed { sequences }),
        any::<(u64, u64, u32, u32)>().prop_map(|(sequence, hold, stream, acts)| Record::Next {
            sequence: Sequence(sequence),
            hold: HoldId(hold),
            stream: StreamId(stream),
            acts,
        }),
        time().prop_map(|arrival| Record::CleanEnd { arrival }),
        purge().prop_map(Record::Purged),
        act().prop_map(Record::Act),
        Just(Record::Recovery("holdfast1:abcdef")),
    ]
}

/// Writes the record from where its contents are kept, if its kind can be.
fn push_lent(writer: &mut CommitWriter<'_>, record: &Record<'_>) -> bool {
    match record {
        Record::Table { first, entries } => writer.push_table(*first, entries.iter().copied()),
        Record::Stream(stream) => writer.push_stream(stream),
        Record::Hold(hold) => writer.push_hold(hold),
        Record::Runway { naming, slots } => writer.push_runway(*naming, slots),
        Record::Replaced { originals, copies } => writer.push_replaced(originals, copies.iter().copied()),
        Record::Freed { sequences } => writer.push_freed(sequences),
        Record::Purged(purge) => writer.push_purged(purge),
        Record::Act(act) => writer.push_act(act),
        other => writer.push(other),
    }
}

fn head() -> impl Strategy<Value = CommitHead> {
    any::<(u64, u64, u64, [bool; 3])>().prop_map(|(generation, number, epoch, [begins, part, ends])| {
        CommitHead { ring: RING, generation, number, epoch: Epoch(epoch), begins, part, ends }
    })
}

proptest! {
    #[test]
    fn a_record_that_is_lent_is_the_same_as_one_that_is_given(
        records in proptest::collection::vec(record(), 0..30),
    ) {
        let (mut given, mut lent) = (vec![0xee; 8192], vec![0xdd; 8192]);
        let (mut a, mut b) = (CommitWriter::new(&mut given), CommitWriter::new(&mut lent));
        for record in &records {
            prop_assert_eq!(a.push(record), push_lent(&mut b, record));
        }
        let head = CommitHead::default();
        let ends = (a.finish(&key(), &head), b.finish(&key(), &head));
        prop_assert_eq!(ends.0, ends.1);
        prop_assert_eq!(&given[..ends.0], &lent[..ends.1]);
    }

    #[test]
    fn what_a_commit_takes_is_read_back(
        records in proptest::collection::vec(record(), 0..30),
        bytes in proptest::collection::vec(any::<u8>(), 0..3000),
        head in head(),
        blocks in 1..4usize,
    ) {
        let (stream, last) = (StreamId(3), Sequence(8));
        let borrowing = [
            Record::Preamble { stream, version: 2, total: 5000, offset: 2000, last, bytes: &bytes },
            Record::OpenPayload { sequence: last, offset: 7, bytes: &bytes },
            Record::OpenRows { sequence: last, first_row: 9, chunk: &bytes },
        ];
        let slot = Slot::open(64 << 10, 9);
        let all = records.into_iter().chain(borrowing).chain([slot.builder.open_record()]);
        let mut buffer = vec![0xee; blocks * 4096];
        let mut writer = CommitWriter::new(&mut buffer);
        let mut taken = Vec::new();
        for record in all {
            let room = writer.room();
            let fits = writer.push(&record);
            prop_assert_eq!(fits, record.bytes() <= room, "{:?}", record);
            prop_assert_eq!(writer.room(), if fits { room - record.bytes() } else { room });
            if fits {
                taken.push(record);
            }
        }
        prop_assert_eq!(writer.is_empty(), taken.is_empty());
        let end = blocks * 4096 - writer.room();
        let padded = writer.finish(&key(), &head);
        prop_assert!(padded - end < 4096 && buffer[end..padded].iter().all(|byte| *byte == 0));
        prop_assert_eq!(commit_len(&buffer[..4096], &key(), RING), Ok(padded));
        let (said, found, len) = read_commit(&buffer, &key(), RING).unwrap();
        prop_assert_eq!((said, len), (head, padded));
        let found: Vec<_> = found.map(Result::unwrap).collect();
        prop_assert_eq!(found, taken);
    }

    #[test]
    fn bytes_that_a_later_version_appends_are_skipped(record in record(), more in proptest::collection::vec(any::<u8>(), 0..40)) {
        let mut buffer = vec![0; 8192];
        let mut writer = CommitWriter::new(&mut buffer);
        prop_assert!(writer.push(&record));
        let padded = writer.finish(&key(), &CommitHead { ring: RING, ..CommitHead::default() });
        let kind = u16::from_le_bytes([buffer[128], buffer[129]]);
        let len = u32::from_le_bytes([buffer[132], buffer[133], buffer[134], buffer[135]]) as usize;
        prop_assert!(136 + len <= padded);
        let mut body = buffer[136..136 + len].to_vec();
        // A schema is left out where there is none and nothing behind it.
        if matches!(&record, Record::Stream(stream) if stream.schema_text.is_empty()) && !more.is_empty() {
            body.extend([0, 0]);
        }
        // So is what a hold looks for.
        if matches!(&record, Record::Hold(HoldRecord { condition_hold: None, order: None, .. })) && !more.is_empty() {
            body.push(0);
        }
        // And the order of a hold or a release.
        let unordered = matches!(&record, Record::Hold(HoldRecord { order: None, .. }) | Record::Release { order: None, .. });
        if unordered && !more.is_empty() {
            body.extend([0; 16]);
        }
        body.extend(more);
        prop_assert_eq!(Record::read(kind, &body), Ok(record));
    }
}

#[test]
fn records_of_a_later_version_are_told_apart_and_skipped() {
    let mut bytes = Vec::new();
    for (kind, body) in [(40u16, &[1u8, 2, 3][..]), (8, &[7, 0, 0, 0, 0, 0, 0, 0])] {
        bytes.extend(kind.to_le_bytes());
        bytes.extend([0; 2]);
        bytes.extend((body.len() as u32).to_le_bytes());
        bytes.extend(body);
        bytes.resize(bytes.len().next_multiple_of(8), 0);
    }
    let records: Vec<_> = Records::new(&bytes).collect();
    assert_eq!(records, [Ok(Record::Unknown(40)), Ok(Record::BadSlot { slot: SlotNo(7) })]);
}

/// What is read of it in a hold's record.
fn read_again(condition_hold: ConditionHold) -> Result<Option<ConditionHold>, FormatError> {
    let record = Record::Hold(HoldRecord { condition_hold: Some(condition_hold), ..HoldRecord::default() });
    let mut buffer = vec![0; 16 << 10];
    let mut writer = CommitWriter::new(&mut buffer);
    assert!(writer.push(&record));
    writer.finish(&key(), &CommitHead { ring: RING, ..CommitHead::default() });
    match read_commit(&buffer, &key(), RING).unwrap().1.next().unwrap()? {
        Record::Hold(hold) => Ok(hold.condition_hold),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_hold_looks_for_no_more_than_its_record_has_room_for() {
    let longest = ConditionHold {
        condition: "c".repeat(MAX_CONDITION),
        when: Some(("w".repeat(MAX_CONDITION), 5)),
        watermarks: (0..MAX_STREAMS as u32).map(|stream| (StreamId(stream), Ordinal(7))).collect(),
        ..ConditionHold::default()
    };
    assert_eq!(read_again(longest.clone()), Ok(Some(longest.clone())));
    let mut streams = longest.clone();
    streams.watermarks.push((StreamId(999), Ordinal(0)));
    let condition = ConditionHold { condition: "c".repeat(MAX_CONDITION + 1), ..longest.clone() };
    let when = ConditionHold { when: Some(("w".repeat(MAX_CONDITION + 1), 5)), ..longest };
    for (what, condition_hold) in [("watermarks", streams), ("condition", condition), ("condition", when)] {
        let error = read_again(condition_hold).unwrap_err();
        assert!(error.to_string().contains(what), "{error}");
    }
}

#[test]
fn a_commit_is_never_larger_than_its_limit() {
    let mut buffer = vec![0; MAX_COMMIT + 8192];
    let mut writer = CommitWriter::new(&mut buffer);
    let bytes = vec![1; 5000];
    while writer.push(&Record::OpenPayload { sequence: Sequence(1), offset: 0, bytes: &bytes }) {}
    assert!(writer.room() < 5024);
    assert_eq!(writer.finish(&key(), &CommitHead::default()), MAX_COMMIT);
    let mut none = [];
    let mut writer = CommitWriter::new(&mut none);
    assert!(!writer.push(&Record::BadSlot { slot: SlotNo(1) }));
    assert_eq!((writer.room(), writer.finish(&key(), &CommitHead::default())), (0, 0));
}

#[test]
fn a_commit_of_another_ring_and_one_under_another_key_are_refused() {
    let mut buffer = vec![0; 4096];
    CommitWriter::new(&mut buffer).finish(&key(), &CommitHead { ring: RING, ..CommitHead::default() });
    let other = RingId([1; 16]);
    let error = read_commit(&buffer, &key(), other).unwrap_err();
    assert_eq!(error, FormatError::Foreign { structure: "commit", ring: RING });
    let error = read_commit(&buffer, &holdfast_format::Key([1; 32]), RING).unwrap_err();
    assert!(matches!(error, FormatError::BadTag { .. }));
}
