//! Index copy: a slot without its payload, with checks of its own, as an index drive keeps it.
//! `docs/format.md` draws it.

use crate::bytes::{FieldReader, SliceWriter, u32_at};
use crate::{FormatError, PartHeader, crc32c};
use holdfast_base::{CHECK_BLOCK, MAX_SLOT, RingId, Sequence, SlotNo};
use std::ops::Range;

const MAGIC: [u8; 8] = *b"HFINDEX1";
const WHAT: &str = "index copy";

/// What stands before its bytes. Behind it are the slot's first bytes, up to its payload, and the slot's index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexCopy {
    /// The ring of the slot.
    pub ring: RingId,
    /// The slot.
    pub slot: SlotNo,
    /// The sequence that it held.
    pub sequence: Sequence,
    /// Bytes from its start.
    pub head: u32,
    /// Where its index is in the slot.
    pub index: Range<u32>,
    /// A CRC32C for every 64 KiB of them, little-endian.
    checks: Vec<u8>,
}

impl IndexCopy {
    /// Bytes that tell how long all of it is.
    pub const FRONT: usize = 64;

    /// That of a slot, with what is to stand behind it: the slot's bytes up to its payload, and its index.
    pub fn new(header: &PartHeader, bytes: &[u8]) -> Self {
        let checks = bytes.chunks(CHECK_BLOCK).flat_map(|block| crc32c(block).to_le_bytes());
        Self {
            ring: header.ring,
            slot: header.slot,
            sequence: header.sequence,
            head: header.payload_offset,
            index: header.index_offset..header.index_offset.saturating_add(header.index_bytes),
            checks: checks.collect(),
        }
    }

    /// What is written before the slot's bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.start()];
        let mut put = SliceWriter::new(&mut bytes);
        put.bytes(&MAGIC).u16(1).u16(0).u32(self.slot.0).bytes(&self.ring.0).u64(self.sequence.0);
        put.u32(self.head).u32(self.index.start).u32(self.index.end);
        put.seek(Self::FRONT).bytes(&self.checks);
        let crc = Self::crc(&bytes);
        SliceWriter::new(&mut bytes).seek(Self::FRONT - 4).u32(crc);
        bytes
    }

    /// Of all but the place of the checksum.
    fn crc(bytes: &[u8]) -> u32 {
        let (front, checks) = bytes.split_at(Self::FRONT);
        crc32c(&[&front[..Self::FRONT - 4], checks].concat())
    }

    /// How many bytes stand before the slot's, as the front says.
    pub fn start_of(front: &[u8; Self::FRONT]) -> Result<usize, FormatError> {
        Ok(Self::read(front)?.start_with_checks())
    }

    /// Reads it; `bytes` are as many as [`IndexCopy::start_of`] says.
    pub fn decode(bytes: &[u8]) -> Result<Self, FormatError> {
        let mut copy = Self::read(bytes)?;
        if bytes.len() != copy.start_with_checks() {
            return Err(FormatError::OutOfBounds { structure: WHAT, at: 64, what: "the checks" });
        }
        if u32_at(bytes, Self::FRONT - 4) != Self::crc(bytes) {
            return Err(FormatError::BadChecksum { structure: WHAT, at: 0 });
        }
        copy.checks = bytes[Self::FRONT..].to_vec();
        Ok(copy)
    }

    /// All but the checks.
    fn read(bytes: &[u8]) -> Result<Self, FormatError> {
        let mut get = FieldReader::new(WHAT, bytes);
        get.magic(MAGIC)?;
        match get.u16()? {
            1 => {}
            _ => return Err(get.seek(8).malformed("a version that is not known")),
        }
        get.u16()?;
        let slot = SlotNo(get.u32()?);
        let (ring, sequence) = (RingId(get.array()?), Sequence(get.u64()?));
        let (head, index) = (get.u32()?, get.u32()?..get.u32()?);
        if head > index.start || index.start > index.end || u64::from(index.end) > MAX_SLOT {
            return Err(get.seek(40).malformed("places that no slot has"));
        }
        Ok(Self { ring, slot, sequence, head, index, checks: Vec::new() })
    }

    /// Bytes of the slot that it has.
    pub fn slot_bytes(&self) -> usize {
        self.head as usize + self.index.len()
    }

    fn start_with_checks(&self) -> usize {
        Self::FRONT + self.slot_bytes().div_ceil(CHECK_BLOCK) * 4
    }

    /// Where the slot's bytes begin in the copy.
    pub fn start(&self) -> usize {
        Self::FRONT + self.checks.len()
    }

    /// Where among them a range of the slot is; `None` where it has not all of it.
    pub fn place(&self, slot: &Range<usize>) -> Option<Range<usize>> {
        let (head, index) = (self.head as usize, self.index.start as usize..self.index.end as usize);
        let within = |outer: &Range<usize>| outer.start <= slot.start && slot.end <= outer.end;
        let at = |base: usize, from: usize| base + slot.start - from..base + slot.end - from;
        match slot {
            _ if slot.start > slot.end => None,
            _ if within(&(0..head)) => Some(at(0, 0)),
            _ if within(&index) => Some(at(head, index.start)),
            _ => None,
        }
    }

    /// Whether these bytes, which begin at a multiple of a check block and end at one or where all end, are what was copied.
    pub fn is_sound(&self, start: usize, bytes: &[u8]) -> bool {
        bytes.chunks(CHECK_BLOCK).zip(start / CHECK_BLOCK..).all(|(block, number)| {
            self.checks
                .get(number * 4..number * 4 + 4)
                .is_some_and(|check| crc32c(block).to_le_bytes() == check)
        })
    }
}
