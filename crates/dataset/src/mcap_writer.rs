//! Writer of an MCAP file, front to back: chunks are compressed beside it, and the summary comes last.

use crate::chunks::{OpenChunk, PackedChunk, Packers};
use crate::compression::Compression;
use crate::error::DatasetError;
use crate::manifest::ChunkEntry;
use crate::records::{HEAD, MAGIC, begin, content, end, put};
use mcap::records::{
    AttachmentHeader, AttachmentIndex, Channel, ChunkIndex, DataEnd, Footer, Header, MessageHeader,
    MetadataIndex, SchemaHeader, Statistics, SummaryOffset, op,
};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Place of a message: number of its chunk, and offset of its record in the decompressed chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Position {
    pub(crate) chunk: u32,
    pub(crate) offset: u64,
}

/// Attachment in a file: where its data lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AttachmentPlace {
    pub(crate) offset: u64,
    pub(crate) length: u64,
}

/// Writer of an MCAP file.
pub(crate) struct McapWriter<W> {
    out: W,
    at: u64,
    chunk_bytes: usize,
    open: OpenChunk,
    packers: Packers,
    /// Number of the open chunk.
    number: u32,
    schemas: Vec<(SchemaHeader, Vec<u8>)>,
    channels: Vec<Channel>,
    statistics: Statistics,
    chunks: Vec<ChunkIndex>,
    hashes: Vec<blake3::Hash>,
    attachments: Vec<AttachmentIndex>,
    metadata: Vec<MetadataIndex>,
    /// Records of the application at the end of the summary: opcode and content.
    own: Vec<(u8, Vec<u8>)>,
}

impl<W: Write> McapWriter<W> {
    /// Begins an MCAP file without a profile.
    pub(crate) fn new(
        out: W,
        compression: Compression,
        chunk_bytes: usize,
        threads: usize,
    ) -> Result<Self, DatasetError> {
        let library = concat!("holdfast ", env!("CARGO_PKG_VERSION")).to_owned();
        let header = Header { profile: String::new(), library };
        Self::with_header(out, &header, compression, chunk_bytes, threads)
    }

    /// Begins an MCAP file with a header record.
    pub(crate) fn with_header(
        out: W,
        header: &Header,
        compression: Compression,
        chunk_bytes: usize,
        threads: usize,
    ) -> Result<Self, DatasetError> {
        let mut writer = Self {
            out,
            at: 0,
            chunk_bytes,
            open: OpenChunk::default(),
            packers: Packers::start(threads, compression)?,
            number: 0,
            schemas: Vec::new(),
            channels: Vec::new(),
            statistics: Statistics::default(),
            chunks: Vec::new(),
            hashes: Vec::new(),
            attachments: Vec::new(),
            metadata: Vec::new(),
            own: Vec::new(),
        };
        let mut bytes = MAGIC.to_vec();
        put(&mut bytes, op::HEADER, header);
        writer.write(&bytes)?;
        Ok(writer)
    }

    /// Writes bytes of a record that is copied.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.write_all(bytes)?;
        self.at += bytes.len() as u64;
        Ok(())
    }

    /// Adds a schema; one that is there already is not added again.
    pub(crate) fn schema(&mut self, name: &str, encoding: &str, data: &[u8]) -> Result<u16, DatasetError> {
        let same = |(known, bytes): &&(SchemaHeader, Vec<u8>)| {
            known.name == name && known.encoding == encoding && bytes == data
        };
        if let Some((known, _)) = self.schemas.iter().find(same) {
            return Ok(known.id);
        }
        let id = number(self.schemas.len() + 1, "schemas")?;
        let header = SchemaHeader { id, name: name.to_owned(), encoding: encoding.to_owned() };
        let mut bytes = Vec::new();
        put_schema(&mut bytes, &header, data);
        self.write(&bytes)?;
        self.schemas.push((header, data.to_vec()));
        Ok(id)
    }

    /// Adds a channel; one that is there already is not added again.
    pub(crate) fn channel(
        &mut self,
        schema_id: u16,
        topic: &str,
        message_encoding: &str,
        metadata: &BTreeMap<String, String>,
    ) -> Result<u16, DatasetError> {
        let same = |known: &&Channel| {
            known.schema_id == schema_id
                && known.topic == topic
                && known.message_encoding == message_encoding
                && known.metadata == *metadata
        };
        if let Some(known) = self.channels.iter().find(same) {
            return Ok(known.id);
        }
        self.new_channel(schema_id, topic, message_encoding, metadata)
    }

    /// Adds a channel, though there may be one that is the same.
    pub(crate) fn new_channel(
        &mut self,
        schema_id: u16,
        topic: &str,
        message_encoding: &str,
        metadata: &BTreeMap<String, String>,
    ) -> Result<u16, DatasetError> {
        let channel = Channel {
            id: number(self.channels.len(), "channels")?,
            schema_id,
            topic: topic.to_owned(),
            message_encoding: message_encoding.to_owned(),
            metadata: metadata.clone(),
        };
        let mut bytes = Vec::new();
        put(&mut bytes, op::CHANNEL, &channel);
        self.write(&bytes)?;
        let id = channel.id;
        self.channels.push(channel);
        Ok(id)
    }

    /// Adds a message to the open chunk.
    pub(crate) fn message(&mut self, header: &MessageHeader, data: &[u8]) -> Result<Position, DatasetError> {
        if self.open.len() > 0 && self.open.len() + HEAD + data.len() > self.chunk_bytes {
            self.seal()?;
        }
        let offset = self.open.message(header, data);
        self.count(header);
        Ok(Position { chunk: self.number, offset })
    }

    /// Counts a message in the statistics.
    fn count(&mut self, header: &MessageHeader) {
        let statistics = &mut self.statistics;
        let time = header.log_time;
        let is_first = statistics.message_count == 0;
        statistics.message_start_time = if is_first { time } else { statistics.message_start_time.min(time) };
        statistics.message_end_time = statistics.message_end_time.max(time);
        statistics.message_count += 1;
        *statistics.channel_message_counts.entry(header.channel_id).or_default() += 1;
    }

    /// Ends the open chunk.
    fn seal(&mut self) -> Result<(), DatasetError> {
        if self.open.len() == 0 {
            return Ok(());
        }
        self.next_number()?;
        let done = self.packers.give(std::mem::take(&mut self.open))?;
        done.map_or(Ok(()), |chunk| self.place(chunk))
    }

    fn next_number(&mut self) -> Result<(), DatasetError> {
        let next = self.number.checked_add(1);
        self.number =
            next.ok_or_else(|| DatasetError::Limit("a dataset has at most 2^32 chunks".to_owned()))?;
        Ok(())
    }

    /// Adds a schema with its id; one of a chunk is written in the summary alone.
    pub(crate) fn adopt_schema(
        &mut self,
        header: SchemaHeader,
        data: Vec<u8>,
        in_file: bool,
    ) -> Result<(), DatasetError> {
        if in_file {
            let mut bytes = Vec::new();
            put_schema(&mut bytes, &header, &data);
            self.write(&bytes)?;
        }
        self.schemas.push((header, data));
        Ok(())
    }

    /// Adds a channel with its id; one of a chunk is written in the summary alone.
    pub(crate) fn adopt_channel(&mut self, channel: Channel, in_file: bool) -> Result<(), DatasetError> {
        if in_file {
            let mut bytes = Vec::new();
            put(&mut bytes, op::CHANNEL, &channel);
            self.write(&bytes)?;
        }
        self.channels.push(channel);
        Ok(())
    }

    /// Adds a chunk of another file with these messages.
    pub(crate) fn adopt_chunk(
        &mut self,
        chunk: PackedChunk,
        messages: &[(MessageHeader, u64)],
    ) -> Result<(), DatasetError> {
        self.drain()?;
        self.next_number()?;
        for (header, _) in messages {
            self.count(header);
        }
        self.place(chunk)
    }

    /// Adds the entry of an attachment whose record is written next.
    pub(crate) fn adopt_attachment(&mut self, index: AttachmentIndex) -> Result<(), DatasetError> {
        self.drain()?;
        self.attachments.push(AttachmentIndex { offset: self.at, ..index });
        Ok(())
    }

    /// Adds a metadata record as it is.
    pub(crate) fn adopt_metadata(&mut self, record: &[u8], name: String) -> Result<(), DatasetError> {
        self.metadata.push(MetadataIndex { offset: self.at, length: record.len() as u64, name });
        Ok(self.write(record)?)
    }

    /// Messages and chunks so far.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.statistics.message_count, self.chunks.len() as u64)
    }

    /// Writes a chunk that is compressed.
    fn place(&mut self, chunk: PackedChunk) -> Result<(), DatasetError> {
        let mut index = chunk.index;
        index.chunk_start_offset = self.at;
        index.message_index_offsets.values_mut().for_each(|offset| *offset += self.at);
        self.write(&chunk.bytes)?;
        self.chunks.push(index);
        self.hashes.push(chunk.hash);
        Ok(())
    }

    /// Writes all chunks, the open one included.
    pub(crate) fn drain(&mut self) -> Result<(), DatasetError> {
        self.seal()?;
        while let Some(chunk) = self.packers.next()? {
            self.place(chunk)?;
        }
        Ok(())
    }

    /// Offset and length of a chunk record that is written.
    pub(crate) fn chunk_place(&self, number: u32) -> Option<(u64, u64)> {
        let index = self.chunks.get(number as usize)?;
        Some((index.chunk_start_offset, index.chunk_length))
    }

    /// Adds a record of an opcode from 0x80 on, which other programs skip, at the end of the summary.
    pub(crate) fn summary_record(&mut self, opcode: u8, content: Vec<u8>) {
        self.own.push((opcode, content));
    }

    /// Writes all chunks, the open one included; their entries.
    pub(crate) fn flush(&mut self) -> Result<Vec<ChunkEntry>, DatasetError> {
        self.drain()?;
        let entries = self.chunks.iter().zip(&self.hashes).map(|(index, hash)| ChunkEntry {
            offset: index.chunk_start_offset,
            length: index.chunk_length,
            blake3: hash.to_hex().to_string(),
        });
        Ok(entries.collect())
    }

    /// Hands all that was written to the output's own target.
    pub(crate) fn flush_output(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// Bytes written so far; chunks that are being compressed count as they are before that.
    pub(crate) fn written(&self) -> u64 {
        self.at + self.packers.pending_bytes()
    }

    /// Adds an attachment; where its data lies.
    pub(crate) fn attach(
        &mut self,
        name: &str,
        media_type: &str,
        data: &[u8],
    ) -> Result<AttachmentPlace, DatasetError> {
        let header = AttachmentHeader {
            log_time: 0,
            create_time: 0,
            name: name.to_owned(),
            media_type: media_type.to_owned(),
        };
        let mut bytes = Vec::new();
        let head = begin(&mut bytes, op::ATTACHMENT);
        content(&mut bytes, &header);
        bytes.extend_from_slice(&(data.len() as u64).to_le_bytes());
        let mut crc = crc32fast::Hasher::new();
        crc.update(&bytes[head..]);
        crc.update(data);
        let start = bytes.len();
        let length = (start - head + data.len() + 4) as u64;
        bytes[head - 8..head].copy_from_slice(&length.to_le_bytes());
        let place = AttachmentPlace { offset: self.at + start as u64, length: data.len() as u64 };
        let index = AttachmentIndex {
            offset: self.at,
            length: length + HEAD as u64,
            log_time: 0,
            create_time: 0,
            data_size: data.len() as u64,
            name: name.to_owned(),
            media_type: media_type.to_owned(),
        };
        self.write(&bytes)?;
        self.write(data)?;
        self.write(&crc.finalize().to_le_bytes())?;
        self.attachments.push(index);
        Ok(place)
    }

    /// Ends the file: the summary and the footer. The output and the bytes of the whole.
    pub(crate) fn finish(mut self) -> Result<(W, u64), DatasetError> {
        self.flush()?;
        let mut tail = Vec::new();
        put(&mut tail, op::DATA_END, &DataEnd { data_section_crc: 0 });
        self.write(&tail)?;
        let start = self.at;
        let statistics = &mut self.statistics;
        statistics.schema_count = number(self.schemas.len(), "schemas")?;
        statistics.channel_count = self.channels.len() as u32;
        statistics.attachment_count = self.attachments.len() as u32;
        statistics.metadata_count = self.metadata.len() as u32;
        statistics.chunk_count = self.chunks.len() as u32;
        let mut summary = Vec::new();
        let mut groups = Vec::new();
        let mut group = |summary: &mut Vec<u8>, opcode: u8, put: &mut dyn FnMut(&mut Vec<u8>)| {
            let before = summary.len();
            put(summary);
            let group_length = (summary.len() - before) as u64;
            if group_length > 0 {
                let group_start = start + before as u64;
                groups.push(SummaryOffset { group_opcode: opcode, group_start, group_length });
            }
        };
        group(&mut summary, op::SCHEMA, &mut |out| {
            self.schemas.iter().for_each(|(header, data)| put_schema(out, header, data));
        });
        group(&mut summary, op::CHANNEL, &mut |out| {
            self.channels.iter().for_each(|channel| put(out, op::CHANNEL, channel));
        });
        group(&mut summary, op::STATISTICS, &mut |out| put(out, op::STATISTICS, &self.statistics));
        group(&mut summary, op::CHUNK_INDEX, &mut |out| {
            self.chunks.iter().for_each(|index| put(out, op::CHUNK_INDEX, index));
        });
        group(&mut summary, op::ATTACHMENT_INDEX, &mut |out| {
            self.attachments.iter().for_each(|index| put(out, op::ATTACHMENT_INDEX, index));
        });
        group(&mut summary, op::METADATA_INDEX, &mut |out| {
            self.metadata.iter().for_each(|index| put(out, op::METADATA_INDEX, index));
        });
        for (opcode, content) in &self.own {
            group(&mut summary, *opcode, &mut |out| {
                let head = begin(out, *opcode);
                out.extend_from_slice(content);
                end(out, head);
            });
        }
        let offsets_start = start + summary.len() as u64;
        for offset in &groups {
            put(&mut summary, op::SUMMARY_OFFSET, offset);
        }
        let footer = Footer { summary_start: start, summary_offset_start: offsets_start, summary_crc: 0 };
        put(&mut summary, op::FOOTER, &footer);
        // The checksum is of all before it, from the beginning of the summary on.
        let place = summary.len() - 4;
        let crc = crc32fast::hash(&summary[..place]);
        summary[place..].copy_from_slice(&crc.to_le_bytes());
        summary.extend_from_slice(&MAGIC);
        self.write(&summary)?;
        self.out.flush()?;
        Ok((self.out, self.at))
    }
}

fn number(count: usize, what: &str) -> Result<u16, DatasetError> {
    count.try_into().map_err(|_| DatasetError::Limit(format!("an MCAP file has at most 65535 {what}")))
}

fn put_schema(out: &mut Vec<u8>, header: &SchemaHeader, data: &[u8]) {
    let head = begin(out, op::SCHEMA);
    content(out, header);
    out.extend_from_slice(&(data.len() as u32).to_le_bytes());
    out.extend_from_slice(data);
    end(out, head);
}
