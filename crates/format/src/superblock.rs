//! The superblock: the description of a lane that is needed to read anything else on it. This module has only
//! its bytes; `ring` decides where its copies go and in which order they are written.

use crate::bytes::{FieldReader, SliceWriter};
use crate::geometry::MAX_SKIPPED;
use crate::terms::TERMS_BYTES;
use crate::{FormatError, Geometry, Key, Name, Region, Terms, crc32c};
use holdfast_base::{BLOCK, LaneNo, MAX_NAME, RingId, Timestamp};

const WHAT: &str = "superblock";
const SKIPPED_AT: usize = 256;
const LANES_AT: usize = 2304;
const MAX_LANES: usize = 64;
const TERMS_AT: usize = 3328;
const CRC_AT: usize = BLOCK - 4;

/// How the lanes of a group protect each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Codec {
    /// Not at all: one lane.
    #[default]
    None = 0,
    /// Every byte on each of them.
    Mirror = 1,
    /// One parity lane.
    Xor = 2,
    /// Several parity lanes.
    ReedSolomon = 3,
}

impl Codec {
    pub(crate) fn from_byte(byte: u8) -> Option<Self> {
        [Self::None, Self::Mirror, Self::Xor, Self::ReedSolomon].get(usize::from(byte)).copied()
    }
}

/// The head of a lane. `docs/format.md` draws it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Superblock {
    /// Format version of the ring, up to [`Superblock::VERSION`]. Encoding always writes that one.
    pub version: u32,
    /// Every rewrite adds 1; the valid copy with the highest wins.
    pub generation: u64,
    /// The ring.
    pub ring: RingId,
    /// Its group of lanes; equal to the ring for a single lane.
    pub group: RingId,
    /// The ring's secret.
    pub key: Key,
    /// When the ring was formatted.
    pub created: Timestamp,
    /// Where everything lies.
    pub geometry: Geometry,
    /// This lane.
    pub lane: LaneNo,
    /// How many lanes there are.
    pub lanes: u16,
    /// Data lanes.
    pub n: u8,
    /// Parity lanes.
    pub k: u8,
    /// How parity is made.
    pub codec: Codec,
    /// Whether every slot was written once when the ring was formatted.
    pub prefilled: bool,
    /// Free slots that no hold may take.
    pub reserve: u32,
    /// What people call the ring.
    pub name: String,
    /// Ids of the lanes, as far as they are known.
    pub lane_ids: Vec<RingId>,
    /// What the ring was admitted for; without it a ring is best effort. A recovery string does not carry it.
    pub terms: Option<Terms>,
}

impl Superblock {
    /// Format version that is written. Version 2 adds the UUIDs of orders to the journal; version 1 is read.
    pub const VERSION: u32 = 2;

    /// First bytes of each copy.
    pub const MAGIC: &[u8; 8] = b"HFSUPER1";

    /// Where the copies are. Copies 0 and 1 are written and flushed before 2 and 3 are begun.
    pub const OFFSETS: [u64; 4] = [0, 256 << 10, 512 << 10, 768 << 10];

    /// Its 4096 bytes. A name, skipped regions or lane ids beyond their limits are cut off.
    pub fn encode(&self) -> Vec<u8> {
        let mut block = vec![0; BLOCK];
        let geometry = &self.geometry;
        let skipped = &geometry.skipped[..geometry.skipped.len().min(MAX_SKIPPED)];
        let mut put = SliceWriter::new(&mut block);
        put.bytes(Self::MAGIC)
            .u32(Self::VERSION)
            .u32(0)
            .u64(self.generation)
            .bytes(&self.ring.0)
            .bytes(&self.group.0);
        put.bytes(&self.key.0).time(self.created).u64(geometry.lane_bytes).u64(geometry.slot_bytes);
        put.u32(geometry.slots).u16(self.lane.0).u16(self.lanes).u8(self.n).u8(self.k).u8(self.codec as u8);
        put.u8(u8::from(self.prefilled)).u32(self.reserve).u64(geometry.extent_offset(0));
        put.u64(geometry.extent_bytes()).u64(geometry.slot_offset(holdfast_base::SlotNo(0)));
        put.u32(skipped.len() as u32).u32(0).bytes(cut(&self.name, MAX_NAME).as_bytes());
        put.seek(SKIPPED_AT);
        for region in skipped {
            put.u64(region.offset).u64(region.bytes);
        }
        put.seek(LANES_AT);
        for id in self.lane_ids.iter().take(MAX_LANES) {
            put.bytes(&id.0);
        }
        if let Some(terms) = &self.terms {
            terms.encode(&mut block[TERMS_AT..TERMS_AT + TERMS_BYTES]);
        }
        let crc = crc32c(&block[..CRC_AT]);
        block[CRC_AT..].copy_from_slice(&crc.to_le_bytes());
        block
    }

    /// Reads a copy.
    pub fn decode(bytes: &[u8]) -> Result<Self, FormatError> {
        let mut get = FieldReader::new(WHAT, bytes);
        get.magic(*Self::MAGIC)?;
        let version = get.u32()?;
        if !(1..=Self::VERSION).contains(&version) {
            return Err(FormatError::Version { structure: WHAT, version });
        }
        if FieldReader::new(WHAT, bytes).seek(CRC_AT).u32()? != crc32c(&bytes[..CRC_AT]) {
            return Err(FormatError::BadChecksum { structure: WHAT, at: 0 });
        }
        get.take(4)?;
        let generation = get.u64()?;
        let (ring, group, key) = (RingId(get.array()?), RingId(get.array()?), Key(get.array()?));
        let (created, lane_bytes, slot_bytes, slots) = (get.time()?, get.u64()?, get.u64()?, get.u32()?);
        let (lane, lanes, n, k) = (LaneNo(get.u16()?), get.u16()?, get.u8()?, get.u8()?);
        let codec =
            Codec::from_byte(get.u8()?).ok_or_else(|| get.malformed("a codec that does not exist"))?;
        let prefilled = get.u8()? & 1 != 0;
        let reserve = get.u32()?;
        let places = (get.u64()?, get.u64()?, get.u64()?);
        let count = get.u32()? as usize;
        if count > MAX_SKIPPED {
            return Err(get.malformed("more skipped regions than there is a place for"));
        }
        let name: [u8; MAX_NAME] = get.seek(160).array()?;
        let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
        let name =
            std::str::from_utf8(name).map_err(|_| get.malformed("a name that is not UTF-8"))?.to_owned();
        get.seek(SKIPPED_AT);
        let mut skipped = Vec::with_capacity(count);
        for _ in 0..count {
            skipped.push(Region { offset: get.u64()?, bytes: get.u64()? });
        }
        get.seek(LANES_AT);
        let mut lane_ids = Vec::new();
        for _ in 0..usize::from(lanes).min(MAX_LANES) {
            lane_ids.push(RingId(get.array()?));
        }
        while lane_ids.last() == Some(&RingId::default()) {
            lane_ids.pop();
        }
        let terms = Terms::decode(&bytes[TERMS_AT..TERMS_AT + TERMS_BYTES])?;
        let geometry = Geometry { lane_bytes, slot_bytes, slots, skipped };
        geometry.check()?;
        let first = geometry.slot_offset(holdfast_base::SlotNo(0));
        if places != (geometry.extent_offset(0), geometry.extent_bytes(), first) {
            return Err(get.seek(128).malformed("journal and slots are not where the slot size puts them"));
        }
        let block = Self {
            version,
            generation,
            ring,
            group,
            key,
            created,
            geometry,
            lane,
            lanes,
            n,
            k,
            codec,
            prefilled,
            reserve,
            name,
            lane_ids,
            terms,
        };
        block.check_lanes()?;
        Ok(block)
    }

    /// The copy to believe: the valid one with the highest generation. Without one, the error of the copy that
    /// came nearest to being valid.
    pub fn newest(copies: &[Result<Self, FormatError>]) -> Result<&Self, FormatError> {
        if let Some(newest) = copies.iter().flatten().max_by_key(|copy| copy.generation) {
            return Ok(newest);
        }
        let mut errors = copies.iter().filter_map(|copy| copy.as_ref().err());
        let telling = errors.clone().find(|error| !matches!(error, FormatError::BadMagic { .. }));
        Err(telling.or_else(|| errors.next()).cloned().unwrap_or(FormatError::BadMagic { structure: WHAT }))
    }

    pub(crate) fn check_lanes(&self) -> Result<(), FormatError> {
        let parts = u16::from(self.n) + u16::from(self.k);
        if self.lanes == 0 || self.lane.0 >= self.lanes || self.n == 0 || parts > self.lanes {
            return Err(FormatError::Malformed {
                structure: WHAT,
                at: 116,
                what: "the lane numbers contradict each other",
            });
        }
        if Name::new(&self.name).is_err() {
            return Err(FormatError::Malformed { structure: WHAT, at: 160, what: "the name is too long" });
        }
        Ok(())
    }
}

/// As much of `text` as fits in `limit` bytes without cutting a character in two.
pub(crate) fn cut(text: &str, limit: usize) -> &str {
    &text[..text.floor_char_boundary(limit)]
}
