//! Head and directory of an index drive that is a device: the directory of the copies on it, in blocks that
//! are written one by one. `docs/format.md` draws it.

use crate::bytes::{FieldReader, SliceWriter, u32_at};
use crate::{FormatError, crc32c};
use holdfast_base::{BLOCK, RingId, Sequence};

const MAGIC: [u8; 8] = *b"HFIXDRV1";
const WHAT: &str = "index drive";

/// For so many bytes of the drive there is an entry.
const BYTES_PER_ENTRY: u64 = 256 << 10;

/// What the drive is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriveHead {
    /// Bytes that it has.
    pub bytes: u64,
    /// Blocks of its directory.
    pub blocks: u32,
}

/// Where a copy is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriveEntry {
    /// The ring of its slot.
    pub ring: RingId,
    /// What the slot held.
    pub sequence: Sequence,
    /// Its first block.
    pub first: u32,
    /// Its bytes.
    pub bytes: u32,
}

/// A block of the directory: places for entries, some of them empty.
pub type DriveBlock = [Option<DriveEntry>; DriveHead::ENTRIES];

impl DriveHead {
    /// Entries that a block of the directory has room for.
    pub const ENTRIES: usize = 127;

    /// That of a drive of so many bytes. `None`: too few.
    pub fn of(bytes: u64) -> Option<Self> {
        let bytes = bytes.min(u64::from(u32::MAX) * BLOCK as u64);
        let entries = bytes / BYTES_PER_ENTRY;
        let blocks = u32::try_from(entries.div_ceil(Self::ENTRIES as u64).max(1)).ok()?;
        Some(Self { bytes, blocks }).filter(|head| head.first() < head.end())
    }

    /// The first block that copies may take.
    pub fn first(&self) -> u32 {
        1 + self.blocks
    }

    /// The first block behind those that they may take.
    pub fn end(&self) -> u32 {
        u32::try_from(self.bytes / BLOCK as u64).unwrap_or(u32::MAX)
    }

    /// As it stands in the first block.
    pub fn encode(&self) -> [u8; BLOCK] {
        let mut bytes = [0; BLOCK];
        SliceWriter::new(&mut bytes).bytes(&MAGIC).u16(1).u16(0).u32(self.blocks).u64(self.bytes);
        closed(bytes)
    }

    /// Reads it.
    pub fn decode(bytes: &[u8; BLOCK]) -> Result<Self, FormatError> {
        let mut get = FieldReader::new(WHAT, bytes);
        get.magic(MAGIC)?;
        is_closed(bytes)?;
        match get.u16()? {
            1 => {}
            _ => return Err(get.seek(8).malformed("a version that is not known")),
        }
        get.u16()?;
        let (blocks, bytes) = (get.u32()?, get.u64()?);
        let head = Self { bytes, blocks };
        if Self::of(bytes) != Some(head) {
            return Err(get.seek(12).malformed("a directory of another size"));
        }
        Ok(head)
    }

    /// A block of the directory.
    pub fn encode_block(entries: &DriveBlock) -> [u8; BLOCK] {
        let mut bytes = [0; BLOCK];
        let mut put = SliceWriter::new(&mut bytes);
        for entry in entries {
            match entry {
                Some(entry) => {
                    put.bytes(&entry.ring.0).u64(entry.sequence.0).u32(entry.first).u32(entry.bytes);
                }
                None => {
                    put.zeros(DriveEntry::BYTES);
                }
            }
        }
        closed(bytes)
    }

    /// Reads a block of the directory.
    pub fn decode_block(&self, bytes: &[u8; BLOCK]) -> Result<DriveBlock, FormatError> {
        is_closed(bytes)?;
        let mut get = FieldReader::new(WHAT, bytes);
        let mut entries = [None; Self::ENTRIES];
        for entry in &mut entries {
            let (ring, sequence) = (RingId(get.array()?), Sequence(get.u64()?));
            let found = DriveEntry { ring, sequence, first: get.u32()?, bytes: get.u32()? };
            if found.bytes == 0 {
                continue;
            }
            if found.first < self.first() || found.end().is_none_or(|end| end > self.end()) {
                return Err(get.malformed("a copy outside the drive"));
            }
            *entry = Some(found);
        }
        Ok(entries)
    }
}

impl DriveEntry {
    const BYTES: usize = 32;

    /// Blocks that so many bytes take.
    pub fn blocks(bytes: u32) -> u32 {
        bytes.div_ceil(BLOCK as u32)
    }

    /// The first block behind it.
    pub fn end(&self) -> Option<u32> {
        self.first.checked_add(Self::blocks(self.bytes))
    }
}

/// With a checksum in the last four bytes.
fn closed(mut bytes: [u8; BLOCK]) -> [u8; BLOCK] {
    let crc = crc32c(&bytes[..BLOCK - 4]);
    SliceWriter::new(&mut bytes).seek(BLOCK - 4).u32(crc);
    bytes
}

fn is_closed(bytes: &[u8; BLOCK]) -> Result<(), FormatError> {
    if u32_at(bytes, BLOCK - 4) == crc32c(&bytes[..BLOCK - 4]) {
        Ok(())
    } else {
        Err(FormatError::BadChecksum { structure: WHAT, at: 0 })
    }
}
