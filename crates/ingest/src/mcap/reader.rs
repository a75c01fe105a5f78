//! Sequential reader of an MCAP file. A chunk is decompressed and checked before any record of it is returned; a length
//! is trusted only within its limit. Memory is that of the largest record and chunk.

use super::{Fields, MAGIC, opcode};
use lz4_flex::frame::FrameDecoder;
use std::io::{self, Read};
use std::ops::Range;

/// Bytes of the largest record, and of what a chunk is unpacked to: writers make chunks of some MiB.
pub const MOST_RECORD: usize = 32 << 20;

/// Bytes of the LZ4 decoder's buffers at most: two blocks of 8 MiB, the largest that a frame may announce.
pub(crate) const LZ4_BUFFERS: usize = 16 << 20;

/// What is wrong with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum McapDamage {
    /// Another kind of file, or another version.
    #[error("not an MCAP file of version 0")]
    NotMcap,
    /// It ends too early.
    #[error("the file is truncated")]
    Cut,
    /// A record whose fields do not fit into it.
    #[error("a {} record is malformed", opcode::name(*.0))]
    Malformed(u8),
    /// More than is read at once.
    #[error("a record is larger than {} MiB", MOST_RECORD >> 20)]
    TooLarge,
    /// A chunk that is packed in another way.
    #[error("a chunk is compressed with neither lz4 nor zstd")]
    Compression,
    /// A chunk that cannot be unpacked to what it says.
    #[error("a chunk is damaged")]
    Chunk,
    /// A message of a channel that no record before it defines.
    #[error("a message refers to channel {0}, which no record before it defines")]
    NoChannel(u16),
    /// A channel of a schema that no record before it defines.
    #[error("channel {channel} refers to schema {schema}, which no record before it defines")]
    NoSchema {
        /// Number of the channel.
        channel: u16,
        /// Number of its schema.
        schema: u16,
    },
    /// Schemas and channels that are too many.
    #[error("its schemas and channels need more than {} MiB", .limit >> 20)]
    Preamble {
        /// Bytes that there may be.
        limit: usize,
    },
    /// A channel number that is used again.
    #[error("channel {0} is defined again with other contents")]
    ChannelTwice(u16),
    /// A schema number that is used again.
    #[error("schema {0} is defined again with other contents")]
    SchemaTwice(u16),
    /// A metadata key of a channel that is used again.
    #[error("the metadata of channel {0} has a key twice")]
    KeyTwice(u16),
}

/// Why reading ended early.
#[derive(Debug, thiserror::Error)]
pub enum McapError {
    /// The file.
    #[error("at byte {at_byte}: {damage}")]
    Broken {
        /// Where the record begins that cannot be read.
        at_byte: u64,
        /// What is wrong with it.
        damage: McapDamage,
    },
    /// The system.
    #[error("reading failed after byte {after_byte}: {error}")]
    Io {
        /// As far as it was read.
        after_byte: u64,
        /// What it said.
        error: io::Error,
    },
}

/// A message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// Its channel.
    pub channel: u16,
    /// Its number in the channel.
    pub sequence: u32,
    /// When it was recorded, in nanoseconds since 1970.
    pub log_time: u64,
    /// When it was sent.
    pub publish_time: u64,
    /// It.
    pub data: &'a [u8],
}

impl Message<'_> {
    /// Tells if a time of it is after 2262: nanoseconds in 63 bits end there.
    pub(crate) fn is_late(&self) -> bool {
        self.log_time.max(self.publish_time) > i64::MAX as u64
    }
}

/// What is read of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record<'a> {
    /// Its header, whole.
    Header(&'a [u8]),
    /// A schema, whole.
    Schema(&'a [u8]),
    /// A channel, whole.
    Channel(&'a [u8]),
    /// A message.
    Message(Message<'a>),
    /// Something that is passed over: an attachment, metadata, or a record of an unknown type.
    Other,
}

/// Reads a file from its first byte.
pub struct McapReader<R> {
    input: R,
    /// Bytes read; where the record begins that was read last.
    at: u64,
    begun: u64,
    record: Vec<u8>,
    /// The records of the chunk that was read last, and how far they were given out.
    chunk: Vec<u8>,
    inside: usize,
}

impl<R> std::fmt::Debug for McapReader<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("McapReader").field("at", &self.at).finish_non_exhaustive()
    }
}

/// Where the bytes of a record are.
enum RecordBuffer {
    Record,
    Chunk(Range<usize>),
}

impl<R: Read> McapReader<R> {
    /// Of a file that is read from its beginning.
    pub fn new(input: R) -> Self {
        Self { input, at: 0, begun: 0, record: Vec::new(), chunk: Vec::new(), inside: 0 }
    }

    /// Where the record begins in the file that was read last, or the chunk that has it.
    pub fn position(&self) -> u64 {
        self.begun
    }

    /// The next record; `None` at the end of the data.
    pub fn next_record(&mut self) -> Result<Option<Record<'_>>, McapError> {
        if self.at == 0 {
            let mut magic = [0; MAGIC.len()];
            let all = self.fill(&mut magic)?;
            if !all || magic != MAGIC {
                return Err(self.broken(McapDamage::NotMcap));
            }
        }
        let (kind, place) = loop {
            if let Some(rest) = self.chunk.get(self.inside..).filter(|rest| !rest.is_empty()) {
                let Some((kind, content)) = inner(rest) else {
                    return Err(self.broken(McapDamage::Malformed(opcode::CHUNK)));
                };
                let start = self.inside + content.start;
                self.inside += content.end;
                if matters(kind) {
                    break (kind, RecordBuffer::Chunk(start..self.inside));
                }
                return Ok(Some(Record::Other));
            }
            match self.outer()? {
                opcode::DATA_END | opcode::FOOTER => return Ok(None),
                opcode::CHUNK => self.unpack().map_err(|damage| self.broken(damage))?,
                kind if matters(kind) => break (kind, RecordBuffer::Record),
                kind if opcode::INDEXES.contains(&kind) => {}
                _ => return Ok(Some(Record::Other)),
            }
        };
        let begun = self.begun;
        let content = match place {
            RecordBuffer::Record => &self.record[..],
            RecordBuffer::Chunk(range) => &self.chunk[range],
        };
        let malformed = McapError::Broken { at_byte: begun, damage: McapDamage::Malformed(kind) };
        Ok(Some(match kind {
            opcode::HEADER => Record::Header(content),
            opcode::SCHEMA => Record::Schema(content),
            opcode::CHANNEL => Record::Channel(content),
            _ => Record::Message(message(content).ok_or(malformed)?),
        }))
    }

    fn broken(&self, damage: McapDamage) -> McapError {
        McapError::Broken { at_byte: self.begun, damage }
    }

    /// Reads a record of the file, and its content if it is wanted. What it is.
    fn outer(&mut self) -> Result<u8, McapError> {
        self.begun = self.at;
        let mut head = [0; 9];
        if !self.fill(&mut head)? {
            return Err(self.broken(McapDamage::Cut));
        }
        let [kind, count @ ..] = head;
        let count = u64::from_le_bytes(count);
        if kind != opcode::CHUNK && !matters(kind) {
            let mut rest = (&mut self.input).take(count);
            let passed = io::copy(&mut rest, &mut io::sink());
            let passed = passed.map_err(|error| McapError::Io { after_byte: self.at, error })?;
            self.at += passed;
            return if passed == count { Ok(kind) } else { Err(self.broken(McapDamage::Cut)) };
        }
        if count > MOST_RECORD as u64 {
            return Err(self.broken(McapDamage::TooLarge));
        }
        // As much memory as there are bytes, whatever it says.
        self.record.clear();
        let read = (&mut self.input).take(count).read_to_end(&mut self.record);
        let read = read.map_err(|error| McapError::Io { after_byte: self.at, error })?;
        self.at += read as u64;
        if read as u64 == count { Ok(kind) } else { Err(self.broken(McapDamage::Cut)) }
    }

    /// Whether there were as many bytes.
    fn fill(&mut self, bytes: &mut [u8]) -> Result<bool, McapError> {
        match self.input.read_exact(bytes) {
            Ok(()) => {
                self.at += bytes.len() as u64;
                Ok(true)
            }
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
            Err(error) => Err(McapError::Io { after_byte: self.at, error }),
        }
    }

    /// Makes the records of the chunk that was read those that come next.
    fn unpack(&mut self) -> Result<(), McapDamage> {
        self.inside = 0;
        self.chunk.clear();
        let (size, crc, compression, packed) =
            chunk(&self.record).ok_or(McapDamage::Malformed(opcode::CHUNK))?;
        let size =
            usize::try_from(size).ok().filter(|size| *size <= MOST_RECORD).ok_or(McapDamage::TooLarge)?;
        let limit = size as u64 + 1;
        let unpacked = match compression {
            "" => packed.take(limit).read_to_end(&mut self.chunk).is_ok(),
            "lz4" => decompress_lz4(packed, &mut self.chunk, limit).is_ok(),
            "zstd" => zstd::Decoder::new(packed)
                .and_then(|decoder| decoder.take(limit).read_to_end(&mut self.chunk))
                .is_ok(),
            _ => return Err(McapDamage::Compression),
        };
        let right = unpacked && self.chunk.len() == size && (crc == 0 || crc32fast::hash(&self.chunk) == crc);
        if !right {
            self.chunk.clear();
            return Err(McapDamage::Chunk);
        }
        Ok(())
    }
}

/// Appends the contents of all LZ4 frames in `packed` to `into`, up to `limit` bytes in all.
fn decompress_lz4(mut packed: &[u8], into: &mut Vec<u8>, limit: u64) -> io::Result<()> {
    // A decoder stops at the end of each frame.
    while !packed.is_empty() && (into.len() as u64) < limit {
        let left = limit - into.len() as u64;
        FrameDecoder::new(&mut packed).take(left).read_to_end(into)?;
    }
    Ok(())
}

/// Whether records of this kind are given out.
fn matters(kind: u8) -> bool {
    matches!(kind, opcode::HEADER | opcode::SCHEMA | opcode::CHANNEL | opcode::MESSAGE)
}

/// What the first record of a chunk is, and where its content lies.
fn inner(records: &[u8]) -> Option<(u8, Range<usize>)> {
    let [kind, count @ ..] = records.first_chunk::<9>()?;
    let end = 9usize.checked_add(usize::try_from(u64::from_le_bytes(*count)).ok()?)?;
    (end <= records.len()).then_some((*kind, 9..end))
}

fn message(content: &[u8]) -> Option<Message<'_>> {
    let mut fields = Fields(content);
    Some(Message {
        channel: fields.u16()?,
        sequence: fields.u32()?,
        log_time: fields.u64()?,
        publish_time: fields.u64()?,
        data: fields.0,
    })
}

/// A chunk's bytes unpacked, its check, how it is packed, and what.
fn chunk(content: &[u8]) -> Option<(u64, u32, &str, &[u8])> {
    let mut fields = Fields(content);
    let _times = (fields.u64()?, fields.u64()?);
    let (size, crc, compression) = (fields.u64()?, fields.u32()?, fields.text()?);
    let count = usize::try_from(fields.u64()?).ok()?;
    Some((size, crc, compression, fields.take(count)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lz4_flex::frame::{BlockMode, BlockSize, FrameEncoder, FrameInfo};
    use std::io::Write as _;

    fn frame(text: &[u8], mode: BlockMode, sums: bool) -> Vec<u8> {
        let info = FrameInfo::new()
            .block_mode(mode)
            .block_size(BlockSize::Max64KB)
            .block_checksums(sums)
            .content_checksum(sums)
            .content_size(sums.then_some(text.len() as u64));
        let mut encoder = FrameEncoder::with_frame_info(info, Vec::new());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    // Promise 8: a chunk expands to its declared size and not beyond, however many frames it has.
    #[test]
    fn lz4_frames_of_all_kinds_are_decompressed_up_to_the_limit() {
        let text: Vec<u8> = (0..300_000u32).map(|at| (at / 7 % 251) as u8).collect();
        for mode in [BlockMode::Linked, BlockMode::Independent] {
            for sums in [false, true] {
                let mut packed = frame(&text, mode, sums);
                packed.extend(frame(&text[..5], mode, sums));
                let whole = [&text[..], &text[..5]].concat();
                let mut out = Vec::new();
                decompress_lz4(&packed, &mut out, whole.len() as u64 + 1).unwrap();
                assert!(out == whole);
                for limit in [0, 1, 70_000, 300_002] {
                    let mut out = Vec::new();
                    decompress_lz4(&packed, &mut out, limit).unwrap();
                    assert!(out == whole[..limit as usize]);
                }
                let cut = &packed[..packed.len() - 13];
                let mut out = Vec::new();
                assert!(decompress_lz4(cut, &mut out, 1 << 20).is_err() || out.len() < whole.len());
            }
        }
    }

    #[test]
    fn a_frame_with_a_wrong_checksum_is_refused() {
        let mut packed = frame(&[7; 1000], BlockMode::Independent, true);
        let last = packed.len() - 1;
        packed[last] ^= 1;
        assert!(decompress_lz4(&packed, &mut Vec::new(), 1 << 20).is_err());
    }
}
