//! The recovery string: one line to keep on paper, from which a lost superblock is made again.

use crate::bytes::{FieldReader, SliceWriter};
use crate::superblock::cut;
use crate::{Codec, FormatError, Geometry, Key, Region, Superblock, crc32c};
use holdfast_base::{LaneNo, MAX_NAME, RingId, Timestamp};

const PREFIX: &str = "holdfast1:";
const WHAT: &str = "recovery string";
const DIGITS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// Longest recovery string: 128 skipped regions and a long name in base32, with room.
const MAX_TEXT: usize = 8192;

impl Superblock {
    /// The line from which this superblock can be made again, as far as it matters for reading the lane.
    pub fn to_recovery_string(&self) -> String {
        let mut bytes = vec![0; MAX_TEXT];
        let mut put = SliceWriter::new(&mut bytes);
        let geometry = &self.geometry;
        put.u8(1).bytes(&self.ring.0).bytes(&self.key.0).u64(geometry.lane_bytes);
        put.u8(geometry.slot_bytes.trailing_zeros() as u8).u32(geometry.slots).u32(self.reserve);
        put.u16(self.lane.0).u16(self.lanes);
        if self.lanes > 1 {
            put.bytes(&self.group.0);
        }
        put.u8(self.n).u8(self.k).u8(self.codec as u8).u8(u8::from(self.prefilled));
        let skipped = &geometry.skipped[..geometry.skipped.len().min(crate::geometry::MAX_SKIPPED)];
        put.u8(skipped.len() as u8);
        for region in skipped {
            put.u64(region.offset).u64(region.bytes);
        }
        let name = cut(&self.name, MAX_NAME);
        put.u8(name.len() as u8).bytes(name.as_bytes());
        let len = put.at();
        let crc = crc32c(&bytes[..len]);
        bytes.truncate(len);
        bytes.extend_from_slice(&crc.to_le_bytes());
        format!("{PREFIX}{}", base32(&bytes))
    }

    /// Reads a recovery string; spaces and line breaks in it do not matter, nor does case. What it does not tell is
    /// filled in: generation 1, time of creation 0, no lane ids.
    pub fn from_recovery_string(text: &str) -> Result<Self, FormatError> {
        let wrong = |what| FormatError::Malformed { structure: WHAT, at: 0, what };
        let text: String = text.chars().filter(|c| !c.is_whitespace()).take(MAX_TEXT).collect();
        let text = text.to_ascii_lowercase();
        let digits = text.strip_prefix(PREFIX).ok_or_else(|| wrong("it should begin with holdfast1:"))?;
        let bytes = from_base32(digits)?;
        let body = bytes.len().checked_sub(4).ok_or_else(|| wrong("it is cut off"))?;
        if FieldReader::new(WHAT, &bytes).seek(body).u32()? != crc32c(&bytes[..body]) {
            return Err(FormatError::BadChecksum { structure: WHAT, at: 0 });
        }
        let mut get = FieldReader::new(WHAT, &bytes[..body]);
        let version = get.u8()?;
        if version != 1 {
            return Err(FormatError::Version { structure: WHAT, version: version.into() });
        }
        let (ring, key, lane_bytes) = (RingId(get.array()?), Key(get.array()?), get.u64()?);
        let slot_bytes = 1u64.checked_shl(get.u8()?.into()).unwrap_or(0);
        let (slots, reserve) = (get.u32()?, get.u32()?);
        let (lane, lanes) = (LaneNo(get.u16()?), get.u16()?);
        let group = if lanes > 1 { RingId(get.array()?) } else { ring };
        let (n, k) = (get.u8()?, get.u8()?);
        let codec =
            Codec::from_byte(get.u8()?).ok_or_else(|| get.malformed("a codec that does not exist"))?;
        let prefilled = get.u8()? & 1 != 0;
        let count = get.u8()?;
        let mut skipped = Vec::with_capacity(count.into());
        for _ in 0..count {
            skipped.push(Region { offset: get.u64()?, bytes: get.u64()? });
        }
        let len = get.u8()?.into();
        let name =
            std::str::from_utf8(get.take(len)?).map_err(|_| get.malformed("a name that is not UTF-8"))?;
        let block = Self {
            version: Self::VERSION,
            generation: 1,
            ring,
            group,
            key,
            created: Timestamp(0),
            geometry: Geometry { lane_bytes, slot_bytes, slots, skipped },
            lane,
            lanes,
            n,
            k,
            codec,
            prefilled,
            reserve,
            name: name.to_owned(),
            lane_ids: Vec::new(),
            terms: None,
        };
        block.geometry.check()?;
        block.check_lanes()?;
        Ok(block)
    }
}

/// RFC 4648 base32, lower case, without padding.
fn base32(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 8 / 5 + 1);
    let (mut bits, mut have) = (0u32, 0);
    for byte in bytes {
        bits = bits << 8 | u32::from(*byte);
        have += 8;
        while have >= 5 {
            have -= 5;
            text.push(DIGITS[(bits >> have & 31) as usize].into());
        }
    }
    if have > 0 {
        text.push(DIGITS[(bits << (5 - have) & 31) as usize].into());
    }
    text
}

fn from_base32(text: &str) -> Result<Vec<u8>, FormatError> {
    let mut bytes = Vec::with_capacity(text.len() * 5 / 8);
    let (mut bits, mut have) = (0u32, 0);
    for (at, digit) in text.bytes().enumerate() {
        let value = DIGITS.iter().position(|known| *known == digit).ok_or(FormatError::Malformed {
            structure: WHAT,
            at: (PREFIX.len() + at) as u64,
            what: "a character other than a to z and 2 to 7",
        })?;
        bits = bits << 5 | value as u32;
        have += 5;
        if have >= 8 {
            have -= 8;
            bytes.push((bits >> have) as u8);
        }
    }
    // What is left over are the zeros that filled the last digit.
    if have >= 5 || bits & ((1 << have) - 1) != 0 {
        return Err(FormatError::Malformed {
            structure: WHAT,
            at: (PREFIX.len() + text.len()) as u64,
            what: "it is cut off, or its last character is wrong",
        });
    }
    Ok(bytes)
}
