//! Golden images: bytes that this version wrote and every later one must read. `HOLDFAST_BLESS=1 cargo test` writes
//! those that are missing or differ; an image that has been released is never written again.

use crate::columns::{common_but_some, filled};
use crate::lanes::superblock;
use crate::world::{Item, RING, STREAMS, Slot, Value, entries, key, read_column, read_items};
use holdfast_base::{
    Age, ByteSize, Epoch, HoldId, LaneNo, OrderId, Ordinal, Rate, RingId, Sequence, SlotNo, StreamId,
    Timestamp,
};
use holdfast_format::{
    BlockBounds, Cause, CellBuffer, CellsAt, Class, Classes, Codec, CommitHead, CommitWriter, ConditionHold,
    CopyRecord, Counters, Cursor, Direction, ElementLoad, Flags, Gap, Geometry, HoldRecord, Kind, Measured,
    PurgeRecord, Record, Region, Row, SectionKind, SlotState, StreamKind, StreamRecord, Summary, Superblock,
    TableEntry, Terms, check_image, read_commit,
};
use std::path::PathBuf;
use std::time::Duration;

const NOW: i64 = 1_795_000_000_000_000_000;

fn path(name: &str) -> PathBuf {
    path_of("v1", name)
}

fn path_of(version: &str, name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(version).join(name)
}

/// Compares `bytes` with the golden file of format version 1, or writes that.
pub(crate) fn golden(name: &str, bytes: &[u8]) {
    golden_of("v1", name, bytes);
}

/// The same of any format version.
fn golden_of(version: &str, name: &str, bytes: &[u8]) {
    let path = path_of(version, name);
    if std::env::var_os("HOLDFAST_BLESS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, bytes).unwrap();
    }
    let kept = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let differs = kept.iter().zip(bytes).position(|(kept, made)| kept != made);
    assert!(
        kept == bytes,
        "{name} differs at byte {differs:?} ({} bytes kept, {} made)",
        kept.len(),
        bytes.len()
    );
}

fn times(step: i64) -> Timestamp {
    Timestamp(NOW + step)
}

fn wide_superblock() -> Superblock {
    let skipped =
        vec![Region { offset: 100 << 20, bytes: 3 << 20 }, Region { offset: 200 << 20, bytes: 12288 }];
    Superblock {
        lanes: 3,
        lane: LaneNo(2),
        group: RingId(*b"group with three"),
        n: 2,
        k: 1,
        codec: Codec::Xor,
        prefilled: false,
        lane_ids: vec![RingId([1; 16]), RingId([2; 16]), RingId([3; 16])],
        terms: None,
        ..superblock(Geometry::for_lane(1 << 30, 8 << 20, skipped).unwrap())
    }
}

/// The paper's drive in its outer 80 %.
pub(crate) fn terms() -> Terms {
    let measured = Measured {
        at: times(-7),
        write: Rate(65 << 20),
        read: Rate(70 << 20),
        reposition: Duration::from_millis(30),
        commit: Duration::from_micros(150),
        read_error: Duration::from_secs(7),
        stall: Duration::from_millis(500),
        stalled: 25_000,
        parallel: 1,
        elements: 100_000_000,
        cells: 0,
    };
    Terms {
        measured,
        rate: Rate(55 << 20),
        elements: 40_000,
        burst: ByteSize::mib(64),
        gather: 4,
        quantum: 4 << 20,
        memory: ByteSize::gib(2),
        each: ElementLoad::NONE,
    }
}

/// A superblock is written in the newest version, and read in every version.
fn superblocks(name: &str, block: &Superblock) {
    let file = format!("superblock-{name}.bin");
    golden_of("v2", &file, &block.encode());
    let old = std::fs::read(path(&file)).unwrap();
    assert_eq!(Superblock::decode(&old), Ok(Superblock { version: 1, ..block.clone() }));
}

#[test]
fn superblocks_and_recovery_strings() {
    let single = superblock(Geometry::for_lane(64 << 20, 1 << 20, vec![]).unwrap());
    let admitted = Superblock { terms: Some(terms()), ..single.clone() };
    superblocks("admitted", &admitted);
    let each = ElementLoad { frame: None, columns: 14, texts: 3, bytes: 115, text_bytes: 1287 };
    let measured = Measured { cells: 40_000_000, ..terms().measured };
    let told = Superblock { terms: Some(Terms { measured, each, ..terms() }), ..single.clone() };
    superblocks("attributes", &told);
    let alike = Superblock {
        terms: Some(Terms { each: ElementLoad { frame: Some(5032), ..each }, ..terms() }),
        ..single.clone()
    };
    superblocks("frames", &alike);
    for (name, block) in [("single", single), ("group", wide_superblock())] {
        superblocks(name, &block);
        golden(&format!("recovery-string-{name}.bin"), block.to_recovery_string().as_bytes());
    }
}

fn hold() -> HoldRecord {
    HoldRecord {
        id: HoldId(3),
        created: times(0),
        until: Timestamp::MAX,
        from: times(-5),
        to: times(5),
        first_ordinal: Ordinal(4),
        end_ordinal: Ordinal(9),
        by_time: true,
        by_ordinal: false,
        by_event: true,
        streams: vec![StreamId(1), StreamId(2)],
        sequences: vec![(Sequence(7), Sequence(8)), (Sequence(11), Sequence(11))],
        reason: "burst at 10:05".into(),
        owner: "ops".into(),
        condition_hold: None,
        order: None,
    }
}

fn condition_hold() -> ConditionHold {
    ConditionHold {
        condition: "wire_len > 1400".into(),
        before: 10_000_000_000,
        after: 30_000_000_000,
        standing: true,
        distil: true,
        sample: Some((5, 60)),
        when: Some(("count(*) >= 100".into(), 1_000_000_000)),
        quota: 12,
        watermarks: vec![(StreamId(1), Ordinal(77)), (StreamId(2), Ordinal(1 << 32))],
    }
}

fn purge() -> PurgeRecord {
    PurgeRecord {
        at: times(1),
        stream: None,
        by_time: true,
        from: times(-9),
        to: times(-8),
        end_ordinal: Ordinal(u64::MAX),
        elements: 12,
        bytes: 3456,
        reason: "law".into(),
        owner: "root".into(),
        ..PurgeRecord::default()
    }
}

fn act() -> holdfast_format::ActRecord {
    holdfast_format::ActRecord {
        number: 300,
        act: holdfast_format::Act::Export,
        at: times(1),
        hold: HoldId(3),
        stream: Some(StreamId(4)),
        slots: 17,
        by_ordinal: true,
        first_ordinal: Ordinal(4),
        end_ordinal: Ordinal(u64::MAX),
        reason: "case 12".into(),
        owner: "ops".into(),
        ..Default::default()
    }
}

fn stream() -> StreamRecord {
    StreamRecord {
        id: StreamId(4),
        kind: StreamKind::Packets,
        preamble: 2,
        schema: 1,
        created: times(2),
        counters: Counters {
            received: 1,
            received_bytes: 2,
            lost: 3,
            lost_bytes: 4,
            next_ordinal: Ordinal(5),
            gaps: 6,
            unknown_gaps: 7,
        },
        name: "eth0".into(),
        framing: "packets".into(),
        schema_text: String::new(),
    }
}

/// One record of every type, those of an open slot left out.
fn records() -> Vec<(&'static str, Record<'static>)> {
    let (epoch, arrival) = (Epoch(6), times(0));
    let entry = |sequence, age, state, damaged, purged| TableEntry {
        sequence: Sequence(sequence),
        age: Age(age),
        state,
        damaged,
        purged,
    };
    let table = vec![
        entry(0, 0, SlotState::Free, false, false),
        entry(17, 12, SlotState::Data, true, false),
        entry(18, 18, SlotState::Bad, false, true),
    ];
    let copy = CopyRecord { slot: SlotNo(9), sequence: Sequence(30), age: Age(22) };
    vec![
        ("epoch", Record::Epoch { epoch, arrival, wall: times(7), clean: true }),
        ("table", Record::Table { first: SlotNo(40), entries: table }),
        ("stream", Record::Stream(stream())),
        (
            "preamble",
            Record::Preamble {
                stream: StreamId(4),
                version: 2,
                total: 20,
                offset: 6,
                last: Sequence(u64::MAX),
                bytes: b"preamble",
            },
        ),
        ("hold", Record::Hold(hold())),
        ("release", Record::Release { hold: HoldId(3), at: times(9), order: None }),
        ("runway", Record::Runway { naming: Sequence(31), slots: vec![SlotNo(5), SlotNo(6), SlotNo(9)] }),
        ("bad-slot", Record::BadSlot { slot: SlotNo(6) }),
        ("clock-step", Record::ClockStep { epoch, arrival, before: times(3), after: times(-3) }),
        ("geometry", Record::Geometry { lane_bytes: 1 << 40, slots: 8000 }),
        ("replaced", Record::Replaced { originals: vec![Sequence(21), Sequence(22)], copies: vec![copy] }),
        ("freed", Record::Freed { sequences: vec![Sequence(23), Sequence(24)] }),
        ("next", Record::Next { sequence: Sequence(50), hold: HoldId(4), stream: StreamId(5), acts: 0 }),
        ("clean-end", Record::CleanEnd { arrival }),
        ("purged", Record::Purged(purge())),
        ("recovery", Record::Recovery("holdfast1:abc")),
    ]
}

/// A slot with a row of every kind, flag and cause, over two chunks.
pub(crate) fn slot() -> Slot {
    slot_with([Classes::default(); STREAMS])
}

/// The same with columns.
pub(crate) fn slot_with(classes: [Classes; STREAMS]) -> Slot {
    let mut slot = Slot::open_with(64 << 10, 9, classes);
    let base = Row { arrival: times(0), ..Row::default() };
    let mut put = |row: Row, meta: &[u8], data: &[u8]| {
        let row = Row { meta: meta.len() as u16, len: data.len() as u32, ..row };
        assert!(slot.pack(&Item { row, bytes: [meta, data].concat() }));
    };
    let packet = Flags::EVENT | Flags::PCAPNG_OPTIONS;
    put(Row { stream: 0, ordinal: Ordinal(0), ..base }, b"", b"an element of bytes");
    put(Row { stream: 0, ordinal: Ordinal(1), ..base }, b"", b"");
    let event = times(-77);
    let fields = Row { stream: 1, tag: 2, extra: 1400, event, ..base };
    put(
        Row { ordinal: Ordinal(1000), flags: packet.with_direction(Direction::In), span: 12, ..fields },
        b"options",
        b"a packet",
    );
    put(
        Row { ordinal: Ordinal(1001), flags: packet.with_direction(Direction::Out), ..fields },
        b"",
        b"another",
    );
    let piece = Row { stream: 2, kind: Kind::Fragment, ordinal: Ordinal(2000), arrival: times(5), ..base };
    put(piece, b"", b"first ");
    put(Row { stream: 0, ordinal: Ordinal(9), arrival: times(-1), ..base }, b"", b"between");
    put(Row { number: 1, offset: 6, flags: Flags::LAST, ..piece }, b"", b"and last");
    put(Row { ordinal: Ordinal(2001), ..piece }, b"", b"begun");
    put(Row { ordinal: Ordinal(2001), kind: Kind::Abort, ..piece }, b"", b"");
    put(Row { stream: 1, kind: Kind::Note, ordinal: Ordinal(1002), ..base }, b"a note", b"");
    for cause in 1..=9u8 {
        let gap = Gap {
            ordinals: cause.into(),
            elements: (cause % 2 == 0).then_some(u64::from(cause)),
            bytes: (cause % 3 == 0).then_some(100),
            first: times(-3),
            last: times(-2),
            cause: Cause::from_byte(cause).unwrap(),
            note: 5,
        };
        let ordinal = Ordinal(10 + u64::from(cause) * 20);
        put(Row { stream: 0, kind: Kind::Gap, ordinal, ..base }, b"", &gap.encode());
    }
    for number in 0..100u64 {
        let arrival = times(number as i64 * 1_000_000);
        let data = vec![number as u8; number as usize];
        put(
            Row { stream: (number % 3) as u16, ordinal: Ordinal(5000 + number), arrival, ..base },
            b"",
            &data,
        );
    }
    slot
}

fn commit(fill: impl FnOnce(&mut CommitWriter<'_>)) -> Vec<u8> {
    let mut buffer = vec![0; 32768];
    let mut writer = CommitWriter::new(&mut buffer);
    fill(&mut writer);
    let head = CommitHead {
        ring: RING,
        generation: 12,
        number: 345,
        epoch: Epoch(6),
        begins: true,
        part: true,
        ends: false,
    };
    let padded = writer.finish(&key(), &head);
    buffer.truncate(padded);
    buffer
}

#[test]
fn records_and_commits() {
    for (name, record) in records() {
        let bytes = commit(|writer| assert!(writer.push(&record)));
        golden(&format!("record-{name}.bin"), &bytes[128..128 + record.bytes()]);
    }
    let bytes = commit(|writer| records().iter().for_each(|(_, record)| assert!(writer.push(record))));
    golden("commit.bin", &bytes);

    let record = Record::Hold(HoldRecord { condition_hold: Some(condition_hold()), ..hold() });
    let by_condition = commit(|writer| assert!(writer.push(&record)));
    golden("record-hold-finding.bin", &by_condition[128..128 + record.bytes()]);
    let read = read_commit(&by_condition, &key(), RING).unwrap().1.next().unwrap();
    assert_eq!(read, Ok(record));

    let order = Some(OrderId(*b"an order's uuid."));
    let release = Record::Release { hold: HoldId(3), at: times(9), order };
    let ordered = [
        ("hold", Record::Hold(HoldRecord { order, ..hold() })),
        (
            "hold-condition",
            Record::Hold(HoldRecord { condition_hold: Some(condition_hold()), order, ..hold() }),
        ),
        ("release", release),
    ];
    for (name, record) in &ordered {
        let bytes = commit(|writer| assert!(writer.push(record)));
        golden_of("v2", &format!("record-{name}-order.bin"), &bytes[128..128 + record.bytes()]);
    }
    let bytes_of_orders =
        commit(|writer| ordered.iter().for_each(|(_, record)| assert!(writer.push(record))));
    golden_of("v2", "commit-orders.bin", &bytes_of_orders);
    let (_, found, _) = read_commit(&bytes_of_orders, &key(), RING).unwrap();
    assert!(found.map(Result::unwrap).eq(ordered.into_iter().map(|(_, record)| record)));

    let act = Record::Act(act());
    let of_an_act = commit(|writer| assert!(writer.push(&act)));
    golden("record-act.bin", &of_an_act[128..128 + act.bytes()]);
    let read = read_commit(&of_an_act, &key(), RING).unwrap().1.next().unwrap();
    assert_eq!(read, Ok(act));

    let schema_text = "src ipv4 the sender\ndst ipv4 the receiver\n".into();
    let record = Record::Stream(StreamRecord { schema: 2, schema_text, ..stream() });
    let with_schema = commit(|writer| assert!(writer.push(&record)));
    golden("record-stream-schema.bin", &with_schema[128..128 + record.bytes()]);
    let read = read_commit(&with_schema, &key(), RING).unwrap().1.next().unwrap();
    assert_eq!(read, Ok(record));
    let (_, found, _) = read_commit(&bytes, &key(), RING).unwrap();
    let made: Vec<_> = records().into_iter().map(|(_, record)| record).collect();
    assert_eq!(found.map(Result::unwrap).collect::<Vec<_>>(), made);
}

#[test]
fn an_open_slot_in_the_journal() {
    let slot = slot();
    let bytes = commit(|writer| {
        assert!(writer.push(&slot.builder.open_record()));
        assert!(slot.builder.journal_delta(&slot.buffer, Cursor::default(), writer).1);
    });
    golden("commit-open-slot.bin", &bytes);
}

#[test]
fn a_slot_of_every_kind_of_row() {
    let mut slot = slot();
    let len = slot.seal_and_compare().unwrap().bytes;
    golden("slot.bin", &slot.buffer[..len]);
    let (header, summary) = check_image(&slot.buffer[..len], &key(), RING).unwrap();
    assert_eq!(summary.entries.len(), entries().len());
    assert_eq!(read_items(&header, &summary, &slot.buffer).len(), 119);
}

#[test]
fn a_slot_with_columns_of_every_class() {
    let all = |classes: &[Class]| classes.iter().copied().collect::<Classes>();
    let words = all(&[Class::Word, Class::Word, Class::Word, Class::Word, Class::Wide]);
    let others = all(&[Class::Wide, Class::Wide, Class::Bytes, Class::Bytes, Class::Bytes]);
    let mut slot = slot_with([words, Classes::default(), others]);
    let len = slot.seal_and_compare().unwrap().bytes;
    golden("slot-columns.bin", &slot.buffer[..len]);
}

/// What was written before blocks were told of, and before it was told of all columns where they end, is read as it was.
#[test]
fn slots_with_columns_of_which_fewer_blocks_are_told_of() {
    let read = |name| std::fs::read(path(name)).unwrap();
    let new = read("slot-columns.bin");
    let (_, with) = check_image(&new, &key(), RING).unwrap();
    let told = |summary: &Summary| summary.sections.iter().filter(|s| s.kind == SectionKind::Bounds).count();
    let mut most = 0;
    for name in ["slot-columns-whole.bin", "slot-columns-bounds.bin"] {
        let old = read(name);
        let (header, summary) = check_image(&old, &key(), RING).unwrap();
        assert!(told(&summary) < told(&with) && header.rows > 0);
        most = most.max(told(&summary));
        let columns = summary.sections.iter().filter(|section| section.kind == SectionKind::Attribute);
        for section in columns {
            let (entry, column) = (section.entry, section.column);
            let same = with.column(entry, column).unwrap();
            assert_eq!(old[section.range()], new[same.range()], "{entry} {column}");
        }
    }
    assert!(most > 0);
}

/// Values that are in one place, and where that is.
#[test]
fn a_slot_that_tells_where_values_are() {
    let (image, _) = filled(128 << 10, 6000, common_but_some);
    let (_, summary) = check_image(&image, &key(), RING).unwrap();
    assert!(BlockBounds::has_values(summary.bounds(0, 0).unwrap()));
    golden("slot-values.bin", &image);
}

/// Numbers of as many bits as planes are made of, nulls among some.
#[test]
fn a_slot_with_numbers_in_planes() {
    const BITS: [u32; 8] = [1, 3, 6, 12, 17, 21, 44, 63];
    let classes = BITS.map(|bits| if bits == 21 { Class::Wide } else { Class::Word }).into_iter().collect();
    let mut slot = Slot::open_with(64 << 10, 9, [classes, Classes::default(), Classes::default()]);
    let number = |n: u64, bits: u32| {
        // The first two make it as many bits as there are.
        let most = (1u64 << bits) - 1;
        7 + [0, most].get(n as usize).copied().unwrap_or(n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 1 & most)
    };
    let is_null = |n: u64, bits: u32| bits.is_multiple_of(3) && n % 10 == 9;
    for n in 0..60 {
        let cells: Vec<CellBuffer> = BITS
            .into_iter()
            .zip(classes.iter())
            .map(|(bits, class)| {
                let mut buffer = CellBuffer::new(class, 1, 0);
                match class {
                    _ if is_null(n, bits) => buffer.null(),
                    Class::Wide => buffer.wide(5 << 64 | u128::from(number(n, bits))),
                    _ => buffer.word(number(n, bits)),
                }
                buffer
            })
            .collect();
        let row = Row { ordinal: Ordinal(n), arrival: times(n as i64), ..Row::default() };
        slot.builder.row_with(&mut slot.buffer, &row, CellsAt { columns: &cells, first: 0 });
    }
    let len = slot.seal().bytes;
    golden("slot-planes.bin", &slot.buffer[..len]);
    let (header, summary) = check_image(&slot.buffer[..len], &key(), RING).unwrap();
    for (column, bits) in BITS.into_iter().enumerate() {
        let wanted: Vec<_> = (0..60)
            .map(|n| {
                let wide = 5 << 64 | u128::from(number(n, bits));
                let value = if bits == 21 { Value::Wide(wide) } else { Value::Word(number(n, bits)) };
                (!is_null(n, bits)).then_some(value)
            })
            .collect();
        assert_eq!(read_column(&header, &summary, &slot.buffer, 0, column as u16), wanted, "{bits} bits");
    }
}
