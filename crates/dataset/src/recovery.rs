//! Recovery of an MCAP file that was cut or damaged: whole chunks are copied as they are, and get a new summary.

use crate::chunk_map::ChunkMap;
use crate::chunks::PackedChunk;
use crate::compression::Compression;
use crate::damage::Damage;
use crate::error::DatasetError;
use crate::evacuate::failure;
use crate::manifest::{Manifest, NAME};
use crate::mcap_writer::McapWriter;
use crate::pack::{ROOT, root_bytes};
use crate::reader::{attachment, records, summary};
use crate::records::{HEAD, MAGIC, MESSAGE_HEAD, record};
use crate::scan::{RecordPlace, Scan, Step};
use crate::storage::{LocalFile, RangeRead};
use bytes::Bytes;
use holdfast_base::failure::{Failure, Result};
use holdfast_export::{Existing, OutputFile, SourceAccess};
use mcap::parse_record;
use mcap::records::{
    AttachmentHeader, AttachmentIndex, Channel, Header, MessageHeader, Record, SchemaHeader, op,
};
use std::collections::BTreeSet;
use std::io::{BufWriter, Write};
use std::path::Path;

/// Bytes that are gathered before a write.
const GATHER: usize = 1 << 20;

/// Bytes of a record at most, attachments excepted: a chunk that is read as a whole.
const MOST_RECORD: u64 = 2 << 30;

/// Bytes of an attachment that are read at once.
const PIECE: u64 = 1 << 20;

/// Bytes of an attachment's header that are read at most.
const MOST_ATTACHMENT_HEAD: u64 = 64 << 10;

/// Bytes of the contents of the records that end the data section and the file.
const DATA_END_BYTES: u64 = 4;
const FOOTER_BYTES: u64 = 20;

/// First opcode of records that other programs define for themselves.
const FIRST_PRIVATE: u8 = 0x80;

/// Prefix of the names of Holdfast's own attachments.
const OWN: &str = "holdfast/";

pub(crate) type Checked<T> = std::result::Result<T, String>;

/// File that was recovered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Bytes of the new file.
    pub bytes: u64,
    /// Number of its chunks.
    pub chunks: u64,
    /// Number of its channels.
    pub channels: u64,
    /// Number of its messages.
    pub messages: u64,
    /// Id of the dataset, if its manifest is whole; otherwise the new file is a plain MCAP file.
    pub dataset: Option<String>,
    /// First damage of the old file; `None` if it is whole.
    pub damage: Option<Damage>,
}

/// Recovers a file. Messages outside of chunks are compressed. `progress` is told the bytes that were read.
pub fn recover(
    path: &Path,
    to: &Path,
    compression: Compression,
    progress: &mut dyn FnMut(u64),
) -> Result<Recovered> {
    let file = LocalFile::open(path).map_err(|error| Failure::io("cannot open the file", path, &error))?;
    let output = OutputFile::make(to, Existing::Keep, SourceAccess::of(path))?;
    let out = BufWriter::with_capacity(GATHER, output.writer()?);
    let recovered = recovered(&file, out, compression, progress).map_err(|error| match error {
        Trouble::Read(error) => Failure::io("cannot read the file", path, &error),
        Trouble::Content(error) => Failure::failed(&error).at_path(path),
        Trouble::Write(error) => failure(&error, to),
    })?;
    if recovered.messages == 0
        && let Some(Damage { at, cause, .. }) = &recovered.damage
    {
        let what = format!("no chunk of the file is whole; the record at byte {at}: {cause}");
        return Err(Failure::failed(what).at_path(path));
    }
    output.finish()?;
    Ok(recovered)
}

/// Failure of a recovery, by its place.
enum Trouble {
    /// The old file cannot be read.
    Read(std::io::Error),
    /// The old file is no MCAP file.
    Content(DatasetError),
    /// The new file cannot be written.
    Write(DatasetError),
}

fn recovered<W: Write>(
    file: &dyn RangeRead,
    out: W,
    compression: Compression,
    progress: &mut dyn FnMut(u64),
) -> std::result::Result<Recovered, Trouble> {
    let manifest = manifest(file)?;
    let (recovery, damage, end) = copied(file, out, manifest, compression, progress)?;
    let damage = damage.or_else(|| {
        let error = summary(file).err()?;
        Some(Damage { at: end, cause: format!("the summary cannot be read: {error}"), lost_chunks: 0 })
    });
    recovery.finish(damage).map_err(Trouble::Write)
}

/// Completes a file that ends within its data section: copies it as it is, and adds a manifest over it and the summary.
/// The output and the bytes of the dataset; `None` if a part of the file is not whole.
pub(crate) fn completed<W: Write>(
    file: &dyn RangeRead,
    out: W,
    manifest: Manifest,
) -> std::result::Result<Option<(W, u64)>, DatasetError> {
    let bytes = manifest.to_bytes();
    let known = Some((blake3::hash(&bytes).to_hex().to_string(), manifest));
    let copied = copied(file, out, known, Compression::default(), &mut |_| {});
    let (mut recovery, damage, end) = copied.map_err(|trouble| match trouble {
        Trouble::Read(error) => DatasetError::Io(error),
        Trouble::Content(error) | Trouble::Write(error) => error,
    })?;
    recovery.mcap.drain()?;
    let is_whole = damage.is_none_or(|damage| damage.at == file.size()) && end == file.size();
    if !is_whole || recovery.mcap.written() != file.size() {
        return Ok(None);
    }
    recovery.mcap.attach(NAME, "application/json", &bytes)?;
    recovery.mcap.finish().map(Some)
}

type Copied<W> = (Recovery<W>, Option<Damage>, u64);

/// Copies the data section of a file as far as it is sound. The copy, the first damage, and the offset of the end.
fn copied<W: Write>(
    file: &dyn RangeRead,
    out: W,
    manifest: Option<(String, Manifest)>,
    compression: Compression,
    progress: &mut dyn FnMut(u64),
) -> std::result::Result<Copied<W>, Trouble> {
    let mut scan = begun(file)?;
    let mut damage = None;
    let header = header(&mut scan).map_err(Trouble::Read)?.unwrap_or_else(|cause| {
        Damage::note(&mut damage, MAGIC.len() as u64, cause);
        let library = concat!("holdfast ", env!("CARGO_PKG_VERSION")).to_owned();
        Header { profile: String::new(), library }
    });
    let mcap = McapWriter::with_header(out, &header, compression, 256 << 10, 1);
    let mcap = mcap.map_err(Trouble::Write)?;
    let mut recovery =
        Recovery { mcap, schemas: BTreeSet::new(), channels: BTreeSet::new(), manifest, kept: None };
    let chunks = ChunkMap::of(file);
    if let Some(first) = chunks.next_behind(0).filter(|first| scan.position() > *first) {
        Damage::note(&mut damage, MAGIC.len() as u64, format!("a chunk begins in it, at byte {first}"));
        scan.go_to(first);
    }
    while !recovery.record(&mut scan, &chunks, &mut damage)? {
        progress(scan.position());
    }
    progress(scan.position());
    Ok((recovery, damage, scan.position()))
}

/// Disagreement between the record at an offset and the chunk index; `None` if the record may be what it says.
fn disagreement(step: &Step, at: u64, chunks: &ChunkMap) -> Option<String> {
    let (here, next) = (chunks.length_at(at), chunks.next_behind(at));
    let place = match step {
        Step::Record(place) => place,
        Step::End | Step::Broken(_) if here.is_none() && next.is_none() => return None,
        Step::End => return Some("the file ends before a chunk of its index".to_owned()),
        Step::Broken(cause) => return Some(cause.clone()),
    };
    let length = place.end() - at;
    match (here, next) {
        (Some(indexed), _) if place.opcode == op::CHUNK && indexed == length => None,
        (Some(indexed), _) => {
            Some(format!("its head is damaged: the index has a chunk of {indexed} bytes there"))
        }
        (None, Some(next)) if place.end() > next => {
            Some(format!("its length is damaged: a chunk begins in it, at byte {next}"))
        }
        (None, Some(next)) if ends_data(*place) => {
            Some(format!("its head is damaged: a chunk follows at byte {next}"))
        }
        _ => None,
    }
}

/// True for a record that ends the data section, with the length of such a record.
fn ends_data(place: RecordPlace) -> bool {
    matches!((place.opcode, place.length), (op::DATA_END, DATA_END_BYTES) | (op::FOOTER, FOOTER_BYTES))
}

/// Refuses a record that is too large to be read as a whole.
fn is_readable(place: RecordPlace) -> Checked<()> {
    if place.length > MOST_RECORD {
        return Err(format!("it has {} bytes, and {MOST_RECORD} at most are read", place.length));
    }
    Ok(())
}

/// True if the content of a record is a message index: a channel, and entries that fill the record.
fn is_message_index(scan: &mut Scan<'_>, place: RecordPlace) -> std::io::Result<bool> {
    /// Bytes of the channel and of the entries' length.
    const FIELDS: u64 = 2 + 4;
    if place.length < FIELDS {
        return Ok(false);
    }
    let fields = scan.bytes(place.at + HEAD as u64, FIELDS)?;
    let entries = fields[2..].first_chunk().map_or(0, |length| u32::from_le_bytes(*length));
    Ok(u64::from(entries) == place.length - FIELDS)
}

fn begun(file: &dyn RangeRead) -> std::result::Result<Scan<'_>, Trouble> {
    let none = || Trouble::Content(DatasetError::NotMcap("it does not begin with the MCAP magic".to_owned()));
    Scan::new(file).map_err(Trouble::Read)?.ok_or_else(none)
}

/// Header of the file, which is its first record.
fn header(scan: &mut Scan<'_>) -> std::io::Result<Checked<Header>> {
    let Step::Record(place) = scan.next()? else {
        return Ok(Err("the file ends before its header".to_owned()));
    };
    let bytes = scan.record(place)?;
    Ok(match parse_record(place.opcode, &bytes[HEAD..]) {
        Ok(Record::Header(header)) => Ok(header),
        _ => Err("it is no header".to_owned()),
    })
}

/// Manifest of a dataset and its id, if it is whole: found by the summary, or by the heads of all records.
fn manifest(file: &dyn RangeRead) -> std::result::Result<Option<(String, Manifest)>, Trouble> {
    let mut scan = begun(file)?;
    let attachments = summary(file).map(|summary| summary.attachments).unwrap_or_default();
    if let Some(index) = attachments.iter().rev().find(|index| index.name == NAME)
        && let Ok(bytes) = attachment(file, index)
        && let Ok(manifest) = serde_json::from_slice(&bytes)
    {
        return Ok(Some((blake3::hash(&bytes).to_hex().to_string(), manifest)));
    }
    let mut found = None;
    while let Step::Record(place) = scan.next().map_err(Trouble::Read)? {
        if place.opcode != op::ATTACHMENT {
            continue;
        }
        let head = attachment_head(&mut scan, place).map_err(Trouble::Read)?;
        let Ok((index, _)) = head else { continue };
        if index.name == NAME {
            found = match attachment(file, &index) {
                Ok(bytes) => {
                    let id = blake3::hash(&bytes).to_hex().to_string();
                    serde_json::from_slice(&bytes).ok().map(|manifest| (id, manifest))
                }
                Err(DatasetError::Io(error)) => return Err(Trouble::Read(error)),
                Err(_) => None,
            };
        }
    }
    Ok(found)
}

/// Entry of an attachment in the summary, and the offset of its data in its content.
pub(crate) fn attachment_head(
    scan: &mut Scan<'_>,
    place: RecordPlace,
) -> std::io::Result<Checked<(AttachmentIndex, u64)>> {
    let content = scan.bytes(place.at + HEAD as u64, place.length.min(MOST_ATTACHMENT_HEAD))?;
    Ok(attachment_entry(&content, place).ok_or_else(|| "it is no attachment".to_owned()))
}

fn attachment_entry(content: &[u8], place: RecordPlace) -> Option<(AttachmentIndex, u64)> {
    let mut reader = binrw::io::Cursor::new(content);
    let head: AttachmentHeader = binrw::BinReaderExt::read_le(&mut reader).ok()?;
    let size_at = usize::try_from(reader.position()).ok()?;
    let data_size = u64::from_le_bytes(*content.get(size_at..)?.first_chunk()?);
    let data = size_at as u64 + 8;
    if data.checked_add(data_size)?.checked_add(4)? != place.length {
        return None;
    }
    let AttachmentHeader { log_time, create_time, name, media_type } = head;
    let length = HEAD as u64 + place.length;
    let index =
        AttachmentIndex { offset: place.at, length, log_time, create_time, data_size, name, media_type };
    Some((index, data))
}

/// Records of a chunk, or of the file itself, that were checked.
#[derive(Default)]
struct Contents {
    schemas: Vec<(SchemaHeader, Vec<u8>)>,
    channels: Vec<Channel>,
    messages: Vec<(MessageHeader, u64)>,
}

/// File that is written while the old one is scanned.
struct Recovery<W> {
    mcap: McapWriter<W>,
    schemas: BTreeSet<u16>,
    channels: BTreeSet<u16>,
    /// Manifest of the old file, if it is whole.
    manifest: Option<(String, Manifest)>,
    /// Manifest that the new file has as well.
    kept: Option<(String, Manifest)>,
}

impl<W: Write> Recovery<W> {
    /// Copies the next record, or goes to the next one of the chunk index if it is damaged; true at the end.
    fn record(
        &mut self,
        scan: &mut Scan<'_>,
        chunks: &ChunkMap,
        damage: &mut Option<Damage>,
    ) -> std::result::Result<bool, Trouble> {
        let at = scan.position();
        let step = scan.next().map_err(Trouble::Read)?;
        if let Some(cause) = disagreement(&step, at, chunks) {
            // A chunk that is whole needs no index; one with a wrong length may look so.
            if let Step::Record(place) = step
                && place.opcode == op::CHUNK
                && chunks.length_at(at).is_none()
                && self.copy(scan, place)?.is_ok()
            {
                return Ok(false);
            }
            let damage = Damage::note(damage, at, cause);
            let Some(length) = chunks.length_at(at) else {
                let next = chunks.next_behind(at);
                scan.go_to(next.unwrap_or(at));
                return Ok(next.is_none());
            };
            let place = RecordPlace { at, opcode: op::CHUNK, length: length - HEAD as u64 };
            damage.lost_chunks += u64::from(self.misnamed_chunk(scan, place)?.is_err());
            scan.go_to(at + length);
            return Ok(false);
        }
        match step {
            Step::Record(place) if ends_data(place) => return Ok(true),
            Step::Record(place) => {
                if let Err(cause) = self.copy(scan, place)? {
                    let damage = Damage::note(damage, at, cause);
                    damage.lost_chunks += u64::from(place.opcode == op::CHUNK);
                }
            }
            Step::End => {
                Damage::note(damage, at, "it is missing: the file ends before its summary".to_owned());
                return Ok(true);
            }
            Step::Broken(cause) => {
                Damage::note(damage, at, cause);
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Copies a record of the data section, if it is sound, or a chunk with the opcode of another record.
    fn copy(&mut self, scan: &mut Scan<'_>, place: RecordPlace) -> std::result::Result<Checked<()>, Trouble> {
        let opcode = place.opcode;
        let copied = self.as_named(scan, place)?;
        if copied.is_ok() || opcode == op::CHUNK {
            return Ok(copied);
        }
        Ok(match self.misnamed_chunk(scan, place)? {
            Ok(()) => Err(format!("it has the opcode {opcode:#04x}, and was read as a chunk")),
            // Records of other programs are left out.
            Err(_) if opcode >= FIRST_PRIVATE => Ok(()),
            Err(_) => copied,
        })
    }

    /// Copies a record that is what its opcode says.
    fn as_named(
        &mut self,
        scan: &mut Scan<'_>,
        place: RecordPlace,
    ) -> std::result::Result<Checked<()>, Trouble> {
        match place.opcode {
            op::ATTACHMENT => return self.attachment(scan, place),
            op::CHUNK | op::SCHEMA | op::CHANNEL | op::MESSAGE | op::METADATA => {}
            // Message indexes are made again.
            op::MESSAGE_INDEX if is_message_index(scan, place).map_err(Trouble::Read)? => return Ok(Ok(())),
            opcode => return Ok(Err(format!("it has the opcode {opcode:#04x}, and is no such record"))),
        }
        if let Err(cause) = is_readable(place) {
            return Ok(Err(cause));
        }
        let bytes = scan.record(place).map_err(Trouble::Read)?;
        match place.opcode {
            op::CHUNK => self.chunk(&bytes),
            op::METADATA => self.metadata(&bytes),
            _ => self.loose(&bytes),
        }
    }

    /// Copies a record as a chunk, whatever its head says, if it is one.
    fn misnamed_chunk(
        &mut self,
        scan: &mut Scan<'_>,
        place: RecordPlace,
    ) -> std::result::Result<Checked<()>, Trouble> {
        if let Err(cause) = is_readable(place) {
            return Ok(Err(cause));
        }
        let mut bytes = scan.record(place).map_err(Trouble::Read)?.to_vec();
        bytes[0] = op::CHUNK;
        bytes[1..HEAD].copy_from_slice(&place.length.to_le_bytes());
        self.chunk(&bytes.into())
    }

    fn chunk(&mut self, bytes: &Bytes) -> std::result::Result<Checked<()>, Trouble> {
        let checked = records(bytes).and_then(|records| self.contents(&records));
        let contents = match checked {
            Ok(contents) => contents,
            Err(cause) => return Ok(Err(cause)),
        };
        let index = match PackedChunk::adopt(bytes, &contents.messages) {
            Ok(chunk) => chunk,
            Err(cause) => return Ok(Err(cause)),
        };
        self.define(contents.schemas, contents.channels, false).map_err(Trouble::Write)?;
        self.mcap.adopt_chunk(index, &contents.messages).map_err(Trouble::Write)?;
        Ok(Ok(()))
    }

    /// Schema, channel or message outside of chunks.
    fn loose(&mut self, bytes: &Bytes) -> std::result::Result<Checked<()>, Trouble> {
        let contents = match self.contents(bytes) {
            Ok(contents) => contents,
            Err(cause) => return Ok(Err(cause)),
        };
        self.define(contents.schemas, contents.channels, true).map_err(Trouble::Write)?;
        for (header, _) in &contents.messages {
            self.mcap.message(header, &bytes[MESSAGE_HEAD..]).map_err(Trouble::Write)?;
        }
        Ok(Ok(()))
    }

    /// Checks records: all must be whole, and of channels and schemas that are known.
    fn contents(&self, records: &[u8]) -> Checked<Contents> {
        let mut contents = Contents::default();
        let (mut rest, mut offset) = (records, 0);
        while !rest.is_empty() {
            let (opcode, content) = record(rest).ok_or("a record in it is cut off")?;
            match parse_record(opcode, content)
                .map_err(|error| format!("a record in it makes no sense: {error}"))?
            {
                Record::Schema { header, data } => {
                    if header.id == 0 {
                        return Err("a schema in it has the id 0".to_owned());
                    }
                    contents.schemas.push((header, data.into_owned()));
                }
                Record::Channel(channel) => {
                    let schema = channel.schema_id;
                    let is_known = schema == 0
                        || self.schemas.contains(&schema)
                        || contents.schemas.iter().any(|(known, _)| known.id == schema);
                    if !is_known {
                        return Err(format!("channel {} in it has the unknown schema {schema}", channel.id));
                    }
                    contents.channels.push(channel);
                }
                Record::Message { header, .. } => {
                    let channel = header.channel_id;
                    let is_known = self.channels.contains(&channel)
                        || contents.channels.iter().any(|known| known.id == channel);
                    if !is_known {
                        return Err(format!("a message in it is of the unknown channel {channel}"));
                    }
                    contents.messages.push((header, offset));
                }
                _ => {}
            }
            let length = HEAD + content.len();
            rest = &rest[length..];
            offset += length as u64;
        }
        Ok(contents)
    }

    /// Adds schemas and channels, unless they are there; the records of a chunk are in the summary alone.
    fn define(
        &mut self,
        schemas: Vec<(SchemaHeader, Vec<u8>)>,
        channels: Vec<Channel>,
        in_file: bool,
    ) -> std::result::Result<(), DatasetError> {
        for (header, data) in schemas {
            if self.schemas.insert(header.id) {
                self.mcap.adopt_schema(header, data, in_file)?;
            }
        }
        for channel in channels {
            if self.channels.insert(channel.id) {
                self.mcap.adopt_channel(channel, in_file)?;
            }
        }
        Ok(())
    }

    fn metadata(&mut self, bytes: &Bytes) -> std::result::Result<Checked<()>, Trouble> {
        let Ok(Record::Metadata(metadata)) = parse_record(op::METADATA, &bytes[HEAD..]) else {
            return Ok(Err("it is no metadata record".to_owned()));
        };
        self.mcap.adopt_metadata(bytes, metadata.name).map_err(Trouble::Write)?;
        Ok(Ok(()))
    }

    /// Copies an attachment that has its CRC. Holdfast's own index and manifest are kept if all before them is as it was.
    fn attachment(
        &mut self,
        scan: &mut Scan<'_>,
        place: RecordPlace,
    ) -> std::result::Result<Checked<()>, Trouble> {
        let (index, _) = match attachment_head(scan, place).map_err(Trouble::Read)? {
            Ok(head) => head,
            Err(cause) => return Ok(Err(cause)),
        };
        let start = place.at + HEAD as u64;
        let mut crc = crc32fast::Hasher::new();
        let pieces = |end: u64| (start..end).step_by(PIECE as usize).map(move |at| (at, PIECE.min(end - at)));
        let end = place.end() - 4;
        for (at, length) in pieces(end) {
            crc.update(&scan.bytes(at, length).map_err(Trouble::Read)?);
        }
        let stated = scan.bytes(end, 4).map_err(Trouble::Read)?;
        let stated = stated.first_chunk().map_or(0, |crc| u32::from_le_bytes(*crc));
        if stated != 0 && stated != crc.finalize() {
            return Ok(Err("it does not have its CRC-32".to_owned()));
        }
        self.mcap.drain().map_err(Trouble::Write)?;
        if index.name.starts_with(OWN) && (self.manifest.is_none() || self.mcap.written() != place.at) {
            return Ok(Ok(()));
        }
        if index.name == NAME {
            self.kept = self.manifest.clone();
        }
        self.mcap.adopt_attachment(index).map_err(Trouble::Write)?;
        let head = scan.bytes(place.at, HEAD as u64).map_err(Trouble::Read)?;
        self.mcap.write(&head).map_err(|error| Trouble::Write(error.into()))?;
        for (at, length) in pieces(place.end()) {
            let piece = scan.bytes(at, length).map_err(Trouble::Read)?;
            self.mcap.write(&piece).map_err(|error| Trouble::Write(error.into()))?;
        }
        Ok(Ok(()))
    }

    fn finish(mut self, damage: Option<Damage>) -> std::result::Result<Recovered, DatasetError> {
        self.mcap.drain()?;
        let (messages, chunks) = self.mcap.counts();
        let channels = self.channels.len() as u64;
        let dataset = self.kept.map(|(id, manifest)| {
            if let Some(tree) = &manifest.tree {
                self.mcap.summary_record(ROOT, root_bytes(tree));
            }
            id
        });
        let (_, bytes) = self.mcap.finish()?;
        Ok(Recovered { bytes, chunks, channels, messages, dataset, damage })
    }
}
