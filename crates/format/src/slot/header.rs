//! Part header and footer: the identity of a slot, and the proof that it is whole.

use crate::bytes::{FieldReader, SliceWriter};
use crate::superblock::Codec;
use crate::{FormatError, Key};
use holdfast_base::{Age, BLOCK, Epoch, LaneNo, MAX_SLOT, RingId, Sequence, SlotNo, Timestamp};
use std::ops::Range;

const MAGIC: &[u8; 8] = b"HFSLOT01";
const FOOTER_MAGIC: &[u8; 8] = b"HFFOOT01";
const WHAT: &str = "part header";
pub(crate) const TAG_AT: usize = 4080;
/// Where its tag is; between the fields and that all is reserved.
pub(crate) const HEADER_TAG: Range<usize> = TAG_AT..BLOCK;
/// Where its sequence is.
pub(crate) const HEADER_SEQUENCE: usize = 48;
/// Bytes of its fields.
pub(crate) const HEADER_FIELDS: usize = 144;
/// Where in a footer the header's tag is.
const BOUND_AT: usize = 24;

/// How a slot came to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SlotFlags(pub u16);

impl SlotFlags {
    /// Sealed before it was full.
    pub const SHORT: Self = Self(1);
    /// A distilled copy.
    pub const DISTILLED: Self = Self(2);
    /// Made again from the journal.
    pub const REBUILT: Self = Self(4);

    /// Whether all of `flags` are set.
    pub fn has(self, flags: Self) -> bool {
        self.0 & flags.0 == flags.0
    }
}

impl std::ops::BitOr for SlotFlags {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// The first 4 KiB of a slot. `docs/format.md` draws it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PartHeader {
    /// How the slot came to be.
    pub flags: SlotFlags,
    /// Its place on the lane.
    pub slot: SlotNo,
    /// The ring.
    pub ring: RingId,
    /// The ring's group.
    pub group: RingId,
    /// Its sequence.
    pub sequence: Sequence,
    /// The run that wrote it.
    pub epoch: Epoch,
    /// When it expires.
    pub age: Age,
    /// The row of the group that it is a part of.
    pub row: u64,
    /// Its lane.
    pub lane: LaneNo,
    /// Data lanes.
    pub n: u8,
    /// Parity lanes.
    pub k: u8,
    /// How parity is made.
    pub codec: Codec,
    /// Which part of the row it is.
    pub part: u8,
    /// Version of the group's membership.
    pub membership: u64,
    /// When it was opened.
    pub opened: Timestamp,
    /// When it was sealed.
    pub sealed: Timestamp,
    /// Bytes of the summary, which begins at 4096.
    pub summary_bytes: u32,
    /// CRC32C of the summary.
    pub summary_crc: u32,
    /// Where the payload begins.
    pub payload_offset: u32,
    /// Bytes of payload.
    pub payload_bytes: u32,
    /// Where the index begins.
    pub index_offset: u32,
    /// Bytes of index.
    pub index_bytes: u32,
    /// Where the footer is.
    pub footer_offset: u32,
    /// Rows.
    pub rows: u32,
    /// Its tag.
    pub tag: [u8; 16],
}

impl PartHeader {
    /// Where the summary begins.
    pub const SUMMARY_AT: u32 = BLOCK as u32;

    /// Bytes of the whole slot, from header to footer.
    pub fn bytes(&self) -> usize {
        self.footer_offset as usize + BLOCK
    }

    /// Whether `bytes` begin with this very header.
    pub fn is_in(&self, bytes: &[u8]) -> bool {
        bytes.get(TAG_AT..TAG_AT + self.tag.len()) == Some(&self.tag[..])
    }

    /// Writes it to the start of `bytes`; returns its tag, which differs from `self.tag` when anything was changed.
    pub(crate) fn encode(&self, bytes: &mut [u8], key: &Key) -> [u8; 16] {
        let mut put = SliceWriter::new(bytes);
        put.bytes(MAGIC).u16(1).u16(self.flags.0).u32(self.slot.0).bytes(&self.ring.0).bytes(&self.group.0);
        put.u64(self.sequence.0).u64(self.epoch.0).u64(self.age.0).u64(self.row).u16(self.lane.0);
        put.u8(self.n).u8(self.k).u8(self.codec as u8).u8(self.part).u16(0).u64(self.membership);
        put.time(self.opened).time(self.sealed).u32(self.summary_bytes).u32(self.summary_crc);
        put.u32(self.payload_offset).u32(self.payload_bytes).u32(self.index_offset).u32(self.index_bytes);
        put.u32(self.footer_offset).u32(self.rows);
        let reserved = TAG_AT - put.at();
        put.zeros(reserved);
        let tag = key.tag(&bytes[..TAG_AT]);
        SliceWriter::new(bytes).seek(TAG_AT).bytes(&tag);
        tag
    }

    /// Reads the header of a slot of `ring`.
    pub fn decode(bytes: &[u8], key: &Key, ring: RingId) -> Result<Self, FormatError> {
        let mut get = FieldReader::new(WHAT, bytes);
        get.magic(*MAGIC)?;
        let (version, flags, slot) = (get.u16()?, SlotFlags(get.u16()?), SlotNo(get.u32()?));
        let theirs = RingId(get.array()?);
        if theirs != ring {
            return Err(FormatError::Foreign { structure: WHAT, ring: theirs });
        }
        let tag: [u8; 16] = FieldReader::new(WHAT, bytes).seek(TAG_AT).array()?;
        if tag != key.tag(&bytes[..TAG_AT]) {
            return Err(FormatError::BadTag { structure: WHAT, at: TAG_AT as u64 });
        }
        if version != 1 {
            return Err(FormatError::Version { structure: WHAT, version: version.into() });
        }
        let group = RingId(get.array()?);
        let (sequence, epoch, age) = (Sequence(get.u64()?), Epoch(get.u64()?), Age(get.u64()?));
        let (row, lane, n, k) = (get.u64()?, LaneNo(get.u16()?), get.u8()?, get.u8()?);
        let codec =
            Codec::from_byte(get.u8()?).ok_or_else(|| get.malformed("a codec that does not exist"))?;
        let part = get.u8()?;
        get.take(2)?;
        let header = Self {
            flags,
            slot,
            ring,
            group,
            sequence,
            epoch,
            age,
            row,
            lane,
            n,
            k,
            codec,
            part,
            membership: get.u64()?,
            opened: get.time()?,
            sealed: get.time()?,
            summary_bytes: get.u32()?,
            summary_crc: get.u32()?,
            payload_offset: get.u32()?,
            payload_bytes: get.u32()?,
            index_offset: get.u32()?,
            index_bytes: get.u32()?,
            footer_offset: get.u32()?,
            rows: get.u32()?,
            tag,
        };
        header.check()?;
        Ok(header)
    }

    /// Summary, payload, index and footer follow each other without overlaps.
    fn check(&self) -> Result<(), FormatError> {
        let follows =
            |offset: u32, after: u64| u64::from(offset) >= after && (offset as usize).is_multiple_of(BLOCK);
        let end = |offset: u32, bytes: u32| u64::from(offset) + u64::from(bytes);
        let right = follows(self.payload_offset, end(Self::SUMMARY_AT, self.summary_bytes))
            && follows(self.index_offset, end(self.payload_offset, self.payload_bytes))
            && follows(self.footer_offset, end(self.index_offset, self.index_bytes))
            && end(self.footer_offset, BLOCK as u32) <= MAX_SLOT;
        if right {
            Ok(())
        } else {
            Err(FormatError::OutOfBounds { structure: WHAT, at: 112, what: "the layout of the slot" })
        }
    }
}

/// Writes a footer that is bound to the header with `header_tag`.
pub(crate) fn put_footer(
    bytes: &mut [u8],
    key: &Key,
    sequence: Sequence,
    epoch: Epoch,
    header_tag: &[u8; 16],
) {
    let mut put = SliceWriter::new(bytes);
    put.bytes(FOOTER_MAGIC).u64(sequence.0).u64(epoch.0).bytes(header_tag);
    let reserved = TAG_AT - put.at();
    put.zeros(reserved);
    let tag = key.tag(&bytes[..TAG_AT]);
    SliceWriter::new(bytes).seek(TAG_AT).bytes(&tag);
}

/// Checks that `footer` is the end of the slot that begins with `header`: that the slot was written to its end.
pub fn footer_binds(header: &PartHeader, footer: &[u8], key: &Key) -> Result<(), FormatError> {
    const WHAT: &str = "footer";
    let mut get = FieldReader::new(WHAT, footer);
    get.magic(*FOOTER_MAGIC)?;
    let (sequence, epoch) = (Sequence(get.u64()?), Epoch(get.u64()?));
    let bound: [u8; 16] = get.array()?;
    let tag: [u8; 16] = get.seek(TAG_AT).array()?;
    if tag != key.tag(&footer[..TAG_AT]) {
        return Err(FormatError::BadTag { structure: WHAT, at: TAG_AT as u64 });
    }
    if bound != header.tag || sequence != header.sequence || epoch != header.epoch {
        return Err(FormatError::Malformed {
            structure: WHAT,
            at: BOUND_AT as u64,
            what: "it belongs to another header: the slot was not written to its end",
        });
    }
    Ok(())
}
