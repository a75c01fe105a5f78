//! Fixture of the format's targets: a ring, its key, and small images made by the product's own writers.

use holdfast_base::{
    Age, Epoch, HoldId, LaneNo, OrderId, Ordinal, RingId, Sequence, SlotNo, StreamId, Timestamp,
};
use holdfast_format::{
    Act, ActRecord, Builder, Cause, CellBuffer, CellsAt, Class, Classes, Codec, CommitHead, CommitWriter,
    ConditionHold, CopyRecord, Counters, Cursor, Entry, Flags, Gap, Geometry, HoldRecord, Key, Kind, Name,
    PurgeRecord, Record, Region, Row, SlotFlags, SlotId, SlotState, StreamKind, StreamRecord, Superblock,
    TableEntry,
};

/// The ring of all seeds.
pub(crate) const RING: RingId = RingId(*b"ring under fire!");

/// Its slot size: the smallest, so that a run is short.
pub(crate) const SLOT: u64 = 64 << 10;

const NOW: i64 = 1_795_000_000_000_000_000;

/// Its key.
pub(crate) fn key() -> Key {
    Key([0x5a; 32])
}

/// A lane with a stretch that has no slots.
pub(crate) fn geometry() -> Geometry {
    let skipped = vec![Region { offset: (1 << 20) + 6 * SLOT, bytes: 8192 }];
    Geometry::for_lane((1 << 20) + 16 * SLOT, SLOT, skipped).unwrap_or(Geometry {
        lane_bytes: 0,
        slot_bytes: SLOT,
        slots: 0,
        skipped: Vec::new(),
    })
}

/// Its superblock.
pub(crate) fn superblock() -> Superblock {
    Superblock {
        version: Superblock::VERSION,
        generation: 3,
        ring: RING,
        group: RING,
        key: key(),
        created: Timestamp(NOW),
        geometry: geometry(),
        lane: LaneNo(0),
        lanes: 1,
        n: 1,
        k: 0,
        codec: Codec::None,
        prefilled: false,
        reserve: 1,
        name: "fire".to_owned(),
        lane_ids: vec![RING],
        terms: None,
    }
}

/// The streams of a slot.
pub(crate) fn entries() -> Vec<Entry> {
    let attributes = [Class::Word, Class::Wide, Class::Bytes, Class::Bytes].into_iter().collect();
    [(1, StreamKind::Bytes, "lines", Classes::default()), (2, StreamKind::Packets, "eth0", attributes)]
        .into_iter()
        .filter_map(|(id, kind, name, classes)| {
            let name = Name::new(name).ok()?;
            let counters = Counters { received: 5, next_ordinal: Ordinal(5), ..Counters::default() };
            Some(Entry { stream: StreamId(id), kind, name, preamble: id - 1, classes, counters, began: None })
        })
        .collect()
}

/// What a slot with this sequence is.
pub(crate) fn slot_id(sequence: u64) -> SlotId {
    SlotId {
        ring: RING,
        group: RING,
        lane: LaneNo(0),
        sequence: Sequence(sequence),
        epoch: Epoch(2),
        age: Age(sequence),
    }
}

/// An open slot with `rows` rows of every kind.
pub(crate) fn open_slot(sequence: u64, rows: u64) -> (Builder, Vec<u8>) {
    let mut buffer = vec![0; SLOT as usize];
    let mut builder = Builder::new(SLOT, 2);
    if builder.prepare(&entries()).is_err()
        || builder.open(&mut buffer, slot_id(sequence), Timestamp(NOW), &entries()).is_err()
    {
        return (builder, buffer);
    }
    let cells = cells(rows);
    let mut first = 0;
    let mut next = [5u64; 2];
    for n in 0..rows {
        let stream = (n % 2) as u16;
        let kind = [Kind::Element, Kind::Element, Kind::Fragment, Kind::Gap, Kind::Note][n as usize % 5];
        let gap = Gap {
            ordinals: 3,
            elements: (n % 2 == 0).then_some(3),
            bytes: None,
            first: Timestamp(NOW),
            last: Timestamp(NOW + 9),
            cause: Cause::Kernel,
            note: n,
        };
        let data =
            if kind == Kind::Gap { gap.encode().to_vec() } else { vec![n as u8 | 1; (n * 7 % 40) as usize] };
        let ordinal = &mut next[usize::from(stream)];
        let flags = if n % 3 == 0 { Flags::EVENT | Flags::LAST } else { Flags::LAST };
        let row = Row {
            stream,
            kind,
            flags,
            tag: stream,
            meta: if kind == Kind::Note { 4 } else { 0 },
            len: if kind == Kind::Note { 0 } else { data.len() as u32 },
            extra: (n % 4) as u32,
            ordinal: Ordinal(*ordinal),
            arrival: Timestamp(NOW + 1000 * n as i64),
            span: n,
            event: Timestamp(NOW - 50),
            ..Row::default()
        };
        let bytes = if kind == Kind::Note { vec![9; 4] } else { data };
        if builder.room() < bytes.len().max(1) {
            break;
        }
        builder.write(&mut buffer, &bytes);
        builder.row_with(&mut buffer, &row, CellsAt { columns: &cells, first });
        first += usize::from(stream == 1 && row.completes_element());
        *ordinal += if kind == Kind::Gap { 3 } else { u64::from(row.ends_element()) };
    }
    (builder, buffer)
}

/// Cells for so many rows of the stream that has attributes: different words, few wide ones, texts of which few differ, and of
/// which most are null.
fn cells(rows: u64) -> Vec<CellBuffer> {
    let classes = entries().last().map(|entry| entry.classes).unwrap_or_default();
    let mut columns: Vec<_> =
        classes.iter().map(|class| CellBuffer::new(class, rows as usize, 64 * rows as usize)).collect();
    for n in 0..rows {
        for (number, column) in columns.iter_mut().enumerate() {
            match number {
                0 => column.word(n << (n % 50)),
                1 => column.wide(u128::from(n % 3) << 90),
                2 => column.bytes(&b"GET POST PUT"[(n % 3 * 4) as usize..]),
                _ if n % 7 == 0 => column.bytes(&n.to_le_bytes()),
                _ => column.null(),
            }
        }
    }
    columns
}

/// A sealed slot, cut to its bytes.
pub(crate) fn sealed_slot(slot: u32, sequence: u64, rows: u64) -> Vec<u8> {
    let (mut builder, mut buffer) = open_slot(sequence, rows);
    let sealed = builder.seal(&mut buffer, &key(), SlotNo(slot), Timestamp(NOW + 5), SlotFlags::default());
    buffer.truncate(sealed.bytes);
    buffer
}

fn hold() -> HoldRecord {
    HoldRecord {
        id: HoldId(4),
        created: Timestamp(NOW),
        until: Timestamp::MAX,
        from: Timestamp(NOW - 5),
        to: Timestamp(NOW + 5),
        first_ordinal: Ordinal(1),
        end_ordinal: Ordinal(9),
        by_time: true,
        by_ordinal: false,
        by_event: false,
        streams: vec![StreamId(1)],
        sequences: vec![(Sequence(2), Sequence(3)), (Sequence(7), Sequence(7))],
        reason: "a fault".to_owned(),
        owner: "me".to_owned(),
        condition_hold: None,
        order: None,
    }
}

/// One that looks for something.
fn hold_by_condition() -> HoldRecord {
    let condition_hold = ConditionHold {
        condition: "len > 9".to_owned(),
        before: 5,
        after: 7,
        standing: true,
        distil: true,
        sample: Some((3, 60)),
        when: Some(("count(*) > 3".to_owned(), 99)),
        quota: 4,
        watermarks: vec![(StreamId(1), Ordinal(5)), (StreamId(2), Ordinal(0))],
    };
    HoldRecord {
        id: HoldId(5),
        sequences: Vec::new(),
        condition_hold: Some(condition_hold),
        order: Some(OrderId([9; 16])),
        ..hold()
    }
}

fn stream(entry: &Entry) -> StreamRecord {
    StreamRecord {
        id: entry.stream,
        kind: entry.kind,
        preamble: entry.preamble,
        schema: 1,
        schema_text: "len uint".to_owned(),
        created: Timestamp(NOW),
        counters: entry.counters,
        name: entry.name.to_string(),
        framing: "lines".to_owned(),
    }
}

fn purge() -> PurgeRecord {
    PurgeRecord {
        at: Timestamp(NOW),
        stream: Some(StreamId(1)),
        by_time: true,
        by_ordinal: false,
        by_event: false,
        from: Timestamp(NOW),
        to: Timestamp(NOW + 1),
        first_ordinal: Ordinal(0),
        end_ordinal: Ordinal(0),
        elements: 3,
        bytes: 99,
        dropped: 3,
        reason: "the law".to_owned(),
        owner: "me".to_owned(),
    }
}

fn act() -> ActRecord {
    ActRecord {
        number: 9,
        act: Act::Export,
        at: Timestamp(NOW),
        hold: HoldId(5),
        stream: Some(StreamId(1)),
        by_ordinal: true,
        end_ordinal: Ordinal(7),
        reason: "a fault".to_owned(),
        owner: "me".to_owned(),
        ..ActRecord::default()
    }
}

fn table() -> Vec<TableEntry> {
    (0..geometry().slots)
        .map(|no| TableEntry {
            sequence: Sequence(u64::from(no)),
            age: Age(u64::from(no)),
            state: [SlotState::Free, SlotState::Data, SlotState::Data, SlotState::Bad][no as usize % 4],
            damaged: no == 6,
            purged: false,
        })
        .collect()
}

/// A record of every kind, with what the journal has of slot 20 while it is open last.
fn fill(writer: &mut CommitWriter<'_>) {
    let (builder, buffer) = open_slot(20, 30);
    writer.push(&Record::Recovery(&superblock().to_recovery_string()));
    writer.push(&Record::Epoch {
        epoch: Epoch(2),
        arrival: Timestamp(NOW),
        wall: Timestamp(NOW),
        clean: true,
    });
    writer.push(&Record::Next { sequence: Sequence(12), hold: HoldId(5), stream: StreamId(3), acts: 9 });
    writer.push(&Record::Geometry { lane_bytes: geometry().lane_bytes, slots: geometry().slots });
    writer.push(&Record::Table { first: SlotNo(0), entries: table() });
    for entry in &entries() {
        writer.push(&Record::Stream(stream(entry)));
    }
    writer.push(&Record::Preamble {
        stream: StreamId(2),
        version: 1,
        total: 8,
        offset: 0,
        last: Sequence(9),
        bytes: b"preamble",
    });
    writer.push(&Record::Hold(hold()));
    writer.push(&Record::Hold(hold_by_condition()));
    writer.push(&Record::Release { hold: HoldId(3), at: Timestamp(NOW), order: Some(OrderId([7; 16])) });
    writer.push(&Record::BadSlot { slot: SlotNo(3) });
    writer.push(&Record::ClockStep {
        epoch: Epoch(2),
        arrival: Timestamp(NOW),
        before: Timestamp(NOW),
        after: Timestamp(NOW + 7),
    });
    writer.push(&Record::Purged(purge()));
    writer.push(&Record::Act(act()));
    writer.push(&Record::Freed { sequences: vec![Sequence(5)] });
    writer.push(&Record::Replaced {
        originals: vec![Sequence(6)],
        copies: vec![CopyRecord { slot: SlotNo(7), sequence: Sequence(11), age: Age(6) }],
    });
    writer.push(&Record::Runway { naming: Sequence(12), slots: vec![SlotNo(0), SlotNo(4), SlotNo(8)] });
    writer.push(&builder.open_record());
    builder.journal_delta(&buffer, Cursor::default(), writer);
}

/// A commit, cut to its bytes.
pub(crate) fn commit(records: impl FnOnce(&mut CommitWriter<'_>), number: u64) -> Vec<u8> {
    let mut buffer = vec![0; SLOT as usize];
    let mut writer = CommitWriter::new(&mut buffer);
    records(&mut writer);
    let head = CommitHead {
        ring: RING,
        generation: 1,
        number,
        epoch: Epoch(2),
        begins: number == 1,
        part: number == 1,
        ends: number == 1,
    };
    let len = writer.finish(&key(), &head);
    buffer.truncate(len);
    buffer
}

/// A snapshot with a record of every kind.
pub(crate) fn snapshot() -> Vec<u8> {
    commit(fill, 1)
}

/// A commit that ends a run.
pub(crate) fn clean_end() -> Vec<u8> {
    let end = |writer: &mut CommitWriter<'_>| {
        writer.push(&Record::CleanEnd { arrival: Timestamp(NOW + 9) });
    };
    commit(end, 2)
}
