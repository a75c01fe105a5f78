//! Writer of a dataset: takes the items of a reader, and gives messages, index and manifest.

use crate::checkpoint::CHECKPOINT;
use crate::compression::Compression;
use crate::error::DatasetError;
use crate::events::{GAPS, GapMessage, NOTES, NoteMessage};
use crate::index::{BuiltPart, IndexBuilder};
use crate::manifest::{
    ArchivedSpan, IndexPart, Manifest, NAME, PreambleEntry, Provenance, StreamEntry, VERSION,
};
use crate::mcap_writer::{McapWriter, Position};
use holdfast_attributes::Schema;
use holdfast_base::{StreamId, Timestamp};
use holdfast_export::replayed_header;
use holdfast_format::StreamKind;
use holdfast_ingest::mcap::MAGIC;
use holdfast_ingest::packet::Preamble;
use holdfast_reader::{Element, Item};
use holdfast_ring::StreamStatus;
use mcap::read::LinearReader;
use mcap::records::{MessageHeader, Record};
use std::collections::BTreeMap;
use std::io::Write;
use std::num::NonZeroUsize;

/// Runs of ordinals of a stream that the manifest lists; where there are more, the closest are joined.
const MOST_RUNS: usize = 4096;

/// Beginning of the names of columns that are not attributes.
const RESERVED: &str = "holdfast_";

/// Options of a dataset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Compression of the chunks.
    pub compression: Compression,
    /// Bytes of a chunk before compression: the unit that is read. A larger message has a chunk of its own.
    pub chunk_bytes: usize,
    /// Number of threads that compress.
    pub threads: NonZeroUsize,
}

impl Default for Options {
    /// Zstandard at level 3, chunks of 256 KiB, all processors.
    fn default() -> Self {
        Self {
            compression: Compression::default(),
            chunk_bytes: 256 << 10,
            threads: std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN),
        }
    }
}

/// Stream to be written: its status and its attribute schema.
#[derive(Clone, Debug)]
pub struct StreamHead {
    /// Status on the ring.
    pub status: StreamStatus,
    /// Attribute schema, as `--attr` takes it; empty without attributes.
    pub schema: String,
}

/// Dataset that was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// Id: the BLAKE3 of the manifest, in hexadecimal digits.
    pub id: String,
    /// Bytes of the file.
    pub bytes: u64,
    /// Manifest of the dataset.
    pub manifest: Manifest,
}

/// Stream while it is written.
struct Stream {
    id: StreamId,
    entry: StreamEntry,
    is_packets: bool,
    index: IndexBuilder,
    channel: Option<u16>,
    /// Channels of an MCAP file that was replayed: number there, number here.
    replayed: BTreeMap<u16, u16>,
    preamble: Option<Vec<u8>>,
    link_types: Vec<u16>,
    /// Preamble that the next message is the first one behind.
    waiting: Option<PreambleEntry>,
}

/// Writer of a dataset.
pub struct DatasetWriter<W: Write> {
    mcap: McapWriter<W>,
    streams: Vec<Stream>,
    gaps: Option<u16>,
    notes: Option<u16>,
    manifest: Manifest,
}

impl<W: Write> DatasetWriter<W> {
    /// Begins a dataset of these streams.
    pub fn new(
        out: W,
        options: &Options,
        streams: &[StreamHead],
        provenance: Provenance,
    ) -> Result<Self, DatasetError> {
        let mcap = McapWriter::new(out, options.compression, options.chunk_bytes, options.threads.get())?;
        let streams = streams.iter().map(Stream::new).collect::<Result<_, _>>()?;
        let compression = options.compression.to_string();
        let manifest = Manifest { version: VERSION, provenance, compression, ..Manifest::default() };
        Ok(Self { mcap, streams, gaps: None, notes: None, manifest })
    }

    /// Adds an item of a reader. What the reader could not give (damaged places, expired slots) is the caller's to report.
    pub fn item(&mut self, item: &Item<'_>) -> Result<(), DatasetError> {
        match item {
            Item::Preamble { stream, version, bytes } => self.preamble(*stream, *version, bytes),
            Item::Element(element) => self.element(element),
            Item::Gap { stream, ordinal, gap } => {
                let Some(place) = self.place(*stream) else { return Ok(()) };
                let entry = &mut self.streams[place].entry;
                entry.gaps += 1;
                let message = GapMessage::new(&entry.name, *ordinal, gap);
                let channel = event_channel(&mut self.mcap, &mut self.gaps, GAPS)?;
                self.event(place, channel, gap.last, &message)
            }
            Item::Note { stream, arrival, tag, flags, meta } => {
                let Some(place) = self.place(*stream) else { return Ok(()) };
                let message = NoteMessage::new(&self.streams[place].entry.name, *arrival, *tag, *flags, meta);
                let channel = event_channel(&mut self.mcap, &mut self.notes, NOTES)?;
                self.event(place, channel, *arrival, &message)
            }
            Item::Partial { stream, .. } => {
                if let Some(place) = self.place(*stream) {
                    self.streams[place].entry.partial += 1;
                }
                Ok(())
            }
            Item::Damaged { .. } | Item::Expired { .. } | Item::Progress { .. } => Ok(()),
        }
    }

    /// Notes the span of a stream that the dataset stands for.
    pub fn archives(&mut self, span: ArchivedSpan) {
        self.manifest.provenance.archived = Some(span);
    }

    /// Bytes written so far; chunks that are being compressed count as they are before that.
    pub fn written(&self) -> u64 {
        self.mcap.written()
    }

    fn place(&self, stream: StreamId) -> Option<usize> {
        self.streams.iter().position(|known| known.id == stream)
    }

    fn event(
        &mut self,
        place: usize,
        channel_id: u16,
        time: Timestamp,
        message: &impl serde::Serialize,
    ) -> Result<(), DatasetError> {
        let data = serde_json::to_vec(message).map_err(std::io::Error::from)?;
        let log_time = nanos(time);
        let header = MessageHeader { channel_id, sequence: 0, log_time, publish_time: log_time };
        let at = self.mcap.message(&header, &data)?;
        let chunks = &mut self.streams[place].entry.event_chunks;
        if chunks.last() != Some(&at.chunk) {
            chunks.push(at.chunk);
        }
        Ok(())
    }

    fn preamble(&mut self, stream: StreamId, version: u32, bytes: &[u8]) -> Result<(), DatasetError> {
        let Some(place) = self.place(stream) else { return Ok(()) };
        let stream = &mut self.streams[place];
        if stream.preamble.as_deref() == Some(bytes) {
            return Ok(());
        }
        let name = format!("{}.preamble.{version}", stream.entry.name);
        let at = self.mcap.attach(&name, "application/octet-stream", bytes)?;
        stream.preamble = Some(bytes.to_vec());
        stream.waiting = Some(PreambleEntry {
            version,
            from: (0, 0),
            offset: at.offset,
            length: at.length,
            blake3: blake3::hash(bytes).to_hex().to_string(),
        });
        if let Some(records) = bytes.strip_prefix(&MAGIC) {
            stream.replay(&mut self.mcap, records)?;
        }
        if stream.is_packets {
            let interfaces = Preamble::validate(bytes).unwrap_or_default();
            stream.link_types = interfaces.iter().map(|interface| interface.link_type.0).collect();
        }
        Ok(())
    }

    fn element(&mut self, element: &Element<'_>) -> Result<(), DatasetError> {
        let Some(place) = self.place(element.stream) else { return Ok(()) };
        let stream = &mut self.streams[place];
        let header = match replayed_header(element, &stream.replayed) {
            Some(header) => header,
            None => MessageHeader {
                channel_id: stream.channel(&mut self.mcap)?,
                // MCAP has 32 bits for it; the index has the ordinal.
                sequence: element.ordinal.0 as u32,
                log_time: nanos(element.event.unwrap_or(element.arrival)),
                publish_time: nanos(element.arrival),
            },
        };
        let at = self.mcap.message(&header, element.data)?;
        stream.count(element, at);
        let link_type = stream.link_types.get(usize::from(element.tag)).copied();
        let part = stream.index.push(element, at, link_type)?;
        part.map_or(Ok(()), |part| self.index_part(place, part))
    }

    fn index_part(&mut self, place: usize, (bytes, part): BuiltPart) -> Result<(), DatasetError> {
        let entry = &mut self.streams[place].entry;
        let name = format!("holdfast/index/{}.{}.parquet", entry.name, entry.index.len());
        let at = self.mcap.attach(&name, "application/vnd.apache.parquet", &bytes)?;
        entry.index.push(IndexPart { offset: at.offset, ..part });
        Ok(())
    }

    /// Writes all that was added, and a checkpoint behind it: if the writer is killed, the file is a dataset of this name up
    /// to there. Returns the bytes of the checkpoint's manifest.
    pub fn checkpoint(&mut self, name: &str, span: ArchivedSpan) -> Result<u64, DatasetError> {
        let mut manifest = self.so_far()?;
        manifest.provenance.archived = Some(span);
        let bytes = manifest.to_bytes();
        self.mcap.attach(&format!("{CHECKPOINT}{name}"), "application/json", &bytes)?;
        self.mcap.flush_output()?;
        Ok(bytes.len() as u64)
    }

    /// Manifest of all that was added. Chunks and parts of the index end here.
    fn so_far(&mut self) -> Result<Manifest, DatasetError> {
        self.manifest.chunks = self.mcap.flush()?;
        for place in 0..self.streams.len() {
            if let Some(part) = self.streams[place].index.finish()? {
                self.index_part(place, part)?;
            }
            let stream = &mut self.streams[place];
            // A stream without elements is a channel all the same.
            if stream.replayed.is_empty() {
                stream.channel(&mut self.mcap)?;
            }
            stream.entry.channels = stream.replayed.values().copied().chain(stream.channel).collect();
        }
        (self.manifest.gap_channel, self.manifest.note_channel) = (self.gaps, self.notes);
        let streams = self.streams.iter().map(Stream::entry_so_far).collect();
        Ok(Manifest { streams, ..self.manifest.clone() })
    }

    /// Ends the dataset; the output comes back.
    pub fn finish(mut self) -> Result<(W, Written), DatasetError> {
        let manifest = self.so_far()?;
        let bytes = manifest.to_bytes();
        self.mcap.attach(NAME, "application/json", &bytes)?;
        let id = blake3::hash(&bytes).to_hex().to_string();
        let (out, bytes) = self.mcap.finish()?;
        Ok((out, Written { id, bytes, manifest }))
    }
}

impl Stream {
    fn new(head: &StreamHead) -> Result<Self, DatasetError> {
        let StreamHead { status, schema } = head;
        let parsed = Schema::parse(schema).map_err(|error| DatasetError::Schema {
            stream: status.name.clone(),
            cause: error.to_string(),
        })?;
        if let Some(attribute) = parsed.attributes().iter().find(|a| a.name().starts_with(RESERVED)) {
            let (name, stream) = (attribute.name(), &status.name);
            let why = format!(
                "attribute `{name}` of stream `{stream}`: names in a dataset do not begin with {RESERVED}"
            );
            return Err(DatasetError::Limit(why));
        }
        let entry = StreamEntry {
            name: status.name.clone(),
            id: status.id.0,
            kind: status.kind.name().to_owned(),
            framing: status.framing.clone(),
            schema: schema.clone(),
            exact_ordinals: true,
            ..StreamEntry::default()
        };
        Ok(Self {
            id: status.id,
            index: IndexBuilder::new(&status.name, &parsed),
            entry,
            is_packets: status.kind == StreamKind::Packets,
            channel: None,
            replayed: BTreeMap::new(),
            preamble: None,
            link_types: Vec::new(),
            waiting: None,
        })
    }

    /// The channel of a stream that was not replayed from an MCAP file.
    fn channel<W: Write>(&mut self, mcap: &mut McapWriter<W>) -> Result<u16, DatasetError> {
        if let Some(channel) = self.channel {
            return Ok(channel);
        }
        let metadata = BTreeMap::from([
            ("framing".to_owned(), self.entry.framing.clone()),
            ("kind".to_owned(), self.entry.kind.clone()),
        ]);
        let channel = mcap.channel(0, &self.entry.name, "", &metadata)?;
        self.channel = Some(channel);
        Ok(channel)
    }

    /// Takes the schemas and channels of an MCAP file that was replayed.
    fn replay<W: Write>(&mut self, mcap: &mut McapWriter<W>, records: &[u8]) -> Result<(), DatasetError> {
        let (mut schemas, mut channels) = (BTreeMap::from([(0, 0)]), BTreeMap::new());
        for record in LinearReader::sans_magic(records) {
            let record = record.map_err(|error| DatasetError::damaged("the preamble", &error))?;
            match record {
                Record::Schema { header, data } => {
                    schemas.insert(header.id, mcap.schema(&header.name, &header.encoding, &data)?);
                }
                Record::Channel(channel) => {
                    let schema = schemas.get(&channel.schema_id).copied().unwrap_or(0);
                    let id =
                        mcap.channel(schema, &channel.topic, &channel.message_encoding, &channel.metadata)?;
                    channels.insert(channel.id, id);
                }
                _ => {}
            }
        }
        self.replayed = channels;
        Ok(())
    }

    /// Entry of the manifest, with a preamble that has no message yet.
    fn entry_so_far(&self) -> StreamEntry {
        let mut entry = self.entry.clone();
        let waiting = self.waiting.clone();
        entry.preambles.extend(waiting.map(|preamble| PreambleEntry { from: (u32::MAX, 0), ..preamble }));
        entry
    }

    fn count(&mut self, element: &Element<'_>, at: Position) {
        let entry = &mut self.entry;
        if let Some(preamble) = self.waiting.take() {
            entry.preambles.push(PreambleEntry { from: (at.chunk, at.offset), ..preamble });
        }
        entry.elements += 1;
        entry.bytes += element.data.len() as u64;
        let around = |known: Option<(i64, i64)>, time: Timestamp| {
            let (first, last) = known.unwrap_or((time.0, time.0));
            Some((first.min(time.0), last.max(time.0)))
        };
        entry.arrivals_ns = around(entry.arrivals_ns, element.arrival);
        entry.events_ns = element.event.map_or(entry.events_ns, |event| around(entry.events_ns, event));
        let ordinal = element.ordinal.0;
        match entry.ordinals.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(ordinal) => *last = ordinal,
            _ => entry.ordinals.push((ordinal, ordinal)),
        }
        if entry.ordinals.len() > 2 * MOST_RUNS {
            entry.exact_ordinals = false;
            entry.ordinals = fewer(&entry.ordinals);
        }
    }
}

/// Runs joined in pairs: half as many.
fn fewer(runs: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let mut runs = runs.to_vec();
    runs.sort_unstable();
    runs.chunks(2).filter_map(|pair| Some((pair.first()?.0, pair.last()?.1))).collect()
}

fn event_channel<W: Write>(
    mcap: &mut McapWriter<W>,
    known: &mut Option<u16>,
    topic: &str,
) -> Result<u16, DatasetError> {
    if let Some(channel) = known {
        return Ok(*channel);
    }
    // Not shared with a channel of a replayed file: its messages would count as events of this recording.
    let channel = mcap.new_channel(0, topic, "json", &BTreeMap::new())?;
    *known = Some(channel);
    Ok(channel)
}

/// MCAP counts from 1970 without a sign.
fn nanos(time: Timestamp) -> u64 {
    u64::try_from(time.0).unwrap_or(0)
}
