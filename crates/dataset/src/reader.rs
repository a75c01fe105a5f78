//! Reader of a dataset: opens it by its end, and gives items of a range, each part verified by its hash.

use crate::chunks::CHUNK_HEAD;
use crate::compression::decompress;
use crate::error::DatasetError;
use crate::evacuate::failure;
use crate::events::{GapMessage, NoteMessage};
use crate::index::{Row, RowReader};
use crate::manifest::{ChunkEntry, IndexPart, Manifest, NAME, PreambleEntry, StreamEntry, VERSION};
use crate::mcap_writer::Position;
use crate::records::{HEAD, MAGIC, MESSAGE_HEAD, record};
use crate::storage::{FilePart, LocalFile, RangeRead, is_mcap};
use bytes::Bytes;
use holdfast_base::failure::Failure;
use holdfast_base::{Ordinal, StreamId, Timestamp};
use holdfast_format::{Counters, Flags, Gap, StreamKind};
use holdfast_reader::{Element, Item, Selection};
use holdfast_ring::{Range, StreamStatus};
use mcap::parse_record;
use mcap::records::{AttachmentIndex, Channel, ChunkIndex, Footer, Record, SchemaHeader, Statistics, op};
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes at the end of a file that are read first.
const TAIL: u64 = 64 << 10;

/// Bytes of a summary, and of a manifest, at most: some millions of chunks.
const MOST_SUMMARY: u64 = 1 << 30;

/// Bytes of the footer record and the magic behind it.
pub(crate) const FOOTER: usize = HEAD + 20 + MAGIC.len();

/// Summary of an MCAP file, as far as datasets need it.
#[derive(Debug, Default)]
pub(crate) struct Summary {
    pub(crate) chunks: Vec<ChunkIndex>,
    pub(crate) attachments: Vec<AttachmentIndex>,
    pub(crate) schemas: Vec<SchemaHeader>,
    pub(crate) channels: Vec<Channel>,
    pub(crate) statistics: Option<Statistics>,
}

/// Dataset that is open for reading.
pub struct Dataset {
    file: Arc<dyn RangeRead>,
    id: String,
    manifest: Manifest,
    /// The chunk that was read last, decompressed.
    last: Mutex<Option<(u32, Arc<Vec<u8>>)>>,
}

/// Counts of a read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadCounts {
    /// Number of elements given.
    pub elements: u64,
    /// Bytes of their payloads.
    pub bytes: u64,
}

impl std::fmt::Debug for Dataset {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Dataset")
            .field("file", &self.file.name())
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

/// True for an MCAP file that is a dataset, or a damaged one: MCAP files of other programs have no manifest.
pub fn is_dataset(path: &Path) -> bool {
    if !is_mcap(path) {
        return false;
    }
    let found = LocalFile::open(path).map_err(DatasetError::from).and_then(|file| read_manifest(&file));
    !matches!(found, Err(DatasetError::NoManifest | DatasetError::NotMcap(_)))
}

/// Reads the id and the manifest of a dataset.
pub fn read_manifest(file: &dyn RangeRead) -> Result<(String, Manifest), DatasetError> {
    let summary = summary(file)?;
    let index = summary.attachments.iter().rev().find(|attachment| attachment.name == NAME);
    let bytes = attachment(file, index.ok_or(DatasetError::NoManifest)?)?;
    let id = blake3::hash(&bytes).to_hex().to_string();
    let version = serde_json::from_slice::<serde_json::Value>(&bytes)
        .map_err(|error| DatasetError::damaged("the manifest", &error))?;
    let version = version.get("version").and_then(serde_json::Value::as_u64).unwrap_or_default();
    if version != u64::from(VERSION) {
        return Err(DatasetError::Version(version as u32));
    }
    let manifest: Manifest =
        serde_json::from_slice(&bytes).map_err(|error| DatasetError::damaged("the manifest", &error))?;
    // Hashes are believed of the manifest alone; the summary must lead to the same chunks.
    let agree = summary.chunks.len() == manifest.chunks.len()
        && summary.chunks.iter().zip(&manifest.chunks).all(|(index, entry)| {
            index.chunk_start_offset == entry.offset && index.chunk_length == entry.length
        });
    if !agree {
        return Err(DatasetError::damaged("the summary", "its chunks are not those of the manifest"));
    }
    Ok((id, manifest))
}

impl Dataset {
    /// Opens a dataset by the end of its file.
    pub fn open(file: Arc<dyn RangeRead>) -> Result<Self, DatasetError> {
        let (id, manifest) = read_manifest(&*file)?;
        Ok(Self { file, id, manifest, last: Mutex::default() })
    }

    /// Opens the dataset in a local file.
    pub fn open_file(path: &Path) -> holdfast_base::failure::Result<Self> {
        let file = LocalFile::open(path);
        let file = file.map_err(|error| Failure::io("cannot open the dataset", path, &error))?;
        Self::open(Arc::new(file)).map_err(|error| failure(&error, path))
    }

    /// Id: the BLAKE3 of the manifest, in hexadecimal digits.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Manifest of the dataset.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Streams as a reader of rings would tell them.
    pub fn streams(&self) -> Vec<StreamStatus> {
        let status = |entry: &StreamEntry| StreamStatus {
            id: StreamId(entry.id),
            name: entry.name.clone(),
            kind: if entry.kind == StreamKind::Packets.name() {
                StreamKind::Packets
            } else {
                StreamKind::Bytes
            },
            framing: entry.framing.clone(),
            created: Timestamp(entry.arrivals_ns.map_or(0, |(first, _)| first)),
            counters: Counters {
                received: entry.elements,
                received_bytes: entry.bytes,
                gaps: entry.gaps,
                next_ordinal: Ordinal(entry.ordinals.last().map_or(0, |(_, last)| last.saturating_add(1))),
                ..Counters::default()
            },
            preamble: entry.preambles.last().map_or(0, |preamble| preamble.version),
            preamble_bytes: entry.preambles.last().map_or(0, |preamble| preamble.length as u32),
            schema: 0,
        };
        self.manifest.streams.iter().map(status).collect()
    }

    /// Storage of the file.
    pub(crate) fn file(&self) -> &Arc<dyn RangeRead> {
        &self.file
    }

    /// Name of the file.
    pub fn name(&self) -> String {
        self.file.name()
    }

    /// Bytes of the file.
    pub fn size(&self) -> u64 {
        self.file.size()
    }

    /// Part of an index as a file of its own, verified.
    pub(crate) fn index_part(&self, stream: &str, part: &IndexPart) -> Result<FilePart, DatasetError> {
        let bytes = self.verified(
            &format!("the index of stream `{stream}`"),
            part.offset,
            part.length,
            &part.blake3,
        )?;
        let length = bytes.len() as u64;
        Ok(FilePart { file: Arc::new(Memory(bytes)), offset: 0, length })
    }

    /// Bytes that have this hash.
    pub(crate) fn verified(
        &self,
        place: &str,
        offset: u64,
        length: u64,
        blake3: &str,
    ) -> Result<Bytes, DatasetError> {
        let length = usize::try_from(length).map_err(|error| DatasetError::damaged(place, &error))?;
        let bytes = self.file.read(offset, length)?;
        if blake3::hash(&bytes).to_hex().as_str() == blake3 {
            Ok(bytes)
        } else {
            Err(DatasetError::damaged(place, "its bytes do not have its BLAKE3"))
        }
    }

    /// Records of a chunk, decompressed and verified.
    pub(crate) fn chunk(&self, number: u32) -> Result<Arc<Vec<u8>>, DatasetError> {
        let last = || self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, records)) = &*last()
            && *known == number
        {
            return Ok(Arc::clone(records));
        }
        let place = format!("chunk {number}");
        let entry = self.manifest.chunks.get(number as usize);
        let ChunkEntry { offset, length, blake3 } =
            entry.ok_or_else(|| DatasetError::damaged(&place, "there is no such chunk"))?;
        let bytes = self.verified(&place, *offset, *length, blake3)?;
        let records = Arc::new(records(&bytes).map_err(|cause| DatasetError::damaged(&place, &cause))?);
        *last() = Some((number, Arc::clone(&records)));
        Ok(records)
    }

    /// Preambles, gaps, notes and elements of a selection, in the order in which they were written.
    pub fn read(
        &self,
        selection: &Selection,
        sink: &mut dyn FnMut(Item<'_>) -> ControlFlow<()>,
    ) -> Result<ReadCounts, DatasetError> {
        self.read_some(selection, &|_, _| true, sink)
    }

    /// Reads a selection without the elements that `keeps` refuses by their ordinal and arrival: a chunk of which none is kept is
    /// not fetched.
    pub fn read_some(
        &self,
        selection: &Selection,
        keeps: &dyn Fn(Ordinal, Timestamp) -> bool,
        sink: &mut dyn FnMut(Item<'_>) -> ControlFlow<()>,
    ) -> Result<ReadCounts, DatasetError> {
        let wanted: Vec<&StreamEntry> =
            self.manifest.streams.iter().filter(|entry| selection.wants(StreamId(entry.id))).collect();
        let mut cursors = Vec::new();
        for entry in &wanted {
            cursors.push(Cursor::new(self, entry, &selection.range)?);
        }
        let mut events = self.events(&wanted, &selection.range)?.into_iter().peekable();
        let mut counts = ReadCounts::default();
        loop {
            let heads =
                cursors.iter().enumerate().filter_map(|(at, cursor)| Some((cursor.row.as_ref()?.at, at)));
            let next = heads.min();
            let is_event_next = |position: &Position| next.is_none_or(|(at, _)| *position < at);
            if let Some((_, event)) = events.next_if(|(position, _)| is_event_next(position)) {
                let item = match &event {
                    Event::Gap(stream, ordinal, gap) => {
                        Item::Gap { stream: *stream, ordinal: *ordinal, gap: *gap }
                    }
                    Event::Note(stream, arrival, tag, flags, meta) => {
                        Item::Note { stream: *stream, arrival: *arrival, tag: *tag, flags: *flags, meta }
                    }
                };
                if sink(item).is_break() {
                    break;
                }
                continue;
            }
            let Some((_, place)) = next else { break };
            let cursor = &mut cursors[place];
            let Some(row) = cursor.advance()? else { break };
            if !keeps(row.ordinal, row.arrival) {
                continue;
            }
            if let Some((entry, bytes)) = cursor.preamble(row.at)? {
                let stream = StreamId(cursor.entry.id);
                if sink(Item::Preamble { stream, version: entry.version, bytes: &bytes }).is_break() {
                    break;
                }
            }
            let records = self.chunk(row.at.chunk)?;
            let data = data_of(&records, row.at, row.size, cursor.entry)?;
            let element = Element {
                stream: StreamId(cursor.entry.id),
                ordinal: row.ordinal,
                first: row.first,
                arrival: row.arrival,
                event: row.event,
                flags: row.flags,
                tag: row.tag,
                extra: row.extra,
                meta: &row.meta,
                data,
            };
            counts.elements += 1;
            counts.bytes += data.len() as u64;
            if sink(Item::Element(element)).is_break() {
                break;
            }
        }
        Ok(counts)
    }

    /// Gaps and notes of some streams in a range, by position.
    fn events(&self, wanted: &[&StreamEntry], range: &Range) -> Result<Vec<(Position, Event)>, DatasetError> {
        let chunks: BTreeSet<u32> = wanted.iter().flat_map(|entry| &entry.event_chunks).copied().collect();
        let mut events = Vec::new();
        let id = |name: &str| wanted.iter().find(|entry| entry.name == name).map(|entry| StreamId(entry.id));
        for number in chunks {
            let records = self.chunk(number)?;
            let place = || format!("chunk {number}");
            let (mut rest, mut offset) = (&records[..], 0u64);
            while let Some((opcode, content)) = record(rest) {
                let length = HEAD + content.len();
                let position = Position { chunk: number, offset };
                rest = &rest[length..];
                offset += length as u64;
                let Some((head, data)) = content.split_at_checked(MESSAGE_HEAD - HEAD) else { continue };
                let channel = u16::from_le_bytes([head[0], head[1]]);
                if opcode != op::MESSAGE {
                    continue;
                }
                let wrong = |error: serde_json::Error| DatasetError::damaged(place(), &error);
                match Some(channel) {
                    gaps if gaps == self.manifest.gap_channel => {
                        let message: GapMessage = serde_json::from_slice(data).map_err(wrong)?;
                        let Some(stream) = id(&message.stream) else { continue };
                        let gap = message.gap();
                        let (ordinal, gap) =
                            gap.ok_or_else(|| DatasetError::damaged(place(), "a gap has no known cause"))?;
                        if overlaps(range, ordinal, &gap) {
                            events.push((position, Event::Gap(stream, ordinal, gap)));
                        }
                    }
                    notes if notes == self.manifest.note_channel => {
                        let message: NoteMessage = serde_json::from_slice(data).map_err(wrong)?;
                        let Some(stream) = id(&message.stream) else { continue };
                        let arrival = Timestamp(message.arrival_ns);
                        let meta = message
                            .meta()
                            .ok_or_else(|| DatasetError::damaged(place(), "a note is no base64"))?;
                        let is_wanted = range.ordinals.is_none() && within(range, arrival);
                        if is_wanted {
                            let note = Event::Note(stream, arrival, message.tag, message.flags(), meta);
                            events.push((position, note));
                        }
                    }
                    _ => {}
                }
            }
        }
        Ok(events)
    }
}

/// Gap or note of a stream.
enum Event {
    Gap(StreamId, Ordinal, Gap),
    Note(StreamId, Timestamp, u16, Flags, Vec<u8>),
}

fn within(range: &Range, time: Timestamp) -> bool {
    range.from <= time && time <= range.to
}

/// Returns true if an element is in a range.
fn wants(range: &Range, row: &Row) -> bool {
    let time = if range.by_event { row.event } else { Some(row.arrival) };
    let numbered = range.ordinals.is_none_or(|(from, end)| from <= row.ordinal && row.ordinal < end);
    numbered && time.is_some_and(|time| within(range, time))
}

/// Returns true if a gap is in a range: its time and its ordinals overlap it.
fn overlaps(range: &Range, ordinal: Ordinal, gap: &Gap) -> bool {
    let in_time = gap.first <= range.to && range.from <= gap.last;
    let end = ordinal.0.saturating_add(gap.ordinals.max(1));
    in_time && range.ordinals.is_none_or(|(from, to)| ordinal < to && from.0 < end)
}

/// Rows of a stream in a range, and its preambles.
struct Cursor<'d> {
    dataset: &'d Dataset,
    entry: &'d StreamEntry,
    range: Range,
    parts: std::slice::Iter<'d, IndexPart>,
    rows: Option<RowReader>,
    /// Row that comes next.
    row: Option<Row>,
    /// The preamble that was given last.
    given: Option<&'d PreambleEntry>,
}

impl<'d> Cursor<'d> {
    fn new(dataset: &'d Dataset, entry: &'d StreamEntry, range: &Range) -> Result<Self, DatasetError> {
        let parts = entry.index.iter();
        let mut cursor =
            Self { dataset, entry, range: range.clone(), parts, rows: None, row: None, given: None };
        cursor.advance()?;
        Ok(cursor)
    }

    /// Takes the next row, and reads the one behind it.
    fn advance(&mut self) -> Result<Option<Row>, DatasetError> {
        let taken = self.row.take();
        loop {
            if let Some(rows) = &mut self.rows {
                while let Some(row) = rows.next()? {
                    if wants(&self.range, &row) {
                        self.row = Some(row);
                        return Ok(taken);
                    }
                }
                self.rows = None;
            }
            let range = &self.range;
            let may_have = |part: &&IndexPart| {
                let timed =
                    range.by_event || part.arrivals_ns.0 <= range.to.0 && range.from.0 <= part.arrivals_ns.1;
                let numbered = range
                    .ordinals
                    .is_none_or(|(from, end)| part.ordinals.0 < end.0 && from.0 <= part.ordinals.1);
                timed && numbered
            };
            let Some(part) = self.parts.by_ref().find(may_have) else { return Ok(taken) };
            let file = self.dataset.index_part(&self.entry.name, part)?;
            self.rows = Some(RowReader::open(&self.entry.name, file)?);
        }
    }

    /// The preamble that a message needs, where it is another than the one before.
    fn preamble(&mut self, at: Position) -> Result<Option<(&'d PreambleEntry, Bytes)>, DatasetError> {
        let behind = |entry: &&PreambleEntry| Position { chunk: entry.from.0, offset: entry.from.1 } <= at;
        let entry = self.entry.preambles.iter().take_while(behind).last();
        let Some(entry) = entry.filter(|entry| self.given != Some(*entry)) else { return Ok(None) };
        self.given = Some(entry);
        let place = format!("preamble {} of stream `{}`", entry.version, self.entry.name);
        let bytes = self.dataset.verified(&place, entry.offset, entry.length, &entry.blake3)?;
        Ok(Some((entry, bytes)))
    }
}

/// Data of the message at a position, which must be of this size and stream.
pub(crate) fn data_of<'r>(
    records: &'r [u8],
    at: Position,
    size: u64,
    stream: &StreamEntry,
) -> Result<&'r [u8], DatasetError> {
    let wrong = || {
        let cause = format!("there is no message of stream `{}` at offset {}", stream.name, at.offset);
        DatasetError::damaged(format!("chunk {}", at.chunk), &cause)
    };
    let rest = usize::try_from(at.offset).ok().and_then(|offset| records.get(offset..));
    let (opcode, content) = rest.and_then(record).ok_or_else(wrong)?;
    let (head, data) = content.split_at_checked(MESSAGE_HEAD - HEAD).ok_or_else(wrong)?;
    let channel = u16::from_le_bytes([head[0], head[1]]);
    let is_it = opcode == op::MESSAGE && stream.channels.contains(&channel) && data.len() as u64 == size;
    if is_it { Ok(data) } else { Err(wrong()) }
}

/// The decompressed records of a chunk record.
pub(crate) fn records(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let (opcode, content) = record(bytes).ok_or("its record is cut off")?;
    if opcode != op::CHUNK || bytes.len() < CHUNK_HEAD {
        return Err("it is no chunk record".to_owned());
    }
    let parsed = parse_record(opcode, content).map_err(|error| error.to_string())?;
    let Record::Chunk { header, data } = parsed else { return Err("it is no chunk record".to_owned()) };
    let size = usize::try_from(header.uncompressed_size).map_err(|error| error.to_string())?;
    let records = decompress(&header.compression, &data, size).map_err(|error| error.to_string())?;
    if header.uncompressed_crc != 0 && crc32fast::hash(&records) != header.uncompressed_crc {
        return Err("its records do not have its CRC-32".to_owned());
    }
    Ok(records)
}

/// Footer of a file, from its last bytes.
pub(crate) fn footer(tail: &[u8]) -> Result<Footer, DatasetError> {
    let not = |cause: &str| DatasetError::NotMcap(cause.to_owned());
    let Some(footer) = tail.len().checked_sub(FOOTER) else { return Err(not("it is too short")) };
    if tail[tail.len() - MAGIC.len()..] != MAGIC {
        return Err(not("it does not end with the MCAP magic: it was cut off, or is no MCAP file"));
    }
    let Some((op::FOOTER, content)) = record(&tail[footer..]) else { return Err(not("it has no footer")) };
    match parse_record(op::FOOTER, content) {
        Ok(Record::Footer(footer)) => Ok(footer),
        _ => Err(not("its footer makes no sense")),
    }
}

/// Summary of a file, read from its end.
pub(crate) fn summary(file: &dyn RangeRead) -> Result<Summary, DatasetError> {
    let not = |cause: &str| DatasetError::NotMcap(cause.to_owned());
    let size = file.size();
    let start = size.saturating_sub(TAIL);
    let mut tail = file.read(start, (size - start) as usize)?;
    let Footer { summary_start, summary_crc, .. } = footer(&tail)?;
    let end = size - FOOTER as u64;
    if summary_start == 0 || summary_start > end {
        return Err(not("it has no summary"));
    }
    if size - summary_start > MOST_SUMMARY {
        return Err(DatasetError::Limit(format!("its summary has more than {MOST_SUMMARY} bytes")));
    }
    if summary_start < start {
        let length = usize::try_from(size - summary_start).map_err(|error| not(&error.to_string()))?;
        tail = file.read(summary_start, length)?;
    } else {
        tail = tail.slice((summary_start - start) as usize..);
    }
    let crc_end = tail.len() - MAGIC.len() - 4;
    if summary_crc != 0 && crc32fast::hash(&tail[..crc_end]) != summary_crc {
        return Err(DatasetError::damaged("the summary", "it does not have its CRC-32"));
    }
    let mut found = Summary::default();
    let mut rest = &tail[..tail.len() - FOOTER];
    while !rest.is_empty() {
        let cut = || DatasetError::damaged("the summary", "a record is cut off");
        let (opcode, content) = record(rest).ok_or_else(cut)?;
        rest = &rest[HEAD + content.len()..];
        let parsed = parse_record(opcode, content);
        match parsed.map_err(|error| DatasetError::damaged("the summary", &error))? {
            Record::ChunkIndex(index) => found.chunks.push(index),
            Record::AttachmentIndex(index) => found.attachments.push(index),
            Record::Schema { header, .. } => found.schemas.push(header),
            Record::Channel(channel) => found.channels.push(channel),
            Record::Statistics(statistics) => found.statistics = Some(statistics),
            _ => {}
        }
    }
    Ok(found)
}

/// Data of an attachment, verified by its CRC.
pub(crate) fn attachment(file: &dyn RangeRead, index: &AttachmentIndex) -> Result<Bytes, DatasetError> {
    let place = || format!("attachment `{}`", index.name);
    if index.length > MOST_SUMMARY {
        return Err(DatasetError::Limit(format!("{} has more than {MOST_SUMMARY} bytes", place())));
    }
    let length = usize::try_from(index.length).map_err(|error| DatasetError::damaged(place(), &error))?;
    let bytes = file.read(index.offset, length)?;
    let wrong = || DatasetError::damaged(place(), "its record is cut off or has no such length");
    let Some((op::ATTACHMENT, content)) = record(&bytes) else { return Err(wrong()) };
    let size = usize::try_from(index.data_size).map_err(|error| DatasetError::damaged(place(), &error))?;
    let end = content.len().checked_sub(4).ok_or_else(wrong)?;
    let start = end.checked_sub(size).ok_or_else(wrong)?;
    let crc = content.get(end..).and_then(|crc| crc.try_into().ok()).map(u32::from_le_bytes);
    if crc != Some(0) && crc != Some(crc32fast::hash(&content[..end])) {
        return Err(DatasetError::damaged(place(), "it does not have its CRC-32"));
    }
    Ok(bytes.slice(HEAD + start..HEAD + end))
}

/// Bytes in memory as a file.
struct Memory(Bytes);

impl RangeRead for Memory {
    fn size(&self) -> u64 {
        self.0.len() as u64
    }

    fn read(&self, offset: u64, length: usize) -> std::io::Result<Bytes> {
        let start = usize::try_from(offset)
            .ok()
            .filter(|start| start.checked_add(length).is_some_and(|end| end <= self.0.len()));
        let start = start.ok_or(std::io::ErrorKind::UnexpectedEof)?;
        Ok(self.0.slice(start..start + length))
    }

    fn name(&self) -> String {
        "memory".to_owned()
    }
}
