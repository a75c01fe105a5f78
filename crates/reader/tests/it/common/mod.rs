//! Rings made by the format alone, and what a reader of them must give.
#![allow(dead_code, unreachable_pub, reason = "each test uses a part of it")]
#![allow(clippy::unwrap_used, reason = "a test helper")]

pub mod recorder;
#[path = "../../../../protocol/tests/it/common/well.rs"]
pub mod well;

use holdfast_base::{Age, Epoch, HoldId, LaneNo, Ordinal, RingId, Sequence, SlotNo, StreamId, Timestamp};
use holdfast_format::{
    Builder, CellBuffer, CellsAt, Class, Codec, CommitHead, CommitWriter, Counters, Cursor, Entry, Flags,
    Gap, Geometry, Key, Kind, Name, OpenOutline, OpenSlotPart, OpenSlotQuery, Record, Row, SlotFlags, SlotId,
    SlotState, StreamKind, StreamRecord, Superblock, TableEntry,
};
use holdfast_media::{Image, MemoryDisk};
use holdfast_protocol::LinkError;
use holdfast_protocol::wire::OpenWanted;
use holdfast_reader::{Item, Missing, Plan, ReadReport, RingReader, Selection};
use std::collections::BTreeSet;
use std::ops::ControlFlow;

/// An item that owns what it tells of.
#[derive(Clone, PartialEq)]
pub enum Given {
    Preamble(u32, u32, Vec<u8>),
    Element {
        stream: u32,
        ordinal: u64,
        first: i64,
        arrival: i64,
        event: Option<i64>,
        meta: Vec<u8>,
        data: Vec<u8>,
    },
    Gap(u32, u64, Gap),
    Note(u32, i64, Vec<u8>),
    Partial(u32, u64, Missing),
    Damaged(u64, String),
    Expired(u64, u64),
}

/// Short enough to be read: contents by length and check.
impl std::fmt::Debug for Given {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let sum = |bytes: &[u8]| format!("{}/{:08x}", bytes.len(), holdfast_format::crc32c(bytes));
        match self {
            Self::Preamble(stream, version, bytes) => write!(f, "preamble {stream} {version} {}", sum(bytes)),
            Self::Element { stream, ordinal, first, arrival, event, meta, data } => write!(
                f,
                "element {stream}.{ordinal} {first}..{arrival} {event:?} {} {}",
                sum(meta),
                sum(data)
            ),
            Self::Gap(stream, ordinal, gap) => write!(f, "gap {stream}.{ordinal} {gap:?}"),
            Self::Note(stream, arrival, meta) => write!(f, "note {stream} {arrival} {}", sum(meta)),
            Self::Partial(stream, ordinal, why) => write!(f, "partial {stream}.{ordinal}: {why}"),
            Self::Damaged(sequence, place) => write!(f, "damaged {sequence}: {place}"),
            Self::Expired(from, to) => write!(f, "expired {from}..={to}"),
        }
    }
}

impl Given {
    pub fn of(item: &Item<'_>) -> Option<Self> {
        Some(match *item {
            Item::Preamble { stream, version, bytes } => Self::Preamble(stream.0, version, bytes.to_vec()),
            Item::Element(element) => Self::Element {
                stream: element.stream.0,
                ordinal: element.ordinal.0,
                first: element.first.0,
                arrival: element.arrival.0,
                event: element.event.map(|event| event.0),
                meta: element.meta.to_vec(),
                data: element.data.to_vec(),
            },
            Item::Gap { stream, ordinal, gap } => Self::Gap(stream.0, ordinal.0, gap),
            Item::Note { stream, arrival, meta, .. } => Self::Note(stream.0, arrival.0, meta.to_vec()),
            Item::Partial { stream, ordinal, why } => Self::Partial(stream.0, ordinal.0, why),
            Item::Damaged { sequence, place, .. } => Self::Damaged(sequence.0, place.to_owned()),
            Item::Expired { from, to, .. } => Self::Expired(from.0, to.0),
            Item::Progress { .. } => return None,
        })
    }

    pub fn is_element(&self) -> bool {
        matches!(self, Self::Element { .. })
    }
}

/// Something that was recorded, and the slots it lies in.
#[derive(Clone, Debug)]
pub struct Recorded {
    pub given: Given,
    pub from: u64,
    pub to: u64,
}

/// Reads everything of a selection.
pub fn read(reader: &mut RingReader, selection: &Selection) -> Result<(Vec<Given>, ReadReport), LinkError> {
    let plan = reader.plan(selection)?;
    follow(reader, &plan)
}

/// What a plan leads to.
pub fn follow(reader: &mut RingReader, plan: &Plan) -> Result<(Vec<Given>, ReadReport), LinkError> {
    let mut given = Vec::new();
    let mut progress = 0;
    let report = reader.read(plan, &mut |item| {
        if let Item::Progress { bytes } = item {
            assert!(bytes >= progress && bytes <= plan.bytes, "{progress} {bytes} {}", plan.bytes);
            progress = bytes;
        }
        given.extend(Given::of(&item));
        ControlFlow::Continue(())
    })?;
    Ok((given, report))
}

/// What the bytes of an element come to in its column.
type Word = fn(&[u8]) -> u64;

/// Records into a ring in memory.
pub struct Maker {
    pub superblock: Superblock,
    pub image: Image,
    builder: Builder,
    buffer: Vec<u8>,
    open: bool,
    pub sequence: u64,
    pub table: Vec<TableEntry>,
    pub entries: Vec<Entry>,
    pub preambles: Vec<(u32, u32, Vec<u8>)>,
    /// By stream (by place).
    pub schemas: Vec<String>,
    /// By stream: what an element has in its only column, where it has one. See [`Maker::column`].
    words: Vec<Option<Word>>,
    pub recorded: Vec<Recorded>,
    slot_bytes: usize,
    /// Sequences that never expire.
    pub held: BTreeSet<u64>,
    /// How long the fragments of an element take to arrive.
    pub slow: i64,
}

pub const KEY: Key = Key([9; 32]);

impl Maker {
    pub fn new(slot_bytes: u64, slots: u64, streams: usize) -> Self {
        let lane_bytes = (1 << 20) + (4 + slots) * slot_bytes;
        let geometry = Geometry::for_lane(lane_bytes, slot_bytes, Vec::new()).unwrap();
        let ring = RingId(*b"a ring for tests");
        let superblock = Superblock {
            generation: 1,
            ring,
            group: ring,
            key: KEY,
            created: Timestamp(1),
            geometry,
            lane: LaneNo(0),
            lanes: 1,
            n: 1,
            k: 0,
            codec: Codec::None,
            prefilled: false,
            reserve: 1,
            name: "test".to_owned(),
            lane_ids: Vec::new(),
            terms: None,
        };
        let entries = (0..streams).map(|number| Entry {
            stream: StreamId(number as u32 + 1),
            kind: StreamKind::Bytes,
            name: Name::new(&format!("s{number}")).unwrap(),
            ..Entry::default()
        });
        Self {
            image: Image::new(lane_bytes),
            builder: Builder::new(slot_bytes, streams),
            buffer: vec![0; slot_bytes as usize],
            open: false,
            sequence: 0,
            table: vec![TableEntry::default(); superblock.geometry.slots as usize],
            entries: entries.collect(),
            preambles: Vec::new(),
            schemas: vec![String::new(); streams],
            words: vec![None; streams],
            recorded: Vec::new(),
            slot_bytes: slot_bytes as usize,
            held: BTreeSet::new(),
            slow: 0,
            superblock,
        }
    }

    /// Gives a stream (by place) a column, before anything is recorded: `word` tells what the elements that come in one piece have
    /// in it.
    pub fn column(&mut self, stream: usize, schema: &str, word: Word) {
        schema.clone_into(&mut self.schemas[stream]);
        self.words[stream] = Some(word);
        self.entries[stream].classes = std::iter::once(Class::Word).collect();
        self.builder.prepare(&self.entries).unwrap();
    }

    /// Gives a stream (by place) another preamble: seals the open slot.
    pub fn preamble(&mut self, stream: usize, bytes: &[u8]) {
        self.seal();
        self.entries[stream].preamble += 1;
        let (id, version) = (self.entries[stream].stream.0, self.entries[stream].preamble);
        self.preambles.push((id, version, bytes.to_vec()));
    }

    fn begin(&mut self) {
        if !self.open {
            self.sequence += 1;
            let id = SlotId {
                ring: self.superblock.ring,
                group: self.superblock.group,
                lane: LaneNo(0),
                sequence: Sequence(self.sequence),
                epoch: Epoch(1),
                age: Age(self.sequence),
            };
            self.builder.open(&mut self.buffer, id, Timestamp(0), &self.entries).unwrap();
            self.open = true;
        }
    }

    fn row(&mut self, row: &Row, meta: &[u8], data: &[u8]) {
        self.builder.write(&mut self.buffer, meta);
        self.builder.write(&mut self.buffer, data);
        let mut cells = Vec::new();
        if let Some(word) = self.words[usize::from(row.stream)].filter(|_| row.completes_element()) {
            let mut column = CellBuffer::new(Class::Word, 1, 0);
            column.word(word(data));
            cells.push(column);
        }
        self.builder.row_with(&mut self.buffer, row, CellsAt { columns: &cells, first: 0 });
    }

    /// Room for a row with so many bytes, in a new slot where it must be.
    fn make_room(&mut self, bytes: usize) {
        self.begin();
        if self.builder.room() < bytes.max(1) {
            self.seal();
            self.begin();
        }
    }

    fn ordinal(&self, stream: usize) -> Ordinal {
        if self.open {
            self.builder.counters(stream as u16).next_ordinal
        } else {
            self.entries[stream].counters.next_ordinal
        }
    }

    /// Records an element; one over C/8 becomes fragments, and `cut` at least so many even when it is smaller.
    pub fn element(
        &mut self,
        stream: usize,
        arrival: i64,
        event: Option<i64>,
        meta: &[u8],
        data: &[u8],
        cut: usize,
    ) {
        self.begin();
        let ordinal = self.ordinal(stream);
        let flags = if event.is_some() { Flags::EVENT } else { Flags::default() };
        let base = Row {
            stream: stream as u16,
            flags,
            ordinal,
            arrival: Timestamp(arrival),
            span: 3,
            event: Timestamp(event.unwrap_or(0)),
            tag: 7,
            ..Row::default()
        };
        let from;
        let mut first = arrival - 3;
        if data.len() + meta.len() <= self.slot_bytes / 8 && cut < 2 {
            self.make_room(data.len() + meta.len());
            from = self.sequence;
            let row = Row { meta: meta.len() as u16, len: data.len() as u32, ..base };
            self.row(&row, meta, data);
        } else {
            self.make_room(meta.len() + 1);
            from = self.sequence;
            first = self.fragments(&base, meta, data, cut) - 3;
        }
        let to = self.sequence;
        let stream = self.entries[stream].stream.0;
        let given = Given::Element {
            stream,
            ordinal: ordinal.0,
            first,
            arrival,
            event,
            meta: meta.to_vec(),
            data: data.to_vec(),
        };
        self.recorded.push(Recorded { given, from, to });
    }

    fn fragments(&mut self, base: &Row, meta: &[u8], data: &[u8], cut: usize) -> i64 {
        let most = data.len().div_ceil(cut.max(1)).max(1);
        let (mut offset, mut number) = (0, 0);
        let mut first = None;
        loop {
            let meta = if number == 0 { meta } else { &[] };
            self.make_room(meta.len() + 1);
            let len = (self.builder.room() - meta.len()).min(most).min(data.len() - offset);
            let last = offset + len == data.len();
            let left = (data.len() - offset - len) as i64;
            let arrival = Timestamp(base.arrival.0 - self.slow * left / data.len().max(1) as i64);
            first.get_or_insert(arrival.0);
            let row = Row {
                kind: Kind::Fragment,
                flags: if last { base.flags | Flags::LAST } else { base.flags },
                meta: meta.len() as u16,
                len: len as u32,
                number,
                arrival,
                offset: offset as u64,
                ..*base
            };
            self.row(&row, meta, &data[offset..offset + len]);
            offset += len;
            number += 1;
            if last {
                return first.unwrap();
            }
        }
    }

    /// Records the first part of an element and breaks it off.
    pub fn aborted(&mut self, stream: usize, arrival: i64, data: &[u8]) {
        self.make_room(data.len());
        let ordinal = self.ordinal(stream);
        let base = Row { stream: stream as u16, ordinal, arrival: Timestamp(arrival), ..Row::default() };
        let from = self.sequence;
        self.row(&Row { kind: Kind::Fragment, len: data.len() as u32, ..base }, &[], data);
        self.make_room(1);
        self.row(&Row { kind: Kind::Abort, ..base }, &[], &[]);
        let given = Given::Partial(self.entries[stream].stream.0, ordinal.0, Missing::Aborted);
        self.recorded.push(Recorded { given, from, to: self.sequence });
    }

    pub fn gap(&mut self, stream: usize, arrival: i64, gap: Gap) {
        self.make_room(Gap::BYTES);
        let ordinal = self.ordinal(stream);
        let row = Row {
            stream: stream as u16,
            kind: Kind::Gap,
            ordinal,
            arrival: Timestamp(arrival),
            len: Gap::BYTES as u32,
            ..Row::default()
        };
        self.row(&row, &[], &gap.encode());
        let given = Given::Gap(self.entries[stream].stream.0, ordinal.0, gap);
        self.recorded.push(Recorded { given, from: self.sequence, to: self.sequence });
    }

    pub fn note(&mut self, stream: usize, arrival: i64, meta: &[u8]) {
        self.make_room(meta.len());
        let row = Row {
            stream: stream as u16,
            kind: Kind::Note,
            meta: meta.len() as u16,
            arrival: Timestamp(arrival),
            ..Row::default()
        };
        self.row(&row, meta, &[]);
        let given = Given::Note(self.entries[stream].stream.0, arrival, meta.to_vec());
        self.recorded.push(Recorded { given, from: self.sequence, to: self.sequence });
    }

    /// Seals the open slot and puts it in its place.
    pub fn seal(&mut self) {
        if !self.open {
            return;
        }
        self.open = false;
        let free = self.table.iter().enumerate().filter(|(_, e)| !self.held.contains(&e.sequence.0));
        let oldest = free.min_by_key(|(_, e)| e.sequence.0).unwrap().0;
        let place = SlotNo(oldest as u32);
        let sealed = self.builder.seal(&mut self.buffer, &KEY, place, Timestamp(0), SlotFlags::default());
        for (number, entry) in self.entries.iter_mut().enumerate() {
            entry.counters = self.builder.counters(number as u16);
            entry.began = self.builder.began(number as u16);
        }
        self.image.write(self.superblock.geometry.slot_offset(place), &self.buffer[..sealed.bytes]);
        self.table[place.0 as usize] = TableEntry {
            sequence: Sequence(self.sequence),
            age: Age(self.sequence),
            state: SlotState::Data,
            ..TableEntry::default()
        };
    }

    /// The oldest sequence that is left.
    pub fn oldest(&self) -> u64 {
        self.table.iter().map(|entry| entry.sequence.0).filter(|sequence| *sequence > 0).min().unwrap_or(1)
    }

    fn stream_records(&self) -> Vec<StreamRecord> {
        let records = self.entries.iter().zip(&self.schemas).map(|(entry, schema)| StreamRecord {
            id: entry.stream,
            kind: entry.kind,
            preamble: entry.preamble,
            name: entry.name.as_str().to_owned(),
            counters: entry.counters,
            framing: "lines".to_owned(),
            schema: schema.lines().count() as u32,
            schema_text: schema.clone(),
            ..StreamRecord::default()
        });
        records.collect()
    }

    pub fn counters(&self, stream: usize) -> Counters {
        if self.open { self.builder.counters(stream as u16) } else { self.entries[stream].counters }
    }

    /// Whether a slot is open.
    pub fn is_open(&self) -> bool {
        self.open
    }

    /// What the open slot has of an attribute of a stream.
    pub fn outline(&self, stream: StreamId, attribute: u16, values: &[u64]) -> Option<OpenOutline> {
        let entry = self.entries.iter().position(|entry| entry.stream == stream)?;
        self.builder.outline(entry as u16, attribute, values)
    }

    /// What is told of the open slot beyond a cursor.
    pub fn write_open_slot(
        &mut self,
        cursor: u64,
        wanted: &OpenWanted,
        most: usize,
    ) -> (Vec<u8>, OpenSlotPart) {
        let of = |stream| self.entries.iter().position(|entry| entry.stream == stream);
        let entry = wanted.stream.map(|stream| of(stream).map_or(u16::MAX, |at| at as u16));
        let ask = OpenSlotQuery { entry, rows: wanted.rows, columns: &wanted.columns };
        let mut parts = vec![0; most];
        let told = self.builder.write_open_slot(&self.buffer, cursor.into(), &ask, &mut parts);
        parts.truncate(told.bytes);
        (parts, told)
    }

    /// What the open slot's payload has from byte `at` of the slot on; `false`: nothing of it lies there.
    pub fn open_payload(&self, at: usize, into: &mut [u8]) -> bool {
        self.builder.copy_payload(&self.buffer, at, into)
    }

    /// The lane as a crash would leave it: superblocks, a journal with the table and with what the open slot has.
    pub fn lane(&self) -> Image {
        let mut image = self.image.clone();
        for offset in Superblock::OFFSETS {
            image.write(offset, &self.superblock.encode());
        }
        let mut at = self.superblock.geometry.extent_offset(0);
        let mut number = 1;
        let commit_bytes = self.superblock.geometry.commit_bytes();
        let mut commit = |image: &mut Image, snapshot: bool, fill: &mut dyn FnMut(&mut CommitWriter<'_>)| {
            let mut bytes = vec![0; commit_bytes];
            let mut writer = CommitWriter::new(&mut bytes);
            fill(&mut writer);
            let head = CommitHead {
                ring: self.superblock.ring,
                generation: 1,
                number,
                epoch: Epoch(1),
                begins: snapshot,
                part: snapshot,
                ends: snapshot,
            };
            let len = writer.finish(&KEY, &head);
            image.write(at, &bytes[..len]);
            at += len as u64;
            number += 1;
        };
        commit(&mut image, true, &mut |writer| {
            let zero = Timestamp(0);
            assert!(writer.push(&Record::Epoch { epoch: Epoch(1), arrival: zero, wall: zero, clean: true }));
            assert!(writer.push(&Record::Table { first: SlotNo(0), entries: self.table.clone() }));
            for stream in self.stream_records() {
                assert!(writer.push(&Record::Stream(stream)));
            }
            for (stream, version, bytes) in &self.preambles {
                assert!(writer.push(&Record::Preamble {
                    stream: StreamId(*stream),
                    version: *version,
                    total: bytes.len() as u32,
                    offset: 0,
                    last: Sequence(self.sequence),
                    bytes,
                }));
            }
            let next = Sequence(self.sequence + u64::from(!self.open));
            assert!(writer.push(&Record::Runway { naming: next, slots: Vec::new() }));
            assert!(writer.push(&Record::Next {
                sequence: next,
                hold: HoldId(1),
                stream: StreamId(99),
                acts: 0
            }));
        });
        if self.open {
            let mut cursor = Cursor::default();
            let mut first = true;
            loop {
                let mut end = false;
                commit(&mut image, false, &mut |writer| {
                    if first {
                        assert!(writer.push(&self.builder.open_record()));
                    }
                    (cursor, end) = self.builder.journal_delta(&self.buffer, cursor, writer);
                });
                first = false;
                if end {
                    break;
                }
            }
        }
        image
    }

    /// A reader without a recorder.
    pub fn direct(&self) -> RingReader {
        RingReader::over(Box::new(MemoryDisk::from_image(self.lane()))).unwrap()
    }

    /// What a whole read must give, preambles left out, when all before `oldest` has expired.
    pub fn all(&self, oldest: u64) -> Vec<Given> {
        let mut all = Vec::new();
        for recorded in self.recorded.iter().filter(|recorded| recorded.to >= oldest) {
            match &recorded.given {
                Given::Element { stream, ordinal, .. } if recorded.from < oldest => {
                    all.push(Given::Partial(*stream, *ordinal, Missing::Expired));
                }
                given => all.push(given.clone()),
            }
        }
        all
    }
}

/// Bytes that no two places have alike.
pub fn bytes(seed: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    holdfast_media::Seed::new(seed).fill(&mut bytes);
    bytes
}
