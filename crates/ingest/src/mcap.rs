//! Reader of MCAP files for replay: messages in file order, and the schemas and channels that a reader needs before
//! them. Bytes in, messages out; sources are in `source`.
//!
//! ```text
//! file     magic 8 | records | magic 8
//! record   opcode u8 | bytes u64 | content; everything little-endian, a string is a u32 of bytes and UTF-8
//! 1 header     profile string | library string
//! 3 schema     id u16 | name string | encoding string | data: u32 of bytes and they
//! 4 channel    id u16 | schema u16 (0: none) | topic string | encoding string | metadata: u32 of bytes and pairs of strings
//! 5 message    channel u16 | sequence u32 | log time u64 | publish time u64 | data
//! 6 chunk      first time u64 | last time u64 | bytes unpacked u64 | crc u32 (0: none) | compression string | records: u64 of
//!              bytes and they
//! 15 end of data: behind it an index, which repeats schemas and channels
//! ```

mod preamble;
mod reader;

pub use preamble::{McapPreamble, McapScanReport, scan};
pub(crate) use reader::LZ4_BUFFERS;
pub use reader::{MOST_RECORD, McapDamage, McapError, McapReader, Message, Record};

/// What such a file begins with.
pub const MAGIC: [u8; 8] = *b"\x89MCAP0\r\n";

/// First bytes of a file of any version.
pub(crate) const MAGIC_OF_ALL: [u8; 5] = *b"\x89MCAP";

/// What records are.
mod opcode {
    pub(super) const HEADER: u8 = 1;
    pub(super) const FOOTER: u8 = 2;
    pub(super) const SCHEMA: u8 = 3;
    pub(super) const CHANNEL: u8 = 4;
    pub(super) const MESSAGE: u8 = 5;
    pub(super) const CHUNK: u8 = 6;
    /// Indexes and statistics of records that are read themselves.
    pub(super) const INDEXES: [u8; 6] = [7, 8, 10, 11, 13, 14];
    pub(super) const DATA_END: u8 = 15;

    /// The name of a type of record.
    pub(super) fn name(kind: u8) -> &'static str {
        match kind {
            HEADER => "header",
            SCHEMA => "schema",
            CHANNEL => "channel",
            MESSAGE => "message",
            CHUNK => "chunk",
            _ => "unknown",
        }
    }
}

/// Takes the fields of a record, from its beginning on.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }

    fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// Bytes behind their number.
    fn bytes(&mut self) -> Option<&'a [u8]> {
        let count = self.u32()?;
        self.take(count as usize)
    }

    fn text(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.bytes()?).ok()
    }
}
